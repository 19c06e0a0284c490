//! Tests which refutations are accepted, and over which lines a search branches.

use std::cmp::Ordering;

use super::super::checker::DEEPEST;
use super::super::position::Position;
use super::super::refutation::Weighted;
use super::*;

#[test]
fn no_tree_refutes_a_position_that_has_a_completion() {
    let mut random = fastrand::Rng::with_seed(62);
    let (mut refuted, mut with_completion) = (0, 0);
    for case in 0..6000 {
        let n = random.usize(1..=8);
        let prefix = peaceful_prefix(n, &mut random);
        let none = all(n, &prefix).is_empty();
        let tree = tree(n, 4, &mut random);
        let accepted = check_refutation(n, &prefix, &tree, 1_000_000);
        match accepted {
            Ok(_) => {
                assert!(none, "case {case}: {prefix:?} of {n} has a completion: {tree:?}");
                refuted += 1;
            }
            Err(ProofError::Refused(_) | ProofError::Damaged(_)) => {}
            Err(other) => panic!("case {case}: {other}"),
        }
        with_completion += u32::from(!none);
    }
    assert!(
        refuted > 300 && with_completion > 300,
        "{refuted} refuted, {with_completion} with a completion"
    );
}

#[test]
fn queens_off_the_board_are_refused() {
    let check = |n, prefix: &[usize]| check_refutation(n, prefix, &Refutation::search(), 999);
    for (n, prefix) in [(0, &[][..]), (4, &[4]), (2, &[0, 1, 0]), (4, &[usize::MAX])] {
        assert!(matches!(check(n, prefix), Err(ProofError::Refused(_))), "{n}: {prefix:?}");
    }
    assert!(matches!(check(LARGEST + 1, &[]), Err(ProofError::Damaged(_))));
    assert!(check(4, &[0]).is_ok());
}

#[test]
fn the_search_refutes_exactly_the_positions_without_completions() {
    let mut random = fastrand::Rng::with_seed(8);
    for case in 0..2000 {
        let n = random.usize(1..=9);
        let prefix = peaceful_prefix(n, &mut random);
        let dual_bounds: usize = random.usize(0..6);
        let blocks = blocks(n, &mut random);
        let searches = [
            Refutation::search(),
            in_blocks(6, &blocks),
            Refutation::search_by_weight(&blocks, &[]),
            Refutation::search_by_weight(&blocks, &weights(n, &mut random)),
            Refutation::search_with_memory(&blocks, &weights(n, &mut random)),
        ];
        let search = searches[random.usize(0..searches.len())].clone();
        let refutation = (0..dual_bounds).fold(search, |then, _| {
            Refutation::dual_bound(&multipliers(n, &mut random), random.bool(), &then)
        });
        let accepted = check_refutation(n, &prefix, &refutation, u64::MAX).is_ok();
        assert_eq!(accepted, all(n, &prefix).is_empty(), "case {case}: {prefix:?} of {n}");
    }
}

#[test]
fn a_search_that_remembers_refuted_positions_searches_them_once() {
    // The first solutions of n = 24 and 25 (A141843), 0-based.
    let solutions = [
        vec![0, 2, 4, 1, 3, 8, 10, 13, 17, 21, 18, 22, 19, 23, 9, 20, 5, 7, 11, 15, 12, 6, 16, 14],
        vec![
            0, 2, 4, 1, 3, 8, 10, 12, 14, 18, 20, 23, 19, 24, 22, 5, 7, 9, 6, 13, 15, 17, 11, 16,
            21,
        ],
    ];
    let mut random = fastrand::Rng::with_seed(30);
    let (mut fewer, mut completed) = (0, 0);
    for solution in solutions {
        let n = solution.len();
        let weights = vec![1; 2 * n];
        let mut check = |prefix: &[usize]| {
            let open: Vec<usize> = (prefix.len()..n).collect();
            let block: Vec<usize> = match random.bool() {
                true => open[..random.usize(3..=open.len() - 3)].to_vec(),
                false => open.into_iter().filter(|_| random.bool()).collect(),
            };
            [Refutation::search_by_weight, Refutation::search_with_memory]
                .map(|search| search(std::slice::from_ref(&block), &weights))
                .map(|search| check_refutation(n, prefix, &search, u64::MAX))
        };
        for row in 8..n - 6 {
            let above = &solution[..row];
            for column in (0..n).filter(|&column| is_free(n, &[above, &[column]].concat())) {
                let prefix = [above, &[column]].concat();
                match (column.cmp(&solution[row]), check(&prefix)) {
                    (Ordering::Less, [Ok(without), Ok(with)]) => {
                        fewer += u32::from(with < without);
                    }
                    (Ordering::Equal, [Err(without), Err(with)]) => {
                        assert_eq!(with, without, "{prefix:?} of {n}");
                        completed += 1;
                    }
                    (Ordering::Greater, [without, with]) => {
                        assert_eq!(with.is_ok(), without.is_ok(), "{prefix:?} of {n}");
                        completed += u32::from(with.is_err());
                    }
                    (_, outcomes) => panic!("{prefix:?} of {n}: {outcomes:?}"),
                }
            }
        }
    }
    assert!(fewer > 0 && completed > 10, "{fewer} with fewer queens, {completed} with completions");
}

