//! The provers: threads that solve the tasks of proofs. They run beside the executors: while there
//! is work for both, they share the cores.
//!
//! A task is *waiting*, then *working* while a thread solves it, and its answer is kept until the
//! coordinator has it. None of this is on disk: a lost task is leased to another worker.

use std::collections::{BTreeMap, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use tokio::sync::watch;

use crate::cluster::protocol::{
    CompletionQuery, MOST_MESSAGE_BYTES, TaskAnswer, TaskOutcome, TaskQuery,
};
use crate::solver::beautiful::{CancelToken, Searcher, SubtreeTask};
use crate::solver::first::{Control, Outcome, QuerySolver, Question, Task, query_solver};

/// The handles that stop a task.
#[derive(Debug, Default)]
struct Brake {
    control: Control,
    pulse: CancelToken,
}

impl Brake {
    fn stop(&self) {
        self.control.stop();
        self.pulse.abandon();
    }
}

#[derive(Debug, Default)]
struct State {
    waiting: VecDeque<(u64, TaskQuery)>,
    working: BTreeMap<u64, Arc<Brake>>,
    answers: BTreeMap<u64, TaskAnswer>,
    /// The number of threads started.
    threads: usize,
    stopped: bool,
    /// Whether a thread panicked; then no more tasks are requested.
    broken: bool,
    /// The coordinator's last message about answers that it cannot read.
    unreadable: String,
    answered: u64,
    /// Smoothed duration of a task, in seconds.
    task_s: Option<f64>,
}

impl State {
    /// Removes a task that a thread worked on with this brake. If the task was received again
    /// meanwhile, the later one continues.
    fn ends(&mut self, task: u64, brake: &Arc<Brake>) {
        if self.working.get(&task).is_some_and(|other| Arc::ptr_eq(other, brake)) {
            self.working.remove(&task);
        }
    }
}

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    work: Condvar,
    news: watch::Sender<()>,
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        // No code that holds the lock can panic half-way through a change.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
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
        self.drop_all();
        self.shared.state().stopped = true;
        self.shared.work.notify_all();
    }
}

/// A snapshot of the tasks that are held and the answers that are not submitted.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct InHand {
    pub(super) tasks: Vec<u64>,
    pub(super) answers: Vec<(u64, TaskAnswer)>,
}

impl Provers {
    /// Creates a pool of at most `threads` threads.
    pub(super) fn new(threads: usize) -> Self {
        let shared = Shared {
            state: Mutex::new(State::default()),
            work: Condvar::new(),
            news: watch::Sender::new(()),
        };
        Self { shared: Arc::new(shared), most: threads }
    }

    /// Returns how many tasks may be held: enough that no thread waits for the network, but no more
    /// than will be started soon, since other workers could solve them.
    pub(super) fn capacity(&self) -> usize {
        const SOON_S: f64 = 0.3;
        let state = self.shared.state();
        if state.broken {
            return 0;
        }
        let each = state.task_s.map_or(2.0, |task_s| SOON_S / task_s.max(1e-6));
        // Between 2 and 32.
        self.most * each.clamp(2.0, 32.0) as usize
    }

    /// Returns a receiver that is notified of answers.
    pub(super) fn news(&self) -> watch::Receiver<()> {
        self.shared.news.subscribe()
    }

