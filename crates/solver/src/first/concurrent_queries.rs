//! Concurrent queries, and series of them, of which either the first one that is not refuted or any
//! answer is wanted.

use std::ops::ControlFlow;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;
use std::{fmt, iter, mem, thread};

use super::query::{QueryOutcome, QuerySolver};
use super::schedule::{Schedule, Turn};
use crate::progress::{Progress, ProgressSink};
use crate::threads::{StopOnPanic, lock};
use nqueens_proof::first::Refutation;

/// A completion query with its limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PrefixQuery<'a> {
    /// The 0-based columns of the queens on the first rows.
    pub prefix: &'a [usize],
    /// Maximum number of LPs solved for the query.
    pub lp_limit: u64,
    /// Node limit of each exhaustive search under the first dual bound on boards of odd size. The LP
    /// limit limits it, too.
    pub node_limit: u64,
    /// 0 for the default search order; every other number seeds a different random order.
    pub attempt: u64,
    /// True to give up after the dives, which can only find a completion.
    pub only_dives: bool,
}

impl<'a> PrefixQuery<'a> {
    /// Creates a query that is limited only by its LP limit.
    pub const fn new(prefix: &'a [usize], lp_limit: u64, attempt: u64) -> Self {
        Self { prefix, lp_limit, node_limit: u64::MAX, attempt, only_dives: false }
    }
}

/// Solvers that run concurrently.
pub(super) type Solvers = Vec<Box<dyn QuerySolver>>;

/// A source of solvers; more may become available during a run.
pub trait SolverSource: fmt::Debug + Sync {
    /// Returns the solvers that have become available since the last call. The first call returns
    /// at least one.
    fn take_new(&self) -> Vec<Box<dyn QuerySolver>>;
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
pub(super) trait Job: Sync {
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

    /// Returns a query of another group of solvers which may answer the job sooner, for the helper with
    /// this number; `None` if helping is of no use.
    fn help(&self, helper: u64) -> Option<PrefixQuery<'_>>;
}

/// An event during [`run_jobs`].
pub(super) enum Event {
    /// This prefix is refuted: that of a job, or a longer one.
    Refuted(Vec<usize>, Refutation),
    /// No refutation: another outcome has arrived, or [`MAX_EVENT_INTERVAL`] has passed.
    Nothing,
}

/// A message from a job's thread.
enum Message {
    /// A prefix that extends the job's is refuted.
    Refuted(Vec<usize>, Refutation),
    /// The job with this number is done.
    Done(usize, QueryOutcome),
}

/// Maximum time between two events.
const MAX_EVENT_INTERVAL: Duration = Duration::from_millis(20);

/// Runs the jobs on groups of solvers, one thread per group, until the wanted answer is known. Each
/// group begins with the job at its own place in the list, then follows the [`Schedule`]. Its solvers
/// are idle when there is nothing left for it; other jobs can take them. Returns the number of a job
/// and its outcome, or `None` if all are refuted or, for [`Wanted::AnyAnswer`], if no answer is a
/// completion; and all solvers. Stops everything when `on_event` breaks.
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
    let (schedule, idle) =
        (Schedule::new(jobs.len(), groups.len()), IdleSolvers::new(groups.len()));
    let (sender, receiver) = mpsc::channel();
    let mut found: Option<(usize, QueryOutcome)> = None;
    thread::scope(|scope| {
        for (first, mut solvers) in groups.into_iter().enumerate() {
            let (schedule, idle, sender) = (&schedule, &idle, sender.clone());
            scope.spawn(move || {
                let _guard = StopOnPanic(&control.stopped);
                let can_be_helped =
                    |job: usize| wanted == Wanted::FirstOpen && jobs[job].help(1).is_some();
                let begin = (first < jobs.len()).then_some(Turn::Begin(first));
                let turns = iter::from_fn(|| schedule.take(can_be_helped));
                for turn in begin.into_iter().chain(turns) {
                    if control.is_stopped() {
                        break;
                    }
                    let (number, job) = (turn.job(), &jobs[turn.job()]);
                    let task = Task { control, done: schedule.done(number), idle };
                    let outcome = match turn {
                        Turn::Begin(_) => job.run(&mut solvers, task, &mut |prefix, refutation| {
                            drop(sender.send(Message::Refuted(prefix, refutation)));
                        }),
                        Turn::Help { helper, .. } => match job.help(helper) {
                            Some(query) => solvers[0].solve(&query, task),
                            None => QueryOutcome::GivenUp,
                        },
                    };
                    let is_answer =
                        matches!(outcome, QueryOutcome::Refuted(_) | QueryOutcome::Completed(_));
                    let counts = is_answer || matches!(turn, Turn::Begin(_));
                    if !counts || !schedule.finish(number) {
                        continue;
                    }
                    match (wanted, &outcome) {
                        (Wanted::FirstOpen, QueryOutcome::Refuted(_)) => {}
                        (Wanted::FirstOpen, _) => schedule.abandon(number + 1..),
                        (Wanted::AnyAnswer, _) if is_answer => schedule.abandon(0..),
                        (Wanted::AnyAnswer, _) => {}
                    }
                    if sender.send(Message::Done(number, outcome)).is_err() {
                        break;
                    }
                }
                idle.add(solvers);
            });
        }
        drop(sender);
        loop {
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
                Err(RecvTimeoutError::Timeout) => Event::Nothing,
                Err(RecvTimeoutError::Disconnected) => break,
            };
            if on_event(event).is_break() {
                control.stop();
            }
        }
    });
    (found, idle.take())
}

