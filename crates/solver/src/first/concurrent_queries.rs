//! Concurrent queries, and series of them, of which either the first one that is not refuted or any
//! answer is wanted.

use std::ops::ControlFlow;
use std::sync::atomic::Ordering;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use super::control::{Control, IdleSolvers, Place, Solvers, Task};
use super::params;
use super::query::{QueryOutcome, QuerySolver};
use super::schedule::{Lag, Policy, Schedule, Turn};
use crate::threads::StopOnPanic;
use nqueens_proof::first::Refutation;

/// A completion query with its limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PrefixQuery<'a> {
    /// The 0-based columns of the queens on the first rows.
    pub prefix: &'a [usize],
    /// Maximum number of LPs solved for the query.
    pub lp_limit: u64,
    /// Node limit of each exhaustive search under the first dual bound on boards of odd size. The
    /// LP limit limits it, too.
    pub node_limit: u64,
    /// 0 for the default search order; every other number seeds a different random order.
    pub attempt: u64,
    /// True to give up after the dives, which can only find a completion.
    pub only_dives: bool,
    /// Maximum number of boards whose relaxations are solved in a search through the sets of
    /// diagonals that a completion can use, if these are few.
    pub set_search_lps: u64,
}

impl<'a> PrefixQuery<'a> {
    /// Creates a query that is limited only by its LP limit. Only the first attempt has a search
    /// through sets of diagonals, which has no random order.
    pub const fn new(prefix: &'a [usize], lp_limit: u64, attempt: u64) -> Self {
        let lps = lp_limit.saturating_mul(params::SET_SEARCH_LPS_PER_LP);
        let set_search_lps = match attempt {
            0 if lps < params::MOST_SET_SEARCH_LPS => lps,
            0 => params::MOST_SET_SEARCH_LPS,
            _ => 0,
        };
        let node_limit = u64::MAX;
        Self { prefix, lp_limit, node_limit, attempt, only_dives: false, set_search_lps }
    }
}

/// The answer that is wanted from several jobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wanted {
    /// The outcome of the first job whose prefix is not refuted. Jobs after that one are abandoned.
    FirstOpen,
    /// The first answer of any job: all of them are about the same prefix.
    AnyAnswer,
}

/// A job for one or more solvers: a query, or a series of them that decides one prefix.
pub(super) trait Job: Send + Sync + Sized {
    /// Returns the prefix that the outcome is about.
    fn prefix(&self) -> &[usize];

    /// Does the job with at least one solver, and adds idle ones that it has used. Calls `refuted`
    /// with each longer prefix that is refuted on the way.
    fn run(
        &self,
        solvers: &mut Solvers,
        task: Task<'_>,
        refuted: &mut dyn FnMut(Vec<usize>, Refutation),
    ) -> QueryOutcome;

    /// Called when the job is done, by itself or a helper, this time after it was begun last, if
    /// the first open job is wanted.
    fn record(&self, outcome: &QueryOutcome, took: Duration);

    /// Returns whether one more group should help with the job, besides so many helpers.
    fn is_helped(&self, helpers: u64, lag: Lag) -> bool;

    /// Returns the job of a helper: another one about the same prefix, which may answer this one.
    fn helper(&self) -> Self;

    /// Returns whether the next job to begin, if any, should wait for this one with this lag.
    fn is_waited_for(&self, lag: Lag) -> bool;
}

/// An event during [`run_jobs`].
pub(super) enum Event {
    /// This prefix is refuted: that of a job, or a longer one.
    Refuted(Vec<usize>, Refutation),
    /// No refutation: another outcome has arrived, or [`MAX_EVENT_INTERVAL`] has passed.
    Nothing,
}

/// A message from the thread of a group of solvers.
enum Message {
    /// A prefix that extends the job's is refuted.
    Refuted(Vec<usize>, Refutation),
    /// The job with this number is done.
    Done(usize, QueryOutcome),
    /// These solvers of the group can begin other jobs.
    Surplus(Solvers),
    /// The thread has ended.
    Ended,
}

/// Announces the end of a thread, even by a panic.
struct Announce(mpsc::Sender<Message>);

impl Drop for Announce {
    fn drop(&mut self) {
        drop(self.0.send(Message::Ended));
    }
}

/// Maximum time between two events.
const MAX_EVENT_INTERVAL: Duration = Duration::from_millis(20);

