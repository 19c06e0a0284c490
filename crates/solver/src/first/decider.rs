//! Decides prefixes: each has a completion or is refuted.

use std::collections::BTreeMap;
use std::ops::{Bound, ControlFlow};
use std::sync::Mutex;
use std::time::{Duration, Instant};
use std::{iter, mem};

use super::board::Board;
use super::concurrent_queries::{Event, Job as _, PrefixQuery, Wanted, run_jobs};
use super::control::{Control, Solvers};
use super::decision_job::{DecisionJob, Kind};
use super::lexicographic::Refutations;
use super::params;
use super::query::QueryOutcome;
use super::round::WorkLimit;
use crate::progress::Progress;
use crate::threads::lock;
use nqueens_proof::first::{Line, Refutation};

/// Statistics of the prefixes decided so far.
#[derive(Debug)]
pub(super) struct Statistics {
    /// By number of queens: the LP limit of the last round in which a query settled a prefix. The
    /// next prefix is about as hard, and smaller limits would be wasted: measured on n = 97, 8.8
    /// instead of 13.5 million nodes; n = 58 to 93 about the same.
    pub(super) lp_limits: BTreeMap<usize, u64>,
    /// True if the prefix settled last was refuted; the next one usually ends in the same way.
    last_refuted: bool,
    /// The mean time of recent refutations, in s; `None` before the first one.
    refutation_s: Option<f64>,
    slow: SlowAnswers,
}

/// The time that slow answers took, in s. The weight of each is halved by the next one.
#[derive(Debug, Default)]
struct SlowAnswers {
    completed_s: f64,
    refuted_s: f64,
}

impl Statistics {
    /// Creates the statistics of a run on the board of size `n`. On boards of odd size, most
    /// prefixes that have to be settled are refuted.
    pub(super) fn new(n: usize) -> Self {
        Self {
            lp_limits: BTreeMap::new(),
            last_refuted: !n.is_multiple_of(2),
            refutation_s: None,
            slow: SlowAnswers::default(),
        }
    }

    /// Adds a completion, which took this time.
    pub(super) fn add_completion(&mut self, took: Duration) {
        if self.is_slow(took) {
            self.slow.halve();
            self.slow.completed_s += took.as_secs_f64();
        }
    }

    /// Adds a refutation, which took this time.
    pub(super) fn add_refutation(&mut self, took: Duration) {
        let took_s = took.as_secs_f64();
        if self.is_slow(took) {
            self.slow.halve();
            self.slow.refuted_s += took_s;
        }
        let mean = self.refutation_s.unwrap_or(took_s);
        self.refutation_s = Some(mean + params::WEIGHT_OF_REFUTATION * (took_s - mean));
    }

    /// Returns whether this time is much longer than recent refutations took.
    pub(super) fn is_slow(&self, took: Duration) -> bool {
        let usual_s = self.refutation_s.map_or(0.0, |mean| params::SLOW_RATIO * mean);
        took.as_secs_f64() >= usual_s.max(params::LEAST_SLOW_S)
    }

    /// Returns whether the next prefix that takes long to decide probably has a completion.
    pub(super) fn expects_completion(&self) -> bool {
        self.slow.completed_s >= self.slow.refuted_s
    }
}

