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

/// A round in which a prefix is to be settled.
#[derive(Clone, Copy)]
pub(super) struct Round {
    pub(super) lp_limit: u64,
    /// The least work in queries about longer prefixes, per solver, in units of about one LP.
    pub(super) least_below: u64,
    /// The total work before the round.
    pub(super) before: u64,
    /// True if there are several solvers.
    pub(super) is_concurrent: bool,
    /// As for the decider.
    pub(super) is_local: bool,
}

/// The limit on the work of a job about longer prefixes.
pub(super) struct WorkLimit<'a> {
    round: Round,
    task: Task<'a>,
    /// The total work when the job began.
    start: u64,
    /// The number of solvers of the job.
    solvers: u64,
}

impl WorkLimit<'_> {
    /// Returns whether the job, whose control has counted `work` in all, has done, on average per
    /// solver, as much work as the LP limit of the round, as its least work below, and as all other
    /// jobs of the round so far. In a concurrent round, where those go on, it has to do twice as much
    /// as they have. The work of a remote solver counts only when it has answered, so a job with
    /// several of them goes on as long as others do, or most of its solvers would be idle. Measured
    /// with three workers on n = 100: 426 s, and 297 s with this and with tasks that workers give back.
    pub(super) fn is_reached(&self, work: u64) -> bool {
        let Round { lp_limit, least_below, before, is_concurrent, is_local } = self.round;
        if !is_local && self.solvers > 1 && self.task.others_are_busy() {
            return false;
        }
        let own = work - self.start;
        let others = (self.task.total_work() - before).saturating_sub(own);
        let factor = if is_concurrent { 2 } else { 1 };
        own >= self.solvers * lp_limit.max(factor * others).max(least_below)
    }
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
    /// check the refutations of all longer prefixes. With three workers and n = 93 the difference was
    /// within the variation of the runs.
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
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::thread;

    use super::super::concurrent_queries::{Wanted, run_jobs};
    use super::super::query::query_solver;
    use super::*;

    /// A job that ends at its work limit with this number of solvers or, without a limit, once the
    /// other one has gone on beyond its own.
    struct TestJob<'a> {
        limit: Option<(Round, u64)>,
        went_on: &'a AtomicBool,
    }

    impl Job for TestJob<'_> {
        fn prefix(&self) -> &[usize] {
            &[]
        }

        fn run(
            &self,
            _: &mut Solvers,
            task: Task<'_>,
            _: &mut dyn FnMut(Vec<usize>, Refutation),
        ) -> QueryOutcome {
            let Some((round, solvers)) = self.limit else {
                while !self.went_on.load(Ordering::Relaxed) && !task.is_stopped() {
                    thread::yield_now();
                }
                return QueryOutcome::GivenUp;
            };
            let work_limit = WorkLimit { round, task, start: 0, solvers };
            while !work_limit.is_reached(1000) {
                self.went_on.store(true, Ordering::Relaxed);
                thread::yield_now();
            }
            // Ends the other job.
            let went_on = self.went_on.swap(true, Ordering::Relaxed);
            if went_on { QueryOutcome::GivenUp } else { QueryOutcome::Stopped }
        }

        fn record(&self, _: &QueryOutcome, _: Duration) {}

        fn is_helped(&self, _: u64, _: Lag) -> bool {
            false
        }

        fn helper(&self) -> Self {
            Self { ..*self }
        }

        fn is_waited_for(&self, _: Lag) -> bool {
            false
        }
    }

    #[test]
    fn a_job_with_several_remote_solvers_goes_on_as_long_as_others_do() {
        for (is_local, solvers, goes_on) in [(false, 2, true), (false, 1, false), (true, 2, false)]
        {
            let round =
                Round { lp_limit: 1, least_below: 0, before: 0, is_concurrent: true, is_local };
            let went_on = AtomicBool::new(false);
            let jobs =
                [Some((round, solvers)), None].map(|limit| TestJob { limit, went_on: &went_on });
            let groups = (0..2).map(|_| vec![query_solver(8, &[], &[])]).collect();
            let control = Control::default();
            let mut observe = |_| ControlFlow::Continue(());
            let (found, _) = run_jobs(&jobs, Wanted::FirstOpen, groups, &control, &mut observe);
            let outcome = if goes_on { QueryOutcome::GivenUp } else { QueryOutcome::Stopped };
            assert_eq!(found, Some((0, outcome)), "{is_local}, {solvers}");
        }
    }

    #[test]
    fn longer_prefixes_have_least_work() {
        let control = Control::default();
        let round = Round {
            lp_limit: 16,
            least_below: 100,
            before: 0,
            is_concurrent: false,
            is_local: true,
        };
        let task = Task::alone(&control);
        let limit = WorkLimit { round, task, start: 0, solvers: 2 };
        task.add_lps(199);
        assert!(!limit.is_reached(199));
        task.add_lps(1);
        assert!(limit.is_reached(200));
        // Others have done more than that, and go on.
        let round = Round { is_concurrent: true, ..round };
        let limit = WorkLimit { round, task, start: 0, solvers: 1 };
        task.add_lps(60);
        assert!(!limit.is_reached(119) && limit.is_reached(260));
    }

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
