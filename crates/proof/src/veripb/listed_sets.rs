//! Lists of sets of diagonals.
//!
//! A list is proved with these variables: u says that the open diagonals of a direction that are
//! used are those of a certain set, and q that the squares of the diagonals of one direction sum to
//! at least a certain threshold (an order encoding of the sum). The proof has these steps:
//!
//! 1. One direction is listed first. The squares of the other one have a known least sum (a
//!    knapsack), so those of the listed one are bounded. Branch and bound shows that one of its
//!    sets is used: if none is, the definitions of u exclude each of them.
//! 2. A set of this direction determines all q. So if s and t are successive sums of squares of
//!    sets, q for the threshold s + 1 implies q for t.
//! 3. The squares of both directions have a known sum, so a set of the other direction determines
//!    all q, too, and contradicts them if it has no partner. So branch and bound shows that one of
//!    the sets with a partner is used.
//! 4. Each set implies that one of its partners is used. A diagonal is used only if one of its sets
//!    is (its *support clause*), and at most one set of a direction is used.
//!
//! From this, unit propagation draws the checker's conclusions about possible sets. The bound on
//! the weight of the used diagonals is a sum: each weight times a support clause, and the bound
//! times "at most one set is used". Sets that are not possible do not matter there, since their
//! variables are false.
//!
//! VeriPB accepts definitions only outside proofs by contradiction. So they are written before the
//! prefix whose refutation has the list, and deleted after it.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::board_lines::usage;
use super::constraint::{Constraint, Literal, Variable};
use super::diagonals::{Claim, square};
use super::direction::{Direction, first_line};
use super::first::FirstProof;
use super::writer::{Id, ProofWriter, ReversePolish};
use crate::ProofError;
use crate::first::{DiagonalSets, Diagonals, KnapsackOutcome, Position, Tables, heaviest};

/// The numbers of the next variables.
#[derive(Default)]
pub(super) struct NextVariables {
    set: u32,
    threshold: u32,
}

/// A list whose variables are defined.
pub(super) struct DefinedList {
    n: usize,
    /// The sets, with those that have no partner.
    listed: DiagonalSets,
    /// The direction that is listed first.
    listed_first: usize,
    /// By direction: all sets of the first one, and the sets of the other one with a partner.
    sets: [Vec<Set>; 2],
    /// By the sum of squares.
    thresholds: BTreeMap<i64, Threshold>,
}

/// A set with its variable.
struct Set {
    set: Diagonals,
    squares: i64,
    variable: Variable,
}

/// A threshold on the squares of the diagonals of the first direction.
struct Threshold {
    variable: Variable,
    /// The variable implies that the sum is at least the threshold; its negation, that it is less.
    implies: [Id; 2],
}

/// A list that is proved. It is empty if it refutes the position.
#[derive(Default)]
pub(super) struct ProvedList {
    directions: [ProvedDirection; 2],
}

#[derive(Default)]
struct ProvedDirection {
    /// The support clause of each diagonal on which a queen could stand when the sets were listed.
    support: Vec<(usize, Id)>,
    /// At most one set is used; `None` if there are fewer than two.
    at_most_one: Option<Id>,
}

/// The diagonals of a direction, where each weighs the largest of their squares less its own.
struct WeighedDirection {
    diagonals: Direction,
    largest: i128,
}

impl DefinedList {
    /// Defines the variables of the sets and the thresholds.
    pub(super) fn define(
        n: usize,
        listed: DiagonalSets,
        next: &mut NextVariables,
        writer: &mut ProofWriter<'_>,
    ) -> Result<Self, ProofError> {
        let listed_first = usize::from(listed.len(1) < listed.len(0));
        let matched = listed.clone().matched();
        // Each pair is a term of a line.
        if matched.pairs() > writer.lines_left() {
            return writer.exceed();
        }
        let sets = [0, 1].map(|direction| {
            let of = if direction == listed_first { &listed } else { &matched };
            let set = |(set, squares): (Diagonals, i64)| {
                next.set += 1;
                Set { set, squares, variable: Variable::Set(next.set - 1) }
            };
            of.with_squares(direction).map(set).collect::<Vec<_>>()
        });
        let mut list = Self { n, listed, listed_first, sets, thresholds: BTreeMap::new() };
        for direction in [0, 1] {
            for set in &list.sets[direction] {
                let literals: Vec<Literal> = list.literals(direction, set.set).collect();
                let all = Constraint::at_least(literals.len(), literals.iter().copied());
                writer.red(&all.implied_by(set.variable.positive()), set.variable, false)?;
                let contrary = literals.into_iter().map(Literal::contrary);
                let implied =
                    Constraint::clause(std::iter::once(set.variable.positive()).chain(contrary));
                writer.red(&implied, set.variable, true)?;
            }
        }
        let sums = list.sets[listed_first].iter().flat_map(|set| [set.squares, set.squares + 1]);
        for threshold in sums.collect::<BTreeSet<i64>>() {
            next.threshold += 1;
            let variable = Variable::SquaresAtLeast(next.threshold - 1);
            let mut implies = [0; 2];
            for (id, is_reached) in implies.iter_mut().zip([true, false]) {
                let constraint = list.threshold(i128::from(threshold), variable, is_reached);
                *id = writer.red(&constraint, variable, !is_reached)?;
            }
            list.thresholds.insert(threshold, Threshold { variable, implies });
        }
        Ok(list)
    }

