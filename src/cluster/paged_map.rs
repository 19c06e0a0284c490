//! Maps from numbers to small records that are too many for memory: the pages that were changed last
//! are in memory, the others in a temporary file.
//!
//! The file is only an extension of memory. Nothing is read from it after a restart; a coordinator
//! fills the map again from its ledger. Each page in the file has a checksum over all of it.

use std::collections::{BTreeMap, VecDeque};
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::marker::PhantomData;
use std::path::PathBuf;

use sha2::{Digest, Sha256};

/// A record of a fixed size.
pub(super) trait Record: Copy {
    /// The size in bytes.
    const BYTES: usize;

    /// Writes it to exactly `BYTES` bytes.
    fn encode(&self, bytes: &mut [u8]);

    /// Returns the record that [`Self::encode`] wrote.
    fn decode(bytes: &[u8]) -> Self;
}

/// The number of records of a page.
const PAGE: u64 = 256;

/// The bytes of a checksum.
const SUM: usize = 8;

/// The number of pages of a map that stay in memory, unless told otherwise: 2^20 records.
const MOST_IN_MEMORY: usize = (1 << 20) / PAGE as usize;

#[derive(Debug)]
enum Page<R> {
    InMemory {
        records: Box<[Option<R>]>,
        /// True if it was changed since its turn to be moved to the file last came.
        recent: bool,
        /// Its place in the file, if it has been there.
        slot: Option<u64>,
    },
    InFile {
        slot: u64,
        records: u16,
    },
}

/// A map from numbers to records.
#[derive(Debug)]
pub(super) struct PagedMap<R> {
    pages: BTreeMap<u64, Page<R>>,
    /// The pages in memory, in the order of their turns.
    in_memory: VecDeque<u64>,
    most_in_memory: usize,
    slots: PageFile<R>,
}

/// The pages in the file, one after another.
#[derive(Debug)]
struct PageFile<R> {
    /// The folder in which the file is created when the first page is moved there; `None` if all
    /// pages stay in memory.
    folder: Option<PathBuf>,
    file: Option<File>,
    slots: u64,
    records: PhantomData<R>,
}

impl<R: Record> PageFile<R> {
    /// The bytes of a page: for each record whether it exists and its content, then the checksum.
    const BYTES: usize = PAGE as usize * (1 + R::BYTES) + SUM;

    const fn offset(slot: u64) -> SeekFrom {
        SeekFrom::Start(slot * Self::BYTES as u64)
    }

    fn checksum(slot: u64, content: &[u8]) -> [u8; SUM] {
        let digest = Sha256::new().chain_update(slot.to_be_bytes()).chain_update(content);
        let mut sum = [0; SUM];
        sum.copy_from_slice(&digest.finalize()[..SUM]);
        sum
    }

    /// Writes a page, at the end if it has no slot yet. Returns its slot.
    fn write(&mut self, slot: Option<u64>, records: &[Option<R>]) -> io::Result<u64> {
        let slot = slot.unwrap_or(self.slots);
        let mut bytes = vec![0; Self::BYTES];
        let (content, sum) = bytes.split_at_mut(Self::BYTES - SUM);
        for (record, bytes) in records.iter().zip(content.chunks_exact_mut(1 + R::BYTES)) {
            if let Some(record) = record {
                bytes[0] = 1;
                record.encode(&mut bytes[1..]);
            }
        }
        sum.copy_from_slice(&Self::checksum(slot, content));
        let file = match (&mut self.file, &self.folder) {
            (Some(file), _) => file,
            (none, Some(folder)) => none.insert(tempfile::tempfile_in(folder)?),
            (None, None) => return Err(io::ErrorKind::Unsupported.into()),
        };
        file.seek(Self::offset(slot))?;
        file.write_all(&bytes)?;
        self.slots = self.slots.max(slot + 1);
        Ok(slot)
    }

