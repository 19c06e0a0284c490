//! The first solution by completion queries.
//!
//! The greedy prefix takes the first free column of each row. Every part of it that has a
//! completion is a prefix of the first solution, so the longest such part is found by bisection. If
//! the query about the next longer one was given up, that one is settled. The remaining rows are
//! decided one by one: the free columns are queried from left to right until one has a completion.
//! That completion is kept as a witness: as long as the decided rows agree with it, only the
//! columns to the left of its queen need a query.
//!
//! With several solvers, the prefixes that remain to be refuted for the witness are decided
//! concurrently, those of later rows too, as long as refutations are to be expected: a completion
//! of an earlier prefix makes the later ones irrelevant.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Mutex;

use super::LARGEST;
use super::board::Board;
use super::control::{Control, SolverSource, Solvers};
use super::decider::{Decider, Decision, Observer, Statistics};
use super::query::query_solvers;
use crate::progress::{Progress, ProgressSink};
use crate::verdict::{Answer, Unproven, Verdict};
use nqueens_proof::board::Square;
use nqueens_proof::first::{Line, Refutation};

/// Refuted prefixes with their refutations.
pub type Refutations = BTreeMap<Vec<usize>, Refutation>;

/// The options of a run.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Number of concurrent queries; 0 is treated as 1.
    pub threads: usize,
    /// Refutations from an earlier run on the same board.
    pub refuted: Refutations,
    /// A solution of the same board that is known, if any. It is not validated.
    pub solution: Option<Vec<usize>>,
    /// Queens that are already placed, on squares of the board; no two of them attack each other.
    pub placed: Vec<Square>,
    /// Squares that must stay empty; no queen is placed on any of them.
    pub blocked: Vec<Square>,
}

/// The result of a run.
#[derive(Clone, Debug)]
pub struct Found {
    /// The first solution or, if the run was stopped, the earliest one found: the 0-based column of
    /// each row.
    pub solution: Option<Vec<usize>>,
    /// True if the run was completed: `solution` is the first solution, or there is none.
    pub finished: bool,
    /// The refuted prefixes.
    pub refuted: Refutations,
    /// Nodes of all searches.
    pub nodes: u64,
    /// Number of linear programs solved.
    pub lps_solved: u64,
}

impl Found {
    /// Returns the refutations in the order in which a certificate needs them.
    pub fn refutations(&self, n: usize) -> Vec<Refutation> {
        match &self.solution {
            Some(columns) => {
                let needed = |prefix: &Vec<usize>| {
                    let (last, above) = prefix.split_last().unwrap_or((&0, &[]));
                    columns.starts_with(above)
                        && columns.get(above.len()).is_some_and(|column| last < column)
                };
                let mut needed: Vec<_> =
                    self.refuted.iter().filter(|(prefix, _)| needed(prefix)).collect();
                needed.sort_by_key(|(prefix, _)| prefix.len());
                needed.into_iter().map(|(_, refutation)| refutation.clone()).collect()
            }
            None => {
                let roots = self.refuted.iter().filter(|(prefix, _)| prefix.len() == 1);
                let children: Vec<_> =
                    roots.map(|(prefix, tree)| (prefix[0], tree.clone())).collect();
                vec![Refutation::branch(n, Line::Row(0), &children)]
            }
        }
    }
}

impl From<Found> for Answer<Vec<usize>> {
    fn from(found: Found) -> Self {
        let Found { solution, finished, nodes, lps_solved, .. } = found;
        let verdict =
            if finished { Verdict::Proven } else { Verdict::NotProven(Unproven::Stopped) };
        Self { found: solution, verdict, nodes, lps_solved }
    }
}

/// Finds the first solution on the board of size `n`, or the first completion of the placed queens
/// that leaves the blocked squares empty.
/// Calls `keep` whenever a prefix is refuted.
///
/// # Panics
/// If n is larger than [`LARGEST`].
pub fn first_solution(
    n: usize,
    options: Options,
    sink: &mut dyn ProgressSink,
    keep: &mut dyn FnMut(&Refutations),
) -> Found {
    let solvers = query_solvers(options.threads.max(1), n, &options.placed, &options.blocked);
    search(n, options, (solvers, true), &Control::default(), sink, keep)
}

