//! Proofs: first solutions that workers search for together.
//!
//! A thread for each proof that runs asks the queries of [`exact::first_by`]; at its desks sit workers, who take tasks
//! from the [`Pool`] through the protocol. Whatever they answer is checked before it is believed, so that a proof is as
//! good as if this machine had found it alone, and needs no second opinion. What is refuted is on disk some seconds later,
//! and a coordinator that starts again goes on from there.
//!
//! | file | what it is |
//! |---|---|
//! | `pool.rs` | tasks: who asks waits, who works takes |
//! | `desk.rs` | a desk where workers answer; the check of their answers |
//! | `folder.rs` | what is kept of a proof |

mod desk;
mod folder;
mod pool;

use std::collections::BTreeMap;
use std::io;
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use sha2::{Digest as _, Sha256};

use self::desk::{Desk, Judgement, Listening, Room};
pub(super) use self::folder::What;
use self::folder::{Folder, Record, Stand};
use self::pool::Answered;
pub(super) use self::pool::Pool;
use super::books;
use super::chronicle::{Chronicle, Happening};
use super::news::{Crier, Kind, News};
use super::now_ms;
use super::requests::{StateError, Submitted};
use crate::campaign::JobState;
use crate::optimise::exact::{self, Answering, Found, Options, Outcome, Refutations};
use crate::optimise::{Progress, Watch};
use crate::preplacement::JobHash;
use crate::proof;
use crate::wire::v1::{self, EventKind};

/// Queries of one proof that are open at a time.
const DESKS: usize = 64;
/// What is refuted is kept at most this often.
const KEEP_EVERY: Duration = Duration::from_secs(2);

/// Who is to hear of a worker whose answer was wrong: its name, and why.
pub(super) type Accuse = Box<dyn Fn(&str, &str) + Send + Sync>;

/// Who hears of what happens to proofs.
struct Ears {
    accuse: Accuse,
    crier: Crier,
    chronicle: Chronicle,
}

impl What {
    /// Its canonical text, which names it.
    fn text(self) -> String {
        match self {
            Self::First { n } => format!("nqueens first {n}"),
        }
    }

    fn job(self) -> JobHash {
        let digest = Sha256::digest(self.text());
        let mut name = [0; 16];
        name.copy_from_slice(&digest[..16]);
        JobHash::from_bytes(name)
    }

    const fn n(self) -> usize {
        match self {
            Self::First { n } => n,
        }
    }
}

impl From<Stand> for JobState {
    fn from(stand: Stand) -> Self {
        match stand {
            Stand::Running => Self::Running,
            Stand::Paused => Self::Paused,
            Stand::Cancelled => Self::Cancelled,
            Stand::Finished => Self::Finished,
        }
    }
}

/// What a worker did for a proof.
#[derive(Clone, Copy, Debug, Default)]
struct Prover {
    answered: u64,
    given_up: u64,
    nodes: u64,
    programmes: u64,
    elapsed_s: f64,
}

/// What changes of a proof.
#[derive(Debug)]
struct Standing {
    record: Record,
    /// Its length, and its SHA-256.
    certificate: Option<(u64, Vec<u8>)>,
    notes: Vec<String>,
    provers: BTreeMap<String, Prover>,
    checking: Duration,
}

/// A proof.
struct Proof {
    what: What,
    folder: Folder,
    standing: Mutex<Standing>,
    /// Its thread is to end.
    stop: AtomicBool,
    /// The row that its queries decide.
    row: AtomicU32,
    refuted: AtomicU64,
    thread: Mutex<Option<JoinHandle<()>>>,
    ears: Arc<Ears>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // No code that holds one of these locks can panic half-way through a change.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Listening for Proof {
    fn judged(&self, answered: &Answered, judgement: &Judgement, took: Duration) {
        let Answered { worker, answer } = answered;
        {
            let mut standing = lock(&self.standing);
            standing.checking += took;
            if *judgement == Judgement::Good {
                let prover = standing.provers.entry(worker.clone()).or_default();
                prover.answered += 1;
                prover.given_up += u64::from(answer.outcome == Outcome::GivenUp);
                prover.nodes = prover.nodes.saturating_add(answer.nodes);
                prover.programmes = prover.programmes.saturating_add(answer.programmes);
                prover.elapsed_s += answer.elapsed_s;
            }
        }
        if let Judgement::Wrong(why) = judgement {
            let text = self.what.text();
            tracing::error!(worker, proof = text, why, "an answer is wrong");
            self.note(format!("{worker} is not believed any more: {why}"));
            (self.ears.accuse)(worker, &format!("its answer for {text} is wrong: {why}"));
        }
    }
}

