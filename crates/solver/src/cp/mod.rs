//! Constraint programming: p(i) is the column of the queen on row i. The values p(i) are all
//! different, and so are p(i) + i and p(i) − i.
//!
//! Both searches go depth first, with propagation to a fixed point after each decision:
//! - a decided row removes its column and its two diagonals from the domains of all other rows;
//! - p is a permutation, so a column that remains in a single domain decides that row, and a column
//!   in no domain is a failure.
//!
//! [`Search`] branches on rows, in lexicographic order or by the smallest domain. [`find_one`] and
//! [`count`] branch on rows and columns, where the board has few enough allowed squares.
//!
//! Placed pieces take no time: only the rows and columns without one are searched.
//!
//! All arithmetic is in integers and only impossible values are pruned, so the results are proofs.
//!
//! (pumpkin-solver 0.5 was evaluated and rejected: through enum-map 3.1 it needs Rust 1.95, its
//! build script runs git and a C++ compiler, and with its clause learning the first solution for
//! n = 24 took 7.5 s.)

mod by_rows;
mod dual;

pub use by_rows::{Branching, Search};

use std::ops::ControlFlow;

use crate::open_board::{self, OpenBoard};
use crate::progress::ProgressSink;
use dual::{DualSearch, MOST_SQUARES};
use nqueens_proof::board::Problem;

/// The result of one search step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A solution: the 0-based column of each row.
    Solution(Vec<usize>),
    /// There are no more solutions.
    Exhausted,
    /// The progress sink stopped the search. The search can be resumed.
    Stopped,
}

/// The largest number of open rows, those without a placed piece: the domains take up to n² bits,
/// and a search makes at least n steps of n² operations.
pub const MOST_OPEN_ROWS: usize = 1000;

/// Returns the number of open rows, those without a placed piece.
pub fn open_rows(problem: &Problem) -> usize {
    open_board::open_rows(problem)
}

/// Returns whether the board has at most [`MOST_OPEN_ROWS`] open rows.
pub fn suits(problem: &Problem) -> bool {
    open_rows(problem) <= MOST_OPEN_ROWS
}

/// Number of decisions before the first restart of [`find_one`], some seconds: a restart loses what
/// was refuted. A prototype decided 50 boards of CSPLib's prob080 with n = 50 and 56 in 34 s
/// without restarts, and in 60 s if it restarted after 10,000 decisions, then 15,000 and so on.
const FIRST_RESTART: u64 = 1 << 22;

/// Finds one solution of `problem`, for queens or rooks, or proves that there is none. Returns the
/// result and the number of nodes searched. With at most [`MOST_OPEN_ROWS`] open rows the memory is
/// less than 200 MiB.
///
/// The run times of such a search are heavy-tailed, so it is restarted with other random choices
/// after a node limit that doubles each time. Eventually the limit suffices for an exhaustive
/// search.
pub fn find_one(problem: &Problem, sink: &mut dyn ProgressSink) -> (Event, u64) {
    if problem.conflict().is_some() {
        return (Event::Exhausted, 0);
    }
    let board = OpenBoard::of(problem);
    if board.squares() > MOST_SQUARES {
        return find_one_by_rows(problem, sink);
    }
    let mut search = DualSearch::new(&board, problem.piece());
    let mut found = None;
    for seed in 0.. {
        let most = FIRST_RESTART.saturating_mul(1 << seed.min(50));
        let before = search.nodes();
        let random = Some(fastrand::Rng::with_seed(seed));
        let end = search.run(random, most, sink, &mut |columns| {
            found = Some(board.completed(problem, columns.iter().copied()));
            ControlFlow::Break(())
        });
        let event = match (found.take(), end) {
            (Some(solution), _) => Event::Solution(solution),
            (None, End::Exhausted) => Event::Exhausted,
            (None, End::Stopped) if search.nodes() - before >= most => continue,
            (None, End::Stopped) => Event::Stopped,
        };
        return (event, search.nodes());
    }
    unreachable!("2^64 restarts never finish")
}

