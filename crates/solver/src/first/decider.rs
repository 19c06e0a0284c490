//! Decides prefixes: each has a completion or is refuted.

use std::collections::BTreeMap;
use std::ops::{Bound, ControlFlow};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::board::Board;
use super::concurrent_queries::{Control, Event, Job, PrefixQuery, Task, Wanted, run_jobs};
use super::lexicographic::Refutations;
use super::params;
use super::query::{QueryOutcome, QuerySolver};
use crate::progress::Progress;
use nqueens_proof::first::{Line, Refutation};

/// Statistics of the prefixes settled so far.
#[derive(Debug)]
pub(super) struct Statistics {
    /// By number of queens: the LP limit of the last round in which a query settled a prefix. The
    /// next prefix is about as hard, and smaller limits would be wasted: measured on n = 97, 8.8
    /// instead of 13.5 million nodes; n = 58 to 93 about the same.
    lp_limits: BTreeMap<usize, u64>,
    /// True if the prefix settled last was refuted; the next one usually ends in the same way.
    last_refuted: bool,
}

impl Statistics {
    /// Creates the statistics of a run on the board of size `n`. On boards of odd size, most
    /// prefixes that have to be settled are refuted.
    pub(super) const fn new(n: usize) -> Self {
        Self { lp_limits: BTreeMap::new(), last_refuted: !n.is_multiple_of(2) }
    }
}

fn lock(statistics: &Mutex<Statistics>) -> MutexGuard<'_, Statistics> {
    statistics.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The observer of a decider.
pub(super) trait Observer {
    /// Called after this prefix was refuted, with all refutations.
    fn refuted(&mut self, prefix: &[usize], all: &Refutations);

    /// Receives the progress. Returning [`ControlFlow::Break`] stops everything.
    fn report(&mut self, progress: &Progress) -> ControlFlow<()>;
}

/// The status of a list of prefixes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Decision {
    /// No prefix has a completion.
    Refuted,
    /// The witness is a completion of the prefix with this number, and all prefixes before that one
    /// are refuted.
    First(usize),
    /// Not decided yet.
    Open,
}

/// Decides prefixes by queries to its solvers. All its methods break if it was stopped.
pub(super) struct Decider<'a> {
    pub(super) board: &'a Board,
    /// One solver per thread, at least one.
    pub(super) solvers: &'a mut [Box<dyn QuerySolver>],
    pub(super) refuted: Refutations,
    /// The earliest known solution.
    pub(super) witness: Option<Vec<usize>>,
    pub(super) control: &'a Control<'a>,
    pub(super) statistics: &'a Mutex<Statistics>,
    pub(super) observer: &'a mut dyn Observer,
}

impl<'a> Decider<'a> {
    /// Returns whether several prefixes should be decided concurrently, because the first of them
    /// is probably refuted.
    pub(super) fn expects_refutations(&self) -> bool {
        self.solvers.len() > 1 && lock(self.statistics).last_refuted
    }

    /// Looks for a completion of a part of the greedy prefix, and makes it the witness. Several
    /// solvers try different orders.
    pub(super) fn complete(&mut self, prefix: &[usize]) -> ControlFlow<()> {
        if self.refuted.contains_key(prefix) {
            return ControlFlow::Continue(());
        }
        let lp_limit = self.board.lp_limits().greedy;
        let attempts = 0..self.solvers.len().min(params::MAX_GREEDY_ATTEMPTS) as u64;
        let query = |attempt| Kind::query(PrefixQuery { prefix, lp_limit, attempt });
        let jobs: Vec<_> = attempts.map(|attempt| self.job(query(attempt))).collect();
        self.run_jobs(&jobs, Wanted::AnyAnswer, None)?;
        ControlFlow::Continue(())
    }

