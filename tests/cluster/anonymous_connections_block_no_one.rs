//! A coordinator under attack by many connections: certified workers and local commands get
//! through, and silent connections time out. The attackers have many addresses, so these tests are
//! for Linux, where all of 127.0.0.0/8 is local.
#![cfg(target_os = "linux")]

use crate::support;

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::num::NonZeroUsize;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use nqueens::cluster::auth::{Credentials, Fingerprint, KeyRequest, Role, client_config};
use nqueens::cluster::campaign::Settings;
use nqueens::cluster::coordinator::{
    self, AddressFile, ConnectionLimits, CoordinatorOptions, Notify, PoolLimits, operator_folder,
};
use nqueens::cluster::protocol::{Address, Channel, Security, enrol, v1};
use rustls::pki_types::ServerName;
use support::{PATIENCE, Process, Scratch, Worker, authority, credentials, eventually};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::sync::oneshot;
use tokio::task::{JoinHandle, JoinSet};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// The HTTP/2 preface and an empty SETTINGS frame.
const BEGIN: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";

/// A coordinator in this process.
struct RunningCoordinator {
    address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    task: JoinHandle<()>,
}

impl RunningCoordinator {
    async fn start(data: &Path, connections: ConnectionLimits) -> Self {
        let options = CoordinatorOptions {
            data: data.to_owned(),
            listen: ([127, 0, 0, 1], 0).into(),
            insecure: false,
            metrics: None,
            dashboard: None,
            join_page: None,
            reflection: false,
            snapshot_every: coordinator::SNAPSHOT_EVERY,
            settings: Settings::default(),
            arbiter_threads: NonZeroUsize::MIN,
            notify: Notify::default(),
            connections,
        };
        let (stop, stopped) = oneshot::channel::<()>();
        let (sender, receiver) = oneshot::channel();
        let task = tokio::spawn(async move {
            let until = async move { drop(stopped.await) };
            let served = coordinator::serve(options, until, move |listening| {
                let _ = sender.send(listening.address);
            });
            served.await.expect("it serves");
        });
        Self { address: receiver.await.expect("it listens"), stop: Some(stop), task }
    }

    fn channel(&self, pin: Fingerprint, credentials: Option<Credentials>) -> Channel {
        let security = Security::Tls(pin, credentials.map(Box::new));
        Channel::new(&self.to(), &security, PATIENCE).expect("a channel")
    }

    fn to(&self) -> Address {
        self.address.to_string().parse().expect("an address")
    }

    async fn end(mut self) {
        let _ = self.stop.take().expect("not stopped yet").send(());
        self.task.await.expect("it ends");
    }
}

/// Limits of a tenth of the connections that the attackers hold, with time limits too long to
/// matter.
fn small_limits(is_local: fn(IpAddr) -> bool) -> ConnectionLimits {
    let pool = PoolLimits { total: 24, per_key: 8, local: 24 };
    ConnectionLimits {
        handshakes: pool,
        anonymous: pool,
        certified: pool,
        time_limit: Duration::from_secs(600),
        after_enrolment: Duration::from_secs(600),
        is_local,
    }
}

async fn connect(to: SocketAddr, last: u8) -> io::Result<TcpStream> {
    let socket = TcpSocket::new_v4()?;
    socket.bind(SocketAddr::from(([127, 0, 0, last], 0)))?;
    socket.connect(to).await
}

async fn tls_handshake(
    to: SocketAddr,
    last: u8,
    pin: Fingerprint,
    credentials: Option<&Credentials>,
) -> io::Result<TlsStream<TcpStream>> {
    let config = client_config(pin, credentials).expect("a configuration");
    let name = ServerName::try_from("localhost").expect("a name");
    TlsConnector::from(Arc::new(config)).connect(name, connect(to, last).await?).await
}

/// Opens connections and holds them: from each of eight addresses, sixteen that finish the TLS
/// handshake and are silent, and as many that do not even start it.
async fn hold_connections(
    to: SocketAddr,
    pin: Fingerprint,
) -> (Vec<TlsStream<TcpStream>>, Vec<TcpStream>) {
    let (mut handshaken, mut bare) = (Vec::new(), Vec::new());
    for _ in 0..16 {
        for last in 2..10 {
            handshaken.extend(tls_handshake(to, last, pin, None).await);
            bare.extend(connect(to, last).await);
        }
    }
    (handshaken, bare)
}

