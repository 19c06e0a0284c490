//! The remaining board as a constraint satisfaction problem, with unit propagation.
//!
//! *Candidates* are to be chosen: exactly one for each required *constraint* (a row, a column, or a
//! diagonal that must have a queen), no two that attack each other, and in each *group* (squares of
//! equal cost) a number of queens within a range. A candidate is a queen. Where solutions must be
//! invariant under quarter turns, it is a queen with its three images, and a constraint is a pair
//! of rows together with the same pair of columns.

use std::ops::RangeInclusive;

use nqueens_proof::beautiful::prices;
use nqueens_proof::board::Square;
use nqueens_proof::symmetry::Symmetry;

/// Up to this many candidates, attacks are stored as masks (2 MiB in all); beyond it, attacked
/// candidates are looked up by constraint.
const MOST_FOR_MASKS: usize = 4096;

/// The candidate count of a constraint that is satisfied or not required. It is so large that
/// removals cannot bring it below `DONE / 2`.
const DONE: u16 = 1 << 15;

/// The limit of a group that is not limited, beyond any number of queens.
const UNLIMITED: i32 = 1 << 30;

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
    pub(super) lines: Vec<Vec<u32>>,
    /// `true` for each required constraint: diagonals are not required unless known to have a
    /// queen.
    must: Vec<bool>,
    /// The constraints and the group of each candidate.
    counts: Vec<Incidence>,
    pub(super) groups: Vec<Group>,
    words: usize,
    attacks: Attacks,
    /// The candidate on each square, by number.
    candidate_of: Vec<u32>,
    /// The numbers that mark a hole and prices in a tree, where no constraint has them.
    pub(super) hole: usize,
    pub(super) priced: usize,
}

/// The constraints and the group that a candidate belongs to.
#[derive(Clone, Copy, Debug)]
struct Incidence {
    /// Its constraints: the first `many` of these.
    on: [u16; 4],
    many: u8,
    /// Its group, or the number of groups if it is in no group.
    group: u16,
    queens: i32,
}

impl Incidence {
    fn lines(&self) -> impl Iterator<Item = usize> {
        self.on[..usize::from(self.many)].iter().map(|&line| usize::from(line))
    }
}

#[derive(Clone, Debug)]
enum Attacks {
    /// The candidates that each candidate attacks.
    Masks(Vec<u64>),
    /// All attacked candidates share a constraint with the attacker.
    Lines,
}

/// The state of propagation.
#[derive(Clone, Debug, Default)]
pub(super) struct State {
    alive: Vec<u64>,
    /// By constraint: the number of remaining candidates; about [`DONE`] if it is satisfied or not
    /// required.
    line: Vec<u16>,
    /// The required constraints that are not satisfied, as bits.
    without: Vec<u64>,
    /// By group: the queens that may still be removed, that is, those placed or remaining minus the
    /// minimum.
    slack: Vec<i32>,
    /// By group: the queens that may still be placed.
    room: Vec<i32>,
}

/// A state, and the candidates placed in it.
#[derive(Clone, Debug)]
pub(super) struct Node {
    pub(super) state: State,
    pub(super) placed: Vec<u32>,
}

/// A conflict, with the constraint that lost its last candidate, if that is the cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Conflict(pub(super) Option<u16>);

/// The constraints and the groups that propagation has still to process.
#[derive(Clone, Debug, Default)]
pub(super) struct PropagationQueue {
    queue: Vec<u16>,
    scratch: Vec<u32>,
    /// The candidates placed, in order.
    pub(super) placed: Vec<u32>,
}

impl PropagationQueue {
    /// Creates an empty queue after `placed` were placed.
    pub(super) fn after(placed: Vec<u32>) -> Self {
        Self { placed, ..Self::default() }
    }
}

impl State {
    pub(super) fn is_alive(&self, candidate: u32) -> bool {
        self.alive[candidate as usize >> 6] >> (candidate & 63) & 1 == 1
    }

    fn clear(&mut self, candidate: u32) {
        self.alive[candidate as usize >> 6] &= !(1 << (candidate & 63));
    }

    /// Returns whether every required constraint is satisfied.
    pub(super) fn is_complete(&self) -> bool {
        self.without.iter().all(|&word| word == 0)
    }

    /// Returns the number of remaining candidates of a constraint, or `None` if it is satisfied or
    /// not required.
    pub(super) fn choices(&self, line: usize) -> Option<u16> {
        Some(self.line[line]).filter(|&choices| choices < DONE / 2)
    }

    /// Returns the required constraints that are not satisfied, ascending, with their numbers of
    /// remaining candidates.
    pub(super) fn open_lines(&self) -> impl Iterator<Item = (usize, u16)> {
        bits(&self.without).map(|line| (line, self.line[line]))
    }

