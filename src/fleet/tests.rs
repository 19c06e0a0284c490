use super::*;

/// Settings with round shares: every second unit is recounted in full by workers, nothing else.
fn settings() -> Settings {
    Settings {
        new_owner_units: 0,
        full_check: 0.5,
        spot_check: 0.0,
        audit: 0.0,
        owner_audits: 0,
        ..Settings::default()
    }
}

/// Returns devices that count everything in `hours` each.
fn kind(name: &str, owner: Option<&str>, count: u64, hours: f64) -> DeviceKind {
    DeviceKind {
        name: name.to_owned(),
        owner: owner.map(str::to_owned),
        count,
        whole_count: DeviceTime { seconds: hours * 3600.0, ln_error: 0.0 },
        hours_per_day: 24.0,
        watts: None,
    }
}

fn fleet(kinds: Vec<DeviceKind>) -> Fleet {
    Fleet { kinds, coordinator: None, settings: settings() }
}

const PUBLISHED: JobSize = JobSize { units: 1000, sub_ranges: 32, is_published: true };
const UNPUBLISHED: JobSize = JobSize { is_published: false, ..PUBLISHED };

#[track_caller]
fn assert_close(found: f64, expected: f64) {
    assert!((found - expected).abs() <= 1e-9 * expected.abs(), "{found} for {expected}");
}

#[test]
fn a_fleet_where_everything_divides_evenly() {
    // 10 devices for 12 hours a day and 5 all day, with a count in 300 and in 75 device-hours:
    // they make 12 × 10 / 300 = 0.4 and 24 × 5 / 75 = 1.6 counts a day, and 1.2 are needed.
    let slow =
        DeviceKind { hours_per_day: 12.0, watts: Some(50.0), ..kind("slow", Some("a"), 10, 300.0) };
    let fast = DeviceKind { watts: Some(200.0), ..kind("fast", Some("b"), 5, 75.0) };
    let fleet =
        Fleet { settings: Settings { full_check: 0.2, ..settings() }, ..fleet(vec![slow, fast]) };
    let cost = fleet.check_cost(PUBLISHED);
    assert_eq!(cost, CheckCost { by_workers: 0.2, by_coordinator: 0.0, audits: 0.0 });
    let found = fleet.forecast(PUBLISHED, 0.0);
    // 1.2 counts at 2 counts a day.
    assert_close(found.seconds, 0.6 * 86_400.0);
    assert_eq!((found.devices_s, found.bottleneck), (found.seconds, None));
    let [slow, fast] = &found.kinds[..] else { panic!("two kinds") };
    assert_close(slow.share, 0.2);
    assert_close(fast.share, 0.8);
    assert_close(slow.device_hours, 10.0 * 12.0 * 0.6);
    assert_close(fast.device_hours, 5.0 * 24.0 * 0.6);
    assert_close(found.device_hours, 144.0);
    // A sixth of the work.
    assert_close(found.check_hours, 24.0);
    assert_close(slow.energy_kwh.expect("known"), 3.6);
    assert_close(fast.energy_kwh.expect("known"), 14.4);
    assert_close(found.energy_kwh.expect("known"), 18.0);
}

#[test]
fn the_energy_is_that_of_the_kinds_whose_power_is_known() {
    let with = DeviceKind { watts: Some(100.0), ..kind("with", None, 1, 10.0) };
    let without = kind("without", None, 1, 10.0);
    let found = fleet(vec![with, without.clone()]).forecast(PUBLISHED, 0.0);
    assert_close(found.energy_kwh.expect("known of one"), 0.5);
    assert_eq!(found.kinds[1].energy_kwh, None);
    assert_eq!(fleet(vec![without]).forecast(PUBLISHED, 0.0).energy_kwh, None);
}

#[test]
fn units_without_a_published_total_are_counted_twice_once_there_are_several_owners() {
    let equal = |owners: [Option<&str>; 2]| {
        fleet(vec![kind("one", owners[0], 1, 100.0), kind("other", owners[1], 1, 100.0)])
    };
    let two = equal([Some("a"), None]);
    assert_eq!(two.owners(), 2);
    assert_close(two.check_cost(UNPUBLISHED).by_workers, 1.0);
    assert_close(two.check_cost(PUBLISHED).by_workers, 0.5);
    assert_close(two.forecast(UNPUBLISHED, 0.0).seconds, 100.0 * 3600.0);
    for same in [equal([None, None]), equal([Some("a"), Some("a")])] {
        assert_eq!(same.owners(), 1);
        let cost = same.check_cost(UNPUBLISHED);
        assert_eq!(cost, CheckCost { by_workers: 0.0, by_coordinator: 0.5, audits: 0.0 });
        assert_close(same.forecast(UNPUBLISHED, 0.0).seconds, 50.0 * 3600.0);
    }
    let partly = Settings { assurance: Some(0.75), ..settings() };
    let partly = Fleet { settings: partly, ..two };
    assert_close(partly.check_cost(UNPUBLISHED).by_workers, 0.75);
}