/// As [`find_one`], for boards with very many allowed squares.
fn find_one_by_rows(problem: &Problem, sink: &mut dyn ProgressSink) -> (Event, u64) {
    let mut nodes = 0;
    for seed in 0.. {
        let mut search = Search::new(problem, Branching::SmallestDomain { seed });
        let most = 1000u64.saturating_mul(1 << seed.min(50));
        search.stop_after(most);
        let event = search.next(sink);
        nodes += search.nodes();
        if event != Event::Stopped || search.nodes() < most {
            return (event, nodes);
        }
    }
    unreachable!("2^64 restarts never finish")
}

/// The result of [`count`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Count {
    /// The number of solutions, if all were found.
    pub solutions: Option<u64>,
    /// The number of nodes searched.
    pub nodes: u64,
}

/// Counts the solutions of `problem`, for queens or rooks, by passing each of them to `check`: the
/// 0-based column of the piece in each row. Gives up after `most` nodes, if `check` or the progress
/// sink breaks, or at once if more than 16,384 squares are allowed.
///
/// This is faster than any kernel where few squares are allowed, and far slower where there are
/// many solutions.
pub fn count(
    problem: &Problem,
    most: u64,
    sink: &mut dyn ProgressSink,
    check: &mut dyn FnMut(&[usize]) -> ControlFlow<()>,
) -> Count {
    if problem.conflict().is_some() {
        return Count { solutions: Some(0), nodes: 0 };
    }
    let board = OpenBoard::of(problem);
    if board.squares() > MOST_SQUARES {
        return Count { solutions: None, nodes: 0 };
    }
    let mut search = DualSearch::new(&board, problem.piece());
    let mut found = 0;
    let end = search.run(None, most, sink, &mut |columns| {
        found += 1;
        check(&board.completed(problem, columns.iter().copied()))
    });
    Count { solutions: (end == End::Exhausted).then_some(found), nodes: search.nodes() }
}

