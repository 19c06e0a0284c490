//! The task queue: solvers submit queries and wait for the answers, and workers take tasks.
//!
//! A task is *open* until it is answered or no longer wanted, and *lent* while a worker holds it.
//! It is lent again if its worker is silent for some time or does not list it. The queue is in
//! memory only.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::watch;

use super::super::clock::MonotonicClock;
use crate::cluster::protocol::{
    BUILD, MOST_MESSAGE_BYTES, ProveCall, TaskAnswer, TaskOutcome, TaskQuery,
};
use crate::decomposition::JobHash;

/// The time after which a silent worker holds no tasks any more, in ms.
const PATIENCE_MS: u64 = 30_000;
/// The limits on the tasks in a reply: their number, and their size in bytes. A message holds more.
const MOST_AT_ONCE: usize = 256;
const MOST_BYTES: usize = MOST_MESSAGE_BYTES / 2;

/// Returns an upper bound on the size of a query in a message, in bytes.
fn bytes(query: &TaskQuery) -> usize {
    /// The size of a number, including its framing.
    const NUMBER: usize = 8;
    match query {
        TaskQuery::Completion(query) => NUMBER * (4 + query.prefix.len()),
        TaskQuery::Part(question) => {
            let known = question.part.premises();
            let numbers = 8
                + known.full().len()
                + 3 * known.ranges().len()
                + question.part.queens().len()
                + question.weights.len();
            known.candidates().len() / 8 + NUMBER * numbers
        }
    }
}

/// An answer and the worker that gave it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Answered {
    pub(super) worker: String,
    /// The boot number of the worker when it answered.
    pub(super) boot: u64,
    /// The kind of the task.
    pub(super) kind: TaskKind,
    pub(super) answer: TaskAnswer,
}

/// The kind of a task. A worker may support only some kinds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum TaskKind {
    Completion,
    Part,
}

impl From<&TaskQuery> for TaskKind {
    fn from(query: &TaskQuery) -> Self {
        match query {
            TaskQuery::Completion(_) => Self::Completion,
            TaskQuery::Part(_) => Self::Part,
        }
    }
}

/// A record that answers of a worker have steps unknown to this version.
#[derive(Clone, Debug)]
struct Unreadable {
    /// The boot number of the worker when it answered. After a restart it may be another version.
    boot: u64,
    kinds: BTreeSet<TaskKind>,
    why: String,
}

/// The reply to a worker.
#[derive(Clone, Debug, Default, PartialEq)]
pub(in super::super) struct Reply {
    /// Tasks that are new to the worker.
    pub(in super::super) tasks: Vec<(u64, TaskQuery)>,
    /// Tasks that it holds and that are no longer wanted from it.
    pub(in super::super) cancel: Vec<u64>,
    /// The reason that it is distrusted; it gets no tasks then.
    pub(in super::super) distrusted: Option<String>,
    /// The reason that its answers cannot be read; it gets no tasks of that kind until it restarts.
    /// Sent along with every other reply until then.
    pub(in super::super) unreadable: Option<String>,
}

impl Reply {
    const fn says_nothing(&self) -> bool {
        self.tasks.is_empty() && self.cancel.is_empty() && self.distrusted.is_none()
    }
}

#[derive(Debug)]
struct Task {
    job: JobHash,
    query: TaskQuery,
    lent: Option<Lent>,
    answer: Option<Answered>,
}

impl Task {
    fn is_lent_to(&self, worker: &str) -> bool {
        self.lent.as_ref().is_some_and(|lent| lent.worker == worker)
    }
}

/// The worker that holds a task, and the call by which the task was lent or last listed.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Lent {
    worker: String,
    boot: u64,
    call: u64,
}

/// The last call of a worker.
#[derive(Clone, Copy, Debug)]
struct Seen {
    boot: u64,
    call: u64,
    at_ms: u64,
}

#[derive(Debug)]
struct State {
    next: u64,
    tasks: BTreeMap<u64, Task>,
    workers: HashMap<String, Seen>,
    /// Workers whose answers were wrong, and the reasons.
    distrusted: BTreeMap<String, String>,
    /// The number of useless answers of each worker since its last useful one.
    useless: HashMap<String, u32>,
    /// The records of unreadable answers, by worker.
    unreadable: BTreeMap<String, Unreadable>,
}

