use std::ops::RangeInclusive;

use nqueens_proof::board::{Piece, Placement, Problem, Square};

use super::*;

/// Returns a board with up to three placed and up to n blocked squares; some have queens that
/// attack each other.
pub(crate) fn random_board(random: &mut fastrand::Rng, sizes: RangeInclusive<usize>) -> Problem {
    let n = random.usize(sizes);
    let mut square = || Square::new(random.usize(..n), random.usize(..n));
    let mut squares: Vec<Square> = (0..n + 3).map(|_| square()).collect();
    squares.sort_unstable();
    squares.dedup();
    random.shuffle(&mut squares);
    squares.truncate(random.usize(..=squares.len()));
    let placed = squares.split_off(squares.len().saturating_sub(random.usize(..=3)));
    Problem::new(Piece::Queen, n, placed, squares).expect("different squares on the board")
}

/// Counts by the plain definition: every way to choose a column in each row is checked.
fn naive(problem: &Problem) -> (u64, Vec<u64>) {
    let n = problem.n();
    let (mut completions, mut squares) = (0, vec![0; n * n]);
    for code in 0..n.pow(n as u32) {
        let columns: Vec<usize> = (0..n).map(|row| code / n.pow(row as u32) % n).collect();
        if Placement::check_solution(problem, &columns).is_ok() {
            completions += 1;
            for (row, col) in columns.into_iter().enumerate() {
                squares[row * n + col] += 1;
            }
        }
    }
    (completions, squares)
}

#[test]
fn counts_on_random_boards_equal_those_of_the_plain_definition() {
    let mut random = fastrand::Rng::with_seed(1850);
    for _ in 0..200 {
        let problem = random_board(&mut random, 1..=6);
        let counted = count::count(&problem, count::usual_nodes());
        assert!(counted.is_complete);
        assert_eq!((counted.completions, counted.squares), naive(&problem), "{problem:?}");
    }
}

#[test]
fn counts_on_the_empty_board_equal_a000170() {
    let published = [1, 0, 0, 2, 10, 4, 40, 92, 352, 724, 2680];
    for (n, completions) in (1..).zip(published) {
        let counted = count::count(&Problem::empty(Piece::Queen, n), count::usual_nodes());
        assert_eq!(counted.completions, completions, "n = {n}");
    }
}

#[test]
fn a_count_that_reaches_its_limit_is_a_lower_bound() {
    let problem = Problem::empty(Piece::Queen, 32);
    let counted = count::count(&problem, 10_000);
    assert!(!counted.is_complete);
    let counted = count::count(&Problem::empty(Piece::Queen, 8), 1000);
    assert!(!counted.is_complete && (1..92).contains(&counted.completions));
}

#[test]
fn a_completion_is_found_exactly_if_there_is_one() {
    let mut random = fastrand::Rng::with_seed(1874);
    for _ in 0..200 {
        let problem = random_board(&mut random, 4..=9);
        let found = count::one_completion(&problem).expect("checked");
        let completions = count::count(&problem, count::usual_nodes()).completions;
        assert_eq!(found["columns"].is_array(), completions > 0, "{problem:?}");
        assert_eq!(found["complete"], true);
    }
}

#[test]
fn the_linear_relaxation_bounds_every_completion() {
    let mut random = fastrand::Rng::with_seed(1972);
    for _ in 0..200 {
        let problem = random_board(&mut random, 4..=8);
        let found = relaxation::answer(&problem).expect("solved");
        let n = problem.n();
        assert_eq!(found["total"].is_null(), problem.conflict().is_some(), "{problem:?}");
        let Some(total) = found["total"].as_f64() else { continue };
        assert!(total < n as f64 + 1e-3);
        if count::count(&problem, count::usual_nodes()).completions > 0 {
            assert!(total > n as f64 - 1e-3, "{problem:?}: {total}");
        }
        let values: Vec<f64> =
            found["values"].as_array().expect("a list").iter().filter_map(Value::as_f64).collect();
        assert_eq!(values.len(), n * n);
        let at = |square: &Square| values[square.row * n + square.col];
        assert!(problem.placed().iter().all(|square| at(square) > 0.999));
        assert!(problem.blocked().iter().all(|square| at(square) < 0.001));
    }
}

#[test]
fn invalid_requests_are_answered_with_one_line() {
    for (request, expected) in [
        ("", "cannot be read"),
        ("{}", "missing field `ask`"),
        (r#"{"ask": "what"}"#, "unknown variant"),
        (r#"{"ask": "count", "n": 0}"#, "at least 1"),
        (r#"{"ask": "count", "n": 33}"#, "goes up to n = 32"),
        (r#"{"ask": "count", "n": 8, "placed": [[0, 1]]}"#, "off the board"),
        (r#"{"ask": "count", "n": 8, "placed": [[1, 9]]}"#, "off the board"),
        (
            r#"{"ask": "count", "n": 8, "placed": [[1, 1]], "blocked": [[1, 1]]}"#,
            "both placed and blocked",
        ),
        (r#"{"ask": "trace", "n": 13, "method": "relaxation"}"#, "goes up to n = 12"),
        (r#"{"ask": "record", "kind": "first", "n": 101}"#, "goes up to n = 100"),
        (r#"{"ask": "classes", "n": 11}"#, "goes up to n = 10"),
    ] {
        let found: Value = serde_json::from_str(&answer(request)).expect("JSON");
        let error = found["error"].as_str().expect("an error");
        assert!(error.contains(expected) && !error.contains('\n'), "{request}: {error}");
    }
}
