//! Data that goes to stdout bit by bit.

use std::io::{self, BufWriter, StdoutLock, Write};
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use super::{Exit, Failure};

/// Stdout with a buffer. A reader that goes away ends the stream, and is no failure: it has what it wanted.
#[derive(Debug)]
pub(super) struct Stream {
    out: BufWriter<StdoutLock<'static>>,
    flushed: Instant,
    error: Option<io::Error>,
}

/// What was found reaches the reader within this time, if the finder looks up often enough.
const FLUSH_EVERY: Duration = Duration::from_millis(100);

impl Stream {
    pub(super) fn begin() -> Self {
        let out = BufWriter::with_capacity(1 << 16, io::stdout().lock());
        Self { out, flushed: Instant::now(), error: None }
    }

    /// Writes what `write` writes. [`ControlFlow::Break`]: nothing more can be written.
    pub(super) fn write(
        &mut self,
        write: impl FnOnce(&mut BufWriter<StdoutLock<'static>>) -> io::Result<()>,
    ) -> ControlFlow<()> {
        if self.error.is_none() {
            self.error = write(&mut self.out).err();
        }
        self.is_open()
    }

    /// Lets the reader have what was written, if it has waited long enough.
    pub(super) fn flush_if_due(&mut self) -> ControlFlow<()> {
        if self.flushed.elapsed() < FLUSH_EVERY {
            return self.is_open();
        }
        self.flushed = Instant::now();
        self.write(BufWriter::flush)
    }

    /// Lets the reader have all of it. Returns whether the reader was there to the end.
    ///
    /// # Errors
    /// Something could not be written.
    pub(super) fn finish(mut self) -> Result<bool, Failure> {
        let _ = self.write(BufWriter::flush);
        match self.error {
            None => Ok(true),
            Some(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(false),
            Some(error) => Err(Failure {
                exit: Exit::File,
                message: format!("the output cannot be written: {error}"),
            }),
        }
    }

    const fn is_open(&self) -> ControlFlow<()> {
        if self.error.is_none() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    }
}