/// Runs the jobs on groups of solvers, one thread per group, until the wanted answer is known. The
/// groups begin with the first jobs, in order, and follow the [`Schedule`]. The solvers of a group
/// are idle when there is nothing for it; then this run and those within its jobs can take them for
/// new groups. Returns the number of a job and its outcome, or `None` if all are refuted or, for
/// [`Wanted::AnyAnswer`], if no answer is a completion; and all solvers. Stops everything when
/// `on_event` breaks.
///
/// # Panics
/// If a solver panics.
pub(super) fn run_jobs(
    jobs: &[impl Job],
    wanted: Wanted,
    groups: Vec<Solvers>,
    control: &Control<'_>,
    on_event: &mut dyn FnMut(Event) -> ControlFlow<()>,
) -> (Option<(usize, QueryOutcome)>, Solvers) {
    let run = Run {
        jobs,
        wanted,
        schedule: Schedule::new(jobs.len()),
        idle: IdleSolvers::default(),
        control,
    };
    let (sender, receiver) = mpsc::channel();
    let mut found: Option<(usize, QueryOutcome)> = None;
    let mut threads = 0;
    thread::scope(|scope| {
        let run = &run;
        let start = |threads: &mut usize, solvers, turn| {
            *threads += 1;
            let sender = sender.clone();
            scope.spawn(move || run.work(solvers, turn, sender));
        };
        // All groups count as busy before the first one begins.
        let turns: Vec<_> = groups.iter().map(|_| run.take()).collect();
        for (solvers, turn) in groups.into_iter().zip(turns) {
            match turn {
                Some(turn) => start(&mut threads, solvers, turn),
                None => run.idle.add(solvers),
            }
        }
        loop {
            while let Some((solver, turn)) = run.admit() {
                start(&mut threads, vec![solver], turn);
            }
            if threads == 0 {
                break;
            }
            let event = match receiver.recv_timeout(MAX_EVENT_INTERVAL) {
                Ok(Message::Refuted(prefix, refutation)) => Event::Refuted(prefix, refutation),
                Ok(Message::Done(number, QueryOutcome::Refuted(refutation))) => {
                    Event::Refuted(jobs[number].prefix().to_vec(), refutation)
                }
                Ok(Message::Done(number, outcome)) => {
                    let counts = wanted == Wanted::FirstOpen
                        || matches!(outcome, QueryOutcome::Completed(_));
                    if counts && found.as_ref().is_none_or(|&(first, _)| number < first) {
                        found = Some((number, outcome));
                    }
                    Event::Nothing
                }
                Ok(Message::Surplus(solvers)) => {
                    for solver in solvers {
                        match run.take() {
                            Some(turn) => start(&mut threads, vec![solver], turn),
                            None => run.idle.add(vec![solver]),
                        }
                    }
                    continue;
                }
                Ok(Message::Ended) => {
                    threads -= 1;
                    continue;
                }
                Err(_) => Event::Nothing,
            };
            if on_event(event).is_break() {
                control.stop();
            }
            if run.schedule.postpone_later(run) {
                control.wake();
            }
        }
    });
    // The jobs before the one that was found, or all, are refuted.
    assert!(control.is_stopped() || run.schedule.is_over());
    (found, run.idle.take())
}

/// A run of jobs.
struct Run<'r, J> {
    jobs: &'r [J],
    wanted: Wanted,
    schedule: Schedule,
    idle: IdleSolvers,
    control: &'r Control<'r>,
}