    pub(super) fn copy_from(&mut self, other: &Self) {
        self.alive.clone_from(&other.alive);
        self.line.clone_from(&other.line);
        self.without.clone_from(&other.without);
        self.slack.clone_from(&other.slack);
        self.room.clone_from(&other.room);
    }
}

/// Returns the numbers of the bits that are set, ascending.
fn bits(words: &[u64]) -> impl Iterator<Item = usize> {
    words.iter().enumerate().flat_map(|(number, &word)| {
        let rest = |&word: &u64| Some(word & (word - 1)).filter(|&rest| rest != 0);
        let first = Some(word).filter(|&word| word != 0);
        std::iter::successors(first, rest)
            .map(move |word| number << 6 | word.trailing_zeros() as usize)
    })
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
            turned(n, squares)
        } else {
            squares.iter().map(|&s| vec![s as u32]).collect()
        };
        let mut candidate_of = vec![u32::MAX; n * n];
        for (candidate, squares) in (0..).zip(&candidates) {
            for &square in squares {
                candidate_of[square as usize] = candidate;
            }
        }
        let line_count = if turning { n.div_ceil(2) } else { 6 * n };
        let mut lines = vec![Vec::new(); line_count];
        let mut counts = Vec::with_capacity(candidates.len());
        for (candidate, squares) in (0..).zip(&candidates) {
            let square = squares[0] as usize;
            let (mut on, mut many) = (prices::lines(n, square), 4);
            if turning {
                let border = |k: usize| k.min(n - 1 - k);
                let pair = [border(square / n), border(square % n)];
                on[..2].copy_from_slice(&pair);
                many = if pair[0] == pair[1] { 1 } else { 2 };
            }
            on[..many].iter().for_each(|&line| lines[line].push(candidate));
            counts.push(Incidence {
                on: on.map(|line| line as u16),
                many: many as u8,
                group: groups.len() as u16,
                queens: squares.len() as i32,
            });
        }
        if turning {
            for (row, line) in lines.iter_mut().enumerate() {
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
                counts[candidate as usize].group = number;
            }
            candidate_groups.push(Group { range: range.clone(), candidates: members });
        }
        let words = candidates.len().div_ceil(64);
        let attacks = Attacks::new(n, &candidates, words);
        let must = (0..line_count).map(|line| line < 2 * n).collect();
        Self {
            n,
            candidates,
            lines,
            must,
            counts,
            groups: candidate_groups,
            words,
            attacks,
            candidate_of,
            hole: 2 * n,
            priced: prices::filling_mark(n),
        }
    }

    /// Requires a queen on every diagonal at these distances from the main ones.
    pub(super) fn filling(mut self, distances: impl Iterator<Item = usize>) -> Self {
        for diagonal in distances.flat_map(|distance| prices::diagonals(self.n, distance)) {
            self.must[diagonal] = true;
        }
        self
    }

    /// Returns the number of a constraint in a tree.
    pub(super) const fn in_tree(&self, line: usize) -> u64 {
        (if line < 2 * self.n { line } else { prices::in_tree(line) }) as u64
    }

    /// Returns the root node after propagation. `pending.placed` lists the candidates that are
    /// implied.
    pub(super) fn root(&self, pending: &mut PropagationQueue) -> Result<Node, Conflict> {
        let count = |(candidates, &must): (&Vec<u32>, &bool)| {
            if must { candidates.len() as u16 } else { DONE }
        };
        let limits = |limit: fn(&Group) -> u32| {
            let limit = |group| i32::try_from(limit(group)).unwrap_or(UNLIMITED);
            self.groups.iter().map(limit).chain([UNLIMITED]).collect()
        };
        let mut state = State {
            alive: vec![0; self.words],
            line: self.lines.iter().zip(&self.must).map(count).collect(),
            without: vec![0; self.lines.len().div_ceil(64)],
            slack: limits(|group| *group.range.start()),
            room: limits(|group| *group.range.end()),
        };
        for slack in &mut state.slack[..self.groups.len()] {
            *slack = -*slack;
        }
        for line in (0..self.lines.len()).filter(|&line| self.must[line]) {
            state.without[line >> 6] |= 1 << (line & 63);
        }
        for (candidate, counts) in self.counts.iter().enumerate() {
            state.alive[candidate >> 6] |= 1 << (candidate & 63);
            if usize::from(counts.group) < self.groups.len() {
                state.slack[usize::from(counts.group)] += counts.queens;
            }
        }
        pending.queue.clear();
        pending.placed.clear();
        for line in (0..self.lines.len() as u16).filter(|&line| self.must[usize::from(line)]) {
            match self.lines[usize::from(line)].len() {
                0 => return Err(Conflict(Some(line))),
                1 => pending.queue.push(line),
                _ => {}
            }
        }
        for group in 0..self.groups.len() {
            if state.slack[group] < 0 {
                return Err(Conflict(None));
            }
            let queens = self.groups[group]
                .candidates
                .first()
                .map_or(0, |&candidate| self.counts[candidate as usize].queens);
            if queens > state.room[group] {
                self.empty_group(&mut state, group, pending)?;
            }
            pending.queue.push((self.lines.len() + group) as u16);
        }
        self.propagate(&mut state, pending)?;
        Ok(Node { state, placed: pending.placed.clone() })
    }

    /// Returns the root with queens on `squares` (numbers). Some of them may imply others.
    pub(super) fn root_with(&self, squares: &[usize]) -> Result<Node, Conflict> {
        let mut pending = PropagationQueue::default();
        let mut root = self.root(&mut pending)?;
        pending.placed = std::mem::take(&mut root.placed);
        for &square in squares {
            let candidate = self.candidate_on(square).ok_or(Conflict(None))?;
            if root.state.is_alive(candidate) {
                self.place(&mut root.state, candidate, &mut pending)?;
            } else if !pending.placed.contains(&candidate) {
                return Err(Conflict(None));
            }
        }
        Ok(Node { placed: pending.placed, ..root })
    }

    /// Returns the squares of candidates.
    pub(super) fn squares_of(&self, candidates: &[u32]) -> Vec<usize> {
        candidates
            .iter()
            .flat_map(|&candidate| &self.candidates[candidate as usize])
            .map(|&square| square as usize)
            .collect()
    }

    /// Places `candidate` and all candidates implied by it.
    pub(super) fn place(
        &self,
        state: &mut State,
        candidate: u32,
        pending: &mut PropagationQueue,
    ) -> Result<(), Conflict> {
        pending.queue.clear();
        self.put(state, candidate, pending)?;
        self.propagate(state, pending)
    }

    /// Makes each of these constraints required and propagates. Each must be optional so far and
    /// have remaining candidates.
    pub(super) fn fill(
        &self,
        root: &mut Node,
        lines: &[usize],
        pending: &mut PropagationQueue,
    ) -> Result<(), Conflict> {
        pending.queue.clear();
        pending.placed.clear();
        let state = &mut root.state;
        for &line in lines {
            let alive =
                self.lines[line].iter().filter(|&&candidate| state.is_alive(candidate)).count();
            state.line[line] = alive as u16;
            state.without[line >> 6] |= 1 << (line & 63);
            if alive == 1 {
                pending.queue.push(line as u16);
            }
        }
        self.propagate(state, pending)?;
        root.placed.append(&mut pending.placed);
        Ok(())
    }

    /// Removes the candidates on `squares` (numbers), and places all candidates implied by that.
    pub(super) fn without(
        &self,
        root: &mut Node,
        squares: &[usize],
        pending: &mut PropagationQueue,
    ) -> Result<(), Conflict> {
        pending.placed.clear();
        for &square in squares {
            let Some(candidate) = self.candidate_on(square) else { continue };
            pending.queue.clear();
            if root.placed.contains(&candidate) || pending.placed.contains(&candidate) {
                return Err(Conflict(None));
            }
            if root.state.is_alive(candidate) {
                root.state.clear(candidate);
                self.lost(&mut root.state, candidate, pending)?;
            }
            self.propagate(&mut root.state, pending)?;
        }
        root.placed.append(&mut pending.placed);
        Ok(())
    }

    fn propagate(&self, state: &mut State, pending: &mut PropagationQueue) -> Result<(), Conflict> {
        while let Some(next) = pending.queue.pop() {
            let next = next as usize;
            if next < self.lines.len() {
                if state.choices(next).is_none() {
                    continue;
                }
                let last = self.lines[next].iter().find(|&&candidate| state.is_alive(candidate));
                let last = *last.ok_or(Conflict(Some(next as u16)))?;
                self.put(state, last, pending)?;
            } else {
                let group = next - self.lines.len();
                if state.slack[group] != 0 {
                    continue;
                }
                let mut all = std::mem::take(&mut pending.scratch);
                all.clear();
                all.extend(
                    self.groups[group]
                        .candidates
                        .iter()
                        .filter(|&&candidate| state.is_alive(candidate)),
                );
                let done = all.iter().try_for_each(|&candidate| {
                    if state.is_alive(candidate) {
                        self.put(state, candidate, pending)
                    } else {
                        Err(Conflict(None))
                    }
                });
                pending.scratch = all;
                done?;
            }
        }
        Ok(())
    }

    /// Places a remaining candidate, and removes the candidates that it attacks.
    fn put(
        &self,
        state: &mut State,
        candidate: u32,
        pending: &mut PropagationQueue,
    ) -> Result<(), Conflict> {
        let index = candidate as usize;
        let counts = self.counts[index];
        let Incidence { group, queens, .. } = counts;
        let group = usize::from(group);
        pending.placed.push(candidate);
        state.clear(candidate);
        for line in counts.lines() {
            state.line[line] = DONE;
            state.without[line >> 6] &= !(1 << (line & 63));
        }
        state.room[group] -= queens;
        if state.room[group] < 0 {
            return Err(Conflict(None));
        }
        match &self.attacks {
            Attacks::Masks(masks) => {
                let mask = &masks[index * self.words..(index + 1) * self.words];
                for (word, &mask) in mask.iter().enumerate() {
                    let mut hit = state.alive[word] & mask;
                    state.alive[word] ^= hit;
                    while hit != 0 {
                        let other = (word as u32) << 6 | hit.trailing_zeros();
                        hit &= hit - 1;
                        self.lost(state, other, pending)?;
                    }
                }
            }
            Attacks::Lines => {
                for line in counts.lines() {
                    for &other in &self.lines[line] {
                        if state.is_alive(other) {
                            state.clear(other);
                            self.lost(state, other, pending)?;
                        }
                    }
                }
            }
        }
        if state.room[group] < queens {
            self.empty_group(state, group, pending)?;
        }
        Ok(())
    }

    fn empty_group(
        &self,
        state: &mut State,
        group: usize,
        pending: &mut PropagationQueue,
    ) -> Result<(), Conflict> {
        for &other in &self.groups[group].candidates {
            if state.is_alive(other) {
                state.clear(other);
                self.lost(state, other, pending)?;
            }
        }
        Ok(())
    }

    /// Updates the counts after `candidate` was removed.
    fn lost(
        &self,
        state: &mut State,
        candidate: u32,
        pending: &mut PropagationQueue,
    ) -> Result<(), Conflict> {
        let counts = &self.counts[candidate as usize];
        let Incidence { group, queens, .. } = *counts;
        for line in counts.lines() {
            let choices = &mut state.line[line];
            *choices -= 1;
            match *choices {
                0 => return Err(Conflict(Some(line as u16))),
                1 => pending.queue.push(line as u16),
                _ => {}
            }
        }
        let slack = &mut state.slack[usize::from(group)];
        *slack -= queens;
        if *slack < 0 {
            return Err(Conflict(None));
        }
        if *slack == 0 {
            pending.queue.push(self.lines.len() as u16 + group);
        }
        Ok(())
    }

    /// Returns the candidate on a square (by number), if there is one.
    pub(super) fn candidate_on(&self, square: usize) -> Option<u32> {
        Some(self.candidate_of[square]).filter(|&candidate| candidate != u32::MAX)
    }

    /// Returns the solution with the candidates `placed`: the 0-based column of the queen in each
    /// row.
    pub(super) fn columns(&self, n: usize, placed: &[u32]) -> Vec<usize> {
        let mut columns = vec![usize::MAX; n];
        for &square in placed.iter().flat_map(|&candidate| &self.candidates[candidate as usize]) {
            columns[square as usize / n] = square as usize % n;
        }
        columns
    }
}

