//! The limits of a query: linear programs, and nodes of its dives and searches.

use super::params;

/// The remaining limits of a query.
pub(super) struct Limits {
    pub(super) lps: u64,
    /// Nodes left for the dives.
    pub(super) diving: u64,
    /// Nodes left for each of the long searches under the first dual bound, before and after the
    /// dives.
    pub(super) searching: u64,
    /// LP limit of the query if its cells were eliminated, for the dives and the search of a tight
    /// board.
    pub(super) if_tight: u64,
}

impl Limits {
    /// The limits of a quick attempt.
    pub(super) const QUICK: Self = Self { lps: 1, diving: 0, searching: 0, if_tight: 0 };

    /// Creates the limits for a query with these limits on the board of size `n`.
    pub(super) fn new(n: usize, lp_limit: u64, node_limit: u64) -> Self {
        Self {
            lps: lp_limit,
            diving: lp_limit.saturating_mul(diving(n)),
            searching: searching(n, lp_limit).min(node_limit),
            if_tight: 0,
        }
    }

    /// Raises the limits of the searches for a tight board whose query has this LP limit.
    pub(super) fn search_long(&mut self, lp_limit: u64) {
        let [diving, searching] = params::TIGHT_NODES_PER_LP;
        self.diving = self.diving.max(lp_limit.saturating_mul(diving));
        self.searching = self.searching.max(lp_limit.saturating_mul(searching));
    }
}

/// Returns the nodes of the long search of a query with this LP limit. On boards of odd size, where
/// the first dual bound leaves hardly any slack, one long search, which learns the weights of the
/// rows, refutes more than many short ones with LPs between them: measured on n = 93 with 62
/// queens, 540,000 nodes and 6 LPs instead of 990,000 and 265; with 60 queens it took 9 million
/// nodes and 56 s. A search that would not end is given up early.
const fn searching(n: usize, lp_limit: u64) -> u64 {
    if n.is_multiple_of(2) { 0 } else { lp_limit.saturating_mul(params::SEARCH_NODES_PER_LP) }
}

/// Returns the nodes of the dives of a query, per LP of its limit. On boards of odd size the first
/// dual bound leaves hardly any slack, and dives find nearly all completions; on boards of even
/// size they find some.
const fn diving(n: usize) -> u64 {
    if n.is_multiple_of(2) { 200 } else { 2000 }
}
