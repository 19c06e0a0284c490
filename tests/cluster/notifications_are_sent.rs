//! A command and a web address hear of what a coordinator has done, and of what is wrong.

use crate::support;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::process::{Command, Stdio};
use std::sync::mpsc;

use nqueens::cluster::protocol::{messages, peer, v1};
use support::program::assert_refused;
use support::{Coordinator, NQUEENS, Process, Scratch, Worker, eventually, printed, submit};

/// A web server that refuses the first request and takes the others; what is posted to it.
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
fn a_finished_job_and_a_quarantine_are_told_to_a_command_and_posted_until_they_are_taken() {
    let scratch = Scratch::new("news");
    let heard = scratch.file("heard");
    let (url, posted) = web();
    let command = format!("(echo \"$NQUEENS_NEWS_KIND: $NQUEENS_NEWS_TEXT\"; cat) >> '{heard}'");
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
    let first = posted.recv_timeout(support::PATIENCE).expect("news");
    assert_eq!(first["kind"], "finished");
    let job = first["job"].as_str().expect("a name").to_owned();

    // A worker that was lent units hands in a sum that disagrees with its residues.
    worker.kill();
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(async {
        let link = coordinator.link();
        submit(&link, 9, 0).await;
        let mut liar = Worker::new("liar", link.clone());
        assert!(liar.sync().await.expect("answered") > 0, "nothing was leased to it");
        let lease = liar.held[0].clone();
        let mut result = messages::result(&liar.count(&lease, lease.units.start));
        result.tally.as_mut().expect("a sum").residues = vec![1, 2];
        let request =
            v1::CompleteRequest { peer: peer(), worker: liar.name, results: vec![result] };
        link.work().complete(request).await.expect("a verdict");
    });
    let second = posted.recv_timeout(support::PATIENCE).expect("news");
    assert_eq!((&second["kind"], &second["worker"]), (&"quarantined".into(), &"liar".into()));
    let heard = eventually("news in the file", || {
        std::fs::read_to_string(&heard).ok().filter(|text| text.contains("quarantined: "))
    });
    assert!(
        heard.contains(&format!("finished: job {job} is finished")) && heard.contains("\"kind\":"),
        "{heard}"
    );
}

#[test]
fn an_address_that_is_none_is_refused() {
    assert_refused(&["coordinator", "--notify-url", "queens"], 2, &["'queens' is no address"]);
}
