//! The enumeration of the sets of diagonals of one direction that have a given number and sum of
//! places, and squares that are not too large.

use std::cmp::Reverse;
use std::collections::HashMap;

use super::super::knapsack::{Heaviest, Item, KnapsackOutcome, Tables, heaviest};
use super::{Diagonals, ListedSet, TooManySets};

/// The largest number of sets that are listed for a direction.
const MOST_SETS: usize = 1 << 14;

/// Places are multiplied by this when the middle of sets is determined.
const SCALE: i64 = 16;

/// The sets of one direction that are to be listed.
pub(super) struct Listing {
    /// The diagonals, and their places in ascending order.
    pub(super) lines: Vec<usize>,
    pub(super) places: Vec<i64>,
    pub(super) count: usize,
    pub(super) sum: i64,
}

/// A diagonal that is in the basic set and can be removed, or is not and can be added.
struct Change {
    /// The index of the diagonal.
    index: usize,
    /// The amount by which the change makes the set worse; not negative.
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
    pub(super) fn least_squares(
        &self,
        operations: &mut usize,
    ) -> Result<Option<Heaviest>, TooManySets> {
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
    pub(super) fn keep_within(&mut self, with: &[Option<i64>], most: i64) {
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
    pub(super) fn list(
        &self,
        most: i64,
        most_entries: usize,
        operations: &mut usize,
    ) -> Result<Vec<ListedSet>, TooManySets> {
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
        Ok(sets.into_iter().map(|set| ListedSet { set, squares: squares(set) }).collect())
    }

    /// Returns the diagonals in ascending distance from a middle, times [`SCALE`], for which the
    /// sum of the nearest ones is about right.
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
