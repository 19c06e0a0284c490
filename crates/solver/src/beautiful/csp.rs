//! The remaining board as a constraint satisfaction problem.
//!
//! *Candidates* are to be chosen: exactly one for each required *constraint* (a row, a column, or a
//! diagonal that must have a queen), no two that attack each other, and in each *group* (squares of
//! equal cost) a number of queens within a range. A candidate is a queen. Where solutions must be
//! invariant under quarter turns, it is a queen with its three images, and a constraint is a pair
//! of rows together with the same pair of columns.

use std::ops::RangeInclusive;

use crate::bitset;
use nqueens_proof::beautiful::prices;
use nqueens_proof::board::Square;
use nqueens_proof::symmetry::Symmetry;

/// Up to this many candidates, attacks are stored as masks (2 MiB in all); beyond it, attacked
/// candidates are looked up by constraint.
const MOST_FOR_MASKS: usize = 4096;

/// A group of candidates, and the range of its number of queens.
#[derive(Clone, Debug)]
pub(super) struct Group {
    pub(super) range: RangeInclusive<u32>,
    pub(super) candidates: Vec<u32>,
}

/// The problem.
#[derive(Clone, Debug)]
pub(super) struct Csp {
    pub(super) n: usize,
    /// The squares of each candidate by number (row · n + column): one, or the images under quarter
    /// turns.
    pub(super) candidates: Vec<Vec<u32>>,
    /// The candidates of each constraint, ordered by their squares on it (of a pair, on the upper
    /// row). Where each candidate has one square, the constraints are all rows, columns and
    /// diagonals, by their numbers in [`prices`].
    pub(super) constraints: Vec<Vec<u32>>,
    /// `true` for each required constraint: diagonals are not required unless known to have a
    /// queen.
    pub(super) required: Vec<bool>,
    /// The constraints and the group of each candidate.
    pub(super) incidence: Vec<Incidence>,
    pub(super) groups: Vec<Group>,
    /// The number of words of a set of candidates.
    pub(super) words: usize,
    pub(super) attacks: Attacks,
    /// The candidate on each square, by number.
    candidate_of: Vec<u32>,
    /// The numbers that mark a hole and prices in a tree, where no constraint has them.
    pub(super) hole: usize,
    pub(super) priced: usize,
}

/// The constraints and the group that a candidate belongs to.
#[derive(Clone, Copy, Debug)]
pub(super) struct Incidence {
    /// Its constraints: the first `constraint_count` of these.
    on: [u16; 4],
    constraint_count: u8,
    /// Its group, or the number of groups if it is in no group.
    pub(super) group: u16,
    pub(super) queens: i32,
}

impl Incidence {
    pub(super) fn constraints(&self) -> impl Iterator<Item = usize> {
        self.on[..usize::from(self.constraint_count)].iter().map(|&line| usize::from(line))
    }
}

/// The attacks between candidates.
#[derive(Clone, Debug)]
pub(super) enum Attacks {
    /// The candidates that each candidate attacks.
    Masks(Vec<u64>),
    /// All attacked candidates share a constraint with the attacker.
    SharedConstraints,
}

impl Csp {
    /// Creates the problem on `squares` (distinct numbers) of a board of size `n`, with groups of
    /// squares and their ranges. With `turning`, solutions must be invariant under quarter turns,
    /// and so must `squares`.
    pub(super) fn new(
        n: usize,
        squares: &[usize],
        groups: &[(RangeInclusive<u32>, Vec<usize>)],
        turning: bool,
    ) -> Self {
        let candidates = if turning {
            quarter_turn_orbits(n, squares)
        } else {
            squares.iter().map(|&s| vec![s as u32]).collect()
        };
        let mut candidate_of = vec![u32::MAX; n * n];
        for (candidate, squares) in (0..).zip(&candidates) {
            for &square in squares {
                candidate_of[square as usize] = candidate;
            }
        }
        let count = if turning { n.div_ceil(2) } else { 6 * n };
        let mut constraints = vec![Vec::new(); count];
        let mut incidence = Vec::with_capacity(candidates.len());
        for (candidate, squares) in (0..).zip(&candidates) {
            let square = squares[0] as usize;
            let (mut on, mut constraint_count) = (prices::lines(n, square), 4);
            if turning {
                let border = |k: usize| k.min(n - 1 - k);
                let pair = [border(square / n), border(square % n)];
                on[..2].copy_from_slice(&pair);
                constraint_count = if pair[0] == pair[1] { 1 } else { 2 };
            }
            on[..constraint_count].iter().for_each(|&line| constraints[line].push(candidate));
            incidence.push(Incidence {
                on: on.map(|line| line as u16),
                constraint_count: constraint_count as u8,
                group: groups.len() as u16,
                queens: squares.len() as i32,
            });
        }
        if turning {
            for (row, line) in constraints.iter_mut().enumerate() {
                let on_row = |candidate: &u32| {
                    candidates[*candidate as usize]
                        .iter()
                        .copied()
                        .find(|&square| square as usize / n == row)
                };
                line.sort_by_key(on_row);
            }
        }
        let mut candidate_groups = Vec::with_capacity(groups.len());
        for (number, (range, squares)) in (0..).zip(groups) {
            let mut members: Vec<u32> = squares
                .iter()
                .map(|&square| candidate_of[square])
                .filter(|&candidate| candidate != u32::MAX)
                .collect();
            members.sort_unstable();
            members.dedup();
            for &candidate in &members {
                incidence[candidate as usize].group = number;
            }
            candidate_groups.push(Group { range: range.clone(), candidates: members });
        }
        let words = candidates.len().div_ceil(64);
        let attacks = Attacks::new(n, &candidates);
        let required = (0..count).map(|line| line < 2 * n).collect();
        Self {
            n,
            candidates,
            constraints,
            required,
            incidence,
            groups: candidate_groups,
            words,
            attacks,
            candidate_of,
            hole: 2 * n,
            priced: prices::filling_mark(n),
        }
    }

