//! The classical methods that place pieces, each as the literature has it, all behind one interface: they hand their
//! answers one by one to a [`AnswerSink`], tell it how much they tried, and stop when it says so. None of them checks its
//! own answers: [`nqueens_proof::board::Placement`] does that, and knows nothing of any of them.
//!
//! | method | answers | what it tries |
//! |---|---|---|
//! | [`closed_form`] | one, in closed form | nothing |
//! | `backtracking` | all, in lexicographic order | nodes: placements of one piece that attack none before |
//! | `local_search` | one, at random | moves of one queen |
//! | `brute_force` | all, in lexicographic order | configurations: one piece in each row |
//! | `columns` | all, column by column | nodes, as with backtracking |
//!
//! [`greedy`] fills the infinite board, which has no last answer and no way back.
//!
//! ```
//! use std::ops::ControlFlow;
//!
//! use nqueens_proof::board::{Piece, Placement, Problem};
//! use nqueens_solver::classical::{Method, Watch};
//!
//! /// Keeps the first answer that comes.
//! struct First(Option<Vec<usize>>);
//!
//! impl Watch for First {
//!     fn answer(&mut self, columns: &[usize]) -> ControlFlow<()> {
//!         self.0 = Some(columns.to_vec());
//!         ControlFlow::Break(())
//!     }
//!     fn look(&mut self, _tried: u64) -> ControlFlow<()> {
//!         ControlFlow::Continue(())
//!     }
//! }
//!
//! let board = Problem::empty(Piece::Queen, 8);
//! let mut watch = First(None);
//! Method::Backtracking.run(&board, &mut watch)?;
//! let columns = watch.0.unwrap();
//! assert_eq!(columns, [0, 4, 7, 5, 2, 6, 1, 3]);
//! // What a method says is believed once this has seen it.
//! Placement::check_solution(&board, &columns)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod backtracking;
mod brute_force;
pub mod closed_form;
mod columns;
pub mod greedy;
mod local_search;
mod mask;
mod placements;

pub use placements::placements;

use std::fmt;
use std::ops::ControlFlow;
use std::str::FromStr;

use nqueens_proof::board::{Piece, Problem};

/// Whoever started a search.
pub trait AnswerSink {
    /// Takes an answer: the 0-based column of the piece in each row. [`ControlFlow::Break`] ends the search: it was
    /// the last one that is wanted.
    fn answer(&mut self, columns: &[usize]) -> ControlFlow<()>;

    /// Is told, many times a second, how many nodes, configurations or moves ([`Method::unit`]) were tried so far.
    /// [`ControlFlow::Break`] ends the search.
    fn look(&mut self, tried: u64) -> ControlFlow<()>;
}

/// How a search ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// Why it ended.
    pub ending: Ending,
    /// Nodes, configurations or moves ([`Method::unit`]).
    pub tried: u64,
    /// If a search by random moves ended without an answer: the 0-based column in each row of the most pieces that
    /// it found not to attack each other.
    pub best: Option<Vec<Option<usize>>>,
}

impl Outcome {
    const fn new(ending: Ending, tried: u64) -> Self {
        Self { ending, tried, best: None }
    }
}

/// Why a search ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// There are no more answers than those handed over.
    Exhausted,
    /// The watch ended it; there may be more answers.
    Stopped,
    /// The method can do no more, and does not know whether there are more answers.
    GaveUp,
}

/// A method, with its settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Method {
    /// The closed form.
    Formula,
    /// Row by row, columns increasing, back where nothing is left.
    Backtracking,
    /// Min-conflicts: random moves that attack the least.
    LocalSearch {
        /// The seed of the random numbers: the same one gives the same run.
        seed: u64,
        /// It gives up after so many moves.
        moves: u64,
    },
    /// Every way to put one piece in each row.
    BruteForce,
    /// Solutions of k columns extended by one.
    Columns,
}

/// Why a method cannot be used for a problem.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unsuitable {
    /// The closed form is one solution, wherever the squares are.
    #[error(
        "formula gives one fixed solution of the empty board; with placed or blocked squares choose another method"
    )]
    DecidedSquares,
    /// Made for queens.
    #[error("{0} places queens only; choose another method for the {1}")]
    QueensOnly(&'static str, Piece),
    /// Too large for it.
    #[error("{method} goes up to n = {most}; choose another method")]
    TooLarge {
        /// The method.
        method: &'static str,
        /// The largest n.
        most: usize,
    },
}

