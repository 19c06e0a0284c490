//! Scripts and manifests that run one plan on a scheduler.
//!
//! Each runs `nqueens run-unit` once for each part, restarts a task that requests it (exit codes
//! 75: try again, 85: stopped with what was counted kept), and stops at once where a retry is
//! useless (42). Then it merges.

use std::fmt::Write as _;
use std::num::{NonZeroU32, NonZeroU64};

/// The settings common to all schedulers.
#[derive(Clone, Debug)]
pub struct TaskSettings {
    /// The board size, for names.
    pub n: usize,
    /// The number of parts of the plan.
    pub parts: NonZeroU64,
    /// The number of cores of a task.
    pub cpus: NonZeroU32,
    /// The memory of a task, in MiB.
    pub memory_mib: NonZeroU32,
    /// The maximum number of concurrent tasks; `None` for no limit.
    pub at_once: Option<NonZeroU64>,
    /// The program, as tasks invoke it.
    pub program: String,
    /// True if tasks sign their results, and the merge writes a ledger.
    pub sign: bool,
}

impl TaskSettings {
    fn name(&self) -> String {
        format!("nqueens-{}", self.n)
    }

    fn last(&self) -> u64 {
        self.parts.get() - 1
    }

    /// Returns the flag and the file with which tasks sign their results in a folder, if they do.
    fn key(&self, folder: &str) -> Option<[String; 2]> {
        self.sign.then(|| ["--key".to_owned(), format!("{folder}/sign.key")])
    }

    /// Returns the flag and the directory with which the merge then writes a ledger.
    fn ledger(&self, folder: &str) -> Option<[String; 2]> {
        self.sign.then(|| ["--data".to_owned(), format!("{folder}/merged")])
    }
}

/// Quotes a word for a POSIX shell.
fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// Returns a flag and its value, in these quotation marks, after a space.
fn words(flag: Option<[String; 2]>, quote: &str) -> String {
    flag.map(|[flag, value]| format!(" {flag} {quote}{value}{quote}")).unwrap_or_default()
}

/// Quotes a text for YAML: a JSON string is a valid YAML string.
fn yaml(text: &str) -> String {
    serde_json::to_string(text).expect("strings serialise")
}

/// A Slurm array job in a folder that all nodes share.
#[derive(Clone, Debug)]
pub struct Slurm {
    /// The common settings.
    pub settings: TaskSettings,
    /// The absolute path of the folder: it contains `plan.json`, and receives results and logs.
    pub folder: String,
    /// The time limit of a task, in Slurm's format.
    pub time: String,
    /// The partition; `None` for the default.
    pub partition: Option<String>,
}

impl Slurm {
    /// Returns `array.sbatch`, which runs one part in each task.
    pub fn array(&self) -> String {
        let Self { settings, folder, time, partition } = self;
        let at_once = settings.at_once.map(|most| format!("%{most}")).unwrap_or_default();
        let mut text = String::from("#!/bin/bash\n");
        let _ = writeln!(text, "#SBATCH --job-name={}", settings.name());
        let _ = writeln!(text, "#SBATCH --array=0-{}{at_once}", settings.last());
        let _ = writeln!(text, "#SBATCH --ntasks=1\n#SBATCH --cpus-per-task={}", settings.cpus);
        let _ = writeln!(text, "#SBATCH --mem={}M\n#SBATCH --time={time}", settings.memory_mib);
        if let Some(partition) = partition {
            let _ = writeln!(text, "#SBATCH --partition={partition}");
        }
        // A task receives SIGTERM a minute before its time limit, keeps its results, and is
        // requeued.
        text += "#SBATCH --requeue\n#SBATCH --signal=B:TERM@60\n#SBATCH --open-mode=append\n";
        let _ = writeln!(text, "#SBATCH --output={folder}/log/%a.txt");
        let _ = write!(
            text,
            r#"
folder={folder}
{program} run-unit "$folder/plan.json" --out "$folder/results"{key} --threads "${{SLURM_CPUS_PER_TASK:-1}}" &
task=$!
trap 'kill -TERM "$task"' TERM
wait "$task"; code=$?
# The signal ends the first wait, not the task.
while kill -0 "$task" 2>/dev/null; do wait "$task"; code=$?; done
case $code in
  75|85)
    if [ "${{SLURM_RESTART_COUNT:-0}}" -lt 100 ]; then
      scontrol requeue "${{SLURM_ARRAY_JOB_ID}}_${{SLURM_ARRAY_TASK_ID}}"
    fi ;;
esac
exit "$code"
"#,
            folder = quoted(folder),
            program = quoted(&settings.program),
            key = words(settings.key("$folder"), "\""),
        );
        text
    }

    /// Returns `merge.sbatch`, which merges the results once all parts are done.
    pub fn merge(&self) -> String {
        let Self { settings, folder, partition, .. } = self;
        let mut text = String::from("#!/bin/bash\n");
        let _ = writeln!(text, "#SBATCH --job-name={}-merge\n#SBATCH --ntasks=1", settings.name());
        let _ = writeln!(text, "#SBATCH --mem={}M\n#SBATCH --time=01:00:00", settings.memory_mib);
        if let Some(partition) = partition {
            let _ = writeln!(text, "#SBATCH --partition={partition}");
        }
        let _ = writeln!(text, "#SBATCH --output={folder}/total.txt\n");
        let (folder, program) = (quoted(folder), quoted(&settings.program));
        let _ = writeln!(
            text,
            "folder={folder}\n{program} merge \"$folder/plan.json\" \"$folder/results\" --recount 10{}",
            words(settings.ledger("$folder"), "\"")
        );
        text
    }

    /// Returns `submit.sh`, which submits both.
    pub fn submit(&self) -> String {
        format!(
            r#"#!/bin/sh
# Submits all parts, and then the merge. May be repeated after failures: finished parts are not counted again.
set -eu
folder={}
mkdir -p "$folder/log" "$folder/results"
array=$(sbatch --parsable "$folder/array.sbatch")
merge=$(sbatch --parsable --dependency="afterok:$array" --kill-on-invalid-dep=yes "$folder/merge.sbatch")
echo "array job $array, merge job $merge; the total will be in $folder/total.txt"
"#,
            quoted(&self.folder)
        )
    }
}

