//! The sets of diagonals that a completion can use, listed in pairs.
//!
//! The queens of a completion stand on a set of diagonals c - r and on a set of antidiagonals r + c.
//! Since (r + c)² + (c - r)² = 2r² + 2c², the squares of all these places sum to 2 Σ r² + 2 Σ c² over
//! the open rows and columns. The number and the sum of the places of each set are known, too (see
//! `knapsack.rs`). The sum of squares is least for sets of neighbouring places around the middle.
//! Where a board is so tight that it is hardly more than that, only a few hundred pairs of sets are
//! left of astronomically many.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};

use super::knapsack::{Heaviest, Item, KnapsackOutcome, Tables, heaviest};

/// The largest number of sets that are listed for a direction.
const MOST_SETS: usize = 1 << 14;

/// The largest number of table entries and search nodes with which a checker lists the sets of a
/// direction.
pub(super) const MOST_ENTRIES: usize = 1 << 20;

/// Places are multiplied by this when the middle of sets is determined.
const SCALE: i64 = 16;

/// A set of diagonals of one direction, by number: c - r + n - 1, or r + c. The numbers are below
/// 256; methods with larger ones panic.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Diagonals(pub [u128; 2]);

impl Diagonals {
    /// Returns whether it contains this diagonal.
    pub const fn contains(self, diagonal: usize) -> bool {
        self.0[diagonal / 128] >> (diagonal % 128) & 1 == 1
    }

    /// Returns the diagonals that are in it or in `other`.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self([self.0[0] | other.0[0], self.0[1] | other.0[1]])
    }

    /// Returns the diagonals that are in it and in `other`.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self([self.0[0] & other.0[0], self.0[1] & other.0[1]])
    }

    /// Returns the diagonals that are in it, but not in `other`.
    #[must_use]
    pub fn without(self, other: Self) -> Self {
        Self([self.0[0] & !other.0[0], self.0[1] & !other.0[1]])
    }

    /// Returns whether it is empty.
    pub const fn is_empty(self) -> bool {
        self.0[0] == 0 && self.0[1] == 0
    }

    /// Returns the diagonals in ascending order.
    pub fn iter(self) -> impl Iterator<Item = usize> {
        let of = |half: usize| {
            let mut rest = self.0[half];
            std::iter::from_fn(move || {
                let bit = rest.trailing_zeros() as usize;
                (rest != 0).then(|| {
                    rest &= rest - 1;
                    128 * half + bit
                })
            })
        };
        of(0).chain(of(1))
    }
}

impl FromIterator<usize> for Diagonals {
    fn from_iter<T: IntoIterator<Item = usize>>(diagonals: T) -> Self {
        let mut set = Self::default();
        diagonals.into_iter().for_each(|diagonal| set.0[diagonal / 128] |= 1 << (diagonal % 128));
        set
    }
}

/// The diagonals of a direction that are assumed to be used, and not to be used, in a case.
#[derive(Clone, Copy, Debug, Default)]
pub struct AssumedDiagonals {
    /// Those with a queen.
    pub used: Diagonals,
    /// Those without one.
    pub unused: Diagonals,
}

impl AssumedDiagonals {
    /// Nothing is assumed.
    pub const NONE: Self = Self { used: Diagonals([0; 2]), unused: Diagonals([0; 2]) };

    /// Adds a diagonal.
    pub fn add(&mut self, diagonal: usize, used: bool) {
        let diagonals = if used { &mut self.used } else { &mut self.unused };
        *diagonals = diagonals.or(Diagonals::from_iter([diagonal]));
    }
}

/// The open lines of a board.
#[derive(Clone, Debug)]
pub struct OpenBoard {
    /// The board size.
    pub n: usize,
    /// The rows and columns without a queen, 0-based.
    pub rows: Vec<usize>,
    /// See `rows`.
    pub columns: Vec<usize>,
    /// The diagonals c - r + n - 1 and the antidiagonals r + c on which a queen can still stand.
    pub diagonals: [Diagonals; 2],
}

