//! The numbered subproblems of a job: prefixes, or column sets.

use std::ops::{ControlFlow, Range};
use std::sync::Arc;

use super::attack_state::{AttackState, columns_of};
use super::column_sets::{ColumnSet, SetFamily};
use super::image::Image;
use super::job::{Job, Scheme};
use super::set_numbers::SetNumbers;
use super::symmetry_case::SymmetryCase;
use super::{MAX_PREFIX_ROWS, centre_cross, centre_rows, special_schemes};
use crate::board::{Piece, Square};

/// The maximum number of sub-ranges of a unit.
pub const MOST_SUB_RANGES: u64 = 32;

/// Returns the number of sub-ranges of a unit with this many prefixes: one for each prefix, up to
/// [`MOST_SUB_RANGES`]. An empty unit has no sub-ranges.
pub const fn sub_ranges_of(prefixes: u64) -> u64 {
    if prefixes < MOST_SUB_RANGES { prefixes } else { MOST_SUB_RANGES }
}

/// A subproblem: a symmetry case with its first open rows filled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prefix {
    state: AttackState,
    columns: [u8; MAX_PREFIX_ROWS],
    filled: u8,
}

impl Prefix {
    /// Returns the columns and diagonals attacked by the block and the filled rows.
    pub const fn state(&self) -> AttackState {
        self.state
    }

    /// Returns the number of filled open rows; they come first in the case's order.
    pub const fn filled(&self) -> usize {
        self.filled as usize
    }

    /// Returns the squares of the queens in the filled rows, in the case's order.
    pub fn squares<'a>(&'a self, case: &'a SymmetryCase) -> impl Iterator<Item = Square> + 'a {
        let columns = self.columns[..self.filled()].iter().map(|&col| usize::from(col));
        case.rows().iter().zip(columns).map(|(&row, col)| Square::new(row, col))
    }

    /// Returns the prefix of `case` that fills no row.
    pub(crate) fn start(case: &SymmetryCase) -> Self {
        Self { state: case.start(), columns: [0; MAX_PREFIX_ROWS], filled: 0 }
    }

    fn extended(mut self, case: &SymmetryCase, col: usize) -> Self {
        self.state = case.place(self.filled(), self.state, 1 << col);
        // Columns are below 32.
        self.columns[self.filled()] = col as u8;
        self.filled += 1;
        self
    }
}

/// The symmetry cases of a job and the numbering of its prefixes; or, in
/// [`Scheme::ColumnSets`], its sets of columns, which then have the numbers of prefixes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decomposition {
    job: Job,
    image: Image,
    /// The column sets, if the scheme has them instead of symmetry cases.
    sets: Option<SetNumbers>,
    cases: Vec<SymmetryCase>,
    /// The index of each case's first prefix, followed by the total number of prefixes.
    first: Vec<u64>,
}

impl Decomposition {
    /// Splits `job` into symmetry cases and numbers their prefixes: case by case, and within a case
    /// in lexicographic order of the columns of the filled rows. Takes about 20 ns a prefix.
    pub fn new(job: Job) -> Self {
        let problem = &Arc::new(job.problem().clone());
        let cases = if problem.conflict().is_some() {
            Vec::new()
        } else {
            match job.scheme() {
                Scheme::CentreCross => sorted(centre_cross::cases(problem)),
                Scheme::CentreRows => centre_rows::cases(problem),
                Scheme::TopMirror => special_schemes::top_mirror(problem, job.mirrors()),
                Scheme::Translations => special_schemes::translations(problem),
                Scheme::Whole => special_schemes::whole(problem),
                Scheme::ColumnSets => Vec::new(),
            }
        };
        let sets =
            (job.scheme() == Scheme::ColumnSets).then(|| SetNumbers::new(problem, job.depth()));
        let mut first = vec![0];
        let mut total = 0u64;
        for case in &cases {
            let depth = prefix_rows(&job, case);
            total += count_prefixes(case, Prefix::start(case), depth);
            first.push(total);
        }
        Self { job, image: Image::Itself, sets, cases, first }
    }

