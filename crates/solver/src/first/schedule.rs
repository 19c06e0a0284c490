//! The order in which groups of solvers begin concurrent jobs and help with others.
//!
//! Jobs are begun in order. But the later ones are useless if an earlier one has a completion. So a
//! group may help with that one instead, and the later ones may be postponed: they are stopped, and
//! begun again when it is done.

use std::collections::BTreeSet;
use std::mem;
use std::ops::RangeFrom;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::threads::lock;

/// The next step of a group of solvers.
#[derive(Debug)]
pub(super) struct Turn {
    /// The number of the job.
    pub(super) job: usize,
    /// True if the group helps with the job, false if it begins it.
    pub(super) is_help: bool,
    /// Set when the group is to stop: the job is done or postponed.
    pub(super) stopped: Arc<AtomicBool>,
}

/// The lag of a job that was begun and is not done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Lag {
    /// The time since it was begun.
    pub(super) age: Duration,
    /// The number of jobs from it to the next one to begin; `None` if there is none to begin.
    pub(super) jobs: Option<usize>,
}

/// The policy of a schedule.
pub(super) trait Policy {
    /// Returns whether one more group helps with a job with this lag, besides so many helpers.
    fn is_helped(&self, job: usize, helpers: u64, lag: Lag) -> bool;

    /// Returns whether the next job to begin, if any, waits for this one with this lag.
    fn is_waited_for(&self, job: usize, lag: Lag) -> bool;
}

/// The schedule of jobs with numbers from 0 on.
#[derive(Debug)]
pub(super) struct Schedule(Mutex<State>);

/// The state of a schedule.
#[derive(Debug)]
struct State {
    jobs: Vec<JobState>,
    /// The first job that was never begun.
    next: usize,
    /// The jobs before `next` that are to be begun again.
    postponed: BTreeSet<usize>,
    /// The last job for which later ones were postponed.
    postponed_for: Option<usize>,
}

/// The state of a job.
#[derive(Debug)]
struct JobState {
    /// True once the job is answered or abandoned.
    is_done: bool,
    /// The time when it was begun last.
    begun: Instant,
    /// The number of its helpers since then.
    helpers: u64,
    /// The flag of the groups that work on it since then.
    stopped: Arc<AtomicBool>,
}

impl JobState {
    fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }

    fn stop(&self) {
        self.stopped.store(true, Ordering::Relaxed);
    }
}

impl State {
    /// Returns the next job to begin.
    fn beginning(&self) -> Option<usize> {
        let is_open = |job: &JobState| !job.is_done;
        let new = self.jobs.get(self.next).is_some_and(is_open).then_some(self.next);
        self.postponed.first().copied().or(new)
    }

    /// Returns the job of the next turn, and whether the group helps with it.
    fn next_turn(&self, policy: &impl Policy) -> Option<(usize, bool)> {
        let beginning = self.beginning();
        let begun = self.jobs.iter().enumerate().take(beginning.unwrap_or(self.next));
        // Those that are to stop are done or will be put back.
        for (number, job) in begun.filter(|(_, job)| !job.is_stopped()) {
            let jobs = beginning.map(|next| next - number);
            let lag = Lag { age: job.begun.elapsed(), jobs };
            if policy.is_helped(number, job.helpers, lag) {
                return Some((number, true));
            }
            if policy.is_waited_for(number, lag) {
                return None;
            }
        }
        beginning.map(|number| (number, false))
    }

    /// Marks a job as done. Returns the number of its helpers and its age, or `None` if it was done
    /// before.
    fn finish(&mut self, number: usize) -> Option<(u64, Duration)> {
        self.postponed.remove(&number);
        let job = &mut self.jobs[number];
        job.stop();
        let was_done = mem::replace(&mut job.is_done, true);
        (!was_done).then(|| (job.helpers, job.begun.elapsed()))
    }
}

impl Schedule {
    /// Creates the schedule of so many jobs.
    pub(super) fn new(jobs: usize) -> Self {
        let job = |_| JobState {
            is_done: false,
            begun: Instant::now(),
            helpers: 0,
            stopped: Arc::default(),
        };
        let jobs = (0..jobs).map(job).collect();
        Self(Mutex::new(State { jobs, next: 0, postponed: BTreeSet::new(), postponed_for: None }))
    }

