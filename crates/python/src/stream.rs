//! All solutions, from a thread that runs a few chunks ahead of the reader.

use std::cell::RefCell;
use std::ops::ControlFlow;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use nqueens::board::{Placement, Problem};
use nqueens_bindings::{self as bindings, Failure, FailureClass, Method, Observer, Progress};
use pyo3::prelude::*;
use pyo3::types::PyByteArray;

use crate::Board;
use crate::errors::raise;

/// The solutions of a chunk, at most: so many that locks and threads cost little.
const MOST_IN_CHUNK: usize = 4096;
/// The number of chunks that the thread is ahead.
const CHUNKS_AHEAD: usize = 4;
/// The time after which the reader looks for signals again.
const PATIENCE: Duration = Duration::from_millis(20);

/// Columns from 1, as native-endian numbers of 1, 2 or 4 bytes.
type Chunk = Vec<u8>;

/// The solutions of a board, read in chunks.
#[pyclass(frozen, module = "nqueens_exact._native")]
pub(crate) struct SolutionStream {
    /// The size of a number in bytes: 1, 2 or 4.
    #[pyo3(get)]
    item_bytes: usize,
    n: usize,
    is_dropped: Arc<AtomicBool>,
    state: Mutex<State>,
}

struct State {
    receiver: Option<Receiver<Result<Chunk, Failure>>>,
    thread: Option<JoinHandle<()>>,
    /// The solutions that were received and not read yet.
    pending: Chunk,
    /// The number of solutions that may still be read.
    limit: usize,
}

#[pymethods]
impl SolutionStream {
    #[new]
    fn new(
        py: Python<'_>,
        board: &Bound<'_, Board>,
        method: &str,
        fundamental: bool,
        limit: Option<usize>,
    ) -> PyResult<Self> {
        let problem = board.get().problem.clone();
        let method = Method::for_listing(method).map_err(|failure| raise(py, failure))?;
        method.suits(&problem).map_err(|failure| raise(py, failure))?;
        let n = problem.n();
        let item_bytes = match n {
            0..0x100 => 1,
            0x100..0x1_0000 => 2,
            _ => 4,
        };
        let is_dropped = Arc::new(AtomicBool::new(false));
        let (sender, receiver) = sync_channel(CHUNKS_AHEAD);
        let stop = Arc::clone(&is_dropped);
        let list = move || produce(&problem, (method, fundamental), item_bytes, stop, &sender);
        let thread = std::thread::Builder::new().name("nqueens list".to_owned()).spawn(list)?;
        let state = State {
            receiver: Some(receiver),
            thread: Some(thread),
            pending: Vec::new(),
            limit: limit.unwrap_or(usize::MAX),
        };
        Ok(Self { item_bytes, n, is_dropped, state: Mutex::new(state) })
    }

    /// Returns the bytes of at most `most` solutions: those that are there or, with `fill`, so many
    /// unless the list ends. An empty result is the end. (A solution of the board of size 0 has one
    /// byte.)
    fn read<'py>(
        &self,
        py: Python<'py>,
        most: usize,
        fill: bool,
    ) -> PyResult<Bound<'py, PyByteArray>> {
        let width = self.width();
        let bytes = py.detach(|| {
            let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            let most = most.min(state.limit);
            let wanted = most.saturating_mul(width);
            while state.pending.len() < wanted && (fill || state.pending.is_empty()) {
                match state.receive() {
                    Ok(true) => {}
                    Ok(false) => break,
                    Err(failure) => return Err(Python::attach(|py| raise(py, failure))),
                }
                Python::attach(|py| py.check_signals())?;
            }
            let read = wanted.min(state.pending.len());
            let rest = state.pending.split_off(read);
            let bytes = std::mem::replace(&mut state.pending, rest);
            state.limit -= bytes.len() / width;
            if state.limit == 0 {
                self.is_dropped.store(true, Ordering::Relaxed);
                state.end();
            }
            Ok(bytes)
        })?;
        Ok(PyByteArray::new(py, &bytes))
    }

    /// Ends the list. What was not read is lost.
    fn close(&self, py: Python<'_>) {
        self.is_dropped.store(true, Ordering::Relaxed);
        py.detach(|| {
            let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            state.end();
            state.pending.clear();
        });
    }
}

impl SolutionStream {
    /// Returns the bytes of a solution.
    fn width(&self) -> usize {
        (self.n * self.item_bytes).max(1)
    }
}

