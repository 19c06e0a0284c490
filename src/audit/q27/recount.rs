//! The units of a sample, counted again.

use std::num::NonZeroUsize;

use super::border::Border;
use super::database::{WrongReason, WrongUnit};
use crate::audit::recount::{Recount, recount_sample};
use crate::board::{Piece, Problem};
use crate::decomposition::{Decomposition, Job, Scheme};
use crate::engine::{CountError, CountOptions, DeviceChoice, DeviceName, count};
use crate::kernel::{KernelKind, count_range};

/// Counts the completions of a border of the board of size `n`, by the fastest CPU kernel.
///
/// # Errors
/// No kernel can count it.
pub fn completions(n: usize, border: &Border) -> Result<u128, CountError> {
    /// The most open rows for which the preparations of a whole count take longer than the count.
    const FEW_ROWS: usize = 12;
    let queens = border.squares();
    let open_rows = n - queens.len();
    let board = Problem::new(Piece::Queen, n, queens, Vec::new())
        .expect("the queens of a border are on the board");
    if open_rows > FEW_ROWS {
        let options = CountOptions {
            threads: NonZeroUsize::new(1),
            devices: DeviceChoice::These(vec![DeviceName::Cpu]),
            ..CountOptions::default()
        };
        return Ok(count(&board, &options)?.solutions);
    }
    let mut kernel = KernelKind::fastest(Piece::Queen).build(Piece::Queen)?;
    let scheme = Scheme::best(&board);
    let decomposition = Decomposition::new(Job::new(board, scheme, None, 1)?);
    let all = 0..decomposition.prefixes();
    Ok(count_range(&mut *kernel, &decomposition, all)?.solutions()?)
}

/// Recounts the units of a sample by [`recount_sample`].
///
/// # Errors
/// A unit cannot be counted.
pub fn recount(
    n: usize,
    sample: &[(u64, (Border, u64))],
    threads: NonZeroUsize,
    progress: impl Fn(usize) -> bool + Sync,
) -> Result<(u64, Option<WrongUnit>), CountError> {
    let recount_unit = |_, (border, stated): &(Border, u64)| {
        let (stated, actual) = (*stated, completions(n, border)?);
        let is_wrong = actual != u128::from(stated);
        Ok::<_, CountError>(is_wrong.then_some(WrongReason::Count { stated, actual }))
    };
    let Recount { recounted, wrong } = recount_sample(sample, threads, recount_unit, progress)?;
    Ok((recounted, wrong.map(|(unit, reason)| WrongUnit { unit, reason })))
}
