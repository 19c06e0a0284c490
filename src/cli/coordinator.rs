//! `nqueens coordinator`.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Subcommand;
use serde::Serialize;

use super::args::parse_duration;
use super::check_args::{ArbiterArgs, CheckArgs};
use super::dashboard;
use super::join;
use super::logs::Logs;
use super::remote::{block_on, default_data, stop_signal};
use super::{Exit, Failure, json_line, print};
use crate::cluster::auth::{Authority, AuthorityError};
use crate::cluster::campaign::Settings;
use crate::cluster::coordinator::{
    self, BoundAddress, ConnectionLimits, CoordinatorOptions, Notify, authority_folder, now_ms,
};

/// Run a coordinator, which leases units to workers and writes the ledger.
///
/// An address that other machines can reach needs TLS and a certificate authority, which nqueens
/// coordinator init creates.
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(super) struct Args {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    serve: ServeArgs,
}

/// The options of the server.
#[derive(Debug, clap::Args)]
struct ServeArgs {
    #[command(flatten)]
    data: Data,
    /// The address for workers and operators. Port 0 selects a free port.
    #[arg(long, value_name = "IP:PORT", default_value = "127.0.0.1:7878")]
    listen: SocketAddr,
    /// Serve without TLS and authentication, even if other machines can reach the address.
    #[arg(long)]
    insecure: bool,
    /// Serve metrics for Prometheus at this address, as /metrics over plain HTTP.
    #[arg(long, value_name = "IP:PORT")]
    metrics: Option<SocketAddr>,
    /// Serve the dashboard at this address. With a certificate authority, it uses TLS and users
    /// sign in with a token (nqueens token create --role viewer or operator). Without one, the
    /// address must be a loopback address.
    #[arg(long, value_name = "IP:PORT")]
    dashboard: Option<SocketAddr>,
    #[command(flatten)]
    play: dashboard::PlayArgs,
    #[command(flatten)]
    join: join::JoinArgs,
    /// Serve gRPC reflection, for tools such as grpcurl.
    #[arg(long)]
    reflection: bool,
    /// The time after which a worker that does not report loses its units: a number and s, m, h or
    /// d.
    #[arg(long, value_name = "TIME", default_value = "90s", value_parser = parse_duration)]
    lease: Duration,
    /// The interval at which workers report: a number and s, m, h or d.
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = parse_duration)]
    sync: Duration,
    /// Write a snapshot after so many entries of the ledger, from which the next start continues; 0
    /// for none.
    #[arg(long, value_name = "ENTRIES", default_value_t = coordinator::SNAPSHOT_EVERY)]
    snapshot_every: u64,
    #[command(flatten)]
    checks: CheckArgs,
    #[command(flatten)]
    arbiter: ArbiterArgs,
    /// Run this shell command when a count or a proof is finished, when a total is disputed or its
    /// recounts cannot settle it, when a unit failed repeatedly, when a worker is quarantined, when
    /// the ledger cannot be written, and when the certificate of a proof fails its check. The
    /// notification is in NQUEENS_NEWS_KIND and NQUEENS_NEWS_TEXT, and as JSON on stdin.
    #[arg(long, value_name = "COMMAND")]
    notify_command: Option<String>,
    /// Post the same notifications as JSON to this URL.
    #[arg(long, value_name = "URL", value_parser = url)]
    notify_url: Option<String>,
    #[command(flatten)]
    logs: Logs,
}

/// Parses an HTTP or HTTPS URL.
fn url(text: &str) -> Result<String, String> {
    let host = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
    if host.is_some_and(|host| !host.is_empty() && !text.contains(char::is_whitespace)) {
        Ok(text.to_owned())
    } else {
        Err(format!("invalid URL '{text}'; use http://… or https://…"))
    }
}

#[derive(Debug, Subcommand)]
enum Command {
    Init(InitArgs),
}

/// Create the certificate authority that issues the certificates of the coordinator and its
/// workers.
#[derive(Debug, clap::Args)]
struct InitArgs {
    #[command(flatten)]
    data: Data,
    /// A DNS name or IP address at which workers reach the coordinator. Repeat the flag for several
    /// names. localhost, 127.0.0.1 and ::1 are always included.
    #[arg(long, value_name = "NAME")]
    name: Vec<String>,
    /// Print the result as one JSON object.
    #[arg(long)]
    json: bool,
}

