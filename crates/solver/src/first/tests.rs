//! Tests of the modules against the plain definition, on random partial boards.

use std::sync::Arc;

use fastrand::Rng;

use super::board::{Board, is_free};
use super::components::Components;
use super::concurrent_queries::PrefixQuery;
use super::control::{Control, Task};
use super::dual_bound::DualBound;
use super::knapsack::Knapsack;
use super::pricing::Pricing;
use super::probing::{Eliminations, Probing};
use super::query::{LocalSolver, QueryOutcome, QuerySolver, query_solvers};
use super::relaxation::{Assignment, Master};
use super::residual::{Branch, Residual, State};
use super::weights::Weights;
use super::width::{Width, Width32x64, Width64x64, Width64x128, Width128x128};
use super::*;
use crate::bitset::BitSet;
use crate::progress::Unobserved;
use crate::test_support::{self, random_problem};
use nqueens_proof::ProofError;
use nqueens_proof::board::{Piece, Square, first_attack, is_solution};
use nqueens_proof::first::{Multipliers, Refutation, certificate, check_refutation};

/// Returns every completion of a prefix, row by row.
pub(super) fn completions(n: usize, prefix: &[usize]) -> Vec<Vec<usize>> {
    let mut found = vec![prefix.to_vec()];
    for _ in prefix.len()..n {
        let longer = |above: &Vec<usize>| {
            let free: Vec<usize> = (0..n).filter(|&column| is_free(above, column)).collect();
            free.into_iter().map(|column| [&above[..], &[column]].concat()).collect::<Vec<_>>()
        };
        found = found.iter().flat_map(longer).collect();
    }
    found
}

pub(super) fn squares(prefix: &[usize]) -> Vec<Square> {
    prefix.iter().enumerate().map(|(row, &column)| Square::new(row, column)).collect()
}

fn random_prefix(n: usize, random: &mut Rng) -> Vec<usize> {
    let mut prefix = Vec::new();
    for _ in 0..random.usize(0..=n) {
        let free: Vec<usize> = (0..n).filter(|&column| is_free(&prefix, column)).collect();
        let Some(&column) = random.choice(&free) else { break };
        prefix.push(column);
    }
    prefix
}

fn random_multipliers(n: usize, random: &mut Rng) -> Multipliers {
    let size = *random.choice(&[1, 10, 1 << 20]).expect("one of three");
    let mut values =
        |from: i64, number: usize| (0..number).map(|_| random.i64(from..=size)).collect();
    Multipliers {
        columns: values(-size, n),
        diagonals: values(0, 2 * n - 1),
        antidiagonals: values(0, 2 * n - 1),
    }
}

fn assert_identity<W: Width>(n: usize, prefix: &[usize], multipliers: &Multipliers) {
    let board = Residual::<W>::new(n, &squares(prefix));
    let completions = completions(n, prefix);
    let Some((dual_bound, slack)) = DualBound::new(&board, multipliers, &mut Knapsack::default())
    else {
        assert!(completions.is_empty(), "{prefix:?} of {n}: refuted, but {:?}", completions[0]);
        return;
    };
    for columns in completions {
        let open = prefix.len()..n;
        let cost: i64 = open.clone().map(|row| dual_bound.cost(n, row, columns[row])).sum();
        assert!(open.clone().all(|row| dual_bound.cost(n, row, columns[row]) >= 0));
        let mut unused = board.diagonals();
        for row in open {
            unused[0] = unused[0].without(W::Diagonals::one(columns[row] + n - 1 - row));
            unused[1] = unused[1].without(W::Diagonals::one(row + columns[row]));
        }
        let unused = unused[0].iter().map(|d| multipliers.diagonals[d]).sum::<i64>()
            + unused[1].iter().map(|s| multipliers.antidiagonals[s]).sum::<i64>();
        let all = slack.left + slack.credit[0] + slack.credit[1];
        assert_eq!(cost + unused, all, "{prefix:?} of {n}: {columns:?}");
        assert!(cost <= slack.left, "{prefix:?} of {n}: {columns:?}");
    }
}

#[test]
fn a_dual_bound_holds_for_every_completion() {
    let mut random = Rng::with_seed(3);
    for _ in 0..2000 {
        let n = random.usize(1..=8);
        let prefix = random_prefix(n, &mut random);
        let multipliers = random_multipliers(n, &mut random);
        assert_identity::<Width64x64>(n, &prefix, &multipliers);
        assert_identity::<Width128x128>(n, &prefix, &multipliers);
    }
}