impl SlowAnswers {
    fn halve(&mut self) {
        self.completed_s /= 2.0;
        self.refuted_s /= 2.0;
    }
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
    pub(super) solvers: &'a mut Solvers,
    /// True if the solvers are threads of this process. Remote solvers share the workers, where
    /// more queries take the time of others.
    pub(super) is_local: bool,
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
        // On boards of odd size, dives find nearly all completions.
        let are_dives_enough = !self.board.n.is_multiple_of(2);
        let query = |attempt| {
            let only_dives = attempt > 0 && are_dives_enough;
            Kind::query(PrefixQuery { only_dives, ..PrefixQuery::new(prefix, lp_limit, attempt) })
        };
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
    pub(super) fn decide_one(&mut self, prefix: &[usize]) -> ControlFlow<(), Decision> {
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
        work_limit: Option<&WorkLimit<'_>>,
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
            if work_limit.is_some_and(|limit| limit.is_reached(self.control.work())) {
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
    pub(super) fn decide_below(
        &mut self,
        prefix: &[usize],
        lp_limit: u64,
        work_limit: Option<&WorkLimit<'_>>,
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
    pub(super) fn settle(&mut self, prefix: &[usize]) -> ControlFlow<(), Decision> {
        let known = lock(self.statistics).lp_limits.get(&prefix.len()).copied();
        let mut lp_limit = known.unwrap_or(params::SHORT_QUERY_LPS);
        let mut attempt = 0;
        let began = Instant::now();
        let decision = loop {
            self.solvers.append(&mut self.control.take_idle_solvers());
            let (jobs, groups) = self.round(prefix, lp_limit, &mut attempt);
            if self.run_jobs(&jobs, Wanted::AnyAnswer, groups)?.is_some() {
                break Decision::First(0);
            }
            if self.refuted.contains_key(prefix) {
                break Decision::Refuted;
            }
            lp_limit *= 4;
        };
        let mut statistics = lock(self.statistics);
        statistics.last_refuted = decision == Decision::Refuted;
        if statistics.last_refuted {
            statistics.add_refutation(began.elapsed());
        } else {
            statistics.add_completion(began.elapsed());
        }
        drop(statistics);
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
    pub(super) fn job<'j>(&self, kind: Kind<'j>) -> DecisionJob<'j>
    where
        'a: 'j,
    {
        let known = match kind {
            Kind::Query { settling: Some(_), .. } => Refutations::new(),
            Kind::Query { .. } if self.board.n.is_multiple_of(2) => Refutations::new(),
            Kind::Query { query: PrefixQuery { prefix, .. }, .. }
            | Kind::Decide { prefix }
            | Kind::Below { prefix, .. } => {
                let longer = extending(&self.refuted, prefix);
                longer.map(|(prefix, refutation)| (prefix.clone(), refutation.clone())).collect()
            }
        };
        let Self { board, statistics, is_local, .. } = *self;
        DecisionJob { kind, known, board, statistics, is_local }
    }

    /// Runs the jobs on all solvers, and on those of the outer runs that are idle. Stores
    /// refutations, and a completion as the witness. Returns the number of the selected job and
    /// whether its prefix has a completion.
    ///
    /// The groups that begin with the first jobs have these sizes, if they are given, and each
    /// further solver is on its own. Otherwise the solvers are divided among the jobs.
    fn run_jobs(
        &mut self,
        jobs: &[DecisionJob<'_>],
        wanted: Wanted,
        groups: Option<Vec<usize>>,
    ) -> ControlFlow<(), Option<(usize, bool)>> {
        let level = jobs.first().map_or(0, |job| job.prefix().len());
        let Self { solvers, refuted, control, observer, .. } = self;
        let mut all = mem::take(*solvers);
        all.append(&mut control.take_new_solvers());
        let sizes = match groups {
            Some(sizes) => sizes.into_iter().chain(iter::repeat_n(1, all.len())).collect(),
            // A query is for one solver.
            None if jobs.iter().all(|job| matches!(job.kind, Kind::Query { .. })) => {
                vec![1; all.len()]
            }
            None => {
                let number = jobs.len().clamp(1, all.len());
                let (each, larger) = (all.len() / number, all.len() % number);
                (0..number).map(|group| each + usize::from(group < larger)).collect()
            }
        };
        let groups = groups_of(all, &sizes);
        let (found, all) = run_jobs(jobs, wanted, groups, control, &mut |event| {
            if let Event::Refuted(prefix, refutation) = event {
                insert(refuted, &mut **observer, prefix, refutation);
            }
            observer.report(&Progress { level, bound: None, nodes: control.nodes() })
        });
        **solvers = all;
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

/// Divides solvers into groups of these sizes, as far as there are enough.
fn groups_of(solvers: Solvers, sizes: &[usize]) -> Vec<Solvers> {
    let mut solvers = solvers.into_iter();
    let groups = sizes.iter().map(|&size| solvers.by_ref().take(size).collect());
    groups.filter(|group: &Solvers| !group.is_empty()).collect()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_completion_is_expected_until_slow_queries_are_refuted_for_longer() {
        let ms = Duration::from_millis;
        let mut statistics = Statistics::new(9);
        assert!(statistics.expects_completion());
        // Quick refutations are usual, whatever follows.
        (0..100).for_each(|_| statistics.add_refutation(ms(10)));
        assert!(statistics.expects_completion());
        statistics.add_completion(ms(400));
        statistics.add_refutation(ms(180));
        assert!(statistics.expects_completion(), "200 ms and 180 ms");
        statistics.add_refutation(ms(180));
        assert!(!statistics.expects_completion(), "100 ms and 270 ms");
        statistics.add_completion(ms(20));
        assert!(!statistics.expects_completion(), "it was not slow");
        statistics.add_completion(ms(200));
        assert!(statistics.expects_completion(), "250 ms and 135 ms");
    }

    #[test]
    fn an_answer_is_slow_if_most_refutations_take_less_time() {
        let ms = Duration::from_millis;
        let mut statistics = Statistics::new(9);
        assert_eq!([49, 51].map(|took| statistics.is_slow(ms(took))), [false, true]);
        (0..100).for_each(|_| statistics.add_refutation(ms(100)));
        assert_eq!([290, 310].map(|took| statistics.is_slow(ms(took))), [false, true]);
    }
}
