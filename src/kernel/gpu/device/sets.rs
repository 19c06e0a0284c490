//! Column sets on a device over wgpu.

use std::collections::VecDeque;

use bytemuck::{bytes_of, cast_slice};
use wgpu::BufferUsages as Usage;

use super::pipelines::{module, pipeline};
use super::{Inner, Reading, STORAGE, WgpuDevice, bind, bytes, read};
use crate::kernel::gpu::fault::Fault;
use crate::kernel::gpu::sets::layout::{
    FRAMES, LANES_AND_PLANES, PROGRAM, SHADER, SetItem, SetParams, SetQueue, SetSlot,
};
use crate::kernel::gpu::sets::{SetBackend, SetShape, empty_frames};

/// The storage buffers that the shader uses.
const STORAGE_BUFFERS: u32 = 7;
/// The bytes of workgroup memory beside the planes.
const OTHER_BYTES: u32 = 1024;

/// The shader, and the buffers of the job that is open.
#[derive(Default)]
pub(super) struct Sets {
    /// The shader for boards of at most so many columns.
    compiled: Option<(u32, wgpu::ComputePipeline)>,
    job: Option<SetBuffers>,
    in_flight: VecDeque<Reading>,
}

impl Sets {
    /// Frees the buffers of the job.
    pub(super) fn forget_job(&mut self) {
        self.job = None;
        self.in_flight.clear();
    }
}

/// The buffers of a job.
struct SetBuffers {
    groups: u32,
    families: wgpu::Buffer,
    frames: wgpu::Buffer,
    states: wgpu::Buffer,
    programs: wgpu::Buffer,
    params: wgpu::Buffer,
    batch: Option<SetBatch>,
}

/// The buffers that are created anew for each batch.
struct SetBatch {
    queue: wgpu::Buffer,
    slots: wgpu::Buffer,
    group: wgpu::BindGroup,
}

impl SetBackend for WgpuDevice {
    fn open_sets(&mut self, columns: u32, shape: SetShape, families: &[u32]) -> Result<(), Fault> {
        self.with(|inner| inner.open_sets(columns, shape, families))
    }

    fn load_sets(&mut self, items: &[SetItem]) -> Result<(), Fault> {
        self.with(|inner| inner.load_sets(items))
    }

    fn submit_sets(&mut self, params: &SetParams) -> Result<(), Fault> {
        self.with(|inner| inner.submit_sets(params))
    }

    fn wait_sets(&mut self) -> Result<SetQueue, Fault> {
        self.with(|inner| inner.wait_sets())
    }

    fn set_slots(&mut self) -> Result<Vec<SetSlot>, Fault> {
        self.with(|inner| inner.set_slots())
    }
}

impl Inner {
    fn open_sets(&mut self, columns: u32, shape: SetShape, families: &[u32]) -> Result<(), Fault> {
        self.async_error.clear_out_of_memory();
        // The buffers of the previous job are freed first.
        self.job = None;
        self.in_flight.clear();
        self.sets.forget_job();
        if self.sets.compiled.as_ref().is_none_or(|(compiled, _)| *compiled != columns) {
            self.sets.compiled = Some((columns, self.compile_sets(columns)?));
        }
        let groups = u64::from(shape.groups);
        let storage = |label, bytes| self.buffer(label, bytes, STORAGE);
        let job = SetBuffers {
            groups: shape.groups,
            families: self.filled("families", families),
            frames: storage("frames", bytes::<u32>(groups * FRAMES as u64)),
            states: storage("states", bytes::<[u32; 2]>(groups * u64::from(shape.capacity))),
            programs: storage("programs", bytes::<[u32; 2]>(groups * PROGRAM as u64)),
            params: self.buffer("params", bytes::<SetParams>(1), Usage::UNIFORM | Usage::COPY_DST),
            batch: None,
        };
        self.async_error.check()?;
        if self.fetch::<u32>(&job.families)? != families {
            return Err(Fault::Miscounts("families in memory were damaged".into()));
        }
        self.sets.job = Some(job);
        Ok(())
    }

