//! The classical methods that place pieces, each as in the literature, behind one interface: they
//! pass their answers one by one to an [`AnswerSink`], report the amount of work, and stop when it
//! breaks. None of them checks its own answers: [`nqueens_proof::board::Placement`] does that,
//! independently of all of them.
//!
//! | method | answers | unit of work |
//! |---|---|---|
//! | [`closed_form`] | one, in closed form | none |
//! | `backtracking` | all, in lexicographic order | nodes: placements of one piece that attack none before |
//! | `local_search` | one, at random | moves of one queen |
//! | `brute_force` | all, in lexicographic order | configurations: one piece in each row |
//! | `columns` | all, column by column | nodes, as with backtracking |
//!
//! [`greedy`] fills the infinite board, without end and without backtracking.
//!
//! ```
//! use std::ops::ControlFlow;
//!
//! use nqueens_proof::board::{Piece, Placement, Problem};
//! use nqueens_solver::classical::{Method, AnswerSink};
//!
//! /// Keeps the first answer that comes.
//! struct First(Option<Vec<usize>>);
//!
//! impl AnswerSink for First {
//!     fn answer(&mut self, columns: &[usize]) -> ControlFlow<()> {
//!         self.0 = Some(columns.to_vec());
//!         ControlFlow::Break(())
//!     }
//!     fn report(&mut self, _tried: u64) -> ControlFlow<()> {
//!         ControlFlow::Continue(())
//!     }
//! }
//!
//! let board = Problem::empty(Piece::Queen, 8);
//! let mut sink = First(None);
//! Method::Backtracking.run(&board, &mut sink)?;
//! let columns = sink.0.unwrap();
//! assert_eq!(columns, [0, 4, 7, 5, 2, 6, 1, 3]);
//! // The checker validates the answer, independently of the method.
//! Placement::check_solution(&board, &columns)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod backtracking;
mod brute_force;
pub mod closed_form;
mod columns;
pub mod greedy;
mod local_search;
mod placements;
pub mod trace;

pub use placements::placements;

use std::fmt;
use std::ops::ControlFlow;
use std::str::FromStr;

use crate::open_board::open_rows;
use nqueens_proof::board::{Piece, Problem};

/// The receiver of the answers of a search.
pub trait AnswerSink {
    /// Receives an answer: the 0-based column of the piece in each row. Returning
    /// [`ControlFlow::Break`] ends the search.
    fn answer(&mut self, columns: &[usize]) -> ControlFlow<()>;

    /// Receives, many times a second, the number of nodes, configurations or moves
    /// ([`Method::unit`]) tried so far. Returning [`ControlFlow::Break`] ends the search.
    fn report(&mut self, tried: u64) -> ControlFlow<()>;
}

/// The outcome of a search.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The reason why it ended.
    pub ending: Ending,
    /// Number of nodes, configurations or moves ([`Method::unit`]).
    pub tried: u64,
    /// If a local search ended without an answer: the largest set of non-attacking pieces that it
    /// found, as the 0-based column in each row.
    pub best: Option<Vec<Option<usize>>>,
}

impl Outcome {
    const fn new(ending: Ending, tried: u64) -> Self {
        Self { ending, tried, best: None }
    }
}

/// The reason why a search ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// There are no more answers than those reported.
    Exhausted,
    /// The answer sink stopped the search; there may be more answers.
    Stopped,
    /// The method gave up without knowing whether there are more answers.
    GaveUp,
}

/// A method with its parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Method {
    /// The closed form.
    Formula,
    /// Row by row, columns increasing, with backtracking.
    Backtracking,
    /// Min-conflicts: random moves to the least attacked squares.
    LocalSearch {
        /// The seed of the random numbers; the same seed gives the same run.
        seed: u64,
        /// Number of moves after which the search gives up.
        moves: u64,
    },
    /// All configurations with one piece in each row.
    BruteForce,
    /// Solutions of k columns, extended by one column.
    Columns,
}

/// The reason why a method cannot be used for a problem.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unsuitable {
    /// The closed form is one fixed solution, which ignores placed and blocked squares.
    #[error(
        "formula gives one fixed solution of the empty board; with placed or blocked squares choose another method"
    )]
    DecidedSquares,
    /// The method is for queens only.
    #[error("{0} places queens only; choose another method for the {1}")]
    QueensOnly(&'static str, Piece),
    /// No formula gives a solution of the piece.
    #[error("there is no formula for the {0}; choose another method")]
    NoFormula(Piece),
    /// The board is too large for the method.
    #[error("{method} goes up to n = {most}; choose another method")]
    TooLarge {
        /// The method.
        method: &'static str,
        /// The largest n.
        most: usize,
    },
    /// The board has too many rows without a placed piece.
    #[error("{method} goes up to {most} rows without a placed piece; choose another method")]
    TooManyOpenRows {
        /// The method.
        method: &'static str,
        /// The largest number of these rows.
        most: usize,
    },
}

/// The error for a name that is no method.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "'{0}' is not a method; choose formula, backtracking, local-search, brute-force or columns"
)]
pub struct UnknownMethod(String);

impl Method {
    /// Every method; local search has seed 1 and [`Self::USUAL_MOVES`].
    pub const ALL: [Self; 5] = [
        Self::Formula,
        Self::Backtracking,
        Self::LocalSearch { seed: 1, moves: Self::USUAL_MOVES },
        Self::BruteForce,
        Self::Columns,
    ];

