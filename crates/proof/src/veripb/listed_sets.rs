//! Lists of sets of diagonals.
//!
//! Each listed set has a variable u, which is true exactly if the open diagonals of its direction that
//! are used are those of the set. The proof of a list has these steps:
//!
//! 1. One direction is listed first. The squares of the other one have a known least sum (a knapsack),
//!    so those of the first one are bounded. Branch and bound shows that one of its sets is used: the
//!    definitions of the variables exclude each of them when the contrary is supposed.
//! 2. A variable q for each of some limits says that the squares of the first direction sum to at
//!    least this limit. A set of the first direction determines them all. Between the sums of two sets
//!    there is no other sum, so q of the lower one's successor implies q of the higher one.
//! 3. The squares of both directions have a known sum, so a set of the second direction determines
//!    them, too: a set without a partner contradicts them. So branch and bound shows that one of the sets
//!    with a partner is used.
//! 4. Then each set implies that one of its partners is used, a diagonal is used only if one of its
//!    sets is, and at most one set of a direction is used.
//!
//! From this, unit propagation draws the checker's conclusions about possible sets. The bound on the
//! weight of used diagonals is a sum: each weight times "the diagonal is used only if one of its
//! sets is", and the bound times "at most one set is used". Sets that are not possible do not matter
//! there, since their variables are false.
//!
//! VeriPB accepts definitions only outside proofs by contradiction. So they are written before the
//! prefix whose refutation has the list, and deleted after it.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::board_lines::usage;
use super::constraint::{Constraint, Literal, Variable};
use super::diagonals::{Claim, square};
use super::direction::Direction;
use super::first::FirstProof;
use super::writer::{Id, ProofWriter, ReversePolish};
use crate::ProofError;
use crate::first::{DiagonalSets, Diagonals as DiagonalSet, KnapsackOutcome, Position};

/// The numbers of the next variables.
#[derive(Default)]
pub(super) struct NextVariables {
    set: u32,
    limit: u32,
}

/// A list whose variables are defined.
pub(super) struct DefinedList {
    n: usize,
    /// All sets of a certain size, with those that have no partner.
    listed: DiagonalSets,
    /// The direction that is listed first.
    first: usize,
    /// By direction: all sets of the first one, and the sets of the other one with a partner.
    sets: [Vec<Set>; 2],
    /// By the limit.
    limits: BTreeMap<i64, Limit>,
}

/// A set with its variable.
struct Set {
    set: DiagonalSet,
    squares: i64,
    variable: Variable,
}

/// A limit on the squares of the diagonals of the first direction.
struct Limit {
    variable: Variable,
    /// The variable implies that the sum is at least the limit; its negation, that it is less.
    implies: [Id; 2],
}

/// A list that is proved.
pub(super) struct ProvedList {
    directions: [ProvedDirection; 2],
}

struct ProvedDirection {
    /// Each diagonal on which a queen could stand when the sets were listed, with "it is used only
    /// if one of its sets is".
    covers: Vec<(usize, Id)>,
    /// At most one set is used; `None` if there are fewer than two.
    at_most_one: Option<Id>,
}

/// The diagonals of a direction, where each weighs the largest of their squares less its own.
struct Weighed {
    direction: usize,
    of: Direction,
    largest: i128,
}

/// Returns the first line of a direction.
const fn first_line(n: usize, direction: usize) -> usize {
    if direction == 0 { 2 * n } else { 4 * n - 1 }
}

impl DefinedList {
    /// Defines the variables of the sets and the limits.
    pub(super) fn define(
        n: usize,
        listed: DiagonalSets,
        next: &mut NextVariables,
        writer: &mut ProofWriter<'_>,
    ) -> Result<Self, ProofError> {
        let first = usize::from(listed.len(1) < listed.len(0));
        let matched = listed.clone().matched();
        let sets = [0, 1].map(|direction| {
            let of = if direction == first { &listed } else { &matched };
            let set = |(set, squares): (DiagonalSet, i64)| {
                next.set += 1;
                Set { set, squares, variable: Variable::Set(next.set - 1) }
            };
            of.with_squares(direction).map(set).collect::<Vec<_>>()
        });
        let mut list = Self { n, listed, first, sets, limits: BTreeMap::new() };
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
        let sums = list.sets[first].iter().flat_map(|set| [set.squares, set.squares + 1]);
        for limit in sums.collect::<BTreeSet<i64>>() {
            next.limit += 1;
            let variable = Variable::SquaresAtLeast(next.limit - 1);
            let mut implies = [0; 2];
            for (id, is_reached) in implies.iter_mut().zip([true, false]) {
                let constraint = list.limit(i128::from(limit), variable, is_reached);
                *id = writer.red(&constraint, variable, !is_reached)?;
            }
            list.limits.insert(limit, Limit { variable, implies });
        }
        Ok(list)
    }

