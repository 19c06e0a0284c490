//! `--max-work`: the limit of a check of a certificate or of the file of an earlier run.

use std::fmt;
use std::str::FromStr;

use super::{Exit, Failure};
use crate::proof::{MOST_WORK, Meter, ProofError};
use crate::report::counted;

/// The flag `--max-work`.
#[derive(Clone, Copy, Debug, clap::Args)]
pub(super) struct MaxWork {
    /// The maximum number of steps of a check, each about a microsecond, or unlimited (default:
    /// 500000000). The checked file cannot raise it.
    #[arg(long, value_name = "STEPS", allow_negative_numbers = true)]
    max_work: Option<Steps>,
}

/// A number of steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Steps {
    AtMost(u64),
    Unlimited,
}

impl fmt::Display for Steps {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AtMost(steps) => steps.fmt(f),
            Self::Unlimited => f.write_str("unlimited"),
        }
    }
}

impl FromStr for Steps {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "unlimited" {
            return Ok(Self::Unlimited);
        }
        let steps = text.parse().ok().filter(|&steps| steps > 0).map(Self::AtMost);
        steps.ok_or_else(|| {
            format!("invalid number of steps '{text}'; use a whole number from 1, for example {MOST_WORK}, or unlimited")
        })
    }
}

impl MaxWork {
    /// Returns whether the flag was given.
    pub(super) const fn is_given(self) -> bool {
        self.max_work.is_some()
    }

    /// Creates the meter of a check.
    pub(super) const fn meter<'a>(self) -> Meter<'a> {
        Meter::new(match self.max_work {
            Some(Steps::AtMost(steps)) => Some(steps),
            Some(Steps::Unlimited) => None,
            None => Some(MOST_WORK),
        })
    }
}

/// Returns the failure of a check of `what` that was not completed, or that found an error: then
/// with the exit code `wrong`.
pub(super) fn failure(what: &dyn fmt::Display, error: &ProofError, wrong: Exit) -> Failure {
    match error {
        ProofError::LimitReached(steps) => Failure {
            exit: Exit::Unproven,
            message: format!(
                "{what}: the check needs more than {}; raise --max-work, or use --max-work unlimited",
                counted((*steps).into(), "step")
            ),
        },
        ProofError::Stopped => Failure {
            exit: Exit::Unproven,
            message: format!("{what}: the check was not completed within the time limit"),
        },
        ProofError::NoCertificate | ProofError::Version(_) | ProofError::UnknownStep(_) => {
            Failure { exit: Exit::File, message: format!("{what}: {error}") }
        }
        ProofError::Damaged(_) | ProofError::Refused(_) | ProofError::TooMuchWork(_) => {
            Failure { exit: wrong, message: format!("{what}: {error}") }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_a_number_or_unlimited() {
        assert_eq!("7".parse(), Ok(Steps::AtMost(7)));
        assert_eq!("unlimited".parse(), Ok(Steps::Unlimited));
        for text in ["", "0", "-1", "1.5", "1e9", "Unlimited", "18446744073709551616"] {
            let error = text.parse::<Steps>().expect_err(text);
            assert!(error.lines().count() == 1 && error.contains("or unlimited"), "{error}");
        }
    }

    #[test]
    fn the_default_is_the_one_in_the_help() {
        let mut command = super::super::command();
        let check = command.find_subcommand_mut("check").expect("the command");
        let help = check.render_long_help().to_string();
        assert!(help.contains(&format!("(default: {MOST_WORK})")), "{help}");
    }
}
