//! All prefixes of a job, numbered.

use std::ops::{ControlFlow, Range};
use std::sync::Arc;

use super::image::Image;
use super::job::{Job, Scheme};
use super::state::{State, columns_of};
use super::symmetry_case::SymmetryCase;
use super::{MAX_PREFIX_ROWS, centre_cross, centre_rows, shortcuts};
use crate::board::{Piece, Square};

/// The most sub-ranges that a unit is cut into.
pub const MOST_SUB_RANGES: u64 = 32;

/// Returns how many sub-ranges a unit of so many prefixes is cut into: one for each prefix, up to
/// [`MOST_SUB_RANGES`]. An empty unit has none.
pub const fn sub_ranges_of(prefixes: u64) -> u64 {
    if prefixes < MOST_SUB_RANGES { prefixes } else { MOST_SUB_RANGES }
}

/// A subproblem: a plan with its first open rows filled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prefix {
    state: State,
    columns: [u8; MAX_PREFIX_ROWS],
    filled: u8,
}

impl Prefix {
    /// What the block and the filled rows attack.
    pub const fn state(&self) -> State {
        self.state
    }

    /// How many open rows are filled; these are the first in the plan's order.
    pub const fn filled(&self) -> usize {
        self.filled as usize
    }

    /// The squares of the queens in the filled rows, in the plan's order.
    pub fn squares<'a>(&'a self, plan: &'a SymmetryCase) -> impl Iterator<Item = Square> + 'a {
        let columns = self.columns[..self.filled()].iter().map(|&col| usize::from(col));
        plan.rows().iter().zip(columns).map(|(&row, col)| Square::new(row, col))
    }

    fn start(plan: &SymmetryCase) -> Self {
        Self { state: plan.start(), columns: [0; MAX_PREFIX_ROWS], filled: 0 }
    }

    fn extended(mut self, plan: &SymmetryCase, col: usize) -> Self {
        self.state = plan.place(self.filled(), self.state, 1 << col);
        // Columns are below 32.
        self.columns[self.filled()] = col as u8;
        self.filled += 1;
        self
    }
}

/// The plans of a job and the numbering of its prefixes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decomposition {
    job: Job,
    image: Image,
    plans: Vec<SymmetryCase>,
    /// The index of each plan's first prefix, and at the end the number of all prefixes.
    first: Vec<u64>,
}

impl Decomposition {
    /// Cuts `job` into plans and numbers their prefixes: plan by plan, within a plan by the columns of the
    /// filled rows in lexicographic order. Takes about 20 ns a prefix.
    pub fn new(job: Job) -> Self {
        let problem = &Arc::new(job.problem().clone());
        let plans = if problem.conflict().is_some() {
            Vec::new()
        } else {
            match job.scheme() {
                Scheme::CentreCross => sorted(centre_cross::plans(problem)),
                Scheme::CentreRows => centre_rows::plans(problem),
                Scheme::TopMirror => shortcuts::top_mirror(problem, job.mirrors()),
                Scheme::Translations => shortcuts::translations(problem),
                Scheme::Whole => shortcuts::whole(problem),
            }
        };
        let mut first = vec![0];
        let mut total = 0u64;
        for plan in &plans {
            let depth = prefix_rows(&job, plan);
            total += count_prefixes(plan, Prefix::start(plan), depth);
            first.push(total);
        }
        Self { job, image: Image::Itself, plans, first }
    }

    /// The same prefixes in units of another size. This is another job, with another hash.
    #[must_use]
    pub fn with_unit_prefixes(mut self, unit_prefixes: u64) -> Self {
        self.job = self.job.with_unit_prefixes(unit_prefixes);
        self
    }

