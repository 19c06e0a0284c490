//! The report of `estimate --fleet`: a campaign on a fleet of devices, as text and as JSON.

use std::path::Path;

use jiff::civil::Date;
use jiff::{Span, Zoned};
use serde::Serialize;

use super::fleet_file::{FleetFile, Measurement};
use crate::board::Problem;
use crate::cli::Failure;
use crate::cli::bench::aligned;
use crate::decomposition::{JobError, Subproblems};
use crate::engine::{Mean, count_growth, fastest_subproblems, plan_for_campaign};
use crate::fleet::{Bottleneck, DeviceKind, DeviceTime, Fleet, FleetForecast, JobSize};
use crate::oeis::{Sequence, lookup};
use crate::report::{counted, grouped, rounded, time};

/// A campaign on a fleet. Serialised, it is the field `fleet` of `--json`.
#[derive(Debug, Serialize)]
pub(super) struct FleetReport {
    subproblems: &'static str,
    units: u64,
    published: bool,
    owners: usize,
    device_count: u64,
    nodes_per_s: f64,
    nodes_per_s_all_day: f64,
    checks_by_workers: f64,
    checks_by_coordinator: f64,
    audits: f64,
    check_hours: f64,
    coordinator_hours: Option<f64>,
    coordinator_nodes_per_s: Option<f64>,
    coordinator_needed_nodes_per_s: f64,
    limited_by: Option<&'static str>,
    campaign_s: f64,
    campaign_least_s: f64,
    campaign_most_s: f64,
    start: String,
    completion: Option<String>,
    completion_least: Option<String>,
    completion_most: Option<String>,
    device_hours: f64,
    device_hours_least: f64,
    device_hours_most: f64,
    energy_kwh: Option<f64>,
    energy_least_kwh: Option<f64>,
    energy_most_kwh: Option<f64>,
    without_watts: Vec<String>,
    currency: Option<String>,
    cost: Option<f64>,
    cost_least: Option<f64>,
    cost_most: Option<f64>,
    devices: Vec<DeviceReport>,
}

/// The part of a kind of devices.
#[derive(Debug, Serialize)]
struct DeviceReport {
    name: String,
    owner: Option<String>,
    count: u64,
    hours_per_day: f64,
    nodes_per_s: f64,
    share: f64,
    device_hours: f64,
    energy_kwh: Option<f64>,
}

/// Returns the time of a device for the whole count of a problem, from the count that was measured.
fn whole_count(
    measured: Measurement,
    problem: &Problem,
    subproblems: Subproblems,
) -> Result<DeviceTime, JobError> {
    let growth = count_growth(measured.n, problem.n(), subproblems)?;
    Ok(DeviceTime { seconds: measured.elapsed_s * growth.ln.exp(), ln_error: growth.error })
}

/// Returns the day on which a time after the beginning of `start` ends, if the calendar has it.
fn completion(start: Date, seconds: f64) -> Option<Date> {
    // The cast saturates.
    let days = Span::new().try_days((seconds / 86_400.0) as i64).ok()?;
    start.checked_add(days).ok()
}

impl FleetReport {
    /// Creates the report of the count of an empty board of queens with this estimate of its nodes.
    /// This takes seconds for large boards.
    ///
    /// # Errors
    /// The board is too large to count.
    pub(super) fn new(file: &FleetFile, problem: &Problem, nodes: Mean) -> Result<Self, Failure> {
        let subproblems = file.subproblems.unwrap_or_else(|| fastest_subproblems(problem));
        let planned = plan_for_campaign(problem, subproblems).map_err(Failure::usage)?;
        let job = JobSize {
            units: planned.units(),
            // Those of the first unit; at most the last one is smaller.
            sub_ranges: planned.sub_ranges(0).len() as u64,
            is_published: lookup(Sequence::Total, problem.n()).is_some(),
        };
        let time = |measured| whole_count(measured, problem, subproblems);
        let kinds = file.devices.iter().map(|device| {
            let whole_count = time(device.measurement)?;
            let (name, owner) = (device.name.clone(), device.owner.clone());
            let (count, hours_per_day) = (device.count, device.hours_per_day);
            Ok(DeviceKind { name, owner, count, whole_count, hours_per_day, watts: device.watts })
        });
        let kinds = kinds.collect::<Result<Vec<DeviceKind>, JobError>>().map_err(Failure::usage)?;
        let coordinator = file.coordinator.map(time).transpose().map_err(Failure::usage)?;
        let fleet = Fleet { kinds, coordinator, settings: file.settings };
        let start = file.start.unwrap_or_else(|| Zoned::now().date());
        Ok(Self::of(&fleet, file, job, (subproblems, nodes.mean, start)))
    }

