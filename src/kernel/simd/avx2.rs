//! 8 lanes of AVX2: compressing and expanding by tables of permutations.
#![allow(unsafe_code)]

use std::arch::x86_64::*;

use super::batch::{Batch, Engine};
use super::lanes::Lanes;
use crate::kernel::Kernel;

/// Proof that this processor has AVX2, BMI1, BMI2 and POPCNT; created only by [`Avx2::detect`].
#[derive(Clone, Copy, Debug)]
pub(in crate::kernel) struct Avx2(());

impl Avx2 {
    /// Returns the proof if the processor has the features.
    pub(in crate::kernel) fn detect() -> Option<Self> {
        let present = is_x86_feature_detected!("avx2")
            && is_x86_feature_detected!("bmi1")
            && is_x86_feature_detected!("bmi2")
            && is_x86_feature_detected!("popcnt");
        present.then_some(Self(()))
    }
}

/// Creates the kernel over these lanes.
pub(super) fn kernel(lanes: Avx2) -> Box<dyn Kernel> {
    // SAFETY: `lanes` is the proof that the processor has the features of `drain`.
    Box::new(Batch::new(move |engine, flush| unsafe { drain(lanes, engine, flush) }))
}

/// Runs the engine with these instructions enabled.
///
/// # Safety
/// The processor must have the features named here; an [`Avx2`] proves it.
#[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
unsafe fn drain(lanes: Avx2, engine: &mut Engine, flush: super::batch::Flush) {
    engine.drain(lanes, flush);
}

/// The permutation indices for [`Lanes::compress`], one for each mask (one bit a lane).
static COMPRESS: [[u32; 8]; 256] = permutations(false);
/// The permutation indices for [`Lanes::expand`], one for each mask (one bit a lane).
static EXPAND: [[u32; 8]; 256] = permutations(true);

const fn permutations(expand: bool) -> [[u32; 8]; 256] {
    let mut table = [[0; 8]; 256];
    let mut mask = 0;
    while mask < 256 {
        let (mut lane, mut chosen) = (0, 0);
        while lane < 8 {
            if mask >> lane & 1 == 1 {
                if expand {
                    table[mask][lane] = chosen as u32;
                } else {
                    table[mask][chosen] = lane as u32;
                }
                chosen += 1;
            }
            lane += 1;
        }
        mask += 1;
    }
    table
}

/// Converts a mask to one bit a lane.
///
/// # Safety
/// The processor must have AVX2.
#[inline(always)]
unsafe fn bits(mask: __m256i) -> usize {
    // SAFETY: as above. The result has 8 bits.
    unsafe { _mm256_movemask_ps(_mm256_castsi256_ps(mask)).cast_unsigned() as usize & 0xff }
}

/// Implements operations of [`Lanes`] by one expression of intrinsics each.
macro_rules! operations {
    ($(fn $name:ident($($argument:ident: $word:ty),*) -> $result:ty = $value:expr;)*) => {$(
        #[inline(always)]
        fn $name(self, $($argument: $word),*) -> $result {
            // SAFETY: `self` proves that the processor has the instructions.
            unsafe { $value }
        }
    )*};
}
pub(super) use operations;

// SAFETY (all blocks of this implementation): `self` proves that the processor has the
// instructions; loads and stores go through slices whose length was checked. In a mask, all bits of
// a lane are set, or none are.
#[allow(clippy::undocumented_unsafe_blocks)]
impl Lanes for Avx2 {
    const COUNT: usize = 8;
    const LOOK_AHEAD_ROWS: usize = 6;
    type Word = __m256i;
    type Mask = __m256i;

    #[inline(always)]
    fn load(self, from: &[u32], at: usize) -> __m256i {
        let words = &from[at..at + Self::COUNT];
        unsafe { _mm256_loadu_si256(words.as_ptr().cast()) }
    }

