//! The time at which a count stops by itself: `--time-limit` and `--stop-at`.

use std::time::{Duration, Instant};

use jiff::civil::Time;
use jiff::{Timestamp, ToSpan, Zoned};

use super::terminal::time_limit;

/// Limits of a count's time. The first that is reached stops it.
#[derive(Clone, Copy, Debug, clap::Args)]
pub(super) struct LimitArgs {
    /// Stop the count after this time: a number and s, m, h or d, for example 8h. With --resume,
    /// the same command continues the count.
    #[arg(long, value_name = "TIME", value_parser = time_limit, allow_negative_numbers = true)]
    time_limit: Option<Duration>,
    /// Stop the count at this local time of today, or of tomorrow if it is past: HH:MM, for example
    /// 08:00. With --resume, the same command continues the count.
    #[arg(long, value_name = "HH:MM", value_parser = time_of_day)]
    stop_at: Option<Time>,
}

/// The instants at which a count stops.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Deadline {
    time_limit: Option<Instant>,
    /// By the clock of the system, so that it is right also if the machine sleeps in between.
    stop_at: Option<Timestamp>,
}

impl LimitArgs {
    /// Returns the deadline of a count that begins now.
    pub(super) fn deadline(&self) -> Deadline {
        Deadline {
            // A limit beyond what the clock can represent is none.
            time_limit: self.time_limit.and_then(|limit| Instant::now().checked_add(limit)),
            stop_at: self.stop_at.and_then(|time| next(time, &Zoned::now())),
        }
    }
}

impl Deadline {
    /// Returns whether there is a deadline.
    pub(super) const fn is_set(&self) -> bool {
        self.time_limit.is_some() || self.stop_at.is_some()
    }

    /// Returns whether a limit is reached within `time`.
    pub(super) fn is_within(&self, time: Duration) -> bool {
        let is_soon = |at: Instant| at.saturating_duration_since(Instant::now()) < time;
        // The difference is negative if the time is past.
        let until = |at: Timestamp| Duration::try_from(at.duration_since(Timestamp::now()));
        self.time_limit.is_some_and(is_soon)
            || self.stop_at.is_some_and(|at| until(at).unwrap_or_default() < time)
    }

    /// Returns the flag whose limit is reached now, if any.
    pub(super) fn reached(&self) -> Option<&'static str> {
        if self.time_limit.is_some_and(|at| at <= Instant::now()) {
            return Some("--time-limit");
        }
        self.stop_at.filter(|at| *at <= Timestamp::now()).map(|_| "--stop-at")
    }
}

/// Returns the next time after `now` at which local clocks show `time`. Where the clocks are set
/// forward over this time, it is as much later.
fn next(time: Time, now: &Zoned) -> Option<Timestamp> {
    let on = |day: jiff::civil::Date| {
        let zoned = day.to_datetime(time).to_zoned(now.time_zone().clone());
        zoned.ok().map(|zoned| zoned.timestamp())
    };
    on(now.date())
        .filter(|at| *at > now.timestamp())
        .or_else(|| on(now.date().checked_add(1.day()).ok()?))
}

/// Parses a time of day: "08:00".
fn time_of_day(text: &str) -> Result<Time, String> {
    let part = |text: &str| {
        let digits = (1..=2).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_digit());
        text.parse::<i8>().ok().filter(|_| digits)
    };
    let time = || {
        let (hour, minute) = text.split_once(':')?;
        Time::new(part(hour)?, part(minute)?, 0, 0).ok()
    };
    time().ok_or_else(|| format!("invalid time of day '{text}'; use HH:MM, for example 08:00"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_of_day_is_an_hour_and_a_minute() {
        for (text, hour, minute) in [("08:00", 8, 0), ("8:05", 8, 5), ("23:59", 23, 59)] {
            assert_eq!(time_of_day(text), Ok(jiff::civil::time(hour, minute, 0, 0)), "{text}");
        }
        for text in
            ["", "8", ":", "8:", "24:00", "08:60", "+8:00", "-1:00", "008:00", "8:00:00", "ten"]
        {
            let error = time_of_day(text).expect_err(text);
            assert!(error.lines().count() == 1 && error.contains("08:00"), "{error}");
        }
    }

    #[test]
    fn the_next_time_of_day_is_today_or_tomorrow_also_where_clocks_change() {
        // The rules of Central Europe, without a database of time zones.
        let zone = jiff::tz::TimeZone::posix("CET-1CEST,M3.5.0,M10.5.0/3").expect("a rule");
        let at = |text: &str| {
            let civil: jiff::civil::DateTime = text.parse().expect("a date and time");
            civil.to_zoned(zone.clone()).expect("a time of the zone")
        };
        let time = |text: &str| time_of_day(text).expect("a time");
        for (now, wanted, expected) in [
            ("2026-11-23T07:59", "08:00", "2026-11-23T08:00"),
            ("2026-11-23T08:00", "08:00", "2026-11-24T08:00"),
            ("2026-12-31T23:00", "06:30", "2027-01-01T06:30"),
            // The night of 25 hours, and the one of 23.
            ("2026-10-24T22:00", "08:00", "2026-10-25T08:00"),
            ("2026-03-28T22:00", "08:00", "2026-03-29T08:00"),
            // 02:30 does not exist.
            ("2026-03-28T22:00", "02:30", "2026-03-29T03:30"),
        ] {
            let found = next(time(wanted), &at(now)).expect("a time");
            assert_eq!(found, at(expected).timestamp(), "{wanted} after {now}");
        }
    }

    #[test]
    fn the_limit_that_is_reached_first_is_the_one_that_counts() {
        let (past, now) = (Timestamp::UNIX_EPOCH, Instant::now());
        let later = now.checked_add(Duration::from_secs(86_400));
        let reached = |time_limit, stop_at| Deadline { time_limit, stop_at }.reached();
        assert_eq!(reached(Some(now), None), Some("--time-limit"));
        assert_eq!(reached(later, Some(past)), Some("--stop-at"));
        assert_eq!(reached(Some(now), Some(Timestamp::MAX)), Some("--time-limit"));
        assert_eq!(reached(later, Some(Timestamp::MAX)), None);
        assert_eq!(reached(None, None), None);
        let is_within = |time_limit, stop_at, hours: u64| {
            Deadline { time_limit, stop_at }.is_within(Duration::from_secs(3600 * hours))
        };
        assert!(is_within(later, None, 25) && !is_within(later, None, 23));
        let tomorrow = Timestamp::now().checked_add(24.hours()).ok();
        assert!(is_within(None, tomorrow, 25) && !is_within(None, tomorrow, 23));
        assert!(is_within(None, Some(past), 1) && !is_within(None, None, 1));
    }
}
