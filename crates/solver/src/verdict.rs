//! What may be claimed about an answer.

use std::fmt;

/// An answer, and what may be said about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer<T> {
    /// The best that was found; every one has passed the checker.
    pub found: Option<T>,
    /// Whether it is proved to be the best, or, if nothing was found, that there is nothing.
    pub verdict: Verdict,
    /// Nodes of all searches, those of solvers included.
    pub nodes: u64,
    /// Linear and 0-1 programmes that were solved.
    pub programmes: u64,
}

/// Whether an answer is proved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// In integers: by the method itself, or by the referee.
    Proven,
    /// Not, and why.
    NotProven(Unproven),
}

/// Why an answer is the best that was found and no more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unproven {
    /// The run was stopped, by its watch or by a time limit.
    Stopped,
    /// The solver gave up or contradicted itself.
    SolverFailed(String),
    /// The solver claimed an answer, and the referee found a better one, which is the one shown.
    Refuted,
    /// The solver claims the answer, which is too hard for the referee to confirm.
    Unchecked,
    /// The proof is complete, and the run was stopped before its certificate was checked.
    NotChecked,
}

impl fmt::Display for Unproven {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stopped => f.write_str("stopped before the proof was complete"),
            Self::SolverFailed(why) => write!(f, "the solver failed: {why}"),
            Self::Refuted => {
                f.write_str("the solver's claim was wrong: a better one was found by checking it")
            }
            Self::Unchecked => {
                f.write_str("the solver claims it, in floating point, and it is too hard to check by search")
            }
            Self::NotChecked => {
                f.write_str("stopped before the certificate was checked, so it is not written")
            }
        }
    }
}

impl<T> Answer<T> {
    /// The same about what `of` makes of it.
    pub fn map<U>(self, of: impl FnOnce(T) -> U) -> Answer<U> {
        let Self { found, verdict, nodes, programmes } = self;
        Answer { found: found.map(of), verdict, nodes, programmes }
    }

    /// Whether it is proved.
    pub fn is_proven(&self) -> bool {
        self.verdict == Verdict::Proven
    }
}