    /// Decides prefixes in order. If one has a completion, the completion becomes the witness.
    /// Returns [`Decision::Open`] after a prefix was settled and refuted, so that the caller can
    /// choose again which prefixes to decide.
    pub(super) fn decide(&mut self, prefixes: &[Vec<usize>]) -> ControlFlow<(), Decision> {
        let lp_limit = self.board.lp_limits().query;
        let first = if self.expects_refutations() {
            self.first_open(prefixes, |prefix| Kind::Decide { prefix })?
        } else {
            self.first_open(prefixes, |prefix| Kind::first_query(prefix, lp_limit))?
        };
        ControlFlow::Continue(match first {
            None => Decision::Refuted,
            Some((number, true)) => Decision::First(number),
            Some((number, false)) => match self.settle(&prefixes[number])? {
                Decision::First(_) => Decision::First(number),
                Decision::Refuted | Decision::Open => Decision::Open,
            },
        })
    }

    /// Decides one prefix.
    fn decide_one(&mut self, prefix: &[usize]) -> ControlFlow<(), Decision> {
        let lp_limit = self.board.lp_limits().query;
        let first =
            self.first_open(&[prefix.to_vec()], |prefix| Kind::first_query(prefix, lp_limit))?;
        match first {
            None => ControlFlow::Continue(Decision::Refuted),
            Some((_, true)) => ControlFlow::Continue(Decision::First(0)),
            Some((_, false)) => self.settle(prefix),
        }
    }

    /// Decides prefixes by queries of at most `lp_limit` LPs. A query without an answer is split
    /// into queries about one more row, until the work limit is reached; the result is then
    /// [`Decision::Open`].
    fn decide_within(
        &mut self,
        prefixes: &[Vec<usize>],
        lp_limit: u64,
        work_limit: &WorkLimit<'_>,
    ) -> ControlFlow<(), Decision> {
        let mut begin = 0;
        loop {
            let query = |prefix| Kind::first_query(prefix, lp_limit);
            let number = match self.first_open(&prefixes[begin..], query)? {
                None => return ControlFlow::Continue(Decision::Refuted),
                Some((number, true)) => {
                    return ControlFlow::Continue(Decision::First(begin + number));
                }
                Some((number, false)) => begin + number,
            };
            if work_limit.is_reached(self.control.work()) {
                return ControlFlow::Continue(Decision::Open);
            }
            match self.decide_below(&prefixes[number], lp_limit, work_limit)? {
                Decision::Refuted => begin = number + 1,
                Decision::First(_) => return ControlFlow::Continue(Decision::First(number)),
                Decision::Open => return ControlFlow::Continue(Decision::Open),
            }
        }
    }

    /// Like [`decide_within`](Self::decide_within) for one prefix, by its extensions by one row.
    fn decide_below(
        &mut self,
        prefix: &[usize],
        lp_limit: u64,
        work_limit: &WorkLimit<'_>,
    ) -> ControlFlow<(), Decision> {
        let n = self.board.n;
        if prefix.len() == n {
            self.witness = Some(prefix.to_vec());
            return ControlFlow::Continue(Decision::First(0));
        }
        let candidates = self.board.extensions(prefix, n);
        let decision = self.decide_within(&candidates, lp_limit, work_limit)?;
        if decision == Decision::Refuted {
            let row = prefix.len();
            let child =
                |longer: &Vec<usize>| Some((row * n + longer[row], self.refuted.remove(longer)?));
            let children: Vec<(usize, Refutation)> = candidates.iter().filter_map(child).collect();
            let refutation = Refutation::branch(n, Line::Row(row), &children);
            insert(&mut self.refuted, self.observer, prefix.to_vec(), refutation);
        }
        ControlFlow::Continue(decision)
    }

