//! The executors: the threads that count, one per core and one per device, and one that plans jobs.
//! They take units from the work queue and put results into the outbox.

use std::collections::HashSet;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::kernels::{KernelCache, processor};
use super::outbox::Outbox;
use super::plans::Plans;
use super::work_queue::{Batch, DeviceSeen, LeasedUnit, Measured, SHADERS, WorkQueue};
use crate::board::Piece;
use crate::cluster::campaign::{Source, UnitId, UnitResult};
use crate::cluster::protocol::v1::{self, FailReason};
use crate::cluster::protocol::{device_label, messages};
use crate::decomposition::{Decomposition, JobHash};
use crate::engine::{
    Device, DeviceChoice, Pace, check_on_cpu, find_devices, known_answers, wait_for_devices,
};
use crate::kernel::gpu::{DeviceKernel, Fault, self_test};
use crate::kernel::{KernelKind, count_parts};
use crate::tally::{Parts, TallyError};

/// A lease whose job is to be planned, with the job's text if it was sent.
#[derive(Debug)]
pub(super) struct ToPlan {
    pub(super) attempt: u64,
    pub(super) job: JobHash,
    pub(super) mirrored: bool,
    pub(super) text: Option<String>,
}

/// The state shared by all threads.
#[derive(Clone)]
struct Context {
    queue: Arc<WorkQueue>,
    outbox: Arc<Outbox>,
}

impl Context {
    /// Records that units were counted. The queue is updated before the outbox: a result may be
    /// acknowledged a moment after it is put there.
    fn finish(&self, batch: &Batch, by: Option<usize>, elapsed_s: f64, results: Vec<v1::Result>) {
        self.queue.finish(batch, by, elapsed_s);
        results.into_iter().for_each(|result| self.outbox.put(result));
    }
}

/// The threads. They end soon after this is dropped, CPU threads after the unit in progress.
#[derive(Debug)]
pub(super) struct Executors {
    queue: Arc<WorkQueue>,
    to_plan: mpsc::Sender<ToPlan>,
    device_threads: Vec<JoinHandle<()>>,
}

impl Drop for Executors {
    fn drop(&mut self) {
        self.queue.stop();
        // Wait, so that no driver is torn down while a thread uses it.
        wait_for_devices(&self.device_threads);
    }
}

impl Executors {
    /// Starts `cpu_threads` CPU threads, one thread for each of `devices` and, with `wake`, one for
    /// each GPU of this machine once there is work for it.
    ///
    /// # Errors
    /// The system cannot create a thread.
    pub(super) fn start(
        queue: &Arc<WorkQueue>,
        outbox: &Arc<Outbox>,
        cpu_threads: usize,
        devices: Vec<Device>,
        wake: bool,
    ) -> std::io::Result<Self> {
        let context = Context { queue: Arc::clone(queue), outbox: Arc::clone(outbox) };
        let (to_plan, jobs) = mpsc::channel();
        // If a thread cannot be started, dropping this value ends those that were.
        let mut executors = Self { queue: Arc::clone(queue), to_plan, device_threads: Vec::new() };
        let spawn = |name: String, work: Box<dyn FnOnce() + Send>| {
            std::thread::Builder::new().name(name).spawn(work)
        };
        {
            let queue = Arc::clone(queue);
            spawn("planner".into(), Box::new(move || planner(&queue, &jobs)))?;
        }
        let device = format!("cpu, {}", processor());
        for number in 0..cpu_threads {
            let (context, device) = (context.clone(), device.clone());
            spawn(
                format!("count-{number}"),
                Box::new(move || CpuThread::new(&context, &device).work()),
            )?;
        }
        if !devices.is_empty() {
            let first = queue.add_devices(devices.iter().map(seen));
            for (number, device) in (first..).zip(devices) {
                let context = context.clone();
                let work = Box::new(move || device_thread(&context, device, number));
                executors.device_threads.push(spawn(format!("device-{number}"), work)?);
            }
        }
        if wake {
            executors
                .device_threads
                .push(spawn("devices".into(), Box::new(move || wake_devices(&context)))?);
        }
        Ok(executors)
    }

