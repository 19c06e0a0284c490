//! The search on a core: depth first on lines, with learned weights and restarts.
//!
//! The line with the fewest men for its weight is branched on; a line that lost its last man gets heavier (dom/wdeg,
//! Boussemart and others, 2004). Runs are restarted with longer and longer limits; one that ends by itself is exact.
//! Its tree is written down as the lines that were branched on, in order, each in base 128: the children of a node
//! are the men alive on its line in its order, and what propagation refutes is not mentioned.

use std::sync::atomic::{AtomicBool, Ordering};

use super::core::{Agenda, Conflict, Core, Root, State};

/// How a search ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// The men of a solution.
    Found(Vec<u32>),
    /// There is none; the tree that shows it.
    Refuted(Vec<u8>),
    /// Nodes are spent, or it was told to stop.
    Spent,
}

/// The wish that searches stop.
#[derive(Debug, Default)]
pub(super) struct Pulse(AtomicBool);

impl Pulse {
    pub(super) fn stop(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    fn is_stopped(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// The first run's nodes, and how much longer each next one is.
const FIRST_RUN: f64 = 2000.0;
const LONGER: f64 = 1.5;
/// What is left of a learned weight after a restart.
const DECAY: f32 = 0.999;

/// A search on one core. Weights stay from one question to the next.
#[derive(Debug)]
pub(super) struct Search<'a> {
    core: &'a Core,
    pulse: &'a Pulse,
    weights: Vec<f32>,
    states: Vec<State>,
    agenda: Agenda,
    log: Vec<u8>,
    rng: fastrand::Rng,
    /// Nodes of all runs.
    pub(super) nodes: u64,
    limit: u64,
    stopped: bool,
}

/// A base-128 number, the low digits first.
pub(super) fn write_number(log: &mut Vec<u8>, mut value: u64) {
    while value >= 128 {
        log.push(value as u8 | 128);
        value >>= 7;
    }
    log.push(value as u8);
}

impl<'a> Search<'a> {
    pub(super) fn new(core: &'a Core, pulse: &'a Pulse, seed: u64) -> Self {
        Self {
            core,
            pulse,
            weights: vec![1.0; core.lines.len()],
            states: Vec::new(),
            agenda: Agenda::default(),
            log: Vec::new(),
            rng: fastrand::Rng::with_seed(seed),
            nodes: 0,
            limit: 0,
            stopped: false,
        }
    }

    pub(super) fn weights(&self) -> &[f32] {
        &self.weights
    }

    /// Begins random numbers anew.
    pub(super) fn reseed(&mut self, seed: u64) {
        self.rng.seed(seed);
    }

    pub(super) fn set_weights(&mut self, weights: &[f32]) {
        self.weights.copy_from_slice(weights);
    }

    /// Searches below `root`, with `man` placed if one is given, for about `budget` nodes in all.
    pub(super) fn run(&mut self, root: &Root, man: Option<u32>, budget: u64) -> End {
        let end = self.nodes.saturating_add(budget);
        let mut run = FIRST_RUN;
        loop {
            self.limit = end.min(self.nodes.saturating_add(run as u64));
            self.stopped = false;
            self.log.clear();
            self.agenda.placed.clone_from(&root.placed);
            let mut state = self.states.pop().unwrap_or_default();
            state.copy_from(&root.state);
            let placed = match man {
                Some(man) if state.is_alive(man) => self.core.place(&mut state, man, &mut self.agenda),
                Some(man) if !root.placed.contains(&man) => Err(Conflict(None)),
                _ => Ok(()),
            };
            let found = match placed {
                Err(conflict) => {
                    self.learn(conflict);
                    false
                }
                Ok(()) => self.descend(&state),
            };
            self.states.push(state);
            if found {
                return End::Found(self.agenda.placed.clone());
            }
            if !self.stopped {
                return End::Refuted(std::mem::take(&mut self.log));
            }
            if self.nodes >= end || self.pulse.is_stopped() {
                return End::Spent;
            }
            for weight in &mut self.weights {
                *weight = 1.0 + (*weight - 1.0) * DECAY;
            }
            run *= LONGER;
        }
    }

    fn learn(&mut self, Conflict(line): Conflict) {
        if let Some(line) = line {
            self.weights[line as usize] += 1.0;
        }
    }

    /// The line to branch on.
    pub(super) fn best_line(&self, state: &State) -> usize {
        let mut best = (f32::INFINITY, 0);
        for (line, weight) in self.weights.iter().enumerate() {
            if let Some(choices) = state.choices(line) {
                let value = f32::from(choices) / weight;
                if value < best.0 {
                    best = (value, line);
                }
            }
        }
        best.1
    }

    /// Whether there is a solution below `state`; if so, its men are those placed.
    fn descend(&mut self, state: &State) -> bool {
        self.nodes += 1;
        if state.is_complete() {
            return true;
        }
        if self.nodes >= self.limit || (self.nodes.is_multiple_of(1024) && self.pulse.is_stopped()) {
            self.stopped = true;
            return false;
        }
        let line = self.best_line(state);
        write_number(&mut self.log, line as u64);
        let mut men: Vec<(u32, u32)> = (0..)
            .zip(self.core.lines[line].iter().copied())
            .filter(|&(_, man)| state.is_alive(man))
            .collect();
        self.rng.shuffle(&mut men);
        let height = self.agenda.placed.len();
        let begin = self.log.len();
        let mut pieces: Vec<(u32, usize)> = Vec::with_capacity(men.len());
        let mut child = self.states.pop().unwrap_or_default();
        for (order, man) in men {
            child.copy_from(state);
            self.agenda.placed.truncate(height);
            let found = match self.core.place(&mut child, man, &mut self.agenda) {
                Ok(()) => self.descend(&child),
                Err(conflict) => {
                    self.learn(conflict);
                    false
                }
            };
            if found || self.stopped {
                self.states.push(child);
                return found;
            }
            pieces.push((order, self.log.len()));
        }
        self.states.push(child);
        self.sort_pieces(begin, &pieces);
        false
    }

    /// Puts what was logged of a node's children, each up to an end, into the order of the children.
    fn sort_pieces(&mut self, begin: usize, pieces: &[(u32, usize)]) {
        if self.log.len() == begin {
            return;
        }
        let starts = std::iter::once(begin).chain(pieces.iter().map(|piece| piece.1));
        let mut ordered: Vec<(u32, usize, usize)> =
            pieces.iter().zip(starts).map(|(&(order, end), start)| (order, start, end)).collect();
        if ordered.is_sorted() {
            return;
        }
        ordered.sort_unstable();
        let sorted: Vec<u8> =
            ordered.iter().flat_map(|&(_, start, end)| &self.log[start..end]).copied().collect();
        self.log[begin..].copy_from_slice(&sorted);
    }
}

/// Finds every solution below `root`; `look` is asked at each node whether it may go on. Whether it came to the end.
pub(super) fn every_solution(
    core: &Core,
    root: &Root,
    look: &mut dyn FnMut() -> bool,
    found: &mut dyn FnMut(&[u32]),
) -> bool {
    if !look() {
        return false;
    }
    if root.state.is_complete() {
        found(&root.placed);
        return true;
    }
    let open = (0..core.lines.len()).filter_map(|line| Some((root.state.choices(line)?, line)));
    let Some((_, line)) = open.min() else { return true };
    for &man in core.lines[line].iter().filter(|&&man| root.state.is_alive(man)) {
        let mut agenda = Agenda::after(root.placed.clone());
        let mut state = root.state.clone();
        if core.place(&mut state, man, &mut agenda).is_ok() {
            let child = Root { state, placed: agenda.placed };
            if !every_solution(core, &child, look, found) {
                return false;
            }
        }
    }
    true
}
