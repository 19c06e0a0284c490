//! The kernel for any piece: below any prefix of any symmetry case, row by row in the case's order,
//! by bit masks.
//!
//! Each piece is a queen with a small change, so that [`SymmetryCase::available`], its masks and
//! its rules serve all pieces:
//!
//! - **Queen**: the case's own masks.
//! - **Superqueen**: the columns that a knight attacks from the rows one and two away are removed
//!   as well. Rows are filled downward and then upward, with gaps at placed rows, so both sides are
//!   checked; a queen bit is kept for each row. The masks already exclude what *placed* squares
//!   attack, whatever the piece.
//! - **Toroidal**: diagonals that are equal modulo n are one. A used diagonal is marked under both
//!   of its numbers below 2n (`wrapped`), so each row's window sees it wherever the row's columns
//!   wrap.
//! - **Rook**: no diagonals. A search would visit all n! completions, so a case without rules goes
//!   to `rook`, which counts them as a permanent.
//!
//! A child is entered only if its row and the row after it have a free column. Cost: 14 to 20 ns a
//! placement.

use super::{Kernel, rook};
use crate::board::{Piece, Square};
use crate::decomposition::{
    AttackState, CentreRule, MAX_COUNT_SIZE, Prefix, SymmetryCase, full_row,
};
use crate::tally::{Parts, Residues, TallyError};

/// The kernel for any piece.
#[derive(Debug)]
pub struct Generic;

impl Kernel for Generic {
    fn count(
        &mut self,
        case: &SymmetryCase,
        prefixes: &[Prefix],
        parts: &mut Parts,
    ) -> Result<(), TallyError> {
        let ruled = case.rules().iter().any(|&rule| rule != CentreRule::None);
        for prefix in prefixes {
            if case.piece() == Piece::Rook && !ruled {
                let free = full_row(case.n()) & !prefix.state().columns;
                let found = rook::permanent(&case.allowed()[prefix.filled()..], free);
                parts.add(case.weight(), found.value, found.residues, found.steps)?;
            } else {
                let (completions, nodes) = completions(case, prefix);
                parts.add(case.weight(), completions, Residues::of(completions.into()), nodes)?;
            }
        }
        Ok(())
    }
}

/// Returns the completions of `prefix` and the number of placements made. The counters are u64 that
/// grow by at most the number of columns at a time, so they cannot wrap within decades.
fn completions(case: &SymmetryCase, prefix: &Prefix) -> (u64, u64) {
    if prefix.filled() == case.rows().len() {
        return (1, 0);
    }
    let (position, start) = Position::new(case, prefix);
    let available = position.available(prefix.filled(), start);
    let mut search = Search { position, nodes: 0 };
    let completions = search.fill(prefix.filled(), start, available);
    (completions, search.nodes)
}

/// The largest row distance at which a knight attacks.
const KNIGHT: usize = 2;

/// The open rows of a case, some of which are filled, for any piece.
pub(crate) struct Position<'a> {
    case: &'a SymmetryCase,
    piece: Piece,
    /// The queen bit of `row` at `row + KNIGHT`, 0 while the row is open. Placed rows stay 0: the
    /// masks already exclude their knight moves.
    queens: [u32; MAX_COUNT_SIZE + 2 * KNIGHT],
}

impl<'a> Position<'a> {
    /// Creates the position of a prefix. Returns it with its state.
    pub(crate) fn new(case: &'a SymmetryCase, prefix: &Prefix) -> (Self, AttackState) {
        let queens = [0; MAX_COUNT_SIZE + 2 * KNIGHT];
        let mut position = Self { case, piece: case.piece(), queens };
        if position.piece == Piece::Superqueen {
            for Square { row, col } in case.block().iter().copied().chain(prefix.squares(case)) {
                position.queens[row + KNIGHT] = 1 << col;
            }
        }
        let start = position.with_piece_diagonals(prefix.state());
        (position, start)
    }

    /// Returns the columns available to the open row at `k`, with all earlier rows filled.
    #[inline]
    pub(crate) fn available(&self, k: usize, state: AttackState) -> u32 {
        let available = self.case.available(k, state);
        match self.piece {
            Piece::Superqueen => available & !self.knights(self.case.rows()[k]),
            Piece::Queen | Piece::Rook | Piece::Toroidal => available,
        }
    }

    /// Fills the open row at `k` in the column of the single bit `queen`. Returns the state.
    #[inline]
    pub(crate) fn place(&mut self, k: usize, state: AttackState, queen: u32) -> AttackState {
        self.queens[self.case.rows()[k] + KNIGHT] = queen;
        self.with_piece_diagonals(self.case.place(k, state, queen))
    }

    /// Opens the row at `k` again.
    #[inline]
    fn remove(&mut self, k: usize) {
        self.queens[self.case.rows()[k] + KNIGHT] = 0;
    }

    /// Returns whether the open row at `k`, if it exists, has no column left. Ignores the rules:
    /// rows filled before it may still lift them.
    #[inline]
    fn row_is_full(&self, k: usize, state: AttackState) -> bool {
        let free = |&row: &usize| self.case.allowed()[k] & state.free(self.case.n(), row);
        self.case.rows().get(k).is_some_and(|row| free(row) == 0)
    }

    /// Returns the columns of `row` that a knight attacks from the queens of the neighbouring rows.
    /// Bits from n on are meaningless.
    #[inline]
    fn knights(&self, row: usize) -> u32 {
        let q = &self.queens[row..=row + 2 * KNIGHT];
        let (near, far) = (q[1] | q[3], q[0] | q[4]);
        near << 2 | near >> 2 | far << 1 | far >> 1
    }

