//! Formats of numbers and times for people.

use std::time::Duration;

/// Formats a number with its digits in groups of three: "14 772 512".
pub fn grouped(value: u128) -> String {
    let digits = value.to_string();
    let groups: Vec<&[u8]> = digits.as_bytes().rchunks(3).rev().collect();
    String::from_utf8(groups.join(&b' ')).expect("digits and spaces are text")
}

/// Formats a number with its noun: "1 thread", "2 threads", "1 000 threads".
pub fn counted(value: u128, noun: &str) -> String {
    format!("{} {}", grouped(value), plural(value, noun))
}

/// Returns the form of a noun that follows `value`: "query" for 1, "queries" otherwise; "key" and
/// "keys".
pub fn plural(value: u128, noun: &str) -> String {
    if value == 1 {
        noun.to_owned()
    } else if let Some(stem) = noun.strip_suffix('y').filter(|stem| !stem.ends_with('e')) {
        format!("{stem}ies")
    } else if noun.ends_with('x') {
        format!("{noun}es")
    } else {
        format!("{noun}s")
    }
}

/// Formats a number with three digits: "81.3", or "4.72e8" below a thousandth and from a million.
pub fn rounded(value: f64) -> String {
    // No sign for a zero.
    let value = value + 0.0;
    if value != 0.0 && !(1e-3..1e6).contains(&value.abs()) {
        return format!("{value:.2e}");
    }
    let decimals = match value.abs() {
        100.0.. => 0,
        10.0.. => 1,
        _ => 2,
    };
    format!("{value:.decimals$}")
}

/// Formats a time with its two largest units: "0.036 s", "4 min 05 s", "3 h 20 min", "12 d 4 h",
/// "31 years".
pub fn time(seconds: f64) -> String {
    const DAY: f64 = 86_400.0;
    const YEAR: f64 = 365.25 * DAY;
    let whole = |value: f64| value.floor();
    match seconds {
        s if s < 10.0 => format!("{s:.3} s"),
        s if s < 60.0 => format!("{s:.1} s"),
        s if s < 3600.0 => format!("{} min {:02} s", whole(s / 60.0), whole(s % 60.0)),
        s if s < DAY => format!("{} h {:02} min", whole(s / 3600.0), whole(s % 3600.0 / 60.0)),
        s if s < YEAR => format!("{} d {} h", whole(s / DAY), whole(s % DAY / 3600.0)),
        s => format!("{} years", rounded(s / YEAR)),
    }
}

/// Formats a duration as [`time()`] does.
pub fn duration(elapsed: Duration) -> String {
    time(elapsed.as_secs_f64())
}

/// Formats a time that is only predicted: to whole seconds.
pub fn predicted(left: Duration) -> String {
    match left.as_secs_f64() {
        seconds if seconds < 60.0 => format!("{seconds:.0} s"),
        seconds => time(seconds),
    }
}

/// Formats a share of a whole as a percentage, with as many decimals as change within a minute if
/// the rest takes `left`: at least one.
pub fn percent(share: f64, left: Option<Duration>) -> String {
    const MOST: f64 = 6.0;
    let percent = 100.0 * share;
    let of_minute = left.map(|left| (100.0 - percent) * 60.0 / left.as_secs_f64());
    let decimals = match of_minute {
        // The cast is from 1 to 6.
        Some(change) if change > 0.0 => (-change.log10()).ceil().clamp(1.0, MOST) as usize,
        _ => 1,
    };
    format!("{percent:.decimals$} %")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_grouped_by_thousands() {
        let cases = [(0, "0"), (999, "999"), (1000, "1 000"), (14_772_512, "14 772 512")];
        for (value, text) in cases {
            assert_eq!(grouped(value), text);
        }
    }

    #[test]
    fn nouns_agree_with_their_numbers() {
        for (value, noun, text) in [
            (1, "unit", "1 unit"),
            (0, "unit", "0 units"),
            (2, "query", "2 queries"),
            (3, "entry", "3 entries"),
            (1000, "prefix", "1 000 prefixes"),
        ] {
            assert_eq!(counted(value, noun), text);
        }
    }

    #[test]
    fn times_show_their_two_largest_units() {
        let cases = [
            (0.0361, "0.036 s"),
            (12.34, "12.3 s"),
            (65.0, "1 min 05 s"),
            (3600.0 * 3.5, "3 h 30 min"),
            (86_400.0 * 12.2, "12 d 4 h"),
            (3.2e9, "101 years"),
        ];
        for (seconds, text) in cases {
            assert_eq!(time(seconds), text);
        }
    }

    #[test]
    fn percentages_have_the_digits_that_change_within_a_minute() {
        const DAY: u64 = 86_400;
        for (share, left_s, text) in [
            (0.172, Some(56), "17.2 %"),
            (0.0, Some(0), "0.0 %"),
            (1.0, Some(0), "100.0 %"),
            (0.5, None, "50.0 %"),
            // 0.023 % and 0.00019 % a minute.
            (0.0, Some(3 * DAY), "0.00 %"),
            (0.123_456_789, Some(320 * DAY), "12.3457 %"),
            (0.123_456_789, Some(1_000_000 * DAY), "12.345679 %"),
        ] {
            assert_eq!(percent(share, left_s.map(Duration::from_secs)), text);
        }
    }

    #[test]
    fn rounded_numbers_have_three_digits() {
        for (value, text) in [
            (0.0, "0.00"),
            (-0.0, "0.00"),
            (4.718e8, "4.72e8"),
            (81.34, "81.3"),
            (2.0e-9, "2.00e-9"),
            (999.6, "1000"),
        ] {
            assert_eq!(rounded(value), text);
        }
    }
}
