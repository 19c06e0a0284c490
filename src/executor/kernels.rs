//! The CPU kernels of a run, and the handling of their failures.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::known_answers::known_answers;
use crate::board::Piece;
use crate::decomposition::JobHash;
use crate::kernel::{Kernel, KernelError, KernelKind};

/// A factory of kernels: [`KernelKind::build`], or a substitute in a test.
#[derive(Clone)]
pub struct KernelFactory(Arc<MakeKernel>);

type MakeKernel = dyn Fn(KernelKind, Piece) -> Result<Box<dyn Kernel>, KernelError> + Send + Sync;

impl KernelFactory {
    /// Creates a factory from a function.
    pub fn new(
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

/// A unit of a job.
pub(crate) type UnitOfJob = (JobHash, u64);

/// The CPU kernels of a run, shared by its threads. If a kernel fails on a unit, only that attempt
/// is lost: the unit is counted again, by another kernel if there is one. The failed kernel must
/// pass a test with known answers, or it is not used again.
///
/// The *candidates* of a unit are the kernels that may count it, the preferred one first.
#[derive(Debug)]
pub(crate) struct CpuKernels {
    /// All kernels of the run, the preferred one first.
    kinds: Vec<KernelKind>,
    factory: KernelFactory,
    /// The maximum number of attempts of a kernel on a unit.
    most_attempts: usize,
    state: Mutex<KernelState>,
}

#[derive(Debug, Default)]
struct KernelState {
    disabled: HashSet<KernelKind>,
    /// All failures of each unit that is not counted yet.
    failures: HashMap<UnitOfJob, Vec<(KernelKind, String)>>,
    /// The errors of the kernels that gave wrong answers.
    wrong: Vec<String>,
    /// The times of the latest failures of each kernel.
    failed_at: HashMap<KernelKind, Vec<Instant>>,
    noted: HashSet<KernelKind>,
}

/// The consequences of a kernel's failure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct KernelFailure {
    /// The kernel.
    pub(crate) kernel: KernelKind,
    /// The index of the unit that it failed on; `None` if it failed a test with known answers.
    pub(crate) unit: Option<u64>,
    /// The error of a test with known answers that it failed: its results in this run are in doubt.
    pub(crate) wrong: Option<String>,
    /// A message for the user, if it has new information.
    pub(crate) note: Option<String>,
}

impl CpuKernels {
    /// Creates the kernels of a run from `kinds`, the preferred one first. Each may be tried twice
    /// on a unit, or only once without `fallback`.
    pub(crate) fn new(kinds: Vec<KernelKind>, factory: KernelFactory, fallback: bool) -> Self {
        let most_attempts = if fallback { 2 } else { 1 };
        Self { kinds, factory, most_attempts, state: Mutex::default() }
    }

