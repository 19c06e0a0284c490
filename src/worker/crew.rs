//! The crew: the threads that count, one for each core and one for each device, and one that plans jobs. They take units
//! from the shop and put results into the outbox.

use std::collections::HashSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;
use std::time::Instant;

use super::kernels::{Bench, known_answers, processor};
use super::outbox::Outbox;
use super::plans::Plans;
use super::shop::{Batch, DeviceSeen, Measured, SHADERS, Shop};
use crate::board::Piece;
use crate::campaign::{Completion, Source, UnitId};
use crate::engine::{Device, DeviceChoice, Pace, check_on_cpu, find_devices, wait_for_devices};
use crate::kernel::gpu::{DeviceKernel, Fault, self_test};
use crate::kernel::{KernelKind, count_parts};
use crate::preplacement::JobHash;
use crate::tally::{Parts, TallyError};
use crate::wire::messages;
use crate::wire::v1::{self, FailReason};

/// A lease whose job is to be planned, and the job's text if it was sent.
#[derive(Debug)]
pub(super) struct ToPlan {
    pub(super) attempt: u64,
    pub(super) job: JobHash,
    pub(super) mirrored: bool,
    pub(super) text: Option<String>,
}

/// What all threads share.
#[derive(Clone)]
struct Context {
    shop: Arc<Shop>,
    outbox: Arc<Outbox>,
}

impl Context {
    /// Units were counted. The shop knows before the outbox does: a result may be acknowledged a moment later.
    fn finish(&self, batch: &Batch, by: Option<usize>, elapsed_s: f64, results: Vec<v1::Result>) {
        self.shop.finish(batch, by, elapsed_s);
        results.into_iter().for_each(|result| self.outbox.put(result));
    }
}

/// The threads. They end soon after this is dropped: those of the CPU after the unit in hand.
#[derive(Debug)]
pub(super) struct Crew {
    shop: Arc<Shop>,
    to_plan: mpsc::Sender<ToPlan>,
    device_threads: Vec<JoinHandle<()>>,
}

impl Drop for Crew {
    fn drop(&mut self) {
        self.shop.stop();
        // So that no driver is torn down under them.
        wait_for_devices(&self.device_threads);
    }
}

impl Crew {
    /// Starts the threads: so many of the CPU, one for each of these devices, and with `wake` one for each GPU of this
    /// machine once there is work for them.
    ///
    /// # Errors
    /// The system gives no threads.
    pub(super) fn start(
        shop: &Arc<Shop>,
        outbox: &Arc<Outbox>,
        cpu_threads: usize,
        devices: Vec<Device>,
        wake: bool,
    ) -> std::io::Result<Self> {
        let context = Context { shop: Arc::clone(shop), outbox: Arc::clone(outbox) };
        let (to_plan, jobs) = mpsc::channel();
        // If a thread cannot be started, those that were end with it.
        let mut crew = Self { shop: Arc::clone(shop), to_plan, device_threads: Vec::new() };
        let spawn =
            |name: String, work: Box<dyn FnOnce() + Send>| std::thread::Builder::new().name(name).spawn(work);
        {
            let shop = Arc::clone(shop);
            spawn("planner".into(), Box::new(move || planner(&shop, &jobs)))?;
        }
        let device = format!("cpu, {}", processor());
        for number in 0..cpu_threads {
            let (context, device) = (context.clone(), device.clone());
            spawn(format!("count-{number}"), Box::new(move || cpu_thread(&context, &device)))?;
        }
        if !devices.is_empty() {
            let first = shop.add_devices(devices.iter().map(seen));
            for (number, device) in (first..).zip(devices) {
                let context = context.clone();
                let work = Box::new(move || device_thread(&context, device, number));
                crew.device_threads.push(spawn(format!("device-{number}"), work)?);
            }
        }
        if wake {
            crew.device_threads.push(spawn("devices".into(), Box::new(move || wake_devices(&context)))?);
        }
        Ok(crew)
    }

    /// Has a lease's job planned; the shop is told.
    pub(super) fn plan(&self, lease: ToPlan) {
        // The planner ends only with the crew.
        let _ = self.to_plan.send(lease);
    }
}

