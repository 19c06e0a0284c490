//! The sequential search: depth first, with learned weights and restarts.
//!
//! It branches on the constraint with the fewest candidates relative to its weight; a constraint
//! that loses its last candidate gains weight (dom/wdeg, Boussemart and others, 2004). Runs are
//! restarted with increasing limits; a run that ends within its limit is exact. Its tree is written
//! as the constraints branched on, in depth-first order, each as a base-128 number. The children of
//! a node are the remaining candidates of its constraint in order; children that propagation
//! refutes are omitted. A run that stops early may leave holes in its tree ([`Csp::hole`]) for the
//! states that are still to be searched.

use std::sync::atomic::{AtomicU8, Ordering};

use super::csp::Csp;
use super::params;
use super::propagation::{Conflict, Node, PropagationQueue, State};

/// The outcome of a search.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum SearchOutcome {
    /// The candidates of a solution.
    Found(Vec<u32>),
    /// There is no solution; the tree proves it.
    Refuted(Vec<u8>),
    /// The nodes are used up, or the search was stopped.
    LimitReached,
}

/// A token that stops or abandons searches in progress.
#[derive(Debug, Default)]
pub struct CancelToken(AtomicU8);

impl CancelToken {
    /// Requests that searches in progress stop where they are.
    pub fn stop(&self) {
        self.0.fetch_max(1, Ordering::Relaxed);
    }

    /// Requests that searches in progress stop because their results are no longer needed.
    pub fn abandon(&self) {
        self.0.fetch_max(2, Ordering::Relaxed);
    }

    /// Returns whether searches are to stop, abandoned or not.
    pub fn is_stopped(&self) -> bool {
        self.0.load(Ordering::Relaxed) > 0
    }

    /// Returns whether the results are no longer needed.
    pub fn is_abandoned(&self) -> bool {
        self.0.load(Ordering::Relaxed) > 1
    }
}

/// A search on one thread. Weights are kept from one run to the next.
#[derive(Debug)]
pub(super) struct Search<'a> {
    csp: &'a Csp,
    cancel: &'a CancelToken,
    weights: Vec<f32>,
    /// The reciprocal of each weight.
    reciprocals: Vec<f32>,
    states: Vec<State>,
    pending: PropagationQueue,
    tree: Vec<u8>,
    /// The untried candidates of the constraints on the current path, with their positions there.
    choices: Vec<(u32, u32)>,
    /// The number of candidates placed at the root.
    height: usize,
    /// Set if candidates are tried in random order.
    shuffled: bool,
    /// The number of constraints that are probed before branching: the more, the smaller the tree.
    pub(super) probed_constraints: usize,
    rng: fastrand::Rng,
    /// Nodes of all runs.
    pub(super) nodes: u64,
    limit: u64,
    stopped: bool,
    /// The holes of a run that leaves its open states to others; `None` if it just stops.
    holes: Option<Vec<Node>>,
}

/// Reads the number that [`write_number`] wrote at `at`, and advances `at` past it.
pub(super) fn read_number(tree: &[u8], at: &mut usize) -> u64 {
    let mut value = 0;
    for shift in (0..).step_by(7) {
        let byte = tree[*at];
        *at += 1;
        value |= u64::from(byte & 127) << shift;
        if byte < 128 {
            break;
        }
    }
    value
}

/// Writes a base-128 number, low digits first.
pub(super) fn write_number(tree: &mut Vec<u8>, mut value: u64) {
    while value >= 128 {
        tree.push(value as u8 | 128);
        value >>= 7;
    }
    tree.push(value as u8);
}

