//! An address that is bound before it is served.

use std::io;
use std::net::SocketAddr;

use tokio::net::TcpListener;

/// An address that is bound, and not served yet.
#[derive(Debug)]
pub struct Bound {
    pub(crate) listener: TcpListener,
    pub(crate) address: SocketAddr,
}

impl Bound {
    /// Binds an address; port 0 selects a free one.
    ///
    /// # Errors
    /// The address cannot be bound.
    pub async fn at(address: SocketAddr) -> io::Result<Self> {
        let listener = TcpListener::bind(address).await?;
        let address = listener.local_addr()?;
        Ok(Self { listener, address })
    }

    /// Returns the URL to open in a browser.
    pub fn url(&self, tls: bool) -> String {
        format!("{}://{}/", if tls { "https" } else { "http" }, self.address)
    }
}
