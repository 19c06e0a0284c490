//! The first solution by completion queries.
//!
//! The greedy prefix takes the first free column of each row. Every part of it that has a
//! completion is a prefix of the first solution, so the longest such part is found by bisection.
//! The remaining rows are decided one by one: the free columns are queried from left to right until
//! one has a completion. That completion is kept as a witness: as long as the decided rows agree
//! with it, only the columns to the left of its queen need a query.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use super::LARGEST;
use super::concurrent_queries::{Control, Event, PrefixQuery, Wanted, run_queries};
use super::params;
use super::query::{QueryOutcome, QuerySolver, query_solver};
use crate::progress::{Progress, ProgressSink};
use crate::verdict::{Answer, Unproven, Verdict};
use nqueens_proof::board::{Piece, Square};
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
    let solvers = (0..options.threads.max(1))
        .map(|_| query_solver(n, &options.placed, &options.blocked))
        .collect();
    first_solution_with(n, options, solvers, sink, keep)
}

/// Like [`first_solution`], but with the given query solvers, which run concurrently. Their answers
/// are trusted: a caller with remote solvers has to validate the answers first.
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
    assert!(n <= LARGEST && !solvers.is_empty());
    let mut run = Run {
        n,
        solvers,
        placed: options.placed,
        blocked: options.blocked,
        refuted: options.refuted,
        witness: (n == 0).then(Vec::new),
        control: Control::default(),
        last_lp_limit: BTreeMap::new(),
        sink,
        keep,
    };
    let finished = run.run().is_continue();
    let (nodes, lps_solved) = (run.control.nodes(), run.control.lps_solved());
    Found { solution: run.witness, finished, refuted: run.refuted, nodes, lps_solved }
}

struct Run<'a> {
    n: usize,
    placed: Vec<Square>,
    blocked: Vec<Square>,
    /// One solver per thread.
    solvers: Vec<Box<dyn QuerySolver>>,
    refuted: Refutations,
    /// The earliest known solution. It agrees with the decided rows.
    witness: Option<Vec<usize>>,
    control: Control,
    /// By number of queens: the LP limit of the last query that settled a prefix. The next prefix
    /// is about as hard, and smaller limits would be wasted: measured on n = 97, 8.8 instead of
    /// 13.5 million nodes; n = 58 to 93 about the same.
    last_lp_limit: BTreeMap<usize, u64>,
    sink: &'a mut dyn ProgressSink,
    keep: &'a mut dyn FnMut(&Refutations),
}

/// LP limits of queries.
struct LpLimits {
    /// LP limit of a query before it is answered by other means.
    query: u64,
    /// LP limit of a query about a part of the greedy prefix.
    greedy: u64,
}

/// Returns the LP limits. On boards of even size the knapsacks refute most prefixes that can be
/// refuted, at once or after one more row; on boards of odd size, search gets further. Measured
/// with a limit of 1 instead of 15: n = 44, 50, 70 and 74 take half to two thirds of the time,
/// n = 62 the same; n = 79 did not finish in the time that it takes with 15.
const fn lp_limits(n: usize) -> LpLimits {
    if n.is_multiple_of(2) {
        LpLimits { query: 1, greedy: 8 }
    } else {
        LpLimits { query: 15, greedy: 60 }
    }
}

/// The status of a list of prefixes.
enum Decision {
    /// No prefix has a completion.
    Refuted,
    /// The witness is a completion of one prefix, and all prefixes before that one are refuted.
    First,
    /// Not decided yet.
    Open,
}

