//! A crowd of workers that only pretend to count, for a coordinator without an authority on this machine: to see what screens
//! make of many workers, and of one that says evil things of itself.
//!
//! `cargo run --release --example crowd -- DATA WORKERS UNITS_PER_S [DEVICE]`: WORKERS of them that hand in UNITS_PER_S units a
//! second each, until the process is killed; the device of each is named DEVICE. What they "count" is nonsense.

use std::path::Path;
use std::time::Duration;

use nqueens::campaign::{Assignment, Completion, Held, Source, UnitId};
use nqueens::coordinator::AddressFile;
use nqueens::tally::{Parts, Residues};
use nqueens::wire::{Address, Link, Security, messages, peer, v1};

/// Between the calls of one worker.
const PAUSE: Duration = Duration::from_secs(2);

/// A result that anybody would get for this unit.
fn pretended(unit: UnitId, attempt: u64, worker: &str, elapsed_s: f64) -> Completion {
    let count = 1000 + unit.unit % 977;
    let mut parts = Parts::default();
    for weight in [24u32, 12] {
        parts.add(weight, count, Residues::of(count.into()), 3 * count).expect("small");
    }
    let source = Source {
        worker: worker.to_owned(),
        kernel: "pretended".into(),
        device: "cpu".into(),
        build: String::new(),
    };
    Completion { unit, attempt, tally: parts.total().expect("small"), parts, source, elapsed_s }
}

struct Worker {
    name: String,
    device: String,
    units_per_s: f64,
    temperature_c: f64,
    link: Link,
    boot: u64,
    /// The jobs that it heard of.
    jobs: Vec<Vec<u8>>,
    /// Leases in hand, with the next unit to pretend.
    held: Vec<(Assignment, u64)>,
}

impl Worker {
    async fn sync(&mut self) {
        let held = self.held.iter().map(|(a, next)| {
            let Assignment { attempt, job, units, mirrored, not_kernel } = a.clone();
            let left = units.end - next;
            messages::held(&Held { attempt, job, units, left, mirrored, not_kernel })
        });
        let device = v1::Device {
            id: "cpu".into(),
            name: self.device.clone(),
            kernel: "pretended".into(),
            capacity: 4,
            fault: String::new(),
            temperature_c: Some(self.temperature_c + 6.0 * fastrand::f64()),
        };
        let request = v1::SyncRequest {
            peer: peer(),
            worker: self.name.clone(),
            boot: self.boot,
            capacity: 4,
            kernels: vec!["pretended".into()],
            held: held.collect(),
            rates: self
                .jobs
                .iter()
                .map(|job| v1::Rate { job: job.clone(), units_per_s: self.units_per_s })
                .collect(),
            devices: vec![device],
            ..v1::SyncRequest::default()
        };
        let Ok(answer) = self.link.work().sync(request).await else { return };
        let answer = answer.into_inner();
        self.jobs = answer.jobs.iter().map(|job| job.job.clone()).collect();
        let desired = messages::desired(answer.desired).expect("leases");
        self.held.retain(|(held, _)| desired.iter().any(|d| d.attempt == held.attempt));
        for assignment in desired {
            if self.held.iter().all(|(held, _)| held.attempt != assignment.attempt) {
                let first = assignment.units.start;
                self.held.push((assignment, first));
            }
        }
    }

    async fn complete(&mut self) {
        let most = (self.units_per_s * PAUSE.as_secs_f64() * (0.5 + fastrand::f64())).round() as usize;
        let mut results = Vec::new();
        for (lease, next) in &mut self.held {
            while results.len() < most && *next < lease.units.end {
                let unit = UnitId { job: lease.job, unit: *next };
                let elapsed_s = 1.0 / self.units_per_s;
                results.push(messages::result(&pretended(unit, lease.attempt, &self.name, elapsed_s)));
                *next += 1;
            }
        }
        if results.is_empty() {
            return;
        }
        let request = v1::CompleteRequest { peer: peer(), worker: self.name.clone(), results };
        if self.link.work().complete(request).await.is_ok() {
            self.held.retain(|(lease, next)| *next < lease.units.end);
        }
    }

    async fn work(mut self) {
        // They do not all begin in the same moment.
        tokio::time::sleep(PAUSE.mul_f64(fastrand::f64())).await;
        let mut turn = fastrand::u32(..5);
        loop {
            if self.held.is_empty() || turn % 5 == 0 {
                self.sync().await;
            }
            self.complete().await;
            tokio::time::sleep(PAUSE).await;
            turn += 1;
        }
    }
}

#[tokio::main]
async fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [data, workers, units_per_s, device @ ..] = &words[..] else {
        panic!("say DATA WORKERS UNITS_PER_S [DEVICE]")
    };
    let (workers, units_per_s): (u64, f64) =
        (workers.parse().expect("a number of workers"), units_per_s.parse().expect("units a second"));
    let address: Address =
        AddressFile::read(Path::new(data)).expect("it runs").address.parse().expect("an address");
    let tasks: Vec<_> = (1..=workers)
        .map(|number| {
            let worker = Worker {
                name: format!("node-{number:03}"),
                device: device.first().cloned().unwrap_or_else(|| "a processor that only pretends".into()),
                units_per_s: units_per_s * (0.6 + 0.8 * fastrand::f64()),
                temperature_c: 48.0 + 20.0 * fastrand::f64(),
                link: Link::new(&address, &Security::Plain, Duration::from_secs(30)).expect("a link"),
                boot: fastrand::u64(..),
                jobs: Vec::new(),
                held: Vec::new(),
            };
            tokio::spawn(worker.work())
        })
        .collect();
    for task in tasks {
        task.await.expect("no panic");
    }
}
