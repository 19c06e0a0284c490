//! The kinds of subproblems.

use std::fmt;
use std::str::FromStr;

use super::job::{Job, Scheme};

/// The subproblems of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Subproblems {
    /// Prefixes, which every kernel counts, on CPUs and GPUs.
    Prefixes,
    /// Column sets, which CPUs count faster on large boards.
    ColumnSets,
}

/// The error returned when a name is not that of a kind of subproblem.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is not a kind of subproblem; choose auto, prefixes or column-sets")]
pub struct UnknownSubproblems(String);

impl Subproblems {
    /// Returns the subproblems of a job.
    pub fn of(job: &Job) -> Self {
        if job.scheme() == Scheme::ColumnSets { Self::ColumnSets } else { Self::Prefixes }
    }

    /// Returns the name, as on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Prefixes => "prefixes",
            Self::ColumnSets => "column-sets",
        }
    }
}

impl fmt::Display for Subproblems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Subproblems {
    type Err = UnknownSubproblems;

    fn from_str(text: &str) -> Result<Self, UnknownSubproblems> {
        [Self::Prefixes, Self::ColumnSets]
            .into_iter()
            .find(|known| known.name() == text)
            .ok_or_else(|| UnknownSubproblems(text.to_owned()))
    }
}
