//! Taking connections: how many there may be, and who waits for whom.

use std::collections::HashMap;
use std::future::Future;
use std::io;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tonic::transport::server::Connected;

/// How many connections may be open.
#[derive(Clone, Copy, Debug)]
struct Room {
    of_one_address: usize,
    in_all: usize,
}

/// For those that showed a certificate of the authority, and for everybody if there is none.
const KNOWN: Room = Room { of_one_address: 4096, in_all: 16_384 };
/// For those that did not, or not yet: whoever they are, they keep no worker out.
const STRANGERS: Room = Room { of_one_address: 512, in_all: 4096 };

/// Connections that are open, by address.
#[derive(Debug)]
struct Gate {
    room: Room,
    open: Mutex<HashMap<IpAddr, usize>>,
}

impl Gate {
    fn new(room: Room) -> Arc<Self> {
        Arc::new(Self { room, open: Mutex::default() })
    }

    /// Lets a connection in, unless its address has too many, or all have.
    fn enter(self: &Arc<Self>, address: IpAddr) -> Option<Pass> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let of_one = open.get(&address).copied().unwrap_or(0);
        if of_one >= self.room.of_one_address || open.values().sum::<usize>() >= self.room.in_all {
            return None;
        }
        *open.entry(address).or_default() += 1;
        Some(Pass { gate: Arc::clone(self), address })
    }
}

/// A connection that was let in.
#[derive(Debug)]
struct Pass {
    gate: Arc<Gate>,
    address: IpAddr,
}

impl Drop for Pass {
    fn drop(&mut self) {
        let mut open = self.gate.open.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(of_one) = open.get_mut(&self.address) {
            *of_one -= 1;
            if *of_one == 0 {
                open.remove(&self.address);
            }
        }
    }
}

/// A connection with its pass.
#[derive(Debug)]
pub(super) struct Guarded<S> {
    stream: S,
    _pass: Pass,
}

impl<S: Connected> Connected for Guarded<S> {
    type ConnectInfo = S::ConnectInfo;

    fn connect_info(&self) -> Self::ConnectInfo {
        self.stream.connect_info()
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Guarded<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Guarded<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, buffer)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

/// A stream after its handshake.
pub(super) struct Shaken<S> {
    pub(super) stream: S,
    /// Whether the other end is one that the authority certified, or that needs no certificate.
    pub(super) known: bool,
}

/// Takes connections and shakes hands with each on a task of its own, so that nobody waits for a slow one.
pub(super) async fn accept<S, F>(
    listener: TcpListener,
    sender: mpsc::Sender<io::Result<Guarded<S>>>,
    handshake: impl Fn(TcpStream) -> F + Clone + Send + 'static,
) where
    S: Send + 'static,
    F: Future<Output = io::Result<Shaken<S>>> + Send + 'static,
{
    const HANDSHAKE: Duration = Duration::from_secs(10);
    let (known, strangers) = (Gate::new(KNOWN), Gate::new(STRANGERS));
    loop {
        let (stream, from) = match listener.accept().await {
            Ok(accepted) => accepted,
            Err(error) => {
                // Too many open files, say: it passes.
                tracing::warn!("a connection could not be taken: {error}");
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            }
        };
        // Until its handshake is done, it is a stranger.
        let Some(pass) = strangers.enter(from.ip()) else {
            tracing::warn!(%from, "too many connections without a certificate");
            continue;
        };
        let (sender, handshake, known) = (sender.clone(), handshake.clone(), Arc::clone(&known));
        tokio::spawn(async move {
            let _ = stream.set_nodelay(true);
            let shaken = match tokio::time::timeout(HANDSHAKE, handshake(stream)).await {
                Ok(Ok(shaken)) => shaken,
                Ok(Err(error)) => return tracing::debug!(%from, "no handshake: {error}"),
                Err(_) => return tracing::debug!(%from, "no handshake in time"),
            };
            let pass = if shaken.known { known.enter(from.ip()) } else { Some(pass) };
            let Some(pass) = pass else { return tracing::warn!(%from, "too many connections") };
            let _ = sender.send(Ok(Guarded { stream: shaken.stream, _pass: pass })).await;
        });
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    #[test]
    fn an_address_takes_no_more_room_than_is_its_own_and_gives_it_back() {
        let gate = Gate::new(Room { of_one_address: 2, in_all: 3 });
        let [one, other] = [1, 2].map(|last| IpAddr::V4(Ipv4Addr::new(10, 0, 0, last)));
        let first = gate.enter(one).expect("room");
        let _second = gate.enter(one).expect("room");
        assert!(gate.enter(one).is_none(), "its own room is full");
        let third = gate.enter(other).expect("the other has room");
        assert!(gate.enter(other).is_none(), "there is room for three in all");
        drop((first, third));
        assert!(gate.enter(one).is_some() && gate.enter(other).is_some());
    }
}
