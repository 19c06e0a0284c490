//! The wgpu backend that runs the shaders. Errors never panic: errors that wgpu reports
//! asynchronously are stored and returned by the next call.

use std::collections::{HashMap, VecDeque};
use std::mem::size_of;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytemuck::{Pod, bytes_of, cast_slice};
use wgpu::BufferUsages as Usage;

use super::backend::{Backend, Batch, JobMemory, Submission};
use super::fault::Fault;
use super::layout::{
    Counters, Lane, LowerRow, LowerState, Params, Segment, Slot, UpperRow, WORKGROUP,
};
use super::mirror::Memory;
use super::sets::SetBackend;
use super::tables::Specialisation;

mod pipelines;
mod sets;

use pipelines::Pipelines;
use sets::Sets;

/// The usage of buffers that shaders access; tests read and write all of them.
const STORAGE: Usage = Usage::STORAGE.union(Usage::COPY_DST).union(Usage::COPY_SRC);

/// The timeouts of a submission. On hardware it should take a tenth of a second; a software driver
/// may share its cores with other work.
const TIMEOUT: Duration = Duration::from_secs(30);
const SOFTWARE_TIMEOUT: Duration = Duration::from_secs(300);

/// A device over wgpu.
pub(super) struct WgpuDevice {
    /// `None` after the device hung: dropping a device waits for it.
    inner: Option<Inner>,
}

impl WgpuDevice {
    /// Requests a device from the adapter.
    pub(super) fn open(adapter: &wgpu::Adapter, software: bool) -> Result<Self, Fault> {
        let limits = adapter.limits();
        let needs = [
            ("storage buffers in a shader", limits.max_storage_buffers_per_shader_stage, 6),
            ("lanes in a workgroup", limits.max_compute_invocations_per_workgroup, WORKGROUP),
            (
                "bytes of workgroup memory",
                limits.max_compute_workgroup_storage_size,
                15 * 64 * 16 + 64,
            ),
        ];
        if let Some((what, has, wanted)) = needs.into_iter().find(|(_, has, wanted)| has < wanted) {
            return Err(Fault::Refused(format!("{has} {what}; {wanted} are needed")));
        }
        let descriptor = wgpu::DeviceDescriptor {
            label: Some("nqueens"),
            required_limits: limits,
            memory_hints: wgpu::MemoryHints::Performance,
            ..Default::default()
        };
        let opened = pollster::block_on(adapter.request_device(&descriptor));
        let (device, queue) = opened.map_err(|error| Fault::Refused(error.to_string()))?;
        let async_error = AsyncError::default();
        let (uncaptured, lost) = (async_error.clone(), async_error.clone());
        device.on_uncaptured_error(Arc::new(move |error| uncaptured.report(error)));
        device
            .set_device_lost_callback(move |_, message| lost.set(Fault::Lost(one_line(&message))));
        let timeout = if software { SOFTWARE_TIMEOUT } else { TIMEOUT };
        let pipelines = Pipelines::new(&device);
        async_error.check()?;
        let (job, in_flight, sets) = (None, VecDeque::new(), Sets::default());
        let inner = Inner { device, queue, async_error, timeout, pipelines, job, in_flight, sets };
        Ok(Self { inner: Some(inner) })
    }

    /// Acts on the device. Leaks a device that hangs, because dropping it would wait for it.
    fn with<T>(&mut self, act: impl FnOnce(&mut Inner) -> Result<T, Fault>) -> Result<T, Fault> {
        let stopped = || Fault::Lost("it stopped responding earlier".into());
        let outcome = act(self.inner.as_mut().ok_or_else(stopped)?);
        if matches!(outcome, Err(Fault::Hung(_))) {
            std::mem::forget(self.inner.take());
        }
        outcome
    }
}

impl Backend for WgpuDevice {
    fn sets(&mut self) -> Option<&mut dyn SetBackend> {
        Some(self)
    }

    fn open(&mut self, job: &JobMemory<'_>) -> Result<(), Fault> {
        self.with(|inner| inner.open(job))
    }

    fn load(&mut self, batch: &Batch) -> Result<(), Fault> {
        self.with(|inner| inner.load(batch))
    }

    fn compile(&mut self, special: Specialisation) -> Result<(), Fault> {
        self.with(|inner| {
            inner.pipelines.search(&inner.device, special);
            inner.async_error.check()
        })
    }

    fn submit(&mut self, submission: &Submission) -> Result<(), Fault> {
        self.with(|inner| inner.submit(submission))
    }

    fn wait(&mut self) -> Result<Counters, Fault> {
        self.with(|inner| inner.wait())
    }

    fn slots(&mut self) -> Result<Vec<Slot>, Fault> {
        self.with(|inner| inner.slots())
    }