/// Keeps opening connections from the same addresses, and holds some of them.
fn keep_connecting(to: SocketAddr) -> JoinSet<()> {
    let mut attackers = JoinSet::new();
    for last in 2..10 {
        attackers.spawn(async move {
            let mut held = std::collections::VecDeque::new();
            loop {
                if let Ok(stream) = connect(to, last).await {
                    held.push_back(stream);
                }
                if held.len() > 32 {
                    held.pop_front();
                }
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        });
    }
    attackers
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn held_connections_block_no_certified_worker_no_local_command_and_no_enrolment() {
    // All attackers are remote and the legitimate clients local; all are remote; all are local.
    let who: [fn(IpAddr) -> bool; 3] = [
        |address| address == IpAddr::from([127, 0, 0, 1]),
        |_| false,
        |address| address.is_loopback(),
    ];
    for (case, is_local) in who.into_iter().enumerate() {
        let scratch = Scratch::new("held");
        let data = scratch.path("data");
        let authority = authority(&data);
        let pin = authority.fingerprint();
        let serving = RunningCoordinator::start(&data, small_limits(is_local)).await;
        let mut before = Worker::new(
            "w1",
            serving.channel(pin, Some(credentials(&authority, "w1", Role::Worker))),
        );
        before.sync().await.expect("answered");

        let held = hold_connections(serving.address, pin).await;
        let attackers = keep_connecting(serving.address);

        before
            .sync()
            .await
            .unwrap_or_else(|error| panic!("case {case}: it was connected before: {error}"));
        for number in 0..4 {
            let name = format!("new-{number}");
            let channel = serving.channel(pin, Some(credentials(&authority, &name, Role::Worker)));
            let synced = Worker::new(&name, channel).sync().await;
            synced.unwrap_or_else(|error| panic!("case {case}, {name}: {error}"));
        }
        let command = {
            let data = data.clone();
            tokio::task::spawn_blocking(move || {
                support::run(&["status", "--data", data.to_str().expect("UTF-8")])
            })
        };
        let output = command.await.expect("it ran");
        assert!(
            output.status.success(),
            "case {case}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        let one = 1.try_into().expect("one");
        let token = authority
            .create_token(Role::Worker, one, 60_000, coordinator::now_ms())
            .expect("a token");
        let name = "enrolled".parse().expect("a name");
        let enrolled =
            enrol(&serving.to(), &token, &name, &scratch.path("enrolled"), PATIENCE).await;
        enrolled.unwrap_or_else(|error| panic!("case {case}: {error}"));

        drop((held, attackers));
        serving.end().await;
    }
}

/// Reads until the other end closes the connection.
async fn is_closed(mut stream: impl AsyncReadExt + Unpin) -> bool {
    let read = async { while matches!(stream.read(&mut [0; 1024]).await, Ok(1..)) {} };
    tokio::time::timeout(PATIENCE, read).await.is_ok()
}

/// Returns whether the connection is still open after several times the limit for anonymous ones.
async fn is_open(mut stream: impl AsyncReadExt + Unpin) -> bool {
    let read = async { while matches!(stream.read(&mut [0; 1024]).await, Ok(1..)) {} };
    tokio::time::timeout(Duration::from_millis(1500), read).await.is_err()
}

fn short_time_limit() -> ConnectionLimits {
    let time = Duration::from_millis(300);
    ConnectionLimits { time_limit: time, after_enrolment: time, ..ConnectionLimits::default() }
}

#[tokio::test]
async fn an_anonymous_connection_has_a_short_time_limit_for_an_allowed_call() {
    let scratch = Scratch::new("moment");
    let data = scratch.path("data");
    let authority = authority(&data);
    let pin = authority.fingerprint();
    let serving = RunningCoordinator::start(&data, short_time_limit()).await;
    let worker = credentials(&authority, "w", Role::Worker);

    // No TLS handshake; a handshake and silence; the HTTP/2 preface and silence.
    assert!(is_closed(connect(serving.address, 1).await.expect("it listens")).await);
    assert!(
        is_closed(tls_handshake(serving.address, 1, pin, None).await.expect("a handshake")).await
    );
    let mut begun = tls_handshake(serving.address, 1, pin, None).await.expect("a handshake");
    begun.write_all(BEGIN).await.expect("taken");
    assert!(is_closed(begun).await);
    // A certified peer must send the preface, and may then be silent.
    let shown = tls_handshake(serving.address, 1, pin, Some(&worker)).await.expect("a handshake");
    assert!(is_closed(shown).await);
    let mut begun =
        tls_handshake(serving.address, 1, pin, Some(&worker)).await.expect("a handshake");
    begun.write_all(BEGIN).await.expect("taken");
    assert!(is_open(begun).await);
    serving.end().await;
}

/// Makes a gRPC call. Returns the response headers, if the connection stays open that long.
async fn call(
    sender: &mut h2::client::SendRequest<axum::body::Bytes>,
    method: &str,
    message: &impl prost::Message,
) -> Option<axum::http::HeaderMap> {
    let request = axum::http::Request::builder()
        .method("POST")
        .uri(format!("https://localhost/nqueens.v1.{method}"))
        .header("content-type", "application/grpc")
        .header("te", "trailers")
        .body(())
        .expect("a request");
    let mut ready = sender.clone().ready().await.ok()?;
    let (answer, mut body) = ready.send_request(request, false).ok()?;
    let mut bytes = vec![0];
    bytes.extend(u32::try_from(message.encoded_len()).expect("a short message").to_be_bytes());
    bytes.extend(message.encode_to_vec());
    body.send_data(bytes.into(), true).ok()?;
    Some(answer.await.ok()?.headers().clone())
}

#[tokio::test]
async fn refused_calls_do_not_extend_the_time_limit_and_an_enrolment_extends_it_little() {
    let scratch = Scratch::new("refused");
    let data = scratch.path("data");
    let authority = authority(&data);
    let pin = authority.fingerprint();
    let serving = RunningCoordinator::start(&data, short_time_limit()).await;

    let stream = tls_handshake(serving.address, 1, pin, None).await.expect("a handshake");
    let (mut sender, connection) = h2::client::handshake(stream).await.expect("HTTP/2");
    let calls = async {
        let mut refused = 0;
        while let Some(headers) =
            call(&mut sender, "Operations/Status", &v1::StatusRequest::default()).await
        {
            // Without credentials; and, after the first calls, over the limit.
            let code = headers.get("grpc-status").expect("refused at once");
            assert!(code == "16" || code == "8", "{code:?}");
            refused += 1;
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        refused
    };
    let both = async { tokio::join!(calls, connection).0 };
    let refused = tokio::time::timeout(PATIENCE, both).await.expect("the connection is closed");
    assert!(refused > 0, "it was closed before its first call");

    let one = 1.try_into().expect("one");
    let token =
        authority.create_token(Role::Worker, one, 60_000, coordinator::now_ms()).expect("a token");
    let name = "enrolled".parse().expect("a name");
    let key = KeyRequest::new(&name).expect("a key");
    let request = v1::EnrollRequest {
        peer: nqueens::cluster::protocol::peer(),
        token: token.to_string(),
        name: name.to_string(),
        request: key.request().to_vec(),
    };
    let stream = tls_handshake(serving.address, 1, pin, None).await.expect("a handshake");
    let (mut sender, connection) = h2::client::handshake(stream).await.expect("HTTP/2");
    let enrolment = async {
        let headers = call(&mut sender, "Enrolment/Enroll", &request).await.expect("an answer");
        // The status of a successful call comes after its message.
        assert!(headers.get("grpc-status").is_none(), "{headers:?}");
        // The sender is kept, so that the client does not close the connection.
        std::future::pending::<()>().await;
    };
    let closed = async {
        tokio::select! {
            _ = connection => {}
            () = enrolment => {}
        }
    };
    tokio::time::timeout(PATIENCE, closed).await.expect("the connection is closed");
    serving.end().await;
}

#[tokio::test]
async fn without_tls_a_connection_has_a_short_time_limit_for_its_preface() {
    let scratch = Scratch::new("plain");
    let serving = RunningCoordinator::start(&scratch.path("data"), short_time_limit()).await;
    assert!(is_closed(connect(serving.address, 1).await.expect("it listens")).await);
    let mut half = connect(serving.address, 1).await.expect("it listens");
    half.write_all(&BEGIN[..20]).await.expect("taken");
    assert!(is_closed(half).await);
    let mut begun = connect(serving.address, 1).await.expect("it listens");
    begun.write_all(BEGIN).await.expect("taken");
    assert!(is_open(begun).await);
    let channel = Channel::new(&serving.to(), &Security::Plain, PATIENCE).expect("a channel");
    channel.operations().status(v1::StatusRequest::default()).await.expect("answered");
    serving.end().await;
}

/// Starts a coordinator in `data` from a shell that runs a command first.
fn start_after(shell: &str, data: &Path) -> Process {
    let mut command = Command::new("sh");
    command.args(["-c", &format!("{shell}; exec \"$0\" \"$@\""), support::NQUEENS, "coordinator"]);
    command.args(["--listen", "127.0.0.1:0", "--data"]).arg(data).args(["--log-level", "warn"]);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let process = Process(command.spawn().expect("a shell"));
    eventually("coordinator that listens", || AddressFile::read(data).ok());
    process
}

#[test]
fn a_coordinator_raises_its_file_limit_and_warns_if_it_is_low() {
    let scratch = Scratch::new("files");
    let mut process = start_after("ulimit -Sn 256", &scratch.path("many"));
    let limits =
        std::fs::read_to_string(format!("/proc/{}/limits", process.0.id())).expect("it runs");
    let line = limits.lines().find(|line| line.starts_with("Max open files")).expect("it exists");
    let words: Vec<&str> = line.split_whitespace().collect();
    assert!(words[3] == words[4] && words[3] != "256", "{line}");
    process.kill();

    let data = scratch.path("few");
    authority(&data);
    let mut process = start_after("ulimit -n 2000", &data);
    // It serves, and there is capacity for local clients.
    let operator = Credentials::load(&operator_folder(&data)).expect("made at its start");
    assert_eq!(operator.role(), Role::Operator);
    support::printed(&["status", "--data", data.to_str().expect("UTF-8")]);
    process.kill();
    let mut log = String::new();
    io::Read::read_to_string(&mut process.0.stderr.take().expect("piped"), &mut log).expect("read");
    assert!(log.contains("may open 2000 files"), "{log}");
}
