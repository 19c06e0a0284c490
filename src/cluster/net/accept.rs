//! The accept loop: handshakes, connection pools and displacement.
//!
//! A connection is first in the handshake pool, and then in the pool of anonymous peers or in that
//! of certified peers. Each pool has a reserve for this machine. A worker and an attacker cannot be
//! distinguished before the handshake is done, so the handshake pool refuses no connection: it
//! drops the oldest handshake of the address that has the most. A handshake takes milliseconds, so
//! an honest one is finished long before it is the oldest, unless within that time a pool's worth
//! of connections arrives from its own address, or from more addresses than the pool has slots. The
//! same holds for anonymous peers, which make one call. A certified peer is never displaced by an
//! anonymous one.

use std::future::Future;
use std::io;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use sha2::{Digest as _, Sha256};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use super::limits::{ConnectionLimits, PoolLimits};
use super::quota::{KeyedQuota, Overflow, QuotaGuard};

/// The key of a connection in a quota.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum QuotaKey {
    Address(IpAddr),
    /// The SHA-256 digest of a certificate.
    Certificate([u8; 32]),
}

/// The identity of the peer, as established by the handshake.
#[derive(Clone, Debug)]
pub(crate) enum Identity {
    /// The peer presented this certificate (DER) of the authority.
    Certified(Arc<[u8]>),
    /// The peer presented no certificate.
    Anonymous,
    /// Every peer is trusted.
    Trusted,
}

/// The result of a handshake.
pub(crate) struct Handshake<S> {
    pub(crate) stream: S,
    pub(crate) identity: Identity,
}

impl<S> Handshake<S> {
    /// Accepts a plain stream, whose peer cannot be identified.
    pub(crate) async fn plain(stream: S, identity: Identity) -> io::Result<Self> {
        Ok(Self { stream, identity })
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> Handshake<TlsStream<S>> {
    /// Performs the TLS handshake. A peer that presents no certificate is anonymous.
    pub(crate) async fn tls(acceptor: TlsAcceptor, stream: S) -> io::Result<Self> {
        let stream = acceptor.accept(stream).await?;
        let presented = stream.get_ref().1.peer_certificates().and_then(<[_]>::first);
        let identity = presented
            .map_or(Identity::Anonymous, |der| Identity::Certified(Arc::from(der.as_ref())));
        Ok(Self { stream, identity })
    }
}

/// An accepted connection.
#[derive(Debug)]
pub(crate) struct Accepted<S> {
    pub(crate) stream: S,
    pub(crate) identity: Identity,
    pub(crate) from: SocketAddr,
    /// The deadline for the handshake and the first call.
    pub(crate) deadline: Instant,
    /// The slot of the connection. The connection counts as open until this is dropped, and must be
    /// closed once this is displaced.
    pub(crate) guard: QuotaGuard<QuotaKey>,
}

/// A quota for other machines and one for this machine.
#[derive(Clone, Debug)]
struct Pool {
    remote: Arc<KeyedQuota<QuotaKey>>,
    local: Arc<KeyedQuota<QuotaKey>>,
}

impl Pool {
    fn new(limits: PoolLimits, overflow: Overflow) -> Self {
        let PoolLimits { total, per_key, local } = limits;
        let remote = KeyedQuota::new(total, per_key, overflow);
        Self { remote, local: KeyedQuota::new(local, local, overflow) }
    }

    fn acquire(&self, is_local: bool, key: QuotaKey) -> Option<QuotaGuard<QuotaKey>> {
        if is_local { &self.local } else { &self.remote }.acquire(key)
    }
}

/// Returns the part of an address that quotas use: for IPv6 the /64 network, since its holder has
/// all of its addresses.
pub(crate) fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(six) => IpAddr::V6(Ipv6Addr::from_bits(six.to_bits() >> 64 << 64)),
        four => four,
    }
}

