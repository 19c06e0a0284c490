//! The flags of cutting planes, which `solve --method ilp` and `first --method lex-dfs` share.

use serde::Serialize;

use super::args::first_given;
use crate::report::counted;
use crate::solver::ilp::cuts::{CutCounts, Families};

/// The families of cuts to separate.
#[derive(Clone, Copy, Debug, Default, clap::Args)]
pub(super) struct CutArgs {
    /// Add clique cuts: cross, X and four-corner patterns.
    #[arg(long)]
    cliques: bool,
    /// Add clique cuts of any shape: the heaviest clique, by a 0-1 integer program, where no
    /// pattern of --cliques is violated.
    #[arg(long)]
    exact_cliques: bool,
    /// Add odd-cycle cuts.
    #[arg(long)]
    odd_cycles: bool,
}

impl CutArgs {
    /// Returns the first flag that is given.
    pub(super) fn given(self) -> Option<&'static str> {
        first_given([
            ("--cliques", self.cliques),
            ("--exact-cliques", self.exact_cliques),
            ("--odd-cycles", self.odd_cycles),
        ])
    }

    /// Returns the selected families.
    pub(super) const fn families(self) -> Families {
        let Self { cliques, exact_cliques, odd_cycles } = self;
        Families { cliques, exact_cliques, odd_cycles }
    }
}

/// The cuts that were added, for `--json`.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct CutsFound {
    cliques: usize,
    exact_cliques: usize,
    odd_cycles: usize,
    rounds: usize,
}

impl From<CutCounts> for CutsFound {
    fn from(counts: CutCounts) -> Self {
        let CutCounts { cliques, exact_cliques, odd_cycles, rounds } = counts;
        Self { cliques, exact_cliques, odd_cycles, rounds }
    }
}

impl CutsFound {
    /// Returns the numbers in words.
    pub(super) fn words(self) -> String {
        let exactly = match self.exact_cliques {
            0 => String::new(),
            exact => format!(" (of which {exact} by the exact separation)"),
        };
        format!(
            "{}{exactly} and {} in {}",
            counted(self.cliques as u128, "clique"),
            counted(self.odd_cycles as u128, "odd cycle"),
            counted(self.rounds as u128, "round"),
        )
    }
}
