//! Tests of trees that list the sets of diagonals and distinguish cases.

use super::*;
use crate::veripb::{TranslationError, translate};

/// Returns a random tree of case distinctions, up to so many below each other, with these leaves.
fn cases(
    n: usize,
    depth: usize,
    random: &mut fastrand::Rng,
    leaf: &dyn Fn(&mut fastrand::Rng) -> Refutation,
) -> Refutation {
    if depth == 0 || random.u8(0..8) == 0 {
        return leaf(random);
    }
    let [unused, used] = [(); 2].map(|()| cases(n, depth - 1, random, leaf));
    Refutation::cases(n, any_diagonal(n, random), &unused, &used)
}

fn searches(_: &mut fastrand::Rng) -> Refutation {
    Refutation::search()
}

#[test]
fn cases_refute_positions_without_completions() {
    let mut random = fastrand::Rng::with_seed(81);
    let mut refuted = 0;
    for case in 0..3000 {
        let n = random.usize(4..=9);
        let prefix = peaceful_prefix(n, &mut random);
        if all(n, &prefix).is_empty() {
            let tree = Refutation::listed_sets(&cases(n, 5, &mut random, &searches));
            let checked = check_refutation(n, &prefix, &tree, u64::MAX);
            assert!(checked.is_ok(), "case {case}: {prefix:?} of {n}: {checked:?}");
            refuted += 1;
        }
    }
    assert!(refuted > 500, "{refuted}");
}

#[test]
fn no_cases_refute_a_position_that_has_a_completion() {
    let mut random = fastrand::Rng::with_seed(82);
    let mut with_completion = 0;
    for case in 0..4000 {
        let n = random.usize(4..=9);
        let prefix = peaceful_prefix(n, &mut random);
        if all(n, &prefix).is_empty() {
            continue;
        }
        with_completion += 1;
        // Searches that remember refuted positions, dual bounds, branchings and eliminations.
        let leaf = |random: &mut fastrand::Rng| match random.u8(0..3) {
            0 => Refutation::search_with_memory(&blocks(n, random), &weights(n, random)),
            _ => super::tree(n, 2, random),
        };
        let below = cases(n, 4, &mut random, &leaf);
        let bound = multipliers(n, &mut random);
        let tree = Refutation::listed_sets(&Refutation::dual_bound(&bound, true, &below));
        let checked = check_refutation(n, &prefix, &tree, 1_000_000);
        assert!(checked.is_err(), "case {case}: {prefix:?} of {n}: {tree:?}");
    }
    assert!(with_completion > 500, "{with_completion}");
}

#[test]
fn certificates_with_cases_prove_the_first_solutions_of_small_boards() {
    let mut random = fastrand::Rng::with_seed(83);
    for n in 4..=9 {
        let (solution, refutations) = searched(n);
        let trees: Vec<Refutation> = refutations
            .iter()
            .map(|_| Refutation::listed_sets(&cases(n, 3, &mut random, &searches)))
            .collect();
        let certificate = certificate(n, solution.as_deref(), &trees).expect("a proof");
        assert!(crate::check(&certificate).is_ok(), "n = {n}");
    }
}

#[test]
fn a_translation_for_veripb_defines_listed_sets_before_the_prefix_and_deletes_them_after_it() {
    let n = 12;
    let (solution, refutations) = searched(n);
    let listed = Refutation::listed_sets(&Refutation::search());
    let children: Vec<_> = (6 * n..7 * n).map(|square| (square, listed.clone())).collect();
    let trees: Vec<Refutation> =
        refutations.iter().map(|_| Refutation::branch(n, Line::Row(6), &children)).collect();
    let certificate = certificate(n, solution.as_deref(), &trees).expect("a proof");
    let translated = |most_lines: u64| {
        let (mut formula, mut proof) = (Vec::new(), Vec::new());
        let mut meter = Meter::new(None);
        translate(&certificate, most_lines, &mut meter, &mut formula, &mut proof)
            .map(|_| String::from_utf8(proof).expect("ASCII"))
    };
    let proof = translated(u64::MAX).expect("a translation");
    let (mut inside, mut defined, mut deleted) = (0, 0, 0);
    for line in proof.lines() {
        let words: Vec<&str> = line.split([' ', ';']).collect();
        match words[0] {
            "red" if [" : u", " : q"].iter().any(|variable| line.contains(variable)) => {
                assert_eq!(inside, 0, "{line}");
                defined += 1;
            }
            "del" => {
                assert_eq!(inside, 0, "{line}");
                let [first, end] = [2, 3].map(|word| words[word].parse::<u64>().expect(line));
                deleted += end - first;
            }
            "pbc" => inside += 1,
            "qed" => inside -= 1,
            _ => {}
        }
    }
    assert!(defined == deleted && defined > 20, "{defined} {deleted}");
    for most_lines in [20, 200, proof.lines().count() as u64 - 1] {
        let limited = translated(most_lines);
        assert!(matches!(limited, Err(TranslationError::LineLimit(_))), "{most_lines}");
    }
}

