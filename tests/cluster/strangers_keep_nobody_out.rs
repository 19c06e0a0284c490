//! A coordinator under attack by connections: whoever has a certificate and whoever works on its machine get through, and
//! who says nothing is not listened to for long. The attackers have many addresses, so these tests are for Linux, where all
//! of 127.0.0.0/8 is this machine.
#![cfg(target_os = "linux")]

use crate::support;

use std::io;
use std::net::{IpAddr, SocketAddr};
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

/// The preface of HTTP/2 and a frame of settings without any.
const BEGIN: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";

/// A coordinator in this process.
struct Serving {
    address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    task: JoinHandle<()>,
}

impl Serving {
    async fn start(data: &Path, connections: ConnectionLimits) -> Self {
        let options = CoordinatorOptions {
            data: data.to_owned(),
            listen: ([127, 0, 0, 1], 0).into(),
            insecure: false,
            metrics: None,
            dashboard: None,
            reflection: false,
            settings: Settings::default(),
            notify: Notify::default(),
            connections,
        };
        let (stop, stopped) = oneshot::channel::<()>();
        let (tell, told) = oneshot::channel();
        let task = tokio::spawn(async move {
            let until = async move { drop(stopped.await) };
            let served = coordinator::serve(options, until, move |listening| {
                let _ = tell.send(listening.address);
            });
            served.await.expect("it serves");
        });
        Self { address: told.await.expect("it listens"), stop: Some(stop), task }
    }

    fn link(&self, pin: Fingerprint, credentials: Option<Credentials>) -> Channel {
        let security = Security::Tls(pin, credentials.map(Box::new));
        Channel::new(&self.to(), &security, PATIENCE).expect("a channel")
    }

    fn to(&self) -> Address {
        self.address.to_string().parse().expect("an address")
    }

    async fn end(mut self) {
        let _ = self.stop.take().expect("not yet").send(());
        self.task.await.expect("it ends");
    }
}

