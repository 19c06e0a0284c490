//! Unit propagation: the state of a search, and the consequences of placing and removing
//! candidates.

use super::csp::{Attacks, Csp, Group, Incidence};
use crate::bitset;

/// The candidate count of a constraint that is satisfied or not required. It is so large that
/// removals cannot bring it below `SATISFIED / 2`.
const SATISFIED: u16 = 1 << 15;

/// The limit of a group that is not limited, beyond any number of queens.
const UNLIMITED: i32 = 1 << 30;

/// The state of propagation.
#[derive(Clone, Debug, Default)]
pub(super) struct State {
    remaining: Vec<u64>,
    /// By constraint: the number of remaining candidates; about [`SATISFIED`] if it is satisfied or
    /// not required.
    choices: Vec<u16>,
    /// The required constraints that are not satisfied, as bits.
    unsatisfied: Vec<u64>,
    /// By group: the queens that may still be removed, that is, those placed or remaining minus the
    /// minimum.
    slack: Vec<i32>,
    /// By group: the queens that may still be placed.
    room: Vec<i32>,
}

/// A state, and the candidates placed in it.
#[derive(Clone, Debug, Default)]
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

impl State {
    pub(super) fn is_remaining(&self, candidate: u32) -> bool {
        bitset::contains(&self.remaining, candidate as usize)
    }

    fn clear(&mut self, candidate: u32) {
        bitset::remove(&mut self.remaining, candidate as usize);
    }

    /// Returns whether every required constraint is satisfied.
    pub(super) fn is_complete(&self) -> bool {
        self.unsatisfied.iter().all(|&word| word == 0)
    }

    /// Returns the number of remaining candidates of a constraint, or `None` if it is satisfied or
    /// not required.
    pub(super) fn choices(&self, constraint: usize) -> Option<u16> {
        Some(self.choices[constraint]).filter(|&choices| choices < SATISFIED / 2)
    }

    /// Returns the required constraints that are not satisfied, ascending, with their numbers of
    /// remaining candidates.
    pub(super) fn open_constraints(&self) -> impl Iterator<Item = (usize, u16)> {
        bitset::elements(&self.unsatisfied).map(|constraint| (constraint, self.choices[constraint]))
    }

    pub(super) fn copy_from(&mut self, other: &Self) {
        self.remaining.clone_from(&other.remaining);
        self.choices.clone_from(&other.choices);
        self.unsatisfied.clone_from(&other.unsatisfied);
        self.slack.clone_from(&other.slack);
        self.room.clone_from(&other.room);
    }
}

impl Csp {
    /// Returns the root node after propagation. `pending.placed` lists the candidates that are
    /// implied.
    pub(super) fn root(&self, pending: &mut PropagationQueue) -> Result<Node, Conflict> {
        let count = |(candidates, &required): (&Vec<u32>, &bool)| {
            if required { candidates.len() as u16 } else { SATISFIED }
        };
        let limits = |limit: fn(&Group) -> u32| {
            let limit = |group| i32::try_from(limit(group)).unwrap_or(UNLIMITED);
            self.groups.iter().map(limit).chain([UNLIMITED]).collect()
        };
        let mut state = State {
            remaining: vec![0; self.words],
            choices: self.constraints.iter().zip(&self.required).map(count).collect(),
            unsatisfied: vec![0; self.constraints.len().div_ceil(64)],
            slack: limits(|group| *group.range.start()),
            room: limits(|group| *group.range.end()),
        };
        for slack in &mut state.slack[..self.groups.len()] {
            *slack = -*slack;
        }
        for constraint in
            (0..self.constraints.len()).filter(|&constraint| self.required[constraint])
        {
            bitset::insert(&mut state.unsatisfied, constraint);
        }
        for (candidate, incidence) in self.incidence.iter().enumerate() {
            bitset::insert(&mut state.remaining, candidate);
            if usize::from(incidence.group) < self.groups.len() {
                state.slack[usize::from(incidence.group)] += incidence.queens;
            }
        }
        pending.queue.clear();
        pending.placed.clear();
        for constraint in (0..self.constraints.len() as u16)
            .filter(|&constraint| self.required[usize::from(constraint)])
        {
            match self.constraints[usize::from(constraint)].len() {
                0 => return Err(Conflict(Some(constraint))),
                1 => pending.queue.push(constraint),
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
                .map_or(0, |&candidate| self.incidence[candidate as usize].queens);
            if queens > state.room[group] {
                self.empty_group(&mut state, group, pending)?;
            }
            pending.queue.push((self.constraints.len() + group) as u16);
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
            if root.state.is_remaining(candidate) {
                self.place(&mut root.state, candidate, &mut pending)?;
            } else if !pending.placed.contains(&candidate) {
                return Err(Conflict(None));
            }
        }
        Ok(Node { placed: pending.placed, ..root })
    }

    /// Returns the remaining candidates on a constraint.
    #[inline]
    pub(super) fn remaining_on(
        &self,
        state: &State,
        constraint: usize,
    ) -> impl Iterator<Item = u32> {
        let candidates = self.constraints[constraint].iter().copied();
        candidates.filter(|&candidate| state.is_remaining(candidate))
    }

    /// Returns the node below `node` in which `candidate` and all candidates implied by it are
    /// placed, too.
    pub(super) fn child(&self, node: Node, candidate: u32) -> Result<Node, Conflict> {
        let Node { mut state, placed } = node;
        let mut pending = PropagationQueue { placed, ..PropagationQueue::default() };
        self.place(&mut state, candidate, &mut pending)?;
        Ok(Node { state, placed: pending.placed })
    }

    /// Places `candidate` and all candidates implied by it.
    pub(super) fn place(
        &self,
        state: &mut State,
        candidate: u32,
        pending: &mut PropagationQueue,
    ) -> Result<(), Conflict> {
        pending.queue.clear();
        self.place_one(state, candidate, pending)?;
        self.propagate(state, pending)
    }

    /// Makes each of these constraints required and propagates. Each must be optional so far and
    /// have remaining candidates.
    pub(super) fn require(
        &self,
        root: &mut Node,
        constraints: &[usize],
        pending: &mut PropagationQueue,
    ) -> Result<(), Conflict> {
        pending.queue.clear();
        pending.placed.clear();
        let state = &mut root.state;
        for &constraint in constraints {
            let remaining = self.remaining_on(state, constraint).count();
            state.choices[constraint] = remaining as u16;
            bitset::insert(&mut state.unsatisfied, constraint);
            if remaining == 1 {
                pending.queue.push(constraint as u16);
            }
        }
        self.propagate(state, pending)?;
        root.placed.append(&mut pending.placed);
        Ok(())
    }

    /// Removes the candidates on `squares` (numbers), and places all candidates implied by that.
    pub(super) fn remove(
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
            if root.state.is_remaining(candidate) {
                root.state.clear(candidate);
                self.update_counts(&mut root.state, candidate, pending)?;
            }
            self.propagate(&mut root.state, pending)?;
        }
        root.placed.append(&mut pending.placed);
        Ok(())
    }

