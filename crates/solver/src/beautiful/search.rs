//! The search on a core: depth first on lines, with learned weights and restarts.
//!
//! The line with the fewest men for its weight is branched on; a line that lost its last man gets heavier (dom/wdeg,
//! Boussemart and others, 2004). Runs are restarted with longer and longer limits; one that ends by itself is exact.
//! Its tree is written down as the lines that were branched on, in order, each in base 128: the children of a node
//! are the men alive on its line in its order, and what propagation refutes is not mentioned. A run that stops early
//! may leave holes in its tree ([`Csp::hole`]) for the states that are still to be searched.

use std::sync::atomic::{AtomicU8, Ordering};

use super::csp::{Conflict, Csp, Node, PropagationQueue, State};

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
pub struct CancelToken(AtomicU8);

impl CancelToken {
    /// What is in hand is to be left where it is.
    pub fn stop(&self) {
        self.0.fetch_max(1, Ordering::Relaxed);
    }

    /// Nobody wants what is in hand.
    pub fn abandon(&self) {
        self.0.fetch_max(2, Ordering::Relaxed);
    }

    /// Whether it is to be left or abandoned.
    pub fn is_stopped(&self) -> bool {
        self.0.load(Ordering::Relaxed) > 0
    }

    /// Whether nobody wants it.
    pub fn is_abandoned(&self) -> bool {
        self.0.load(Ordering::Relaxed) > 1
    }
}

/// The first run's nodes, and how much longer each next one is.
const FIRST_RUN: f64 = 2000.0;
const LONGER: f64 = 1.5;
/// What is left of a learned weight after a restart.
const DECAY: f32 = 0.999;
/// A contradiction this many queens deeper weighs less by a factor of e.
const DEPTH: f32 = 20.0;
/// So many nodes, and what is left of a learned weight after them.
const FADE_EVERY: u64 = 64;
const FADE: f32 = 0.99;

/// A search on one core. Weights stay from one question to the next.
#[derive(Debug)]
pub(super) struct Search<'a> {
    csp: &'a Csp,
    cancel: &'a CancelToken,
    weights: Vec<f32>,
    /// One over each weight.
    ease: Vec<f32>,
    states: Vec<State>,
    pending: PropagationQueue,
    log: Vec<u8>,
    /// Men of the lines on the path who are still to be tried, with their places there.
    choices: Vec<(u32, u32)>,
    /// The queens at the root.
    height: usize,
    /// Whether men are tried in random order.
    shuffled: bool,
    /// Lines of which all men are tried before one of them is branched on; the more, the smaller the tree.
    pub(super) ahead: usize,
    rng: fastrand::Rng,
    /// Nodes of all runs.
    pub(super) nodes: u64,
    limit: u64,
    stopped: bool,
    /// What a run that stops leaves to others; none if it shall just stop.
    holes: Option<Vec<Node>>,
}

