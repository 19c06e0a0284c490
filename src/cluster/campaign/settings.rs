//! The constants of a campaign.

/// What a coordinator may set.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Settings {
    /// How long a lease lives without a sync from its worker, in ms.
    pub lease_ms: u64,
    /// How long a worker waits between syncs, in ms.
    pub sync_ms: u64,
    /// The work of a lease, in s of its worker's time, once the worker's rate is known.
    pub lease_s: f64,
    /// The work of a worker's first lease of a job, in s, as far as the job's units are known.
    pub first_lease_s: f64,
    /// The most units in one lease.
    pub most_lease_units: u64,
    /// A lease that takes so many times as long as predicted is counted by another worker, too, near the end.
    pub straggler: f64,
    /// A unit that failed so often …
    pub poison_failures: u32,
    /// … on so many workers is set aside.
    pub poison_workers: usize,
    /// How long a recount waits for a worker of another owner before the coordinator makes it, and the most time that a
    /// worker's own word makes of its lease before an idle worker may have a copy, in ms.
    pub patience_ms: u64,
    /// An owner is new until so many of its units were confirmed by others, and has no more than so many unconfirmed
    /// units in hand as long as it is.
    pub new_owner_units: u64,
    /// Sub-ranges of a unit that a spot check counts again.
    pub spot_sub_ranges: u32,
    /// The probability with which a unit of an owner that is not new is spot-checked by another owner.
    pub spot_check: f64,
    /// The probability with which a unit is counted again as a whole by another owner.
    pub full_check: f64,
    /// The probability with which a unit is counted again as a whole by the coordinator itself.
    pub audit: f64,
    /// Units of each owner, in each job, of which the coordinator counts some sub-ranges again, on average and at least.
    pub owner_audits: u64,
    /// What share of each owner's units is confirmed before a job is finished. `None` chooses by job: all of them if
    /// several owners count a job whose total is not published, none beyond the usual checks otherwise.
    pub assurance: Option<f64>,
    /// The most units of one owner that may be in dispute at the same time.
    pub most_disputes: usize,
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
        }
    }
}