#[test]
fn multipliers_refute_a_board_whatever_sets_are_known_and_never_one_with_a_completion() {
    let mut random = Rng::with_seed(9);
    let mut knapsack = Knapsack::default();
    let (mut refuted, mut open) = (0, 0);
    for _ in 0..2000 {
        let n = random.usize(1..=8);
        let prefix = random_prefix(n, &mut random);
        let board = Residual::<Width64x64>::new(n, &squares(&prefix));
        let has_completion = !completions(n, &prefix).is_empty();
        let mut pricing = Pricing::new(&board);
        for _ in 0..5 {
            let multipliers = random_multipliers(n, &mut random);
            let expected = Pricing::new(&board).price(&multipliers, &mut knapsack).is_none();
            let dual_bound = DualBound::new(&board, &multipliers, &mut knapsack);
            assert_eq!(expected, dual_bound.is_none(), "{prefix:?} of {n}");
            let is_refuted = pricing.is_refuted(&multipliers, &mut knapsack);
            assert_eq!(is_refuted, expected, "{prefix:?} of {n}");
            assert!(!is_refuted || !has_completion, "{prefix:?} of {n}");
            *(if is_refuted { &mut refuted } else { &mut open }) += 1;
        }
    }
    assert!(refuted > 500 && open > 500, "{refuted} refuted, {open} open");
}

/// Asserts that propagation under some dual bounds keeps every completion.
fn assert_keeps_completions<W: Width>(n: usize, prefix: &[usize], multipliers: &[Multipliers]) {
    let mut board = Residual::<W>::new(n, &squares(prefix));
    let completions = completions(n, prefix);
    let mut dual_bounds = Vec::new();
    for multipliers in multipliers {
        match DualBound::new(&board, multipliers, &mut Knapsack::default()) {
            Some(dual_bound) => dual_bounds.push(dual_bound),
            None => return assert!(completions.is_empty()),
        }
    }
    dual_bounds.iter().for_each(|(dual_bound, slack)| board.push(dual_bound, *slack));
    match board.propagate() {
        State::Refuted => {
            assert!(completions.is_empty(), "{prefix:?} of {n}: refuted, but {:?}", completions[0])
        }
        State::Full => assert_eq!(completions, [board.solution()]),
        State::Open(branch) => {
            let cells: Vec<(usize, usize)> = board.cells(branch).collect();
            assert!(cells.len() > 1);
            let [falling, rising] = board.mandatory_diagonals();
            let lines = (board.rows().iter().map(Branch::Row))
                .chain(board.columns().iter().map(Branch::Column))
                .chain(falling.iter().map(Branch::Diagonal))
                .chain(rising.iter().map(Branch::Antidiagonal));
            for line in lines {
                assert!(board.cells(line).count() > 1, "{prefix:?} of {n}: {line:?} is forced");
            }
            for columns in &completions {
                let stands = |row: usize| match board.rows().contains(row) {
                    true => board.remaining(row).contains(columns[row]),
                    false => board.queen(row) == columns[row],
                };
                assert!((0..n).all(stands), "{prefix:?} of {n}: {columns:?} was lost");
                let on_line = cells.iter().filter(|&&(row, column)| columns[row] == column).count();
                assert_eq!(on_line, 1, "{prefix:?} of {n}: {branch:?}, {columns:?}");
            }
        }
    }
}

#[test]
fn propagation_keeps_every_completion_and_branches_over_lines_that_all_completions_use() {
    let mut random = Rng::with_seed(4);
    for _ in 0..3000 {
        let n = random.usize(1..=9);
        let prefix = random_prefix(n, &mut random);
        let multipliers: Vec<Multipliers> =
            (0..random.usize(0..6)).map(|_| random_multipliers(n, &mut random)).collect();
        assert_keeps_completions::<Width64x64>(n, &prefix, &multipliers);
        assert_keeps_completions::<Width128x128>(n, &prefix, &multipliers);
    }
}