    /// Returns the line of a diagonal of a direction.
    const fn line(&self, direction: usize, diagonal: usize) -> usize {
        first_line(self.n, direction) + diagonal
    }

    /// Returns the literals that say which open diagonals of a direction are used.
    fn literals(
        &self,
        direction: usize,
        set: Diagonals,
    ) -> impl Iterator<Item = Literal> + use<'_> {
        self.listed.open(direction).iter().map(move |diagonal| Literal {
            variable: usage(self.n, self.line(direction, diagonal)),
            negated: !set.contains(diagonal),
        })
    }

    /// Returns "the variable implies that the squares sum to at least the threshold" or, unless
    /// `is_reached` is set, "its negation implies that they sum to less".
    fn threshold(&self, threshold: i128, variable: Variable, is_reached: bool) -> Constraint {
        let direction = self.listed_first;
        let lines = self.listed.open(direction).iter().map(|number| self.line(direction, number));
        let terms = lines.map(|line| {
            let used = Literal { variable: usage(self.n, line), negated: !is_reached };
            (square(self.n, line), used)
        });
        let terms: Vec<_> = terms.filter(|&(square, _)| square > 0).collect();
        let all: i128 = terms.iter().map(|(square, _)| square).sum();
        let degree = if is_reached { threshold } else { all - threshold + 1 };
        let constraint = Constraint { terms, equal: false, degree };
        let condition = Literal { variable, negated: !is_reached };
        constraint.implied_by(condition)
    }

    /// Proves the list at this position. `sum_of_squares` is the equation of both directions.
    pub(super) fn prove(
        mut self,
        sum_of_squares: [Id; 2],
        proof: &mut FirstProof<'_, '_>,
        position: &Position,
    ) -> Result<ProvedList, ProofError> {
        let [first, second] = [self.listed_first, 1 - self.listed_first];
        let directions = [0, 1].map(|direction| WeighedDirection::new(position, direction));
        let outcomes = [0, 1].map(|direction| directions[direction].heaviest());
        for (outcome, of) in outcomes.iter().zip(&directions) {
            if matches!(outcome, KnapsackOutcome::NoSet) {
                proof.diagonals.prove(&of.diagonals, None, proof.writer)?;
                return Ok(ProvedList::default());
            }
        }
        let [falling, rising] = outcomes;
        let least = [(falling, 0), (rising, 1)].map(|(outcome, direction)| match outcome {
            KnapsackOutcome::Heaviest(found) => directions[direction].weight(found.any.into()),
            _ => unreachable!("there would be too many sets"),
        });
        let total = i128::from(self.listed.total());
        let mut bound = ReversePolish::default();
        bound.add(sum_of_squares[1], 1);
        let heaviest = directions[second].weight(least[second]);
        if heaviest < directions[second].diagonals.weight().into() {
            let of = &directions[second].diagonals;
            bound.add(proof.diagonals.prove(of, Some(heaviest), proof.writer)?, 1);
        }
        bound.add(proof.diagonals.count(second)[0], directions[second].largest);
        bound.add(proof.diagonals.count(first)[0], directions[first].largest);
        let bound = proof.writer.pol(&bound)?;
        self.enumerate(proof, &directions[first], bound, total - least[second])?;
        if self.sets[first].is_empty() {
            return Ok(ProvedList::default());
        }
        let at_most = self.write_thresholds(proof.writer, sum_of_squares)?;
        let mut bound = ReversePolish::default();
        bound.add(at_most, 1);
        bound.add(proof.diagonals.count(second)[0], directions[second].largest);
        let bound = proof.writer.pol(&bound)?;
        self.enumerate(proof, &directions[second], bound, total - least[first])?;
        self.write_partners(proof.writer)?;
        let falling = self.prove_direction(0, proof.writer)?;
        let rising = self.prove_direction(1, proof.writer)?;
        Ok(ProvedList { directions: [falling, rising] })
    }

    /// Proves that one of the sets of a direction that have variables is used. `bound` says that
    /// the squares sum to at most `most`, as a lower bound on the weight.
    fn enumerate(
        &self,
        proof: &mut FirstProof<'_, '_>,
        of: &WeighedDirection,
        bound: Id,
        most: i128,
    ) -> Result<(), ProofError> {
        let Direction { direction, lines, .. } = &of.diagonals;
        let knapsack = of.diagonals.knapsack(Some(of.weight(most) - 1));
        let first = first_line(self.n, *direction);
        let items = |set: Diagonals| -> Diagonals {
            (0..lines.len()).filter(|&item| set.contains(lines[item] - first)).collect()
        };
        let excluded: Vec<Diagonals> = self.listed.sets(*direction).map(items).collect();
        let Ok(steps) = knapsack.prove(&excluded, None, proof.writer.lines_left()) else {
            return proof.writer.exceed();
        };
        let claim = Claim { direction: *direction, knapsack: &knapsack, lines, with: None };
        let sets = self.sets[*direction].iter().map(|set| set.variable.positive());
        proof.writer.begin_contradiction(&Constraint::clause(sets))?;
        proof.diagonals.write_steps(&claim, bound, &steps, proof.writer)?;
        proof.writer.end_contradiction().map(drop)
    }

    /// Proves what the sets of the first direction mean for the thresholds, and in which order
    /// these are. Returns the identifier of "the squares of the second direction sum to at most the
    /// total less the least threshold".
    fn write_thresholds(
        &self,
        writer: &mut ProofWriter<'_>,
        [at_least, at_most]: [Id; 2],
    ) -> Result<Id, ProofError> {
        let mut of_second = None;
        for threshold in self.thresholds.values() {
            for (implied, other) in threshold.implies.into_iter().zip([at_most, at_least]) {
                let mut sum = ReversePolish::default();
                sum.add(implied, 1);
                sum.add(other, 1);
                let id = writer.pol(&sum)?;
                of_second.get_or_insert(id);
            }
        }
        for (lower, higher) in self.thresholds.values().zip(self.thresholds.values().skip(1)) {
            let mut sum = ReversePolish::default();
            sum.add(higher.implies[0], 1);
            sum.add(lower.implies[1], 1);
            sum.saturate();
            writer.pol(&sum)?;
        }
        self.write_squares(self.listed_first, writer, |squares| squares)?;
        // Between the sums of the sets there are none.
        let sums: BTreeSet<i64> =
            self.sets[self.listed_first].iter().map(|set| set.squares).collect();
        let before = std::iter::once(None).chain(sums.iter().map(Some));
        let after = sums.iter().map(Some).chain([None]);
        let mut least = None;
        for (before, after) in before.zip(after) {
            let next = before.map(|sum| self.thresholds[&(sum + 1)].variable.negative());
            let reached = after.map(|sum| self.thresholds[sum].variable.positive());
            if before.map(|sum| sum + 1) == after.copied() {
                continue;
            }
            let id = writer.rup(&Constraint::clause(next.into_iter().chain(reached)))?;
            least.get_or_insert(id);
        }
        // The least threshold is reached.
        let first = of_second.zip(least).zip(self.thresholds.first_key_value());
        let ((of_second, least), (&threshold, _)) = first.expect("there is a set");
        let mut sum = ReversePolish::default();
        sum.add(of_second, 1);
        sum.add(least, threshold.into());
        writer.pol(&sum)
    }

    /// Proves that each set of a direction implies what is known about the squares of the first
    /// direction: `of_first` of its own squares.
    fn write_squares(
        &self,
        direction: usize,
        writer: &mut ProofWriter<'_>,
        of_first: impl Fn(i64) -> i64,
    ) -> Result<(), ProofError> {
        for set in &self.sets[direction] {
            let squares = of_first(set.squares);
            let unused = set.variable.negative();
            let reached = self.thresholds[&squares].variable.positive();
            writer.rup(&Constraint::clause([unused, reached]))?;
            let exceeded = self.thresholds[&(squares + 1)].variable.negative();
            writer.rup(&Constraint::clause([unused, exceeded]))?;
        }
        Ok(())
    }

    /// Proves for each set that one of its partners is used if it is, and removes those that have
    /// no partner.
    fn write_partners(&mut self, writer: &mut ProofWriter<'_>) -> Result<(), ProofError> {
        let total = self.listed.total();
        self.write_squares(1 - self.listed_first, writer, |squares| total - squares)?;
        let by_squares = [0, 1].map(|direction| {
            let mut by_squares: HashMap<i64, Vec<Literal>> = HashMap::new();
            for set in &self.sets[direction] {
                by_squares.entry(set.squares).or_default().push(set.variable.positive());
            }
            by_squares
        });
        for direction in [self.listed_first, 1 - self.listed_first] {
            for set in &self.sets[direction] {
                let partners = by_squares[1 - direction].get(&(total - set.squares));
                let unused = set.variable.negative();
                let partners = partners.into_iter().flatten().copied();
                writer.rup(&Constraint::clause(std::iter::once(unused).chain(partners)))?;
            }
        }
        let others = &by_squares[1 - self.listed_first];
        self.sets[self.listed_first].retain(|set| others.contains_key(&(total - set.squares)));
        Ok(())
    }

    /// Proves the support clauses of a direction, and that at most one of its sets is used.
    fn prove_direction(
        &self,
        direction: usize,
        writer: &mut ProofWriter<'_>,
    ) -> Result<ProvedDirection, ProofError> {
        let sets: Vec<&Set> = self.sets[direction].iter().collect();
        let mut support = Vec::new();
        for diagonal in self.listed.open(direction).iter() {
            let line = self.line(direction, diagonal);
            let with = sets.iter().filter(|set| set.set.contains(diagonal));
            let with = with.map(|set| set.variable.positive());
            let unused = usage(self.n, line).negative();
            let clause = Constraint::clause(std::iter::once(unused).chain(with));
            support.push((line, writer.rup(&clause)?));
        }
        let at_most_one = self.prove_at_most_one(direction, &sets, writer)?;
        Ok(ProvedDirection { support, at_most_one })
    }

    /// Proves that at most one of these sets of a direction is used; `None` if there are fewer than
    /// two. A diagonal divides them: k sets with it exclude each other, Σ ~u ≥ k - 1, and imply
    /// that it is used, Σ ~u + k d ≥ k, so Σ ~u + d ≥ k. With the same for ~d and the other sets, d
    /// cancels.
    fn prove_at_most_one(
        &self,
        direction: usize,
        sets: &[&Set],
        writer: &mut ProofWriter<'_>,
    ) -> Result<Option<Id>, ProofError> {
        if sets.len() < 2 {
            return Ok(None);
        }
        let with = |diagonal: usize| sets.iter().filter(|set| set.set.contains(diagonal)).count();
        let unevenness = |&diagonal: &usize| (2 * with(diagonal)).abs_diff(sets.len());
        let diagonal = self.listed.open(direction).iter().min_by_key(unevenness);
        let diagonal = diagonal.expect("different sets have diagonals");
        let variable = usage(self.n, self.line(direction, diagonal));
        let mut both = ReversePolish::default();
        for used in [true, false] {
            let part: Vec<&Set> =
                sets.iter().copied().filter(|set| set.set.contains(diagonal) == used).collect();
            let number = part.len();
            let at_most_one = self.prove_at_most_one(direction, &part, writer)?;
            let unused = part.iter().map(|set| set.variable.negative());
            let mut implies = Constraint::at_least(number, unused);
            implies.terms.push((number as i128, Literal { variable, negated: !used }));
            let mut id = writer.rup(&implies)?;
            if let Some(at_most_one) = at_most_one {
                let mut sum = ReversePolish::default();
                sum.add(id, 1);
                sum.add(at_most_one, number as i128 - 1);
                sum.divide(number);
                id = writer.pol(&sum)?;
            }
            both.add(id, 1);
        }
        writer.pol(&both).map(Some)
    }
}

