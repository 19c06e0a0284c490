//! Every classical method agrees with the plain definition: the complete methods give all
//! solutions, each once and in the promised order; the others give valid solutions.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use nqueens::board::{Piece, Placement, Problem, Square, is_solution};
use nqueens::oeis::{Sequence, lookup};
use nqueens::solver::classical::{AnswerSink, Ending, Method, Outcome, Unsuitable};
use nqueens::symmetry::{Group, Symmetry};
use proptest::prelude::*;

const COMPLETE: [Method; 3] = [Method::Backtracking, Method::Columns, Method::BruteForce];

/// Collects answers until it has `enough`, and stops a search after `reports` progress reports.
struct Collector {
    answers: Vec<Vec<usize>>,
    enough: usize,
    reports: usize,
}

impl Collector {
    fn new(enough: usize, reports: usize) -> Self {
        Self { answers: Vec::new(), enough, reports }
    }
}

impl AnswerSink for Collector {
    fn answer(&mut self, columns: &[usize]) -> ControlFlow<()> {
        self.answers.push(columns.to_owned());
        if self.answers.len() == self.enough {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    }

    fn report(&mut self, _: u64) -> ControlFlow<()> {
        match self.reports.checked_sub(1) {
            Some(reports) => self.reports = reports,
            None => return ControlFlow::Break(()),
        }
        ControlFlow::Continue(())
    }
}

fn run(method: Method, problem: &Problem) -> (Vec<Vec<usize>>, Outcome) {
    let mut collector = Collector::new(usize::MAX, usize::MAX);
    let outcome = method.run(problem, &mut collector).expect("a problem for this method");
    (collector.answers, outcome)
}

/// Returns all completions by the plain definition, in lexicographic order.
fn oracle(problem: &Problem) -> Vec<Vec<usize>> {
    fn fill(problem: &Problem, above: &mut Vec<Square>, all: &mut Vec<Vec<usize>>) {
        let (n, row) = (problem.n(), above.len());
        if row == n {
            if problem.placed().iter().all(|placed| above.contains(placed)) {
                all.push(above.iter().map(|square| square.col).collect());
            }
            return;
        }
        for square in (0..n).map(|col| Square::new(row, col)) {
            let attacked = above.iter().any(|&other| problem.piece().attacks(n, other, square));
            if !attacked && !problem.blocked().contains(&square) {
                above.push(square);
                fill(problem, above, all);
                above.pop();
            }
        }
    }
    let mut all = Vec::new();
    fill(problem, &mut Vec::new(), &mut all);
    all
}

/// Exchanges rows and columns.
fn transposed(columns: &[usize]) -> Vec<usize> {
    Symmetry::Transpose.apply_to_columns(columns)
}

/// Asserts that a complete method gives the answers of the oracle, in the method's own order.
fn assert_complete(method: Method, problem: &Problem, expected: &[Vec<usize>]) {
    let (answers, outcome) = run(method, problem);
    assert_eq!((outcome.ending, outcome.best), (Ending::Exhausted, None), "{method}: {problem:?}");
    let mut expected = expected.to_vec();
    if method == Method::Columns {
        expected.sort_by_key(|columns| transposed(columns));
    }
    assert_eq!(answers, expected, "{method}: {problem:?}");
}

#[test]
fn all_solutions_of_small_boards_are_listed_once_and_in_order() {
    for (piece, sequence) in [
        (Piece::Queen, Sequence::Total),
        (Piece::Rook, Sequence::Rooks),
        (Piece::Superqueen, Sequence::Superqueens),
        (Piece::Toroidal, Sequence::Toroidal),
    ] {
        for n in 0..=8 {
            let problem = Problem::empty(piece, n);
            let expected = oracle(&problem);
            let published = lookup(sequence, n);
            assert!(
                published.is_none_or(|count| count == expected.len() as u128),
                "{piece}, n = {n}"
            );
            assert!(expected.is_sorted());
            for method in COMPLETE {
                assert_complete(method, &problem, &expected);
            }
        }
    }
}

#[test]
fn brute_force_tries_every_configuration() {
    for n in 0..=7u32 {
        let (_, outcome) = run(Method::BruteForce, &Problem::empty(Piece::Queen, n as usize));
        assert_eq!(outcome.tried, u64::from(n).pow(n));
    }
}

#[test]
fn backtracking_and_columns_try_every_safe_placement() {
    // With the empty board 2057 for n = 8: D. E. Knuth, The Art of Computer Programming 4B, section
    // 7.2.2.
    let nodes = |n| run(Method::Backtracking, &Problem::empty(Piece::Queen, n)).1.tried;
    assert_eq!((1..=8).map(nodes).collect::<Vec<_>>(), [1, 2, 5, 16, 53, 152, 551, 2056]);
    for n in 0..=8 {
        let columns = run(Method::Columns, &Problem::empty(Piece::Queen, n)).1.tried;
        assert_eq!(columns, nodes(n), "the board is symmetric, n = {n}");
    }
}

#[test]
fn the_first_answer_by_backtracking_is_the_lexicographically_first_solution() {
    // n = 20 and 24 need thousands and hundreds of thousands of backtracking steps.
    for (n, first) in [
        (8, "1 5 8 6 3 7 2 4"),
        (20, "1 3 5 2 4 13 15 12 18 20 17 9 16 19 8 10 7 14 6 11"),
        (24, "1 3 5 2 4 9 11 14 18 22 19 23 20 24 10 21 6 8 12 16 13 7 17 15"),
    ] {
        let mut collector = Collector::new(1, usize::MAX);
        let outcome = Method::Backtracking.run(&Problem::empty(Piece::Queen, n), &mut collector);
        assert_eq!(outcome.map(|o| o.ending), Ok(Ending::Stopped));
        let found: Vec<String> =
            collector.answers[0].iter().map(|col| (col + 1).to_string()).collect();
        assert_eq!(found.join(" "), first);
    }
}

/// On boards of every mask width: a known solution without some of its rows. Its completions are
/// found by trying every permutation of the columns that these rows leave.
#[test]
fn wide_boards_are_completed_correctly() {
    fn permutations(columns: &[usize]) -> Vec<Vec<usize>> {
        let Some(&first) = columns.first() else { return vec![Vec::new()] };
        let shorter = permutations(&columns[1..]);
        let with_first = |rest: &Vec<usize>, at: usize| {
            let mut longer = rest.clone();
            longer.insert(at, first);
            longer
        };
        shorter
            .iter()
            .flat_map(|rest| (0..=rest.len()).map(move |at| with_first(rest, at)))
            .collect()
    }
    // 3 row mod n attacks nothing, for any of the pieces, if n has no factor 2 or 3.
    for n in [61, 65, 121, 127, 131, 253, 259, 1001, 1021] {
        let solution: Vec<usize> = (0..n).map(|row| 3 * row % n).collect();
        for piece in Piece::ALL {
            let open = [0, n / 3, n / 2, n - 2, n - 1];
            let kept: Vec<usize> = (0..n).filter(|row| !open.contains(row)).collect();
            let placed = kept.iter().map(|&row| Square::new(row, solution[row])).collect();
            let problem = Problem::new(piece, n, placed, Vec::new()).expect("squares on the board");
            let left: Vec<usize> = open.iter().map(|&row| solution[row]).collect();
            let mut expected = Vec::new();
            for columns in permutations(&left) {
                let mut completion = solution.clone();
                for (&row, col) in open.iter().zip(columns) {
                    completion[row] = col;
                }
                if Placement::check_solution(&problem, &completion).is_ok() {
                    expected.push(completion);
                }
            }
            expected.sort();
            assert!(
                expected.contains(&solution) && (piece != Piece::Rook || expected.len() == 120)
            );
            assert_complete(Method::Backtracking, &problem, &expected);
            if n < 256 {
                assert_complete(Method::Columns, &problem, &expected);
            }
        }
    }
}

#[test]
fn the_formula_gives_one_solution_or_proves_that_there_is_none() {
    for n in 0..=100 {
        let (answers, outcome) = run(Method::Formula, &Problem::empty(Piece::Queen, n));
        assert_eq!(answers.is_empty(), n == 2 || n == 3, "n = {n}");
        assert!(
            answers.iter().all(|columns| columns.len() == n && is_solution(Piece::Queen, columns))
        );
        let sure = if n <= 3 { Ending::Exhausted } else { Ending::GaveUp };
        assert_eq!(outcome.ending, sure, "n = {n}");
    }
}

#[test]
fn local_search_solves_boards_of_all_sizes_and_is_deterministic() {
    for n in (0..=60).chain([100, 257, 1000, 100_000]) {
        let problem = Problem::empty(Piece::Queen, n);
        let (answers, outcome) = run(Method::LocalSearch { seed: 7, moves: 1_000_000 }, &problem);
        if n == 2 || n == 3 {
            let queens = outcome.best.map(|best| best.iter().flatten().count());
            assert_eq!(
                (answers.len(), outcome.ending, outcome.tried),
                (0, Ending::GaveUp, 1_000_000)
            );
            assert_eq!(queens, Some(n - 1));
            continue;
        }
        assert_eq!((answers.len(), outcome.ending), (1, Ending::GaveUp), "n = {n}");
        assert!(Placement::check_solution(&problem, &answers[0]).is_ok(), "n = {n}");
        if n <= 257 {
            let again = run(Method::LocalSearch { seed: 7, moves: 1_000_000 }, &problem);
            assert_eq!(again, (answers, outcome), "n = {n}");
        }
    }
    let solution =
        |seed| run(Method::LocalSearch { seed, moves: 1_000 }, &Problem::empty(Piece::Queen, 50)).0;
    assert_ne!(solution(1), solution(2));
}

#[test]
fn local_search_gives_up_exactly_after_its_moves() {
    for moves in [0, 1, 99, 100_000] {
        let outcome =
            run(Method::LocalSearch { seed: 1, moves }, &Problem::empty(Piece::Queen, 3)).1;
        assert_eq!((outcome.ending, outcome.tried), (Ending::GaveUp, moves));
        assert!(outcome.best.is_some());
    }
}

#[test]
fn every_method_ends_when_it_is_stopped() {
    for method in COMPLETE {
        for enough in [1, 5] {
            let mut collector = Collector::new(enough, usize::MAX);
            let outcome = method.run(&Problem::empty(Piece::Queen, 8), &mut collector);
            assert_eq!(outcome.map(|o| o.ending), Ok(Ending::Stopped), "{method}");
            assert_eq!(
                collector.answers,
                run(method, &Problem::empty(Piece::Queen, 8)).0[..enough],
                "{method}"
            );
        }
        // At the first report, long before the end.
        let mut collector = Collector::new(usize::MAX, 0);
        let outcome = method
            .run(&Problem::empty(Piece::Toroidal, 15), &mut collector)
            .expect("a small board");
        assert_eq!(outcome.ending, Ending::Stopped, "{method}");
        assert!(outcome.tried < 100_000, "{method}: {}", outcome.tried);
    }
    let endless = Method::LocalSearch { seed: 1, moves: u64::MAX };
    let outcome =
        endless.run(&Problem::empty(Piece::Queen, 3), &mut Collector::new(1, 3)).expect("queens");
    assert_eq!(outcome.ending, Ending::Stopped);
    assert_eq!(outcome.best.map(|best| best.iter().flatten().count()), Some(2));
}

#[test]
fn methods_refuse_unsupported_problems() {
    let queens = |n| Problem::empty(Piece::Queen, n);
    let rooks = Problem::empty(Piece::Rook, 8);
    let superqueens = Problem::empty(Piece::Superqueen, 12);
    let placed =
        Problem::new(Piece::Queen, 8, vec![Square::new(0, 0)], vec![]).expect("on the board");
    let local = Method::LocalSearch { seed: 1, moves: 1 };
    for (method, problem, refusal) in [
        (Method::Formula, &placed, Unsuitable::DecidedSquares),
        (Method::Formula, &superqueens, Unsuitable::NoFormula(Piece::Superqueen)),
        (local, &rooks, Unsuitable::QueensOnly("local-search", Piece::Rook)),
        (Method::BruteForce, &queens(16), Unsuitable::TooLarge { method: "brute-force", most: 15 }),
        (Method::Columns, &queens(257), Unsuitable::TooLarge { method: "columns", most: 256 }),
        (
            Method::Backtracking,
            &queens(1025),
            Unsuitable::TooManyOpenRows { method: "backtracking", most: 1024 },
        ),
    ] {
        let mut collector = Collector::new(1, 0);
        assert_eq!(method.run(problem, &mut collector), Err(refusal), "{method}");
        assert!(collector.answers.is_empty());
    }
}

fn problems(largest: usize) -> impl Strategy<Value = Problem> {
    let square = |n: usize| (0..n, 0..n).prop_map(|(row, col)| Square::new(row, col));
    (0..Piece::ALL.len(), 1..=largest).prop_flat_map(move |(piece, n)| {
        let piece = Piece::ALL[piece];
        let squares = |most| proptest::collection::vec(square(n), 0..=most);
        (squares(3), squares(2 * n))
            .prop_filter_map("a square is placed or blocked, not both", move |(placed, blocked)| {
                Problem::new(piece, n, placed, blocked).ok()
            })
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, ..ProptestConfig::default() })]