/// Creates weights after random failures.
fn random_weights(n: usize, random: &mut Rng) -> Weights {
    let mut weights = Weights::new(n);
    for _ in 0..random.usize(0..20) {
        let mut board = Residual::<Width128x128>::new(n, &[]);
        let line = random.usize(0..n);
        let row = random.bool();
        (0..n).for_each(|i| if row { board.eliminate(line, i) } else { board.eliminate(i, line) });
        assert_eq!(board.propagate(), State::Refuted);
        weights.learn(&board);
    }
    weights
}

/// Asserts that propagation in the window of a board gives the same result as on the whole board.
fn assert_same_within<W: Width, V: Width>(
    n: usize,
    prefix: &[usize],
    multipliers: &[Multipliers],
    weights: &Weights,
) {
    let mut board = Residual::<W>::new(n, &squares(prefix));
    let made = multipliers
        .iter()
        .map(|multipliers| DualBound::new(&board, multipliers, &mut Knapsack::default()));
    let dual_bounds: Vec<_> = made.flatten().collect();
    if prefix.len() == n {
        return;
    }
    dual_bounds.iter().for_each(|(dual_bound, slack)| board.push(dual_bound, *slack));
    let window = board.window();
    assert!(window.fits::<V>(), "{window:?}");
    let moved = board.dual_bounds_within::<V>(&window);
    let mut part = board.within(&window, &moved);

    let state = board.propagate();
    let part_state = part.propagate();
    let Square { row: top, col: left } = window.corner;
    let on_board = |branch: Branch| match branch {
        Branch::Row(row) => Branch::Row(top + row),
        Branch::Column(column) => Branch::Column(left + column),
        Branch::Diagonal(d) => Branch::Diagonal(window.first_diagonals(n)[0] + d),
        Branch::Antidiagonal(s) => Branch::Antidiagonal(window.first_diagonals(n)[1] + s),
    };
    match (state, part_state) {
        (State::Refuted, State::Refuted) => assert_eq!(board.exhausted(), part.exhausted()),
        (State::Full, State::Full) => assert_eq!(board.solution(), part.solution()),
        (State::Open(branch), State::Open(part_branch)) => {
            assert_eq!(branch, on_board(part_branch));
            let chosen = weights.choose(&board, branch, &Components::default(), || 1.0);
            let part_chosen = weights.choose(&part, part_branch, &Components::default(), || 1.0);
            assert_eq!(chosen, on_board(part_chosen), "{prefix:?} of {n}");
            let cells = |(row, column): (usize, usize)| (top + row, left + column);
            let part_cells: Vec<_> = part.cells(part_branch).map(cells).collect();
            assert_eq!(board.cells(branch).collect::<Vec<_>>(), part_cells);
            for row in board.rows().iter() {
                let part_remaining: Vec<usize> =
                    part.remaining(row - top).iter().map(|column| left + column).collect();
                assert_eq!(
                    board.remaining(row).iter().collect::<Vec<_>>(),
                    part_remaining,
                    "{prefix:?} of {n}, row {row}"
                );
            }
        }
        states => panic!("{prefix:?} of {n}: {states:?}"),
    }
}

#[test]
fn a_window_of_a_board_propagates_like_the_whole_board() {
    let mut random = Rng::with_seed(7);
    for _ in 0..2000 {
        let n = random.usize(1..=32);
        let prefix = random_prefix(n, &mut random);
        let multipliers: Vec<Multipliers> =
            (0..random.usize(0..4)).map(|_| random_multipliers(n, &mut random)).collect();
        let weights = random_weights(n, &mut random);
        assert_same_within::<Width64x64, Width32x64>(n, &prefix, &multipliers, &weights);
        assert_same_within::<Width128x128, Width32x64>(n, &prefix, &multipliers, &weights);
        assert_same_within::<Width128x128, Width64x64>(n, &prefix, &multipliers, &weights);
        assert_same_within::<Width128x128, Width64x128>(n, &prefix, &multipliers, &weights);
    }
}

fn solvers(n: usize) -> [Box<dyn QuerySolver>; 2] {
    [
        Box::new(LocalSolver::<Width64x64>::new(n, &[], &[])),
        Box::new(LocalSolver::<Width128x128>::new(n, &[], &[])),
    ]
}

