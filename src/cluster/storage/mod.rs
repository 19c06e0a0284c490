//! State that is too large for memory, and its snapshots.

mod bytes;
mod paged_map;
mod snapshot_file;

pub(super) use bytes::{deserialize_bytes, serialize_bytes};
pub(super) use paged_map::{PagedMap, Record};
pub use snapshot_file::{SnapshotError, SnapshotFile, SnapshotWriter};
