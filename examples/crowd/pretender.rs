//! A simulated worker: it syncs and delivers as real workers do, but its results are invented.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use nqueens::cluster::campaign::{Assignment, HeldLease, Source, UnitId, UnitResult};
use nqueens::cluster::protocol::{Channel, messages, peer, v1};
use nqueens::decomposition::{Decomposition, Job, JobHash};
use nqueens::tally::{Parts, Residues};
use tonic::Status;

const KERNEL: &str = "pretended";

/// The state of a simulated worker between two calls.
pub(crate) struct Pretender {
    name: String,
    link: Channel,
    /// The rate that it reports.
    units_per_s: f64,
    boot: u64,
    /// The jobs of its leases.
    jobs: HashMap<JobHash, Arc<Decomposition>>,
    /// Its leases, each with the next unit to invent a result for.
    held: Vec<(Assignment, u64)>,
}

impl Pretender {
    pub(crate) fn new(name: String, link: Channel, units_per_s: f64) -> Self {
        Self {
            name,
            link,
            units_per_s,
            boot: fastrand::u64(..),
            jobs: HashMap::new(),
            held: Vec::new(),
        }
    }

    /// Returns whether the worker holds no lease.
    pub(crate) fn is_idle(&self) -> bool {
        self.held.is_empty()
    }

    /// Makes one sync, which reports this device.
    pub(crate) async fn sync(&mut self, device: Option<v1::Device>) -> Result<(), Status> {
        let held = self.held.iter().map(|(lease, next)| {
            let left = lease.units.end - next;
            messages::held(&HeldLease { lease: lease.clone(), left, unstarted: left })
        });
        let rate =
            |job: &JobHash| v1::Rate { job: job.to_bytes().into(), units_per_s: self.units_per_s };
        let request = v1::SyncRequest {
            peer: peer(),
            worker: self.name.clone(),
            boot: self.boot,
            capacity: 4,
            kernels: vec![KERNEL.into()],
            held: held.collect(),
            rates: self.jobs.keys().map(rate).collect(),
            devices: device.into_iter().collect(),
            ..v1::SyncRequest::default()
        };
        let answer = self.link.work().sync(request).await?.into_inner();
        self.jobs = answer.jobs.iter().map(|job| decomposed(&job.text)).collect();
        let before =
            std::mem::take(&mut self.held).into_iter().map(|(lease, next)| (lease.attempt, next));
        let before: HashMap<u64, u64> = before.collect();
        for lease in messages::desired(answer.desired).expect("leases") {
            let next = before.get(&lease.attempt).copied().unwrap_or(lease.units.start);
            if next < lease.units.end {
                self.held.push((lease, next));
            }
        }
        Ok(())
    }

    /// Delivers invented results for at most `most` of its units. Returns their number.
    pub(crate) async fn complete(&mut self, most: usize) -> Result<u64, Status> {
        let mut results = Vec::new();
        for (lease, next) in &mut self.held {
            let Some(decomposition) = self.jobs.get(&lease.job) else { continue };
            while results.len() < most && *next < lease.units.end {
                results.push(messages::result(&pretended(
                    lease,
                    *next,
                    decomposition,
                    1.0 / self.units_per_s,
                )));
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

/// Returns the decomposition of a job, which all simulated workers share, because planning a large
/// board takes seconds.
fn decomposed(text: &str) -> (JobHash, Arc<Decomposition>) {
    static KNOWN: Mutex<Option<HashMap<JobHash, Arc<Decomposition>>>> = Mutex::new(None);
    let job: Job = text.parse().expect("a job's text");
    let hash = job.hash();
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    let made = known
        .get_or_insert_default()
        .entry(hash)
        .or_insert_with(|| Arc::new(Decomposition::new(job)));
    (hash, Arc::clone(made))
}

/// Returns the result that every simulated worker gives for this unit, or for the sub-ranges that
/// the lease names.
fn pretended(
    lease: &Assignment,
    unit: u64,
    decomposition: &Decomposition,
    elapsed_s: f64,
) -> UnitResult {
    let named =
        |number| lease.sub_ranges.is_empty() || lease.sub_ranges.numbers().any(|n| n == number);
    let ranges = decomposition.sub_ranges(unit).zip(0u32..).filter(|&(_, number)| named(number));
    let (mut parts, mut sub_sums) = (Parts::default(), Vec::new());
    for sub_range in ranges.map(|(range, _)| invented(decomposition, range)) {
        parts.merge(&sub_range).expect("small");
        sub_sums.push(sub_range.total().expect("agrees").thirds());
    }
    // The coordinator fills these in: it knows the caller.
    let (worker, owner) = (String::new(), String::new());
    let source = Source {
        worker,
        owner,
        kernel: KERNEL.to_owned(),
        device: "cpu".into(),
        build: String::new(),
    };
    UnitResult {
        unit: UnitId { job: lease.job, unit },
        attempt: lease.attempt,
        grant: lease.grant.clone(),
        tally: parts.total().expect("small"),
        parts,
        sub_sums,
        source,
        elapsed_s,
        signature: None,
    }
}

/// Returns invented counts for a range of prefixes, within its limits.
fn invented(decomposition: &Decomposition, range: Range<u64>) -> Parts {
    let seed = range.start;
    let limits = decomposition.limits(range);
    let mut parts = Parts::default();
    if let Some(&weight) = limits.weights.first() {
        let most = limits.most_thirds / u128::from(weight);
        let count = most.min(u128::from(1000 + seed % 977));
        let nodes = limits.most_nodes.min(3 * count);
        parts.add(weight, count, Residues::of(count), nodes).expect("small");
    }
    parts
}