fn seen(device: &Device) -> DeviceSeen {
    let described = device.info().map(|info| format!("{}, {}", info.name, info.driver));
    DeviceSeen { id: device.id().to_owned(), name: described.unwrap_or_default(), fault: None }
}

fn planner(shop: &Shop, jobs: &mpsc::Receiver<ToPlan>) {
    let mut plans = Plans::default();
    while let Ok(ToPlan { attempt, job, mirrored, text }) = jobs.recv() {
        shop.planned(attempt, plans.get(job, text.as_deref(), mirrored));
    }
}

/// The result of a unit, as it is sent.
///
/// # Errors
/// It contradicts itself.
fn result(
    batch: &Batch,
    (attempt, unit): (u64, u64),
    parts: Parts,
    elapsed_s: f64,
    (kernel, device): (&str, &str),
) -> Result<v1::Result, TallyError> {
    let source = Source {
        // The coordinator knows who calls, and what it runs.
        worker: String::new(),
        kernel: kernel.to_owned(),
        device: plain(device),
        build: String::new(),
    };
    let (tally, unit) = (parts.total()?, UnitId { job: batch.job, unit });
    Ok(messages::result(&Completion { unit, attempt, tally, parts, source, elapsed_s }))
}

/// A device's name, as the protocol takes it.
fn plain(name: &str) -> String {
    name.chars().filter(char::is_ascii).filter(|letter| !letter.is_control()).take(200).collect()
}

fn cpu_thread(context: &Context, device: &str) {
    /// Units between two tests by known answers.
    const UNITS_BETWEEN_TESTS: u32 = 4096;
    let mut bench = Bench::default();
    let mut since_test = 0;
    while let Some((batch, kind)) = context.shop.take_for_cpu() {
        let outcome =
            catch_unwind(AssertUnwindSafe(|| count_on_cpu(context, &batch, kind, &mut bench, device)));
        let failed = match outcome {
            Ok(Ok(())) => None,
            Ok(Err(detail)) => Some((FailReason::Check, detail)),
            Err(_) => Some((FailReason::Device, format!("kernel {kind} ended in an error of its own"))),
        };
        since_test += 1;
        if let Some((reason, detail)) = &failed {
            tracing::error!(units = ?batch.units, job = %batch.job, "a unit cannot be counted: {detail}");
            context.shop.fail(&batch, *reason, detail);
            // It may hold back work of that unit.
            bench.clear();
        }
        if failed.is_some() || since_test >= UNITS_BETWEEN_TESTS {
            since_test = 0;
            if let Err(why) = known_answers(kind) {
                tracing::error!("{why}");
                return context.shop.breaks(why);
            }
        }
    }
}

fn count_on_cpu(
    context: &Context,
    batch: &Batch,
    kind: KernelKind,
    bench: &mut Bench,
    device: &str,
) -> Result<(), String> {
    let decomposition = &batch.decomposition;
    let kernel =
        bench.kernel(kind, decomposition.job().problem().piece()).map_err(|error| error.to_string())?;
    let began = Instant::now();
    let mut results = Vec::new();
    for &(attempt, unit) in &batch.units {
        let parts =
            count_parts(kernel, decomposition, decomposition.unit(unit)).map_err(|e| e.to_string())?;
        let elapsed_s = began.elapsed().as_secs_f64();
        let result = result(batch, (attempt, unit), parts, elapsed_s, (kind.name(), device));
        results.push(result.map_err(|error| error.to_string())?);
    }
    context.finish(batch, None, began.elapsed().as_secs_f64(), results);
    Ok(())
}

/// Looks for GPUs once there is work that they might do, and lets them join.
fn wake_devices(context: &Context) {
    if !context.shop.wait_for_device_work() {
        return;
    }
    // No choice, no error.
    let devices = find_devices(&DeviceChoice::Auto).unwrap_or_default();
    if devices.is_empty() {
        return tracing::info!("no GPU adapter was found: counting on the CPU alone");
    }
    let first = context.shop.add_devices(devices.iter().map(seen));
    std::thread::scope(|scope| {
        for (number, device) in (first..).zip(devices) {
            scope.spawn(move || device_thread(context, device, number));
        }
    });
}

