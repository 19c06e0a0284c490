use nqueens_proof::board::{Piece, Square};
use nqueens_solver::Unobserved;
use nqueens_solver::classical;
use nqueens_solver::cp;

use super::*;
use crate::classes::All;
use crate::tests::random_board;

fn boards() -> impl Iterator<Item = Problem> {
    let mut random = fastrand::Rng::with_seed(7);
    let empty = (1..=7).map(|n| Problem::empty(Piece::Queen, n));
    empty.chain(std::iter::repeat_with(move || random_board(&mut random, 4..=7)).take(100))
}

#[test]
fn the_steps_have_the_nodes_and_the_solutions_of_the_solvers() {
    for problem in boards() {
        for (shown, method) in [
            (Method::Backtracking, classical::Method::Backtracking),
            (Method::Columns, classical::Method::Columns),
        ] {
            let mut sink = All::default();
            let outcome = method.run(&problem, &mut sink).expect("the method suits queens");
            let (trace, is_complete) = run(&problem, shown).expect("a small board");
            assert!(is_complete);
            assert_eq!(trace.nodes, outcome.tried, "{method}: {problem:?}");
            assert_eq!(trace.solutions, sink.0, "{method}: {problem:?}");
        }
        let mut search = cp::Search::new(&problem, cp::Branching::FirstRow);
        let mut solutions = Vec::new();
        while let cp::Event::Solution(columns) = search.next(&mut Unobserved) {
            solutions.push(columns);
        }
        let (trace, _) = run(&problem, Method::Propagation).expect("a small board");
        assert_eq!(trace.solutions, solutions, "{problem:?}");
        if problem.conflict().is_none() {
            assert_eq!(trace.nodes, search.nodes(), "{problem:?}");
        }
    }
}

#[test]
fn branch_and_bound_finds_a_solution_exactly_if_there_is_one() {
    for problem in boards() {
        let mut sink = All::default();
        classical::Method::Backtracking.run(&problem, &mut sink).expect("it suits queens");
        let (trace, is_complete) = run(&problem, Method::Relaxation).expect("a small board");
        assert!(is_complete);
        assert_eq!(trace.solutions.len(), usize::from(!sink.0.is_empty()), "{problem:?}");
        assert!(trace.solutions.iter().all(|found| sink.0.contains(found)));
    }
}

#[test]
fn every_step_shows_queens_that_do_not_attack_each_other() {
    for method in Method::ALL {
        let problem = Problem::empty(Piece::Queen, 6);
        let (trace, _) = run(&problem, method).expect("a small board");
        for step in &trace.steps {
            let columns: Vec<Option<usize>> =
                step.queens.iter().map(|col| col.checked_sub(1)).collect();
            // After a failed propagation two queens may attack each other: that is the failure.
            if step.kind != Kind::Fail && method != Method::Propagation {
                assert!(Placement::check(&problem, &columns).is_ok(), "{method:?}: {step:?}");
            }
            assert!(step.text.ends_with('.'), "{}", step.text);
        }
    }
}

#[test]
fn a_long_run_is_cut_and_says_so() {
    let found = answer(&Problem::empty(Piece::Queen, 12), Method::Backtracking).expect("a trace");
    assert_eq!(found["complete"], false);
    assert_eq!(found["steps"].as_array().map(Vec::len), Some(MOST_STEPS));
    let one = |n| answer(&Problem::empty(Piece::Queen, n), Method::Columns);
    assert!(one(9).is_ok() && one(10).is_err());
}

#[test]
fn queens_that_attack_each_other_end_every_method_at_once() {
    let placed = vec![Square::new(0, 0), Square::new(1, 1)];
    let problem = Problem::new(Piece::Queen, 5, placed, vec![]).expect("squares on the board");
    for method in Method::ALL {
        let found = answer(&problem, method).expect("a trace");
        assert_eq!(found["steps"].as_array().map(Vec::len), Some(1));
        assert_eq!(found["solutions"], 0);
    }
}
