//! Pending long-poll calls of workers. A sync waits until there may be work to lease; a listen call
//! waits until a check is reserved for its worker.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use tokio::sync::watch;

use super::lock;

/// The pending calls of workers.
#[derive(Debug, Default)]
pub(super) struct WaitingCalls {
    /// Changes when there may be new work to lease.
    work: watch::Sender<u64>,
    /// Changes when a check is reserved for the worker.
    of_workers: Mutex<HashMap<String, watch::Sender<()>>>,
}

impl WaitingCalls {
    /// Wakes all calls that wait for work to lease.
    pub(super) fn wake_all(&self) {
        self.work.send_modify(|changes| *changes += 1);
    }

    /// Returns a receiver that changes when the calls that wait for work are woken.
    pub(super) fn work(&self) -> watch::Receiver<u64> {
        self.work.subscribe()
    }

    /// Registers a call of a worker. Each [`wake`](Self::wake) from now on wakes it.
    pub(super) fn register(self: &Arc<Self>, worker: &str) -> Registered {
        let changes = lock(&self.of_workers).entry(worker.to_owned()).or_default().subscribe();
        Registered { calls: Arc::clone(self), worker: worker.to_owned(), changes: Some(changes) }
    }

    /// Wakes the pending calls of a worker.
    pub(super) fn wake(&self, worker: &str) {
        if let Some(changes) = lock(&self.of_workers).get(worker) {
            changes.send_replace(());
        }
    }
}

/// A registered call.
#[derive(Debug)]
pub(super) struct Registered {
    calls: Arc<WaitingCalls>,
    worker: String,
    /// `None` only while the call is being dropped.
    changes: Option<watch::Receiver<()>>,
}

impl Registered {
    /// Waits until the worker is woken. Returns at once if that happened since registration or
    /// since the last return.
    pub(super) async fn woken(&mut self) {
        if let Some(changes) = &mut self.changes {
            // The sender exists as long as any receiver.
            let _ = changes.changed().await;
        }
    }
}

impl Drop for Registered {
    fn drop(&mut self) {
        let mut workers = lock(&self.calls.of_workers);
        // Under the lock, so that the last receiver sees a count of zero.
        self.changes = None;
        if workers.get(&self.worker).is_some_and(|changes| changes.receiver_count() == 0) {
            workers.remove(&self.worker);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_call_is_woken_for_its_worker_only_and_leaves_no_entry() {
        let calls = Arc::new(WaitingCalls::default());
        let (mut one, mut other) = (calls.register("one"), calls.register("other"));
        calls.wake("nobody");
        // A wake before the wait counts, too.
        calls.wake("one");
        one.woken().await;
        tokio::select! {
            biased;
            () = other.woken() => unreachable!("nobody woke it"),
            () = std::future::ready(()) => {}
        }
        let mut again = calls.register("one");
        calls.wake("one");
        one.woken().await;
        drop(one);
        again.woken().await;
        drop((again, other));
        assert!(lock(&calls.of_workers).is_empty());
    }
}