    /// Decides one prefix without a work limit. No strategy is known in advance to be the fastest,
    /// so all of them are tried with increasing work: one long query, many short ones in other
    /// orders, and queries about more rows.
    fn settle(&mut self, prefix: &[usize]) -> ControlFlow<(), Decision> {
        let known = lock(self.statistics).lp_limits.get(&prefix.len()).copied();
        let mut lp_limit = known.unwrap_or(params::SHORT_QUERY_LPS);
        let mut attempt = 0;
        let decision = loop {
            let mut query = |lp_limit_of_query| {
                attempt += 1;
                let query = PrefixQuery { prefix, lp_limit: lp_limit_of_query, attempt };
                self.job(Kind::Query { query, settling: Some(lp_limit) })
            };
            let mut jobs = vec![query(lp_limit)];
            let short = lp_limit / params::SHORT_QUERY_LPS / 2;
            jobs.extend((0..short).map(|_| query(params::SHORT_QUERY_LPS)));
            // A single solver comes to the longer prefixes after the queries. Of several, one begins
            // with the long query, fewer than half with short ones (if there are any), and the others
            // with longer prefixes.
            let solvers = self.solvers.len();
            let (place, below) = if solvers > 1 {
                (1, Some(solvers - 1 - (solvers / 2 - 1).min(short as usize)))
            } else {
                (jobs.len(), None)
            };
            let round = Round { lp_limit, before: self.control.work(), is_concurrent: solvers > 1 };
            jobs.insert(place, self.job(Kind::Below { prefix, round }));
            if self.run_jobs(&jobs, Wanted::AnyAnswer, below)?.is_some() {
                break Decision::First(0);
            }
            if self.refuted.contains_key(prefix) {
                break Decision::Refuted;
            }
            lp_limit *= 4;
        };
        lock(self.statistics).last_refuted = decision == Decision::Refuted;
        ControlFlow::Continue(decision)
    }

    /// Runs a job for each of these prefixes that is not refuted. Returns the first one that the
    /// jobs do not refute, and whether a completion of it was found, which then is the witness.
    fn first_open<'p>(
        &mut self,
        prefixes: &'p [Vec<usize>],
        kind: impl Fn(&'p [usize]) -> Kind<'p>,
    ) -> ControlFlow<(), Option<(usize, bool)>>
    where
        'a: 'p,
    {
        let numbers: Vec<usize> = (0..prefixes.len())
            .filter(|&number| !self.refuted.contains_key(&prefixes[number]))
            .collect();
        let jobs: Vec<_> =
            numbers.iter().map(|&number| self.job(kind(&prefixes[number]))).collect();
        let first = self.run_jobs(&jobs, Wanted::FirstOpen, None)?;
        ControlFlow::Continue(first.map(|(number, completed)| (numbers[number], completed)))
    }

