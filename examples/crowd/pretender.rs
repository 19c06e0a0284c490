//! A worker that only pretends to count: it syncs and hands in as real ones do, and what it hands in is nonsense.

use nqueens::campaign::{Assignment, Completion, Held, Source, UnitId};
use nqueens::tally::{Parts, Residues};
use nqueens::wire::{Link, messages, peer, v1};
use tonic::Status;

const KERNEL: &str = "pretended";

/// Its state between two calls.
pub(crate) struct Pretender {
    name: String,
    link: Link,
    /// Units a second that it says it measured.
    units_per_s: f64,
    boot: u64,
    /// The jobs that it heard of.
    jobs: Vec<Vec<u8>>,
    /// Leases in hand, with the next unit to pretend.
    held: Vec<(Assignment, u64)>,
}

impl Pretender {
    pub(crate) fn new(name: String, link: Link, units_per_s: f64) -> Self {
        Self { name, link, units_per_s, boot: fastrand::u64(..), jobs: Vec::new(), held: Vec::new() }
    }

    /// Whether it has nothing in hand.
    pub(crate) fn is_idle(&self) -> bool {
        self.held.is_empty()
    }

    /// One sync, in which it says that it has this device.
    pub(crate) async fn sync(&mut self, device: Option<v1::Device>) -> Result<(), Status> {
        let held = self.held.iter().map(|(a, next)| {
            let Assignment { attempt, job, units, mirrored, not_kernel } = a.clone();
            let left = units.end - next;
            messages::held(&Held { attempt, job, units, left, mirrored, not_kernel })
        });
        let rate = |job: &Vec<u8>| v1::Rate { job: job.clone(), units_per_s: self.units_per_s };
        let request = v1::SyncRequest {
            peer: peer(),
            worker: self.name.clone(),
            boot: self.boot,
            capacity: 4,
            kernels: vec![KERNEL.into()],
            held: held.collect(),
            rates: self.jobs.iter().map(rate).collect(),
            devices: device.into_iter().collect(),
            ..v1::SyncRequest::default()
        };
        let answer = self.link.work().sync(request).await?.into_inner();
        self.jobs = answer.jobs.iter().map(|job| job.job.clone()).collect();
        let desired = messages::desired(answer.desired).expect("leases");
        self.held.retain(|(held, _)| desired.iter().any(|d| d.attempt == held.attempt));
        for assignment in desired {
            if self.held.iter().all(|(held, _)| held.attempt != assignment.attempt) {
                let first = assignment.units.start;
                self.held.push((assignment, first));
            }
        }
        Ok(())
    }

    /// Hands in results of what it has in hand, so many at most; how many.
    pub(crate) async fn complete(&mut self, most: usize) -> Result<u64, Status> {
        let mut results = Vec::new();
        for (lease, next) in &mut self.held {
            while results.len() < most && *next < lease.units.end {
                let unit = UnitId { job: lease.job, unit: *next };
                let elapsed_s = 1.0 / self.units_per_s;
                results.push(messages::result(&pretended(unit, lease.attempt, &self.name, elapsed_s)));
                *next += 1;
            }
        }
        self.held.retain(|(lease, next)| *next < lease.units.end);
        let count = results.len() as u64;
        if count > 0 {
            let request = v1::CompleteRequest { peer: peer(), worker: self.name.clone(), results };
            self.link.work().complete(request).await?;
        }
        Ok(count)
    }
}

/// A result that every pretender would get for this unit.
fn pretended(unit: UnitId, attempt: u64, worker: &str, elapsed_s: f64) -> Completion {
    let count = 1000 + unit.unit % 977;
    let mut parts = Parts::default();
    for weight in [24u32, 12] {
        parts.add(weight, count, Residues::of(count.into()), 3 * count).expect("small");
    }
    let (worker, kernel) = (worker.to_owned(), KERNEL.to_owned());
    let source = Source { worker, kernel, device: "cpu".into(), build: String::new() };
    Completion { unit, attempt, tally: parts.total().expect("small"), parts, source, elapsed_s }
}
