//! `nqueens slurm`, `nqueens kubernetes`, `nqueens htcondor`.

use std::fs;
use std::io::{self, Write as _};
use std::num::{NonZeroU32, NonZeroU64};
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::plan::parts;
use super::problem::Board;
use super::report::counted;
use super::{Exit, Failure, print};
use crate::atomic_file::{self, AtomicFile};
use crate::batch::{Htcondor, Kubernetes, PlanFile, Slurm, TaskSettings};
use crate::engine::plan_for_campaign;

/// What all of them are told.
#[derive(Debug, clap::Args)]
pub(super) struct Common {
    #[command(flatten)]
    board: Board,
    /// Into how many tasks; fewer if the job cannot be cut so fine.
    #[arg(long, value_name = "K", default_value = "100", value_parser = parts, allow_negative_numbers = true)]
    units: NonZeroU64,
    /// Cores of a task.
    #[arg(long, value_name = "CORES", default_value = "1")]
    cpus: NonZeroU32,
    /// Memory of a task, in MiB.
    #[arg(long, value_name = "MIB", default_value = "512")]
    memory: NonZeroU32,
    /// The most tasks at the same time.
    #[arg(long, value_name = "TASKS")]
    at_once: Option<NonZeroU64>,
    /// The folder for the plan and the scripts; nqueens-N if not given.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// The program, as tasks call it; this one if not given (for kubernetes: nqueens).
    #[arg(long, value_name = "PATH")]
    program: Option<String>,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

/// Write the scripts of a Slurm array job that counts a board, one part a task, and then merges. The folder must be one that all
/// nodes see.
#[derive(Debug, clap::Args)]
pub(super) struct SlurmArgs {
    #[command(flatten)]
    common: Common,
    /// The most time for a task, as Slurm writes it; a task that needs more goes on where it was.
    #[arg(long, value_name = "TIME", default_value = "01:00:00", value_parser = slurm_time)]
    time: String,
    /// The partition.
    #[arg(long, value_name = "NAME", value_parser = plain)]
    partition: Option<String>,
}

/// Write the manifests of a Kubernetes Indexed Job that counts a board, one part an index, and of the job that merges.
#[derive(Debug, clap::Args)]
pub(super) struct KubernetesArgs {
    #[command(flatten)]
    common: Common,
    /// The image with the program.
    #[arg(long, value_name = "IMAGE", default_value = "nqueens:latest")]
    image: String,
    /// The PersistentVolumeClaim for the results, to which many pods can write.
    #[arg(long, value_name = "NAME", default_value = "nqueens", value_parser = plain)]
    claim: String,
}

/// Write an HTCondor submit file that counts a board, one part a job. The folder must be one that all machines see.
#[derive(Debug, clap::Args)]
pub(super) struct HtcondorArgs {
    #[command(flatten)]
    common: Common,
}

/// What `--json` prints.
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
        Err(format!("'{text}' is no time for Slurm; write minutes, HH:MM:SS or D-HH:MM:SS"))
    }
}

/// Reads a name that needs no quoting anywhere.
fn plain(text: &str) -> Result<String, String> {
    let good = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b',');
    if !text.is_empty() && text.bytes().all(good) {
        Ok(text.to_owned())
    } else {
        Err(format!("'{text}' is no name; letters, digits, '-', '_' and '.' are taken"))
    }
}

/// The plan, its folder, and what all scripts have in common.
struct Begun {
    plan: PlanFile,
    folder: PathBuf,
    shared: TaskSettings,
    files: Vec<String>,
}

fn unusable(path: &Path, error: &io::Error) -> Failure {
    Failure { exit: Exit::File, message: format!("{} cannot be used: {error}", path.display()) }
}

