//! Data that is streamed to stdout.

use std::io::{self, BufWriter, StdoutLock, Write};
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use super::{Failure, cannot_print};

/// Buffered stdout. A closed pipe ends the stream and is not an error: the reader has what it
/// wanted.
#[derive(Debug)]
pub(super) struct Stream {
    out: BufWriter<StdoutLock<'static>>,
    flushed: Instant,
    error: Option<io::Error>,
}

/// The interval of flushes by [`Stream::flush_if_due`].
const FLUSH_EVERY: Duration = Duration::from_millis(100);

impl Stream {
    pub(super) fn begin() -> Self {
        let out = BufWriter::with_capacity(1 << 16, io::stdout().lock());
        Self { out, flushed: Instant::now(), error: None }
    }

    /// Calls `write` with the buffer. Returns [`ControlFlow::Break`] if nothing more can be
    /// written.
    pub(super) fn write(
        &mut self,
        write: impl FnOnce(&mut BufWriter<StdoutLock<'static>>) -> io::Result<()>,
    ) -> ControlFlow<()> {
        if self.error.is_none() {
            self.error = write(&mut self.out).err();
        }
        self.is_open()
    }

    /// Flushes the buffer if the last flush was long enough ago.
    pub(super) fn flush_if_due(&mut self) -> ControlFlow<()> {
        if self.flushed.elapsed() < FLUSH_EVERY {
            return self.is_open();
        }
        self.flushed = Instant::now();
        self.write(BufWriter::flush)
    }

    /// Flushes the buffer. Returns whether the reader has read to the end.
    ///
    /// # Errors
    /// Something could not be written.
    pub(super) fn finish(mut self) -> Result<bool, Failure> {
        let _ = self.write(BufWriter::flush);
        match self.error {
            None => Ok(true),
            Some(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(false),
            Some(error) => Err(cannot_print(&error)),
        }
    }

    const fn is_open(&self) -> ControlFlow<()> {
        if self.error.is_none() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    }
}
