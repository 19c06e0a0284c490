//! The provers: threads that solve the tasks of proofs. They run beside the executors: while there
//! is work for both, they share the cores.
//!
//! A task is *waiting*, then *working* while a thread solves it, and its answer is kept until the
//! coordinator has acknowledged it. None of this is on disk: a lost task is leased to another
//! worker.

use std::collections::{BTreeMap, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::watch;

use crate::cluster::protocol::{
    CompletionQuery, MOST_MESSAGE_BYTES, TaskAnswer, TaskOutcome, TaskQuery,
};
use crate::solver::beautiful::{CancelToken, Searcher};
use crate::solver::first::{
    Control, PrefixQuery, QueryOutcome, QuerySolver, QuerySolverFactory, Task,
};

/// The time within which a waiting task should be started. Other workers could solve it sooner.
const SOON: Duration = Duration::from_millis(300);

/// A handle that stops a task.
#[derive(Debug)]
struct TaskHandle {
    began: Instant,
    control: Control<'static>,
    cancel: CancelToken,
}

impl Default for TaskHandle {
    fn default() -> Self {
        Self { began: Instant::now(), control: Control::default(), cancel: CancelToken::default() }
    }
}

impl TaskHandle {
    fn stop(&self) {
        self.control.stop();
        self.cancel.abandon();
    }
}

#[derive(Debug, Default)]
struct ProverState {
    waiting: VecDeque<(u64, TaskQuery)>,
    working: BTreeMap<u64, Arc<TaskHandle>>,
    answers: BTreeMap<u64, TaskAnswer>,
    /// The number of threads started.
    threads: usize,
    stopped: bool,
    /// True if a thread panicked; then no more tasks are requested.
    panicked: bool,
    /// The coordinator's last message about answers that it cannot read.
    unreadable: String,
    answered: u64,
    /// Smoothed duration of a task, in seconds.
    task_s: Option<f64>,
}

impl ProverState {
    /// Returns how many tasks `threads` threads may hold: enough that none waits for the network,
    /// but no more than will be started soon. So none may wait for a thread that has worked on its
    /// task for long.
    fn capacity(&self, threads: usize) -> usize {
        if self.panicked {
            return 0;
        }
        let each = self.task_s.map_or(2.0, |task_s| SOON.as_secs_f64() / task_s.max(1e-6));
        // Between 2 and 32.
        let each = each.clamp(2.0, 32.0) as usize;
        let is_long = |task: &&Arc<TaskHandle>| task.began.elapsed() >= SOON;
        let long = self.working.values().filter(is_long).count().min(threads);
        long + (threads - long) * each
    }

    /// Removes a task that a thread worked on with this handle. If the task was received again in
    /// the meantime, the later one continues.
    fn remove_task(&mut self, task: u64, handle: &Arc<TaskHandle>) {
        if self.working.get(&task).is_some_and(|other| Arc::ptr_eq(other, handle)) {
            self.working.remove(&task);
        }
    }
}

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<ProverState>,
    work: Condvar,
    changes: watch::Sender<()>,
    /// The factories of solvers for first solutions, each with its board size; the one that created
    /// a solver last is first.
    factories: Mutex<Vec<(usize, QuerySolverFactory)>>,
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, ProverState> {
        // No code that holds the lock can panic half-way through a change.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Creates a solver for the board of size `n`. It shares its proofs and LPs with those of other
    /// threads for the same board.
    fn query_solver(&self, n: usize) -> Box<dyn QuerySolver> {
        /// Enough for two proofs at the same time.
        const MOST: usize = 2;
        let mut factories = self.factories.lock().unwrap_or_else(PoisonError::into_inner);
        let factory = match factories.iter().position(|factory| factory.0 == n) {
            Some(place) => factories.remove(place),
            None => (n, QuerySolverFactory::remote(n)),
        };
        let solver = factory.1.create();
        factories.truncate(MOST - 1);
        factories.insert(0, factory);
        solver
    }
}

/// The pool of threads, which start with the first tasks. They end soon after this is dropped.
#[derive(Debug)]
pub(super) struct Provers {
    shared: Arc<Shared>,
    most: usize,
}

impl Drop for Provers {
    fn drop(&mut self) {
        self.cancel_all();
        self.shared.state().stopped = true;
        self.shared.work.notify_all();
    }
}

/// A copy of the tasks that are held and the answers that are not submitted.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct HeldTasks {
    pub(super) tasks: Vec<u64>,
    pub(super) answers: Vec<(u64, TaskAnswer)>,
}

