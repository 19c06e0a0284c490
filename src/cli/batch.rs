//! `nqueens slurm`, `nqueens kubernetes`, `nqueens htcondor`.

use std::fs;
use std::io::{self, Write as _};
use std::num::{NonZeroU32, NonZeroU64};
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::args::{Board, SubproblemsArgs};
use super::plan::parts;
use super::{Exit, Failure, print_report};
use crate::atomic_file::{self, AtomicFile};
use crate::batch::{Htcondor, Kubernetes, KubernetesResults, PlanFile, Slurm, TaskSettings};
use crate::report::counted;

/// The arguments that all batch systems share.
#[derive(Debug, clap::Args)]
pub(super) struct Common {
    #[command(flatten)]
    board: Board,
    #[command(flatten)]
    subproblems: SubproblemsArgs,
    /// The number of parts to split the count into, one per task; fewer if the count has fewer
    /// units.
    #[arg(long, value_name = "K", default_value = "100", value_parser = parts, allow_negative_numbers = true)]
    units: NonZeroU64,
    /// The number of cores per task.
    #[arg(long, value_name = "CORES", default_value = "1")]
    cpus: NonZeroU32,
    /// The memory per task, in MiB.
    #[arg(long, value_name = "MIB", default_value = "512")]
    memory: NonZeroU32,
    /// The maximum number of tasks that run at the same time (default: no limit).
    #[arg(long, value_name = "TASKS")]
    at_once: Option<NonZeroU64>,
    /// Sign the results, and have them merged into a ledger, so that the count can be published.
    #[arg(long)]
    sign: bool,
    /// The directory for the plan and the scripts (default: nqueens-N).
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// The path of the program within a task (default: this program; for kubernetes, nqueens).
    #[arg(long, value_name = "PATH")]
    program: Option<String>,
    /// Print the result as one JSON object.
    #[arg(long)]
    json: bool,
}

/// Write the scripts of a Slurm array job that counts a board.
///
/// Each task counts one part, and a last job merges the parts. The directory must be shared by all
/// nodes.
#[derive(Debug, clap::Args)]
pub(super) struct SlurmArgs {
    #[command(flatten)]
    common: Common,
    /// The time limit of a task, in the format of Slurm. A task that exceeds it is requeued and
    /// resumes.
    #[arg(long, value_name = "TIME", default_value = "01:00:00", value_parser = slurm_time)]
    time: String,
    /// The Slurm partition (default: that of the cluster).
    #[arg(long, value_name = "NAME", value_parser = plain)]
    partition: Option<String>,
}

/// Write the manifests of a Kubernetes Indexed Job that counts a board.
///
/// Each index counts one part, and a second job merges the parts.
#[derive(Debug, clap::Args)]
pub(super) struct KubernetesArgs {
    #[command(flatten)]
    common: Common,
    /// The container image with the program.
    #[arg(long, value_name = "IMAGE", default_value = "nqueens:latest")]
    image: String,
    /// The PersistentVolumeClaim for the results; its access mode must be ReadWriteMany.
    #[arg(long, value_name = "NAME", default_value = "nqueens", value_parser = plain)]
    claim: String,
    /// Keep the results in object storage instead of a volume, under the name of the job:
    /// s3://BUCKET/PREFIX, gs://BUCKET/PREFIX or az://CONTAINER/PREFIX. With --sign, the ledger is
    /// then not written; see nqueens merge --data.
    #[arg(long, value_name = "URL", conflicts_with = "claim", value_parser = storage_url)]
    store: Option<String>,
    /// The Secret whose entries are the environment variables with the credentials of the object
    /// storage, such as AWS_ACCESS_KEY_ID (default: none).
    #[arg(long, value_name = "NAME", requires = "store", value_parser = plain)]
    secret: Option<String>,
}

/// Write an HTCondor submit file that counts a board.
///
/// Each job counts one part. The directory must be shared by all machines.
#[derive(Debug, clap::Args)]
pub(super) struct HtcondorArgs {
    #[command(flatten)]
    common: Common,
}

/// The output of `--json`.
#[derive(Debug, Serialize)]
struct Report {
    job: String,
    parts: u64,
    units: u64,
    files: Vec<String>,
    next: String,
}

fn slurm_time(text: &str) -> Result<String, String> {
    let good = text.bytes().all(|byte| byte.is_ascii_digit() || matches!(byte, b':' | b'-'));
    let good = good && text.bytes().any(|byte| byte.is_ascii_digit());
    if good {
        Ok(text.to_owned())
    } else {
        Err(format!("invalid Slurm time '{text}'; use minutes, HH:MM:SS or D-HH:MM:SS"))
    }
}

/// Parses a name that needs no quoting.
fn plain(text: &str) -> Result<String, String> {
    let good = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b',');
    if !text.is_empty() && text.bytes().all(good) {
        Ok(text.to_owned())
    } else {
        Err(format!("invalid name '{text}'; use letters, digits, '-', '_', '.' and ','"))
    }
}

/// Parses a URL of object storage that pods can reach.
fn storage_url(text: &str) -> Result<String, String> {
    const SCHEMES: [&str; 8] = ["s3", "s3a", "gs", "az", "adl", "azure", "abfs", "abfss"];
    let parts = text.split_once("://");
    if parts.is_some_and(|(scheme, rest)| SCHEMES.contains(&scheme) && !rest.is_empty()) {
        return Ok(text.to_owned());
    }
    Err(format!(
        "invalid URL '{text}'; use s3://BUCKET/PREFIX, gs://BUCKET/PREFIX or az://CONTAINER/PREFIX"
    ))
}

