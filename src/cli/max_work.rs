//! `--max-work`: the limit of a check of a certificate or of the file of an earlier run.

use std::fmt;

use super::{Exit, Failure};
use crate::proof::{ErrorClass, Meter, ProofError, StepLimit};
use crate::report::counted;

/// The flag `--max-work`.
#[derive(Clone, Copy, Debug, clap::Args)]
pub(super) struct MaxWork {
    /// The maximum number of steps of the check, each at most a microsecond, or unlimited (default:
    /// 500 000 000). If the check needs more, the exit code is 4. The checked file cannot raise the
    /// limit.
    #[arg(long, value_name = "STEPS", allow_negative_numbers = true)]
    max_work: Option<StepLimit>,
}

/// The help of the flag for commands that check the file of `--resume`.
pub(super) const RESUME_HELP: &str = "The maximum number of steps for checking the --resume file, \
     each at most a microsecond, or unlimited (default: 500 000 000). It does not limit the search. \
     Needs --method exact";

/// The help of the flag for commands that check a certificate that the coordinator sends.
pub(super) const CERTIFICATE_HELP: &str = "The maximum number of steps for checking the \
     certificate before it is written to --certificate, each at most a microsecond, or unlimited \
     (default: 500 000 000)";

impl MaxWork {
    /// Returns whether the flag was given.
    pub(super) const fn is_given(self) -> bool {
        self.max_work.is_some()
    }

    /// Creates the meter of a check.
    pub(super) fn meter<'a>(self) -> Meter<'a> {
        self.max_work.unwrap_or_default().meter()
    }
}

/// Returns the failure of a command whose check of `what` ended with `error`. If the check was
/// finished and `what` is wrong, the exit code is `wrong`.
pub(super) fn failure(what: &dyn fmt::Display, error: &ProofError, wrong: Exit) -> Failure {
    let exit = match error.class() {
        ErrorClass::Unfinished => Exit::Unproven,
        ErrorClass::Invalid => wrong,
        ErrorClass::Unreadable => Exit::File,
    };
    let message = match error {
        ProofError::LimitReached(steps) => format!(
            "{what}: the check needs more than {}; raise --max-work, or use --max-work unlimited",
            counted((*steps).into(), "step")
        ),
        ProofError::Stopped => format!("{what}: the check was not completed within the time limit"),
        error => format!("{what}: {error}"),
    };
    Failure::new(exit, message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proof::MOST_WORK;
    use crate::report::grouped;

    #[test]
    fn the_exit_code_equals_that_of_nqueens_check() {
        for error in [
            ProofError::NoCertificate,
            ProofError::Version(9),
            ProofError::Damaged("it ends too early"),
            ProofError::Refused("there is a completion".into()),
            ProofError::TooMuchWork(1),
            ProofError::UnknownStep(9),
            ProofError::LimitReached(1),
            ProofError::Stopped,
        ] {
            let Failure { exit, .. } = failure(&"file", &error, Exit::CheckFailed);
            assert_eq!(exit as u8, error.class().exit_code(), "{error}");
        }
    }

    #[test]
    fn the_default_equals_the_one_in_the_help() {
        let default = format!("(default: {})", grouped(MOST_WORK.into()));
        let mut command = super::super::command();
        let check = command.find_subcommand_mut("check").expect("the command");
        let help = check.render_long_help().to_string();
        let help = help.split_whitespace().collect::<Vec<_>>().join(" ");
        for help in [&help[..], RESUME_HELP, CERTIFICATE_HELP] {
            assert!(help.contains(&default), "{help}");
        }
    }
}