    /// Returns the literals that say which open diagonals of a direction are used.
    fn literals(
        &self,
        direction: usize,
        set: DiagonalSet,
    ) -> impl Iterator<Item = Literal> + use<'_> {
        self.listed.open(direction).iter().map(move |diagonal| Literal {
            variable: usage(self.n, first_line(self.n, direction) + diagonal),
            negated: !set.contains(diagonal),
        })
    }

    /// Returns "if the variable is `is_reached`, the squares sum to at least the limit", or to less if
    /// it is not set.
    fn limit(&self, limit: i128, variable: Variable, is_reached: bool) -> Constraint {
        let line = |diagonal| first_line(self.n, self.first) + diagonal;
        let lines = self.listed.open(self.first).iter().map(line);
        let terms = lines.map(|line| {
            let used = Literal { variable: usage(self.n, line), negated: !is_reached };
            (square(self.n, line), used)
        });
        let terms: Vec<_> = terms.filter(|&(square, _)| square > 0).collect();
        let all: i128 = terms.iter().map(|(square, _)| square).sum();
        let degree = if is_reached { limit } else { all - limit + 1 };
        let constraint = Constraint { terms, equal: false, degree };
        let condition = Literal { variable, negated: !is_reached };
        constraint.implied_by(condition)
    }

    /// Proves the list at this position, where the equation of squares has these identifiers.
    pub(super) fn prove(
        mut self,
        squares: [Id; 2],
        proof: &mut FirstProof<'_, '_>,
        position: &Position,
    ) -> Result<ProvedList, ProofError> {
        let [first, second] = [self.first, 1 - self.first];
        let weighed = [0, 1].map(|direction| Weighed::new(position, direction));
        let total = i128::from(self.listed.total());
        let least = match least_squares(proof, position, &weighed)? {
            Some(least) => least,
            None => return Ok(ProvedList::refuted()),
        };
        let bound =
            bound_by_other(proof, squares, [&weighed[first], &weighed[second]], least[second])?;
        self.enumerate(proof, &weighed[first], bound, total - least[second])?;
        if self.sets[first].is_empty() {
            return Ok(ProvedList::refuted());
        }
        let bound = self.write_limits(proof, squares)?;
        let mut sum = ReversePolish::default();
        sum.add(bound, 1);
        sum.add(proof.diagonals.count(second)[0], weighed[second].largest);
        let bound = proof.writer.pol(&sum)?;
        self.enumerate(proof, &weighed[second], bound, total - least[first])?;
        self.write_pairs(proof.writer)?;
        let [falling, rising] = [0, 1].map(|direction| self.cover(direction, proof.writer));
        Ok(ProvedList { directions: [falling?, rising?] })
    }

    /// Proves that one of the sets of a direction that have variables is used. `bound` is "the squares
    /// of the direction sum to at most `most`", with the weights instead of the squares.
    fn enumerate(
        &self,
        proof: &mut FirstProof<'_, '_>,
        weighed: &Weighed,
        bound: Id,
        most: i128,
    ) -> Result<(), ProofError> {
        let Weighed { direction, of, largest } = weighed;
        let knapsack = of.knapsack(Some(largest * i128::from(of.count) - most - 1));
        let first = first_line(self.n, *direction);
        let excluded = |set: DiagonalSet| {
            of.lines.iter().map(|&line| set.contains(line - first)).collect::<Vec<_>>()
        };
        let excluded: Vec<Vec<bool>> = self.listed.sets(*direction).map(excluded).collect();
        let most_steps = proof.writer.most_steps();
        let Ok(steps) = knapsack.prove_excluding(&excluded, None, most_steps) else {
            return proof.writer.reserve(u64::MAX);
        };
        let claim =
            Claim { direction: *direction, knapsack: &knapsack, lines: &of.lines, with: None };
        let sets = self.sets[*direction].iter().map(|set| set.variable.positive());
        proof.writer.begin_contradiction(&Constraint::clause(sets))?;
        proof.diagonals.write_steps(&claim, bound, &steps, proof.writer)?;
        proof.writer.end_contradiction().map(drop)
    }

    /// Proves what the sets of the first direction mean for the limits, and in which order these
    /// are. Returns the identifier of "the squares of the second direction sum to at most the total
    /// less the least limit".
    fn write_limits(
        &self,
        proof: &mut FirstProof<'_, '_>,
        squares: [Id; 2],
    ) -> Result<Id, ProofError> {
        let writer = &mut *proof.writer;
        let [at_least, at_most] = squares;
        let mut of_second = Vec::new();
        for limit in self.limits.values() {
            for (implied, other) in limit.implies.into_iter().zip([at_most, at_least]) {
                let mut sum = ReversePolish::default();
                sum.add(implied, 1);
                sum.add(other, 1);
                of_second.push(writer.pol(&sum)?);
            }
        }
        for (lower, higher) in self.limits.values().zip(self.limits.values().skip(1)) {
            let mut sum = ReversePolish::default();
            sum.add(higher.implies[0], 1);
            sum.add(lower.implies[1], 1);
            sum.saturate();
            writer.pol(&sum)?;
        }
        self.write_squares(self.first, writer, |squares| squares)?;
        // Between the sums of the sets there are none.
        let sums: BTreeSet<i64> = self.sets[self.first].iter().map(|set| set.squares).collect();
        let before = std::iter::once(None).chain(sums.iter().map(Some));
        let after = sums.iter().map(Some).chain([None]);
        let mut least = None;
        for (before, after) in before.zip(after) {
            let next = before.map(|sum| self.limits[&(sum + 1)].variable.negative());
            let reached = after.map(|sum| self.limits[sum].variable.positive());
            if before.map(|sum| sum + 1) == after.copied() {
                continue;
            }
            let id = writer.rup(&Constraint::clause(next.into_iter().chain(reached)))?;
            least.get_or_insert(id);
        }
        let (&limit, _) = self.limits.first_key_value().expect("there is a set");
        let mut sum = ReversePolish::default();
        sum.add(of_second[0], 1);
        sum.add(least.unwrap_or_default(), limit.into());
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
            let reached = self.limits[&squares].variable.positive();
            writer.rup(&Constraint::clause([unused, reached]))?;
            let exceeded = self.limits[&(squares + 1)].variable.negative();
            writer.rup(&Constraint::clause([unused, exceeded]))?;
        }
        Ok(())
    }

    /// Proves for each set that one of its partners is used if it is, and removes those that have no
    /// partner.
    fn write_pairs(&mut self, writer: &mut ProofWriter<'_>) -> Result<(), ProofError> {
        let total = self.listed.total();
        self.write_squares(1 - self.first, writer, |squares| total - squares)?;
        let by_squares = [0, 1].map(|direction| {
            let mut by_squares: HashMap<i64, Vec<Literal>> = HashMap::new();
            for set in &self.sets[direction] {
                by_squares.entry(set.squares).or_default().push(set.variable.positive());
            }
            by_squares
        });
        for direction in [self.first, 1 - self.first] {
            for set in &self.sets[direction] {
                let partners = by_squares[1 - direction].get(&(total - set.squares));
                let unused = set.variable.negative();
                let partners = partners.into_iter().flatten().copied();
                writer.rup(&Constraint::clause(std::iter::once(unused).chain(partners)))?;
            }
        }
        let others = &by_squares[1 - self.first];
        self.sets[self.first].retain(|set| others.contains_key(&(total - set.squares)));
        Ok(())
    }

    /// Proves which sets a diagonal of a direction needs, and that at most one is used.
    fn cover(
        &self,
        direction: usize,
        writer: &mut ProofWriter<'_>,
    ) -> Result<ProvedDirection, ProofError> {
        let sets = &self.sets[direction];
        let mut covers = Vec::new();
        for diagonal in self.listed.open(direction).iter() {
            let line = first_line(self.n, direction) + diagonal;
            let with = sets.iter().filter(|set| set.set.contains(diagonal));
            let with = with.map(|set| set.variable.positive());
            let unused = usage(self.n, line).negative();
            let cover = Constraint::clause(std::iter::once(unused).chain(with));
            covers.push((line, writer.rup(&cover)?));
        }
        // From "at most one of the first k" and "the next one excludes the first k".
        let mut at_most_one = None;
        for (number, set) in sets.iter().enumerate().skip(1) {
            let before = sets[..number].iter().map(|set| set.variable.negative());
            let mut excludes = Constraint::at_least(number, before);
            excludes.terms.push((number as i128, set.variable.negative()));
            let mut id = writer.rup(&excludes)?;
            if let Some(before) = at_most_one {
                let mut sum = ReversePolish::default();
                sum.add(id, 1);
                sum.add(before, number as i128 - 1);
                sum.divide(number);
                id = writer.pol(&sum)?;
            }
            at_most_one = Some(id);
        }
        Ok(ProvedDirection { covers, at_most_one })
    }
}

