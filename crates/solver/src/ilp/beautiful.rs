//! Algorithm 1 of Fischetti and Salvagnin, "Finding first and most-beautiful queens by integer
//! programming" (arXiv 1907.08246): level by level, from the largest cost on, a 0-1 program finds
//! the least number of queens on squares of that cost, and a row fixes that number.
//!
//! Before that, the radius is limited: squares that cost more than some multiple of 100 are
//! forbidden, for the smallest multiple that leaves a solution.

use super::counterexample;
use super::formulation::{Formulation, Lines};
use super::model::{Direction, Domain, Model, Relation, Row};
use super::rounding::{rounded, solution, values_of};
use super::solver::{Solver, SolverClaim};
use crate::beautiful::{cost, fingerprint};
use crate::progress::{ProgressSink, Step};
use crate::verdict::{Answer, Unproven, Verdict};
use nqueens_proof::board::{Piece, Problem, Square};

/// The step of the radius pre-processing.
const RADIUS_STEP: u64 = 100;

/// Finds a solution with the smallest fingerprint on the empty board of size `n`, or that there is
/// no solution. The solver's claim is passed to [`counterexample`].
pub fn most_beautiful(
    n: usize,
    solver: &dyn Solver,
    sink: &mut dyn ProgressSink,
) -> Answer<Vec<usize>> {
    let mut run = Run {
        problem: Problem::empty(Piece::Queen, n),
        solver,
        sink,
        best: None,
        nodes: 0,
        lps_solved: 0,
        levels_done: 0,
    };
    let end = run.levels();
    let Run { best, nodes, lps_solved, sink, .. } = run;
    let (best, verdict) = match end {
        Err(unproven) => (best, Verdict::NotProven(unproven)),
        Ok(()) => {
            let claim = best.as_deref().map(fingerprint);
            counterexample::most_beautiful(n, claim.as_deref(), sink).verdict(best)
        }
    };
    Answer { found: best, verdict, nodes, lps_solved }
}

struct Run<'a> {
    problem: Problem,
    solver: &'a dyn Solver,
    sink: &'a mut dyn ProgressSink,
    /// The solution with the smallest fingerprint so far.
    best: Option<Vec<usize>>,
    nodes: u64,
    lps_solved: u64,
    levels_done: usize,
}

impl Run<'_> {
    /// Fixes all levels, or finds that there is no solution.
    fn levels(&mut self) -> Result<(), Unproven> {
        let n = self.problem.n();
        if n == 0 {
            self.best = Some(Vec::new());
            return Ok(());
        }
        let costs: Vec<u64> = (0..n * n).map(|k| cost(n, Square::new(k / n, k % n))).collect();
        let mut levels = costs.clone();
        levels.sort_unstable_by(|a, b| b.cmp(a));
        levels.dedup();
        let mut model = Formulation::Diagonals.model(&self.problem, Lines::Full);
        model.set_objective(Direction::Minimise, |_| 0);
        let Some(mut best) =
            self.limit_radius(&mut model, &costs, levels.first().copied().unwrap_or(0))?
        else {
            return Ok(());
        };
        let mut fixed = 0;
        for level in levels {
            if fixed == n {
                break;
            }
            let on_level: Vec<usize> = (0..n * n).filter(|&k| costs[k] == level).collect();
            let queens =
                |columns: &[usize]| on_level.iter().filter(|&&k| columns[k / n] == k % n).count();
            // If the best solution has no queen on the level, the minimum is 0 and no program is
            // needed.
            if queens(&best) > 0 {
                model.set_objective(Direction::Minimise, |k| i64::from(costs[k] == level));
                best =
                    self.solve(&model, Some(&best))?.ok_or_else(|| contradiction(self.solver))?;
            }
            let fewest = queens(&best);
            let row = Row::sum(format!("level{level}"), on_level, Relation::Equal, fewest as i64);
            model.rows.push(row);
            fixed += fewest;
            self.levels_done += 1;
        }
        Ok(())
    }

    /// Forbids all squares that cost more than the smallest multiple of 100 that leaves a solution.
    fn limit_radius(
        &mut self,
        model: &mut Model,
        costs: &[u64],
        largest: u64,
    ) -> Result<Option<Vec<usize>>, Unproven> {
        // Every row has a queen, so the first row costs at least (n − 1)².
        let n = self.problem.n() as u64;
        let mut radius = n.saturating_sub(1).pow(2).next_multiple_of(RADIUS_STEP);
        loop {
            let mut limited = model.clone();
            for (column, &cost) in limited.columns.iter_mut().zip(costs) {
                if cost > radius {
                    column.domain = Domain::Zero;
                }
            }
            if let Some(found) = self.solve(&limited, None)? {
                *model = limited;
                return Ok(Some(found));
            }
            if radius >= largest {
                return Ok(None);
            }
            radius += RADIUS_STEP;
        }
    }

    /// Returns an optimal solution of `model`, or `None` if the solver reports infeasibility.
    fn solve(
        &mut self,
        model: &Model,
        start: Option<&[usize]>,
    ) -> Result<Option<Vec<usize>>, Unproven> {
        let start = start.map(|columns| values_of(model, columns));
        let mut sink = Step { sink: &mut *self.sink, level: self.levels_done, nodes: self.nodes };
        let outcome = self.solver.optimise(model, start.as_deref(), &mut sink);
        self.nodes += outcome.nodes;
        self.lps_solved += 1;
        let values = outcome.values.map(|values| rounded(&values));
        let found = values
            .as_ref()
            .filter(|values| model.is_feasible(values))
            .and_then(|values| solution(&self.problem, values));
        if let Some(found) = &found
            && self.best.as_ref().is_none_or(|best| fingerprint(found) < fingerprint(best))
        {
            self.best = Some(found.clone());
        }
        match outcome.status.claim(self.solver)? {
            SolverClaim::Optimal => found.map(Some).ok_or_else(|| contradiction(self.solver)),
            SolverClaim::Infeasible => Ok(None),
        }
    }
}

/// Creates the error for a solver that contradicts its earlier results.
fn contradiction(solver: &dyn Solver) -> Unproven {
    Unproven::SolverFailed(format!("{} contradicts itself", solver.name()))
}
