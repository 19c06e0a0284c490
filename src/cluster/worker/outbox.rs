//! The outbox: results that were counted and are not acknowledged yet. They are held in memory and
//! written to disk a moment later, so that they survive a kill at any time. Results that arrive
//! during a write are committed together in the next transaction.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use prost::Message;
use tokio::sync::watch;

use super::outbox_file::{Numbered, OutboxError, OutboxFile, OutboxStorage};
use crate::cluster::protocol::v1;

/// The results on their way to the coordinator.
#[derive(Debug)]
pub(super) struct Outbox {
    shared: Arc<Shared>,
    writer: Mutex<Option<JoinHandle<()>>>,
}

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<OutboxState>,
    work: Condvar,
    changes: watch::Sender<()>,
}

#[derive(Debug, Default)]
struct OutboxState {
    results: BTreeMap<u64, StoredResult>,
    next: u64,
    /// The numbers of results to be written.
    unsaved: BTreeSet<u64>,
    /// The numbers of results to be deleted from the disk, if they were written.
    removed: BTreeSet<u64>,
    /// True if the last write failed.
    failing: bool,
    stopped: bool,
}

#[derive(Debug)]
struct StoredResult {
    result: v1::Result,
    saved: bool,
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, OutboxState> {
        // No code that holds the lock can panic half-way through a change.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn changed(&self) {
        self.changes.send_replace(());
    }
}

impl Outbox {
    /// Opens or creates the outbox at `path`, with the results that an earlier worker left there.
    ///
    /// # Errors
    /// The file is damaged, or cannot be read and written.
    pub(super) fn open(path: &Path) -> Result<Self, OutboxError> {
        let (file, results) = OutboxFile::open(path)?;
        let mut state = OutboxState::default();
        for (number, bytes) in results {
            let result = v1::Result::decode(&bytes[..])
                .map_err(|_| OutboxError::Damaged(path.to_owned()))?;
            state.next = number + 1;
            state.results.insert(number, StoredResult { result, saved: true });
        }
        Self::on(Box::new(file), state)
    }

    fn on(storage: Box<dyn OutboxStorage>, state: OutboxState) -> Result<Self, OutboxError> {
        let shared = Arc::new(Shared { state: Mutex::new(state), ..Shared::default() });
        let writer = {
            let shared = Arc::clone(&shared);
            let write = move || write(&shared, storage);
            std::thread::Builder::new()
                .name("outbox".into())
                .spawn(write)
                .map_err(OutboxError::Thread)?
        };
        Ok(Self { shared, writer: Mutex::new(Some(writer)) })
    }

    /// Adds a result, unless the outbox is closed.
    pub(super) fn put(&self, result: v1::Result) {
        let mut state = self.shared.state();
        if state.stopped {
            return;
        }
        let number = state.next;
        state.next += 1;
        state.results.insert(number, StoredResult { result, saved: false });
        state.unsaved.insert(number);
        self.shared.work.notify_one();
    }

    /// Returns the oldest results that are on disk, each with its number: at most `most` results
    /// and `most_bytes` bytes, but at least one result if there is any. While the disk cannot be
    /// written, results that are only in memory are included: the coordinator's disk is as good.
    pub(super) fn batch(&self, most: usize, most_bytes: usize) -> Vec<(u64, v1::Result)> {
        /// The tag and length of a field.
        const FRAME: usize = 8;
        let state = self.shared.state();
        let mut bytes = 0;
        let ready = state.results.iter().filter(|(_, stored)| stored.saved || state.failing);
        let fit = ready.take(most).take_while(|(_, stored)| {
            let first = bytes == 0;
            bytes += stored.result.encoded_len() + FRAME;
            first || bytes <= most_bytes
        });
        fit.map(|(&number, stored)| (number, stored.result.clone())).collect()
    }

    /// Removes results that were processed.
    pub(super) fn remove(&self, numbers: impl IntoIterator<Item = u64>) {
        let mut state = self.shared.state();
        for number in numbers {
            if state.results.remove(&number).is_some() && !state.unsaved.remove(&number) {
                state.removed.insert(number);
            }
        }
        self.shared.work.notify_one();
        drop(state);
        self.shared.changed();
    }

