//! Concurrent checks of the refutations of a certificate.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use super::refutation::skip_tree;
use super::{TOO_LONG, check_tree, is_free, smaller_prefixes};
use crate::bytes::Reader;
use crate::{Meter, ProofError};

/// The maximum time between two calls of [`Meter::ask`].
const INTERVAL: Duration = Duration::from_millis(20);

/// Checks that the trees in `reader` are the refutations, in order, of all prefixes before the
/// solution. Returns the work as stated in certificates, at most `limit`.
pub(super) fn check_concurrently(
    n: usize,
    solution: Option<&[usize]>,
    mut reader: Reader<'_>,
    limit: u64,
    threads: usize,
    meter: &mut Meter<'_>,
) -> Result<u64, ProofError> {
    let mut refutations = Vec::new();
    for prefix in smaller_prefixes(n, solution)? {
        meter.add(100 * prefix.len() as u64)?;
        if is_free(n, &prefix) {
            let rest = reader.rest();
            skip_tree(&mut reader, n, 0, |operations| meter.add(operations))?;
            refutations.push((prefix, &rest[..rest.len() - reader.rest().len()]));
        }
    }
    if !reader.is_empty() {
        return Err(TOO_LONG);
    }
    let (next, stopped) = (AtomicUsize::new(0), AtomicBool::new(false));
    let (spent, meter_of_part) = (AtomicU64::new(meter.operations()), meter.of_part());
    let (sender, receiver) = mpsc::channel();
    thread::scope(|scope| {
        let mut work = Ok(0);
        for _ in 0..threads.min(refutations.len()) {
            let (refutations, next, stopped) = (&refutations, &next, &stopped);
            let (spent, meter_of_part, sender) = (&spent, &meter_of_part, sender.clone());
            scope.spawn(move || {
                let is_stopped = || stopped.load(Ordering::Relaxed);
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    let Some((prefix, tree)) = refutations.get(number).filter(|_| !is_stopped())
                    else {
                        return;
                    };
                    let before = spent.load(Ordering::Relaxed);
                    let mut own = meter_of_part(before).stopped_by(&is_stopped);
                    let checked = check_tree(n, prefix, tree, limit, &mut own);
                    let operations = own.operations() - before;
                    if sender.send(checked.map(|work| (work, operations))).is_err() {
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
            work = work.and_then(|work: u64| {
                meter.ask(operations)?;
                spent.store(meter.operations(), Ordering::Relaxed);
                let work = work.saturating_add(more);
                if work > limit { Err(ProofError::TooMuchWork(limit)) } else { Ok(work) }
            });
            stopped.fetch_or(work.is_err(), Ordering::Relaxed);
        }
        work
    })
}