impl<J: Job> Run<'_, J> {
    /// Takes the next step of a group that becomes busy.
    fn take(&self) -> Option<Turn> {
        let turn = self.schedule.take(self)?;
        self.idle.busy_groups.fetch_add(1, Ordering::Relaxed);
        Some(turn)
    }

    /// Takes an idle solver, of this run or an outer one, if there is something for it.
    fn admit(&self) -> Option<(Box<dyn QuerySolver>, Turn)> {
        if self.control.is_stopped() || !self.schedule.has_turn(self) {
            return None;
        }
        let solver = self.idle.pop().or_else(|| self.control.take_idle_solver())?;
        match self.take() {
            Some(turn) => Some((solver, turn)),
            None => {
                self.idle.add(vec![solver]);
                None
            }
        }
    }

    /// Does this turn, and then the next ones as long as there are any.
    fn work(&self, mut solvers: Solvers, turn: Turn, sender: mpsc::Sender<Message>) {
        // Dropped last, when the control is stopped after a panic.
        let Announce(sender) = &Announce(sender);
        let _guard = StopOnPanic(&self.control.stopped);
        let mut next = Some(turn);
        while let Some(turn) = next
            && !self.control.is_stopped()
        {
            let outcome = self.run_turn(&turn, &mut solvers, sender);
            let is_answer =
                matches!(outcome, QueryOutcome::Refuted(_) | QueryOutcome::Completed(_));
            let counts = is_answer || (!turn.is_help && !self.schedule.put_back(&turn));
            if counts && let Some((helpers, age)) = self.schedule.finish(turn.job) {
                self.conclude(&turn, helpers, &outcome, age);
                drop(sender.send(Message::Done(turn.job, outcome)));
            }
            if solvers.len() > 1 && self.schedule.has_job() {
                drop(sender.send(Message::Surplus(solvers.split_off(1))));
            }
            next = self.schedule.take(self);
        }
        self.idle.add(solvers);
        self.idle.busy_groups.fetch_sub(1, Ordering::Relaxed);
    }

    /// Runs the job of a turn, or that of its helper.
    fn run_turn(
        &self,
        turn: &Turn,
        solvers: &mut Solvers,
        sender: &mpsc::Sender<Message>,
    ) -> QueryOutcome {
        let place = Some(Place { idle: &self.idle, schedule: &self.schedule, job: turn.job });
        let task = Task { control: self.control, stopped: &turn.stopped, place };
        let mut refuted = |prefix, refutation| {
            drop(sender.send(Message::Refuted(prefix, refutation)));
        };
        let job = &self.jobs[turn.job];
        if turn.is_help {
            job.helper().run(solvers, task, &mut refuted)
        } else {
            job.run(solvers, task, &mut refuted)
        }
    }

    /// Draws the conclusions from the outcome of a job that had so many helpers.
    fn conclude(&self, turn: &Turn, helpers: u64, outcome: &QueryOutcome, took: Duration) {
        let is_refuted = matches!(outcome, QueryOutcome::Refuted(_));
        let is_completed = matches!(outcome, QueryOutcome::Completed(_));
        let abandoned = match self.wanted {
            Wanted::FirstOpen => (!is_refuted).then_some(turn.job + 1),
            Wanted::AnyAnswer => (is_refuted || is_completed).then_some(0),
        };
        if let Some(first) = abandoned {
            self.schedule.abandon(first..);
        }
        if self.wanted == Wanted::FirstOpen {
            self.jobs[turn.job].record(outcome, took);
        }
        if helpers > 0 || abandoned.is_some() {
            self.control.wake();
        }
    }
}

