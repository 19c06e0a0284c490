//! A volunteer: when it is awake, and what it counts.

use nqueens::cluster::campaign::{Assignment, HeldLease, SyncRequest};
use nqueens::decomposition::JobHash;

pub(crate) const DAY_MS: u64 = 86_400_000;

/// The mean time after which a volunteer leaves, in days.
const STAYS_DAYS: f64 = 120.0;

/// The share of the volunteers that lie, and of the units in which they do.
const LIARS: f64 = 0.01;
const LIES: f64 = 0.1;

/// A lease, and what is left to do of it.
#[derive(Debug)]
pub(crate) struct Held {
    pub(crate) lease: Assignment,
    /// The next unit to be started.
    next: u64,
    /// The units whose results are not acknowledged.
    pub(crate) left: u64,
}

/// A unit in progress.
#[derive(Debug)]
pub(crate) struct Counting {
    pub(crate) lease: Assignment,
    pub(crate) unit: u64,
    /// The time that is left at the last change of `since_ms`, in ms.
    left_ms: u64,
    since_ms: u64,
}

/// A volunteer with one worker.
#[derive(Debug)]
pub(crate) struct Volunteer {
    pub(crate) name: String,
    /// Units per second while it is awake.
    pub(crate) rate: f64,
    is_liar: bool,
    /// The share of the day for which it is awake, and the time at which that begins.
    awake: f64,
    day_starts_ms: u64,
    leaves_ms: u64,
    pub(crate) held: Vec<Held>,
    pub(crate) counting: Option<Counting>,
    pub(crate) next_sync_ms: u64,
    pub(crate) is_quarantined: bool,
}

impl Volunteer {
    /// Creates a volunteer that joins at `now_ms`.
    pub(crate) fn join(number: u64, rate: f64, now_ms: u64, random: &mut fastrand::Rng) -> Self {
        let stays_days = -STAYS_DAYS * (1.0 - random.f64()).ln();
        Self {
            name: format!("volunteer-{number:07}"),
            rate,
            is_liar: random.f64() < LIARS,
            awake: 0.25 + 0.75 * random.f64(),
            day_starts_ms: random.u64(..DAY_MS),
            leaves_ms: now_ms + (stays_days * DAY_MS as f64) as u64 + 1,
            held: Vec::new(),
            counting: None,
            next_sync_ms: now_ms,
            is_quarantined: false,
        }
    }

    /// Returns whether it has left, or is of no more use.
    pub(crate) fn is_gone(&self, now_ms: u64) -> bool {
        self.leaves_ms <= now_ms || self.is_quarantined
    }

    /// Returns whether it is awake, and when that changes.
    fn awake_until(&self, now_ms: u64) -> (bool, u64) {
        let of_day = (now_ms + DAY_MS - self.day_starts_ms) % DAY_MS;
        let sleeps_at = (self.awake * DAY_MS as f64) as u64;
        if of_day < sleeps_at {
            (true, now_ms + sleeps_at - of_day)
        } else {
            (false, now_ms + DAY_MS - of_day)
        }
    }

    pub(crate) fn is_awake(&self, now_ms: u64) -> bool {
        self.awake_until(now_ms).0
    }

    /// Returns its average rate, in units per second.
    pub(crate) fn average_rate(&self) -> f64 {
        self.rate * self.awake
    }

    /// Returns whether it is to falsify its next result.
    pub(crate) fn lies(&self, random: &mut fastrand::Rng) -> bool {
        self.is_liar && random.f64() < LIES
    }

    /// Lets the unit in progress advance for the time that it was awake since the last call.
    /// `was_awake` says whether it was.
    pub(crate) fn advance(&mut self, now_ms: u64, was_awake: bool) {
        if let Some(counting) = &mut self.counting {
            if was_awake {
                let passed = now_ms - counting.since_ms;
                counting.left_ms = counting.left_ms.saturating_sub(passed);
            }
            counting.since_ms = now_ms;
        }
    }

    /// Removes and returns the unit in progress if it is complete.
    pub(crate) fn take_complete(&mut self) -> Option<Counting> {
        self.counting.take_if(|counting| counting.left_ms == 0)
    }

    /// Starts the next unit, that of a check if there is one.
    pub(crate) fn start_next(&mut self, now_ms: u64) {
        let waiting = self.held.iter_mut().filter(|held| held.next < held.lease.units.end);
        let Some(held) = waiting.min_by_key(|held| !held.lease.mirrored) else { return };
        let unit = held.next;
        held.next += 1;
        let share = match held.lease.sub_ranges.len() {
            0 => 1.0,
            some => some as f64 / f64::from(crate::world::SUB_RANGES),
        };
        let left_ms = (1000.0 * share / self.rate).ceil() as u64;
        let lease = held.lease.clone();
        self.counting = Some(Counting { lease, unit, left_ms, since_ms: now_ms });
    }

    /// Records that a result of a lease was acknowledged.
    pub(crate) fn acknowledged(&mut self, attempt: u64) {
        if let Some(held) = self.held.iter_mut().find(|held| held.lease.attempt == attempt) {
            held.left -= 1;
        }
        self.held.retain(|held| held.left > 0);
    }

    /// Returns the number of units that it has not started.
    pub(crate) fn unstarted(&self) -> u64 {
        self.held.iter().map(|held| held.lease.units.end.saturating_sub(held.next)).sum()
    }

    /// Returns its sync.
    pub(crate) fn sync(&self, job: JobHash) -> SyncRequest {
        let held = self.held.iter().map(|held| HeldLease {
            lease: held.lease.clone(),
            left: held.left,
            unstarted: held.lease.units.end.saturating_sub(held.next),
        });
        SyncRequest {
            worker: self.name.clone(),
            owner: self.name.clone(),
            address: None,
            boot: 1,
            capacity: 1,
            kernels: vec!["avx512".to_owned()],
            devices: vec!["cpu".to_owned()],
            units_per_s: vec![(job, self.rate)],
            held: held.collect(),
            draining: false,
        }
    }

    /// Takes the leases that it is to hold from the answer to a sync.
    pub(crate) fn receive(&mut self, desired: Vec<Assignment>, cancel: &[u64]) {
        self.held.retain(|held| !cancel.contains(&held.lease.attempt));
        for lease in desired {
            match self.held.iter_mut().find(|held| held.lease.attempt == lease.attempt) {
                Some(held) => {
                    held.left -= held.lease.units.end - lease.units.end;
                    held.lease.units = lease.units;
                }
                None => {
                    let (next, left) = (lease.units.start, lease.units.end - lease.units.start);
                    self.held.push(Held { lease, next, left });
                }
            }
        }
        self.held.retain(|held| held.left > 0);
    }

    /// Returns the time of its next event.
    pub(crate) fn next_event_ms(&self, now_ms: u64) -> u64 {
        let (is_awake, until_ms) = self.awake_until(now_ms);
        let mut next_ms = until_ms.min(self.leaves_ms);
        if is_awake {
            let complete_ms = self.counting.as_ref().map(|counting| now_ms + counting.left_ms);
            next_ms = next_ms.min(complete_ms.unwrap_or(u64::MAX)).min(self.next_sync_ms);
        }
        next_ms.max(now_ms + 1)
    }
}
