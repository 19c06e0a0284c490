//! The count and the sum of the diagonals that the queens use.

use super::board_lines::{BoardLines, usage};
use super::constraint::{Constraint, Literal};
use super::direction::{Direction, first_line};
use super::knapsack::{Branch, Knapsack, Step};
use super::relaxation::PrefixBound;
use super::writer::{Id, ProofWriter, ReversePolish};
use crate::ProofError;

/// The equations of the diagonals of one direction. The place of a diagonal is its number in its
/// direction, from 0.
struct Equations {
    /// Σ u ≥ n and Σ u ≤ n.
    count: [Id; 2],
    /// Σ place · u ≥ n (n - 1) and ≤.
    sum: [Id; 2],
}

/// The equations of both directions.
pub(super) struct DiagonalEquations {
    n: usize,
    equations: [Equations; 2],
}

/// The claim of a knapsack, as a constraint on usage variables.
pub(super) struct Claim<'k> {
    pub(super) direction: usize,
    pub(super) knapsack: &'k Knapsack,
    /// By item: its line.
    pub(super) lines: &'k [usize],
    /// The item of which all sets in question contain it.
    pub(super) with: Option<usize>,
}

impl DiagonalEquations {
    /// Derives the equations.
    pub(super) fn new(
        lines: &BoardLines,
        writer: &mut ProofWriter<'_>,
    ) -> Result<Self, ProofError> {
        let n = lines.n;
        let mut equations = Vec::new();
        for direction in [0, 1] {
            let first = first_line(n, direction);
            let diagonals = first..first + (2 * n).saturating_sub(1);
            // The place is c + (n - 1 - r) for diagonals, c + r for antidiagonals.
            let place = |line: usize| match line {
                row if row < n && direction == 0 => n - 1 - row,
                row if row < n => row,
                column if column < 2 * n => column - n,
                diagonal if diagonals.contains(&diagonal) => diagonal - first,
                _ => 0,
            };
            let is_counted = |line: usize| line < n || diagonals.contains(&line);
            let count = Self::equation(lines, writer, |line| is_counted(line).into())?;
            let sum = Self::equation(lines, writer, |line| place(line) as i128)?;
            equations.push(Equations { count, sum });
        }
        let equations = equations.try_into().unwrap_or_else(|_| unreachable!("two directions"));
        Ok(Self { n, equations })
    }

    /// Derives the equation of the squares of both directions: (c - r)² + (r + c)² = 2r² + 2c².
    /// Returns the constraints ≥ and ≤.
    pub(super) fn sum_of_squares(
        lines: &BoardLines,
        writer: &mut ProofWriter<'_>,
    ) -> Result<[Id; 2], ProofError> {
        let n = lines.n;
        Self::equation(lines, writer, |line| match line.checked_sub(2 * n) {
            Some(_) => square(n, line),
            None => 2 * (line % n).pow(2) as i128,
        })
    }

    /// Derives that Σ weight · u over the diagonals is the sum of the weights of the rows and
    /// columns. The weights are not negative, and for each square those of its row and column have
    /// the same sum as those of its diagonals. Returns the constraints ≥ and ≤.
    fn equation(
        lines: &BoardLines,
        writer: &mut ProofWriter<'_>,
        weight: impl Fn(usize) -> i128,
    ) -> Result<[Id; 2], ProofError> {
        // Lower bounds come from Σ x ≥ 1 and u + Σ ~x ≥ k, upper ones from Σ x ≤ 1 and
        // ~u + Σ x ≥ 1.
        let mut ids = [0; 2];
        for (id, [of_lines, of_diagonals]) in ids
            .iter_mut()
            .zip([[&lines.at_least, &lines.at_most], [&lines.at_most, &lines.at_least]])
        {
            let mut sum = ReversePolish::default();
            let (lines, diagonals) =
                (of_lines[..2 * lines.n].iter(), of_diagonals[2 * lines.n..].iter());
            for (line, &id) in lines.chain(diagonals).enumerate() {
                sum.add(id, weight(line));
            }
            *id = if sum.is_empty() { 0 } else { writer.pol(&sum)? };
        }
        Ok(ids)
    }

    /// Returns the constraints Σ u ≥ n and Σ u ≤ n of a direction.
    pub(super) const fn count(&self, direction: usize) -> [Id; 2] {
        self.equations[direction].count
    }

    /// Writes the proof of a claim by these steps. Returns the identifier of Σ weight · ~u +
    /// (bound + weight(with)) · ~u(with) ≥ bound, where the bound is the weight of all items less
    /// that of the heaviest set; or, if there is no set, of ~u(with) ≥ 1 or of a contradiction.
    pub(super) fn write(
        &self,
        claim: &Claim<'_>,
        steps: &[Step],
        writer: &mut ProofWriter<'_>,
    ) -> Result<Id, ProofError> {
        let negated = writer.begin_contradiction(&claim.constraint(self.n))?;
        self.write_steps(claim, negated, steps, writer)?;
        writer.end_contradiction()
    }

