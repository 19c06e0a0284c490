//! A meter for the work of checks. It ends a check at the checker's own limit, whatever work a
//! certificate asks for.

use std::fmt;
use std::str::FromStr;

use super::ProofError;

/// Operations per step. An operation takes at most a nanosecond, so a step takes at most a
/// microsecond.
const OPERATIONS: u64 = 1000;

/// Operations between two calls of the function that may stop a check: about a millisecond.
const ASK_EVERY: u64 = 1_000_000;

/// The step limit of [`check`](super::check): at most about ten minutes. The certificate of the
/// first solution for n = 89 takes many times as many steps.
pub const MOST_WORK: u64 = 500_000_000;

/// A limit on the work of a check, in steps of a [`Meter`]. Its notation is a number from 1 on, or
/// `unlimited`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepLimit {
    /// At most this number of steps.
    AtMost(u64),
    /// Any number of steps.
    Unlimited,
}

/// The error for a text that is not a step limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidStepLimit(String);

impl fmt::Display for InvalidStepLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(text) = self;
        write!(
            f,
            "'{text}' is not a number of steps; write a whole number from 1 on, for example {MOST_WORK}, or unlimited"
        )
    }
}

impl std::error::Error for InvalidStepLimit {}

impl Default for StepLimit {
    /// Returns the limit of [`MOST_WORK`] steps.
    fn default() -> Self {
        Self::AtMost(MOST_WORK)
    }
}

impl StepLimit {
    /// Creates a meter with this limit.
    pub const fn meter<'a>(self) -> Meter<'a> {
        Meter::new(match self {
            Self::AtMost(steps) => Some(steps),
            Self::Unlimited => None,
        })
    }
}

impl fmt::Display for StepLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AtMost(steps) => steps.fmt(f),
            Self::Unlimited => f.write_str("unlimited"),
        }
    }
}

impl FromStr for StepLimit {
    type Err = InvalidStepLimit;

    fn from_str(text: &str) -> Result<Self, InvalidStepLimit> {
        if text == "unlimited" {
            return Ok(Self::Unlimited);
        }
        let steps = text.parse().ok().filter(|&steps| steps > 0).map(Self::AtMost);
        steps.ok_or_else(|| InvalidStepLimit(text.to_owned()))
    }
}

/// A meter that counts the work of checks, and ends them at a limit or on request.
///
/// Work is counted in *steps*, each at most a microsecond on a processor of 2024.
pub struct Meter<'a> {
    done: u64,
    most: u64,
    limit: u64,
    ask_at: u64,
    is_stopped: Option<&'a dyn Fn() -> bool>,
}

impl Default for Meter<'_> {
    fn default() -> Self {
        Self::new(Some(MOST_WORK))
    }
}

impl<'a> Meter<'a> {
    /// Creates a meter with a limit in steps; `None` for no limit.
    pub const fn new(limit: Option<u64>) -> Self {
        let (most, limit) = match limit {
            Some(limit) => (limit.saturating_mul(OPERATIONS), limit),
            None => (u64::MAX, u64::MAX),
        };
        Self { done: 0, most, limit, ask_at: 0, is_stopped: None }
    }

    /// Makes checks end with [`ProofError::Stopped`] once `is_stopped` returns true.
    pub const fn stopped_by(self, is_stopped: &'a dyn Fn() -> bool) -> Self {
        Self { is_stopped: Some(is_stopped), ..self }
    }

    /// Returns the number of steps so far, rounded up.
    pub const fn work(&self) -> u64 {
        self.done.div_ceil(OPERATIONS)
    }

    /// Returns the number of operations so far.
    pub(super) const fn operations(&self) -> u64 {
        self.done
    }

    /// Returns the function that creates a meter with the same limit, for a part of the check that
    /// another thread does. It begins at the given number of operations.
    pub(super) fn of_part<'b>(&self) -> impl Fn(u64) -> Meter<'b> + use<'b> {
        let Self { most, limit, .. } = *self;
        move |done| Meter { done, most, limit, ask_at: 0, is_stopped: None }
    }

    /// Counts operations that were done elsewhere, and asks whether the check is to be stopped.
    ///
    /// # Errors
    /// As for [`add`](Self::add).
    pub(super) fn ask(&mut self, operations: u64) -> Result<(), ProofError> {
        self.ask_at = 0;
        self.add(operations)
    }

    /// Counts operations that were done or are about to be done.
    ///
    /// # Errors
    /// Returns an error if the limit is exceeded, or if the check was stopped.
    pub(super) fn add(&mut self, operations: u64) -> Result<(), ProofError> {
        self.done = self.done.saturating_add(operations);
        if self.done > self.most {
            return Err(ProofError::LimitReached(self.limit));
        }
        if self.done >= self.ask_at {
            self.ask_at = self.done.saturating_add(ASK_EVERY);
            if self.is_stopped.is_some_and(|is_stopped| is_stopped()) {
                return Err(ProofError::Stopped);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[test]
    fn a_step_limit_is_a_positive_number_or_unlimited() {
        assert_eq!("7".parse(), Ok(StepLimit::AtMost(7)));
        assert_eq!("unlimited".parse(), Ok(StepLimit::Unlimited));
        for text in ["", "0", "-1", "1.5", "1e9", "Unlimited", "18446744073709551616"] {
            let error = text.parse::<StepLimit>().expect_err(text).to_string();
            assert!(error.lines().count() == 1 && error.contains("or unlimited"), "{error}");
        }
        for limit in [StepLimit::default(), StepLimit::Unlimited] {
            assert_eq!(limit.to_string().parse(), Ok(limit));
        }
    }

    #[test]
    fn work_ends_exactly_at_the_limit() {
        let mut meter = Meter::new(Some(2));
        assert_eq!((meter.add(1), meter.work()), (Ok(()), 1));
        assert_eq!((meter.add(1999), meter.work()), (Ok(()), 2));
        assert_eq!(meter.add(1), Err(ProofError::LimitReached(2)));
        assert_eq!(meter.add(u64::MAX), Err(ProofError::LimitReached(2)));
        let mut free = Meter::new(None);
        assert_eq!((free.add(u64::MAX), free.add(1)), (Ok(()), Ok(())));
        assert_eq!(Meter::new(Some(0)).add(1), Err(ProofError::LimitReached(0)));
    }

    #[test]
    fn a_check_can_be_stopped_about_every_millisecond() {
        let calls = Cell::new(0);
        let stop = Cell::new(false);
        let is_stopped = || {
            calls.set(calls.get() + 1);
            stop.get()
        };
        let mut meter = Meter::new(None).stopped_by(&is_stopped);
        assert!((0..10 * ASK_EVERY / 1000).all(|_| meter.add(1000).is_ok()));
        assert_eq!(calls.get(), 10);
        stop.set(true);
        assert_eq!(meter.add(ASK_EVERY), Err(ProofError::Stopped));
    }
}
