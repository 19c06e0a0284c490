//! `nqueens worker`.

use std::path::PathBuf;
use std::time::Duration;

use serde::Serialize;

use super::count::Machine;
use super::logs::Logs;
use super::remote::{block_on, stop_signal, usual_data};
use super::report::{counted, duration};
use super::token::time;
use super::{Exit, Failure, note, print};
use crate::cluster::auth::{Name, Token};
use crate::cluster::protocol::Address;
use crate::cluster::worker::{self, Rest, Summary, WorkerOptions, WorkingHours};
use crate::engine::DeviceChoice;

/// Count units for a coordinator.
///
/// The first time, on another machine than the coordinator's, it needs a token (nqueens token create, over there,
/// prints one); the certificate that it buys is kept in the worker's folder and renewed. Results are kept there until
/// the coordinator has them. On SIGTERM or Ctrl-C it finishes what it is at, hands it in, gives the rest back and ends;
/// the second time it ends at once.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The coordinator's address.
    #[arg(long, value_name = "HOST:PORT")]
    join: Address,
    /// A token, for the first start.
    #[arg(long, conflicts_with = "insecure")]
    token: Option<Token>,
    /// By which the coordinator is to know this worker; after this machine if not given. It is kept.
    #[arg(long)]
    name: Option<Name>,
    #[command(flatten)]
    machine: Machine,
    /// The devices: auto (the CPU, and GPUs once there is work), cpu, gpu, or ids from nqueens devices; several by
    /// commas.
    #[arg(long, value_name = "DEVICES", default_value = "auto")]
    device: DeviceChoice,
    /// The worker's folder: its certificate, its name, results on their way. Two workers need two.
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// When to count, in local time; over midnight if the end comes first. It rests at other times.
    #[arg(long, value_name = "HH:MM-HH:MM")]
    hours: Option<WorkingHours>,
    /// End when there is nothing to count.
    #[arg(long)]
    exit_when_idle: bool,
    /// Rest while a processor is hotter, in degrees Celsius, until it is 5 degrees cooler.
    #[arg(long, value_name = "C", value_parser = degrees, allow_negative_numbers = true)]
    max_temperature: Option<f64>,
    /// How long it may take to finish and hand in what it has, once it is told to stop.
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = time)]
    drain_timeout: Duration,
    /// Without TLS, though the coordinator is on another machine.
    #[arg(long)]
    insecure: bool,
    /// How long a call may take.
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = time, hide = true)]
    deadline: Duration,
    #[command(flatten)]
    logs: Logs,
    /// Print one JSON object at the end.
    #[arg(long)]
    json: bool,
}

/// Reads a temperature.
fn degrees(text: &str) -> Result<f64, String> {
    let degrees = text.parse().ok().filter(|degrees| (20.0..=120.0).contains(degrees));
    degrees.ok_or_else(|| {
        format!("'{text}' is no temperature to rest at; write degrees Celsius from 20 to 120")
    })
}

/// What `--json` prints.
#[derive(Debug, Serialize)]
struct Report {
    units: u64,
    recounts: u64,
    /// Queries of proofs that it answered.
    queries: u64,
    elapsed_s: f64,
    dropped: usize,
    undelivered: usize,
}

pub(super) fn run(args: &Args) -> Result<Exit, Failure> {
    args.logs.start();
    let machine = args.machine.options(args.device.clone());
    let usual = || {
        usual_data()
            .with_file_name("worker")
            .join(args.join.to_string().replace([':', '[', ']'], "_"))
    };
    let mut options =
        WorkerOptions::new(args.join.clone(), args.data.clone().unwrap_or_else(usual));
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
        let told = stop_signal();
        let stop = async {
            told.await;
            tokio::spawn(async {
                stop_signal().await;
                note("told to stop twice: what was being counted is lost");
                std::process::exit(Exit::Interrupted as i32);
            });
        };
        Ok(worker::run(options, stop).await?)
    })?;
    tell(args, &summary)
}

fn tell(args: &Args, summary: &Summary) -> Result<Exit, Failure> {
    let Summary { units, recounts, proved, elapsed, dropped, undelivered } = *summary;
    if dropped > 0 {
        note(&format!("{} not finished in time and go to others", were(dropped, "unit")));
    }
    if undelivered > 0 {
        note(&format!(
            "{} not handed in; the next worker in this folder does it",
            were(undelivered, "result")
        ));
    }
    if args.json {
        let elapsed_s = elapsed.as_secs_f64();
        let report = Report { units, recounts, queries: proved, elapsed_s, dropped, undelivered };
        print(&(serde_json::to_string(&report).expect("numbers serialise") + "\n"))?;
    } else {
        let (units, recounts) =
            (counted(units.into(), "unit"), counted(recounts.into(), "recount"));
        let queries = match proved {
            0 => String::new(),
            proved => format!(", {}", counted(proved.into(), "query")),
        };
        print(&format!("{units} and {recounts}{queries} in {}\n", duration(elapsed)))?;
    }
    Ok(Exit::Done)
}

/// "1 unit was", "2 units were".
fn were(count: usize, noun: &str) -> String {
    format!("{} {}", counted(count as u128, noun), if count == 1 { "was" } else { "were" })
}
