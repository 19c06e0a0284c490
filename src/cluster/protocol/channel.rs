//! Channels to a coordinator.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use tonic::transport::{self, ClientTlsConfig, Endpoint, Identity};

use super::convert::MOST_MESSAGE_BYTES;
use super::v1::enrolment_client::EnrolmentClient;
use super::v1::operations_client::OperationsClient;
use super::v1::proving_client::ProvingClient;
use super::v1::work_client::WorkClient;
use crate::cluster::auth::{Credentials, Fingerprint, PinnedAuthority};

/// The address of a coordinator: a host and a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    host: String,
    port: u16,
}

/// The error for a text that is not an address.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "'{0}' is not an address; write HOST:PORT, for example 192.0.2.7:7878 or queens.example.org:7878"
)]
pub struct AddressError(String);

impl Address {
    /// The default port.
    pub const PORT: u16 = 7878;

    /// Returns the default address: this machine and the default port.
    pub fn usual() -> Self {
        Self { host: "127.0.0.1".to_owned(), port: Self::PORT }
    }

    /// Returns whether the address is always this machine's, whatever the network does.
    pub fn is_loopback(&self) -> bool {
        let literal = self.host.trim_start_matches('[').trim_end_matches(']');
        self.host == "localhost" || literal.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.host, self.port)
    }
}

impl FromStr for Address {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        let invalid = || AddressError(text.chars().take(100).collect());
        let (host, port) = match text.rsplit_once(':') {
            // An IPv6 address without brackets has more colons.
            Some((host, port)) if !host.contains(':') || host.ends_with(']') => {
                (host, port.parse().map_err(|_| invalid())?)
            }
            Some(_) => return Err(invalid()),
            None => (text, Self::PORT),
        };
        let is_host = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-');
        let is_ipv6 = || {
            let literal = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
            literal.is_some_and(|literal| literal.parse::<std::net::Ipv6Addr>().is_ok())
        };
        if port == 0 || host.is_empty() || !(host.bytes().all(is_host) || is_ipv6()) {
            return Err(invalid());
        }
        Ok(Self { host: host.to_owned(), port })
    }
}

/// The security of a connection.
#[derive(Clone, Debug)]
pub enum Security {
    /// No TLS: for a single machine, or at explicit request.
    Plain,
    /// TLS to the coordinator whose authority has this fingerprint, with a client certificate if
    /// there is one.
    Tls(Fingerprint, Option<Box<Credentials>>),
}

/// The error if no channel can be set up.
#[derive(Debug, thiserror::Error)]
#[error("the connection to {0} cannot be set up: {1}")]
pub struct ChannelError(Address, transport::Error);

/// A channel to a coordinator. It connects at the first call, and reconnects when the connection is
/// lost.
#[derive(Clone, Debug)]
pub struct Channel {
    inner: transport::Channel,
}

impl Channel {
    /// Creates a channel on which every call ends within `deadline`.
    ///
    /// # Errors
    /// TLS does not accept the credentials.
    pub fn new(
        address: &Address,
        security: &Security,
        deadline: Duration,
    ) -> Result<Self, ChannelError> {
        let fail = |error| ChannelError(address.clone(), error);
        let endpoint = Self::endpoint(address, security, deadline).map_err(fail)?;
        Ok(Self { inner: endpoint.connect_lazy() })
    }

    fn endpoint(
        address: &Address,
        security: &Security,
        deadline: Duration,
    ) -> Result<Endpoint, transport::Error> {
        const KEEP_ALIVE: Duration = Duration::from_secs(20);
        let scheme = match security {
            Security::Plain => "http",
            Security::Tls(..) => "https",
        };
        let endpoint = Endpoint::from_shared(format!("{scheme}://{address}"))?
            .connect_timeout(deadline)
            .timeout(deadline)
            .tcp_nodelay(true)
            .http2_keep_alive_interval(KEEP_ALIVE.min(deadline))
            .keep_alive_timeout(KEEP_ALIVE.min(deadline))
            .keep_alive_while_idle(true);
        let Security::Tls(authority, credentials) = security else { return Ok(endpoint) };
        let mut tls = ClientTlsConfig::new();
        if let Some(credentials) = credentials {
            tls = tls
                .identity(Identity::from_pem(credentials.certificate_pem(), credentials.key_pem()));
        }
        endpoint.tls_config_with_verifier(tls, Arc::new(PinnedAuthority::new(*authority)))
    }

    /// Returns a client for enrolment and renewal.
    pub fn enrolment(&self) -> EnrolmentClient<transport::Channel> {
        EnrolmentClient::new(self.inner.clone()).max_decoding_message_size(MOST_MESSAGE_BYTES)
    }

    /// Returns a client for workers' calls.
    pub fn work(&self) -> WorkClient<transport::Channel> {
        WorkClient::new(self.inner.clone()).max_decoding_message_size(MOST_MESSAGE_BYTES)
    }

    /// Returns a client for the calls of workers that prove.
    pub fn proving(&self) -> ProvingClient<transport::Channel> {
        ProvingClient::new(self.inner.clone()).max_decoding_message_size(MOST_MESSAGE_BYTES)
    }

    /// Returns a client for operators' and viewers' calls. Lists of jobs and workers may be long.
    pub fn operations(&self) -> OperationsClient<transport::Channel> {
        OperationsClient::new(self.inner.clone()).max_decoding_message_size(64 * MOST_MESSAGE_BYTES)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_a_host_and_a_port() {
        for (text, loopback) in [
            ("127.0.0.1:7878", true),
            ("localhost:1", true),
            ("[::1]:7878", true),
            ("192.0.2.7:7878", false),
            ("queens.example.org:443", false),
            ("[2001:db8::1]:7878", false),
        ] {
            let address: Address = text.parse().expect(text);
            assert_eq!((address.to_string(), address.is_loopback()), (text.to_owned(), loopback));
        }
        assert_eq!("queens".parse::<Address>().expect("a host").to_string(), "queens:7878");
        for text in [
            "",
            ":1",
            "h:",
            "h:0",
            "h:65536",
            "h:x",
            "::1:7878",
            "http://h:1",
            "h:1/x",
            "a b:1",
            "[h]:1",
        ] {
            assert!(text.parse::<Address>().is_err(), "{text}");
        }
    }
}
