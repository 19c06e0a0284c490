//! The decomposition counts every solution exactly once: its weights match orbits found by brute
//! force.

use std::collections::BTreeMap;

use nqueens::board::{Piece, Problem, Square, first_attack};
use nqueens::decomposition::{Decomposition, Job, Scheme};
use nqueens::symmetry::{Group, Symmetry};

/// Returns all completions of `problem` by trying every column in every row, with the plain
/// definition only.
fn completions(problem: &Problem) -> Vec<Vec<usize>> {
    fn extend(problem: &Problem, columns: &mut Vec<usize>, found: &mut Vec<Vec<usize>>) {
        let (n, row) = (problem.n(), columns.len());
        if row == n {
            let has = |s: &Square| columns[s.row] == s.col;
            if problem.placed().iter().all(has) && !problem.blocked().iter().any(has) {
                found.push(columns.clone());
            }
            return;
        }
        for col in 0..n {
            let new = Square::new(row, col);
            let attacked =
                (0..row).any(|r| problem.piece().attacks(n, Square::new(r, columns[r]), new));
            if !attacked {
                columns.push(col);
                extend(problem, columns, found);
                columns.pop();
            }
        }
    }
    let mut found = Vec::new();
    extend(problem, &mut Vec::new(), &mut found);
    found
}

fn decomposition(problem: &Problem, scheme: Scheme, depth: Option<usize>) -> Decomposition {
    Decomposition::new(Job::new(problem.clone(), scheme, depth, 7).expect("a small board"))
}

/// Returns the sum of the weights of the symmetry cases that count this completion.
fn thirds(decomposition: &Decomposition, columns: &[usize]) -> u32 {
    decomposition.cases().iter().filter(|plan| plan.counts(columns)).map(|plan| plan.weight()).sum()
}

/// Returns the placement shifted right by some columns, on a board whose left and right edges join.
fn translated(columns: &[usize], by: usize) -> Vec<usize> {
    columns.iter().map(|col| (col + by) % columns.len()).collect()
}

/// Asserts that, in each orbit under the symmetries of the problem, the cases count 3 thirds per
/// completion.
fn assert_orbits_weigh_their_size(problem: &Problem, scheme: Scheme) {
    let decomposition = decomposition(problem, scheme, None);
    let group = Group::of(problem);
    let mut orbits: BTreeMap<Vec<usize>, (u32, u32)> = BTreeMap::new();
    for columns in completions(problem) {
        let images: Vec<Vec<usize>> = match scheme {
            Scheme::Translations => (0..columns.len()).map(|by| translated(&columns, by)).collect(),
            _ => group.elements().map(|g| g.apply_to_columns(&columns)).collect(),
        };
        let first = images.into_iter().min().expect("an orbit has its own solution");
        let orbit = orbits.entry(first).or_default();
        orbit.0 += 1;
        orbit.1 += thirds(&decomposition, &columns);
    }
    for (first, (size, thirds)) in orbits {
        assert_eq!(thirds, 3 * size, "{problem:?} by {scheme:?}, orbit of {first:?}");
    }
}

fn squares(list: &[(usize, usize)]) -> Vec<Square> {
    list.iter().map(|&(row, col)| Square::new(row, col)).collect()
}

fn queens(n: usize, placed: &[(usize, usize)], blocked: &[(usize, usize)]) -> Problem {
    Problem::new(Piece::Queen, n, squares(placed), squares(blocked)).expect("squares on the board")
}

#[test]
fn centre_cross_weights_are_those_of_brute_force_orbits_up_to_10() {
    for n in 6..=10 {
        let problem = Problem::empty(Piece::Queen, n);
        assert_eq!(Scheme::best(&problem), Scheme::CentreCross);
        assert_orbits_weigh_their_size(&problem, Scheme::CentreCross);
    }
}

#[test]
fn every_scheme_weighs_orbits_correctly_on_every_small_empty_board() {
    for n in 0..=10 {
        for piece in [Piece::Queen, Piece::Superqueen, Piece::Toroidal] {
            let problem = Problem::empty(piece, n);
            assert_orbits_weigh_their_size(&problem, Scheme::best(&problem));
            assert_orbits_weigh_their_size(&problem, Scheme::CentreRows);
            assert_orbits_weigh_their_size(&problem, Scheme::TopMirror);
        }
    }
}

