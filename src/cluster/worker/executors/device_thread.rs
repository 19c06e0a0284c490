//! A thread that counts on a device.

use std::collections::HashSet;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Instant;

use super::{Context, result, status_of, sub_ranges};
use crate::board::Piece;
use crate::cluster::worker::work_queue::{Batch, MeasuredRates, SHADERS};
use crate::decomposition::{Decomposition, JobHash};
use crate::engine::{BatchSizing, Device, DeviceChoice, check_on_cpu, find_devices, known_answers};
use crate::kernel::KernelKind;
use crate::kernel::gpu::{DeviceKernel, Fault, self_test};
use crate::tally::Parts;

/// Looks for GPUs once there is work that they might do, and adds them.
pub(super) fn discover_gpus(context: &Context) {
    if !context.queue.wait_for_device_work() {
        return;
    }
    // `Auto` names no device, so an error only means that no device can be used.
    let devices = find_devices(&DeviceChoice::Auto).unwrap_or_default();
    if devices.is_empty() {
        return tracing::info!("no GPU adapter was found: counting on the CPU alone");
    }
    let first = context.queue.add_devices(devices.iter().map(status_of));
    std::thread::scope(|scope| {
        for (number, device) in (first..).zip(devices) {
            scope.spawn(move || device_thread(context, device, number));
        }
    });
}

pub(super) fn device_thread(context: &Context, device: Device, number: usize) {
    if !context.queue.wait_for_device_work() {
        return;
    }
    let status = status_of(&device);
    let name = if status.name.is_empty() {
        status.id.clone()
    } else {
        format!("{}, {}", status.id, status.name)
    };
    let mut held_batch = None;
    let work = || {
        let mut kernel = device.open()?;
        self_test(&mut kernel, false)?;
        tracing::info!(device = %name, "the device has passed its self-test");
        count_on_device(context, &name, &mut kernel, number, &mut held_batch)
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
    tracing::error!(device = %name, "the device is disabled, and its units are counted elsewhere: {fault}");
    context.queue.device_failed(number, fault.to_string());
    if let Some(batch) = held_batch {
        context.queue.give_back(&batch);
    }
    // The cause may have affected more than the device.
    if let Err(why) = known_answers(KernelKind::fastest(Piece::Queen)) {
        context.queue.mark_broken(why);
    }
}

/// Counts until the queue is stopped. `held_batch` holds the batch that was taken and is not
/// finished.
pub(super) fn count_on_device(
    context: &Context,
    name: &str,
    kernel: &mut DeviceKernel,
    number: usize,
    held_batch: &mut Option<Batch>,
) -> Result<(), Fault> {
    let queue = &context.queue;
    let size = |MeasuredRates { rate, cpu_unit_s, cpu_threads }: MeasuredRates, open: usize| {
        let cpu_units_per_s = cpu_unit_s.map_or(0.0, |unit_s| cpu_threads as f64 / unit_s);
        BatchSizing { cpu_units_per_s, unit_s: 0.0 }.units(rate, open)
    };
    let mut checked: HashSet<JobHash> = HashSet::new();
    let Some(mut batch) = queue.take_for_device(number, size) else { return Ok(()) };
    loop {
        *held_batch = Some(batch.clone());
        let decomposition = Arc::clone(&batch.decomposition);
        let mut job = match kernel.open(&decomposition) {
            Ok(job) if job.suits() => job,
            Err(fault) if fault != Fault::Unsuited => return Err(fault),
            _ => {
                queue.give_back(&batch);
                queue.not_for_shaders(batch.job);
                *held_batch = None;
                let Some(next) = queue.take_for_device(number, size) else { return Ok(()) };
                batch = next;
                continue;
            }
        };
        // The device keeps its state while the units are of this image of this job.
        while Arc::ptr_eq(&batch.decomposition, &decomposition) {
            *held_batch = Some(batch.clone());
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
            *held_batch = None;
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
    if !(BatchSizing { cpu_units_per_s: 0.0, unit_s }.allows_check()) {
        return Ok(());
    }
    let mut parts = Parts::default();
    sub_ranges.iter().try_for_each(|sub_range| parts.merge(sub_range))?;
    check_on_cpu(decomposition, unit, &parts.total()?)
}
