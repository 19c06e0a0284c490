//! `nqueens coordinator`.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Subcommand;
use serde::Serialize;

use super::checks::CheckArgs;
use super::dashboard;
use super::logs::Logs;
use super::remote::{block_on, stop_signal, usual_data};
use super::token::time;
use super::{Exit, Failure, print};
use crate::cluster::auth::{Authority, AuthorityError};
use crate::cluster::campaign::Settings;
use crate::cluster::coordinator::{
    self, BoundAddress, ConnectionLimits, CoordinatorOptions, Notify, authority_folder, now_ms,
};

/// Run a coordinator, which hands out units to workers and keeps the ledger.
///
/// On an address that others can reach it speaks TLS and needs an authority: nqueens coordinator init makes one.
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(super) struct Args {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    serve: ServeArgs,
}

/// How to serve.
#[derive(Debug, clap::Args)]
struct ServeArgs {
    #[command(flatten)]
    data: Data,
    /// Where to listen; port 0 takes one that is free.
    #[arg(long, value_name = "IP:PORT", default_value = "127.0.0.1:7878")]
    listen: SocketAddr,
    /// Without TLS, whoever can reach the address.
    #[arg(long)]
    insecure: bool,
    /// Where Prometheus may ask for /metrics, in plain HTTP.
    #[arg(long, value_name = "IP:PORT")]
    metrics: Option<SocketAddr>,
    /// Where browsers may look at the campaign and operators steer it: over TLS with a session that a token buys
    /// (nqueens token create --role viewer or operator), or, without an authority, on this machine only.
    #[arg(long, value_name = "IP:PORT")]
    dashboard: Option<SocketAddr>,
    /// Serve gRPC's reflection, for tools such as grpcurl.
    #[arg(long)]
    reflection: bool,
    /// How long a worker may be silent before its units go to others.
    #[arg(long, value_name = "TIME", default_value = "90s", value_parser = time)]
    lease: Duration,
    /// How often workers report.
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = time)]
    sync: Duration,
    #[command(flatten)]
    checks: CheckArgs,
    /// A command for the shell that hears of finished jobs, disputed totals, units that are set aside, workers in quarantine and a ledger that
    /// cannot be written: in NQUEENS_NEWS_KIND and NQUEENS_NEWS_TEXT, and as JSON on its standard input.
    #[arg(long, value_name = "COMMAND")]
    notify_command: Option<String>,
    /// An address, http or https, to which the same JSON is posted.
    #[arg(long, value_name = "URL", value_parser = url)]
    notify_url: Option<String>,
    #[command(flatten)]
    logs: Logs,
}

/// Reads an address of the web.
fn url(text: &str) -> Result<String, String> {
    let host = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
    if host.is_some_and(|host| !host.is_empty() && !text.contains(char::is_whitespace)) {
        Ok(text.to_owned())
    } else {
        Err(format!("'{text}' is no address; write http://… or https://…"))
    }
}

#[derive(Debug, Subcommand)]
enum Command {
    Init(InitArgs),
}

/// Make the authority by which workers and the coordinator know each other.
#[derive(Debug, clap::Args)]
struct InitArgs {
    #[command(flatten)]
    data: Data,
    /// A DNS name or IP address by which workers reach the coordinator; several: repeat. This machine's own
    /// localhost, 127.0.0.1 and ::1 are always among them.
    #[arg(long, value_name = "NAME")]
    name: Vec<String>,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

/// Where a coordinator keeps what it has.
#[derive(Debug, clap::Args)]
pub(super) struct Data {
    /// The coordinator's folder.
    #[arg(long, value_name = "DIR", default_value_os_t = usual_data())]
    data: PathBuf,
}

impl Data {
    /// The folder of its authority.
    pub(super) fn authority_folder(&self) -> PathBuf {
        authority_folder(&self.data)
    }

    /// Its authority.
    pub(super) fn authority(&self) -> Result<Authority, AuthorityError> {
        Authority::open(&self.authority_folder())
    }

    pub(super) fn path(&self) -> &Path {
        &self.data
    }
}

/// What `init --json` prints.
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
            "a lease must outlive two reports, or workers lose units that they count; raise --lease or lower --sync",
        ));
    }
    let tls = !args.insecure && args.data.authority_folder().exists();
    if let Some(at) = args.dashboard {
        dashboard::check(at, tls)?;
    }
    let mut options = CoordinatorOptions {
        data: args.data.data.clone(),
        listen: args.listen,
        insecure: args.insecure,
        metrics: args.metrics,
        dashboard: None,
        reflection: args.reflection,
        settings,
        notify: Notify { command: args.notify_command.clone(), url: args.notify_url.clone() },
        connections: ConnectionLimits::default(),
    };
    block_on(async move {
        let told_to_stop = stop_signal();
        let stop = async {
            told_to_stop.await;
            tracing::info!("stopping");
        };
        let bound = match args.dashboard {
            None => None,
            Some(at) => Some(dashboard::bind(at).await?),
        };
        options.dashboard = bound.as_ref().map(|bound| bound.url(tls));
        coordinator::serve(options, stop, |listening| {
            told(listening);
            bound.into_iter().for_each(|bound| dashboard::open(bound, listening));
        })
        .await?;
        Ok(Exit::Done)
    })
}

/// Says where the coordinator listens.
fn told(listening: &BoundAddress) {
    let BoundAddress { address, tls, metrics, .. } = listening;
    tracing::info!(%address, tls, "listening");
    if let Some(at) = metrics {
        tracing::info!(%at, "metrics");
    }
    if !tls && !address.ip().is_loopback() {
        tracing::warn!("without TLS: whoever can reach this address may do everything");
    }
}

fn init(args: &InitArgs) -> Result<Exit, Failure> {
    let folder = args.data.authority_folder();
    let authority = Authority::init(&folder, &args.name, now_ms())?;
    let names = authority.server_names().map_err(AuthorityError::Registry)?;
    let fingerprint = authority.fingerprint().to_string();
    if args.json {
        let report = Report { authority: folder, fingerprint, names };
        print(&(serde_json::to_string(&report).expect("paths and strings serialise") + "\n"))?;
        return Ok(Exit::Done);
    }
    let reached =
        ["localhost", "127.0.0.1", "::1"].into_iter().chain(names.iter().map(String::as_str));
    print(&format!(
        "authority made in {}\n  fingerprint         {fingerprint}\n  reached as          {}\n  \
         next                nqueens token create --data {}\n",
        folder.display(),
        reached.collect::<Vec<_>>().join(", "),
        args.data.path().display(),
    ))?;
    Ok(Exit::Done)
}
