//! The file of `estimate --fleet`: the devices of a campaign, in TOML.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;
use std::path::Path;

use jiff::civil::Date;
use serde::Deserialize;
use toml::value::Datetime;

use crate::atomic_file;
use crate::cli::top::plain;
use crate::cli::{Exit, Failure};
use crate::cluster::campaign::Settings;
use crate::cluster::worker::WorkingHours;
use crate::decomposition::Subproblems;

/// The sizes of the boards whose measured times are extrapolated. Counts of smaller boards are too
/// short to tell how fast a device is, and `nqueens bench` counts no larger ones.
pub(super) const MEASURED_SIZES: RangeInclusive<usize> = 16..=27;

/// A fleet as its file describes it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct FleetFile {
    /// The day on which the campaign begins.
    pub(super) start: Option<Date>,
    pub(super) price: Option<Price>,
    /// The subproblems of the units, of which all times are.
    pub(super) subproblems: Option<Subproblems>,
    /// The settings of the coordinator.
    pub(super) settings: Settings,
    /// The time of the coordinator's thread.
    pub(super) coordinator: Option<Measurement>,
    /// At least one.
    pub(super) devices: Vec<Device>,
}

/// The price of energy.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Price {
    pub(super) per_kwh: f64,
    pub(super) currency: String,
}

/// The measured time of a whole count.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Measurement {
    /// The size of the board.
    pub(super) n: usize,
    pub(super) elapsed_s: f64,
}

/// Devices of one kind.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Device {
    pub(super) name: String,
    pub(super) owner: Option<String>,
    pub(super) count: u64,
    pub(super) measurement: Measurement,
    pub(super) hours_per_day: f64,
    pub(super) watts: Option<f64>,
}

/// The fields of the file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Fields {
    start: Option<Datetime>,
    price_per_kwh: Option<f64>,
    currency: Option<String>,
    subproblems: Option<String>,
    audit: Option<f64>,
    assurance: Option<f64>,
    coordinator: Option<Measurement>,
    #[serde(default)]
    device: Vec<DeviceFields>,
}

/// The fields of a table `[[device]]`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct DeviceFields {
    name: String,
    owner: Option<String>,
    #[serde(default = "one")]
    count: u64,
    n: usize,
    elapsed_s: f64,
    hours_per_day: Option<f64>,
    hours: Option<String>,
    watts: Option<f64>,
}

const fn one() -> u64 {
    1
}

impl FleetFile {
    /// Reads the file at `path`, for a count of n queens.
    ///
    /// # Errors
    /// The file cannot be read, or it is not a valid description of a fleet.
    pub(super) fn read(path: &Path, n: usize) -> Result<Self, Failure> {
        /// The maximum size of a file, in bytes.
        const LARGEST_FILE: u64 = 1 << 20;
        let refuse = |why: String| {
            Failure::new(
                Exit::File,
                plain(&format!("invalid fleet file {}: {why}", path.display())),
            )
        };
        let text = atomic_file::read_text(path, LARGEST_FILE);
        let text = text.map_err(|error| refuse(error.to_string()))?;
        Self::parse(&text, n).map_err(refuse)
    }

