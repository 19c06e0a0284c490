//! The state of a campaign.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::path::PathBuf;

use super::grants::JobRates;
use super::job::Job;
use super::key::{CampaignKey, Draws};
use super::lease_table::LeaseTable;
use super::leases::Lease;
use super::reputation::Reputation;
use super::settings::Settings;
use super::signed_result::ResultKey;
use super::workers::WorkerState;
use super::{UnitId, WorkerName};
use crate::decomposition::JobHash;

/// The jobs of a coordinator and the assignment of their units to workers.
#[derive(Debug)]
pub struct Campaign {
    pub(super) settings: Settings,
    /// The folder for results that are not in memory; `None` keeps all of them there.
    pub(super) folder: Option<PathBuf>,
    pub(super) jobs: HashMap<JobHash, Job>,
    pub(super) reputation: Reputation,
    pub(super) leases: LeaseTable,
    /// The leases that ended last.
    pub(super) ended: HashMap<u64, Lease>,
    /// Their numbers in the order of their end.
    pub(super) ended_order: VecDeque<u64>,
    pub(super) workers: BTreeMap<WorkerName, WorkerState>,
    /// The keys that each worker has presented, the current one last.
    pub(super) keys: HashMap<WorkerName, Vec<ResultKey>>,
    /// Workers that were drained and have not restarted since, as far as is known, with the boot
    /// identifier of each.
    pub(super) drained: BTreeMap<WorkerName, u64>,
    /// Number of the last lease; higher than that of any lease of an earlier run.
    attempts: u64,
    /// Upper bound of the lease numbers of earlier runs.
    first_attempt: u64,
    pub(super) key: CampaignKey,
    pub(super) random: Draws,
    /// Checks reserved for each worker.
    pub(super) reserved: HashMap<WorkerName, BTreeSet<(JobHash, u64)>>,
    /// End of each reservation in ms, with its check.
    pub(super) reservation_ends: BTreeSet<(u64, JobHash, u64)>,
    /// Workers for which spot checks were reserved and that may not know of them yet.
    pub(super) newly_reserved: BTreeSet<WorkerName>,
    /// Position at which the arbiter's last scan of `reservation_ends` ended.
    pub(super) arbiter_scan: Option<(u64, JobHash, u64)>,
    /// Unit that the arbiter is counting.
    pub(super) at_arbiter: Option<UnitId>,
    /// The rates of the active workers for each job, as far as they were summed up since the last
    /// tick.
    pub(super) rates: HashMap<JobHash, JobRates>,
    /// Syncs since then.
    pub(super) syncs_since_rates: usize,
    /// The number of workers at work at the last tick.
    pub(super) at_work: u64,
    /// Time of the first tick, in ms.
    pub(super) started_ms: Option<u64>,
    /// Time of the last tick, in ms.
    pub(super) ticked_ms: u64,
    /// Time in ms from which the next tick scans all workers.
    pub(super) scan_workers_ms: u64,
}

impl Campaign {
    /// Creates a campaign without jobs. `epoch` must be greater than at any earlier start of the
    /// same campaign (the time in ms is suitable), so that leases of earlier runs can be told
    /// apart. `key` must be the same at each start and must not be shared with another campaign.
    pub fn new(settings: Settings, epoch: u64, key: CampaignKey) -> Self {
        Self {
            settings,
            folder: None,
            jobs: HashMap::new(),
            reputation: Reputation::default(),
            leases: LeaseTable::default(),
            ended: HashMap::new(),
            ended_order: VecDeque::new(),
            workers: BTreeMap::new(),
            keys: HashMap::new(),
            drained: BTreeMap::new(),
            attempts: epoch << 20,
            first_attempt: epoch << 20,
            key,
            random: Draws::new(epoch),
            reserved: HashMap::new(),
            reservation_ends: BTreeSet::new(),
            newly_reserved: BTreeSet::new(),
            arbiter_scan: None,
            at_arbiter: None,
            rates: HashMap::new(),
            syncs_since_rates: 0,
            at_work: 0,
            started_ms: None,
            ticked_ms: 0,
            scan_workers_ms: 0,
        }
    }

    /// Allows the campaign to keep the results of units that are not in use in temporary files in a
    /// folder. Affects only jobs that are submitted later.
    #[must_use]
    pub fn with_folder(self, folder: PathBuf) -> Self {
        Self { folder: Some(folder), ..self }
    }

    /// Returns the number for a new lease.
    pub(super) fn next_attempt(&mut self) -> u64 {
        self.attempts += 1;
        self.attempts
    }

    /// Returns whether a lease was granted by an earlier run.
    pub(super) const fn is_from_earlier_run(&self, attempt: u64) -> bool {
        attempt <= self.first_attempt
    }

    /// Registers the owner of a worker. Called for all workers before the events of a ledger are
    /// applied, since a worker's quarantine may precede the entry that names its owner.
    pub fn register_owner(&mut self, worker: &str, owner: &str) {
        self.reputation.owner(worker, owner);
    }
}