impl<'a> Search<'a> {
    pub(super) fn new(csp: &'a Csp, cancel: &'a CancelToken, seed: u64) -> Self {
        Self {
            csp,
            cancel,
            weights: vec![1.0; csp.constraints.len()],
            reciprocals: vec![1.0; csp.constraints.len()],
            choices: Vec::new(),
            height: 0,
            shuffled: true,
            probed_constraints: 0,
            states: Vec::new(),
            pending: PropagationQueue::default(),
            tree: Vec::new(),
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

    /// Adopts weights learned elsewhere, below a root with `height` placed candidates.
    pub(super) fn set_weights(&mut self, weights: &[f32], height: usize) {
        self.height = height;
        self.weights.copy_from_slice(weights);
        self.update_reciprocals();
    }

    fn update_reciprocals(&mut self) {
        for (reciprocals, weight) in self.reciprocals.iter_mut().zip(&self.weights) {
            *reciprocals = weight.recip();
        }
    }

    /// Multiplies what was added to the weights by `factor`.
    fn decay(&mut self, factor: f32) {
        for weight in &mut self.weights {
            *weight = 1.0 + (*weight - 1.0) * factor;
        }
        self.update_reciprocals();
    }

    /// Searches below `root` for about `budget` nodes in all, with restarts.
    pub(super) fn run(&mut self, root: &Node, budget: u64) -> SearchOutcome {
        let end = self.nodes.saturating_add(budget);
        let mut run = params::FIRST_RUN_NODES;
        self.shuffled = true;
        self.height = root.placed.len();
        loop {
            self.limit = end.min(self.nodes.saturating_add(run as u64));
            self.stopped = false;
            self.tree.clear();
            self.pending.placed.clone_from(&root.placed);
            if self.descend(&root.state) {
                return SearchOutcome::Found(self.pending.placed.clone());
            }
            if !self.stopped {
                return SearchOutcome::Refuted(std::mem::take(&mut self.tree));
            }
            if self.nodes >= end || self.cancel.is_stopped() {
                return SearchOutcome::LimitReached;
            }
            self.decay(params::RESTART_DECAY);
            run *= params::RUN_GROWTH;
        }
    }

    /// Searches below `root` for about `budget` nodes without a restart. Returns also the open
    /// states; if there are any, the refutation tree has a hole for each.
    pub(super) fn subtree(&mut self, root: &Node, budget: u64) -> (SearchOutcome, Vec<Node>) {
        self.limit = self.nodes.saturating_add(budget);
        self.stopped = false;
        self.shuffled = false;
        self.tree.clear();
        self.holes = Some(Vec::new());
        self.pending.placed.clone_from(&root.placed);
        let found = self.descend(&root.state);
        let holes = self.holes.take().unwrap_or_default();
        if found {
            return (SearchOutcome::Found(self.pending.placed.clone()), Vec::new());
        }
        (SearchOutcome::Refuted(std::mem::take(&mut self.tree)), holes)
    }

    fn learn(&mut self, Conflict(constraint): Conflict) {
        if let Some(constraint) = constraint {
            let constraint = usize::from(constraint);
            let depth = (self.pending.placed.len() - self.height) as f32;
            self.weights[constraint] += (-depth / params::CONFLICT_DEPTH).exp();
            self.reciprocals[constraint] = self.weights[constraint].recip();
        }
    }

    /// Returns the constraint to branch on.
    pub(super) fn best_constraint(&self, state: &State) -> usize {
        let mut best = (f32::INFINITY, 0);
        for (constraint, choices) in state.open_constraints() {
            let value = f32::from(choices) * self.reciprocals[constraint];
            if value < best.0 {
                best = (value, constraint);
            }
        }
        best.1
    }

    /// Returns the constraint to branch on after probing the candidates of the best ones: the one
    /// with the fewest surviving candidates relative to its weight.
    fn best_after_probing(&mut self, state: &State) -> usize {
        let mut constraints: Vec<(f32, usize)> = state
            .open_constraints()
            .map(|(constraint, choices)| {
                (f32::from(choices) * self.reciprocals[constraint], constraint)
            })
            .collect();
        constraints.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
        constraints.truncate(self.probed_constraints);
        let height = self.pending.placed.len();
        let mut probe = self.states.pop().unwrap_or_default();
        let mut best = (f32::INFINITY, 0);
        for (_, constraint) in constraints {
            let mut survivors = 0.0;
            for candidate in self.csp.remaining_on(state, constraint) {
                probe.copy_from(state);
                survivors += f32::from(u8::from(
                    self.csp.place(&mut probe, candidate, &mut self.pending).is_ok(),
                ));
                self.pending.placed.truncate(height);
            }
            if survivors * self.reciprocals[constraint] < best.0 {
                best = (survivors * self.reciprocals[constraint], constraint);
            }
            if survivors == 0.0 {
                break;
            }
        }
        self.states.push(probe);
        best.1
    }

    /// Returns whether there is a solution below `state`. If so, `pending.placed` has its
    /// candidates.
    fn descend(&mut self, state: &State) -> bool {
        if state.is_complete() {
            return true;
        }
        self.stopped |= self.nodes >= self.limit
            || (self.nodes.is_multiple_of(1024) && self.cancel.is_stopped());
        if self.stopped {
            self.leave_hole(state);
            return false;
        }
        self.nodes += 1;
        if self.nodes.is_multiple_of(params::DECAY_EVERY_NODES) {
            self.decay(params::NODE_DECAY);
        }
        let constraint = if self.probed_constraints > 0 {
            self.best_after_probing(state)
        } else {
            self.best_constraint(state)
        };
        write_number(&mut self.tree, self.csp.in_tree(constraint));
        let first = self.choices.len();
        let candidates = (0..).zip(self.csp.constraints[constraint].iter().copied());
        self.choices.extend(candidates.filter(|&(_, candidate)| state.is_remaining(candidate)));
        let mut children = Vec::new();
        if self.shuffled {
            self.rng.shuffle(&mut self.choices[first..]);
        } else {
            self.choices[first..].reverse();
        }
        let height = self.pending.placed.len();
        let begin = self.tree.len();
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
                children.push((order, self.tree.len()));
            }
        }
        self.choices.truncate(first);
        self.states.push(child);
        if self.shuffled && !found && !self.stopped {
            self.sort_subtrees(begin, &children);
        }
        found
    }

