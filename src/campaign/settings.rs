//! The constants of a campaign.

/// What a coordinator may set.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Settings {
    /// How long a lease lives without a sync from its worker, in ms.
    pub lease_ms: u64,
    /// How long a worker waits between syncs, in ms.
    pub sync_ms: u64,
    /// The work that a worker is to have in hand, in s of its time.
    pub lease_s: f64,
    /// The most units in one lease.
    pub most_lease_units: u64,
    /// A lease that takes so many times as long as predicted is counted by another worker, too, near the end.
    pub straggler: f64,
    /// A unit that failed so often …
    pub poison_failures: u32,
    /// … on so many workers is set aside.
    pub poison_workers: usize,
    /// How long a finished job waits for somebody who can make the recounts that are due, in ms.
    pub patience_ms: u64,
    /// Units of a source that are all counted again.
    pub full_check: u64,
    /// The least probability, after that, with which a unit is counted again.
    pub least_check: f64,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            lease_ms: 90_000,
            sync_ms: 10_000,
            lease_s: 120.0,
            most_lease_units: 4096,
            straggler: 1.5,
            poison_failures: 5,
            poison_workers: 2,
            patience_ms: 300_000,
            full_check: 10,
            least_check: 0.01,
        }
    }
}