impl Proof {
    fn new(what: What, folder: Folder, record: Record, ears: &Arc<Ears>) -> Self {
        let certificate = folder.certificate().ok().filter(|_| record.stand == Stand::Finished);
        let certificate = certificate.map(|bytes| (bytes.len() as u64, Sha256::digest(&bytes).to_vec()));
        let standing = Standing {
            record,
            certificate,
            notes: Vec::new(),
            provers: BTreeMap::new(),
            checking: Duration::ZERO,
        };
        Self {
            what,
            folder,
            standing: Mutex::new(standing),
            stop: AtomicBool::new(false),
            row: AtomicU32::new(0),
            refuted: AtomicU64::new(0),
            thread: Mutex::new(None),
            ears: Arc::clone(ears),
        }
    }

    fn note(&self, note: String) {
        /// More help nobody.
        const MOST: usize = 20;
        let mut standing = lock(&self.standing);
        if standing.notes.len() < MOST && !standing.notes.contains(&note) {
            standing.notes.push(note);
        }
    }

    fn stand(&self) -> Stand {
        lock(&self.standing).record.stand
    }

    /// Has it stand so, on disk first.
    fn come_to(&self, stand: Stand, solution: Option<Vec<usize>>) -> io::Result<()> {
        let mut standing = lock(&self.standing);
        let record = Record { stand, stand_ms: now_ms(), solution, ..standing.record.clone() };
        self.folder.keep(&record)?;
        standing.record = record;
        Ok(())
    }

    /// Ends its thread, and waits for that.
    fn end(&self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = lock(&self.thread).take() {
            let _ = thread.join();
        }
    }

    /// Starts its thread.
    fn begin(self: &Arc<Self>, pool: &Arc<Pool>, room: &Arc<Room>) -> io::Result<()> {
        self.end();
        self.stop.store(false, Ordering::Relaxed);
        let (proof, pool, room) = (Arc::clone(self), Arc::clone(pool), Arc::clone(room));
        let work = move || {
            let outcome = catch_unwind(AssertUnwindSafe(|| proof.search(&pool, &room)));
            let trouble = match outcome {
                Ok(Ok(())) => return,
                Ok(Err(error)) => format!("{} cannot be used: {error}", proof.folder.path().display()),
                Err(_) => "its search ended in an error of its own; please report it".to_owned(),
            };
            tracing::error!(proof = proof.what.text(), "{trouble}");
            proof.note(trouble);
            // Until somebody resumes it.
            let _ = proof.come_to(Stand::Paused, None);
            lock(&proof.standing).record.stand = Stand::Paused;
        };
        *lock(&self.thread) = Some(std::thread::Builder::new().name("proof".into()).spawn(work)?);
        Ok(())
    }

    /// Searches until it is proved or told to stop.
    fn search(self: &Arc<Self>, pool: &Arc<Pool>, room: &Arc<Room>) -> io::Result<()> {
        let n = self.what.n();
        let refuted = self.folder.refuted(n)?;
        let desk = |_| -> Box<dyn Answering> {
            Box::new(Desk {
                job: self.what.job(),
                n,
                pool: Arc::clone(pool),
                room: Arc::clone(room),
                listener: Arc::clone(self) as Arc<dyn Listening>,
            })
        };
        let desks = (0..DESKS).map(desk).collect();
        let options = Options { refuted, ..Options::default() };
        let mut book = Book { proof: self, written: Instant::now() };
        let found = exact::first_by(n, options, desks, &mut Looking(self), &mut |refuted| book.keep(refuted));
        self.folder.keep_refuted(n, &found.refuted)?;
        if found.finished { self.finish(found) } else { Ok(()) }
    }

    /// Writes the certificate, which is checked as a whole, and is finished.
    fn finish(&self, found: Found) -> io::Result<()> {
        let n = self.what.n();
        let refutations = found.refutations(n);
        let refutations: Vec<_> = refutations.iter().collect();
        let certificate = proof::first::certificate(n, found.solution.as_deref(), &refutations);
        let certificate = certificate.map_err(|error| io::Error::other(error.to_string()))?;
        self.folder.keep_certificate(&certificate)?;
        lock(&self.standing).certificate =
            Some((certificate.len() as u64, Sha256::digest(&certificate).to_vec()));
        self.come_to(Stand::Finished, found.solution)?;
        tracing::info!(proof = self.what.text(), bytes = certificate.len(), "proved");
        let job = self.what.job().to_string();
        let text = format!("job {job} is finished: {} is proved", self.what.text());
        let proved = Happening::info(EventKind::Finished, text.clone());
        self.ears.chronicle.note(proved.of_job(self.what.job()));
        self.ears.crier.tell(News { kind: Kind::Finished, job: Some(job), worker: None, text });
        Ok(())
    }

