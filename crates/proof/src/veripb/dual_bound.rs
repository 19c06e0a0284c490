//! Dual bounds as sums of constraints, with their knapsacks.
//!
//! The multipliers give one constraint: the reduced costs of the queens and the weights of the used
//! diagonals. Unit propagation on it does what the checker does with the slack: its own slack is
//! that of the checker. A knapsack is the lemma "the unused diagonals of this direction weigh at
//! least W - F". Propagation on the constraint alone, with either lemma added, and with both, draws
//! the same conclusions as the checker with its slack and its credits.

use std::collections::HashMap;

use super::board_lines::BoardLines;
use super::diagonals::{Claim, DiagonalEquations};
use super::direction::Direction;
use super::first::FirstProof;
use super::knapsack::{Knapsack, Step};
use super::listed_sets::ProvedList;
use super::search_tree::clause;
use super::writer::{Id, ProofWriter, ReversePolish};
use crate::ProofError;
use crate::first::{Heaviest, KnapsackOutcome, Position};

/// Numbers of steps within which a knapsack is proved, if possible, before more are tried.
const STEPS: [usize; 4] = [60, 400, 4_000, 40_000];

/// The number of ways in which a surplus is divided between the directions.
const DIVISIONS: i64 = 8;

/// The number of steps up to which a knapsack is proved exactly although less would do now: what
/// follows may need it.
const EXACT: usize = 150;

/// A knapsack with the steps of its proof.
type Proof = (Knapsack, Vec<Step>);

/// The proofs of the knapsacks of both directions; `None` where none is needed, or none was found.
type Proofs = [Option<Proof>; 2];

/// A dual bound while it is written.
struct DualBound<'b, 'w> {
    writer: &'b mut ProofWriter<'w>,
    lines: &'b BoardLines,
    diagonals: &'b DiagonalEquations,
    list: Option<&'b ProvedList>,
    position: &'b Position,
    /// Dual feasible multipliers by line.
    y: &'b [i64],
    /// The identifier of the sum of the multiplied constraints, unless all multipliers are 0.
    base: Option<Id>,
    directions: [Direction; 2],
}

/// Writes the constraints of a dual bound.
pub(super) fn write(
    proof: &mut FirstProof<'_, '_>,
    position: &Position,
    y: &[i64],
    knapsacks: bool,
) -> Result<(), ProofError> {
    let y = position.dual_feasible(y);
    let base = write_base(proof, position, &y)?;
    if !knapsacks {
        return Ok(());
    }
    let directions = [0, 1].map(|direction| Direction::new(position, &y, direction));
    let mut bound = DualBound {
        writer: proof.writer,
        lines: &proof.lines,
        diagonals: &proof.diagonals,
        list: proof.list.as_ref(),
        position,
        y: &y,
        base,
        directions,
    };
    match position.heaviest_diagonals(&y) {
        // If sets are listed, propagation finds that none is possible.
        [KnapsackOutcome::NoSet, _] | [_, KnapsackOutcome::NoSet] if bound.list.is_some() => Ok(()),
        [KnapsackOutcome::NoSet, _] => bound.prove(0, None, None).map(drop),
        [_, KnapsackOutcome::NoSet] => bound.prove(1, None, None).map(drop),
        [KnapsackOutcome::Heaviest(falling), KnapsackOutcome::Heaviest(rising)] => {
            bound.write_knapsacks([&falling, &rising])
        }
        // As in the checker: the plain dual bound.
        _ => Ok(()),
    }
}

/// Writes the sum of the multiplied constraints of the open lines.
fn write_base(
    proof: &mut FirstProof<'_, '_>,
    position: &Position,
    y: &[i64],
) -> Result<Option<Id>, ProofError> {
    let lines = &proof.lines;
    let mut sum = ReversePolish::default();
    for (line, &y) in y.iter().enumerate() {
        if position.is_taken(line) || (line >= 2 * proof.n && !position.is_usable(line)) {
            continue;
        }
        sum.add(
            if y > 0 { lines.at_most[line] } else { lines.at_least[line] },
            i128::from(y).abs(),
        );
    }
    if sum.is_empty() { Ok(None) } else { proof.writer.pol(&sum).map(Some) }
}

impl DualBound<'_, '_> {
    /// Finds the steps that prove that no set of a direction, with the item `with` if it is given,
    /// weighs more than `most`, or that there is none. Returns `None` if there are more steps.
    fn find(
        &self,
        direction: usize,
        most: Option<i64>,
        with: Option<usize>,
        most_steps: usize,
    ) -> Option<Proof> {
        let knapsack = self.directions[direction].knapsack(most.map(i128::from));
        let most_steps = most_steps.min(self.writer.lines_left());
        let steps = knapsack.prove(&[], with, most_steps).ok()?;
        Some((knapsack, steps))
    }

