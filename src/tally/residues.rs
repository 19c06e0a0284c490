//! Residues modulo two primes, kept beside a sum as a check.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The two largest primes below 2^31 and 2^32. Neither divides a power of two, so a binary counter
/// that wraps changes both residues; sums and products of two residues fit in 64 bits.
pub const MODULI: [u64; 2] = [2_147_483_647, 4_294_967_291];

/// A whole number modulo each of [`MODULI`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Residues([u64; 2]);

impl Residues {
    /// Returns the residues of `value`.
    pub fn of(value: u128) -> Self {
        match u64::try_from(value) {
            // Avoids 128-bit division in the common case of small values.
            Ok(value) => Self(MODULI.map(|p| value % p)),
            // A remainder is smaller than its modulus, so it fits in 64 bits.
            Err(_) => Self(MODULI.map(|p| (value % u128::from(p)) as u64)),
        }
    }

    /// Creates residues from stored or transmitted values modulo [`MODULI`].
    pub const fn from_values(values: [u64; 2]) -> Self {
        Self(values)
    }

    /// Returns the values modulo [`MODULI`].
    pub const fn values(self) -> [u64; 2] {
        self.0
    }

    /// Returns the residues of the sum.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        self.zip(|a, p| a + other.0[p] % MODULI[p])
    }

    /// Returns the residues of the product with `factor`.
    #[must_use]
    pub fn times(self, factor: u32) -> Self {
        // Both factors are below 2^32.
        self.zip(|a, _| a * u64::from(factor))
    }

    /// Returns the residues of the difference, which may be negative.
    #[must_use]
    pub fn minus(self, other: Self) -> Self {
        self.zip(|a, p| a + MODULI[p] - other.0[p] % MODULI[p])
    }

    /// Returns the residues of the product of both.
    #[must_use]
    pub fn product(self, other: Self) -> Self {
        // Both factors are below 2^32.
        self.zip(|a, p| a * (other.0[p] % MODULI[p]))
    }

    fn zip(self, f: impl Fn(u64, usize) -> u64) -> Self {
        Self([0, 1].map(|p| f(self.0[p] % MODULI[p], p) % MODULI[p]))
    }
}

impl fmt::Display for Residues {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} mod {} and {} mod {}", self.0[0], MODULI[0], self.0[1], MODULI[1])
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_moduli_are_prime() {
        for p in MODULI {
            assert!((2..).take_while(|d| d * d <= p).all(|d| p % d != 0), "{p}");
        }
    }

    proptest! {
        #[test]
        fn residues_follow_sums_and_products(a in any::<u64>(), b in any::<u64>(), k in any::<u32>()) {
            let of = |x: u128| Residues::of(x);
            let (a, b) = (u128::from(a), u128::from(b));
            prop_assert_eq!(of(a).plus(of(b)), of(a + b));
            prop_assert_eq!(of(a).times(k), of(a * u128::from(k)));
            prop_assert_eq!(of(a).product(of(b)), of(a * b));
            prop_assert_eq!(of(a + b).minus(of(b)), of(a));
            prop_assert_eq!(of(a).minus(of(a + b)).plus(of(b)), of(0));
        }

        #[test]
        fn a_lost_power_of_two_is_always_detected(a in any::<u64>(), bit in 0u32..64) {
            let a = u128::from(a);
            prop_assert_ne!(Residues::of(a + (1 << bit)), Residues::of(a));
        }
    }
}