impl Weighed {
    fn new(position: &Position, direction: usize) -> Self {
        let n = position.n();
        let first = first_line(n, direction);
        let lines = first..first + 2 * n - 1;
        let usable = lines.clone().filter(|&line| position.is_usable(line));
        let largest = usable.map(|line| square(n, line)).max().unwrap_or_default();
        let mut y = vec![0; 6 * n - 2];
        for line in lines.filter(|&line| position.is_usable(line)) {
            y[line] = (largest - square(n, line)) as i64;
        }
        Self { direction, of: Direction::new(position, &y, direction), largest }
    }
}

/// Returns the least squares of both directions, or `None` if one of them has no set: then a
/// contradiction is written.
fn least_squares(
    proof: &mut FirstProof<'_, '_>,
    position: &Position,
    weighed: &[Weighed; 2],
) -> Result<Option<[i128; 2]>, ProofError> {
    let mut y = vec![0; 6 * position.n() - 2];
    for Weighed { of, .. } in weighed {
        of.lines.iter().zip(&of.items).for_each(|(&line, item)| y[line] = item.weight);
    }
    let least =
        |heaviest: i64, of: &Weighed| of.largest * i128::from(of.of.count) - i128::from(heaviest);
    let [falling, rising] = weighed;
    let without = match position.heaviest_diagonals(&y) {
        [KnapsackOutcome::Heaviest(one), KnapsackOutcome::Heaviest(other)] => {
            return Ok(Some([least(one.any, falling), least(other.any, rising)]));
        }
        [KnapsackOutcome::NoSet, _] => falling,
        [_, KnapsackOutcome::NoSet] => rising,
        // The check ends with an error: there are too many sets.
        _ => return Ok(None),
    };
    without.write(proof, None).map(|_| None)
}

