//! `nqueens cluster`.

use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::path::PathBuf;

use super::checks::CheckArgs;
use super::count;
use super::dashboard;
use super::job_report::job_name;
use super::logs::Logs;
use super::problem::Board;
use super::remote::{Coordinator, block_on, stop_signal};
use super::submit::{print_final, request, wait_for};
use super::{Exit, Failure, note};
use crate::board::Problem;
use crate::cluster::campaign::Settings;
use crate::cluster::coordinator::{self, BoundAddress, ConnectionLimits, Notify};
use crate::cluster::protocol::{Address, Security};
use crate::cluster::worker::{self, Options};
use crate::engine::{DeviceChoice, DeviceName};

/// Try a campaign on this machine: a coordinator and some workers, in one command.
///
/// It is nqueens coordinator, nqueens worker and nqueens submit count N --wait in one process, on a free port of this
/// machine, and leaves nothing behind unless --data is given.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    board: Board,
    /// Workers, which share the cores.
    #[arg(long, value_name = "K", default_value = "2", value_parser = count::threads, allow_negative_numbers = true)]
    workers: NonZeroUsize,
    /// The first worker's devices: auto, cpu, gpu, or ids from nqueens devices. The others count on the CPU.
    #[arg(long, value_name = "DEVICES", default_value = "auto")]
    device: DeviceChoice,
    /// A folder to keep the ledger in; the same command goes on from there.
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Where to show it to browsers on this machine.
    #[arg(long, value_name = "IP:PORT")]
    dashboard: Option<SocketAddr>,
    #[command(flatten)]
    checks: CheckArgs,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    logs: Logs,
}

/// A folder that goes in the end if it was made for this.
struct Folder {
    path: PathBuf,
    is_ours: bool,
}

impl Folder {
    fn new(data: Option<&PathBuf>) -> Self {
        let unique = || format!("nqueens-cluster-{}-{:08x}", std::process::id(), fastrand::u32(..));
        match data {
            Some(path) => Self { path: path.clone(), is_ours: false },
            None => Self { path: std::env::temp_dir().join(unique()), is_ours: true },
        }
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if self.is_ours {
            // What cannot be removed is in the system's folder for such things.
            let _ = std::fs::remove_dir_all(&self.path);
        }
    }
}

pub(super) fn run(args: &Args) -> Result<Exit, Failure> {
    args.logs.start();
    let problem = args.board.problem()?;
    block_on(try_it(args, &problem))
}

async fn try_it(args: &Args, problem: &Problem) -> Result<Exit, Failure> {
    let told_to_stop = stop_signal();
    let folder = Folder::new(args.data.as_ref());
    let bound = match args.dashboard {
        None => None,
        Some(at) => {
            dashboard::check(at, false)?;
            let bound = dashboard::bind(at).await?;
            note(&format!("dashboard: {}", bound.url(false)));
            Some(bound)
        }
    };
    // The workers go home first, and say so to the coordinator.
    let (stop, stopped) = tokio::sync::watch::channel(false);
    let (close, mut closed) = tokio::sync::watch::channel(false);
    let (told, mut listening) = tokio::sync::mpsc::unbounded_channel();
    let serving = tokio::spawn({
        let options = coordinator::CoordinatorOptions {
            data: folder.path.join("coordinator"),
            listen: ([127, 0, 0, 1], 0).into(),
            // Nobody else can reach it.
            insecure: true,
            metrics: None,
            dashboard: bound.as_ref().map(|bound| bound.url(false)),
            reflection: false,
            settings: args.checks.apply(Settings {
                sync_ms: 1_000,
                lease_ms: 10_000,
                ..Settings::default()
            }),
            notify: Notify::default(),
            connections: ConnectionLimits::default(),
        };
        async move {
            let until = async move { drop(closed.wait_for(|close| *close).await) };
            coordinator::serve(options, until, move |listening: &BoundAddress| {
                bound.into_iter().for_each(|bound| dashboard::open(bound, listening));
                let _ = told.send(listening.address);
            })
            .await
        }
    });
    let Some(address) = listening.recv().await else {
        // It did not get so far as to listen.
        serving.await.map_err(Failure::usage)??;
        return Ok(Exit::Done);
    };
    let address: Address = address.to_string().parse().map_err(Failure::usage)?;
    let coordinator = Coordinator::to(address.clone(), &Security::Plain)?;
    let workers = hire(args, &address, &folder, &stopped);
    let counted = async {
        let answer =
            coordinator.call(coordinator.link.operations().submit(request(problem, 0))).await?;
        wait_for(&coordinator, &job_name(&answer.job)).await
    };
    let outcome = tokio::select! {
        report = counted => report,
        () = told_to_stop => Err(interrupted(args)),
    };
    let _ = stop.send(true);
    for worker in workers {
        // One that failed has said so in the log; the others did its work.
        let _ = worker.await;
    }
    let _ = close.send(true);
    let _ = serving.await;
    print_final(&outcome?, args.json)
}

fn interrupted(args: &Args) -> Failure {
    let go_on = match &args.data {
        Some(_) => "the same command goes on from here",
        None => "nothing was kept; with --data DIR it could go on",
    };
    Failure { exit: Exit::Interrupted, message: format!("interrupted; {go_on}") }
}

/// Starts the workers, each with its share of the cores.
fn hire(
    args: &Args,
    address: &Address,
    folder: &Folder,
    stopped: &tokio::sync::watch::Receiver<bool>,
) -> Vec<tokio::task::JoinHandle<()>> {
    let cores = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
    let workers = args.workers.get();
    (0..workers)
        .map(|number| {
            // The first ones have one more if they cannot be shared evenly; each has at least one.
            let threads = cores / workers + usize::from(number < cores % workers);
            let name = format!("worker-{}", number + 1);
            let mut options = Options::new(address.clone(), folder.path.join(&name));
            options.name = name.parse().ok();
            options.threads = NonZeroUsize::new(threads.max(1));
            options.devices = if number == 0 {
                args.device.clone()
            } else {
                DeviceChoice::These(vec![DeviceName::Cpu])
            };
            let mut stopped = stopped.clone();
            let name = options.name.clone();
            let runtime = tokio::runtime::Handle::current();
            // A worker waits for its disk now and then, where nobody else may wait with it.
            tokio::task::spawn_blocking(move || {
                let stop = async move { drop(stopped.wait_for(|stop| *stop).await) };
                if let Err(error) = runtime.block_on(worker::run(options, stop)) {
                    tracing::error!(worker = name.map(String::from), "{error}");
                }
            })
        })
        .collect()
}