    /// Returns the same prefixes in units of another size. This is a different job, with a
    /// different hash.
    #[must_use]
    pub fn with_unit_prefixes(mut self, unit_prefixes: u64) -> Self {
        self.job = self.job.with_unit_prefixes(unit_prefixes);
        self
    }

    /// Returns the mirror image: left and right are exchanged in every subproblem. The numbering
    /// and the job are the same, so each unit has the same tally, computed from different bits.
    #[must_use]
    pub fn mirrored(&self) -> Self {
        let problem = match self.image {
            Image::Itself => self.job.problem().mirrored(),
            Image::Mirrored => self.job.problem().clone(),
        };
        let problem = &Arc::new(problem);
        Self {
            job: self.job.clone(),
            image: self.image.mirrored(),
            sets: self.sets.as_ref().map(|sets| sets.mirrored(problem)),
            cases: self.cases.iter().map(|case| case.mirrored(problem)).collect(),
            first: self.first.clone(),
        }
    }

    /// Returns whether this is the job itself or its mirror image.
    pub const fn image(&self) -> Image {
        self.image
    }

    /// Returns the job, which is the same for both images.
    pub const fn job(&self) -> &Job {
        &self.job
    }

    /// Returns the symmetry cases of this image, in the order of the job itself.
    pub fn cases(&self) -> &[SymmetryCase] {
        &self.cases
    }

    /// Returns the families of column sets of this image; none in schemes with prefixes.
    pub fn set_families(&self) -> &[SetFamily] {
        self.sets.as_ref().map_or(&[], SetNumbers::families)
    }

    /// Returns whether the subproblems are column sets instead of prefixes.
    pub const fn has_sets(&self) -> bool {
        self.sets.is_some()
    }

    /// Returns the number of prefixes, or of column sets or their parts.
    pub fn prefixes(&self) -> u64 {
        match &self.sets {
            Some(sets) => sets.sets(),
            None => self.first[self.cases.len()],
        }
    }

    /// Returns the column sets, or parts of sets, whose numbers are in `range` with their families,
    /// without those that are images of others. A decomposition into prefixes has none.
    pub fn sets(&self, range: Range<u64>) -> impl Iterator<Item = (&SetFamily, ColumnSet)> {
        let sets = self.sets.as_ref();
        sets.into_iter().flat_map(move |sets| {
            let range = range.start..range.end.min(sets.sets());
            range.filter_map(|number| sets.set(number))
        })
    }

    /// Returns the number of units. There is always at least one, which may be empty.
    pub fn units(&self) -> u64 {
        self.prefixes().div_ceil(self.job.unit_prefixes()).max(1)
    }

    /// Returns the prefixes of a unit.
    pub fn unit(&self, index: u64) -> Range<u64> {
        let size = self.job.unit_prefixes();
        let end = |k: u64| k.saturating_mul(size).min(self.prefixes());
        end(index)..end(index.saturating_add(1))
    }

    /// Returns the sub-ranges of a unit: its prefixes in [`sub_ranges_of`] contiguous ranges, as
    /// equal as possible, in order. They are the same on every machine and for both images.
    pub fn sub_ranges(&self, unit: u64) -> impl ExactSizeIterator<Item = Range<u64>> + use<> {
        let Range { start, end } = self.unit(unit);
        let prefixes = end - start;
        let count = sub_ranges_of(prefixes) as u32;
        // The bound lies within the unit, so it fits in 64 bits.
        let bound =
            move |i: u32| start + (u128::from(prefixes) * u128::from(i) / u128::from(count)) as u64;
        (0..count).map(move |i| bound(i)..bound(i + 1))
    }

    /// Splits `range` where the symmetry case changes. Returns the parts in order, each with the
    /// index of its case in [`Self::cases`].
    pub(crate) fn parts_by_case(
        &self,
        range: Range<u64>,
    ) -> impl Iterator<Item = (usize, Range<u64>)> {
        let starts_in = self.first.partition_point(|&first| first <= range.start).saturating_sub(1);
        let bounds = self.first.windows(2).enumerate().skip(starts_in);
        let bounds = bounds.take_while(move |(_, bounds)| bounds[0] < range.end);
        bounds.filter_map(move |(index, bounds)| {
            let part = range.start.max(bounds[0])..range.end.min(bounds[1]);
            (!part.is_empty()).then_some((index, part))
        })
    }

