//! The campaign's state, and the events that change it.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};

use super::cells::UnitMap;
use super::leases::Lease;
use super::settings::Settings;
use super::trust::{Source, Trust};
use super::units::Units;
use super::{UnitId, WorkerName};
use crate::preplacement::JobHash;
use crate::tally::Tally;

/// What happened, for ever. A coordinator writes these to its ledger before it applies them.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// A job was submitted.
    JobSubmitted {
        /// The job.
        job: JobHash,
        /// Units that it has.
        units: u64,
        /// Higher goes first.
        priority: i32,
        /// When, in ms.
        at_ms: u64,
    },
    /// A job's state changed.
    JobState {
        /// The job.
        job: JobHash,
        /// The new state.
        state: JobState,
    },
    /// A unit was counted.
    UnitDone {
        /// The unit.
        unit: UnitId,
        /// Under which lease; 0 for the referee.
        attempt: u64,
        /// What was counted.
        tally: Tally,
        /// By whom.
        source: Source,
        /// Seconds that it took.
        elapsed_s: f64,
    },
    /// A unit that is done was counted again.
    Recount {
        /// The unit.
        unit: UnitId,
        /// What was counted.
        tally: Tally,
        /// By whom.
        source: Source,
        /// Whether its mirror image was counted.
        mirrored: bool,
        /// Whether that is the result that stands.
        agrees: bool,
        /// Seconds that it took.
        elapsed_s: f64,
    },
    /// A result was taken back; the unit is open again.
    UnitVoided {
        /// The unit.
        unit: UnitId,
        /// Why.
        reason: String,
    },
    /// A unit failed too often and is set aside.
    UnitPoisoned {
        /// The unit.
        unit: UnitId,
        /// Why.
        reason: String,
    },
    /// A unit that was set aside is open again.
    UnitRevived {
        /// The unit.
        unit: UnitId,
    },
    /// A worker is not believed any more.
    WorkerQuarantined {
        /// The worker.
        worker: WorkerName,
        /// Why.
        reason: String,
    },
    /// A worker may begin anew.
    WorkerReleased {
        /// The worker.
        worker: WorkerName,
    },
}

/// What is done with a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum JobState {
    /// It is counted.
    Running,
    /// It waits for somebody to let it go on.
    Paused,
    /// It was given up.
    Cancelled,
    /// Every unit is done, and every recount that was due agrees.
    Finished,
}

/// A job.
#[derive(Debug)]
pub(super) struct Job {
    pub(super) units: Units,
    pub(super) priority: i32,
    pub(super) submitted_ms: u64,
    pub(super) state: JobState,
    /// Units that are to be counted again, oldest first. May hold units that are confirmed by now.
    pub(super) to_check: VecDeque<u64>,
    /// Units of which two results differ, until the referee has spoken: who came second, with what.
    pub(super) disputes: BTreeMap<u64, (Source, Tally)>,
    /// Failures of units: on which workers, how often.
    pub(super) failures: HashMap<u64, BTreeMap<WorkerName, u32>>,
    /// Units that were in leases that expired: they go in leases of at most so many units.
    pub(super) suspects: HashMap<u64, u64>,
    /// Workers that have no other kernel for their own units.
    pub(super) one_kernel: HashSet<WorkerName>,
    /// Workers that have no kernel for the job at all.
    pub(super) unsuited: HashSet<WorkerName>,
    /// Seconds of counting and of recounting.
    pub(super) counting_s: f64,
    pub(super) checking_s: f64,
}

/// A worker as the coordinator knows it; volatile.
#[derive(Clone, Debug, PartialEq)]
pub struct WorkerState {
    /// Changes when the worker restarts.
    pub boot: u64,
    /// Units that it counts at once.
    pub capacity: u32,
    /// Kernels that it has.
    pub kernels: Vec<String>,
    /// Units a second that it measured, by job.
    pub units_per_s: HashMap<JobHash, f64>,
    /// When it was heard of last, in ms.
    pub seen_ms: u64,
    /// Whether it asked for nothing more, or was told to take nothing more.
    pub draining: bool,
    /// Units that it counted since the coordinator started.
    pub units_done: u64,
}

/// How far a job is.
#[derive(Clone, Debug, PartialEq)]
pub struct JobProgress {
    /// Its state.
    pub state: JobState,
    /// Higher goes first.
    pub priority: i32,
    /// When it was submitted, in ms.
    pub submitted_ms: u64,
    /// Units of the job.
    pub units: u64,
    /// Units counted.
    pub done: u64,
    /// Units counted and confirmed by another worker, kernel or device.
    pub checked: u64,
    /// Units set aside.
    pub poisoned: u64,
    /// Units that nobody counts at the moment.
    pub open: u64,
    /// Recounts that are still due.
    pub checks_due: u64,
    /// Units of which two results differ.
    pub disputes: u64,
    /// The sum of the units that are done.
    pub total: Tally,
    /// Seconds of counting, summed over all that counted.
    pub counting_s: f64,
    /// The same of recounts.
    pub checking_s: f64,
}