    fn write(
        &mut self,
        direction: usize,
        (knapsack, steps): &Proof,
        with: Option<usize>,
    ) -> Result<Id, ProofError> {
        let lines = &self.directions[direction].lines;
        let claim = Claim { direction, knapsack, lines, with };
        self.diagonals.write(&claim, steps, self.writer)
    }

    /// Proves such a claim, of the sets with the diagonal `with` if it is given. Ends the proof if
    /// the limit on lines does not allow it.
    fn prove(
        &mut self,
        direction: usize,
        most: Option<i64>,
        with: Option<usize>,
    ) -> Result<Option<Id>, ProofError> {
        if let Some(list) = self.list {
            // It follows from the list for the sets that are possible under the negated claim.
            return most.map_or(Ok(None), |most| self.write_listed(list, direction, most));
        }
        let lines = &self.directions[direction].lines;
        let with = with.and_then(|line| lines.iter().position(|&other| other == line));
        match self.find(direction, most, with, usize::MAX) {
            Some(found) => self.write(direction, &found, with).map(Some),
            None => self.writer.exceed(),
        }
    }

    /// Writes that no possible set of a list weighs more than `most`, unless that is trivial.
    fn write_listed(
        &mut self,
        list: &ProvedList,
        direction: usize,
        most: i64,
    ) -> Result<Option<Id>, ProofError> {
        if most >= self.directions[direction].weight() {
            return Ok(None);
        }
        let weight = |line: usize| if self.position.is_usable(line) { self.y[line] } else { 0 };
        let mut sum = ReversePolish::default();
        list.add_bound(direction, weight, most, &mut sum);
        self.writer.pol(&sum).map(Some)
    }

    fn write_knapsacks(&mut self, heaviest: [&Heaviest; 2]) -> Result<(), ProofError> {
        let any = heaviest.map(|heaviest| heaviest.any);
        let of_lines: i64 = self.y[..2 * self.position.n()].iter().sum();
        let slack = of_lines + any[0] + any[1];
        let lemmas = match self.list {
            Some(list) => {
                [self.write_listed(list, 0, any[0])?, self.write_listed(list, 1, any[1])?]
            }
            None => self.write_found(any, slack)?,
        };
        let Some(base) = self.base else { return self.eliminate(heaviest, 0, 0) };
        let mut sums: Vec<Vec<Id>> = lemmas.iter().flatten().map(|&lemma| vec![lemma]).collect();
        if let [Some(falling), Some(rising)] = lemmas {
            sums.push(vec![falling, rising]);
        }
        for lemmas in sums {
            self.add_to_base(base, &lemmas)?;
        }
        if slack < 0 { Ok(()) } else { self.eliminate(heaviest, of_lines, slack) }
    }

    /// Proves the lemmas of both directions by the shortest proofs that are found.
    fn write_found(&mut self, any: [i64; 2], slack: i64) -> Result<[Option<Id>; 2], ProofError> {
        let weights = [0, 1].map(|direction| self.directions[direction].weight());
        let proved = if slack < 0 {
            self.find_with_surplus(any, -1 - slack)
        } else {
            self.find_exact(any, slack)
        };
        let mut lemmas = [None; 2];
        for (direction, found) in proved.into_iter().enumerate() {
            match found {
                Some(found) => lemmas[direction] = Some(self.write(direction, &found, None)?),
                None if any[direction] < weights[direction] && slack >= 0 => {
                    return self.writer.exceed();
                }
                None => {}
            }
        }
        Ok(lemmas)
    }

    fn add_to_base(&mut self, base: Id, lemmas: &[Id]) -> Result<(), ProofError> {
        let mut sum = ReversePolish::default();
        sum.add(base, 1);
        lemmas.iter().for_each(|&lemma| sum.add(lemma, 1));
        self.writer.pol(&sum).map(drop)
    }

    /// Returns proofs of the lemmas of a dual bound that is refuted, where the greatest weights
    /// need not be proved exactly: their sum may be larger by `surplus`. No proof is needed of a
    /// lemma that is trivial.
    fn find_with_surplus(&self, any: [i64; 2], surplus: i64) -> Proofs {
        let gaps = [0, 1].map(|direction| self.directions[direction].gap(any[direction]));
        let total = (gaps[0] + gaps[1]).max(1);
        let by_gap = (i128::from(surplus) * i128::from(gaps[0]) / i128::from(total)) as i64;
        let mut shares = vec![by_gap.min(surplus)];
        shares.extend((0..=DIVISIONS).map(|part| surplus / DIVISIONS * part));
        shares.push(surplus);
        shares.push(gaps[0].min(surplus));
        shares.push((surplus - gaps[1]).max(0));
        shares.sort_unstable();
        shares.dedup();
        for most_steps in STEPS.into_iter().chain([usize::MAX]) {
            let mut best: Option<(usize, Proofs)> = None;
            for &share in &shares {
                let limit = best.as_ref().map_or(most_steps, |(steps, _)| *steps);
                if let Some((steps, found)) =
                    self.find_both([any[0] + share, any[1] + surplus - share], limit)
                    && best.as_ref().is_none_or(|(least, _)| steps < *least)
                {
                    best = Some((steps, found));
                }
            }
            if let Some((_, found)) = best {
                return found;
            }
        }
        [None, None]
    }