impl WeighedDirection {
    fn new(position: &Position, direction: usize) -> Self {
        let n = position.n();
        let first = first_line(n, direction);
        let usable = (first..first + 2 * n - 1).filter(|&line| position.is_usable(line));
        let largest = usable.map(|line| square(n, line)).max().unwrap_or_default();
        let mut y = vec![0; 6 * n - 2];
        for (line, y) in y.iter_mut().enumerate().skip(first).take(2 * n - 1) {
            *y = (largest - square(n, line)) as i64;
        }
        Self { diagonals: Direction::new(position, &y, direction), largest }
    }

    /// Returns the weight of a set whose squares have this sum, or the other way round.
    fn weight(&self, sum_of_squares: i128) -> i128 {
        self.largest * i128::from(self.diagonals.count) - sum_of_squares
    }

    /// Returns the weights of the heaviest sets, which have the least sum of squares.
    fn heaviest(&self) -> KnapsackOutcome {
        let Direction { items, count, sum, .. } = &self.diagonals;
        heaviest(items, *count as usize, *sum, &mut Tables::default()).0
    }
}

impl ProvedList {
    /// Returns whether a diagonal was open when the sets were listed.
    pub(super) fn is_open(&self, line: usize) -> bool {
        let [falling, rising] = &self.directions;
        falling.support.iter().chain(&rising.support).any(|&(open, _)| open == line)
    }

    /// Adds to a sum that the possible sets of a direction weigh at most `most`.
    pub(super) fn add_bound(
        &self,
        direction: usize,
        weight: impl Fn(usize) -> i64,
        most: i64,
        sum: &mut ReversePolish,
    ) {
        let ProvedDirection { support, at_most_one } = &self.directions[direction];
        for &(line, clause) in support {
            sum.add(clause, weight(line).into());
        }
        if let Some(id) = *at_most_one {
            sum.add(id, most.into());
        }
    }
}
