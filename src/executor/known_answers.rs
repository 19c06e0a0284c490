//! Tests of kernels with boards whose numbers of solutions are published.

use std::panic::{AssertUnwindSafe, catch_unwind};

use super::kernels::KernelFactory;
use crate::board::{Piece, Problem};
use crate::decomposition::{Decomposition, Job, Scheme};
use crate::kernel::{KernelKind, count_range};
use crate::oeis::{Sequence, lookup};
use crate::tally::Tally;

/// Counts boards whose answers are published, and their mirror images.
///
/// # Errors
/// A description of the wrong answer or of the failure. A panic of the kernel is a failure, too.
pub(crate) fn known_answers(kind: KernelKind, factory: &KernelFactory) -> Result<(), String> {
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

#[cfg(test)]
mod tests {
    use super::super::kernels::tests::{Faulty, factory};
    use super::super::preference::KernelPreference;
    use super::*;
    use crate::tally::TallyError;

    #[test]
    fn a_kernel_that_panics_or_miscounts_fails_the_known_answers() {
        for (fault, what) in [
            (factory(|| Faulty(None, true)), "it panicked"),
            (factory(|| Faulty(Some(TallyError::Overflow), false)), "128 bits"),
            (factory(|| Faulty(None, false)), "which is not the published value"),
        ] {
            let why = known_answers(KernelKind::Scalar, &fault).expect_err("it is faulty");
            assert!(
                why.starts_with("kernel scalar on this machine: ") && why.contains(what),
                "{why}"
            );
            assert_eq!(known_answers(KernelKind::Generic, &fault), Ok(()));
        }
    }

    #[test]
    fn every_preferred_kernel_passes_the_known_answers() {
        for kind in KernelPreference::new(None).expect("runs here").kinds() {
            assert_eq!(known_answers(*kind, &KernelFactory::default()), Ok(()));
        }
        // The textbook kernel cannot count these symmetry cases and would panic, so it is never
        // included.
        assert!(
            KernelPreference::new(None)
                .is_ok_and(|preference| !preference.kinds().contains(&KernelKind::Textbook))
        );
    }
}