    /// Parses the text of a file, for a count of n queens.
    ///
    /// # Errors
    /// Returns one line that names the field and what it should be.
    pub(super) fn parse(text: &str, n: usize) -> Result<Self, String> {
        let fields: Fields = toml::from_str(text).map_err(|error| {
            let line = error.span().map(|span| text[..span.start].matches('\n').count() + 1);
            let line = line.map_or(String::new(), |line| format!("line {line}: "));
            line + &error.message().lines().collect::<Vec<_>>().join(" ")
        })?;
        let share = |field: &str, share: Option<f64>| match share {
            Some(share) if !(0.0..=1.0).contains(&share) => {
                Err(format!("{field} is {share}; use a share from 0 to 1"))
            }
            share => Ok(share),
        };
        let default = Settings::default();
        let settings = Settings {
            audit: share("audit", fields.audit)?.unwrap_or(default.audit),
            assurance: share("assurance", fields.assurance)?,
            ..default
        };
        let subproblems = fields.subproblems.map(|name| {
            name.parse().map_err(|_| {
                format!("subproblems is {name:?}; use \"prefixes\" or \"column-sets\"")
            })
        });
        if let Some(measurement) = fields.coordinator {
            check_measurement("coordinator", measurement, n)?;
        }
        if fields.device.is_empty() {
            return Err("it has no device; add a table [[device]] for each kind".to_owned());
        }
        let devices = fields.device.into_iter().enumerate();
        let devices = devices.map(|(index, fields)| device(index + 1, fields, n));
        let devices = devices.collect::<Result<Vec<Device>, String>>()?;
        let mut names = BTreeSet::new();
        if let Some(twice) = devices.iter().find(|device| !names.insert(&device.name)) {
            return Err(format!("two devices have the name {:?}", twice.name));
        }
        Ok(Self {
            start: fields.start.map(start_day).transpose()?,
            price: price(fields.price_per_kwh, fields.currency)?,
            subproblems: subproblems.transpose()?,
            settings,
            coordinator: fields.coordinator,
            devices,
        })
    }
}

/// Checks the fields of a device, the `number`-th of the file.
fn device(number: usize, fields: DeviceFields, n: usize) -> Result<Device, String> {
    /// More devices than any fleet has; their sum is far below the limit of the type.
    const MOST: u64 = 1_000_000_000;
    let DeviceFields { name, owner, count, elapsed_s, hours_per_day, hours, watts, .. } = fields;
    let place = format!("device {number}");
    check_text(&format!("{place}: name"), &name)?;
    let place = format!("device {name:?}");
    if let Some(owner) = &owner {
        check_text(&format!("{place}: owner"), owner)?;
    }
    if !(1..=MOST).contains(&count) {
        return Err(format!("{place}: count is {count}; use a whole number from 1 to {MOST}"));
    }
    let measurement = Measurement { n: fields.n, elapsed_s };
    check_measurement(&place, measurement, n)?;
    let hours_per_day = match (hours_per_day, hours) {
        (None, None) => 24.0,
        (Some(hours), None) if hours > 0.0 && hours <= 24.0 => hours,
        (Some(hours), None) => {
            return Err(format!(
                "{place}: hours_per_day is {hours}; use a number above 0, up to 24"
            ));
        }
        (None, Some(hours)) => {
            let hours: WorkingHours = hours.parse().map_err(|error| format!("{place}: {error}"))?;
            f64::from(hours.minutes_per_day()) / 60.0
        }
        (Some(_), Some(_)) => {
            return Err(format!("{place}: hours and hours_per_day exclude each other"));
        }
    };
    if let Some(watts) = watts {
        check_number(&format!("{place}: watts"), watts, "a number of watts")?;
    }
    Ok(Device { name, owner, count, measurement, hours_per_day, watts })
}

/// Checks a measurement that is extrapolated to n queens.
fn check_measurement(place: &str, measured: Measurement, n: usize) -> Result<(), String> {
    let Measurement { n: of, elapsed_s } = measured;
    if !MEASURED_SIZES.contains(&of) || of > n {
        let (least, most) = (MEASURED_SIZES.start(), MEASURED_SIZES.end().min(&n));
        return Err(format!("{place}: n is {of}; use a board size from {least} to {most}"));
    }
    check_number(&format!("{place}: elapsed_s"), elapsed_s, "a number of seconds")
}

/// Checks that a number is above zero and not so large that a result would be infinite.
fn check_number(place: &str, number: f64, kind: &str) -> Result<(), String> {
    const MOST: f64 = 1e9;
    if number > 0.0 && number <= MOST {
        return Ok(());
    }
    Err(format!("{place} is {number}; use {kind} above 0, up to {MOST}"))
}

/// Checks a text that is shown to people.
fn check_text(place: &str, text: &str) -> Result<(), String> {
    const MOST: usize = 64;
    let is_valid = !text.trim().is_empty() && text.chars().count() <= MOST && plain(text) == text;
    if is_valid {
        return Ok(());
    }
    Err(format!("{place} is invalid; use 1 to {MOST} characters without control characters"))
}