    /// Leaves a state as a hole, if holes are wanted.
    fn leave_hole(&mut self, state: &State) {
        if let Some(holes) = &mut self.holes {
            write_number(&mut self.tree, self.csp.hole as u64);
            holes.push(Node { state: state.clone(), placed: self.pending.placed.clone() });
        }
    }

    /// Sorts the tree of a node's children into the order of the children. `children` has the
    /// position of each child and where its tree ends.
    fn sort_subtrees(&mut self, begin: usize, children: &[(u32, usize)]) {
        if self.tree.len() == begin {
            return;
        }
        let starts = std::iter::once(begin).chain(children.iter().map(|subtree| subtree.1));
        let mut ordered: Vec<(u32, usize, usize)> =
            children.iter().zip(starts).map(|(&(order, end), start)| (order, start, end)).collect();
        if ordered.is_sorted() {
            return;
        }
        ordered.sort_unstable();
        let sorted: Vec<u8> =
            ordered.iter().flat_map(|&(_, start, end)| &self.tree[start..end]).copied().collect();
        self.tree[begin..].copy_from_slice(&sorted);
    }
}

/// Finds every solution below `root`. `keep_going` is called at each node and returns whether to
/// continue. Returns whether the search was completed.
pub(super) fn every_solution(
    csp: &Csp,
    root: &Node,
    keep_going: &mut dyn FnMut() -> bool,
    found: &mut dyn FnMut(&[u32]),
) -> bool {
    if !keep_going() {
        return false;
    }
    if root.state.is_complete() {
        found(&root.placed);
        return true;
    }
    let open = (0..csp.constraints.len())
        .filter_map(|constraint| Some((root.state.choices(constraint)?, constraint)));
    let Some((_, constraint)) = open.min() else { return true };
    for candidate in csp.remaining_on(&root.state, constraint) {
        if let Ok(child) = csp.child(root.clone(), candidate)
            && !every_solution(csp, &child, keep_going, found)
        {
            return false;
        }
    }
    true
}