/// Accepts connections until it is dropped, and passes each to `serve` after its handshake. Each
/// connection has a task for both, which ends with this future.
pub(crate) async fn accept<S, H, C>(
    listener: TcpListener,
    limits: ConnectionLimits,
    handshake: impl Fn(TcpStream) -> H + Clone + Send + 'static,
    serve: impl FnOnce(Accepted<S>) -> C + Clone + Send + 'static,
) where
    S: Send + 'static,
    H: Future<Output = io::Result<Handshake<S>>> + Send + 'static,
    C: Future<Output = ()> + Send + 'static,
{
    let handshakes = Pool::new(limits.handshakes, Overflow::DisplaceOldest);
    let anonymous = Pool::new(limits.anonymous, Overflow::DisplaceOldest);
    let certified = Pool::new(limits.certified, Overflow::DisplaceLargest);
    let mut tasks = JoinSet::new();
    loop {
        while tasks.try_join_next().is_some() {}
        let (stream, from) = match listener.accept().await {
            Ok(accepted) => accepted,
            Err(error) => {
                // For example, too many files are open. This is temporary.
                tracing::warn!("a connection could not be accepted: {error}");
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            }
        };
        let deadline = Instant::now() + limits.time_limit;
        let is_local = (limits.is_local)(from.ip());
        let address = QuotaKey::Address(network(from.ip()));
        let Some(mut guard) = handshakes.acquire(is_local, address) else {
            tracing::debug!(%from, "too many handshakes");
            continue;
        };
        let (handshake, serve) = (handshake.clone(), serve.clone());
        let (anonymous, certified) = (anonymous.clone(), certified.clone());
        tasks.spawn(async move {
            let _ = stream.set_nodelay(true);
            let done = tokio::select! {
                done = tokio::time::timeout_at(deadline, handshake(stream)) => done,
                () = guard.displaced() => {
                    return tracing::debug!(%from, "the handshake was displaced by a newer connection");
                }
            };
            let Handshake { stream, identity } = match done {
                Ok(Ok(done)) => done,
                Ok(Err(error)) => return tracing::debug!(%from, "the handshake failed: {error}"),
                Err(_) => return tracing::debug!(%from, "the handshake timed out"),
            };
            let acquired = match &identity {
                Identity::Certified(der) => {
                    certified.acquire(is_local, QuotaKey::Certificate(Sha256::digest(der).into()))
                }
                Identity::Anonymous => anonymous.acquire(is_local, address),
                Identity::Trusted => certified.acquire(is_local, address),
            };
            drop(guard);
            let Some(guard) = acquired else {
                return tracing::warn!(%from, "too many connections");
            };
            serve(Accepted { stream, identity, from, deadline, guard }).await;
        });
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpSocket;

    use super::*;

    const ALL: PoolLimits = PoolLimits { total: 4, per_key: 2, local: 2 };

    /// Starts an echo server. Its handshake is five bytes: "hello" for an anonymous peer,
    /// anything else for a certificate. Its only local address is 127.0.0.1.
    async fn start(limits: ConnectionLimits) -> (SocketAddr, tokio::task::JoinHandle<()>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("bound");
        let handshake = |mut stream: TcpStream| async move {
            let mut hello = [0; 5];
            stream.read_exact(&mut hello).await?;
            let identity = match &hello {
                b"hello" => Identity::Anonymous,
                _ => Identity::Certified(Arc::from(hello)),
            };
            Ok(Handshake { stream, identity })
        };
        let serve = |mut accepted: Accepted<TcpStream>| async move {
            let (mut from, mut to) = accepted.stream.split();
            tokio::select! {
                _ = tokio::io::copy(&mut from, &mut to) => {}
                () = accepted.guard.displaced() => {}
            }
        };
        (address, tokio::spawn(accept(listener, limits, handshake, serve)))
    }

    fn limits() -> ConnectionLimits {
        ConnectionLimits {
            handshakes: ALL,
            anonymous: ALL,
            certified: ALL,
            time_limit: Duration::from_secs(600),
            is_local: |address| address == IpAddr::from([127, 0, 0, 1]),
            ..ConnectionLimits::default()
        }
    }

    async fn connect(to: SocketAddr, last: u8) -> TcpStream {
        let socket = TcpSocket::new_v4().expect("a socket");
        socket.bind(SocketAddr::from(([127, 0, 0, last], 0))).expect("a loopback address");
        socket.connect(to).await.expect("it listens")
    }

    /// Sends the handshake and returns whether the connection is served.
    async fn is_served(stream: &mut TcpStream, hello: &[u8; 5]) -> bool {
        let mut echo = [0; 1];
        stream.write_all(hello).await.is_ok()
            && stream.write_all(b"x").await.is_ok()
            && matches!(stream.read(&mut echo).await, Ok(1))
    }

    async fn is_closed(mut stream: TcpStream) -> bool {
        let read = tokio::time::timeout(Duration::from_secs(60), stream.read(&mut [0; 1])).await;
        matches!(read, Ok(Ok(0) | Err(_)))
    }

    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn held_handshakes_and_anonymous_connections_block_no_peer() {
        let (address, serving) = start(limits()).await;
        // Several times as many connections as there are slots hold all slots for handshakes and
        // anonymous peers.
        let mut held = Vec::new();
        for number in 0..40_u8 {
            held.push(connect(address, 2 + number % 8).await);
            let mut anonymous = connect(address, 2 + number % 8).await;
            assert!(is_served(&mut anonymous, b"hello").await, "anonymous peer {number}");
            held.push(anonymous);
        }
        for last in [1, 2, 100] {
            assert!(
                is_served(&mut connect(address, last).await, b"hello").await,
                "an anonymous peer from {last}"
            );
            assert!(
                is_served(&mut connect(address, last).await, b"known").await,
                "a certified peer from {last}"
            );
        }
        // The oldest ones were displaced.
        assert!(is_closed(held.swap_remove(1)).await && is_closed(held.swap_remove(0)).await);
        serving.abort();
    }

    #[tokio::test]
    async fn a_certified_peer_has_its_own_share_and_is_not_displaced_by_anonymous_peers() {
        let (address, serving) = start(ConnectionLimits { is_local: |_| false, ..limits() }).await;
        let mut known = [connect(address, 1).await, connect(address, 1).await];
        for stream in &mut known {
            assert!(is_served(stream, b"known").await);
        }
        assert!(!is_served(&mut connect(address, 1).await, b"known").await, "a third of the same");
        let mut other = connect(address, 1).await;
        assert!(is_served(&mut other, b"other").await, "another of the same address");
        for _ in 0..20 {
            assert!(is_served(&mut connect(address, 1).await, b"hello").await);
        }
        for stream in known.iter_mut().chain([&mut other]) {
            assert!(is_served(stream, b"still").await, "it goes on");
        }
        serving.abort();
    }

    #[tokio::test]
    async fn a_handshake_times_out() {
        let (address, serving) =
            start(ConnectionLimits { time_limit: Duration::from_millis(50), ..limits() }).await;
        assert!(is_closed(connect(address, 1).await).await);
        serving.abort();
    }

    #[test]
    fn an_ipv6_network_and_an_ipv4_address_are_one_key_each() {
        let of = |text: &str| network(text.parse().expect("an address"));
        assert_eq!(of("2001:db8::1"), of("2001:db8::ffff:1"));
        assert_ne!(of("2001:db8::1"), of("2001:db8:0:1::1"));
        assert_eq!(of("::ffff:192.0.2.1"), of("192.0.2.1"));
        assert_ne!(of("192.0.2.1"), of("192.0.2.2"));
    }
}