    fn status(&self, pool: &Pool) -> v1::ProofStatus {
        let job = self.what.job();
        let (open, lent) = pool.open(job);
        let standing = lock(&self.standing);
        let Standing { record, certificate, notes, provers, checking } = &*standing;
        let columns = record.solution.iter().flatten().map(|&column| column as u32 + 1);
        let prover = |(worker, prover): (&String, &Prover)| v1::ProverStatus {
            worker: worker.clone(),
            answered: prover.answered,
            given_up: prover.given_up,
            nodes: prover.nodes,
            programmes: prover.programmes,
            elapsed_s: prover.elapsed_s,
        };
        let (certificate_bytes, certificate_sha256) = certificate.clone().unwrap_or_default();
        let What::First { n } = self.what;
        v1::ProofStatus {
            job: job.to_bytes().into(),
            what: Some(v1::proof_status::What::First(v1::First { n: n as u32 })),
            state: v1::JobState::from(JobState::from(record.stand)).into(),
            submitter: record.submitter.clone(),
            submitted_ms: record.submitted_ms,
            state_ms: record.stand_ms,
            row: self.row.load(Ordering::Relaxed),
            open: open as u32,
            lent: lent as u32,
            refuted: self.refuted.load(Ordering::Relaxed),
            columns: columns.collect(),
            certificate_bytes,
            certificate_sha256,
            provers: provers.iter().map(prover).collect(),
            checking_s: checking.as_secs_f64(),
            notes: notes.clone(),
        }
    }
}

/// Stops the search with its proof, and says how far it is.
struct Looking<'a>(&'a Proof);

impl Watch for Looking<'_> {
    fn look(&mut self, progress: &Progress) -> ControlFlow<()> {
        self.0.row.store(progress.level as u32, Ordering::Relaxed);
        if self.0.stop.load(Ordering::Relaxed) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    fn time_left(&self) -> Option<Duration> {
        None
    }
}

/// Keeps what is refuted.
struct Book<'a> {
    proof: &'a Proof,
    written: Instant,
}

impl Book<'_> {
    fn keep(&mut self, refuted: &Refutations) {
        self.proof.refuted.store(refuted.len() as u64, Ordering::Relaxed);
        if self.written.elapsed() < KEEP_EVERY {
            return;
        }
        if let Err(error) = self.proof.folder.keep_refuted(self.proof.what.n(), refuted) {
            // Nothing is wrong but that it would be searched for again.
            self.proof.note(format!("what is refuted cannot be kept: {error}"));
        }
        self.written = Instant::now();
    }
}

impl Drop for Proofs {
    fn drop(&mut self) {
        self.stop();
    }
}

/// All proofs of a coordinator.
pub(super) struct Proofs {
    folder: PathBuf,
    pub(super) pool: Arc<Pool>,
    room: Arc<Room>,
    ears: Arc<Ears>,
    proofs: Mutex<BTreeMap<JobHash, Arc<Proof>>>,
    /// Held while any of them is submitted or changes how it stands, which may take a while.
    changing: Mutex<()>,
}

impl Proofs {
    /// Those in the folder `proofs` of `data`; those that ran go on.
    ///
    /// # Errors
    /// The folder cannot be read, or the system gives no thread.
    pub(super) fn open(
        data: &Path,
        accuse: Accuse,
        (crier, chronicle): (Crier, Chronicle),
    ) -> io::Result<Self> {
        let folder = data.join("proofs");
        let ears = Arc::new(Ears { accuse, crier, chronicle });
        let mut proofs = BTreeMap::new();
        for folder in Folder::all(&folder)? {
            let named = |error: io::Error| {
                io::Error::new(error.kind(), format!("{}: {error}", folder.path().join("job.json").display()))
            };
            let record = folder.record().map_err(named)?;
            let what = record.what;
            proofs.insert(what.job(), Arc::new(Proof::new(what, folder.clone(), record, &ears)));
        }
        let pool = Arc::new(Pool::new());
        let room = Arc::new(Room::new());
        let opened = Self { folder, pool, room, ears, proofs: Mutex::new(proofs), changing: Mutex::new(()) };
        for proof in lock(&opened.proofs).values().filter(|proof| proof.stand() == Stand::Running) {
            proof.begin(&opened.pool, &opened.room)?;
        }
        Ok(opened)
    }

    /// Ends all threads; what runs goes on when the coordinator starts again.
    pub(super) fn stop(&self) {
        let proofs: Vec<Arc<Proof>> = lock(&self.proofs).values().cloned().collect();
        proofs.iter().for_each(|proof| proof.stop.store(true, Ordering::Relaxed));
        proofs.iter().for_each(|proof| proof.end());
    }

