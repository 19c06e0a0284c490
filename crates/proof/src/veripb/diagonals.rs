//! The count and the sum of the diagonals that the queens use.

use super::board_lines::{BoardLines, usage};
use super::constraint::{Constraint, Literal};
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
pub(super) struct Diagonals {
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

impl Diagonals {
    /// Derives the equations.
    pub(super) fn new(
        lines: &BoardLines,
        writer: &mut ProofWriter<'_>,
    ) -> Result<Self, ProofError> {
        let n = lines.n;
        let mut equations = Vec::new();
        for first in [2 * n, (4 * n).saturating_sub(1)] {
            let diagonals =
                || (0..(2 * n).saturating_sub(1)).map(move |place| (first + place, place));
            // The place is c + (n - 1 - r) for diagonals, c + r for antidiagonals.
            let weight = |line: usize| match line.checked_sub(n) {
                Some(column) => column,
                None if first == 2 * n => n - 1 - line,
                None => line,
            };
            // Lower bounds come from Σ x ≥ 1 and u + Σ ~x ≥ k, upper ones from Σ x ≤ 1 and
            // ~u + Σ x ≥ 1.
            let mut pair = |weighted: bool| -> Result<[Id; 2], ProofError> {
                let mut ids = [0; 2];
                for (id, [of_lines, of_diagonals]) in ids
                    .iter_mut()
                    .zip([[&lines.at_least, &lines.at_most], [&lines.at_most, &lines.at_least]])
                {
                    let mut sum = ReversePolish::default();
                    let number = if weighted { 2 * n } else { n };
                    for (line, &id) in of_lines[..number].iter().enumerate() {
                        let factor = if weighted { weight(line) } else { 1 };
                        sum.add(id, factor as i128);
                    }
                    for (line, place) in diagonals() {
                        sum.add(of_diagonals[line], if weighted { place as i128 } else { 1 });
                    }
                    *id = if sum.is_empty() { 0 } else { writer.pol(&sum)? };
                }
                Ok(ids)
            };
            equations.push(Equations { count: pair(false)?, sum: pair(true)? });
        }
        let equations = equations.try_into().unwrap_or_else(|_| unreachable!("two directions"));
        Ok(Self { n, equations })
    }

    /// Writes the proof of a claim by these steps. Returns the identifier of
    /// Σ weight · ~u + (bound + weight(with)) · ~u(with) ≥ bound, where the bound is the weight of all
    /// items less that of the heaviest set; or, if there is no set, of ~u(with) ≥ 1 or of a
    /// contradiction.
    pub(super) fn write(
        &self,
        claim: &Claim<'_>,
        steps: &[Step],
        writer: &mut ProofWriter<'_>,
    ) -> Result<Id, ProofError> {
        let negated = writer.begin_contradiction(&claim.constraint(self.n))?;
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
        writer.end_contradiction()
    }
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