#[test]
fn a_search_branches_over_columns_that_ran_out_of_candidates() {
    let lines = |blocks: &[u128]| Weighted {
        blocks: blocks.to_vec(),
        columns: true,
        ..Weighted::default()
    };
    let mut position = Position::new(6, &[]);
    assert!(!position.propagate());
    let mark = position.mark();
    // Column 4 runs out of candidates.
    (0..6).for_each(|row| position.eliminate(row * 6 + 4));
    assert!(position.propagate());
    position.backtrack_to(&mark);
    assert!(!position.propagate());
    assert_eq!(position.weighted_line(&lines(&[])), Some(6 + 4));
    assert_eq!(position.weighted_line(&Weighted::default()), Some(0));
    // The column has squares in rows outside the block.
    assert_eq!(position.weighted_line(&lines(&[0b1100])), Some(2));
    (0..6).filter(|row| ![2, 3].contains(row)).for_each(|row| position.eliminate(row * 6 + 4));
    assert_eq!(position.weighted_line(&lines(&[0b1100])), Some(6 + 4));
}

#[test]
fn a_search_begins_with_its_initial_weights() {
    let mut position = Position::new(6, &[]);
    assert!(!position.propagate());
    let mut initial = vec![1; 12];
    initial[6 + 2] = 5;
    initial[3] = 0;
    let lines = Weighted { columns: true, initial, ..Weighted::default() };
    position.set_weights(&lines);
    assert_eq!(position.weighted_line(&lines), Some(6 + 2));
    // Without initial weights, the previous ones are kept.
    position.set_weights(&Weighted::default());
    assert_eq!(position.weighted_line(&lines), Some(6 + 2));
    // There must be a weight for each line, of at most 32 bits.
    let whole = Refutation::search_by_weight(&[], &[1; 16]);
    assert!(check_refutation(8, &[0, 2, 4, 1, 3], &whole, u64::MAX).is_ok());
    let short = Refutation::search_by_weight(&[], &[1; 14]);
    let mut large = whole.as_bytes().to_vec();
    large.splice(1..2, [0xff, 0xff, 0xff, 0xff, 0xff, 0x01]);
    for damaged in [short, Refutation::from_bytes(large)] {
        let checked = check_refutation(8, &[0, 2, 4, 1, 3], &damaged, u64::MAX);
        assert!(matches!(checked, Err(ProofError::Damaged(_))), "{checked:?}");
    }
}

#[test]
fn a_search_in_blocks_begins_with_them_and_skips_no_row() {
    let mut position = Position::new(8, &[]);
    assert!(!position.propagate());
    let rows = |blocks: &[u128]| Weighted { blocks: blocks.to_vec(), ..Weighted::default() };
    assert_eq!(position.weighted_line(&rows(&[])), Some(0));
    assert_eq!(position.weighted_line(&rows(&[0, 1 << 5 | 1 << 6, 1])), Some(5));
    position.place(5 * 8);
    assert!(!position.propagate());
    assert_eq!(position.weighted_line(&rows(&[1 << 5 | 1 << 3, 1])), Some(3));
    assert_eq!(position.weighted_line(&rows(&[1 << 5])), position.weighted_line(&rows(&[])));
    // Blocks with rows that are not on the board are damaged.
    for (blocks, accepted) in
        [(vec![vec![0, 1]], true), (vec![vec![8]], false), (vec![vec![]; 9], false)]
    {
        for byte in [6, 7] {
            let refutation = in_blocks(byte, &blocks);
            let checked = check_refutation(8, &[0, 2, 4, 1, 3], &refutation, u64::MAX);
            let damaged = matches!(checked, Err(ProofError::Damaged(_)));
            assert_eq!((checked.is_ok(), damaged), (accepted, !accepted), "{byte}, {blocks:?}");
        }
    }
}

