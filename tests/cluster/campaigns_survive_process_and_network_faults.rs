//! Real coordinators and workers in separate processes, while processes are killed and the network
//! fails: the total is correct, and no unit is lost or counted twice.
//!
//! Random choices follow a seed that is printed; `NQUEENS_SEED=n` replays it, as far as processes
//! can be replayed.

// The seed and the skipped tests are printed for the reader of the log.
#![allow(clippy::print_stdout)]

use crate::support;

use std::net::SocketAddr;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use nqueens::cluster::protocol::{Channel, v1};
use nqueens::engine::find_every_device;
use support::{
    Coordinator, NQUEENS, PATIENCE, Process, Scratch, authority, eventually, printed, run,
};
use support::{solutions, submit};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

const FAST: [&str; 4] = ["--sync", "1s", "--lease", "4s"];

fn random() -> fastrand::Rng {
    let given = std::env::var("NQUEENS_SEED").ok().and_then(|seed| seed.parse().ok());
    let seed = given.unwrap_or_else(|| fastrand::u64(..));
    println!("NQUEENS_SEED={seed}");
    fastrand::Rng::with_seed(seed)
}

/// Starts a worker in its own process.
fn worker(data: &Path, join: &str, arguments: &[&str]) -> Process {
    let mut command = Command::new(NQUEENS);
    command
        .args(["worker", "--join", join, "--log-level", "error", "--data"])
        .arg(data)
        .args(arguments);
    Process(command.stdin(Stdio::null()).stdout(Stdio::null()).spawn().expect("starts"))
}

fn status(coordinator: &Coordinator) -> Option<serde_json::Value> {
    let output = run(&["status", "--data", coordinator.data(), "--json"]);
    let status: serde_json::Value = serde_json::from_slice(&output.stdout).ok()?;
    Some(status["jobs"].as_array()?.last()?.clone())
}

/// Waits for the status, and returns the number of completed units.
fn done(coordinator: &Coordinator) -> u64 {
    eventually("status", || status(coordinator)?["units_done"].as_u64())
}

/// Returns the number of completed units of all jobs.
fn all_done(coordinator: &Coordinator) -> u64 {
    let output = run(&["jobs", "--data", coordinator.data(), "--json"]);
    let jobs = String::from_utf8(output.stdout).expect("text");
    let units =
        |line: &str| serde_json::from_str::<serde_json::Value>(line).ok()?["units_done"].as_u64();
    jobs.lines().filter_map(units).sum()
}

/// Waits until the job is finished and returns its status.
fn finished(coordinator: &Coordinator) -> serde_json::Value {
    eventually("end of the job", || {
        let job = status(coordinator)?;
        (job["state"] == "finished").then_some(job)
    })
}

/// Stops the coordinator and verifies all sums of its ledger.
fn audit(coordinator: &mut Coordinator) {
    coordinator.process.kill();
    let ledger = format!("{}/ledger.db", coordinator.data());
    let report = printed(&["ledger", "check", &ledger]);
    assert!(report.contains("checksums, residues and running totals agree"), "{report}");
}