impl State {
    /// Receives a chunk, if one comes soon. Returns false at the end of the list.
    fn receive(&mut self) -> Result<bool, Failure> {
        let Some(receiver) = &self.receiver else { return Ok(false) };
        match receiver.recv_timeout(PATIENCE) {
            Ok(Ok(chunk)) if chunk.is_empty() => {
                self.end();
                Ok(false)
            }
            Ok(Ok(chunk)) if self.pending.is_empty() => {
                self.pending = chunk;
                Ok(true)
            }
            Ok(Ok(chunk)) => {
                self.pending.extend_from_slice(&chunk);
                Ok(true)
            }
            Ok(Err(failure)) => {
                self.end();
                Err(failure)
            }
            Err(RecvTimeoutError::Timeout) => Ok(true),
            Err(RecvTimeoutError::Disconnected) => {
                self.end();
                let message = "the thread that lists the solutions ended unexpectedly";
                Err(Failure::new(FailureClass::CheckFailed, message))
            }
        }
    }

    /// Waits for the thread, which ends because there is no receiver.
    fn end(&mut self) {
        self.receiver = None;
        if let Some(thread) = self.thread.take() {
            // A panic was printed, and is reported to the reader.
            let _ = thread.join();
        }
    }
}

impl Drop for SolutionStream {
    fn drop(&mut self) {
        self.is_dropped.store(true, Ordering::Relaxed);
        self.state.get_mut().unwrap_or_else(PoisonError::into_inner).end();
    }
}

/// The chunk that is being filled, and where it is sent.
struct Producer<'a> {
    chunk: Chunk,
    solutions: usize,
    /// The size of a full chunk.
    most: usize,
    item_bytes: usize,
    sender: &'a SyncSender<Result<Chunk, Failure>>,
}

impl Producer<'_> {
    /// Adds a solution. The first chunks are small, so that the first solution comes at once.
    fn add(&mut self, placement: &Placement) -> ControlFlow<()> {
        push(&mut self.chunk, placement, self.item_bytes);
        self.solutions += 1;
        if self.solutions < self.most {
            return ControlFlow::Continue(());
        }
        self.most = (2 * self.most).min(MOST_IN_CHUNK);
        self.flush()
    }

    /// Sends the chunk, unless it is empty.
    fn flush(&mut self) -> ControlFlow<()> {
        if self.chunk.is_empty() {
            return ControlFlow::Continue(());
        }
        self.solutions = 0;
        match self.sender.send(Ok(std::mem::take(&mut self.chunk))) {
            Ok(()) => ControlFlow::Continue(()),
            Err(_) => ControlFlow::Break(()),
        }
    }
}

/// Ends the list when its reader is gone, and sends the solutions that wait for more.
struct Reader<'a, 'b> {
    producer: &'a RefCell<Producer<'b>>,
    is_gone: Arc<AtomicBool>,
}

impl Observer for Reader<'_, '_> {
    fn observe(&mut self, _: &Progress) -> ControlFlow<()> {
        if self.is_gone.load(Ordering::Relaxed) {
            return ControlFlow::Break(());
        }
        self.producer.borrow_mut().flush()
    }
}

/// Sends the solutions, and an empty chunk at the end of the list.
fn produce(
    problem: &Problem,
    method: (Method, bool),
    item_bytes: usize,
    is_gone: Arc<AtomicBool>,
    sender: &SyncSender<Result<Chunk, Failure>>,
) {
    let chunk = Chunk::new();
    let producer = RefCell::new(Producer { chunk, solutions: 0, most: 1, item_bytes, sender });
    let mut reader = Reader { producer: &producer, is_gone };
    let end = bindings::list(problem, method, &mut reader, &mut |placement| {
        producer.borrow_mut().add(placement)
    });
    // The reader may be gone.
    let _ = producer.borrow_mut().flush();
    let _ = sender.send(end.map(|_| Chunk::new()));
}

fn push(chunk: &mut Chunk, placement: &Placement, item_bytes: usize) {
    if placement.n() == 0 {
        chunk.push(0);
    }
    for col in placement.columns().flatten() {
        // The board's size fits into the item.
        let number = u32::try_from(col + 1).unwrap_or(u32::MAX);
        match item_bytes {
            1 => chunk.push(number as u8),
            2 => chunk.extend_from_slice(&(number as u16).to_ne_bytes()),
            _ => chunk.extend_from_slice(&number.to_ne_bytes()),
        }
    }
}
