//! Publishing a job: its [transparency log](crate::transparency), made from the ledger.
//!
//! The log is a function of the ledger: each entry of the ledger that matters to readers is
//! translated ([`LogEntries`]), in order. To publish again, everything is translated again,
//! compared with the root that was signed last, and only what is new is written. So a log never
//! differs from the ledger, and an older copy of a ledger is noticed.
//!
//! Workers and owners are not named: owners are numbered in the order of their first results. An
//! owner that wants to be named is named in a file of its own.

mod log_entries;

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

pub use log_entries::LogEntries;

use crate::cluster::auth::{SigningKey, SigningKeyError};
use crate::cluster::campaign::ResultKey;
use crate::cluster::ledger::{LedgerError, visit};
use crate::decomposition::JobHash;
use crate::transparency::checkpoint::{Checkpoint, CheckpointError, LogKey, MOST_CHECKPOINT_BYTES};
use crate::transparency::unit_index::{Page, UNITS};
use crate::transparency::writer::{LogWriter, write_file};

/// The name of the file with the key that signs the log, beside the ledger.
const KEY_FILE: &str = "publish.key";

/// A log as it was published.
#[derive(Clone, Debug)]
pub struct PublishedLog {
    /// The key that signs it.
    pub key: LogKey,
    /// Its state.
    pub checkpoint: Checkpoint,
    /// The number of entries that are new.
    pub new_entries: u64,
    /// The number of units.
    pub units: u64,
    /// The number of units with a result.
    pub counted: u64,
}

/// The reason why a job cannot be published.
#[derive(Debug, thiserror::Error)]
pub enum PublishError {
    /// The ledger cannot be read.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    /// The key cannot be used.
    #[error(transparent)]
    Key(#[from] SigningKeyError),
    /// The ledger has no such job.
    #[error("the ledger has no job {0}; nqueens ledger show lists its jobs")]
    NoSuchJob(JobHash),
    /// A file of the log cannot be read or written.
    #[error("the log in {path} cannot be written: {1}", path = .0.display())]
    Folder(PathBuf, io::Error),
    /// Another process is publishing into the folder.
    #[error("another process is publishing into {path}", path = .0.display())]
    InUse(PathBuf),
    /// The folder has another log.
    #[error("{path} has a log that this coordinator has not published ({1}); give another folder", path = .0.display())]
    AnotherLog(PathBuf, CheckpointError),
    /// The published log is not what follows from the ledger.
    #[error(
        "the log in {path} has {1} entries that do not follow from this ledger, which may be an older copy; \
         nothing was changed",
        path = .0.display()
    )]
    Diverged(PathBuf, u64),
    /// The job has too many units.
    #[error("job {0} has {1} units, more than a log can have")]
    TooManyUnits(JobHash, u64),
    /// An owner that is to be named has no result.
    #[error("no worker of the owner {0} has a result of this job")]
    NoSuchOwner(String),
}

/// Publishes a job of the ledger at `ledger` as a log in `folder`, or what is new since it was last
/// published there. The owners in `public_owners` are named.
///
/// # Errors
/// The ledger cannot be read or has no such job, or the folder cannot be written or has another log.
pub fn publish(
    ledger: &Path,
    job: JobHash,
    folder: &Path,
    public_owners: &[String],
) -> Result<PublishedLog, PublishError> {
    let at = |error| PublishError::Folder(folder.to_owned(), error);
    fs::create_dir_all(folder).map_err(at)?;
    let _lock = lock(folder)?;
    let signer = SigningKey::load_or_create(&ledger.with_file_name(KEY_FILE))?;
    let key = LogKey::of_job(job, ResultKey::from_bytes(signer.public()));
    let before = last_checkpoint(folder, &key)?;
    let published = before.map_or(0, |checkpoint| checkpoint.size);

    let mut writer = LogWriter::new(folder, published);
    let mut entries = LogEntries::new(job, published);
    // The root of the log at the size that was published, and an error that ended the translation.
    let (mut root_then, mut failed) = (None, None);
    visit(ledger, &mut |entry| {
        for translated in entries.translate(&entry) {
            if writer.frontier().size() == published {
                root_then = Some(writer.frontier().root());
                if before.is_some_and(|before| Some(before.root) != root_then) {
                    return false;
                }
            }
            if let Err(error) = writer.append(&translated.to_bytes()) {
                failed = Some(error);
                return false;
            }
        }
        true
    })?;
    if let Some(error) = failed {
        return Err(at(error));
    }
    let size = writer.frontier().size();
    if size == published {
        root_then = Some(writer.frontier().root());
    }
    if before.is_some_and(|before| Some(before.root) != root_then) {
        return Err(PublishError::Diverged(folder.to_owned(), published));
    }
    if let Some(units) = entries.excess_units() {
        return Err(PublishError::TooManyUnits(job, units));
    }
    if size == 0 {
        return Err(PublishError::NoSuchJob(job));
    }
    let owners = owners_note(&entries, &key, public_owners, &signer)?;

    writer.finish().map_err(at)?;
    let checkpoint = Checkpoint { size, root: writer.frontier().root() };
    let write = |path: &str, text: &str| write_file(folder, path, text.as_bytes()).map_err(at);
    write_units(folder, &entries).map_err(at)?;
    write("key", &format!("{key}\n"))?;
    write("owners", &owners)?;
    write("README.txt", README)?;
    let note = checkpoint.sign(&key, &signer);
    append_checkpoint(folder, &note).map_err(at)?;
    // Last, so that whatever it states is there.
    write("checkpoint", &note)?;
    Ok(PublishedLog {
        key,
        checkpoint,
        new_entries: size - published,
        units: entries.results().map_or(0, |results| results.units()),
        counted: entries.results().map_or(0, |results| results.counted()),
    })
}

