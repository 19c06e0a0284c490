//! `nqueens workers`, `nqueens drain`, `nqueens release`.

use std::time::Duration;

use serde::Serialize;

use super::remote::{Remote, block_on};
use super::{Exit, Failure, json_line, print};
use crate::cluster::auth::Name;
use crate::cluster::coordinator::now_ms;
use crate::cluster::protocol::v1;
use crate::report::{counted, predicted};

/// List the workers of a coordinator.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    remote: Remote,
    /// Print one JSON object per line.
    #[arg(long)]
    json: bool,
}

/// The arguments of `drain` and `release`.
#[derive(Debug, clap::Args)]
pub(super) struct WorkerArgs {
    /// The name of the worker, as nqueens workers lists it.
    worker: Name,
    #[command(flatten)]
    remote: Remote,
}

/// The output of `--json` for a worker.
#[derive(Debug, Serialize)]
struct Report {
    worker: String,
    /// The owner, who enrolled the worker.
    owner: String,
    address: String,
    build: String,
    capacity: u32,
    kernels: Vec<String>,
    devices: Vec<Device>,
    /// The time since the last contact.
    silent_s: f64,
    draining: bool,
    units_done: u64,
    units_held: u64,
    #[serde(skip_serializing_if = "String::is_empty")]
    quarantined: String,
}

#[derive(Debug, Serialize)]
struct Device {
    id: String,
    name: String,
    kernel: String,
    capacity: u32,
    #[serde(skip_serializing_if = "String::is_empty")]
    fault: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature_c: Option<f64>,
}

impl Report {
    fn new(worker: v1::WorkerStatus, now_ms: u64) -> Self {
        let devices = worker.devices.into_iter().map(|device| Device {
            id: device.id,
            name: device.name,
            kernel: device.kernel,
            capacity: device.capacity,
            fault: device.fault,
            temperature_c: device.temperature_c,
        });
        Self {
            worker: worker.name,
            owner: worker.owner,
            address: worker.address,
            build: worker.build,
            capacity: worker.capacity,
            kernels: worker.kernels,
            devices: devices.collect(),
            silent_s: now_ms.saturating_sub(worker.seen_ms) as f64 / 1000.0,
            draining: worker.draining,
            units_done: worker.units_done,
            units_held: worker.held,
            quarantined: worker.quarantined,
        }
    }

    fn line(&self) -> String {
        let kernels: Vec<String> = self
            .devices
            .iter()
            .map(|device| {
                let fault = if device.fault.is_empty() {
                    String::new()
                } else {
                    format!(" ({})", device.fault)
                };
                format!("{} on {}{fault}", device.kernel, device.id)
            })
            .collect();
        let silent = Duration::try_from_secs_f64(self.silent_s).unwrap_or(Duration::MAX);
        let state = if !self.quarantined.is_empty() {
            format!("quarantined: {}", self.quarantined)
        } else if self.draining {
            "draining".to_owned()
        } else if self.capacity == 0 {
            "resting".to_owned()
        } else {
            format!("{} leased", counted(self.units_held.into(), "unit"))
        };
        // The owner is shown only if it differs from the worker.
        let is_own = self.owner.is_empty() || self.owner == self.worker;
        let owner = if is_own { String::new() } else { format!("owner {}; ", self.owner) };
        format!(
            "{:<24} {owner}{}; {} done; {state}; last contact {} ago",
            self.worker,
            kernels.join(", "),
            counted(self.units_done.into(), "unit"),
            predicted(silent),
        )
    }
}

pub(super) fn run(args: &Args) -> Result<Exit, Failure> {
    block_on(async {
        let coordinator = args.remote.connect().await?;
        let request = v1::WorkersRequest {};
        let answer = coordinator.call(coordinator.link.operations().workers(request)).await?;
        let now_ms = now_ms();
        let mut text = String::new();
        for worker in answer.workers {
            let report = Report::new(worker, now_ms);
            text += &if args.json { json_line(&report) } else { report.line() + "\n" };
        }
        if text.is_empty() && !args.json {
            text = "no workers yet; start one with nqueens worker --join HOST:PORT\n".to_owned();
        }
        print(&text)?;
        Ok(Exit::Done)
    })
}

/// Runs `nqueens drain`.
pub(super) fn drain(args: &WorkerArgs) -> Result<Exit, Failure> {
    block_on(async {
        let coordinator = args.remote.connect().await?;
        let request = v1::DrainRequest { worker: args.worker.to_string() };
        coordinator.call(coordinator.link.operations().drain(request)).await?;
        print(&format!("{} finishes its leased units and gets no more\n", args.worker))?;
        Ok(Exit::Done)
    })
}

/// Runs `nqueens release`.
pub(super) fn release(args: &WorkerArgs) -> Result<Exit, Failure> {
    block_on(async {
        let coordinator = args.remote.connect().await?;
        let request = v1::ReleaseRequest { worker: args.worker.to_string() };
        coordinator.call(coordinator.link.operations().release(request)).await?;
        print(&format!("{} is released from quarantine; its record is reset\n", args.worker))?;
        Ok(Exit::Done)
    })
}