/// What a source has done for a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceShare {
    /// Who.
    pub source: Source,
    /// Units in force that it counted first.
    pub units: u64,
    /// Those of them that another source confirmed.
    pub confirmed: u64,
    /// Units in force of others that it confirmed.
    pub confirmations: u64,
}

/// The jobs of a coordinator and who counts which unit.
#[derive(Debug)]
pub struct Campaign {
    pub(super) settings: Settings,
    pub(super) jobs: HashMap<JobHash, Job>,
    pub(super) trust: Trust,
    pub(super) leases: BTreeMap<u64, Lease>,
    /// The last leases that ended.
    pub(super) ended: VecDeque<(u64, Lease)>,
    pub(super) workers: BTreeMap<WorkerName, WorkerState>,
    /// The next lease's number. Higher than that of any lease of an earlier run.
    pub(super) next_attempt: u64,
    pub(super) random: fastrand::Rng,
    /// The time of the first tick, in ms.
    pub(super) started_ms: Option<u64>,
}

impl Campaign {
    /// A campaign without jobs. `epoch` must be greater than at any earlier start of the same campaign (the time
    /// in ms will do), so that leases of before are known as such.
    pub fn new(settings: Settings, epoch: u64, seed: u64) -> Self {
        Self {
            settings,
            jobs: HashMap::new(),
            trust: Trust::default(),
            leases: BTreeMap::new(),
            ended: VecDeque::new(),
            workers: BTreeMap::new(),
            next_attempt: epoch << 20,
            random: fastrand::Rng::with_seed(seed),
            started_ms: None,
        }
    }

    /// Applies an event: one that was just written to the ledger, or, at the start, one that is read from it. Events
    /// that make no sense (a second result for a unit, say) change nothing.
    pub fn apply(&mut self, event: &Event) {
        match event {
            Event::JobSubmitted { job, units, priority, at_ms } => {
                self.jobs.entry(*job).or_insert_with(|| Job {
                    units: Units::new(*units),
                    priority: *priority,
                    submitted_ms: *at_ms,
                    state: JobState::Running,
                    to_check: VecDeque::new(),
                    disputes: BTreeMap::new(),
                    failures: HashMap::new(),
                    suspects: HashMap::new(),
                    one_kernel: HashSet::new(),
                    unsuited: HashSet::new(),
                    counting_s: 0.0,
                    checking_s: 0.0,
                });
            }
            Event::JobState { job, state } => {
                if let Some(job) = self.jobs.get_mut(job) {
                    job.state = *state;
                }
            }
            Event::UnitDone { unit, tally, source, elapsed_s, .. } => {
                self.apply_done(*unit, tally, source, *elapsed_s);
            }
            Event::Recount { unit, tally, source, agrees, elapsed_s, .. } => {
                self.apply_recount(*unit, tally, source, *agrees, *elapsed_s);
            }
            Event::UnitVoided { unit, .. } => {
                if let Some(job) = self.jobs.get_mut(&unit.job) {
                    job.units.take_back(unit.unit);
                    job.disputes.remove(&unit.unit);
                    // What was finished is not any more.
                    if job.state == JobState::Finished {
                        job.state = JobState::Running;
                    }
                }
            }
            Event::UnitPoisoned { unit, .. } => {
                if let Some(job) = self.jobs.get_mut(&unit.job) {
                    job.units.poison(unit.unit);
                }
            }
            Event::UnitRevived { unit } => {
                if let Some(job) = self.jobs.get_mut(&unit.job) {
                    job.units.revive(unit.unit);
                    job.failures.remove(&unit.unit);
                }
            }
            Event::WorkerQuarantined { worker, reason } => self.apply_quarantine(worker, reason),
            Event::WorkerReleased { worker } => self.trust.release(worker),
        }
    }

    fn apply_done(&mut self, unit: UnitId, tally: &Tally, source: &Source, elapsed_s: f64) {
        let number = self.trust.number(source);
        let Some(job) = self.jobs.get_mut(&unit.job) else { return };
        if !job.units.finish(unit.unit, tally, number) {
            return;
        }
        job.counting_s += elapsed_s;
        job.suspects.remove(&unit.unit);
        job.failures.remove(&unit.unit);
        if self.random.f64() < self.trust.counted(number, &self.settings) {
            job.to_check.push_back(unit.unit);
        }
        if let Some(worker) = self.workers.get_mut(&source.worker) {
            worker.units_done += 1;
        }
    }

    fn apply_recount(&mut self, unit: UnitId, tally: &Tally, source: &Source, agrees: bool, elapsed_s: f64) {
        let number = self.trust.number(source);
        let Some(job) = self.jobs.get_mut(&unit.job) else { return };
        let Some(outcome) = job.units.outcome(unit.unit).copied() else { return };
        job.checking_s += elapsed_s;
        if agrees {
            job.disputes.remove(&unit.unit);
            if outcome.checker.is_none() {
                job.units.check(unit.unit, Some(number));
                self.trust.confirmed(outcome.source);
            }
        } else {
            job.disputes.entry(unit.unit).or_insert_with(|| (source.clone(), *tally));
        }
    }