/// The reason why a search ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// All solutions were found.
    Exhausted,
    /// A limit was reached, or a sink broke.
    Stopped,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::classical::{Method, first_answer};
    use crate::progress::Unobserved;
    use crate::test_support::{StopAfter, completions, random_problem};
    use nqueens_proof::board::{Piece, Square, is_solution};

    fn all(problem: &Problem, branching: Branching) -> Vec<Vec<usize>> {
        let mut search = Search::new(problem, branching);
        let mut found = Vec::new();
        while let Event::Solution(solution) = search.next(&mut Unobserved) {
            found.push(solution);
        }
        assert_eq!(search.next(&mut Unobserved), Event::Exhausted);
        found
    }

    #[test]
    fn all_solutions_are_found_once_and_in_order() {
        for n in 0..=6 {
            for piece in [Piece::Queen, Piece::Rook] {
                let problem = Problem::empty(piece, n);
                let expected = completions(&problem);
                assert_eq!(all(&problem, Branching::FirstRow), expected, "{piece}, n = {n}");
                let mut other = all(&problem, Branching::SmallestDomain { seed: 3 });
                other.sort();
                assert_eq!(other, expected, "{piece}, n = {n}");
            }
        }
        assert_eq!(all(&Problem::empty(Piece::Queen, 10), Branching::FirstRow).len(), 724);
    }

    #[test]
    fn decided_squares_are_kept() {
        let mut random = fastrand::Rng::with_seed(7);
        for _ in 0..200 {
            let n = random.usize(4..=6);
            let problem = random_problem(&mut random, Piece::Queen, n, (2, 5));
            assert_eq!(all(&problem, Branching::FirstRow), completions(&problem), "{problem:?}");
        }
    }

    #[test]
    fn counts_and_decisions_agree_with_the_plain_definition() {
        let mut random = fastrand::Rng::with_seed(11);
        for round in 0..300 {
            let n = 1 + round % 7;
            let piece = if random.bool() { Piece::Queen } else { Piece::Rook };
            let problem = random_problem(&mut random, piece, n, (2, 2 * n - 1));
            let mut expected = completions(&problem);
            let mut found = Vec::new();
            let counted = count(&problem, u64::MAX, &mut Unobserved, &mut |columns| {
                found.push(columns.to_vec());
                ControlFlow::Continue(())
            });
            found.sort();
            expected.sort();
            assert_eq!(found, expected, "{problem:?}");
            assert_eq!(counted.solutions, Some(expected.len() as u64), "{problem:?}");
            assert_eq!(all(&problem, Branching::FirstRow), expected, "{problem:?}");
            match find_one(&problem, &mut Unobserved).0 {
                Event::Solution(solution) => assert!(expected.contains(&solution)),
                event => assert_eq!((event, expected.len()), (Event::Exhausted, 0)),
            }
        }
    }

    #[test]
    fn a_count_gives_up_after_its_nodes_or_if_it_is_told_to() {
        let problem = Problem::empty(Piece::Queen, 10);
        let limited = count(&problem, 50, &mut Unobserved, &mut |_| ControlFlow::Continue(()));
        assert_eq!(limited, Count { solutions: None, nodes: 50 });
        let refused = count(&problem, u64::MAX, &mut Unobserved, &mut |_| ControlFlow::Break(()));
        assert_eq!(refused.solutions, None);
        let counted =
            count(&problem, u64::MAX, &mut Unobserved, &mut |_| ControlFlow::Continue(()));
        assert_eq!(counted.solutions, Some(724));
    }

    #[test]
    fn lines_of_more_than_64_squares_are_searched() {
        for n in [65, 70] {
            let problem = Problem::empty(Piece::Queen, n);
            match find_one(&problem, &mut Unobserved).0 {
                Event::Solution(solution) => assert!(is_solution(Piece::Queen, &solution)),
                other => panic!("n = {n}: {other:?}"),
            }
        }
    }

    #[test]
    fn the_work_depends_on_the_open_rows_not_on_n() {
        // A solution for n = 4,000 of which 18 queens are taken away.
        let whole = first_answer(Method::Formula, &Problem::empty(Piece::Queen, 4000));
        let whole = whole.expect("a solution");
        let placed = whole.iter().enumerate().filter(|(row, _)| row % 230 != 7);
        let placed = placed.map(|(row, &col)| Square::new(row, col)).collect();
        let problem = Problem::new(Piece::Queen, 4000, placed, vec![]).expect("on the board");
        assert!(suits(&problem) && open_rows(&problem) == 18);
        match find_one(&problem, &mut Unobserved) {
            (Event::Solution(solution), nodes) => {
                assert!(crate::ilp::completes(&problem, &solution));
                assert!(nodes < 1000, "{nodes}");
            }
            other => panic!("{other:?}"),
        }
        let mut search = Search::new(&problem, Branching::FirstRow);
        let Event::Solution(first) = search.next(&mut Unobserved) else {
            panic!("there is a solution")
        };
        assert!(crate::ilp::completes(&problem, &first));
        assert_eq!(first_answer(Method::Backtracking, &problem), Some(first));
    }

    #[test]
    fn boards_wider_than_a_word_are_solved() {
        for n in [63, 64, 65, 130] {
            match find_one(&Problem::empty(Piece::Queen, n), &mut Unobserved).0 {
                Event::Solution(solution) => assert!(is_solution(Piece::Queen, &solution)),
                other => panic!("n = {n}: {other:?}"),
            }
        }
    }

    #[test]
    fn one_solution_is_found_exactly_if_there_is_one() {
        for n in 0..=8 {
            let problem = Problem::empty(Piece::Queen, n);
            match find_one(&problem, &mut Unobserved).0 {
                Event::Solution(solution) => assert!(is_solution(Piece::Queen, &solution)),
                event => assert_eq!((event, n == 2 || n == 3), (Event::Exhausted, true), "n = {n}"),
            }
        }
    }

    #[test]
    fn a_stopped_search_can_be_continued() {
        let problem = Problem::empty(Piece::Queen, 7);
        let mut search = Search::new(&problem, Branching::FirstRow);
        assert_eq!(search.next(&mut StopAfter(1)), Event::Stopped);
        let mut found = 0;
        while let Event::Solution(_) = search.next(&mut Unobserved) {
            found += 1;
        }
        assert_eq!(found, 40);
    }
}