/// A set of diagonals of one direction that a completion may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Candidate {
    set: Diagonals,
    /// The sum of the squares of the places c - r, or r + c.
    squares: i64,
}

/// The sets of diagonals that the further queens of a completion can stand on, by direction: each
/// has a partner in the other direction.
#[derive(Clone, Debug)]
pub struct DiagonalSets {
    sets: [Vec<Candidate>; 2],
    /// The sum of the squares of a pair.
    total: i64,
    /// The diagonals on which a queen could stand when the sets were listed.
    open: [Diagonals; 2],
}

/// There are too many sets to list them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooManySets;

impl DiagonalSets {
    /// Lists the sets of a board, with at most this number of table entries and search nodes for each
    /// direction. Also returns the number of operations.
    ///
    /// # Errors
    /// Returns an error if that is not enough, or if there are too many sets of a direction: more
    /// than 2^14 have the right number and sum, and squares that sum to at most those of both
    /// directions without the least that are possible for the other one.
    ///
    /// # Panics
    /// If the board is larger than 128.
    pub fn list(board: &OpenBoard, most_entries: usize) -> (Result<Self, TooManySets>, usize) {
        let (rows, columns) = (&board.rows, &board.columns);
        let sum = |lines: &[usize]| lines.iter().map(|&line| line as i64).sum::<i64>();
        let squares = |lines: &[usize]| lines.iter().map(|&line| (line * line) as i64).sum::<i64>();
        let total = 2 * (squares(rows) + squares(columns));
        let sums = [sum(columns) - sum(rows), sum(rows) + sum(columns)];
        let firsts = [1 - board.n as i64, 0];
        let mut operations = 0;
        let mut listings = [0, 1].map(|direction| {
            let lines: Vec<usize> = board.diagonals[direction].iter().collect();
            let places = lines.iter().map(|&line| line as i64 + firsts[direction]).collect();
            Listing { lines, places, count: rows.len(), sum: sums[direction] }
        });
        let least = [0, 1].map(|direction| listings[direction].least_squares(&mut operations));
        let mut sets = [Vec::new(), Vec::new()];
        let has_none = least.iter().any(|least| matches!(least, Ok(None)));
        if !has_none && least.iter().any(Result::is_err) {
            return (Err(TooManySets), operations);
        }
        if let [Ok(Some(falling)), Ok(Some(rising))] = &least {
            for (direction, other) in [(0, rising.any), (1, falling.any)] {
                let with = if direction == 0 { &falling.with } else { &rising.with };
                let listing = &mut listings[direction];
                listing.keep_within(with, total - other);
                match listing.list(total - other, most_entries, &mut operations) {
                    Ok(found) => sets[direction] = found,
                    Err(error) => return (Err(error), operations),
                }
            }
        }
        let mut listed = Self { sets, total, open: board.diagonals };
        listed.match_pairs();
        (Ok(listed), operations)
    }

    /// Returns the sets that are possible if queens stand on the diagonals `taken`, no others can
    /// stand on diagonals that are not `usable`, and these cases are assumed.
    #[must_use]
    pub fn possible(
        &self,
        taken: [Diagonals; 2],
        usable: [Diagonals; 2],
        assumed: &[AssumedDiagonals; 2],
    ) -> Self {
        let mut listed = Self { sets: [Vec::new(), Vec::new()], ..*self };
        for (direction, assumed) in assumed.iter().enumerate() {
            let (open, taken) = (self.open[direction], taken[direction]);
            let needed = open.and(taken).or(assumed.used);
            let excluded = open.without(taken.or(usable[direction])).or(assumed.unused);
            let is_possible = |candidate: &&Candidate| {
                needed.without(candidate.set).is_empty() && candidate.set.and(excluded).is_empty()
            };
            listed.sets[direction] =
                self.sets[direction].iter().filter(is_possible).copied().collect();
        }
        listed.match_pairs();
        listed
    }

