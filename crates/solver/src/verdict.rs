//! Answers and the extent to which they are proved.

use std::fmt;

/// An answer together with its verdict.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer<T> {
    /// The best answer that was found. It has passed the checker.
    pub found: Option<T>,
    /// True if `found` is proved to be the best or, if it is `None`, that no answer exists.
    pub verdict: Verdict,
    /// Nodes of all searches, including those of external solvers.
    pub nodes: u64,
    /// Number of linear and 0-1 programs solved.
    pub lps_solved: u64,
}

/// The proof status of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Proved in integers, by the method itself or by a counterexample search.
    Proven,
    /// Not proved, with the reason.
    NotProven(Unproven),
}

/// The reason why an answer is only the best one found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unproven {
    /// The run was stopped by its progress sink or by a time limit.
    Stopped,
    /// The solver gave up or contradicted itself.
    SolverFailed(String),
    /// The counterexample search found a better answer than the solver's. The answer is that one.
    Refuted,
    /// The solver claims the answer, but the counterexample search was too hard to finish.
    Unchecked,
    /// The proof is complete, but the run was stopped before the certificate was checked.
    NotChecked,
}

impl fmt::Display for Unproven {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stopped => f.write_str("stopped before the proof was complete"),
            Self::SolverFailed(why) => write!(f, "the solver failed: {why}"),
            Self::Refuted => {
                f.write_str("the solver's claim was wrong: the check found a better solution")
            }
            Self::Unchecked => f.write_str(
                "the solver's claim, made in floating point, is too hard to verify by search",
            ),
            Self::NotChecked => {
                f.write_str("stopped before the certificate was checked, so none was written")
            }
        }
    }
}

impl<T> Answer<T> {
    /// Maps the answer with `of` and keeps everything else.
    pub fn map<U>(self, of: impl FnOnce(T) -> U) -> Answer<U> {
        let Self { found, verdict, nodes, lps_solved } = self;
        Answer { found: found.map(of), verdict, nodes, lps_solved }
    }

    /// Returns whether the answer is proved.
    pub fn is_proven(&self) -> bool {
        self.verdict == Verdict::Proven
    }
}