/// Limits a tenth of what the attackers hold, with so much time that time does not help.
fn small(is_local: fn(IpAddr) -> bool) -> ConnectionLimits {
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

async fn shake_hands(
    to: SocketAddr,
    last: u8,
    pin: Fingerprint,
    credentials: Option<&Credentials>,
) -> io::Result<TlsStream<TcpStream>> {
    let config = client_config(pin, credentials).expect("a configuration");
    let name = ServerName::try_from("localhost").expect("a name");
    TlsConnector::from(Arc::new(config)).connect(name, connect(to, last).await?).await
}

/// Connections that are held: from each of eight addresses sixteen that shook hands and say nothing, and as many that do
/// not even shake hands.
async fn hold(to: SocketAddr, pin: Fingerprint) -> (Vec<TlsStream<TcpStream>>, Vec<TcpStream>) {
    let (mut shaken, mut bare) = (Vec::new(), Vec::new());
    for _ in 0..16 {
        for last in 2..10 {
            shaken.extend(shake_hands(to, last, pin, None).await);
            bare.extend(connect(to, last).await);
        }
    }
    (shaken, bare)
}

/// Goes on connecting, from the same addresses, and holds what it has.
fn go_on(to: SocketAddr) -> JoinSet<()> {
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
async fn held_connections_keep_out_no_certified_worker_no_local_command_and_nobody_with_a_token() {
    // All attackers are of other machines and we are of this one; all are of other machines; all are of this one.
    let who: [fn(IpAddr) -> bool; 3] = [
        |address| address == IpAddr::from([127, 0, 0, 1]),
        |_| false,
        |address| address.is_loopback(),
    ];
    for (case, is_local) in who.into_iter().enumerate() {
        let scratch = Scratch::new("held");
        let data = scratch.path("data");
        let ours = authority(&data);
        let pin = ours.fingerprint();
        let serving = Serving::start(&data, small(is_local)).await;
        let mut before =
            Worker::new("w1", serving.link(pin, Some(credentials(&ours, "w1", Role::Worker))));
        before.sync().await.expect("answered");

        let held = hold(serving.address, pin).await;
        let attackers = go_on(serving.address);

        before
            .sync()
            .await
            .unwrap_or_else(|error| panic!("case {case}: it was here before: {error}"));
        for number in 0..4 {
            let name = format!("new-{number}");
            let link = serving.link(pin, Some(credentials(&ours, &name, Role::Worker)));
            let synced = Worker::new(&name, link).sync().await;
            synced.unwrap_or_else(|error| panic!("case {case}, {name}: {error}"));
        }
        let command = {
            let data = data.clone();
            tokio::task::spawn_blocking(move || {
                support::run(&["status", "--data", data.to_str().expect("plain")])
            })
        };
        let output = command.await.expect("it ran");
        assert!(
            output.status.success(),
            "case {case}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        let one = 1.try_into().expect("one");
        let token =
            ours.create_token(Role::Worker, one, 60_000, coordinator::now_ms()).expect("a token");
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

/// Whether it is open still after several times the time that a stranger has.
async fn is_open(mut stream: impl AsyncReadExt + Unpin) -> bool {
    let read = async { while matches!(stream.read(&mut [0; 1024]).await, Ok(1..)) {} };
    tokio::time::timeout(Duration::from_millis(1500), read).await.is_err()
}

fn short() -> ConnectionLimits {
    let time = Duration::from_millis(300);
    ConnectionLimits { time_limit: time, after_enrolment: time, ..ConnectionLimits::default() }
}

#[tokio::test]
async fn a_connection_without_a_certificate_has_a_moment_for_a_call_that_is_allowed() {
    let scratch = Scratch::new("moment");
    let data = scratch.path("data");
    let ours = authority(&data);
    let pin = ours.fingerprint();
    let serving = Serving::start(&data, short()).await;
    let worker = credentials(&ours, "w", Role::Worker);

    // One that does not shake hands, one that shakes hands and is silent, one that sends the preface and is silent.
    assert!(is_closed(connect(serving.address, 1).await.expect("it listens")).await);
    assert!(
        is_closed(shake_hands(serving.address, 1, pin, None).await.expect("a handshake")).await
    );
    let mut begun = shake_hands(serving.address, 1, pin, None).await.expect("a handshake");
    begun.write_all(BEGIN).await.expect("taken");
    assert!(is_closed(begun).await);
    // Who shows a certificate must send the preface, and may then be silent.
    let shown = shake_hands(serving.address, 1, pin, Some(&worker)).await.expect("a handshake");
    assert!(is_closed(shown).await);
    let mut begun = shake_hands(serving.address, 1, pin, Some(&worker)).await.expect("a handshake");
    begun.write_all(BEGIN).await.expect("taken");
    assert!(is_open(begun).await);
    serving.end().await;
}

/// Makes a call, as gRPC has it. The answer's headers, if the connection lives so long.
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
    bytes.extend(u32::try_from(message.encoded_len()).expect("short").to_be_bytes());
    bytes.extend(message.encode_to_vec());
    body.send_data(bytes.into(), true).ok()?;
    Some(answer.await.ok()?.headers().clone())
}

#[tokio::test]
async fn calls_that_are_refused_win_a_stranger_no_time_and_an_enrolment_wins_little() {
    let scratch = Scratch::new("refused");
    let data = scratch.path("data");
    let ours = authority(&data);
    let pin = ours.fingerprint();
    let serving = Serving::start(&data, short()).await;

    let stream = shake_hands(serving.address, 1, pin, None).await.expect("a handshake");
    let (mut sender, connection) = h2::client::handshake(stream).await.expect("HTTP/2");
    let calls = async {
        let mut refused = 0;
        while let Some(headers) =
            call(&mut sender, "Operations/Status", &v1::StatusRequest::default()).await
        {
            // Without credentials; and, after the first of them, too many.
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
        ours.create_token(Role::Worker, one, 60_000, coordinator::now_ms()).expect("a token");
    let name = "enrolled".parse().expect("a name");
    let key = KeyRequest::new(&name).expect("a key");
    let request = v1::EnrollRequest {
        peer: nqueens::cluster::protocol::peer(),
        token: token.to_string(),
        name: name.to_string(),
        request: key.request().to_vec(),
    };
    let stream = shake_hands(serving.address, 1, pin, None).await.expect("a handshake");
    let (mut sender, connection) = h2::client::handshake(stream).await.expect("HTTP/2");
    let enrolment = async {
        let headers = call(&mut sender, "Enrolment/Enroll", &request).await.expect("an answer");
        // That of a call that went well stands behind its message.
        assert!(headers.get("grpc-status").is_none(), "{headers:?}");
        // The sender is held, so the client does not close the connection.
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
async fn without_tls_a_connection_has_a_moment_for_its_preface() {
    let scratch = Scratch::new("plain");
    let serving = Serving::start(&scratch.path("data"), short()).await;
    assert!(is_closed(connect(serving.address, 1).await.expect("it listens")).await);
    let mut half = connect(serving.address, 1).await.expect("it listens");
    half.write_all(&BEGIN[..20]).await.expect("taken");
    assert!(is_closed(half).await);
    let mut begun = connect(serving.address, 1).await.expect("it listens");
    begun.write_all(BEGIN).await.expect("taken");
    assert!(is_open(begun).await);
    let link = Channel::new(&serving.to(), &Security::Plain, PATIENCE).expect("a channel");
    link.operations().status(v1::StatusRequest::default()).await.expect("told");
    serving.end().await;
}

/// Starts a coordinator whose shell says something first; it is in `data`.
fn under(shell: &str, data: &Path) -> Process {
    let mut command = Command::new("sh");
    command.args(["-c", &format!("{shell}; exec \"$0\" \"$@\""), support::NQUEENS, "coordinator"]);
    command.args(["--listen", "127.0.0.1:0", "--data"]).arg(data).args(["--log-level", "warn"]);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let process = Process(command.spawn().expect("a shell"));
    eventually("coordinator that listens", || AddressFile::read(data).ok());
    process
}

#[test]
fn a_coordinator_may_open_as_many_files_as_the_system_allows_and_says_if_they_are_few() {
    let scratch = Scratch::new("files");
    let mut process = under("ulimit -Sn 256", &scratch.path("many"));
    let limits =
        std::fs::read_to_string(format!("/proc/{}/limits", process.0.id())).expect("it runs");
    let line = limits.lines().find(|line| line.starts_with("Max open files")).expect("there");
    let words: Vec<&str> = line.split_whitespace().collect();
    assert!(words[3] == words[4] && words[3] != "256", "{line}");
    process.kill();

    let data = scratch.path("few");
    authority(&data);
    let mut process = under("ulimit -n 2000", &data);
    // It serves, and there is room for whoever works on this machine.
    let operator = Credentials::load(&operator_folder(&data)).expect("made at its start");
    assert_eq!(operator.role(), Role::Operator);
    support::printed(&["status", "--data", data.to_str().expect("plain")]);
    process.kill();
    let mut said = String::new();
    io::Read::read_to_string(&mut process.0.stderr.take().expect("piped"), &mut said)
        .expect("read");
    assert!(said.contains("may open 2000 files"), "{said}");
}
