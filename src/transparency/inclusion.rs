//! Inclusion proofs (RFC 9162, section 2.1.3), computed from the tiles of a log.

use super::merkle::{Hash, left_size, node_hash};
use super::tile::{HEIGHT, Tile, WIDTH, fold};

/// Returns the proof that the entry at `index` is in the tree of `size` entries: the hashes of the
/// siblings on its way to the root, from the lowest. `read` returns the hashes of a tile.
///
/// # Errors
/// Those of `read`.
///
/// # Panics
/// If `index` is not below `size`, or if `read` returns fewer hashes than the tile has.
pub fn inclusion_path<E>(
    index: u64,
    size: u64,
    read: &mut dyn FnMut(Tile) -> Result<Vec<Hash>, E>,
) -> Result<Vec<Hash>, E> {
    assert!(index < size, "there are {size} entries");
    let (mut from, mut to) = (0, size);
    let mut path = Vec::new();
    while to - from > 1 {
        let middle = from + left_size(to - from);
        if index < middle {
            path.push(root_of(middle, to, size, read)?);
            to = middle;
        } else {
            path.push(root_of(from, middle, size, read)?);
            from = middle;
        }
    }
    path.reverse();
    Ok(path)
}

/// Returns the root of the subtree with the entries `from..to` of a tree of `size` entries.
fn root_of<E>(
    from: u64,
    to: u64,
    size: u64,
    read: &mut dyn FnMut(Tile) -> Result<Vec<Hash>, E>,
) -> Result<Hash, E> {
    let entries = to - from;
    if !entries.is_power_of_two() {
        let middle = from + left_size(entries);
        let left = root_of(from, middle, size, read)?;
        return Ok(node_hash(&left, &root_of(middle, to, size, read)?));
    }
    // A perfect subtree begins at a multiple of its size, so its root is that of hashes of one
    // tile.
    let height = entries.ilog2();
    let level = height / HEIGHT;
    let first = from >> (HEIGHT * level);
    let hashes = read(Tile::with_hash(level, first, size))?;
    let start = (first % WIDTH) as usize;
    Ok(fold(&hashes[start..start + (1 << (height % HEIGHT))]))
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;
    use crate::transparency::merkle::{Frontier, leaf_hash, root_of_inclusion};
    use crate::transparency::tile::Kind;

    #[test]
    fn proofs_from_tiles_lead_to_the_root() {
        for size in [1, 2, 255, 256, 257, 700, 66_000] {
            // All levels of hashes of perfect subtrees of heights 0, 8 and 16.
            let mut levels: Vec<Vec<Hash>> =
                vec![(0..size).map(|entry: u64| leaf_hash(&entry.to_be_bytes())).collect()];
            while let Some(last) = levels.last().filter(|last| last.len() >= 256) {
                levels.push(last.chunks_exact(256).map(fold).collect());
            }
            let mut frontier = Frontier::default();
            levels[0].iter().for_each(|leaf| frontier.push(*leaf));
            let mut read = |tile: Tile| {
                let Kind::Hashes { level } = tile.kind else { panic!("{tile}") };
                let start = (tile.number * WIDTH) as usize;
                let level = &levels[level as usize];
                assert_eq!(tile.width as usize, (level.len() - start).min(256), "{tile}");
                Ok::<_, Infallible>(level[start..start + tile.width as usize].to_vec())
            };
            for index in [0, 1, size / 3, size / 2, size.saturating_sub(2), size - 1] {
                if index >= size {
                    continue;
                }
                let Ok(path) = inclusion_path(index, size, &mut read);
                let root = root_of_inclusion(index, size, levels[0][index as usize], &path);
                assert_eq!(root, Some(frontier.root()), "entry {index} of {size}");
            }
        }
    }
}