impl<J: Job> Policy for Run<'_, J> {
    fn is_helped(&self, job: usize, helpers: u64, lag: Lag) -> bool {
        self.wanted == Wanted::FirstOpen && self.jobs[job].is_helped(helpers, lag)
    }

    fn is_waited_for(&self, job: usize, lag: Lag) -> bool {
        self.wanted == Wanted::FirstOpen && self.jobs[job].is_waited_for(lag)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, AtomicUsize};
    use std::time::Instant;

    use super::*;

    /// Gives every query up.
    struct GivesUp;

    impl QuerySolver for GivesUp {
        fn solve(&mut self, _: &PrefixQuery<'_>, _: Task<'_>) -> QueryOutcome {
            QueryOutcome::GivenUp
        }
    }

    #[derive(Default)]
    struct PostponedJob {
        is_begun: AtomicBool,
        is_stopped: AtomicBool,
    }

    #[derive(Clone, Copy)]
    enum TestJob<'a> {
        /// Is refuted at once.
        Refuted,
        /// Is completed at once.
        Completed,
        /// Is refuted once another solver has joined.
        WaitsForSolver,
        /// Ends only when it is stopped, unless a helper completes it.
        WaitsForHelp,
        /// Is refuted once no other group is busy.
        WaitsForOthers,
        /// Is refuted once two such jobs were begun.
        Meets(&'a AtomicUsize),
        /// Is refuted once another job was postponed; later ones wait for it once that one was
        /// begun.
        ComesFirst(&'a PostponedJob),
        /// Goes on until it is stopped, and is refuted when it is begun again.
        Postponed(&'a PostponedJob),
    }

    impl Job for TestJob<'_> {
        fn prefix(&self) -> &[usize] {
            &[7]
        }

        fn run(
            &self,
            solvers: &mut Solvers,
            task: Task<'_>,
            _: &mut dyn FnMut(Vec<usize>, Refutation),
        ) -> QueryOutcome {
            let control = Control::within(task);
            let wait_for = |is_over: &dyn Fn() -> bool| {
                let began = Instant::now();
                while !is_over() {
                    assert!(began.elapsed() < Duration::from_secs(60), "it never comes");
                    thread::yield_now();
                }
            };
            match *self {
                Self::Refuted => {}
                Self::Completed => return QueryOutcome::Completed(vec![7]),
                Self::WaitsForSolver => {
                    let began = Instant::now();
                    while solvers.len() < 2 {
                        assert!(began.elapsed() < Duration::from_secs(60), "it never comes");
                        solvers.append(&mut control.take_idle_solvers());
                        thread::yield_now();
                    }
                }
                Self::WaitsForOthers => wait_for(&|| !task.others_are_busy()),
                Self::WaitsForHelp => {
                    wait_for(&|| task.is_stopped());
                    return QueryOutcome::Stopped;
                }
                Self::Meets(begun) => {
                    begun.fetch_add(1, Ordering::Relaxed);
                    wait_for(&|| begun.load(Ordering::Relaxed) == 2);
                }
                Self::ComesFirst(other) => wait_for(&|| other.is_stopped.load(Ordering::Relaxed)),
                Self::Postponed(state) => {
                    if !state.is_begun.swap(true, Ordering::Relaxed) {
                        wait_for(&|| task.is_stopped());
                        state.is_stopped.store(true, Ordering::Relaxed);
                        return QueryOutcome::GivenUp;
                    }
                }
            }
            QueryOutcome::Refuted(Refutation::search())
        }

        fn record(&self, _: &QueryOutcome, _: Duration) {}

        fn is_helped(&self, helpers: u64, _: Lag) -> bool {
            matches!(self, Self::WaitsForHelp) && helpers == 0
        }

        fn helper(&self) -> Self {
            Self::Completed
        }

        fn is_waited_for(&self, _: Lag) -> bool {
            matches!(self, Self::ComesFirst(other) if other.is_begun.load(Ordering::Relaxed))
        }
    }

    /// Runs jobs with two groups of one solver. Returns the result and the number of solvers.
    fn run(jobs: &[TestJob<'_>], wanted: Wanted) -> (Option<(usize, QueryOutcome)>, usize) {
        let groups: Vec<Solvers> = vec![vec![Box::new(GivesUp)], vec![Box::new(GivesUp)]];
        let control = Control::default();
        let mut go_on = |_| ControlFlow::Continue(());
        let (found, solvers) = run_jobs(jobs, wanted, groups, &control, &mut go_on);
        (found, solvers.len())
    }

    #[test]
    fn solvers_that_have_nothing_left_to_do_join_other_jobs() {
        use TestJob::{Refuted, WaitsForSolver};
        for wanted in [Wanted::FirstOpen, Wanted::AnyAnswer] {
            assert_eq!(run(&[WaitsForSolver], wanted), (None, 2));
            assert_eq!(run(&[Refuted, WaitsForSolver], wanted).1, 2);
        }
        assert_eq!(run(&[WaitsForSolver, Refuted, Refuted], Wanted::FirstOpen), (None, 2));
    }

    #[test]
    fn solvers_that_a_job_has_used_begin_other_jobs() {
        let groups: Vec<Solvers> = vec![vec![Box::new(GivesUp), Box::new(GivesUp)]];
        let control = Control::default();
        let mut go_on = |_| ControlFlow::Continue(());
        let begun = AtomicUsize::new(0);
        let jobs = [TestJob::Refuted, TestJob::Meets(&begun), TestJob::Meets(&begun)];
        let (found, solvers) = run_jobs(&jobs, Wanted::FirstOpen, groups, &control, &mut go_on);
        assert_eq!((found, solvers.len()), (None, 2));
    }

    #[test]
    fn a_job_can_go_on_until_all_others_are_done() {
        use TestJob::{Refuted, WaitsForOthers};
        for jobs in [&[WaitsForOthers][..], &[WaitsForOthers, Refuted, Refuted]] {
            assert_eq!(run(jobs, Wanted::FirstOpen), (None, 2));
        }
    }

    #[test]
    fn the_answer_of_a_helper_ends_the_job() {
        use TestJob::{Refuted, WaitsForHelp};
        let completed = Some((0, QueryOutcome::Completed(vec![7])));
        assert_eq!(run(&[WaitsForHelp], Wanted::FirstOpen), (completed.clone(), 2));
        assert_eq!(run(&[WaitsForHelp, Refuted, Refuted], Wanted::FirstOpen), (completed, 2));
    }

    #[test]
    fn jobs_that_were_postponed_are_not_given_up_but_begun_again() {
        let postponed = PostponedJob::default();
        let jobs =
            [TestJob::ComesFirst(&postponed), TestJob::Postponed(&postponed), TestJob::Refuted];
        assert_eq!(run(&jobs, Wanted::FirstOpen), (None, 2));
        assert!(postponed.is_stopped.load(Ordering::Relaxed));
    }
}
