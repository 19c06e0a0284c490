//! The hours of the day in which a worker counts.

use std::fmt;
use std::str::FromStr;

const DAY: u16 = 24 * 60;

/// A range of times of day, in minutes since midnight, local time. It spans midnight if the end
/// comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorkingHours {
    from: u16,
    to: u16,
}

/// The error for a text that is not a range of hours.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "invalid working hours '{0}'; write the start and the end as HH:MM-HH:MM, for example 18:00-08:00"
)]
pub struct WorkingHoursError(String);

impl WorkingHours {
    /// Returns whether a minute of the day, from 0 to 1439, is in the range. The start is included,
    /// the end is not.
    pub const fn contains(self, minute: u16) -> bool {
        if self.from < self.to {
            self.from <= minute && minute < self.to
        } else {
            self.from <= minute || minute < self.to
        }
    }

    /// Returns the number of minutes of a day that are in the range.
    pub const fn minutes_per_day(self) -> u16 {
        if self.from < self.to { self.to - self.from } else { DAY - self.from + self.to }
    }
}

fn minute(text: &str) -> Option<u16> {
    let (hour, minute) = text.split_once(':')?;
    let two_digits = |text: &str| text.len() == 2 && text.bytes().all(|byte| byte.is_ascii_digit());
    if !two_digits(hour) || !two_digits(minute) {
        return None;
    }
    let (hour, minute): (u16, u16) = (hour.parse().ok()?, minute.parse().ok()?);
    (minute < 60 && hour * 60 + minute <= DAY).then_some(hour * 60 + minute)
}

impl FromStr for WorkingHours {
    type Err = WorkingHoursError;

    fn from_str(text: &str) -> Result<Self, WorkingHoursError> {
        let parse = || {
            let (from, to) = text.split_once('-')?;
            let (from, to) = (minute(from)?, minute(to)?);
            // Equal times could mean either no hours or all.
            (from < DAY && from != to).then_some(Self { from, to })
        };
        parse().ok_or_else(|| WorkingHoursError(text.chars().take(40).collect()))
    }
}

impl fmt::Display for WorkingHours {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { from, to } = self;
        write!(f, "{:02}:{:02}-{:02}:{:02}", from / 60, from % 60, to / 60, to % 60)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hours_include_their_first_minute_and_exclude_their_last_even_over_midnight() {
        for (text, inside, outside) in [
            (
                "18:00-08:00",
                vec![18 * 60, 23 * 60 + 59, 0, 7 * 60 + 59],
                vec![8 * 60, 17 * 60 + 59],
            ),
            ("09:30-17:00", vec![9 * 60 + 30, 16 * 60 + 59], vec![9 * 60 + 29, 17 * 60, 0]),
            ("00:00-24:00", vec![0, 720, 1439], vec![]),
            ("23:59-00:00", vec![1439], vec![0, 1438]),
        ] {
            let hours: WorkingHours = text.parse().expect(text);
            assert_eq!(hours.to_string(), text);
            assert!(inside.iter().all(|&minute| hours.contains(minute)), "{text}");
            assert!(!outside.iter().any(|&minute| hours.contains(minute)), "{text}");
            let minutes = (0..DAY).filter(|&minute| hours.contains(minute)).count();
            assert_eq!(usize::from(hours.minutes_per_day()), minutes, "{text}");
        }
    }

    #[test]
    fn invalid_hours_are_refused() {
        for text in [
            "",
            "18-8",
            "18:00",
            "18:00-",
            "8:00-18:00",
            "18:00-18:00",
            "24:00-08:00",
            "18:60-08:00",
            "25:00-08:00",
            "+1:00-08:00",
            "18:00-08:00-09:00",
        ] {
            let error = text.parse::<WorkingHours>().expect_err(text).to_string();
            assert!(error.contains("HH:MM-HH:MM"), "{error}");
        }
    }
}