    fn propagate(&self, state: &mut State, pending: &mut PropagationQueue) -> Result<(), Conflict> {
        while let Some(next) = pending.queue.pop() {
            let next = next as usize;
            if next < self.constraints.len() {
                if state.choices(next).is_none() {
                    continue;
                }
                let last = self.remaining_on(state, next).next();
                let last = last.ok_or(Conflict(Some(next as u16)))?;
                self.place_one(state, last, pending)?;
            } else {
                let group = next - self.constraints.len();
                if state.slack[group] != 0 {
                    continue;
                }
                let mut all = std::mem::take(&mut pending.scratch);
                all.clear();
                all.extend(
                    self.groups[group]
                        .candidates
                        .iter()
                        .filter(|&&candidate| state.is_remaining(candidate)),
                );
                let done = all.iter().try_for_each(|&candidate| {
                    if state.is_remaining(candidate) {
                        self.place_one(state, candidate, pending)
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
    fn place_one(
        &self,
        state: &mut State,
        candidate: u32,
        pending: &mut PropagationQueue,
    ) -> Result<(), Conflict> {
        let index = candidate as usize;
        let incidence = self.incidence[index];
        let Incidence { group, queens, .. } = incidence;
        let group = usize::from(group);
        pending.placed.push(candidate);
        state.clear(candidate);
        for constraint in incidence.constraints() {
            state.choices[constraint] = SATISFIED;
            bitset::remove(&mut state.unsatisfied, constraint);
        }
        state.room[group] -= queens;
        if state.room[group] < 0 {
            return Err(Conflict(None));
        }
        match &self.attacks {
            Attacks::Masks(masks) => {
                let mask = &masks[index * self.words..(index + 1) * self.words];
                for (word, &mask) in mask.iter().enumerate() {
                    let mut hit = state.remaining[word] & mask;
                    state.remaining[word] ^= hit;
                    while hit != 0 {
                        let other = (word as u32) << 6 | hit.trailing_zeros();
                        hit &= hit - 1;
                        self.update_counts(state, other, pending)?;
                    }
                }
            }
            Attacks::SharedConstraints => {
                for constraint in incidence.constraints() {
                    for &other in &self.constraints[constraint] {
                        if state.is_remaining(other) {
                            state.clear(other);
                            self.update_counts(state, other, pending)?;
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
            if state.is_remaining(other) {
                state.clear(other);
                self.update_counts(state, other, pending)?;
            }
        }
        Ok(())
    }

    /// Updates the counts after `candidate` was removed.
    fn update_counts(
        &self,
        state: &mut State,
        candidate: u32,
        pending: &mut PropagationQueue,
    ) -> Result<(), Conflict> {
        let incidence = &self.incidence[candidate as usize];
        let Incidence { group, queens, .. } = *incidence;
        for constraint in incidence.constraints() {
            let choices = &mut state.choices[constraint];
            *choices -= 1;
            match *choices {
                0 => return Err(Conflict(Some(constraint as u16))),
                1 => pending.queue.push(constraint as u16),
                _ => {}
            }
        }
        let slack = &mut state.slack[usize::from(group)];
        *slack -= queens;
        if *slack < 0 {
            return Err(Conflict(None));
        }
        if *slack == 0 {
            pending.queue.push(self.constraints.len() as u16 + group);
        }
        Ok(())
    }
}
