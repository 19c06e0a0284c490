use std::sync::Arc;

use prost::Message as _;

use super::*;
use crate::cluster::protocol::{CompletionQuery, task};
use crate::proof::Beauty;
use crate::proof::beautiful::{Premises, Subtree};
use crate::solver::beautiful::SubtreeTask;

const JOB: JobHash = JobHash::from_bytes([7; 16]);

const NONE: [u64; 0] = [];

fn query(prefix: &[usize]) -> TaskQuery {
    let prefix = prefix.to_vec();
    let (n, programmes, node_limit, attempt) = (8, 1, 1, 0);
    let query = CompletionQuery {
        n,
        prefix,
        programmes,
        node_limit,
        attempt,
        only_dives: false,
        set_programmes: 0,
    };
    TaskQuery::Completion(query)
}

/// Returns a subtree task of a large board.
fn part() -> TaskQuery {
    let n = 512;
    let known = Premises::new(n, Beauty::default(), vec![true; 256 * 257 / 2], vec![], vec![])
        .expect("a valid task");
    let part = Subtree::new(Arc::new(known), vec![]).expect("a valid task");
    TaskQuery::Part(SubtreeTask { part, nodes: 1, weights: vec![1.0; 6 * n].into() })
}

fn queue_of(columns: &[usize]) -> QueueState {
    let mut state = QueueState::new(100);
    for &column in columns {
        state.add(JOB, 0, query(&[column]));
    }
    state
}

fn call(boot: u64, number: u64, capacity: usize, holding: &[u64]) -> ProveCall {
    let holding = holding.to_vec();
    ProveCall { boot, number, capacity, threads: 1, holding, answers: Vec::new(), parts: true }
}

fn given_up() -> TaskAnswer {
    TaskAnswer { outcome: TaskOutcome::GivenUp, nodes: 0, programmes: 0, elapsed_s: 0.0 }
}

fn given_up_by_a() -> Answered {
    let (worker, kind) = ("a".to_owned(), TaskKind::Completion);
    Answered { worker, boot: 1, kind, answer: given_up() }
}

fn numbers(reply: Option<ProveReply>) -> Vec<u64> {
    reply.expect("the latest call").tasks.into_iter().map(|(number, _)| number).collect()
}

/// Leases the only task to a worker, which gives it up.
fn answer_task(queue: &TaskQueue) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
    let runtime = runtime.expect("a runtime");
    let send = |number, capacity, answers| {
        let call = ProveCall { answers, ..call(1, number, capacity, &[]) };
        runtime.block_on(queue.call("a", call, Duration::from_secs(60)))
    };
    let (task, _) = send(1, 1, Vec::new()).tasks.pop().expect("a task");
    drop(send(2, 0, vec![(task, given_up())]));
}

#[test]
fn an_answer_that_comes_while_a_solver_decides_is_returned_whatever_it_decides() {
    for is_wanted in [true, false] {
        let queue = TaskQueue::new();
        // It runs without the lock: otherwise this would not end.
        let wanted = || {
            if queue.open(JOB) == (1, 0) {
                answer_task(&queue);
                queue.wake();
            }
            is_wanted
        };
        assert_eq!(queue.ask((JOB, 0), query(&[3]), &wanted), Some(given_up_by_a()));
        assert_eq!(queue.open(JOB), (0, 0));
    }
}

#[test]
fn tasks_are_leased_in_order_each_to_one_worker() {
    let mut state = queue_of(&[0, 2, 4]);
    assert_eq!(numbers(state.call("a", &call(1, 1, 2, &[]), 0)), [100, 101]);
    assert_eq!(numbers(state.call("b", &call(1, 1, 2, &[]), 0)), [102]);
    assert_eq!(numbers(state.call("a", &call(1, 2, 2, &[100, 101]), 0)), NONE);
}

