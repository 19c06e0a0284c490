//! The operations by AVX2: four states a vector, compressed by tables of permutations.
#![allow(unsafe_code)]

use std::arch::x86_64::*;

use super::buffers::Buffers;
use super::engine::Engine;
use super::sum::Sum;
use super::vector::{
    Choice, Coded, Each, Few, FewCodes, MOST_PLACEMENTS, Plane, ROOM, SLACK, Vector, Words,
};
use crate::decomposition::{ColumnSet, columns_of};
pub(super) use crate::kernel::simd::Avx2;

/// The words of a plane: more need more registers than there are.
pub(super) const WORDS: usize = 4;

impl Avx2 {
    /// Counts a set with these instructions enabled.
    pub(super) fn count(
        self,
        engine: &mut Engine,
        buffers: &mut Buffers<WORDS>,
        set: &ColumnSet,
    ) -> Sum {
        /// # Safety
        /// The processor must have the features named here; an [`Avx2`] proves it.
        #[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
        unsafe fn enabled(
            vector: Avx2,
            engine: &mut Engine,
            buffers: &mut Buffers<WORDS>,
            set: &ColumnSet,
        ) -> Sum {
            engine.count(vector, buffers, set)
        }
        // SAFETY: `self` is the proof.
        unsafe { enabled(self, engine, buffers, set) }
    }

    /// Loads the words at..at + 4.
    ///
    /// # Safety
    /// `from` has these words.
    #[inline(always)]
    unsafe fn load(self, from: &[u64], at: usize) -> __m256i {
        debug_assert!(at + 4 <= from.len());
        // SAFETY: the words are there, and `self` proves AVX2.
        unsafe { _mm256_loadu_si256(from.as_ptr().add(at).cast()) }
    }

    /// Stores four words at..at + 4.
    ///
    /// # Safety
    /// `into` has these words.
    #[inline(always)]
    unsafe fn store(self, into: &mut [u64], at: usize, words: __m256i) {
        debug_assert!(at + 4 <= into.len());
        // SAFETY: the words are there, and `self` proves AVX2.
        unsafe { _mm256_storeu_si256(into.as_mut_ptr().add(at).cast(), words) }
    }

    #[inline(always)]
    fn splat(self, word: u64) -> __m256i {
        // SAFETY: `self` proves AVX2.
        unsafe { _mm256_set1_epi64x(word.cast_signed()) }
    }

    #[inline(always)]
    fn or(self, a: __m256i, b: __m256i) -> __m256i {
        // SAFETY: `self` proves AVX2.
        unsafe { _mm256_or_si256(a, b) }
    }

    /// Returns the mask of the words of `a` that do not meet `b`.
    #[inline(always)]
    fn apart(self, a: __m256i, b: __m256i) -> usize {
        // SAFETY: `self` proves AVX2.
        let mask = unsafe {
            let zero = _mm256_cmpeq_epi64(_mm256_and_si256(a, b), _mm256_setzero_si256());
            _mm256_movemask_pd(_mm256_castsi256_pd(zero))
        };
        // Four bits.
        mask as usize
    }

    #[inline(always)]
    fn load_plane<const W: usize>(self, plane: &Plane<W>) -> __m256i {
        const { assert!(W == WORDS) };
        // SAFETY: a plane has four words, and `self` proves AVX2.
        unsafe { _mm256_loadu_si256(plane.as_ptr().cast()) }
    }

    #[inline(always)]
    fn store_plane<const W: usize>(self, plane: &mut Plane<W>, words: __m256i) {
        const { assert!(W == WORDS) };
        // SAFETY: a plane has four words, and `self` proves AVX2.
        unsafe { _mm256_storeu_si256(plane.as_mut_ptr().cast(), words) }
    }

    /// Moves the words of the mask to the front.
    #[inline(always)]
    fn front(self, words: __m256i, mask: usize) -> __m256i {
        // SAFETY: `self` proves AVX2; an order has eight words.
        unsafe {
            let order = _mm256_loadu_si256(FRONT[mask].as_ptr().cast());
            _mm256_permutevar8x32_epi32(words, order)
        }
    }
}

/// The orders of eight 32-bit words that move the chosen ones of four 64-bit words to the front, by
/// the mask of the chosen ones.
static FRONT: [[u32; 8]; 16] = {
    let mut table = [[0; 8]; 16];
    let mut mask = 0;
    while mask < 16 {
        let (mut word, mut chosen) = (0, 0);
        while word < 4 {
            if mask >> word & 1 == 1 {
                table[mask][2 * chosen] = 2 * word as u32;
                table[mask][2 * chosen + 1] = 2 * word as u32 + 1;
                chosen += 1;
            }
            word += 1;
        }
        mask += 1;
    }
    table
};

/// The orders of 16 bytes that move the chosen ones of four 32-bit words to the front.
static FRONT_BYTES: [[u8; 16]; 16] = {
    let mut table = [[0; 16]; 16];
    let mut mask = 0;
    while mask < 16 {
        let mut byte = 0;
        while byte < 16 {
            table[mask][byte] = (FRONT[mask][byte / 4 * 2] / 2 * 4) as u8 + (byte % 4) as u8;
            byte += 1;
        }
        mask += 1;
    }
    table
};

