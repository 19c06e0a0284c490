//! `nqueens cluster`.

use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::path::PathBuf;

use super::args::{Board, DeviceArgs, cores, threads};
use super::check_args::{ArbiterArgs, CheckArgs};
use super::dashboard;
use super::logs::Logs;
use super::remote::{Coordinator, block_on, stop_signal};
use super::submit::{print_final, request, wait_for};
use super::{Exit, Failure, note};
use crate::board::Problem;
use crate::cluster::campaign::Settings;
use crate::cluster::coordinator::{self, BoundAddress, ConnectionLimits, Notify};
use crate::cluster::protocol::{Address, Security, v1};
use crate::cluster::worker::{self, WorkerOptions};
use crate::engine::{DeviceChoice, DeviceName, has_gpu};
use crate::report::job_name;

/// The help of `--device`.
const DEVICE_HELP: &str = "\
The devices of the first worker, separated by commas: auto, cpu, gpu, or ids from nqueens \
devices. The other workers use the CPU";

/// Run a coordinator and several workers on this machine, to try a campaign.
///
/// Runs nqueens coordinator, nqueens worker and nqueens submit count N --wait in one process, on a
/// free port of this machine. All files are removed at the end unless --data is given.
#[derive(Debug, clap::Args)]
#[command(mut_arg("device", |flag| flag.help(DEVICE_HELP)))]
pub(super) struct Args {
    #[command(flatten)]
    board: Board,
    /// The number of workers, which share the cores.
    #[arg(long, value_name = "K", default_value = "2", value_parser = threads, allow_negative_numbers = true)]
    workers: NonZeroUsize,
    #[command(flatten)]
    device: DeviceArgs,
    /// Keep the ledger in this directory, and resume from it if it exists.
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Serve the dashboard at this address, which must be a loopback address.
    #[arg(long, value_name = "IP:PORT")]
    dashboard: Option<SocketAddr>,
    #[command(flatten)]
    play: dashboard::PlayArgs,
    #[command(flatten)]
    checks: CheckArgs,
    #[command(flatten)]
    arbiter: ArbiterArgs,
    /// Print the result as one JSON object.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    logs: Logs,
}

/// The directory of the campaign, removed at the end if it is temporary.
struct CampaignDir {
    path: PathBuf,
    is_temporary: bool,
}

impl CampaignDir {
    fn new(data: Option<&PathBuf>) -> Self {
        let unique = || format!("nqueens-cluster-{}-{:08x}", std::process::id(), fastrand::u32(..));
        match data {
            Some(path) => Self { path: path.clone(), is_temporary: false },
            None => Self { path: std::env::temp_dir().join(unique()), is_temporary: true },
        }
    }
}

impl Drop for CampaignDir {
    fn drop(&mut self) {
        if self.is_temporary {
            // Leftovers are in the temporary directory of the system.
            let _ = std::fs::remove_dir_all(&self.path);
        }
    }
}

pub(super) fn run(args: &Args) -> Result<Exit, Failure> {
    args.logs.start();
    let problem = args.board.problem()?;
    block_on(run_campaign(args, &problem))
}

async fn run_campaign(args: &Args, problem: &Problem) -> Result<Exit, Failure> {
    let stop_requested = stop_signal();
    let folder = CampaignDir::new(args.data.as_ref());
    let play = args.play.files()?;
    dashboard::check(args.dashboard, false)?;
    let bound = dashboard::bind(args.dashboard).await?;
    if let Some(bound) = &bound {
        note(&format!("dashboard: {}", bound.url(false)));
    }
    // The workers stop first, and report to the coordinator.
    let (stop, stopped) = tokio::sync::watch::channel(false);
    let (close, mut closed) = tokio::sync::watch::channel(false);
    let (report_address, mut listening) = tokio::sync::mpsc::unbounded_channel();
    let serving = tokio::spawn({
        let options = coordinator::CoordinatorOptions {
            data: folder.path.join("coordinator"),
            listen: ([127, 0, 0, 1], 0).into(),
            // It listens on loopback only.
            insecure: true,
            metrics: None,
            dashboard: bound.as_ref().map(|bound| bound.url(false)),
            join_page: None,
            reflection: false,
            snapshot_every: coordinator::SNAPSHOT_EVERY,
            settings: args.checks.apply(Settings {
                sync_ms: 1_000,
                lease_ms: 10_000,
                ..Settings::default()
            }),
            arbiter_threads: args.arbiter.threads,
            notify: Notify::default(),
            connections: ConnectionLimits::default(),
        };
        async move {
            let until = async move { drop(closed.wait_for(|close| *close).await) };
            coordinator::serve(options, until, move |listening: &BoundAddress| {
                if let Some(bound) = bound {
                    dashboard::open(bound, play, listening);
                }
                let _ = report_address.send(listening.address);
            })
            .await
        }
    });
    let Some(address) = listening.recv().await else {
        // It failed before it listened.
        serving.await.map_err(Failure::usage)??;
        return Ok(Exit::Done);
    };
    let address: Address = address.to_string().parse().map_err(Failure::usage)?;
    let coordinator = Coordinator::to(address.clone(), &Security::Plain)?;
    let workers = start_workers(args, &address, &folder, &stopped);
    let mut request = request(problem, 0);
    if has_gpu(problem, &args.device.choice()) {
        request.set_subproblems(v1::Subproblems::Prefixes);
    }
    let counted = async {
        let answer = coordinator.call(coordinator.link.operations().submit(request)).await?;
        wait_for(&coordinator, &job_name(&answer.job)).await
    };
    let outcome = tokio::select! {
        report = counted => report,
        () = stop_requested => Err(interrupted(args)),
    };
    let _ = stop.send(true);
    for worker in workers {
        // A worker that failed has logged its error; the others did its work.
        let _ = worker.await;
    }
    let _ = close.send(true);
    let _ = serving.await;
    print_final(&outcome?, args.json)
}

fn interrupted(args: &Args) -> Failure {
    let hint = match &args.data {
        Some(_) => "run the same command again to resume",
        None => "nothing was kept; use --data DIR to be able to resume",
    };
    Failure::new(Exit::Interrupted, format!("interrupted; {hint}"))
}

/// Starts the workers, each with its share of the cores.
fn start_workers(
    args: &Args,
    address: &Address,
    folder: &CampaignDir,
    stopped: &tokio::sync::watch::Receiver<bool>,
) -> Vec<tokio::task::JoinHandle<()>> {
    let cores = cores();
    let workers = args.workers.get();
    (0..workers)
        .map(|number| {
            // Cores left over go to the first workers; each worker has at least one thread.
            let threads = cores / workers + usize::from(number < cores % workers);
            let name = format!("worker-{}", number + 1);
            let mut options = WorkerOptions::new(address.clone(), folder.path.join(&name));
            options.name = name.parse().ok();
            options.threads = NonZeroUsize::new(threads.max(1));
            options.devices = if number == 0 {
                args.device.choice()
            } else {
                DeviceChoice::These(vec![DeviceName::Cpu])
            };
            let mut stopped = stopped.clone();
            let name = options.name.clone();
            let runtime = tokio::runtime::Handle::current();
            // A worker sometimes blocks on its disk.
            tokio::task::spawn_blocking(move || {
                let stop = async move { drop(stopped.wait_for(|stop| *stop).await) };
                if let Err(error) = runtime.block_on(worker::run(options, stop)) {
                    tracing::error!(worker = name.map(String::from), "{error}");
                }
            })
        })
        .collect()
}