    /// Removes the sets without a partner.
    fn match_pairs(&mut self) {
        let squares = [0, 1].map(|direction| {
            self.sets[direction].iter().map(|candidate| candidate.squares).collect::<HashSet<_>>()
        });
        for (direction, sets) in self.sets.iter_mut().enumerate() {
            let others = &squares[1 - direction];
            sets.retain(|candidate| others.contains(&(self.total - candidate.squares)));
        }
    }

    /// Returns whether there is no set, so that the board has no completion.
    pub const fn is_empty(&self) -> bool {
        self.sets[0].is_empty()
    }

    /// Returns the number of sets of a direction.
    pub const fn len(&self, direction: usize) -> usize {
        self.sets[direction].len()
    }

    /// Returns the number of pairs.
    pub fn pairs(&self) -> usize {
        let mut partners = HashMap::new();
        for candidate in &self.sets[0] {
            *partners.entry(self.total - candidate.squares).or_insert(0) += 1;
        }
        self.sets[1].iter().map(|candidate| partners.get(&candidate.squares).unwrap_or(&0)).sum()
    }

    /// Returns the sets of a direction.
    pub fn sets(&self, direction: usize) -> impl ExactSizeIterator<Item = Diagonals> {
        self.sets[direction].iter().map(|candidate| candidate.set)
    }

    /// Returns whether a direction has this set.
    pub fn contains(&self, direction: usize, set: Diagonals) -> bool {
        self.sets[direction].binary_search_by_key(&set, |candidate| candidate.set).is_ok()
    }

    /// Returns the diagonals of a direction that a set contains.
    pub fn union(&self, direction: usize) -> Diagonals {
        self.sets(direction).fold(Diagonals::default(), Diagonals::or)
    }

    /// Returns the heaviest set of a direction with its weight, or `None` if there is no set.
    /// `weights` has a weight for each diagonal.
    pub fn heaviest(&self, direction: usize, weights: &[i64]) -> Option<(i64, Diagonals)> {
        let weight = |set: Diagonals| set.iter().map(|diagonal| weights[diagonal]).sum::<i64>();
        self.sets(direction).map(|set| (weight(set), set)).max_by_key(|&(weight, _)| weight)
    }

    /// Returns the greatest weight of a set of a direction and, by diagonal, that of a set that
    /// contains it, or `None` if none does; `None` if there is no set. `weights` has a weight for
    /// each diagonal.
    pub fn greatest_weights(
        &self,
        direction: usize,
        weights: &[i64],
    ) -> Option<(i64, Vec<Option<i64>>)> {
        let mut with = vec![None; weights.len()];
        let mut any = None;
        for set in self.sets(direction) {
            let weight: i64 = set.iter().map(|diagonal| weights[diagonal]).sum();
            any = any.max(Some(weight));
            set.iter().for_each(|diagonal| with[diagonal] = with[diagonal].max(Some(weight)));
        }
        any.map(|any| (any, with))
    }
}

/// The sets of one direction that are to be listed.
struct Listing {
    /// The diagonals, and their places in ascending order.
    lines: Vec<usize>,
    places: Vec<i64>,
    count: usize,
    sum: i64,
}

/// A diagonal that is in the basic set and can be removed, or is not and can be added.
struct Change {
    /// The index of the diagonal.
    index: usize,
    /// How much the change makes the set worse; not negative.
    cost: i64,
    /// The change of the number of diagonals, 1 or -1, and of the sum of their places.
    count: i32,
    sum: i64,
}

/// By number and sum of the places that are still to be added: the least cost of such changes.
type Table = HashMap<(i32, i64), i64>;