/// The solvers whose groups have nothing left to do, and the number of the other groups.
pub(super) struct IdleSolvers {
    solvers: Mutex<Solvers>,
    /// The number of groups that still have something to do.
    busy_groups: AtomicUsize,
}

impl IdleSolvers {
    const fn new(groups: usize) -> Self {
        Self { solvers: Mutex::new(Vec::new()), busy_groups: AtomicUsize::new(groups) }
    }

    /// Adds the solvers of a group.
    fn add(&self, mut solvers: Solvers) {
        lock(&self.solvers).append(&mut solvers);
        self.busy_groups.fetch_sub(1, Ordering::Relaxed);
    }

    fn take(&self) -> Solvers {
        mem::take(&mut *lock(&self.solvers))
    }
}

impl fmt::Debug for IdleSolvers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("IdleSolvers").field(&lock(&self.solvers).len()).finish()
    }
}

/// State shared by the threads of a run: the stop flag and the work counters.
#[derive(Debug, Default)]
pub struct Control<'a> {
    stopped: AtomicBool,
    nodes: AtomicU64,
    lps_solved: AtomicU64,
    /// The job of an outer run, if this run is a part of one.
    outer: Option<Task<'a>>,
    /// The source of further solvers of this run.
    source: Option<&'a dyn SolverSource>,
}

impl<'a> Control<'a> {
    /// Creates the state of a run that has the solvers of `source`.
    pub(super) fn with_source(source: &'a dyn SolverSource) -> Self {
        Self { source: Some(source), ..Self::default() }
    }

    /// Creates the state of a run that is a job of another run. Its counters begin with those of
    /// the other run.
    pub(super) fn within(outer: Task<'a>) -> Self {
        Self {
            nodes: AtomicU64::new(outer.control.nodes()),
            lps_solved: AtomicU64::new(outer.control.lps_solved()),
            outer: Some(outer),
            ..Self::default()
        }
    }

    /// Requests all work under this control to stop soon.
    pub fn stop(&self) {
        self.stopped.store(true, Ordering::Relaxed);
    }

    /// Returns whether a stop was requested.
    pub fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed) || self.outer.is_some_and(Task::is_stopped)
    }

    /// Returns the solvers of the outer runs that are idle, and those that have become available.
    pub(super) fn take_available_solvers(&self) -> Solvers {
        let mut solvers = self.source.map_or_else(Vec::new, SolverSource::take_new);
        if let Some(outer) = self.outer {
            solvers.append(&mut outer.control.take_available_solvers());
            solvers.append(&mut outer.idle.take());
        }
        solvers
    }

    /// Returns the number of nodes of all searches.
    pub fn nodes(&self) -> u64 {
        self.nodes.load(Ordering::Relaxed)
    }

    /// Returns the total work, in units of about the time of one LP.
    pub(super) fn work(&self) -> u64 {
        self.lps_solved() + self.nodes() / 4000
    }

    /// Returns the number of linear programs solved.
    pub fn lps_solved(&self) -> u64 {
        self.lps_solved.load(Ordering::Relaxed)
    }
}