    /// Number of moves with which local search has always found a solution of an empty board that
    /// has one.
    pub const USUAL_MOVES: u64 = 1_000_000;

    /// Returns the name on the command line and in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Formula => "formula",
            Self::Backtracking => "backtracking",
            Self::LocalSearch { .. } => "local-search",
            Self::BruteForce => "brute-force",
            Self::Columns => "columns",
        }
    }

    /// Returns the unit of work, in the plural.
    pub const fn unit(self) -> &'static str {
        match self {
            Self::BruteForce => "configurations",
            Self::LocalSearch { .. } => "moves",
            Self::Formula | Self::Backtracking | Self::Columns => "nodes",
        }
    }

    /// Returns whether the method finds every answer, so that finding none proves that there is
    /// none.
    pub const fn is_complete(self) -> bool {
        match self {
            Self::Backtracking | Self::BruteForce | Self::Columns => true,
            Self::Formula | Self::LocalSearch { .. } => false,
        }
    }

    /// Returns the largest supported board size, regardless of run time. For backtracking it is the
    /// largest number of open rows, those without a placed piece.
    pub const fn largest(self) -> usize {
        match self {
            Self::Formula | Self::LocalSearch { .. } => 10_000_000,
            Self::Backtracking => backtracking::LARGEST,
            // Configurations are counted in 64 bits.
            Self::BruteForce => 15,
            // The recursion is as deep as the board is wide.
            Self::Columns => 256,
        }
    }

    /// Checks that the method can be used for `problem`.
    ///
    /// # Errors
    /// The method cannot be used, with the reason.
    pub fn suits(self, problem: &Problem) -> Result<(), Unsuitable> {
        let (piece, most) = (problem.piece(), self.largest());
        if self == Self::Backtracking {
            return if open_rows(problem) > most {
                Err(Unsuitable::TooManyOpenRows { method: self.name(), most })
            } else {
                Ok(())
            };
        }
        if problem.n() > most {
            return Err(Unsuitable::TooLarge { method: self.name(), most });
        }
        match self {
            Self::Formula if !problem.is_empty() => Err(Unsuitable::DecidedSquares),
            Self::Formula if !closed_form::places(piece) => Err(Unsuitable::NoFormula(piece)),
            Self::LocalSearch { .. } if piece != Piece::Queen => {
                Err(Unsuitable::QueensOnly(self.name(), piece))
            }
            _ => Ok(()),
        }
    }

    /// Searches, and passes the answers to `sink` one by one.
    ///
    /// # Errors
    /// As for [`Self::suits`].
    pub fn run(self, problem: &Problem, sink: &mut dyn AnswerSink) -> Result<Outcome, Unsuitable> {
        self.suits(problem)?;
        if problem.conflict().is_some() {
            return Ok(Outcome::new(Ending::Exhausted, 0));
        }
        Ok(match self {
            Self::Formula => closed_form::run(problem.piece(), problem.n(), sink),
            Self::Backtracking => backtracking::run(problem, sink),
            Self::LocalSearch { seed, moves } => local_search::run(problem, seed, moves, sink),
            Self::BruteForce => brute_force::run(problem, sink),
            Self::Columns => columns::run(problem, sink),
        })
    }
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Method {
    type Err = UnknownMethod;

    fn from_str(text: &str) -> Result<Self, UnknownMethod> {
        Self::ALL
            .into_iter()
            .find(|m| m.name() == text)
            .ok_or_else(|| UnknownMethod(text.to_owned()))
    }
}

/// Counts the work, and reports it to the answer sink from time to time.
struct Counter<'a> {
    sink: &'a mut dyn AnswerSink,
    tried: u64,
}

impl<'a> Counter<'a> {
    /// Number of tries between two reports. They take less than a tenth of a second with every
    /// method.
    const TRIES_PER_REPORT: u64 = 1 << 12;

    fn new(sink: &'a mut dyn AnswerSink) -> Self {
        Self { sink, tried: 0 }
    }

    #[inline]
    fn count(&mut self) -> ControlFlow<()> {
        self.tried += 1;
        if self.tried.is_multiple_of(Self::TRIES_PER_REPORT) {
            self.sink.report(self.tried)
        } else {
            ControlFlow::Continue(())
        }
    }

    /// Returns the outcome of a complete method that finished or was stopped.
    fn outcome(&self, flow: ControlFlow<()>) -> Outcome {
        let ending = if flow.is_break() { Ending::Stopped } else { Ending::Exhausted };
        Outcome::new(ending, self.tried)
    }
}

/// Returns the first answer of a method, or `None` if it has none, in which case the method has
/// searched everything.
#[cfg(test)]
pub(crate) fn first_answer(method: Method, problem: &Problem) -> Option<Vec<usize>> {
    struct First(Option<Vec<usize>>);
    impl AnswerSink for First {
        fn answer(&mut self, columns: &[usize]) -> ControlFlow<()> {
            self.0 = Some(columns.to_vec());
            ControlFlow::Break(())
        }

        fn report(&mut self, _: u64) -> ControlFlow<()> {
            ControlFlow::Continue(())
        }
    }
    let mut first = First(None);
    let outcome = method.run(problem, &mut first).expect("the method suits the problem");
    assert_eq!(outcome.ending == Ending::Exhausted, first.0.is_none(), "{problem:?}");
    first.0
}