impl Provers {
    /// Creates a pool of at most `threads` threads.
    pub(super) fn new(threads: usize) -> Self {
        Self { shared: Arc::default(), most: threads }
    }

    /// Returns the maximum number of threads.
    pub(super) const fn threads(&self) -> usize {
        self.most
    }

    /// Returns how many tasks may be held.
    pub(super) fn capacity(&self) -> usize {
        self.shared.state().capacity(self.most)
    }

    /// Waits until fewer tasks than `capacity` may be held, because a thread has worked on its task
    /// for long.
    pub(super) async fn capacity_falls_below(&self, capacity: usize) {
        while self.capacity() >= capacity {
            let next = {
                let state = self.shared.state();
                let ages = state.working.values().map(|task| task.began.elapsed());
                ages.filter_map(|age| SOON.checked_sub(age)).min().unwrap_or(SOON)
            };
            tokio::time::sleep(next).await;
        }
    }

    /// Drops the waiting tasks that are more than may be held: the coordinator leases a task again
    /// if its worker no longer lists it. Returns how many tasks may be held.
    pub(super) fn give_back_surplus(&self) -> usize {
        let mut state = self.shared.state();
        let capacity = state.capacity(self.most);
        let most_waiting = capacity.saturating_sub(state.working.len());
        state.waiting.truncate(most_waiting);
        capacity
    }

    /// Returns a receiver that is notified of answers.
    pub(super) fn changes(&self) -> watch::Receiver<()> {
        self.shared.changes.subscribe()
    }

    /// Adds tasks.
    ///
    /// # Errors
    /// The system cannot create a thread.
    pub(super) fn add(
        &self,
        tasks: impl IntoIterator<Item = (u64, TaskQuery)>,
    ) -> std::io::Result<()> {
        let mut state = self.shared.state();
        state.waiting.extend(tasks);
        while state.threads < self.most && state.threads < state.waiting.len() + state.working.len()
        {
            let shared = Arc::clone(&self.shared);
            std::thread::Builder::new()
                .name(format!("prove-{}", state.threads))
                .spawn(move || prove(&shared))?;
            state.threads += 1;
        }
        drop(state);
        self.shared.work.notify_all();
        Ok(())
    }

    /// Returns the tasks that wait or are being solved, and at most `most_answers` answers.
    pub(super) fn held(&self, most_answers: usize) -> HeldTasks {
        let state = self.shared.state();
        let waiting = state.waiting.iter().map(|&(task, _)| task);
        let answers = state.answers.iter().take(most_answers);
        HeldTasks {
            tasks: waiting.chain(state.working.keys().copied()).collect(),
            answers: answers.map(|(&task, answer)| (task, answer.clone())).collect(),
        }
    }

    /// Returns whether there are answers that the coordinator has not received.
    pub(super) fn has_answers(&self) -> bool {
        !self.shared.state().answers.is_empty()
    }

    /// Removes answers that the coordinator has received.
    pub(super) fn remove_submitted(&self, tasks: impl IntoIterator<Item = u64>) {
        let mut state = self.shared.state();
        tasks.into_iter().for_each(|task| drop(state.answers.remove(&task)));
    }

    /// Cancels tasks that are no longer needed.
    pub(super) fn cancel(&self, tasks: &[u64]) {
        let mut state = self.shared.state();
        state.waiting.retain(|(task, _)| !tasks.contains(task));
        for task in tasks {
            if let Some(handle) = state.working.get(task) {
                handle.stop();
            }
        }
    }

    /// Cancels all tasks.
    pub(super) fn cancel_all(&self) {
        let mut state = self.shared.state();
        state.waiting.clear();
        state.working.values().for_each(|handle| handle.stop());
    }

    /// Logs the coordinator's message about answers that it cannot read, unless it was the last
    /// one. Returns whether it is new.
    pub(super) fn log_unreadable(&self, why: &str) -> bool {
        let mut state = self.shared.state();
        let is_new = state.unreadable != why;
        if is_new {
            why.clone_into(&mut state.unreadable);
            if !why.is_empty() {
                tracing::warn!("{why}");
            }
        }
        is_new
    }

    /// Returns the number of tasks answered since the start.
    pub(super) fn answered(&self) -> u64 {
        self.shared.state().answered
    }
}

/// Leaves space in a message for everything else.
const MOST_REFUTATION_BYTES: usize = MOST_MESSAGE_BYTES / 2;

