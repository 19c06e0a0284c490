//! Guests: workers without credentials, such as the web pages of strangers.
//!
//! A guest's owner stands for the network that it calls from, and its name is that of its owner
//! with a number. So whoever has a guest's name knows its owner, and all guests of a network share
//! one reputation. Both names begin with `guest:`; names of enrolled workers contain no colon.
//!
//! Whatever guests claim and however many they are, they cannot make a total wrong:
//!
//! 1. Every unit of a guest is checked by somebody who is not a guest: a worker that has enrolled,
//!    or the arbiter. If the total is not published, the whole unit is counted again, whatever the
//!    settings are; otherwise a spot check suffices, as for a new owner, and a total that differs
//!    from the published value is not a result. No job is finished while a unit of a guest is
//!    unconfirmed.
//! 2. A guest checks nothing, so it confirms neither another guest nor, under a second name, its
//!    own results as a worker.
//! 3. A guest is new for ever: its owner holds at most [`Settings::guest_units`] units that are
//!    leased or unconfirmed, and all guests together at most [`Settings::all_guests_units`].
//!
//! Guests cannot cost others much, either:
//!
//! - One false result puts the whole owner in quarantine. Its results are void unless others have
//!   confirmed them as a whole. No other owner's units are counted again because of it.
//! - All guests together have as many disputes at a time as a single worker's owner.
//! - If a total contradicts a published value, the unconfirmed units of guests are counted again
//!   before those of others.
//! - Failures of guests set no unit aside, and their rates do not change the leases of others.
//! - A guest only gets open units, never copies of units that others hold. After
//!   [`Settings::patience_ms`], or after three failures, its owner loses a unit that it has not
//!   counted, and does not get it again.
//!
//! [`Settings::guest_units`]: super::Settings::guest_units
//! [`Settings::patience_ms`]: super::Settings::patience_ms
//! [`Settings::all_guests_units`]: super::Settings::all_guests_units

use std::ops::Range;

use super::reputation::OwnerId;
use super::state::Campaign;
use super::unit_outcome::WHOLE;
use super::{UnitId, WorkerName, job::Job};
use crate::decomposition::JobHash;

/// The beginning of the names of guests and their owners.
const GUEST: &str = "guest:";

/// The number of failures after which the owner of a guest loses a unit.
const MOST_FAILURES: u64 = 3;

/// Returns whether this is the name of a guest or of an owner of guests.
pub fn is_guest(name: &str) -> bool {
    name.starts_with(GUEST)
}

/// Returns the name of a guest: the `number`th one of a network, which `network` identifies by
/// letters and digits.
pub fn guest_name(network: &str, number: u32) -> WorkerName {
    format!("{GUEST}{network}-{number}")
}

/// Returns the owner of a guest with this name.
pub fn guest_owner(guest: &str) -> &str {
    guest.rsplit_once('-').map_or(guest, |(owner, _)| owner)
}

/// The contribution of all guests to a job.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct GuestShare {
    /// The units in force that guests counted.
    pub units: u64,
    /// The part of them that others counted again, in units.
    pub rechecked: f64,
}

impl Campaign {
    /// Returns how many more units a guest may hold.
    pub(super) fn guest_quota(&self, owner: OwnerId) -> u64 {
        let unproven = |of: &dyn Fn(OwnerId) -> bool| -> u64 {
            let counted = self.jobs.values().filter(|job| job.state.is_counted());
            let of_owners = counted.flat_map(|job| &job.unproven);
            of_owners.filter(|(owner, _)| of(**owner)).map(|(_, units)| units).sum()
        };
        let own = self.leases.units_of(owner) + unproven(&|of| of == owner);
        let all = self.leases.units_of_guests() + unproven(&|of| self.reputation.is_guest(of));
        let settings = &self.settings;
        let left = settings.guest_units.saturating_sub(own);
        left.min(settings.all_guests_units.saturating_sub(all))
    }

    /// Returns the units of a job that the owner of a guest was leased too long ago, even in a
    /// lease that it gave back: others are to count them.
    pub(super) fn overdue_at_guest(&self, guest: &str, hash: JobHash, now_ms: u64) -> Vec<u64> {
        let owner = self.reputation.known_owner(guest, "").filter(|_| is_guest(guest));
        let Some((owner, job)) = owner.zip(self.jobs.get(&hash)) else { return Vec::new() };
        let is_late = |(of, since_ms): &(OwnerId, u64)| {
            *of == owner && now_ms.saturating_sub(*since_ms) > self.settings.patience_ms
        };
        let held = job.held_since.iter().filter(|(_, since)| since.iter().any(is_late));
        held.map(|(unit, _)| *unit).collect()
    }

    /// Records a failure of a guest on a unit: it takes a part of the time that its owner has for
    /// it.
    pub(super) fn record_failure_of_guest(&mut self, unit: UnitId, guest: &str) {
        let owner = self.reputation.known_owner(guest, "");
        let job = self.jobs.get_mut(&unit.job);
        let since = job.and_then(|job| job.held_since.get_mut(&unit.unit));
        let owners = since.into_iter().flatten();
        for (_, since_ms) in owners.filter(|(of, _)| Some(*of) == owner) {
            *since_ms = since_ms.saturating_sub(self.settings.patience_ms / MOST_FAILURES + 1);
        }
    }

    /// Returns whether any unit of a range is one of these.
    pub(super) fn is_overdue_at_guest(
        &self,
        guest: &str,
        hash: JobHash,
        units: &Range<u64>,
        now_ms: u64,
    ) -> bool {
        let overdue = self.overdue_at_guest(guest, hash, now_ms);
        overdue.iter().any(|unit| units.contains(unit))
    }

    /// Returns the contribution of guests to a job.
    pub(super) fn guest_share(&self, job: &Job) -> GuestShare {
        let of_guests =
            job.units.strata().filter(|((owner, _), _)| self.reputation.is_guest(*owner));
        of_guests.fold(GuestShare::default(), |GuestShare { units, rechecked }, (_, stratum)| {
            GuestShare {
                units: units + stratum.units,
                rechecked: rechecked + stratum.credit as f64 / WHOLE as f64,
            }
        })
    }
}

#[cfg(test)]
mod tests;
