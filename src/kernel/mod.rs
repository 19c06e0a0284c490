//! Kernels: each counts the completions of prefixes. They range from a naive oracle to vector code,
//! and each is tested against the oracle subproblem by subproblem.
//!
//! | kernel | description | boards |
//! |---|---|---|
//! | [`mod@reference`] | the plain definition, the oracle | all |
//! | [`textbook`] | bit masks and mirror symmetry, the performance baseline | queens |
//! | [`scalar`] | centre-cross cases, a register stack, two rows of look-ahead | queens |
//! | [`simd`] (avx2, avx512) | the batch engine over 8 or 16 lanes | queens |
//! | [`sets`] (sets, sets-avx2, sets-avx512) | column sets, by bit planes | queens |
//! | [`generic`] | any piece | all |

pub mod generic;
pub mod gpu;
pub mod reference;
mod rook;
pub mod scalar;
pub mod sets;
pub mod simd;
pub mod symmetric;
pub mod textbook;

use std::fmt;
use std::ops::Range;
use std::str::FromStr;

use crate::board::{Piece, Problem};
use crate::decomposition::{
    ColumnSet, Decomposition, MAX_COUNT_SIZE, Prefix, Scheme, SetFamily, SymmetryCase,
};
use crate::tally::{Parts, Tally, TallyError};

/// A kernel that counts the completions of prefixes and the placements of column sets.
pub trait Kernel: Send {
    /// Adds the completions of `prefixes`, all of them prefixes of `case`, to `parts`. A kernel may
    /// buffer work to process it together with later prefixes.
    ///
    /// # Errors
    /// A sum exceeds 128 bits.
    fn count(
        &mut self,
        case: &SymmetryCase,
        prefixes: &[Prefix],
        parts: &mut Parts,
    ) -> Result<(), TallyError>;

    /// Creates the tables for the sets of `family`, which [`Self::count_set`] otherwise creates
    /// with the first of them.
    fn prepare(&mut self, _family: &SetFamily) {}

    /// Adds the placements of `set`, a set of `family`, to `parts`. Nothing stays buffered.
    ///
    /// # Errors
    /// A sum exceeds 128 bits, or the set was counted twice with different results.
    fn count_set(
        &mut self,
        family: &SetFamily,
        set: &ColumnSet,
        parts: &mut Parts,
    ) -> Result<(), TallyError> {
        for case in family.cases(set) {
            self.count(&case, &[Prefix::start(&case)], parts)?;
            self.finish(parts)?;
        }
        Ok(())
    }

    /// Counts any buffered work. Afterwards `parts` is complete.
    ///
    /// # Errors
    /// A sum exceeds 128 bits.
    fn finish(&mut self, _parts: &mut Parts) -> Result<(), TallyError> {
        Ok(())
    }
}

/// Counts the prefixes of `range`, verifies the sum against its residues and returns it.
///
/// # Errors
/// A sum exceeds 128 bits, or the residues disagree.
pub fn count_range(
    kernel: &mut dyn Kernel,
    decomposition: &Decomposition,
    range: Range<u64>,
) -> Result<Tally, TallyError> {
    count_parts(kernel, decomposition, range)?.total()
}

/// Counts the prefixes or column sets of `range`, itemised by weight.
///
/// # Errors
/// A sum exceeds 128 bits, or a set was counted twice with different results.
pub fn count_parts(
    kernel: &mut dyn Kernel,
    decomposition: &Decomposition,
    range: Range<u64>,
) -> Result<Parts, TallyError> {
    const CHUNK: usize = 1024;
    let mut parts = Parts::default();
    if decomposition.has_sets() {
        for (family, set) in decomposition.sets(range) {
            kernel.count_set(family, &set, &mut parts)?;
        }
        return Ok(parts);
    }
    let mut outcome = Ok(());
    let mut chunk: Vec<Prefix> = Vec::with_capacity(CHUNK);
    let mut case_of_chunk: Option<&SymmetryCase> = None;
    let mut flush = |case: Option<&SymmetryCase>, chunk: &mut Vec<Prefix>| {
        if let (Some(case), Ok(())) = (case, &outcome) {
            outcome = kernel.count(case, chunk, &mut parts);
        }
        chunk.clear();
    };
    decomposition.for_each(range, |case, prefix| {
        let same_case = case_of_chunk.is_some_and(|p| std::ptr::eq(p, case));
        if !same_case || chunk.len() == CHUNK {
            flush(case_of_chunk, &mut chunk);
            case_of_chunk = Some(case);
        }
        chunk.push(*prefix);
    });
    flush(case_of_chunk, &mut chunk);
    outcome?;
    kernel.finish(&mut parts)?;
    Ok(parts)
}

