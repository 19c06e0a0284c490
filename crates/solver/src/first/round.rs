//! The rounds in which a prefix is settled: their jobs, and the limit on the work of one of them.

use std::iter;

use super::concurrent_queries::PrefixQuery;
use super::control::Task;
use super::decider::Decider;
use super::decision_job::{DecisionJob, Kind};
use super::params;

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
    pub(super) round: Round,
    pub(super) task: Task<'a>,
    /// The total work when the job began.
    pub(super) start: u64,
    /// The number of solvers of the job.
    pub(super) solvers: u64,
}

impl WorkLimit<'_> {
    /// Returns whether the job, whose control has counted `work` in all, has done, on average per
    /// solver, as much work as the LP limit of the round, as its least work below, and as all other
    /// jobs of the round so far. In a concurrent round, where those go on, it has to do twice as
    /// much as they have. The work of a remote solver counts only when it has answered, so a job
    /// with several of them goes on as long as others do, or most of its solvers would be idle.
    /// Measured with three workers on n = 100: 426 s, and 297 s with this and with tasks that
    /// workers give back.
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

impl<'a> Decider<'a> {
    /// Returns the jobs of a round in which this prefix is to be settled, in the order in which
    /// they are begun, and the sizes of the groups that begin with the first ones, if there are
    /// several solvers. `attempt` is the number of queries so far.
    ///
    /// Where longer prefixes have [least work](super::board::Board::least_work_below), two or three
    /// solvers begin with them; of more, one begins with the query, since a row has only few
    /// prefixes that take long. Measured with one thread, after a query of the round's LP limit and
    /// before it, in s: n = 66 13.4, 11.4; 74 4.5, 3.6; 80 6.4, 5.3; 82 13.1, 10.6; 84 8.1, 9.6; 88
    /// 18.5, 16.2. With two threads, one of them with the query, and both with longer prefixes
    /// (means of six runs and of three): n = 66 10.6, 9.5; 80 4.4, 4.4; 82 8.0, 7.1; 84 6.4, 5.2;
    /// 86 7.6, 8.3. More solvers were not compared.
    ///
    /// Elsewhere, a single solver comes to the longer prefixes after the queries. Of several, one
    /// begins with the long query; on boards of even size, where long queries decide nearly all
    /// prefixes, one with that of the next round; fewer than half with short ones (if there are
    /// any), and the others with longer prefixes. Measured with two solvers, n = 58: 7.2 s with the
    /// query of the next round, 9.7 s without it. Several remote solvers may share a worker, where
    /// that query would take the time of the others.
    pub(super) fn round<'j>(
        &self,
        prefix: &'j [usize],
        lp_limit: u64,
        attempt: &mut u64,
    ) -> (Vec<DecisionJob<'j>>, Option<Vec<usize>>)
    where
        'a: 'j,
    {
        let mut query = |lp_limit_of_query| {
            *attempt += 1;
            let query = PrefixQuery::new(prefix, lp_limit_of_query, *attempt);
            self.job(Kind::Query { query, settling: Some(lp_limit) })
        };
        let solvers = self.solvers.len();
        let is_concurrent = solvers > 1;
        let least_below = self.board.least_work_below();
        let begins_below = least_below > 0;
        let mut jobs = vec![query(lp_limit)];
        if is_concurrent && self.is_local && !begins_below && self.board.n.is_multiple_of(2) {
            jobs.push(query(4 * lp_limit));
        }
        let long = jobs.len();
        let short = (lp_limit / params::SHORT_QUERY_LPS / 2) as usize;
        jobs.extend((0..short).map(|_| query(params::SHORT_QUERY_LPS)));
        let (before, is_local) = (self.control.work(), self.is_local);
        let round = Round { lp_limit, least_below, before, is_concurrent, is_local };
        let below = self.job(Kind::Below { prefix, round: Some(round) });
        let place = match (begins_below, is_concurrent) {
            (true, _) => 0,
            (false, true) => long,
            (false, false) => jobs.len(),
        };
        jobs.insert(place, below);
        let groups = is_concurrent.then(|| {
            if begins_below {
                return if solvers > 3 { vec![solvers - 1, 1] } else { vec![solvers] };
            }
            let below = (solvers - long).saturating_sub((solvers / 2 - 1).min(short));
            iter::repeat_n(1, long).chain([below]).collect()
        });
        (jobs, groups)
    }
}

