//! HTTP/1.1 on top of the accept loop.

use std::net::IpAddr;

use axum::Router;
use axum::extract::Request;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

use super::accept::{Accepted, Handshake, Identity, accept};
use super::limits::ConnectionLimits;
use super::write_timeout::WriteTimeout;

/// The address of the peer: an extension of each request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PeerAddress(pub(crate) IpAddr);

/// Serves `router`, over TLS if there is an acceptor, until it is dropped. The time limit applies
/// to the handshake, to the head of each request and to each write.
pub(crate) async fn serve_http1(
    listener: TcpListener,
    limits: ConnectionLimits,
    tls: Option<TlsAcceptor>,
    router: Router,
) {
    let time_limit = limits.time_limit;
    match tls {
        None => {
            let handshake = move |stream: TcpStream| {
                Handshake::plain(WriteTimeout::new(stream, time_limit), Identity::Anonymous)
            };
            accept(listener, limits, handshake, move |accepted| {
                serve_connection(accepted, router, limits)
            })
            .await;
        }
        Some(acceptor) => {
            let handshake = move |stream: TcpStream| {
                Handshake::tls(acceptor.clone(), WriteTimeout::new(stream, time_limit))
            };
            accept(listener, limits, handshake, move |accepted| {
                serve_connection(accepted, router, limits)
            })
            .await;
        }
    }
}

/// Serves the requests of one connection until it ends or is displaced.
async fn serve_connection(
    accepted: Accepted<impl AsyncRead + AsyncWrite + Unpin + Send + 'static>,
    router: Router,
    limits: ConnectionLimits,
) {
    let Accepted { stream, from, mut guard, .. } = accepted;
    let peer = PeerAddress(from.ip());
    let router = TowerToHyperService::new(router);
    let service = service_fn(move |mut request: Request<Incoming>| {
        request.extensions_mut().insert(peer);
        hyper::service::Service::call(&router, request)
    });
    let mut server = hyper::server::conn::http1::Builder::new();
    server.timer(TokioTimer::new()).header_read_timeout(limits.time_limit);
    tokio::select! {
        // A client may disconnect at any time.
        _ = server.serve_connection(TokioIo::new(stream), service) => {}
        () = guard.displaced() => tracing::debug!(%from, "displaced by a newer connection"),
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;
    use std::time::Duration;

    use axum::routing::get;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;
    use crate::cluster::net::PoolLimits;

    async fn start(
        anonymous: PoolLimits,
        time_limit: Duration,
    ) -> (SocketAddr, tokio::task::JoinHandle<()>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("bound");
        let router = Router::new().route("/", get(|| async { "here" }));
        let limits = ConnectionLimits::for_http1(anonymous, time_limit);
        (address, tokio::spawn(serve_http1(listener, limits, None, router)))
    }

    async fn ask(address: SocketAddr) -> String {
        let mut stream = TcpStream::connect(address).await.expect("it listens");
        let request = "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
        stream.write_all(request.as_bytes()).await.expect("taken");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.expect("an answer");
        answer
    }

    #[tokio::test]
    async fn an_unfinished_head_times_out() {
        let (address, serving) =
            start(PoolLimits { total: 8, per_key: 8, local: 8 }, Duration::from_millis(50)).await;
        for partial in ["", "GET / HT"] {
            let mut stream = TcpStream::connect(address).await.expect("it listens");
            stream.write_all(partial.as_bytes()).await.expect("taken");
            let mut answer = String::new();
            let read =
                tokio::time::timeout(Duration::from_secs(60), stream.read_to_string(&mut answer))
                    .await;
            assert!(read.is_ok() && !answer.contains("200"), "{partial:?}: {answer}");
        }
        serving.abort();
    }

    #[tokio::test]
    async fn held_connections_do_not_block_new_ones() {
        let (address, serving) =
            start(PoolLimits { total: 4, per_key: 4, local: 4 }, Duration::from_secs(600)).await;
        let mut held = Vec::new();
        for _ in 0..50 {
            let mut stream = TcpStream::connect(address).await.expect("it listens");
            stream.write_all(b"GET / HT").await.expect("taken");
            held.push(stream);
        }
        assert!(ask(address).await.ends_with("here"));
        serving.abort();
    }
}
