//! Helpers for the tests of this module.

use std::num::NonZeroU32;
use std::path::PathBuf;

use tempfile::TempDir;

use super::ca::Authority;
use super::name::Name;
use super::role::Role;
use super::token::Token;

pub(super) const NOW_MS: u64 = 1_800_000_000_000;
pub(super) const HOUR_MS: u64 = 3_600_000;

/// Creates an authority, and returns it after a temporary directory and its folder therein.
pub(super) fn authority() -> (TempDir, PathBuf, Authority) {
    let scratch = tempfile::tempdir().expect("a folder");
    let folder = scratch.path().join("authority");
    let authority = Authority::init(&folder, &[], NOW_MS).expect("an authority");
    (scratch, folder, authority)
}

/// Creates a worker's token with one use.
pub(super) fn one_use(authority: &Authority) -> Token {
    authority.create_token(Role::Worker, NonZeroU32::MIN, HOUR_MS, NOW_MS).expect("a token")
}

pub(super) fn name(text: &str) -> Name {
    text.parse().expect("a name")
}
