//! `nqueens coordinator`.

use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use clap::Subcommand;
use serde::Serialize;

use super::{Exit, Failure, print};
use crate::authority::{Authority, AuthorityError};

/// Prepare and run a coordinator, which hands out units to workers.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(subcommand)]
    command: Command,
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
    #[arg(long, value_name = "DIR")]
    data: PathBuf,
}

impl Data {
    /// The folder of its authority.
    pub(super) fn authority_folder(&self) -> PathBuf {
        self.data.join("authority")
    }

    /// Its authority.
    pub(super) fn authority(&self) -> Result<Authority, AuthorityError> {
        Authority::open(&self.authority_folder())
    }

    pub(super) fn path(&self) -> &Path {
        &self.data
    }
}

/// Now, in ms since 1970.
pub(super) fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
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
        Command::Init(args) => init(args),
    }
}

fn init(args: &InitArgs) -> Result<Exit, Failure> {
    let folder = args.data.authority_folder();
    let authority = Authority::init(&folder, &args.name, now_ms())?;
    let names = authority.server_names().map_err(AuthorityError::Register)?;
    let fingerprint = authority.fingerprint().to_string();
    if args.json {
        let report = Report { authority: folder, fingerprint, names };
        print(&(serde_json::to_string(&report).expect("paths and strings serialise") + "\n"))?;
        return Ok(Exit::Done);
    }
    let reached = ["localhost", "127.0.0.1", "::1"].into_iter().chain(names.iter().map(String::as_str));
    print(&format!(
        "authority made in {}\n  fingerprint         {fingerprint}\n  reached as          {}\n  \
         next                nqueens token create --data {}\n",
        folder.display(),
        reached.collect::<Vec<_>>().join(", "),
        args.data.path().display(),
    ))?;
    Ok(Exit::Done)
}
