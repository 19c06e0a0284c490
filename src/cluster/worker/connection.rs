//! The line to the coordinator: calls with deadlines, a new channel after a failure, and what failures mean.

use std::future::Future;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::watch;
use tonic::{Code, Response, Status};

use super::WorkerError;
use super::backoff::Backoff;
use crate::cluster::protocol::{
    Address, ConnectError, ConnectFault, Link, LinkError, Security, is_not_valid_yet,
};

/// What a call that failed means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum RpcFailure {
    /// The same call may succeed later.
    Passing(String),
    /// It will not.
    Lasting(String),
}

/// What a failure means.
pub(super) fn trouble(status: &Status) -> RpcFailure {
    let said = status.message().to_owned();
    match status.code() {
        Code::FailedPrecondition
        | Code::Unauthenticated
        | Code::PermissionDenied
        | Code::Unimplemented
        | Code::AlreadyExists => RpcFailure::Lasting(said),
        _ => RpcFailure::Passing(ConnectError::of(status).map_or(said, |broken| broken.why)),
    }
}

/// The line to the coordinator.
#[derive(Debug)]
pub(super) struct Connection {
    address: Address,
    deadline: Duration,
    /// Whether a coordinator has ever answered.
    was_answered: AtomicBool,
    state: Mutex<State>,
    /// Whether the coordinator has said that the certificate in use is not valid yet.
    not_valid_yet: watch::Sender<bool>,
}

#[derive(Debug)]
struct State {
    security: Security,
    link: Link,
    /// Counts the links.
    generation: u64,
}

impl Connection {
    pub(super) fn new(address: Address, security: Security, deadline: Duration) -> Result<Self, LinkError> {
        let link = Link::new(&address, &security, deadline)?;
        let state = Mutex::new(State { security, link, generation: 0 });
        let (was_answered, not_valid_yet) = (AtomicBool::new(false), watch::Sender::new(false));
        Ok(Self { address, deadline, was_answered, state, not_valid_yet })
    }

    fn state(&self) -> MutexGuard<'_, State> {
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

    /// Connects anew, by other credentials.
    pub(super) fn secure(&self, security: Security) -> Result<(), LinkError> {
        let link = Link::new(&self.address, &security, self.deadline)?;
        let mut state = self.state();
        *state = State { security, link, generation: state.generation + 1 };
        self.not_valid_yet.send_replace(false);
        Ok(())
    }

    /// Waits until the coordinator says that the certificate in use is not valid yet: its clock was set back. Says so
    /// once for each call that is answered so.
    pub(super) async fn not_valid_yet(&self) {
        let mut said = self.not_valid_yet.subscribe();
        // The sender is there as long as this is.
        let _ = said.wait_for(|said| *said).await;
        self.not_valid_yet.send_replace(false);
    }

    /// Remembers that the certificate is not valid yet, unless another is in use since the call.
    fn hear(&self, status: &Status, generation: u64) {
        let state = self.state();
        if is_not_valid_yet(status) && state.generation == generation {
            self.not_valid_yet.send_replace(true);
        }
    }

    /// Connects anew, unless somebody has since the link of this generation failed: after some failures a channel may
    /// never come back by itself.
    fn rebuild(&self, generation: u64) {
        let mut state = self.state();
        if state.generation == generation {
            // What could be set up once can be again.
            if let Ok(link) = Link::new(&self.address, &state.security, self.deadline) {
                state.link = link;
            }
            state.generation += 1;
        }
    }

    /// Whether what listens there does not speak as it is spoken to, and never did: then nothing but another start helps.
    fn is_spoken_to_wrongly(&self, status: &Status) -> bool {
        let is_other = |broken: ConnectError| broken.fault == ConnectFault::NotPlain;
        !self.was_answered.load(Ordering::Relaxed) && ConnectError::of(status).is_some_and(is_other)
    }

    /// A call without which a worker can do: whatever its failure means, others will tell.
    pub(super) async fn try_call<T, F>(&self, call: impl FnOnce(Link) -> F) -> Result<T, Status>
    where
        F: Future<Output = Result<Response<T>, Status>>,
    {
        let link = self.state().link.clone();
        self.in_time(call(link)).await
    }

    /// The answer to a call, or that there was none in time.
    async fn in_time<T>(&self, call: impl Future<Output = Result<Response<T>, Status>>) -> Result<T, Status> {
        let late = |_| Err(Status::deadline_exceeded("no answer in time"));
        let outcome = tokio::time::timeout(self.deadline, call).await.unwrap_or_else(late);
        outcome.map(Response::into_inner)
    }

    /// A call. If it fails in a way that may pass, waits as `backoff` says and returns the code.
    ///
    /// # Errors
    /// It fails for good.
    pub(super) async fn call<T, F>(
        &self,
        backoff: &mut Backoff,
        call: impl FnOnce(Link) -> F,
    ) -> Result<Result<T, Code>, WorkerError>
    where
        F: Future<Output = Result<Response<T>, Status>>,
    {
        let (link, generation) = {
            let state = self.state();
            (state.link.clone(), state.generation)
        };
        // The channel's own deadline begins when it is connected.
        match self.in_time(call(link)).await {
            Ok(answer) => {
                self.was_answered.store(true, Ordering::Relaxed);
                backoff.reset();
                Ok(Ok(answer))
            }
            Err(status) if self.is_spoken_to_wrongly(&status) => {
                Err(WorkerError::NotPlain(self.address.clone()))
            }
            Err(status) => match trouble(&status) {
                RpcFailure::Lasting(why) => Err(WorkerError::Refused(self.address.clone(), why)),
                RpcFailure::Passing(why) => {
                    self.hear(&status, generation);
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
    fn what_may_pass_is_tried_again_and_what_will_not_is_said() {
        for code in [
            Code::Unavailable,
            Code::DeadlineExceeded,
            Code::Cancelled,
            Code::Unknown,
            Code::ResourceExhausted,
            Code::Internal,
        ] {
            assert!(matches!(trouble(&Status::new(code, "x")), RpcFailure::Passing(_)), "{code:?}");
        }
        for code in
            [Code::FailedPrecondition, Code::Unauthenticated, Code::PermissionDenied, Code::Unimplemented]
        {
            assert_eq!(trouble(&Status::new(code, "x")), RpcFailure::Lasting("x".into()), "{code:?}");
        }
    }
}
