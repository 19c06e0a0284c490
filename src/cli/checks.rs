//! How much a coordinator has counted again.

use crate::cluster::campaign::Settings;

/// How much is counted again, as users give it.
#[derive(Clone, Copy, Debug, clap::Args)]
pub(super) struct CheckArgs {
    /// The share of all units that the coordinator itself counts again as a whole, as far as its processor keeps up: from 0 to
    /// 1, or a percentage. Of each owner it counts a few parts of units again in any case.
    #[arg(long, value_name = "SHARE", default_value = "1%", value_parser = share, allow_negative_numbers = true)]
    audit: f64,
    /// The share of each owner's units that another owner or the coordinator has to confirm before a job is finished: from 0 to
    /// 1, or a percentage. Without it, all if several owners count a job whose total is not published, and none beyond the usual
    /// checks otherwise.
    #[arg(long, value_name = "SHARE", value_parser = share, allow_negative_numbers = true)]
    assurance: Option<f64>,
}

impl CheckArgs {
    /// Returns settings with what was given.
    pub(super) fn apply(self, settings: Settings) -> Settings {
        Settings { audit: self.audit, assurance: self.assurance, ..settings }
    }
}

/// Reads a share: "0.01" or "1%".
fn share(text: &str) -> Result<f64, String> {
    let (number, whole) =
        text.strip_suffix('%').map_or((text, 1.0), |number| (number.trim_end(), 100.0));
    // Neither "inf" nor "nan" is within the bounds.
    let share =
        number.parse().ok().map(|number: f64| number / whole).filter(|s| (0.0..=1.0).contains(s));
    share.map(f64::abs).ok_or_else(|| {
        format!("'{text}' is not a share; write a number from 0 to 1, or 0% to 100%")
    })
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
