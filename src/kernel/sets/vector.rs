//! The operations that the engine requires of an instruction set, and their definition by plain
//! loops.

use crate::decomposition::columns_of;

/// A block's plane: one bit for each of 64 W states.
pub(super) type Plane<const W: usize> = [u64; W];

/// The planes of the pairs of rows (0, 1), (2, 3), (4, 5) and (6, 7) of a block: plane 10 x + y of
/// a pair has the states in which both the square of column x (by rank) in its first row and that
/// of column y in its second row are open. A power of two of them, so that no index is out of
/// bounds.
pub(super) type Pairs<const W: usize> = [[Plane<W>; 128]; 4];

/// The number of words by which loads and stores of vectors may exceed what they are for.
pub(super) const SLACK: usize = 16;

/// The most placements of a set of four columns: their orders.
pub(super) const MOST_PLACEMENTS: usize = 24;

/// The least room for the chosen placements of a set.
pub(super) const ROOM: usize = 32;

/// The words of the placements of a set.
pub(super) type Few = [u64; MOST_PLACEMENTS];

/// Numbers of 32 bits by the placements of a set, or by the numbers of orders.
pub(super) type FewCodes = [u32; 32];

/// The placements of a set whose word in `tests` does not meet `against`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Choice<'a> {
    /// The number of placements of the set.
    pub(super) count: usize,
    pub(super) tests: &'a Few,
    pub(super) against: u64,
}

/// Words with their tests, `count` of them and at least [`SLACK`] more.
#[derive(Clone, Copy, Debug)]
pub(super) struct Words<'a> {
    pub(super) count: usize,
    pub(super) tests: &'a [u64],
    pub(super) words: &'a [u64],
}

/// Codes with their tests, likewise.
#[derive(Clone, Copy, Debug)]
pub(super) struct Coded<'a> {
    pub(super) count: usize,
    pub(super) tests: &'a [u64],
    pub(super) codes: &'a [u32],
}

/// The placements of a set that words are joined with: those of a mask.
#[derive(Clone, Copy, Debug)]
pub(super) struct Each<'a> {
    /// At most the first [`MOST_PLACEMENTS`] bits.
    pub(super) mask: u32,
    pub(super) tests: &'a Few,
    /// The words that are added to the test of each.
    pub(super) test: u64,
}

impl Words<'_> {
    /// Panics if an array is too short for [`Vector::join_all`] into `room` words.
    #[inline(always)]
    pub(super) fn check(&self, each: Each<'_>, room: usize) {
        assert!(self.tests.len().min(self.words.len()) >= self.count + SLACK);
        each.check(self.count, room);
    }
}

impl Coded<'_> {
    /// Panics if an array is too short for [`Vector::join_codes`] into `room` words.
    #[inline(always)]
    pub(super) fn check(&self, each: Each<'_>, room: usize) {
        assert!(self.tests.len().min(self.codes.len()) >= self.count + SLACK);
        each.check(self.count, room);
    }
}

impl Each<'_> {
    #[inline(always)]
    fn check(&self, count: usize, room: usize) {
        assert!(self.mask >> MOST_PLACEMENTS == 0);
        assert!(room >= count * self.mask.count_ones() as usize + SLACK);
    }
}

