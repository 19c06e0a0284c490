//! The adapters of this machine: Vulkan, Metal and DX12. The OpenGL backend is excluded (it hung on
//! a barrier).

use serde::Serialize;

use super::backend::{Backend, Shape};
#[cfg(feature = "gpu")]
use super::device::WgpuDevice;
use super::device_kernel::DeviceKernel;
use super::fault::Fault;

/// The type of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum AdapterKind {
    /// A graphics card.
    Discrete,
    /// A GPU that shares the processor's memory.
    Integrated,
    /// A partition of a GPU.
    Virtual,
    /// A driver that runs shaders on the CPU.
    Software,
    /// The driver does not report the type.
    Other,
}

impl AdapterKind {
    /// Returns the name in tables, which is that in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Discrete => "discrete",
            Self::Integrated => "integrated",
            Self::Virtual => "virtual",
            Self::Software => "software",
            Self::Other => "other",
        }
    }

    /// Returns the shape for such a device. Not yet measured on hardware: enough lanes to fill a
    /// large card.
    const fn shape(self) -> Shape {
        match self {
            Self::Discrete => {
                Shape { lanes: 1 << 18, chunk: 1 << 18, ring: 1 << 25, prefixes: 1 << 18 }
            }
            Self::Integrated | Self::Virtual | Self::Other => {
                Shape { lanes: 1 << 15, chunk: 1 << 14, ring: 1 << 21, prefixes: 1 << 16 }
            }
            Self::Software => {
                Shape { lanes: 1 << 9, chunk: 1 << 9, ring: 1 << 15, prefixes: 1 << 14 }
            }
        }
    }
}

/// The description of an adapter.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct AdapterInfo {
    /// A stable identifier: backend, vendor and device in hexadecimal, and a number if there are
    /// several of the same.
    pub id: String,
    /// The adapter's name.
    pub name: String,
    /// vulkan, metal or dx12.
    pub backend: String,
    /// The vendor ID.
    #[serde(skip)]
    pub vendor: u32,
    /// The device ID.
    #[serde(skip)]
    pub device: u32,
    /// The type of device.
    pub kind: AdapterKind,
    /// The driver and its version.
    pub driver: String,
    /// The position on the PCI bus, such as 0000:01:00.0; empty if the driver does not report it.
    #[serde(skip)]
    pub pci_bus_id: String,
    /// The maximum size of a storage buffer, in bytes.
    pub most_buffer_bytes: u64,
    /// The maximum memory of a workgroup, in bytes.
    pub workgroup_bytes: u32,
    /// The maximum number of lanes of a workgroup.
    pub workgroup_lanes: u32,
    /// The number of lanes that run in lockstep.
    pub subgroup_lanes: u32,
}

#[cfg(feature = "gpu")]
type Handle = wgpu::Adapter;

/// Without the feature `gpu` there are no adapters.
#[cfg(not(feature = "gpu"))]
type Handle = std::convert::Infallible;

/// The adapters of this machine; empty if built without the feature `gpu`.
#[derive(Debug)]
pub struct Adapters(Vec<(AdapterInfo, Handle)>);

impl Adapters {
    /// Returns no adapters: this was built without the feature `gpu`.
    #[cfg(not(feature = "gpu"))]
    pub fn find() -> Self {
        Self(Vec::new())
    }

    /// Queries the drivers, which can take a second or more.
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
        // Sorted by bus position, so that the numbers of identical adapters are stable.
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

    /// Returns the descriptions of the adapters.
    pub fn infos(&self) -> impl Iterator<Item = &AdapterInfo> {
        self.0.iter().map(|(info, _)| info)
    }

    /// Opens a kernel on the adapter with this id; returns `None` if there is no such adapter.
    pub fn open(&self, id: &str) -> Option<Result<DeviceKernel, Fault>> {
        let kind = self.infos().find(|info| info.id == id)?.kind;
        let kernel =
            |backend| DeviceKernel::new(backend, kind.shape(), kind == AdapterKind::Software);
        Some(self.backend(id)?.map(kernel))
    }

    /// Opens only the backend of the adapter with this id; returns `None` if there is no such
    /// adapter.
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
        pci_bus_id: info.device_pci_bus_id.clone(),
        most_buffer_bytes: limits.max_storage_buffer_binding_size.min(limits.max_buffer_size),
        workgroup_bytes: limits.max_compute_workgroup_storage_size,
        workgroup_lanes: limits.max_compute_invocations_per_workgroup,
        subgroup_lanes: info.subgroup_max_size,
    }
}
