//! The jobs of a decider: queries, and series of them about longer prefixes.

use std::ops::ControlFlow;
use std::sync::Mutex;
use std::time::Duration;

use super::board::Board;
use super::concurrent_queries::{Job, PrefixQuery};
use super::control::{Control, Solvers, Task};
use super::decider::{Decider, Decision, Observer, Statistics};
use super::lexicographic::Refutations;
use super::params;
use super::query::QueryOutcome;
use super::round::{Round, WorkLimit};
use super::schedule::Lag;
use crate::progress::Progress;
use crate::threads::lock;
use nqueens_proof::first::Refutation;

/// Part of the work of a decider.
pub(super) struct DecisionJob<'a> {
    pub(super) kind: Kind<'a>,
    /// Refutations of prefixes that extend the job's.
    pub(super) known: Refutations,
    pub(super) board: &'a Board,
    pub(super) statistics: &'a Mutex<Statistics>,
    /// As for the decider.
    pub(super) is_local: bool,
}

/// The kind of a job.
#[derive(Clone, Copy)]
pub(super) enum Kind<'a> {
    /// A query. `settling` is the LP limit of the round if its prefix is being settled.
    Query { query: PrefixQuery<'a>, settling: Option<u64> },
    /// Queries about longer prefixes: in a round, or until the prefix is decided.
    Below { prefix: &'a [usize], round: Option<Round> },
    /// Queries about a prefix and longer ones, until the prefix is decided.
    Decide { prefix: &'a [usize] },
}

impl<'a> Kind<'a> {
    /// Returns the prefix that it is about.
    const fn prefix(self) -> &'a [usize] {
        match self {
            Self::Query { query, .. } => query.prefix,
            Self::Below { prefix, .. } | Self::Decide { prefix } => prefix,
        }
    }

    pub(super) const fn query(query: PrefixQuery<'a>) -> Self {
        Self::Query { query, settling: None }
    }

    pub(super) const fn first_query(prefix: &'a [usize], lp_limit: u64) -> Self {
        Self::query(PrefixQuery::new(prefix, lp_limit, 0))
    }
}

impl Job for DecisionJob<'_> {
    fn prefix(&self) -> &[usize] {
        self.kind.prefix()
    }

    fn run(
        &self,
        solvers: &mut Solvers,
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
                let (start, number) = (task.total_work(), solvers.len() as u64);
                let work_limit =
                    round.map(|round| WorkLimit { round, task, start, solvers: number });
                let of_round = round.map_or(0, |round| round.lp_limit / 32);
                let lp_limit = self.board.lp_limits().query.max(of_round);
                self.decide(solvers, task, refuted, |decider| {
                    decider.decide_below(prefix, lp_limit, work_limit.as_ref())
                })
            }
            Kind::Decide { prefix } => {
                self.decide(solvers, task, refuted, |decider| decider.decide_one(prefix))
            }
        }
    }

    fn record(&self, outcome: &QueryOutcome, took: Duration) {
        // A job that decides a prefix consists of such queries.
        if matches!(self.kind, Kind::Query { settling: None, .. }) {
            let mut statistics = lock(self.statistics);
            match outcome {
                QueryOutcome::Completed(_) => statistics.add_completion(took),
                QueryOutcome::Refuted(_) => statistics.add_refutation(took),
                QueryOutcome::GivenUp | QueryOutcome::Stopped => {}
            }
        }
    }

    /// Remote solvers help only if a completion is expected: otherwise the coordinator may have to
    /// check the refutations of all longer prefixes. With three workers and n = 93 the difference
    /// was within the variation of the runs.
    fn is_helped(&self, helpers: u64, lag: Lag) -> bool {
        helpers == 0
            && matches!(self.kind, Kind::Query { .. })
            && self.is_waited_for(lag)
            && (self.is_local || lock(self.statistics).expects_completion())
    }

    fn helper(&self) -> Self {
        let kind = Kind::Below { prefix: self.kind.prefix(), round: None };
        Self { kind, known: self.known.clone(), ..*self }
    }

    fn is_waited_for(&self, Lag { age, jobs }: Lag) -> bool {
        if self.board.n.is_multiple_of(2) || !self.is_first_attempt() {
            return false;
        }
        let statistics = lock(self.statistics);
        let is_far_behind = jobs.is_none_or(|jobs| jobs >= params::MOST_JOBS_AHEAD);
        statistics.is_slow(age) && (is_far_behind || statistics.expects_completion())
    }
}

impl DecisionJob<'_> {
    /// Returns whether the job is the first about its prefix, which is not being settled.
    const fn is_first_attempt(&self) -> bool {
        matches!(self.kind, Kind::Query { settling: None, .. } | Kind::Decide { .. })
    }

    /// Decides the prefix of the job with these solvers.
    fn decide(
        &self,
        solvers: &mut Solvers,
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
            is_local: self.is_local,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn later_jobs_wait_for_a_slow_one_if_a_completion_is_expected_or_they_are_far_ahead() {
        let second = Duration::from_secs(1);
        let statistics = [8, 9].map(|n| Mutex::new(Statistics::new(n)));
        let boards = [8, 9].map(|n| Board { n, placed: Vec::new(), blocked: Vec::new() });
        let job = |odd: usize, settling| DecisionJob {
            kind: Kind::Query { query: PrefixQuery::new(&[1], 15, 0), settling },
            known: Refutations::new(),
            board: &boards[odd],
            statistics: &statistics[odd],
            is_local: true,
        };
        let waits = |job: DecisionJob<'_>, age| {
            let lags = [Some(1), Some(params::MOST_JOBS_AHEAD), None].map(|jobs| Lag { age, jobs });
            lags.map(|lag| job.is_waited_for(lag))
        };
        assert_eq!(waits(job(1, None), second), [true; 3]);
        assert_eq!(waits(job(1, None), second / 100), [false; 3], "it is not slow");
        assert_eq!(waits(job(1, Some(16)), second), [false; 3], "it is being settled");
        assert_eq!(waits(job(0, None), second), [false; 3], "the size is even");
        // After a slow refutation, no completion is expected.
        job(1, None).record(&QueryOutcome::Refuted(Refutation::search()), second / 10);
        assert_eq!(waits(job(1, None), second), [false, true, true]);
        let lag = Lag { age: second, jobs: None };
        assert_eq!([0, 1].map(|helpers| job(1, None).is_helped(helpers, lag)), [true, false]);
        let remote = DecisionJob { is_local: false, ..job(1, None) };
        assert!(!remote.is_helped(0, lag));
    }
}
