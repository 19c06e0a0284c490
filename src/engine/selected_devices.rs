//! The devices of a count: those that were chosen, and whether to look for others.

use super::count::CountOptions;
use super::unit_size::{has_gpu, is_worth_a_gpu};
use crate::board::{Piece, Problem};
use crate::decomposition::Scheme;
use crate::executor::{Device, DeviceChoice, DeviceError, find_devices};
use crate::kernel::KernelKind;

/// The devices that count.
#[derive(Debug)]
pub(super) struct SelectedDevices {
    /// True if the CPU counts.
    pub(super) cpu: bool,
    /// True if GPUs are looked for, provided that the count is long enough for them to pay off.
    pub(super) discover: bool,
    /// The devices to open at the start.
    pub(super) opened: Vec<Device>,
    /// A message for the user on the GPUs that do not count.
    pub(super) note: Option<&'static str>,
}

impl SelectedDevices {
    /// Returns whether a GPU counts, or will be looked for.
    pub(super) fn may_have_gpu(&self) -> bool {
        self.discover || !self.opened.is_empty()
    }

    /// Returns the devices of the choice in `options`.
    pub(super) fn choose(
        problem: &Problem,
        kernel: KernelKind,
        options: &CountOptions,
    ) -> Result<Self, DeviceError> {
        let choice = &options.devices;
        let cpu = choice.has_cpu();
        if !choice.has_adapters() {
            let free_to_choose = *choice == DeviceChoice::Auto && options.kernel.is_none();
            let wanted = free_to_choose && problem.piece() == Piece::Queen && cfg!(feature = "gpu");
            // With a GPU in the machine, a new count has prefixes, but a checkpoint may have column
            // sets.
            let with_sets = kernel.is_for_sets();
            let discover = wanted && (!with_sets || has_gpu(problem, choice));
            let is_missing = wanted && !discover && is_worth_a_gpu(problem);
            let note = is_missing.then_some(NO_GPU);
            return Ok(Self { cpu, discover, opened: Vec::new(), note });
        }
        if problem.piece() != Piece::Queen {
            return Err(DeviceError::QueensOnly(problem.piece()));
        }
        if options.kernel.is_some() && !cpu {
            return Err(DeviceError::KernelWithoutCpu);
        }
        if let Some(kernel) = options.kernel
            && ![Scheme::best(problem), Scheme::ColumnSets].contains(&kernel.scheme(problem))
        {
            return Err(DeviceError::AnotherScheme(kernel));
        }
        Ok(Self { cpu, discover: false, opened: find_devices(choice)?, note: None })
    }
}

/// The message if a count that is long enough for a GPU has none.
pub(super) const NO_GPU: &str = "no GPU adapter was found: counting on the CPU alone";
