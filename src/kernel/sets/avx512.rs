//! The operations by AVX-512: eight states a vector, compressed by one instruction.
#![allow(unsafe_code)]

use std::arch::x86_64::*;

use super::buffers::Buffers;
use super::engine::Engine;
use super::sum::Sum;
use super::vector::{
    Choice, Coded, Each, Few, FewCodes, MOST_PLACEMENTS, Pairs, Plane, ROOM, SLACK, Vector, Words,
};
use crate::decomposition::{ColumnSet, columns_of};

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
    pub(super) fn count(
        self,
        engine: &mut Engine,
        buffers: &mut Buffers<WORDS>,
        set: &ColumnSet,
    ) -> Sum {
        /// # Safety
        /// The processor must have the features named here; an [`Avx512`] proves it.
        #[target_feature(
            enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vpopcntdq,bmi1,bmi2,popcnt"
        )]
        unsafe fn enabled(
            vector: Avx512,
            engine: &mut Engine,
            buffers: &mut Buffers<WORDS>,
            set: &ColumnSet,
        ) -> Sum {
            engine.count(vector, buffers, set)
        }
        // SAFETY: `self` is the proof.
        unsafe { enabled(self, engine, buffers, set) }
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

    #[inline(always)]
    fn load_plane<const W: usize>(self, plane: &Plane<W>) -> __m512i {
        const { assert!(W == WORDS) };
        // SAFETY: a plane has eight words, and `self` proves AVX-512.
        unsafe { _mm512_loadu_si512(plane.as_ptr().cast()) }
    }

    #[inline(always)]
    fn store_plane<const W: usize>(self, plane: &mut Plane<W>, words: __m512i) {
        const { assert!(W == WORDS) };
        // SAFETY: a plane has eight words, and `self` proves AVX-512.
        unsafe { _mm512_storeu_si512(plane.as_mut_ptr().cast(), words) }
    }

    /// Returns `sum` plus, in each word, the number of states in all planes of a completion.
    #[inline(always)]
    fn add_open<const W: usize>(self, sum: __m512i, pairs: &Pairs<W>, completion: u32) -> __m512i {
        let [a, b, c, d] = completion.to_le_bytes();
        let first = self.load_plane(&pairs[0][usize::from(a & 127)]);
        let second = self.load_plane(&pairs[1][usize::from(b & 127)]);
        let third = self.load_plane(&pairs[2][usize::from(c & 127)]);
        let fourth = self.load_plane(&pairs[3][usize::from(d & 127)]);
        const AND: i32 = 0x80;
        // SAFETY: `self` proves AVX-512 with VPOPCNTDQ.
        unsafe {
            let three = _mm512_ternarylogic_epi64::<AND>(first, second, third);
            let open = _mm512_and_si512(three, fourth);
            _mm512_add_epi64(sum, _mm512_popcnt_epi64(open))
        }
    }

    /// Returns the mask of the words of `a` that do not meet `b`, of the first `valid` ones.
    #[inline(always)]
    fn apart(self, a: __m512i, b: __m512i, valid: usize) -> __mmask8 {
        // SAFETY: `self` proves AVX-512.
        unsafe { _mm512_mask_testn_epi64_mask(self::valid(valid), a, b) }
    }

    /// Returns the codes of the orders at..at + 16, where `at` is 0 or 16.
    #[inline(always)]
    fn codes_of(self, codes: &FewCodes, orders: &FewCodes, at: usize) -> __m512i {
        assert!(at <= 16);
        // SAFETY: the arrays have 32 words, and `self` proves AVX-512.
        unsafe {
            let orders = _mm512_loadu_si512(orders.as_ptr().add(at).cast());
            let low = _mm512_loadu_si512(codes.as_ptr().cast());
            let high = _mm512_loadu_si512(codes.as_ptr().add(16).cast());
            _mm512_permutex2var_epi32(low, orders, high)
        }
    }

    /// Returns the masks of the chosen ones of 24 placements.
    #[inline(always)]
    fn masks(self, choice: Choice<'_>) -> [__mmask8; 3] {
        let Choice { count, tests, against } = choice;
        assert!(count <= MOST_PLACEMENTS);
        let (valid, against) = ((1u32 << count) - 1, self.splat(against));
        let mut chosen = [0; 3];
        // A loop, because a closure is compiled without the instructions that are enabled here.
        for (eighth, chosen) in chosen.iter_mut().enumerate() {
            let at = 8 * eighth;
            // SAFETY: there are 24 words, and `self` proves AVX-512.
            *chosen = unsafe {
                // The valid bits of these 8 words.
                let valid = (valid >> at) as u8;
                _mm512_mask_testn_epi64_mask(valid, self.load(tests, at), against)
            };
        }
        chosen
    }
}

