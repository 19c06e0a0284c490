//! The first solution by completion queries.
//!
//! The greedy prefix takes the first free column of each row. Every part of it that has a
//! completion is a prefix of the first solution, so the longest such part is found by bisection.
//! The remaining rows are decided one by one: the free columns are queried from left to right until
//! one has a completion. That completion is kept as a witness: as long as the decided rows agree
//! with it, only the columns to the left of its queen need a query.
//!
//! With several solvers, the prefixes that remain to be refuted for the witness are decided
//! concurrently, those of later rows too, as long as refutations are to be expected: a completion
//! of an earlier prefix makes the later ones irrelevant.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Mutex;

use super::LARGEST;
use super::board::Board;
use super::concurrent_queries::Control;
use super::decider::{Decider, Decision, Observer, Statistics};
use super::query::{QuerySolver, query_solvers};
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
    search(n, options, solvers, true, sink, keep)
}

/// Like [`first_solution`], but with the given query solvers, which run concurrently and may share the
/// same workers. Their answers are trusted: a caller with remote solvers has to validate the answers
/// first.
///
/// # Panics
/// If n is larger than [`LARGEST`], or `solvers` is empty.
pub fn first_solution_with(
    n: usize,
    options: Options,
    solvers: Vec<Box<dyn QuerySolver>>,
    sink: &mut dyn ProgressSink,
    keep: &mut dyn FnMut(&Refutations),
) -> Found {
    search(n, options, solvers, false, sink, keep)
}

/// Like [`first_solution_with`]. `is_local` is set for solvers in this process.
fn search(
    n: usize,
    options: Options,
    mut solvers: Vec<Box<dyn QuerySolver>>,
    is_local: bool,
    sink: &mut dyn ProgressSink,
    keep: &mut dyn FnMut(&Refutations),
) -> Found {
    assert!(n <= LARGEST && !solvers.is_empty());
    let board = Board { n, placed: options.placed, blocked: options.blocked };
    let control = Control::default();
    let statistics = Mutex::new(Statistics::new(n));
    let mut observer = TopLevel { sink, keep };
    let mut decider = Decider {
        board: &board,
        solvers: &mut solvers,
        is_local,
        refuted: options.refuted,
        witness: (n == 0).then(Vec::new),
        control: &control,
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
    let (mut low, mut high) = (0, greedy.len() + 1);
    let mut next = (n * 3 / 10).clamp(1, greedy.len().max(1));
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
