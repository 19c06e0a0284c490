//! The types of the C interface.

use std::ffi::{CString, c_char, c_void};
use std::ops::ControlFlow;

use nqueens::board::{Placement, Problem};
use nqueens_bindings::{Failure, FailureClass, Observer, Progress};

/// The result of a call: OK, or the class of its error, which is the exit code of the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub enum Status {
    /// Success.
    Ok = 0,
    /// The request is wrong.
    Usage = 2,
    /// It is proved that no solution exists.
    NoSolution = 3,
    /// Not proven: a limit ended the search, or it gave up.
    Unproven = 4,
    /// A device or a feature is not available.
    NotAvailable = 5,
    /// A check failed: do not use the result.
    CheckFailed = 6,
    /// The bytes cannot be read as a certificate.
    File = 7,
    /// A callback ended the run.
    Interrupted = 130,
    /// An error in this library; please report it.
    Internal = 255,
}

impl From<FailureClass> for Status {
    fn from(class: FailureClass) -> Self {
        match class {
            FailureClass::Usage => Self::Usage,
            FailureClass::NoSolution => Self::NoSolution,
            FailureClass::Unproven => Self::Unproven,
            FailureClass::NotAvailable => Self::NotAvailable,
            FailureClass::CheckFailed => Self::CheckFailed,
            FailureClass::File => Self::File,
            FailureClass::Interrupted => Self::Interrupted,
            // No function of this interface calls a coordinator.
            FailureClass::Coordinator => Self::Internal,
        }
    }
}

/// A square. Row 1 is at the top.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Square {
    /// The row, from 1.
    pub row: u32,
    /// The column, from 1.
    pub col: u32,
}

/// A count: at most 39 decimal digits, and the same number in two halves.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Number {
    /// The decimal digits, and a null byte.
    pub decimal: [c_char; 40],
    /// The lower 64 bits.
    pub low: u64,
    /// The upper 64 bits.
    pub high: u64,
}

impl From<u128> for Number {
    fn from(number: u128) -> Self {
        let mut decimal = [0; 40];
        for (to, digit) in decimal.iter_mut().zip(number.to_string().bytes()) {
            // ASCII digits have the same value in signed and unsigned characters.
            *to = digit as c_char;
        }
        Self { decimal, low: number as u64, high: (number >> 64) as u64 }
    }
}

/// The progress of a run.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct ProgressReport {
    /// The fraction of the work that is done, from 0 to 1; -1 if it is unknown.
    pub fraction: f64,
    /// The finished units of a count; the rows or cost levels that a proof has decided.
    pub done: u64,
    /// The number of units of a count; 0 if it is unknown.
    pub all: u64,
    /// The nodes tried so far; 0 for a count.
    pub nodes: u64,
    /// The time since the start in seconds.
    pub elapsed_s: f64,
    /// The time left in seconds; -1 if it is unknown.
    pub left_s: f64,
}

impl From<&Progress> for ProgressReport {
    fn from(progress: &Progress) -> Self {
        let Progress { fraction, done, all, nodes, elapsed_s, left_s, .. } = *progress;
        let or_unknown = |value: Option<f64>| value.unwrap_or(-1.0);
        let (fraction, left_s) = (or_unknown(fraction), or_unknown(left_s));
        Self { fraction, done, all, nodes, elapsed_s, left_s }
    }
}

/// The options of a run. All zero (`nqueens_options options = {0};`) are the defaults.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Options {
    /// The number of threads, from 1 to 1024; 0 for one a core.
    pub threads: u32,
    /// The devices of a count: auto, cpu, gpu, or ids; NULL for auto.
    pub device: *const c_char,
    /// The time limit of `nqueens_solve`, `nqueens_first` and `nqueens_beautiful` in seconds; 0 for
    /// none.
    pub time_limit_s: f64,
    /// Called about every 20 ms on the calling thread, unless NULL. Returning false ends the run with
    /// NQUEENS_STATUS_INTERRUPTED. It must return, without an exception or longjmp.
    pub progress:
        Option<extern "C" fn(progress: *const ProgressReport, context: *mut c_void) -> bool>,
    /// Passed to `progress`.
    pub context: *mut c_void,
}

/// Passes the progress on to a callback of the caller.
pub(crate) struct Callback {
    pub(crate) progress: Option<extern "C" fn(*const ProgressReport, *mut c_void) -> bool>,
    pub(crate) context: *mut c_void,
}

impl Observer for Callback {
    fn observe(&mut self, progress: &Progress) -> ControlFlow<()> {
        let Some(callback) = self.progress else { return ControlFlow::Continue(()) };
        if callback(&ProgressReport::from(progress), self.context) {
            ControlFlow::Continue(())
        } else {
            ControlFlow::Break(())
        }
    }
}

/// The result of a count.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct CountResult {
    /// The solutions, or the completions of the decided squares.
    pub solutions: Number,
    /// The wall-clock time in seconds.
    pub elapsed_s: f64,
    /// The threads that counted.
    pub threads: u32,
}

/// A callback for solutions: the column in each of n rows, valid until it returns. Returning false
/// ends the list. It must return, without an exception or longjmp.
pub type SolutionCallback =
    Option<extern "C" fn(columns: *const u32, n: usize, context: *mut c_void) -> bool>;

/// A board: a piece, a size and decided squares. It never changes.
#[derive(Debug)]
pub struct Board {
    pub(crate) problem: Problem,
}

/// An error: one line that says what is wrong and what would be right.
#[derive(Debug)]
pub struct Error {
    pub(crate) message: CString,
}

impl Error {
    pub(crate) fn new(message: &str) -> Self {
        // The texts have no null bytes, except those that the caller sent.
        let message: String = message.chars().filter(|c| *c != '\0').collect();
        Self { message: CString::new(message).unwrap_or_default() }
    }
}

/// A proved statement about a first or a most beautiful solution.
#[derive(Debug)]
pub struct Proof {
    pub(crate) columns: Option<Vec<u32>>,
    pub(crate) certificate: Option<Vec<u8>>,
    pub(crate) text: CString,
}

impl Proof {
    /// Creates a proof, given 0-based columns.
    pub(crate) fn new(
        columns: Option<Vec<usize>>,
        certificate: Option<Vec<u8>>,
        text: &str,
    ) -> Self {
        let columns = columns.map(|columns| columns.into_iter().map(from_one).collect());
        Self { columns, certificate, text: CString::new(text).unwrap_or_default() }
    }
}

/// Returns a 0-based column, counted from 1.
pub(crate) fn from_one(column: usize) -> u32 {
    // No board has more than ten million columns.
    u32::try_from(column + 1).unwrap_or(u32::MAX)
}

/// Returns the columns of a solution from 1.
pub(crate) fn columns_of(placement: &Placement) -> impl Iterator<Item = u32> {
    placement.columns().flatten().map(from_one)
}

/// Returns the error of a required pointer that is null.
pub(crate) fn is_null(name: &str) -> Failure {
    Failure::usage(format!("{name} is NULL; pass a pointer"))
}