    /// Creates the report of a fleet.
    fn of(
        fleet: &Fleet,
        file: &FleetFile,
        job: JobSize,
        (subproblems, nodes, start): (Subproblems, f64, Date),
    ) -> Self {
        /// The half-width of a 90 % interval in standard errors.
        const HALF: f64 = 1.645;
        let checks = fleet.check_cost(job);
        let bounds = [0.0, -HALF, HALF].map(|deviate| fleet.forecast(job, deviate));
        let of = |value: fn(&FleetForecast) -> f64| bounds.each_ref().map(value);
        let [campaign_s, campaign_least_s, campaign_most_s] = of(|found| found.seconds);
        let [device_hours, device_hours_least, device_hours_most] = of(|found| found.device_hours);
        let energy = bounds.each_ref().map(|found| found.energy_kwh);
        let [energy_kwh, energy_least_kwh, energy_most_kwh] = energy;
        let price = file.price.as_ref();
        let cost = energy.map(|kwh| Some(price?.per_kwh * kwh?));
        let ends = of(|found| found.seconds).map(|s| Some(completion(start, s)?.to_string()));
        let [completion, completion_least, completion_most] = ends;
        let [expected, ..] = &bounds;
        let by_coordinator = checks.by_coordinator + checks.audits;
        let rate = |kind: &DeviceKind| kind.count as f64 * nodes / kind.whole_count.seconds;
        let rates: Vec<f64> = fleet.kinds.iter().map(rate).collect();
        let all_day = fleet.kinds.iter().zip(&rates);
        let devices = fleet.kinds.iter().zip(&expected.kinds).zip(&rates);
        let devices = devices.map(|((kind, part), &nodes_per_s)| DeviceReport {
            name: kind.name.clone(),
            owner: kind.owner.clone(),
            count: kind.count,
            hours_per_day: kind.hours_per_day,
            nodes_per_s,
            share: part.share,
            device_hours: part.device_hours,
            energy_kwh: part.energy_kwh,
        });
        Self {
            subproblems: subproblems.name(),
            units: job.units,
            published: job.is_published,
            owners: fleet.owners(),
            device_count: fleet.kinds.iter().map(|kind| kind.count).sum(),
            nodes_per_s: rates.iter().sum(),
            nodes_per_s_all_day: all_day.map(|(kind, rate)| rate * kind.hours_per_day / 24.0).sum(),
            checks_by_workers: checks.by_workers,
            checks_by_coordinator: checks.by_coordinator,
            audits: checks.audits,
            check_hours: expected.check_hours,
            coordinator_hours: fleet.coordinator.map(|one| by_coordinator * one.seconds / 3600.0),
            coordinator_nodes_per_s: fleet.coordinator.map(|one| nodes / one.seconds),
            coordinator_needed_nodes_per_s: by_coordinator * nodes / expected.devices_s,
            limited_by: expected.bottleneck.map(|bottleneck| match bottleneck {
                Bottleneck::LargestOwner => "largest-owner",
                Bottleneck::Coordinator => "coordinator",
            }),
            campaign_s,
            campaign_least_s,
            campaign_most_s,
            start: start.to_string(),
            completion,
            completion_least,
            completion_most,
            device_hours,
            device_hours_least,
            device_hours_most,
            energy_kwh,
            energy_least_kwh,
            energy_most_kwh,
            without_watts: {
                let without = fleet.kinds.iter().filter(|kind| kind.watts.is_none());
                without.map(|kind| kind.name.clone()).collect()
            },
            currency: price.map(|price| price.currency.clone()),
            cost: cost[0],
            cost_least: cost[1],
            cost_most: cost[2],
            devices: devices.collect(),
        }
    }

