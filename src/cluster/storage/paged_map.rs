//! Maps from numbers to small records that are too many for memory: the pages that were changed
//! last are in memory, the others in a snapshot or, if they have been changed since, in a temporary
//! file.
//!
//! The temporary file is only an extension of memory. Nothing is read from it after a restart. Each
//! page in a file has a checksum over all of it.

use std::collections::{BTreeMap, VecDeque};
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::marker::PhantomData;
use std::path::PathBuf;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::snapshot_file::{SUM, SnapshotError, SnapshotFile, SnapshotWriter, checksum};

/// A record of a fixed size.
pub(in crate::cluster) trait Record: Copy {
    /// The size in bytes.
    const BYTES: usize;

    /// Writes it to exactly `BYTES` bytes.
    fn encode(&self, bytes: &mut [u8]);

    /// Returns the record that [`Self::encode`] wrote.
    fn decode(bytes: &[u8]) -> Self;
}

/// The number of records of a page.
const PAGE: u64 = 256;

/// The number of pages of a map that stay in memory, unless told otherwise: 2^20 records.
const MOST_IN_MEMORY: usize = (1 << 20) / PAGE as usize;

/// The records of a page.
type Records<R> = Box<[Option<R>]>;

/// The checksum of a page in a file.
type Sum = [u8; SUM];

#[derive(Debug)]
enum Page<R> {
    Loaded {
        records: Records<R>,
        /// True if it was changed since its turn to leave the memory last came.
        recent: bool,
        /// The checksum of the page in the snapshot.
        sum: Sum,
        /// True if the snapshot has other records, or no such page.
        changed: bool,
        /// Its place in the temporary file, if it has been there since the last snapshot.
        slot: Option<u64>,
    },
    Stored {
        /// Its place in the temporary file; `None` if it is in the snapshot.
        slot: Option<u64>,
        records: u16,
        sum: Sum,
    },
}

/// A map from numbers to records. Its encoding lists its pages, which are in the snapshot, with
/// their checksums, so that no page of an earlier snapshot is taken for one of this.
#[derive(Debug)]
pub(in crate::cluster) struct PagedMap<R> {
    /// Its name in snapshots.
    name: String,
    pages: BTreeMap<u64, Page<R>>,
    /// The pages in memory, in the order of their turns.
    in_memory: VecDeque<u64>,
    most_in_memory: usize,
    /// The folder of the temporary file; `None` if all changed pages stay in memory.
    folder: Option<PathBuf>,
    file: PageFile,
    snapshot: Option<Arc<SnapshotFile>>,
    records: PhantomData<R>,
}

/// The pages in the temporary file, one after another.
#[derive(Debug, Default)]
struct PageFile {
    /// Created when the first page is moved there.
    file: Option<File>,
    slots: u64,
}

impl PageFile {
    const fn offset(slot: u64, page: &[u8]) -> SeekFrom {
        SeekFrom::Start(slot * page.len() as u64)
    }

    /// Writes a page, at the end if it has no slot yet. Returns its slot.
    fn write(
        &mut self,
        folder: Option<&PathBuf>,
        slot: Option<u64>,
        page: &[u8],
    ) -> io::Result<u64> {
        let slot = slot.unwrap_or(self.slots);
        let file = match (&mut self.file, folder) {
            (Some(file), _) => file,
            (none, Some(folder)) => none.insert(tempfile::tempfile_in(folder)?),
            (None, None) => return Err(io::ErrorKind::Unsupported.into()),
        };
        file.seek(Self::offset(slot, page))?;
        file.write_all(page)?;
        self.slots = self.slots.max(slot + 1);
        Ok(slot)
    }

    /// Reads a page of this many bytes.
    fn read(&self, slot: u64, bytes: usize) -> io::Result<Vec<u8>> {
        let mut file = self.file.as_ref().ok_or(io::ErrorKind::NotFound)?;
        let mut page = vec![0; bytes];
        file.seek(Self::offset(slot, &page))?;
        file.read_exact(&mut page)?;
        Ok(page)
    }
}