/// The place where the pods of a job leave their results.
#[derive(Clone, Debug)]
pub enum KubernetesResults {
    /// A PersistentVolumeClaim of this name that many pods can write to.
    Claim(String),
    /// Object storage.
    ObjectStorage {
        /// The URL.
        url: String,
        /// The name of a Secret whose entries are the environment variables with credentials.
        secret: Option<String>,
    },
}

impl KubernetesResults {
    /// Returns the argument of `run-unit` and `merge` for a job of this name.
    fn place(&self, name: &str) -> String {
        match self {
            Self::Claim(_) => format!("/results/{name}"),
            Self::ObjectStorage { url, .. } => format!("{}/{name}", url.trim_end_matches('/')),
        }
    }

    /// Returns the lines of a container that give it the credentials.
    fn env(&self) -> String {
        match self {
            Self::ObjectStorage { secret: Some(secret), .. } => format!(
                "          envFrom:\n            - secretRef:\n                name: {}\n",
                yaml(secret)
            ),
            _ => String::new(),
        }
    }

    /// Returns the lines of a pod that give it the time to save what it has counted.
    const fn grace_period(&self) -> &'static str {
        match self {
            Self::Claim(_) => "",
            Self::ObjectStorage { .. } => "      terminationGracePeriodSeconds: 60\n",
        }
    }

    /// Returns the directory of the volume, and the lines that describe it.
    fn volume(&self) -> (&'static str, String) {
        match self {
            Self::Claim(claim) => (
                "/results",
                format!("persistentVolumeClaim:\n            claimName: {}", yaml(claim)),
            ),
            // For temporary files.
            Self::ObjectStorage { .. } => ("/tmp", "emptyDir: {}".to_owned()),
        }
    }
}

/// A Kubernetes Indexed Job.
#[derive(Clone, Debug)]
pub struct Kubernetes {
    /// The common settings.
    pub settings: TaskSettings,
    /// The image with the program.
    pub image: String,
    /// The place of the results.
    pub results: KubernetesResults,
    /// The plan, as text.
    pub plan: String,
}

