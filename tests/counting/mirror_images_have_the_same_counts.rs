//! The mirror image of a decomposition has the same units with the same counts, computed on other
//! bits.

use std::io::Write;
use std::sync::Once;

use nqueens::board::{Piece, Problem, Square};
use nqueens::decomposition::{
    AttackState, Decomposition, Image, Job, Prefix, Scheme, SymmetryCase, columns_of,
};
use nqueens::kernel::gpu::{Adapters, Backend, DeviceKernel, Mirror, Shape};
use nqueens::kernel::{Kernel, KernelKind, count_range};
use nqueens::symmetry::{Group, Symmetry};
use nqueens::tally::{Parts, Residues, Tally, TallyError};
use proptest::prelude::*;

fn decompose(problem: &Problem, scheme: Scheme, depth: Option<usize>, unit: u64) -> Decomposition {
    Decomposition::new(Job::new(problem.clone(), scheme, depth, unit).expect("a small board"))
}

/// Returns the kernels for `piece` that run on this machine.
fn kernels(piece: Piece) -> Vec<KernelKind> {
    static NAME_THE_SKIPPED: Once = Once::new();
    NAME_THE_SKIPPED.call_once(|| {
        for kind in KernelKind::ALL.into_iter().filter(|kind| !kind.runs_here()) {
            // Written to stderr directly: the test runner hides the output of passing tests.
            let _ = writeln!(
                std::io::stderr(),
                "skipped: kernel {kind} does not run on this processor"
            );
        }
    });
    KernelKind::ALL.into_iter().filter(|kind| kind.build(piece).is_ok()).collect()
}

/// Returns the mirror of the shaders, and every adapter.
fn devices() -> Vec<(String, DeviceKernel)> {
    const SMALL: Shape = Shape { lanes: 512, chunk: 512, ring: 1 << 15, prefixes: 3000 };
    let mut backends: Vec<(String, Box<dyn Backend>)> =
        vec![("mirrors of the shaders".into(), Box::new(Mirror::default()))];
    let adapters = Adapters::find();
    for info in adapters.infos() {
        let backend = adapters.backend(&info.id).expect("an adapter that was found");
        backends.push((info.id.clone(), backend.expect("an adapter that opens")));
    }
    if backends.len() == 1 {
        let expected = std::env::var("NQUEENS_EXPECT_ADAPTER").is_ok_and(|value| value == "1");
        assert!(!expected, "an adapter is expected here, and there is none");
        let _ = writeln!(std::io::stderr(), "skipped: no adapter");
    }
    backends
        .into_iter()
        .map(|(id, backend)| (id, DeviceKernel::new(backend, SMALL, true)))
        .collect()
}

/// Returns the tallies of all units.
fn tallies(kernel: &mut dyn Kernel, decomposition: &Decomposition) -> Vec<Tally> {
    (0..decomposition.units())
        .map(|unit| {
            count_range(kernel, decomposition, decomposition.unit(unit)).expect("a small sum")
        })
        .collect()
}

fn tallies_of_device(kernel: &mut DeviceKernel, decomposition: &Decomposition) -> Vec<Tally> {
    let units: Vec<u64> = (0..decomposition.units()).collect();
    kernel
        .open(decomposition)
        .and_then(|mut job| job.count(&units, &|| true))
        .expect("a device that works")
}

fn thirds(tallies: &[Tally]) -> Vec<u128> {
    tallies.iter().map(Tally::thirds).collect()
}

fn nodes(tallies: &[Tally]) -> Vec<u128> {
    tallies.iter().map(Tally::nodes).collect()
}

fn assert_every_unit_agrees(kind: KernelKind, decomposition: &Decomposition) {
    let job = decomposition.job();
    let mut kernel = kind.build(job.problem().piece()).expect("a kernel that runs here");
    let original = tallies(&mut *kernel, decomposition);
    let image = tallies(&mut *kernel, &decomposition.mirrored());
    assert_eq!(thirds(&original), thirds(&image), "{kind}, {job}");
    // The kernel for rooks chooses an order of the rows by their bits, so its nodes may differ.
    if job.problem().piece() != Piece::Rook {
        assert_eq!(nodes(&original), nodes(&image), "{kind}, {job}");
    }
}

fn assert_every_unit_agrees_on_a_device(
    id: &str,
    kernel: &mut DeviceKernel,
    decomposition: &Decomposition,
) {
    let original = thirds(&tallies_of_device(kernel, decomposition));
    let image = thirds(&tallies_of_device(kernel, &decomposition.mirrored()));
    assert_eq!(original, image, "{id}, {}", decomposition.job());
}