    /// Hands a lease to the planner, which passes the result to the queue.
    pub(super) fn plan(&self, lease: ToPlan) {
        // The planner ends only with the executors.
        let _ = self.to_plan.send(lease);
    }
}

fn seen(device: &Device) -> DeviceSeen {
    let described = device.info().map(|info| format!("{}, {}", info.name, info.driver));
    DeviceSeen { id: device.id().to_owned(), name: described.unwrap_or_default(), fault: None }
}

fn planner(queue: &WorkQueue, jobs: &mpsc::Receiver<ToPlan>) {
    let mut plans = Plans::default();
    while let Ok(ToPlan { attempt, job, mirrored, text }) = jobs.recv() {
        queue.planned(attempt, plans.get(job, text.as_deref(), mirrored));
    }
}

/// Returns the sub-ranges of a unit that are to be counted: all, unless the lease names some.
fn sub_ranges(
    decomposition: &Decomposition,
    LeasedUnit { lease, unit }: &LeasedUnit,
) -> Vec<Range<u64>> {
    let ranges = decomposition.sub_ranges(*unit).zip(0u32..);
    let asked_for =
        |number| lease.sub_ranges.is_empty() || lease.sub_ranges.numbers().any(|n| n == number);
    ranges.filter(|&(_, number)| asked_for(number)).map(|(range, _)| range).collect()
}

/// Returns the message with a unit's result, from the counts of its sub-ranges.
///
/// # Errors
/// The counts contradict each other or overflow.
fn result(
    LeasedUnit { lease, unit }: &LeasedUnit,
    sub_ranges: &[Parts],
    elapsed_s: f64,
    (kernel, device): (&str, &str),
) -> Result<v1::Result, TallyError> {
    let mut parts = Parts::default();
    let mut sub_sums = Vec::with_capacity(sub_ranges.len());
    for sub_range in sub_ranges {
        sub_sums.push(sub_range.total()?.thirds());
        parts.merge(sub_range)?;
    }
    let source = Source {
        // The coordinator knows the caller and its build.
        worker: String::new(),
        owner: String::new(),
        kernel: kernel.to_owned(),
        device: device_label(device),
        build: String::new(),
    };
    let result = UnitResult {
        unit: UnitId { job: lease.job, unit: *unit },
        attempt: lease.attempt,
        grant: lease.grant.clone(),
        tally: parts.total()?,
        parts,
        sub_sums,
        source,
        elapsed_s,
    };
    Ok(messages::result(&result))
}

/// A CPU thread.
struct CpuThread<'a> {
    context: &'a Context,
    /// The processor's name, as reported in the source of a result.
    device: &'a str,
    kernel_cache: KernelCache,
    /// Units since the last test with known answers.
    since_test: u32,
}

impl<'a> CpuThread<'a> {
    fn new(context: &'a Context, device: &'a str) -> Self {
        Self { context, device, kernel_cache: KernelCache::default(), since_test: 0 }
    }

    fn work(&mut self) {
        while let Some((batch, kind)) = self.context.queue.take_for_cpu() {
            if self.attend_to(&batch, kind).is_err() {
                return;
            }
        }
    }