    fn memory(&mut self) -> Result<Memory, Fault> {
        self.with(|inner| inner.memory())
    }

    fn set_memory(&mut self, memory: &Memory) -> Result<(), Fault> {
        self.with(|inner| inner.set_memory(memory))
    }

    fn most_bytes(&self) -> u64 {
        self.inner.as_ref().map_or(0, |inner| {
            let limits = inner.device.limits();
            limits.max_storage_buffer_binding_size.min(limits.max_buffer_size)
        })
    }
}

/// The first error that wgpu reported asynchronously.
#[derive(Clone, Default)]
struct AsyncError(Arc<Mutex<Option<Fault>>>);

impl AsyncError {
    fn set(&self, fault: Fault) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(fault);
    }

    fn report(&self, error: wgpu::Error) {
        self.set(match error {
            wgpu::Error::OutOfMemory { source } => {
                Fault::OutOfMemory(one_line(&source.to_string()))
            }
            wgpu::Error::Validation { description, .. } => Fault::Refused(one_line(&description)),
            wgpu::Error::Internal { description, .. } => Fault::Lost(one_line(&description)),
        });
    }

    fn clear_out_of_memory(&self) {
        let mut async_error = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        async_error.take_if(|fault| matches!(fault, Fault::OutOfMemory(_)));
    }

    fn check(&self) -> Result<(), Fault> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone().map_or(Ok(()), Err)
    }
}

/// Joins a driver's message, which may span many lines, into one line.
fn one_line(message: &str) -> String {
    let words: Vec<&str> = message.split_whitespace().collect();
    if words.is_empty() { "the driver gave no reason".into() } else { words.join(" ") }
}

struct Inner {
    device: wgpu::Device,
    queue: wgpu::Queue,
    async_error: AsyncError,
    timeout: Duration,
    pipelines: Pipelines,
    job: Option<JobBuffers>,
    in_flight: VecDeque<Reading>,
    sets: Sets,
}

/// The buffers of a job.
struct JobBuffers {
    lanes: u32,
    chunk: u32,
    params: wgpu::Buffer,
    counters: wgpu::Buffer,
    levels: wgpu::Buffer,
    ring: wgpu::Buffer,
    lane: wgpu::Buffer,
    stacks: wgpu::Buffer,
    lower_rows: wgpu::Buffer,
    upper_rows: wgpu::Buffer,
    /// The buffers that are created anew for each batch.
    batch: Option<BatchBuffers>,
    /// Free buffers for reading back counters.
    spare: Vec<wgpu::Buffer>,
}

struct BatchBuffers {
    segments: wgpu::Buffer,
    slots: wgpu::Buffer,
    schedule: wgpu::BindGroup,
    expand: wgpu::BindGroup,
    search: HashMap<Specialisation, wgpu::BindGroup>,
}

/// A buffer being read back to the host.
struct Reading {
    buffer: wgpu::Buffer,
    submission: wgpu::SubmissionIndex,
    arrived: Arc<AtomicBool>,
}

impl Inner {
    fn open(&mut self, job: &JobMemory<'_>) -> Result<(), Fault> {
        // The buffers of the previous job are freed first; an earlier out-of-memory error does not
        // prevent a smaller job.
        self.async_error.clear_out_of_memory();
        self.job = None;
        self.sets.forget_job();
        self.in_flight.clear();
        let shape = job.shape;
        let lanes = u64::from(shape.lanes);
        let storage = |label, bytes| self.buffer(label, bytes, STORAGE);
        let job_buffers = JobBuffers {
            lanes: shape.lanes,
            chunk: shape.chunk,
            params: self.buffer("params", bytes::<Params>(1), Usage::UNIFORM | Usage::COPY_DST),
            counters: storage("counters", bytes::<Counters>(1)),
            levels: storage("levels", bytes::<LowerState>(job.levels)),
            ring: storage("ring", bytes::<[u32; 4]>(shape.ring.into())),
            lane: storage("lanes", bytes::<Lane>(lanes)),
            stacks: storage("stacks", bytes::<[u32; 4]>(lanes * u64::from(job.depth))),
            lower_rows: self.filled("lower rows", job.lower_rows),
            upper_rows: self.filled("upper rows", job.upper_rows),
            batch: None,
            spare: Vec::new(),
        };
        self.async_error.check()?;
        let (lower, upper) = (&job_buffers.lower_rows, &job_buffers.upper_rows);
        let arrived = self.fetch::<LowerRow>(lower)? == job.lower_rows
            && self.fetch::<UpperRow>(upper)? == job.upper_rows;
        self.job = Some(job_buffers);
        if arrived { Ok(()) } else { Err(Fault::Miscounts("tables in memory were damaged".into())) }
    }