    /// Converts `state`, as it applies to queens, to the diagonals of this piece.
    #[inline]
    fn with_piece_diagonals(&self, state: AttackState) -> AttackState {
        match self.piece {
            Piece::Queen | Piece::Superqueen => state,
            Piece::Toroidal => wrapped(self.case.n(), state),
            Piece::Rook => AttackState { columns: state.columns, ..AttackState::default() },
        }
    }
}

struct Search<'a> {
    position: Position<'a>,
    nodes: u64,
}

impl Search<'_> {
    /// Returns the completions with the open row at `k` in one of the `available` columns. Row `k`
    /// must exist.
    fn fill(&mut self, k: usize, state: AttackState, mut available: u32) -> u64 {
        let rows = self.position.case.rows();
        let Some(&next_row) = rows.get(k + 1) else {
            let last = available.count_ones().into();
            self.nodes += last;
            return last;
        };
        let mut completions = 0;
        while available != 0 {
            let queen = available & available.wrapping_neg();
            available ^= queen;
            self.nodes += 1;
            let after = self.position.place(k, state, queen);
            let next = self.position.available(k + 1, after);
            debug_assert_eq!(self.position.queens[next_row + KNIGHT], 0, "rows ahead are open");
            if next != 0 && !self.position.row_is_full(k + 2, after) {
                completions += self.fill(k + 1, after, next);
            }
        }
        self.position.remove(k);
        completions
    }
}

/// Returns `state` with each diagonal marked under both numbers that it has below 2n on a torus: a
/// row window covers n consecutive numbers, so it sees each diagonal once. (Numbers from 2n on are
/// also set or shifted out at bit 64; no window reaches them, and they are correct modulo n.)
#[inline]
const fn wrapped(n: usize, state: AttackState) -> AttackState {
    AttackState {
        columns: state.columns,
        antidiagonals: state.antidiagonals | state.antidiagonals << n | state.antidiagonals >> n,
        diagonals: state.diagonals | state.diagonals << n | state.diagonals >> n,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::board::Problem;
    use crate::decomposition::Scheme;
    use crate::decomposition::testing::{decompose, decompose_by};
    use crate::kernel::{count_range, reference};
    use crate::symmetry::Group;

    fn solutions(piece: Piece, n: usize) -> u128 {
        let decomposition = decompose(&Problem::empty(piece, n), None, 1);
        let all = 0..decomposition.prefixes();
        let tally = count_range(&mut Generic, &decomposition, all).expect("a small sum");
        tally.solutions().expect("a whole job")
    }

    fn assert_every_prefix_agrees(problem: &Problem, scheme: Scheme, depth: usize) {
        let decomposition = decompose_by(scheme, problem, Some(depth), 1);
        decomposition.for_each(0..decomposition.prefixes(), |case, prefix| {
            let mut parts = Parts::default();
            Generic.count(case, std::slice::from_ref(prefix), &mut parts).expect("a small sum");
            let tally = parts.total().expect("agrees with its residues");
            let expected =
                u128::from(reference::completions(case, prefix).0) * u128::from(case.weight());
            assert_eq!(tally.thirds(), expected, "{problem:?} by {scheme:?}, {prefix:?}");
        });
    }

    #[test]
    fn superqueens_equal_a051223() {
        for (n, known) in (0..).zip([1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 4, 44, 156, 1876, 5180]) {
            assert_eq!(solutions(Piece::Superqueen, n), known, "n = {n}");
        }
    }

    #[test]
    fn toroidal_queens_equal_a007705() {
        for (n, known) in (1..).zip([1, 0, 0, 0, 10, 0, 28, 0, 0, 0, 88, 0, 4524]) {
            assert_eq!(solutions(Piece::Toroidal, n), known, "n = {n}");
        }
    }

    #[test]
    fn queens_equal_a000170() {
        for (n, known) in (0..).zip([1, 1, 0, 0, 2, 10, 4, 40, 92, 352, 724, 2680]) {
            assert_eq!(solutions(Piece::Queen, n), known, "n = {n}");
        }
    }

    #[test]
    fn the_centre_cross_scheme_is_correct_for_every_piece() {
        for piece in [Piece::Queen, Piece::Superqueen, Piece::Toroidal] {
            for n in 6..=9 {
                assert_every_prefix_agrees(&Problem::empty(piece, n), Scheme::CentreCross, 3);
            }
        }
        // Prefixes of rooks ignore the rules, which apply only to the cases themselves.
        for n in 6..=7 {
            assert_every_prefix_agrees(&Problem::empty(Piece::Rook, n), Scheme::CentreCross, 0);
        }
    }

    fn problems() -> impl Strategy<Value = Problem> {
        let square = |n: usize| (0..n, 0..n).prop_map(|(row, col)| Square::new(row, col));
        (0..Piece::ALL.len(), 1usize..=7).prop_flat_map(move |(piece, n)| {
            let squares = |most| proptest::collection::vec(square(n), 0..=most);
            (squares(2), squares(9))
                .prop_filter_map("placed or blocked, not both", move |(placed, blocked)| {
                    Problem::new(Piece::ALL[piece], n, placed, blocked).ok()
                })
        })
    }

    proptest! {
        #[test]
        fn every_prefix_agrees_under_every_scheme_that_fits(problem in problems(), depth in 0usize..5) {
            for scheme in [Scheme::Whole, Scheme::CentreRows, Scheme::TopMirror] {
                assert_every_prefix_agrees(&problem, scheme, depth);
            }
            let symmetric = problem.placed().is_empty() && Group::of(&problem) == Group::FULL;
            if problem.n() >= 6 && symmetric && problem.piece() != Piece::Rook {
                assert_every_prefix_agrees(&problem, Scheme::CentreCross, depth);
            }
        }
    }
}
