//! Server-sent events: one task polls the coordinator for all browsers, at most once a second, and
//! not at all while no browser is connected.

use std::convert::Infallible;
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::response::sse::Event;
use tokio::sync::{Notify, broadcast, mpsc};
use tokio_stream::wrappers::ReceiverStream;
use tonic::Status;

use super::model::{Model, Update};

/// The interval of heartbeats. A browser that receives nothing for three times as long reconnects.
const HEARTBEAT: Duration = Duration::from_secs(5);
/// The time after which the stream of a browser that reads nothing is closed.
const SEND_TIMEOUT: Duration = Duration::from_secs(15);

/// The source of status updates.
pub(super) trait Source {
    /// Returns the coordinator's status, with the events after event number `after`.
    fn poll(&self, after: u64) -> impl Future<Output = Result<Update, Status>> + Send;

    /// Waits for the interval between two polls.
    fn wait(&self) -> impl Future<Output = ()> + Send;
}

/// The state that is broadcast to all browsers.
#[derive(Debug)]
pub(super) struct Live {
    model: Mutex<Model>,
    changes: broadcast::Sender<Arc<str>>,
    /// Notified when a browser connects.
    connected: Notify,
}

impl Live {
    pub(super) fn new() -> Self {
        /// A browser that lags further behind gets the whole state again.
        const MOST_WAITING: usize = 16;
        let (changes, _) = broadcast::channel(MOST_WAITING);
        Self { model: Mutex::default(), changes, connected: Notify::new() }
    }

    fn model(&self) -> MutexGuard<'_, Model> {
        self.model.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the whole state and a receiver for later changes.
    fn join(&self) -> (String, broadcast::Receiver<Arc<str>>) {
        let model = self.model();
        let changes = self.changes.subscribe();
        self.connected.notify_one();
        (model.all().to_string(), changes)
    }

    /// Polls the source while any browser is connected. Never returns.
    pub(super) async fn produce(&self, source: &impl Source) {
        loop {
            let is_idle = {
                let mut model = self.model();
                let is_idle = self.changes.receiver_count() == 0;
                if is_idle {
                    // The next browser must not see an outdated state.
                    *model = Model::default();
                }
                is_idle
            };
            if is_idle {
                self.connected.notified().await;
                continue;
            }
            let after = self.model().last_event();
            match source.poll(after).await {
                Ok(update) => {
                    let mut model = self.model();
                    if let Some(change) = model.apply(update) {
                        // Sending fails only if no browser is connected any more.
                        let _ = self.changes.send(change.to_string().into());
                    }
                }
                Err(status) => tracing::debug!("the status cannot be polled: {status}"),
            }
            source.wait().await;
        }
    }
}

/// Returns the events for one browser, until it disconnects or `is_authorized` returns false.
pub(super) fn events(
    live: Arc<Live>,
    is_authorized: impl Fn() -> bool + Send + 'static,
) -> ReceiverStream<Result<Event, Infallible>> {
    let (sender, receiver) = mpsc::channel(4);
    tokio::spawn(send_events(live, is_authorized, sender, SEND_TIMEOUT));
    ReceiverStream::new(receiver)
}

/// Sends the events, each of which must be read within `timeout`.
async fn send_events(
    live: Arc<Live>,
    is_authorized: impl Fn() -> bool,
    sender: mpsc::Sender<Result<Event, Infallible>>,
    timeout: Duration,
) {
    let (all, mut changes) = live.join();
    let mut next = Some(Event::default().event("all").data(all));
    loop {
        if let Some(event) = next.take()
            && sender.send_timeout(Ok(event), timeout).await.is_err()
        {
            return;
        }
        let change = tokio::select! {
            change = tokio::time::timeout(HEARTBEAT, changes.recv()) => change,
            () = sender.closed() => return,
        };
        if !is_authorized() {
            let _ =
                sender.send_timeout(Ok(Event::default().event("over").data("{}")), timeout).await;
            return;
        }
        next = match change {
            Ok(Ok(change)) => Some(Event::default().event("change").data(&change)),
            Ok(Err(broadcast::error::RecvError::Lagged(_))) => {
                let (all, later) = live.join();
                changes = later;
                Some(Event::default().event("all").data(all))
            }
            Ok(Err(broadcast::error::RecvError::Closed)) => return,
            Err(_) => Some(Event::default().event("beat").data("{}")),
        };
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    /// A source that counts its calls.
    #[derive(Default)]
    struct Counting {
        polls: AtomicUsize,
        waits: AtomicUsize,
    }

    impl Counting {
        /// Returns the numbers of polls and waits so far.
        fn counts(&self) -> (usize, usize) {
            (self.polls.load(Ordering::Relaxed), self.waits.load(Ordering::Relaxed))
        }
    }

    impl Source for Counting {
        async fn poll(&self, _: u64) -> Result<Update, Status> {
            self.polls.fetch_add(1, Ordering::Relaxed);
            Ok(Update::default())
        }

        async fn wait(&self) {
            self.waits.fetch_add(1, Ordering::Relaxed);
            tokio::task::yield_now().await;
        }
    }

    /// Yields to other tasks `count` times.
    async fn yield_times(count: usize) {
        for _ in 0..count {
            tokio::task::yield_now().await;
        }
    }

    #[tokio::test]
    async fn the_source_is_polled_only_while_a_browser_is_connected() {
        let (live, source) = (Live::new(), Counting::default());
        let browsers = async {
            let mut before = (0, 0);
            for _ in 0..3 {
                yield_times(100).await;
                // The task does not even wait for a timer: it polls, waits, or sleeps until a
                // browser connects.
                assert_eq!(source.counts(), before, "no browser is connected");
                let (_, browser) = live.join();
                let (_, other) = live.join();
                while source.counts().0 < before.0 + 10 {
                    yield_times(1).await;
                }
                drop(browser);
                while source.counts().0 < before.0 + 20 {
                    yield_times(1).await;
                }
                drop(other);
                // A poll in progress ends.
                yield_times(3).await;
                before = source.counts();
            }
        };
        tokio::select! {
            biased;
            () = browsers => {}
            () = live.produce(&source) => unreachable!("it never ends"),
        }
    }

    #[tokio::test]
    async fn the_stream_of_a_browser_that_reads_nothing_ends() {
        let (sender, mut receiver) = mpsc::channel(1);
        let live = Arc::new(Live::new());
        let changes = live.changes.clone();
        let sending = send_events(Arc::clone(&live), || true, sender, Duration::from_millis(20));
        // The first event fills the channel, so that the next change blocks.
        let change = async {
            while changes.receiver_count() == 0 {
                tokio::task::yield_now().await;
            }
            changes.send("{}".into()).expect("a receiver");
        };
        tokio::join!(sending, change);
        assert!(receiver.recv().await.is_some(), "the whole state");
        assert!(receiver.recv().await.is_none(), "the end of the stream");
    }
}