#[test]
fn two_tasks_keep_a_thread_of_a_live_worker_busy() {
    let queue = TaskQueue::new();
    let call = |worker: &str, capacity, threads, now_ms| {
        let call = ProveCall { threads, ..call(1, 1, capacity, &[]) };
        drop(queue.state().call(worker, &call, now_ms));
        queue.wanted_tasks()
    };
    assert_eq!(queue.wanted_tasks(), 0);
    assert_eq!(call("a", 64, 2, 0), 4);
    assert_eq!(call("b", 3, 3, 0), 4 + 3);
    // It does not take any.
    assert_eq!(call("b", 0, 3, 0), 4);
    // One of an earlier version.
    assert_eq!(call("c", 64, 0, 1), 4 + 64);
    assert_eq!(call("c", 64, 0, SILENCE_MS), 64);
    queue.quarantine("c", "its answer is wrong");
    assert_eq!(queue.wanted_tasks(), 0);
}

#[test]
fn tasks_of_higher_priority_are_leased_first() {
    let mut state = QueueState::new(100);
    for (column, priority) in [(0, 0), (2, -1), (4, 7), (6, 0), (8, 7)] {
        state.add(JOB, priority, query(&[column]));
    }
    assert_eq!(numbers(state.call("a", &call(1, 1, 3, &[]), 0)), [102, 104, 100]);
    assert_eq!(numbers(state.call("a", &call(1, 2, 5, &[102, 104, 100]), 0)), [103, 101]);
}

#[test]
fn smaller_prefixes_are_leased_first_and_jobs_take_turns() {
    let mut state = QueueState::new(100);
    let other = JobHash::from_bytes([6; 16]);
    for (job, column) in [(JOB, 4), (JOB, 2), (other, 5), (JOB, 0), (other, 1), (JOB, 2)] {
        state.add(job, 0, query(&[column]));
    }
    state.add(JOB, 0, query(&[0, 3]));
    // The most urgent ones of the jobs first, then the next ones; equal prefixes by number.
    assert_eq!(
        numbers(state.call("a", &call(1, 1, 9, &[]), 0)),
        [103, 104, 102, 106, 101, 105, 100]
    );
}

#[test]
fn a_task_that_its_worker_does_not_list_is_leased_again() {
    let mut state = queue_of(&[0, 2]);
    assert_eq!(numbers(state.call("a", &call(1, 1, 2, &[]), 0)), [100, 101]);
    // Its reply was lost.
    assert_eq!(numbers(state.call("a", &call(1, 2, 2, &[]), 0)), [100, 101]);
    // It has restarted.
    assert_eq!(numbers(state.call("a", &call(9, 1, 1, &[]), 0)), [100]);
    assert_eq!(numbers(state.call("b", &call(1, 1, 2, &[]), 0)), [101]);
}

#[test]
fn an_outdated_call_changes_nothing() {
    let mut state = queue_of(&[0, 2]);
    assert_eq!(numbers(state.call("a", &call(1, 2, 1, &[]), 0)), [100]);
    assert_eq!(state.call("a", &call(1, 1, 2, &[]), 0), None);
    assert_eq!(numbers(state.call("b", &call(1, 1, 2, &[]), 0)), [101]);
}

#[test]
fn tasks_of_a_silent_worker_are_leased_to_others_and_cancelled_if_it_returns() {
    let mut state = queue_of(&[0]);
    assert_eq!(numbers(state.call("a", &call(1, 1, 1, &[]), 0)), [100]);
    assert_eq!(numbers(state.call("b", &call(1, 1, 1, &[]), SILENCE_MS - 1)), NONE);
    assert_eq!(numbers(state.call("b", &call(1, 2, 1, &[]), SILENCE_MS)), [100]);
    let reply = state.call("a", &call(1, 2, 1, &[100]), SILENCE_MS).expect("the latest call");
    assert_eq!(reply, ProveReply { cancel: vec![100], ..ProveReply::default() });
}

