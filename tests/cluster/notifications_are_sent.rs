//! A command and a URL are notified of what a coordinator has done, and of problems.

use crate::support;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::process::{Command, Stdio};
use std::sync::mpsc;

use nqueens::cluster::protocol::{messages, peer, v1};
use support::program::assert_refused;
use support::{Coordinator, NQUEENS, Process, Scratch, Worker, eventually, printed, submit};

/// Starts a web server that refuses the first request and accepts the others. Returns its URL and
/// the accepted bodies.
fn web() -> (String, mpsc::Receiver<serde_json::Value>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}/hook", listener.local_addr().expect("an address"));
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        for (number, stream) in listener.incoming().enumerate() {
            let mut stream = BufReader::new(stream.expect("a connection"));
            let mut length = 0;
            loop {
                let mut line = String::new();
                stream.read_line(&mut line).expect("a line");
                let line = line.trim().to_ascii_lowercase();
                if let Some(value) = line.strip_prefix("content-length:") {
                    length = value.trim().parse().expect("a number");
                }
                if line.is_empty() {
                    break;
                }
            }
            let mut body = vec![0; length];
            stream.read_exact(&mut body).expect("the body");
            let status = if number == 0 { "503 Service Unavailable" } else { "200 OK" };
            let answer =
                format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
            stream.get_mut().write_all(answer.as_bytes()).expect("written");
            if number > 0 && sender.send(serde_json::from_slice(&body).expect("JSON")).is_err() {
                return;
            }
        }
    });
    (url, receiver)
}

#[test]
fn a_finished_job_and_a_quarantine_are_sent_to_a_command_and_posted_until_accepted() {
    let scratch = Scratch::new("news");
    let log = scratch.file("log");
    let (url, posted) = web();
    let command = format!("(echo \"$NQUEENS_NEWS_KIND: $NQUEENS_NEWS_TEXT\"; cat) >> '{log}'");
    let arguments = ["--sync", "1s", "--notify-command", &command, "--notify-url", &url];
    let coordinator = Coordinator::start(&scratch.path("data"), &arguments);

    printed(&["submit", "count", "8", "--data", coordinator.data()]);
    let mut worker = Command::new(NQUEENS);
    worker.args([
        "worker",
        "--join",
        &coordinator.address.to_string(),
        "--log-level",
        "error",
        "--data",
    ]);
    let worker =
        worker.arg(scratch.path("worker")).stdin(Stdio::null()).stdout(Stdio::null()).spawn();
    let mut worker = Process(worker.expect("starts"));
    let first = posted.recv_timeout(support::PATIENCE).expect("a notification");
    assert_eq!(first["kind"], "finished");
    let job = first["job"].as_str().expect("a name").to_owned();

    // A worker submits a sum that disagrees with its residues.
    worker.kill();
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(async {
        let channel = coordinator.channel();
        submit(&channel, 9, 0).await;
        let mut liar = Worker::new("liar", channel.clone());
        assert!(liar.sync().await.expect("answered") > 0, "nothing was leased to it");
        let lease = liar.held[0].clone();
        let mut result = messages::result(&liar.count(&lease, lease.units.start));
        result.tally.as_mut().expect("a sum").residues = vec![1, 2];
        let request =
            v1::CompleteRequest { peer: peer(), worker: liar.name, results: vec![result] };
        channel.work().complete(request).await.expect("a verdict");
    });
    let second = posted.recv_timeout(support::PATIENCE).expect("a notification");
    assert_eq!((&second["kind"], &second["worker"]), (&"quarantined".into(), &"liar".into()));
    let log = eventually("both notifications", || {
        std::fs::read_to_string(&log).ok().filter(|text| text.contains("quarantined: "))
    });
    assert!(
        log.contains(&format!("finished: job {job} is finished")) && log.contains("\"kind\":"),
        "{log}"
    );
}

#[test]
fn an_invalid_address_is_refused() {
    assert_refused(&["coordinator", "--notify-url", "queens"], 2, &["invalid URL 'queens'"]);
}