    /// Creates a job, with the refutations of prefixes that extend its own.
    fn job<'j>(&self, kind: Kind<'j>) -> DecisionJob<'j>
    where
        'a: 'j,
    {
        let known = match kind {
            Kind::Query { .. } => Refutations::new(),
            Kind::Decide { prefix } | Kind::Below { prefix, .. } => {
                let longer = extending(&self.refuted, prefix);
                longer.map(|(prefix, refutation)| (prefix.clone(), refutation.clone())).collect()
            }
        };
        DecisionJob { kind, known, board: self.board, statistics: self.statistics }
    }

    /// Runs the jobs on all solvers. Stores refutations, and a completion as the witness. Returns
    /// the number of the selected job and whether its prefix has a completion.
    ///
    /// If `second` is given, a group of that many solvers begins with the second job, and each of
    /// the others is on its own. Otherwise the solvers are divided among the jobs.
    fn run_jobs(
        &mut self,
        jobs: &[DecisionJob<'_>],
        wanted: Wanted,
        second: Option<usize>,
    ) -> ControlFlow<(), Option<(usize, bool)>> {
        let level = jobs.first().map_or(0, |job| job.prefix().len());
        let Self { solvers, refuted, control, observer, .. } = self;
        let groups: Vec<_> = match second {
            Some(second) => {
                let (first, others) = solvers.split_at_mut(1);
                let (group, others) = others.split_at_mut(second);
                [first, group].into_iter().chain(others.chunks_mut(1)).collect()
            }
            None => {
                let number = jobs.len().clamp(1, solvers.len());
                let (each, larger) = (solvers.len() / number, solvers.len() % number);
                let (larger, others) = solvers.split_at_mut(larger * (each + 1));
                larger.chunks_mut(each + 1).chain(others.chunks_mut(each)).collect()
            }
        };
        let found = run_jobs(jobs, wanted, groups, control, &mut |event| {
            if let Event::Refuted(prefix, refutation) = event {
                insert(refuted, &mut **observer, prefix, refutation);
            }
            observer.report(&Progress { level, bound: None, nodes: control.nodes() })
        });
        if self.control.is_stopped() {
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(found.map(|(number, outcome)| {
            let completed = matches!(outcome, QueryOutcome::Completed(_));
            if let QueryOutcome::Completed(columns) = outcome {
                self.forget_after(&columns);
                self.witness = Some(columns);
            }
            (number, completed)
        }))
    }

    /// Forgets the refutations of prefixes that come after this solution and thus are no longer
    /// needed.
    fn forget_after(&mut self, columns: &[usize]) {
        self.refuted.retain(|prefix, _| prefix.as_slice() < columns);
    }
}

/// Returns the refutations of prefixes that extend this one.
fn extending<'r>(
    refuted: &'r Refutations,
    prefix: &'r [usize],
) -> impl Iterator<Item = (&'r Vec<usize>, &'r Refutation)> {
    let from = (Bound::Excluded(prefix), Bound::Unbounded);
    refuted.range::<[usize], _>(from).take_while(move |(longer, _)| longer.starts_with(prefix))
}

/// Adds a refutation, unless that of a shorter prefix makes it unnecessary, and removes those of
/// longer prefixes.
fn insert(
    refuted: &mut Refutations,
    observer: &mut dyn Observer,
    prefix: Vec<usize>,
    refutation: Refutation,
) {
    if (0..prefix.len()).any(|length| refuted.contains_key(&prefix[..length])) {
        return;
    }
    let longer: Vec<_> = extending(refuted, &prefix).map(|(longer, _)| longer.clone()).collect();
    longer.iter().for_each(|longer| drop(refuted.remove(longer)));
    refuted.insert(prefix.clone(), refutation);
    observer.refuted(&prefix, refuted);
}

/// Part of the work of a decider.
struct DecisionJob<'a> {
    kind: Kind<'a>,
    /// Refutations of prefixes that extend the job's.
    known: Refutations,
    board: &'a Board,
    statistics: &'a Mutex<Statistics>,
}

/// A round in which a prefix is to be settled.
#[derive(Clone, Copy)]
struct Round {
    lp_limit: u64,
    /// The total work before the round.
    before: u64,
    /// True if there are several solvers.
    is_concurrent: bool,
}

/// The limit on the work of a job about longer prefixes.
struct WorkLimit<'a> {
    round: Round,
    task: Task<'a>,
    /// The total work when the job began.
    start: u64,
    /// The number of solvers of the job.
    solvers: u64,
}

impl WorkLimit<'_> {
    /// Returns whether the job, whose control has counted `work` in all, has done, on average per
    /// solver, as much work as the LP limit of the round and as all other jobs of the round so far.
    /// In a concurrent round, where those go on, it has to do twice as much as they have.
    fn is_reached(&self, work: u64) -> bool {
        let Round { lp_limit, before, is_concurrent } = self.round;
        let own = work - self.start;
        let others = (self.task.total_work() - before).saturating_sub(own);
        let factor = if is_concurrent { 2 } else { 1 };
        own >= self.solvers * lp_limit.max(factor * others)
    }
}