#[test]
fn three_kinds_of_workers_with_tls_count_two_jobs_at_once_and_the_report_shows_their_shares() {
    let scratch = Scratch::new("three");
    let data = scratch.path("data");
    drop(authority(&data));
    let mut coordinator = Coordinator::start(&data, &FAST);
    let join = coordinator.address.to_string();
    let all = printed(&["submit", "count", "14", "--data", coordinator.data()]);
    assert!(all.contains("submitted"), "{all}");
    let some = [
        "submit",
        "count",
        "12",
        "--place",
        "1,2 4,5",
        "--block",
        "12,12",
        "--priority",
        "1",
        "--data",
    ];
    printed(&[&some[..], &[coordinator.data()]].concat());

    let start = |name: &str, arguments: &[&str]| {
        let token = printed(&["token", "create", "--data", coordinator.data()]);
        let more = ["--name", name, "--token", token.trim()];
        worker(&scratch.path(name), &join, &[arguments, &more].concat())
    };
    let mut workers = Vec::new();
    if cfg!(feature = "gpu") && !find_every_device().is_empty() {
        // The worker that starts slowest gets the first units, and the others confirm them.
        workers.push(("gpu", start("gpu", &["--device", "gpu"])));
        eventually("unit from the GPU", || (all_done(&coordinator) > 0).then_some(()));
    } else {
        let expected = std::env::var_os("NQUEENS_EXPECT_ADAPTER").is_some();
        assert!(!expected, "an adapter is expected, and there is none");
        println!("skipped: no adapter");
    }
    workers.push(("scalar", start("scalar", &["--kernel", "scalar", "--threads", "1"])));
    workers.push(("simd", start("simd", &["--threads", "1"])));
    let wait = |n: &str, more: &[&str]| {
        let report = printed(
            &[&["submit", "count", n], more, &["--wait", "--json", "--data", coordinator.data()]]
                .concat(),
        );
        serde_json::from_str::<serde_json::Value>(&report).expect("an object")
    };
    let all = wait("14", &[]);
    let some = wait("12", &["--place", "1,2 4,5", "--block", "12,12"]);
    assert_eq!((&all["solutions"], &all["published"]), (&"365596".into(), &"agrees".into()));
    let alone =
        printed(&["count", "12", "--place", "1,2 4,5", "--block", "12,12", "--json", "--quiet"]);
    let alone: serde_json::Value = serde_json::from_str(&alone).expect("an object");
    assert_eq!(some["solutions"], alone["solutions"]);
    // Some of the first units of each worker were recounted by another worker or by the
    // coordinator.
    assert!(all["recounts_agreed"].as_u64() >= Some(10), "{all}");
    assert_eq!(all["recounts_differed"], 0, "{all}");
    let report = printed(&["status", "--data", coordinator.data()]);
    println!("{report}");
    assert!(report.contains("365 596, agrees with OEIS A000170"), "{report}");
    if workers[0].0 == "gpu" {
        assert!(report.contains("gpu of token:") && report.contains(" (wgsl on "), "{report}");
    }
    let listed = printed(&["workers", "--data", coordinator.data()]);
    assert!(workers.iter().all(|(name, _)| listed.contains(&format!("{name} "))), "{listed}");
    for (_, mut worker) in workers {
        #[cfg(unix)]
        {
            worker.terminate();
            assert_eq!(worker.wait("end of a worker"), 0);
        }
        worker.kill();
    }
    audit(&mut coordinator);
}

/// Counts n = 17 with two workers while `disturb` is called repeatedly, at random moments spread
/// over the campaign.
fn disturbed(
    name: &str,
    mut disturb: impl FnMut(&mut Coordinator, &mut [Process; 2], u64, &mut fastrand::Rng),
) {
    const TIMES: u64 = 20;
    let mut random = random();
    let scratch = Scratch::new(name);
    let mut coordinator = Coordinator::start(&scratch.path("data"), &FAST);
    printed(&["submit", "count", "17", "--data", coordinator.data()]);
    let units = eventually("status", || status(&coordinator)?["units"].as_u64());
    let mut workers = [0, 1].map(|number| restarted(&scratch, &coordinator, number));
    for time in 0..TIMES {
        eventually("progress", || (done(&coordinator) >= time * units / (TIMES + 2)).then_some(()));
        std::thread::sleep(Duration::from_millis(random.u64(..150)));
        disturb(&mut coordinator, &mut workers, time, &mut random);
        for (number, worker) in workers.iter_mut().enumerate() {
            if worker.0.try_wait().expect("our own child process").is_some() {
                *worker = restarted(&scratch, &coordinator, number);
            }
        }
    }
    let job = finished(&coordinator);
    assert_eq!(job["solutions"], "95815104", "{job}");
    assert_eq!(
        (&job["recounts_differed"], &job["units_poisoned"]),
        (&0.into(), &0.into()),
        "{job}"
    );
    audit(&mut coordinator);
}