/// Returns the page of a number and the place there.
const fn place(number: u64) -> (u64, usize) {
    (number / PAGE, (number % PAGE) as usize)
}

fn count<R>(records: &[Option<R>]) -> u16 {
    records.iter().flatten().count() as u16
}

impl<R: Record> PagedMap<R> {
    /// The bytes of a page in a file: for each record whether it exists and its content, then the
    /// checksum.
    const PAGE_BYTES: usize = PAGE as usize * (1 + R::BYTES) + SUM;

    /// Creates an empty map, whose name no other map of the snapshot has. Its temporary file, if it
    /// needs one, is created in `folder` and has no name there. Without a folder everything stays
    /// in memory.
    pub(in crate::cluster) fn new(name: String, folder: Option<PathBuf>) -> Self {
        Self {
            name,
            pages: BTreeMap::new(),
            in_memory: VecDeque::new(),
            most_in_memory: MOST_IN_MEMORY,
            folder,
            file: PageFile::default(),
            snapshot: None,
            records: PhantomData,
        }
    }

    /// Returns the content of a page in a file, and its checksum, which is the end of it.
    fn encode(&self, number: u64, records: &[Option<R>]) -> (Vec<u8>, Sum) {
        let mut bytes = vec![0; Self::PAGE_BYTES];
        let (content, sum) = bytes.split_at_mut(Self::PAGE_BYTES - SUM);
        for (record, bytes) in records.iter().zip(content.chunks_exact_mut(1 + R::BYTES)) {
            if let Some(record) = record {
                bytes[0] = 1;
                record.encode(&mut bytes[1..]);
            }
        }
        let checksum = self.checksum(number, content);
        sum.copy_from_slice(&checksum);
        (bytes, checksum)
    }

    fn checksum(&self, number: u64, content: &[u8]) -> Sum {
        checksum(&format!("{} {number}", self.name), content)
    }

    fn decode(
        &self,
        number: u64,
        bytes: &[u8],
        expected: Sum,
    ) -> Result<Records<R>, SnapshotError> {
        let damaged = || SnapshotError::Damaged(format!("page {number} of {}", self.name));
        let content = bytes.len().checked_sub(SUM).ok_or_else(damaged)?;
        let (content, sum) = bytes.split_at(content);
        let is_sound = *sum == expected && self.checksum(number, content) == expected;
        if bytes.len() != Self::PAGE_BYTES || !is_sound {
            return Err(damaged());
        }
        let record = |bytes: &[u8]| (bytes[0] == 1).then(|| R::decode(&bytes[1..]));
        Ok(content.chunks_exact(1 + R::BYTES).map(record).collect())
    }

    fn read_from_file(
        &self,
        number: u64,
        slot: u64,
        sum: Sum,
    ) -> Result<Records<R>, SnapshotError> {
        self.decode(number, &self.file.read(slot, Self::PAGE_BYTES)?, sum)
    }

    fn read_from_snapshot(&self, number: u64, sum: Sum) -> Result<Records<R>, SnapshotError> {
        let missing = || SnapshotError::Damaged(format!("the file with page {number}"));
        let snapshot = self.snapshot.as_ref().ok_or_else(missing)?;
        self.decode(number, &snapshot.page(&self.name, number)?, sum)
    }

    /// Reads a page that is not in memory, and that has this checksum, from its slot in the
    /// temporary file or from the snapshot.
    ///
    /// # Panics
    /// Panics if the page cannot be read back as it was written: the disk is faulty, and without
    /// the page no result can be validated. The coordinator then ends. Its ledger has everything,
    /// from which the next one reads it, because the snapshot is removed.
    fn read(&self, number: u64, slot: Option<u64>, sum: Sum) -> Records<R> {
        let read = match slot {
            Some(slot) => self.read_from_file(number, slot, sum),
            None => self.read_from_snapshot(number, sum),
        };
        match read {
            Ok(records) => records,
            Err(error) => {
                let removed = self.snapshot.as_ref().filter(|_| slot.is_none());
                if let Some(Err(error)) = removed.map(|snapshot| snapshot.discard()) {
                    panic!("cannot read the snapshot, and it must be removed by hand: {error}")
                }
                panic!("cannot read a job's units from the temporary file or the snapshot: {error}")
            }
        }
    }