/// A plan with the directory and the common parts of its scripts.
struct ScriptWriter {
    plan: PlanFile,
    folder: PathBuf,
    shared: TaskSettings,
    files: Vec<String>,
}

fn unusable(path: &Path, error: &io::Error) -> Failure {
    Failure::new(Exit::File, format!("{} cannot be used: {error}", path.display()))
}

impl Common {
    fn start(&self, program: &str) -> Result<ScriptWriter, Failure> {
        let problem = self.board.problem()?;
        let plan = PlanFile::new(self.subproblems.plan(&problem)?, self.units);
        let folder = self.out.clone().unwrap_or_else(|| format!("nqueens-{}", problem.n()).into());
        fs::create_dir_all(&folder).map_err(|error| unusable(&folder, &error))?;
        let folder = folder.canonicalize().map_err(|error| unusable(&folder, &error))?;
        let shared = TaskSettings {
            n: problem.n(),
            parts: plan.parts(),
            cpus: self.cpus,
            memory_mib: self.memory,
            at_once: self.at_once,
            program: self.program.clone().unwrap_or_else(|| program.to_owned()),
            sign: self.sign,
        };
        let mut scripts = ScriptWriter { plan, folder, shared, files: Vec::new() };
        let text = scripts.plan.text();
        let path = scripts.folder.join("plan.json");
        let differs = match atomic_file::read_text(&path, text.len() as u64) {
            Ok(other) => other != text,
            Err(error) => error.kind() != io::ErrorKind::NotFound,
        };
        if differs {
            return Err(Failure::usage(format!(
                "{} is a different plan; choose another directory with --out",
                path.display()
            )));
        }
        scripts.write("plan.json", &text)?;
        Ok(scripts)
    }

    fn print_files(&self, scripts: &ScriptWriter, next: &str) -> Result<Exit, Failure> {
        let ScriptWriter { plan, files, shared, .. } = scripts;
        let report = Report {
            job: plan.job().hash().to_string(),
            parts: shared.parts.get(),
            units: plan.decomposition().units(),
            files: files.clone(),
            next: next.to_owned(),
        };
        print_report(self.json, &report, || {
            let parts = counted(report.parts.into(), "part");
            format!("{}\n{parts}; next: {next}\n", files.join("\n"))
        })?;
        Ok(Exit::Done)
    }
}

impl ScriptWriter {
    fn write(&mut self, name: &str, text: &str) -> Result<(), Failure> {
        let path = self.folder.join(name);
        let written = AtomicFile::begin(&path)
            .and_then(|file| file.finish_with(|out| out.write_all(text.as_bytes())));
        written.map_err(|error| unusable(&path, &error))?;
        self.files.push(path.display().to_string());
        Ok(())
    }
}

/// Returns a path as text, if it needs no quoting, for scripts that cannot quote it everywhere.
fn plain_path(path: &Path) -> Result<String, Failure> {
    let good = |byte: u8| byte.is_ascii_alphanumeric() || b"/._-+=,@~".contains(&byte);
    let text = path.to_str().filter(|text| text.bytes().all(good));
    text.map(str::to_owned).ok_or_else(|| {
        Failure::usage(format!(
            "the path {} cannot be written into the script; use letters, digits and any of /._-+=,@~",
            path.display()
        ))
    })
}

/// Returns the path of this program.
fn this_program() -> String {
    let program = std::env::current_exe().ok().and_then(|path| path.to_str().map(str::to_owned));
    program.unwrap_or_else(|| "nqueens".to_owned())
}

pub(super) fn slurm(args: &SlurmArgs) -> Result<Exit, Failure> {
    let mut scripts = args.common.start(&this_program())?;
    let slurm = Slurm {
        settings: scripts.shared.clone(),
        folder: plain_path(&scripts.folder)?,
        time: args.time.clone(),
        partition: args.partition.clone(),
    };
    scripts.write("array.sbatch", &slurm.array())?;
    scripts.write("merge.sbatch", &slurm.merge())?;
    scripts.write("submit.sh", &slurm.submit())?;
    args.common.print_files(&scripts, &format!("sh {}/submit.sh", slurm.folder))
}

pub(super) fn kubernetes(args: &KubernetesArgs) -> Result<Exit, Failure> {
    let mut scripts = args.common.start("nqueens")?;
    let kubernetes = Kubernetes {
        settings: scripts.shared.clone(),
        image: args.image.clone(),
        results: match &args.store {
            Some(url) => {
                KubernetesResults::ObjectStorage { url: url.clone(), secret: args.secret.clone() }
            }
            None => KubernetesResults::Claim(args.claim.clone()),
        },
        plan: scripts.plan.text(),
    };
    scripts.write("job.yaml", &kubernetes.manifests())?;
    args.common.print_files(
        &scripts,
        &format!("kubectl apply -f {}", scripts.folder.join("job.yaml").display()),
    )
}

pub(super) fn htcondor(args: &HtcondorArgs) -> Result<Exit, Failure> {
    let mut scripts = args.common.start(&this_program())?;
    let folder = plain_path(&scripts.folder)?;
    plain_path(Path::new(&scripts.shared.program))?;
    for name in ["log", "results"] {
        let path = scripts.folder.join(name);
        fs::create_dir_all(&path).map_err(|error| unusable(&path, &error))?;
    }
    let htcondor = Htcondor { settings: scripts.shared.clone(), folder: folder.clone() };
    scripts.write("nqueens.sub", &htcondor.submit())?;
    args.common.print_files(&scripts, &format!("condor_submit {folder}/nqueens.sub"))
}