    /// Counts units, or reports that they cannot be counted.
    ///
    /// # Errors
    /// The kernel fails known answers: no result of this machine can be trusted.
    fn attend_to(&mut self, batch: &Batch, kind: KernelKind) -> Result<(), Miscounts> {
        /// Units between two tests with known answers.
        const UNITS_BETWEEN_TESTS: u32 = 4096;
        let outcome = catch_unwind(AssertUnwindSafe(|| self.count(batch, kind)));
        let failed = match outcome {
            Ok(Ok(())) => None,
            Ok(Err(Uncounted::Miscounts)) => return Err(Miscounts),
            Ok(Err(Uncounted::Failed(detail))) => Some((FailReason::Check, detail)),
            Err(_) => {
                Some((FailReason::Device, format!("kernel {kind} ended in an error of its own")))
            }
        };
        self.since_test += 1;
        if let Some((reason, detail)) = &failed {
            let units: Vec<u64> = batch.units.iter().map(|unit| unit.unit).collect();
            tracing::error!(?units, job = %batch.job, "a unit cannot be counted: {detail}");
            self.context.queue.fail(batch, *reason, detail);
            // The kernel may still hold work of that unit.
            self.kernel_cache.clear();
        }
        if failed.is_some() || self.since_test >= UNITS_BETWEEN_TESTS {
            self.since_test = 0;
            if let Err(why) = known_answers(kind) {
                tracing::error!("{why}");
                self.context.queue.mark_broken(why);
                return Err(Miscounts);
            }
        }
        Ok(())
    }

    fn count(&mut self, batch: &Batch, kind: KernelKind) -> Result<(), Uncounted> {
        let decomposition = &batch.decomposition;
        let piece = decomposition.job().problem().piece();
        let began = Instant::now();
        let mut elsewhere = Duration::ZERO;
        let mut results = Vec::new();
        for unit in &batch.units {
            let mut counted = Vec::new();
            for sub_range in sub_ranges(decomposition, unit) {
                let kernel = self.kernel_cache.kernel(kind, piece).map_err(Uncounted::failed)?;
                counted.push(
                    count_parts(kernel, decomposition, sub_range).map_err(Uncounted::failed)?,
                );
                if batch.is_whole() {
                    elsewhere += self.attend_to_spot()?;
                }
            }
            let elapsed_s = began.elapsed().saturating_sub(elsewhere).as_secs_f64();
            let source = (kind.name(), self.device);
            results.push(result(unit, &counted, elapsed_s, source).map_err(Uncounted::failed)?);
        }
        let elapsed_s = began.elapsed().saturating_sub(elsewhere).as_secs_f64();
        self.context.finish(batch, None, elapsed_s, results);
        Ok(())
    }

    /// Performs a waiting spot check, if there is one, and returns how long it took.
    fn attend_to_spot(&mut self) -> Result<Duration, Miscounts> {
        let began = Instant::now();
        let Some((batch, kind)) = self.context.queue.take_spot_for_cpu() else {
            return Ok(Duration::ZERO);
        };
        self.attend_to(&batch, kind)?;
        Ok(began.elapsed())
    }
}

/// The error of a kernel that fails known answers.
#[derive(Debug)]
struct Miscounts;

/// The reason why units were not counted.
enum Uncounted {
    Failed(String),
    Miscounts,
}

impl Uncounted {
    fn failed(why: impl std::fmt::Display) -> Self {
        Self::Failed(why.to_string())
    }
}

impl From<Miscounts> for Uncounted {
    fn from(_: Miscounts) -> Self {
        Self::Miscounts
    }
}

/// Looks for GPUs once there is work that they might do, and adds them.
fn wake_devices(context: &Context) {
    if !context.queue.wait_for_device_work() {
        return;
    }
    // `Auto` names no device, so an error only means that no device can be used.
    let devices = find_devices(&DeviceChoice::Auto).unwrap_or_default();
    if devices.is_empty() {
        return tracing::info!("no GPU adapter was found: counting on the CPU alone");
    }
    let first = context.queue.add_devices(devices.iter().map(seen));
    std::thread::scope(|scope| {
        for (number, device) in (first..).zip(devices) {
            scope.spawn(move || device_thread(context, device, number));
        }
    });
}

