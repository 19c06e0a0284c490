//! `cutting-plane`: no branching. The lexicographic optimum of the relaxation is computed variable
//! by variable. If x(h) is its first fractional variable and Q the set of the variables before it
//! that are 1, the first solution cannot have all of Q and x(h) at 1, and the row Σ_Q x + x(h) ≤
//! |Q| is added permanently.
//!
//! The lexicographic simplex maximises one variable after the other, and fixes each at its greatest
//! value. After a cut it continues as long as the relaxation is feasible. When it becomes
//! infeasible, the last variable fixed at 1 would be fractional in a recomputed optimum, so its
//! no-good is added at once.

use super::board::{LinearBoard, Mark};
use super::{Claim, Run};
use crate::ilp::completes;
use crate::ilp::model::Direction;
use crate::ilp::solver::TOLERANCE;
use crate::verdict::Unproven;

pub(super) fn run(run: &mut Run<'_>) -> Claim {
    let n = run.problem.n();
    let mut simplex = LexSimplex {
        board: LinearBoard::new(run, Direction::Maximise),
        ones: Vec::new(),
        point: Vec::new(),
    };
    let mut variable = 0;
    while variable < n * n {
        if !simplex.board.is_free(variable) {
            variable += 1;
            continue;
        }
        let before = simplex.board.mark();
        match simplex.maximise(run, variable)? {
            Some(greatest) if greatest > 1.0 - TOLERANCE => {
                simplex.ones.push((variable, before));
                // A line without a square makes the next LP infeasible.
                simplex.board.place(variable);
            }
            Some(greatest) => {
                if greatest > TOLERANCE {
                    simplex.cut(run, variable);
                }
                simplex.board.forbid(variable);
            }
            None => {
                // Not all of the variables at 1 are possible: add the no-good of the last one.
                let Some((last, mark)) = simplex.ones.pop() else { return Ok(None) };
                simplex.board.undo(mark);
                simplex.cut(run, last);
                simplex.board.forbid(last);
                variable = last;
            }
        }
        variable += 1;
    }
    let columns: Vec<usize> = simplex.ones.iter().map(|&(one, _)| one % n).collect();
    // All variables are fixed; the checker decides whether this is a solution.
    if completes(run.problem, &columns) {
        Ok(Some(columns))
    } else {
        Err(run.solver.failed("its optimum is not a solution"))
    }
}

struct LexSimplex {
    board: LinearBoard,
    /// The variables fixed at 1, each with the trail position before it.
    ones: Vec<(usize, Mark)>,
    /// The last point of the relaxation, if it satisfies all fixed variables; otherwise empty.
    point: Vec<f64>,
}

impl LexSimplex {
    /// Adds the no-good of the variables fixed at 1 and of `last`.
    fn cut(&mut self, run: &mut Run<'_>, last: usize) {
        let ones: Vec<usize> = self.ones.iter().map(|&(one, _)| one).collect();
        self.board.add_no_good(&ones, last);
        self.point.clear();
        run.nodes += 1;
    }

    /// Returns the greatest value of `variable` with the earlier ones fixed, or `None` if the
    /// relaxation is infeasible.
    fn maximise(&mut self, run: &mut Run<'_>, variable: usize) -> Result<Option<f64>, Unproven> {
        if self.point.get(variable).is_some_and(|&value| value > 1.0 - TOLERANCE) {
            return Ok(Some(1.0));
        }
        self.board.set_costs([(variable, 1.0)]);
        let row = variable / run.problem.n();
        let Some(vertex) = self.board.solve(run, row)? else { return Ok(None) };
        let greatest = vertex.values[variable];
        self.point = vertex.values;
        Ok(Some(greatest))
    }
}
