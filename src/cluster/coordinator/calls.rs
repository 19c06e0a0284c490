//! Calls of workers that wait: syncs until there may be something to lease, others until a check is kept for their worker.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

/// Calls of workers that wait.
#[derive(Debug, Default)]
pub(super) struct WaitingCalls {
    /// Changes when there may be something to lease that was not there before.
    work: watch::Sender<u64>,
    /// Changes when a check is kept for the worker.
    of_workers: Mutex<HashMap<String, watch::Sender<()>>>,
}

impl WaitingCalls {
    fn of_workers(&self) -> MutexGuard<'_, HashMap<String, watch::Sender<()>>> {
        self.of_workers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Wakes all that wait for something to lease.
    pub(super) fn wake_all(&self) {
        self.work.send_modify(|changes| *changes += 1);
    }

    /// Returns what changes when all that wait for something to lease are woken.
    pub(super) fn work(&self) -> watch::Receiver<u64> {
        self.work.subscribe()
    }

    /// Registers a call of a worker: each [`wake`](Self::wake) from now on wakes it.
    pub(super) fn register(self: &Arc<Self>, worker: &str) -> Registered {
        let changes = self.of_workers().entry(worker.to_owned()).or_default().subscribe();
        Registered { calls: Arc::clone(self), worker: worker.to_owned(), changes: Some(changes) }
    }

    /// Wakes the calls of a worker that wait.
    pub(super) fn wake(&self, worker: &str) {
        if let Some(changes) = self.of_workers().get(worker) {
            changes.send_replace(());
        }
    }
}

/// A call that may wait.
#[derive(Debug)]
pub(super) struct Registered {
    calls: Arc<WaitingCalls>,
    worker: String,
    /// There until it is dropped.
    changes: Option<watch::Receiver<()>>,
}

impl Registered {
    /// Waits until the worker is woken; returns at once if it was since this was made, or since the last return.
    pub(super) async fn woken(&mut self) {
        if let Some(changes) = &mut self.changes {
            // The sender is there as long as any receiver is.
            let _ = changes.changed().await;
        }
    }
}

impl Drop for Registered {
    fn drop(&mut self) {
        let mut workers = self.calls.of_workers();
        // Under the lock, so that the last one knows that it is.
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
    async fn a_call_is_woken_for_its_worker_alone_and_nothing_of_it_stays() {
        let calls = Arc::new(WaitingCalls::default());
        let (mut one, mut other) = (calls.register("one"), calls.register("other"));
        calls.wake("nobody");
        // Before it waits, too.
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
        assert!(calls.of_workers().is_empty());
    }
}