    /// Returns the report in words.
    pub(super) fn text(&self, path: &Path) -> String {
        let mut lines = vec![format!(
            "\nA campaign of this count on {} of {}",
            counted(self.device_count.into(), "device"),
            path.display()
        )];
        let mut line = |name: &str, value: String| lines.push(format!("  {name:<19} {value}"));
        let of = if self.subproblems == "column-sets" { "column sets" } else { self.subproblems };
        line("units", format!("{}, of {of}", grouped(self.units.into())));
        let [rate, all_day] = [self.nodes_per_s, self.nodes_per_s_all_day].map(rounded);
        line("rate", format!("{rate} nodes/s; {all_day} nodes/s averaged over a day"));
        line("checks", self.checks());
        line("coordinator", self.coordinator());
        let interval = |value: f64, least: f64, most: f64, of: fn(f64) -> String| {
            format!("{} ({} to {})", of(value), of(least), of(most))
        };
        let bounds = (self.campaign_s, self.campaign_least_s, self.campaign_most_s);
        line("time", interval(bounds.0, bounds.1, bounds.2, time) + self.reason());
        let day = |day: &Option<String>| day.clone().unwrap_or_else(|| "after 9999".to_owned());
        let [completion, least, most] =
            [&self.completion, &self.completion_least, &self.completion_most].map(day);
        line("completion", format!("{completion} ({least} to {most}), from {}", self.start));
        let bounds = (self.device_hours, self.device_hours_least, self.device_hours_most);
        line("device-hours", interval(bounds.0, bounds.1, bounds.2, whole));
        let energy = (self.energy_kwh, self.energy_least_kwh, self.energy_most_kwh);
        if let (Some(value), Some(least), Some(most)) = energy {
            let without = match &self.without_watts[..] {
                [] => String::new(),
                names => format!(", without {}, whose watts are not given", names.join(", ")),
            };
            let kwh = |value| whole(value) + " kWh";
            line("energy", interval(value, least, most, kwh) + &without);
        } else {
            line("energy", "unknown: the file gives no watts".to_owned());
        }
        let cost = (self.cost, self.cost_least, self.cost_most);
        if let (Some(value), Some(least), Some(most)) = cost {
            let currency = self.currency.as_deref().unwrap_or_default();
            line("cost of the energy", interval(value, least, most, whole) + " " + currency);
        }
        lines.push(String::new());
        lines.extend(aligned(&self.rows()));
        lines.join("\n") + "\n"
    }

    /// Returns the cost of the checks by workers.
    fn checks(&self) -> String {
        if self.owners < 2 {
            return "none by workers, because all devices have the same owner".to_owned();
        }
        format!(
            "{} of the count by workers, {} device-hours ({}, and the total is {}published)",
            share(self.checks_by_workers),
            whole(self.check_hours),
            counted(self.owners as u128, "owner"),
            if self.published { "" } else { "not " }
        )
    }

    /// Returns the cost of the checks and audits by the coordinator.
    fn coordinator(&self) -> String {
        let checks = match self.checks_by_coordinator {
            0.0 => String::new(),
            checks => format!("{} of the count in checks and ", share(checks)),
        };
        let needed = self.coordinator_needed_nodes_per_s;
        let time = match (self.coordinator_hours, self.coordinator_nodes_per_s) {
            (Some(hours), Some(rate)) => format!(
                "{} hours of its thread, which keeps up with {} of this",
                whole(hours),
                share((rate / needed).min(1.0))
            ),
            _ => format!("its thread must count {} nodes/s to keep up", rounded(needed)),
        };
        format!("{checks}{} of the count in audits; {time}", share(self.audits))
    }

    /// Returns the reason why devices wait, if they do, or the condition under which they do not.
    fn reason(&self) -> &'static str {
        match self.limited_by {
            Some("coordinator") => ", limited by the checks of the coordinator",
            Some(_) => ", limited by the checks of the largest owner's units",
            None if self.owners < 2 && self.coordinator_hours.is_none() => {
                ", if the coordinator keeps up"
            }
            None => "",
        }
    }

    /// Returns the rows of the table of devices.
    fn rows(&self) -> Vec<[String; 8]> {
        let head =
            ["device", "owner", "number", "h/day", "nodes/s", "share", "device-hours", "energy"];
        let mut rows = vec![head.map(str::to_owned)];
        rows.extend(self.devices.iter().map(|device| {
            [
                device.name.clone(),
                device.owner.clone().unwrap_or_else(|| "—".to_owned()),
                grouped(device.count.into()),
                rounded(device.hours_per_day),
                rounded(device.nodes_per_s),
                share(device.share),
                whole(device.device_hours),
                device.energy_kwh.map_or_else(|| "—".to_owned(), |kwh| whole(kwh) + " kWh"),
            ]
        }));
        rows
    }
}

/// Formats a share: "2.5 %".
fn share(share: f64) -> String {
    format!("{} %", rounded(100.0 * share))
}

/// Formats a number with three digits and, from a thousand on, without an exponent: "12 300".
fn whole(value: f64) -> String {
    if !(1000.0..1e15).contains(&value) {
        return rounded(value);
    }
    let unit = 10.0_f64.powf(value.log10().floor() - 2.0);
    // The value is below the limit.
    grouped(((value / unit).round() * unit).round() as u128)
}

#[cfg(test)]
mod tests;
