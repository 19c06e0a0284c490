//! The operations by AVX-512: eight states a vector, compressed by one instruction.
#![allow(unsafe_code)]

use std::arch::x86_64::*;

use super::engine::Engine;
use super::vector::{Pairs, SLACK, Vector};
use crate::decomposition::ColumnSet;

/// The words of a plane: one vector.
pub(super) const WORDS: usize = 8;

/// Proof that this processor has AVX-512 (F, BW, DQ, VL, VPOPCNTDQ), BMI1, BMI2 and POPCNT; created
/// only by [`Avx512::detect`].
#[derive(Clone, Copy, Debug)]
pub(super) struct Avx512(());

impl Avx512 {
    /// Returns the proof if the processor has the features.
    pub(super) fn detect() -> Option<Self> {
        let present = is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512dq")
            && is_x86_feature_detected!("avx512vl")
            && is_x86_feature_detected!("avx512vpopcntdq")
            && is_x86_feature_detected!("bmi1")
            && is_x86_feature_detected!("bmi2")
            && is_x86_feature_detected!("popcnt");
        present.then_some(Self(()))
    }

    /// Counts a set with these instructions enabled.
    pub(super) fn count(self, engine: &mut Engine<WORDS>, set: &ColumnSet) -> u128 {
        /// # Safety
        /// The processor must have the features named here; an [`Avx512`] proves it.
        #[target_feature(
            enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vpopcntdq,bmi1,bmi2,popcnt"
        )]
        unsafe fn enabled(vector: Avx512, engine: &mut Engine<WORDS>, set: &ColumnSet) -> u128 {
            engine.count(vector, set)
        }
        // SAFETY: `self` is the proof.
        unsafe { enabled(self, engine, set) }
    }

    /// Loads the words at..at + 8.
    ///
    /// # Safety
    /// `from` has these words.
    #[inline(always)]
    unsafe fn load(self, from: &[u64], at: usize) -> __m512i {
        debug_assert!(at + 8 <= from.len());
        // SAFETY: the words are there, and `self` proves AVX-512.
        unsafe { _mm512_loadu_si512(from.as_ptr().add(at).cast()) }
    }

    /// Stores the words of the mask at..at + 8, in order; the words after them are arbitrary.
    ///
    /// # Safety
    /// `into` has these words.
    #[inline(always)]
    unsafe fn store(self, into: &mut [u64], at: usize, words: __m512i, mask: __mmask8) {
        debug_assert!(at + 8 <= into.len());
        // SAFETY: the words are there, and `self` proves AVX-512. Compressing in a register and
        // storing all of it is faster than storing the words of the mask.
        unsafe {
            let front = _mm512_maskz_compress_epi64(mask, words);
            _mm512_storeu_si512(into.as_mut_ptr().add(at).cast(), front);
        }
    }

    #[inline(always)]
    fn splat(self, word: u64) -> __m512i {
        // SAFETY: `self` proves AVX-512.
        unsafe { _mm512_set1_epi64(word.cast_signed()) }
    }

    #[inline(always)]
    fn or(self, a: __m512i, b: __m512i) -> __m512i {
        // SAFETY: `self` proves AVX-512.
        unsafe { _mm512_or_si512(a, b) }
    }

    /// Returns the mask of the words of `a` that do not meet `b`, of the first `valid` ones.
    #[inline(always)]
    fn apart(self, a: __m512i, b: __m512i, valid: usize) -> __mmask8 {
        let valid = if valid >= 8 { u8::MAX } else { (1 << valid) - 1 };
        // SAFETY: `self` proves AVX-512.
        unsafe { _mm512_mask_testn_epi64_mask(valid, a, b) }
    }
}

impl Vector for Avx512 {
    #[inline(always)]
    fn join(
        self,
        count: usize,
        tests: &[u64],
        against: u64,
        words: &[u64],
        all: u64,
        into: &mut [u64],
    ) -> usize {
        assert!(tests.len().min(words.len()).min(into.len()) >= count + SLACK);
        let (mut kept, against, all) = (0, self.splat(against), self.splat(all));
        for at in (0..count).step_by(8) {
            // SAFETY: `at` and `kept`, which is not above it, are below `count`.
            unsafe {
                let chosen = self.apart(self.load(tests, at), against, count - at);
                self.store(into, kept, self.or(self.load(words, at), all), chosen);
                kept += chosen.count_ones() as usize;
            }
        }
        kept
    }

    #[inline(always)]
    fn join_codes(
        self,
        count: usize,
        tests: &[u64],
        against: u64,
        codes: &[u32],
        all: u32,
        into: &mut [u32],
    ) -> usize {
        assert!(tests.len().min(codes.len()).min(into.len()) >= count + SLACK);
        let (mut kept, against) = (0, self.splat(against));
        for at in (0..count).step_by(8) {
            // SAFETY: as in `join`, for words of 32 bits.
            unsafe {
                let chosen = self.apart(self.load(tests, at), against, count - at);
                let codes = _mm256_or_si256(
                    _mm256_loadu_si256(codes.as_ptr().add(at).cast()),
                    _mm256_set1_epi32(all.cast_signed()),
                );
                let front = _mm256_maskz_compress_epi32(chosen, codes);
                _mm256_storeu_si256(into.as_mut_ptr().add(kept).cast(), front);
                kept += chosen.count_ones() as usize;
            }
        }
        kept
    }

    #[inline(always)]
    fn sum<const W: usize>(self, pairs: &Pairs<W>, completions: &[u32]) -> u64 {
        const { assert!(W == WORDS) };
        // SAFETY: `self` proves AVX-512 with VPOPCNTDQ; a plane has eight words.
        unsafe {
            let mut sums = [_mm512_setzero_si512(); 2];
            for (i, &completion) in completions.iter().enumerate() {
                let mut open = _mm512_set1_epi64(-1);
                for (pair, planes) in pairs.iter().enumerate() {
                    let plane = &planes[(completion >> (8 * pair) & 63) as usize];
                    open = _mm512_and_si512(open, _mm512_loadu_si512(plane.as_ptr().cast()));
                }
                sums[i % 2] = _mm512_add_epi64(sums[i % 2], _mm512_popcnt_epi64(open));
            }
            _mm512_reduce_add_epi64(_mm512_add_epi64(sums[0], sums[1])).cast_unsigned()
        }
    }
}
