use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

impl<R: Record> PagedMap<R> {
    /// Creates an empty map that keeps this many pages in memory.
    pub(in crate::cluster) fn with_few_in_memory(pages: usize) -> Self {
        let folder = Some(std::env::temp_dir());
        Self { most_in_memory: pages, ..Self::new("test".to_owned(), folder) }
    }

    /// Returns the number of pages in memory.
    fn pages_in_memory(&self) -> usize {
        let in_memory = |page: &&Page<R>| matches!(page, Page::Loaded { .. });
        self.pages.values().filter(in_memory).count()
    }
}

impl Record for u32 {
    const BYTES: usize = 4;

    fn encode(&self, bytes: &mut [u8]) {
        bytes.copy_from_slice(&self.to_be_bytes());
    }

    fn decode(bytes: &[u8]) -> Self {
        bytes.try_into().map(Self::from_be_bytes).expect("four bytes")
    }
}

/// A snapshot in a folder of its own.
struct TestSnapshot {
    folder: tempfile::TempDir,
    file: Arc<SnapshotFile>,
}

impl TestSnapshot {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let file =
            SnapshotFile::create(&folder.path().join("snapshot")).expect("it can be created");
        Self { folder, file: Arc::new(file) }
    }

    fn save(&self, map: &mut PagedMap<u32>) {
        self.file
            .replace(|snapshot| {
                map.write_changed(snapshot)?;
                snapshot.state("map", map)
            })
            .expect("it can be written");
        map.continue_with(&self.file);
    }

    /// Opens the snapshot again, as after a restart.
    fn restore(&mut self, pages: usize) -> PagedMap<u32> {
        let path = self.folder.path().join("snapshot");
        let file = SnapshotFile::open(&path).expect("a snapshot").expect("it is there");
        self.file = Arc::new(file);
        let mut map: PagedMap<u32> = self.file.state("map").expect("a map");
        map.set_folder(Some(std::env::temp_dir()));
        map.continue_with(&self.file);
        map.most_in_memory = pages;
        map
    }
}

proptest! {
    #[test]
    fn a_paged_map_behaves_like_a_map_also_after_snapshots_and_restarts(
        changes in prop::collection::vec((0u64..20, 0u64..4, prop::option::of(any::<u32>()), 0..40), 0..200),
        pages in 1usize..5,
    ) {
        let mut snapshot = TestSnapshot::new();
        let (mut paged, mut map) = (PagedMap::with_few_in_memory(pages), BTreeMap::new());
        let mut saved = None;
        for (page, at, record, act) in changes {
            match act {
                0 => {
                    snapshot.save(&mut paged);
                    saved = Some(map.clone());
                }
                1 => if let Some(saved) = &saved {
                    paged = snapshot.restore(pages);
                    map = saved.clone();
                }
                // A snapshot that fails leaves the one before.
                2 => {
                    let failed = snapshot.file.replace(|writer| {
                        paged.write_changed(writer)?;
                        Err(SnapshotError::NotASnapshot)
                    });
                    prop_assert!(failed.is_err());
                }
                _ => {}
            }
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
        let mut paged = PagedMap { most_in_memory: 1, ..PagedMap::new(String::new(), folder) };
        for number in 0..5 * PAGE {
            paged.set(number, Some(number as u32));
        }
        assert_eq!(paged.pages_in_memory(), 5);
        assert!(paged.iter().all(|(number, record)| number == u64::from(record)));
    }
}

/// Fills three pages, of which one stays in memory.
fn three_pages() -> PagedMap<u32> {
    let mut paged = PagedMap::with_few_in_memory(1);
    for number in 0..3 * PAGE {
        paged.set(number, Some(7u32));
    }
    paged
}

#[test]
#[should_panic(expected = "page 0 of test is missing or damaged")]
fn a_page_that_was_damaged_in_the_file_is_not_believed() {
    let paged = three_pages();
    let mut file = paged.file.file.as_ref().expect("a page is there");
    file.seek(SeekFrom::Start(3)).and_then(|_| file.write_all(&[9])).expect("it can be written");
    paged.get(0);
}

#[test]
fn a_snapshot_with_a_damaged_page_is_removed_and_not_believed() {
    let (snapshot, mut paged) = (TestSnapshot::new(), three_pages());
    snapshot.save(&mut paged);
    let mut page = snapshot.file.page("test", 0).expect("it is there");
    page[3] ^= 1;
    let damage = |writer: &mut SnapshotWriter<'_>| writer.page("test", 0, &page);
    snapshot.file.replace(damage).expect("it can be written");
    let read = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| paged.get(0)));
    assert!(read.is_err(), "{read:?}");
    assert!(!snapshot.folder.path().join("snapshot").exists());
    // The other pages can still be read, until the coordinator ends.
    assert_eq!(paged.get(PAGE), Some(7));
}

#[test]
#[should_panic(expected = "page 0 of test is missing or damaged")]
fn a_page_of_an_earlier_snapshot_is_not_believed() {
    let (snapshot, mut paged) = (TestSnapshot::new(), three_pages());
    snapshot.save(&mut paged);
    let earlier = snapshot.file.page("test", 0).expect("it is there");
    paged.set(0, Some(8));
    snapshot.save(&mut paged);
    // As if the journal of SQLite had been lost.
    let put_back = |writer: &mut SnapshotWriter<'_>| {
        writer.page("test", 0, &earlier)?;
        writer.state("map", &paged)
    };
    snapshot.file.replace(put_back).expect("it can be written");
    let paged: PagedMap<u32> = {
        let mut again = snapshot;
        again.restore(1)
    };
    paged.get(0);
}
