//! Forecasts of campaigns: the time, the energy and the checks of a count on a fleet of devices.
//!
//! A device counts a part of each day, at a measured rate. Let W be the work of the count, counted
//! once, and c the checks that workers make, as a share of W. Let R be the rate of all devices, and
//! A that of the owner with the fastest devices. The fleet takes (1 + c) W / R. Since no owner
//! checks its own units, it also takes at least c W / (R − A): if the largest owner counted every
//! unit first, the others would have all the checks to make. If there is a single owner, no worker
//! can check; then the coordinator makes the checks, on one thread.
//!
//! [`Settings`] has the rules of the checks, of which this module computes the mean cost if nobody
//! lies and no worker fails. A unit of an owner is checked more often while the owner is new.

use std::collections::BTreeMap;

use crate::cluster::campaign::Settings;

/// Devices of one kind, which belong to one owner.
#[derive(Clone, Debug, PartialEq)]
pub struct DeviceKind {
    /// The name.
    pub name: String,
    /// The owner; all devices without a named owner have the same one.
    pub owner: Option<String>,
    /// The number of devices.
    pub count: u64,
    /// The time in which one device alone would count everything once, without a pause.
    pub whole_count: DeviceTime,
    /// The hours of a day in which they count.
    pub hours_per_day: f64,
    /// The power of one device while it counts, if it is known.
    pub watts: Option<f64>,
}

/// The time of a device for a whole count.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DeviceTime {
    /// The expected time in seconds.
    pub seconds: f64,
    /// The standard error of the logarithm of the time.
    pub ln_error: f64,
}

impl DeviceTime {
    /// Returns the time that is exceeded with the probability of a standard normal deviate above
    /// `deviate`.
    fn at(self, deviate: f64) -> f64 {
        self.seconds * (deviate * self.ln_error).exp()
    }
}

/// The job of a campaign.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JobSize {
    /// The number of units.
    pub units: u64,
    /// The number of sub-ranges of a unit.
    pub sub_ranges: u64,
    /// True if the total is published.
    pub is_published: bool,
}

/// A fleet of devices.
#[derive(Clone, Debug, PartialEq)]
pub struct Fleet {
    /// The kinds of devices; at least one.
    pub kinds: Vec<DeviceKind>,
    /// The time in which the thread of the arbiter would count everything once, if it is known.
    pub coordinator: Option<DeviceTime>,
    /// The settings of the coordinator.
    pub settings: Settings,
}

/// The mean cost of the checks, as shares of the work of counting everything once.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CheckCost {
    /// The checks that workers of other owners make.
    pub by_workers: f64,
    /// The checks that the coordinator makes in their place, because there is a single owner.
    pub by_coordinator: f64,
    /// The audits. The coordinator makes fewer if its processor cannot keep up.
    pub audits: f64,
}

/// The reason why a campaign takes longer than its devices need for their work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bottleneck {
    /// One owner has most of the rate, and its units must be checked by the others.
    LargestOwner,
    /// The coordinator makes the checks.
    Coordinator,
}

/// The part of a kind of devices in a campaign.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct KindForecast {
    /// The rate of all devices of the kind, averaged over a day, as a share of that of the fleet.
    pub share: f64,
    /// The hours in which they count, summed over the devices.
    pub device_hours: f64,
    /// The part of `device_hours` for checks.
    pub check_hours: f64,
    /// Their energy in kWh, if their power is known.
    pub energy_kwh: Option<f64>,
}

/// The forecast of a campaign.
#[derive(Clone, Debug, PartialEq)]
pub struct FleetForecast {
    /// The wall-clock time in seconds.
    pub seconds: f64,
    /// The same without waiting for the coordinator.
    pub devices_s: f64,
    /// The hours of all devices, for first counts and for checks.
    pub device_hours: f64,
    /// The part of `device_hours` for checks.
    pub check_hours: f64,
    /// The energy in kWh of the kinds whose power is known; `None` if it is known of none.
    pub energy_kwh: Option<f64>,
    /// The kinds of devices, in the order of the fleet.
    pub kinds: Vec<KindForecast>,
    /// The reason why devices must wait, if they must.
    pub bottleneck: Option<Bottleneck>,
}

impl Fleet {
    /// Returns the number of owners.
    pub fn owners(&self) -> usize {
        self.rates(0.0).1.len()
    }

