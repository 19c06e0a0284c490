//! The order in which groups of solvers begin concurrent jobs and help with others.
//!
//! Jobs are begun in order. A group that is far ahead of a job which is not done yet helps with it
//! instead: the later jobs are useless if that one has a completion.

use std::ops::RangeFrom;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use super::params;
use crate::threads::lock;

/// The next step of a group of solvers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Turn {
    /// It begins this job.
    Begin(usize),
    /// It helps with this job. Helpers of a job are numbered from 1 on.
    Help { job: usize, helper: u64 },
}

impl Turn {
    /// Returns the number of the job.
    pub(super) const fn job(self) -> usize {
        match self {
            Self::Begin(job) | Self::Help { job, .. } => job,
        }
    }
}

/// The schedule of jobs with numbers from 0 on.
pub(super) struct Schedule {
    /// By job: whether it is done, that is, answered or abandoned.
    done: Vec<AtomicBool>,
    begun: Mutex<Begun>,
}

/// The jobs that were begun.
struct Begun {
    /// The first job that was not.
    next: usize,
    /// By job: the number of its helpers so far.
    helpers: Vec<u64>,
}

impl Schedule {
    /// Creates the schedule of so many jobs. The first `groups` of them are begun at once.
    pub(super) fn new(jobs: usize, groups: usize) -> Self {
        Self {
            done: (0..jobs).map(|_| AtomicBool::new(false)).collect(),
            begun: Mutex::new(Begun { next: groups.min(jobs), helpers: vec![0; jobs] }),
        }
    }

    /// Returns what a group does next, or `None` if there is nothing left for it.
    /// `can_be_helped` tells whether groups may help with a job.
    pub(super) fn take(&self, can_be_helped: impl Fn(usize) -> bool) -> Option<Turn> {
        let mut begun = lock(&self.begun);
        let Begun { next, helpers } = &mut *begun;
        let is_over = *next == helpers.len() || self.is_done(*next);
        let end = if is_over { *next } else { next.saturating_sub(params::MOST_JOBS_AHEAD) };
        let helped = (0..end).find(|&job| {
            !self.is_done(job) && helpers[job] < params::MOST_HELPERS && can_be_helped(job)
        });
        if let Some(job) = helped {
            helpers[job] += 1;
            return Some(Turn::Help { job, helper: helpers[job] });
        }
        if is_over {
            return None;
        }
        *next += 1;
        Some(Turn::Begin(*next - 1))
    }

    fn is_done(&self, job: usize) -> bool {
        self.done[job].load(Ordering::Relaxed)
    }

    /// Returns the flag that is set once a job is done.
    pub(super) fn done(&self, job: usize) -> &AtomicBool {
        &self.done[job]
    }

    /// Marks a job as done. Returns false if it was before.
    pub(super) fn finish(&self, job: usize) -> bool {
        !self.done[job].swap(true, Ordering::Relaxed)
    }

    /// Abandons these jobs.
    pub(super) fn abandon(&self, jobs: RangeFrom<usize>) {
        self.done[jobs].iter().for_each(|done| done.store(true, Ordering::Relaxed));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_that_is_far_ahead_helps_with_the_first_job_that_is_not_done() {
        let schedule = Schedule::new(100, 2);
        assert!(schedule.finish(0) && !schedule.finish(0));
        // Job 1 is not done.
        for job in 2..1 + params::MOST_JOBS_AHEAD {
            assert_eq!(schedule.take(|_| true), Some(Turn::Begin(job)));
            assert!(schedule.finish(job));
        }
        let ahead = 1 + params::MOST_JOBS_AHEAD;
        assert_eq!(schedule.take(|job| job != 1), Some(Turn::Begin(ahead)));
        for helper in 1..=params::MOST_HELPERS {
            assert_eq!(schedule.take(|_| true), Some(Turn::Help { job: 1, helper }));
        }
        assert_eq!(schedule.take(|_| true), Some(Turn::Begin(ahead + 1)));
    }

    #[test]
    fn groups_help_with_all_jobs_when_none_is_left_to_begin() {
        let schedule = Schedule::new(3, 4);
        schedule.finish(1);
        for job in [0, 2] {
            for helper in 1..=params::MOST_HELPERS {
                assert_eq!(schedule.take(|_| true), Some(Turn::Help { job, helper }));
            }
        }
        assert_eq!(schedule.take(|_| true), None);
    }

    #[test]
    fn abandoned_jobs_are_neither_begun_nor_helped_with() {
        let schedule = Schedule::new(10, 4);
        schedule.abandon(6..);
        schedule.abandon(3..);
        (0..3).for_each(|job| assert!(schedule.finish(job)));
        assert!(!schedule.finish(3));
        assert_eq!(schedule.take(|_| true), None);
    }
}
