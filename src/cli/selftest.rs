//! `nqueens selftest`.

use std::ops::ControlFlow;

use super::args::DeviceArgs;
use super::{Exit, Failure, note, print};
use crate::board::{Piece, Problem};
use crate::engine::{CountError, CountOptions, CountTask, DeviceChoice, DeviceName};
use crate::engine::{find_devices, find_every_device};
use crate::kernel::KernelKind;
use crate::kernel::gpu::self_test;
use crate::oeis::{Sequence, lookup};
use crate::report::counted;

/// The help of `--device`.
const DEVICE_HELP: &str = "\
The devices to test, separated by commas: auto (the CPU and every adapter), cpu, gpu, or ids \
from nqueens devices";

/// Test every kernel and device with counts whose results are known.
#[derive(Debug, clap::Args)]
#[command(mut_arg("device", |flag| flag.help(DEVICE_HELP)))]
pub(super) struct Args {
    /// Test larger boards, too, which takes half a minute on a slow device.
    #[arg(long)]
    long: bool,
    #[command(flatten)]
    device: DeviceArgs,
}

pub(super) fn run(args: &Args) -> Result<Exit, Failure> {
    let mut failed = Vec::new();
    if args.device.choice().has_cpu() {
        for kernel in KernelKind::ALL.into_iter().filter(|kind| kind.runs_here()) {
            print(&report_line(kernel.name(), test_kernel(kernel, args.long)?, &mut failed))?;
        }
    }
    test_devices(args, &mut failed)?;
    if failed.is_empty() {
        return Ok(Exit::Done);
    }
    Err(Failure::new(Exit::CheckFailed, format!("the self-test failed for {}", failed.join(", "))))
}

/// Formats a line of the report, and records a failure in `failed`.
fn report_line(name: &str, outcome: Result<(), String>, failed: &mut Vec<String>) -> String {
    match outcome {
        Ok(()) => format!("{name:<24} passed\n"),
        Err(why) => {
            failed.push(name.to_owned());
            format!("{name:<24} FAILED: {why}\n")
        }
    }
}

/// Compares the totals up to n = 12, or 15 with `long`, which takes the reference kernel seconds.
fn test_kernel(kernel: KernelKind, long: bool) -> Result<Result<(), String>, CountError> {
    let options = CountOptions { kernel: Some(kernel), ..CountOptions::default() };
    for n in 0..=if long { 15 } else { 12 } {
        let problem = Problem::empty(Piece::Queen, n);
        let mut task = CountTask::plan(&problem, &options)?;
        // The fallback to another kernel would hide a fault of this one.
        task.without_fallback();
        match task.run(|_| ControlFlow::Continue(())) {
            Ok(outcome) if Some(outcome.solutions) == lookup(Sequence::Total, n) => {}
            Ok(outcome) => {
                return Ok(Err(format!(
                    "n = {n}: counted {}",
                    counted(outcome.solutions, "solution")
                )));
            }
            Err(
                error @ (CountError::Unit { .. } | CountError::Total(_) | CountError::Units(_)),
            ) => {
                return Ok(Err(error.to_string()));
            }
            Err(error) => return Err(error),
        }
    }
    Ok(Ok(()))
}

fn test_devices(args: &Args, failed: &mut Vec<String>) -> Result<(), Failure> {
    if args.device.choice() == DeviceChoice::These(vec![DeviceName::Cpu]) {
        return Ok(());
    }
    let devices = match &args.device.choice() {
        DeviceChoice::Auto => find_every_device(),
        choice => find_devices(choice).map_err(CountError::from)?,
    };
    if devices.is_empty() {
        note("no GPU adapter found");
    }
    for device in devices {
        let id = device.id().to_owned();
        let outcome = device.open().and_then(|mut kernel| self_test(&mut kernel, args.long));
        print(&report_line(&id, outcome.map_err(|fault| fault.to_string()), failed))?;
    }
    Ok(())
}
