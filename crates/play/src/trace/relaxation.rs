//! Branch and bound with the linear relaxation, until the first solution. The simplex works in
//! floating point, so a bound below n is only a proposal: an exact count confirms it before the
//! search goes on.

use nqueens_proof::board::{Piece, Problem, Square};

use super::{Flow, Kind, Step, Trace, counted, placed};
use crate::RequestError;
use crate::board::coordinates;
use crate::count::{count, usual_nodes};
use crate::relaxation::{Optimum, Relaxation, TOLERANCE, rounded};

pub(super) fn run(trace: &mut Trace<'_>) -> Result<Flow, RequestError> {
    let mut search = Search {
        relaxation: Relaxation::new(trace.problem),
        queens: trace.problem.placed().to_vec(),
        empty: trace.problem.blocked().to_vec(),
    };
    let end = search.node(trace)?;
    if end == End::Limit {
        return Ok(Flow::Break(()));
    }
    if end == End::Exhausted {
        let text = format!(
            "The tree is complete after {}: there is no completion.",
            counted(trace.nodes, "linear program")
        );
        let queens = placed(trace.problem);
        return Ok(trace.push(Step { kind: Kind::End, text, queens, ..Step::default() }));
    }
    Ok(Flow::Continue(()))
}

/// The end of the search below a node.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    Solution,
    Exhausted,
    Limit,
}

struct Search {
    relaxation: Relaxation,
    /// The squares that are decided: those with a queen and those without.
    queens: Vec<Square>,
    empty: Vec<Square>,
}

impl Search {
    fn step(
        &self,
        n: usize,
        kind: Kind,
        text: String,
        marked: Option<Square>,
        optimum: Option<&Optimum>,
    ) -> Step {
        let mut queens = vec![0; n];
        for queen in &self.queens {
            queens[queen.row] = queen.col + 1;
        }
        let marked = marked.map(coordinates).into_iter().collect();
        let values = optimum.map_or_else(Vec::new, |optimum| rounded(&optimum.values));
        Step { kind, text, queens, marked, values, ..Step::default() }
    }

    fn node(&mut self, trace: &mut Trace<'_>) -> Result<End, RequestError> {
        let n = trace.problem.n();
        let Some(optimum) = self.relaxation.solve()? else {
            return Err(RequestError::Linear("decided queens attack each other".to_owned()));
        };
        trace.nodes += 1;
        if optimum.total < n as f64 - TOLERANCE {
            return self.prune(trace, &optimum);
        }
        let fraction = |&at: &usize| {
            let value = optimum.values[at];
            value > TOLERANCE && value < 1.0 - TOLERANCE
        };
        let fractional: Vec<usize> = (0..n * n).filter(fraction).collect();
        let Some(branch) = fractional.iter().copied().reduce(|best, at| {
            if optimum.values[at] > optimum.values[best] + TOLERANCE { at } else { best }
        }) else {
            let columns: Vec<usize> =
                (0..n * n).filter(|&at| optimum.values[at] > 0.5).map(|at| at % n).collect();
            let mut step = self.step(n, Kind::Solution, String::new(), None, Some(&optimum));
            step.queens = columns.iter().map(|col| col + 1).collect();
            let limit = trace.solution(&columns, step).is_break();
            return Ok(if limit { End::Limit } else { End::Solution });
        };
        let text = format!(
            "The linear program reaches {n} queens, with fractions on {}.",
            counted(fractional.len() as u64, "square"),
        );
        let step = self.step(n, Kind::Infer, text, None, Some(&optimum));
        if trace.push(step).is_break() {
            return Ok(End::Limit);
        }
        self.branch(trace, Square::new(branch / n, branch % n), &optimum)
    }

    /// Decides a square: first with a queen, then without.
    fn branch(
        &mut self,
        trace: &mut Trace<'_>,
        square: Square,
        optimum: &Optimum,
    ) -> Result<End, RequestError> {
        let n = trace.problem.n();
        for has_queen in [true, false] {
            let (decided, text) = if has_queen {
                let share = optimum.values[square.row * n + square.col];
                (
                    &mut self.queens,
                    format!(
                        "Decide: square {square} holds {share:.2} of a queen; put a whole one there."
                    ),
                )
            } else {
                (
                    &mut self.empty,
                    format!(
                        "Back: there is no completion with a queen on {square}; leave it empty."
                    ),
                )
            };
            decided.push(square);
            self.relaxation.set(square, Some(has_queen));
            let kind = if has_queen { Kind::Decide } else { Kind::Undo };
            let step = self.step(n, kind, text, Some(square), Some(optimum));
            if trace.push(step).is_break() {
                return Ok(End::Limit);
            }
            let end = self.node(trace)?;
            let decided = if has_queen { &mut self.queens } else { &mut self.empty };
            decided.pop();
            if end != End::Exhausted {
                return Ok(end);
            }
        }
        self.relaxation.set(square, None);
        Ok(End::Exhausted)
    }

    /// Confirms by an exact count that a node with a bound below n has no completion.
    fn prune(&self, trace: &mut Trace<'_>, optimum: &Optimum) -> Result<End, RequestError> {
        let n = trace.problem.n();
        let problem = Problem::new(Piece::Queen, n, self.queens.clone(), self.empty.clone())?;
        let counted = count(&problem, usual_nodes());
        if counted.completions > 0 || !counted.is_complete {
            return Err(RequestError::Linear(format!("its bound {} is wrong", optimum.total)));
        }
        let text = format!(
            "The linear program reaches only {:.2} queens, fewer than {n}: a dead end. The exact count confirms it.",
            // Rounded down, so that a bound just below n does not look like n.
            (optimum.total * 100.0).floor() / 100.0,
        );
        let step = self.step(n, Kind::Fail, text, None, Some(optimum));
        Ok(if trace.push(step).is_break() { End::Limit } else { End::Exhausted })
    }
}