    fn buffer(&self, label: &str, size: u64, usage: Usage) -> wgpu::Buffer {
        let descriptor =
            wgpu::BufferDescriptor { label: Some(label), size, usage, mapped_at_creation: false };
        self.device.create_buffer(&descriptor)
    }

    fn filled<T: Pod>(&self, label: &str, data: &[T]) -> wgpu::Buffer {
        let buffer = self.buffer(label, bytes::<T>(data.len() as u64), STORAGE);
        self.queue.write_buffer(&buffer, 0, cast_slice(data));
        buffer
    }

    fn load(&mut self, batch: &Batch) -> Result<(), Fault> {
        let segments: wgpu::Buffer = self.filled("segments", &batch.segments);
        let slot_bytes = bytes::<Slot>(batch.slots as u64);
        // A new buffer is zeroed.
        let slots = self.buffer("slots", slot_bytes, STORAGE);
        if self.fetch::<Segment>(&segments)? != batch.segments {
            return Err(Fault::Miscounts("segments in memory were damaged".into()));
        }
        let Self { device, queue, pipelines, .. } = self;
        let job = self.job.as_mut().ok_or_else(|| Fault::Refused("no job is open".into()))?;
        queue.write_buffer(&job.counters, 0, bytes_of(&batch.counters));
        queue.write_buffer(&job.levels, 0, cast_slice(&batch.prefixes));
        let mut encoder = device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
        encoder.clear_buffer(&job.lane, 0, None);
        queue.submit([encoder.finish()]);
        let schedule = bind(device, &pipelines.schedule, &[&job.counters, &job.params]);
        let expand_buffers =
            [&job.counters, &job.params, &job.levels, &job.ring, &segments, &job.lower_rows];
        let expand = bind(device, &pipelines.expand, &expand_buffers);
        let search = HashMap::new();
        job.batch = Some(BatchBuffers { segments, slots, schedule, expand, search });
        self.async_error.check()
    }

    fn submit(&mut self, submission: &Submission) -> Result<(), Fault> {
        let spare = self.job.as_mut().and_then(|job| job.spare.pop());
        let reading = spare.unwrap_or_else(|| {
            self.buffer("counters", bytes::<Counters>(1), Usage::MAP_READ | Usage::COPY_DST)
        });
        let Self { device, queue, pipelines, .. } = self;
        let job = self.job.as_mut().ok_or_else(|| Fault::Refused("no job is open".into()))?;
        let batch =
            job.batch.as_mut().ok_or_else(|| Fault::Refused("no batch is loaded".into()))?;
        queue.write_buffer(&job.params, 0, bytes_of(&submission.params));
        let search = pipelines.search(device, submission.special).clone();
        let search_buffers = [
            &job.counters,
            &job.params,
            &job.ring,
            &job.lane,
            &job.stacks,
            &batch.slots,
            &job.upper_rows,
        ];
        let search_group = batch
            .search
            .entry(submission.special)
            .or_insert_with(|| bind(device, &search, &search_buffers));
        let mut encoder = device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
        let mut pass = encoder.begin_compute_pass(&wgpu::ComputePassDescriptor::default());
        for _ in 0..submission.rounds {
            for _ in 0..submission.expansions {
                pass.set_pipeline(&pipelines.schedule);
                pass.set_bind_group(0, &batch.schedule, &[]);
                pass.dispatch_workgroups(1, 1, 1);
                pass.set_pipeline(&pipelines.expand);
                pass.set_bind_group(0, &batch.expand, &[]);
                pass.dispatch_workgroups(job.chunk.div_ceil(WORKGROUP), 1, 1);
            }
            pass.set_pipeline(&search);
            pass.set_bind_group(0, &*search_group, &[]);
            pass.dispatch_workgroups(job.lanes / WORKGROUP, 1, 1);
        }
        drop(pass);
        encoder.copy_buffer_to_buffer(&job.counters, 0, &reading, 0, bytes::<Counters>(1));
        let reading = read(queue, encoder, reading);
        self.in_flight.push_back(reading);
        self.async_error.check()
    }

    fn wait(&mut self) -> Result<Counters, Fault> {
        let reading = self
            .in_flight
            .pop_front()
            .ok_or_else(|| Fault::Refused("nothing was submitted".into()))?;
        let counters = self.arrive::<Counters>(&reading)?.first().copied();
        if let Some(job) = &mut self.job {
            job.spare.push(reading.buffer);
        }
        counters.ok_or_else(|| Fault::Lost("no counters came back".into()))
    }

    fn slots(&self) -> Result<Vec<Slot>, Fault> {
        self.fetch(&self.loaded()?.1.slots)
    }