    /// What the worker confirmed is not confirmed any more, and what it disputes is for another to count again.
    fn apply_quarantine(&mut self, worker: &str, reason: &str) {
        self.trust.quarantine(worker, reason);
        let numbers = self.trust.of_worker(worker);
        for job in self.jobs.values_mut() {
            let confirmed_by = |checker: &Option<u32>| checker.is_some_and(|c| numbers.contains(&c));
            let unconfirmed: Vec<u64> = job
                .units
                .outcomes()
                .filter(|(_, outcome)| confirmed_by(&outcome.checker))
                .map(|(unit, _)| unit)
                .collect();
            for unit in unconfirmed {
                job.units.check(unit, None);
                job.to_check.push_back(unit);
            }
            let by_worker = |(source, _): &(Source, Tally)| source.worker == worker;
            let disputed: Vec<u64> =
                job.disputes.iter().filter(|(_, second)| by_worker(second)).map(|(&unit, _)| unit).collect();
            for unit in disputed {
                job.disputes.remove(&unit);
                if !job.to_check.contains(&unit) {
                    job.to_check.push_back(unit);
                }
            }
        }
        let attempts: Vec<u64> =
            self.leases.iter().filter(|(_, lease)| lease.worker == worker).map(|(&a, _)| a).collect();
        attempts.into_iter().for_each(|attempt| self.drop_lease(attempt));
    }

    /// A job's state.
    pub fn state(&self, job: &JobHash) -> Option<JobState> {
        Some(self.jobs.get(job)?.state)
    }

    /// How far a job is.
    pub fn progress(&self, job: &JobHash) -> Option<JobProgress> {
        let job = self.jobs.get(job)?;
        let unchecked = |unit: &&u64| job.units.outcome(**unit).is_some_and(|o| o.checker.is_none());
        Some(JobProgress {
            state: job.state,
            priority: job.priority,
            submitted_ms: job.submitted_ms,
            units: job.units.len(),
            done: job.units.done(),
            checked: job.units.checked(),
            poisoned: job.units.poisoned(),
            open: job.units.open(),
            checks_due: job.to_check.iter().filter(unchecked).count() as u64,
            disputes: job.disputes.len() as u64,
            total: *job.units.total(),
            counting_s: job.counting_s,
            checking_s: job.checking_s,
        })
    }

    /// Where in a job units are what.
    pub fn map(&self, job: &JobHash) -> Option<&UnitMap> {
        Some(self.jobs.get(job)?.units.map())
    }

    /// Who counted how much of a job, by name.
    pub fn shares(&self, job: &JobHash) -> Vec<SourceShare> {
        let Some(job) = self.jobs.get(job) else { return Vec::new() };
        let mut shares: Vec<SourceShare> = job
            .units
            .shares()
            .map(|(&number, share)| SourceShare {
                source: self.trust.source(number).clone(),
                units: share.units,
                confirmed: share.confirmed,
                confirmations: share.confirmations,
            })
            .collect();
        shares.sort_by(|a, b| a.source.cmp(&b.source));
        shares
    }

    /// Units of a job that are set aside.
    pub fn poisoned(&self, job: &JobHash) -> Vec<u64> {
        self.jobs.get(job).map(|job| job.units.poisoned_units().collect()).unwrap_or_default()
    }

    /// The jobs, in no order.
    pub fn jobs(&self) -> impl Iterator<Item = JobHash> {
        self.jobs.keys().copied()
    }

    /// The workers that were heard of since the start, by name.
    pub fn workers(&self) -> impl Iterator<Item = (&WorkerName, &WorkerState)> {
        self.workers.iter()
    }

    /// Units in the leases of each worker that has any.
    pub fn held(&self) -> HashMap<&WorkerName, u64> {
        let mut held: HashMap<&WorkerName, u64> = HashMap::new();
        for lease in self.leases.values() {
            *held.entry(&lease.worker).or_default() += lease.units.end - lease.units.start;
        }
        held
    }

    /// Workers that are not believed, with the reason.
    pub fn quarantined(&self) -> &HashMap<WorkerName, String> {
        self.trust.quarantined()
    }

    /// Units of which two results differ: the referee is to count them.
    pub fn disputes(&self) -> impl Iterator<Item = UnitId> {
        self.jobs
            .iter()
            .flat_map(|(&job, state)| state.disputes.keys().map(move |&unit| UnitId { job, unit }))
    }

    /// Who counted a unit that is done, with what.
    pub fn outcome(&self, unit: UnitId) -> Option<(&Source, &Tally)> {
        let outcome = self.jobs.get(&unit.job)?.units.outcome(unit.unit)?;
        Some((self.trust.source(outcome.source), &outcome.tally))
    }
}
