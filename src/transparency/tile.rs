//! Tiles: files with up to 256 hashes of one level of a tree, and bundles of up to 256 entries
//! (C2SP tlog-tiles).

use std::fmt;

use super::merkle::{Hash, node_hash};

/// The number of hashes of a full tile, and of entries of a full bundle.
pub const WIDTH: u64 = 256;
/// The height of the subtree of a full tile.
pub const HEIGHT: u32 = 8;
/// The largest size of an entry, in bytes, so that its length fits into two bytes.
pub const MOST_ENTRY_BYTES: usize = 0xffff;

/// The kind of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Hashes of subtrees of the height 8 · `level`.
    Hashes {
        /// The level, from 0.
        level: u32,
    },
    /// Entries.
    Entries,
}

/// A tile or a bundle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tile {
    /// Its kind.
    pub kind: Kind,
    /// Its number among those of its kind, from 0.
    pub number: u64,
    /// The number of its hashes or entries, from 1 to 256.
    pub width: u64,
}

impl Tile {
    /// Returns the tile of a level that has the hash at `index`, in a tree of `size` entries.
    pub fn with_hash(level: u32, index: u64, size: u64) -> Self {
        let number = index / WIDTH;
        let hashes = size.checked_shr(HEIGHT * level).unwrap_or(0);
        Self { kind: Kind::Hashes { level }, number, width: WIDTH.min(hashes - number * WIDTH) }
    }

    /// Returns the bundle with the entry at `index`, in a tree of `size` entries.
    pub fn with_entry(index: u64, size: u64) -> Self {
        let number = index / WIDTH;
        Self { kind: Kind::Entries, number, width: WIDTH.min(size - number * WIDTH) }
    }
}

/// The path of its file.
impl fmt::Display for Tile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = numbered(self.number);
        match self.kind {
            Kind::Hashes { level } => write!(f, "tile/{level}/{path}")?,
            Kind::Entries => write!(f, "tile/entries/{path}")?,
        }
        if self.width < WIDTH { write!(f, ".p/{}", self.width) } else { Ok(()) }
    }
}

/// Returns the path of a numbered file: three digits for each folder, as in `x001/x234/067`.
pub fn numbered(number: u64) -> String {
    let mut path = format!("{:03}", number % 1000);
    let mut rest = number / 1000;
    while rest > 0 {
        path = format!("x{:03}/{path}", rest % 1000);
        rest /= 1000;
    }
    path
}

/// Returns the root of the perfect subtree with these hashes, of which there are a power of two.
pub fn fold(hashes: &[Hash]) -> Hash {
    match hashes {
        [hash] => *hash,
        _ => {
            let (left, right) = hashes.split_at(hashes.len() / 2);
            node_hash(&fold(left), &fold(right))
        }
    }
}

/// Appends an entry to a bundle. Returns false if it is too long.
pub fn append_entry(bundle: &mut Vec<u8>, entry: &[u8]) -> bool {
    let Ok(length) = u16::try_from(entry.len()) else { return false };
    bundle.extend(length.to_be_bytes());
    bundle.extend(entry);
    true
}

/// Returns the entries of a bundle of this width, or `None` if it does not have that many, or more.
pub fn entries_of(bundle: &[u8], width: u64) -> Option<Vec<&[u8]>> {
    let mut entries = Vec::new();
    let mut rest = bundle;
    while let Some((length, after)) = rest.split_first_chunk::<2>() {
        let (entry, after) = after.split_at_checked(usize::from(u16::from_be_bytes(*length)))?;
        entries.push(entry);
        rest = after;
    }
    (rest.is_empty() && entries.len() as u64 == width).then_some(entries)
}

/// Returns the hashes of a tile of this width, or `None` if it does not have that many.
pub fn hashes_of(tile: &[u8], width: u64) -> Option<&[Hash]> {
    let (hashes, rest) = tile.as_chunks::<32>();
    (rest.is_empty() && hashes.len() as u64 == width).then_some(hashes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_those_of_the_specification() {
        let path = |kind, number, width| Tile { kind, number, width }.to_string();
        let hashes = |level| Kind::Hashes { level };
        assert_eq!(path(hashes(0), 1_234_067, 256), "tile/0/x001/x234/067");
        assert_eq!(path(hashes(3), 0, 256), "tile/3/000");
        assert_eq!(path(hashes(1), 999, 7), "tile/1/999.p/7");
        assert_eq!(path(Kind::Entries, 1000, 112), "tile/entries/x001/000.p/112");
    }

    #[test]
    fn a_tree_has_the_tiles_of_its_size() {
        let of = |level, index, size| Tile::with_hash(level, index, size).to_string();
        assert_eq!(of(0, 0, 1), "tile/0/000.p/1");
        assert_eq!(of(0, 255, 70_000), "tile/0/000");
        assert_eq!(of(0, 69_999, 70_000), "tile/0/273.p/112");
        assert_eq!(of(1, 272, 70_000), "tile/1/001.p/17");
        assert_eq!(of(2, 0, 70_000), "tile/2/000.p/1");
        assert_eq!(Tile::with_entry(69_999, 70_000).to_string(), "tile/entries/273.p/112");
    }

    #[test]
    fn bundles_round_trip_and_damaged_ones_are_refused() {
        let mut bundle = Vec::new();
        for entry in [&b""[..], b"one", &[7; MOST_ENTRY_BYTES]] {
            assert!(append_entry(&mut bundle, entry));
        }
        assert!(!append_entry(&mut Vec::new(), &[0; MOST_ENTRY_BYTES + 1]));
        let entries = entries_of(&bundle, 3).expect("three");
        assert_eq!((entries[0], entries[1], entries[2].len()), (&b""[..], &b"one"[..], 0xffff));
        assert_eq!(entries_of(&bundle, 2), None);
        assert_eq!(entries_of(&bundle, 4), None);
        assert_eq!(entries_of(&bundle[..bundle.len() - 1], 3), None);
        assert_eq!(entries_of(&[0], 0), None);
        assert_eq!(hashes_of(&[0; 64], 2).map(<[Hash]>::len), Some(2));
        assert_eq!(hashes_of(&[0; 65], 2), None);
    }
}