    /// Returns the records of a page that is not in memory; `None` if it is there.
    fn read_page(&self, number: u64, page: &Page<R>) -> Option<Records<R>> {
        match page {
            Page::Loaded { .. } => None,
            Page::Stored { slot, sum, .. } => Some(self.read(number, *slot, *sum)),
        }
    }

    pub(in crate::cluster) fn get(&self, number: u64) -> Option<R> {
        let (number, at) = place(number);
        match self.pages.get(&number)? {
            Page::Loaded { records, .. } => records[at],
            page => self.read_page(number, page)?[at],
        }
    }

    /// Returns the records of ascending numbers, as far as there are any. Reads each page once.
    pub(in crate::cluster) fn get_each(
        &self,
        numbers: impl Iterator<Item = u64>,
    ) -> impl Iterator<Item = (u64, R)> {
        let mut read: Option<(u64, Records<R>)> = None;
        numbers.filter_map(move |number| {
            let (page, at) = place(number);
            match self.pages.get(&page)? {
                Page::Loaded { records, .. } => return Some((number, records[at]?)),
                found if read.as_ref().is_none_or(|(known, _)| *known != page) => {
                    read = Some((page, self.read_page(page, found)?));
                }
                _ => {}
            }
            Some((number, read.as_ref()?.1[at]?))
        })
    }

    /// Sets or removes the record of a number. Returns the one before.
    pub(in crate::cluster) fn set(&mut self, number: u64, record: Option<R>) -> Option<R> {
        let (number, at) = place(number);
        let known = self.pages.get(&number);
        let slot = match known {
            Some(Page::Stored { slot, .. }) => *slot,
            _ => None,
        };
        let records = match known {
            Some(page) => self.read_page(number, page),
            None => Some(vec![None; PAGE as usize].into_boxed_slice()),
        };
        let is_loaded = records.is_some();
        if let Some(records) = records {
            let page =
                Page::Loaded { records, recent: true, sum: Sum::default(), changed: true, slot };
            self.pages.insert(number, page);
            self.in_memory.push_back(number);
        }
        let Some(Page::Loaded { records, recent, changed, .. }) = self.pages.get_mut(&number)
        else {
            return None;
        };
        (*recent, *changed) = (true, true);
        let before = std::mem::replace(&mut records[at], record);
        if is_loaded {
            self.leave_memory();
        }
        before
    }

    /// Moves pages that have not been changed for long out of memory, until few enough are there
    /// (the algorithm "clock" of Corbató, 1968). If a page cannot be written, it stays in memory.
    fn leave_memory(&mut self) {
        while self.in_memory.len() > self.most_in_memory
            && let Some(number) = self.in_memory.pop_front()
        {
            let Some(Page::Loaded { recent, .. }) = self.pages.get_mut(&number) else { continue };
            if std::mem::take(recent) {
                self.in_memory.push_back(number);
                continue;
            }
            let Some(Page::Loaded { records, sum, changed, slot, .. }) = self.pages.get(&number)
            else {
                continue;
            };
            let left = if *changed {
                let (bytes, sum) = self.encode(number, records);
                let written = self.file.write(self.folder.as_ref(), *slot, &bytes);
                written.map(|slot| Page::Stored { slot: Some(slot), records: count(records), sum })
            } else {
                Ok(Page::Stored { slot: None, records: count(records), sum: *sum })
            };
            match left {
                Ok(page) => drop(self.pages.insert(number, page)),
                Err(_) => {
                    self.in_memory.push_back(number);
                    return;
                }
            }
        }
    }

