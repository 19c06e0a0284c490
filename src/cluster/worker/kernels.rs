//! The kernels of a CPU thread, and the processor's name.

use std::collections::HashMap;
use std::sync::OnceLock;

use crate::board::Piece;
use crate::kernel::{Kernel, KernelError, KernelKind};

/// The kernels of one thread, built on first use.
#[derive(Default)]
pub(super) struct KernelCache {
    kernels: HashMap<(KernelKind, Piece), Box<dyn Kernel>>,
}

impl KernelCache {
    /// Returns the kernel of a kind for a piece.
    ///
    /// # Errors
    /// The kernel cannot count this piece, or does not run on this machine.
    pub(super) fn kernel(
        &mut self,
        kind: KernelKind,
        piece: Piece,
    ) -> Result<&mut dyn Kernel, KernelError> {
        use std::collections::hash_map::Entry;
        Ok(match self.kernels.entry((kind, piece)) {
            Entry::Occupied(known) => &mut **known.into_mut(),
            Entry::Vacant(place) => &mut **place.insert(kind.build(piece)?),
        })
    }

    /// Drops all kernels: one that failed may still hold unfinished work.
    pub(super) fn clear(&mut self) {
        self.kernels.clear();
    }
}

/// Returns the processor's model name, or the architecture if the name is unknown.
pub(super) fn processor() -> &'static str {
    static NAME: OnceLock<String> = OnceLock::new();
    NAME.get_or_init(|| {
        let text = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let mut fields = text.lines().filter_map(|line| line.split_once(':'));
        let model = fields.find(|(field, _)| field.trim() == "model name");
        model.map_or_else(|| std::env::consts::ARCH.to_owned(), |(_, name)| name.trim().to_owned())
    })
}
