//! The operations that the batch engine requires of a vector instruction set.

/// A vector of [`Lanes::COUNT`] unsigned 32-bit words, and its operations.
///
/// The implementing type is a token: a value of it exists only where the processor has the
/// instructions, so that every operation is safe to call. All operations must be inlined into one
/// function that enables the instructions for the compiler.
pub(super) trait Lanes: Copy {
    /// The number of lanes of a vector, at most [`MOST_LANES`].
    const COUNT: usize;
    /// The engine looks two rows ahead where at most this many rows are left (measured, see
    /// benches/diary.md).
    const LOOK_AHEAD_ROWS: usize;
    /// A vector of words.
    type Word: Copy;
    /// A set of lanes.
    type Mask: Copy;

    /// Returns `value` in every lane.
    fn splat(self, value: u32) -> Self::Word;
    /// Loads the words `from[at..at + COUNT]`.
    fn load(self, from: &[u32], at: usize) -> Self::Word;
    /// Stores the vector in `into[at..at + COUNT]`.
    fn store(self, into: &mut [u32], at: usize, word: Self::Word);

    /// Returns a & b.
    fn and(self, a: Self::Word, b: Self::Word) -> Self::Word;
    /// Returns a & !b.
    fn and_not(self, a: Self::Word, b: Self::Word) -> Self::Word;
    /// Returns a | b.
    fn or(self, a: Self::Word, b: Self::Word) -> Self::Word;
    /// Returns a ^ b.
    fn xor(self, a: Self::Word, b: Self::Word) -> Self::Word;
    /// Returns a & !(b | c).
    fn and_neither(self, a: Self::Word, b: Self::Word, c: Self::Word) -> Self::Word;
    /// Returns a − 1, wrapping.
    fn decrement(self, a: Self::Word) -> Self::Word;
    /// Returns a << by, lane by lane; 0 where `by` is over 31.
    fn shift_left(self, a: Self::Word, by: Self::Word) -> Self::Word;
    /// Returns a >> by, lane by lane; 0 where `by` is over 31.
    fn shift_right(self, a: Self::Word, by: Self::Word) -> Self::Word;

    /// Returns the mask of all lanes.
    fn all(self) -> Self::Mask;
    /// Returns the mask of the first `count` lanes; `count` is at most COUNT.
    fn first(self, count: usize) -> Self::Mask;
    /// Returns the lanes where a is 0.
    fn zero(self, a: Self::Word) -> Self::Mask;
    /// Returns the lanes where a & b is not 0.
    fn meet(self, a: Self::Word, b: Self::Word) -> Self::Mask;
    /// Returns the lanes where a equals b.
    fn equal(self, a: Self::Word, b: Self::Word) -> Self::Mask;
    /// Returns the lanes in both masks.
    fn both(self, a: Self::Mask, b: Self::Mask) -> Self::Mask;
    /// Returns the number of lanes in the mask.
    fn count(self, mask: Self::Mask) -> usize;

    /// Returns the lanes of `yes` inside the mask, and those of `no` outside.
    fn select(self, mask: Self::Mask, yes: Self::Word, no: Self::Word) -> Self::Word;
    /// Adds one in the lanes of the mask.
    fn increment(self, counter: Self::Word, mask: Self::Mask) -> Self::Word;
    /// Returns the vector whose lane i is lane `index[i]` of `a`; an index is below COUNT.
    fn permute(self, a: Self::Word, index: Self::Word) -> Self::Word;
    /// Returns the index that moves the lanes of the mask to the front, in order. The following
    /// lanes are arbitrary.
    fn compress(self, mask: Self::Mask) -> Self::Word;
    /// Returns the index that moves the front to the lanes of the mask, in order. Other lanes are
    /// arbitrary.
    fn expand(self, mask: Self::Mask) -> Self::Word;
}

/// The maximum number of lanes of the instruction sets used here.
pub(super) const MOST_LANES: usize = 16;

