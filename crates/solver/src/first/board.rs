//! The board that is to be completed, and the limits of the queries about it.

use nqueens_proof::board::{Piece, Square};

/// The board that is to be completed.
#[derive(Clone, Debug)]
pub(super) struct Board {
    pub(super) n: usize,
    pub(super) placed: Vec<Square>,
    pub(super) blocked: Vec<Square>,
}

impl Board {
    /// Returns `above` extended by one queen, for each free column before `end`.
    pub(super) fn extensions(&self, above: &[usize], end: usize) -> Vec<Vec<usize>> {
        let free = (0..end).filter(|&column| self.is_free(above, column));
        free.map(|column| above.iter().copied().chain([column]).collect()).collect()
    }

    /// Returns the first free column of each row, up to the first row that has none.
    pub(super) fn greedy(&self) -> Vec<usize> {
        let mut prefix = Vec::new();
        while prefix.len() < self.n {
            let free = |&column: &usize| self.is_free(&prefix, column);
            let Some(column) = (0..self.n).find(free) else { break };
            prefix.push(column);
        }
        prefix
    }

    /// Returns whether a queen in `column` of the next row attacks none of those above, its square
    /// is not blocked, and it attacks no placed queen or is one of them.
    fn is_free(&self, above: &[usize], column: usize) -> bool {
        let square = Square::new(above.len(), column);
        let avoids_placed = self
            .placed
            .iter()
            .all(|&queen| queen == square || !Piece::Queen.attacks(self.n, queen, square));
        is_free(above, column) && avoids_placed && !self.blocked.contains(&square)
    }

    /// Returns the LP limits. On boards of even size the knapsacks refute most prefixes that can be
    /// refuted, at once or after one more row; on boards of odd size, search gets further. Measured
    /// with a limit of 1 instead of 15: n = 44, 50, 70 and 74 take half to two thirds of the time,
    /// n = 62 the same; n = 79 did not finish in the time that it takes with 15.
    pub(super) const fn lp_limits(&self) -> LpLimits {
        if self.n.is_multiple_of(2) {
            LpLimits { query: 1, greedy: 8 }
        } else {
            LpLimits { query: 15, greedy: 60 }
        }
    }

    /// Returns the least work in queries about longer prefixes, per solver, in each round in which
    /// a prefix is to be settled, in units of about one LP. These queries go from left to right, so
    /// if the prefix has a completion, they answer what would be asked later. On small boards,
    /// other queries are often faster. Measured, before these queries came first, with one thread
    /// and 0, 1000 and 4000, user s: n = 66 20.2, 17.3, 16.0; 70 2.4, 1.9, 2.0; 74 5.2, 3.7, 3.8;
    /// 80 9.3, 5.8, 5.8; 88 41.0, 17.5, 15.5. With 1000 and 4000: n = 86 9.4, 9.2; 90 42.6, 29.9;
    /// 94 56.0, 47.7. With 0, 1000 and 2000: n = 58 6.1, 9.8, 14.0; 64 11.9, 21.4, 28.3. On boards
    /// of odd size, 1000 changes nothing for n = 79 to 103.
    pub(super) const fn least_work_below(&self) -> u64 {
        if self.n > 64 && self.n.is_multiple_of(2) { 4000 } else { 0 }
    }
}

/// LP limits of queries.
pub(super) struct LpLimits {
    /// LP limit of a query before it is answered by other means.
    pub(super) query: u64,
    /// LP limit of a query about a part of the greedy prefix.
    pub(super) greedy: u64,
}

/// Returns whether a queen in `column` of the next row attacks none of those above.
pub(super) fn is_free(above: &[usize], column: usize) -> bool {
    let row = above.len();
    above.iter().enumerate().all(|(r, &c)| c != column && c.abs_diff(column) != row - r)
}