#[test]
fn a_case_distinction_needs_listed_sets_and_a_diagonal() {
    // The position has completions, so its lists do not refute it.
    let (n, prefix) = (8, [0, 4]);
    let why = |tree: &Refutation| match check_refutation(n, &prefix, tree, u64::MAX) {
        Err(ProofError::Refused(why)) => why,
        other => panic!("{tree:?}: {other:?}"),
    };
    let search = Refutation::search();
    let of = |line: Line| Refutation::cases(n, line, &search, &search);
    let listed = |line: Line| Refutation::listed_sets(&of(line));
    assert!(why(&listed(Line::Diagonal(5))).ends_with("there is a completion"));
    let cases = [
        of(Line::Diagonal(5)),
        listed(Line::Row(3)),
        listed(Line::Column(3)),
        listed(Line::Antidiagonal(2 * n - 1)),
    ];
    for tree in cases {
        assert!(why(&tree).contains("distinguishes cases without"), "{tree:?}");
    }
    let twice = Refutation::listed_sets(&Refutation::listed_sets(&search));
    assert!(why(&twice).ends_with("lists the sets of diagonals twice"));
}

#[test]
fn sets_are_listed_only_for_the_tree_below() {
    let (n, prefix) = (8, [0, 2]);
    let search = Refutation::search();
    let diagonal = Refutation::cases(n, Line::Diagonal(7), &search, &search);
    let listed = Refutation::listed_sets(&diagonal);
    let branch = |trees: [&Refutation; 2]| {
        // The free columns of the third row.
        let squares = [1, 4, 5, 6, 7].map(|column| 2 * n + column);
        let child = |(i, square): (usize, usize)| (square, trees[usize::from(i > 0)].clone());
        let children: Vec<_> = squares.into_iter().enumerate().map(child).collect();
        Refutation::branch(n, Line::Row(2), &children)
    };
    let check = |tree: &Refutation| check_refutation(n, &prefix, tree, u64::MAX);
    assert!(check(&branch([&listed, &search])).is_ok());
    assert!(check(&branch([&listed, &listed])).is_ok(), "they are listed again");
    let refused = check(&branch([&listed, &diagonal]));
    assert!(matches!(refused, Err(ProofError::Refused(_))), "{refused:?}");
}

#[test]
fn skipped_lists_and_cases_are_read_to_their_end() {
    // The third row has no free square.
    let (n, prefix) = (4, [0, 2]);
    let check = |bytes: &[u8]| {
        check_refutation(n, &prefix, &Refutation::from_bytes(bytes.to_vec()), u64::MAX)
    };
    let search = Refutation::search();
    let inner = Refutation::cases(n, Line::Antidiagonal(3), &search, &search);
    let branch = Refutation::branch(n, Line::Row(3), &[(12, inner.clone())]);
    let tree = Refutation::listed_sets(&Refutation::cases(n, Line::Row(0), &inner, &branch));
    assert!(check(tree.as_bytes()).is_ok(), "nothing is left to refute");
    for length in 0..tree.as_bytes().len() {
        assert!(check(&tree.as_bytes()[..length]).is_err(), "{length} bytes");
    }
    let longer = [tree.as_bytes(), &[0]].concat();
    assert!(check(&longer).is_err(), "a byte follows");
}
