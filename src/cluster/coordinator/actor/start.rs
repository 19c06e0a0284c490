//! The start of the campaign actor, with its thread, the arbiter and the check of the ledger.

use std::sync::Arc;

use tokio::sync::{mpsc, oneshot};

use super::super::arbiter;
use super::super::calls::WaitingCalls;
use super::super::commands::{ActorHandle, Request};
use super::super::observers::Observers;
use super::super::options::{ActorOptions, ServeError};
use super::{CampaignActor, ledger_check};

/// The capacity of the request channel.
const MOST_WAITING: usize = 4096;

/// A running campaign actor.
pub(in super::super) struct RunningActor {
    pub(in super::super) handle: ActorHandle,
    pub(in super::super) thread: std::thread::JoinHandle<()>,
    pub(in super::super) calls: Arc<WaitingCalls>,
    /// Resolves once the thread has ended, for whatever reason.
    pub(in super::super) ended: oneshot::Receiver<()>,
}

/// Starts the campaign actor. It ends on a stop request, or when all handles are dropped.
///
/// # Errors
/// Returns an error if the ledger cannot be opened or a thread cannot be spawned.
pub(in super::super) fn start(
    options: ActorOptions,
    observers: Observers,
) -> Result<RunningActor, ServeError> {
    let (handle, requests) = mpsc::channel(MOST_WAITING);
    // The arbiter must not keep the actor alive.
    let weak = handle.downgrade();
    let answer = move |answer| {
        if let Some(handle) = weak.upgrade() {
            let _ = handle.blocking_send(Request::run(|actor| actor.rule(answer)));
        }
    };
    let arbiter = arbiter::start(options.arbiter_threads, answer).map_err(ServeError::Thread)?;
    let calls = Arc::new(WaitingCalls::default());
    let path = options.path.clone();
    let mut actor = CampaignActor::open(options, observers, (arbiter, Arc::clone(&calls)))?;
    if actor.snapshot.is_some() {
        let weak = handle.downgrade();
        ledger_check::start(path, move |checked| {
            if let Some(handle) = weak.upgrade() {
                let _ = handle.blocking_send(Request::run(|actor| actor.ledger_checked(checked)));
            }
        })
        .map_err(ServeError::Thread)?;
    }
    let (alive, ended) = oneshot::channel::<()>();
    let work = move || {
        // Dropped when the thread ends, also on a panic.
        let _alive = alive;
        actor.work(requests);
    };
    let thread = std::thread::Builder::new()
        .name("campaign".into())
        .spawn(work)
        .map_err(ServeError::Thread)?;
    Ok(RunningActor { handle, thread, calls, ended })
}
