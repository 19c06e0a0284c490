//! The compute pipelines of the shaders.

use std::collections::HashMap;

use crate::kernel::gpu::tables::{Specialisation, Variant};

const SCHEDULE: &str = include_str!("../../../../shaders/schedule.wgsl");
const EXPAND: &str = include_str!("../../../../shaders/expand.wgsl");
const SEARCH: &str = include_str!("../../../../shaders/search.wgsl");

/// The compiled shaders that count prefixes.
pub(super) struct Pipelines {
    pub(super) schedule: wgpu::ComputePipeline,
    pub(super) expand: wgpu::ComputePipeline,
    search_module: wgpu::ShaderModule,
    search: HashMap<Specialisation, wgpu::ComputePipeline>,
}

impl Pipelines {
    pub(super) fn new(device: &wgpu::Device) -> Self {
        let schedule = pipeline(device, &module(device, "schedule", SCHEDULE), "schedule", &[]);
        let expand = pipeline(device, &module(device, "expand", EXPAND), "expand", &[]);
        let search_module = module(device, "search", SEARCH);
        Self { schedule, expand, search_module, search: HashMap::new() }
    }

    pub(super) fn search(
        &mut self,
        device: &wgpu::Device,
        special: Specialisation,
    ) -> &wgpu::ComputePipeline {
        self.search.entry(special).or_insert_with(|| {
            let constants = [
                ("DEPTH", f64::from(special.depth)),
                ("GATED", f64::from(u8::from(special.variant == Variant::Gated))),
                ("GENERAL", f64::from(u8::from(special.variant == Variant::General))),
                ("LOOK_AHEAD", f64::from(u8::from(special.look_ahead))),
            ];
            pipeline(device, &self.search_module, "search", &constants)
        })
    }
}

pub(super) fn module(device: &wgpu::Device, label: &str, source: &str) -> wgpu::ShaderModule {
    let source = wgpu::ShaderSource::Wgsl(source.into());
    device.create_shader_module(wgpu::ShaderModuleDescriptor { label: Some(label), source })
}

pub(super) fn pipeline(
    device: &wgpu::Device,
    module: &wgpu::ShaderModule,
    entry_point: &str,
    constants: &[(&str, f64)],
) -> wgpu::ComputePipeline {
    // The shaders write workgroup memory before they read it, and zero what must be zero.
    let compilation_options =
        wgpu::PipelineCompilationOptions { constants, zero_initialize_workgroup_memory: false };
    device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
        label: Some(entry_point),
        layout: None,
        module,
        entry_point: Some(entry_point),
        compilation_options,
        cache: None,
    })
}
