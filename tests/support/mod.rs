//! Helpers of tests with real processes: coordinators, channels to them, and workers made from the
//! library.

// Each test program uses a part of it.
#![allow(dead_code, unreachable_pub, unused_imports)]

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use nqueens::cluster::auth::{Authority, Credentials, KeyRequest, Name, Role, SigningKey};
use nqueens::cluster::campaign::{
    Assignment, HeldLease, ResultSignature, Source, UnitId, UnitResult, possession_message,
};
use nqueens::cluster::coordinator::{AddressFile, authority_folder, now_ms, operator_folder};
use nqueens::cluster::protocol::{Address, BUILD, Channel, Security, messages, peer, v1};
use nqueens::decomposition::{Decomposition, Job, JobHash};
use nqueens::kernel::{KernelKind, count_sub_ranges};
use nqueens::tally::Parts;

pub mod program;
pub mod seeds;

pub use program::{Scratch, printed, run};

/// The path of the program.
pub const NQUEENS: &str = env!("CARGO_BIN_EXE_nqueens");

/// Longer than anything takes on the slowest machine.
pub const PATIENCE: Duration = Duration::from_secs(120);

/// Waits until `look` returns a value, and returns it.
pub fn eventually<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let began = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(began.elapsed() < PATIENCE, "no {what} within {PATIENCE:?}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// A process that is killed when it is dropped.
pub struct Process(pub Child);

impl Process {
    pub fn kill(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }

    /// Asks it to stop with SIGTERM.
    #[cfg(unix)]
    pub fn terminate(&self) {
        use rustix::process::{Pid, Signal, kill_process};
        let pid = Pid::from_raw(self.0.id().try_into().expect("a pid")).expect("a pid");
        kill_process(pid, Signal::TERM).expect("it runs");
    }

    /// Waits until it ends, and returns its exit code.
    pub fn wait(&mut self, what: &str) -> i32 {
        eventually(what, || self.0.try_wait().expect("our own child process")).code().unwrap_or(-1)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

/// A coordinator in its own process.
pub struct Coordinator {
    pub process: Process,
    data: PathBuf,
    arguments: Vec<String>,
    is_quiet: bool,
    /// The address that it listened on first, and again after a restart.
    pub address: Address,
}

impl Coordinator {
    /// Starts a coordinator, with TLS if there is an authority in its folder.
    pub fn start(data: &Path, arguments: &[&str]) -> Self {
        Self::start_as(data, arguments, false)
    }

    /// Starts a coordinator that logs errors only, for tests that cause many warnings.
    pub fn start_quietly(data: &Path, arguments: &[&str]) -> Self {
        Self::start_as(data, arguments, true)
    }

    fn start_as(data: &Path, arguments: &[&str], is_quiet: bool) -> Self {
        let arguments: Vec<String> = arguments.iter().map(|&word| word.to_owned()).collect();
        let (process, address) = Self::launch(data, &arguments, "127.0.0.1:0", is_quiet);
        Self { process, data: data.to_owned(), arguments, is_quiet, address }
    }

    fn launch(
        data: &Path,
        arguments: &[String],
        listen: &str,
        is_quiet: bool,
    ) -> (Process, Address) {
        let _ = std::fs::remove_file(data.join("address.json"));
        // A write beyond the limit that some tests set fails instead of killing the process.
        let mut command = Command::new("sh");
        command.args([
            "-c",
            "trap '' XFSZ 2>/dev/null; exec \"$0\" \"$@\"",
            NQUEENS,
            "coordinator",
            "--listen",
        ]);
        command.args([listen, "--log-level", "warn", "--data"]).arg(data).args(arguments);
        // Few, so that restarts use snapshots and the entries after them.
        command.args(["--snapshot-every", "10"]);
        if is_quiet {
            command.stderr(Stdio::null());
        }
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).spawn().expect("a shell");
        let mut process = Process(child);
        let address = eventually("coordinator that listens", || {
            let ended = process.0.try_wait().expect("our own child process");
            assert!(ended.is_none(), "the coordinator ended with {ended:?}");
            Some(AddressFile::read(data).ok()?.address.parse().expect("an address"))
        });
        (process, address)
    }

    pub fn data(&self) -> &str {
        self.data.to_str().expect("UTF-8")
    }

    /// Kills it and starts it again at the same address.
    pub fn restart(&mut self) {
        self.process.kill();
        let address = self.address.to_string();
        (self.process, _) = Self::launch(&self.data, &self.arguments, &address, self.is_quiet);
    }

    /// Returns a channel for a client on the same machine.
    pub fn channel(&self) -> Channel {
        let security = match Credentials::load(&operator_folder(&self.data)) {
            Ok(credentials) => Security::Tls(credentials.authority(), Some(Box::new(credentials))),
            Err(_) => Security::Plain,
        };
        Channel::new(&self.address, &security, PATIENCE).expect("a channel")
    }

    /// Returns the only job, or the one that was submitted last.
    pub async fn last_job(&self) -> v1::JobStatus {
        let status = self.channel().operations().status(v1::StatusRequest::default()).await;
        status.expect("answered").into_inner().jobs.pop().expect("a job")
    }
}

/// Creates an authority for the coordinator in `data`.
pub fn authority(data: &Path) -> Authority {
    Authority::init(&authority_folder(data), &[], now_ms()).expect("an authority")
}

/// Creates credentials as enrolment does.
pub fn credentials(authority: &Authority, name: &str, role: Role) -> Credentials {
    let name: Name = name.parse().expect("a name");
    let token = authority
        .create_token(role, 1.try_into().expect("one"), 60_000, now_ms())
        .expect("a token");
    let key = KeyRequest::new(&name).expect("a key");
    let issued = authority.enroll(&token, &name, key.request(), now_ms()).expect("enrolled");
    key.into_credentials(authority.fingerprint(), &issued.certificate_pem, &issued.authority_pem)
        .expect("an answer")
}

/// A worker made from the library: it counts with the scalar kernel and acts as its test demands.
pub struct Worker {
    pub name: String,
    pub channel: Channel,
    pub boot: u64,
    pub kernels: Vec<String>,
    pub held: Vec<Assignment>,
    /// The key with which it signs its results, if it does.
    pub key: Option<SigningKey>,
    jobs: Vec<Job>,
    decompositions: std::collections::HashMap<JobHash, Decomposition>,
}

impl Worker {
    pub fn new(name: &str, channel: Channel) -> Self {
        Self {
            name: name.to_owned(),
            channel,
            boot: fastrand::u64(..),
            kernels: vec!["scalar".into(), "generic".into()],
            held: Vec::new(),
            key: None,
            jobs: Vec::new(),
            decompositions: Default::default(),
        }
    }

    pub fn sync_request(&self) -> v1::SyncRequest {
        let held = self.held.iter().map(|lease| {
            let left = lease.units.end - lease.units.start;
            messages::held(&HeldLease { lease: lease.clone(), left, unstarted: left })
        });
        let cpu = v1::Device { id: "cpu".into(), capacity: 4, ..v1::Device::default() };
        v1::SyncRequest {
            peer: peer(),
            worker: self.name.clone(),
            boot: self.boot,
            capacity: 4,
            kernels: self.kernels.clone(),
            held: held.collect(),
            devices: vec![cpu],
            result_key: self.key.as_ref().map_or(Vec::new(), |key| key.public().into()),
            key_signature: self
                .key
                .as_ref()
                .map_or(Vec::new(), |key| key.sign(&possession_message(&self.name)).into()),
            ..v1::SyncRequest::default()
        }
    }

    /// Signs a result of a lease, if the worker has a key.
    pub fn sign(&self, lease: &Assignment, result: &mut UnitResult) {
        if let Some(key) = &self.key {
            let statement = result.statement(lease.mirrored, lease.sub_ranges);
            let signature = key.sign(&statement.to_bytes());
            result.signature =
                Some(ResultSignature { commitment: statement.commitment, signature });
        }
    }

    /// Syncs. Returns the number of leases that it holds then.
    pub async fn sync(&mut self) -> Result<usize, tonic::Status> {
        let answer = self.channel.work().sync(self.sync_request()).await?.into_inner();
        for job in &answer.jobs {
            let job: Job = job.text.parse().expect("a job's text");
            if !self.jobs.contains(&job) {
                self.jobs.push(job);
            }
        }
        self.held = messages::desired(answer.desired).expect("leases");
        Ok(self.held.len())
    }

    /// Counts a unit, or the sub-ranges of it that the lease names.
    pub fn count(&mut self, lease: &Assignment, unit: u64) -> UnitResult {
        let kernel = if lease.not_kernel.as_deref() == Some("scalar") {
            KernelKind::Generic
        } else {
            KernelKind::Scalar
        };
        let job =
            self.jobs.iter().find(|job| job.hash() == lease.job).expect("its text came with it");
        let decomposition =
            self.decompositions.entry(lease.job).or_insert_with(|| Decomposition::new(job.clone()));
        let image = lease.mirrored.then(|| decomposition.mirrored());
        let decomposition = image.as_ref().unwrap_or(decomposition);
        let mut counting = kernel.build(job.problem().piece()).expect("for queens");
        let named =
            |number| lease.sub_ranges.is_empty() || lease.sub_ranges.numbers().any(|n| n == number);
        let ranges =
            decomposition.sub_ranges(unit).zip(0u32..).filter(|&(_, number)| named(number));
        let ranges = ranges.map(|(range, _)| range);
        let counted = count_sub_ranges(&mut *counting, decomposition, ranges).expect("counts");
        let mut parts = Parts::default();
        counted.iter().try_for_each(|sub_range| parts.merge(sub_range)).expect("small");
        let sub_sums =
            counted.iter().map(|sub_range| sub_range.total().expect("agrees").thirds()).collect();
        let source = Source {
            worker: self.name.clone(),
            // The coordinator knows the owner.
            owner: String::new(),
            kernel: kernel.name().to_owned(),
            device: "cpu".into(),
            build: BUILD.to_owned(),
        };
        let tally = parts.total().expect("agrees");
        let unit = UnitId { job: lease.job, unit };
        let (attempt, grant) = (lease.attempt, lease.grant.clone());
        UnitResult {
            unit,
            attempt,
            grant,
            tally,
            parts,
            sub_sums,
            source,
            elapsed_s: 0.01,
            signature: None,
        }
    }

    pub async fn complete(
        &self,
        results: &[UnitResult],
    ) -> Result<Vec<v1::Verdict>, tonic::Status> {
        let results = results.iter().map(messages::result).collect();
        let request = v1::CompleteRequest { peer: peer(), worker: self.name.clone(), results };
        let answer = self.channel.work().complete(request).await?.into_inner();
        Ok(answer.verdicts().collect())
    }

    /// Counts all held units, changes the results by `tamper`, signs them, and submits them.
    pub async fn work(
        &mut self,
        tamper: impl Fn(&mut UnitResult),
    ) -> Result<Vec<v1::Verdict>, tonic::Status> {
        let mut done = Vec::new();
        for lease in std::mem::take(&mut self.held) {
            for unit in lease.units.clone() {
                let mut result = self.count(&lease, unit);
                tamper(&mut result);
                self.sign(&lease, &mut result);
                done.push(result);
            }
        }
        self.complete(&done).await
    }

    /// Syncs and counts until no job of the coordinator is running.
    pub async fn work_until_done(&mut self) {
        loop {
            let answer =
                self.channel.work().sync(self.sync_request()).await.expect("answered").into_inner();
            if answer.running_jobs == 0 {
                return;
            }
            if self.sync().await.expect("answered") == 0 {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
            self.work(|_| ()).await.expect("answered");
        }
    }
}

/// Submits the count of a board.
pub async fn submit(channel: &Channel, n: u32, priority: i32) -> String {
    let request =
        v1::SubmitRequest { piece: "queen".into(), n, priority, ..v1::SubmitRequest::default() };
    let answer = channel.operations().submit(request).await.expect("submitted").into_inner();
    answer.job.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Submits the count of an empty board of queens by the given subproblems.
pub async fn submit_by(
    channel: &Channel,
    n: u32,
    subproblems: v1::Subproblems,
) -> v1::SubmitResponse {
    let mut request =
        v1::SubmitRequest { piece: "queen".into(), n, ..v1::SubmitRequest::default() };
    request.set_subproblems(subproblems);
    channel.operations().submit(request).await.expect("submitted").into_inner()
}

/// Returns the solutions of a job whose units are all done.
pub fn solutions(job: &v1::JobStatus) -> u128 {
    assert_eq!(job.done, job.units, "units that are missing");
    let tally = nqueens::tally::Tally::try_from(job.total.as_ref().expect("a total"))
        .expect("a valid tally");
    tally.solutions().expect("agrees with its residues")
}
