//! The first byte of each record.

/// A trial begins.
pub const AT_LEAST: u8 = 1;
/// No solution is left, shown by a search.
pub const REFUTED: u8 = 2;
/// An orbit is eliminated, shown by a search.
pub const ELIMINATED: u8 = 3;
/// No solution is left, shown by multipliers.
pub const REFUTED_BY_MULTIPLIERS: u8 = 4;
/// Orbits are eliminated, shown by multipliers.
pub const ELIMINATED_BY_MULTIPLIERS: u8 = 5;
/// A clique.
pub const CLIQUE: u8 = 6;
/// The next level begins.
pub const NEXT: u8 = 7;
/// An assumption about another level begins, in a trial.
pub const ASSUME: u8 = 8;
/// Diagonals are full, shown by multipliers.
pub const FULL_BY_MULTIPLIERS: u8 = 9;
