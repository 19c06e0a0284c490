//! A CPU thread: it counts units, each in pieces.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Instant;

use super::count::CountError;
use super::pieces::Pieces;
use super::queue::Holder;
use super::workers::{Context, Message};
use crate::checkpoint::FinishedUnit;
use crate::kernel::{Kernel, KernelKind, count_range};
use crate::tally::TallyError;

/// A guard that reports a panic of its thread: otherwise its unit would never be counted.
struct PanicGuard<'a>(&'a Context);

impl Drop for PanicGuard<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.send(Message::Failed(CountError::WorkerLost));
        }
    }
}

/// Counts units until none are left or the count stops.
pub(super) fn cpu_thread(context: &Context) {
    let _guard = PanicGuard(context);
    let Context { queue, kernels, .. } = context;
    let mut counter = None;
    while let Some(units) = queue.take(Holder::Cpu, |_| false) {
        for unit in units {
            let kind = match kernels.pick(unit) {
                Ok(kind) => kind,
                Err(failures) => {
                    return context.send(Message::Failed(CountError::Unit { unit, failures }));
                }
            };
            match attempt(context, kind, unit, &mut counter) {
                Ok(Some(finished)) => context.send(Message::Finished(vec![finished])),
                Ok(None) => return,
                Err(why) => {
                    // While the kernel is tested, no worker may conclude that all work is done.
                    queue.begin_kernel_test();
                    context.send(Message::KernelFailed(kernels.fail(unit, kind, &why)));
                    queue.give_back(Holder::Cpu, &[unit]);
                }
            }
        }
    }
}

/// A kernel with the pieces that it counts.
struct Counter {
    kind: KernelKind,
    kernel: Box<dyn Kernel>,
    pieces: Pieces,
}

/// Counts a unit by a kernel of this kind. Returns `None` if the count stops. Reuses the kernel in
/// `last` if it is of this kind, and keeps it unless it fails: a failed kernel may still buffer work
/// of the unit.
fn attempt(
    context: &Context,
    kind: KernelKind,
    unit: u64,
    last: &mut Option<Counter>,
) -> Result<Option<FinishedUnit>, String> {
    let reusable = last.take().filter(|counter| counter.kind == kind);
    let count = || {
        let mut counter = match reusable {
            Some(counter) => counter,
            None => Counter::new(context, kind)?,
        };
        let finished = counter.count(context, unit).map_err(|error| error.to_string())?;
        Ok((finished, counter))
    };
    let (finished, counter) =
        catch_unwind(AssertUnwindSafe(count)).unwrap_or_else(|_| Err("it panicked".to_owned()))?;
    *last = Some(counter);
    Ok(finished)
}

impl Counter {
    fn new(context: &Context, kind: KernelKind) -> Result<Self, String> {
        let piece = context.decomposition.job().problem().piece();
        let kernel = context.kernels.make(kind, piece).map_err(|error| error.to_string())?;
        Ok(Self { kind, kernel, pieces: Pieces::new(context.pieces) })
    }

    /// Counts a unit, from its beginning or from the partial result of an earlier session, and
    /// sends the partial result after each piece. Returns `None` if the count stops.
    fn count(&mut self, context: &Context, unit: u64) -> Result<Option<FinishedUnit>, TallyError> {
        let range = context.decomposition.unit(unit);
        let subproblems = range.end - range.start;
        let mut so_far = context.take_partial(unit, self.kind.name());
        loop {
            if context.queue.stopped() {
                return Ok(None);
            }
            let first = range.start + so_far.counted;
            let piece = self.pieces.next(subproblems, range.end - first);
            let began = Instant::now();
            let tally =
                count_range(&mut *self.kernel, &context.decomposition, first..first + piece)?;
            let elapsed = began.elapsed();
            self.pieces.record(piece, elapsed);
            so_far.add(piece, &tally, elapsed)?;
            if so_far.counted == subproblems {
                return Ok(Some(so_far.finished()));
            }
            context.send(Message::Partial(so_far.clone()));
        }
    }
}
