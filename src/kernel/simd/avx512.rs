//! 16 lanes of AVX-512.
#![allow(unsafe_code)]

use std::arch::x86_64::*;

use super::avx2::operations;
use super::batch::{Batch, Engine};
use super::lanes::Lanes;
use crate::kernel::Kernel;

/// Proof that this processor has AVX-512 F, BW, DQ and VL, BMI1, BMI2 and POPCNT; created only by
/// [`Avx512::detect`].
#[derive(Clone, Copy, Debug)]
pub(super) struct Avx512(());

impl Avx512 {
    /// Returns the proof if the processor has the features.
    pub(super) fn detect() -> Option<Self> {
        let present = is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512dq")
            && is_x86_feature_detected!("avx512vl")
            && is_x86_feature_detected!("bmi1")
            && is_x86_feature_detected!("bmi2")
            && is_x86_feature_detected!("popcnt");
        present.then_some(Self(()))
    }
}

/// Creates the kernel over these lanes.
pub(super) fn kernel(lanes: Avx512) -> Box<dyn Kernel> {
    // SAFETY: `lanes` is the proof that the processor has the features of `drain`.
    Box::new(Batch::new(move |engine, flush| unsafe { drain(lanes, engine, flush) }))
}

/// Runs the engine with these instructions enabled.
///
/// # Safety
/// The processor must have the features named here; an [`Avx512`] proves it.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi1,bmi2,popcnt")]
unsafe fn drain(lanes: Avx512, engine: &mut Engine, flush: super::batch::Flush) {
    engine.drain(lanes, flush);
}

// SAFETY (all blocks of this implementation): `self` proves that the processor has the
// instructions; loads and stores go through slices whose length was checked.
#[allow(clippy::undocumented_unsafe_blocks)]
impl Lanes for Avx512 {
    const COUNT: usize = 16;
    const LOOK_AHEAD_ROWS: usize = 10;
    type Word = __m512i;
    type Mask = __mmask16;

    #[inline(always)]
    fn load(self, from: &[u32], at: usize) -> __m512i {
        let words = &from[at..at + Self::COUNT];
        unsafe { _mm512_loadu_si512(words.as_ptr().cast()) }
    }

    #[inline(always)]
    fn store(self, into: &mut [u32], at: usize, word: __m512i) {
        let words = &mut into[at..at + Self::COUNT];
        unsafe { _mm512_storeu_si512(words.as_mut_ptr().cast(), word) }
    }

    #[inline(always)]
    fn all(self) -> __mmask16 {
        0xffff
    }

    #[inline(always)]
    fn first(self, count: usize) -> __mmask16 {
        // `count` is at most 16: the shift is at most 16, and only the low half is kept.
        ((1u32 << count) - 1) as __mmask16
    }

    #[inline(always)]
    fn both(self, a: __mmask16, b: __mmask16) -> __mmask16 {
        a & b
    }

    #[inline(always)]
    fn count(self, mask: __mmask16) -> usize {
        mask.count_ones() as usize
    }

    operations! {
        fn splat(value: u32) -> __m512i = _mm512_set1_epi32(value.cast_signed());
        fn and(a: __m512i, b: __m512i) -> __m512i = _mm512_and_si512(a, b);
        fn and_not(a: __m512i, b: __m512i) -> __m512i = _mm512_andnot_si512(b, a);
        fn or(a: __m512i, b: __m512i) -> __m512i = _mm512_or_si512(a, b);
        fn xor(a: __m512i, b: __m512i) -> __m512i = _mm512_xor_si512(a, b);
        // The truth table of a & !b & !c: true for (1, 0, 0) only, bit 4.
        fn and_neither(a: __m512i, b: __m512i, c: __m512i) -> __m512i =
            _mm512_ternarylogic_epi32::<0b0001_0000>(a, b, c);
        fn decrement(a: __m512i) -> __m512i = _mm512_add_epi32(a, _mm512_set1_epi32(-1));
        fn shift_left(a: __m512i, by: __m512i) -> __m512i = _mm512_sllv_epi32(a, by);
        fn shift_right(a: __m512i, by: __m512i) -> __m512i = _mm512_srlv_epi32(a, by);
        fn zero(a: __m512i) -> __mmask16 = _mm512_testn_epi32_mask(a, a);
        fn meet(a: __m512i, b: __m512i) -> __mmask16 = _mm512_test_epi32_mask(a, b);
        fn equal(a: __m512i, b: __m512i) -> __mmask16 = _mm512_cmpeq_epi32_mask(a, b);
        fn select(mask: __mmask16, yes: __m512i, no: __m512i) -> __m512i =
            _mm512_mask_mov_epi32(no, mask, yes);
        fn increment(counter: __m512i, mask: __mmask16) -> __m512i =
            _mm512_mask_sub_epi32(counter, mask, counter, _mm512_set1_epi32(-1));
        fn permute(a: __m512i, index: __m512i) -> __m512i = _mm512_permutexvar_epi32(index, a);
        fn compress(mask: __mmask16) -> __m512i = _mm512_maskz_compress_epi32(mask, iota());
        fn expand(mask: __mmask16) -> __m512i = _mm512_maskz_expand_epi32(mask, iota());
    }
}

/// Returns the index of each lane.
///
/// # Safety
/// The processor must have AVX-512 F.
#[inline(always)]
unsafe fn iota() -> __m512i {
    // SAFETY: as above.
    unsafe { _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::kernel::simd::lanes::assert_lanes_contract;

    proptest! {
        #[test]
        fn avx512_lanes_agree_with_plain_loops(
            words in any::<[[u32; 16]; 3]>(),
            sparse in any::<[u32; 16]>(),
            shift in 0u32..40,
            bits in any::<u32>(),
        ) {
            if let Some(lanes) = Avx512::detect() {
                let [a, b, c] = words;
                assert_lanes_contract(lanes, &words, shift, bits);
                let few = std::array::from_fn(|i| a[i] & b[i] & c[i] & sparse[i] & 7);
                assert_lanes_contract(lanes, &[few, a, few], shift, bits);
            }
        }
    }
}