    /// Its mirror image: left and right are exchanged in every plan and every prefix. All is numbered as here and
    /// belongs to the same job, so the tally of a unit is the same, found in other bits.
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
            plans: self.plans.iter().map(|plan| plan.mirrored(problem)).collect(),
            first: self.first.clone(),
        }
    }

    /// Whether this is the job itself, or its mirror image.
    pub const fn image(&self) -> Image {
        self.image
    }

    /// The job, which is the same for both images.
    pub const fn job(&self) -> &Job {
        &self.job
    }

    /// The plans of this image, in the order of the job itself.
    pub fn plans(&self) -> &[SymmetryCase] {
        &self.plans
    }

    /// How many prefixes there are.
    pub fn prefixes(&self) -> u64 {
        self.first[self.plans.len()]
    }

    /// How many units there are. There is always one, which may be empty.
    pub fn units(&self) -> u64 {
        self.prefixes().div_ceil(self.job.unit_prefixes()).max(1)
    }

    /// The prefixes of a unit.
    pub fn unit(&self, index: u64) -> Range<u64> {
        let size = self.job.unit_prefixes();
        let end = |k: u64| k.saturating_mul(size).min(self.prefixes());
        end(index)..end(index.saturating_add(1))
    }

    /// Returns the sub-ranges of a unit: its prefixes in [`sub_ranges_of`] contiguous ranges, as equal as possible,
    /// in order. They are the same on every machine and for both images.
    pub fn sub_ranges(&self, unit: u64) -> impl ExactSizeIterator<Item = Range<u64>> + use<> {
        let Range { start, end } = self.unit(unit);
        let prefixes = end - start;
        let count = sub_ranges_of(prefixes) as u32;
        // The bound lies within the unit, so it fits in 64 bits again.
        let bound = move |i: u32| start + (u128::from(prefixes) * u128::from(i) / u128::from(count)) as u64;
        (0..count).map(move |i| bound(i)..bound(i + 1))
    }

    /// Returns the plans that the prefixes of `range` belong to, each with how many of them do and how many open
    /// rows these fill.
    pub(super) fn plans_in(&self, range: Range<u64>) -> impl Iterator<Item = (&SymmetryCase, u64, usize)> {
        let starts_in = self.first.partition_point(|&first| first <= range.start).saturating_sub(1);
        let bounds = self.plans.iter().zip(self.first.windows(2)).skip(starts_in);
        let bounds = bounds.take_while(move |(_, bounds)| bounds[0] < range.end);
        bounds.filter_map(move |(plan, bounds)| {
            let prefixes = range.end.min(bounds[1]).saturating_sub(range.start.max(bounds[0]));
            (prefixes > 0).then(|| (plan, prefixes, prefix_rows(&self.job, plan)))
        })
    }

    /// Calls `visit` for each prefix of `range` in order, with its plan. Prefixes of the mirror image are
    /// the images of those with the same numbers.
    pub fn for_each<'a>(&'a self, range: Range<u64>, mut visit: impl FnMut(&'a SymmetryCase, &Prefix)) {
        let starts_in = self.first.partition_point(|&first| first <= range.start).saturating_sub(1);
        for (plan, bounds) in self.plans.iter().zip(self.first.windows(2)).skip(starts_in) {
            let (first, end) = (bounds[0], bounds[1]);
            if first >= range.end {
                break;
            }
            let mut walk = Walk {
                plan,
                image: self.image,
                rows: prefix_rows(&self.job, plan),
                skip: range.start.saturating_sub(first),
                left: range.end.min(end) - range.start.max(first).min(range.end),
                visit: &mut |prefix| visit(plan, prefix),
            };
            if walk.left > 0 {
                // Breaking off means that the range is done.
                let _ = walk.descend(Prefix::start(plan));
            }
        }
    }
}

/// Plans whose rows above the block look alike, and weigh alike, stand together: the batch kernels keep their
/// lanes full across them.
fn sorted(mut plans: Vec<SymmetryCase>) -> Vec<SymmetryCase> {
    plans.sort_by_cached_key(|plan| {
        (
            std::cmp::Reverse(plan.rows().len()),
            centre_cross::upper_masks(plan),
            std::cmp::Reverse(plan.weight()),
        )
    });
    plans
}

/// How many open rows the prefixes of `plan` fill. They never reach above the block.
fn prefix_rows(job: &Job, plan: &SymmetryCase) -> usize {
    job.depth().saturating_sub(plan.block().len()).min(plan.below()).min(MAX_PREFIX_ROWS)
}

/// The columns in which the next open row of `prefix` may be filled.
fn candidates(plan: &SymmetryCase, prefix: &Prefix) -> u32 {
    let k = prefix.filled();
    match plan.piece() {
        Piece::Queen => plan.available(k, prefix.state),
        piece => {
            let row = plan.rows()[k];
            let attacked = |col: usize| {
                let square = Square::new(row, col);
                let attacks = |s: Square| piece.attacks(plan.n(), s, square);
                plan.block().iter().copied().any(attacks) || prefix.squares(plan).any(attacks)
            };
            let columns =
                if piece == Piece::Rook { plan.allowed()[k] } else { plan.available(k, prefix.state) };
            columns_of(columns).filter(|&col| !attacked(col)).fold(0, |mask, col| mask | 1 << col)
        }
    }
}

fn count_prefixes(plan: &SymmetryCase, prefix: Prefix, rows: usize) -> u64 {
    if prefix.filled() == rows {
        return 1;
    }
    let candidates = candidates(plan, &prefix);
    if prefix.filled() + 1 == rows {
        return candidates.count_ones().into();
    }
    columns_of(candidates).map(|col| count_prefixes(plan, prefix.extended(plan, col), rows)).sum()
}

/// A walk over the prefixes of one plan: passes over `skip` of them, then visits `left`.
struct Walk<'a> {
    plan: &'a SymmetryCase,
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
        let candidates = candidates(self.plan, &prefix);
        if prefix.filled() + 1 == self.rows && u64::from(candidates.count_ones()) <= self.skip {
            self.skip -= u64::from(candidates.count_ones());
            return ControlFlow::Continue(());
        }
        // In the order of the columns of the job itself.
        let (plan, image, n) = (self.plan, self.image, self.plan.n());
        columns_of(image.row(n, candidates))
            .try_for_each(|col| self.descend(prefix.extended(plan, image.column(n, col))))
    }
}
