//! `nqueens worker`.

use std::path::PathBuf;
use std::time::Duration;

use serde::Serialize;

use super::args::parse_duration;
use super::args::{CpuArgs, DeviceArgs};
use super::logs::Logs;
use super::remote::{block_on, default_data, stop_signal};
use super::{Exit, Failure, note, print_report};
use crate::cluster::auth::{Name, Token};
use crate::cluster::protocol::Address;
use crate::cluster::worker::{self, Rest, Summary, WorkerOptions, WorkingHours};
use crate::report::{counted, duration};

/// The help of `--device`.
const DEVICE_HELP: &str = "\
The devices, separated by commas: auto (the CPU, and GPUs once there is work), cpu, gpu, or ids \
from nqueens devices";

/// Do work for a coordinator: count units and search for proofs.
///
/// The first start needs a token if the coordinator has a certificate authority; create it on the
/// coordinator's machine with nqueens token create. The worker stores its certificate in its data
/// directory and renews it. It also stores results there until the coordinator has acknowledged
/// them.
///
/// On SIGTERM or Ctrl-C, the worker finishes the units that it is counting and delivers the results
/// within --drain-timeout; unfinished units are returned to the coordinator. A second signal ends
/// it at once.
#[derive(Debug, clap::Args)]
#[command(mut_arg("device", |flag| flag.help(DEVICE_HELP)))]
pub(super) struct Args {
    /// The address of the coordinator.
    #[arg(long, value_name = "HOST:PORT")]
    join: Address,
    /// A worker token; needed only on the first start.
    #[arg(long, conflicts_with = "insecure")]
    token: Option<Token>,
    /// The name of the worker (default: from the name of this machine). It is stored at the first
    /// start.
    #[arg(long)]
    name: Option<Name>,
    #[command(flatten)]
    cpu: CpuArgs,
    #[command(flatten)]
    device: DeviceArgs,
    /// The data directory of the worker, with its certificate, name and undelivered results. Each
    /// worker needs its own (default: one per coordinator in the user's data directory).
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Work only between these local times, which may span midnight (22:00-06:00).
    #[arg(long, value_name = "HH:MM-HH:MM")]
    hours: Option<WorkingHours>,
    /// Exit when there is no work (counting or proofs).
    #[arg(long)]
    exit_when_idle: bool,
    /// Stop working while a processor is hotter than this, in °C, until it is 5 °C cooler.
    #[arg(long, value_name = "C", value_parser = degrees, allow_negative_numbers = true)]
    max_temperature: Option<f64>,
    /// The time to finish and deliver units after the first signal to stop: a number and s, m, h or
    /// d.
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = parse_duration)]
    drain_timeout: Duration,
    /// Connect without TLS to a coordinator on another machine.
    #[arg(long)]
    insecure: bool,
    /// The deadline of a call.
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = parse_duration, hide = true)]
    deadline: Duration,
    #[command(flatten)]
    logs: Logs,
    /// Print a summary as one JSON object at the end.
    #[arg(long)]
    json: bool,
}

/// Parses a temperature.
fn degrees(text: &str) -> Result<f64, String> {
    let degrees = text.parse().ok().filter(|degrees| (20.0..=120.0).contains(degrees));
    degrees
        .ok_or_else(|| format!("invalid temperature '{text}'; use degrees Celsius from 20 to 120"))
}

/// The output of `--json`.
#[derive(Debug, Serialize)]
struct Report {
    units: u64,
    recounts: u64,
    /// The queries of proofs that it has answered.
    queries: u64,
    elapsed_s: f64,
    dropped: usize,
    undelivered: usize,
}

pub(super) fn run(args: &Args) -> Result<Exit, Failure> {
    args.logs.start();
    let machine = args.cpu.options(args.device.choice());
    let default_dir = || {
        default_data()
            .with_file_name("worker")
            .join(args.join.to_string().replace([':', '[', ']'], "_"))
    };
    let mut options =
        WorkerOptions::new(args.join.clone(), args.data.clone().unwrap_or_else(default_dir));
    options.token.clone_from(&args.token);
    options.name.clone_from(&args.name);
    options.insecure = args.insecure;
    (options.kernel, options.threads, options.devices) =
        (machine.kernel, machine.threads, machine.devices);
    options.rest = Rest { hours: args.hours, max_temperature_c: args.max_temperature };
    options.exit_when_idle = args.exit_when_idle;
    options.drain_timeout = args.drain_timeout;
    options.deadline = args.deadline;
    let summary = block_on(async move {
        let signal = stop_signal();
        let stop = async {
            signal.await;
            tokio::spawn(async {
                stop_signal().await;
                note("stopped by a second signal; the units being counted are lost");
                std::process::exit(Exit::Interrupted as i32);
            });
        };
        Ok(worker::run(options, stop).await?)
    })?;
    print_summary(args, &summary)
}

fn print_summary(args: &Args, summary: &Summary) -> Result<Exit, Failure> {
    let Summary { units, recounts, proved, elapsed, dropped, undelivered } = *summary;
    if dropped > 0 {
        note(&format!(
            "{} not finished in time and returned to the coordinator",
            were(dropped, "unit")
        ));
    }
    if undelivered > 0 {
        note(&format!(
            "{} not delivered; delivery continues when a worker starts with this data directory",
            were(undelivered, "result")
        ));
    }
    let elapsed_s = elapsed.as_secs_f64();
    let report = Report { units, recounts, queries: proved, elapsed_s, dropped, undelivered };
    print_report(args.json, &report, || {
        let (units, recounts) =
            (counted(units.into(), "unit"), counted(recounts.into(), "recount"));
        let queries = match proved {
            0 => String::new(),
            proved => format!(", {}", counted(proved.into(), "query")),
        };
        format!("{units} and {recounts}{queries} in {}\n", duration(elapsed))
    })?;
    Ok(Exit::Done)
}

/// Formats a number, its noun and the verb: "1 unit was", "2 units were".
fn were(count: usize, noun: &str) -> String {
    format!("{} {}", counted(count as u128, noun), if count == 1 { "was" } else { "were" })
}