    /// Returns the mean cost of the checks of a job.
    pub fn check_cost(&self, job: JobSize) -> CheckCost {
        let settings = &self.settings;
        let owners = self.owners();
        let target = settings.target(job.is_published, || owners >= 2);
        let sub_ranges = job.sub_ranges.max(1);
        let spot = u64::from(settings.spot_sub_ranges).min(sub_ranges) as f64 / sub_ranges as f64;
        let cost = |is_new| {
            let chances = settings.check_probabilities(target, is_new, owners, job.units);
            let of = |full: f64, part: f64| full + (1.0 - full) * part * spot;
            let checks = of(chances.full_check, chances.spot_check);
            [checks, of(chances.full_audit, chances.spot_audit)]
        };
        let units_of_new = settings.new_owner_units.saturating_mul(owners as u64);
        let new = units_of_new.min(job.units) as f64 / job.units.max(1) as f64;
        let ([new_checks, new_audits], [checks, audits]) = (cost(true), cost(false));
        let mean = |of_new: f64, of_other: f64| new * of_new + (1.0 - new) * of_other;
        let (checks, audits) = (mean(new_checks, checks), mean(new_audits, audits));
        let (by_workers, by_coordinator) = if owners < 2 { (0.0, checks) } else { (checks, 0.0) };
        CheckCost { by_workers, by_coordinator, audits }
    }

    /// Returns the rate of each kind and of each owner, in counts of everything a second, averaged
    /// over a day, where the times deviate by `deviate` standard errors.
    fn rates(&self, deviate: f64) -> (Vec<f64>, BTreeMap<Option<&str>, f64>) {
        let rate = |kind: &DeviceKind| {
            kind.count as f64 * kind.hours_per_day / 24.0 / kind.whole_count.at(deviate)
        };
        let mut of_owner = BTreeMap::new();
        for kind in &self.kinds {
            *of_owner.entry(kind.owner.as_deref()).or_default() += rate(kind);
        }
        (self.kinds.iter().map(rate).collect(), of_owner)
    }

    /// Returns the forecast of a campaign, if the times of all devices deviate from the expected
    /// ones by `deviate` standard errors: 0 for the expected campaign, 1.645 and −1.645 for the
    /// bounds of a 90 % interval.
    pub fn forecast(&self, job: JobSize, deviate: f64) -> FleetForecast {
        let cost = self.check_cost(job);
        let (rates, of_owner) = self.rates(deviate);
        let all: f64 = rates.iter().sum();
        let largest = of_owner.iter().max_by(|(_, one), (_, other)| one.total_cmp(other));
        let (largest, of_largest) = largest.map_or((None, 0.0), |(owner, rate)| (*owner, *rate));
        let of_others = all - of_largest;
        let work = 1.0 + cost.by_workers;
        let (mut seconds, mut bottleneck) = (work / all, None);
        let is_limited = of_owner.len() > 1 && cost.by_workers / of_others > seconds;
        if is_limited {
            (seconds, bottleneck) = (cost.by_workers / of_others, Some(Bottleneck::LargestOwner));
        }
        // The first counts and the checks that a kind makes, as shares of all first counts.
        let work_of = |kind: &DeviceKind, rate: f64| match kind.owner.as_deref() == largest {
            _ if !is_limited => (rate / all, cost.by_workers * rate / all),
            true => (rate / of_largest, 0.0),
            false => (0.0, cost.by_workers * rate / of_others),
        };
        let kinds = self.kinds.iter().zip(&rates).map(|(kind, &rate)| {
            let (counts, checks) = work_of(kind, rate);
            let hours = kind.whole_count.at(deviate) / 3600.0;
            let device_hours = (counts + checks) * hours;
            let energy_kwh = kind.watts.map(|watts| watts * device_hours / 1000.0);
            KindForecast {
                share: rate / all,
                device_hours,
                check_hours: checks * hours,
                energy_kwh,
            }
        });
        let kinds: Vec<KindForecast> = kinds.collect();
        let devices_s = seconds;
        if let Some(thread) = self.coordinator {
            let needed = cost.by_coordinator * thread.at(deviate);
            if needed > seconds {
                (seconds, bottleneck) = (needed, Some(Bottleneck::Coordinator));
            }
        }
        FleetForecast {
            seconds,
            devices_s,
            device_hours: kinds.iter().map(|kind| kind.device_hours).sum(),
            check_hours: kinds.iter().map(|kind| kind.check_hours).sum(),
            energy_kwh: kinds.iter().filter_map(|kind| kind.energy_kwh).reduce(|sum, of| sum + of),
            kinds,
            bottleneck,
        }
    }
}

#[cfg(test)]
mod tests;