    /// Reads a page.
    ///
    /// # Panics
    /// Panics if the page cannot be read back as it was written: the disk is faulty, and without
    /// the page no result can be validated. The coordinator then ends; its ledger has everything.
    fn read(&self, slot: u64) -> Box<[Option<R>]> {
        let read = || {
            let mut file = self.file.as_ref().ok_or(io::ErrorKind::NotFound)?;
            let mut bytes = vec![0; Self::BYTES];
            file.seek(Self::offset(slot))?;
            file.read_exact(&mut bytes)?;
            let (content, sum) = bytes.split_at(Self::BYTES - SUM);
            if *sum != Self::checksum(slot, content) {
                return Err(io::Error::new(io::ErrorKind::InvalidData, "its checksum is wrong"));
            }
            let record = |bytes: &[u8]| (bytes[0] == 1).then(|| R::decode(&bytes[1..]));
            Ok(content.chunks_exact(1 + R::BYTES).map(record).collect())
        };
        match read() {
            Ok(records) => records,
            Err(error) => panic!("cannot read the temporary file of a job's units: {error}"),
        }
    }
}

/// Returns the page of a number and the place there.
const fn place(number: u64) -> (u64, usize) {
    (number / PAGE, (number % PAGE) as usize)
}

impl<R: Record> PagedMap<R> {
    /// Creates an empty map. Its file, if it needs one, is created in `folder` and has no name
    /// there. Without a folder everything stays in memory.
    pub(super) fn new(folder: Option<PathBuf>) -> Self {
        let slots = PageFile { folder, file: None, slots: 0, records: PhantomData };
        Self {
            pages: BTreeMap::new(),
            in_memory: VecDeque::new(),
            most_in_memory: MOST_IN_MEMORY,
            slots,
        }
    }

    pub(super) fn get(&self, number: u64) -> Option<R> {
        let (page, at) = place(number);
        match self.pages.get(&page)? {
            Page::InMemory { records, .. } => records[at],
            Page::InFile { slot, .. } => self.slots.read(*slot)[at],
        }
    }

    /// Returns the records of ascending numbers, as far as there are any. Reads each page once.
    pub(super) fn get_each(
        &self,
        numbers: impl Iterator<Item = u64>,
    ) -> impl Iterator<Item = (u64, R)> {
        let mut read: Option<(u64, Box<[Option<R>]>)> = None;
        numbers.filter_map(move |number| {
            let (page, at) = place(number);
            let record = match self.pages.get(&page)? {
                Page::InMemory { records, .. } => records[at],
                Page::InFile { slot, .. } => {
                    if read.as_ref().is_none_or(|(known, _)| *known != page) {
                        read = Some((page, self.slots.read(*slot)));
                    }
                    read.as_ref()?.1[at]
                }
            };
            Some((number, record?))
        })
    }

    /// Sets or removes the record of a number. Returns the one before.
    pub(super) fn set(&mut self, number: u64, record: Option<R>) -> Option<R> {
        let (page, at) = place(number);
        let mut moved = false;
        let known = self.pages.entry(page).or_insert_with(|| {
            moved = true;
            let records = vec![None; PAGE as usize].into_boxed_slice();
            Page::InMemory { records, recent: true, slot: None }
        });
        if let Page::InFile { slot, .. } = *known {
            moved = true;
            let records = self.slots.read(slot);
            *known = Page::InMemory { records, recent: true, slot: Some(slot) };
        }
        let Page::InMemory { records, recent, .. } = known else { return None };
        *recent = true;
        let before = std::mem::replace(&mut records[at], record);
        if moved {
            self.in_memory.push_back(page);
            self.move_to_file();
        }
        before
    }

    /// Moves pages that have not been changed for long to the file, until few enough are in memory
    /// (the algorithm "clock" of Corbató, 1968). If a page cannot be written, it stays in memory.
    fn move_to_file(&mut self) {
        if self.slots.folder.is_none() {
            return;
        }
        while self.in_memory.len() > self.most_in_memory
            && let Some(number) = self.in_memory.pop_front()
        {
            let Some(page) = self.pages.get_mut(&number) else { continue };
            let Page::InMemory { records, recent, slot } = page else { continue };
            if std::mem::take(recent) {
                self.in_memory.push_back(number);
                continue;
            }
            let Ok(slot) = self.slots.write(*slot, records) else {
                self.in_memory.push_back(number);
                return;
            };
            let records = records.iter().flatten().count() as u16;
            *page = Page::InFile { slot, records };
        }
    }