/// The kind of a job.
#[derive(Clone, Copy)]
enum Kind<'a> {
    /// A query. `settling` is the LP limit of the round if its prefix is being settled.
    Query { query: PrefixQuery<'a>, settling: Option<u64> },
    /// Queries about longer prefixes in a round.
    Below { prefix: &'a [usize], round: Round },
    /// Queries about a prefix and longer ones, until the prefix is decided.
    Decide { prefix: &'a [usize] },
}

impl<'a> Kind<'a> {
    const fn query(query: PrefixQuery<'a>) -> Self {
        Self::Query { query, settling: None }
    }

    const fn first_query(prefix: &'a [usize], lp_limit: u64) -> Self {
        Self::query(PrefixQuery { prefix, lp_limit, attempt: 0 })
    }
}

impl Job for DecisionJob<'_> {
    fn prefix(&self) -> &[usize] {
        match self.kind {
            Kind::Query { query, .. } => query.prefix,
            Kind::Below { prefix, .. } | Kind::Decide { prefix } => prefix,
        }
    }

    fn run(
        &self,
        solvers: &mut [Box<dyn QuerySolver>],
        task: Task<'_>,
        refuted: &mut dyn FnMut(Vec<usize>, Refutation),
    ) -> QueryOutcome {
        match self.kind {
            Kind::Query { query, settling } => {
                let outcome = solvers[0].solve(&query, task);
                if let Some(lp_limit) = settling
                    && matches!(outcome, QueryOutcome::Refuted(_) | QueryOutcome::Completed(_))
                {
                    lock(self.statistics).lp_limits.insert(query.prefix.len(), lp_limit);
                }
                outcome
            }
            Kind::Below { prefix, round } => {
                let start = task.total_work();
                let work_limit = WorkLimit { round, task, start, solvers: solvers.len() as u64 };
                let lp_limit = self.board.lp_limits().query.max(round.lp_limit / 32);
                self.decide(solvers, task, refuted, |decider| {
                    decider.decide_below(prefix, lp_limit, &work_limit)
                })
            }
            Kind::Decide { prefix } => {
                self.decide(solvers, task, refuted, |decider| decider.decide_one(prefix))
            }
        }
    }
}

impl DecisionJob<'_> {
    /// Decides the prefix of the job with these solvers.
    fn decide(
        &self,
        solvers: &mut [Box<dyn QuerySolver>],
        task: Task<'_>,
        refuted: &mut dyn FnMut(Vec<usize>, Refutation),
        decide: impl FnOnce(&mut Decider<'_>) -> ControlFlow<(), Decision>,
    ) -> QueryOutcome {
        let control = Control::within(task);
        let mut observer = JobObserver { prefix: self.prefix(), refuted };
        let mut decider = Decider {
            board: self.board,
            solvers,
            refuted: self.known.clone(),
            witness: None,
            control: &control,
            statistics: self.statistics,
            observer: &mut observer,
        };
        match decide(&mut decider) {
            ControlFlow::Break(()) => QueryOutcome::Stopped,
            ControlFlow::Continue(Decision::Open) => QueryOutcome::GivenUp,
            ControlFlow::Continue(Decision::First(_)) => {
                decider.witness.map_or(QueryOutcome::GivenUp, QueryOutcome::Completed)
            }
            ControlFlow::Continue(Decision::Refuted) => {
                let refutation = decider.refuted.remove(self.prefix());
                refutation.map_or(QueryOutcome::GivenUp, QueryOutcome::Refuted)
            }
        }
    }
}

/// The observer of a job: passes the refutations of longer prefixes on.
struct JobObserver<'a> {
    prefix: &'a [usize],
    refuted: &'a mut dyn FnMut(Vec<usize>, Refutation),
}

impl Observer for JobObserver<'_> {
    fn refuted(&mut self, prefix: &[usize], all: &Refutations) {
        // That of its own prefix is the outcome of the job.
        if prefix != self.prefix
            && let Some(refutation) = all.get(prefix)
        {
            (self.refuted)(prefix.to_vec(), refutation.clone());
        }
    }

    fn report(&mut self, _: &Progress) -> ControlFlow<()> {
        // The control of the job is stopped with the decider that it is for.
        ControlFlow::Continue(())
    }
}