/// Checks every operation of an implementation against its definition by plain loops. The caller
/// must have enabled the instructions.
#[cfg(test)]
pub(super) fn assert_lanes_contract<L: Lanes>(
    lanes: L,
    words: &[[u32; MOST_LANES]; 3],
    shift: u32,
    bits: u32,
) {
    let n = L::COUNT;
    let [a, b, c] = *words;
    let word = |w: &[u32; MOST_LANES]| lanes.load(w, 0);
    let list = |w: L::Word| {
        let mut out = [0; MOST_LANES];
        lanes.store(&mut out, 0, w);
        out[..n].to_vec()
    };
    let zip = |f: &dyn Fn(usize) -> u32| (0..n).map(f).collect::<Vec<u32>>();
    let (va, vb, vc) = (word(&a), word(&b), word(&c));

    assert_eq!(list(lanes.splat(a[0])), vec![a[0]; n]);
    assert_eq!(list(va), a[..n]);
    assert_eq!(list(lanes.and(va, vb)), zip(&|i| a[i] & b[i]));
    assert_eq!(list(lanes.and_not(va, vb)), zip(&|i| a[i] & !b[i]));
    assert_eq!(list(lanes.or(va, vb)), zip(&|i| a[i] | b[i]));
    assert_eq!(list(lanes.xor(va, vb)), zip(&|i| a[i] ^ b[i]));
    assert_eq!(list(lanes.and_neither(va, vb, vc)), zip(&|i| a[i] & !(b[i] | c[i])));
    assert_eq!(list(lanes.decrement(va)), zip(&|i| a[i].wrapping_sub(1)));
    let by = lanes.splat(shift);
    assert_eq!(list(lanes.shift_left(va, by)), zip(&|i| a[i].checked_shl(shift).unwrap_or(0)));
    assert_eq!(list(lanes.shift_right(va, by)), zip(&|i| a[i].checked_shr(shift).unwrap_or(0)));

    let ones = lanes.splat(1);
    let zeros = lanes.splat(0);
    let shown = |m: L::Mask| list(lanes.select(m, ones, zeros));
    let flags = |f: &dyn Fn(usize) -> bool| (0..n).map(|i| u32::from(f(i))).collect::<Vec<u32>>();
    assert_eq!(shown(lanes.all()), vec![1; n]);
    for count in 0..=n {
        assert_eq!(shown(lanes.first(count)), flags(&|i| i < count));
    }
    assert_eq!(shown(lanes.zero(va)), flags(&|i| a[i] == 0));
    assert_eq!(shown(lanes.meet(va, vb)), flags(&|i| a[i] & b[i] != 0));
    assert_eq!(shown(lanes.equal(va, vb)), flags(&|i| a[i] == b[i]));
    assert_eq!(
        shown(lanes.both(lanes.meet(va, vb), lanes.meet(va, vc))),
        flags(&|i| a[i] & b[i] != 0 && a[i] & c[i] != 0)
    );

    let chosen: Vec<usize> = (0..n).filter(|i| bits >> i & 1 == 1).collect();
    let mut mask_words = [0; MOST_LANES];
    chosen.iter().for_each(|&i| mask_words[i] = 1);
    let mask = lanes.equal(word(&mask_words), ones);
    assert_eq!(lanes.count(mask), chosen.len());
    assert_eq!(
        list(lanes.select(mask, va, vb)),
        zip(&|i| if chosen.contains(&i) { a[i] } else { b[i] })
    );
    assert_eq!(list(lanes.increment(va, mask)), zip(&|i| a[i].wrapping_add(mask_words[i])));
    let front: Vec<u32> = chosen.iter().map(|&i| a[i]).collect();
    assert_eq!(list(lanes.permute(va, lanes.compress(mask)))[..chosen.len()], front);
    let spread = list(lanes.permute(va, lanes.expand(mask)));
    chosen.iter().enumerate().for_each(|(k, &i)| assert_eq!(spread[i], a[k]));
    let reversed: Vec<u32> =
        (0..MOST_LANES as u32).map(|i| (n as u32 - 1).saturating_sub(i)).collect();
    assert_eq!(list(lanes.permute(va, lanes.load(&reversed, 0))), zip(&|i| a[n - 1 - i]));
}
