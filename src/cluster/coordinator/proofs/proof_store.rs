//! The directory of a proof: its goal, its state and the results proved so far. Each file is
//! replaced atomically.
//!
//! | file | content |
//! |---|---|
//! | `job.json` | the [`ProofRecord`] |
//! | `refuted` | checked refutations for a first solution, written by [`resume`] |
//! | `unchecked` | refutations that were not checked yet, in the same format |
//! | `proved` | records for a most beautiful one, written by its engine, checked when read |
//! | `certificate` | the certificate, once everything is proved |

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::atomic_file::{self, AtomicFile};
use crate::cluster::campaign::JobState;
use crate::cluster::protocol::{Malformed, v1};
use crate::proof::Meter;
use crate::proof::beautiful::PartialProof;
use crate::solver::beautiful;
use crate::solver::first::{LARGEST, Refutations, resume};

/// The solution to be found and proved.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(in super::super) enum Goal {
    /// The lexicographically first solution on the board of this size.
    First {
        /// The board size.
        n: usize,
    },
    /// A most beautiful solution on the board of this size.
    Beautiful {
        /// The board size.
        n: usize,
    },
}

/// The maximum size of a file, in bytes.
const LARGEST_FILE: u64 = 1 << 30;

/// The largest board for most beautiful solutions, as for the command `beautiful`.
const LARGEST_BEAUTIFUL: usize = 250;

impl TryFrom<&v1::SubmitProofRequest> for Goal {
    type Error = Malformed;

    fn try_from(request: &v1::SubmitProofRequest) -> Result<Self, Malformed> {
        use v1::submit_proof_request::What as Asked;
        let (what, n, largest) =
            match request.what.ok_or(Malformed::Missing("what is to be proved"))? {
                Asked::First(first) => ("first", first.n, LARGEST),
                Asked::Beautiful(beautiful) => ("most beautiful", beautiful.n, LARGEST_BEAUTIFUL),
            };
        let too_large = || {
            Malformed::Problem(format!(
                "{what} solutions are supported up to n = {largest}, not for {n}"
            ))
        };
        let n = usize::try_from(n).ok().filter(|&n| n <= largest).ok_or_else(too_large)?;
        Ok(match request.what {
            Some(Asked::Beautiful(_)) => Self::Beautiful { n },
            _ => Self::First { n },
        })
    }
}

/// The saved record of a proof. In the file, the goal is called `what` and the state `stand`: names
/// of the format, which stay.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ProofRecord {
    #[serde(rename = "what")]
    pub(super) goal: Goal,
    /// The state; a proof is never disputed.
    #[serde(rename = "stand")]
    pub(super) state: JobState,
    /// The tasks of proofs of higher priority are leased first. Earlier versions had none.
    #[serde(default)]
    pub(super) priority: i32,
    /// The name of the submitter.
    pub(super) submitter: String,
    pub(super) submitted_ms: u64,
    /// The time at which it entered its state, in ms since 1970.
    #[serde(rename = "stand_ms")]
    pub(super) state_ms: u64,
    /// The 0-based columns of the solution. Once the proof is finished, `None` means that there is
    /// no solution.
    pub(super) solution: Option<Vec<usize>>,
}

/// The directory of a proof.
#[derive(Clone, Debug)]
pub(super) struct ProofStore {
    path: PathBuf,
}

impl ProofStore {
    pub(super) const fn new(path: PathBuf) -> Self {
        Self { path }
    }

    fn write(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        AtomicFile::begin(&self.path.join(name))?.finish_with(|out| out.write_all(bytes))
    }

    fn read(&self, name: &str) -> io::Result<Vec<u8>> {
        atomic_file::read(&self.path.join(name), LARGEST_FILE)
    }

    /// Reads a file. Returns `None` if nothing was saved.
    fn read_saved(&self, name: &str) -> io::Result<Option<Vec<u8>>> {
        match self.read(name) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            read => read.map(Some),
        }
    }

    pub(super) fn write_record(&self, record: &ProofRecord) -> io::Result<()> {
        fs::create_dir_all(&self.path)?;
        self.write("job.json", &serde_json::to_vec(record)?)
    }

    pub(super) fn record(&self) -> io::Result<ProofRecord> {
        Ok(serde_json::from_slice(&self.read("job.json")?)?)
    }

    /// Saves refutations: those that are checked, and others.
    pub(super) fn write_refuted(
        &self,
        n: usize,
        (checked, unchecked): (Refutations, Refutations),
    ) -> io::Result<()> {
        self.write("refuted", &resume::write(n, &checked))?;
        self.write("unchecked", &resume::write(n, &unchecked))
    }

    /// Reads the saved refutations, without checking them: those that were checked before they were
    /// saved, and others. Returns none if nothing was saved.
    pub(super) fn refuted(&self, n: usize) -> io::Result<(Refutations, Refutations)> {
        let read = |name| {
            let Some(bytes) = self.read_saved(name)? else { return Ok(Refutations::new()) };
            resume::read_unchecked(n, &bytes).map_err(|error| io::Error::other(error.to_string()))
        };
        Ok((read("refuted")?, read("unchecked")?))
    }

    pub(super) fn write_proved(&self, state: &[u8]) -> io::Result<()> {
        self.write("proved", state)
    }

    /// Reads the saved partial proof of a most beautiful solution and checks it. Returns `None` if
    /// nothing was saved.
    pub(super) fn proved(
        &self,
        query: &beautiful::Query,
        meter: &mut Meter<'_>,
    ) -> io::Result<Option<PartialProof>> {
        let Some(bytes) = self.read_saved("proved")? else { return Ok(None) };
        let begun = beautiful::resume::read_within(query, &bytes, meter);
        begun.map(Some).map_err(|error| io::Error::other(error.to_string()))
    }

    pub(super) fn write_certificate(&self, certificate: &[u8]) -> io::Result<()> {
        self.write("certificate", certificate)
    }

    pub(super) fn certificate(&self) -> io::Result<Vec<u8>> {
        self.read("certificate")
    }

    /// Returns the directories in `parent` that have a record.
    pub(super) fn all(parent: &Path) -> io::Result<Vec<Self>> {
        let entries = match fs::read_dir(parent) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries?,
        };
        let mut paths: Vec<PathBuf> =
            entries.map(|entry| Ok(entry?.path())).collect::<io::Result<Vec<PathBuf>>>()?;
        paths.retain(|path| path.join("job.json").exists());
        paths.sort();
        Ok(paths.into_iter().map(Self::new).collect())
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}