/// Returns the orbits of `squares` under quarter turns, without those whose squares attack each
/// other.
fn turned(n: usize, squares: &[usize]) -> Vec<Vec<u32>> {
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
        let peaceful = images.len() == 1 || !(on_axis || on_diagonal);
        if images[0] as usize == square && peaceful {
            candidates.push(images);
        }
    }
    candidates
}

impl Attacks {
    fn new(n: usize, candidates: &[Vec<u32>], words: usize) -> Self {
        if candidates.len() > MOST_FOR_MASKS && candidates.iter().all(|squares| squares.len() == 1)
        {
            return Self::Lines;
        }
        let mut on = vec![Vec::new(); prices::level(n, 0)];
        let lines_of = |square: u32| prices::lines(n, square as usize);
        for (candidate, squares) in (0u32..).zip(candidates) {
            for line in squares.iter().flat_map(|&square| lines_of(square)) {
                if on[line].last() != Some(&candidate) {
                    on[line].push(candidate);
                }
            }
        }
        let mut masks = vec![0u64; candidates.len() * words];
        for (candidate, squares) in candidates.iter().enumerate() {
            let mask = &mut masks[candidate * words..(candidate + 1) * words];
            for line in squares.iter().flat_map(|&square| lines_of(square)) {
                for &other in &on[line] {
                    mask[other as usize >> 6] |= 1 << (other & 63);
                }
            }
            mask[candidate >> 6] &= !(1 << (candidate & 63));
        }
        Self::Masks(masks)
    }
}
