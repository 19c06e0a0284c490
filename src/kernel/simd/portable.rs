//! The portable counterpart of the vector lanes: the same operations as plain loops, with counters
//! of configurable width.

use super::batch::{Batch, Engine, Flush};
use super::lanes::Lanes;
use crate::kernel::Kernel;

/// `COUNT` lanes whose counters wrap after `COUNTER_BITS` bits (32 in real lanes).
#[derive(Clone, Copy, Debug)]
pub(super) struct Portable<const COUNT: usize, const COUNTER_BITS: u32>;

/// Creates the batch kernel over these lanes.
pub(super) fn kernel<const COUNT: usize, const COUNTER_BITS: u32>() -> Box<dyn Kernel> {
    Box::new(Batch::new(|engine: &mut Engine, flush: Flush| {
        engine.drain(Portable::<COUNT, COUNTER_BITS>, flush);
    }))
}

impl<const COUNT: usize, const COUNTER_BITS: u32> Portable<COUNT, COUNTER_BITS> {
    fn zip(a: [u32; COUNT], b: [u32; COUNT], f: impl Fn(u32, u32) -> u32) -> [u32; COUNT] {
        std::array::from_fn(|i| f(a[i], b[i]))
    }
}

impl<const COUNT: usize, const COUNTER_BITS: u32> Lanes for Portable<COUNT, COUNTER_BITS> {
    const COUNT: usize = COUNT;
    const LOOK_AHEAD_ROWS: usize = 8;
    type Word = [u32; COUNT];
    type Mask = [bool; COUNT];

    fn splat(self, value: u32) -> [u32; COUNT] {
        [value; COUNT]
    }

    fn load(self, from: &[u32], at: usize) -> [u32; COUNT] {
        std::array::from_fn(|i| from[at + i])
    }

    fn store(self, into: &mut [u32], at: usize, word: [u32; COUNT]) {
        into[at..at + COUNT].copy_from_slice(&word);
    }

    fn and(self, a: [u32; COUNT], b: [u32; COUNT]) -> [u32; COUNT] {
        Self::zip(a, b, |x, y| x & y)
    }

    fn and_not(self, a: [u32; COUNT], b: [u32; COUNT]) -> [u32; COUNT] {
        Self::zip(a, b, |x, y| x & !y)
    }

    fn or(self, a: [u32; COUNT], b: [u32; COUNT]) -> [u32; COUNT] {
        Self::zip(a, b, |x, y| x | y)
    }

    fn xor(self, a: [u32; COUNT], b: [u32; COUNT]) -> [u32; COUNT] {
        Self::zip(a, b, |x, y| x ^ y)
    }

    fn and_neither(self, a: [u32; COUNT], b: [u32; COUNT], c: [u32; COUNT]) -> [u32; COUNT] {
        std::array::from_fn(|i| a[i] & !(b[i] | c[i]))
    }

    fn decrement(self, a: [u32; COUNT]) -> [u32; COUNT] {
        a.map(|x| x.wrapping_sub(1))
    }

    fn shift_left(self, a: [u32; COUNT], by: [u32; COUNT]) -> [u32; COUNT] {
        Self::zip(a, by, |x, y| x.checked_shl(y).unwrap_or(0))
    }

    fn shift_right(self, a: [u32; COUNT], by: [u32; COUNT]) -> [u32; COUNT] {
        Self::zip(a, by, |x, y| x.checked_shr(y).unwrap_or(0))
    }

    fn all(self) -> [bool; COUNT] {
        [true; COUNT]
    }

    fn first(self, count: usize) -> [bool; COUNT] {
        std::array::from_fn(|i| i < count)
    }

    fn zero(self, a: [u32; COUNT]) -> [bool; COUNT] {
        a.map(|x| x == 0)
    }

    fn meet(self, a: [u32; COUNT], b: [u32; COUNT]) -> [bool; COUNT] {
        std::array::from_fn(|i| a[i] & b[i] != 0)
    }

    fn equal(self, a: [u32; COUNT], b: [u32; COUNT]) -> [bool; COUNT] {
        std::array::from_fn(|i| a[i] == b[i])
    }

    fn both(self, a: [bool; COUNT], b: [bool; COUNT]) -> [bool; COUNT] {
        std::array::from_fn(|i| a[i] && b[i])
    }

    fn count(self, mask: [bool; COUNT]) -> usize {
        mask.iter().filter(|&&m| m).count()
    }

    fn select(self, mask: [bool; COUNT], yes: [u32; COUNT], no: [u32; COUNT]) -> [u32; COUNT] {
        std::array::from_fn(|i| if mask[i] { yes[i] } else { no[i] })
    }

    fn increment(self, counter: [u32; COUNT], mask: [bool; COUNT]) -> [u32; COUNT] {
        let bits = u32::MAX >> (32 - COUNTER_BITS);
        std::array::from_fn(|i| counter[i].wrapping_add(u32::from(mask[i])) & bits)
    }

    fn permute(self, a: [u32; COUNT], index: [u32; COUNT]) -> [u32; COUNT] {
        index.map(|i| a[i as usize])
    }

    fn compress(self, mask: [bool; COUNT]) -> [u32; COUNT] {
        let mut index = [0; COUNT];
        (0..COUNT).filter(|&i| mask[i]).enumerate().for_each(|(k, i)| index[k] = i as u32);
        index
    }

    fn expand(self, mask: [bool; COUNT]) -> [u32; COUNT] {
        let mut index = [0; COUNT];
        (0..COUNT).filter(|&i| mask[i]).enumerate().for_each(|(k, i)| index[i] = k as u32);
        index
    }
}