fn restarted(scratch: &Scratch, coordinator: &Coordinator, number: usize) -> Process {
    let join = coordinator.address.to_string();
    worker(&scratch.path(&format!("w{number}")), &join, &["--kernel", "scalar", "--threads", "1"])
}

#[test]
fn a_coordinator_that_is_killed_twenty_times_loses_nothing() {
    disturbed("killed-coordinator", |coordinator, _, _, _| coordinator.restart());
}

#[test]
fn workers_that_are_killed_twenty_times_lose_nothing() {
    disturbed("killed-workers", |_, workers, _, random| workers[random.usize(..2)].kill());
}

#[test]
fn coordinator_and_workers_that_are_killed_in_turn_lose_nothing() {
    disturbed("killed-both", |coordinator, workers, time, random| {
        if time % 2 == 0 {
            coordinator.restart();
        } else {
            workers[random.usize(..2)].kill();
        }
        if random.bool() {
            workers[random.usize(..2)].kill();
            coordinator.restart();
        }
    });
}

/// Starts a proxy to the coordinator on which each connection fails in one of several ways.
async fn bad_network(to: SocketAddr, mut random: fastrand::Rng) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("bound");
    tokio::spawn(async move {
        while let Ok((near, _)) = listener.accept().await {
            let mut random = random.fork();
            tokio::spawn(async move {
                match random.u8(..4) {
                    // The connection is cut after some bytes, which may be between the request and
                    // the reply.
                    0 => {
                        let (up, down) = (random.u64(..6000), random.u64(..2000));
                        carry(near, to, up, down, Duration::ZERO).await;
                    }
                    // The connection is slow.
                    1 => {
                        carry(near, to, u64::MAX, u64::MAX, Duration::from_millis(random.u64(..60)))
                            .await
                    }
                    // The connection is accepted and then silent for ever.
                    2 => {
                        tokio::time::sleep(PATIENCE).await;
                        drop(near);
                    }
                    _ => carry(near, to, 20_000, u64::MAX, Duration::ZERO).await,
                }
            });
        }
    });
    address
}

/// Carries bytes both ways until this many went up or down, each piece after a delay.
async fn carry(near: TcpStream, to: SocketAddr, up: u64, down: u64, delay: Duration) {
    let Ok(far) = TcpStream::connect(to).await else { return };
    let ((near_in, near_out), (far_in, far_out)) = (near.into_split(), far.into_split());
    tokio::select! {
        () = pump(near_in, far_out, up, delay) => {}
        () = pump(far_in, near_out, down, delay) => {}
    }
}

