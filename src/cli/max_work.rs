//! `--max-work`: what checking a certificate, or what an earlier run has kept, may take.

use std::fmt;
use std::str::FromStr;

use super::report::counted;
use super::{Exit, Failure};
use crate::proof::{MOST_WORK, Meter, ProofError};

/// The flag.
#[derive(Clone, Copy, Debug, clap::Args)]
pub(super) struct MaxWork {
    /// The steps that a check may take, each about a microsecond, or unlimited; 500000000 if not given. A file cannot raise it.
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
            format!("'{text}' is no number of steps; write a whole number from 1 on, for example {MOST_WORK}, or unlimited")
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

/// Returns how the program ends where the check of `what` was not carried to its end, or why something else is wrong:
/// with the exit code `wrong` then.
pub(super) fn failure(what: &dyn fmt::Display, error: &ProofError, wrong: Exit) -> Failure {
    match error {
        ProofError::LimitReached(steps) => Failure {
            exit: Exit::Unproven,
            message: format!(
                "{what}: not checked to its end, which takes more than {}; --max-work allows more, --max-work unlimited any number",
                counted((*steps).into(), "step")
            ),
        },
        ProofError::Stopped => Failure {
            exit: Exit::Unproven,
            message: format!("{what}: not checked to its end within the time limit"),
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
    fn the_default_is_the_one_that_the_help_names() {
        let mut command = super::super::command();
        let check = command.find_subcommand_mut("check").expect("the command");
        let help = check.render_long_help().to_string();
        assert!(help.contains(&format!("; {MOST_WORK} if not given")), "{help}");
    }
}
