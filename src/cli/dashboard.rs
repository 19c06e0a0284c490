//! The dashboard of a coordinator in the same process.

use std::net::SocketAddr;
use std::path::PathBuf;

use super::{Exit, Failure};
use crate::cluster::coordinator::{BoundAddress, InProcessService, ServeError};
use crate::cluster::dashboard::{self, AuthMode, Bound, PlayFiles};

/// The page to play with.
#[derive(Debug, clap::Args)]
pub(super) struct PlayArgs {
    /// Serve the page to play with from this folder, at /play of the dashboard and without
    /// signing in. crates/play/build.sh builds the folder.
    #[arg(long, value_name = "DIR", requires = "dashboard")]
    play: Option<PathBuf>,
}

impl PlayArgs {
    /// Reads the files of the page.
    pub(super) fn files(&self) -> Result<Option<PlayFiles>, Failure> {
        let failure = |error: dashboard::PlayFilesError| Failure::new(Exit::File, error);
        self.play.as_deref().map(PlayFiles::read).transpose().map_err(failure)
    }
}

/// Checks that a dashboard may be served at this address, if there is one.
pub(super) fn check(at: Option<SocketAddr>, tls: bool) -> Result<(), Failure> {
    let Some(at) = at.filter(|at| !tls && !at.ip().is_loopback()) else { return Ok(()) };
    Err(Failure::usage(format!(
        "--dashboard {at} is reachable from other machines, which needs TLS and a certificate authority; use a \
         loopback address, for example 127.0.0.1:8080, or create an authority with nqueens coordinator init"
    )))
}

/// Binds the address of a page, if there is one.
pub(super) async fn bind(at: Option<SocketAddr>) -> Result<Option<Bound>, Failure> {
    let Some(at) = at else { return Ok(None) };
    Ok(Some(Bound::at(at).await.map_err(|error| ServeError::Listen(at, error))?))
}

/// Serves the dashboard, and the page to play with if its files are given, until this process ends.
pub(super) fn open(bound: Bound, play: Option<PlayFiles>, listening: &BoundAddress) {
    let InProcessService { operations, authority, .. } = listening.in_process.clone();
    let auth_mode = match authority {
        None => AuthMode::Open,
        Some((authority, identity)) => AuthMode::Sessions(authority, identity),
    };
    tracing::info!(url = bound.url(listening.tls), "dashboard");
    tokio::spawn(async move {
        if let Err(error) = dashboard::serve(bound, operations, auth_mode, play).await {
            tracing::error!("cannot serve the dashboard: {error}");
        }
    });
}
