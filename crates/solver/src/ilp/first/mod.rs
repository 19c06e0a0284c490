//! The lexicographically first solution (OEIS A141843), by the methods of Fischetti and Salvagnin,
//! "Finding first and most-beautiful queens by integer programming" (arXiv 1907.08246), section 3.
//!
//! The first solution has the least column on row 1, among those the least on row 2, and so on. In
//! terms of the 0-1 program: the vector x(1,1), x(1,2), … , x(n,n) is lexicographically largest.
//!
//! Our own method is `exact`, see [`crate::first`]. It and `cp` prove their answers in integers.
//! All other methods rely on a floating-point solver while they run; their answers are passed to
//! [`counterexample`] and are called proved only if it confirms them.

mod board;
mod cutting_plane;
mod iterative;
mod lex_dfs;
mod truncated;
mod weights;

use std::fmt;
use std::str::FromStr;

use super::counterexample;
use super::cuts::{CutCounts, Families};
use super::model::Model;
use super::rounding::{rounded, solution, values_of};
use super::solver::{LinearOutcome, Solver, SolverClaim, Vertex};
use crate::cp::{Branching, Event, Search};
use crate::progress::{ProgressSink, Step};
use crate::verdict::{Answer, Unproven, Verdict};
use nqueens_proof::board::{Piece, Problem};

/// A method for the first solution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FirstMethod {
    /// Completion queries under integer dual bounds from linear relaxations, with a certificate.
    Exact,
    /// Constraint programming, depth first, rows in order, columns increasing.
    Cp,
    /// One 0-1 program per row, with the earlier rows fixed.
    IlpIter,
    /// Depth first; the LP bound of the truncated program selects the column to try.
    IlpTrunc,
    /// Depth first with the lexicographic simplex and the mini-cutloop.
    LexDfs,
    /// Lexicographic simplex with no-goods, without branching.
    CuttingPlane,
    /// One 0-1 program whose weights encode the order.
    IlpWeights,
}

/// The error for a text that names no method.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "'{0}' is not a method for the first solution; choose exact, cp, ilp-iter, ilp-trunc, lex-dfs, cutting-plane or ilp-weights"
)]
pub struct UnknownFirstMethod(String);

/// The error for a board that is too large for a method.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{method} is for boards up to n = {} only, not for n = {n}; take another method", .method.largest())]
pub struct TooLarge {
    method: FirstMethod,
    n: usize,
}

impl FirstMethod {
    /// Every method.
    pub const ALL: [Self; 7] = [
        Self::Exact,
        Self::Cp,
        Self::IlpIter,
        Self::IlpTrunc,
        Self::LexDfs,
        Self::CuttingPlane,
        Self::IlpWeights,
    ];

    /// Returns the name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Exact => "exact",
            Self::Cp => "cp",
            Self::IlpIter => "ilp-iter",
            Self::IlpTrunc => "ilp-trunc",
            Self::LexDfs => "lex-dfs",
            Self::CuttingPlane => "cutting-plane",
            Self::IlpWeights => "ilp-weights",
        }
    }

    /// Returns whether the method needs a solver.
    pub const fn needs_solver(self) -> bool {
        !matches!(self, Self::Exact | Self::Cp)
    }

    /// Returns the largest supported board size.
    pub const fn largest(self) -> usize {
        match self {
            Self::Exact => crate::first::LARGEST,
            // The weights are exact up to here.
            Self::IlpWeights => weights::LARGEST,
            _ => usize::MAX,
        }
    }
}

impl fmt::Display for FirstMethod {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for FirstMethod {
    type Err = UnknownFirstMethod;