    /// Returns all kernels of the run, the preferred one first.
    pub(super) fn kinds(&self) -> &[KernelKind] {
        &self.kinds
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

    /// Returns the kernel to count a unit with: of the candidates in use the one that failed on it
    /// least often, and of these the most preferred.
    ///
    /// # Errors
    /// No kernel is left. The message describes how each of them failed.
    pub(super) fn pick(
        &self,
        unit: UnitOfJob,
        candidates: &[KernelKind],
    ) -> Result<KernelKind, String> {
        let state = self.state();
        let failures = state.failures.get(&unit).map_or(&[][..], Vec::as_slice);
        let attempts =
            |kind: &KernelKind| failures.iter().filter(|(failed, _)| failed == kind).count();
        let left = state.in_use(candidates).filter(|kind| attempts(kind) < self.most_attempts);
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

    /// Forgets the failures of a unit, because it is counted or given up.
    pub(super) fn forget(&self, unit: UnitOfJob) {
        self.state().failures.remove(&unit);
    }

    /// Records a failure, and tests the kernel with known answers.
    pub(super) fn fail(
        &self,
        unit: UnitOfJob,
        kernel: KernelKind,
        why: &str,
        candidates: &[KernelKind],
    ) -> KernelFailure {
        /// A kernel that failed on this many units within a day is not used again, even if it
        /// passes the test.
        const MOST_FAILED_UNITS: usize = 3;
        const DAY: Duration = Duration::from_secs(86_400);
        let failed_units = {
            let mut state = self.state();
            state.failures.entry(unit).or_default().push((kernel, why.to_owned()));
            let failed_at = state.failed_at.entry(kernel).or_default();
            failed_at.retain(|at| at.elapsed() < DAY);
            failed_at.push(Instant::now());
            failed_at.len()
        };
        let (_, unit) = unit;
        if let Some(failure) = self.test(kernel, candidates) {
            return KernelFailure { unit: Some(unit), ..failure };
        }
        let mut state = self.state();
        // If there is no other kernel, it may try again.
        let has_alternative = state.in_use(candidates).any(|kind| kind != kernel);
        let dropped =
            failed_units >= MOST_FAILED_UNITS && has_alternative && state.disabled.insert(kernel);
        let is_new = state.noted.insert(kernel);
        let note = match state.in_use(candidates).next() {
            Some(next) if dropped => Some(format!(
                "kernel {kernel} failed on {failed_units} units, the last of them {unit}: {why}; it is disabled, and the remaining units are counted by kernel {next}"
            )),
            Some(_) if is_new => Some(format!(
                "kernel {kernel} failed on unit {unit}: {why}; it passed a test, and the unit is counted again"
            )),
            _ => None,
        };
        KernelFailure { kernel, unit: Some(unit), wrong: None, note }
    }

    /// Tests a kernel with known answers. If it fails, disables it and returns the failure.
    pub(super) fn test(
        &self,
        kernel: KernelKind,
        candidates: &[KernelKind],
    ) -> Option<KernelFailure> {
        let wrong = known_answers(kernel, &self.factory).err()?;
        let mut state = self.state();
        let is_new = state.disabled.insert(kernel);
        if is_new {
            state.wrong.push(wrong.clone());
            state.noted.insert(kernel);
        }
        // Without a next one, the error that ends the run reports it.
        let next = state.in_use(candidates).next().filter(|_| is_new);
        let note = next.map(|next| format!(
            "{wrong}; it is disabled, and everything it counted in this run is counted again by kernel {next}"
        ));
        Some(KernelFailure { kernel, unit: None, wrong: Some(wrong), note })
    }
}

impl KernelState {
    fn in_use<'a>(&'a self, candidates: &'a [KernelKind]) -> impl Iterator<Item = KernelKind> + 'a {
        candidates.iter().copied().filter(|kind| !self.disabled.contains(kind))
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::decomposition::{Prefix, SymmetryCase};
    use crate::tally::{Parts, Residues, TallyError};

    const KINDS: [KernelKind; 2] = [KernelKind::Scalar, KernelKind::Generic];

    fn unit(number: u64) -> UnitOfJob {
        (JobHash::from_bytes([1; 16]), number)
    }

    /// A kernel that panics, or finds too many completions.
    pub(in super::super) struct Faulty(
        pub(in super::super) Option<TallyError>,
        pub(in super::super) bool,
    );

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

    pub(in super::super) fn factory(
        make: impl Fn() -> Faulty + Send + Sync + 'static,
    ) -> KernelFactory {
        KernelFactory::new(move |kind, piece| match kind {
            KernelKind::Scalar => Ok(Box::new(make())),
            _ => kind.build(piece),
        })
    }

    #[test]
    fn a_unit_is_tried_twice_by_all_kernels_before_it_is_given_up() {
        let kernels = CpuKernels::new(KINDS.to_vec(), KernelFactory::default(), true);
        for (kind, new) in [
            (KernelKind::Scalar, true),
            (KernelKind::Generic, true),
            (KernelKind::Scalar, false),
            (KernelKind::Generic, false),
        ] {
            assert_eq!(kernels.pick(unit(7), &KINDS), Ok(kind));
            assert_eq!(kernels.pick(unit(8), &KINDS), Ok(KernelKind::Scalar), "another unit");
            let failure = kernels.fail(unit(7), kind, "a bit flipped", &KINDS);
            assert_eq!(failure.wrong, None);
            assert_eq!(failure.note.is_some(), new, "{failure:?}");
        }
        let why = kernels.pick(unit(7), &KINDS).expect_err("both failed twice");
        assert_eq!(why, "kernel scalar: a bit flipped; kernel generic: a bit flipped");
    }

    #[test]
    fn a_kernel_that_fails_on_three_units_is_disabled_even_if_it_passes_the_known_answers() {
        let kernels = CpuKernels::new(KINDS.to_vec(), KernelFactory::default(), true);
        for number in 0..3 {
            assert_eq!(kernels.pick(unit(9), &KINDS), Ok(KernelKind::Scalar));
            let failure = kernels.fail(unit(number), KernelKind::Scalar, "a bit flipped", &KINDS);
            assert!(
                failure.wrong.is_none() && failure.note.is_some() == (number != 1),
                "{failure:?}"
            );
        }
        assert_eq!(kernels.pick(unit(9), &KINDS), Ok(KernelKind::Generic));
        // There is no other kernel.
        for number in 0..5 {
            assert_eq!(
                kernels.fail(unit(number), KernelKind::Generic, "a bit flipped", &KINDS).kernel,
                KernelKind::Generic
            );
        }
        assert_eq!(kernels.pick(unit(9), &KINDS), Ok(KernelKind::Generic));
    }

    #[test]
    fn a_kernel_that_fails_the_known_answers_is_disabled_at_once_and_its_results_are_discarded() {
        let kernels = CpuKernels::new(KINDS.to_vec(), factory(|| Faulty(None, false)), true);
        let failure = kernels.fail(unit(3), KernelKind::Scalar, "a bit flipped", &KINDS);
        assert!(failure.wrong.is_some());
        assert!(
            failure.note.is_some_and(|note| note.ends_with("is counted again by kernel generic"))
        );
        assert_eq!(kernels.pick(unit(4), &KINDS), Ok(KernelKind::Generic));
        // Another thread was using the kernel.
        assert_eq!(kernels.fail(unit(4), KernelKind::Scalar, "a bit flipped", &KINDS).note, None);
        let alone = CpuKernels::new(KINDS.to_vec(), factory(|| Faulty(None, false)), true);
        let only = &KINDS[..1];
        assert_eq!(alone.fail(unit(3), KernelKind::Scalar, "a bit flipped", only).note, None);
        assert_eq!(alone.pick(unit(3), only), Err("kernel scalar: a bit flipped".into()));
        let untried = alone.pick(unit(4), only).expect_err("none is left");
        assert!(untried.contains("not the published value"), "{untried}");
    }

    #[test]
    fn a_kernel_that_fails_a_test_without_a_unit_is_disabled_and_said_once() {
        let kernels = CpuKernels::new(KINDS.to_vec(), factory(|| Faulty(None, true)), true);
        assert_eq!(kernels.test(KernelKind::Generic, &KINDS), None);
        let failure = kernels.test(KernelKind::Scalar, &KINDS).expect("it panics");
        assert!(failure.wrong.is_some() && failure.unit.is_none() && failure.note.is_some());
        assert_eq!(kernels.pick(unit(0), &KINDS), Ok(KernelKind::Generic));
        let again = kernels.test(KernelKind::Scalar, &KINDS).expect("it still panics");
        assert_eq!(again.note, None);
    }

    #[test]
    fn failures_of_a_unit_that_is_counted_are_forgotten() {
        let kernels = CpuKernels::new(KINDS.to_vec(), KernelFactory::default(), false);
        kernels.fail(unit(0), KernelKind::Scalar, "a bit flipped", &KINDS);
        assert_eq!(kernels.pick(unit(0), &KINDS), Ok(KernelKind::Generic));
        kernels.forget(unit(0));
        assert_eq!(kernels.pick(unit(0), &KINDS), Ok(KernelKind::Scalar));
    }
}
