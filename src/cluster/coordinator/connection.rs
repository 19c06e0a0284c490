//! Server connections, and the lifetime of those without a certificate.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep};
use tonic::transport::server::Connected;

use super::lock;
use crate::cluster::net::{Accepted, Identity};

/// The length of the HTTP/2 connection preface (RFC 9113, section 3.4).
const PREFACE_BYTES: u64 = 24;

/// The peer of a connection: an extension of each request.
#[derive(Clone, Debug)]
pub(super) struct PeerInfo {
    pub(super) address: SocketAddr,
    /// The certificate (DER) that the peer presented.
    pub(super) certificate: Option<Arc<[u8]>>,
    /// Set for connections without a certificate where one is needed.
    expiry: Option<Arc<Expiry>>,
}

impl PeerInfo {
    /// Records that a call was allowed. This extends the lifetime of a connection without a
    /// certificate.
    pub(super) fn call_allowed(&self) {
        if let Some(expiry) = &self.expiry {
            expiry.extend();
        }
    }
}

/// The expiry of a connection without a certificate.
#[derive(Debug)]
struct Expiry {
    at: Mutex<Instant>,
    after_call: Duration,
}

impl Expiry {
    fn at(&self) -> Instant {
        *lock(&self.at)
    }

    fn extend(&self) {
        let mut at = lock(&self.at);
        *at = (*at).max(Instant::now() + self.after_call);
    }
}

/// A connection that fails once it expires or is displaced by a newer connection.
#[derive(Debug)]
pub(super) struct Connection<S> {
    accepted: Accepted<S>,
    expiry: Option<Arc<Expiry>>,
    /// Runs until the preface has arrived; without a certificate, for the whole lifetime of the
    /// connection.
    timer: Option<Pin<Box<Sleep>>>,
    received: u64,
}

impl<S> Connection<S> {
    /// Wraps a connection. Without a certificate, it stays open for `after_call` after each allowed
    /// call.
    pub(super) fn new(accepted: Accepted<S>, after_call: Duration) -> Self {
        let timer = Some(Box::pin(tokio::time::sleep_until(accepted.deadline)));
        let expiry = matches!(accepted.identity, Identity::Anonymous)
            .then(|| Arc::new(Expiry { at: Mutex::new(accepted.deadline), after_call }));
        Self { accepted, expiry, timer, received: 0 }
    }

    /// Returns an error if the connection is to be closed. Otherwise registers the task to be woken
    /// then.
    fn check(&mut self, cx: &mut Context<'_>) -> io::Result<()> {
        if self.accepted.guard.poll_displaced(cx).is_ready() {
            return Err(io::Error::new(
                io::ErrorKind::ConnectionAborted,
                "displaced by a newer connection",
            ));
        }
        while let Some(timer) = &mut self.timer {
            if timer.as_mut().poll(cx).is_pending() {
                break;
            }
            match self.expiry.as_ref().map(|expiry| expiry.at()).filter(|at| *at > timer.deadline())
            {
                // Only a call extends the expiry, and there is no call without a preface.
                Some(later) => timer.as_mut().reset(later),
                None => return Err(io::ErrorKind::TimedOut.into()),
            }
        }
        Ok(())
    }

    fn received(&mut self, bytes: usize) {
        self.received = self.received.saturating_add(bytes as u64);
        if self.received >= PREFACE_BYTES && self.expiry.is_none() {
            self.timer = None;
        }
    }
}

impl<S> Connected for Connection<S> {
    type ConnectInfo = PeerInfo;

