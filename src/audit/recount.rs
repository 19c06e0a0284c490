//! The units of a sample, counted again on several threads.

use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// The outcome of a recount.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recount<W> {
    /// The number of recounted units.
    pub recounted: u64,
    /// The first wrong unit, with its number and the reason.
    pub wrong: Option<(u64, W)>,
}

/// Recounts the units of a sample, in their order, on `threads` threads. `recount` returns the
/// reason why a unit is wrong, if it is; the recount ends at the first one. `progress` receives the
/// number of recounted units, and ends the recount by returning `false`.
///
/// # Errors
/// A unit cannot be counted.
pub fn recount_sample<T: Sync, W: Send, E: Send>(
    sample: &[(u64, T)],
    threads: NonZeroUsize,
    recount: impl Fn(u64, &T) -> Result<Option<W>, E> + Sync,
    progress: impl Fn(usize) -> bool + Sync,
) -> Result<Recount<W>, E> {
    let (taken, stopped) = (AtomicUsize::new(0), AtomicBool::new(false));
    // The number of recounted units, the first wrong one, and an error.
    let found = Mutex::new((0_usize, None::<(u64, W)>, None));
    let work = || {
        while !stopped.load(Ordering::Relaxed)
            && let Some((unit, claim)) = sample.get(taken.fetch_add(1, Ordering::Relaxed))
        {
            let outcome = recount(*unit, claim);
            let mut found = found.lock().unwrap_or_else(PoisonError::into_inner);
            let (done, wrong, error) = &mut *found;
            match outcome {
                Ok(None) => {}
                Ok(Some(reason)) => {
                    // Units are taken in ascending order, so all before this one are in hand or
                    // done.
                    if wrong.as_ref().is_none_or(|(first, _)| unit < first) {
                        *wrong = Some((*unit, reason));
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
        None => Ok(Recount { recounted: done as u64, wrong }),
    }
}