    /// Begins a proof, or tells of the one that is known. One that was cancelled begins anew.
    ///
    /// # Errors
    /// It cannot be written down.
    pub(super) fn submit(&self, what: What, submitter: &str) -> io::Result<(JobHash, Submitted)> {
        let job = what.job();
        let _one_at_a_time = lock(&self.changing);
        let known = lock(&self.proofs).get(&job).cloned();
        if let Some(proof) = known {
            if proof.stand() == Stand::Cancelled {
                proof.come_to(Stand::Running, None)?;
                proof.begin(&self.pool, &self.room)?;
            }
            return Ok((job, Submitted { known: true, state: proof.stand().into(), priority: 0 }));
        }
        let folder = Folder::new(self.folder.join(job.to_string()));
        let at_ms = now_ms();
        let (stand, submitter) = (Stand::Running, submitter.to_owned());
        let record = Record { what, stand, submitter, submitted_ms: at_ms, stand_ms: at_ms, solution: None };
        folder.keep(&record)?;
        tracing::info!(%job, submitter = record.submitter, text = what.text(), "a proof is submitted");
        self.ears.chronicle.note(books::submitted(job, &what.text(), &record.submitter));
        let proof = Arc::new(Proof::new(what, folder, record, &self.ears));
        proof.begin(&self.pool, &self.room)?;
        lock(&self.proofs).insert(job, proof);
        Ok((job, Submitted { known: false, state: JobState::Running, priority: 0 }))
    }

    fn beginning_with(&self, digits: &str) -> Vec<(JobHash, Arc<Proof>)> {
        let proofs = lock(&self.proofs);
        let named = proofs.iter().filter(|(job, _)| job.to_string().starts_with(digits));
        named.map(|(&job, proof)| (job, Arc::clone(proof))).collect()
    }

    /// How those stand whose names begin with `digits`, in the order of their submission.
    pub(super) fn status(&self, digits: &str) -> Vec<v1::ProofStatus> {
        let named = self.beginning_with(digits);
        let mut all: Vec<v1::ProofStatus> = named.iter().map(|(_, proof)| proof.status(&self.pool)).collect();
        all.sort_by(|a, b| (a.submitted_ms, &a.job).cmp(&(b.submitted_ms, &b.job)));
        all
    }

    /// Those that are searched for.
    pub(super) fn running(&self) -> u32 {
        let running = lock(&self.proofs).values().filter(|proof| proof.stand() == Stand::Running).count();
        u32::try_from(running).unwrap_or(u32::MAX)
    }

    fn find(&self, digits: &str) -> Result<(JobHash, Arc<Proof>), StateError> {
        let mut found = self.beginning_with(digits);
        match (found.pop(), found.len()) {
            (Some(found), 0) => Ok(found),
            (Some(_), others) => Err(StateError::Ambiguous(digits.to_owned(), others + 1)),
            (None, _) => Err(StateError::NoSuchJob(digits.to_owned())),
        }
    }

    /// Pauses, resumes or cancels one; returns how it stood. Waits for its thread.
    ///
    /// # Errors
    /// There is no such proof, or it is over, or that cannot be written down.
    pub(super) fn set_state(
        &self,
        digits: &str,
        state: JobState,
        by: &str,
    ) -> Result<(JobHash, JobState), StateError> {
        let (job, proof) = self.find(digits)?;
        let _one_at_a_time = lock(&self.changing);
        let before = proof.stand();
        let stand = match (before, state) {
            (_, JobState::Running) if before != Stand::Finished => Stand::Running,
            (Stand::Running | Stand::Paused, JobState::Paused) => Stand::Paused,
            (_, JobState::Cancelled) if before != Stand::Finished => Stand::Cancelled,
            (Stand::Finished, JobState::Finished) => Stand::Finished,
            _ => return Err(StateError::over(job, before.into(), state)),
        };
        let unwritten = |error: io::Error| {
            tracing::error!(%job, "{error}");
            StateError::Unwritten(error.to_string())
        };
        if stand != before {
            if before == Stand::Running {
                proof.end();
                if proof.stand() == Stand::Finished {
                    // It was faster.
                    return Err(StateError::over(job, JobState::Finished, state));
                }
            }
            proof.come_to(stand, None).map_err(unwritten)?;
            tracing::info!(%job, state = super::keeper::name(state), "a proof changes its state");
            self.ears.chronicle.note(books::changed(job, state, by));
            if stand == Stand::Running {
                proof.begin(&self.pool, &self.room).map_err(unwritten)?;
            }
        }
        Ok((job, before.into()))
    }

    /// The certificate of one that is finished.
    ///
    /// # Errors
    /// There is no such proof, or it is not finished, or its certificate cannot be read.
    pub(super) fn certificate(&self, digits: &str) -> Result<Vec<u8>, StateError> {
        let (job, proof) = self.find(digits)?;
        match proof.stand() {
            Stand::Finished => proof.folder.certificate().map_err(|e| StateError::Unwritten(e.to_string())),
            stand => Err(StateError::Unproved(job, super::keeper::name(stand.into()))),
        }
    }
}