    /// Adds tasks.
    ///
    /// # Errors
    /// The system cannot create a thread.
    pub(super) fn take(
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
    pub(super) fn in_hand(&self, most_answers: usize) -> InHand {
        let state = self.shared.state();
        let waiting = state.waiting.iter().map(|&(task, _)| task);
        let answers = state.answers.iter().take(most_answers);
        InHand {
            tasks: waiting.chain(state.working.keys().copied()).collect(),
            answers: answers.map(|(&task, answer)| (task, answer.clone())).collect(),
        }
    }

    /// Removes answers that the coordinator has received.
    pub(super) fn handed_in(&self, tasks: impl IntoIterator<Item = u64>) {
        let mut state = self.shared.state();
        tasks.into_iter().for_each(|task| drop(state.answers.remove(&task)));
    }

    /// Cancels tasks that are no longer needed.
    pub(super) fn cancel(&self, tasks: &[u64]) {
        let mut state = self.shared.state();
        state.waiting.retain(|(task, _)| !tasks.contains(task));
        for task in tasks {
            if let Some(brake) = state.working.get(task) {
                brake.stop();
            }
        }
    }

    /// Cancels all tasks.
    pub(super) fn drop_all(&self) {
        let mut state = self.shared.state();
        state.waiting.clear();
        state.working.values().for_each(|brake| brake.stop());
    }

    /// Logs the coordinator's message about answers that it cannot read, unless it was the last
    /// one. Returns whether it is new.
    pub(super) fn hear_unreadable(&self, why: &str) -> bool {
        let mut state = self.shared.state();
        let is_news = state.unreadable != why;
        if is_news {
            why.clone_into(&mut state.unreadable);
            if !why.is_empty() {
                tracing::warn!("{why}");
            }
        }
        is_news
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
struct Tools {
    /// The solver for first solutions, with the board size that it was built for.
    query_solver: Option<(usize, Box<dyn QuerySolver>)>,
    searcher: Searcher,
}

fn prove(shared: &Shared) {
    let mut tools = Tools::default();
    let mut state = shared.state();
    loop {
        if state.stopped {
            return;
        }
        let Some((task, query)) = state.waiting.pop_front() else {
            state = shared.work.wait(state).unwrap_or_else(PoisonError::into_inner);
            continue;
        };
        let brake = Arc::new(Brake::default());
        state.working.insert(task, Arc::clone(&brake));
        drop(state);
        let answer = catch_unwind(AssertUnwindSafe(|| tools.answer(&query, &brake)));
        state = shared.state();
        state.ends(task, &brake);
        let Ok(answer) = answer else {
            // Other workers may succeed. A worker that fails so fast must not take all tasks.
            tracing::error!(
                ?query,
                "a query ended in an error of its own; this worker proves no more"
            );
            state.waiting.clear();
            state.broken = true;
            shared.news.send_replace(());
            return;
        };
        if answer.outcome != TaskOutcome::Stopped {
            const WEIGHT: f64 = 0.1;
            let before = state.task_s.unwrap_or(answer.elapsed_s);
            state.task_s = Some(before + WEIGHT * (answer.elapsed_s - before));
            state.answers.insert(task, answer);
            state.answered += 1;
        }
        shared.news.send_replace(());
    }
}

impl Tools {
    fn answer(&mut self, query: &TaskQuery, brake: &Brake) -> TaskAnswer {
        let began = Instant::now();
        let outcome = match query {
            TaskQuery::Completion(query) => self.complete(query, &brake.control).into(),
            TaskQuery::Part(question) => self.search(question, &brake.pulse),
        };
        let (nodes, programmes) = (brake.control.nodes(), brake.control.programmes());
        TaskAnswer { outcome, nodes, programmes, elapsed_s: began.elapsed().as_secs_f64() }
    }

    fn complete(&mut self, query: &CompletionQuery, control: &Control) -> Outcome {
        let CompletionQuery { n, ref prefix, programmes, attempt } = *query;
        let (_, solver) = match &mut self.query_solver {
            Some(solver) if solver.0 == n => solver,
            solver => solver.insert((n, query_solver(n, &[]))),
        };
        let outcome = solver.ask(&Question { prefix, programmes, attempt }, Task::alone(control));
        match &outcome {
            // The refutation does not fit into a message. The queries about longer prefixes have
            // smaller ones.
            Outcome::Refuted(refutation) if refutation.as_bytes().len() > MOST_REFUTATION_BYTES => {
                Outcome::GivenUp
            }
            _ => outcome,
        }
    }

    fn search(&mut self, question: &SubtreeTask, pulse: &CancelToken) -> TaskOutcome {
        self.searcher.search(question, pulse).into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proof::Beauty;
    use crate::proof::beautiful::{Premises, Subtree};

    fn query(n: usize, prefix: &[usize], programmes: u64) -> TaskQuery {
        TaskQuery::Completion(CompletionQuery {
            n,
            prefix: prefix.to_vec(),
            programmes,
            attempt: 0,
        })
    }

    /// Returns a subtree task on the whole board, with queens.
    fn part(n: usize, queens: &[usize], nodes: u64) -> TaskQuery {
        let half = n.div_ceil(2);
        let alive = vec![true; half * (half + 1) / 2];
        let known = Premises::new(n, Beauty::default(), alive, vec![], vec![]).expect("of a board");
        let part = Subtree::new(Arc::new(known), queens.to_vec()).expect("of a board");
        TaskQuery::Part(SubtreeTask { part, nodes, weights: Arc::new([]) })
    }

    fn wait_for(provers: &Provers, what: impl Fn(&InHand) -> bool) -> InHand {
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        let mut news = provers.news();
        loop {
            let in_hand = provers.in_hand(10);
            if what(&in_hand) {
                return in_hand;
            }
            runtime.block_on(news.changed()).expect("the provers live");
        }
    }

    #[test]
    fn tasks_are_answered_and_answers_are_kept_until_they_are_handed_in() {
        let provers = Provers::new(2);
        let tasks =
            [(1, query(8, &[0], 9)), (2, query(8, &[0, 2], 9)), (3, query(20, &[0, 2, 4], 9))];
        provers.take(tasks).expect("threads");
        let in_hand = wait_for(&provers, |in_hand| in_hand.answers.len() == 3);
        assert_eq!(in_hand.tasks, [0; 0]);
        assert!(
            matches!(&in_hand.answers[0].1.outcome, TaskOutcome::Completed(columns) if columns[0] == 0)
        );
        assert!(matches!(in_hand.answers[1].1.outcome, TaskOutcome::Refuted(_)));
        provers.handed_in([1, 3]);
        assert_eq!(provers.in_hand(10).answers, in_hand.answers[1..2]);
        assert_eq!((provers.in_hand(0).answers.len(), provers.answered()), (0, 3));
    }

    #[test]
    fn a_task_that_came_twice_can_be_stopped_until_the_last_ends() {
        let (first, second) = (Arc::new(Brake::default()), Arc::new(Brake::default()));
        let mut state = State::default();
        for brake in [&first, &second] {
            state.working.insert(7, Arc::clone(brake));
        }
        state.ends(7, &first);
        assert!(Arc::ptr_eq(&state.working[&7], &second));
        state.ends(7, &second);
        assert!(state.working.is_empty());
    }

    #[test]
    fn parts_are_searched_beside_completions() {
        let provers = Provers::new(1);
        // Eight queens with one in the corner, four with one there, and a task with a limit of no
        // nodes.
        provers
            .take([(1, part(8, &[0], 100)), (2, part(4, &[0], 9)), (3, part(8, &[], 0))])
            .expect("a thread");
        let in_hand = wait_for(&provers, |in_hand| in_hand.answers.len() == 3);
        assert!(
            matches!(&in_hand.answers[0].1.outcome, TaskOutcome::Completed(columns) if columns[0] == 0)
        );
        assert!(
            matches!(&in_hand.answers[1].1.outcome, TaskOutcome::Tree(tree) if tree.len() == 1)
        );
        assert_eq!(in_hand.answers[2].1.outcome, TaskOutcome::Tree(vec![16]));
    }

    #[test]
    fn what_the_coordinator_cannot_read_is_told_once() {
        let provers = Provers::new(1);
        let heard =
            ["", "it is old", "it is old", "", "it is old"].map(|why| provers.hear_unreadable(why));
        assert_eq!(heard, [false, true, false, true, true]);
    }

    #[test]
    fn what_nobody_wants_is_dropped_without_an_answer() {
        let provers = Provers::new(1);
        // The first one takes far longer than the test waits.
        provers.take([(1, query(110, &[0], u64::MAX)), (2, query(8, &[0], 9))]).expect("a thread");
        provers.cancel(&[1]);
        let in_hand = wait_for(&provers, |in_hand| in_hand.tasks.is_empty());
        let answered: Vec<u64> = in_hand.answers.iter().map(|&(task, _)| task).collect();
        assert!(answered == [2] || answered == [1, 2], "{answered:?}");
        provers.take([(3, query(110, &[0], u64::MAX)), (4, query(8, &[0], 9))]).expect("a thread");
        provers.drop_all();
        wait_for(&provers, |in_hand| in_hand.tasks.is_empty());
    }
}
