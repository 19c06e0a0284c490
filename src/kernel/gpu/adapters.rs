//! The adapters of this machine. Vulkan, Metal and DX12; the OpenGL backend is left out (it hung on a barrier).

use super::backend::{Backend, Shape};
#[cfg(feature = "gpu")]
use super::device::WgpuDevice;
use super::device_kernel::DeviceKernel;
use super::fault::Fault;

/// What kind of device an adapter is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AdapterKind {
    /// A graphics card.
    Discrete,
    /// A GPU that shares the processor's memory.
    Integrated,
    /// A share of a GPU.
    Virtual,
    /// A driver that runs shaders on the CPU.
    Software,
    /// The driver does not tell.
    Other,
}

impl AdapterKind {
    /// Its name in tables and JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Discrete => "discrete",
            Self::Integrated => "integrated",
            Self::Virtual => "virtual",
            Self::Software => "software",
            Self::Other => "other",
        }
    }

    /// How much such a device does at once. Measured on no hardware yet: enough lanes to fill a large card.
    const fn shape(self) -> Shape {
        match self {
            Self::Discrete => Shape { lanes: 1 << 18, chunk: 1 << 18, ring: 1 << 25, prefixes: 1 << 18 },
            Self::Integrated | Self::Virtual | Self::Other => {
                Shape { lanes: 1 << 15, chunk: 1 << 14, ring: 1 << 21, prefixes: 1 << 16 }
            }
            Self::Software => Shape { lanes: 1 << 9, chunk: 1 << 9, ring: 1 << 15, prefixes: 1 << 14 },
        }
    }
}

/// An adapter, described.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AdapterInfo {
    /// Stable: backend, vendor and device in hexadecimal, and a number if there are several of the same.
    pub id: String,
    /// Its name.
    pub name: String,
    /// vulkan, metal or dx12.
    pub backend: String,
    /// The vendor's number.
    pub vendor: u32,
    /// The device's number.
    pub device: u32,
    /// What kind of device it is.
    pub kind: AdapterKind,
    /// Driver and version.
    pub driver: String,
    /// The most bytes that a buffer of a shader may have.
    pub most_buffer_bytes: u64,
    /// Bytes of memory that a workgroup may have.
    pub workgroup_bytes: u32,
    /// Lanes that a workgroup may have.
    pub workgroup_lanes: u32,
    /// Lanes that run in step.
    pub subgroup_lanes: u32,
}

#[cfg(feature = "gpu")]
type Handle = wgpu::Adapter;

/// Without the feature `gpu` there are none.
#[cfg(not(feature = "gpu"))]
type Handle = std::convert::Infallible;

/// The adapters of this machine; none if this was built without the feature `gpu`.
#[derive(Debug)]
pub struct Adapters(Vec<(AdapterInfo, Handle)>);

impl Adapters {
    /// Asks the drivers. That can take a second or more.
    #[cfg(not(feature = "gpu"))]
    pub fn find() -> Self {
        Self(Vec::new())
    }

    /// Asks the drivers. That can take a second or more.
    #[cfg(feature = "gpu")]
    pub fn find() -> Self {
        let backends = wgpu::Backends::VULKAN | wgpu::Backends::METAL | wgpu::Backends::DX12;
        let descriptor = wgpu::InstanceDescriptor {
            backends,
            // Without the validation layers, even where they are installed.
            flags: wgpu::InstanceFlags::empty(),
            ..wgpu::InstanceDescriptor::new_without_display_handle()
        };
        let instance = wgpu::Instance::new(descriptor);
        let mut adapters = pollster::block_on(instance.enumerate_adapters(backends));
        // By where they are plugged in, so that the numbers of equal ones stay.
        adapters.sort_by_cached_key(|adapter| {
            let info = adapter.get_info();
            (info.backend as u32, info.device_pci_bus_id, info.vendor, info.device)
        });
        let mut found: Vec<(AdapterInfo, wgpu::Adapter)> = Vec::new();
        for adapter in adapters {
            let info = adapter.get_info();
            let base = format!("{}-{:04x}-{:04x}", info.backend.to_str(), info.vendor, info.device);
            let mut id = base.clone();
            let mut copies = 1;
            while found.iter().any(|(other, _)| other.id == id) {
                copies += 1;
                id = format!("{base}-{copies}");
            }
            found.push((describe(id, &info, &adapter.limits()), adapter));
        }
        Self(found)
    }

    /// Their descriptions.
    pub fn infos(&self) -> impl Iterator<Item = &AdapterInfo> {
        self.0.iter().map(|(info, _)| info)
    }

    /// A kernel on the adapter with this id; `None` if there is none.
    pub fn open(&self, id: &str) -> Option<Result<DeviceKernel, Fault>> {
        let kind = self.infos().find(|info| info.id == id)?.kind;
        let kernel = |backend| DeviceKernel::new(backend, kind.shape(), kind == AdapterKind::Software);
        Some(self.backend(id)?.map(kernel))
    }

    /// The backend alone.
    pub fn backend(&self, id: &str) -> Option<Result<Box<dyn Backend>, Fault>> {
        let (info, adapter) = self.0.iter().find(|(info, _)| info.id == id)?;
        Some(open(adapter, info.kind == AdapterKind::Software))
    }
}

#[cfg(feature = "gpu")]
fn open(adapter: &Handle, software: bool) -> Result<Box<dyn Backend>, Fault> {
    Ok(Box::new(WgpuDevice::open(adapter, software)?))
}

#[cfg(not(feature = "gpu"))]
fn open(adapter: &Handle, _software: bool) -> Result<Box<dyn Backend>, Fault> {
    match *adapter {}
}

#[cfg(feature = "gpu")]
fn describe(id: String, info: &wgpu::AdapterInfo, limits: &wgpu::Limits) -> AdapterInfo {
    let kind = match info.device_type {
        wgpu::DeviceType::DiscreteGpu => AdapterKind::Discrete,
        wgpu::DeviceType::IntegratedGpu => AdapterKind::Integrated,
        wgpu::DeviceType::VirtualGpu => AdapterKind::Virtual,
        wgpu::DeviceType::Cpu => AdapterKind::Software,
        wgpu::DeviceType::Other => AdapterKind::Other,
    };
    AdapterInfo {
        id,
        name: info.name.clone(),
        backend: info.backend.to_str().to_owned(),
        vendor: info.vendor,
        device: info.device,
        kind,
        driver: [&info.driver[..], &info.driver_info].join(" ").trim().to_owned(),
        most_buffer_bytes: limits.max_storage_buffer_binding_size.min(limits.max_buffer_size),
        workgroup_bytes: limits.max_compute_workgroup_storage_size,
        workgroup_lanes: limits.max_compute_invocations_per_workgroup,
        subgroup_lanes: info.subgroup_max_size,
    }
}
