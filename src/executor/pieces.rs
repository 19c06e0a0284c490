//! The pieces of a unit: ranges of its subproblems, after each of which a thread sends its partial
//! result, and can stop.

use std::num::NonZeroU64;
use std::time::Duration;

/// The time that a piece should take, in seconds: short, because subproblems take differently long,
/// but longer than a kernel needs to fill and drain its lanes.
const PIECE_S: f64 = 0.125;

/// The size of pieces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PieceSize {
    /// About [`PIECE_S`] of work.
    Timed,
    /// This many subproblems.
    Subproblems(NonZeroU64),
}

/// Chooses the pieces of one kernel of one thread.
#[derive(Debug)]
pub(super) struct Pieces {
    size: PieceSize,
    /// The last piece: its subproblems, and the time that they took.
    last: Option<(u64, Duration)>,
}

impl Pieces {
    pub(super) const fn new(size: PieceSize) -> Self {
        Self { size, last: None }
    }

    /// Returns the number of subproblems of the next piece of a unit, which has `subproblems`, of
    /// which `left` are not counted yet.
    pub(super) fn next(&self, subproblems: u64, left: u64) -> u64 {
        /// The first piece of a thread is this part of a unit: nothing is known of its duration.
        const FIRST: u64 = 1024;
        /// The largest growth from one piece to the next.
        const GROWTH: u64 = 4;
        let size = match (self.size, self.last) {
            (PieceSize::Subproblems(size), _) => return size.get().min(left),
            (PieceSize::Timed, None) => subproblems / FIRST,
            (PieceSize::Timed, Some((last, took))) => {
                // The cast saturates.
                let timed = (last as f64 * PIECE_S / took.as_secs_f64().max(1e-9)) as u64;
                timed.min(last.saturating_mul(GROWTH))
            }
        };
        let size = size.max(1);
        // A small rest is not worth a piece of its own.
        if left / 2 < size { left } else { size }
    }

    /// Records how long a piece took.
    pub(super) fn record(&mut self, subproblems: u64, took: Duration) {
        if subproblems > 0 {
            self.last = Some((subproblems, took));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the pieces of a unit whose subproblems take the times of `took`.
    fn pieces(of: &mut Pieces, subproblems: u64, took: impl Fn(u64) -> Duration) -> Vec<u64> {
        let (mut sizes, mut counted) = (Vec::new(), 0);
        while counted < subproblems {
            let size = of.next(subproblems, subproblems - counted);
            assert!((1..=subproblems - counted).contains(&size), "{size} after {counted}");
            of.record(size, (counted..counted + size).map(&took).sum());
            counted += size;
            sizes.push(size);
        }
        sizes
    }

    #[test]
    fn pieces_take_the_same_time_once_the_rate_is_known() {
        let mut pieces_of = Pieces::new(PieceSize::Timed);
        // 1/512 s, so that a piece has 64.
        let took = |_| Duration::from_nanos(1_953_125);
        assert_eq!(pieces(&mut pieces_of, 300, took), [1, 4, 16, 64, 64, 64, 87]);
        // The next unit starts at this rate.
        assert_eq!(pieces(&mut pieces_of, 300, took), [64, 64, 64, 108]);
    }

    #[test]
    fn a_short_unit_is_one_piece_once_the_rate_is_known() {
        let mut pieces_of = Pieces::new(PieceSize::Timed);
        let took = |_| Duration::from_micros(10);
        assert_eq!(pieces(&mut pieces_of, 100, took), [1, 4, 16, 79]);
        assert_eq!(pieces(&mut pieces_of, 100, took), [100]);
        assert_eq!(pieces(&mut pieces_of, 30, took), [30]);
    }

    #[test]
    fn subproblems_without_work_do_not_make_the_next_piece_long() {
        let mut pieces_of = Pieces::new(PieceSize::Timed);
        pieces_of.record(3, Duration::ZERO);
        assert_eq!((pieces_of.next(5000, 5000), pieces_of.next(5000, 20)), (12, 20));
    }

    #[test]
    fn a_subproblem_that_takes_longer_is_a_piece() {
        let mut pieces_of = Pieces::new(PieceSize::Timed);
        let took = |_| Duration::from_secs(7);
        assert_eq!(pieces(&mut pieces_of, 5, took), [1, 1, 1, 1, 1]);
    }

    #[test]
    fn pieces_of_a_fixed_size_end_with_the_unit() {
        let mut pieces_of = Pieces::new(PieceSize::Subproblems(NonZeroU64::MIN.saturating_add(2)));
        assert_eq!(pieces(&mut pieces_of, 7, |_| Duration::from_secs(9)), [3, 3, 1]);
        assert_eq!((pieces_of.next(7, 0), Pieces::new(PieceSize::Timed).next(0, 0)), (0, 0));
    }
}