impl Common {
    fn begin(&self, program: &str) -> Result<Begun, Failure> {
        let problem = self.board.problem()?;
        let plan = PlanFile::new(plan_for_campaign(&problem).map_err(Failure::usage)?, self.units);
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
        };
        let mut begun = Begun { plan, folder, shared, files: Vec::new() };
        let text = begun.plan.text();
        let path = begun.folder.join("plan.json");
        let another = match atomic_file::read_text(&path, text.len() as u64) {
            Ok(other) => other != text,
            Err(error) => error.kind() != io::ErrorKind::NotFound,
        };
        if another {
            return Err(Failure::usage(format!(
                "{} is another plan; give another --out",
                path.display()
            )));
        }
        begun.write("plan.json", &text)?;
        Ok(begun)
    }

    fn tell(&self, begun: &Begun, next: &str) -> Result<Exit, Failure> {
        let Begun { plan, files, shared, .. } = begun;
        let text = if self.json {
            let report = Report {
                job: plan.job().hash().to_string(),
                parts: shared.parts.get(),
                units: plan.decomposition().units(),
                files: files.clone(),
                next: next.to_owned(),
            };
            serde_json::to_string(&report).expect("numbers and strings serialise")
        } else {
            let parts = counted(shared.parts.get().into(), "part");
            format!("{}\n{parts}; next: {next}", files.join("\n"))
        };
        print(&(text + "\n"))?;
        Ok(Exit::Done)
    }
}

impl Begun {
    /// The folder, for scripts in which names with spaces cannot stand everywhere.
    fn plain_folder(&self) -> Result<String, Failure> {
        plain_path(&self.folder)
    }

    fn write(&mut self, name: &str, text: &str) -> Result<(), Failure> {
        let path = self.folder.join(name);
        let written = AtomicFile::begin(&path)
            .and_then(|file| file.finish_with(|out| out.write_all(text.as_bytes())));
        written.map_err(|error| unusable(&path, &error))?;
        self.files.push(path.display().to_string());
        Ok(())
    }
}

/// A path as text that needs no quoting.
fn plain_path(path: &Path) -> Result<String, Failure> {
    let good = |byte: u8| byte.is_ascii_alphanumeric() || b"/._-+=,@~".contains(&byte);
    let text = path.to_str().filter(|text| text.bytes().all(good));
    text.map(str::to_owned).ok_or_else(|| {
        Failure::usage(format!(
            "the path {} cannot stand in such a script; only letters, digits and '-' can",
            path.display()
        ))
    })
}

/// This program, as others on machines like this one can call it.
fn this_program() -> String {
    let program = std::env::current_exe().ok().and_then(|path| path.to_str().map(str::to_owned));
    program.unwrap_or_else(|| "nqueens".to_owned())
}

pub(super) fn slurm(args: &SlurmArgs) -> Result<Exit, Failure> {
    let mut begun = args.common.begin(&this_program())?;
    let slurm = Slurm {
        settings: begun.shared.clone(),
        folder: begun.plain_folder()?,
        time: args.time.clone(),
        partition: args.partition.clone(),
    };
    begun.write("array.sbatch", &slurm.array())?;
    begun.write("merge.sbatch", &slurm.merge())?;
    begun.write("submit.sh", &slurm.submit())?;
    args.common.tell(&begun, &format!("sh {}/submit.sh", slurm.folder))
}

pub(super) fn kubernetes(args: &KubernetesArgs) -> Result<Exit, Failure> {
    let mut begun = args.common.begin("nqueens")?;
    let kubernetes = Kubernetes {
        settings: begun.shared.clone(),
        image: args.image.clone(),
        claim: args.claim.clone(),
        plan: begun.plan.text(),
    };
    begun.write("job.yaml", &kubernetes.manifests())?;
    args.common
        .tell(&begun, &format!("kubectl apply -f {}", begun.folder.join("job.yaml").display()))
}

pub(super) fn htcondor(args: &HtcondorArgs) -> Result<Exit, Failure> {
    let mut begun = args.common.begin(&this_program())?;
    let folder = begun.plain_folder()?;
    plain_path(Path::new(&begun.shared.program))?;
    for name in ["log", "results"] {
        let path = begun.folder.join(name);
        fs::create_dir_all(&path).map_err(|error| unusable(&path, &error))?;
    }
    let htcondor = Htcondor { settings: begun.shared.clone(), folder: folder.clone() };
    begun.write("nqueens.sub", &htcondor.submit())?;
    args.common.tell(&begun, &format!("condor_submit {folder}/nqueens.sub"))
}
