//! The file of `first --resume` and `beautiful --resume`.

use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use super::atomic_file;
use super::max_work::{self, MaxWork};
use super::output_file::OutputFile;
use super::terminal::Terminal;
use super::{Exit, Failure, note};
use crate::proof::{LARGEST_FILE, Meter, ProofError};
use crate::solver::ResumeError;

/// The minimum time between two writes during a search.
const WRITE_EVERY: Duration = Duration::from_secs(2);

/// The file of `--resume`; without the flag nothing is read or written.
#[derive(Debug)]
pub(super) struct ResumeFile<'a> {
    path: Option<&'a Path>,
    written: Instant,
    /// The failure of the last write.
    failure: Option<Failure>,
}

impl<'a> ResumeFile<'a> {
    /// Creates the file at `path`, the value of the flag.
    pub(super) fn new(path: Option<&'a Path>) -> Self {
        Self { path, written: Instant::now(), failure: None }
    }

    /// Reads what an earlier run has saved, with `read`; `None` if there is no such file.
    pub(super) fn read<T>(
        &self,
        max_work: MaxWork,
        terminal: &Terminal,
        read: impl FnOnce(&[u8], &mut Meter<'_>) -> Result<T, ResumeError>,
    ) -> Result<Option<T>, Failure> {
        let Some(path) = self.path else { return Ok(None) };
        let failure = |error: &dyn std::fmt::Display| {
            let message = format!("cannot resume from {}: {error}", path.display());
            Failure::new(Exit::File, message)
        };
        let bytes = match atomic_file::read(path, LARGEST_FILE) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                // A file that cannot be written is an error before the search.
                begin(path)?;
                return Ok(None);
            }
            Err(error) => return Err(failure(&error)),
        };
        let is_over = || terminal.is_over();
        let mut meter = max_work.meter().stopped_by(&is_over);
        let saved = read(&bytes, &mut meter).map_err(|error| match error {
            ResumeError::Undecided(ProofError::Stopped) if terminal.is_interrupted() => {
                let message =
                    format!("interrupted while checking {}, which is unchanged", path.display());
                Failure::new(Exit::Interrupted, message)
            }
            ResumeError::Undecided(error) => max_work::failure(&path.display(), &error, Exit::File),
            error => failure(&error),
        })?;
        Ok(Some(saved))
    }

    /// Prints a note on what an earlier run has saved.
    pub(super) fn note_resumed(&self, saved: &str) {
        let Some(path) = self.path else { return };
        note(&format!("{}: resuming after {saved}, which were verified again", path.display()));
    }

    /// Writes the state of a search, unless it was written a moment ago.
    pub(super) fn write_if_due(&mut self, state: impl FnOnce() -> Vec<u8>) {
        if self.written.elapsed() >= WRITE_EVERY {
            self.write(state);
        }
    }

    /// Writes the state of a search.
    pub(super) fn write(&mut self, state: impl FnOnce() -> Vec<u8>) {
        let Some(path) = self.path else { return };
        let state = state();
        self.failure = begin(path).and_then(|file| file.finish(&state)).err();
        self.written = Instant::now();
    }

    /// Returns the failure if the last write failed.
    pub(super) fn into_failure(self) -> Option<Failure> {
        self.failure
    }
}

fn begin(path: &Path) -> Result<OutputFile<'_>, Failure> {
    OutputFile::begin("checkpoint", path)
}