    /// Returns all numbers with their records, in order.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u64, R)> {
        self.pages.iter().flat_map(|(number, page)| {
            let records = match page {
                Page::InMemory { records, .. } => records.clone(),
                Page::InFile { records: 0, .. } => Box::default(),
                Page::InFile { slot, .. } => self.slots.read(*slot),
            };
            let numbers = number * PAGE..;
            numbers.zip(records).filter_map(|(number, record)| Some((number, record?)))
        })
    }
}

#[cfg(test)]
impl<R: Record> PagedMap<R> {
    /// Creates an empty map that keeps this many pages in memory.
    pub(super) fn with_few_in_memory(pages: usize) -> Self {
        Self { most_in_memory: pages, ..Self::new(Some(std::env::temp_dir())) }
    }

    /// Returns the number of pages in memory.
    fn pages_in_memory(&self) -> usize {
        let in_memory = |page: &&Page<R>| matches!(page, Page::InMemory { .. });
        self.pages.values().filter(in_memory).count()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    impl Record for u32 {
        const BYTES: usize = 4;

        fn encode(&self, bytes: &mut [u8]) {
            bytes.copy_from_slice(&self.to_be_bytes());
        }

        fn decode(bytes: &[u8]) -> Self {
            bytes.try_into().map(Self::from_be_bytes).expect("four bytes")
        }
    }

    proptest! {
        #[test]
        fn a_paged_map_behaves_like_a_map(
            changes in prop::collection::vec((0u64..20, 0u64..4, prop::option::of(any::<u32>())), 0..200),
            pages in 1usize..5,
        ) {
            let (mut paged, mut map) = (PagedMap::with_few_in_memory(pages), BTreeMap::new());
            for (page, at, record) in changes {
                // Pages next to each other, and far apart.
                let page = if page % 5 == 0 { u64::MAX / PAGE - page } else { page };
                let number = page * PAGE + at * (PAGE - 1) / 3;
                let before = match record {
                    Some(record) => map.insert(number, record),
                    None => map.remove(&number),
                };
                prop_assert_eq!(paged.set(number, record), before);
                prop_assert_eq!(paged.get(number), map.get(&number).copied());
                prop_assert!(paged.pages_in_memory() <= pages);
            }
            for (&number, &record) in &map {
                prop_assert_eq!(paged.get(number), Some(record));
            }
            prop_assert_eq!(paged.get(PAGE * 1000), None);
            let numbers = || map.keys().flat_map(|number| [*number, number.saturating_add(1)]);
            let mut numbers: Vec<u64> = numbers().collect();
            numbers.dedup();
            let found: Vec<(u64, u32)> = paged.get_each(numbers.iter().copied()).collect();
            let expected = numbers.iter().filter_map(|number| Some((*number, *map.get(number)?)));
            prop_assert_eq!(found, expected.collect::<Vec<_>>());
            let all: Vec<(u64, u32)> = paged.iter().collect();
            prop_assert_eq!(all, map.into_iter().collect::<Vec<_>>());
        }
    }

    #[test]
    fn without_a_folder_or_space_everything_stays_in_memory() {
        let nowhere = std::env::temp_dir().join("nqueens-no-such-folder");
        for folder in [None, Some(nowhere)] {
            let mut paged = PagedMap { most_in_memory: 1, ..PagedMap::new(folder) };
            for number in 0..5 * PAGE {
                paged.set(number, Some(number as u32));
            }
            assert_eq!(paged.pages_in_memory(), 5);
            assert!(paged.iter().all(|(number, record)| number == u64::from(record)));
        }
    }

    #[test]
    #[should_panic(expected = "its checksum is wrong")]
    fn a_page_that_was_damaged_in_the_file_is_not_believed() {
        let mut paged = PagedMap::with_few_in_memory(1);
        for number in 0..3 * PAGE {
            paged.set(number, Some(7u32));
        }
        let mut file = paged.slots.file.as_ref().expect("a page is there");
        file.seek(SeekFrom::Start(3))
            .and_then(|_| file.write_all(&[9]))
            .expect("it can be written");
        paged.get(0);
    }
}