impl Kubernetes {
    /// Returns the manifests: the plan, the job that counts, the job that merges.
    pub fn manifests(&self) -> String {
        let Self { settings, image, results, plan } = self;
        let (directory, volume) = results.volume();
        let name = settings.name();
        let parallelism = settings.at_once.map_or(settings.parts, |most| most.min(settings.parts));
        let job = |name: &str, spec: &str, arguments: &[&str]| {
            let command: Vec<String> =
                [&settings.program[..]].iter().chain(arguments).map(|word| yaml(word)).collect();
            format!(
                r#"---
apiVersion: batch/v1
kind: Job
metadata:
  name: {name}
spec:
{spec}
  template:
    spec:
      restartPolicy: Never
{grace_period}      automountServiceAccountToken: false
      securityContext:
        runAsNonRoot: true
        runAsUser: 10001
        fsGroup: 10001
        seccompProfile:
          type: RuntimeDefault
      containers:
        - name: nqueens
          image: {image}
          command: [{command}]
{env}          resources:
            requests:
              cpu: "{cpus}"
              memory: {memory}Mi
            limits:
              memory: {memory}Mi
          securityContext:
            allowPrivilegeEscalation: false
            readOnlyRootFilesystem: true
            capabilities:
              drop: ["ALL"]
          volumeMounts:
            - name: plan
              mountPath: /plan
              readOnly: true
            - name: results
              mountPath: {directory}
      volumes:
        - name: plan
          configMap:
            name: {plan_name}
        - name: results
          {volume}
"#,
                image = yaml(image),
                command = command.join(", "),
                cpus = settings.cpus,
                memory = settings.memory_mib,
                plan_name = settings.name(),
                env = results.env(),
                grace_period = results.grace_period(),
            )
        };
        let place = results.place(&name);
        let threads = settings.cpus.to_string();
        // Pods that were evicted, or that exit with "try again", do not count as failures of their
        // index.
        let spec = format!(
            r#"  completionMode: Indexed
  completions: {}
  parallelism: {parallelism}
  backoffLimitPerIndex: 10
  podFailurePolicy:
    rules:
      - action: FailJob
        onExitCodes:
          containerName: nqueens
          operator: In
          values: [42]
      - action: Ignore
        onExitCodes:
          containerName: nqueens
          operator: In
          values: [75, 85]
      - action: Ignore
        onPodConditions:
          - type: DisruptionTarget
            status: "True""#,
            settings.parts
        );
        let config = format!(
            "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {name}\ndata:\n  plan.json: {}\n",
            yaml(plan)
        );
        // In object storage there is no place for a common key, nor for a ledger.
        let (key, ledger) = match results {
            KubernetesResults::Claim(_) => (settings.key(&place), settings.ledger(&place)),
            KubernetesResults::ObjectStorage { .. } => (settings.key(directory), None),
        };
        let mut run = vec!["run-unit", "/plan/plan.json", "--out", &place, "--threads", &threads];
        run.extend(key.iter().flatten().map(String::as_str));
        let count = job(&name, &spec, &run);
        let mut merge = vec!["merge", "/plan/plan.json", &place[..], "--recount", "10"];
        merge.extend(ledger.iter().flatten().map(String::as_str));
        // The merge job fails as long as parts are missing, and is retried with increasing delays.
        let merge = job(&format!("{name}-merge"), "  backoffLimit: 100", &merge);
        config + &count + &merge
    }
}

/// An HTCondor submit file, in a folder that all machines share.
#[derive(Clone, Debug)]
pub struct Htcondor {
    /// The common settings.
    pub settings: TaskSettings,
    /// The absolute path of the folder: it contains `plan.json`, and receives results and logs.
    pub folder: String,
}

impl Htcondor {
    /// Returns the submit file.
    pub fn submit(&self) -> String {
        let Self { settings, folder } = self;
        let key = words(settings.key(folder), "");
        let ledger = words(settings.ledger(folder), "");
        let most =
            settings.at_once.map(|most| format!("max_materialize = {most}\n")).unwrap_or_default();
        format!(
            r#"# {name}: condor_submit nqueens.sub; then, once all are done: {program} merge {folder}/plan.json {folder}/results{ledger}
universe = vanilla
executable = {program}
transfer_executable = false
arguments = "run-unit {folder}/plan.json --index $(Process) --out {folder}/results{key} --threads {cpus}"
initialdir = {folder}
should_transfer_files = NO
request_cpus = {cpus}
request_memory = {memory}MB
log = {folder}/log/nqueens.log
output = {folder}/log/$(Process).txt
error = {folder}/log/$(Process).err
# On SIGTERM a task keeps its results and exits.
kill_sig = SIGTERM
# 75 and 85: run again; any other failure: hold the task for inspection.
on_exit_remove = (ExitBySignal == False) && (ExitCode == 0)
on_exit_hold = (ExitBySignal == False) && (ExitCode != 0) && (ExitCode != 75) && (ExitCode != 85)
on_exit_hold_reason = "a retry is useless; see the .err file"
{most}queue {parts}
"#,
            name = settings.name(),
            program = settings.program,
            cpus = settings.cpus,
            memory = settings.memory_mib,
            parts = settings.parts,
        )
    }
}
