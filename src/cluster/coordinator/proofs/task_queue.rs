//! The task queue: solvers submit queries and wait for the answers, and workers take tasks.
//!
//! A task is *open* until it is answered or no longer wanted, and *leased* while a worker holds it.
//! It is leased again if its worker is silent for some time or does not list it. The queue is in
//! memory only.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::watch;

use super::super::clock::MonotonicClock;
use super::super::lock;
use crate::cluster::protocol::{
    BUILD, MOST_MESSAGE_BYTES, ProveCall, TaskAnswer, TaskOutcome, TaskQuery,
};
use crate::decomposition::JobHash;

/// The time after which a silent worker no longer holds tasks, in ms.
const SILENCE_MS: u64 = 30_000;
/// The limits on the tasks in a reply: their number, and their size in bytes. A message holds more.
const MOST_AT_ONCE: usize = 256;
const MOST_BYTES: usize = MOST_MESSAGE_BYTES / 2;

/// Returns an upper bound on the size of a query in a message, in bytes.
fn bytes(query: &TaskQuery) -> usize {
    /// The size of a number, including its framing.
    const NUMBER: usize = 8;
    match query {
        TaskQuery::Completion(query) => NUMBER * (5 + query.prefix.len()),
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
pub(in super::super) struct ProveReply {
    /// Tasks that are new to the worker.
    pub(in super::super) tasks: Vec<(u64, TaskQuery)>,
    /// Tasks that it holds and that are no longer wanted from it.
    pub(in super::super) cancel: Vec<u64>,
    /// The reason that it is quarantined; it gets no tasks then.
    pub(in super::super) quarantined: Option<String>,
    /// The reason that its answers cannot be read; it gets no tasks of that kind until it restarts.
    /// Sent along with every other reply until then.
    pub(in super::super) unreadable: Option<String>,
}

impl ProveReply {
    const fn is_empty(&self) -> bool {
        self.tasks.is_empty() && self.cancel.is_empty() && self.quarantined.is_none()
    }
}

#[derive(Debug)]
struct Task {
    job: JobHash,
    /// Tasks of higher priority are leased first.
    priority: i32,
    query: TaskQuery,
    lease: Option<TaskLease>,
    answer: Option<Answered>,
}

impl Task {
    fn is_leased_to(&self, worker: &str) -> bool {
        self.lease.as_ref().is_some_and(|lease| lease.worker == worker)
    }
}

/// The worker that holds a task, and the call by which the task was leased or last listed.
#[derive(Clone, Debug, PartialEq, Eq)]
struct TaskLease {
    worker: String,
    boot: u64,
    call: u64,
}

/// The last call of a worker.
#[derive(Clone, Copy, Debug)]
struct LastCall {
    boot: u64,
    call: u64,
    at_ms: u64,
    /// The number of tasks that keep it busy.
    tasks: usize,
}

#[derive(Debug, Default)]
struct QueueState {
    next: u64,
    tasks: BTreeMap<u64, Task>,
    workers: HashMap<String, LastCall>,
    /// Workers whose answers were wrong, and the reasons.
    quarantined: BTreeMap<String, String>,
    /// The number of useless answers of each worker since its last useful one.
    useless: HashMap<String, u32>,
    /// The records of unreadable answers, by worker.
    unreadable: BTreeMap<String, Unreadable>,
    /// True if a task was opened to other workers since they were last notified.
    reopened: bool,
    /// Number of calls of [`TaskQueue::wake`].
    wakes: u64,
}

impl QueueState {
    fn new(first: u64) -> Self {
        Self { next: first, ..Self::default() }
    }

    fn add(&mut self, job: JobHash, priority: i32, query: TaskQuery) -> u64 {
        let number = self.next;
        self.next += 1;
        self.tasks.insert(number, Task { job, priority, query, lease: None, answer: None });
        number
    }

    /// Returns the tasks in the order in which they are leased: by priority; then the most urgent
    /// task of each job, then the second most urgent of each, and so on; then by number. Of a job's
    /// completion queries, the one with the lexicographically smallest prefix is the most urgent: a
    /// completion makes the queries after it useless.
    fn by_urgency(&self) -> Vec<u64> {
        fn prefix(task: &Task) -> &[usize] {
            match &task.query {
                TaskQuery::Completion(query) => &query.prefix,
                TaskQuery::Part(_) => &[],
            }
        }
        let mut tasks: Vec<(&u64, &Task)> = self.tasks.iter().collect();
        tasks.sort_by_key(|(_, task)| (task.job, prefix(task)));
        let mut turns: HashMap<JobHash, u64> = HashMap::new();
        let mut by_turn: Vec<_> = tasks
            .into_iter()
            .map(|(&number, task)| {
                let turn = turns.entry(task.job).or_default();
                *turn += 1;
                (Reverse(task.priority), *turn, number)
            })
            .collect();
        by_turn.sort_unstable();
        by_turn.into_iter().map(|(_, _, number)| number).collect()
    }

    /// Opens the tasks of silent workers to others.
    fn expire(&mut self, now_ms: u64) {
        self.workers.retain(|_, seen| seen.at_ms + SILENCE_MS > now_ms);
        for task in self.tasks.values_mut() {
            let silent = |lease: &TaskLease| !self.workers.contains_key(&lease.worker);
            if task.lease.as_ref().is_some_and(silent) {
                task.lease = None;
                self.reopened = true;
            }
        }
    }

    /// Stores answers of a trusted worker. Ignores answers to tasks that are gone or already
    /// answered. Only the worker that holds a task may give it up.
    fn answer(&mut self, worker: &str, boot: u64, answers: Vec<(u64, TaskAnswer)>) {
        for (number, answer) in answers {
            if let Some(task) = self.tasks.get_mut(&number)
                && task.answer.is_none()
                && (answer.outcome != TaskOutcome::GivenUp || task.is_leased_to(worker))
            {
                let kind = TaskKind::from(&task.query);
                task.answer = Some(Answered { worker: worker.to_owned(), boot, kind, answer });
            }
        }
    }

    /// Processes the lists of a call. Returns `None` if a later call came before it.
    fn call(&mut self, worker: &str, call: &ProveCall, now_ms: u64) -> Option<ProveReply> {
        let ProveCall { boot, number, capacity, threads, ref holding, parts, .. } = *call;
        if let Some(why) = self.quarantined.get(worker) {
            return Some(ProveReply { quarantined: Some(why.clone()), ..ProveReply::default() });
        }
        if self.workers.get(worker).is_some_and(|seen| seen.boot == boot && seen.call > number) {
            return None;
        }
        // One for each thread, and one that is ready when it is done. The capacity may be larger,
        // or smaller while tasks take long.
        let tasks = if threads == 0 { capacity } else { capacity.min(2 * threads) };
        let last = LastCall { boot, call: number, at_ms: now_ms, tasks };
        self.workers.insert(worker.to_owned(), last);
        self.expire(now_ms);
        // Answers of another version do not matter for this one.
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
                    if known.answer.is_none()
                        && known.is_leased_to(worker)
                        && can(&known.query) =>
                {
                    known.lease = Some(TaskLease { worker: worker.to_owned(), boot, call: number });
                }
                _ => cancel.push(task),
            }
        }
        let mut held = holding.len() - cancel.len();
        // No worker takes more than its share of the open tasks.
        let open = self.tasks.values().filter(|task| task.answer.is_none()).count();
        let share = open.div_ceil(self.workers.len());
        let mut tasks = Vec::new();
        let mut room_bytes = MOST_BYTES;
        for Task { lease, .. } in self.tasks.values_mut() {
            // Leased by an earlier call, but the worker does not list it.
            if lease.as_ref().is_some_and(|lease| {
                lease.worker == worker && (lease.boot, lease.call) != (boot, number)
            }) {
                *lease = None;
                self.reopened = true;
            }
        }
        let by_urgency = if held < capacity.min(share) { self.by_urgency() } else { Vec::new() };
        for task in by_urgency {
            let Some(Task { query, lease, answer, .. }) = self.tasks.get_mut(&task) else {
                continue;
            };
            let can = can(query);
            let fits = bytes(query) <= room_bytes || tasks.is_empty();
            let room = held < capacity.min(share) && tasks.len() < MOST_AT_ONCE && fits;
            if room && can && lease.is_none() && answer.is_none() {
                room_bytes = room_bytes.saturating_sub(bytes(query));
                *lease = Some(TaskLease { worker: worker.to_owned(), boot, call: number });
                tasks.push((task, query.clone()));
                held += 1;
            }
        }
        let unreadable = unreadable.map(|unreadable| unreadable.why.clone());
        Some(ProveReply { tasks, cancel, quarantined: None, unreadable })
    }
}