fn device_thread(context: &Context, device: Device, number: usize) {
    if !context.queue.wait_for_device_work() {
        return;
    }
    let seen = seen(&device);
    let name =
        if seen.name.is_empty() { seen.id.clone() } else { format!("{}, {}", seen.id, seen.name) };
    let mut in_hand = None;
    let work = || {
        let mut kernel = device.open()?;
        self_test(&mut kernel, false)?;
        tracing::info!(device = %name, "the device has passed its self-test");
        count_on_device(context, &name, &mut kernel, number, &mut in_hand)
    };
    // A panic in a driver's wrapper disables the device, not the worker.
    let fault = match catch_unwind(AssertUnwindSafe(work)) {
        Ok(Ok(())) => return,
        Ok(Err(fault)) => fault,
        Err(_) => Fault::Lost("its driver panicked".into()),
    };
    if context.queue.is_stopped() {
        return;
    }
    tracing::error!(device = %name, "the device is out of use, and its units are counted elsewhere: {fault}");
    context.queue.device_gone(number, fault.to_string());
    if let Some(batch) = in_hand {
        context.queue.give_back(&batch);
    }
    // The cause may have affected more than the device.
    if let Err(why) = known_answers(KernelKind::fastest(Piece::Queen)) {
        context.queue.mark_broken(why);
    }
}

/// Counts until the queue is stopped. `in_hand` holds the batch that was taken and is not finished.
fn count_on_device(
    context: &Context,
    name: &str,
    kernel: &mut DeviceKernel,
    number: usize,
    in_hand: &mut Option<Batch>,
) -> Result<(), Fault> {
    let queue = &context.queue;
    let size = |Measured { rate, cpu_unit_s, cpu_threads }: Measured, open: usize| {
        let cpu_units_per_s = cpu_unit_s.map_or(0.0, |unit_s| cpu_threads as f64 / unit_s);
        Pace { cpu_units_per_s, unit_s: 0.0 }.units(rate, open)
    };
    let mut checked: HashSet<JobHash> = HashSet::new();
    let Some(mut batch) = queue.take_for_device(number, size) else { return Ok(()) };
    loop {
        *in_hand = Some(batch.clone());
        let decomposition = Arc::clone(&batch.decomposition);
        let mut job = match kernel.open(&decomposition) {
            Ok(job) if job.suits() => job,
            Err(fault) if fault != Fault::Unsuited => return Err(fault),
            _ => {
                queue.give_back(&batch);
                queue.not_for_shaders(batch.job);
                *in_hand = None;
                let Some(next) = queue.take_for_device(number, size) else { return Ok(()) };
                batch = next;
                continue;
            }
        };
        // The device keeps its state while the units are of this image of this job.
        while Arc::ptr_eq(&batch.decomposition, &decomposition) {
            *in_hand = Some(batch.clone());
            let ranges: Vec<Vec<Range<u64>>> =
                batch.units.iter().map(|unit| sub_ranges(&decomposition, unit)).collect();
            let began = Instant::now();
            let counted = job.count_ranges(ranges.concat(), &|| !queue.is_stopped())?;
            let elapsed_s = began.elapsed().as_secs_f64();
            let each_s = elapsed_s / batch.units.len() as f64;
            let mut counted = &counted[..];
            let mut results = Vec::with_capacity(batch.units.len());
            for (unit, ranges) in batch.units.iter().zip(&ranges) {
                let (of_unit, rest) =
                    counted.split_at_checked(ranges.len()).unwrap_or((counted, &[]));
                counted = rest;
                if unit.lease.sub_ranges.is_empty() && checked.insert(batch.job) {
                    let cpu_unit_s = queue.measured(batch.job, number).cpu_unit_s;
                    check_unit(
                        &decomposition,
                        unit.unit,
                        of_unit,
                        cpu_unit_s.unwrap_or(elapsed_s),
                    )?;
                }
                results.push(result(unit, of_unit, each_s, (SHADERS, name))?);
            }
            context.finish(&batch, Some(number), elapsed_s, results);
            *in_hand = None;
            let Some(next) = queue.take_for_device(number, size) else { return Ok(()) };
            batch = next;
        }
    }
}

