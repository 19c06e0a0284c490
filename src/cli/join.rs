//! The page for visitors of a coordinator in the same process.

use std::net::SocketAddr;

use super::Failure;
use crate::cluster::coordinator::{BoundAddress, InProcessService};
use crate::cluster::join::{self, Bound, JoinOptions, PublicUrl};

/// The page for visitors.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct JoinArgs {
    /// Serve a page at this address on which visitors count on the GPU of their browser. With a
    /// certificate authority, it uses TLS. Without one, and with --join-url, the address must be a
    /// loopback address.
    #[arg(long, value_name = "IP:PORT")]
    join_page: Option<SocketAddr>,
    /// Let N visitors without a token count at a time. Each unit that they count is checked by
    /// others.
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = guests, requires = "join_page",
          allow_negative_numbers = true)]
    guests: u32,
    /// The URL at which a reverse proxy on this machine serves the page, such as
    /// https://count.example.org.
    #[arg(long, value_name = "URL", requires = "join_page")]
    join_url: Option<PublicUrl>,
}

/// Parses a number of guests.
fn guests(text: &str) -> Result<u32, String> {
    const MOST: u32 = 10_000;
    let guests = text.parse().ok().filter(|guests| *guests <= MOST);
    guests.ok_or_else(|| {
        format!("invalid number of guests '{text}'; use a whole number from 0 to {MOST}")
    })
}

impl JoinArgs {
    /// Returns whether a reverse proxy serves the page.
    pub(super) const fn is_proxied(&self) -> bool {
        self.join_url.is_some()
    }

    /// Checks that the page may be served at its address. Returns the address, if there is one.
    pub(super) fn address(&self, tls: bool) -> Result<Option<SocketAddr>, Failure> {
        let Some(at) = self.join_page else { return Ok(None) };
        if at.ip().is_loopback() || tls && self.join_url.is_none() {
            return Ok(Some(at));
        }
        Err(Failure::usage(match self.join_url {
            Some(_) => format!(
                "--join-page {at} is reachable from other machines; with --join-url, use a loopback \
                 address, for example 127.0.0.1:8081, to which the reverse proxy connects"
            ),
            None => format!(
                "--join-page {at} is reachable from other machines, which needs TLS; use a loopback \
                 address, for example 127.0.0.1:8081, or create an authority with nqueens \
                 coordinator init"
            ),
        }))
    }
}

/// Serves the page until this process ends.
pub(super) fn open(bound: Bound, args: &JoinArgs, listening: &BoundAddress) {
    let InProcessService { operations, work, key, authority } = listening.in_process.clone();
    let options = JoinOptions { guests: args.guests, url: args.join_url.clone() };
    let local = bound.url(listening.tls && options.url.is_none());
    let url = options.url.as_ref().map_or(local, ToString::to_string);
    tracing::info!(url, guests = options.guests, "page for visitors");
    tokio::spawn(async move {
        if let Err(error) = join::serve(bound, (operations, work), authority, key, options).await {
            tracing::error!("cannot serve the page for visitors: {error}");
        }
    });
}