#[test]
fn a_task_that_a_worker_no_longer_lists_goes_to_one_that_waits() {
    let queue = TaskQueue::new();
    for column in [0, 2] {
        queue.state().add(JOB, 0, query(&[column]));
    }
    let now_ms = queue.clock.now_ms();
    let tasks = numbers(queue.state().call("a", &call(1, 1, 2, &[]), now_ms));
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
    let long = Duration::from_secs(100);
    let (b, a) = runtime.block_on(async {
        tokio::join!(biased; queue.call("b", call(1, 1, 1, &[]), long), async {
            queue.call("a", call(1, 2, 1, &tasks[..1]), Duration::ZERO).await
        })
    });
    assert_eq!(numbers(Some(b)), tasks[1..]);
    assert_eq!(numbers(Some(a)), NONE);
}

#[test]
fn a_worker_can_neither_hold_nor_give_up_a_task_that_was_not_leased_to_it() {
    let mut state = queue_of(&[0, 2]);
    let reply = state.call("a", &call(1, 1, 0, &[100, 101]), 0);
    assert_eq!(reply, Some(ProveReply { cancel: vec![100, 101], ..ProveReply::default() }));
    state.answer("a", 1, vec![(100, given_up())]);
    assert!(state.tasks[&100].answer.is_none());
}

#[test]
fn workers_share_the_open_tasks() {
    let mut state = queue_of(&[0, 2, 4, 6, 7]);
    assert_eq!(numbers(state.call("a", &call(1, 1, 0, &[]), 0)), NONE);
    assert_eq!(numbers(state.call("b", &call(1, 1, 9, &[]), 0)), [100, 101, 102]);
    assert_eq!(numbers(state.call("a", &call(1, 2, 9, &[]), 0)), [103, 104]);
}

#[test]
fn a_worker_is_stopped_after_ten_useless_answers_in_a_row() {
    let queue = TaskQueue::new();
    assert!((0..9).all(|_| !queue.record_usefulness("a", false)));
    assert!(!queue.record_usefulness("a", true));
    assert!(
        (0..9).all(|_| !queue.record_usefulness("a", false)) && queue.record_usefulness("a", false)
    );
}

#[test]
fn an_answer_counts_once_and_answered_or_withdrawn_tasks_are_cancelled() {
    let mut state = queue_of(&[0, 2]);
    assert_eq!(numbers(state.call("a", &call(1, 1, 2, &[]), 0)), [100, 101]);
    state.answer("a", 1, vec![(100, given_up()), (55, given_up())]);
    let late = TaskAnswer { outcome: TaskOutcome::Completed(vec![]), ..given_up() };
    state.answer("b", 1, vec![(100, late)]);
    assert_eq!(state.tasks[&100].answer, Some(given_up_by_a()));
    state.tasks.remove(&101);
    let reply = state.call("a", &call(1, 2, 2, &[100, 101]), 0).expect("the latest call");
    assert_eq!(reply, ProveReply { cancel: vec![100, 101], ..ProveReply::default() });
}

#[test]
fn a_solver_receives_the_answer_or_none_once_the_task_is_withdrawn() {
    let queue = TaskQueue::new();
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
    std::thread::scope(|scope| {
        let asked = scope.spawn(|| queue.ask((JOB, 0), query(&[3]), &|| true));
        let long = Duration::from_secs(100);
        let reply = runtime.block_on(queue.call("a", call(1, 1, 1, &[]), long));
        let (number, leased) = reply.tasks[0].clone();
        assert_eq!((leased, queue.open(JOB)), (query(&[3]), (1, 1)));
        let answers = vec![(number, given_up())];
        let last = ProveCall { answers, ..call(1, 2, 0, &[]) };
        assert_eq!(runtime.block_on(queue.call("a", last, long)), ProveReply::default());
        let answered = asked.join().expect("no panic").expect("an answer");
        assert_eq!(answered, given_up_by_a());
    });
    assert_eq!(queue.ask((JOB, 0), query(&[3]), &|| false), None);
    assert_eq!(queue.open(JOB), (0, 0));
}

