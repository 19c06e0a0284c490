//! A coordinator under load, in a process of its own, with a thousand simulated workers.
//!
//! `cargo bench --bench coordinator [-- WORKERS SECONDS N]`, by default with 1,000 workers, 60 s
//! and the units of n = 25, prints the times of syncs and acknowledgements, the results per second
//! and the coordinator's memory.

#![allow(clippy::print_stdout)]

#[path = "../examples/crowd/pretender.rs"]
mod pretender;

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use nqueens::cluster::coordinator::AddressFile;
use nqueens::cluster::protocol::{Address, Channel, Security, v1};
use pretender::Pretender;

/// The number of results in a call: those of some seconds.
const RESULTS: usize = 10;
/// The pause between the calls of one worker.
const PAUSE: Duration = Duration::from_millis(2500);
/// The rate that a worker reports, in units per second.
const RATE: f64 = 4.0;

struct Coordinator {
    child: Child,
    data: PathBuf,
}

impl Coordinator {
    fn start() -> Self {
        let data = std::env::temp_dir().join(format!("nqueens-load-{}", std::process::id()));
        let child = Command::new(env!("CARGO_BIN_EXE_nqueens"))
            .args(["coordinator", "--listen", "127.0.0.1:0", "--log-level", "warn", "--data"])
            .arg(&data)
            .stdin(Stdio::null())
            .spawn()
            .expect("the coordinator starts");
        Self { child, data }
    }

    fn address(&self) -> Address {
        for _ in 0..100 {
            if let Ok(file) = AddressFile::read(&self.data) {
                return file.address.parse().expect("an address");
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        panic!("the coordinator does not listen");
    }

    /// Returns the coordinator's current and peak memory in MiB, on Linux.
    fn memory(&self) -> Option<(u64, u64)> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).ok()?;
        let kib = |name: &str| -> Option<u64> {
            status
                .lines()
                .find_map(|line| line.strip_prefix(name))?
                .split_whitespace()
                .next()?
                .parse()
                .ok()
        };
        Some((kib("VmRSS:")? / 1024, kib("VmHWM:")? / 1024))
    }
}

impl Drop for Coordinator {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.data);
    }
}

#[derive(Default)]
struct Seen {
    syncs: Vec<Duration>,
    completes: Vec<Duration>,
    failed: u64,
}

struct Worker {
    pretender: Pretender,
    results: Arc<AtomicU64>,
    seen: Seen,
}

impl Worker {
    async fn sync(&mut self) {
        let began = Instant::now();
        match self.pretender.sync(None).await {
            Ok(()) => self.seen.syncs.push(began.elapsed()),
            Err(_) => self.seen.failed += 1,
        }
    }

    async fn complete(&mut self) {
        let began = Instant::now();
        match self.pretender.complete(RESULTS).await {
            // There was nothing to deliver, so no call was made.
            Ok(0) => {}
            Ok(count) => {
                self.seen.completes.push(began.elapsed());
                self.results.fetch_add(count, Ordering::Relaxed);
            }
            Err(_) => self.seen.failed += 1,
        }
    }

    async fn work(mut self, stop: Arc<AtomicBool>) -> Seen {
        // The workers do not all start at the same moment.
        tokio::time::sleep(PAUSE.mul_f64(fastrand::f64())).await;
        while !stop.load(Ordering::Relaxed) {
            // As often as workers sync whose units take a second.
            if self.pretender.is_idle() || fastrand::f64() < 0.25 {
                self.sync().await;
            }
            self.complete().await;
            tokio::time::sleep(PAUSE).await;
        }
        self.seen
    }
}

fn quantiles(name: &str, mut times: Vec<Duration>) {
    times.sort_unstable();
    let at = |share: f64| {
        let index = ((times.len().max(1) - 1) as f64 * share) as usize;
        times.get(index).copied().unwrap_or_default().as_secs_f64() * 1000.0
    };
    println!(
        "{name:<10} {:>8} calls, median {:.1} ms, p99 {:.1} ms, longest {:.1} ms",
        times.len(),
        at(0.5),
        at(0.99),
        at(1.0)
    );
}

#[tokio::main]
async fn main() {
    let numbers: Vec<u64> = std::env::args().skip(1).filter_map(|word| word.parse().ok()).collect();
    let number = |place: usize, usual: u64| numbers.get(place).copied().unwrap_or(usual);
    let (workers, seconds, n) = (number(0, 1000), number(1, 60), number(2, 25));
    let coordinator = Coordinator::start();
    let address = coordinator.address();
    let link =
        || Channel::new(&address, &Security::Plain, Duration::from_secs(30)).expect("a channel");

    let began = Instant::now();
    let request = v1::SubmitRequest {
        piece: "queen".into(),
        n: u32::try_from(n).expect("small"),
        ..v1::SubmitRequest::default()
    };
    let long =
        Channel::new(&address, &Security::Plain, Duration::from_secs(600)).expect("a channel");
    long.operations().submit(request).await.expect("submitted");
    let status = link()
        .operations()
        .status(v1::StatusRequest::default())
        .await
        .expect("a status")
        .into_inner();
    println!("{} units, planned in {:.1} s", status.jobs[0].units, began.elapsed().as_secs_f64());
    println!("memory     {:?} MiB (current, peak)", coordinator.memory());

    let (stop, results) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let began = Instant::now();
    let tasks: Vec<_> = (0..workers)
        .map(|number| {
            let pretender = Pretender::new(format!("w{number}"), link(), RATE);
            let worker = Worker { pretender, results: Arc::clone(&results), seen: Seen::default() };
            tokio::spawn(worker.work(Arc::clone(&stop)))
        })
        .collect();
    tokio::time::sleep(Duration::from_secs(seconds)).await;
    stop.store(true, Ordering::Relaxed);
    let mut all = Seen::default();
    for task in tasks {
        let seen = task.await.expect("no panic");
        all.syncs.extend(seen.syncs);
        all.completes.extend(seen.completes);
        all.failed += seen.failed;
    }
    let elapsed = began.elapsed().as_secs_f64();
    let results = results.load(Ordering::Relaxed);
    println!("results    {results} acknowledged, {:.0} per second", results as f64 / elapsed);
    quantiles("sync", all.syncs);
    quantiles("complete", all.completes);
    println!("failed     {} calls", all.failed);
    println!("memory     {:?} MiB (current, peak)", coordinator.memory());
    let status = link()
        .operations()
        .status(v1::StatusRequest::default())
        .await
        .expect("a status")
        .into_inner();
    println!(
        "done       {} of {} units, {} verified",
        status.jobs[0].done, status.jobs[0].units, status.jobs[0].checked
    );
}
