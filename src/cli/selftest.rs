//! `nqueens selftest`.

use std::ops::ControlFlow;

use super::{Exit, Failure, note, print};
use crate::board::{Piece, Problem};
use crate::engine::{CountError, CountOptions, CountTask, DeviceChoice, DeviceName};
use crate::engine::{find_devices, find_every_device};
use crate::kernel::KernelKind;
use crate::kernel::gpu::self_test;
use crate::oeis::{Sequence, lookup};

/// Ask every kernel and device for counts whose answers are known.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Larger boards too: half a minute on a slow device.
    #[arg(long)]
    long: bool,
    /// What is tested: auto (the CPU and every adapter), cpu, gpu, or ids from nqueens devices; several by commas.
    #[arg(long, value_name = "DEVICES", default_value = "auto")]
    device: DeviceChoice,
}

pub(super) fn run(args: &Args) -> Result<Exit, Failure> {
    let mut failed = Vec::new();
    if args.device.has_cpu() {
        for kernel in KernelKind::ALL.into_iter().filter(|kind| kind.runs_here()) {
            print(&tell(kernel.name(), test_kernel(kernel, args.long)?, &mut failed))?;
        }
    }
    test_devices(args, &mut failed)?;
    if failed.is_empty() {
        return Ok(Exit::Done);
    }
    Err(Failure {
        exit: Exit::CheckFailed,
        message: format!("the self-test of {} failed", failed.join(", ")),
    })
}

/// A line of the report; whoever failed is remembered.
fn tell(name: &str, outcome: Result<(), String>, failed: &mut Vec<String>) -> String {
    match outcome {
        Ok(()) => format!("{name:<24} passed\n"),
        Err(why) => {
            failed.push(name.to_owned());
            format!("{name:<24} FAILED: {why}\n")
        }
    }
}

/// Totals up to n = 12, or 15: the oracle takes some seconds for that.
fn test_kernel(kernel: KernelKind, long: bool) -> Result<Result<(), String>, CountError> {
    let options = CountOptions { kernel: Some(kernel), ..CountOptions::default() };
    for n in 0..=if long { 15 } else { 12 } {
        let problem = Problem::empty(Piece::Queen, n);
        let mut task = CountTask::plan(&problem, &options)?;
        // Another kernel's answer would hide what is wrong with this one.
        task.without_fallback();
        match task.run(|_| ControlFlow::Continue(())) {
            Ok(outcome) if Some(outcome.solutions) == lookup(Sequence::Total, n) => {}
            Ok(outcome) => return Ok(Err(format!("n = {n}: {} solutions", outcome.solutions))),
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
    if args.device == DeviceChoice::These(vec![DeviceName::Cpu]) {
        return Ok(());
    }
    let devices = match &args.device {
        DeviceChoice::Auto => find_every_device(),
        choice => find_devices(choice).map_err(CountError::from)?,
    };
    if devices.is_empty() {
        note("no GPU adapter was found");
    }
    for device in devices {
        let id = device.id().to_owned();
        let outcome = device.open().and_then(|mut kernel| self_test(&mut kernel, args.long));
        print(&tell(&id, outcome.map_err(|fault| fault.to_string()), failed))?;
    }
    Ok(())
}