    /// Proves that no set of a direction weighs more than `most`, or that there is none. Returns
    /// the identifier as [`Self::write`] does.
    pub(super) fn prove(
        &self,
        of: &Direction,
        most: Option<i128>,
        writer: &mut ProofWriter<'_>,
    ) -> Result<Id, ProofError> {
        let knapsack = of.knapsack(most);
        let Ok(steps) = knapsack.prove(&[], None, writer.lines_left()) else {
            return writer.exceed();
        };
        let (direction, lines) = (of.direction, &of.lines);
        self.write(&Claim { direction, knapsack: &knapsack, lines, with: None }, &steps, writer)
    }

    /// Writes steps that lead to a contradiction with the constraint `negated`: the weight of the
    /// knapsack exceeds `most`.
    pub(super) fn write_steps(
        &self,
        claim: &Claim<'_>,
        negated: Id,
        steps: &[Step],
        writer: &mut ProofWriter<'_>,
    ) -> Result<(), ProofError> {
        let Equations { count, sum } = &self.equations[claim.direction];
        // Adds `factor` times an equation, by its half with that sign.
        let add = |to: &mut ReversePolish, [at_least, at_most]: [Id; 2], factor: i128| {
            to.add(if factor > 0 { at_least } else { at_most }, factor.abs());
        };
        // The identifiers of the bounds on prefixes; for each open proof by contradiction, how many
        // there were before it.
        let (mut bounds, mut open): (Vec<Id>, Vec<usize>) = (Vec::new(), Vec::new());
        for step in steps {
            match step {
                Step::Cut(duals) => {
                    let mut pol = ReversePolish::default();
                    pol.add(negated, duals.objective);
                    add(&mut pol, *count, -duals.count);
                    add(&mut pol, *sum, -duals.sum);
                    for &(bound, multiplier) in &duals.bounds {
                        pol.add(bounds[bound], multiplier.abs());
                    }
                    writer.pol(&pol)?;
                }
                Step::Refuted(branch) => {
                    writer.rup(&claim.branch(self.n, branch.contrary()))?;
                }
                Step::Begin(branch) => {
                    let contrary = claim.branch(self.n, branch.contrary());
                    let supposed = writer.begin_contradiction(&contrary)?;
                    open.push(bounds.len());
                    if matches!(branch, Branch::Prefix(_)) {
                        bounds.push(supposed);
                    }
                }
                Step::End(branch) => {
                    let contrary = writer.end_contradiction()?;
                    bounds.truncate(open.pop().unwrap_or_default());
                    if matches!(branch, Branch::Prefix(_)) {
                        bounds.push(contrary);
                    }
                }
            }
        }
        Ok(())
    }
}

/// Returns the square of the place of a diagonal, c - r or r + c.
pub(super) const fn square(n: usize, line: usize) -> i128 {
    let place = if line < 4 * n - 1 { line.abs_diff(3 * n - 1) } else { line - (4 * n - 1) };
    (place * place) as i128
}

impl Claim<'_> {
    /// Returns the constraint that is proved.
    fn constraint(&self, n: usize) -> Constraint {
        let unused = |item: usize| usage(n, self.lines[item]).negative();
        let Some(most) = self.knapsack.most else {
            return Constraint::clause(self.with.map(unused));
        };
        let items = &self.knapsack.items;
        let degree = items.iter().map(|item| i128::from(item.weight)).sum::<i128>() - most;
        let term = |(item, weight): (usize, i128)| {
            let more = if self.with == Some(item) { degree } else { 0 };
            (weight + more > 0).then(|| (weight + more, unused(item)))
        };
        let weights = items.iter().map(|item| i128::from(item.weight)).enumerate();
        Constraint { terms: weights.filter_map(term).collect(), equal: false, degree }
    }

    /// Returns a branch as a constraint.
    fn branch(&self, n: usize, branch: Branch) -> Constraint {
        let literal = |item: usize, used: bool| Literal {
            variable: usage(n, self.lines[item]),
            negated: !used,
        };
        match branch {
            Branch::Item(item, used) => Constraint::clause([literal(item, used)]),
            Branch::Prefix(PrefixBound { items, at_most, count }) => {
                let degree = if at_most { items as i64 - count } else { count };
                let literals = (0..items).map(|item| literal(item, !at_most));
                Constraint::at_least(degree.max(0) as usize, literals)
            }
        }
    }
}