/// The handle of one job.
#[derive(Clone, Copy, Debug)]
pub struct Task<'a> {
    control: &'a Control<'a>,
    /// Set once the job is answered or abandoned.
    done: &'a AtomicBool,
    /// The idle solvers of the run of the job.
    idle: &'a IdleSolvers,
}

impl<'a> Task<'a> {
    /// Creates the handle of the only job under `control`.
    pub const fn alone(control: &'a Control<'a>) -> Self {
        static NEVER: AtomicBool = AtomicBool::new(false);
        static NONE: IdleSolvers = IdleSolvers::new(1);
        Self { control, done: &NEVER, idle: &NONE }
    }

    /// Returns whether the answer is no longer wanted.
    pub fn is_stopped(self) -> bool {
        self.control.is_stopped() || self.done.load(Ordering::Relaxed)
    }

    /// Returns whether another group of solvers still has something to do.
    pub(super) fn others_are_busy(self) -> bool {
        self.idle.busy_groups.load(Ordering::Relaxed) > 1
    }

    /// Returns the total work under the control of this job, like [`Control::work`].
    pub(super) fn total_work(self) -> u64 {
        self.control.work()
    }

    /// Counts nodes searched for the job.
    pub fn add_nodes(self, nodes: u64) {
        self.control.nodes.fetch_add(nodes, Ordering::Relaxed);
        if let Some(outer) = self.control.outer {
            outer.add_nodes(nodes);
        }
    }

    /// Counts LPs solved for the job.
    pub fn add_lps(self, lps: u64) {
        self.control.lps_solved.fetch_add(lps, Ordering::Relaxed);
        if let Some(outer) = self.control.outer {
            outer.add_lps(lps);
        }
    }
}

/// Stops a solver together with its job.
impl ProgressSink for Task<'_> {
    fn report(&mut self, _: &Progress) -> ControlFlow<()> {
        if self.is_stopped() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Completes the queries that are only dives, and gives up the others.
    struct Dives;

    impl QuerySolver for Dives {
        fn solve(&mut self, query: &PrefixQuery<'_>, _: Task<'_>) -> QueryOutcome {
            if query.only_dives {
                QueryOutcome::Completed(query.prefix.to_vec())
            } else {
                QueryOutcome::GivenUp
            }
        }
    }

    enum TestJob {
        /// Is refuted at once.
        Refuted,
        /// Is refuted once another solver has joined.
        WaitsForSolver,
        /// Ends only when it is stopped.
        WaitsForHelp,
        /// Is refuted once no other group is busy.
        WaitsForOthers,
    }

    impl Job for TestJob {
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
            match self {
                Self::Refuted => {}
                Self::WaitsForSolver => {
                    while solvers.len() < 2 {
                        solvers.append(&mut control.take_available_solvers());
                        thread::yield_now();
                    }
                }
                Self::WaitsForOthers => {
                    while task.others_are_busy() {
                        thread::yield_now();
                    }
                }
                Self::WaitsForHelp => {
                    while !task.is_stopped() {
                        thread::yield_now();
                    }
                    return QueryOutcome::Stopped;
                }
            }
            QueryOutcome::Refuted(Refutation::search())
        }

        fn help(&self, helper: u64) -> Option<PrefixQuery<'_>> {
            let query = PrefixQuery { only_dives: true, ..PrefixQuery::new(&[7], 1, helper) };
            matches!(self, Self::WaitsForHelp).then_some(query)
        }
    }

    /// Runs jobs with two groups of one solver. Returns the result and the number of solvers.
    fn run(jobs: &[TestJob], wanted: Wanted) -> (Option<(usize, QueryOutcome)>, usize) {
        let groups: Vec<Solvers> = vec![vec![Box::new(Dives)], vec![Box::new(Dives)]];
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
}