    /// Calls `visit` for each prefix of `range` in order, with its symmetry case. Prefixes of the
    /// mirror image are the images of those with the same numbers. A decomposition into column
    /// [sets](Self::sets) has no prefixes.
    pub fn for_each<'a>(
        &'a self,
        range: Range<u64>,
        mut visit: impl FnMut(&'a SymmetryCase, &Prefix),
    ) {
        for (index, part) in self.parts_by_case(range) {
            let case = &self.cases[index];
            let mut walk = Walk {
                case,
                image: self.image,
                rows: prefix_rows(&self.job, case),
                skip: part.start - self.first[index],
                left: part.end - part.start,
                visit: &mut |prefix| visit(case, prefix),
            };
            // A break means that the part is done.
            let _ = walk.descend(Prefix::start(case));
        }
    }
}

/// Sorts cases with equal masks above the block and equal weights next to each other, so that the
/// batch kernels keep their lanes full across them.
fn sorted(mut cases: Vec<SymmetryCase>) -> Vec<SymmetryCase> {
    cases.sort_by_cached_key(|case| {
        (
            std::cmp::Reverse(case.rows().len()),
            centre_cross::upper_masks(case),
            std::cmp::Reverse(case.weight()),
        )
    });
    cases
}

/// Returns the number of open rows that the prefixes of `case` fill. They never reach above the
/// block.
pub(super) fn prefix_rows(job: &Job, case: &SymmetryCase) -> usize {
    job.depth().saturating_sub(case.block().len()).min(case.below()).min(MAX_PREFIX_ROWS)
}

/// Returns the columns allowed for the queen of the next open row of `prefix`.
fn candidates(case: &SymmetryCase, prefix: &Prefix) -> u32 {
    let k = prefix.filled();
    match case.piece() {
        Piece::Queen => case.available(k, prefix.state),
        piece => {
            let row = case.rows()[k];
            let attacked = |col: usize| {
                let square = Square::new(row, col);
                let attacks = |s: Square| piece.attacks(case.n(), s, square);
                case.block().iter().copied().any(attacks) || prefix.squares(case).any(attacks)
            };
            let columns = if piece == Piece::Rook {
                case.allowed()[k]
            } else {
                case.available(k, prefix.state)
            };
            columns_of(columns).filter(|&col| !attacked(col)).fold(0, |mask, col| mask | 1 << col)
        }
    }
}

fn count_prefixes(case: &SymmetryCase, prefix: Prefix, rows: usize) -> u64 {
    if prefix.filled() == rows {
        return 1;
    }
    let candidates = candidates(case, &prefix);
    if prefix.filled() + 1 == rows {
        return candidates.count_ones().into();
    }
    columns_of(candidates).map(|col| count_prefixes(case, prefix.extended(case, col), rows)).sum()
}

/// A traversal of the prefixes of one symmetry case: skips `skip` of them, then visits `left`.
struct Walk<'a> {
    case: &'a SymmetryCase,
    image: Image,
    rows: usize,
    skip: u64,
    left: u64,
    visit: &'a mut dyn FnMut(&Prefix),
}

impl Walk<'_> {
    fn descend(&mut self, prefix: Prefix) -> ControlFlow<()> {
        if prefix.filled() == self.rows {
            if self.skip > 0 {
                self.skip -= 1;
                return ControlFlow::Continue(());
            }
            (self.visit)(&prefix);
            self.left -= 1;
            return if self.left == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) };
        }
        let candidates = candidates(self.case, &prefix);
        if prefix.filled() + 1 == self.rows && u64::from(candidates.count_ones()) <= self.skip {
            self.skip -= u64::from(candidates.count_ones());
            return ControlFlow::Continue(());
        }
        // In the column order of the job itself.
        let (case, image, n) = (self.case, self.image, self.case.n());
        columns_of(image.row(n, candidates))
            .try_for_each(|col| self.descend(prefix.extended(case, image.column(n, col))))
    }
}