impl Listing {
    /// Returns the least sums of squares of a set, and of sets with each diagonal; `None` if there
    /// is no set.
    fn least_squares(&self, operations: &mut usize) -> Result<Option<Heaviest>, TooManySets> {
        let most = self.places.iter().map(|place| place * place).max().unwrap_or(0);
        let item = |&place: &i64| Item { place, weight: most - place * place };
        let items: Vec<Item> = self.places.iter().map(item).collect();
        let (outcome, done) = heaviest(&items, self.count, self.sum, &mut Tables::default());
        *operations = operations.saturating_add(done);
        let squares = |weight: i64| self.count as i64 * most - weight;
        match outcome {
            KnapsackOutcome::Heaviest(Heaviest { any, with }) => Ok(Some(Heaviest {
                any: squares(any),
                with: with.into_iter().map(|with| with.map(squares)).collect(),
            })),
            KnapsackOutcome::NoSet => Ok(None),
            KnapsackOutcome::TooLarge => Err(TooManySets),
        }
    }

    /// Keeps the diagonals that are in a set with at most these squares. `with` are the least ones.
    fn keep_within(&mut self, with: &[Option<i64>], most: i64) {
        let mut with = with.iter();
        let kept =
            self.lines.iter().zip(&self.places).filter(|_| {
                with.next().is_some_and(|least| least.is_some_and(|least| least <= most))
            });
        (self.lines, self.places) = kept.map(|(&line, &place)| (line, place)).unzip();
    }

    /// Lists the sets with at most these squares.
    ///
    /// The places nearest to the middle form a basic set, which has the right number. The squares
    /// relative to the middle and to a limit between the basic set and the others make each change
    /// of it cost something, and they determine how much all changes together may cost.
    fn list(
        &self,
        most: i64,
        most_entries: usize,
        operations: &mut usize,
    ) -> Result<Vec<Candidate>, TooManySets> {
        let Self { lines, places, count, sum } = self;
        if places.len() < *count {
            return Ok(Vec::new());
        }
        let (order, middle) = self.around_middle();
        let square = |index: usize| (SCALE * places[index] - middle).pow(2);
        let (basic, others) = order.split_at(*count);
        let last = basic.last().map_or(0, |&index| square(index));
        // Twice the limit.
        let limit = last + others.first().map_or(last, |&index| square(index));
        let sum_of = |basic: &[usize]| basic.iter().map(|&index| places[index]).sum::<i64>();
        let (count, of_basic) =
            (*count as i64, basic.iter().map(|&index| square(index)).sum::<i64>());
        let allowed = SCALE * SCALE * most - 2 * SCALE * middle * sum + count * middle * middle;
        let most_cost = 2 * (allowed - of_basic);
        let change = |(number, &index): (usize, &usize)| {
            let is_basic = number < basic.len();
            let sign = if is_basic { -1 } else { 1 };
            let cost = i64::from(sign) * (2 * square(index) - limit);
            Change { index, cost, count: sign, sum: i64::from(sign) * places[index] }
        };
        let mut changes: Vec<Change> = order.iter().enumerate().map(change).collect();
        changes.retain(|change| change.cost <= most_cost);
        changes.sort_by_key(|change| (Reverse(change.cost), change.index));
        let mut search = Search {
            tables: Vec::new(),
            changes: &changes,
            most_cost,
            entries: 0,
            most_entries,
            current: basic.iter().map(|&index| lines[index]).collect(),
            lines,
            found: Vec::new(),
        };
        let missing = sum - sum_of(basic);
        let listed = search.fill_tables(missing).and_then(|()| search.extend(0, 0, (0, missing)));
        *operations = operations.saturating_add(100 * search.entries);
        listed?;
        let first = places.first().map_or(0, |place| place - lines[0] as i64);
        let squares = |set: Diagonals| set.iter().map(|line| (line as i64 + first).pow(2)).sum();
        let mut sets = search.found;
        sets.sort_unstable();
        Ok(sets.into_iter().map(|set| Candidate { set, squares: squares(set) }).collect())
    }