fn device_thread(context: &Context, device: Device, number: usize) {
    if !context.shop.wait_for_device_work() {
        return;
    }
    let seen = seen(&device);
    let name = if seen.name.is_empty() { seen.id.clone() } else { format!("{}, {}", seen.id, seen.name) };
    let mut in_hand = None;
    let work = || {
        let mut kernel = device.open()?;
        self_test(&mut kernel, false)?;
        tracing::info!(device = %name, "the device has passed its self-test");
        count_on_device(context, &name, &mut kernel, number, &mut in_hand)
    };
    // A panic in a driver's wrapper costs the device, not the worker.
    let fault = match catch_unwind(AssertUnwindSafe(work)) {
        Ok(Ok(())) => return,
        Ok(Err(fault)) => fault,
        Err(_) => Fault::Lost("its driver panicked".into()),
    };
    if context.shop.is_stopped() {
        return;
    }
    tracing::error!(device = %name, "the device is out of use, and its units are counted elsewhere: {fault}");
    context.shop.device_gone(number, fault.to_string());
    if let Some(batch) = in_hand {
        context.shop.give_back(&batch);
    }
    // What broke it may have touched more than the device.
    if let Err(why) = known_answers(KernelKind::fastest(Piece::Queen)) {
        context.shop.breaks(why);
    }
}

/// Counts until there is nothing more to come. What is taken and not finished stands in `in_hand`.
fn count_on_device(
    context: &Context,
    name: &str,
    kernel: &mut DeviceKernel,
    number: usize,
    in_hand: &mut Option<Batch>,
) -> Result<(), Fault> {
    let shop = &context.shop;
    let size = |Measured { rate, cpu_unit_s, cpu_threads }: Measured, open: usize| {
        let cpu_units_per_s = cpu_unit_s.map_or(0.0, |unit_s| cpu_threads as f64 / unit_s);
        Pace { cpu_units_per_s, unit_s: 0.0 }.units(rate, open)
    };
    let mut checked: HashSet<JobHash> = HashSet::new();
    let Some(mut batch) = shop.take_for_device(number, size) else { return Ok(()) };
    loop {
        *in_hand = Some(batch.clone());
        let decomposition = Arc::clone(&batch.decomposition);
        let mut job = match kernel.open(&decomposition) {
            Ok(job) if job.suits() => job,
            Err(fault) if fault != Fault::Unsuited => return Err(fault),
            _ => {
                shop.give_back(&batch);
                shop.not_for_shaders(batch.job);
                *in_hand = None;
                let Some(next) = shop.take_for_device(number, size) else { return Ok(()) };
                batch = next;
                continue;
            }
        };
        // As long as the units are of this image of this job, the device stays as it is.
        while Arc::ptr_eq(&batch.decomposition, &decomposition) {
            *in_hand = Some(batch.clone());
            let units: Vec<u64> = batch.units.iter().map(|&(_, unit)| unit).collect();
            let began = Instant::now();
            let counted = job.count_parts(&units, &|| !shop.is_stopped())?;
            let elapsed_s = began.elapsed().as_secs_f64();
            if checked.insert(batch.job) {
                let cpu_unit_s = shop.measured(batch.job, number).cpu_unit_s;
                // A unit that takes a device seconds takes a thread of the CPU longer.
                let pace = Pace { cpu_units_per_s: 0.0, unit_s: cpu_unit_s.unwrap_or(elapsed_s) };
                if let (true, Some((unit, parts))) = (pace.allows_check(), units.first().zip(counted.first()))
                {
                    check_on_cpu(&decomposition, *unit, &parts.total()?)?;
                }
            }
            let each_s = elapsed_s / units.len() as f64;
            let results = batch.units.iter().zip(counted);
            let results: Result<Vec<v1::Result>, TallyError> =
                results.map(|(&unit, parts)| result(&batch, unit, parts, each_s, (SHADERS, name))).collect();
            context.finish(&batch, Some(number), elapsed_s, results?);
            *in_hand = None;
            let Some(next) = shop.take_for_device(number, size) else { return Ok(()) };
            batch = next;
        }
    }
}