    #[inline(always)]
    fn store(self, into: &mut [u32], at: usize, word: __m256i) {
        let words = &mut into[at..at + Self::COUNT];
        unsafe { _mm256_storeu_si256(words.as_mut_ptr().cast(), word) }
    }

    #[inline(always)]
    fn first(self, count: usize) -> __m256i {
        // `count` is at most 8.
        unsafe {
            let numbers = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
            _mm256_cmpgt_epi32(_mm256_set1_epi32(count as i32), numbers)
        }
    }

    #[inline(always)]
    fn meet(self, a: __m256i, b: __m256i) -> __m256i {
        unsafe {
            let apart = _mm256_cmpeq_epi32(_mm256_and_si256(a, b), _mm256_setzero_si256());
            _mm256_xor_si256(apart, _mm256_set1_epi32(-1))
        }
    }

    #[inline(always)]
    fn count(self, mask: __m256i) -> usize {
        unsafe { bits(mask) }.count_ones() as usize
    }

    #[inline(always)]
    fn compress(self, mask: __m256i) -> __m256i {
        let index = &COMPRESS[unsafe { bits(mask) }];
        unsafe { _mm256_loadu_si256(index.as_ptr().cast()) }
    }

    #[inline(always)]
    fn expand(self, mask: __m256i) -> __m256i {
        let index = &EXPAND[unsafe { bits(mask) }];
        unsafe { _mm256_loadu_si256(index.as_ptr().cast()) }
    }

    operations! {
        fn splat(value: u32) -> __m256i = _mm256_set1_epi32(value.cast_signed());
        fn and(a: __m256i, b: __m256i) -> __m256i = _mm256_and_si256(a, b);
        fn and_not(a: __m256i, b: __m256i) -> __m256i = _mm256_andnot_si256(b, a);
        fn or(a: __m256i, b: __m256i) -> __m256i = _mm256_or_si256(a, b);
        fn xor(a: __m256i, b: __m256i) -> __m256i = _mm256_xor_si256(a, b);
        fn and_neither(a: __m256i, b: __m256i, c: __m256i) -> __m256i =
            _mm256_andnot_si256(_mm256_or_si256(b, c), a);
        fn decrement(a: __m256i) -> __m256i = _mm256_add_epi32(a, _mm256_set1_epi32(-1));
        fn shift_left(a: __m256i, by: __m256i) -> __m256i = _mm256_sllv_epi32(a, by);
        fn shift_right(a: __m256i, by: __m256i) -> __m256i = _mm256_srlv_epi32(a, by);
        fn all() -> __m256i = _mm256_set1_epi32(-1);
        fn zero(a: __m256i) -> __m256i = _mm256_cmpeq_epi32(a, _mm256_setzero_si256());
        fn equal(a: __m256i, b: __m256i) -> __m256i = _mm256_cmpeq_epi32(a, b);
        fn both(a: __m256i, b: __m256i) -> __m256i = _mm256_and_si256(a, b);
        fn select(mask: __m256i, yes: __m256i, no: __m256i) -> __m256i =
            _mm256_blendv_epi8(no, yes, mask);
        fn increment(counter: __m256i, mask: __m256i) -> __m256i = _mm256_sub_epi32(counter, mask);
        fn permute(a: __m256i, index: __m256i) -> __m256i = _mm256_permutevar8x32_epi32(a, index);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::kernel::simd::lanes::assert_lanes_contract;

    proptest! {
        #[test]
        fn avx2_lanes_agree_with_plain_loops(
            words in any::<[[u32; 16]; 3]>(),
            sparse in any::<[u32; 16]>(),
            shift in 0u32..40,
            bits in any::<u32>(),
        ) {
            if let Some(lanes) = Avx2::detect() {
                let [a, b, c] = words;
                assert_lanes_contract(lanes, &words, shift, bits);
                let few = std::array::from_fn(|i| a[i] & b[i] & c[i] & sparse[i] & 7);
                assert_lanes_contract(lanes, &[few, a, few], shift, bits);
            }
        }
    }
}
