//! The choice of devices to count on, and its resolution to devices.

use std::fmt;
use std::str::FromStr;

use std::sync::Arc;

use crate::kernel::gpu::{AdapterInfo, AdapterKind, Adapters, DeviceKernel, Fault};

/// The devices to count on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum DeviceChoice {
    /// The CPU, and every GPU if the count is long enough to make up for the start of a GPU.
    #[default]
    Auto,
    /// The named devices.
    These(Vec<DeviceName>),
}

/// The name of one or several devices.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeviceName {
    /// The CPU.
    Cpu,
    /// Every GPU of this machine; if it has none, a driver that runs shaders on the CPU.
    Gpu,
    /// The adapter with this id.
    Id(String),
}

/// The error returned when a choice cannot be parsed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "'{0}' is not a choice of devices; write auto, cpu, gpu or ids from nqueens devices, separated by commas"
)]
pub struct UnknownDevice(String);

/// The error returned when the chosen devices cannot count.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DeviceError {
    /// There is no adapter.
    #[error("no GPU adapter was found; install its Vulkan driver, or use --device cpu")]
    NoAdapter,
    /// There is no device with this id.
    #[error("there is no device '{0}'; nqueens devices lists the available ones ({1})")]
    NoSuchDevice(String, String),
    /// The program was built without the feature `gpu`.
    #[error("this program was built without GPU support (feature gpu); use --device cpu")]
    NotBuilt,
    /// The shaders count queens only.
    #[error("GPUs count queens only; use --device cpu or auto for {0}s")]
    QueensOnly(crate::board::Piece),
    /// The kernel uses a scheme whose symmetry cases the shaders cannot count.
    #[error(
        "--kernel {0} uses a decomposition that GPUs cannot count; choose another kernel, or --device cpu"
    )]
    AnotherScheme(crate::kernel::KernelKind),
    /// A kernel was chosen that cannot count the subproblems.
    #[error("--kernel {0} cannot count these subproblems; use --kernel auto")]
    AnotherPlan(crate::kernel::KernelKind),
    /// A CPU kernel was chosen, but the CPU does not count.
    #[error("--kernel selects a CPU kernel, but --device excludes the CPU; add cpu to the devices")]
    KernelWithoutCpu,
}

impl DeviceChoice {
    /// Returns whether the CPU counts.
    pub fn has_cpu(&self) -> bool {
        match self {
            Self::Auto => true,
            Self::These(names) => names.contains(&DeviceName::Cpu),
        }
    }

    /// Returns whether adapters are named.
    pub fn has_adapters(&self) -> bool {
        matches!(self, Self::These(names) if names.iter().any(|name| *name != DeviceName::Cpu))
    }
}

impl FromStr for DeviceChoice {
    type Err = UnknownDevice;

    fn from_str(text: &str) -> Result<Self, UnknownDevice> {
        if text == "auto" {
            return Ok(Self::Auto);
        }
        let name = |word: &str| match word {
            "cpu" => Some(DeviceName::Cpu),
            "gpu" => Some(DeviceName::Gpu),
            // An id begins with its backend.
            id if id.contains('-') && id.chars().all(|c| c.is_ascii_alphanumeric() || c == '-') => {
                Some(DeviceName::Id(id.to_owned()))
            }
            _ => None,
        };
        let names: Option<Vec<DeviceName>> =
            text.split(',').map(|word| name(word.trim())).collect();
        names.map(Self::These).ok_or_else(|| UnknownDevice(text.to_owned()))
    }
}

impl fmt::Display for DeviceChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Auto => f.write_str("auto"),
            Self::These(names) => {
                let names: Vec<&str> = names
                    .iter()
                    .map(|name| match name {
                        DeviceName::Cpu => "cpu",
                        DeviceName::Gpu => "gpu",
                        DeviceName::Id(id) => id,
                    })
                    .collect();
                f.write_str(&names.join(","))
            }
        }
    }
}

/// A device that may count; the thread that uses it opens it.
pub struct Device {
    id: String,
    info: Option<AdapterInfo>,
    open: Box<dyn FnOnce() -> Result<DeviceKernel, Fault> + Send>,
}

impl Device {
    /// Creates a device from an open kernel with a custom backend.
    pub fn opened(id: &str, kernel: DeviceKernel) -> Self {
        Self { id: id.to_owned(), info: None, open: Box::new(move || Ok(kernel)) }
    }

    fn on(adapters: &Arc<Adapters>, info: &AdapterInfo) -> Self {
        let (adapters, name) = (Arc::clone(adapters), info.id.clone());
        let open = move || {
            adapters.open(&name).unwrap_or_else(|| Err(Fault::Lost("it was removed".into())))
        };
        Self { id: info.id.clone(), info: Some(info.clone()), open: Box::new(open) }
    }

    /// Returns the id.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Returns the adapter, if the device has one.
    pub const fn info(&self) -> Option<&AdapterInfo> {
        self.info.as_ref()
    }

    /// Opens the device, without a self-test.
    ///
    /// # Errors
    /// The driver refuses, or the device is gone.
    pub fn open(self) -> Result<DeviceKernel, Fault> {
        (self.open)()
    }
}

impl fmt::Debug for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Device").field("id", &self.id).finish_non_exhaustive()
    }
}

