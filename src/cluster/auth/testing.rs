//! Helpers for the tests of this module.

use std::fs;
use std::num::NonZeroU32;
use std::path::PathBuf;

use super::ca::Authority;
use super::name::Name;
use super::role::Role;
use super::token::Token;

pub(super) const NOW_MS: u64 = 1_800_000_000_000;
pub(super) const HOUR_MS: u64 = 3_600_000;

/// A scratch directory, removed when this is dropped.
pub(super) struct Folder(pub(super) PathBuf);

impl Folder {
    pub(super) fn new(name: &str) -> Self {
        let path =
            std::env::temp_dir().join(format!("nqueens-authority-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Creates a worker's token with one use.
pub(super) fn one_use(authority: &Authority) -> Token {
    authority.create_token(Role::Worker, NonZeroU32::MIN, HOUR_MS, NOW_MS).expect("a token")
}

pub(super) fn name(text: &str) -> Name {
    text.parse().expect("a name")
}