#[test]
fn queries_agree_with_backtracking_and_their_refutations_are_accepted() {
    let mut random = Rng::with_seed(5);
    let control = Control::default();
    let (mut refuted, mut completed) = (0, 0);
    for _ in 0..600 {
        let n = random.usize(1..=12);
        let mut prefix = random_prefix(n, &mut random);
        if n > 9 {
            prefix.truncate(random.usize(1..=4));
        }
        let completions = completions(n, &prefix);
        for mut solver in solvers(n) {
            let query = PrefixQuery {
                node_limit: random.choice([0, 10, u64::MAX]).unwrap_or(0),
                attempt: random.u64(0..3),
                ..PrefixQuery::new(&prefix, u64::MAX, 0)
            };
            match solver.solve(&query, Task::alone(&control)) {
                QueryOutcome::Refuted(refutation) => {
                    assert!(completions.is_empty(), "{prefix:?} of {n}");
                    assert!(
                        check_refutation(n, &prefix, &refutation, u64::MAX).is_ok(),
                        "{prefix:?} of {n}"
                    );
                    refuted += 1;
                }
                QueryOutcome::Completed(columns) => {
                    assert!(completions.contains(&columns), "{prefix:?} of {n}: {columns:?}");
                    completed += 1;
                }
                other => panic!("{prefix:?} of {n}: {other:?}"),
            }
        }
    }
    assert!(refuted > 100 && completed > 100, "{refuted} refuted, {completed} completed");
}

/// Returns at most so many queens, each in one of the `choices` leftmost free columns: like those
/// of first solutions, they make boards tight.
pub(super) fn leftmost_prefix(
    n: usize,
    queens: usize,
    choices: usize,
    random: &mut Rng,
) -> Vec<usize> {
    let mut prefix = Vec::new();
    for _ in 0..queens {
        let free: Vec<usize> =
            (0..n).filter(|&column| is_free(&prefix, column)).take(choices).collect();
        let Some(&column) = random.choice(&free) else { break };
        prefix.push(column);
    }
    prefix
}

#[test]
fn solvers_that_share_linear_programs_agree_with_backtracking() {
    let mut random = Rng::with_seed(17);
    let control = Control::default();
    let (mut given_up, mut refuted, mut completed) = (0, 0, 0);
    for n in 12..=15 {
        let mut solvers = query_solvers(2, n, &[], &[]);
        for _ in 0..150 {
            let queens = random.usize(n * 3 / 10..=n / 2);
            let prefix = leftmost_prefix(n, queens, 3, &mut random);
            let completions = completions(n, &prefix);
            let solver = &mut solvers[random.usize(..2)];
            // Without LPs, most queries are given up, and their states are kept.
            let lp_limit = random.choice([0, 1, u64::MAX]).unwrap_or(0);
            match solver.solve(&PrefixQuery::new(&prefix, lp_limit, 0), Task::alone(&control)) {
                QueryOutcome::Refuted(refutation) => {
                    assert!(completions.is_empty(), "{prefix:?} of {n}");
                    let checked = check_refutation(n, &prefix, &refutation, u64::MAX);
                    assert!(checked.is_ok(), "{prefix:?} of {n}");
                    refuted += 1;
                }
                QueryOutcome::Completed(columns) => {
                    assert!(completions.contains(&columns), "{prefix:?} of {n}: {columns:?}");
                    completed += 1;
                }
                QueryOutcome::GivenUp => given_up += 1,
                QueryOutcome::Stopped => panic!("nothing stops it"),
            }
        }
    }
    let numbers = [given_up, refuted, completed];
    assert!(numbers.iter().all(|&number| number > 20), "{numbers:?}");
}

#[test]
fn every_first_solution_has_a_certificate_for_any_number_of_threads() {
    for n in 0..=24 {
        for threads in [1, 2, 3, 8] {
            let options = Options { threads, ..Options::default() };
            let found = first_solution(n, options, &mut Unobserved, &mut |_| {});
            assert!(found.finished);
            assert!(
                found.solution.as_ref().is_none_or(|columns| is_solution(Piece::Queen, columns))
            );
            let refutations = found.refutations(n);
            let certificate =
                certificate(n, found.solution.as_deref(), &refutations).expect("it is accepted");
            let proved = nqueens_proof::check(&certificate).expect("it is accepted");
            assert_eq!(proved.solution, found.solution, "n = {n}");
        }
    }
}