    /// Returns the diagonals in ascending distance from a middle, times [`SCALE`], for which the sum
    /// of the nearest ones is about right.
    fn around_middle(&self) -> (Vec<usize>, i64) {
        let Self { places, count, sum, .. } = self;
        let nearest = |middle: i64| {
            let mut order: Vec<usize> = (0..places.len()).collect();
            order.sort_by_key(|&index| ((SCALE * places[index] - middle).abs(), index));
            order
        };
        let ends =
            [places.first(), places.last()].map(|place| place.map_or(0, |place| SCALE * place));
        let (mut start, mut end) = (ends[0] - SCALE, ends[1] + SCALE);
        while end - start > 1 {
            let middle = start.midpoint(end);
            let of_nearest =
                nearest(middle)[..*count].iter().map(|&index| places[index]).sum::<i64>();
            if of_nearest < *sum { start = middle } else { end = middle }
        }
        (nearest(end), end)
    }
}

/// A search for the changes of the basic set that give the right number and sum.
struct Search<'l> {
    changes: &'l [Change],
    most_cost: i64,
    /// By number of changes that are decided: the table over the others.
    tables: Vec<Table>,
    /// The entries of the tables and the nodes of the search.
    entries: usize,
    most_entries: usize,
    lines: &'l [usize],
    current: Diagonals,
    found: Vec<Diagonals>,
}

impl Search<'_> {
    /// Fills the tables, beginning with the last one. The changes before have to add the rest of
    /// `missing`, each at the cost of the last of them or more.
    fn fill_tables(&mut self, missing: i64) -> Result<(), TooManySets> {
        let mut tables = vec![Table::from([((0, 0), 0)])];
        for (number, change) in self.changes.iter().enumerate().rev() {
            let cost_before =
                number.checked_sub(1).map_or(i64::MAX, |last| self.changes[last].cost);
            let is_possible = |(count, sum): (i32, i64), cost: i64| {
                let least = match count {
                    0 if sum == missing => 0,
                    0 => 2,
                    _ => i64::from(count.abs()),
                };
                cost_before.saturating_mul(least).saturating_add(cost) <= self.most_cost
            };
            let after = tables.last().expect("there is one");
            let mut table = Table::with_capacity(after.len());
            let mut add = |key: (i32, i64), cost: i64| {
                if is_possible(key, cost) {
                    let entry = table.entry(key).or_insert(cost);
                    *entry = cost.min(*entry);
                }
            };
            for (&(count, sum), &cost) in after {
                add((count, sum), cost);
                add((count + change.count, sum + change.sum), cost + change.cost);
            }
            self.entries += 1 + table.len();
            if self.entries > self.most_entries {
                return Err(TooManySets);
            }
            tables.push(table);
        }
        tables.reverse();
        self.tables = tables;
        Ok(())
    }

    /// Decides the changes from this one on. `cost` is that of the changes before; the others have
    /// to add this number and sum.
    fn extend(&mut self, change: usize, cost: i64, missing: (i32, i64)) -> Result<(), TooManySets> {
        let is_possible =
            self.tables[change].get(&missing).is_some_and(|least| cost + least <= self.most_cost);
        if !is_possible {
            return Ok(());
        }
        self.entries += 1;
        if self.entries > 2 * self.most_entries {
            return Err(TooManySets);
        }
        let Some(of) = self.changes.get(change) else {
            self.found.push(self.current);
            return if self.found.len() > MOST_SETS { Err(TooManySets) } else { Ok(()) };
        };
        self.extend(change + 1, cost, missing)?;
        let line = Diagonals::from_iter([self.lines[of.index]]);
        let before = self.current;
        self.current = if of.count > 0 { before.or(line) } else { before.without(line) };
        let (count, sum) = missing;
        self.extend(change + 1, cost + of.cost, (count - of.count, sum - of.sum))?;
        self.current = before;
        Ok(())
    }
}

#[cfg(test)]
mod tests;
