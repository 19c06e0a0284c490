//! The CPU kernels of a count, tests with known answers for each, and the handling of their
//! failures.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::board::{Piece, Problem};
use crate::decomposition::{Decomposition, Job, Scheme};
use crate::kernel::{Kernel, KernelError, KernelKind, count_range};
use crate::oeis::{Sequence, lookup};
use crate::tally::Tally;

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

/// A factory of kernels: [`KernelKind::build`], or a substitute in a test.
#[derive(Clone)]
pub(super) struct KernelFactory(Arc<MakeKernel>);

type MakeKernel = dyn Fn(KernelKind, Piece) -> Result<Box<dyn Kernel>, KernelError> + Send + Sync;

impl KernelFactory {
    pub(super) fn new(
        make: impl Fn(KernelKind, Piece) -> Result<Box<dyn Kernel>, KernelError> + Send + Sync + 'static,
    ) -> Self {
        Self(Arc::new(make))
    }

    /// Creates a kernel for one thread.
    ///
    /// # Errors
    /// The kernel cannot count this piece here.
    pub(super) fn make(
        &self,
        kind: KernelKind,
        piece: Piece,
    ) -> Result<Box<dyn Kernel>, KernelError> {
        (self.0)(kind, piece)
    }
}

impl Default for KernelFactory {
    fn default() -> Self {
        Self::new(KernelKind::build)
    }
}

impl fmt::Debug for KernelFactory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("KernelFactory")
    }
}

/// Counts boards whose answers are published, and their mirror images.
///
/// # Errors
/// A description of the wrong answer or of the failure. A panic of the kernel is a failure, too.
#[cfg(any(feature = "cluster", test))]
pub(crate) fn known_answers(kind: KernelKind) -> Result<(), String> {
    known_answers_of(kind, &KernelFactory::default())
}

fn known_answers_of(kind: KernelKind, factory: &KernelFactory) -> Result<(), String> {
    // The oracle is slow.
    let queens = if kind == KernelKind::Reference { 8 } else { 10 };
    let boards = [
        (Piece::Queen, queens, Sequence::Total),
        (Piece::Superqueen, 10, Sequence::Superqueens),
        (Piece::Toroidal, 7, Sequence::Toroidal),
        (Piece::Rook, 6, Sequence::Rooks),
    ];
    let any_piece = matches!(kind, KernelKind::Reference | KernelKind::Generic);
    let tested = catch_unwind(AssertUnwindSafe(|| {
        let known = boards.into_iter().filter(|(piece, ..)| any_piece || *piece == Piece::Queen);
        known.into_iter().try_for_each(|(piece, n, sequence)| {
            let found = solutions(kind, factory, &Problem::empty(piece, n))?;
            match found.into_iter().find(|found| lookup(sequence, n) != Some(*found)) {
                Some(found) => Err(format!(
                    "it counts {found} solutions for {n} {piece}s, which is not the published value"
                )),
                None => Ok(()),
            }
        })
    }));
    let outcome =
        tested.unwrap_or_else(|_| Err("it panicked on a board with a published value".into()));
    outcome.map_err(|what| format!("kernel {kind} on this machine: {what}"))
}

/// Returns the solutions of a board, counted twice: the board itself, and its mirror image.
fn solutions(
    kind: KernelKind,
    factory: &KernelFactory,
    problem: &Problem,
) -> Result<[u128; 2], String> {
    let scheme = match kind {
        // The textbook kernel counts only its own scheme.
        KernelKind::Textbook => kind.scheme(problem),
        _ if kind.is_for_sets() => Scheme::ColumnSets,
        _ => Scheme::best(problem),
    };
    let job = Job::new(problem.clone(), scheme, None, 64).map_err(|error| error.to_string())?;
    let itself = Decomposition::new(job);
    let count = |decomposition: &Decomposition| {
        let mut kernel = factory.make(kind, problem.piece()).map_err(|error| error.to_string())?;
        let mut total = Tally::default();
        for unit in 0..decomposition.units() {
            let tally = count_range(&mut *kernel, decomposition, decomposition.unit(unit));
            tally.and_then(|tally| total.merge(&tally)).map_err(|error| error.to_string())?;
        }
        total.solutions().map_err(|error| error.to_string())
    };
    Ok([count(&itself)?, count(&itself.mirrored())?])
}

/// The CPU kernels of a run, shared by its threads. If a kernel fails on a unit, only that attempt
/// is lost: the unit is counted again, by another kernel if there is one. The failed kernel must
/// pass a test with known answers, or it is not used again.
#[derive(Debug)]
pub(super) struct CpuKernels {
    factory: KernelFactory,
    /// The maximum number of attempts of a kernel on a unit.
    most_attempts: usize,
    state: Mutex<KernelState>,
}

#[derive(Debug)]
struct KernelState {
    /// The kernels in use, the preferred one first.
    in_use: Vec<KernelKind>,
    /// All failures of each unit.
    failures: HashMap<u64, Vec<(KernelKind, String)>>,
    /// The errors of the kernels that gave wrong answers.
    wrong: Vec<String>,
    /// The number of units on which each kernel failed.
    failed_units: HashMap<KernelKind, u32>,
    noted: HashSet<KernelKind>,
}