/// Reads what [`write_number`] wrote at `at`, and goes on behind it.
pub(super) fn read_number(log: &[u8], at: &mut usize) -> u64 {
    let mut value = 0;
    for shift in (0..).step_by(7) {
        let byte = log[*at];
        *at += 1;
        value |= u64::from(byte & 127) << shift;
        if byte < 128 {
            break;
        }
    }
    value
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
    pub(super) fn new(csp: &'a Csp, cancel: &'a CancelToken, seed: u64) -> Self {
        Self {
            csp,
            cancel,
            weights: vec![1.0; csp.lines.len()],
            ease: vec![1.0; csp.lines.len()],
            choices: Vec::new(),
            height: 0,
            shuffled: true,
            ahead: 0,
            states: Vec::new(),
            pending: PropagationQueue::default(),
            log: Vec::new(),
            rng: fastrand::Rng::with_seed(seed),
            nodes: 0,
            limit: 0,
            stopped: false,
            holes: None,
        }
    }

    pub(super) fn weights(&self) -> &[f32] {
        &self.weights
    }

    /// Begins with what others have learned below a root with `height` queens.
    pub(super) fn inherit(&mut self, weights: &[f32], height: usize) {
        self.height = height;
        self.weights.copy_from_slice(weights);
        self.weigh();
    }

    fn weigh(&mut self) {
        for (ease, weight) in self.ease.iter_mut().zip(&self.weights) {
            *ease = weight.recip();
        }
    }

    /// Lets what was learned fade.
    fn fade(&mut self, what_stays: f32) {
        for weight in &mut self.weights {
            *weight = 1.0 + (*weight - 1.0) * what_stays;
        }
        self.weigh();
    }

    /// Searches below `root` for about `budget` nodes in all, with restarts.
    pub(super) fn run(&mut self, root: &Node, budget: u64) -> End {
        let end = self.nodes.saturating_add(budget);
        let mut run = FIRST_RUN;
        self.shuffled = true;
        self.height = root.placed.len();
        loop {
            self.limit = end.min(self.nodes.saturating_add(run as u64));
            self.stopped = false;
            self.log.clear();
            self.pending.placed.clone_from(&root.placed);
            if self.descend(&root.state) {
                return End::Found(self.pending.placed.clone());
            }
            if !self.stopped {
                return End::Refuted(std::mem::take(&mut self.log));
            }
            if self.nodes >= end || self.cancel.is_stopped() {
                return End::Spent;
            }
            self.fade(DECAY);
            run *= LONGER;
        }
    }

    /// Searches below `root` for about `budget` nodes without a restart. If it is not refuted by then, the tree has
    /// holes, and these are what is in them.
    pub(super) fn subtree(&mut self, root: &Node, budget: u64) -> (End, Vec<Node>) {
        self.limit = self.nodes.saturating_add(budget);
        self.stopped = false;
        self.shuffled = false;
        self.log.clear();
        self.holes = Some(Vec::new());
        self.pending.placed.clone_from(&root.placed);
        let found = self.descend(&root.state);
        let holes = self.holes.take().unwrap_or_default();
        if found {
            return (End::Found(self.pending.placed.clone()), Vec::new());
        }
        (End::Refuted(std::mem::take(&mut self.log)), holes)
    }

    fn learn(&mut self, Conflict(line): Conflict) {
        if let Some(line) = line {
            let line = usize::from(line);
            let depth = (self.pending.placed.len() - self.height) as f32;
            self.weights[line] += (-depth / DEPTH).exp();
            self.ease[line] = self.weights[line].recip();
        }
    }

    /// The line to branch on.
    pub(super) fn best_line(&self, state: &State) -> usize {
        let mut best = (f32::INFINITY, 0);
        for (line, choices) in state.open_lines() {
            let value = f32::from(choices) * self.ease[line];
            if value < best.0 {
                best = (value, line);
            }
        }
        best.1
    }

    /// The line to branch on, after a look at the men of the best ones: where the fewest survive.
    fn line_ahead(&mut self, state: &State) -> usize {
        let mut lines: Vec<(f32, usize)> =
            state.open_lines().map(|(line, choices)| (f32::from(choices) * self.ease[line], line)).collect();
        lines.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
        lines.truncate(self.ahead);
        let height = self.pending.placed.len();
        let mut probe = self.states.pop().unwrap_or_default();
        let mut best = (f32::INFINITY, 0);
        for (_, line) in lines {
            let mut survivors = 0.0;
            for &candidate in self.csp.lines[line].iter().filter(|&&candidate| state.is_alive(candidate)) {
                probe.copy_from(state);
                survivors +=
                    f32::from(u8::from(self.csp.place(&mut probe, candidate, &mut self.pending).is_ok()));
                self.pending.placed.truncate(height);
            }
            if survivors * self.ease[line] < best.0 {
                best = (survivors * self.ease[line], line);
            }
            if survivors == 0.0 {
                break;
            }
        }
        self.states.push(probe);
        best.1
    }

    /// Whether there is a solution below `state`; if so, its men are those placed.
    fn descend(&mut self, state: &State) -> bool {
        if state.is_complete() {
            return true;
        }
        self.stopped |=
            self.nodes >= self.limit || (self.nodes.is_multiple_of(1024) && self.cancel.is_stopped());
        if self.stopped {
            self.leave(state);
            return false;
        }
        self.nodes += 1;
        if self.nodes.is_multiple_of(FADE_EVERY) {
            self.fade(FADE);
        }
        let line = if self.ahead > 0 { self.line_ahead(state) } else { self.best_line(state) };
        write_number(&mut self.log, self.csp.in_tree(line));
        let first = self.choices.len();
        let candidates = (0..).zip(self.csp.lines[line].iter().copied());
        self.choices.extend(candidates.filter(|&(_, candidate)| state.is_alive(candidate)));
        let mut pieces = Vec::new();
        if self.shuffled {
            self.rng.shuffle(&mut self.choices[first..]);
        } else {
            self.choices[first..].reverse();
        }
        let height = self.pending.placed.len();
        let begin = self.log.len();
        let mut child = self.states.pop().unwrap_or_default();
        let mut found = false;
        while self.choices.len() > first && !found && (!self.stopped || self.holes.is_some()) {
            let Some((order, candidate)) = self.choices.pop() else { break };
            child.copy_from(state);
            self.pending.placed.truncate(height);
            match self.csp.place(&mut child, candidate, &mut self.pending) {
                Ok(()) => found = self.descend(&child),
                Err(conflict) => self.learn(conflict),
            }
            if self.shuffled {
                pieces.push((order, self.log.len()));
            }
        }
        self.choices.truncate(first);
        self.states.push(child);
        if self.shuffled && !found && !self.stopped {
            self.sort_pieces(begin, &pieces);
        }
        found
    }

    /// Leaves a state to others.
    fn leave(&mut self, state: &State) {
        if let Some(holes) = &mut self.holes {
            write_number(&mut self.log, self.csp.hole as u64);
            holes.push(Node { state: state.clone(), placed: self.pending.placed.clone() });
        }
    }

    /// Puts what was logged of a node's children, each up to an end, into the order of the children.
    fn sort_pieces(&mut self, begin: usize, pieces: &[(u32, usize)]) {
        if self.log.len() == begin {
            return;
        }
        let starts = std::iter::once(begin).chain(pieces.iter().map(|subtree| subtree.1));
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
    csp: &Csp,
    root: &Node,
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
    let open = (0..csp.lines.len()).filter_map(|line| Some((root.state.choices(line)?, line)));
    let Some((_, line)) = open.min() else { return true };
    for &candidate in csp.lines[line].iter().filter(|&&candidate| root.state.is_alive(candidate)) {
        let mut pending = PropagationQueue::after(root.placed.clone());
        let mut state = root.state.clone();
        if csp.place(&mut state, candidate, &mut pending).is_ok() {
            let child = Node { state, placed: pending.placed };
            if !every_solution(csp, &child, look, found) {
                return false;
            }
        }
    }
    true
}