    /// Returns the next step of a group, or `None` if there is nothing for it now.
    pub(super) fn take(&self, policy: &impl Policy) -> Option<Turn> {
        let mut state = lock(&self.0);
        let (number, is_help) = state.next_turn(policy)?;
        if is_help {
            state.jobs[number].helpers += 1;
        } else {
            if !state.postponed.remove(&number) {
                state.next += 1;
            }
            let job = &mut state.jobs[number];
            (job.begun, job.helpers, job.stopped) = (Instant::now(), 0, Arc::default());
        }
        Some(Turn { job: number, is_help, stopped: Arc::clone(&state.jobs[number].stopped) })
    }

    /// Returns whether there is something for another group now.
    pub(super) fn has_turn(&self, policy: &impl Policy) -> bool {
        lock(&self.0).next_turn(policy).is_some()
    }

    /// Returns whether there is a job to begin.
    pub(super) fn has_job(&self) -> bool {
        lock(&self.0).beginning().is_some()
    }

    /// Returns whether all jobs are done.
    pub(super) fn is_over(&self) -> bool {
        lock(&self.0).jobs.iter().all(|job| job.is_done)
    }

    /// Returns whether idle solvers may work for this job: it is the first one that is not done, or
    /// none is left to begin.
    pub(super) fn is_for(&self, job: usize) -> bool {
        let state = lock(&self.0);
        state.beginning().is_none() || state.jobs.iter().position(|job| !job.is_done) == Some(job)
    }

    /// Stops the jobs that were begun after the first one that is not done if even the next one
    /// would have to wait for that one, and if it is the first time for that one. Returns whether
    /// they were stopped.
    pub(super) fn postpone_later(&self, policy: &impl Policy) -> bool {
        let mut state = lock(&self.0);
        let Some(number) = state.jobs.iter().position(|job| !job.is_done) else { return false };
        let job = &state.jobs[number];
        let lag = Lag { age: job.begun.elapsed(), jobs: Some(1) };
        if number >= state.next
            || job.is_stopped()
            || state.postponed_for == Some(number)
            || !policy.is_waited_for(number, lag)
        {
            return false;
        }
        state.postponed_for = Some(number);
        state.jobs[number + 1..state.next].iter().for_each(JobState::stop);
        true
    }

    /// Puts the job of a turn back if the group was stopped before the job was done. Returns
    /// whether it was put back.
    pub(super) fn put_back(&self, turn: &Turn) -> bool {
        let mut state = lock(&self.0);
        let is_stopped = turn.stopped.load(Ordering::Relaxed);
        is_stopped && !state.jobs[turn.job].is_done && state.postponed.insert(turn.job)
    }

    /// Marks a job as done. Returns the number of its helpers and its age, or `None` if it was done
    /// before.
    pub(super) fn finish(&self, job: usize) -> Option<(u64, Duration)> {
        lock(&self.0).finish(job)
    }