/// A name that is no method.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is not a method; choose formula, backtracking, local-search, brute-force or columns")]
pub struct UnknownMethod(String);

impl Method {
    /// Every method, local search with seed 1 and [`Self::USUAL_MOVES`].
    pub const ALL: [Self; 5] = [
        Self::Formula,
        Self::Backtracking,
        Self::LocalSearch { seed: 1, moves: Self::USUAL_MOVES },
        Self::BruteForce,
        Self::Columns,
    ];

    /// Enough moves for local search to find a solution of any empty board that has one, by all experience.
    pub const USUAL_MOVES: u64 = 1_000_000;

    /// Its name on the command line and in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Formula => "formula",
            Self::Backtracking => "backtracking",
            Self::LocalSearch { .. } => "local-search",
            Self::BruteForce => "brute-force",
            Self::Columns => "columns",
        }
    }

    /// What it tries, in the plural.
    pub const fn unit(self) -> &'static str {
        match self {
            Self::BruteForce => "configurations",
            Self::LocalSearch { .. } => "moves",
            Self::Formula | Self::Backtracking | Self::Columns => "nodes",
        }
    }

    /// Whether it finds every answer, and so proves that there is none where it finds none.
    pub const fn is_complete(self) -> bool {
        match self {
            Self::Backtracking | Self::BruteForce | Self::Columns => true,
            Self::Formula | Self::LocalSearch { .. } => false,
        }
    }

    /// The largest board that it can be asked for; how long that takes is another question.
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

    /// Whether it can be used for `problem`.
    ///
    /// # Errors
    /// Why not.
    pub fn suits(self, problem: &Problem) -> Result<(), Unsuitable> {
        let (piece, most) = (problem.piece(), self.largest());
        if problem.n() > most {
            return Err(Unsuitable::TooLarge { method: self.name(), most });
        }
        match self {
            Self::Formula if !problem.is_empty() => Err(Unsuitable::DecidedSquares),
            Self::Formula | Self::LocalSearch { .. } if piece != Piece::Queen => {
                Err(Unsuitable::QueensOnly(self.name(), piece))
            }
            _ => Ok(()),
        }
    }

    /// Searches, and hands the answers to `watch` one by one.
    ///
    /// # Errors
    /// [`Self::suits`].
    pub fn run(self, problem: &Problem, watch: &mut dyn AnswerSink) -> Result<Outcome, Unsuitable> {
        self.suits(problem)?;
        if problem.conflict().is_some() {
            return Ok(Outcome::new(Ending::Exhausted, 0));
        }
        Ok(match self {
            Self::Formula => closed_form::run(problem.n(), watch),
            Self::Backtracking => backtracking::run(problem, watch),
            Self::LocalSearch { seed, moves } => local_search::run(problem, seed, moves, watch),
            Self::BruteForce => brute_force::run(problem, watch),
            Self::Columns => columns::run(problem, watch),
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
        Self::ALL.into_iter().find(|m| m.name() == text).ok_or_else(|| UnknownMethod(text.to_owned()))
    }
}

/// Counts what is tried, and lets the watch look now and then.
struct Counter<'a> {
    watch: &'a mut dyn AnswerSink,
    tried: u64,
}

impl<'a> Counter<'a> {
    /// So many tries take less than a tenth of a second, whatever is tried.
    const TRIES_A_LOOK: u64 = 1 << 12;

    fn new(watch: &'a mut dyn AnswerSink) -> Self {
        Self { watch, tried: 0 }
    }

    #[inline]
    fn count(&mut self) -> ControlFlow<()> {
        self.tried += 1;
        if self.tried.is_multiple_of(Self::TRIES_A_LOOK) {
            self.watch.look(self.tried)
        } else {
            ControlFlow::Continue(())
        }
    }

    /// The outcome of a complete method that went through, or was broken off.
    fn outcome(&self, flow: ControlFlow<()>) -> Outcome {
        let ending = if flow.is_break() { Ending::Stopped } else { Ending::Exhausted };
        Outcome::new(ending, self.tried)
    }
}