#[test]
fn tasks_of_a_quarantined_worker_go_to_others() {
    let queue = TaskQueue::new();
    let number = queue.state().add(JOB, 0, query(&[0]));
    assert_eq!(numbers(queue.state().call("liar", &call(1, 1, 1, &[]), 0)), [number]);
    queue.quarantine("liar", "it lied");
    let reply = queue.state().call("liar", &call(1, 2, 1, &[number]), 0).expect("the latest call");
    assert_eq!((reply.tasks.len(), reply.quarantined.as_deref()), (0, Some("it lied")));
    assert_eq!(numbers(queue.state().call("b", &call(1, 1, 1, &[]), 0)), [number]);
    assert!(queue.release("liar") && !queue.release("liar"));
}

#[test]
fn a_worker_with_unreadable_answers_gets_no_more_of_that_kind_until_it_restarts() {
    let queue = TaskQueue::new();
    let part = queue.state().add(JOB, 0, part());
    let completion = queue.state().add(JOB, 0, query(&[0]));
    let newer = |number, holding: &[u64]| call(7, number, 9, holding);
    assert_eq!(numbers(queue.state().call("newer", &newer(1, &[]), 0)), [part, completion]);
    queue.state().answer("newer", 7, vec![(completion, given_up())]);
    let answered = queue.state().tasks[&completion].answer.clone().expect("an answer");
    queue.state().tasks.remove(&completion);
    queue.mark_unreadable(&answered, "a step of kind 9");
    let another = queue.state().add(JOB, 0, query(&[2]));
    // It keeps its subtree task, gets the reason, and is not quarantined.
    let reply = queue.state().call("newer", &newer(2, &[part]), 0).expect("the latest call");
    assert_eq!((reply.tasks.len(), reply.cancel.len(), &reply.quarantined), (0, 0, &None));
    let why = reply.unreadable.as_deref().expect("a reason");
    assert!(why.contains(BUILD) && why.contains("kind 9") && why.lines().count() == 1, "{why}");
    // This alone is no reason to reply at once.
    assert!(reply.is_empty());
    // Once its trees cannot be read either, the subtree task that it holds goes to others.
    queue.mark_unreadable(&Answered { kind: TaskKind::Part, ..answered }, "a step of kind 300");
    let reply = queue.state().call("newer", &newer(3, &[part]), 0).expect("the latest call");
    assert_eq!((reply.tasks.len(), reply.cancel), (0, vec![part]));
    assert_eq!(numbers(queue.state().call("older", &call(1, 1, 9, &[]), 0)), [part]);
    // After a restart, it may be another version.
    let reply = queue.state().call("newer", &call(8, 1, 9, &[]), 0).expect("the latest call");
    assert_eq!((reply.tasks[0].0, reply.unreadable), (another, None));
}

#[test]
fn a_worker_that_does_not_search_subtrees_gets_none() {
    let mut state = QueueState::new(100);
    state.add(JOB, 0, part());
    state.add(JOB, 0, query(&[0]));
    let old = ProveCall { parts: false, ..call(1, 1, 9, &[]) };
    assert_eq!(numbers(state.call("old", &old, 0)), [101]);
    assert_eq!(numbers(state.call("new", &call(1, 1, 9, &[]), 0)), [100]);
}

#[test]
fn the_tasks_of_a_reply_fit_in_a_message() {
    let mut state = QueueState::new(100);
    for _ in 0..MOST_AT_ONCE {
        state.add(JOB, 0, part());
    }
    let leased = numbers(state.call("a", &call(1, 1, MOST_AT_ONCE, &[]), 0)).len();
    let each = task(u64::MAX, &part()).encoded_len();
    assert!(
        each <= bytes(&part()) && each * leased <= MOST_BYTES && leased > 10,
        "{leased} of {each} bytes"
    );
    let again = numbers(state.call(
        "a",
        &call(1, 2, MOST_AT_ONCE, &(100..100 + leased as u64).collect::<Vec<_>>()),
        0,
    ));
    assert_eq!(again.first(), Some(&(100 + leased as u64)));
}