#[test]
fn boards_with_decided_squares_use_their_remaining_symmetry() {
    let corners = |n: usize| vec![(0, 0), (0, n - 1), (n - 1, 0), (n - 1, n - 1)];
    let ring = |n: usize| -> Vec<(usize, usize)> {
        (0..n * n)
            .map(|i| (i / n, i % n))
            .filter(|&(r, c)| r.min(c) == 1 && r.max(c) == n - 2)
            .collect()
    };
    for n in 5..=10 {
        let m = n / 2;
        let cases = [
            queens(n, &[], &corners(n)), // all 8
            queens(n, &[], &ring(n)),    // not all
            queens(n, &[], &[(0, 1), (1, n - 1), (n - 1, n - 2), (n - 2, 0)]), // rotations
            queens(n, &[], &[(0, 1), (n - 1, n - 2)]), // half turn
            queens(n, &[], &[(0, 1), (0, n - 2)]), // mirror of columns
            queens(n, &[], &[(1, 0), (n - 2, 0)]), // mirror of rows
            queens(n, &[], &[(1, 1)]),   // transposition
            queens(n, &[], &[(0, 1)]),   // none
            queens(n, &[(0, 1)], &[]),
            queens(n, &[(m, 0)], &[(0, 0)]),
            queens(n, &[(m - 1, 1), (m, 3)], &[]),
            queens(n, &[(0, 1), (n - 1, n - 2)], &[]),
            queens(n, &[(m, m)], &[]),
            queens(n, &[(n - 1, 0)], &[(m, m), (m, 1)]),
        ];
        for problem in cases {
            if problem.conflict().is_none() {
                assert_orbits_weigh_their_size(&problem, Scheme::best(&problem));
                assert_orbits_weigh_their_size(&problem, Scheme::TopMirror);
            }
        }
    }
}

#[test]
fn the_eight_fold_scheme_is_used_only_where_all_eight_symmetries_hold() {
    let n = 8;
    let full = queens(n, &[], &[(0, 0), (0, 7), (7, 0), (7, 7)]);
    assert_eq!((Group::of(&full), Scheme::best(&full)), (Group::FULL, Scheme::CentreCross));
    let rotations = queens(n, &[], &[(0, 1), (1, 7), (7, 6), (6, 0)]);
    assert!(!Group::of(&rotations).contains(Symmetry::Transpose));
    assert_eq!(Scheme::best(&rotations), Scheme::CentreRows);
}

#[test]
fn placed_queens_that_attack_each_other_leave_nothing_to_count() {
    let problem = queens(8, &[(0, 0), (5, 5)], &[]);
    assert_eq!(problem.conflict(), first_attack(Piece::Queen, 8, problem.placed()));
    let decomposition = decomposition(&problem, Scheme::CentreRows, None);
    assert_eq!((decomposition.prefixes(), decomposition.units()), (0, 1));
}

#[test]
fn any_machine_regenerates_the_same_prefixes_from_any_range() {
    let cases = [
        Problem::empty(Piece::Queen, 10),
        Problem::empty(Piece::Queen, 11),
        Problem::empty(Piece::Superqueen, 12),
        queens(9, &[(0, 3)], &[(4, 4)]),
    ];
    for problem in cases {
        let scheme = Scheme::best(&problem);
        for depth in [0, 2, 3, 5] {
            let decomposition = decomposition(&problem, scheme, Some(depth));
            let list = |range| {
                let mut prefixes = Vec::new();
                decomposition
                    .for_each(range, |plan, prefix| prefixes.push((plan.clone(), *prefix)));
                prefixes
            };
            let all = list(0..decomposition.prefixes());
            assert_eq!(all.len() as u64, decomposition.prefixes());
            let by_unit: Vec<_> = (0..decomposition.units())
                .flat_map(|unit| list(decomposition.unit(unit)))
                .collect();
            assert!(all == by_unit, "{problem:?} at depth {depth}");
            let different: std::collections::BTreeSet<String> =
                all.iter().map(|(plan, prefix)| format!("{plan:?} {prefix:?}")).collect();
            assert_eq!(different.len(), all.len(), "two prefixes are equal");
        }
    }
}

/// The meaning of an index is part of the checkpoint format: if this fails, raise the version in
/// the text of a job, so that old files are refused.
#[test]
fn an_index_names_the_same_subproblem_in_every_version() {
    use sha2::{Digest, Sha256};
    let fingerprint = |problem: Problem| {
        let scheme = Scheme::best(&problem);
        let decomposition = decomposition(&problem, scheme, None);
        let mut hash = Sha256::new();
        decomposition.for_each(0..decomposition.prefixes(), |plan, prefix| {
            let squares: Vec<Square> =
                plan.block().iter().copied().chain(prefix.squares(plan)).collect();
            hash.update(format!(
                "{} {squares:?} {:?} {:?};",
                plan.weight(),
                plan.allowed(),
                plan.rules()
            ));
        });
        hash.finalize()[..4].iter().map(|byte| format!("{byte:02x}")).collect::<String>()
    };
    assert_eq!(fingerprint(Problem::empty(Piece::Queen, 12)), "9eb5203d");
    assert_eq!(fingerprint(Problem::empty(Piece::Queen, 13)), "3d92dc11");
    assert_eq!(fingerprint(queens(9, &[(0, 3)], &[(4, 4)])), "94a4005c");
    assert_eq!(fingerprint(Problem::empty(Piece::Toroidal, 11)), "5eae888c");
}