impl State {
    fn new(first: u64) -> Self {
        Self {
            next: first,
            tasks: BTreeMap::new(),
            workers: HashMap::new(),
            distrusted: BTreeMap::new(),
            useless: HashMap::new(),
            unreadable: BTreeMap::new(),
        }
    }

    fn add(&mut self, job: JobHash, query: TaskQuery) -> u64 {
        let number = self.next;
        self.next += 1;
        self.tasks.insert(number, Task { job, query, lent: None, answer: None });
        number
    }

    /// Opens the tasks of silent workers to others.
    fn expire(&mut self, now_ms: u64) {
        self.workers.retain(|_, seen| seen.at_ms + PATIENCE_MS > now_ms);
        for task in self.tasks.values_mut() {
            let silent = |lent: &Lent| !self.workers.contains_key(&lent.worker);
            if task.lent.as_ref().is_some_and(silent) {
                task.lent = None;
            }
        }
    }

    /// Stores answers of a trusted worker. Ignores answers to tasks that are gone or already
    /// answered. Only the worker that holds a task may give it up.
    fn answer(&mut self, worker: &str, boot: u64, answers: Vec<(u64, TaskAnswer)>) {
        for (number, answer) in answers {
            if let Some(task) = self.tasks.get_mut(&number)
                && task.answer.is_none()
                && (answer.outcome != TaskOutcome::GivenUp || task.is_lent_to(worker))
            {
                let kind = TaskKind::from(&task.query);
                task.answer = Some(Answered { worker: worker.to_owned(), boot, kind, answer });
            }
        }
    }

    /// Processes the lists of a call. Returns `None` if a later call came before it.
    fn call(&mut self, worker: &str, call: &ProveCall, now_ms: u64) -> Option<Reply> {
        let ProveCall { boot, number, capacity, ref holding, parts, .. } = *call;
        if let Some(why) = self.distrusted.get(worker) {
            return Some(Reply { distrusted: Some(why.clone()), ..Reply::default() });
        }
        if self.workers.get(worker).is_some_and(|seen| seen.boot == boot && seen.call > number) {
            return None;
        }
        self.workers.insert(worker.to_owned(), Seen { boot, call: number, at_ms: now_ms });
        self.expire(now_ms);
        // Answers of another version say nothing about this one.
        if self.unreadable.get(worker).is_some_and(|unreadable| unreadable.boot != boot) {
            self.unreadable.remove(worker);
        }
        let unreadable = self.unreadable.get(worker);
        let can = |query: &TaskQuery| {
            let kind = TaskKind::from(query);
            (parts || kind == TaskKind::Completion)
                && unreadable.is_none_or(|unreadable| !unreadable.kinds.contains(&kind))
        };
        let mut cancel = Vec::new();
        for &task in holding {
            match self.tasks.get_mut(&task) {
                Some(known)
                    if known.answer.is_none() && known.is_lent_to(worker) && can(&known.query) =>
                {
                    known.lent = Some(Lent { worker: worker.to_owned(), boot, call: number });
                }
                _ => cancel.push(task),
            }
        }
        let mut in_hand = holding.len() - cancel.len();
        // No worker takes more than its share of the open tasks.
        let open = self.tasks.values().filter(|task| task.answer.is_none()).count();
        let share = open.div_ceil(self.workers.len());
        let mut tasks = Vec::new();
        let mut room_bytes = MOST_BYTES;
        for (&task, Task { query, lent, answer, .. }) in &mut self.tasks {
            // Lent by an earlier call, but the worker does not list it.
            if lent.as_ref().is_some_and(|lent| {
                lent.worker == worker && (lent.boot, lent.call) != (boot, number)
            }) {
                *lent = None;
            }
            let can = can(query);
            let fits = bytes(query) <= room_bytes || tasks.is_empty();
            let room = in_hand < capacity.min(share) && tasks.len() < MOST_AT_ONCE && fits;
            if room && can && lent.is_none() && answer.is_none() {
                room_bytes = room_bytes.saturating_sub(bytes(query));
                *lent = Some(Lent { worker: worker.to_owned(), boot, call: number });
                tasks.push((task, query.clone()));
                in_hand += 1;
            }
        }
        let unreadable = unreadable.map(|unreadable| unreadable.why.clone());
        Some(Reply { tasks, cancel, distrusted: None, unreadable })
    }
}

