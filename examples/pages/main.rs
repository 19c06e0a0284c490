//! Simulated pages for a coordinator on this machine, to measure its load.
//!
//! `cargo run --release --example pages -- DATA PAGES SECONDS HOST` simulates PAGES guests, each of
//! another network, for SECONDS seconds. The coordinator must run with `--guests PAGES --join-url
//! https://HOST`. A page syncs, fetches a unit, keeps it for about five seconds and gives it back.
//! Prints the calls with their latencies, and the memory and processor time of the coordinator
//! whose process is `NQUEENS_PID`.

#[path = "../../tests/support/page.rs"]
mod page;

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use page::{Answer, Client, Page};
use serde_json::json;

/// The time for which a page keeps a unit.
const KEEP: Duration = Duration::from_secs(5);

/// Latencies in ms and codes that are not 200, by call.
type Calls = Mutex<BTreeMap<&'static str, (Vec<f64>, BTreeMap<u16, usize>)>>;

fn timed(calls: &Calls, name: &'static str, call: impl FnOnce() -> Answer) -> Answer {
    let began = Instant::now();
    let answer = call();
    let ms = began.elapsed().as_secs_f64() * 1000.0;
    let mut calls = calls.lock().expect("no panic");
    let (latencies, codes) = calls.entry(name).or_default();
    latencies.push(ms);
    if answer.code != 200 {
        *codes.entry(answer.code).or_default() += 1;
    }
    answer
}

fn visit(client: Client, calls: &Calls, end: Instant) {
    std::thread::sleep(KEEP.mul_f64(fastrand::f64()));
    let mut page = loop {
        match Page::open(client.clone(), None) {
            Ok(page) => break page,
            Err(_) if Instant::now() < end => std::thread::sleep(KEEP),
            Err(_) => return,
        }
    };
    let mut job = String::new();
    while Instant::now() < end {
        let body = page.sync_body(true);
        let answer = timed(calls, "sync", || page.post("/api/sync", &body));
        let leases = answer.json()["leases"].as_array().cloned().unwrap_or_default();
        page.held = leases;
        let Some(unit) = page.units().into_iter().next() else {
            std::thread::sleep(Duration::from_secs(3).mul_f64(0.8 + 0.4 * fastrand::f64()));
            continue;
        };
        let of_lease = page.held[0]["job"].to_string();
        if job != of_lease {
            timed(calls, "tables", || page.post("/api/tables", &unit));
            job = of_lease;
        }
        timed(calls, "unit", || page.post("/api/unit", &unit));
        std::thread::sleep(KEEP.mul_f64(0.5 + fastrand::f64()));
        let mut failed = unit.clone();
        failed["detail"] = json!("only pretended");
        timed(calls, "fail", || page.post("/api/fail", &failed));
        page.held.clear();
    }
}

/// Returns the resident memory in MB and the processor time in s of a process.
fn usage(pid: &str) -> Option<(f64, f64)> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find(|line| line.starts_with("VmRSS:"))?;
    let kb: f64 = line.split_whitespace().nth(1)?.parse().ok()?;
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let fields: Vec<&str> = stat.rsplit(')').next()?.split_whitespace().collect();
    let ticks: f64 = fields.get(11)?.parse::<f64>().ok()? + fields.get(12)?.parse::<f64>().ok()?;
    Some((kb / 1024.0, ticks / 100.0))
}

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [data, pages, seconds, host] = &words[..] else {
        panic!("usage: pages DATA PAGES SECONDS HOST")
    };
    let pages: u32 = pages.parse().expect("a number of pages");
    let end = Instant::now() + Duration::from_secs(seconds.parse().expect("a number of seconds"));
    let pid = std::env::var("NQUEENS_PID").unwrap_or_default();
    let before = usage(&pid);
    let began = Instant::now();
    let calls = Calls::default();
    std::thread::scope(|scope| {
        for number in 0..pages {
            let address = format!("10.{}.{}.{}", number >> 16, number >> 8 & 255, number & 255);
            let client = Client::proxied(Path::new(data), host, &address);
            scope.spawn(|| visit(client, &calls, end));
        }
    });
    let elapsed_s = began.elapsed().as_secs_f64();
    let mut out = std::io::stdout();
    for (name, (latencies, codes)) in &mut *calls.lock().expect("no panic") {
        latencies.sort_by(f64::total_cmp);
        let at = |share: f64| latencies[((latencies.len() - 1) as f64 * share) as usize];
        let _ = writeln!(
            out,
            "{name}: {} calls, {:.1} per s, median {:.1} ms, p99 {:.1} ms, longest {:.1} ms, not 200: {codes:?}",
            latencies.len(),
            latencies.len() as f64 / elapsed_s,
            at(0.5),
            at(0.99),
            at(1.0)
        );
    }
    if let (Some((_, cpu_before)), Some((mb, cpu))) = (before, usage(&pid)) {
        let share = 100.0 * (cpu - cpu_before) / elapsed_s;
        let _ = writeln!(out, "coordinator: {mb:.0} MB, {share:.1} % of a core");
    }
}