    /// Removes all results, and accepts no more.
    pub(super) fn discard(&self) {
        let mut state = self.shared.state();
        state.stopped = true;
        let numbers: Vec<u64> = state.results.keys().copied().collect();
        drop(state);
        self.remove(numbers);
    }

    /// Returns the number of results.
    pub(super) fn len(&self) -> usize {
        self.shared.state().results.len()
    }

    /// Returns whether there are results without a signature.
    pub(super) fn has_unsigned(&self) -> bool {
        self.shared.state().results.values().any(|stored| stored.result.signature.is_empty())
    }

    /// Returns a receiver that is notified whenever the sendable results change.
    pub(super) fn changes(&self) -> watch::Receiver<()> {
        self.shared.changes.subscribe()
    }

    /// Writes the remaining changes and closes the file, so that another worker may open it.
    pub(super) fn close(&self) {
        self.shared.state().stopped = true;
        self.shared.work.notify_all();
        let writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(writer) = writer {
            // If the writer panicked, the results it committed are still on disk.
            let _ = writer.join();
        }
    }
}

impl Drop for Outbox {
    fn drop(&mut self) {
        self.close();
    }
}

/// Runs the writer thread: commits the pending changes in batches until the outbox is closed.
fn write(shared: &Shared, mut storage: Box<dyn OutboxStorage>) {
    const TRY_AGAIN: Duration = Duration::from_secs(1);
    let mut state = shared.state();
    loop {
        if state.unsaved.is_empty() && state.removed.is_empty() {
            if state.stopped {
                return;
            }
            state = shared.work.wait(state).unwrap_or_else(PoisonError::into_inner);
            continue;
        }
        let numbers = std::mem::take(&mut state.unsaved);
        let removed: Vec<u64> = std::mem::take(&mut state.removed).into_iter().collect();
        let bytes = |number: &u64| {
            state.results.get(number).map(|stored| (*number, stored.result.encode_to_vec()))
        };
        let added: Numbered = numbers.iter().filter_map(bytes).collect();
        drop(state);
        let outcome = storage.change(&added, &removed);
        state = shared.state();
        let failed_before = std::mem::replace(&mut state.failing, outcome.is_err());
        match outcome {
            Ok(()) => {
                if failed_before {
                    tracing::info!("results are written to disk again");
                }
                for (number, _) in &added {
                    if let Some(stored) = state.results.get_mut(number) {
                        stored.saved = true;
                    }
                }
                shared.changed();
            }
            Err(error) => {
                if !failed_before {
                    tracing::error!(
                        "results cannot be written to disk and are in memory only; trying again: {error}"
                    );
                }
                let still = |(number, _): &(u64, Vec<u8>)| state.results.contains_key(number);
                let again: Vec<u64> =
                    added.iter().filter(|entry| still(entry)).map(|(number, _)| *number).collect();
                state.unsaved.extend(again);
                state.removed.extend(removed);
                shared.changed();
                if state.stopped {
                    return;
                }
                let waited =
                    shared.work.wait_timeout_while(state, TRY_AGAIN, |state| !state.stopped);
                (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::PathBuf;
    use std::sync::atomic::{AtomicBool, Ordering};

    use tempfile::TempDir;

    use super::*;

    /// Returns a temporary directory, and the path of an outbox in it.
    fn scratch() -> (TempDir, PathBuf) {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("outbox.db");
        (folder, path)
    }

    fn result(unit: u64) -> v1::Result {
        v1::Result { unit, kernel: "k".into(), ..v1::Result::default() }
    }

    fn units(outbox: &Outbox) -> Vec<u64> {
        outbox.batch(1000, 1 << 20).into_iter().map(|(_, result)| result.unit).collect()
    }

    /// Waits until `count` results can be sent.
    fn wait_for(outbox: &Outbox, count: usize) {
        while units(outbox).len() < count {
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    #[test]
    fn stored_results_survive_a_kill_and_removed_ones_do_not_reappear() {
        let (folder, path) = scratch();
        let outbox = Outbox::open(&path).expect("opens");
        (0..5).for_each(|unit| outbox.put(result(unit)));
        wait_for(&outbox, 5);
        // The files as they are while the worker runs, which is what a kill would leave.
        let killed = folder.path().join("killed");
        let copy = || {
            let _ = fs::remove_dir_all(&killed);
            fs::create_dir_all(&killed).expect("a folder");
            for file in
                fs::read_dir(&folder).expect("readable").flatten().filter(|f| f.path().is_file())
            {
                fs::copy(file.path(), killed.join(file.file_name())).expect("copies");
            }
        };
        copy();
        assert_eq!(
            units(&Outbox::open(&killed.join("outbox.db")).expect("opens")),
            [0, 1, 2, 3, 4]
        );
        let first: Vec<u64> =
            outbox.batch(2, 1 << 20).into_iter().map(|(number, _)| number).collect();
        outbox.remove(first);
        drop(outbox);
        let outbox = Outbox::open(&path).expect("opens");
        assert_eq!((units(&outbox), outbox.len()), (vec![2, 3, 4], 3));
        // The numbering continues, and no result is replaced.
        outbox.put(result(7));
        drop(outbox);
        assert_eq!(units(&Outbox::open(&path).expect("opens")), [2, 3, 4, 7]);
    }

    #[test]
    fn a_batch_respects_its_limits_but_has_at_least_one_result() {
        let (_folder, path) = scratch();
        let outbox = Outbox::open(&path).expect("opens");
        (0..50).for_each(|unit| outbox.put(result(unit)));
        wait_for(&outbox, 50);
        assert_eq!(outbox.batch(20, 1 << 20).len(), 20);
        assert_eq!(outbox.batch(20, 1).len(), 1);
        let all: usize =
            outbox.batch(10, 1 << 20).iter().map(|(_, result)| result.encoded_len() + 8).sum();
        assert_eq!(outbox.batch(20, all).len(), 10);
        assert_eq!(outbox.batch(20, all - 1).len(), 9);
    }

    #[test]
    fn a_damaged_file_is_refused_in_one_line() {
        let (_folder, path) = scratch();
        drop(Outbox::open(&path).map(|outbox| outbox.put(result(1))));
        let good = fs::read(&path).expect("readable");
        let refused = |bytes: &[u8]| {
            fs::write(&path, bytes).expect("writable");
            let _ = fs::remove_file(path.with_extension("db-wal"));
            let _ = fs::remove_file(path.with_extension("db-shm"));
            let error = Outbox::open(&path).expect_err("damaged");
            assert!(matches!(error, OutboxError::Damaged(_)), "{error:?}");
            assert!(
                error.to_string().lines().count() == 1 && error.to_string().contains("remove it"),
                "{error}"
            );
        };
        refused(b"this is no outbox, but a text of some length");
        refused(&good[..good.len() - 4096]);
        // A byte of the result itself: found by the kernel's name in it.
        let at = good
            .windows(3)
            .rposition(|bytes| bytes == [0x32, 1, b'k'])
            .expect("the result is in there");
        let mut flipped = good.clone();
        flipped[at + 2] ^= 1;
        refused(&flipped);
        fs::write(&path, &good).expect("writable");
        assert_eq!(units(&Outbox::open(&path).expect("undamaged")), [1]);
    }

    /// A storage on a disk that is full for a while.
    struct Full {
        full: Arc<AtomicBool>,
        inner: OutboxFile,
    }

    impl OutboxStorage for Full {
        fn change(&mut self, added: &[(u64, Vec<u8>)], removed: &[u64]) -> Result<(), OutboxError> {
            if self.full.load(Ordering::SeqCst) {
                return Err(OutboxError::Damaged("/full".into()));
            }
            self.inner.change(added, removed)
        }
    }

    #[test]
    fn a_full_disk_loses_nothing_and_everything_is_written_afterwards() {
        let (_folder, path) = scratch();
        let full = Arc::new(AtomicBool::new(true));
        let (inner, _) = OutboxFile::open(&path).expect("opens");
        let storage = Full { full: Arc::clone(&full), inner };
        let outbox = Outbox::on(Box::new(storage), OutboxState::default()).expect("a thread");
        (0..3).for_each(|unit| outbox.put(result(unit)));
        // These are sent from memory.
        wait_for(&outbox, 3);
        let first = outbox.batch(1, 1 << 20)[0].0;
        outbox.remove([first]);
        assert_eq!(units(&outbox), [1, 2]);
        full.store(false, Ordering::SeqCst);
        drop(outbox);
        assert_eq!(units(&Outbox::open(&path).expect("opens")), [1, 2]);
    }
}