/// The operations of an instruction set. Each has a body, its definition; an implementation
/// replaces those for which it has better instructions.
///
/// The implementing type is a token: a value of it exists only where the processor has the
/// instructions, so that every operation is safe to call. All operations must be inlined into one
/// function that enables the instructions for the compiler.
///
/// The operations that keep words write them to the front of `into`, in order, and return their
/// number; the words after them are arbitrary. Inputs and outputs have at least [`SLACK`] more
/// words than `count`.
pub(super) trait Vector: Copy {
    /// Keeps `word | all` for each of the first `count` words whose word in `tests`, at the same
    /// place, does not meet `against`.
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
        let (tests, words, into) = (&tests[..count], &words[..count], &mut into[..count]);
        let mut kept = 0;
        for i in 0..count {
            into[kept] = words[i] | all;
            kept += usize::from(tests[i] & against == 0);
        }
        kept
    }

    /// Keeps pairs of words of the chosen placements, each combined with its word in `all`.
    #[inline(always)]
    fn select(
        self,
        choice: Choice<'_>,
        words: [&Few; 2],
        all: [u64; 2],
        into: [&mut [u64]; 2],
    ) -> usize {
        let Choice { count, tests, against } = choice;
        let [first, second] = into;
        let mut kept = 0;
        for i in 0..count {
            first[kept] = words[0][i] | all[0];
            second[kept] = words[1][i] | all[1];
            kept += usize::from(tests[i] & against == 0);
        }
        kept
    }

    /// Keeps `word | all.0` and `codes[order] + all.1` of the chosen placements.
    #[inline(always)]
    fn select_coded(
        self,
        choice: Choice<'_>,
        words: &Few,
        [orders, codes]: [&FewCodes; 2],
        all: (u64, u32),
        into: (&mut [u64], &mut [u32]),
    ) -> usize {
        let Choice { count, tests, against } = choice;
        let mut kept = 0;
        for i in 0..count {
            into.0[kept] = words[i] | all.0;
            into.1[kept] = codes[(orders[i] & 31) as usize] + all.1;
            kept += usize::from(tests[i] & against == 0);
        }
        kept
    }

    /// Returns the mask of the chosen placements.
    #[inline(always)]
    fn chosen(self, choice: Choice<'_>) -> u32 {
        let Choice { count, tests, against } = choice;
        let apart = tests[..count].iter().map(|test| test & against == 0);
        apart.enumerate().fold(0, |mask, (i, apart)| mask | u32::from(apart) << i)
    }

    /// Returns the codes of orders.
    #[inline(always)]
    fn look_up(self, orders: &FewCodes, codes: &FewCodes) -> FewCodes {
        let mut of_orders = [0; 32];
        for (code, order) in of_orders.iter_mut().zip(orders) {
            *code = codes[(order & 31) as usize];
        }
        of_orders
    }

    /// Keeps `word | other | all` for each pair of a word of `many` and one of `words` in the mask
    /// of `each` whose tests do not meet, in any order.
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
        let mut kept = 0;
        for i in columns_of(each.mask) {
            let (against, all) = (each.tests[i] | each.test, words[i] | all);
            let into = &mut into[kept..];
            kept += self.join(many.count, many.tests, against, many.words, all, into);
        }
        kept
    }

    /// Keeps `code + other + all` for each pair of a code of `many` and one of `codes`, likewise.
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
        let count = many.count;
        let (tests, of_many) = (&many.tests[..count], &many.codes[..count]);
        let mut kept = 0;
        for i in columns_of(each.mask) {
            let (against, all) = (each.tests[i] | each.test, codes[i] + all);
            let into = &mut into[kept..][..count];
            let mut written = 0;
            for j in 0..count {
                into[written] = of_many[j] + all;
                written += usize::from(tests[j] & against == 0);
            }
            kept += written;
        }
        kept
    }

    /// Exchanges, in each pair of planes at the same place, the bits of `a` that `mask` has shifted
    /// left by `shift` with those of `b` in the mask.
    #[inline(always)]
    fn exchange<const W: usize>(
        self,
        a: &mut [Plane<W>],
        b: &mut [Plane<W>],
        shift: u32,
        mask: u64,
    ) {
        for (x, y) in a.as_flattened_mut().iter_mut().zip(b.as_flattened_mut()) {
            let differ = (*x >> shift ^ *y) & mask;
            *y ^= differ;
            *x ^= differ << shift;
        }
    }

    /// Writes the states that are in both planes to `into`.
    #[inline(always)]
    fn and<const W: usize>(self, a: &Plane<W>, b: &Plane<W>, into: &mut Plane<W>) {
        // All loads precede the stores. Otherwise the compiler does not vectorise the loop, because
        // after inlining it does not know that `into` and `b` are apart.
        let mut both = *a;
        for w in 0..W {
            both[w] &= b[w];
        }
        *into = both;
    }

    /// Returns the states of `valid` that are in none of the other planes.
    #[inline(always)]
    fn none<const W: usize>(self, valid: &Plane<W>, a: &Plane<W>, b: &Plane<W>) -> Plane<W> {
        let mut none = *valid;
        for w in 0..W {
            none[w] &= !(a[w] | b[w]);
        }
        none
    }

    /// Returns Σ over `completions` of the number of states in all four planes that a completion
    /// selects, a byte for each pair of rows.
    #[inline(always)]
    fn sum<const W: usize>(self, pairs: &Pairs<W>, completions: &[u32]) -> u64 {
        carry_save_sum(pairs, completions)
    }
}

/// The definitions as they are, which the compiler vectorises for any instruction set.
#[derive(Clone, Copy, Debug)]
pub(super) struct Portable;

impl Vector for Portable {}

/// [`Vector::sum`] by carry-save adders: the counts of eight completions are added bit by bit
/// before set bits are counted (R. Harley and D. Seal; see W. Kulisch, H. Warren, "Hacker's
/// Delight", 5-1).
#[inline(always)]
fn carry_save_sum<const W: usize>(pairs: &Pairs<W>, completions: &[u32]) -> u64 {
    let (mut ones, mut twos, mut fours) = ([0; W], [0; W], [0; W]);
    let mut eights = [0u64; W];
    let groups = completions.chunks_exact(8);
    let rest = groups.remainder();
    for of in groups {
        for w in 0..W {
            let open = |i: usize| open(pairs, of[i], w);
            let (a, one) = add(ones[w], open(0), open(1));
            let (b, one) = add(one, open(2), open(3));
            let (c, two) = add(twos[w], a, b);
            let (a, one) = add(one, open(4), open(5));
            let (b, one) = add(one, open(6), open(7));
            let (d, two) = add(two, a, b);
            let (eight, four) = add(fours[w], c, d);
            (ones[w], twos[w], fours[w]) = (one, two, four);
            eights[w] += set_bits(eight);
        }
    }
    let mut sum = 0;
    for w in 0..W {
        sum += 8 * eights[w] + 4 * set_bits(fours[w]) + 2 * set_bits(twos[w]) + set_bits(ones[w]);
    }
    for &of in rest {
        for w in 0..W {
            sum += set_bits(open(pairs, of, w));
        }
    }
    sum
}

/// Returns the states of word w in which all squares of a completion are open.
#[inline(always)]
fn open<const W: usize>(pairs: &Pairs<W>, completion: u32, w: usize) -> u64 {
    let plane = |pair: usize| pairs[pair][(completion >> (8 * pair) & 127) as usize][w];
    plane(0) & plane(1) & plane(2) & plane(3)
}

/// Returns the carries and the sum of three one-bit numbers in each bit.
#[inline(always)]
const fn add(a: u64, b: u64, c: u64) -> (u64, u64) {
    let different = a ^ b;
    ((a & b) | (different & c), different ^ c)
}

/// Returns the number of set bits. In a loop the compiler vectorises it: by `cnt` on aarch64, by
/// shifts and masks on other processors.
#[inline(always)]
fn set_bits(word: u64) -> u64 {
    u64::from(word.count_ones())
}
