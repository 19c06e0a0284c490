//! Concurrent checks of the refutations of a certificate that is being made.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use super::{Refutation, TOO_LONG, check_refutation_within, is_free, smaller_prefixes};
use crate::{Meter, ProofError};

/// The maximum time between two calls of [`Meter::ask`].
const INTERVAL: Duration = Duration::from_millis(20);

/// Checks that these are the refutations, in order, of all prefixes before the solution. Returns
/// the work as stated in certificates.
pub(super) fn check_concurrently(
    n: usize,
    solution: Option<&[usize]>,
    refutations: &[&Refutation],
    threads: usize,
    meter: &mut Meter<'_>,
) -> Result<u64, ProofError> {
    let prefixes: Vec<Vec<usize>> =
        smaller_prefixes(n, solution)?.filter(|prefix| is_free(n, prefix)).collect();
    meter.ask(prefixes.iter().map(|prefix| 100 * prefix.len() as u64).sum())?;
    if prefixes.len() < refutations.len() {
        return Err(TOO_LONG);
    }
    if prefixes.len() > refutations.len() {
        return Err(ProofError::Damaged("it ends too early"));
    }
    let (next, stopped) = (AtomicUsize::new(0), AtomicBool::new(false));
    let (sender, receiver) = mpsc::channel();
    thread::scope(|scope| {
        let mut work = Ok(0);
        for _ in 0..threads.min(prefixes.len()) {
            let (prefixes, next, stopped, sender) = (&prefixes, &next, &stopped, sender.clone());
            scope.spawn(move || {
                let is_stopped = || stopped.load(Ordering::Relaxed);
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    let Some(prefix) = prefixes.get(number).filter(|_| !is_stopped()) else {
                        return;
                    };
                    let mut own = Meter::new(None).stopped_by(&is_stopped);
                    let refutation = refutations[number];
                    let checked =
                        check_refutation_within(n, prefix, refutation, u64::MAX, &mut own);
                    if sender.send(checked.map(|work| (work, own.operations()))).is_err() {
                        return;
                    }
                }
            });
        }
        drop(sender);
        loop {
            let (more, operations) = match receiver.recv_timeout(INTERVAL) {
                Ok(Ok(checked)) => checked,
                Ok(Err(error)) => {
                    // Checks that were stopped fail too, after the reason.
                    work = work.and(Err(error));
                    stopped.store(true, Ordering::Relaxed);
                    continue;
                }
                Err(RecvTimeoutError::Timeout) => (0, 0),
                Err(RecvTimeoutError::Disconnected) => break,
            };
            work = work.and_then(|work: u64| meter.ask(operations).map(|()| work + more));
            stopped.fetch_or(work.is_err(), Ordering::Relaxed);
        }
        work
    })
}
