//! The kernels of a CPU thread, and the processor's name.

use std::collections::HashMap;

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
