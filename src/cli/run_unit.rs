//! `nqueens run-unit`.

use std::env;
use std::fs;
use std::io;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::count::{self, Machine};
use super::interrupt::Interrupt;
use super::report::{counted, duration};
use super::{Exit, Failure, note, print};
use crate::batch::{PlanFile, PlanFileError, is_whole, result_file, unfinished_file};
use crate::checkpoint::CheckpointError;
use crate::engine::{CountError, CountEvent, CountTask, DeviceChoice, DeviceError, PartOutcome};
use crate::kernel::KernelError;

/// Count one part of a plan, and keep its units in a folder that all parts share. Run again after whatever happened, it goes on.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The plan's file.
    #[arg(value_name = "FILE")]
    plan: PathBuf,
    /// The part, from 0. If not given: NQUEENS_INDEX, SLURM_ARRAY_TASK_ID or JOB_COMPLETION_INDEX of the environment.
    #[arg(long, value_name = "I", allow_negative_numbers = true)]
    index: Option<String>,
    /// The folder of the results; it is made if it is not there.
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    #[command(flatten)]
    machine: Machine,
    /// The devices: cpu, auto, gpu, or ids from nqueens devices; several by commas.
    #[arg(long, value_name = "DEVICES", default_value = "cpu")]
    device: DeviceChoice,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

/// What `--json` prints.
#[derive(Debug, Serialize)]
struct Report {
    part: u64,
    parts: u64,
    units: u64,
    /// Units that were counted before.
    resumed_units: u64,
    kernel: Option<String>,
    devices: Vec<String>,
    result: String,
    elapsed_s: f64,
}

/// Where schedulers say which task it is.
const INDEX_OF: [&str; 2] = ["SLURM_ARRAY_TASK_ID", "JOB_COMPLETION_INDEX"];

/// What cannot be mended by trying again.
fn permanent(message: impl ToString) -> Failure {
    Failure { exit: Exit::Permanent, message: message.to_string() }
}

/// What may go well the next time, or on another machine.
fn try_again(message: impl ToString) -> Failure {
    Failure { exit: Exit::TryAgain, message: message.to_string() }
}

fn of_plan(error: PlanFileError) -> Failure {
    match error {
        // A folder, a pipe or too large a file is no plan the next time, either.
        PlanFileError::Io { ref source, .. }
            if !matches!(
                source.kind(),
                io::ErrorKind::InvalidInput | io::ErrorKind::FileTooLarge
            ) =>
        {
            try_again(error)
        }
        _ => permanent(error),
    }
}

fn of_count(error: CountError) -> Failure {
    match error {
        CountError::Stopped { units_done, units } => Failure {
            exit: Exit::Checkpointed,
            message: format!(
                "stopped: {units_done} of {units} units are kept; the same command goes on"
            ),
        },
        // Another machine may have it.
        CountError::Kernel(KernelError::NotOnThisMachine(_)) => try_again(error),
        CountError::Job(_)
        | CountError::Kernel(_)
        | CountError::Device(
            DeviceError::QueensOnly(_)
            | DeviceError::KernelWithoutCpu
            | DeviceError::AnotherScheme(_)
            | DeviceError::NotBuilt,
        )
        | CountError::Units(_)
        | CountError::Checkpoint(
            CheckpointError::Damaged { .. }
            | CheckpointError::AnotherJob { .. }
            | CheckpointError::Refused { .. },
        ) => permanent(error),
        _ => try_again(error),
    }
}

/// The part that is to be counted.
fn index(given: Option<&str>) -> Result<u64, Failure> {
    let from_environment = || {
        INDEX_OF
            .into_iter()
            .find_map(|name| Some((name, env::var(name).ok().filter(|text| !text.is_empty())?)))
    };
    let (from, text) = match given {
        Some(text) => ("--index", text.to_owned()),
        None => from_environment().ok_or_else(|| {
            permanent(format!("which part? give --index I, or set {}", INDEX_OF.join(" or ")))
        })?,
    };
    text.parse().map_err(|_| {
        permanent(format!("{from}: '{text}' is no part; write a whole number from 0 on"))
    })
}

pub(super) fn run(args: &Args) -> Result<Exit, Failure> {
    let interrupt = Interrupt::listen();
    let plan = PlanFile::read(&args.plan).map_err(of_plan)?;
    let index = index(args.index.as_deref())?;
    let part = plan.part(index).map_err(of_plan)?;
    let unusable =
        |error: io::Error| try_again(format!("{} cannot be used: {error}", args.out.display()));
    fs::create_dir_all(&args.out).map_err(unusable)?;
    let (result, unfinished) =
        (result_file(&args.out, &plan, index), unfinished_file(&args.out, &plan, index));
    if result.exists() {
        if !is_whole(&result, &plan, part).map_err(|error| of_count(error.into()))? {
            let message = format!(
                "{} is the result of another plan; give another --out, or move it away",
                result.display()
            );
            return Err(permanent(message));
        }
        note(&format!("{} is there already", result.display()));
        return tell(args, &plan, index, None, &result);
    }
    let options = args.machine.options(args.device.clone());
    let task =
        CountTask::part(plan.decomposition(), part, &options, &unfinished).map_err(of_count)?;
    let bar = count::progress_bar();
    let outcome = task.run_part(|event| {
        match event {
            CountEvent::Note(text) => bar.suspend(|| note(text)),
            CountEvent::Progress(progress) => {
                count::show(&bar, progress);
            }
        }
        if interrupt.is_raised() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    bar.finish_and_clear();
    let outcome = outcome.map_err(of_count)?;
    fs::rename(&unfinished, &result).map_err(unusable)?;
    tell(args, &plan, index, Some(&outcome), &result)
}

fn tell(
    args: &Args,
    plan: &PlanFile,
    part: u64,
    outcome: Option<&PartOutcome>,
    result: &Path,
) -> Result<Exit, Failure> {
    let parts = plan.parts().get();
    let units =
        (part..plan.decomposition().units()).step_by(usize::try_from(parts).unwrap_or(usize::MAX));
    let units = units.count() as u64;
    let text = if args.json {
        let report = Report {
            part,
            parts,
            units,
            resumed_units: outcome.map_or(units, |outcome| outcome.resumed_units),
            kernel: outcome.map(|outcome| outcome.kernel.clone()),
            devices: outcome.map(|outcome| outcome.devices.clone()).unwrap_or_default(),
            result: result.display().to_string(),
            elapsed_s: outcome.map_or(0.0, |outcome| outcome.elapsed.as_secs_f64()),
        };
        serde_json::to_string(&report).expect("numbers and strings serialise")
    } else {
        let time =
            outcome.map(|outcome| format!(" in {}", duration(outcome.elapsed))).unwrap_or_default();
        format!(
            "part {part} of {parts}: {} counted{time}, {}",
            counted(units.into(), "unit"),
            result.display()
        )
    };
    print(&(text + "\n"))?;
    Ok(Exit::Done)
}