/// Returns the mask of the first `count` of eight words.
#[inline(always)]
const fn valid(count: usize) -> __mmask8 {
    if count >= 8 { u8::MAX } else { (1 << count) - 1 }
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
    fn select(
        self,
        choice: Choice<'_>,
        words: [&Few; 2],
        all: [u64; 2],
        into: [&mut [u64]; 2],
    ) -> usize {
        let [into_first, into_second] = into;
        assert!(into_first.len() >= ROOM && into_second.len() >= ROOM);
        let (chosen, all) = (self.masks(choice), [self.splat(all[0]), self.splat(all[1])]);
        let mut kept = 0;
        for (at, chosen) in [0, 8, 16].into_iter().zip(chosen) {
            // SAFETY: the arrays have 24 words; `kept` is not above `at`.
            unsafe {
                self.store(into_first, kept, self.or(self.load(words[0], at), all[0]), chosen);
                self.store(into_second, kept, self.or(self.load(words[1], at), all[1]), chosen);
            }
            kept += chosen.count_ones() as usize;
        }
        kept
    }

    #[inline(always)]
    fn select_coded(
        self,
        choice: Choice<'_>,
        words: &Few,
        [orders, codes]: [&FewCodes; 2],
        all: (u64, u32),
        into: (&mut [u64], &mut [u32]),
    ) -> usize {
        assert!(into.0.len() >= ROOM && into.1.len() >= ROOM);
        let (chosen, all_words) = (self.masks(choice), self.splat(all.0));
        let mut kept = 0;
        for (at, chosen) in [0, 8, 16].into_iter().zip(chosen) {
            // SAFETY: the arrays have 24 words; `kept` is not above `at`.
            unsafe {
                self.store(into.0, kept, self.or(self.load(words, at), all_words), chosen);
            }
            kept += chosen.count_ones() as usize;
        }
        let [low, middle, high] = chosen;
        // SAFETY: at most 16 codes are before the last 16 words that are written, and there is room
        // for 32. `self` proves AVX-512.
        unsafe {
            let mask = u16::from(low) | u16::from(middle) << 8;
            let into = into.1.as_mut_ptr();
            let all = _mm512_set1_epi32(all.1.cast_signed());
            let first = _mm512_add_epi32(self.codes_of(codes, orders, 0), all);
            _mm512_storeu_si512(into.cast(), _mm512_maskz_compress_epi32(mask, first));
            let last = _mm512_add_epi32(self.codes_of(codes, orders, 16), all);
            let rest = into.add(mask.count_ones() as usize).cast();
            _mm512_storeu_si512(rest, _mm512_maskz_compress_epi32(u16::from(high), last));
        }
        kept
    }

    #[inline(always)]
    fn chosen(self, choice: Choice<'_>) -> u32 {
        let [low, middle, high] = self.masks(choice);
        u32::from(low) | u32::from(middle) << 8 | u32::from(high) << 16
    }

    #[inline(always)]
    fn look_up(self, orders: &FewCodes, codes: &FewCodes) -> FewCodes {
        let mut of_orders = [0; 32];
        for at in [0, 16] {
            let found = self.codes_of(codes, orders, at);
            // SAFETY: the array has 32 words, and `self` proves AVX-512.
            unsafe { _mm512_storeu_si512(of_orders.as_mut_ptr().add(at).cast(), found) };
        }
        of_orders
    }

    #[inline(always)]
    fn join_all(
        self,
        many: Words<'_>,
        each: Each<'_>,
        words: &Few,
        all: u64,
        into: &mut [u64],
    ) -> usize {
        many.check(each, into.len());
        const OR: i32 = 0xfe;
        let (mut kept, test, all) = (0, self.splat(each.test), self.splat(all));
        for at in (0..many.count).step_by(8) {
            // SAFETY: `at` is below the number of many, and there are SLACK more. `kept` is not
            // above the number of pairs so far.
            unsafe {
                let (tests, of_many) = (self.load(many.tests, at), self.load(many.words, at));
                let valid = valid(many.count - at);
                for i in columns_of(each.mask) {
                    let against = self.or(self.splat(each.tests[i]), test);
                    let chosen = _mm512_mask_testn_epi64_mask(valid, tests, against);
                    let word = self.splat(words[i]);
                    let word = _mm512_ternarylogic_epi64::<OR>(of_many, word, all);
                    self.store(into, kept, word, chosen);
                    kept += chosen.count_ones() as usize;
                }
            }
        }
        kept
    }

    #[inline(always)]
    fn join_codes(
        self,
        many: Coded<'_>,
        each: Each<'_>,
        codes: &FewCodes,
        all: u32,
        into: &mut [u32],
    ) -> usize {
        many.check(each, into.len());
        let (mut kept, test) = (0, self.splat(each.test));
        for at in (0..many.count).step_by(16) {
            // SAFETY: as in `join_all`, for 16 words of 32 bits.
            unsafe {
                let tests = [self.load(many.tests, at), self.load(many.tests, at + 8)];
                let of_many = _mm512_loadu_si512(many.codes.as_ptr().add(at).cast());
                let of_many = _mm512_add_epi32(of_many, _mm512_set1_epi32(all.cast_signed()));
                let count = many.count - at;
                let valid = [valid(count), valid(count.saturating_sub(8))];
                for i in columns_of(each.mask) {
                    let against = self.or(self.splat(each.tests[i]), test);
                    let low = _mm512_mask_testn_epi64_mask(valid[0], tests[0], against);
                    let high = _mm512_mask_testn_epi64_mask(valid[1], tests[1], against);
                    let chosen = u16::from(low) | u16::from(high) << 8;
                    let code = _mm512_set1_epi32(codes[i].cast_signed());
                    let code = _mm512_add_epi32(of_many, code);
                    let front = _mm512_maskz_compress_epi32(chosen, code);
                    _mm512_storeu_si512(into.as_mut_ptr().add(kept).cast(), front);
                    kept += chosen.count_ones() as usize;
                }
            }
        }
        kept
    }

    #[inline(always)]
    fn exchange<const W: usize>(
        self,
        a: &mut [Plane<W>],
        b: &mut [Plane<W>],
        shift: u32,
        mask: u64,
    ) {
        for (a, b) in a.iter_mut().zip(b) {
            let (x, y) = (self.load_plane(a), self.load_plane(b));
            // SAFETY: `self` proves AVX-512.
            unsafe {
                let shift = _mm_cvtsi64_si128(i64::from(shift));
                let differ = _mm512_xor_si512(_mm512_srl_epi64(x, shift), y);
                let differ = _mm512_and_si512(differ, self.splat(mask));
                self.store_plane(b, _mm512_xor_si512(y, differ));
                self.store_plane(a, _mm512_xor_si512(x, _mm512_sll_epi64(differ, shift)));
            }
        }
    }

    #[inline(always)]
    fn and<const W: usize>(self, a: &Plane<W>, b: &Plane<W>, into: &mut Plane<W>) {
        // SAFETY: `self` proves AVX-512.
        let both = unsafe { _mm512_and_si512(self.load_plane(a), self.load_plane(b)) };
        self.store_plane(into, both);
    }

    #[inline(always)]
    fn none<const W: usize>(self, valid: &Plane<W>, a: &Plane<W>, b: &Plane<W>) -> Plane<W> {
        let some = self.or(self.load_plane(a), self.load_plane(b));
        let mut none = [0; W];
        // SAFETY: `self` proves AVX-512.
        let left = unsafe { _mm512_andnot_si512(some, self.load_plane(valid)) };
        self.store_plane(&mut none, left);
        none
    }

    #[inline(always)]
    fn sum<const W: usize>(self, pairs: &Pairs<W>, completions: &[u32]) -> u64 {
        const { assert!(W == WORDS) };
        let mut sums = [self.splat(0); 4];
        let groups = completions.chunks_exact(4);
        let rest = groups.remainder();
        for of in groups {
            sums[0] = self.add_open(sums[0], pairs, of[0]);
            sums[1] = self.add_open(sums[1], pairs, of[1]);
            sums[2] = self.add_open(sums[2], pairs, of[2]);
            sums[3] = self.add_open(sums[3], pairs, of[3]);
        }
        for &of in rest {
            sums[0] = self.add_open(sums[0], pairs, of);
        }
        // SAFETY: `self` proves AVX-512.
        unsafe {
            let [a, b, c, d] = sums;
            let all = _mm512_add_epi64(_mm512_add_epi64(a, b), _mm512_add_epi64(c, d));
            _mm512_reduce_add_epi64(all).cast_unsigned()
        }
    }
}