/// The state that a thread keeps between tasks.
#[derive(Default)]
struct Solvers {
    /// The solver for first solutions, with the board size that it was built for.
    query_solver: Option<(usize, Box<dyn QuerySolver>)>,
    searcher: Searcher,
}

fn prove(shared: &Shared) {
    let mut solvers = Solvers::default();
    let mut state = shared.state();
    loop {
        if state.stopped {
            return;
        }
        let Some((task, query)) = state.waiting.pop_front() else {
            state = shared.work.wait(state).unwrap_or_else(PoisonError::into_inner);
            continue;
        };
        let handle = Arc::new(TaskHandle::default());
        state.working.insert(task, Arc::clone(&handle));
        drop(state);
        let answer = catch_unwind(AssertUnwindSafe(|| solvers.answer(&query, &handle, shared)));
        state = shared.state();
        state.remove_task(task, &handle);
        let Ok(answer) = answer else {
            // Other workers may succeed. A worker that fails so fast must not take all tasks.
            tracing::error!(?query, "a query panicked; this worker stops proving");
            state.waiting.clear();
            state.panicked = true;
            shared.changes.send_replace(());
            return;
        };
        if answer.outcome != TaskOutcome::Stopped {
            const WEIGHT: f64 = 0.1;
            let before = state.task_s.unwrap_or(answer.elapsed_s);
            state.task_s = Some(before + WEIGHT * (answer.elapsed_s - before));
            state.answers.insert(task, answer);
            state.answered += 1;
        }
        shared.changes.send_replace(());
    }
}

impl Solvers {
    fn answer(&mut self, query: &TaskQuery, handle: &TaskHandle, shared: &Shared) -> TaskAnswer {
        let began = Instant::now();
        let outcome = match query {
            TaskQuery::Completion(query) => self.complete(query, &handle.control, shared).into(),
            TaskQuery::Part(question) => self.searcher.search(question, &handle.cancel).into(),
        };
        let (nodes, programmes) = (handle.control.nodes(), handle.control.lps_solved());
        TaskAnswer { outcome, nodes, programmes, elapsed_s: began.elapsed().as_secs_f64() }
    }