/// The data directory of a coordinator.
#[derive(Debug, clap::Args)]
pub(super) struct Data {
    /// The data directory of the coordinator.
    #[arg(long, value_name = "DIR", default_value_os_t = default_data())]
    data: PathBuf,
}

impl Data {
    /// Returns the directory of the authority.
    pub(super) fn authority_folder(&self) -> PathBuf {
        authority_folder(&self.data)
    }

    /// Opens the authority.
    pub(super) fn authority(&self) -> Result<Authority, AuthorityError> {
        Authority::open(&self.authority_folder())
    }

    pub(super) fn path(&self) -> &Path {
        &self.data
    }
}

/// The output of `init --json`.
#[derive(Debug, Serialize)]
struct Report {
    authority: PathBuf,
    fingerprint: String,
    names: Vec<String>,
}

pub(super) fn run(args: &Args) -> Result<Exit, Failure> {
    match &args.command {
        Some(Command::Init(args)) => init(args),
        None => serve(&args.serve),
    }
}

fn serve(args: &ServeArgs) -> Result<Exit, Failure> {
    args.logs.start();
    let milliseconds = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
    let settings = Settings {
        lease_ms: milliseconds(args.lease),
        sync_ms: milliseconds(args.sync),
        ..args.checks.apply(Settings::default())
    };
    if settings.sync_ms.saturating_mul(2) > settings.lease_ms {
        return Err(Failure::usage(
            "--lease must be at least twice --sync; raise --lease or lower --sync",
        ));
    }
    let tls = !args.insecure && args.data.authority_folder().exists();
    dashboard::check(args.dashboard, tls)?;
    let join_at = args.join.address(tls)?;
    let join_args = args.join.clone();
    let play = args.play.files()?;
    let mut options = CoordinatorOptions {
        data: args.data.data.clone(),
        listen: args.listen,
        insecure: args.insecure,
        metrics: args.metrics,
        dashboard: None,
        join_page: None,
        reflection: args.reflection,
        snapshot_every: args.snapshot_every,
        settings,
        arbiter_threads: args.arbiter.threads,
        notify: Notify { command: args.notify_command.clone(), url: args.notify_url.clone() },
        connections: ConnectionLimits::default(),
    };
    block_on(async move {
        let stop_requested = stop_signal();
        let stop = async {
            stop_requested.await;
            tracing::info!("stopping");
        };
        let bound = dashboard::bind(args.dashboard).await?;
        options.dashboard = bound.as_ref().map(|bound| bound.url(tls));
        let join_bound = dashboard::bind(join_at).await?;
        options.join_page =
            join_bound.as_ref().map(|bound| bound.url(tls && !join_args.is_proxied()));
        coordinator::serve(options, stop, |listening| {
            log_addresses(listening);
            if let Some(bound) = bound {
                dashboard::open(bound, play, listening);
            }
            if let Some(bound) = join_bound {
                join::open(bound, &join_args, listening);
            }
        })
        .await?;
        Ok(Exit::Done)
    })
}

/// Logs the addresses of the coordinator.
fn log_addresses(listening: &BoundAddress) {
    let BoundAddress { address, tls, metrics, .. } = listening;
    tracing::info!(%address, tls, "listening");
    if let Some(at) = metrics {
        tracing::info!(%at, "metrics");
    }
    if !tls && !address.ip().is_loopback() {
        tracing::warn!("serving without TLS: everyone who can reach this address has full access");
    }
}

fn init(args: &InitArgs) -> Result<Exit, Failure> {
    let folder = args.data.authority_folder();
    let authority = Authority::init(&folder, &args.name, now_ms())?;
    let names = authority.server_names().map_err(AuthorityError::Registry)?;
    let fingerprint = authority.fingerprint().to_string();
    if args.json {
        print(&json_line(&Report { authority: folder, fingerprint, names }))?;
        return Ok(Exit::Done);
    }
    let server_names =
        ["localhost", "127.0.0.1", "::1"].into_iter().chain(names.iter().map(String::as_str));
    print(&format!(
        "authority created in {}\n  fingerprint         {fingerprint}\n  names               {}\n  \
         next                nqueens token create --data {}\n",
        folder.display(),
        server_names.collect::<Vec<_>>().join(", "),
        args.data.path().display(),
    ))?;
    Ok(Exit::Done)
}
