//! The settings of a campaign.

/// The parameters that a coordinator may set.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Settings {
    /// Lifetime of a lease without a sync from its worker, in ms.
    pub lease_ms: u64,
    /// Time between two syncs of a worker, in ms.
    pub sync_ms: u64,
    /// Counting time of a lease, in seconds of its worker, once the worker's rate is known.
    pub lease_s: f64,
    /// Counting time of a worker's first lease of a job, in seconds, as far as the job's units are
    /// known.
    pub first_lease_s: f64,
    /// Upper limit of the units in a lease.
    pub most_lease_units: u64,
    /// Ratio of elapsed to predicted time from which a lease is also given to another worker, near
    /// the end of a job.
    pub straggler: f64,
    /// Number of failures from which a unit is poisoned …
    pub poison_failures: u32,
    /// … if it failed on at least this many workers.
    pub poison_workers: usize,
    /// Upper limit, in ms, of the predicted time of a lease, which its worker reports itself; an
    /// idle worker may get a copy of slower leases. Holders that have had a unit for longer than
    /// this do not count towards the limit of copies.
    pub patience_ms: u64,
    /// Units that others must confirm before an owner is no longer new, and the limit of
    /// unconfirmed units that a new owner may hold.
    pub new_owner_units: u64,
    /// Number of sub-ranges that a spot check recounts.
    pub spot_sub_ranges: u32,
    /// Probability that another owner spot-checks a unit of an owner that is not new.
    pub spot_check: f64,
    /// Probability that another owner recounts a whole unit.
    pub full_check: f64,
    /// Probability that the coordinator recounts a whole unit.
    pub audit: f64,
    /// Minimum expected number of units of each owner in each job that the coordinator spot-checks.
    pub owner_audits: u64,
    /// Share of each owner's units that must be confirmed before a job is finished. `None` chooses
    /// by job: all units if several owners count a job without a published total; otherwise only
    /// the usual checks are made.
    pub assurance: Option<f64>,
    /// Upper limit of simultaneous disputes in a job raised by one owner, and by all guests
    /// together.
    pub most_disputes: usize,
    /// Upper limit of the units that guests of one network hold, or have counted without anybody
    /// having confirmed them.
    pub guest_units: u64,
    /// The same limit for all guests together.
    pub all_guests_units: u64,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            lease_ms: 90_000,
            sync_ms: 10_000,
            lease_s: 120.0,
            first_lease_s: 1.0,
            most_lease_units: 4096,
            straggler: 1.5,
            poison_failures: 5,
            poison_workers: 2,
            patience_ms: 300_000,
            new_owner_units: 10,
            spot_sub_ranges: 2,
            spot_check: 0.25,
            full_check: 0.01,
            audit: 0.01,
            owner_audits: 3,
            assurance: None,
            most_disputes: 8,
            guest_units: 8,
            all_guests_units: 256,
        }
    }
}
