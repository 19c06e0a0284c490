//! The combinations of columns, as the bits of a mask.

use super::attack_state::columns_of;

/// Returns the number of ways to choose k of n ≤ 32.
pub(crate) fn binomial(n: u32, k: u32) -> u64 {
    (0..k.min(n))
        .fold(if k > n { 0 } else { 1 }, |ways, i| ways * u64::from(n - i) / u64::from(i + 1))
}

/// Returns the combination of `chosen` of 32 bits with this rank in colexicographic order, which is
/// the order of the numbers that the bits form.
pub(super) fn combination(mut rank: u64, mut chosen: u32) -> u32 {
    let mut bits = 0;
    for bit in (0..32).rev() {
        if chosen == 0 {
            break;
        }
        let below = binomial(bit, chosen);
        if below <= rank {
            rank -= below;
            bits |= 1 << bit;
            chosen -= 1;
        }
    }
    bits
}

/// Returns the bits of `mask` at the positions (counted among the set bits of `mask`) of the set
/// bits of `bits`.
pub(super) fn deposit(bits: u32, mask: u32) -> u32 {
    let chosen = columns_of(mask).enumerate().filter(|(i, _)| bits >> i & 1 == 1);
    chosen.fold(0, |deposited, (_, column)| deposited | 1 << column)
}
