//! The RPC handlers.
//!
//! | file | content |
//! |---|---|
//! | `work.rs` | the calls of workers |
//! | `operations.rs` | the calls of operators |
//! | `enrolment.rs` | the calls that issue certificates |

mod enrolment;
mod operations;
mod work;

use std::collections::HashSet;
use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard};

use tokio::sync::{Semaphore, oneshot, watch};
use tonic::{Request, Status};

use super::access::Access;
use super::actor::CampaignActor;
use super::calls::WaitingCalls;
use super::commands::{self, ActorHandle, StateError, Unavailable};
use super::event_log::EventLog;
use super::lock;
use super::metrics::Metrics;
use super::proofs::Proofs;
use super::write_failures::WriteFailures;
use crate::cluster::auth::Action;
use crate::cluster::protocol::{self, Malformed, v1};

/// A stream of statuses.
type StatusStream =
    Pin<Box<dyn tokio_stream::Stream<Item = Result<v1::StatusResponse, Status>> + Send + 'static>>;

/// A stream of the chunks of a certificate.
type CertificateStream = Pin<
    Box<dyn tokio_stream::Stream<Item = Result<v1::CertificateChunk, Status>> + Send + 'static>,
>;

/// The RPC handlers of a coordinator; cheap to clone.
#[derive(Clone)]
pub(super) struct Service {
    shared: Arc<Shared>,
}

impl fmt::Debug for Service {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Service").finish_non_exhaustive()
    }
}

struct Shared {
    actor: ActorHandle,
    event_log: EventLog,
    proofs: Arc<Proofs>,
    /// Workers that are draining, as of their last sync.
    draining: Mutex<HashSet<String>>,
    access: Arc<Access>,
    metrics: Arc<Metrics>,
    /// The pending long-poll calls.
    calls: Arc<WaitingCalls>,
    write_failures: WriteFailures,
    /// Permits one planning at a time, since it may take seconds and gigabytes.
    planning: Semaphore,
    /// Limits the number of open status streams.
    watching: Arc<Semaphore>,
    /// True once the coordinator is stopping.
    stopping: watch::Receiver<bool>,
}

fn malformed(error: Malformed) -> Status {
    match error {
        Malformed::TooMany(..) => Status::resource_exhausted(error.to_string()),
        _ => Status::invalid_argument(error.to_string()),
    }
}

fn unavailable(error: Unavailable) -> Status {
    Status::unavailable(error.to_string())
}

impl Service {
    pub(super) fn new(
        (actor, event_log): (ActorHandle, EventLog),
        proofs: Arc<Proofs>,
        access: Arc<Access>,
        (metrics, write_failures): (Arc<Metrics>, WriteFailures),
        (calls, stopping): (Arc<WaitingCalls>, watch::Receiver<bool>),
    ) -> Self {
        /// The maximum number of status streams. Each queries the actor once a second, and more
        /// often in its first seconds.
        const MOST_WATCHING: usize = 256;
        let (planning, watching) = (Semaphore::new(1), Arc::new(Semaphore::new(MOST_WATCHING)));
        Self {
            shared: Arc::new(Shared {
                actor,
                event_log,
                proofs,
                draining: Mutex::default(),
                access,
                metrics,
                calls,
                write_failures,
                planning,
                watching,
                stopping,
            }),
        }
    }

    fn draining(&self) -> MutexGuard<'_, HashSet<String>> {
        lock(&self.shared.draining)
    }

    /// Sends a request to the campaign actor and waits for its reply.
    async fn send<T>(
        &self,
        request: impl FnOnce(oneshot::Sender<T>) -> commands::Request,
    ) -> Result<T, Status> {
        let (reply, answer) = oneshot::channel();
        let gone = || Status::unavailable("the coordinator is stopping; try again later");
        self.shared.actor.send(request(reply)).await.map_err(|_| gone())?;
        answer.await.map_err(|_| gone())
    }

    /// Runs an operation of the campaign actor and waits for its result.
    async fn run<T: Send + 'static>(
        &self,
        operation: impl FnOnce(&mut CampaignActor) -> T + Send + 'static,
    ) -> Result<T, Status> {
        self.send(|reply| {
            commands::Request::run(move |actor| {
                let _ = reply.send(operation(actor));
            })
        })
        .await
    }

    /// Runs an operation of the campaign actor if the caller may read the status.
    async fn query<R: Send + 'static, T: Send + 'static>(
        &self,
        request: Request<R>,
        operation: impl FnOnce(&mut CampaignActor, R) -> T + Send + 'static,
    ) -> Result<T, Status> {
        self.shared.access.admit(&request, Action::Status, "")?;
        let request = request.into_inner();
        self.run(move |actor| operation(actor, request)).await
    }

    fn build(peer: Option<&v1::Peer>) -> Result<String, Status> {
        protocol::check(peer).map_err(|error| Status::failed_precondition(error.to_string()))
    }
}

fn state_error(error: StateError) -> Status {
    match error {
        StateError::NoSuchJob(_) => Status::not_found(error.to_string()),
        StateError::Ambiguous(..) => Status::invalid_argument(error.to_string()),
        StateError::Over(..) | StateError::Unproved(..) => {
            Status::failed_precondition(error.to_string())
        }
        StateError::Unwritten(_) => Status::unavailable(error.to_string()),
        StateError::Unavailable(error) => unavailable(error),
    }
}
