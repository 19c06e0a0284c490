//! The reasons for replacing a certificate.

use std::fmt;

/// The reason why a certificate should be replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Renewal {
    /// Enough of its lifetime is over, or its content is out of date.
    Due,
    /// It is not valid yet: the clock was set back since it was issued.
    ClockSetBack {
        /// A lower bound of the difference, in ms.
        by_ms: u64,
    },
}

impl fmt::Display for Renewal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self::ClockSetBack { by_ms } = *self else { return f.write_str("it was due") };
        f.write_str("the clock was set back by at least ")?;
        match by_ms / 60_000 {
            minutes @ 0..120 => write!(f, "{minutes} min"),
            minutes => write!(f, "{} h", minutes / 60),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_shift_is_reported_in_a_suitable_unit() {
        let text = |by_ms| Renewal::ClockSetBack { by_ms }.to_string();
        assert_eq!(text(6 * 60_000), "the clock was set back by at least 6 min");
        assert_eq!(text(119 * 60_000), "the clock was set back by at least 119 min");
        assert_eq!(text(25 * 3_600_000), "the clock was set back by at least 25 h");
        assert!(
            Renewal::ClockSetBack { by_ms: 0 } > Renewal::Due,
            "the more specific reason is greater"
        );
    }
}
