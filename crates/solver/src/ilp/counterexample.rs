//! Counterexample searches: plain searches, in integers, that confirm or refute the claims of a
//! floating-point solver.
//!
//! Each is an exhaustive search for a counterexample (an earlier solution, a heavier one, a larger
//! set, a smaller fingerprint). Where that takes more than [`BUDGET`] nodes the result is
//! [`ClaimCheck::Undecided`], and nothing is claimed. The searches share only the definition of the
//! board with the methods that they check.

mod fingerprint;
mod row_search;
#[cfg(test)]
mod tests;

use crate::progress::{Progress, ProgressSink};
use crate::verdict::{Unproven, Verdict};

pub use fingerprint::most_beautiful;
pub use row_search::{complete, first, heaviest, largest};

/// Node limit of a search: some seconds. The first solution for n = 30 takes 56 million.
pub const BUDGET: u64 = 400_000_000;

/// The largest supported board: a row is one mask.
pub const LARGEST: usize = 128;

/// The result of checking a claim, by the whole search or by a part of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClaimCheck<T> {
    /// There is no counterexample.
    Confirmed,
    /// A counterexample.
    Refuted(T),
    /// The search reached its node limit or was stopped, or the board is too large.
    Undecided,
}

impl<T> ClaimCheck<T> {
    /// Returns the claimed answer or the better one that refutes it, with the verdict.
    pub(super) fn verdict(self, claimed: Option<T>) -> (Option<T>, Verdict) {
        match self {
            Self::Confirmed => (claimed, Verdict::Proven),
            Self::Refuted(better) => (Some(better), Verdict::NotProven(Unproven::Refuted)),
            Self::Undecided => (claimed, Verdict::NotProven(Unproven::Unchecked)),
        }
    }
}

/// Counts nodes and reports to the progress sink from time to time.
struct Meter<'a> {
    sink: &'a mut dyn ProgressSink,
    nodes: u64,
}

impl Meter<'_> {
    /// Counts a node. Returns whether the search may continue.
    fn step(&mut self) -> bool {
        self.nodes += 1;
        let due = self.nodes.is_multiple_of(1 << 20);
        self.nodes < BUDGET && !(due && self.sink.report(&Progress::default()).is_break())
    }
}