impl Run<'_> {
    /// Runs to completion. Breaks if the run was stopped.
    fn run(&mut self) -> ControlFlow<()> {
        let greedy = self.greedy();
        let mut decided = self.longest_completable(&greedy)?;
        while decided < self.n {
            let (above, end) = match &self.witness {
                Some(columns) => (columns[..decided].to_vec(), columns[decided]),
                None => (Vec::new(), self.n),
            };
            let candidates = self.extensions(&above, end);
            let decision = self.decide(&candidates, lp_limits(self.n).query, u64::MAX)?;
            if matches!(decision, Decision::Refuted) && self.witness.is_none() {
                break;
            }
            decided += 1;
        }
        ControlFlow::Continue(())
    }

    /// Returns `above` extended by one queen, for each free column before `end`.
    fn extensions(&self, above: &[usize], end: usize) -> Vec<Vec<usize>> {
        let free = (0..end)
            .filter(|&column| is_free(above, column) && self.is_allowed(above.len(), column));
        free.map(|column| above.iter().copied().chain([column]).collect()).collect()
    }

    /// Returns whether this square is not blocked, and a queen on it attacks no placed queen or is
    /// one of them.
    fn is_allowed(&self, row: usize, column: usize) -> bool {
        let square = Square::new(row, column);
        let avoids_placed = self
            .placed
            .iter()
            .all(|&queen| queen == square || !Piece::Queen.attacks(self.n, queen, square));
        avoids_placed && !self.blocked.contains(&square)
    }

    /// Returns the first free column of each row, up to the first row that has none.
    fn greedy(&self) -> Vec<usize> {
        let mut prefix = Vec::new();
        while prefix.len() < self.n {
            let free =
                |&column: &usize| is_free(&prefix, column) && self.is_allowed(prefix.len(), column);
            let Some(column) = (0..self.n).find(free) else { break };
            prefix.push(column);
        }
        prefix
    }

    /// Finds the first of these prefixes that has a completion, which becomes the witness; all
    /// prefixes before it are refuted. A query without an answer after `lp_limit` LPs is split
    /// into queries about one more row, until the total work exceeds `limit`; the result is then
    /// [`Decision::Open`].
    fn decide(
        &mut self,
        prefixes: &[Vec<usize>],
        lp_limit: u64,
        limit: u64,
    ) -> ControlFlow<(), Decision> {
        let mut begin = 0;
        loop {
            let (number, completed) = match self.first_open(&prefixes[begin..], lp_limit)? {
                None => return ControlFlow::Continue(Decision::Refuted),
                Some((number, completed)) => (begin + number, completed),
            };
            if completed {
                return ControlFlow::Continue(Decision::First);
            }
            let below = if limit == u64::MAX {
                self.settle(&prefixes[number])?
            } else if self.control.work() >= limit {
                Decision::Open
            } else {
                self.decide_below(&prefixes[number], lp_limit, limit)?
            };
            match below {
                Decision::Refuted => begin = number + 1,
                other => return ControlFlow::Continue(other),
            }
        }
    }

    /// Like [`decide`](Self::decide) for one prefix, by its extensions by one row.
    fn decide_below(
        &mut self,
        prefix: &[usize],
        lp_limit: u64,
        limit: u64,
    ) -> ControlFlow<(), Decision> {
        let candidates = self.extensions(prefix, self.n);
        let decision = self.decide(&candidates, lp_limit, limit)?;
        if matches!(decision, Decision::Refuted) {
            let row = prefix.len();
            let child = |longer: &Vec<usize>| {
                Some((row * self.n + longer[row], self.refuted.remove(longer)?))
            };
            let children: Vec<(usize, Refutation)> = candidates.iter().filter_map(child).collect();
            let refutation = Refutation::branch(self.n, Line::Row(row), &children);
            self.refuted.insert(prefix.to_vec(), refutation);
            (self.keep)(&self.refuted);
        }
        ControlFlow::Continue(decision)
    }

    /// Decides one prefix without a work limit. No strategy is known in advance to be the fastest,
    /// so all of them are tried in turn with increasing work: one long query, many short ones in
    /// other orders, and queries about more rows.
    fn settle(&mut self, prefix: &[usize]) -> ControlFlow<(), Decision> {
        let mut lp_limit =
            self.last_lp_limit.get(&prefix.len()).copied().unwrap_or(params::SHORT_QUERY_LPS);
        let mut attempt = 0;
        loop {
            let before = self.control.work();
            let short = std::iter::repeat_n(
                params::SHORT_QUERY_LPS,
                (lp_limit / params::SHORT_QUERY_LPS) as usize / 2,
            );
            let mut query = |lp_limit| {
                attempt += 1;
                PrefixQuery { prefix, lp_limit, attempt }
            };
            let queries: Vec<PrefixQuery<'_>> =
                std::iter::once(lp_limit).chain(short).map(&mut query).collect();
            let found = self.run_queries(&queries, Wanted::AnyAnswer)?;
            if found.is_some() || self.refuted.contains_key(prefix) {
                self.last_lp_limit.insert(prefix.len(), lp_limit);
            }
            if self.refuted.contains_key(prefix) {
                // Refutations of longer prefixes are no longer needed.
                self.refuted
                    .retain(|other, _| other.len() <= prefix.len() || !other.starts_with(prefix));
                return ControlFlow::Continue(Decision::Refuted);
            }
            if found.is_some() {
                return ControlFlow::Continue(Decision::First);
            }
            let now = self.control.work();
            let each = lp_limits(self.n).query.max(lp_limit / 32);
            let limit = now + lp_limit.max(now - before);
            match self.decide_below(prefix, each, limit)? {
                Decision::Open => lp_limit *= 4,
                decision => return ControlFlow::Continue(decision),
            }
        }
    }

    /// Returns the length of the longest part of the greedy prefix for which a completion is found.
    /// The completion becomes the witness.
    fn longest_completable(&mut self, greedy: &[usize]) -> ControlFlow<(), usize> {
        let (mut low, mut high) = (0, greedy.len() + 1);
        let mut next = (self.n * 3 / 10).clamp(1, greedy.len().max(1));
        while high - low > 1 {
            self.first_open(&[greedy[..next].to_vec()], lp_limits(self.n).greedy)?;
            match &self.witness {
                Some(columns) if columns[..next] == greedy[..next] => {
                    low = columns
                        .iter()
                        .zip(greedy)
                        .take_while(|(a, b)| a == b)
                        .count()
                        .min(high - 1);
                }
                _ => high = next,
            }
            next = low.midpoint(high);
        }
        ControlFlow::Continue(low)
    }

    /// Returns the first of these prefixes that is not refuted within `lp_limit` LPs each, and
    /// whether a completion of it was found, which then is the witness.
    fn first_open(
        &mut self,
        prefixes: &[Vec<usize>],
        lp_limit: u64,
    ) -> ControlFlow<(), Option<(usize, bool)>> {
        let numbers: Vec<usize> = (0..prefixes.len())
            .filter(|&number| !self.refuted.contains_key(&prefixes[number]))
            .collect();
        let query =
            |&number: &usize| PrefixQuery { prefix: &prefixes[number], lp_limit, attempt: 0 };
        let queries: Vec<PrefixQuery<'_>> = numbers.iter().map(query).collect();
        let first = self.run_queries(&queries, Wanted::FirstOpen)?;
        ControlFlow::Continue(first.map(|(number, completed)| (numbers[number], completed)))
    }

    /// Runs the queries on all solvers. Stores refutations, and a completion as the witness.
    /// Returns the number of the selected query and whether it has a completion.
    fn run_queries(
        &mut self,
        queries: &[PrefixQuery<'_>],
        wanted: Wanted,
    ) -> ControlFlow<(), Option<(usize, bool)>> {
        let level = queries.first().map_or(0, |query| query.prefix.len());
        let found = run_queries(queries, wanted, &mut self.solvers, &self.control, &mut |event| {
            if let Event::Refuted(number, refutation) = event {
                self.refuted.insert(queries[number].prefix.to_vec(), refutation);
                (self.keep)(&self.refuted);
            }
            self.sink.report(&Progress { level, bound: None, nodes: self.control.nodes() })
        });
        if self.control.is_stopped() {
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(found.map(|(number, outcome)| {
            let completed = matches!(outcome, QueryOutcome::Completed(_));
            if let QueryOutcome::Completed(columns) = outcome {
                self.witness = Some(columns);
            }
            (number, completed)
        }))
    }
}

/// Returns whether a queen in `column` of the next row attacks none of those above.
pub(super) fn is_free(above: &[usize], column: usize) -> bool {
    let row = above.len();
    above.iter().enumerate().all(|(r, &c)| c != column && c.abs_diff(column) != row - r)
}