    fn complete(
        &mut self,
        query: &CompletionQuery,
        control: &Control<'_>,
        shared: &Shared,
    ) -> QueryOutcome {
        let CompletionQuery { n, ref prefix, programmes, attempt, .. } = *query;
        let (_, solver) = match &mut self.query_solver {
            Some(solver) if solver.0 == n => solver,
            solver => solver.insert((n, shared.query_solver(n))),
        };
        let query = PrefixQuery {
            node_limit: query.node_limit,
            only_dives: query.only_dives,
            set_search_lps: query.set_programmes,
            ..PrefixQuery::new(prefix, programmes, attempt)
        };
        let outcome = solver.solve(&query, Task::alone(control));
        match &outcome {
            // The refutation does not fit into a message. The queries about longer prefixes have
            // smaller ones.
            QueryOutcome::Refuted(refutation)
                if refutation.as_bytes().len() > MOST_REFUTATION_BYTES =>
            {
                QueryOutcome::GivenUp
            }
            _ => outcome,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proof::Beauty;
    use crate::proof::beautiful::{Premises, Subtree};
    use crate::solver::beautiful::SubtreeTask;

    fn query(n: usize, prefix: &[usize], programmes: u64) -> TaskQuery {
        TaskQuery::Completion(CompletionQuery {
            n,
            prefix: prefix.to_vec(),
            programmes,
            node_limit: 0,
            attempt: 0,
            only_dives: false,
            set_programmes: 0,
        })
    }

    /// Returns a subtree task on the whole board, with queens.
    fn part(n: usize, queens: &[usize], nodes: u64) -> TaskQuery {
        let half = n.div_ceil(2);
        let alive = vec![true; half * (half + 1) / 2];
        let known =
            Premises::new(n, Beauty::default(), alive, vec![], vec![]).expect("a valid task");
        let part = Subtree::new(Arc::new(known), queens.to_vec()).expect("a valid task");
        TaskQuery::Part(SubtreeTask { part, nodes, weights: Arc::new([]) })
    }

    fn wait_for(provers: &Provers, what: impl Fn(&HeldTasks) -> bool) -> HeldTasks {
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        let mut changes = provers.changes();
        loop {
            let held = provers.held(10);
            if what(&held) {
                return held;
            }
            runtime.block_on(changes.changed()).expect("the provers were not dropped");
        }
    }

    #[test]
    fn tasks_are_answered_and_answers_are_kept_until_they_are_removed() {
        let provers = Provers::new(2);
        let tasks =
            [(1, query(8, &[0], 9)), (2, query(8, &[0, 2], 9)), (3, query(20, &[0, 2, 4], 9))];
        provers.add(tasks).expect("threads");
        let held = wait_for(&provers, |held| held.answers.len() == 3);
        assert_eq!(held.tasks, [0; 0]);
        assert!(
            matches!(&held.answers[0].1.outcome, TaskOutcome::Completed(columns) if columns[0] == 0)
        );
        assert!(matches!(held.answers[1].1.outcome, TaskOutcome::Refuted(_)));
        provers.remove_submitted([1, 3]);
        assert_eq!(provers.held(10).answers, held.answers[1..2]);
        assert_eq!((provers.held(0).answers.len(), provers.answered()), (0, 3));
    }

    #[test]
    fn a_duplicate_task_can_be_cancelled_until_its_last_run_ends() {
        let (first, second) = (Arc::new(TaskHandle::default()), Arc::new(TaskHandle::default()));
        let mut state = ProverState::default();
        for handle in [&first, &second] {
            state.working.insert(7, Arc::clone(handle));
        }
        state.remove_task(7, &first);
        assert!(Arc::ptr_eq(&state.working[&7], &second));
        state.remove_task(7, &second);
        assert!(state.working.is_empty());
    }

    #[test]
    fn no_task_is_held_for_a_thread_that_has_worked_on_its_task_for_long() {
        let mut state = ProverState::default();
        assert_eq!(state.capacity(2), 4);
        let long = Instant::now().checked_sub(SOON).expect("the machine runs for longer");
        let handle = TaskHandle { began: long, ..TaskHandle::default() };
        state.working.insert(1, Arc::new(handle));
        assert_eq!(state.capacity(2), 3);
        // Quick tasks as a rule.
        state.task_s = Some(0.01);
        assert_eq!(state.capacity(2), 1 + 30);
        let handle = TaskHandle { began: long, ..TaskHandle::default() };
        state.working.insert(2, Arc::new(handle));
        assert_eq!(state.capacity(2), 2);
        state.panicked = true;
        assert_eq!(state.capacity(2), 0);
    }

    #[test]
    fn tasks_behind_a_long_one_are_given_back() {
        let provers = Provers::new(1);
        let long = query(110, &[0], u64::MAX);
        provers.add([(1, long), (2, query(8, &[0], 9))]).expect("a thread");
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
        runtime.block_on(provers.capacity_falls_below(2));
        assert_eq!((provers.give_back_surplus(), provers.held(0).tasks), (1, vec![1]));
        provers.cancel_all();
        wait_for(&provers, |held| held.tasks.is_empty());
    }

    #[test]
    fn subtrees_and_completions_are_searched_concurrently() {
        let provers = Provers::new(1);
        // Eight queens with one in the corner, four with one there, and a task with a limit of no
        // nodes.
        provers
            .add([(1, part(8, &[0], 100)), (2, part(4, &[0], 9)), (3, part(8, &[], 0))])
            .expect("a thread");
        let held = wait_for(&provers, |held| held.answers.len() == 3);
        assert!(
            matches!(&held.answers[0].1.outcome, TaskOutcome::Completed(columns) if columns[0] == 0)
        );
        assert!(matches!(&held.answers[1].1.outcome, TaskOutcome::Tree(tree) if tree.len() == 1));
        assert_eq!(held.answers[2].1.outcome, TaskOutcome::Tree(vec![16]));
    }

    #[test]
    fn unreadable_answers_are_logged_once() {
        let provers = Provers::new(1);
        let logged =
            ["", "it is old", "it is old", "", "it is old"].map(|why| provers.log_unreadable(why));
        assert_eq!(logged, [false, true, false, true, true]);
    }

    #[test]
    fn cancelled_tasks_are_dropped_without_an_answer() {
        let provers = Provers::new(1);
        // The first one takes far longer than the test waits.
        provers.add([(1, query(110, &[0], u64::MAX)), (2, query(8, &[0], 9))]).expect("a thread");
        provers.cancel(&[1]);
        let held = wait_for(&provers, |held| held.tasks.is_empty());
        let answered: Vec<u64> = held.answers.iter().map(|&(task, _)| task).collect();
        assert!(answered == [2] || answered == [1, 2], "{answered:?}");
        provers.add([(3, query(110, &[0], u64::MAX)), (4, query(8, &[0], 9))]).expect("a thread");
        provers.cancel_all();
        wait_for(&provers, |held| held.tasks.is_empty());
    }
}
