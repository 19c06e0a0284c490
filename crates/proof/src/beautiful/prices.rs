//! Prices in a tree, numbered by line or level: 6n lines, then the levels.

/// Returns the marker before prices that only close squares: the second number after that of
/// the last column.
pub const fn mark(n: usize) -> usize {
    2 * n + 1
}

/// Returns the marker before prices that also fill diagonals: the number after that of the last
/// diagonal.
pub const fn filling_mark(n: usize) -> usize {
    in_tree(6 * n)
}

/// Returns the line numbers of a square (row · n + column, 0-based): row, column, diagonal,
/// antidiagonal. Here diagonals have equal row + column, antidiagonals equal row − column.
pub const fn lines(n: usize, square: usize) -> [usize; 4] {
    let (row, column) = (square / n, square % n);
    [row, n + column, 2 * n + row + column, 4 * n + row + n - 1 - column]
}

/// Returns the numbers of the diagonals and antidiagonals at a distance from the main ones, on
/// both sides; at distance 0 each number occurs twice.
pub const fn diagonals(n: usize, distance: usize) -> [usize; 4] {
    let [one, other] = [3 * n - 1, 5 * n - 1];
    [one - distance, one + distance, other - distance, other + distance]
}

/// Returns the number that encodes a diagonal in a tree: shifted past the hole and the marker
/// of prices.
pub const fn in_tree(diagonal: usize) -> usize {
    diagonal + 2
}

/// Returns the number of a level, where level 0 has the largest cost.
pub const fn level(n: usize, level: usize) -> usize {
    6 * n + level
}

/// Returns the number of lines and levels.
pub const fn count(n: usize, levels: usize) -> usize {
    level(n, levels)
}
