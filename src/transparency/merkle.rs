//! Merkle trees of RFC 6962 (section 2.1), with SHA-256.

use sha2::{Digest, Sha256};

/// A SHA-256.
pub type Hash = [u8; 32];

/// Returns the hash of an entry.
pub fn leaf_hash(entry: &[u8]) -> Hash {
    Sha256::new().chain_update([0]).chain_update(entry).finalize().into()
}

/// Returns the hash of a node with two children.
pub fn node_hash(left: &Hash, right: &Hash) -> Hash {
    Sha256::new().chain_update([1]).chain_update(left).chain_update(right).finalize().into()
}

/// A tree to which entries are appended: the roots of its perfect subtrees, the largest first,
/// which determine its root.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Frontier {
    size: u64,
    /// Each with its height: a subtree of height h has 2^h entries.
    subtrees: Vec<(u32, Hash)>,
}

impl Frontier {
    /// Appends an entry with this hash.
    pub fn push(&mut self, leaf: Hash) {
        self.size += 1;
        let (mut height, mut root) = (0, leaf);
        while let Some((_, left)) = self.subtrees.pop_if(|(last, _)| *last == height) {
            (height, root) = (height + 1, node_hash(&left, &root));
        }
        self.subtrees.push((height, root));
    }

    /// Returns the number of entries.
    pub const fn size(&self) -> u64 {
        self.size
    }

    /// Returns the root of the tree.
    pub fn root(&self) -> Hash {
        let roots = self.subtrees.iter().rev().map(|(_, root)| *root);
        roots.reduce(|right, left| node_hash(&left, &right)).unwrap_or_else(empty_root)
    }
}

/// Returns the root of the tree without entries.
fn empty_root() -> Hash {
    Sha256::digest([]).into()
}

/// Returns the largest power of two below `size`, which is at least 2: the size of the left
/// subtree.
pub const fn left_size(size: u64) -> u64 {
    1 << (size - 1).ilog2()
}

/// Returns the root of the tree of `size` entries that has the entry with this hash at `index`, if
/// the inclusion proof `path` is valid (RFC 9162, section 2.1.3.2).
pub fn root_of_inclusion(index: u64, size: u64, leaf: Hash, path: &[Hash]) -> Option<Hash> {
    if index >= size {
        return None;
    }
    let (mut node, mut last, mut root) = (index, size - 1, leaf);
    for sibling in path {
        if last == 0 {
            return None;
        }
        if node & 1 == 1 || node == last {
            root = node_hash(sibling, &root);
            // Levels on which the node has no sibling.
            while node & 1 == 0 && node != 0 {
                (node, last) = (node >> 1, last >> 1);
            }
        } else {
            root = node_hash(&root, sibling);
        }
        (node, last) = (node >> 1, last >> 1);
    }
    (last == 0).then_some(root)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The definition in RFC 6962, literally.
    fn naive_root(leaves: &[Hash]) -> Hash {
        match leaves {
            [] => empty_root(),
            [leaf] => *leaf,
            _ => {
                let (left, right) = leaves.split_at(left_size(leaves.len() as u64) as usize);
                node_hash(&naive_root(left), &naive_root(right))
            }
        }
    }

    fn naive_path(index: usize, leaves: &[Hash]) -> Vec<Hash> {
        if leaves.len() == 1 {
            return Vec::new();
        }
        let at = left_size(leaves.len() as u64) as usize;
        let (left, right) = leaves.split_at(at);
        let (mut path, other) = if index < at {
            (naive_path(index, left), naive_root(right))
        } else {
            (naive_path(index - at, right), naive_root(left))
        };
        path.push(other);
        path
    }

    fn leaves(count: u8) -> Vec<Hash> {
        (0..count).map(|byte| leaf_hash(&[byte])).collect()
    }

    #[test]
    fn roots_are_those_of_the_definition() {
        let all = leaves(70);
        let mut frontier = Frontier::default();
        assert_eq!(frontier.root(), naive_root(&[]));
        for (count, leaf) in (1..).zip(&all) {
            frontier.push(*leaf);
            assert_eq!(
                (frontier.size(), frontier.root()),
                (count, naive_root(&all[..count as usize]))
            );
        }
    }

    /// Test vectors of the reference implementation of RFC 6962 (google/certificate-transparency).
    #[test]
    fn known_roots_are_reached() {
        let entries: [&[u8]; 3] = [b"", b"\x00", b"\x10"];
        let mut frontier = Frontier::default();
        entries.into_iter().for_each(|entry| frontier.push(leaf_hash(entry)));
        for (hash, known) in [
            (empty_root(), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
            (leaf_hash(b""), "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d"),
            (frontier.root(), "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77"),
        ] {
            assert_eq!(data_encoding::HEXLOWER.encode(&hash), known);
        }
    }

    #[test]
    fn inclusion_proofs_hold_for_their_entry_and_no_other() {
        for count in 1..=40_u8 {
            let all = leaves(count);
            let (root, size) = (naive_root(&all), u64::from(count));
            for index in 0..usize::from(count) {
                let path = naive_path(index, &all);
                let at = index as u64;
                assert_eq!(root_of_inclusion(at, size, all[index], &path), Some(root));
                assert_ne!(root_of_inclusion(at, size, leaf_hash(b"another"), &path), Some(root));
                if count > 1 {
                    assert_ne!(root_of_inclusion(at ^ 1, size, all[index], &path), Some(root));
                }
                let longer = [&path[..], &[root]].concat();
                assert_eq!(root_of_inclusion(at, size, all[index], &longer), None);
                if let Some((_, shorter)) = path.split_last() {
                    assert_eq!(root_of_inclusion(at, size, all[index], shorter), None);
                }
            }
            assert_eq!(root_of_inclusion(size, size, all[0], &[]), None);
        }
    }
}