fn price(per_kwh: Option<f64>, currency: Option<String>) -> Result<Option<Price>, String> {
    match (per_kwh, currency) {
        (None, None) => Ok(None),
        (Some(per_kwh), Some(currency)) => {
            check_number("price_per_kwh", per_kwh, "a price")?;
            check_text("currency", &currency)?;
            Ok(Some(Price { per_kwh, currency }))
        }
        (Some(_), None) => Err("price_per_kwh needs a currency, such as \"EUR\"".to_owned()),
        (None, Some(_)) => Err("currency needs a price_per_kwh".to_owned()),
    }
}

/// Returns the day of a TOML date.
fn start_day(start: Datetime) -> Result<Date, String> {
    let day = |date: toml::value::Date| {
        let (year, month, day) = (date.year.try_into(), date.month.try_into(), date.day.try_into());
        Date::new(year.ok()?, month.ok()?, day.ok()?).ok()
    };
    let has_time = start.time.is_some() || start.offset.is_some();
    start
        .date
        .filter(|_| !has_time)
        .and_then(day)
        .ok_or_else(|| format!("start is {start}; use a date without a time, such as 2027-01-31"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEVICE: &str = "[[device]]\nname = 'a'\nn = 18\nelapsed_s = 2\n";

    #[test]
    fn a_device_counts_all_day_for_an_unnamed_owner_unless_the_file_says_otherwise() {
        let file = FleetFile::parse(DEVICE, 28).expect("a fleet");
        let device = Device {
            name: "a".to_owned(),
            owner: None,
            count: 1,
            measurement: Measurement { n: 18, elapsed_s: 2.0 },
            hours_per_day: 24.0,
            watts: None,
        };
        let expected = FleetFile {
            start: None,
            price: None,
            subproblems: None,
            settings: Settings::default(),
            coordinator: None,
            devices: vec![device],
        };
        assert_eq!(file, expected);
    }

    #[test]
    fn every_field_is_read() {
        let text = "start = 2027-02-28\nprice_per_kwh = 0.25\ncurrency = 'EUR'\naudit = 0.02\n\
                    subproblems = 'prefixes'\nassurance = 0.5\n\
                    coordinator = { n = 19, elapsed_s = 14 }\n[[device]]\nname = 'b'\n\
                    owner = 'lab'\ncount = 7\nn = 20\nelapsed_s = 3.5\nhours = '18:00-08:30'\n\
                    watts = 90\n[[device]]\nname = 'c'\nn = 16\nelapsed_s = 1\nhours_per_day = 6\n";
        let file = FleetFile::parse(text, 28).expect("a fleet");
        assert_eq!(file.start, Some(jiff::civil::date(2027, 2, 28)));
        assert_eq!(file.price, Some(Price { per_kwh: 0.25, currency: "EUR".to_owned() }));
        assert_eq!(file.subproblems, Some(Subproblems::Prefixes));
        assert_eq!((file.settings.audit, file.settings.assurance), (0.02, Some(0.5)));
        assert_eq!(file.coordinator, Some(Measurement { n: 19, elapsed_s: 14.0 }));
        let [b, c] = &file.devices[..] else { panic!("two devices") };
        assert_eq!((b.owner.as_deref(), b.count, b.watts), (Some("lab"), 7, Some(90.0)));
        assert_eq!((b.hours_per_day, c.hours_per_day), (14.5, 6.0));
    }

    #[test]
    fn an_invalid_file_is_refused_in_one_line_that_names_the_field() {
        let with = |field: &str| format!("{DEVICE}{field}\n");
        let before = |field: &str| format!("{field}\n{DEVICE}");
        let changed = |from: &str, to: &str| DEVICE.replace(from, to);
        for (text, words) in [
            (String::new(), vec!["no device", "[[device]]"]),
            ("device = []".to_owned(), vec!["no device"]),
            ("not TOML".to_owned(), vec!["line 1"]),
            ("{\"device\": []}".to_owned(), vec!["line 1"]),
            (with("rate = 3"), vec!["line 5", "rate"]),
            (before("power = 3"), vec!["line 1", "power"]),
            (before("coordinator = { n = 18, elapsed_s = 2, rate = 1 }"), vec!["rate"]),
            (with("watts = 1\nwatts = 2"), vec!["line 6"]),
            (changed("n = 18\n", ""), vec!["missing", "n"]),
            (changed("elapsed_s = 2", ""), vec!["missing", "elapsed_s"]),
            (changed("name = 'a'", ""), vec!["missing", "name"]),
            (changed("'a'", "''"), vec!["device 1", "name"]),
            (changed("'a'", r#""a\u001bb""#), vec!["device 1", "name", "control"]),
            (changed("'a'", "7"), vec!["line 2", "string"]),
            (changed("= 2", "= -2"), vec!["device \"a\"", "elapsed_s is -2", "above 0"]),
            (changed("= 2", "= 0"), vec!["elapsed_s is 0", "above 0"]),
            (changed("= 2", "= nan"), vec!["elapsed_s is NaN", "above 0"]),
            (changed("= 2", "= inf"), vec!["elapsed_s is inf", "above 0"]),
            (changed("= 2", "= '2 s'"), vec!["line 4", "string"]),
            (changed("n = 18", "n = 15"), vec!["n is 15", "16 to 27"]),
            (changed("n = 18", "n = 28"), vec!["n is 28", "16 to 27"]),
            (changed("n = 18", "n = -1"), vec!["line 3", "-1"]),
            (with("count = 0"), vec!["count is 0", "from 1"]),
            (with("count = -1"), vec!["line 5", "-1"]),
            (with("count = 1.5"), vec!["line 5", "1.5"]),
            (with("count = 9_000_000_000"), vec!["count is 9000000000"]),
            (with("hours_per_day = 0"), vec!["hours_per_day is 0", "up to 24"]),
            (with("hours_per_day = -3"), vec!["hours_per_day is -3"]),
            (with("hours_per_day = 24.5"), vec!["hours_per_day is 24.5"]),
            (with("hours_per_day = nan"), vec!["hours_per_day is NaN"]),
            (with("hours = '8-18'"), vec!["'8-18'", "HH:MM-HH:MM"]),
            (with("hours = '08:00-18:00'\nhours_per_day = 9"), vec!["hours_per_day", "exclude"]),
            (with("watts = 0"), vec!["watts is 0"]),
            (with("watts = nan"), vec!["watts is NaN"]),
            (with("owner = ' '"), vec!["owner"]),
            (format!("{DEVICE}{DEVICE}"), vec!["two devices", "\"a\""]),
            (before("price_per_kwh = 0.3"), vec!["currency"]),
            (before("currency = 'EUR'"), vec!["price_per_kwh"]),
            (before("price_per_kwh = -1\ncurrency = 'EUR'"), vec!["price_per_kwh is -1"]),
            (before("start = '2027-01-01'"), vec!["line 1", "string"]),
            (before("start = 2027-01-01T08:00:00"), vec!["start", "without a time"]),
            (before("start = 2027-02-30"), vec!["line 1"]),
            (before("subproblems = 'sets'"), vec!["\"sets\"", "column-sets"]),
            (before("audit = 2"), vec!["audit is 2", "0 to 1"]),
            (before("assurance = nan"), vec!["assurance is NaN", "0 to 1"]),
            (before("coordinator = { n = 30, elapsed_s = 2 }"), vec!["coordinator", "n is 30"]),
        ] {
            let error = FleetFile::parse(&text, 28).expect_err(&text);
            assert_eq!(error.lines().count(), 1, "{error}");
            for word in words {
                assert!(error.contains(word), "{text}: no '{word}' in: {error}");
            }
        }
    }

    #[test]
    fn a_measured_board_is_not_larger_than_the_board_to_count() {
        assert!(FleetFile::parse(DEVICE, 18).is_ok());
        let error = FleetFile::parse(DEVICE, 17).expect_err("18 is larger");
        assert!(error.contains("16 to 17"), "{error}");
    }
}
