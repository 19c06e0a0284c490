//! The distance of a square from the centre of the board, and the fingerprint of a solution.

use std::fmt;
use std::str::FromStr;

use super::Square;

/// A norm, which gives the cost of a square. For the square in row i and column j, counted from 1,
/// let u = 2i − n − 1 and v = 2j − n − 1, the distances from the centre in half squares.
/// Certificates contain the numbers of the norms.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Norm {
    /// u² + v².
    #[default]
    Euclidean = 0,
    /// |u| + |v|.
    Manhattan = 1,
    /// max(|u|, |v|).
    Chebyshev = 2,
}

/// The error for a text that names no norm.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownNorm(String);

impl fmt::Display for UnknownNorm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "'{}' is not a norm; choose euclidean, manhattan or chebyshev", self.0)
    }
}

impl std::error::Error for UnknownNorm {}

impl Norm {
    /// All norms.
    pub const ALL: [Self; 3] = [Self::Euclidean, Self::Manhattan, Self::Chebyshev];

    /// Returns the cost of `square` on the board of size `n`.
    pub fn cost(self, n: usize, square: Square) -> u64 {
        let u = (2 * square.row + 1).abs_diff(n) as u64;
        let v = (2 * square.col + 1).abs_diff(n) as u64;
        match self {
            Self::Euclidean => u * u + v * v,
            Self::Manhattan => u + v,
            Self::Chebyshev => u.max(v),
        }
    }

    /// Returns the costs of the squares of a solution (the 0-based column in each row), in
    /// descending order.
    pub fn fingerprint(self, columns: &[usize]) -> Vec<u64> {
        let squares = columns.iter().enumerate().map(|(row, &col)| Square::new(row, col));
        let mut costs: Vec<u64> = squares.map(|square| self.cost(columns.len(), square)).collect();
        costs.sort_unstable_by(|a, b| b.cmp(a));
        costs
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Euclidean => "euclidean",
            Self::Manhattan => "manhattan",
            Self::Chebyshev => "chebyshev",
        }
    }
}

impl fmt::Display for Norm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Norm {
    type Err = UnknownNorm;

    fn from_str(text: &str) -> Result<Self, UnknownNorm> {
        Self::ALL
            .into_iter()
            .find(|norm| norm.name() == text)
            .ok_or_else(|| UnknownNorm(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fingerprint_lists_the_costs_in_descending_order() {
        assert_eq!(Norm::Euclidean.fingerprint(&[1, 3, 0, 2]), [10, 10, 10, 10]);
        assert_eq!(Norm::Euclidean.fingerprint(&[0, 2, 4, 1, 3]), [32, 20, 16, 8, 4]);
        assert_eq!(Norm::Manhattan.fingerprint(&[0, 2, 4, 1, 3]), [8, 6, 4, 4, 2]);
        assert_eq!(Norm::Chebyshev.fingerprint(&[0, 2, 4, 1, 3]), [4, 4, 4, 2, 2]);
        assert_eq!(Norm::Euclidean.fingerprint(&[0]), [0]);
    }

    #[test]
    fn norms_round_trip_through_text() {
        for norm in Norm::ALL {
            assert_eq!(norm.to_string().parse(), Ok(norm));
        }
        assert!("".parse::<Norm>().is_err() && "Euclidean".parse::<Norm>().is_err());
    }
}