/// The task queue.
#[derive(Debug)]
pub(in super::super) struct TaskQueue {
    clock: MonotonicClock,
    state: Mutex<QueueState>,
    answered: Condvar,
    changes: watch::Sender<()>,
}

impl TaskQueue {
    pub(in super::super) fn new() -> Self {
        let clock = MonotonicClock::start();
        // No task of an earlier start has a number as high.
        let state = Mutex::new(QueueState::new(clock.now_ms() << 20));
        Self { clock, state, answered: Condvar::new(), changes: watch::Sender::new(()) }
    }

    fn state(&self) -> MutexGuard<'_, QueueState> {
        lock(&self.state)
    }

    /// Submits a query and waits for the answer. Returns `None` once it is no longer `wanted` and
    /// there is no answer. Calls `wanted` without the lock, and never again once it returned false.
    pub(super) fn ask(
        &self,
        (job, priority): (JobHash, i32),
        query: TaskQuery,
        wanted: &dyn Fn() -> bool,
    ) -> Option<Answered> {
        /// The interval for polling `wanted`, whose changes are announced only by some searches.
        const POLL: Duration = Duration::from_millis(50);
        let mut state = self.state();
        let number = state.add(job, priority, query);
        self.changes.send_replace(());
        loop {
            if let Some(answered) = state.tasks.get_mut(&number).and_then(|task| task.answer.take())
            {
                state.tasks.remove(&number);
                return Some(answered);
            }
            let wakes = state.wakes;
            drop(state);
            let is_wanted = wanted();
            state = self.state();
            if !is_wanted {
                let task = state.tasks.remove(&number);
                self.changes.send_replace(());
                return task.and_then(|task| task.answer);
            }
            let has_answer = state.tasks.get(&number).is_some_and(|task| task.answer.is_some());
            if !has_answer && state.wakes == wakes {
                let waited = self.answered.wait_timeout(state, POLL);
                state = waited.unwrap_or_else(PoisonError::into_inner).0;
            }
        }
    }

    /// Wakes the solvers that wait for answers, because some of these are no longer wanted.
    pub(super) fn wake(&self) {
        // A solver has perhaps asked before the change, and does not wait yet.
        self.state().wakes += 1;
        self.answered.notify_all();
    }

    /// Processes a call of a worker: stores its answers, and waits until there is something to
    /// reply, for at most `wait`.
    pub(in super::super) async fn call(
        &self,
        worker: &str,
        mut call: ProveCall,
        wait: Duration,
    ) -> ProveReply {
        let until = tokio::time::Instant::now() + wait;
        let answers = std::mem::take(&mut call.answers);
        // Answers are acknowledged at once.
        let until = if answers.is_empty() { until } else { tokio::time::Instant::now() };
        if !answers.is_empty() {
            let mut state = self.state();
            if !state.quarantined.contains_key(worker) {
                state.answer(worker, call.boot, answers);
            }
            drop(state);
            self.answered.notify_all();
        }
        let mut changes = self.changes.subscribe();
        loop {
            changes.mark_unchanged();
            let (reply, reopened) = {
                let mut state = self.state();
                let reply = state.call(worker, &call, self.clock.now_ms());
                (reply, std::mem::take(&mut state.reopened))
            };
            if reopened {
                self.changes.send_replace(());
            }
            // Superseded by a later call, so this reply is not read.
            let Some(reply) = reply else { return ProveReply::default() };
            if !reply.is_empty() || call.capacity == 0 {
                return reply;
            }
            tokio::select! {
                _ = changes.changed() => {}
                () = tokio::time::sleep_until(until) => return reply,
            }
        }
    }

    /// Quarantines a worker. The tasks that it holds go to others.
    pub(super) fn quarantine(&self, worker: &str, why: &str) {
        let mut state = self.state();
        state.quarantined.entry(worker.to_owned()).or_insert_with(|| why.to_owned());
        state.workers.remove(worker);
        state.expire(self.clock.now_ms());
        drop(state);
        self.changes.send_replace(());
    }

    /// Stops asking a worker for answers of this kind until it restarts, because they have steps
    /// that this version does not know.
    pub(super) fn mark_unreadable(&self, answered: &Answered, why: &str) {
        let why = format!(
            "the coordinator runs nqueens {BUILD} and cannot read answers of this worker: {why}; \
             it sends no more tasks of this kind until the worker restarts"
        );
        let mut state = self.state();
        let Answered { worker, boot, kind, .. } = answered;
        if state.quarantined.contains_key(worker) {
            return;
        }
        let known = state.unreadable.get(worker).filter(|known| known.boot == *boot);
        let mut kinds = known.map(|known| known.kinds.clone()).unwrap_or_default();
        kinds.insert(*kind);
        state.unreadable.insert(worker.clone(), Unreadable { boot: *boot, kinds, why });
        // The tasks of this kind that it holds go to others after its next call.
        drop(state);
        self.changes.send_replace(());
    }

    /// Records whether an answer was useful. Returns whether the worker has given too many useless
    /// answers in a row and must stop.
    pub(super) fn record_usefulness(&self, worker: &str, useful: bool) -> bool {
        /// An honest worker may meet a query whose refutation is hard to check.
        const MOST: u32 = 10;
        let mut state = self.state();
        if useful {
            state.useless.remove(worker);
            return false;
        }
        let useless = state.useless.entry(worker.to_owned()).or_default();
        *useless += 1;
        *useless >= MOST
    }

    /// Lifts the quarantine of a worker. Returns whether it was quarantined.
    pub(in super::super) fn release(&self, worker: &str) -> bool {
        let mut state = self.state();
        state.useless.remove(worker);
        state.quarantined.remove(worker).is_some()
    }

    /// Returns the number of tasks that keep all workers busy.
    pub(super) fn wanted_tasks(&self) -> usize {
        self.state().workers.values().map(|seen| seen.tasks).sum()
    }

    /// Returns the number of open tasks of a job, and how many of them are leased.
    pub(super) fn open(&self, job: JobHash) -> (usize, usize) {
        let state = self.state();
        let of_job = state.tasks.values().filter(|task| task.job == job && task.answer.is_none());
        of_job.fold((0, 0), |(open, leased), task| {
            (open + 1, leased + usize::from(task.lease.is_some()))
        })
    }
}

#[cfg(test)]
mod tests;