    fn connect_info(&self) -> PeerInfo {
        let certificate = match &self.accepted.identity {
            Identity::Certified(der) => Some(Arc::clone(der)),
            Identity::Anonymous | Identity::Trusted => None,
        };
        PeerInfo { address: self.accepted.from, certificate, expiry: self.expiry.clone() }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Connection<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.check(cx)?;
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.accepted.stream).poll_read(cx, buffer);
        self.received(buffer.filled().len() - before);
        read
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Connection<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.check(cx)?;
        Pin::new(&mut self.accepted.stream).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.check(cx)?;
        Pin::new(&mut self.accepted.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.accepted.stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use std::task::Waker;

    use tokio::io::{AsyncWriteExt, DuplexStream, duplex};

    use super::*;
    use crate::cluster::net::{KeyedQuota, Overflow, QuotaKey};

    const HOUR: Duration = Duration::from_secs(3600);

    fn connection(
        identity: Identity,
        deadline: Instant,
    ) -> (Connection<DuplexStream>, DuplexStream) {
        let (near, far) = duplex(1024);
        let from = SocketAddr::from(([127, 0, 0, 1], 1));
        let quota = KeyedQuota::new(1, 1, Overflow::Refuse);
        let guard = quota.acquire(QuotaKey::Address(from.ip())).expect("room");
        let accepted = Accepted { stream: near, identity, from, deadline, guard };
        (Connection::new(accepted, HOUR), far)
    }

    /// Reads the available bytes. Returns `None` if there are none.
    fn read(connection: &mut Connection<DuplexStream>) -> Option<io::Result<usize>> {
        let mut bytes = [0; 256];
        let mut buffer = ReadBuf::new(&mut bytes);
        match Pin::new(connection).poll_read(&mut Context::from_waker(Waker::noop()), &mut buffer) {
            Poll::Ready(read) => Some(read.map(|()| buffer.filled().len())),
            Poll::Pending => None,
        }
    }

    fn is_timed_out(read: Option<io::Result<usize>>) -> bool {
        read.is_some_and(|read| read.is_err_and(|error| error.kind() == io::ErrorKind::TimedOut))
    }

    /// Returns a deadline that has passed.
    async fn expired() -> Instant {
        let deadline = Instant::now();
        tokio::time::sleep(Duration::from_millis(5)).await;
        deadline
    }

    #[tokio::test]
    async fn an_anonymous_connection_ends_at_its_deadline_unless_a_call_was_allowed() {
        let (mut silent, mut far) = connection(Identity::Anonymous, Instant::now() + HOUR);
        assert!(read(&mut silent).is_none(), "there is time");
        far.write_all(&[7; 100]).await.expect("room");
        assert_eq!(read(&mut silent).expect("it exists").expect("read"), 100);
        assert!(read(&mut silent).is_none(), "there is time");

        let (mut late, mut far) = connection(Identity::Anonymous, expired().await);
        far.write_all(&[7; 100]).await.expect("room");
        assert!(is_timed_out(read(&mut late)));
        assert!(is_timed_out(read(&mut late)), "once more");

        let (mut allowed, _far) = connection(Identity::Anonymous, expired().await);
        allowed.connect_info().call_allowed();
        assert!(read(&mut allowed).is_none(), "another hour");
        let left = allowed.timer.as_ref().expect("it ends").deadline() - Instant::now();
        assert!(left > HOUR / 2 && left <= HOUR, "{left:?}");
    }

    #[tokio::test]
    async fn a_known_peer_has_a_deadline_for_the_preface_only() {
        for identity in [Identity::Trusted, Identity::Certified(Arc::from([1_u8]))] {
            let (mut late, mut far) = connection(identity.clone(), expired().await);
            far.write_all(&[7; 23]).await.expect("room");
            assert!(is_timed_out(read(&mut late)));
            let (mut begun, mut far) = connection(identity, Instant::now() + HOUR);
            far.write_all(&[7; 23]).await.expect("room");
            assert_eq!(read(&mut begun).expect("it exists").expect("read"), 23);
            assert!(begun.timer.is_some());
            far.write_all(&[7; 1]).await.expect("room");
            assert_eq!(read(&mut begun).expect("it exists").expect("read"), 1);
            assert!(begun.timer.is_none(), "the preface is there");
        }
    }
}
