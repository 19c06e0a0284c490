//! Which kernel of the CPU counts what, and known answers asked of each.

use std::collections::HashMap;
use std::sync::OnceLock;

use crate::board::{Piece, Problem};
use crate::kernel::{Kernel, KernelError, KernelKind, count_range};
use crate::known::{Sequence, lookup};
use crate::preplacement::{Decomposition, Job, Scheme};
use crate::tally::Tally;

/// The kernels that a worker counts with, the one that it prefers first; the others are for what that cannot count,
/// and for recounts of its own units.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Ladder(Vec<KernelKind>);

impl Ladder {
    /// The chosen kernel, or the fastest, and all slower ones here; the next faster one where none of them is of use.
    ///
    /// # Errors
    /// The chosen one cannot run here.
    pub(super) fn new(chosen: Option<KernelKind>) -> Result<Self, KernelError> {
        let fastest_first: Vec<KernelKind> = KernelKind::ALL
            .into_iter()
            .rev()
            // It counts plans of its own only, which no campaign has.
            .filter(|kind| kind.runs_here() && *kind != KernelKind::Textbook)
            .collect();
        let first = chosen.unwrap_or_else(|| KernelKind::fastest(Piece::Queen));
        first.build(Piece::Queen)?;
        let rung = |kind: KernelKind| fastest_first.iter().position(|known| *known == kind);
        let mut kinds = vec![first];
        kinds.extend(fastest_first.iter().filter(|kind| rung(**kind) > rung(first)));
        if kinds[1..].iter().all(|kind| *kind == KernelKind::Reference) {
            // The oracle is for small boards only, and a recount needs another kernel than the chosen one.
            kinds.extend(fastest_first.iter().rev().find(|kind| rung(**kind) < rung(first)));
        }
        Ok(Self(kinds))
    }

    /// All of them.
    pub(super) fn kinds(&self) -> &[KernelKind] {
        &self.0
    }

    /// The first kernel that can count a job, and is not the one that must not.
    pub(super) fn pick(&self, job: &Job, not_kernel: Option<&str>) -> Option<KernelKind> {
        let problem = job.problem();
        let can = |kind: KernelKind| match kind {
            // The oracle is for small boards, unless it was asked for.
            KernelKind::Reference => self.0.first() == Some(&kind) || problem.n() <= 10,
            KernelKind::Generic => true,
            KernelKind::Textbook => false,
            KernelKind::Scalar | KernelKind::Avx2 | KernelKind::Avx512 => problem.piece() == Piece::Queen,
        };
        self.0.iter().copied().find(|&kind| can(kind) && not_kernel != Some(kind.name()))
    }
}

/// Counts boards whose answers are published, and their mirror images.
///
/// # Errors
/// What is wrong.
pub(super) fn known_answers(kind: KernelKind) -> Result<(), String> {
    // The oracle is slow.
    let n = if kind == KernelKind::Reference { 8 } else { 10 };
    let wrong = |what: String| format!("kernel {kind} on this machine: {what}");
    let problem = Problem::empty(Piece::Queen, n);
    let scheme = Scheme::best(&problem);
    let job = Job::new(problem, scheme, None, 64).map_err(|error| wrong(error.to_string()))?;
    let itself = Decomposition::new(job);
    for decomposition in [&itself, &itself.mirrored()] {
        let mut kernel = kind.build(Piece::Queen).map_err(|error| wrong(error.to_string()))?;
        let mut total = Tally::default();
        for unit in 0..decomposition.units() {
            let tally = count_range(&mut *kernel, decomposition, decomposition.unit(unit));
            let added = tally.and_then(|tally| total.merge(&tally));
            added.map_err(|error| wrong(error.to_string()))?;
        }
        let found = total.solutions().map_err(|error| wrong(error.to_string()))?;
        if lookup(Sequence::Total, n) != Some(found) {
            return Err(wrong(format!(
                "it counts {found} solutions for n = {n}, which is not the published number"
            )));
        }
    }
    Ok(())
}

/// The kernels of one thread, made when they are needed.
#[derive(Default)]
pub(super) struct Bench {
    kernels: HashMap<(KernelKind, Piece), Box<dyn Kernel>>,
}

impl Bench {
    /// The kernel of this kind for a piece.
    ///
    /// # Errors
    /// It cannot count that here.
    pub(super) fn kernel(&mut self, kind: KernelKind, piece: Piece) -> Result<&mut dyn Kernel, KernelError> {
        use std::collections::hash_map::Entry;
        Ok(match self.kernels.entry((kind, piece)) {
            Entry::Occupied(known) => &mut **known.into_mut(),
            Entry::Vacant(place) => &mut **place.insert(kind.build(piece)?),
        })
    }

    /// Forgets all kernels: one that failed may hold back work.
    pub(super) fn clear(&mut self) {
        self.kernels.clear();
    }
}

/// The processor, as it names itself.
pub(super) fn processor() -> &'static str {
    static NAME: OnceLock<String> = OnceLock::new();
    NAME.get_or_init(|| {
        let text = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let mut fields = text.lines().filter_map(|line| line.split_once(':'));
        let model = fields.find(|(field, _)| field.trim() == "model name");
        model.map_or_else(|| std::env::consts::ARCH.to_owned(), |(_, name)| name.trim().to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(piece: Piece, n: usize) -> Job {
        let problem = Problem::empty(piece, n);
        let scheme = Scheme::best(&problem);
        Job::new(problem, scheme, None, 1).expect("a small board")
    }

    #[test]
    fn every_ladder_can_count_a_unit_of_queens_twice_by_different_kernels() {
        let chosen =
            KernelKind::ALL.into_iter().filter(|kind| kind.runs_here() && *kind != KernelKind::Textbook);
        for choice in chosen.map(Some).chain([None]) {
            let ladder = Ladder::new(choice).expect("runs here");
            let queens = job(Piece::Queen, 20);
            let first = ladder.pick(&queens, None).expect("the first");
            assert_eq!(Some(first), choice.or(Some(KernelKind::fastest(Piece::Queen))));
            let second = ladder.pick(&queens, Some(first.name())).expect("another one");
            assert_ne!(first, second);
        }
    }

    #[test]
    fn other_pieces_are_for_the_kernels_that_know_them() {
        let ladder = Ladder::new(None).expect("runs here");
        for piece in [Piece::Rook, Piece::Superqueen, Piece::Toroidal] {
            assert_eq!(ladder.pick(&job(piece, 20), None), Some(KernelKind::Generic));
            // The oracle would take years.
            assert_eq!(ladder.pick(&job(piece, 20), Some("generic")), None);
            assert_eq!(ladder.pick(&job(piece, 8), Some("generic")), Some(KernelKind::Reference));
        }
    }

    #[test]
    fn every_kernel_of_the_ladder_knows_the_known_answers() {
        for kind in Ladder::new(None).expect("runs here").kinds() {
            assert_eq!(known_answers(*kind), Ok(()));
        }
        // The yardstick cannot count these plans, and would say so loudly: it is in no ladder.
        assert!(Ladder::new(None).is_ok_and(|ladder| !ladder.kinds().contains(&KernelKind::Textbook)));
    }
}