    /// Compiles the shader for boards of at most so many columns, with as many lanes and planes as
    /// the workgroup memory allows.
    fn compile_sets(&self, columns: u32) -> Result<wgpu::ComputePipeline, Fault> {
        let limits = self.device.limits();
        if limits.max_storage_buffers_per_shader_stage < STORAGE_BUFFERS {
            return Err(Fault::Unsuited);
        }
        let fits = |&(lanes, planes): &(u32, u32)| {
            planes * lanes * 4 + OTHER_BYTES <= limits.max_compute_workgroup_storage_size
        };
        let (lanes, planes) = LANES_AND_PLANES.into_iter().find(fits).ok_or(Fault::Unsuited)?;
        let module = module(&self.device, "column sets", SHADER);
        let constants = [
            ("LANES", f64::from(lanes)),
            ("PLANES", f64::from(planes)),
            ("MASK_PLANES", f64::from(columns)),
        ];
        // The shader writes its planes and counters before it reads them.
        let compiled = pipeline(&self.device, &module, "count_sets", &constants);
        self.async_error.check()?;
        Ok(compiled)
    }

    fn load_sets(&mut self, items: &[SetItem]) -> Result<(), Fault> {
        let items_buffer = self.filled("items", items);
        // New buffers are zeroed.
        let queue = self.buffer("queue", bytes::<SetQueue>(1), STORAGE);
        let slots = self.buffer("slots", bytes::<SetSlot>(items.len() as u64), STORAGE);
        if self.fetch::<SetItem>(&items_buffer)? != items {
            return Err(Fault::Miscounts("sets in memory were damaged".into()));
        }
        let Self { device, queue: device_queue, sets, .. } = self;
        let (Some((_, compiled)), Some(job)) = (&sets.compiled, &mut sets.job) else {
            return Err(Fault::Refused("no job is open".into()));
        };
        device_queue.write_buffer(&job.frames, 0, cast_slice(&empty_frames(job.groups)));
        let buffers = [
            &job.params,
            &job.families,
            &items_buffer,
            &queue,
            &slots,
            &job.frames,
            &job.states,
            &job.programs,
        ];
        let group = bind(device, compiled, &buffers);
        job.batch = Some(SetBatch { queue, slots, group });
        self.async_error.check()
    }

    fn submit_sets(&mut self, params: &SetParams) -> Result<(), Fault> {
        let label = "the queue on the host";
        let on_host = self.buffer(label, bytes::<SetQueue>(1), Usage::MAP_READ | Usage::COPY_DST);
        let Self { device, queue, sets, .. } = self;
        let (Some((_, compiled)), Some(job)) = (&sets.compiled, &sets.job) else {
            return Err(Fault::Refused("no job is open".into()));
        };
        let batch =
            job.batch.as_ref().ok_or_else(|| Fault::Refused("no batch is loaded".into()))?;
        queue.write_buffer(&job.params, 0, bytes_of(params));
        let mut encoder = device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
        let mut pass = encoder.begin_compute_pass(&wgpu::ComputePassDescriptor::default());
        pass.set_pipeline(compiled);
        pass.set_bind_group(0, &batch.group, &[]);
        pass.dispatch_workgroups(job.groups, 1, 1);
        drop(pass);
        encoder.copy_buffer_to_buffer(&batch.queue, 0, &on_host, 0, bytes::<SetQueue>(1));
        let reading = read(queue, encoder, on_host);
        sets.in_flight.push_back(reading);
        self.async_error.check()
    }

    fn wait_sets(&mut self) -> Result<SetQueue, Fault> {
        let reading = self.sets.in_flight.pop_front();
        let reading = reading.ok_or_else(|| Fault::Refused("nothing was submitted".into()))?;
        let queue = self.arrive::<SetQueue>(&reading)?;
        queue.first().copied().ok_or_else(|| Fault::Lost("no queue came back".into()))
    }

    fn set_slots(&mut self) -> Result<Vec<SetSlot>, Fault> {
        let batch = self.sets.job.as_ref().and_then(|job| job.batch.as_ref());
        let batch = batch.ok_or_else(|| Fault::Refused("no batch is loaded".into()))?;
        self.fetch(&batch.slots)
    }
}
