//! The candidates on a row, column or diagonal.

/// A row, column or diagonal. When a queen is placed on it, all its candidates are eliminated, but
/// it keeps them and their number so that they can be restored when the queen is removed.
#[derive(Clone, Copy, Default)]
pub(super) struct Line {
    /// One bit per candidate: on a row by its column, on another line by its row.
    candidates: [u64; 2],
    /// The number of candidates, plus [`TAKEN`] if a queen stands on it.
    count_and_taken: u32,
}

/// Added to the number of candidates of a line with a queen; greater than any such number.
const TAKEN: u32 = 1 << 16;

impl Line {
    /// Returns the number of candidates.
    pub(super) const fn count(&self) -> usize {
        if self.is_taken() { 0 } else { self.count_and_taken as usize }
    }

    /// Returns whether a queen stands on it.
    pub(super) const fn is_taken(&self) -> bool {
        self.count_and_taken >= TAKEN
    }

    /// Returns the candidates as one number, a bit each.
    pub(super) const fn candidates(&self) -> u128 {
        if self.is_taken() { 0 } else { self.kept_candidates() }
    }

    /// Returns the candidates, or those that there were when the queen was placed.
    pub(super) const fn kept_candidates(&self) -> u128 {
        (self.candidates[1] as u128) << 64 | self.candidates[0] as u128
    }

    /// Returns whether there is a candidate with this bit.
    pub(super) const fn has(&self, candidate: usize) -> bool {
        !self.is_taken() && self.candidates[candidate / 64] >> (candidate % 64) & 1 == 1
    }

    /// Returns whether a queen can still stand on it.
    pub(super) const fn is_usable(&self) -> bool {
        0 < self.count_and_taken && self.count_and_taken < TAKEN
    }

    pub(super) const fn place_queen(&mut self) {
        self.count_and_taken += TAKEN;
    }

    pub(super) const fn remove_queen(&mut self) {
        self.count_and_taken -= TAKEN;
    }

    /// Inserts a candidate that there is not.
    pub(super) const fn insert(&mut self, candidate: usize) {
        self.candidates[candidate / 64] |= 1 << (candidate % 64);
        self.count_and_taken += 1;
    }

    /// Removes a candidate that there is. Returns whether at most one is left.
    pub(super) const fn remove(&mut self, candidate: usize) -> bool {
        self.candidates[candidate / 64] &= !(1 << (candidate % 64));
        self.count_and_taken -= 1;
        self.count_and_taken <= 1
    }
}