    /// Requires a queen on every diagonal at these distances from the main ones.
    pub(super) fn with_full_diagonals(mut self, distances: impl Iterator<Item = usize>) -> Self {
        for diagonal in distances.flat_map(|distance| prices::diagonals(self.n, distance)) {
            self.required[diagonal] = true;
        }
        self
    }

    /// Returns the number of a constraint in a tree.
    pub(super) const fn in_tree(&self, line: usize) -> u64 {
        (if line < 2 * self.n { line } else { prices::in_tree(line) }) as u64
    }

    /// Returns the squares of candidates.
    pub(super) fn squares_of(&self, candidates: &[u32]) -> Vec<usize> {
        candidates
            .iter()
            .flat_map(|&candidate| &self.candidates[candidate as usize])
            .map(|&square| square as usize)
            .collect()
    }

    /// Returns the candidate on a square (by number), if there is one.
    pub(super) fn candidate_on(&self, square: usize) -> Option<u32> {
        Some(self.candidate_of[square]).filter(|&candidate| candidate != u32::MAX)
    }

    /// Returns the solution with the candidates `placed`: the 0-based column of the queen in each
    /// row.
    pub(super) fn columns(&self, placed: &[u32]) -> Vec<usize> {
        let mut columns = vec![usize::MAX; self.n];
        for square in self.squares_of(placed) {
            columns[square / self.n] = square % self.n;
        }
        columns
    }
}

/// Returns the orbits of `squares` under quarter turns, without those whose squares attack each
/// other.
fn quarter_turn_orbits(n: usize, squares: &[usize]) -> Vec<Vec<u32>> {
    let mut candidates = Vec::new();
    for &square in squares {
        let at = Square::new(square / n, square % n);
        let image = |g: Symmetry| {
            let Square { row, col } = g.apply(n, at);
            (row * n + col) as u32
        };
        use Symmetry::{Identity, Rotate90, Rotate180, Rotate270};
        let mut images: Vec<u32> = [Identity, Rotate90, Rotate180, Rotate270].map(image).into();
        images.sort_unstable();
        images.dedup();
        let on_axis = 2 * at.row + 1 == n || 2 * at.col + 1 == n;
        let on_diagonal = at.row == at.col || at.row + at.col + 1 == n;
        let non_attacking = images.len() == 1 || !(on_axis || on_diagonal);
        if images[0] as usize == square && non_attacking {
            candidates.push(images);
        }
    }
    candidates
}

impl Attacks {
    fn new(n: usize, candidates: &[Vec<u32>]) -> Self {
        if candidates.len() > MOST_FOR_MASKS && candidates.iter().all(|squares| squares.len() == 1)
        {
            return Self::SharedConstraints;
        }
        let lines_of = |candidate: usize| {
            candidates[candidate].iter().flat_map(|&square| prices::lines(n, square as usize))
        };
        Self::Masks(sharing_lines(candidates.len(), prices::level(n, 0), lines_of))
    }
}

/// Returns, for each of so many elements, the set of the others that are on one of its lines, in as
/// many words as a set of all elements takes. The lines are numbered below `count`.
pub(super) fn sharing_lines<L: Iterator<Item = usize>>(
    elements: usize,
    count: usize,
    lines_of: impl Fn(usize) -> L,
) -> Vec<u64> {
    let words = elements.div_ceil(64);
    let mut on_line = vec![0; count * words];
    for element in 0..elements {
        for line in lines_of(element) {
            bitset::insert(&mut on_line[line * words..][..words], element);
        }
    }
    let mut sharing = vec![0; elements * words];
    for element in 0..elements {
        let others = &mut sharing[element * words..][..words];
        for line in lines_of(element) {
            for (others, on_line) in others.iter_mut().zip(&on_line[line * words..]) {
                *others |= on_line;
            }
        }
        bitset::remove(others, element);
    }
    sharing
}