/// The consequences of a kernel's failure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct KernelFailure {
    /// The kernel.
    pub(super) kernel: KernelKind,
    /// The unit that it failed on.
    pub(super) unit: u64,
    /// True if its results in this run are still trusted: it passed a test with known answers.
    pub(super) trusted: bool,
    /// A message for the user, if it has new information.
    pub(super) note: Option<String>,
}

impl CpuKernels {
    /// Creates the kernels of a run from `kinds`, the preferred one first. Each may be tried twice
    /// on a unit, or only once without `fallback`.
    pub(super) fn new(kinds: Vec<KernelKind>, factory: KernelFactory, fallback: bool) -> Self {
        let state = KernelState {
            in_use: kinds,
            failures: HashMap::new(),
            wrong: Vec::new(),
            failed_units: HashMap::new(),
            noted: HashSet::new(),
        };
        Self { factory, most_attempts: if fallback { 2 } else { 1 }, state: Mutex::new(state) }
    }

    fn state(&self) -> MutexGuard<'_, KernelState> {
        // No code that holds the lock can panic in the middle of a change.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Creates a kernel for one thread.
    ///
    /// # Errors
    /// The kernel cannot count this piece here.
    pub(super) fn make(
        &self,
        kind: KernelKind,
        piece: Piece,
    ) -> Result<Box<dyn Kernel>, KernelError> {
        self.factory.make(kind, piece)
    }

    /// Returns the kernel to count a unit with: of those in use the one that failed on it least
    /// often, and of these the most preferred.
    ///
    /// # Errors
    /// No kernel is left. The message describes how each of them failed.
    pub(super) fn pick(&self, unit: u64) -> Result<KernelKind, String> {
        let state = self.state();
        let failures = state.failures.get(&unit).map_or(&[][..], Vec::as_slice);
        let attempts =
            |kind: &KernelKind| failures.iter().filter(|(failed, _)| failed == kind).count();
        let left = state.in_use.iter().copied().filter(|kind| attempts(kind) < self.most_attempts);
        left.min_by_key(attempts).ok_or_else(|| {
            // Of each kernel the first failure.
            let is_first = |&at: &usize| failures[..at].iter().all(|(of, _)| *of != failures[at].0);
            let first = (0..failures.len()).filter(is_first).map(|at| &failures[at]);
            let mut reasons: Vec<String> =
                first.map(|(kind, why)| format!("kernel {kind}: {why}")).collect();
            if reasons.is_empty() {
                // No kernel was tried on this unit.
                reasons.clone_from(&state.wrong);
            }
            reasons.join("; ")
        })
    }