#[test]
fn every_unit_of_the_image_has_the_same_count_on_empty_boards() {
    for piece in Piece::ALL {
        for kind in kernels(piece) {
            let largest =
                if (piece, kind) == (Piece::Rook, KernelKind::Reference) { 7 } else { 12 };
            for n in 6..=largest {
                let problem = Problem::empty(piece, n);
                let unit = n as u64 % 7 + 1;
                assert_every_unit_agrees(
                    kind,
                    &decompose(&problem, kind.scheme(&problem), None, unit),
                );
            }
        }
    }
}

#[test]
fn every_unit_of_the_image_has_the_same_count_on_devices() {
    for (id, mut kernel) in devices() {
        for n in 6..=12 {
            let problem = Problem::empty(Piece::Queen, n);
            let decomposition = decompose(&problem, Scheme::best(&problem), None, n as u64 % 7 + 1);
            assert_every_unit_agrees_on_a_device(&id, &mut kernel, &decomposition);
        }
    }
}

/// Generates boards of `pieces` with placed and blocked squares.
fn problems(
    pieces: &'static [Piece],
    sizes: std::ops::RangeInclusive<usize>,
) -> impl Strategy<Value = Problem> {
    let square = |n: usize| (0..n, 0..n).prop_map(|(row, col)| Square::new(row, col));
    (prop::sample::select(pieces), sizes).prop_flat_map(move |(piece, n)| {
        let squares = |most| prop::collection::vec(square(n), 0..=most);
        (squares(3), squares(12))
            .prop_filter_map("a square is placed or blocked, not both", move |(placed, blocked)| {
                Problem::new(piece, n, placed, blocked).ok()
            })
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]
    #[test]
    fn every_unit_of_the_image_has_the_same_count_on_boards_with_decided_squares(
        problem in problems(&Piece::ALL, 1..=8),
        depth in 0usize..5,
        unit in 1u64..=7,
    ) {
        for kind in kernels(problem.piece()) {
            assert_every_unit_agrees(kind, &decompose(&problem, kind.scheme(&problem), Some(depth), unit));
        }
        // The generic kernel counts under any scheme that fits.
        for scheme in [Scheme::CentreRows, Scheme::TopMirror, Scheme::Whole] {
            assert_every_unit_agrees(KernelKind::Generic, &decompose(&problem, scheme, Some(depth), unit));
        }
    }

    #[test]
    fn the_image_of_a_prefix_has_the_same_index(
        problem in problems(&Piece::ALL, 1..=9),
        depth in 0usize..6,
        unit in 1u64..=7,
    ) {
        for scheme in [Scheme::best(&problem), Scheme::TopMirror] {
            assert_every_prefix_is_the_image(&decompose(&problem, scheme, Some(depth), unit));
        }
    }
}

#[test]
fn every_unit_of_the_image_has_the_same_count_on_devices_with_decided_squares() {
    let cases = (problems(&[Piece::Queen], 6..=9), 0usize..5, 1u64..=7);
    for (id, kernel) in devices() {
        let kernel = std::cell::RefCell::new(kernel);
        let config = ProptestConfig { cases: 40, ..ProptestConfig::default() };
        let outcome =
            proptest::test_runner::TestRunner::new(config).run(&cases, |(problem, depth, unit)| {
                let decomposition = decompose(&problem, Scheme::best(&problem), Some(depth), unit);
                assert_every_unit_agrees_on_a_device(&id, &mut kernel.borrow_mut(), &decomposition);
                Ok(())
            });
        outcome.expect("agreement");
    }
}

/// Returns the mirrored squares, by the definition of the symmetry.
fn mirrored(n: usize, squares: &[Square]) -> Vec<Square> {
    let mut image: Vec<Square> =
        squares.iter().map(|&s| Symmetry::MirrorColumns.apply(n, s)).collect();
    image.sort_unstable();
    image
}

/// Returns all prefixes, unit by unit.
fn prefixes(decomposition: &Decomposition) -> Vec<(u64, &SymmetryCase, Prefix)> {
    let mut prefixes = Vec::new();
    for unit in 0..decomposition.units() {
        decomposition.for_each(decomposition.unit(unit), |plan, prefix| {
            prefixes.push((unit, plan, *prefix))
        });
    }
    prefixes
}

/// Returns the queens of a prefix, including those of its symmetry case.
fn queens(plan: &SymmetryCase, prefix: &Prefix) -> Vec<Square> {
    let mut queens: Vec<Square> =
        plan.block().iter().copied().chain(prefix.squares(plan)).collect();
    queens.sort_unstable();
    queens
}

/// Asserts that prefix i of the image is the image of prefix i: its queens, and what they attack.
fn assert_every_prefix_is_the_image(decomposition: &Decomposition) {
    let image = decomposition.mirrored();
    let n = decomposition.job().problem().n();
    let (originals, images) = (prefixes(decomposition), prefixes(&image));
    assert_eq!(originals.len(), images.len(), "{}", decomposition.job());
    for ((unit, plan, prefix), (unit_of_image, plan_image, prefix_image)) in
        originals.iter().zip(&images)
    {
        assert_eq!(unit, unit_of_image);
        assert_eq!(plan.weight(), plan_image.weight());
        let squares = queens(plan_image, prefix_image);
        assert_eq!(
            squares,
            mirrored(n, &queens(plan, prefix)),
            "{}, {prefix:?}",
            decomposition.job()
        );
        let problem = plan_image.problem();
        assert_eq!(problem.placed(), mirrored(n, decomposition.job().problem().placed()));
        assert_eq!(problem.blocked(), mirrored(n, decomposition.job().problem().blocked()));
        let seen =
            squares.iter().fold(AttackState::default(), |s, q| s.with_queen(n, q.row, 1 << q.col));
        let columns = problem.placed().iter().fold(seen.columns, |columns, s| columns | 1 << s.col);
        assert_eq!(
            prefix_image.state(),
            AttackState { columns, ..seen },
            "{}, {prefix:?}",
            decomposition.job()
        );
    }
}

#[test]
fn every_prefix_differs_from_its_image() {
    for n in 6..=12 {
        let problem = Problem::empty(Piece::Queen, n);
        for scheme in [Scheme::CentreCross, Scheme::CentreRows, Scheme::TopMirror] {
            let decomposition = decompose(&problem, scheme, None, 7);
            let image = decomposition.mirrored();
            assert_every_prefix_is_the_image(&decomposition);
            for (original, image) in prefixes(&decomposition).iter().zip(prefixes(&image)) {
                let job = decomposition.job();
                assert_ne!(queens(original.1, &original.2), queens(image.1, &image.2), "{job}");
                // In other schemes, a few prefixes attack the same lines as their images.
                let same_lines = original.2.state() == image.2.state();
                assert!(!same_lines || scheme != Scheme::CentreCross, "{job}");
            }
        }
    }
}

#[test]
fn an_image_belongs_to_the_job_and_its_image_is_the_original() {
    let at = Square::new;
    let decided = Problem::new(Piece::Queen, 9, vec![at(0, 3)], vec![at(4, 4), at(4, 1)]);
    let attacking = Problem::new(Piece::Queen, 8, vec![at(0, 0), at(5, 5)], vec![]);
    for problem in [
        Problem::empty(Piece::Queen, 0),
        Problem::empty(Piece::Queen, 12),
        Problem::empty(Piece::Rook, 6),
        Problem::empty(Piece::Toroidal, 11),
        Problem::empty(Piece::Queen, 32),
        decided.expect("squares on the board"),
        attacking.expect("squares on the board"),
    ] {
        let decomposition = decompose(&problem, Scheme::best(&problem), Some(3), 7);
        let image = decomposition.mirrored();
        assert_eq!((decomposition.image(), image.image()), (Image::Itself, Image::Mirrored));
        assert_eq!(image.job(), decomposition.job());
        assert_eq!(image.job().hash(), decomposition.job().hash());
        assert_eq!(image.units(), decomposition.units());
        assert_ne!(image, decomposition);
        assert_eq!(image.mirrored(), decomposition);
    }
}

/// Returns all completions of `problem` by trying every column in every row, with the plain
/// definition only.
fn completions(problem: &Problem) -> Vec<Vec<usize>> {
    fn extend(problem: &Problem, columns: &mut Vec<usize>, found: &mut Vec<Vec<usize>>) {
        let (n, row) = (problem.n(), columns.len());
        if row == n {
            found.push(columns.clone());
            return;
        }
        for new in (0..n).map(|col| Square::new(row, col)) {
            let decided = problem.placed().iter().any(|s| s.row == row && *s != new);
            let attacked =
                (0..row).any(|r| problem.piece().attacks(n, Square::new(r, columns[r]), new));
            if !decided && !attacked && !problem.blocked().contains(&new) {
                columns.push(new.col);
                extend(problem, columns, found);
                columns.pop();
            }
        }
    }
    let mut found = Vec::new();
    extend(problem, &mut Vec::new(), &mut found);
    found
}

/// Compares the completions of each symmetry case by the plain meaning of block, masks and rules.
fn assert_images_of_cases_count_the_images(problem: &Problem, scheme: Scheme) {
    let decomposition = decompose(problem, scheme, None, 7);
    let image = decomposition.mirrored();
    let Some(mirrored_problem) = image.cases().first().map(SymmetryCase::problem) else { return };
    let found = completions(mirrored_problem);
    let mut expected: Vec<Vec<usize>> =
        completions(problem).iter().map(|c| Symmetry::MirrorColumns.apply_to_columns(c)).collect();
    expected.sort_unstable();
    assert_eq!(found, expected, "{problem:?}");
    for columns in found {
        let original = Symmetry::MirrorColumns.apply_to_columns(&columns);
        for (plan, plan_image) in decomposition.cases().iter().zip(image.cases()) {
            assert_eq!(
                plan_image.counts(&columns),
                plan.counts(&original),
                "{plan:?}, {columns:?}"
            );
        }
    }
}

#[test]
fn the_image_of_a_case_counts_the_images_of_its_completions() {
    for n in 1..=10 {
        for piece in [Piece::Queen, Piece::Superqueen, Piece::Toroidal] {
            let problem = Problem::empty(piece, n);
            for scheme in [Scheme::best(&problem), Scheme::CentreRows, Scheme::TopMirror] {
                assert_images_of_cases_count_the_images(&problem, scheme);
            }
        }
    }
    for n in 1..=6 {
        assert_images_of_cases_count_the_images(&Problem::empty(Piece::Rook, n), Scheme::Whole);
    }
}

proptest! {
    #[test]
    fn the_image_of_a_case_counts_the_images_on_boards_with_decided_squares(
        problem in problems(&Piece::ALL, 1..=7),
    ) {
        for scheme in [Scheme::best(&problem), Scheme::CentreRows, Scheme::TopMirror] {
            assert_images_of_cases_count_the_images(&problem, scheme);
        }
        if problem.n() >= 6 && problem.placed().is_empty() && Group::of(&problem) == Group::FULL {
            assert_images_of_cases_count_the_images(&problem, Scheme::CentreCross);
        }
    }
}

/// A kernel with a fault: it ignores some bits of the state.
struct IgnoresBits(AttackState);

impl IgnoresBits {
    fn completions(&self, plan: &SymmetryCase, k: usize, state: AttackState) -> u64 {
        if k == plan.rows().len() {
            return 1;
        }
        let AttackState { columns, antidiagonals, diagonals } = self.0;
        let seen = AttackState {
            columns: state.columns & !columns,
            antidiagonals: state.antidiagonals & !antidiagonals,
            diagonals: state.diagonals & !diagonals,
        };
        columns_of(plan.available(k, seen))
            .map(|col| self.completions(plan, k + 1, plan.place(k, state, 1 << col)))
            .sum()
    }
}

impl Kernel for IgnoresBits {
    fn count(
        &mut self,
        plan: &SymmetryCase,
        prefixes: &[Prefix],
        parts: &mut Parts,
    ) -> Result<(), TallyError> {
        for prefix in prefixes {
            let completions = self.completions(plan, prefix.filled(), prefix.state());
            parts.add(plan.weight(), completions, Residues::of(completions.into()), 0u64)?;
        }
        Ok(())
    }
}

#[test]
fn a_kernel_that_ignores_one_bit_disagrees_on_the_image() {
    for n in [8, 9] {
        let problem = Problem::empty(Piece::Queen, n);
        let decomposition = decompose(&problem, Scheme::CentreCross, None, 5);
        let image = decomposition.mirrored();
        let count = |blind, decomposition| thirds(&tallies(&mut IgnoresBits(blind), decomposition));
        let right = count(AttackState::default(), &decomposition);
        assert_eq!(count(AttackState::default(), &image), right, "n = {n}");
        let column = |col: usize| AttackState { columns: 1 << col, ..AttackState::default() };
        let lines = (0..2 * n - 1).flat_map(|line| {
            let antidiagonals = AttackState { antidiagonals: 1 << line, ..AttackState::default() };
            [antidiagonals, AttackState { diagonals: 1 << line, ..AttackState::default() }]
        });
        // The middle column of an odd board is its own image.
        let columns = (0..n).filter(|col| 2 * col + 1 != n).map(column);
        let mut faults = 0;
        for blind in columns.chain(lines) {
            let (original, image) = (count(blind, &decomposition), count(blind, &image));
            let harmless = original == right && image == right;
            assert!(harmless || original != image, "n = {n}, {blind:?}");
            faults += usize::from(!harmless);
        }
        // Short diagonals in the corners hold no two queens anyway.
        assert!(faults > 3 * n, "n = {n}: {faults}");
    }
}