    /// Abandons these jobs.
    pub(super) fn abandon(&self, jobs: RangeFrom<usize>) {
        let mut state = lock(&self.0);
        for job in jobs.start..state.jobs.len() {
            state.finish(job);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lets two groups help with one job, and later jobs wait for one job.
    struct TestPolicy {
        helped: Option<usize>,
        awaited: Option<usize>,
    }

    impl Policy for TestPolicy {
        fn is_helped(&self, job: usize, helpers: u64, _: Lag) -> bool {
            self.helped == Some(job) && helpers < 2
        }

        fn is_waited_for(&self, job: usize, _: Lag) -> bool {
            self.awaited == Some(job)
        }
    }

    const NO_POLICY: TestPolicy = TestPolicy { helped: None, awaited: None };

    const fn awaited(job: usize) -> TestPolicy {
        TestPolicy { awaited: Some(job), ..NO_POLICY }
    }

    /// Takes a turn. Returns its job, and whether the group helps with it.
    fn take(schedule: &Schedule, policy: &TestPolicy) -> Option<(usize, bool)> {
        schedule.take(policy).map(|turn| (turn.job, turn.is_help))
    }

    fn is_stopped(turn: &Turn) -> bool {
        turn.stopped.load(Ordering::Relaxed)
    }

    #[test]
    fn groups_begin_jobs_in_order_and_help_with_those_that_the_policy_names() {
        let schedule = Schedule::new(5);
        let policy = TestPolicy { helped: Some(1), ..NO_POLICY };
        let turns: Vec<_> = (0..8).map(|_| take(&schedule, &policy)).collect();
        let begins = |job| Some((job, false));
        let helps = Some((1, true));
        let expected = [begins(0), begins(1), helps, helps, begins(2), begins(3), begins(4), None];
        assert_eq!(turns, expected);
        assert!(!schedule.has_job() && !schedule.has_turn(&policy) && !schedule.is_over());
        let policy = TestPolicy { helped: Some(3), ..NO_POLICY };
        assert_eq!(take(&schedule, &policy), Some((3, true)));
        let finish = |job| schedule.finish(job).map(|(helpers, _)| helpers);
        assert_eq!((finish(3), finish(3)), (Some(1), None));
        assert_eq!(take(&schedule, &policy), None);
        assert_eq!([0, 1, 2, 4].map(finish), [0, 2, 0, 0].map(Some));
        assert!(schedule.is_over());
    }

    #[test]
    fn jobs_are_postponed_and_begun_again_when_the_one_that_they_wait_for_is_done() {
        let schedule = Schedule::new(4);
        let turns: Vec<Turn> = (0..3).filter_map(|_| schedule.take(&NO_POLICY)).collect();
        assert!(!schedule.postpone_later(&NO_POLICY) && !turns.iter().any(is_stopped));
        assert!(schedule.postpone_later(&awaited(0)));
        assert_eq!(turns.iter().map(is_stopped).collect::<Vec<_>>(), [false, true, true]);
        assert_eq!([0, 1, 2].map(|job| schedule.put_back(&turns[job])), [false, true, true]);
        assert!(schedule.has_job() && !schedule.has_turn(&awaited(0)), "all wait for job 0");
        assert_eq!([0, 1, 3].map(|job| schedule.is_for(job)), [true, false, false]);

        // Once for each job: those that are begun after all may go on.
        let again = schedule.take(&NO_POLICY).expect("job 1");
        assert_eq!((again.job, is_stopped(&again)), (1, false));
        assert!(!schedule.postpone_later(&awaited(0)) && !is_stopped(&again));
        assert!(is_stopped(&turns[1]), "the earlier group remains stopped");

        assert!(schedule.finish(0).is_some());
        let rest: Vec<_> = (0..3).map(|_| take(&schedule, &awaited(0))).collect();
        assert_eq!(rest, [Some((2, false)), Some((3, false)), None]);
        assert!([1, 2, 3].iter().all(|&job| schedule.is_for(job)), "none is left to begin");
    }

    #[test]
    fn a_job_that_is_about_to_be_put_back_is_neither_helped_with_nor_waited_for() {
        let schedule = Schedule::new(4);
        let turns: Vec<Turn> = (0..3).filter_map(|_| schedule.take(&NO_POLICY)).collect();
        assert!(schedule.postpone_later(&awaited(0)));
        assert!(schedule.finish(0).is_some());
        let policy = TestPolicy { helped: Some(1), awaited: Some(1) };
        assert!(!schedule.postpone_later(&policy));
        assert_eq!(take(&schedule, &policy), Some((3, false)));
        assert!(schedule.put_back(&turns[1]));
        let turns: Vec<_> = (0..3).map(|_| take(&schedule, &policy)).collect();
        assert_eq!(turns, [Some((1, false)), Some((1, true)), Some((1, true))]);
    }

    #[test]
    fn a_job_that_is_done_is_not_put_back() {
        let schedule = Schedule::new(2);
        let turns: Vec<Turn> = (0..2).filter_map(|_| schedule.take(&NO_POLICY)).collect();
        assert!(schedule.postpone_later(&awaited(0)));
        assert!(schedule.finish(1).is_some() && !schedule.put_back(&turns[1]));
        assert!(!schedule.has_job());
    }

    #[test]
    fn abandoned_jobs_are_neither_begun_nor_helped_with() {
        let schedule = Schedule::new(10);
        for number in 0..4 {
            assert_eq!(take(&schedule, &NO_POLICY), Some((number, false)));
        }
        schedule.abandon(6..);
        schedule.abandon(3..);
        (0..3).for_each(|job| assert!(schedule.finish(job).is_some()));
        assert!(schedule.finish(3).is_none() && schedule.is_over());
        assert_eq!(take(&schedule, &TestPolicy { helped: Some(3), ..NO_POLICY }), None);
    }
}