    /// Records a failure, and tests the kernel with known answers.
    pub(super) fn fail(&self, unit: u64, kernel: KernelKind, why: &str) -> KernelFailure {
        /// A kernel that failed on this many units is not used again, even if it passes the test.
        const MOST_FAILED_UNITS: u32 = 3;
        let failed_units = {
            let mut state = self.state();
            state.failures.entry(unit).or_default().push((kernel, why.to_owned()));
            let failed_units = state.failed_units.entry(kernel).or_default();
            *failed_units += 1;
            *failed_units
        };
        let answers = known_answers_of(kernel, &self.factory);
        let trusted = answers.is_ok();
        let mut state = self.state();
        let was_in_use = state.in_use.contains(&kernel);
        if !trusted || failed_units >= MOST_FAILED_UNITS {
            // If there is no other kernel, it may try again.
            if !trusted || state.in_use.len() > 1 {
                state.in_use.retain(|kind| *kind != kernel);
            }
        }
        state.wrong.extend(answers.as_ref().err().filter(|_| was_in_use).cloned());
        let dropped = was_in_use && !state.in_use.contains(&kernel);
        if dropped {
            state.noted.insert(kernel);
        }
        let note = match (answers, state.in_use.first().copied()) {
            // The error that ends the run reports it.
            (_, None) => None,
            (Err(wrong), Some(next)) if dropped => Some(format!(
                "{wrong}; it is disabled, and everything it counted in this run is counted again by kernel {next}"
            )),
            (Ok(()), Some(next)) if dropped => Some(format!(
                "kernel {kernel} failed on {failed_units} units, the last of them {unit}: {why}; it is disabled, and the remaining units are counted by kernel {next}"
            )),
            (Ok(()), Some(_)) if state.noted.insert(kernel) => Some(format!(
                "kernel {kernel} failed on unit {unit}: {why}; it passed a test, and the unit is counted again"
            )),
            _ => None,
        };
        KernelFailure { kernel, unit, trusted, note }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decomposition::{Prefix, SymmetryCase};
    use crate::tally::{Parts, Residues, TallyError};

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

    /// A kernel that panics, or finds too many completions.
    struct Faulty(Option<TallyError>, bool);

    impl Kernel for Faulty {
        fn count(
            &mut self,
            case: &SymmetryCase,
            prefixes: &[Prefix],
            parts: &mut Parts,
        ) -> Result<(), TallyError> {
            assert!(!self.1, "on purpose");
            KernelKind::Generic
                .build(case.piece())
                .expect("for any piece")
                .count(case, prefixes, parts)?;
            parts.add(case.weight(), 3u32, Residues::of(3), 0u32)?;
            self.0.map_or(Ok(()), Err)
        }
    }

    fn factory(make: impl Fn() -> Faulty + Send + Sync + 'static) -> KernelFactory {
        KernelFactory::new(move |kind, piece| match kind {
            KernelKind::Scalar => Ok(Box::new(make())),
            _ => kind.build(piece),
        })
    }

    #[test]
    fn a_kernel_that_panics_or_miscounts_fails_the_known_answers() {
        for (fault, what) in [
            (factory(|| Faulty(None, true)), "it panicked"),
            (factory(|| Faulty(Some(TallyError::Overflow), false)), "128 bits"),
            (factory(|| Faulty(None, false)), "which is not the published value"),
        ] {
            let why = known_answers_of(KernelKind::Scalar, &fault).expect_err("it is faulty");
            assert!(
                why.starts_with("kernel scalar on this machine: ") && why.contains(what),
                "{why}"
            );
            assert_eq!(known_answers_of(KernelKind::Generic, &fault), Ok(()));
        }
    }

    #[test]
    fn a_unit_is_tried_twice_by_all_kernels_before_it_is_given_up() {
        let kinds = vec![KernelKind::Scalar, KernelKind::Generic];
        let kernels = CpuKernels::new(kinds, KernelFactory::default(), true);
        for (kind, new) in [
            (KernelKind::Scalar, true),
            (KernelKind::Generic, true),
            (KernelKind::Scalar, false),
            (KernelKind::Generic, false),
        ] {
            assert_eq!(kernels.pick(7), Ok(kind));
            assert_eq!(kernels.pick(8), Ok(KernelKind::Scalar), "another unit");
            let failure = kernels.fail(7, kind, "a bit flipped");
            assert!(failure.trusted);
            assert_eq!(failure.note.is_some(), new, "{failure:?}");
        }
        let why = kernels.pick(7).expect_err("both failed twice");
        assert_eq!(why, "kernel scalar: a bit flipped; kernel generic: a bit flipped");
    }

    #[test]
    fn a_kernel_that_fails_on_three_units_is_disabled_even_if_it_passes_the_known_answers() {
        let kinds = vec![KernelKind::Scalar, KernelKind::Generic];
        let kernels = CpuKernels::new(kinds, KernelFactory::default(), true);
        for unit in 0..3 {
            assert_eq!(kernels.pick(9), Ok(KernelKind::Scalar));
            let failure = kernels.fail(unit, KernelKind::Scalar, "a bit flipped");
            assert!(failure.trusted && failure.note.is_some() == (unit != 1), "{failure:?}");
        }
        assert_eq!(kernels.pick(9), Ok(KernelKind::Generic));
        // There is no other kernel.
        for unit in 0..5 {
            assert_eq!(
                kernels.fail(unit, KernelKind::Generic, "a bit flipped").kernel,
                KernelKind::Generic
            );
        }
        assert_eq!(kernels.pick(9), Ok(KernelKind::Generic));
    }

    #[test]
    fn a_kernel_that_fails_the_known_answers_is_disabled_at_once_and_its_results_are_discarded() {
        let kinds = vec![KernelKind::Scalar, KernelKind::Generic];
        let kernels = CpuKernels::new(kinds, factory(|| Faulty(None, false)), true);
        let failure = kernels.fail(3, KernelKind::Scalar, "a bit flipped");
        assert!(!failure.trusted);
        assert!(
            failure.note.is_some_and(|note| note.ends_with("is counted again by kernel generic"))
        );
        assert_eq!(kernels.pick(4), Ok(KernelKind::Generic));
        // Another thread was using the kernel.
        assert_eq!(kernels.fail(4, KernelKind::Scalar, "a bit flipped").note, None);
        let alone =
            CpuKernels::new(vec![KernelKind::Scalar], factory(|| Faulty(None, false)), true);
        assert_eq!(alone.fail(3, KernelKind::Scalar, "a bit flipped").note, None);
        assert_eq!(alone.pick(3), Err("kernel scalar: a bit flipped".into()));
        let untried = alone.pick(4).expect_err("none is left");
        assert!(untried.contains("not the published value"), "{untried}");
    }

    #[test]
    fn every_preferred_kernel_passes_the_known_answers() {
        for kind in KernelPreference::new(None).expect("runs here").kinds() {
            assert_eq!(known_answers(*kind), Ok(()));
        }
        // The textbook kernel cannot count these symmetry cases and would panic, so it is never
        // included.
        assert!(
            KernelPreference::new(None)
                .is_ok_and(|preference| !preference.kinds().contains(&KernelKind::Textbook))
        );
    }
}
