//! A guard that stops the other threads of a scope when one of them panics.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

/// Sets its flag if its own thread panics, so that the other threads stop; the scope of the threads
/// then propagates the panic.
pub(crate) struct StopOnPanic<'a>(pub(crate) &'a AtomicBool);

impl Drop for StopOnPanic<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.store(true, Ordering::Relaxed);
        }
    }
}