/// Returns the mask of the first `count` of four words.
#[inline(always)]
const fn valid(count: usize) -> usize {
    if count >= 4 { 15 } else { (1 << count) - 1 }
}

impl Vector for Avx2 {
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
        for at in (0..count).step_by(4) {
            // SAFETY: `at` and `kept`, which is not above it, are below `count`.
            unsafe {
                let chosen = self.apart(self.load(tests, at), against) & valid(count - at);
                self.store(into, kept, self.front(self.or(self.load(words, at), all), chosen));
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
        let Choice { count, tests, against } = choice;
        let [into_first, into_second] = into;
        assert!(count <= MOST_PLACEMENTS && into_first.len() >= ROOM && into_second.len() >= ROOM);
        let (mut kept, against) = (0, self.splat(against));
        let all = [self.splat(all[0]), self.splat(all[1])];
        for at in (0..count).step_by(4) {
            // SAFETY: `at` is a multiple of 4 below 24; `kept` is not above it.
            unsafe {
                let chosen = self.apart(self.load(tests, at), against) & valid(count - at);
                let first = self.or(self.load(words[0], at), all[0]);
                let second = self.or(self.load(words[1], at), all[1]);
                self.store(into_first, kept, self.front(first, chosen));
                self.store(into_second, kept, self.front(second, chosen));
                kept += chosen.count_ones() as usize;
            }
        }
        kept
    }

    #[inline(always)]
    fn chosen(self, choice: Choice<'_>) -> u32 {
        let Choice { count, tests, against } = choice;
        assert!(count <= MOST_PLACEMENTS);
        let (against, mut chosen) = (self.splat(against), 0);
        for at in (0..count).step_by(4) {
            // SAFETY: `at` is a multiple of 4 below 24.
            let tests = unsafe { self.load(tests, at) };
            // Four bits.
            chosen |= ((self.apart(tests, against) & valid(count - at)) as u32) << at;
        }
        chosen
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
        let (mut kept, test, all) = (0, self.splat(each.test), self.splat(all));
        for at in (0..many.count).step_by(4) {
            // SAFETY: `at` is below the number of many, and there are SLACK more. `kept` is not
            // above the number of pairs so far.
            unsafe {
                let (tests, of_many) = (self.load(many.tests, at), self.load(many.words, at));
                let (of_many, valid) = (self.or(of_many, all), valid(many.count - at));
                for i in columns_of(each.mask) {
                    let against = self.or(self.splat(each.tests[i]), test);
                    let chosen = self.apart(tests, against) & valid;
                    let word = self.or(of_many, self.splat(words[i]));
                    self.store(into, kept, self.front(word, chosen));
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
        for at in (0..many.count).step_by(4) {
            // SAFETY: as in `join_all`, for words of 32 bits.
            unsafe {
                let tests = self.load(many.tests, at);
                let of_many = _mm_loadu_si128(many.codes.as_ptr().add(at).cast());
                let of_many = _mm_add_epi32(of_many, _mm_set1_epi32(all.cast_signed()));
                let valid = valid(many.count - at);
                for i in columns_of(each.mask) {
                    let against = self.or(self.splat(each.tests[i]), test);
                    let chosen = self.apart(tests, against) & valid;
                    let code = _mm_set1_epi32(codes[i].cast_signed());
                    let order = _mm_loadu_si128(FRONT_BYTES[chosen].as_ptr().cast());
                    let front = _mm_shuffle_epi8(_mm_add_epi32(of_many, code), order);
                    _mm_storeu_si128(into.as_mut_ptr().add(kept).cast(), front);
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
            // SAFETY: `self` proves AVX2.
            unsafe {
                let shift = _mm_cvtsi64_si128(i64::from(shift));
                let differ = _mm256_xor_si256(_mm256_srl_epi64(x, shift), y);
                let differ = _mm256_and_si256(differ, self.splat(mask));
                self.store_plane(b, _mm256_xor_si256(y, differ));
                self.store_plane(a, _mm256_xor_si256(x, _mm256_sll_epi64(differ, shift)));
            }
        }
    }

    #[inline(always)]
    fn and<const W: usize>(self, a: &Plane<W>, b: &Plane<W>, into: &mut Plane<W>) {
        // SAFETY: `self` proves AVX2.
        let both = unsafe { _mm256_and_si256(self.load_plane(a), self.load_plane(b)) };
        self.store_plane(into, both);
    }

    #[inline(always)]
    fn none<const W: usize>(self, valid: &Plane<W>, a: &Plane<W>, b: &Plane<W>) -> Plane<W> {
        let some = self.or(self.load_plane(a), self.load_plane(b));
        let mut none = [0; W];
        // SAFETY: `self` proves AVX2.
        let left = unsafe { _mm256_andnot_si256(some, self.load_plane(valid)) };
        self.store_plane(&mut none, left);
        none
    }
}
