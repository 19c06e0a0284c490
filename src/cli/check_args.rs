//! The flags that set how many units are recounted, and with how many threads the coordinator does
//! that.

use std::num::NonZeroUsize;

use super::args::threads;
use crate::cluster::campaign::Settings;

/// The shares of the units that are recounted.
#[derive(Clone, Copy, Debug, clap::Args)]
pub(super) struct CheckArgs {
    /// The share of the units that the coordinator recounts in full: from 0 to 1, or a percentage.
    /// Under load it recounts fewer. Even with 0, it spot-checks a few units of every owner.
    #[arg(long, value_name = "SHARE", default_value = "1%", value_parser = share, allow_negative_numbers = true)]
    audit: f64,
    /// The share of each owner's units that another owner or the coordinator must confirm before a
    /// job is finished: from 0 to 1, or a percentage. Default: all units if several owners count a
    /// job with no published total; otherwise 0, and only random checks are made.
    #[arg(long, value_name = "SHARE", value_parser = share, allow_negative_numbers = true)]
    assurance: Option<f64>,
}

/// The flag of the arbiter.
#[derive(Clone, Copy, Debug, clap::Args)]
pub(super) struct ArbiterArgs {
    /// The number of threads with which the coordinator counts units itself: those that it
    /// recounts, and those of which two results differ.
    #[arg(
        id = "arbiter-threads",
        long = "arbiter-threads",
        value_name = "N",
        default_value = "1",
        value_parser = threads,
        allow_negative_numbers = true
    )]
    pub(super) threads: NonZeroUsize,
}

impl CheckArgs {
    /// Returns `settings` with these values.
    pub(super) fn apply(self, settings: Settings) -> Settings {
        Settings { audit: self.audit, assurance: self.assurance, ..settings }
    }
}

/// Parses a share: "0.01" or "1%".
fn share(text: &str) -> Result<f64, String> {
    let (number, whole) =
        text.strip_suffix('%').map_or((text, 1.0), |number| (number.trim_end(), 100.0));
    // Neither "inf" nor "nan" is within the bounds.
    let share =
        number.parse().ok().map(|number: f64| number / whole).filter(|s| (0.0..=1.0).contains(s));
    share
        .map(f64::abs)
        .ok_or_else(|| format!("invalid share '{text}'; use a number from 0 to 1, or 0% to 100%"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_from_0_to_1_or_a_percentage() {
        let good = [
            ("0", 0.0),
            ("1", 1.0),
            ("0.25", 0.25),
            ("1%", 0.01),
            ("100%", 1.0),
            ("0 %", 0.0),
            ("-0", 0.0),
            ("1e-3", 0.001),
        ];
        for (text, expected) in good {
            assert_eq!(share(text), Ok(expected), "{text}");
        }
        for text in
            ["", "%", "1.01", "-0.1", "101%", "-1%", "nan", "inf", "NaN%", "half", "1%%", "0,5"]
        {
            let error = share(text).expect_err(text);
            assert!(
                error.contains(&format!("'{text}'")) && error.contains("from 0 to 1"),
                "{error}"
            );
        }
    }
}