/// Recounts a device's unit on the CPU, unless that would take unreasonably long.
///
/// # Errors
/// The two tallies differ.
fn check_unit(
    decomposition: &Decomposition,
    unit: u64,
    sub_ranges: &[Parts],
    unit_s: f64,
) -> Result<(), Fault> {
    // A unit that takes a device seconds takes a CPU thread longer.
    if !(Pace { cpu_units_per_s: 0.0, unit_s }.allows_check()) {
        return Ok(());
    }
    let mut parts = Parts::default();
    sub_ranges.iter().try_for_each(|sub_range| parts.merge(sub_range))?;
    check_on_cpu(decomposition, unit, &parts.total()?)
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use crate::board::Problem;
    use crate::cluster::campaign::{Assignment, SubRangeSet};
    use crate::decomposition::{Job, Scheme};
    use crate::engine::KernelPreference;
    use crate::kernel::count_range;
    use crate::kernel::gpu::{Mirror, Shape};

    struct Scratch(PathBuf);

    impl Drop for Scratch {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    /// Creates a context without threads; `cpu_counts` sets whether the CPU may count.
    fn context(name: &str, cpu_counts: bool) -> (Context, Scratch) {
        let folder =
            std::env::temp_dir().join(format!("nqueens-executors-{}-{name}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).expect("a folder for temporary files");
        let ladder = KernelPreference::new(Some(KernelKind::Scalar)).expect("runs everywhere");
        let queue = Arc::new(WorkQueue::new(ladder, 1, cpu_counts));
        let outbox = Arc::new(Outbox::open(&folder.join("outbox.db")).expect("opens"));
        (Context { queue, outbox }, Scratch(folder))
    }

    /// Returns leases of whole units, of whole mirror images and of some sub-ranges of mirror
    /// images, each with its decomposition.
    fn leases() -> Vec<(Assignment, Arc<Decomposition>)> {
        let problem = Problem::empty(Piece::Queen, 10);
        let scheme = Scheme::best(&problem);
        let job = |prefixes| Job::new(problem.clone(), scheme, None, prefixes).expect("small");
        // Several units, the last of which is small.
        let prefixes = Decomposition::new(job(1)).prefixes();
        let itself = Arc::new(Decomposition::new(job((prefixes - 5) / 3)));
        let image = Arc::new(itself.mirrored());
        let last = itself.units() - 1;
        assert!(
            itself.sub_ranges(0).len() == 32
                && (1..32).contains(&itself.sub_ranges(last).len())
                && last > 2
        );
        let some = SubRangeSet::from_numbers([0, 3, 31]).expect("below 32");
        let lease = |attempt, units, mirrored, sub_ranges| Assignment {
            attempt,
            job: itself.job().hash(),
            units,
            mirrored,
            not_kernel: None,
            sub_ranges,
            grant: vec![attempt as u8; 3],
        };
        vec![
            (lease(1, 0..last + 1, false, SubRangeSet::default()), Arc::clone(&itself)),
            (lease(2, 1..2, true, SubRangeSet::default()), Arc::clone(&image)),
            (lease(3, 0..2, true, some), Arc::clone(&image)),
            (lease(4, last..last + 1, true, SubRangeSet::from_bits(1)), image),
        ]
    }

    fn take_in(queue: &WorkQueue, leases: &[(Assignment, Arc<Decomposition>)]) -> usize {
        for (lease, decomposition) in leases {
            queue.assign([lease.clone()]);
            queue.planned(lease.attempt, Ok(Arc::clone(decomposition)));
        }
        leases.iter().map(|(lease, _)| (lease.units.end - lease.units.start) as usize).sum()
    }

    /// Waits for `count` results and returns them.
    fn results(context: &Context, count: usize) -> Vec<(u64, v1::Result)> {
        for _ in 0..60_000 {
            let batch = context.outbox.batch(1000, 1 << 20);
            if batch.len() == count {
                return batch;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        panic!("there are not {count} results")
    }

    /// Waits for `count` results and compares them with the counts of the reference kernel.
    fn check_results(context: &Context, count: usize) {
        let results = results(context, count);
        let leases = leases();
        let mut oracle = KernelKind::Reference.build(Piece::Queen).expect("runs everywhere");
        for (_, result) in results {
            let (lease, decomposition) = leases
                .iter()
                .find(|(lease, _)| lease.attempt == result.attempt)
                .expect("asked for");
            let result = messages::unit_result(result, ("w", "o"), "0").expect("well-formed");
            let unit = LeasedUnit { lease: Arc::new(lease.clone()), unit: result.unit.unit };
            let ranges = sub_ranges(decomposition, &unit);
            let whole = || decomposition.sub_ranges(result.unit.unit).len();
            assert_eq!(
                ranges.len(),
                if lease.sub_ranges.is_empty() { whole() } else { lease.sub_ranges.len() }
            );
            let naive: Vec<u128> = ranges
                .into_iter()
                .map(|range| {
                    count_range(&mut *oracle, decomposition, range).expect("counts").thirds()
                })
                .collect();
            assert_eq!(result.sub_sums, naive, "{:?}", result.unit);
            assert_eq!(result.sub_sums.iter().sum::<u128>(), result.tally.thirds());
            assert_eq!(result.parts.total(), Ok(result.tally));
            assert_eq!(result.grant, lease.grant);
        }
    }

    #[test]
    fn a_thread_of_the_cpu_counts_each_sub_range_that_a_lease_asks_for_and_no_other() {
        let (context, _scratch) = context("cpu", true);
        let count = take_in(&context.queue, &leases());
        let mut thread = CpuThread::new(&context, "cpu, a\u{e9}b\n");
        while context.outbox.len() < count {
            let (batch, kind) = context.queue.take_for_cpu().expect("a unit");
            thread.attend_to(&batch, kind).expect("counts");
        }
        check_results(&context, count);
        let devices =
            context.outbox.batch(1000, 1 << 20).into_iter().map(|(_, result)| result.device);
        assert!(devices.into_iter().all(|device| device == "cpu, ab"));
    }

    #[test]
    fn a_thread_that_is_at_a_unit_makes_spot_checks_in_between() {
        let (context, _scratch) = context("between", true);
        let (whole, spots): (Vec<_>, Vec<_>) =
            leases().into_iter().partition(|(lease, _)| lease.sub_ranges.is_empty());
        take_in(&context.queue, &whole);
        let (batch, kind) = context.queue.take_for_cpu().expect("a unit");
        take_in(&context.queue, &spots);
        CpuThread::new(&context, "cpu").attend_to(&batch, kind).expect("counts");
        let results = results(&context, 4);
        let attempts: Vec<u64> = results.into_iter().map(|(_, result)| result.attempt).collect();
        assert_eq!(attempts, [3, 3, 4, batch.units[0].lease.attempt]);
        assert!(context.queue.take_spot_for_cpu().is_none());
    }

    #[test]
    fn a_device_counts_each_sub_range_that_a_lease_asks_for_and_no_other() {
        let (context, _scratch) = context("device", false);
        let device = DeviceSeen { id: "mirror-0".into(), name: String::new(), fault: None };
        context.queue.add_devices([device]);
        let count = take_in(&context.queue, &leases());
        let shape = Shape { lanes: 256, chunk: 128, ring: 1 << 14, prefixes: 5000 };
        let mut kernel = DeviceKernel::new(Box::new(Mirror::default()), shape, false);
        std::thread::scope(|scope| {
            let counting =
                scope.spawn(|| count_on_device(&context, "mirror-0", &mut kernel, 0, &mut None));
            check_results(&context, count);
            context.queue.stop();
            assert_eq!(counting.join().expect("no panic"), Ok(()));
        });
    }
}
