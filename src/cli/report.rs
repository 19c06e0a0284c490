//! Numbers and times as people read them.

use std::time::Duration;

use crate::oeis::{Sequence, lookup};

/// How a count compares with the published value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Published {
    /// It is the published value.
    Agrees,
    /// It is another one: at least one of the two is wrong.
    Differs,
    /// There is none to compare with.
    Unknown,
}

impl Published {
    /// Compares `value` with `sequence` at n.
    pub(super) fn compare(sequence: Sequence, n: usize, value: u128) -> Self {
        match lookup(sequence, n) {
            None => Self::Unknown,
            Some(published) if published == value => Self::Agrees,
            Some(_) => Self::Differs,
        }
    }

    /// In words, with the sequence's number.
    pub(super) fn sentence(self, sequence: Sequence) -> String {
        let oeis = sequence.oeis();
        match self {
            Self::Agrees => format!("agrees with OEIS {oeis}"),
            Self::Differs => format!("DIFFERS from OEIS {oeis}: one of the two is wrong"),
            Self::Unknown => format!("no published value to compare with (OEIS {oeis})"),
        }
    }
}

/// 14772512 as "14 772 512".
pub(super) fn grouped(value: u128) -> String {
    let digits = value.to_string();
    let mut out = String::with_capacity(digits.len() * 4 / 3);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(' ');
        }
        out.push(digit);
    }
    out
}

/// "1 thread", "2 threads", "1 000 threads".
pub(super) fn counted(value: u128, noun: &str) -> String {
    let plural = match (value, noun) {
        (1, _) => noun.to_owned(),
        (_, "query") => "queries".to_owned(),
        (_, "prefix") => "prefixes".to_owned(),
        _ => format!("{noun}s"),
    };
    format!("{} {plural}", grouped(value))
}

/// A rounded number of three digits: "4.72e8" below a thousandth or from a million on, else "81.3".
pub(super) fn rounded(value: f64) -> String {
    // No sign for a zero.
    let value = value + 0.0;
    if value != 0.0 && !(1e-3..1e6).contains(&value.abs()) {
        return format!("{value:.2e}");
    }
    let decimals = if value.abs() >= 100.0 {
        0
    } else if value.abs() >= 10.0 {
        1
    } else {
        2
    };
    format!("{value:.decimals$}")
}

/// A time as its two largest units: "0.036 s", "4 min 05 s", "3 h 20 min", "12 d 4 h", "31 years".
pub(super) fn time(seconds: f64) -> String {
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

/// [`time`] of a duration.
pub(super) fn duration(elapsed: Duration) -> String {
    time(elapsed.as_secs_f64())
}

/// A time that is only predicted: to whole seconds.
pub(super) fn predicted(left: Duration) -> String {
    match left.as_secs_f64() {
        seconds if seconds < 60.0 => format!("{seconds:.0} s"),
        seconds => time(seconds),
    }
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

    #[test]
    fn a_count_is_compared_with_the_published_value() {
        let compare = |n, value| Published::compare(Sequence::Total, n, value);
        assert_eq!(compare(8, 92), Published::Agrees);
        assert_eq!(compare(8, 93), Published::Differs);
        assert_eq!(compare(28, 1), Published::Unknown);
    }
}
