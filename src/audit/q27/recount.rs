//! The units of a sample, counted again.

use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use super::border::Border;
use super::database::{WrongReason, WrongUnit};
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

/// Recounts the units of a sample, in their order, on `threads` threads. `progress` receives the
/// number of recounted units, and ends the recount by returning `false`. Returns the number of
/// recounted units, and the first wrong one.
///
/// # Errors
/// A unit cannot be counted.
pub fn recount(
    n: usize,
    sample: &[(u64, (Border, u64))],
    threads: NonZeroUsize,
    progress: impl Fn(usize) -> bool + Sync,
) -> Result<(u64, Option<WrongUnit>), CountError> {
    let (taken, stopped) = (AtomicUsize::new(0), AtomicBool::new(false));
    // The number of recounted units, the first wrong one, and an error.
    let found = Mutex::new((0_usize, None::<WrongUnit>, None));
    let work = || {
        while !stopped.load(Ordering::Relaxed)
            && let Some((unit, (border, stated))) =
                sample.get(taken.fetch_add(1, Ordering::Relaxed))
        {
            let outcome = completions(n, border);
            let mut found = found.lock().unwrap_or_else(PoisonError::into_inner);
            let (done, wrong, error) = &mut *found;
            match outcome {
                Ok(actual) if actual == u128::from(*stated) => {}
                Ok(actual) => {
                    let reason = WrongReason::Count { stated: *stated, actual };
                    // Units are taken in ascending order, so all before this one are in hand or done.
                    if wrong.as_ref().is_none_or(|wrong| *unit < wrong.unit) {
                        *wrong = Some(WrongUnit { unit: *unit, reason });
                    }
                    stopped.store(true, Ordering::Relaxed);
                }
                Err(why) => {
                    *error = Some(why);
                    stopped.store(true, Ordering::Relaxed);
                }
            }
            *done += 1;
            if !progress(*done) {
                stopped.store(true, Ordering::Relaxed);
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..threads.get().min(sample.len().max(1)) {
            scope.spawn(work);
        }
        work();
    });
    let (done, wrong, error) = found.into_inner().unwrap_or_else(PoisonError::into_inner);
    match error {
        Some(error) => Err(error),
        None => Ok((done as u64, wrong)),
    }
}