/// Counts the prefixes of each of `ranges`, itemised by weight, in order. Nothing stays buffered
/// between ranges.
///
/// # Errors
/// A sum exceeds 128 bits.
pub fn count_sub_ranges(
    kernel: &mut dyn Kernel,
    decomposition: &Decomposition,
    ranges: impl IntoIterator<Item = Range<u64>>,
) -> Result<Vec<Parts>, TallyError> {
    ranges.into_iter().map(|range| count_parts(kernel, decomposition, range)).collect()
}

/// The identifier of a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum KernelKind {
    /// [`mod@reference`].
    Reference,
    /// [`textbook`].
    Textbook,
    /// [`scalar`].
    Scalar,
    /// [`simd`] over 8 lanes of AVX2.
    Avx2,
    /// [`simd`] over 16 lanes of AVX-512.
    Avx512,
    /// [`generic`].
    Generic,
    /// [`sets`] with the instructions that every processor has.
    Sets,
    /// [`sets`] with AVX2.
    SetsAvx2,
    /// [`sets`] with AVX-512.
    SetsAvx512,
}

/// The error returned when a name is not that of a kernel.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "'{0}' is not a kernel; choose auto, reference, textbook, scalar, avx2, avx512, generic, sets, sets-avx2 or sets-avx512"
)]
pub struct UnknownKernel(String);

/// The error returned when a kernel cannot count a problem here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KernelError {
    /// The processor lacks the instructions.
    #[error(
        "kernel {0} needs instructions that this processor lacks; --kernel auto uses the fastest that works here"
    )]
    NotOnThisMachine(KernelKind),
    /// The kernel counts queens only.
    #[error("kernel {0} counts queens only; use --kernel auto, generic or reference for {1}s")]
    QueensOnly(KernelKind, Piece),
}

impl KernelKind {
    /// All kernels, slowest first for large boards.
    pub const ALL: [Self; 9] = [
        Self::Reference,
        Self::Generic,
        Self::Textbook,
        Self::Scalar,
        Self::Avx2,
        Self::Avx512,
        Self::Sets,
        Self::SetsAvx2,
        Self::SetsAvx512,
    ];