    /// Returns the job and the batch in the device's memory.
    fn loaded(&self) -> Result<(&JobBuffers, &BatchBuffers), Fault> {
        let job = self.job.as_ref().ok_or_else(|| Fault::Refused("no job is open".into()))?;
        let batch =
            job.batch.as_ref().ok_or_else(|| Fault::Refused("no batch is loaded".into()))?;
        Ok((job, batch))
    }

    fn memory(&self) -> Result<Memory, Fault> {
        let (job, batch) = self.loaded()?;
        let counters = self.fetch::<Counters>(&job.counters)?.first().copied();
        Ok(Memory {
            counters: counters.ok_or_else(|| Fault::Lost("no counters came back".into()))?,
            levels: self.fetch(&job.levels)?,
            ring: self.fetch(&job.ring)?,
            segments: self.fetch(&batch.segments)?,
            lower_rows: self.fetch(&job.lower_rows)?,
            upper_rows: self.fetch(&job.upper_rows)?,
            lanes: self.fetch(&job.lane)?,
            stacks: self.fetch(&job.stacks)?,
            slots: self.fetch(&batch.slots)?,
        })
    }

    fn set_memory(&self, memory: &Memory) -> Result<(), Fault> {
        let (job, batch) = self.loaded()?;
        let write = |buffer, data: &[u8]| self.queue.write_buffer(buffer, 0, data);
        write(&job.counters, bytes_of(&memory.counters));
        write(&job.levels, cast_slice(&memory.levels));
        write(&job.ring, cast_slice(&memory.ring));
        write(&job.lane, cast_slice(&memory.lanes));
        write(&job.stacks, cast_slice(&memory.stacks));
        write(&batch.slots, cast_slice(&memory.slots));
        self.async_error.check()
    }

    /// Returns the content of a buffer after all submissions.
    fn fetch<T: Pod>(&self, buffer: &wgpu::Buffer) -> Result<Vec<T>, Fault> {
        let size = buffer.size();
        let on_host = self.buffer("on the host", size, Usage::MAP_READ | Usage::COPY_DST);
        let mut encoder =
            self.device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
        encoder.copy_buffer_to_buffer(buffer, 0, &on_host, 0, size);
        self.arrive(&read(&self.queue, encoder, on_host))
    }

    /// Waits for a buffer and returns its content; the buffer can be reused afterwards.
    fn arrive<T: Pod>(&self, reading: &Reading) -> Result<Vec<T>, Fault> {
        let submission_index = Some(reading.submission.clone());
        let wait = wgpu::PollType::Wait { submission_index, timeout: Some(self.timeout) };
        match self.device.poll(wait) {
            Ok(_) => self.async_error.check()?,
            Err(wgpu::PollError::Timeout) => {
                self.async_error.check()?;
                return Err(Fault::Hung(self.timeout));
            }
            Err(error) => return Err(Fault::Lost(error.to_string())),
        }
        if !reading.arrived.load(Ordering::Acquire) {
            return Err(Fault::Lost("memory of the device could not be read".into()));
        }
        let mapped = reading.buffer.slice(..).get_mapped_range();
        let mapped = mapped.map_err(|error| Fault::Lost(error.to_string()))?;
        let data = bytemuck::pod_collect_to_vec(&mapped);
        drop(mapped);
        reading.buffer.unmap();
        Ok(data)
    }
}

/// Submits the commands, which fill `buffer`, and starts to map it for reading.
fn read(queue: &wgpu::Queue, encoder: wgpu::CommandEncoder, buffer: wgpu::Buffer) -> Reading {
    let submission = queue.submit([encoder.finish()]);
    let arrived = Arc::new(AtomicBool::new(false));
    let on_mapped = Arc::clone(&arrived);
    buffer.slice(..).map_async(wgpu::MapMode::Read, move |outcome| {
        on_mapped.store(outcome.is_ok(), Ordering::Release);
    });
    Reading { buffer, submission, arrived }
}

/// Returns the size of `count` values, in bytes.
const fn bytes<T>(count: u64) -> u64 {
    count * size_of::<T>() as u64
}

/// Binds buffers to the bindings of group 0, in order.
fn bind(
    device: &wgpu::Device,
    pipeline: &wgpu::ComputePipeline,
    buffers: &[&wgpu::Buffer],
) -> wgpu::BindGroup {
    let entries: Vec<wgpu::BindGroupEntry<'_>> = buffers
        .iter()
        .zip(0..)
        .map(|(buffer, binding)| wgpu::BindGroupEntry {
            binding,
            resource: buffer.as_entire_binding(),
        })
        .collect();
    let layout = &pipeline.get_bind_group_layout(0);
    device.create_bind_group(&wgpu::BindGroupDescriptor { label: None, layout, entries: &entries })
}
