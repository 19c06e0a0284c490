//! The listener of the page.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio_rustls::TlsAcceptor;
use tonic::service::Routes;

use super::campaign::CampaignView;
use super::public_url::PublicUrl;
use super::routes::{App, router};
use super::sessions::Sessions;
use crate::cluster::auth::{Authority, ServerIdentity};
use crate::cluster::campaign::CampaignKey;
use crate::cluster::net::{Bound, ConnectionLimits, PoolLimits, serve_http1};
use crate::cluster::protocol::v1::operations_client::OperationsClient;
use crate::cluster::protocol::v1::work_client::WorkClient;

/// The limits on open connections. A reverse proxy connects from this machine.
const CONNECTIONS: PoolLimits = PoolLimits { total: 1024, per_key: 16, local: 1024 };
/// The time limit of a handshake, of the head of a request, and of each write of an answer.
const TIME_LIMIT: Duration = Duration::from_secs(15);
/// The interval at which idle callers are forgotten.
const FORGET_EVERY: Duration = Duration::from_secs(60);

/// Options for serving the page.
#[derive(Clone, Debug, Default)]
pub struct JoinOptions {
    /// The number of guests that may count at a time.
    pub guests: u32,
    /// The URL at which a reverse proxy on this machine serves the page. The listener then uses no
    /// TLS, and believes the proxy's `X-Forwarded-For`.
    pub url: Option<PublicUrl>,
}

/// Serves the page of the coordinator that the clients call, until the future is dropped.
///
/// # Errors
/// TLS cannot be set up; or other machines can reach the address, and there is no TLS.
pub async fn serve(
    bound: Bound,
    (operations, work): (OperationsClient<Routes>, WorkClient<Routes>),
    credentials: Option<(Arc<Authority>, Arc<ServerIdentity>)>,
    key: CampaignKey,
    options: JoinOptions,
) -> io::Result<()> {
    let Bound { listener, address } = bound;
    let JoinOptions { guests, url } = options;
    let (authority, identity) = credentials.unzip();
    let acceptor = match identity.filter(|_| url.is_none()) {
        Some(identity) => {
            let config = identity.config_for_browsers().map_err(io::Error::other)?;
            Some(TlsAcceptor::from(Arc::new(config)))
        }
        None if address.ip().is_loopback() => None,
        None => {
            return Err(io::Error::other(format!(
                "other machines can reach {address}, and the page is served there without TLS"
            )));
        }
    };
    let sessions = Sessions::new(authority, key, guests);
    let app = Arc::new(App::new(work, CampaignView::new(operations), sessions, url));
    let limits = ConnectionLimits::for_http1(CONNECTIONS, TIME_LIMIT);
    let forget = async {
        loop {
            tokio::time::sleep(FORGET_EVERY).await;
            app.limits.forget_idle();
            app.pages.forget_silent();
        }
    };
    tokio::select! {
        () = serve_http1(listener, limits, acceptor, router(Arc::clone(&app))) => {}
        () = forget => {}
    }
    Ok(())
}