    /// Returns the kernel's name on the command line and in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Reference => "reference",
            Self::Textbook => "textbook",
            Self::Scalar => "scalar",
            Self::Avx2 => "avx2",
            Self::Avx512 => "avx512",
            Self::Generic => "generic",
            Self::Sets => "sets",
            Self::SetsAvx2 => "sets-avx2",
            Self::SetsAvx512 => "sets-avx512",
        }
    }

    /// Returns whether this processor can run the kernel.
    pub fn runs_here(self) -> bool {
        match self {
            Self::Avx2 => simd::avx2_runs_here(),
            Self::Avx512 => simd::avx512_runs_here(),
            _ => self.instructions().is_none_or(sets::Instructions::run_here),
        }
    }

    /// Returns the instruction set of a kernel for column sets.
    const fn instructions(self) -> Option<sets::Instructions> {
        match self {
            Self::Sets => Some(sets::Instructions::Portable),
            Self::SetsAvx2 => Some(sets::Instructions::Avx2),
            Self::SetsAvx512 => Some(sets::Instructions::Avx512),
            _ => None,
        }
    }

    /// Returns whether this kernel is for column sets.
    pub const fn is_for_sets(self) -> bool {
        self.instructions().is_some()
    }

    /// Returns the fastest kernel for prefixes of `piece` on this processor.
    pub fn fastest(piece: Piece) -> Self {
        match piece {
            Piece::Queen if Self::Avx512.runs_here() => Self::Avx512,
            Piece::Queen if Self::Avx2.runs_here() => Self::Avx2,
            Piece::Queen => Self::Scalar,
            _ => Self::Generic,
        }
    }

    /// Returns the fastest kernel for column sets on this processor.
    pub fn fastest_for_sets() -> Self {
        let kinds = [Self::SetsAvx512, Self::SetsAvx2];
        kinds.into_iter().find(|kind| kind.runs_here()).unwrap_or(Self::Sets)
    }

    /// Returns the kernel that is fastest for boards like `problem` on this processor: for column
    /// sets from a size on that was measured, because on smaller boards their tables and short
    /// lists cost more than they gain. A board with so many decided squares that little is left to
    /// search is better counted by [`Self::fastest`].
    pub fn fastest_on_cpu(problem: &Problem) -> Self {
        let sets = Self::fastest_for_sets();
        if sets.is_fastest_for(problem) { sets } else { Self::fastest(problem.piece()) }
    }

    /// Returns whether this kernel for column sets is faster on boards like `problem` than the
    /// kernel for prefixes with the same instructions.
    pub fn is_fastest_for(self, problem: &Problem) -> bool {
        let least = match (self, Scheme::best(problem)) {
            // On x86-64 `sets` is 1.5 times as fast as `scalar` at n = 14 and 1.7 times at n = 15.
            // On aarch64 only instructions were counted. The ratio of `scalar` to `sets` is 0.95 at
            // n = 14, 1.05 at 15 and 2.97 at 16; on x86-64 it is 0.94, 1.13 and 3.02.
            (Self::Sets, _) => 14,
            (_, Scheme::CentreCross) => 18,
            _ => 16,
        };
        let is_counted = problem.piece() == Piece::Queen && problem.n() <= MAX_COUNT_SIZE;
        self.is_for_sets() && is_counted && problem.n() >= least
    }

    /// Returns the kernel for column sets with the instructions of this kernel.
    pub const fn for_sets(self) -> Self {
        match self {
            Self::Avx512 | Self::SetsAvx512 => Self::SetsAvx512,
            Self::Avx2 | Self::SetsAvx2 => Self::SetsAvx2,
            _ => Self::Sets,
        }
    }

    /// Returns the fastest kernel for the subproblems of `scheme` on this processor.
    pub fn fastest_for(scheme: Scheme, piece: Piece) -> Self {
        if scheme == Scheme::ColumnSets { Self::fastest_for_sets() } else { Self::fastest(piece) }
    }

    /// Returns the scheme that this kernel uses for `problem`.
    pub fn scheme(self, problem: &Problem) -> Scheme {
        match self {
            // The oracle's totals share nothing with the case analysis of the other schemes.
            Self::Textbook | Self::Reference => Scheme::TopMirror,
            _ if self.is_for_sets() => Scheme::ColumnSets,
            _ => Scheme::best(problem),
        }
    }

    /// Returns whether the kernel reports the number of placements. The textbook kernel does not:
    /// counting them would slow the baseline down.
    pub const fn counts_nodes(self) -> bool {
        !matches!(self, Self::Textbook)
    }

    /// Creates a kernel of this kind for one thread.
    ///
    /// # Errors
    /// This processor cannot run it, or it does not support `piece`.
    pub fn build(self, piece: Piece) -> Result<Box<dyn Kernel>, KernelError> {
        if !self.runs_here() {
            return Err(KernelError::NotOnThisMachine(self));
        }
        if piece != Piece::Queen && !matches!(self, Self::Reference | Self::Generic) {
            return Err(KernelError::QueensOnly(self, piece));
        }
        if let Some(instructions) = self.instructions() {
            let other = Self::fastest(piece).build(piece)?;
            let kernel = sets::SetKernel::new(instructions, other);
            return Ok(Box::new(kernel.ok_or(KernelError::NotOnThisMachine(self))?));
        }
        Ok(match self {
            Self::Reference => Box::new(reference::Reference),
            Self::Textbook => Box::new(textbook::Textbook),
            Self::Scalar => Box::new(scalar::Scalar),
            Self::Avx2 => simd::avx2().ok_or(KernelError::NotOnThisMachine(self))?,
            Self::Avx512 => simd::avx512().ok_or(KernelError::NotOnThisMachine(self))?,
            _ => Box::new(generic::Generic),
        })
    }
}

impl fmt::Display for KernelKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for KernelKind {
    type Err = UnknownKernel;

    fn from_str(text: &str) -> Result<Self, UnknownKernel> {
        Self::ALL
            .into_iter()
            .find(|k| k.name() == text)
            .ok_or_else(|| UnknownKernel(text.to_owned()))
    }
}
