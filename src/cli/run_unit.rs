//! `nqueens run-unit`.

use std::env;
use std::fs;
use std::io;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use serde::Serialize;

use super::args::{CpuArgs, DeviceArgs};
use super::interrupt::Interrupt;
use super::progress::{progress_bar, show};
use super::{Exit, Failure, note, print_report};
use crate::batch::{
    PlanFile, PlanFileError, ResultFiles, ResultFilesError, is_whole, result_file, sign,
    signatures_file, unfinished_file,
};
use crate::checkpoint::CheckpointError;
use crate::cluster::auth::{FileError, SigningKey, SigningKeyError};
use crate::engine::{CountError, CountEvent, CountTask, DeviceError, PartOutcome};
use crate::kernel::KernelError;
use crate::report::{counted, duration};

/// The interval at which the units counted so far are saved in object storage.
const PUT_EVERY: Duration = Duration::from_secs(300);

/// The time after which saving a result is tried again.
const RETRY: Duration = Duration::from_secs(30);

/// The help of `--device`.
const DEVICE_HELP: &str = "\
The devices, separated by commas: cpu, auto (the CPU, and all GPUs if the part takes the CPU \
more than about 3 s), gpu, or ids from nqueens devices";

/// Count one part of a plan, and save its units in a directory that all parts share, or in object
/// storage.
///
/// After an interruption or a failure, run the same command again to resume.
#[derive(Debug, clap::Args)]
#[command(mut_arg("device", |flag| flag.help(DEVICE_HELP).default_value("cpu")))]
pub(super) struct Args {
    /// The plan file.
    #[arg(value_name = "FILE")]
    plan: PathBuf,
    /// The number of the part, from 0 (default: the environment variable NQUEENS_INDEX,
    /// SLURM_ARRAY_TASK_ID or JOB_COMPLETION_INDEX).
    #[arg(long, value_name = "I", allow_negative_numbers = true)]
    index: Option<String>,
    /// The directory of the results, which is created if it does not exist, or a URL of object
    /// storage: s3://BUCKET/PREFIX, gs://BUCKET/PREFIX or az://CONTAINER/PREFIX, with credentials
    /// from the environment.
    #[arg(long, value_name = "DIR|URL")]
    out: PathBuf,
    /// Sign the results with the key in this file, which is created if it does not exist, so that
    /// the count can be published: see nqueens merge --data.
    #[arg(long, value_name = "FILE")]
    key: Option<PathBuf>,
    #[command(flatten)]
    cpu: CpuArgs,
    #[command(flatten)]
    device: DeviceArgs,
    /// Print the result as one JSON object.
    #[arg(long)]
    json: bool,
}

/// The output of `--json`.
#[derive(Debug, Serialize)]
struct Report {
    part: u64,
    parts: u64,
    units: u64,
    /// The units that an earlier run has counted.
    resumed_units: u64,
    kernel: Option<String>,
    devices: Vec<String>,
    result: String,
    /// The file with the signatures, with `--key`.
    signatures: Option<String>,
    elapsed_s: f64,
}

/// The variables in which schedulers pass the number of a task.
const INDEX_OF: [&str; 2] = ["SLURM_ARRAY_TASK_ID", "JOB_COMPLETION_INDEX"];

/// Creates a failure that a retry cannot fix.
fn permanent(message: impl ToString) -> Failure {
    Failure::new(Exit::Permanent, message)
}

/// Creates a failure that a retry, possibly on another machine, may fix.
fn try_again(message: impl ToString) -> Failure {
    Failure::new(Exit::TryAgain, message)
}