    /// Finds proofs of both lemmas with at most this number of steps in all.
    fn find_both(&self, most: [i64; 2], most_steps: usize) -> Option<(usize, Proofs)> {
        let mut steps = 0;
        let mut found = [None, None];
        for direction in [0, 1] {
            if most[direction] < self.directions[direction].weight() {
                let proof =
                    self.find(direction, Some(most[direction]), None, most_steps - steps)?;
                steps += proof.1.len();
                found[direction] = Some(proof);
            }
        }
        (steps <= most_steps).then_some((steps, found))
    }

    /// Returns proofs of the lemmas of a dual bound that is not refuted: exact ones if they are
    /// short; otherwise ones that eliminate the same squares.
    fn find_exact(&self, any: [i64; 2], slack: i64) -> Proofs {
        let costs = self.position.candidate_squares().map(|square| self.cost(square));
        let costly = costs.filter(|&cost| cost > slack).min().unwrap_or(slack + 1);
        let margin = costly - 1 - slack;
        let gaps = [0, 1].map(|direction| self.directions[direction].gap(any[direction]));
        let total = (gaps[0] + gaps[1]).max(1);
        [0, 1].map(|direction| {
            let (most, of) = (any[direction], &self.directions[direction]);
            if most >= of.weight() {
                return None;
            }
            let share = i128::from(margin) * i128::from(gaps[direction]) / i128::from(total);
            let shared = most + share as i64;
            let tries = [(most, EXACT), (shared, STEPS[1]), (most, STEPS[2]), (shared, STEPS[2])];
            tries
                .into_iter()
                .chain([(most, usize::MAX)])
                .filter(|(most, _)| *most < of.weight())
                .find_map(|(most, steps)| self.find(direction, Some(most), None, steps))
        })
    }

    fn cost(&self, square: usize) -> i64 {
        self.lines.lines_of(square).iter().map(|&line| self.y[line]).sum()
    }

    /// Eliminates the squares whose cost exceeds the slack that the sets with their diagonals
    /// leave: those whose diagonals no set contains, if all multipliers are 0.
    fn eliminate(
        &mut self,
        heaviest: [&Heaviest; 2],
        of_lines: i64,
        slack: i64,
    ) -> Result<(), ProofError> {
        let n = self.position.n();
        let mut lemmas = HashMap::new();
        for square in self.position.candidate_squares().collect::<Vec<_>>() {
            let cost = self.cost(square);
            if cost > slack {
                continue; // It is eliminated by propagation.
            }
            let [_, _, diagonal, antidiagonal] = self.lines.lines_of(square);
            let with =
                [heaviest[0].with[diagonal - 2 * n], heaviest[1].with[antidiagonal + 1 - 4 * n]];
            match with {
                [None, _] => {
                    self.lemma_with(&mut lemmas, 0, diagonal, None)?;
                }
                [_, None] => {
                    self.lemma_with(&mut lemmas, 1, antidiagonal, None)?;
                }
                [Some(falling), Some(rising)] if of_lines + falling + rising < cost => {
                    let falling = self.lemma_with(&mut lemmas, 0, diagonal, Some(falling))?;
                    let rising = self.lemma_with(&mut lemmas, 1, antidiagonal, Some(rising))?;
                    if let Some(base) = self.base {
                        let lemmas: Vec<Id> = falling.into_iter().chain(rising).collect();
                        self.add_to_base(base, &lemmas)?;
                    }
                    self.writer.rup(&clause(n, &[square]))?;
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Proves that no set with this diagonal weighs more than `most`, or that there is none, unless
    /// that is trivial or was proved before.
    fn lemma_with(
        &mut self,
        lemmas: &mut HashMap<(usize, Option<i64>), Option<Id>>,
        direction: usize,
        line: usize,
        most: Option<i64>,
    ) -> Result<Option<Id>, ProofError> {
        if let Some(&lemma) = lemmas.get(&(line, most)) {
            return Ok(lemma);
        }
        let trivial = most.is_some_and(|most| most >= self.directions[direction].weight());
        let lemma = if trivial { None } else { self.prove(direction, most, Some(line))? };
        lemmas.insert((line, most), lemma);
        Ok(lemma)
    }
}
