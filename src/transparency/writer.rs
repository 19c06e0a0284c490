//! Writing a log: entries are appended, and tiles and bundles are written once they are full.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use super::merkle::{Frontier, Hash, leaf_hash};
use super::tile::{Kind, MOST_ENTRY_BYTES, Tile, WIDTH, append_entry, fold};
use crate::atomic_file::AtomicFile;

/// A log that is being written.
///
/// All entries are appended in order, also those that the folder has from earlier on; their files
/// are not written again.
#[derive(Debug)]
pub struct LogWriter {
    folder: PathBuf,
    /// The number of entries that the folder has.
    published: u64,
    frontier: Frontier,
    /// The hashes of the last tile of each level, which is not full.
    last_tiles: Vec<Vec<Hash>>,
    /// The last bundle, which is not full.
    bundle: Vec<u8>,
}

impl LogWriter {
    /// Begins the log in a folder that has its first `published` entries.
    pub fn new(folder: &Path, published: u64) -> Self {
        Self {
            folder: folder.to_owned(),
            published,
            frontier: Frontier::default(),
            last_tiles: Vec::new(),
            bundle: Vec::new(),
        }
    }

    /// Appends an entry. Returns its number, counted from 0.
    ///
    /// # Errors
    /// A file cannot be written, or the entry is larger than 65,535 bytes.
    pub fn append(&mut self, entry: &[u8]) -> io::Result<u64> {
        let number = self.frontier.size();
        if !append_entry(&mut self.bundle, entry) {
            let message = format!(
                "entry {number} has {} bytes; at most {MOST_ENTRY_BYTES} are allowed",
                entry.len()
            );
            return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
        }
        let leaf = leaf_hash(entry);
        self.frontier.push(leaf);
        if self.frontier.size().is_multiple_of(WIDTH) {
            let bundle = std::mem::take(&mut self.bundle);
            if self.is_new() {
                self.write(Tile::with_entry(number, self.frontier.size()), &bundle)?;
            }
        }
        self.push_hash(0, leaf)?;
        Ok(number)
    }

    /// Appends a hash to a level, and the root of its last tile to the next level if that is full.
    fn push_hash(&mut self, level: usize, hash: Hash) -> io::Result<()> {
        if self.last_tiles.len() == level {
            self.last_tiles.push(Vec::new());
        }
        self.last_tiles[level].push(hash);
        if self.last_tiles[level].len() as u64 == WIDTH {
            let hashes = std::mem::take(&mut self.last_tiles[level]);
            if self.is_new() {
                self.write(self.last_tile(level, WIDTH), hashes.as_flattened())?;
            }
            self.push_hash(level + 1, fold(&hashes))?;
        }
        Ok(())
    }

    /// Returns whether the last entry is not in the folder yet.
    const fn is_new(&self) -> bool {
        self.frontier.size() > self.published
    }

    /// Returns the tile of a level that the last entry belongs to.
    fn last_tile(&self, level: usize, width: u64) -> Tile {
        // There are at most 8 levels.
        let level = level as u32;
        let number = (self.frontier.size() - 1) >> (8 * (level + 1));
        Tile { kind: Kind::Hashes { level }, number, width }
    }

    fn write(&self, tile: Tile, content: &[u8]) -> io::Result<()> {
        write_file(&self.folder, &tile.to_string(), content)
    }

    /// Returns the state of the tree.
    pub const fn frontier(&self) -> &Frontier {
        &self.frontier
    }

    /// Writes the tiles and the bundle that are not full.
    ///
    /// # Errors
    /// A file cannot be written.
    pub fn finish(&self) -> io::Result<()> {
        let size = self.frontier.size();
        if !self.is_new() {
            return Ok(());
        }
        if !size.is_multiple_of(WIDTH) {
            self.write(Tile::with_entry(size - 1, size), &self.bundle)?;
        }
        for (level, hashes) in (0..).zip(&self.last_tiles) {
            let width = hashes.len() as u64;
            if width > 0 {
                let number = (size >> (8 * level)) / WIDTH;
                let tile = Tile { kind: Kind::Hashes { level }, number, width };
                self.write(tile, hashes.as_flattened())?;
            }
        }
        Ok(())
    }
}

/// Writes a file of a log, and creates its folders.
///
/// # Errors
/// The file cannot be written.
pub fn write_file(folder: &Path, path: &str, content: &[u8]) -> io::Result<()> {
    let path = folder.join(path);
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent)?;
    }
    AtomicFile::begin_open(&path)?.finish_with(|out| out.write_all(content))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transparency::inclusion::inclusion_path;
    use crate::transparency::merkle::root_of_inclusion;
    use crate::transparency::tile::{entries_of, hashes_of};

    fn entry(number: u64) -> Vec<u8> {
        format!("entry {number}").into_bytes()
    }

    /// Writes the log up to `size` into a folder that has `published` entries.
    fn write(folder: &Path, published: u64, size: u64) -> Frontier {
        let mut writer = LogWriter::new(folder, published);
        for number in 0..size {
            assert_eq!(writer.append(&entry(number)).expect("written"), number);
        }
        writer.finish().expect("written");
        writer.frontier().clone()
    }

    fn check(folder: &Path, size: u64, root: Hash) {
        let read = |tile: Tile| fs::read(folder.join(tile.to_string()));
        for number in 0..size.div_ceil(WIDTH) {
            let tile = Tile::with_entry(number * WIDTH, size);
            let bundle = read(tile).unwrap_or_else(|error| panic!("{tile}: {error}"));
            let entries = entries_of(&bundle, tile.width).expect("a bundle");
            for (index, found) in (number * WIDTH..).zip(entries) {
                assert_eq!(found, entry(index));
            }
        }
        let mut hashes = |tile: Tile| {
            let bytes = read(tile)?;
            Ok::<_, io::Error>(hashes_of(&bytes, tile.width).expect("a tile").to_vec())
        };
        for index in [0, size / 2, size - 1] {
            let path = inclusion_path(index, size, &mut hashes).expect("all tiles are there");
            assert_eq!(root_of_inclusion(index, size, leaf_hash(&entry(index)), &path), Some(root));
        }
    }

    #[test]
    fn a_log_that_grows_in_steps_equals_one_that_is_written_at_once() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut published = 0;
        for size in [1, 3, 256, 257, 511, 512, 700, 70_000] {
            let frontier = write(folder.path(), published, size);
            let mut whole = Frontier::default();
            (0..size).for_each(|number| whole.push(leaf_hash(&entry(number))));
            assert_eq!(frontier, whole);
            check(folder.path(), size, whole.root());
            published = size;
        }
    }

    #[test]
    fn an_entry_that_is_too_long_is_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut writer = LogWriter::new(folder.path(), 0);
        let error = writer.append(&vec![b'x'; 70_000]).expect_err("too long");
        assert_eq!(error.to_string(), "entry 0 has 70000 bytes; at most 65535 are allowed");
    }
}