#[test]
fn eliminated_squares_are_in_no_completion() {
    let mut random = fastrand::Rng::with_seed(10);
    let (mut eliminated, mut not_refuted_at_once) = (0, 0);
    for case in 0..6000 {
        let n = random.usize(4..=9);
        let prefix = peaceful_prefix(n, &mut random);
        let completions = all(n, &prefix);
        let mut position = Position::new(n, &prefix);
        if position.propagate() {
            continue;
        }
        let y = multipliers(n, &mut random);
        let lines: Vec<i64> = [&y.columns[..], &y.diagonals, &y.antidiagonals].concat();
        for square in 0..n * n {
            if !position.is_candidate(square) || random.bool() {
                continue;
            }
            let mark = position.mark();
            position.place(square);
            let is_eliminated = position.propagate() || {
                let is_refuted = position.is_refuted_by(&lines);
                not_refuted_at_once += u32::from(is_refuted);
                is_refuted
            };
            position.backtrack_to(&mark);
            if is_eliminated {
                let used = completions.iter().any(|columns| columns[square / n] == square % n);
                assert!(!used, "case {case}: {square} of {n} after {prefix:?}");
                eliminated += 1;
            }
            // A tree gives the same result: a square that cannot be eliminated is refused.
            let tree = Refutation::elimination(&y, &[square], &Refutation::search());
            let accepted = check_refutation(n, &prefix, &tree, u64::MAX).is_ok();
            assert_eq!(
                accepted,
                is_eliminated && completions.is_empty(),
                "case {case}: {square} of {n}"
            );
        }
    }
    assert!(
        eliminated > 1000 && not_refuted_at_once > 20,
        "{eliminated} eliminated, {not_refuted_at_once} by a dual bound"
    );
}

#[test]
fn a_branch_over_any_line_refutes_exactly_the_positions_without_completions() {
    let mut random = fastrand::Rng::with_seed(9);
    let mut forced = 0;
    for case in 0..3000 {
        let n = random.usize(1..=9);
        let prefix = peaceful_prefix(n, &mut random);
        let none = all(n, &prefix).is_empty();
        let mut position = Position::new(n, &prefix);
        let refuted = position.propagate();
        for line in [Line::Row(random.usize(0..n)), Line::Column(random.usize(0..n))] {
            let number = line.number(n);
            let taken = number < prefix.len() || number >= n && prefix.contains(&(number - n));
            forced += u32::from(!refuted && position.queen_on(number).is_some());
            let at = |i: usize| if number < n { number * n + i } else { i * n + number - n };
            let children: Vec<_> = (0..n).map(|i| (at(i), Refutation::search())).collect();
            let branch = Refutation::branch(n, line, &children);
            let accepted = check_refutation(n, &prefix, &branch, u64::MAX).is_ok();
            assert_eq!(
                accepted,
                refuted || none && !taken,
                "case {case}: {prefix:?} of {n}, {line:?}"
            );
        }
    }
    assert!(forced > 20, "only {forced} queens were forced");
}

#[test]
fn deep_trees_are_refused_without_a_stack_overflow() {
    let search = Refutation::search;
    let nothing = Multipliers::none(8);
    let deep = |wrap: &dyn Fn(&Refutation) -> Refutation| {
        (0..3 * DEEPEST).fold(search(), |then, _| wrap(&then))
    };
    // The first prefix leaves many candidates, the second has no completion, and the third
    // is that of a solution.
    let trees = [
        deep(&|then| Refutation::cases(8, Line::Diagonal(3), &search(), then)),
        Refutation::listed_sets(&deep(&|then| {
            Refutation::cases(8, Line::Diagonal(3), then, &search())
        })),
        deep(&Refutation::listed_sets),
        deep(&|then| Refutation::branch(8, Line::Row(7), &[(56, then.clone())])),
        deep(&|then| Refutation::dual_bound(&nothing, true, then)),
        deep(&|then| Refutation::elimination(&nothing, &[], then)),
    ];
    for tree in trees {
        for prefix in [&[0usize][..], &[0, 2, 4, 1, 3], &[0, 4, 7, 5, 2, 6]] {
            let (tree, prefix) = (tree.clone(), prefix.to_vec());
            // The program's own threads have two megabytes of stack, like this one.
            let checked = std::thread::Builder::new()
                .stack_size(2 << 20)
                .spawn(move || check_refutation(8, &prefix, &tree, u64::MAX))
                .expect("a thread")
                .join()
                .expect("the stack is enough");
            assert!(checked.is_err());
        }
    }
}

#[test]
fn an_unknown_step_is_distinguished_from_a_false_one() {
    let check = |bytes: &[u8]| {
        check_refutation(8, &[0, 2], &Refutation::from_bytes(bytes.to_vec()), u64::MAX)
    };
    assert!(check(&[0]).is_ok());
    for unknown in [12, 99, 255] {
        assert_eq!(check(&[unknown]), Err(ProofError::UnknownStep(unknown.into())));
        // The unknown step is also reported after known steps, and where nothing is left to
        // refute.
        let newer = Refutation::from_bytes(vec![unknown]);
        let behind = Refutation::dual_bound(&Multipliers::none(8), false, &newer);
        assert_eq!(check(behind.as_bytes()), Err(ProofError::UnknownStep(unknown.into())));
    }
    // An error before the unknown step is reported as an error.
    let damaged = check(&[3, 200, 1, 12]);
    assert!(matches!(damaged, Err(ProofError::Damaged(_) | ProofError::Refused(_))), "{damaged:?}");
}