async fn pump(
    mut from: tokio::net::tcp::OwnedReadHalf,
    mut to: tokio::net::tcp::OwnedWriteHalf,
    mut left: u64,
    delay: Duration,
) {
    let mut buffer = [0; 4096];
    while left > 0 {
        let Ok(read) = from.read(&mut buffer).await else { return };
        let read = read.min(usize::try_from(left).unwrap_or(usize::MAX));
        if read == 0 {
            return;
        }
        tokio::time::sleep(delay).await;
        if to.write_all(&buffer[..read]).await.is_err() {
            return;
        }
        left -= read as u64;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_network_that_drops_delays_and_stalls_changes_no_count() {
    let mut random = random();
    let scratch = Scratch::new("network");
    let mut coordinator = Coordinator::start(&scratch.path("data"), &FAST);
    submit(&coordinator.channel(), 13, 0).await;
    let to: SocketAddr = coordinator.address.to_string().parse().expect("an address");
    let join = bad_network(to, random.fork()).await.to_string();
    let arguments = ["--kernel", "scalar", "--threads", "1", "--deadline", "1s"];
    let _workers =
        [0, 1].map(|number| worker(&scratch.path(&format!("w{number}")), &join, &arguments));
    let job = tokio::task::spawn_blocking(move || {
        let job = finished(&coordinator);
        audit(&mut coordinator);
        job
    });
    let job = job.await.expect("no panic");
    assert_eq!(job["solutions"], "73712", "{job}");
    assert_eq!(
        (&job["recounts_differed"], &job["units_poisoned"]),
        (&0.into(), &0.into()),
        "{job}"
    );
}

#[cfg(unix)]
#[tokio::test(flavor = "multi_thread")]
async fn a_worker_that_returns_after_its_lease_expired_changes_nothing() {
    use rustix::process::{Pid, Signal, kill_process};
    let scratch = Scratch::new("late");
    let coordinator = Coordinator::start(&scratch.path("data"), &["--sync", "1s", "--lease", "2s"]);
    let channel: Channel = coordinator.channel();
    submit(&channel, 17, 0).await;
    let join = coordinator.address.to_string();
    let arguments = ["--kernel", "scalar", "--threads", "1"];
    let late =
        worker(&scratch.path("late"), &join, &[&arguments[..], &["--name", "late"]].concat());
    let pid = Pid::from_raw(late.0.id().try_into().expect("a pid")).expect("a pid");
    // The worker holds units and is suspended.
    loop {
        let workers = channel
            .operations()
            .workers(v1::WorkersRequest {})
            .await
            .expect("answered")
            .into_inner();
        if workers.workers.iter().any(|worker| worker.held > 0)
            && coordinator.last_job().await.done > 0
        {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    kill_process(pid, Signal::STOP).expect("it runs");
    let _other = worker(&scratch.path("other"), &join, &arguments);
    loop {
        let job = coordinator.last_job().await;
        if job.done == job.units {
            break;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    kill_process(pid, Signal::CONT).expect("it sleeps");
    tokio::task::spawn_blocking(move || {
        assert_eq!(finished(&coordinator)["solutions"], "95815104");
        drop(late);
        let mut coordinator = coordinator;
        audit(&mut coordinator);
    })
    .await
    .expect("no panic");
}

#[tokio::test]
async fn a_count_by_many_workers_equals_the_count_by_one() {
    let scratch = Scratch::new("many");
    let coordinator = Coordinator::start(&scratch.path("data"), &FAST);
    let channel = coordinator.channel();
    for (n, known) in [(1, 1), (2, 0), (6, 4), (11, 2680)] {
        submit(&channel, n, 0).await;
        let join = coordinator.address.to_string();
        let mut process = worker(&scratch.path("w"), &join, &["--exit-when-idle"]);
        let code = tokio::task::spawn_blocking(move || process.wait("end of an idle worker")).await;
        assert_eq!(code.expect("no panic"), 0);
        let job = coordinator.last_job().await;
        assert_eq!((solutions(&job), job.state()), (known, v1::JobState::Finished), "n = {n}");
    }
}

#[cfg(unix)]
#[test]
fn a_second_stop_signal_ends_a_worker_at_once() {
    let scratch = Scratch::new("twice");
    let mut coordinator = Coordinator::start(&scratch.path("data"), &FAST);
    printed(&["submit", "count", "18", "--data", coordinator.data()]);
    let join = coordinator.address.to_string();
    let arguments = ["--kernel", "scalar", "--threads", "1", "--drain-timeout", "1h"];
    let mut worker = worker(&scratch.path("w"), &join, &arguments);
    eventually("a unit that is done", || (done(&coordinator) > 0).then_some(()));
    // It cannot submit what it counts now, so it would wait for an hour.
    coordinator.process.kill();
    let ended = || {
        worker.terminate();
        worker.0.try_wait().expect("our own child process")
    };
    assert_eq!(eventually("end of the worker", ended).code(), Some(130));
}