    #[test]
    fn all_completions_of_boards_with_decided_squares_are_listed_once_and_in_order(problem in problems(8)) {
        let expected = oracle(&problem);
        for method in COMPLETE {
            if method != Method::BruteForce || problem.n() <= 6 {
                assert_complete(method, &problem, &expected);
            }
        }
    }

    #[test]
    fn exactly_one_solution_of_each_orbit_is_fundamental(problem in problems(7)) {
        let all = oracle(&problem);
        let group = Group::of(&problem);
        let orbit = |columns: &Vec<usize>| -> BTreeSet<Vec<usize>> {
            group.elements().map(|symmetry| symmetry.apply_to_columns(columns)).collect()
        };
        let orbits: BTreeSet<BTreeSet<Vec<usize>>> = all.iter().map(orbit).collect();
        let least: Vec<Vec<usize>> = all.into_iter().filter(|columns| group.is_least(columns)).collect();
        let expected: BTreeSet<Vec<usize>> = orbits.iter().filter_map(|orbit| orbit.first().cloned()).collect();
        prop_assert_eq!(least.len(), orbits.len());
        prop_assert_eq!(least.into_iter().collect::<BTreeSet<_>>(), expected);
    }

    #[test]
    fn local_search_never_gives_a_wrong_answer(problem in problems(9), seed: u64) {
        let problem = Problem::new(
            Piece::Queen, problem.n(), problem.placed().to_vec(), problem.blocked().to_vec(),
        ).expect("squares on the board");
        let (answers, outcome) = run(Method::LocalSearch { seed, moves: 2_000 }, &problem);
        prop_assert!(answers.iter().all(|columns| Placement::check_solution(&problem, columns).is_ok()));
        if outcome.ending == Ending::Exhausted {
            prop_assert_eq!(oracle(&problem).len(), 0);
        }
        if let Some(best) = outcome.best {
            prop_assert!(Placement::check(&problem, &best).is_ok());
        }
    }
}
