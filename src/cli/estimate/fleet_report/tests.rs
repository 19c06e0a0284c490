use std::fs;
use std::path::Path;

use jiff::civil::date;

use super::*;
use crate::fleet::DeviceKind;

const TEXT: &str = "
    start = 2027-01-01
    price_per_kwh = 0.5
    currency = 'EUR'
    audit = 0
    [[device]]
    name = 'a'
    owner = 'lab'
    count = 10
    n = 18
    elapsed_s = 2
    watts = 100
    [[device]]
    name = 'b'
    owner = 'club'
    count = 5
    n = 18
    elapsed_s = 1
    hours_per_day = 12
";

const UNPUBLISHED: JobSize = JobSize { units: 1_000_000, sub_ranges: 32, is_published: false };

/// The days of a whole count for each second of the measured one. The campaign does not end at
/// midnight, where rounding would decide on which day it ends.
const DAYS: f64 = 501.3;

/// Returns the report of the file's fleet for a count that takes a device of the first kind 2 ×
/// 501.3 days at a million nodes a second.
fn report(text: &str, job: JobSize) -> FleetReport {
    let file = FleetFile::parse(text, 28).expect("a fleet");
    let days = |days: f64| DeviceTime { seconds: days * 86_400.0, ln_error: 0.0 };
    let kinds = file.devices.iter().map(|device| DeviceKind {
        name: device.name.clone(),
        owner: device.owner.clone(),
        count: device.count,
        whole_count: days(DAYS * device.measurement.elapsed_s),
        hours_per_day: device.hours_per_day,
        watts: device.watts,
    });
    let coordinator = file.coordinator.map(|one| days(DAYS * one.elapsed_s));
    let fleet = Fleet { kinds: kinds.collect(), coordinator, settings: file.settings };
    let start = file.start.unwrap_or(date(2027, 1, 1));
    FleetReport::of(&fleet, &file, job, (Subproblems::ColumnSets, 2.0 * DAYS * 8.64e10, start))
}

#[track_caller]
fn assert_close(found: f64, expected: f64) {
    assert!((found - expected).abs() <= 1e-9 * expected.abs(), "{found} for {expected}");
}

#[test]
fn a_report_has_the_sums_of_its_devices() {
    let found = report(TEXT, UNPUBLISHED);
    assert_eq!((found.units, found.owners, found.device_count), (1_000_000, 2, 15));
    // 10 devices make 1e6 nodes/s each, and 5 devices 2e6, but for half of the day.
    assert_close(found.nodes_per_s, 2e7);
    assert_close(found.nodes_per_s_all_day, 1.5e7);
    // Every unit is counted twice. The first owner has 2 of 3 parts of the rate, so that the other
    // must check every unit of it: 200.52 days.
    assert_close(found.checks_by_workers, 1.0);
    assert_eq!((found.checks_by_coordinator, found.limited_by), (0.0, Some("largest-owner")));
    assert_close(found.campaign_s, 0.4 * DAYS * 86_400.0);
    assert_eq!(found.completion.as_deref(), Some("2027-07-20"));
    assert_close(found.device_hours, (2.0 + 1.0) * DAYS * 24.0);
    assert_close(found.check_hours, DAYS * 24.0);
    assert_close(found.energy_kwh.expect("known"), 2.0 * DAYS * 2.4);
    assert_close(found.cost.expect("known"), DAYS * 2.4);
    assert_eq!(found.without_watts, ["b"]);
    let [a, b] = &found.devices[..] else { panic!("two kinds") };
    assert_close(a.share, 2.0 / 3.0);
    assert_close(b.nodes_per_s, 1e7);
    assert_eq!((b.energy_kwh, b.owner.as_deref()), (None, Some("club")));
}

#[test]
fn the_text_names_what_limits_the_campaign_and_what_the_file_does_not_say() {
    let text = report(TEXT, UNPUBLISHED).text(Path::new("fleet.toml"));
    for words in [
        "A campaign of this count on 15 devices of fleet.toml\n",
        "  units               1 000 000, of column sets\n",
        "  rate                2.00e7 nodes/s; 1.50e7 nodes/s averaged over a day\n",
        "  checks              100 % of the count by workers, 12 000 device-hours (2 owners, and the total is not published)\n",
        "  time                200 d 12 h (200 d 12 h to 200 d 12 h), limited by the checks of the largest owner's units\n",
        "  completion          2027-07-20 (2027-07-20 to 2027-07-20), from 2027-01-01\n",
        "  energy              2 410 kWh (2 410 kWh to 2 410 kWh), without b, whose watts are not given\n",
        "  cost of the energy  1 200 (1 200 to 1 200) EUR\n",
    ] {
        assert!(text.contains(words), "no '{words}' in:\n{text}");
    }
    let one_owner = TEXT.replace("'club'", "'lab'").replace("watts = 100", "");
    let text = report(&one_owner, UNPUBLISHED).text(Path::new("fleet.toml"));
    for words in [
        "none by workers, because all devices have the same owner",
        "nodes/s to keep up\n",
        ", if the coordinator keeps up\n",
        "unknown: the file gives no watts",
    ] {
        assert!(text.contains(words), "no '{words}' in:\n{text}");
    }
    assert!(!text.contains("cost of the energy") && !text.contains("limited"), "{text}");
}

#[test]
fn a_slow_coordinator_delays_the_campaign_of_one_owner() {
    let file = format!("coordinator = {{ n = 18, elapsed_s = 2 }}\nassurance = 1\n{TEXT}");
    let file = file.replace("'club'", "'lab'");
    let found = report(&file, UNPUBLISHED);
    // Its thread counts everything again.
    assert_eq!(found.limited_by, Some("coordinator"));
    assert_close(found.campaign_s, 2.0 * DAYS * 86_400.0);
    assert_close(found.coordinator_nodes_per_s.expect("measured"), 1e6);
    let text = found.text(Path::new("fleet.toml"));
    assert!(text.contains("100 % of the count in checks and"), "{text}");
    assert!(text.contains("limited by the checks of the coordinator"), "{text}");
}

#[test]
fn a_campaign_ends_on_a_day_of_the_calendar_or_after_it() {
    let start = date(2027, 1, 1);
    for (seconds, day) in [
        (0.0, Some(date(2027, 1, 1))),
        (86_399.0, Some(date(2027, 1, 1))),
        (31.5 * 86_400.0, Some(date(2027, 2, 1))),
        (1e12, None),
        (1e30, None),
    ] {
        assert_eq!(completion(start, seconds), day, "{seconds}");
    }
}

#[test]
fn large_numbers_have_three_digits_and_no_exponent() {
    for (value, text) in [
        (0.0, "0.00"),
        (12.34, "12.3"),
        (999.4, "999"),
        (1000.0, "1 000"),
        (12_345.0, "12 300"),
        (999_950.0, "1 000 000"),
        (2e15, "2.00e15"),
    ] {
        assert_eq!(whole(value), text);
    }
}

#[test]
fn the_example_file_is_a_fleet() {
    let text = include_str!("../../../../examples/fleet.toml");
    let file = FleetFile::parse(text, 28).expect("a fleet");
    assert_eq!(file.devices.len(), 3);
    assert!(file.price.is_some() && file.coordinator.is_some());
    // The documentation shows fields of it.
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/campaigns.md");
    let page = fs::read_to_string(page).expect("the documentation");
    let block = page.split("```toml\n").nth(1).and_then(|rest| rest.split("```").next());
    let block = block.expect("a file in the documentation");
    FleetFile::parse(block, 28).expect("a fleet");
}