/// Returns the devices of a choice. `Auto` means every GPU, but no software drivers, which are
/// slower than the CPU kernels; the result may be empty.
///
/// # Errors
/// The choice names an adapter that does not exist, or the program was built without the feature
/// `gpu`.
pub fn find_devices(choice: &DeviceChoice) -> Result<Vec<Device>, DeviceError> {
    if choice.has_adapters() && !cfg!(feature = "gpu") {
        return Err(DeviceError::NotBuilt);
    }
    let adapters = Arc::new(Adapters::find());
    let hardware = distinct_gpus(adapters.infos());
    let mut chosen: Vec<&AdapterInfo> = Vec::new();
    match choice {
        DeviceChoice::Auto => chosen.extend(hardware),
        DeviceChoice::These(names) => {
            for name in names {
                let found: Vec<&AdapterInfo> = match name {
                    DeviceName::Cpu => continue,
                    DeviceName::Gpu if hardware.is_empty() => adapters.infos().collect(),
                    DeviceName::Gpu => hardware.clone(),
                    DeviceName::Id(id) => {
                        let info = adapters.infos().find(|info| info.id == *id);
                        vec![info.ok_or_else(|| no_such_device(id, &adapters))?]
                    }
                };
                if found.is_empty() {
                    return Err(DeviceError::NoAdapter);
                }
                for info in found {
                    if chosen.iter().all(|known| known.id != info.id) {
                        chosen.push(info);
                    }
                }
            }
        }
    }
    Ok(chosen.into_iter().map(|info| Device::on(&adapters, info)).collect())
}

/// Returns the GPUs among `adapters`, each once, although several drivers may show it.
fn distinct_gpus<'a>(adapters: impl Iterator<Item = &'a AdapterInfo>) -> Vec<&'a AdapterInfo> {
    let all: Vec<&AdapterInfo> =
        adapters.filter(|info| info.kind != AdapterKind::Software).collect();
    // Windows lists a card once for each backend; only the Vulkan entry is used.
    let is_listed_by_vulkan = |info: &AdapterInfo| {
        let same = |other: &&AdapterInfo| {
            other.backend == "vulkan" && (other.vendor, other.device) == (info.vendor, info.device)
        };
        info.backend != "vulkan" && all.iter().any(same)
    };
    // Two Vulkan drivers show the same card at the same position: the first one is used. One driver
    // may show several devices there, the partitions of a card.
    let is_listed_by_another_driver = |info: &AdapterInfo| {
        let same = |other: &&&AdapterInfo| {
            (&other.backend, &other.pci_bus_id) == (&info.backend, &info.pci_bus_id)
        };
        let first = all.iter().find(same).expect("it is one of them");
        !info.pci_bus_id.is_empty() && first.driver != info.driver
    };
    let distinct =
        |info: &&AdapterInfo| !is_listed_by_vulkan(info) && !is_listed_by_another_driver(info);
    all.iter().copied().filter(distinct).collect()
}

/// Returns every adapter of this machine, including software drivers.
pub fn find_every_device() -> Vec<Device> {
    let adapters = Arc::new(Adapters::find());
    adapters.infos().map(|info| Device::on(&adapters, info)).collect()
}

fn no_such_device(id: &str, adapters: &Adapters) -> DeviceError {
    let ids: Vec<&str> = adapters.infos().map(|info| &info.id[..]).collect();
    let ids = if ids.is_empty() { "none".to_owned() } else { ids.join(", ") };
    DeviceError::NoSuchDevice(id.to_owned(), ids)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn device_choices_round_trip_through_text() {
        for text in ["auto", "cpu", "gpu", "cpu,gpu", "vulkan-10de-2335,vulkan-10de-2335-2"] {
            assert_eq!(text.parse::<DeviceChoice>().expect(text).to_string(), text);
        }
    }

    #[test]
    fn invalid_device_choices_are_refused() {
        for text in ["", "auto,cpu", "tpu", "gpu,,cpu", "vulkan 1", "../x-y"] {
            assert!(text.parse::<DeviceChoice>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_gpu_that_several_drivers_show_is_used_once() {
        let adapter = |id: &str, backend: &str, pci_bus_id: &str, driver: &str| AdapterInfo {
            id: id.into(),
            name: "a card".into(),
            backend: backend.into(),
            vendor: 0x1002,
            device: 0x744c,
            kind: AdapterKind::Discrete,
            driver: driver.into(),
            pci_bus_id: pci_bus_id.into(),
            most_buffer_bytes: 1 << 30,
            workgroup_bytes: 1 << 15,
            workgroup_lanes: 1024,
            subgroup_lanes: 32,
        };
        let software = AdapterInfo {
            kind: AdapterKind::Software,
            ..adapter("software", "vulkan", "", "llvmpipe")
        };
        let adapters = [
            adapter("first", "vulkan", "0000:01:00.0", "radv 25.0"),
            adapter("first by another driver", "vulkan", "0000:01:00.0", "amdvlk 2025"),
            // A partition of the same card.
            adapter("partition", "vulkan", "0000:01:00.0", "radv 25.0"),
            adapter("second", "vulkan", "0000:02:00.0", "radv 25.0"),
            adapter("second by another driver", "vulkan", "0000:02:00.0", "amdvlk 2025"),
            // Nothing says that these are one card.
            adapter("third", "vulkan", "", "radv 25.0"),
            adapter("fourth", "vulkan", "", "amdvlk 2025"),
            adapter("first by another backend", "dx12", "0000:01:00.0", "31.0"),
            software,
        ];
        let used: Vec<&str> =
            distinct_gpus(adapters.iter()).iter().map(|info| &info.id[..]).collect();
        assert_eq!(used, ["first", "partition", "second", "third", "fourth"]);
    }
}