/// The task queue.
#[derive(Debug)]
pub(in super::super) struct TaskQueue {
    clock: MonotonicClock,
    state: Mutex<State>,
    answered: Condvar,
    notifications: watch::Sender<()>,
}

impl TaskQueue {
    pub(in super::super) fn new() -> Self {
        let clock = MonotonicClock::start();
        // No task of an earlier start has a number as high.
        let state = Mutex::new(State::new(clock.now_ms() << 20));
        Self { clock, state, answered: Condvar::new(), notifications: watch::Sender::new(()) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // No code that holds the lock can panic half-way through a change.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Submits a query and waits for the answer. Returns `None` once it is no longer `wanted`.
    pub(super) fn ask(
        &self,
        job: JobHash,
        query: TaskQuery,
        wanted: &dyn Fn() -> bool,
    ) -> Option<Answered> {
        /// The interval for polling `wanted`, since no signal announces its change.
        const LOOK: Duration = Duration::from_millis(50);
        let mut state = self.state();
        let number = state.add(job, query);
        self.notifications.send_replace(());
        loop {
            if let Some(answered) = state.tasks.get_mut(&number).and_then(|task| task.answer.take())
            {
                state.tasks.remove(&number);
                return Some(answered);
            }
            if !wanted() {
                state.tasks.remove(&number);
                self.notifications.send_replace(());
                return None;
            }
            state =
                self.answered.wait_timeout(state, LOOK).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Processes a call of a worker: stores its answers, and waits until there is something to
    /// reply, for at most `wait`.
    pub(in super::super) async fn call(
        &self,
        worker: &str,
        mut call: ProveCall,
        wait: Duration,
    ) -> Reply {
        let until = tokio::time::Instant::now() + wait;
        let answers = std::mem::take(&mut call.answers);
        // Answers are acknowledged at once.
        let until = if answers.is_empty() { until } else { tokio::time::Instant::now() };
        if !answers.is_empty() {
            let mut state = self.state();
            if !state.distrusted.contains_key(worker) {
                state.answer(worker, call.boot, answers);
            }
            drop(state);
            self.answered.notify_all();
        }
        let mut notifications = self.notifications.subscribe();
        loop {
            notifications.mark_unchanged();
            // Superseded by a later call: nobody reads this reply.
            let Some(reply) = self.state().call(worker, &call, self.clock.now_ms()) else {
                return Reply::default();
            };
            if !reply.says_nothing() || call.capacity == 0 {
                return reply;
            }
            tokio::select! {
                _ = notifications.changed() => {}
                () = tokio::time::sleep_until(until) => return reply,
            }
        }
    }

    /// Distrusts a worker. The tasks that it holds go to others.
    pub(super) fn distrust(&self, worker: &str, why: &str) {
        let mut state = self.state();
        state.distrusted.entry(worker.to_owned()).or_insert_with(|| why.to_owned());
        state.workers.remove(worker);
        state.expire(self.clock.now_ms());
        drop(state);
        self.notifications.send_replace(());
    }

    /// Stops asking a worker for answers of this kind until it restarts, because they have steps
    /// that this version does not know.
    pub(super) fn cannot_read(&self, answered: &Answered, why: &str) {
        let why = format!(
            "the coordinator runs nqueens {BUILD} and cannot read answers of this worker: {why}; it asks for no more of \
             this kind until the worker restarts"
        );
        let mut state = self.state();
        let Answered { worker, boot, kind, .. } = answered;
        if state.distrusted.contains_key(worker) {
            return;
        }
        let known = state.unreadable.get(worker).filter(|known| known.boot == *boot);
        let mut kinds = known.map(|known| known.kinds.clone()).unwrap_or_default();
        kinds.insert(*kind);
        state.unreadable.insert(worker.clone(), Unreadable { boot: *boot, kinds, why });
        // The tasks of this kind that it holds go to others after its next call.
        drop(state);
        self.notifications.send_replace(());
    }

    /// Records whether an answer was useful. Returns whether the worker has given too many useless
    /// answers in a row and must stop.
    pub(super) fn is_useless(&self, worker: &str, of_use: bool) -> bool {
        /// An honest worker may meet a query whose refutation is hard to check.
        const MOST: u32 = 10;
        let mut state = self.state();
        if of_use {
            state.useless.remove(worker);
            return false;
        }
        let useless = state.useless.entry(worker.to_owned()).or_default();
        *useless += 1;
        *useless >= MOST
    }

    /// Lifts the distrust of a worker. Returns whether it was distrusted.
    pub(in super::super) fn release(&self, worker: &str) -> bool {
        let mut state = self.state();
        state.useless.remove(worker);
        state.distrusted.remove(worker).is_some()
    }

    /// Returns the number of open tasks of a job, and how many of them are lent.
    pub(super) fn open(&self, job: JobHash) -> (usize, usize) {
        let state = self.state();
        let of_job = state.tasks.values().filter(|task| task.job == job && task.answer.is_none());
        of_job
            .fold((0, 0), |(open, lent), task| (open + 1, lent + usize::from(task.lent.is_some())))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use prost::Message as _;

    use super::*;
    use crate::cluster::protocol::{CompletionQuery, task};
    use crate::proof::Beauty;
    use crate::proof::beautiful::{Premises, Subtree};
    use crate::solver::beautiful::SubtreeTask;

    const JOB: JobHash = JobHash::from_bytes([7; 16]);

    const NONE: [u64; 0] = [];

    fn query(column: usize) -> TaskQuery {
        TaskQuery::Completion(CompletionQuery {
            n: 8,
            prefix: vec![column],
            programmes: 1,
            attempt: 0,
        })
    }

    /// Returns a subtree task of a large board.
    fn part() -> TaskQuery {
        let n = 512;
        let known = Premises::new(n, Beauty::default(), vec![true; 256 * 257 / 2], vec![], vec![])
            .expect("of a board");
        let part = Subtree::new(Arc::new(known), vec![]).expect("of a board");
        TaskQuery::Part(SubtreeTask { part, nodes: 1, weights: vec![1.0; 6 * n].into() })
    }

    fn pool_of(columns: &[usize]) -> State {
        let mut state = State::new(100);
        for &column in columns {
            state.add(JOB, query(column));
        }
        state
    }

    fn call(boot: u64, number: u64, capacity: usize, holding: &[u64]) -> ProveCall {
        let holding = holding.to_vec();
        ProveCall { boot, number, capacity, holding, answers: Vec::new(), parts: true }
    }

    fn given_up() -> TaskAnswer {
        TaskAnswer { outcome: TaskOutcome::GivenUp, nodes: 0, programmes: 0, elapsed_s: 0.0 }
    }

    fn numbers(reply: Option<Reply>) -> Vec<u64> {
        reply.expect("the latest call").tasks.into_iter().map(|(number, _)| number).collect()
    }

    #[test]
    fn the_first_tasks_are_lent_first_each_to_one_worker() {
        let mut state = pool_of(&[0, 2, 4]);
        assert_eq!(numbers(state.call("a", &call(1, 1, 2, &[]), 0)), [100, 101]);
        assert_eq!(numbers(state.call("b", &call(1, 1, 2, &[]), 0)), [102]);
        assert_eq!(numbers(state.call("a", &call(1, 2, 2, &[100, 101]), 0)), NONE);
    }

    #[test]
    fn what_a_worker_does_not_list_is_lent_again() {
        let mut state = pool_of(&[0, 2]);
        assert_eq!(numbers(state.call("a", &call(1, 1, 2, &[]), 0)), [100, 101]);
        // Its reply was lost.
        assert_eq!(numbers(state.call("a", &call(1, 2, 2, &[]), 0)), [100, 101]);
        // It has restarted.
        assert_eq!(numbers(state.call("a", &call(9, 1, 1, &[]), 0)), [100]);
        assert_eq!(numbers(state.call("b", &call(1, 1, 2, &[]), 0)), [101]);
    }

    #[test]
    fn a_call_that_comes_after_a_later_one_changes_nothing() {
        let mut state = pool_of(&[0, 2]);
        assert_eq!(numbers(state.call("a", &call(1, 2, 1, &[]), 0)), [100]);
        assert_eq!(state.call("a", &call(1, 1, 2, &[]), 0), None);
        assert_eq!(numbers(state.call("b", &call(1, 1, 2, &[]), 0)), [101]);
    }

    #[test]
    fn what_a_silent_worker_has_is_lent_to_others_and_cancelled_if_it_comes_back() {
        let mut state = pool_of(&[0]);
        assert_eq!(numbers(state.call("a", &call(1, 1, 1, &[]), 0)), [100]);
        assert_eq!(numbers(state.call("b", &call(1, 1, 1, &[]), PATIENCE_MS - 1)), NONE);
        assert_eq!(numbers(state.call("b", &call(1, 2, 1, &[]), PATIENCE_MS)), [100]);
        let reply = state.call("a", &call(1, 2, 1, &[100]), PATIENCE_MS).expect("the latest call");
        assert_eq!(reply, Reply { cancel: vec![100], ..Reply::default() });
    }

    #[test]
    fn nobody_has_what_was_not_lent_to_it_nor_gives_it_up() {
        let mut state = pool_of(&[0, 2]);
        let reply = state.call("a", &call(1, 1, 0, &[100, 101]), 0);
        assert_eq!(reply, Some(Reply { cancel: vec![100, 101], ..Reply::default() }));
        state.answer("a", 1, vec![(100, given_up())]);
        assert!(state.tasks[&100].answer.is_none());
    }

    #[test]
    fn workers_share_what_is_open() {
        let mut state = pool_of(&[0, 2, 4, 6, 7]);
        assert_eq!(numbers(state.call("a", &call(1, 1, 0, &[]), 0)), NONE);
        assert_eq!(numbers(state.call("b", &call(1, 1, 9, &[]), 0)), [100, 101, 102]);
        assert_eq!(numbers(state.call("a", &call(1, 2, 9, &[]), 0)), [103, 104]);
    }

    #[test]
    fn who_is_of_no_use_ten_times_in_a_row_must_not_go_on() {
        let pool = TaskQueue::new();
        assert!((0..9).all(|_| !pool.is_useless("a", false)));
        assert!(!pool.is_useless("a", true));
        assert!((0..9).all(|_| !pool.is_useless("a", false)) && pool.is_useless("a", false));
    }

    #[test]
    fn an_answer_counts_once_and_what_is_answered_or_unwanted_is_cancelled() {
        let mut state = pool_of(&[0, 2]);
        assert_eq!(numbers(state.call("a", &call(1, 1, 2, &[]), 0)), [100, 101]);
        state.answer("a", 1, vec![(100, given_up()), (55, given_up())]);
        let late = TaskAnswer { outcome: TaskOutcome::Completed(vec![]), ..given_up() };
        state.answer("b", 1, vec![(100, late)]);
        let kept = state.tasks[&100].answer.clone();
        assert_eq!(
            kept,
            Some(Answered {
                worker: "a".into(),
                boot: 1,
                kind: TaskKind::Completion,
                answer: given_up()
            })
        );
        state.tasks.remove(&101);
        let reply = state.call("a", &call(1, 2, 2, &[100, 101]), 0).expect("the latest call");
        assert_eq!(reply, Reply { cancel: vec![100, 101], ..Reply::default() });
    }

    #[test]
    fn whoever_asks_has_the_answer_or_goes_without_one() {
        let pool = TaskQueue::new();
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
        std::thread::scope(|scope| {
            let asked = scope.spawn(|| pool.ask(JOB, query(3), &|| true));
            let long = Duration::from_secs(100);
            let reply = runtime.block_on(pool.call("a", call(1, 1, 1, &[]), long));
            let (number, lent) = reply.tasks[0].clone();
            assert_eq!((lent, pool.open(JOB)), (query(3), (1, 1)));
            let answers = vec![(number, given_up())];
            let last = ProveCall { answers, ..call(1, 2, 0, &[]) };
            assert_eq!(runtime.block_on(pool.call("a", last, long)), Reply::default());
            let answered = asked.join().expect("no panic").expect("an answer");
            assert_eq!(
                answered,
                Answered {
                    worker: "a".into(),
                    boot: 1,
                    kind: TaskKind::Completion,
                    answer: given_up()
                }
            );
        });
        assert_eq!(pool.ask(JOB, query(3), &|| false), None);
        assert_eq!(pool.open(JOB), (0, 0));
    }

    #[test]
    fn what_a_worker_has_that_is_believed_no_more_goes_to_others() {
        let pool = TaskQueue::new();
        let number = pool.state().add(JOB, query(0));
        assert_eq!(numbers(pool.state().call("liar", &call(1, 1, 1, &[]), 0)), [number]);
        pool.distrust("liar", "it lied");
        let reply =
            pool.state().call("liar", &call(1, 2, 1, &[number]), 0).expect("the latest call");
        assert_eq!((reply.tasks.len(), reply.distrusted.as_deref()), (0, Some("it lied")));
        assert_eq!(numbers(pool.state().call("b", &call(1, 1, 1, &[]), 0)), [number]);
        assert!(pool.release("liar") && !pool.release("liar"));
    }

    #[test]
    fn whose_answers_cannot_be_read_gets_no_more_of_that_kind_until_it_restarts() {
        let pool = TaskQueue::new();
        let completion = pool.state().add(JOB, query(0));
        let part = pool.state().add(JOB, part());
        let newer = |number, holding: &[u64]| call(7, number, 9, holding);
        assert_eq!(numbers(pool.state().call("newer", &newer(1, &[]), 0)), [completion, part]);
        pool.state().answer("newer", 7, vec![(completion, given_up())]);
        let answered = pool.state().tasks[&completion].answer.clone().expect("an answer");
        pool.state().tasks.remove(&completion);
        pool.cannot_read(&answered, "a step of kind 9");
        let another = pool.state().add(JOB, query(2));
        // It keeps its subtree task, gets the reason, and is not distrusted.
        let reply = pool.state().call("newer", &newer(2, &[part]), 0).expect("the latest call");
        assert_eq!((reply.tasks.len(), reply.cancel.len(), &reply.distrusted), (0, 0, &None));
        let why = reply.unreadable.as_deref().expect("it is told");
        assert!(why.contains(BUILD) && why.contains("kind 9") && why.lines().count() == 1, "{why}");
        // This alone is no reason to reply at once.
        assert!(reply.says_nothing());
        // Once its trees cannot be read either, the subtree task that it holds goes to others.
        pool.cannot_read(&Answered { kind: TaskKind::Part, ..answered }, "a step of kind 300");
        let reply = pool.state().call("newer", &newer(3, &[part]), 0).expect("the latest call");
        assert_eq!((reply.tasks.len(), reply.cancel), (0, vec![part]));
        assert_eq!(numbers(pool.state().call("older", &call(1, 1, 9, &[]), 0)), [part]);
        // After a restart, it may be another version.
        let reply = pool.state().call("newer", &call(8, 1, 9, &[]), 0).expect("the latest call");
        assert_eq!((reply.tasks[0].0, reply.unreadable), (another, None));
    }

    #[test]
    fn nobody_gets_parts_who_does_not_search_them() {
        let mut state = State::new(100);
        state.add(JOB, part());
        state.add(JOB, query(0));
        let old = ProveCall { parts: false, ..call(1, 1, 9, &[]) };
        assert_eq!(numbers(state.call("old", &old, 0)), [101]);
        assert_eq!(numbers(state.call("new", &call(1, 1, 9, &[]), 0)), [100]);
    }

    #[test]
    fn a_reply_has_no_more_tasks_than_a_message_has_room_for() {
        let mut state = State::new(100);
        for _ in 0..MOST_AT_ONCE {
            state.add(JOB, part());
        }
        let lent = numbers(state.call("a", &call(1, 1, MOST_AT_ONCE, &[]), 0)).len();
        let each = task(u64::MAX, &part()).encoded_len();
        assert!(
            each <= bytes(&part()) && each * lent <= MOST_BYTES && lent > 10,
            "{lent} of {each} bytes"
        );
        let again = numbers(state.call(
            "a",
            &call(1, 2, MOST_AT_ONCE, &(100..100 + lent as u64).collect::<Vec<_>>()),
            0,
        ));
        assert_eq!(again.first(), Some(&(100 + lent as u64)));
    }
}
