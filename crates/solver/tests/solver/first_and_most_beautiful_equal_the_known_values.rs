//! Every method for the first and the most beautiful solution agrees with exhaustive search on
//! small boards and with the known values on larger ones, and reports each result as proved.
//!
//! `records/published/first_queens.csv`: OEIS A141843 up to n = 36, beyond that Fischetti and
//! Salvagnin, arXiv 1907.08246. `records/published/beautiful_fingerprints.csv`: exhaustive search
//! up to n = 21, beyond that the same paper.

use nqueens_proof::board::{Piece, is_solution};
use nqueens_solver::Unobserved;
use nqueens_solver::beautiful::fingerprint;
use nqueens_solver::ilp::most_beautiful;
use nqueens_solver::ilp::{BEST_SOLVER, FirstMethod, lexicographic_first};
use nqueens_solver::{Answer, Verdict};

use crate::support::solutions;

fn numbers<T: std::str::FromStr<Err: std::fmt::Debug>>(text: &str) -> Vec<T> {
    text.split_whitespace().map(|word| word.parse().expect("a number")).collect()
}

/// Returns the first solution for n, 0-based, from the table; `None` if there is no solution.
fn known_first(n: usize) -> Option<Vec<usize>> {
    let table = include_str!("../../../../records/published/first_queens.csv");
    let line =
        table.lines().find_map(|line| line.strip_prefix(&format!("{n},"))).expect("in the table");
    numbers::<usize>(line).into_iter().map(|column| column.checked_sub(1)).collect()
}

fn known_fingerprint(n: usize) -> Vec<u64> {
    let table = include_str!("../../../../records/published/beautiful_fingerprints.csv");
    let line = table.lines().find(|line| line.starts_with(&format!("{n},"))).expect("in the table");
    numbers(line.rsplit(',').next().expect("a field"))
}

fn found(n: usize, method: FirstMethod) -> Answer<Vec<usize>> {
    lexicographic_first(n, method, BEST_SOLVER, &mut Unobserved).expect("the board is small enough")
}

fn assert_known(method: FirstMethod, sizes: impl IntoIterator<Item = usize>) {
    for n in sizes {
        let answer = found(n, method);
        assert_eq!(answer.found, known_first(n), "{method}, n = {n}");
        assert_eq!(answer.verdict, Verdict::Proven, "{method}, n = {n}");
    }
}

#[test]
fn every_method_finds_the_first_solution_of_the_oracle() {
    for n in 0..=12 {
        // Up to n = 12 the first solution is far from the last: the oracle lists all of them up to
        // 8 only.
        let expected = if n <= 8 { solutions(n).into_iter().next() } else { known_first(n) };
        assert!(expected.as_ref().is_none_or(|columns| is_solution(Piece::Queen, columns)));
        assert_eq!(expected.is_none(), n == 2 || n == 3);
        for method in FirstMethod::ALL {
            let answer = found(n, method);
            assert_eq!(answer.found, expected, "{method}, n = {n}");
            assert_eq!(answer.verdict, Verdict::Proven, "{method}, n = {n}");
        }
    }
}

#[test]
fn row_by_row_programs_give_the_known_values() {
    assert_known(FirstMethod::IlpIter, 13..=20);
}

#[test]
fn truncated_programs_give_the_known_values() {
    assert_known(FirstMethod::IlpTrunc, 13..=20);
}

#[test]
fn search_on_the_lexicographic_simplex_gives_the_known_values() {
    assert_known(FirstMethod::LexDfs, 13..=20);
}

#[test]
fn cutting_planes_give_the_known_values() {
    assert_known(FirstMethod::CuttingPlane, 13..=16);
}

#[test]
fn constraints_give_the_known_values() {
    assert_known(FirstMethod::Cp, 13..=30);
}

#[test]
fn the_exact_engine_gives_the_known_values() {
    assert_known(FirstMethod::Exact, (13..=35).chain([57, 59]));
}

#[test]
fn boards_that_are_too_large_for_a_method_are_refused() {
    for (method, largest) in [(FirstMethod::IlpWeights, "n = 13"), (FirstMethod::Exact, "n = 128")]
    {
        let refused =
            lexicographic_first(method.largest() + 1, method, BEST_SOLVER, &mut Unobserved)
                .expect_err("too large");
        assert!(refused.to_string().contains(largest), "{refused}");
    }
    assert_known(FirstMethod::IlpWeights, [FirstMethod::IlpWeights.largest()]);
}

#[test]
fn the_smallest_fingerprint_equals_that_of_the_oracle() {
    for n in 0..=8 {
        let expected = solutions(n).iter().map(|columns| fingerprint(columns)).min();
        let answer = most_beautiful(n, BEST_SOLVER, &mut Unobserved);
        assert_eq!(answer.verdict, Verdict::Proven, "n = {n}");
        assert_eq!(answer.found.as_deref().map(fingerprint), expected, "n = {n}");
    }
}

#[test]
fn the_smallest_fingerprint_equals_the_known_one() {
    for n in 9..=16 {
        let answer = most_beautiful(n, BEST_SOLVER, &mut Unobserved);
        assert_eq!(answer.verdict, Verdict::Proven, "n = {n}");
        let columns = answer.found.expect("a solution");
        assert!(is_solution(Piece::Queen, &columns));
        assert_eq!(fingerprint(&columns), known_fingerprint(n), "n = {n}");
    }
}
