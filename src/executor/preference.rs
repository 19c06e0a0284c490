//! The CPU kernels of a run in order of preference.

use crate::board::Piece;
use crate::decomposition::{Job, Scheme};
use crate::kernel::{KernelError, KernelKind};

/// The kernels of a run in order of preference; those after the first count what the first cannot
/// count or failed on, and recount its own units.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct KernelPreference(Vec<KernelKind>);

impl KernelPreference {
    /// Creates the preference with the chosen kernel, or the fastest, and all slower ones that run
    /// here; also the next faster one if none of the slower ones is useful, and, if none was
    /// chosen, those for column sets.
    ///
    /// # Errors
    /// The chosen kernel cannot run here.
    pub(crate) fn new(chosen: Option<KernelKind>) -> Result<Self, KernelError> {
        let fastest_first: Vec<KernelKind> = KernelKind::ALL
            .into_iter()
            .rev()
            // The textbook kernel counts only its own scheme, which no campaign uses.
            .filter(|kind| kind.runs_here() && *kind != KernelKind::Textbook)
            .collect();
        let first = chosen.unwrap_or_else(|| KernelKind::fastest(Piece::Queen));
        first.build(Piece::Queen)?;
        let position = |kind: KernelKind| fastest_first.iter().position(|known| *known == kind);
        let mut kinds = vec![first];
        kinds.extend(fastest_first.iter().filter(|kind| position(**kind) > position(first)));
        if kinds[1..].iter().all(|kind| *kind == KernelKind::Reference) {
            // The oracle is for small boards only, and a recount needs a different kernel from the
            // chosen one.
            kinds
                .extend(fastest_first.iter().rev().find(|kind| position(**kind) < position(first)));
        }
        if chosen.is_none() {
            kinds.extend(fastest_first.iter().filter(|kind| kind.is_for_sets()));
        }
        Ok(Self(kinds))
    }

    /// Returns all kernels, the preferred one first.
    #[cfg(any(feature = "cluster", test))]
    pub(crate) fn kinds(&self) -> &[KernelKind] {
        &self.0
    }

    /// Returns the kernels that can count a job.
    pub(crate) fn for_job(&self, job: &Job) -> impl Iterator<Item = KernelKind> {
        let problem = job.problem();
        let (for_sets, others): (Vec<KernelKind>, Vec<KernelKind>) =
            self.0.iter().partition(|kind| kind.is_for_sets());
        for_sets.into_iter().chain(others).filter(move |kind| match kind {
            // The oracle is for small boards, unless it was chosen explicitly.
            KernelKind::Reference => self.0.first() == Some(kind) || problem.n() <= 10,
            KernelKind::Generic => true,
            KernelKind::Textbook => false,
            KernelKind::Scalar | KernelKind::Avx2 | KernelKind::Avx512 => {
                problem.piece() == Piece::Queen
            }
            KernelKind::Sets | KernelKind::SetsAvx2 | KernelKind::SetsAvx512 => {
                job.scheme() == Scheme::ColumnSets
            }
        })
    }

    /// Returns the first kernel for the job other than `not_kernel`.
    #[cfg(any(feature = "cluster", test))]
    pub(crate) fn pick(&self, job: &Job, not_kernel: Option<&str>) -> Option<KernelKind> {
        self.for_job(job).find(|kind| not_kernel != Some(kind.name()))
    }

    /// Returns the first kernel for the job, and the next one that does not count by column sets,
    /// which shares nothing with a first one that does: the same one twice if there is no other.
    #[cfg(feature = "cluster")]
    pub(crate) fn pair(&self, job: &Job) -> Option<(KernelKind, KernelKind)> {
        let first = self.for_job(job).next()?;
        let second = self.for_job(job).find(|kind| *kind != first && !kind.is_for_sets());
        Some((first, second.unwrap_or(first)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::board::Problem;

    fn job(piece: Piece, n: usize) -> Job {
        let problem = Problem::empty(piece, n);
        let scheme = Scheme::best(&problem);
        Job::new(problem, scheme, None, 1).expect("a small board")
    }

    #[test]
    fn every_preference_can_count_a_unit_of_queens_twice_by_different_kernels() {
        let chosen = KernelKind::ALL
            .into_iter()
            .filter(|kind| kind.runs_here() && *kind != KernelKind::Textbook);
        for choice in chosen.map(Some).chain([None]) {
            let preference = KernelPreference::new(choice).expect("runs here");
            for scheme in [Scheme::CentreCross, Scheme::ColumnSets] {
                let job = Job::new(Problem::empty(Piece::Queen, 20), scheme, None, 1);
                let job = job.expect("a small board");
                let first = preference.pick(&job, None).expect("the first");
                let fastest = KernelKind::fastest_for(scheme, Piece::Queen);
                let able = |kind: &KernelKind| !kind.is_for_sets() || scheme == Scheme::ColumnSets;
                assert_eq!(first, choice.filter(able).unwrap_or(fastest), "{choice:?}, {scheme:?}");
                let second = preference.pick(&job, Some(first.name())).expect("another one");
                assert_ne!(first, second);
            }
        }
    }

    #[test]
    fn other_pieces_use_the_kernels_that_support_them() {
        let preference = KernelPreference::new(None).expect("runs here");
        for piece in [Piece::Rook, Piece::Superqueen, Piece::Toroidal] {
            assert_eq!(preference.pick(&job(piece, 20), None), Some(KernelKind::Generic));
            // The oracle would take years.
            assert_eq!(preference.pick(&job(piece, 20), Some("generic")), None);
            assert_eq!(
                preference.pick(&job(piece, 8), Some("generic")),
                Some(KernelKind::Reference)
            );
        }
    }
}