#[test]
fn the_usual_settings_have_the_costs_of_the_documentation() {
    // docs/trust.md: 1 % in full, else 1 in 4 units 2 of 32 sub-ranges, both by workers; 1 % in
    // full and 1 % by 2 of 32 sub-ranges by the coordinator.
    let usual = Fleet {
        settings: Settings::default(),
        ..fleet(vec![kind("one", Some("a"), 1, 1.0), kind("other", Some("b"), 1, 1.0)])
    };
    let many = JobSize { units: u64::MAX, ..PUBLISHED };
    let cost = usual.check_cost(many);
    assert_close(cost.by_workers, 0.01 + 0.99 * 0.25 / 16.0);
    assert_close(cost.audits, 0.01 + 0.99 * 0.01 / 16.0);
    // Ten units of each owner are from its time as a new one. Six are audited in part.
    let few = usual.check_cost(JobSize { units: 100, ..PUBLISHED });
    let (new, other) = (0.01 + 0.99 / 16.0, 0.01 + 0.99 * 0.25 / 16.0);
    assert_close(few.by_workers, 0.2 * new + 0.8 * other);
    let (new, other) = (0.01 + 0.99 * 0.3 / 16.0, 0.01 + 0.99 * 0.06 / 16.0);
    assert_close(few.audits, 0.2 * new + 0.8 * other);
    // A unit with a single sub-range is checked as a whole.
    let whole = usual.check_cost(JobSize { sub_ranges: 1, ..many });
    assert_close(whole.by_workers, 0.01 + 0.99 * 0.25);
}

#[test]
fn no_owner_checks_its_own_units() {
    // The large owner makes nine of ten counts, and the other must check each of its units.
    let watts = |kind| DeviceKind { watts: Some(1000.0), ..kind };
    let large = watts(kind("large", Some("a"), 9, 90.0));
    let small = watts(kind("small", Some("b"), 1, 90.0));
    let found = fleet(vec![large, small]).forecast(UNPUBLISHED, 0.0);
    assert_eq!(found.bottleneck, Some(Bottleneck::LargestOwner));
    assert_close(found.seconds, 90.0 * 3600.0);
    // The large owner counts everything once and waits.
    assert_close(found.kinds[0].device_hours, 90.0);
    assert_eq!(found.kinds[0].check_hours, 0.0);
    assert_close(found.kinds[1].check_hours, 90.0);
    assert_close(found.check_hours, 90.0);
    assert_close(found.energy_kwh.expect("known"), 180.0);
}

#[test]
fn a_campaign_of_one_owner_waits_for_the_checks_of_a_slow_coordinator() {
    let with = |hours: f64| Fleet {
        coordinator: Some(DeviceTime { seconds: hours * 3600.0, ln_error: 0.0 }),
        ..fleet(vec![kind("one", None, 100, 100.0)])
    };
    // The devices take an hour. The coordinator makes half of the count again.
    let found = with(2.0).forecast(PUBLISHED, 0.0);
    assert_close(found.seconds, 3600.0);
    assert_eq!(found.bottleneck, None);
    let found = with(8.0).forecast(PUBLISHED, 0.0);
    assert_close(found.seconds, 4.0 * 3600.0);
    assert_close(found.devices_s, 3600.0);
    assert_eq!(found.bottleneck, Some(Bottleneck::Coordinator));
    assert_close(found.device_hours, 100.0);
}

#[test]
fn the_bounds_follow_from_the_errors_of_the_times() {
    let uncertain = |name: &str, ln_error| {
        let mut kind = kind(name, None, 1, 10.0);
        kind.whole_count.ln_error = ln_error;
        kind
    };
    let found = fleet(vec![uncertain("one", 0.5), uncertain("other", 0.5)]);
    let expected = found.forecast(PUBLISHED, 0.0);
    let most = found.forecast(PUBLISHED, 2.0);
    assert_close(most.seconds / expected.seconds, std::f64::consts::E);
    assert_close(most.device_hours / expected.device_hours, std::f64::consts::E);
    // The certain device has a larger share if the other is slow.
    let mixed = fleet(vec![uncertain("one", 0.0), uncertain("other", 2.0_f64.ln())]);
    let most = mixed.forecast(PUBLISHED, 1.0);
    assert_close(most.kinds[0].share, 2.0 / 3.0);
    assert_close(most.seconds, 3600.0 * 20.0 / 3.0);
}