/// Like [`first_solution`], but with the query solvers of `source`, which run concurrently and may
/// share the same workers. Their answers are trusted: a caller with remote solvers has to validate
/// them before it uses the result.
///
/// # Panics
/// If n is larger than [`LARGEST`], or `source` has no solvers.
pub fn first_solution_with(
    n: usize,
    options: Options,
    source: &dyn SolverSource,
    sink: &mut dyn ProgressSink,
    keep: &mut dyn FnMut(&Refutations),
) -> Found {
    let control = Control::with_source(source);
    search(n, options, (source.take_new(), false), &control, sink, keep)
}

/// Like [`first_solution`], with these solvers. `is_local` is set for solvers in this process.
fn search(
    n: usize,
    options: Options,
    (mut solvers, is_local): (Solvers, bool),
    control: &Control<'_>,
    sink: &mut dyn ProgressSink,
    keep: &mut dyn FnMut(&Refutations),
) -> Found {
    assert!(n <= LARGEST && !solvers.is_empty());
    let board = Board { n, placed: options.placed, blocked: options.blocked };
    let statistics = Mutex::new(Statistics::new(n));
    let mut observer = TopLevel { sink, keep };
    let mut decider = Decider {
        board: &board,
        solvers: &mut solvers,
        is_local,
        refuted: options.refuted,
        witness: options.solution.or_else(|| (n == 0).then(Vec::new)),
        control,
        statistics: &statistics,
        observer: &mut observer,
    };
    let finished = decide_rows(&mut decider).is_continue();
    Found {
        solution: decider.witness,
        finished,
        refuted: decider.refuted,
        nodes: control.nodes(),
        lps_solved: control.lps_solved(),
    }
}

/// The observer of a whole run.
struct TopLevel<'a> {
    sink: &'a mut dyn ProgressSink,
    keep: &'a mut dyn FnMut(&Refutations),
}

impl Observer for TopLevel<'_> {
    fn refuted(&mut self, _: &[usize], all: &Refutations) {
        (self.keep)(all);
    }

    fn report(&mut self, progress: &Progress) -> ControlFlow<()> {
        self.sink.report(progress)
    }
}

/// Makes the first solution the witness. Breaks if the run was stopped.
fn decide_rows(decider: &mut Decider<'_>) -> ControlFlow<()> {
    let n = decider.board.n;
    let greedy = decider.board.greedy();
    let mut decided = longest_completable(decider, &greedy)?;
    // If the next longer part is not refuted, its query was given up; one with a smaller limit
    // would be, too.
    if let Some(open) = greedy.get(..=decided)
        && !decider.expects_refutations()
        && !decider.refuted.contains_key(open)
    {
        decider.settle(open)?;
    }
    while decided < n {
        let end = match &decider.witness {
            Some(_) if decider.expects_refutations() => n,
            _ => decided + 1,
        };
        // By row, the prefixes that have to be refuted for the witness.
        let needed = |row: usize| match &decider.witness {
            Some(columns) => decider.board.extensions(&columns[..row], columns[row]),
            None => decider.board.extensions(&[], n),
        };
        let prefixes: Vec<_> = (decided..end).flat_map(needed).collect();
        match decider.decide(&prefixes)? {
            Decision::Refuted if decider.witness.is_none() => break,
            Decision::Refuted => decided = end,
            Decision::First(number) => decided = prefixes[number].len(),
            Decision::Open => {}
        }
    }
    ControlFlow::Continue(())
}