#[test]
fn the_first_completion_of_a_board_equals_that_of_backtracking() {
    let mut random = Rng::with_seed(6);
    let (mut some, mut none) = (0, 0);
    for _ in 0..300 {
        let n = random.usize(1..=9);
        let problem = random_problem(&mut random, Piece::Queen, n, (3, 2 * n - 1));
        if problem.conflict().is_some() {
            continue;
        }
        let expected = test_support::completions(&problem).into_iter().next();
        if expected.is_some() {
            some += 1
        } else {
            none += 1
        }
        let options = Options {
            threads: 2,
            placed: problem.placed().to_vec(),
            blocked: problem.blocked().to_vec(),
            ..Options::default()
        };
        let found = first_solution(n, options, &mut Unobserved, &mut |_| {});
        assert_eq!((found.solution, found.finished), (expected, true), "{problem:?}");
    }
    assert!(some > 30 && none > 30, "{some} with a completion, {none} without");
}

#[test]
fn eliminated_squares_are_in_no_completion_and_the_checker_agrees() {
    let mut random = Rng::with_seed(11);
    let control = Control::default();
    let (mut cells, mut open) = (0, 0);
    for case in 0..3000 {
        let n = random.usize(12..=18);
        let queens = random.usize(n * 4 / 10..=n * 6 / 10);
        let prefix = leftmost_prefix(n, queens, 2, &mut random);
        let completions = completions(n, &prefix);
        let mut board = Residual::<Width64x64>::new(n, &squares(&prefix));
        if !matches!(board.propagate(), State::Open(_)) {
            continue;
        }
        open += 1;
        let mut assignment = Assignment::new(&board);
        let mut master = Master::new(&board, Arc::default());
        let lp_rows = board.rows();
        let mut elimination = Probing {
            assignment: &mut assignment,
            master: &mut master,
            lp_rows,
            board: &mut board,
            eliminated: Eliminations::default(),
            task: Task::alone(&control),
        };
        let state = elimination.probe(u64::MAX);
        let eliminated = elimination.eliminated;
        assert!(
            state != State::Refuted || completions.is_empty(),
            "case {case}: {prefix:?} of {n}"
        );
        for (row, column) in eliminated.squares() {
            let used = completions.iter().any(|columns| columns[row] == column);
            assert!(!used, "case {case}: ({row}, {column}) of {n} after {prefix:?}");
            cells += 1;
        }
        // A refutation is accepted if there is no completion; otherwise the checker's search finds
        // one.
        match check_refutation(
            n,
            &prefix,
            &eliminated.refutation(n, Refutation::search()),
            u64::MAX,
        ) {
            Ok(_) => assert!(completions.is_empty(), "case {case}: {prefix:?} of {n}"),
            Err(ProofError::Refused(why)) => {
                assert!(
                    !completions.is_empty() && why.contains("there is a completion"),
                    "case {case}: {why}"
                );
            }
            Err(other) => panic!("case {case}: {other}"),
        }
    }
    assert!(cells > 1000 && open > 1000, "{cells} squares of {open} boards");
}

#[test]
fn refutations_for_another_machine_state_the_weights_of_searches_that_are_not_small() {
    let n = 30;
    let greedy = Board { n, placed: Vec::new(), blocked: Vec::new() }.greedy();
    let mut local = query_solvers(1, n, &[], &[]).remove(0);
    let mut remote = QuerySolverFactory::remote(n).create();
    let (mut same, mut longer) = (0, 0);
    for queens in 6..14 {
        for column in 0..n {
            let prefix = [&greedy[..queens], &[column]].concat();
            if first_attack(Piece::Queen, n, &squares(&prefix)).is_some() {
                continue;
            }
            let refutation = |solver: &mut Box<dyn QuerySolver>| {
                let control = Control::default();
                let query = PrefixQuery::new(&prefix, 64, 0);
                match solver.solve(&query, Task::alone(&control)) {
                    QueryOutcome::Refuted(refutation) => {
                        let checked = check_refutation(n, &prefix, &refutation, u64::MAX);
                        assert!(checked.is_ok(), "{prefix:?}: {checked:?}");
                        Some(refutation.as_bytes().len())
                    }
                    _ => None,
                }
            };
            match (refutation(&mut local), refutation(&mut remote)) {
                (Some(local), Some(remote)) if local == remote => same += 1,
                (Some(local), Some(remote)) => {
                    assert!(remote > local, "{prefix:?}");
                    longer += 1;
                }
                _ => {}
            }
        }
    }
    assert!(same > 0 && longer > 0, "{same} as long, {longer} longer");
}
