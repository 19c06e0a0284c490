//! Counting by column sets: a bit-sliced meet in the middle.
//!
//! For a set of columns (see [`SetFamily`]) the lower half's placements are listed once, as two
//! masks each: the columns of the first upper row that they attack along either diagonal. The upper
//! queens are then the same for the whole list, so that their conflicts with each other are settled
//! once: the rows next to the centre filter the list, and the outer eight rows run as a bit-sliced
//! kernel, 64 states a word, over the completions of those rows, without a branch that depends on a
//! state.
//!
//! - `placements`: tables of all placements of four rows, by their columns;
//! - `last_rows`: the last ten rows of a half, in two parts of a table and one more row each;
//! - `lists`: lists of states, and `lower_half`: the list of a set, from those parts;
//! - `upper_half`: filters and completions, from those parts;
//! - `part_rows`, `codes`: the rows and the codes of the placements of a part;
//! - `block`: the bit planes of a part of a list;
//! - `engine`: the `sum` of a set, from both halves, and `buffers`: their intermediate results;
//! - `vector`: the operations of an instruction set, with a portable definition; `avx2` and
//!   `avx512` have them by intrinsics, the only unsafe code of the module;
//! - `kernel`: the kernel of the jobs, which counts some of the sets a second time.
//!
//! The instruction set is detected at run time.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod block;
mod buffers;
mod codes;
mod engine;
mod kernel;
mod last_rows;
mod lists;
mod lower_half;
mod part_rows;
mod placements;
mod sum;
mod upper_half;
mod vector;

#[cfg(test)]
mod tests;

pub(super) use kernel::{SetKernel, is_sampled};
pub use sum::SetWork;

use crate::decomposition::{ColumnSet, SetFamily};
use crate::tally::Residues;
use buffers::Buffers;
use engine::Engine;
use vector::Portable;

/// An instruction set that the sets can be counted with. The results are the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Instructions {
    /// The instructions that every processor of the architecture has.
    Portable,
    /// AVX2, BMI1, BMI2 and POPCNT.
    Avx2,
    /// AVX-512 (F, BW, DQ, VL, VPOPCNTDQ), BMI1, BMI2 and POPCNT.
    Avx512,
}

impl Instructions {
    /// All instruction sets, slowest first.
    pub const ALL: [Self; 3] = [Self::Portable, Self::Avx2, Self::Avx512];

    /// Returns whether this processor has the instructions.
    pub fn run_here(self) -> bool {
        match self {
            Self::Portable => true,
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => avx2::Avx2::detect().is_some(),
            #[cfg(target_arch = "x86_64")]
            Self::Avx512 => avx512::Avx512::detect().is_some(),
            #[cfg(not(target_arch = "x86_64"))]
            Self::Avx2 | Self::Avx512 => false,
        }
    }
}

/// Counts sets. It has tables of some MB for each family, which the counters of a process share,
/// and lists of at most 50 MB.
#[derive(Debug)]
pub struct SetCounter {
    /// The engines of the families seen so far.
    engines: Vec<(SetFamily, Engine)>,
    buffers: With,
    /// The limits of the engines: the states of a list, and the rows of a table.
    limits: (usize, usize),
}

/// The buffers with the proof that the instructions are there.
#[derive(Debug)]
enum With {
    Portable(Buffers<8>),
    #[cfg(target_arch = "x86_64")]
    Avx2(avx2::Avx2, Buffers<{ avx2::WORDS }>),
    #[cfg(target_arch = "x86_64")]
    Avx512(avx512::Avx512, Buffers<{ avx512::WORDS }>),
}

/// The most families with engines: those of the empty board and of its mirror image.
const MOST_FAMILIES: usize = 6;

impl SetCounter {
    /// Creates a counter. Returns `None` if this processor lacks the instructions.
    pub fn new(instructions: Instructions) -> Option<Self> {
        Self::with_limits(instructions, engine::MOST_STATES, placements::MOST_ROWS)
    }

    /// Like [`Self::new`], with lists of about `states` and tables of at most `rows` rows.
    fn with_limits(instructions: Instructions, states: usize, rows: usize) -> Option<Self> {
        let buffers = match instructions {
            Instructions::Portable => With::Portable(Buffers::new()),
            #[cfg(target_arch = "x86_64")]
            Instructions::Avx2 => With::Avx2(avx2::Avx2::detect()?, Buffers::new()),
            #[cfg(target_arch = "x86_64")]
            Instructions::Avx512 => With::Avx512(avx512::Avx512::detect()?, Buffers::new()),
            #[cfg(not(target_arch = "x86_64"))]
            Instructions::Avx2 | Instructions::Avx512 => return None,
        };
        Some(Self { engines: Vec::new(), buffers, limits: (states, rows) })
    }

    /// Returns the index of the engine of a family, and creates it if there is none.
    fn engine(&mut self, family: &SetFamily) -> usize {
        if let Some(known) = self.engines.iter().position(|(of, _)| of == family) {
            return known;
        }
        if self.engines.len() == MOST_FAMILIES {
            // Another job.
            self.engines.clear();
        }
        let (states, rows) = self.limits;
        self.engines.push((family.clone(), Engine::new(family, states, rows)));
        self.engines.len() - 1
    }

    /// Computes the tables of a family, if they are not there.
    pub fn prepare(&mut self, family: &SetFamily) {
        self.engine(family);
    }

    /// Returns the number of placements that `family` counts under `set`, one of its sets, without
    /// the set's weight, and its residues, accumulated independently.
    pub fn count(&mut self, family: &SetFamily, set: &ColumnSet) -> (u128, Residues) {
        let index = self.engine(family);
        let engine = &mut self.engines[index].1;
        let sum = match &mut self.buffers {
            With::Portable(buffers) => engine.count(Portable, buffers, set),
            #[cfg(target_arch = "x86_64")]
            With::Avx2(avx2, buffers) => avx2.count(engine, buffers, set),
            #[cfg(target_arch = "x86_64")]
            With::Avx512(avx512, buffers) => avx512.count(engine, buffers, set),
        };
        sum.checked()
    }

    /// Returns what was done since the counter was created.
    pub const fn counters(&self) -> SetWork {
        match &self.buffers {
            With::Portable(buffers) => buffers.counters(),
            #[cfg(target_arch = "x86_64")]
            With::Avx2(_, buffers) => buffers.counters(),
            #[cfg(target_arch = "x86_64")]
            With::Avx512(_, buffers) => buffers.counters(),
        }
    }
}