/// Returns the length of the longest part of the greedy prefix for which a completion is found. The
/// completion becomes the witness.
fn longest_completable(decider: &mut Decider<'_>, greedy: &[usize]) -> ControlFlow<(), usize> {
    let n = decider.board.n;
    let common = |columns: &[usize]| columns.iter().zip(greedy).take_while(|(a, b)| a == b).count();
    let (mut low, mut high) = (decider.witness.as_deref().map_or(0, common), greedy.len() + 1);
    let mut next = (n * 3 / 10).clamp(low + 1, greedy.len().max(low + 1));
    while high - low > 1 {
        decider.complete(&greedy[..next])?;
        match &decider.witness {
            Some(columns) if columns[..next] == greedy[..next] => {
                low = columns.iter().zip(greedy).take_while(|(a, b)| a == b).count().min(high - 1);
            }
            _ => high = next,
        }
        next = low.midpoint(high);
    }
    ControlFlow::Continue(low)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::thread;
    use std::time::{Duration, Instant};

    use fastrand::Rng;
    use nqueens_proof::board::{Piece, Problem};
    use nqueens_proof::first::certificate;

    use super::super::concurrent_queries::PrefixQuery;
    use super::super::control::Task;
    use super::super::query::{QueryOutcome, QuerySolver, QuerySolverFactory};
    use super::super::resume;
    use super::*;
    use crate::classical::{Method, first_answer};
    use crate::progress::Unobserved;
    use crate::test_support::StopAfter;
    use crate::threads::lock;

    /// Gives up at random instead of solving.
    struct GivesUpAtRandom(Box<dyn QuerySolver>, Rng);

    impl QuerySolver for GivesUpAtRandom {
        fn solve(&mut self, query: &PrefixQuery<'_>, task: Task<'_>) -> QueryOutcome {
            if self.1.u8(..3) > 0 { QueryOutcome::GivenUp } else { self.0.solve(query, task) }
        }
    }

    /// A source of such solvers: one or two at first, more later.
    #[derive(Debug)]
    struct SomeSolvers {
        n: usize,
        /// The random numbers, and the number of solvers so far.
        state: Mutex<(Rng, usize)>,
    }

    impl SolverSource for SomeSolvers {
        fn take_new(&self) -> Vec<Box<dyn QuerySolver>> {
            let (random, number) = &mut *self.state.lock().expect("no panic");
            let new = match *number {
                0 => random.usize(1..=2),
                1..=5 => usize::from(random.u8(..20) == 0),
                _ => 0,
            };
            *number += new;
            let solver = |_| -> Box<dyn QuerySolver> {
                Box::new(GivesUpAtRandom(
                    QuerySolverFactory::remote(self.n).create(),
                    random.fork(),
                ))
            };
            (0..new).map(solver).collect()
        }
    }

    #[test]
    fn runs_that_give_up_or_are_interrupted_find_the_first_solution_in_the_end() {
        let mut random = Rng::with_seed(9);
        let (mut runs, mut late) = (0, 0);
        for n in (4..=16).chain(4..=16) {
            let mut refuted = Refutations::new();
            let found = loop {
                let solvers = SomeSolvers { n, state: Mutex::new((random.fork(), 0)) };
                let options = Options { refuted, ..Options::default() };
                let mut sink = StopAfter(random.u32(3..60));
                let found = first_solution_with(n, options, &solvers, &mut sink, &mut |_| {});
                runs += 1;
                late += usize::from(solvers.state.lock().expect("no panic").1 > 2);
                if found.finished {
                    break found;
                }
                refuted = resume::read(n, &resume::write(n, &found.refuted)).expect("valid ones");
            };
            let expected = first_answer(Method::Backtracking, &Problem::empty(Piece::Queen, n));
            assert_eq!(found.solution, expected, "n = {n}");
            let refutations = found.refutations(n);
            assert!(certificate(n, expected.as_deref(), &refutations).is_ok(), "n = {n}");
        }
        assert!(runs > 30 && late > 10, "{runs} runs, {late} with more than two solvers");
    }

    /// Answers no query with this limit about one prefix of the first solution.
    struct Stuck {
        solver: Box<dyn QuerySolver>,
        lp_limit: u64,
        first: Vec<usize>,
        state: Arc<Mutex<StuckState>>,
    }

    #[derive(Default)]
    struct StuckState {
        /// The number of queens of that prefix, the first one that is asked about.
        queens: Option<usize>,
        /// The number of later queries about longer prefixes.
        longer: usize,
    }

    impl QuerySolver for Stuck {
        fn solve(&mut self, query: &PrefixQuery<'_>, task: Task<'_>) -> QueryOutcome {
            let mut state = lock(&self.state);
            let prefix = query.prefix;
            let has_limit = query.lp_limit == self.lp_limit;
            if has_limit && state.queens.is_none() && self.first.starts_with(prefix) {
                state.queens = Some(prefix.len());
            }
            let stuck = state.queens.map(|queens| &self.first[..queens]);
            let is_stuck = has_limit && stuck == Some(prefix);
            let is_longer = !is_stuck && stuck.is_some_and(|stuck| prefix.starts_with(stuck));
            state.longer += usize::from(is_longer);
            drop(state);
            if !is_stuck {
                return self.solver.solve(query, task);
            }
            let began = Instant::now();
            while !task.is_stopped() {
                assert!(began.elapsed() < Duration::from_secs(60), "nothing else decides it");
                thread::yield_now();
            }
            QueryOutcome::Stopped
        }
    }

    #[test]
    fn a_prefix_whose_query_does_not_end_is_decided_by_queries_about_the_next_row() {
        let mut stuck = 0;
        for n in (9..=21).step_by(2) {
            let board = Board { n, placed: Vec::new(), blocked: Vec::new() };
            let lp_limit = board.lp_limits().query;
            let first = first_answer(Method::Backtracking, &Problem::empty(Piece::Queen, n));
            let first = first.expect("a solution");
            let state = Arc::<Mutex<StuckState>>::default();
            let solver = |_| -> Box<dyn QuerySolver> {
                let (solver, state) = (QuerySolverFactory::remote(n).create(), Arc::clone(&state));
                Box::new(Stuck { solver, lp_limit, first: first.clone(), state })
            };
            let solvers = ((0..3).map(solver).collect(), true);
            let (options, control) = (Options::default(), Control::default());
            let found = search(n, options, solvers, &control, &mut Unobserved, &mut |_| {});
            assert_eq!(found.solution.as_ref(), Some(&first), "n = {n}");
            let refutations = found.refutations(n);
            assert!(certificate(n, Some(&first), &refutations).is_ok(), "n = {n}");
            let state = lock(&state);
            stuck += usize::from(state.queens.is_some() && state.longer > 0);
        }
        // Not where the greedy prefix is completed by the first solution.
        assert!(stuck > 0);
    }

    #[test]
    fn a_known_solution_changes_no_answer() {
        let mut random = Rng::with_seed(45);
        for n in [4, 5, 6, 8, 9, 12, 13, 14] {
            let expected = first_answer(Method::Backtracking, &Problem::empty(Piece::Queen, n));
            let first = expected.clone().expect("a solution");
            let mirrored: Vec<usize> = first.iter().map(|column| n - 1 - column).collect();
            let reversed: Vec<usize> = first.iter().rev().copied().collect();
            // The first solution of the board with the queens of the first rows on the greedy
            // prefix.
            let below: Vec<Square> =
                first.iter().take(2).enumerate().map(|(row, &col)| Square::new(row, col)).collect();
            let options = Options {
                blocked: vec![Square::new(n - 1, first[n - 1])],
                placed: below,
                ..Options::default()
            };
            let other = first_solution(n, options, &mut Unobserved, &mut |_| {}).solution;
            for known in [Some(first), Some(mirrored), Some(reversed), other].into_iter().flatten()
            {
                let solvers = SomeSolvers { n, state: Mutex::new((random.fork(), 0)) };
                let options = Options { solution: Some(known.clone()), ..Options::default() };
                let found = first_solution_with(n, options, &solvers, &mut Unobserved, &mut |_| {});
                assert_eq!(found.solution, expected, "n = {n}, {known:?}");
                let refutations = found.refutations(n);
                assert!(certificate(n, expected.as_deref(), &refutations).is_ok(), "n = {n}");
            }
        }
    }

    #[test]
    fn the_first_solution_of_a_blocked_board_equals_that_of_backtracking() {
        let mut random = Rng::with_seed(80);
        let mut open = [0, 0];
        for _ in 0..60 {
            let n = random.usize(14..=22);
            // About this many free squares in a row make some boards solvable and some not.
            let free = random.usize(3..=6);
            let mut blocked = Vec::new();
            for row in 0..n {
                let mut columns: Vec<usize> = (0..n).collect();
                random.shuffle(&mut columns);
                blocked.extend(columns[free..].iter().map(|&column| Square::new(row, column)));
            }
            let problem =
                Problem::new(Piece::Queen, n, Vec::new(), blocked.clone()).expect("on the board");
            let expected = first_answer(Method::Backtracking, &problem);
            open[usize::from(expected.is_some())] += 1;
            let options = Options { threads: 1, blocked, ..Options::default() };
            let found = first_solution(n, options, &mut Unobserved, &mut |_| {});
            assert_eq!((found.solution, found.finished), (expected, true), "{problem:?}");
        }
        assert!(open[0] > 10 && open[1] > 10, "{open:?}");
    }
}
