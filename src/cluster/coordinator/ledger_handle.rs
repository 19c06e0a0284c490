//! The campaign actor's access to its ledger, which may be read-only or closed for a while.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::cluster::ledger::{CampaignFile, Entry, LedgerError};
use crate::cluster::storage::{SnapshotError, SnapshotFile};
use crate::decomposition::JobHash;

/// The ledger of a campaign actor.
#[derive(Debug)]
pub(super) struct LedgerHandle {
    path: PathBuf,
    snapshot_path: PathBuf,
    /// `None` while the ledger must be reopened; read-only while it cannot be written.
    file: Option<CampaignFile>,
    /// The time of the next attempt to open a read-only ledger for writing.
    retry_at: Instant,
    /// The current problem with the ledger, for operators.
    trouble: Option<String>,
    /// True once a check has found damage; nothing is written any more.
    is_refused: bool,
}

impl LedgerHandle {
    /// Creates the handle of the ledger at `path`, which is not opened yet.
    pub(super) fn new(path: PathBuf) -> Self {
        let snapshot_path = path.with_extension("snapshot");
        let retry_at = Instant::now();
        Self { path, snapshot_path, file: None, retry_at, trouble: None, is_refused: false }
    }

    /// Returns the folder of the ledger.
    pub(super) fn folder(&self) -> PathBuf {
        self.path.parent().map_or_else(PathBuf::new, Path::to_owned)
    }

    /// Closes the ledger and opens it for writing. The new file is in use only after
    /// [`Self::attach`].
    pub(super) fn open(&mut self) -> Result<CampaignFile, LedgerError> {
        // Close the old handle first, to release its lock. This includes a read-only handle:
        // closing it later would release the locks of another handle in this process.
        self.close();
        CampaignFile::open(&self.path)
    }

    /// Opens the ledger for writing with the state of a snapshot. The new file is in use only after
    /// [`Self::attach`].
    pub(super) fn open_with(
        &mut self,
        snapshot: &Arc<SnapshotFile>,
    ) -> Result<CampaignFile, LedgerError> {
        self.close();
        CampaignFile::open_with(&self.path, snapshot)
    }

    /// Returns the path of the snapshot of the ledger.
    pub(super) fn snapshot_path(&self) -> &Path {
        &self.snapshot_path
    }

    /// Creates the error for a snapshot that cannot be read.
    pub(super) fn unreadable_snapshot(&self, source: SnapshotError) -> LedgerError {
        LedgerError::Snapshot { path: self.path.clone(), source }
    }

    /// Opens the ledger for reading only. The new file is in use only after [`Self::attach`].
    pub(super) fn open_read_only(&self) -> Result<CampaignFile, LedgerError> {
        CampaignFile::open_read_only(&self.path)
    }

    /// Sets the file that is read and written from now on.
    pub(super) fn attach(&mut self, file: CampaignFile) {
        self.file = Some(file);
    }

    /// Closes the ledger.
    pub(super) fn close(&mut self) {
        self.file = None;
    }

    pub(super) const fn file(&self) -> Option<&CampaignFile> {
        self.file.as_ref()
    }

    pub(super) const fn file_mut(&mut self) -> Option<&mut CampaignFile> {
        self.file.as_mut()
    }

    pub(super) const fn is_closed(&self) -> bool {
        self.file.is_none()
    }

    pub(super) fn is_read_only(&self) -> bool {
        self.file.as_ref().is_some_and(CampaignFile::is_read_only)
    }

    /// Appends entries to an open ledger. Returns the time that this took, or `None` if the ledger
    /// is closed. Closes the ledger if its state on disk is unknown after an error.
    pub(super) fn append(&mut self, entries: &[Entry]) -> Option<Result<Duration, LedgerError>> {
        let file = self.file.as_mut()?;
        let began = Instant::now();
        let appended = file.append(entries).map(|()| began.elapsed());
        if let Err(LedgerError::EarlierSyncFailed(_) | LedgerError::ConcurrentWrite(_)) = &appended
        {
            self.close();
        }
        Some(appended)
    }

    /// Creates the error for a job whose total in the campaign differs from that in the ledger.
    pub(super) fn unequal_totals(&self, job: JobHash) -> LedgerError {
        LedgerError::UnequalTotals { path: self.path.clone(), job }
    }

    /// Returns the current problem with the ledger.
    pub(super) fn trouble(&self) -> Option<&str> {
        self.trouble.as_deref()
    }

    /// Records an error. Returns a description for operators, unless it is the same as before.
    pub(super) fn record_error(&mut self, error: &LedgerError) -> Option<String> {
        let trouble = match error {
            LedgerError::InvalidEntry { .. } | LedgerError::UnequalTotals { .. } => {
                error.to_string()
            }
            _ => format!("nothing is acknowledged: {error}"),
        };
        let is_new = self.trouble.as_ref() != Some(&trouble);
        self.trouble = Some(trouble.clone());
        is_new.then_some(trouble)
    }

    /// Records that a check has found damage in the ledger, to which nothing is written from now
    /// on. Returns a description for operators.
    pub(super) fn refuse(&mut self, finding: &str) -> String {
        self.is_refused = true;
        let trouble = format!(
            "nothing is acknowledged: ledger {}: {finding}; stop the coordinator and restore a copy",
            self.path.display()
        );
        self.trouble = Some(trouble.clone());
        trouble
    }

    /// Returns whether a check has found damage.
    pub(super) const fn is_refused(&self) -> bool {
        self.is_refused
    }

    /// Records that the ledger can be written. Returns whether there was a problem before.
    pub(super) fn record_success(&mut self) -> bool {
        self.trouble.take().is_some()
    }

    /// Returns whether the ledger is read-only and the next attempt to write it is due.
    pub(super) fn is_retry_due(&self) -> bool {
        self.is_read_only() && Instant::now() >= self.retry_at
    }

    /// Sets the time of the next attempt, after one that took `took`.
    pub(super) fn schedule_retry(&mut self, took: Duration) {
        const PAUSE: Duration = Duration::from_secs(5);
        self.retry_at = Instant::now() + PAUSE.max(took * 20);
    }

    /// Returns whether a file beside the ledger can be created and can hold as much data as opening
    /// a ledger writes.
    pub(super) fn can_write_beside(&self) -> bool {
        let probe = self.path.with_extension("probe");
        let written = std::fs::File::create(&probe).and_then(|mut file| {
            file.write_all(&[0; 128 << 10])?;
            file.sync_all()
        });
        let _ = std::fs::remove_file(&probe);
        written.is_ok()
    }
}
