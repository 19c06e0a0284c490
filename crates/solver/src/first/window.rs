//! Searches in narrow words: the open part of a board is often small, and is moved into the words
//! of a board of that size.

use super::residual::Residual;
use super::width::{Width, Width32x64, Width64x64, Width64x128};
use nqueens_proof::board::Square;

/// A search of an open board.
pub(super) trait Search {
    /// The result of the search.
    type Found;

    /// Searches the board.
    fn run<W: Width>(self, board: Residual<'_, W>) -> Self::Found;
}

/// Searches a board in the narrowest words that fit its open part, or in its own.
pub(super) fn search<W: Width, S: Search>(board: &Residual<'_, W>, search: S) -> S::Found {
    fn moved<W: Width, V: Width, S: Search>(
        board: &Residual<'_, W>,
        window: &Window,
        search: S,
    ) -> S::Found {
        let dual_bounds = board.dual_bounds_within::<V>(window);
        search.run(board.within(window, &dual_bounds))
    }
    let window = board.window();
    if window.narrows::<W, Width32x64>() {
        moved::<W, Width32x64, S>(board, &window, search)
    } else if window.narrows::<W, Width64x64>() {
        moved::<W, Width64x64, S>(board, &window, search)
    } else if window.narrows::<W, Width64x128>() {
        moved::<W, Width64x128, S>(board, &window, search)
    } else {
        search.run(*board)
    }
}

/// A rectangle of a board.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Window {
    /// The top left cell.
    pub(super) corner: Square,
    pub(super) height: usize,
    pub(super) width: usize,
}

impl Window {
    /// Returns the number of diagonals of each direction.
    pub(super) const fn diagonals(&self) -> usize {
        self.height + self.width - 1
    }

    /// Returns the index, on a board of this height, of the window's first diagonal of each
    /// direction.
    pub(super) const fn first_diagonals(&self, height: usize) -> [usize; 2] {
        let Square { row, col } = self.corner;
        [col + height - self.height - row, row + col]
    }

    /// Returns whether the window fits boards of this width.
    pub(super) const fn fits<W: Width>(&self) -> bool {
        self.height <= W::ROWS && self.width <= W::COLUMNS && self.diagonals() <= W::DIAGONALS
    }

    /// Returns whether the window of a board of width `W` fits the narrower width `V`.
    const fn narrows<W: Width, V: Width>(&self) -> bool {
        self.fits::<V>() && size_of::<V::Rows>() < size_of::<W::Rows>()
    }
}
