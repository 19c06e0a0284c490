//! Concurrent checks of the refutations of a certificate.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use super::refutation::skip_tree;
use super::{CheckedRefutationSet, TOO_LONG, check_tree, is_free, smaller_prefixes};
use crate::bytes::Reader;
use crate::{Meter, ProofError};

/// The maximum time between two calls of [`Meter::ask`].
const INTERVAL: Duration = Duration::from_millis(20);

/// Checks that the trees in `reader` are the refutations, in order, of all prefixes before the
/// solution. Refutations in `checked` are not checked again. Returns the work as stated in
/// certificates, at most `limit`.
///
/// # Errors
/// Returns the error of the first tree that proves nothing, as a check by one thread does, or an
/// error if the meter ends the check.
pub(super) fn check_concurrently(
    n: usize,
    solution: Option<&[usize]>,
    mut reader: Reader<'_>,
    limit: u64,
    checked: &CheckedRefutationSet,
    threads: usize,
    meter: &mut Meter<'_>,
) -> Result<u64, ProofError> {
    let meter_of_part = meter.of_part();
    let mut refutations = Vec::new();
    // Reading the trees twice does not count as work.
    let mut reading = meter_of_part(meter.operations());
    let mut ended = Ok(());
    for prefix in smaller_prefixes(n, solution)? {
        meter.add(100 * prefix.len() as u64)?;
        if is_free(n, &prefix) {
            let rest = reader.rest();
            ended = skip_tree(&mut reader, n, 0, |_, operations| reading.add(operations));
            if ended.is_err() {
                // The check of this tree ends with the same error or an earlier one.
                refutations.push((prefix, rest));
                break;
            }
            refutations.push((prefix, &rest[..rest.len() - reader.rest().len()]));
        }
    }
    if ended.is_ok() && !reader.is_empty() {
        ended = Err(TOO_LONG);
    }
    // Trees from the number `end` on need not be checked.
    let (next, end) = (AtomicUsize::new(0), AtomicUsize::new(usize::MAX));
    let spent = AtomicU64::new(meter.operations());
    let mut checks: Vec<Option<(Result<(), ProofError>, u64)>> = refutations
        .iter()
        .map(|(prefix, tree)| Some((Ok(()), checked.work(n, prefix, tree)?)))
        .collect();
    let unchecked: Vec<usize> =
        (0..checks.len()).filter(|&number| checks[number].is_none()).collect();
    let (sender, receiver) = mpsc::channel();
    thread::scope(|scope| {
        for _ in 0..threads.max(1).min(unchecked.len()) {
            let (refutations, unchecked, next, end) = (&refutations, &unchecked, &next, &end);
            let (spent, meter_of_part, sender) = (&spent, &meter_of_part, sender.clone());
            scope.spawn(move || {
                loop {
                    let Some(&number) = unchecked.get(next.fetch_add(1, Ordering::Relaxed)) else {
                        return;
                    };
                    let is_stopped = || number >= end.load(Ordering::Relaxed);
                    if is_stopped() {
                        return;
                    }
                    let (prefix, tree) = &refutations[number];
                    let before = spent.load(Ordering::Relaxed);
                    let mut own = meter_of_part(before).stopped_by(&is_stopped);
                    let check = check_tree(n, prefix, tree, limit, &mut own);
                    if check.0.is_err() {
                        end.fetch_min(number + 1, Ordering::Relaxed);
                    }
                    if sender.send((number, check, own.operations() - before)).is_err() {
                        return;
                    }
                }
            });
        }
        drop(sender);
        loop {
            let more = match receiver.recv_timeout(INTERVAL) {
                Ok((number, check, operations)) => {
                    checks[number] = Some(check);
                    operations
                }
                Err(RecvTimeoutError::Timeout) => 0,
                Err(RecvTimeoutError::Disconnected) => break Ok(()),
            };
            if let Err(error) = meter.ask(more) {
                end.store(0, Ordering::Relaxed);
                break Err(error);
            }
            spent.store(meter.operations(), Ordering::Relaxed);
        }
    })?;
    let mut work: u64 = 0;
    for check in checks {
        // Before a tree that was not checked there is one with an error.
        let (checked, more) = check.unwrap_or((Err(ProofError::Stopped), 0));
        work = work.saturating_add(more);
        if work > limit {
            return Err(ProofError::TooMuchWork(limit));
        }
        checked?;
    }
    ended.map(|()| work)
}