/// Derives that the squares of the first of two directions sum to at most the total less the least
/// possible ones of the other direction, with weights instead of squares.
fn bound_by_other(
    proof: &mut FirstProof<'_, '_>,
    squares: [Id; 2],
    [first, second]: [&Weighed; 2],
    least: i128,
) -> Result<Id, ProofError> {
    let heaviest = second.largest * i128::from(second.of.count) - least;
    let mut sum = ReversePolish::default();
    if heaviest < i128::from(second.of.weight()) {
        sum.add(second.write(proof, Some(heaviest))?, 1);
    }
    sum.add(squares[1], 1);
    for of in [first, second] {
        sum.add(proof.diagonals.count(of.direction)[0], of.largest);
    }
    proof.writer.pol(&sum)
}

impl Weighed {
    /// Writes that no set weighs more than `most`, or that there is none.
    fn write(&self, proof: &mut FirstProof<'_, '_>, most: Option<i128>) -> Result<Id, ProofError> {
        let Self { direction, of, .. } = self;
        let knapsack = of.knapsack(most);
        let Ok(steps) = knapsack.prove(None, proof.writer.most_steps()) else {
            proof.writer.reserve(u64::MAX)?;
            return Ok(0);
        };
        let claim =
            Claim { direction: *direction, knapsack: &knapsack, lines: &of.lines, with: None };
        proof.diagonals.write(&claim, &steps, proof.writer)
    }
}

impl ProvedList {
    /// Returns the list of a position that is refuted, which no bound needs.
    fn refuted() -> Self {
        let none = || ProvedDirection { covers: Vec::new(), at_most_one: None };
        Self { directions: [none(), none()] }
    }

    /// Returns whether a diagonal was open when the sets were listed.
    pub(super) fn is_open(&self, line: usize) -> bool {
        let [falling, rising] = &self.directions;
        falling.covers.iter().chain(&rising.covers).any(|&(open, _)| open == line)
    }

    /// Adds to a sum that the possible sets of a direction weigh at most `most`.
    pub(super) fn add_bound(
        &self,
        direction: usize,
        weight: impl Fn(usize) -> i64,
        most: i64,
        sum: &mut ReversePolish,
    ) {
        let ProvedDirection { covers, at_most_one } = &self.directions[direction];
        for &(line, cover) in covers {
            sum.add(cover, weight(line).into());
        }
        if let Some(id) = *at_most_one {
            sum.add(id, most.into());
        }
    }
}
