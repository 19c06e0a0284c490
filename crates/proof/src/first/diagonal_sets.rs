//! The sets of diagonals that a completion can use, listed in pairs.
//!
//! The queens of a completion stand on a set of diagonals c - r and on a set of antidiagonals r +
//! c. Since (r + c)² + (c - r)² = 2r² + 2c², the squares of all these places sum to 2 Σ r² + 2 Σ c²
//! over the open rows and columns. The number and the sum of the places of each set are known, too
//! (see `knapsack.rs`). The sum of squares is least for sets of neighbouring places around the
//! middle. Where a board is so tight that it is hardly more than that, only a few hundred pairs of
//! sets are left of astronomically many.

mod listing;

use std::collections::{HashMap, HashSet};

use listing::Listing;

/// The largest number of table entries and search nodes with which a checker lists the sets of a
/// direction.
pub(super) const MOST_ENTRIES: usize = 1 << 20;

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
struct ListedSet {
    set: Diagonals,
    /// The sum of the squares of the places c - r, or r + c.
    squares: i64,
}

/// The sets of diagonals that the further queens of a completion can stand on, by direction. Each
/// has a partner in the other direction, except where unmatched sets are listed, too.
#[derive(Clone, Debug)]
pub struct DiagonalSets {
    sets: [Vec<ListedSet>; 2],
    /// The sum of the squares of a pair.
    total: i64,
    /// The diagonals on which a queen could stand when the sets were listed.
    open: [Diagonals; 2],
}

/// There are too many sets to list them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooManySets;

impl DiagonalSets {
    /// Lists the sets of a board, with at most this number of table entries and search nodes for
    /// each direction. Also returns the number of operations.
    ///
    /// # Errors
    /// Returns an error if that is not enough, or if there are too many sets of a direction: more
    /// than 2^14 have the right number and sum, and squares that sum to at most those of both
    /// directions without the least that are possible for the other one.
    ///
    /// # Panics
    /// If the board is larger than 128.
    pub fn list(board: &OpenBoard, most_entries: usize) -> (Result<Self, TooManySets>, usize) {
        let (listed, operations) = Self::list_unmatched(board, most_entries);
        (listed.map(Self::matched), operations)
    }

    /// Lists the sets like [`Self::list`], but also those without a partner whose squares are not
    /// too large.
    pub(super) fn list_unmatched(
        board: &OpenBoard,
        most_entries: usize,
    ) -> (Result<Self, TooManySets>, usize) {
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
        (Ok(Self { sets, total, open: board.diagonals }), operations)
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
            let is_possible = |one: &&ListedSet| {
                needed.without(one.set).is_empty() && one.set.and(excluded).is_empty()
            };
            listed.sets[direction] =
                self.sets[direction].iter().filter(is_possible).copied().collect();
        }
        listed.matched()
    }

    /// Returns the sets that have a partner.
    pub(crate) fn matched(mut self) -> Self {
        let squares = [0, 1].map(|direction| {
            self.sets[direction].iter().map(|one| one.squares).collect::<HashSet<_>>()
        });
        for (direction, sets) in self.sets.iter_mut().enumerate() {
            let others = &squares[1 - direction];
            sets.retain(|one| others.contains(&(self.total - one.squares)));
        }
        self
    }

    /// Returns the sum of the squares of a pair.
    pub(crate) const fn total(&self) -> i64 {
        self.total
    }

    /// Returns the diagonals of a direction on which a queen could stand when the sets were listed.
    pub(crate) const fn open(&self, direction: usize) -> Diagonals {
        self.open[direction]
    }

    /// Returns the sets of a direction, each with the sum of its squares.
    pub(crate) fn with_squares(
        &self,
        direction: usize,
    ) -> impl ExactSizeIterator<Item = (Diagonals, i64)> {
        self.sets[direction].iter().map(|one| (one.set, one.squares))
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
        for one in &self.sets[0] {
            *partners.entry(self.total - one.squares).or_insert(0) += 1;
        }
        self.sets[1].iter().map(|one| partners.get(&one.squares).unwrap_or(&0)).sum()
    }

    /// Returns the sets of a direction.
    pub fn sets(&self, direction: usize) -> impl ExactSizeIterator<Item = Diagonals> {
        self.sets[direction].iter().map(|one| one.set)
    }

    /// Returns whether a direction has this set.
    pub fn contains(&self, direction: usize, set: Diagonals) -> bool {
        self.sets[direction].binary_search_by_key(&set, |one| one.set).is_ok()
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

#[cfg(test)]
mod tests;
