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

use super::model::{Look, Model};

/// The interval of heartbeats. A browser that receives nothing for three times as long reconnects.
const BEAT: Duration = Duration::from_secs(5);
/// The time after which the stream of a browser that reads nothing is closed.
const PATIENCE: Duration = Duration::from_secs(15);

/// The source of status updates.
pub(super) trait Source {
    /// Returns the coordinator's status, with the events after event number `after`.
    fn look(&self, after: u64) -> impl Future<Output = Result<Look, Status>> + Send;

    /// Waits for the interval between two polls.
    fn pause(&self) -> impl Future<Output = ()> + Send;
}

/// The state that is broadcast to all browsers.
#[derive(Debug)]
pub(super) struct Live {
    model: Mutex<Model>,
    changes: broadcast::Sender<Arc<str>>,
    somebody: Notify,
}

impl Live {
    pub(super) fn new() -> Self {
        /// A browser that lags further behind gets the whole state again.
        const MOST_WAITING: usize = 16;
        let (changes, _) = broadcast::channel(MOST_WAITING);
        Self { model: Mutex::default(), changes, somebody: Notify::new() }
    }

    fn model(&self) -> MutexGuard<'_, Model> {
        self.model.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the whole state and a receiver for later changes.
    fn join(&self) -> (String, broadcast::Receiver<Arc<str>>) {
        let model = self.model();
        let changes = self.changes.subscribe();
        self.somebody.notify_one();
        (model.all().to_string(), changes)
    }

    /// Polls the source while any browser is connected. Never returns.
    pub(super) async fn produce(&self, source: &impl Source) {
        loop {
            let nobody = {
                let mut model = self.model();
                let nobody = self.changes.receiver_count() == 0;
                if nobody {
                    // The next browser must not see an outdated state.
                    *model = Model::default();
                }
                nobody
            };
            if nobody {
                self.somebody.notified().await;
                continue;
            }
            let after = self.model().last_event();
            match source.look(after).await {
                Ok(look) => {
                    let mut model = self.model();
                    if let Some(change) = model.take(look) {
                        // Sending fails only if no browser is connected any more.
                        let _ = self.changes.send(change.to_string().into());
                    }
                }
                Err(status) => tracing::debug!("the dashboard hears nothing: {status}"),
            }
            source.pause().await;
        }
    }
}

/// Returns the events for one browser, until it disconnects or `may_look` returns false.
pub(super) fn events(
    live: Arc<Live>,
    may_look: impl Fn() -> bool + Send + 'static,
) -> ReceiverStream<Result<Event, Infallible>> {
    let (sender, receiver) = mpsc::channel(4);
    tokio::spawn(tell(live, may_look, sender, PATIENCE));
    ReceiverStream::new(receiver)
}

/// Sends the events, each of which must be read within `patience`.
async fn tell(
    live: Arc<Live>,
    may_look: impl Fn() -> bool,
    sender: mpsc::Sender<Result<Event, Infallible>>,
    patience: Duration,
) {
    let (all, mut changes) = live.join();
    let mut next = Some(Event::default().event("all").data(all));
    loop {
        if let Some(event) = next.take()
            && sender.send_timeout(Ok(event), patience).await.is_err()
        {
            return;
        }
        let change = tokio::select! {
            change = tokio::time::timeout(BEAT, changes.recv()) => change,
            () = sender.closed() => return,
        };
        if !may_look() {
            let _ =
                sender.send_timeout(Ok(Event::default().event("over").data("{}")), patience).await;
            return;
        }
        next = match change {
            Ok(Ok(change)) => Some(Event::default().event("change").data(&change)),
            Ok(Err(broadcast::error::RecvError::Lagged(_))) => {
                let (all, anew) = live.join();
                changes = anew;
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

    /// A source that counts the calls.
    #[derive(Default)]
    struct Counting {
        looks: AtomicUsize,
        pauses: AtomicUsize,
    }

    impl Counting {
        /// Returns the numbers of polls and pauses so far.
        fn counts(&self) -> (usize, usize) {
            (self.looks.load(Ordering::Relaxed), self.pauses.load(Ordering::Relaxed))
        }
    }

    impl Source for Counting {
        async fn look(&self, _: u64) -> Result<Look, Status> {
            self.looks.fetch_add(1, Ordering::Relaxed);
            Ok(Look::default())
        }

        async fn pause(&self) {
            self.pauses.fetch_add(1, Ordering::Relaxed);
            tokio::task::yield_now().await;
        }
    }

    /// Yields to other tasks `count` times.
    async fn turns(count: usize) {
        for _ in 0..count {
            tokio::task::yield_now().await;
        }
    }

    #[tokio::test]
    async fn nobody_looks_at_the_coordinator_for_no_browser() {
        let (live, source) = (Live::new(), Counting::default());
        let visits = async {
            let mut before = (0, 0);
            for _ in 0..3 {
                turns(100).await;
                // The task does not even wait for a timer: it polls, pauses, or sleeps until a
                // browser connects.
                assert_eq!(source.counts(), before, "nobody is there");
                let (_, browser) = live.join();
                let (_, other) = live.join();
                while source.counts().0 < before.0 + 10 {
                    turns(1).await;
                }
                drop(browser);
                while source.counts().0 < before.0 + 20 {
                    turns(1).await;
                }
                drop(other);
                // A poll in progress ends.
                turns(3).await;
                before = source.counts();
            }
        };
        tokio::select! {
            biased;
            () = visits => {}
            () = live.produce(&source) => unreachable!("it never ends"),
        }
    }

    #[tokio::test]
    async fn a_browser_that_reads_nothing_has_its_stream_ended() {
        let (sender, mut receiver) = mpsc::channel(1);
        let live = Arc::new(Live::new());
        let changes = live.changes.clone();
        let talk = tell(Arc::clone(&live), || true, sender, Duration::from_millis(20));
        // The first event fills the channel, so that the next change blocks.
        let change = async {
            while changes.receiver_count() == 0 {
                tokio::task::yield_now().await;
            }
            changes.send("{}".into()).expect("somebody listens");
        };
        tokio::join!(talk, change);
        assert!(receiver.recv().await.is_some(), "what was there already");
        assert!(receiver.recv().await.is_none(), "and then the end");
    }
}