    fn from_str(text: &str) -> Result<Self, UnknownFirstMethod> {
        Self::ALL
            .into_iter()
            .find(|method| method.name() == text)
            .ok_or_else(|| UnknownFirstMethod(text.to_owned()))
    }
}

/// Finds the first solution on the empty board of size `n` by `method`, or that there is none.
///
/// # Errors
/// The board is larger than [`FirstMethod::largest`].
pub fn lexicographic_first(
    n: usize,
    method: FirstMethod,
    solver: &dyn Solver,
    sink: &mut dyn ProgressSink,
) -> Result<Answer<Vec<usize>>, TooLarge> {
    if n > method.largest() {
        return Err(TooLarge { method, n });
    }
    let problem = Problem::empty(Piece::Queen, n);
    let by: fn(&mut Run<'_>) -> Claim = match method {
        FirstMethod::Exact => {
            return Ok(crate::first::first_solution(
                n,
                crate::first::Options::default(),
                sink,
                &mut |_| {},
            )
            .into());
        }
        FirstMethod::Cp => return Ok(by_constraints(&problem, sink)),
        FirstMethod::IlpIter => iterative::run,
        FirstMethod::IlpTrunc => truncated::run,
        FirstMethod::LexDfs => |run| lex_dfs::run(run, Families::default()),
        FirstMethod::CuttingPlane => cutting_plane::run,
        FirstMethod::IlpWeights => weights::run,
    };
    Ok(verified(&problem, solver, sink, by).0)
}

/// Finds the first solution on the empty board of size `n` by [`FirstMethod::LexDfs`], which
/// separates cuts of `families` at its nodes. Returns the answer and the number of cuts.
pub fn lex_dfs_with_cuts(
    n: usize,
    families: Families,
    solver: &dyn Solver,
    sink: &mut dyn ProgressSink,
) -> (Answer<Vec<usize>>, CutCounts) {
    let problem = Problem::empty(Piece::Queen, n);
    verified(&problem, solver, sink, |run| lex_dfs::run(run, families))
}

/// Runs a method, and checks its claim by a search for a counterexample.
fn verified(
    problem: &Problem,
    solver: &dyn Solver,
    sink: &mut dyn ProgressSink,
    method: impl FnOnce(&mut Run<'_>) -> Claim,
) -> (Answer<Vec<usize>>, CutCounts) {
    let cuts = CutCounts::default();
    let mut run = Run { problem, solver, sink, best: None, nodes: 0, lps_solved: 0, cuts };
    let claim = method(&mut run);
    let Run { best, nodes, lps_solved, sink, cuts, .. } = run;
    let (found, verdict) = match claim {
        Ok(claim) => counterexample::first(problem, claim.as_deref(), sink).verdict(claim),
        Err(unproven) => (None, Verdict::NotProven(unproven)),
    };
    // If it is proved that there is no solution, none was found.
    (Answer { found: found.or(best), verdict, nodes, lps_solved }, cuts)
}

fn by_constraints(problem: &Problem, sink: &mut dyn ProgressSink) -> Answer<Vec<usize>> {
    let mut search = Search::new(problem, Branching::FirstRow);
    let (found, verdict) = match search.next(sink) {
        Event::Solution(found) => (Some(found), Verdict::Proven),
        Event::Exhausted => (None, Verdict::Proven),
        Event::Stopped => (None, Verdict::NotProven(Unproven::Stopped)),
    };
    Answer { found, verdict, nodes: search.nodes(), lps_solved: 0 }
}

/// The state shared by all methods that use a solver.
struct Run<'a> {
    problem: &'a Problem,
    solver: &'a dyn Solver,
    sink: &'a mut dyn ProgressSink,
    /// The first of all solutions found so far.
    best: Option<Vec<usize>>,
    nodes: u64,
    lps_solved: u64,
    /// The cuts that were added.
    cuts: CutCounts,
}

/// The claim of a method: the first solution, or `None` if there is no solution.
type Claim = Result<Option<Vec<usize>>, Unproven>;

impl Run<'_> {
    /// Returns the solution encoded by `values`, if there is one, and keeps it if it comes before
    /// all known ones.
    fn offer(&mut self, values: &[f64]) -> Option<Vec<usize>> {
        let found = solution(self.problem, &rounded(values))?;
        if self.best.as_ref().is_none_or(|best| found < *best) {
            self.best = Some(found.clone());
        }
        Some(found)
    }

    /// Solves a 0-1 program from the solution `start`, if it is given. Returns an optimal solution,
    /// or `None` if the solver finds it infeasible.
    fn optimise(&mut self, model: &Model, start: Option<&[usize]>, level: usize) -> Claim {
        let start = start.map(|columns| values_of(model, columns));
        let mut sink = Step { sink: &mut *self.sink, level, nodes: self.nodes };
        let outcome = self.solver.optimise(model, start.as_deref(), &mut sink);
        self.nodes += outcome.nodes;
        self.lps_solved += 1;
        let found = outcome.values.and_then(|values| self.offer(&values));
        match outcome.status.claim(self.solver)? {
            SolverClaim::Infeasible => Ok(None),
            SolverClaim::Optimal if found.is_some() => Ok(found),
            SolverClaim::Optimal => Err(self.solver.failed("its optimal point is not a solution")),
        }
    }

    /// Returns the optimal vertex of a linear program, or `None` if the solver finds it infeasible.
    fn vertex(&mut self, outcome: LinearOutcome) -> Result<Option<Vertex>, Unproven> {
        self.lps_solved += 1;
        match outcome {
            LinearOutcome::Optimal(vertex) => {
                self.offer(&vertex.values);
                Ok(Some(vertex))
            }
            LinearOutcome::Infeasible { .. } => Ok(None),
            LinearOutcome::Stopped => Err(Unproven::Stopped),
            LinearOutcome::Failed(why) => Err(self.solver.failed(&why)),
        }
    }
}