fn of_plan(error: PlanFileError) -> Failure {
    match error {
        // A directory, a pipe or a file that is too large will not become a plan.
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

fn of_files(error: ResultFilesError) -> Failure {
    if error.is_permanent() { permanent(error) } else { try_again(error) }
}

fn of_count(error: CountError) -> Failure {
    match error {
        CountError::Stopped { units_done, units } => Failure::new(
            Exit::Checkpointed,
            format!(
                "stopped with {units_done} of {units} units saved; run the same command again to resume"
            ),
        ),
        // Another machine may support it.
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

/// Returns the number of the part.
fn index(given: Option<&str>) -> Result<u64, Failure> {
    let from_environment = || {
        INDEX_OF
            .into_iter()
            .find_map(|name| Some((name, env::var(name).ok().filter(|text| !text.is_empty())?)))
    };
    let (from, text) = match given {
        Some(text) => ("--index", text.to_owned()),
        None => from_environment().ok_or_else(|| {
            permanent(format!("no part given; use --index I, or set {}", INDEX_OF.join(" or ")))
        })?,
    };
    text.parse()
        .map_err(|_| permanent(format!("{from}: invalid part '{text}'; use a whole number from 0")))
}

pub(super) fn run(args: &Args) -> Result<Exit, Failure> {
    let files = ResultFiles::open(&args.out).map_err(of_files)?;
    run_part(args, &files)
        .map_err(|failure| failure.map_message(|message| files.with_urls(message)))
}

fn run_part(args: &Args, files: &ResultFiles) -> Result<Exit, Failure> {
    let interrupt = Interrupt::listen();
    let plan = PlanFile::read(&args.plan).map_err(of_plan)?;
    let index = index(args.index.as_deref())?;
    let part = plan.part(index).map_err(of_plan)?;
    let folder = files.folder();
    let unusable =
        |error: io::Error| try_again(format!("{} cannot be used: {error}", folder.display()));
    fs::create_dir_all(folder).map_err(unusable)?;
    files.get_part(&plan, index).map_err(of_files)?;
    let (result, unfinished) =
        (result_file(folder, &plan, index), unfinished_file(folder, &plan, index));
    if result.exists() {
        if !is_whole(&result, &plan, part).map_err(|error| of_count(error.into()))? {
            let message = format!(
                "{} is the result of another plan; choose another --out, or move the file away",
                result.display()
            );
            return Err(permanent(message));
        }
        let signatures = signatures_file(&result);
        if args.key.is_some() && !signatures.exists() {
            let message = format!(
                "{} is not signed; move it away to count the part again with --key",
                result.display()
            );
            return Err(permanent(message));
        }
        note(&format!("{} already exists", files.shown(&result)));
        return print_part(args, &plan, index, None, files);
    }
    let signer = args.key.as_deref().map(SigningKey::load_or_create).transpose();
    let signer = signer.map_err(|error| match error {
        // A full disk may be emptied, but a directory that does not exist will not appear.
        SigningKeyError::File(FileError { ref source, .. })
            if !matches!(
                source.kind(),
                io::ErrorKind::NotFound
                    | io::ErrorKind::NotADirectory
                    | io::ErrorKind::PermissionDenied
            ) =>
        {
            try_again(error)
        }
        _ => permanent(error),
    })?;
    let options = args.cpu.options(args.device.choice());
    let task =
        CountTask::part(plan.decomposition(), part, &options, &unfinished).map_err(of_count)?;
    // On Windows, a file that is being written cannot be read.
    let puts_early = !cfg!(windows);
    if puts_early {
        // An error in writing is noticed before anything is counted.
        files.put_unfinished(&plan, index).map_err(of_files)?;
    }
    let bar = progress_bar();
    let outcome = thread::scope(|scope| {
        let (counting, is_over) = mpsc::channel::<()>();
        if puts_early {
            let (files, plan, bar) = (files, &plan, &bar);
            scope.spawn(move || {
                while is_over.recv_timeout(PUT_EVERY) == Err(RecvTimeoutError::Timeout) {
                    if let Err(error) = files.put_unfinished(plan, index) {
                        bar.suspend(|| note(&error.to_string()));
                    }
                }
            });
        }
        let outcome = task.run_part(|event| {
            match event {
                CountEvent::Note(text) => bar.suspend(|| note(text)),
                CountEvent::Progress(progress) => {
                    show(&bar, progress);
                }
            }
            if interrupt.is_raised() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        drop(counting);
        outcome
    });
    bar.finish_and_clear();
    let outcome = match outcome {
        Ok(outcome) => outcome,
        Err(error) => {
            let was_stopped = matches!(error, CountError::Stopped { .. });
            match files.put_unfinished(&plan, index) {
                Err(unsaved) if was_stopped => return Err(try_again(unsaved)),
                Err(unsaved) => note(&unsaved.to_string()),
                Ok(()) => {}
            }
            return Err(of_count(error));
        }
    };
    if let Some(signer) = &signer {
        let by = (&outcome.kernel[..], &outcome.devices[..]);
        sign(&plan, index, (&unfinished, &result), by, signer).map_err(try_again)?;
    }
    fs::rename(&unfinished, &result).map_err(unusable)?;
    // Whoever has counted for hours waits until the storage can be reached again.
    while let Err(error) = files.put_result(&plan, index) {
        note(&format!("{error}; trying again in {} s", RETRY.as_secs()));
        let again = Instant::now() + RETRY;
        while Instant::now() < again {
            if interrupt.is_raised() {
                return Err(try_again(error));
            }
            thread::sleep(Duration::from_millis(100));
        }
    }
    if let Err(error) = files.remove_unfinished(&plan, index) {
        note(&error.to_string());
    }
    print_part(args, &plan, index, Some(&outcome), files)
}

fn print_part(
    args: &Args,
    plan: &PlanFile,
    part: u64,
    outcome: Option<&PartOutcome>,
    files: &ResultFiles,
) -> Result<Exit, Failure> {
    let result = result_file(files.folder(), plan, part);
    let parts = plan.parts().get();
    let units =
        (part..plan.decomposition().units()).step_by(usize::try_from(parts).unwrap_or(usize::MAX));
    let units = units.count() as u64;
    let report = Report {
        part,
        parts,
        units,
        resumed_units: outcome.map_or(units, |outcome| outcome.resumed_units),
        kernel: outcome.map(|outcome| outcome.kernel.clone()),
        devices: outcome.map(|outcome| outcome.devices.clone()).unwrap_or_default(),
        result: files.shown(&result),
        signatures: args.key.is_some().then(|| files.shown(&signatures_file(&result))),
        elapsed_s: outcome.map_or(0.0, |outcome| outcome.elapsed.as_secs_f64()),
    };
    print_report(args.json, &report, || {
        let time =
            outcome.map(|outcome| format!(" in {}", duration(outcome.elapsed))).unwrap_or_default();
        let units = counted(units.into(), "unit");
        format!("part {part} of {parts}: {units} counted{time}, {}\n", report.result)
    })?;
    Ok(Exit::Done)
}