    /// Returns all numbers with their records, in order.
    pub(in crate::cluster) fn iter(&self) -> impl Iterator<Item = (u64, R)> {
        self.filtered(|_| true)
    }

    /// Returns the numbers with the records for which `wanted` returns true, in order. Copies only
    /// these records of the pages in memory.
    pub(in crate::cluster) fn filtered(
        &self,
        wanted: impl Fn(&R) -> bool,
    ) -> impl Iterator<Item = (u64, R)> {
        self.pages.iter().flat_map(move |(&number, page)| {
            let read;
            let records: &[Option<R>] = match page {
                Page::Loaded { records, .. } => records,
                Page::Stored { records: 0, .. } => &[],
                page => {
                    read = self.read_page(number, page).unwrap_or_default();
                    &read
                }
            };
            let wanted = |record: &&R| wanted(record);
            (number * PAGE..)
                .zip(records)
                .filter_map(|(number, record)| Some((number, *record.as_ref().filter(wanted)?)))
                .collect::<Vec<_>>()
        })
    }

    /// Writes the pages that were changed since the last snapshot. The encoding of the map may be
    /// written after that, before the next change.
    ///
    /// # Errors
    /// Returns an error if a page cannot be read or written.
    pub(in crate::cluster) fn write_changed(
        &mut self,
        snapshot: &mut SnapshotWriter<'_>,
    ) -> Result<(), SnapshotError> {
        let mut sums = Vec::new();
        for (&number, page) in &self.pages {
            match page {
                Page::Loaded { records, changed: true, .. } => {
                    let (bytes, sum) = self.encode(number, records);
                    snapshot.page(&self.name, number, &bytes)?;
                    sums.push((number, sum));
                }
                Page::Stored { slot: Some(slot), sum, .. } => {
                    let records = self.read_from_file(number, *slot, *sum)?;
                    snapshot.page(&self.name, number, &self.encode(number, &records).0)?;
                }
                Page::Loaded { .. } | Page::Stored { .. } => {}
            }
        }
        for (number, new) in sums {
            if let Some(Page::Loaded { sum, .. }) = self.pages.get_mut(&number) {
                *sum = new;
            }
        }
        Ok(())
    }

    /// Continues with a snapshot in which all pages are now. Gives up the temporary file.
    pub(in crate::cluster) fn continue_with(&mut self, snapshot: &Arc<SnapshotFile>) {
        for page in self.pages.values_mut() {
            match page {
                Page::Loaded { changed, slot, .. } => (*changed, *slot) = (false, None),
                Page::Stored { slot, .. } => *slot = None,
            }
        }
        self.file = PageFile::default();
        self.snapshot = Some(Arc::clone(snapshot));
    }

    /// Sets the folder of the temporary file of a map that was read from a snapshot.
    pub(in crate::cluster) fn set_folder(&mut self, folder: Option<PathBuf>) {
        self.folder = folder;
    }
}

impl<R> Serialize for PagedMap<R> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let of_page = |page: &Page<R>| match page {
            Page::Loaded { records, sum, .. } => (count(records), *sum),
            Page::Stored { records, sum, .. } => (*records, *sum),
        };
        let pages: Vec<(u64, u16, u64)> = self
            .pages
            .iter()
            .map(|(&number, page)| {
                let (records, sum) = of_page(page);
                (number, records, u64::from_be_bytes(sum))
            })
            .collect();
        (&self.name, pages).serialize(to)
    }
}

impl<'de, R: Record> Deserialize<'de> for PagedMap<R> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let (name, pages) = <(String, Vec<(u64, u16, u64)>)>::deserialize(from)?;
        let saved = |(number, records, sum): (u64, u16, u64)| {
            (number, Page::Stored { slot: None, records, sum: sum.to_be_bytes() })
        };
        Ok(Self { pages: pages.into_iter().map(saved).collect(), ..Self::new(name, None) })
    }
}

#[cfg(test)]
mod tests;
