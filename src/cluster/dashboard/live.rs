//! Server-sent events: one task looks at the coordinator for all browsers, at most once a second, and not at all while none is
//! there.

use std::convert::Infallible;
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::response::sse::Event;
use tokio::sync::{Notify, broadcast, mpsc};
use tokio_stream::wrappers::ReceiverStream;
use tonic::Status;

use super::model::{Look, Model};

/// A browser that hears nothing for longer than that, and some, connects anew.
const BEAT: Duration = Duration::from_secs(5);
/// A browser that takes nothing for so long has its stream ended.
const PATIENCE: Duration = Duration::from_secs(15);

/// Where the news come from.
pub(super) trait Source {
    /// How the coordinator stands, with what happened after the event of this number.
    fn look(&self, after: u64) -> impl Future<Output = Result<Look, Status>> + Send;

    /// Passes the time between two looks.
    fn pause(&self) -> impl Future<Output = ()> + Send;
}

/// What all browsers are told.
#[derive(Debug)]
pub(super) struct Live {
    model: Mutex<Model>,
    changes: broadcast::Sender<Arc<str>>,
    somebody: Notify,
}

impl Live {
    pub(super) fn new() -> Self {
        /// Whoever is slower gets everything anew.
        const MOST_WAITING: usize = 16;
        let (changes, _) = broadcast::channel(MOST_WAITING);
        Self { model: Mutex::default(), changes, somebody: Notify::new() }
    }

    fn model(&self) -> MutexGuard<'_, Model> {
        self.model.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// All that there is, and what will come.
    fn join(&self) -> (String, broadcast::Receiver<Arc<str>>) {
        let model = self.model();
        let changes = self.changes.subscribe();
        self.somebody.notify_one();
        (model.all().to_string(), changes)
    }

    /// Looks as long as anybody listens. Never ends.
    pub(super) async fn produce(&self, source: &impl Source) {
        loop {
            let nobody = {
                let mut model = self.model();
                let nobody = self.changes.receiver_count() == 0;
                if nobody {
                    // What is old is not shown to whoever comes next.
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
                        // If nobody is there any more, nobody misses it.
                        let _ = self.changes.send(change.to_string().into());
                    }
                }
                Err(status) => tracing::debug!("the dashboard hears nothing: {status}"),
            }
            source.pause().await;
        }
    }
}

/// The events for one browser, until it goes or `may_look` says no.
pub(super) fn events(
    live: Arc<Live>,
    may_look: impl Fn() -> bool + Send + 'static,
) -> ReceiverStream<Result<Event, Infallible>> {
    let (sender, receiver) = mpsc::channel(4);
    tokio::spawn(tell(live, may_look, sender, PATIENCE));
    ReceiverStream::new(receiver)
}

/// Sends the events, each within this time.
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
            let _ = sender.send_timeout(Ok(Event::default().event("over").data("{}")), patience).await;
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

    /// Counts what it is asked.
    #[derive(Default)]
    struct Counting {
        looks: AtomicUsize,
        pauses: AtomicUsize,
    }

    impl Counting {
        /// Looks and pauses so far.
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

    /// Lets others run for so many turns.
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
                // It does not even wait for a time: it looks, it pauses, or it sleeps until somebody comes.
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
                // What had begun is ended.
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
        // As many changes as it takes: the first event fills the channel, the next one waits.
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
