//! Errors.

use std::fmt;

use nqueens::board::{Placement, PlacementError};
use nqueens::engine::{CountError, CountErrorClass};
use nqueens::proof::{ErrorClass, ProofError};

/// A class of errors. Its number is the exit code of the program (docs/exit-codes.md).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum FailureClass {
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
    /// A file or a certificate cannot be read.
    File = 7,
    /// The coordinator cannot be reached, or refuses the call.
    Coordinator = 8,
    /// The observer ended the run.
    Interrupted = 130,
}

/// An error: its class, and one line that says what is wrong and what would be right.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The class.
    pub class: FailureClass,
    /// The text.
    pub message: String,
    /// The best solution that was found, if the class is [`FailureClass::Unproven`].
    pub best: Option<Placement>,
}

impl Failure {
    /// Creates an error.
    pub fn new(class: FailureClass, message: impl ToString) -> Self {
        Self { class, message: message.to_string(), best: None }
    }

    /// Creates the error of a wrong request.
    pub fn usage(message: impl ToString) -> Self {
        Self::new(FailureClass::Usage, message)
    }

    /// Creates the error of a run that its observer ended.
    pub(crate) fn interrupted() -> Self {
        Self::new(FailureClass::Interrupted, "interrupted")
    }

    /// Creates the error of a method whose solution the checker rejects.
    pub(crate) fn refused(method: &str, error: &PlacementError) -> Self {
        let message = format!(
            "internal error: {method} returned a wrong solution: {error}; please report this"
        );
        Self::new(FailureClass::CheckFailed, message)
    }

    /// Creates the error of a check of a certificate.
    pub(crate) fn of_check(error: &ProofError) -> Self {
        let class = match error.class() {
            ErrorClass::Unfinished => FailureClass::Unproven,
            ErrorClass::Invalid => FailureClass::CheckFailed,
            ErrorClass::Unreadable => FailureClass::File,
        };
        match error {
            ProofError::Stopped => Self::interrupted(),
            error => Self::new(class, error),
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Failure {}

impl From<CountError> for Failure {
    fn from(error: CountError) -> Self {
        let class = match error.class() {
            CountErrorClass::Usage => FailureClass::Usage,
            CountErrorClass::NotAvailable => FailureClass::NotAvailable,
            CountErrorClass::CheckFailed => FailureClass::CheckFailed,
            CountErrorClass::File => FailureClass::File,
            CountErrorClass::Stopped => FailureClass::Interrupted,
        };
        Self::new(class, error)
    }
}