#[cfg(test)]
mod tests {
    use std::ops::ControlFlow;
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::thread;
    use std::time::Duration;

    use super::super::board::Board;
    use super::super::concurrent_queries::{Job, Wanted, run_jobs};
    use super::super::control::{Control, Solvers};
    use super::super::decider::{Observer, Statistics};
    use super::super::lexicographic::Refutations;
    use super::super::query::{QueryOutcome, QuerySolverFactory, query_solvers};
    use super::super::schedule::Lag;
    use super::*;
    use crate::progress::Progress;
    use nqueens_proof::first::Refutation;

    struct Unobserved;

    impl Observer for Unobserved {
        fn refuted(&mut self, _: &[usize], _: &Refutations) {}

        fn report(&mut self, _: &Progress) -> ControlFlow<()> {
            ControlFlow::Continue(())
        }
    }

    /// Returns the jobs of a round for a board of this size: the LP limit of each query, and 0 for
    /// longer prefixes; and the sizes of the groups.
    fn round(
        n: usize,
        lp_limit: u64,
        threads: usize,
        is_local: bool,
    ) -> (Vec<u64>, Option<Vec<usize>>) {
        let board = Board { n, placed: Vec::new(), blocked: Vec::new() };
        let statistics = Mutex::new(Statistics::new(n));
        let (control, mut observer) = (Control::default(), Unobserved);
        let decider = Decider {
            board: &board,
            solvers: &mut query_solvers(threads, n, &[], &[]),
            is_local,
            refuted: Refutations::new(),
            witness: None,
            control: &control,
            statistics: &statistics,
            observer: &mut observer,
        };
        let (jobs, groups) = decider.round(&[1], lp_limit, &mut 0);
        let lp_limit = |job: &DecisionJob<'_>| match job.kind {
            Kind::Query { query, .. } => query.lp_limit,
            Kind::Below { .. } | Kind::Decide { .. } => 0,
        };
        (jobs.iter().map(lp_limit).collect(), groups)
    }

    #[test]
    fn most_solvers_begin_with_longer_prefixes_that_have_least_work() {
        for is_local in [true, false] {
            assert_eq!(round(66, 16, 1, is_local), (vec![0, 16], None));
            assert_eq!(round(66, 64, 1, is_local), (vec![0, 64, 16, 16], None));
            assert_eq!(round(66, 64, 3, is_local), (vec![0, 64, 16, 16], Some(vec![3])));
            assert_eq!(round(66, 64, 4, is_local), (vec![0, 64, 16, 16], Some(vec![3, 1])));
        }
    }

    #[test]
    fn other_rounds_have_long_queries_beside_longer_prefixes() {
        for n in [64, 67] {
            assert_eq!(round(n, 16, 1, true), (vec![16, 0], None));
            assert_eq!(round(n, 64, 1, true), (vec![64, 16, 16, 0], None));
            assert_eq!(round(n, 64, 6, false), (vec![64, 0, 16, 16], Some(vec![1, 3])));
        }
        assert_eq!(round(64, 16, 3, true), (vec![16, 64, 0], Some(vec![1, 1, 1])));
        assert_eq!(round(64, 64, 2, true), (vec![64, 256, 0, 16, 16], Some(vec![1, 1, 0])));
        assert_eq!(round(64, 16, 3, false), (vec![16, 0], Some(vec![1, 2])));
        assert_eq!(round(67, 16, 3, true), (vec![16, 0], Some(vec![1, 2])));
    }

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
            let groups = (0..2).map(|_| vec![QuerySolverFactory::remote(8).create()]).collect();
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
        assert!(!limit.is_reached(150), "more than the others, but not twice as much");
    }
}
