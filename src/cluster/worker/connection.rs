//! The connection to the coordinator: calls with deadlines, a new channel after a failure, and the
//! meaning of failures.

use std::future::Future;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::watch;
use tonic::{Code, Response, Status};

use super::WorkerError;
use super::backoff::Backoff;
use crate::cluster::protocol::{
    Address, Channel, ChannelError, ConnectError, ConnectErrorKind, Security, is_not_valid_yet,
};

/// The meaning of a failed call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum RpcFailure {
    /// A transient failure: the same call may succeed later.
    Transient(String),
    /// A permanent failure.
    Permanent(String),
}

/// Classifies a failure.
pub(super) fn classify(status: &Status) -> RpcFailure {
    let message = status.message().to_owned();
    match status.code() {
        Code::FailedPrecondition
        | Code::Unauthenticated
        | Code::PermissionDenied
        | Code::Unimplemented
        | Code::AlreadyExists => RpcFailure::Permanent(message),
        _ => RpcFailure::Transient(ConnectError::of(status).map_or(message, |error| error.message)),
    }
}

/// The connection to the coordinator.
#[derive(Debug)]
pub(super) struct Connection {
    address: Address,
    deadline: Duration,
    /// True if a coordinator has ever answered.
    has_answered: AtomicBool,
    state: Mutex<ConnectionState>,
    /// True if the coordinator has reported that the certificate in use is not valid yet.
    not_valid_yet: watch::Sender<bool>,
}

#[derive(Debug)]
struct ConnectionState {
    security: Security,
    link: Channel,
    /// The number of links that were replaced.
    generation: u64,
}

impl Connection {
    pub(super) fn new(
        address: Address,
        security: Security,
        deadline: Duration,
    ) -> Result<Self, ChannelError> {
        let link = Channel::new(&address, &security, deadline)?;
        let state = Mutex::new(ConnectionState { security, link, generation: 0 });
        let (has_answered, not_valid_yet) = (AtomicBool::new(false), watch::Sender::new(false));
        Ok(Self { address, deadline, has_answered, state, not_valid_yet })
    }

    fn state(&self) -> MutexGuard<'_, ConnectionState> {
        // No code that holds the lock can panic half-way through a change.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) const fn address(&self) -> &Address {
        &self.address
    }

    pub(super) const fn deadline(&self) -> Duration {
        self.deadline
    }

    pub(super) fn security(&self) -> Security {
        self.state().security.clone()
    }

    /// Reconnects with other credentials.
    pub(super) fn secure(&self, security: Security) -> Result<(), ChannelError> {
        let link = Channel::new(&self.address, &security, self.deadline)?;
        let mut state = self.state();
        *state = ConnectionState { security, link, generation: state.generation + 1 };
        self.not_valid_yet.send_replace(false);
        Ok(())
    }

    /// Waits until the coordinator reports that the certificate in use is not valid yet, because
    /// its clock was set back. Clears the report, so that each wait needs a new one.
    pub(super) async fn not_valid_yet(&self) {
        let mut reports = self.not_valid_yet.subscribe();
        // The sender is not dropped before `self`.
        let _ = reports.wait_for(|reported| *reported).await;
        self.not_valid_yet.send_replace(false);
    }

    /// Records that the certificate is not valid yet, unless it was replaced since the call.
    fn note_not_valid_yet(&self, status: &Status, generation: u64) {
        let state = self.state();
        if is_not_valid_yet(status) && state.generation == generation {
            self.not_valid_yet.send_replace(true);
        }
    }

    /// Reconnects, unless the link of this generation was already replaced: after some failures a
    /// channel may never recover by itself.
    fn rebuild(&self, generation: u64) {
        let mut state = self.state();
        if state.generation == generation {
            // A link that could be set up once can be set up again.
            if let Ok(link) = Channel::new(&self.address, &state.security, self.deadline) {
                state.link = link;
            }
            state.generation += 1;
        }
    }

    /// Returns whether the server does not speak the expected protocol and never did. Then only a
    /// restart with other options helps.
    fn speaks_another_protocol(&self, status: &Status) -> bool {
        let is_not_plain = |error: ConnectError| error.kind == ConnectErrorKind::PlainUnsupported;
        !self.has_answered.load(Ordering::Relaxed)
            && ConnectError::of(status).is_some_and(is_not_plain)
    }

    /// Makes an optional call: it is not retried, since other calls report the same failures.
    pub(super) async fn try_call<T, F>(&self, call: impl FnOnce(Channel) -> F) -> Result<T, Status>
    where
        F: Future<Output = Result<Response<T>, Status>>,
    {
        let link = self.state().link.clone();
        self.in_time(call(link)).await
    }

    /// Returns the answer to a call, or an error if there is none within the deadline.
    async fn in_time<T>(
        &self,
        call: impl Future<Output = Result<Response<T>, Status>>,
    ) -> Result<T, Status> {
        let late = |_| Err(Status::deadline_exceeded("no answer in time"));
        let outcome = tokio::time::timeout(self.deadline, call).await.unwrap_or_else(late);
        outcome.map(Response::into_inner)
    }

    /// Makes a call. After a transient failure, waits as `backoff` says and returns the code.
    ///
    /// # Errors
    /// The failure is permanent.
    pub(super) async fn call<T, F>(
        &self,
        backoff: &mut Backoff,
        call: impl FnOnce(Channel) -> F,
    ) -> Result<Result<T, Code>, WorkerError>
    where
        F: Future<Output = Result<Response<T>, Status>>,
    {
        let (link, generation) = {
            let state = self.state();
            (state.link.clone(), state.generation)
        };
        // The channel's own deadline starts only once it is connected.
        match self.in_time(call(link)).await {
            Ok(answer) => {
                self.has_answered.store(true, Ordering::Relaxed);
                backoff.reset();
                Ok(Ok(answer))
            }
            Err(status) if self.speaks_another_protocol(&status) => {
                Err(WorkerError::NotPlain(self.address.clone()))
            }
            Err(status) => match classify(&status) {
                RpcFailure::Permanent(why) => Err(WorkerError::Refused(self.address.clone(), why)),
                RpcFailure::Transient(why) => {
                    self.note_not_valid_yet(&status, generation);
                    let wait = backoff.next(fastrand::f64());
                    tracing::warn!(address = %self.address, wait_ms = wait.as_millis() as u64, "{why}");
                    self.rebuild(generation);
                    tokio::time::sleep(wait).await;
                    Ok(Err(status.code()))
                }
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn temporary_failures_are_retried_and_permanent_ones_are_reported() {
        let failure = |code| classify(&Status::new(code, "x"));
        for code in [
            Code::Unavailable,
            Code::DeadlineExceeded,
            Code::Cancelled,
            Code::Unknown,
            Code::ResourceExhausted,
            Code::Internal,
        ] {
            assert!(matches!(failure(code), RpcFailure::Transient(_)), "{code:?}");
        }
        for code in [
            Code::FailedPrecondition,
            Code::Unauthenticated,
            Code::PermissionDenied,
            Code::Unimplemented,
        ] {
            assert_eq!(failure(code), RpcFailure::Permanent("x".into()), "{code:?}");
        }
    }
}
