//! The transparency log of a job: every result with the signature of its worker, in a Merkle tree
//! whose root the coordinator signs. It is a folder of static files, so any web server can publish
//! it, and anybody can audit it.
//!
//! | file | content |
//! |---|---|
//! | `checkpoint` | the size and the root of the tree, signed ([`checkpoint`]) |
//! | `checkpoints.jsonl` | all checkpoints so far, each as a JSON string |
//! | `key` | the public key of these signatures |
//! | `tile/entries/…` | the entries ([`entry`]), 256 in a file, each after its length (2 bytes, big-endian) |
//! | `tile/0/…`, `tile/1/…`, … | the hashes of the tree ([`tile`]) |
//! | `unit/…` | the entry with the result of each unit ([`unit_index`]) |
//! | `owners` | the names of owners that want to be named, signed; others are numbers |
//!
//! Trees, tiles, checkpoints and keys have the formats that the transparency logs of certificates
//! have (RFC 6962; C2SP tlog-tiles, tlog-checkpoint and signed-note), so other programs can check
//! them. The crates for these formats depend on older versions of cryptographic crates that this
//! program already has; the parts needed here are short.
//!
//! The log grows only at its end. A tree of the same log at an earlier size is a part of the later
//! one, so that whoever keeps a checkpoint notices if the history before it is rewritten.

pub mod checkpoint;
pub mod entry;
pub mod inclusion;
pub mod merkle;
pub mod source;
pub mod tile;
pub mod unit_index;
pub mod units;
pub mod writer;
