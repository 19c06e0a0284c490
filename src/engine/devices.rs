//! Which devices count: the choice, and how it becomes devices.

use std::fmt;
use std::str::FromStr;

#[cfg(feature = "gpu")]
use std::sync::Arc;

#[cfg(feature = "gpu")]
use crate::kernel::gpu::{AdapterKind, Adapters, DeviceKernel, Fault};

/// Which devices are to count.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum DeviceChoice {
    /// The CPU, and every GPU if the count is so long that waking one pays.
    #[default]
    Auto,
    /// These.
    These(Vec<DeviceName>),
}

/// A device, or several, by name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeviceName {
    /// The CPU.
    Cpu,
    /// Every GPU of this machine; if it has none, a driver that runs shaders on the CPU.
    Gpu,
    /// The adapter with this id.
    Id(String),
}

/// A choice that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "'{0}' is not a choice of devices; write auto, cpu, gpu or ids from nqueens devices, separated by commas"
)]
pub struct UnknownDevice(String);

/// Why the chosen devices cannot count.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DeviceError {
    /// There is no adapter.
    #[error("no GPU adapter was found; install its Vulkan driver, or use --device cpu")]
    NoAdapter,
    /// There is none with this id.
    #[error("no device '{0}' here; nqueens devices lists those that are ({1})")]
    NoSuchDevice(String, String),
    /// The program was built without the feature `gpu`.
    #[error("this program was built without GPU support (feature gpu); use --device cpu")]
    NotBuilt,
    /// The shaders count queens only.
    #[error("GPUs count queens only; use --device cpu or auto for {0}s")]
    QueensOnly(crate::board::Piece),
    /// A kernel of the CPU was chosen where the CPU does not count.
    #[error("--kernel chooses a kernel of the CPU, which --device leaves out; add cpu to the devices")]
    KernelWithoutCpu,
}

impl DeviceChoice {
    /// Whether the CPU counts.
    pub(super) fn has_cpu(&self) -> bool {
        match self {
            Self::Auto => true,
            Self::These(names) => names.contains(&DeviceName::Cpu),
        }
    }

    /// Whether adapters are named.
    pub(super) fn has_adapters(&self) -> bool {
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
            // An id has its backend in front.
            id if id.contains('-') && id.chars().all(|c| c.is_ascii_alphanumeric() || c == '-') => {
                Some(DeviceName::Id(id.to_owned()))
            }
            _ => None,
        };
        let names: Option<Vec<DeviceName>> = text.split(',').map(|word| name(word.trim())).collect();
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

/// A device that may count: opened and tested by the thread that will use it.
#[cfg(feature = "gpu")]
pub(super) struct Device {
    pub(super) id: String,
    pub(super) open: Box<dyn FnOnce() -> Result<DeviceKernel, Fault> + Send>,
}

#[cfg(feature = "gpu")]
impl fmt::Debug for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Device").field("id", &self.id).finish_non_exhaustive()
    }
}

/// Every GPU of this machine, for `auto`: no software drivers, which are slower than the kernels of the CPU.
#[cfg(feature = "gpu")]
pub(super) fn hardware() -> Vec<Device> {
    let adapters = Arc::new(Adapters::find());
    ids(&adapters, |kind| kind != AdapterKind::Software).into_iter().map(|id| device(&adapters, id)).collect()
}

/// The devices of a choice that names them.
#[cfg(feature = "gpu")]
pub(super) fn named(names: &[DeviceName]) -> Result<Vec<Device>, DeviceError> {
    let adapters = Arc::new(Adapters::find());
    let mut chosen: Vec<String> = Vec::new();
    for name in names {
        let found = match name {
            DeviceName::Cpu => continue,
            DeviceName::Gpu => {
                let hardware = ids(&adapters, |kind| kind != AdapterKind::Software);
                if hardware.is_empty() { ids(&adapters, |_| true) } else { hardware }
            }
            DeviceName::Id(id) => {
                let all = ids(&adapters, |_| true);
                if !all.contains(id) {
                    let all = if all.is_empty() { "none".to_owned() } else { all.join(", ") };
                    return Err(DeviceError::NoSuchDevice(id.clone(), all));
                }
                vec![id.clone()]
            }
        };
        if found.is_empty() {
            return Err(DeviceError::NoAdapter);
        }
        for id in found {
            if !chosen.contains(&id) {
                chosen.push(id);
            }
        }
    }
    Ok(chosen.into_iter().map(|id| device(&adapters, id)).collect())
}

#[cfg(feature = "gpu")]
fn ids(adapters: &Adapters, wanted: impl Fn(AdapterKind) -> bool) -> Vec<String> {
    adapters.infos().filter(|info| wanted(info.kind)).map(|info| info.id.clone()).collect()
}

#[cfg(feature = "gpu")]
fn device(adapters: &Arc<Adapters>, id: String) -> Device {
    let (adapters, name) = (Arc::clone(adapters), id.clone());
    let open = move || adapters.open(&name).unwrap_or_else(|| Err(Fault::Lost("it is gone".into())));
    Device { id, open: Box::new(open) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_choice_of_devices_reads_back_as_it_was_written() {
        for text in ["auto", "cpu", "gpu", "cpu,gpu", "vulkan-10de-2335,vulkan-10de-2335-2"] {
            assert_eq!(text.parse::<DeviceChoice>().expect(text).to_string(), text);
        }
    }

    #[test]
    fn what_is_no_choice_of_devices_is_refused() {
        for text in ["", "auto,cpu", "tpu", "gpu,,cpu", "vulkan 1", "../x-y"] {
            assert!(text.parse::<DeviceChoice>().is_err(), "{text}");
        }
    }
}
