//! Integer programs agree with exhaustive search: any solution, the heaviest one, the largest set,
//! all solutions.

use std::collections::BTreeSet;

use nqueens_proof::board::{Piece, Problem, Square};
use nqueens_solver::Unobserved;
use nqueens_solver::Verdict;
use nqueens_solver::ilp::cuts::{Families, separate};
use nqueens_solver::ilp::exclusion::{Exclusion, Next};
use nqueens_solver::ilp::model::Row;
use nqueens_solver::ilp::{
    BEST_SOLVER, Formulation, Goal, Lines, MicroLp, Solver, completes, heaviest, largest_set,
    one_solution,
};
use proptest::prelude::*;

use crate::support::completions;

fn listed(problem: &Problem, solver: &dyn Solver) -> Vec<Vec<usize>> {
    let mut exclusion = Exclusion::new(problem, Formulation::Diagonals, solver);
    let mut found = BTreeSet::new();
    loop {
        match exclusion.next(&mut Unobserved) {
            Next::Solution(columns) => assert!(found.insert(columns), "twice the same"),
            Next::End(verdict) => {
                assert_eq!(verdict, Verdict::Proven);
                return found.into_iter().collect();
            }
        }
    }
}

#[test]
fn exclusion_lists_all_solutions() {
    for n in 0..=8 {
        let problem = Problem::empty(Piece::Queen, n);
        assert_eq!(listed(&problem, &MicroLp), completions(&problem), "n = {n}");
    }
    for n in 0..=4 {
        let problem = Problem::empty(Piece::Rook, n);
        assert_eq!(listed(&problem, BEST_SOLVER), completions(&problem), "{n} rooks");
    }
}

#[test]
fn exclusion_finds_all_724_solutions_for_ten_queens() {
    assert_eq!(listed(&Problem::empty(Piece::Queen, 10), BEST_SOLVER).len(), 724);
}

#[test]
fn the_largest_sets_have_the_known_sizes_even_without_a_solution() {
    for (n, queens) in [(0, 0), (1, 1), (2, 1), (3, 2), (4, 4), (5, 5), (8, 8)] {
        for formulation in Formulation::ALL {
            let problem = Problem::empty(Piece::Queen, n);
            let answer = largest_set(
                &problem,
                &Goal::LargestSet.model(&problem, formulation),
                BEST_SOLVER,
                &mut Unobserved,
            );
            assert_eq!(answer.verdict, Verdict::Proven, "n = {n}");
            assert_eq!(answer.found.map(|set| set.len()), Some(queens), "n = {n}");
        }
    }
}

/// Generates a board with some squares decided.
fn problems(largest: usize) -> impl Strategy<Value = Problem> {
    let squares = |n: usize, most: usize| prop::collection::vec((0..n, 0..n), 0..=most);
    let of = |squares: Vec<(usize, usize)>| {
        squares.into_iter().map(|(r, c)| Square::new(r, c)).collect::<Vec<_>>()
    };
    (4..=largest)
        .prop_flat_map(move |n| (Just(n), squares(n, 2), squares(n, 6)))
        .prop_filter_map("a square both placed and blocked", move |(n, placed, blocked)| {
            Problem::new(Piece::Queen, n, of(placed), of(blocked)).ok()
        })
}

fn weight(weights: &[i64], columns: &[usize]) -> i64 {
    let n = columns.len();
    columns.iter().enumerate().map(|(row, &col)| weights[row * n + col]).sum()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]

    #[test]
    fn the_heaviest_solution_equals_that_of_exhaustive_search(
        problem in problems(8),
        borders in any::<bool>(),
        weights in prop::collection::vec(-1000i64..1000, 64),
    ) {
        let n = problem.n();
        let weights = &weights[..n * n];
        let formulation = if borders { Formulation::Borders } else { Formulation::Diagonals };
        let expected = completions(&problem).iter().map(|columns| weight(weights, columns)).max();
        let model = Goal::Heaviest(weights).model(&problem, formulation);
        let answer = heaviest(&problem, &model, weights, BEST_SOLVER, &mut Unobserved);
        prop_assert_eq!(answer.verdict, Verdict::Proven);
        prop_assert!(answer.found.iter().all(|columns| completes(&problem, columns)));
        prop_assert_eq!(answer.found.map(|columns| weight(weights, &columns)), expected);
    }

    #[test]
    fn a_completion_is_found_exactly_if_there_is_one(problem in problems(7), borders in any::<bool>()) {
        let formulation = if borders { Formulation::Borders } else { Formulation::Diagonals };
        let answer = one_solution(&problem, &Goal::AnySolution.model(&problem, formulation), BEST_SOLVER, &mut Unobserved);
        prop_assert_eq!(answer.verdict, Verdict::Proven);
        prop_assert_eq!(answer.found.is_some(), !completions(&problem).is_empty());
        prop_assert!(answer.found.iter().all(|columns| completes(&problem, columns)));
    }

    /// No cut may exclude a solution.
    #[test]
    fn cuts_hold_for_all_solutions_and_tighten_the_bound(
        n in 4usize..=7,
        weights in prop::collection::vec(-1000i64..1000, 49),
    ) {
        let problem = Problem::empty(Piece::Queen, n);
        let mut model = Formulation::Diagonals.model(&problem, Lines::AtMostOne);
        model.set_objective(nqueens_solver::ilp::model::Direction::Maximise, |k| weights[k]);
        let families = Families { cliques: true, exact_cliques: n < 6, odd_cycles: true };
        let found = separate(&model, n, families, BEST_SOLVER, &mut Unobserved).expect("solved").expect("a point");
        let after = found.after.expect("a point");
        prop_assert!(after <= found.before + 1e-6);
        for columns in completions(&problem) {
            let values: Vec<bool> = (0..n * n).map(|k| columns[k / n] == k % n).collect();
            prop_assert!(found.rows.iter().all(|row: &Row| row.holds(&values)));
            prop_assert!(after >= weight(&weights[..n * n], &columns) as f64 - 1e-6);
        }
    }
}

#[test]
fn both_families_of_cuts_are_found_and_tighten_a_bound() {
    let n = 8;
    let problem = Problem::empty(Piece::Queen, n);
    let mut random = fastrand::Rng::with_seed(5);
    let (mut cliques, mut odd_cycles, mut tightened) = (0, 0, 0);
    for _ in 0..10 {
        let weights: Vec<i64> = (0..n * n).map(|_| random.i64(0..100)).collect();
        let mut model = Formulation::Diagonals.model(&problem, Lines::AtMostOne);
        model.set_objective(nqueens_solver::ilp::model::Direction::Maximise, |k| weights[k]);
        let families = Families { cliques: true, odd_cycles: true, ..Families::default() };
        let found = separate(&model, n, families, &MicroLp, &mut Unobserved)
            .expect("solved")
            .expect("a point");
        cliques += found.counts.cliques;
        odd_cycles += found.counts.odd_cycles;
        tightened += u32::from(found.after < Some(found.before - 1e-3));
    }
    assert!(cliques > 0 && odd_cycles > 0 && tightened > 0, "{cliques}, {odd_cycles}, {tightened}");
}