/// Locks the folder against other publishers, until the file is closed.
fn lock(folder: &Path) -> Result<File, PublishError> {
    let at = |error| PublishError::Folder(folder.to_owned(), error);
    let mut options = File::options();
    let file = options.write(true).create(true).truncate(false);
    let file = file.open(folder.join(".lock")).map_err(at)?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(PublishError::InUse(folder.to_owned())),
        Err(TryLockError::Error(error)) => Err(at(error)),
    }
}

/// Returns the last checkpoint of the log in the folder, if there is a log.
fn last_checkpoint(folder: &Path, key: &LogKey) -> Result<Option<Checkpoint>, PublishError> {
    let path = folder.join("checkpoint");
    match crate::atomic_file::read_text(&path, MOST_CHECKPOINT_BYTES) {
        Ok(note) => Checkpoint::open(&note, key)
            .map(Some)
            .map_err(|error| PublishError::AnotherLog(folder.to_owned(), error)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(PublishError::Folder(folder.to_owned(), error)),
    }
}

/// Returns the signed note with the names of owners: the name of the log and "owners", and for each
/// owner its number and its name.
fn owners_note(
    entries: &LogEntries,
    key: &LogKey,
    names: &[String],
    signer: &SigningKey,
) -> Result<String, PublishError> {
    let mut text = format!("{}\nowners\n", key.name());
    for name in names {
        let number = entries.owner_number(name);
        let number = number.ok_or_else(|| PublishError::NoSuchOwner(name.clone()))?;
        text += &format!("{number} {name}\n");
    }
    Ok(key.sign(&text, signer))
}

/// Writes the pages of the index that differ from those that were published.
fn write_units(folder: &Path, entries: &LogEntries) -> io::Result<()> {
    let Some(results) = entries.results() else { return Ok(()) };
    for &number in entries.changed_pages() {
        let first = number * UNITS;
        let units = first..results.units().min(first + UNITS);
        let page = Page::new(units.map(|unit| results.get(unit).map(|result| result.entry)));
        write_file(folder, &Page::path(first), page.as_bytes())?;
    }
    Ok(())
}

/// Appends a checkpoint to the list of all, unless it is the last one there.
fn append_checkpoint(folder: &Path, note: &str) -> io::Result<()> {
    const FILE: &str = "checkpoints.jsonl";
    let line = serde_json::to_string(note)? + "\n";
    let mut lines = match fs::read_to_string(folder.join(FILE)) {
        Ok(lines) => lines,
        Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
        Err(error) => return Err(error),
    };
    if lines.lines().next_back() == Some(line.trim_end()) {
        return Ok(());
    }
    lines += &line;
    write_file(folder, FILE, lines.as_bytes())
}

const README: &str = "\
This folder is the log of a count of placements of non-attacking queens: each unit of the count with
its result, signed by the machine that counted it, and everything that was counted again. Anybody
can audit it, and need not trust whoever published it:

    nqueens audit ADDRESS-OF-THIS-FOLDER --sample 100

checks the signatures, that nothing was removed or changed since, that every unit was counted once
and that the total is their sum, and counts 100 random units again. Keep the checkpoint of an audit
(--save-checkpoint FILE) to notice if the history is ever rewritten (--previous FILE).

The program, and the formats of these files: see docs/auditing.md of nqueens.
";
