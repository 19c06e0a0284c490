//! Long searches, split into subtrees for parallel workers: threads of this machine or remote
//! solvers.
//!
//! A subtree is searched from its root for a limited number of nodes. The states that are still
//! open then, beside its current path, become subtrees of their own. So nothing is searched twice,
//! and the trees of all subtrees make up the tree of the whole search.

use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

use super::csp::Csp;
use super::params;
use super::propagation::Node;
use super::search::{CancelToken, Search, SearchOutcome, read_number, write_number};
use crate::threads::lock;

/// The longest time between two calls of the caller's `keep_going`.
const POLL_EVERY: Duration = Duration::from_millis(25);

/// A state to be searched.
#[derive(Debug)]
struct Subtree {
    root: Node,
    /// Its index in [`ParallelSearch::trees`].
    place: usize,
}

/// The tree of a subtree that was searched.
#[derive(Debug)]
struct Tree {
    bytes: Vec<u8>,
    /// The index of the tree in its first hole; those of the other holes follow.
    holes: usize,
}

/// The result of searching a subtree.
#[derive(Debug)]
pub(super) enum SubtreeResult {
    /// The candidates of a solution, and the number of nodes searched.
    Found(Vec<u32>, u64),
    /// A tree, the states in its holes in order, and the number of nodes searched.
    Tree(Vec<u8>, Vec<Node>, u64),
    /// No result: the subtree has to be searched again.
    Abandoned,
}

/// A worker that searches subtrees, one at a time.
pub(super) trait SubtreeWorker: Send {
    /// Adopts the weights learned so far, below a root with `height` placed candidates.
    fn begin(&mut self, weights: &[f32], height: usize);

    /// Returns the node limit of the next subtree after `so_far` nodes were searched in all, where
    /// `share` is the worker's share of the nodes that are left, or 0 if too few subtrees wait.
    fn task_nodes(&self, so_far: u64, share: u64) -> u64;

    /// Searches below `root` for about `nodes` nodes.
    fn search(&mut self, root: &Node, nodes: u64) -> SubtreeResult;

    /// Returns the weights that the worker has learned, if it reports any.
    fn weights(&self) -> Option<&[f32]>;
}

impl SubtreeWorker for Search<'_> {
    fn begin(&mut self, weights: &[f32], height: usize) {
        self.set_weights(weights, height);
    }

    fn task_nodes(&self, _: u64, share: u64) -> u64 {
        share.clamp(params::MIN_SUBTREE_NODES, params::SUBTREE_NODES)
    }

    fn search(&mut self, root: &Node, nodes: u64) -> SubtreeResult {
        let before = self.nodes;
        match self.subtree(root, nodes) {
            (SearchOutcome::Found(candidates), _) => {
                SubtreeResult::Found(candidates, self.nodes - before)
            }
            (SearchOutcome::Refuted(tree), holes) => {
                SubtreeResult::Tree(tree, holes, self.nodes - before)
            }
            (SearchOutcome::LimitReached, _) => unreachable!("a subtree search leaves holes"),
        }
    }

    fn weights(&self) -> Option<&[f32]> {
        Some(Search::weights(self))
    }
}

/// A search that can be interrupted and continued.
#[derive(Debug, Default)]
pub(super) struct ParallelSearch {
    root: Node,
    /// Set if its subtrees are searched by [`crate::beautiful::lp_search`].
    uses_lp: bool,
    /// Subtrees to be searched; the last one is taken first.
    waiting: Vec<Subtree>,
    /// The number of subtrees in progress, and the nodes reserved for them.
    in_progress: usize,
    reserved: u64,
    trees: Vec<Option<Tree>>,
    found: Option<Vec<u32>>,
    /// Set when no more subtrees may be started.
    ended: bool,
    /// Set when a worker has panicked.
    panicked: bool,
    weights: Vec<f32>,
    /// The number of candidates placed at the root.
    height: usize,
    nodes: u64,
    /// The number of nodes at which the search stops.
    limit: u64,
    /// The number of workers.
    workers: u64,
}

impl ParallelSearch {
    /// Creates a search of everything below `root` that starts with these weights.
    pub(super) fn new(root: Node, weights: &[f32]) -> Self {
        Self {
            height: root.placed.len(),
            waiting: vec![Subtree { root: root.clone(), place: 0 }],
            root,
            trees: vec![None],
            weights: weights.to_vec(),
            ..Self::default()
        }
    }

    /// Restarts the search for use with the LP, unless that was done before. The weights are kept;
    /// the subtrees left by searches without the LP are not, since they are many and badly split.
    pub(super) fn restart_with_lp(&mut self) {
        if !self.uses_lp {
            self.uses_lp = true;
            self.waiting = vec![Subtree { root: self.root.clone(), place: 0 }];
            self.trees = vec![None];
        }
    }

    /// Returns the weights learned so far.
    pub(super) fn weights(&self) -> &[f32] {
        &self.weights
    }

    /// Returns the number of nodes searched so far.
    pub(super) const fn nodes(&self) -> u64 {
        self.nodes
    }

    /// Searches on `threads` threads for about `budget` more nodes. `keep_going` receives the nodes
    /// so far and returns whether to continue.
    pub(super) fn continue_on_threads(
        &mut self,
        csp: &Csp,
        budget: u64,
        threads: usize,
        keep_going: &mut dyn FnMut(u64) -> bool,
    ) -> SearchOutcome {
        let cancel = CancelToken::default();
        let mut searches: Vec<Search<'_>> =
            (0..threads).map(|seed| Search::new(csp, &cancel, seed as u64)).collect();
        let workers = searches.iter_mut().map(|search| search as &mut dyn SubtreeWorker).collect();
        self.continue_with(csp, budget, workers, &cancel, keep_going)
    }

    /// Searches like [`continue_on_threads`](Self::continue_on_threads), but with these workers,
    /// which obey `cancel`.
    ///
    /// # Panics
    /// If a worker panics.
    pub(super) fn continue_with(
        &mut self,
        csp: &Csp,
        budget: u64,
        workers: Vec<&mut dyn SubtreeWorker>,
        cancel: &CancelToken,
        keep_going: &mut dyn FnMut(u64) -> bool,
    ) -> SearchOutcome {
        self.ended = false;
        self.workers = workers.len() as u64;
        self.limit = self.nodes.saturating_add(budget);
        let shared = Mutex::new(self);
        let changed = Condvar::new();
        // A panic in a worker ends the search; the scope propagates the panic.
        std::thread::scope(|scope| {
            for worker in workers {
                let (shared, changed) = (&shared, &changed);
                scope.spawn(move || work(shared, changed, worker));
            }
            let mut state = lock(&shared);
            loop {
                if state.is_finished() {
                    // The workers finish, at once if their results are no longer needed.
                    cancel.stop();
                    if state.ended || state.found.is_some() {
                        cancel.abandon();
                    }
                    changed.notify_all();
                    if state.in_progress == 0 || state.panicked {
                        break;
                    }
                }
                let waited = changed.wait_timeout(state, POLL_EVERY);
                state = waited.unwrap_or_else(PoisonError::into_inner).0;
                let nodes = state.nodes;
                drop(state);
                let go_on = keep_going(nodes);
                state = lock(&shared);
                state.ended |= !go_on;
            }
        });
        let this = shared.into_inner().unwrap_or_else(PoisonError::into_inner);
        if let Some(candidates) = &this.found {
            return SearchOutcome::Found(candidates.clone());
        }
        if !this.waiting.is_empty() {
            return SearchOutcome::LimitReached;
        }
        let mut tree = Vec::new();
        this.assemble(csp, 0, &mut tree);
        SearchOutcome::Refuted(tree)
    }

    fn is_finished(&self) -> bool {
        let spent = self.nodes >= self.limit;
        self.found.is_some()
            || self.ended
            || spent
            || (self.waiting.is_empty() && self.in_progress == 0)
    }

    /// Returns a worker's share of the nodes that are neither searched nor reserved, or 0 if fewer
    /// subtrees wait than there are workers, so that this one soon leaves some for the others.
    fn share(&self) -> u64 {
        if (self.waiting.len() as u64) < self.workers && self.workers > 1 {
            return 0;
        }
        self.limit.saturating_sub(self.nodes).saturating_sub(self.reserved) / self.workers
    }

    /// Takes the next subtree for `nodes` nodes, unless the nodes reserved use up the limit.
    fn take(&mut self, nodes: u64) -> Option<Subtree> {
        if self.nodes.saturating_add(self.reserved) >= self.limit {
            return None;
        }
        let subtree = self.waiting.pop()?;
        self.in_progress += 1;
        self.reserved += nodes;
        Some(subtree)
    }

    /// Records the result of a subtree for which `nodes` nodes were reserved.
    fn record(&mut self, subtree: Subtree, nodes: u64, searched: SubtreeResult) {
        self.in_progress -= 1;
        self.reserved -= nodes;
        match searched {
            SubtreeResult::Found(candidates, nodes) => {
                self.nodes += nodes;
                self.found = Some(candidates);
            }
            SubtreeResult::Tree(bytes, holes, nodes) => {
                self.nodes += nodes;
                let first = self.trees.len();
                self.trees[subtree.place] = Some(Tree { bytes, holes: first });
                self.trees.resize_with(first + holes.len(), || None);
                let subtrees = holes.into_iter().enumerate().rev();
                self.waiting
                    .extend(subtrees.map(|(hole, root)| Subtree { root, place: first + hole }));
            }
            SubtreeResult::Abandoned => self.waiting.push(subtree),
        }
    }

    /// Writes the tree at an index, with its holes filled.
    fn assemble(&self, csp: &Csp, place: usize, tree: &mut Vec<u8>) {
        let Some(Tree { bytes, holes }) = &self.trees[place] else {
            unreachable!("no subtree is left")
        };
        let (mut at, mut next) = (0, *holes);
        while at < bytes.len() {
            let constraint = read_number(bytes, &mut at);
            if constraint == csp.hole as u64 {
                self.assemble(csp, next, tree);
                next += 1;
                continue;
            }
            write_number(tree, constraint);
            if constraint == csp.priced as u64 {
                let prices = read_number(bytes, &mut at);
                write_number(tree, prices);
                for _ in 0..2 * prices {
                    write_number(tree, read_number(bytes, &mut at));
                }
            }
        }
    }
}

/// Runs the loop of one worker thread.
fn work(shared: &Mutex<&mut ParallelSearch>, changed: &Condvar, worker: &mut dyn SubtreeWorker) {
    /// Ends the search if its thread panics, so that the caller does not wait for it.
    struct Guard<'a, 'b>(&'a Mutex<&'b mut ParallelSearch>, &'a Condvar);
    impl Drop for Guard<'_, '_> {
        fn drop(&mut self) {
            if std::thread::panicking() {
                let mut state = lock(self.0);
                (state.ended, state.panicked) = (true, true);
            }
            self.1.notify_all();
        }
    }
    let _guard = Guard(shared, changed);
    let mut state = lock(shared);
    worker.begin(&state.weights, state.height);
    while !state.is_finished() {
        let nodes = worker.task_nodes(state.nodes, state.share());
        let Some(subtree) = state.take(nodes) else {
            state = changed.wait(state).unwrap_or_else(PoisonError::into_inner);
            continue;
        };
        drop(state);
        let searched = worker.search(&subtree.root, nodes);
        state = lock(shared);
        state.record(subtree, nodes, searched);
        changed.notify_all();
    }
    if let Some(weights) = worker.weights() {
        state.weights.copy_from_slice(weights);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::beautiful::propagation::PropagationQueue;

    /// Searches with a single worker in one run of practically any length.
    fn single_worker(csp: &Csp, root: &Node) -> SearchOutcome {
        let cancel = CancelToken::default();
        Search::new(csp, &cancel, 1).run(root, 1 << 40)
    }

    #[test]
    fn a_parallel_search_has_the_outcome_of_a_single_search() {
        for n in [6, 10, 16] {
            let squares: Vec<usize> =
                (0..n * n).filter(|square| square % (n + 1) > n / 3).collect();
            let csp = Csp::new(n, &squares, &[], false);
            let Ok(root) = csp.root(&mut PropagationQueue::default()) else { continue };
            let alone = single_worker(&csp, &root);
            for threads in [1, 3] {
                let mut parallel =
                    ParallelSearch::new(root.clone(), &vec![1.0; csp.constraints.len()]);
                let end = parallel.continue_on_threads(&csp, u64::MAX, threads, &mut |_| true);
                assert!(parallel.nodes() > 0);
                assert_eq!(
                    matches!(end, SearchOutcome::Found(_)),
                    matches!(alone, SearchOutcome::Found(_)),
                    "n = {n}"
                );
                assert_eq!(
                    matches!(end, SearchOutcome::Refuted(_)),
                    matches!(alone, SearchOutcome::Refuted(_)),
                    "n = {n}"
                );
            }
        }
    }

    /// Checks that a tree has a constraint for each state that propagation does not refute, and
    /// nothing after.
    fn follow(csp: &Csp, root: &Node, tree: &[u8], at: &mut usize) {
        let constraint = read_number(tree, at) as usize;
        assert!(root.state.choices(constraint).is_some());
        for candidate in csp.remaining_on(&root.state, constraint) {
            if let Ok(child) = csp.child(root.clone(), candidate) {
                follow(csp, &child, tree, at);
            }
        }
    }

    #[test]
    fn a_resumed_search_yields_a_complete_tree() {
        // Queens only on squares with odd row + column of an odd board: the sum of all rows and
        // columns is even, but an odd number of odd terms has an odd sum.
        let n = 15;
        let squares: Vec<usize> = (0..n * n).filter(|square| square % 2 == 1).collect();
        let csp = Csp::new(n, &squares, &[], false);
        let root = csp.root(&mut PropagationQueue::default()).expect("no conflict at the root");
        let mut parallel = ParallelSearch::new(root.clone(), &vec![1.0; csp.constraints.len()]);
        let tree = loop {
            match parallel.continue_on_threads(&csp, 3, 2, &mut |_| true) {
                SearchOutcome::Refuted(tree) => break tree,
                SearchOutcome::LimitReached => {}
                SearchOutcome::Found(candidates) => panic!("{candidates:?} are no solution"),
            }
        };
        let mut at = 0;
        follow(&csp, &root, &tree, &mut at);
        assert_eq!(at, tree.len());
        let cancel = CancelToken::default();
        let (_, holes) = Search::new(&csp, &cancel, 1).subtree(&root, 3);
        assert!(!holes.is_empty(), "three nodes leave holes");
    }

    #[test]
    fn a_search_ends_when_its_caller_stops_it() {
        // As above, but a complete search is practically impossible.
        let n = 41;
        let squares: Vec<usize> = (0..n * n).filter(|square| square % 2 == 1).collect();
        let csp = Csp::new(n, &squares, &[], false);
        let root = csp.root(&mut PropagationQueue::default()).expect("no conflict at the root");
        let mut parallel = ParallelSearch::new(root, &vec![1.0; csp.constraints.len()]);
        assert_eq!(
            parallel.continue_on_threads(&csp, u64::MAX, 2, &mut |_| false),
            SearchOutcome::LimitReached
        );
        assert_eq!(
            parallel.continue_on_threads(&csp, 50_000, 2, &mut |_| true),
            SearchOutcome::LimitReached
        );
        assert!(parallel.nodes() >= 50_000);
    }

    /// A worker that calls a function instead of searching.
    struct FnWorker<F>(F);

    impl<F: FnMut() -> SubtreeResult + Send> SubtreeWorker for FnWorker<F> {
        fn begin(&mut self, _: &[f32], _: usize) {}

        fn task_nodes(&self, _: u64, _: u64) -> u64 {
            1
        }

        fn search(&mut self, _: &Node, _: u64) -> SubtreeResult {
            (self.0)()
        }

        fn weights(&self) -> Option<&[f32]> {
            None
        }
    }

    fn small() -> (Csp, ParallelSearch) {
        let csp = Csp::new(6, &(0..36).collect::<Vec<usize>>(), &[], false);
        let root = csp.root(&mut PropagationQueue::default()).expect("no conflict at the root");
        let weights = vec![1.0; csp.constraints.len()];
        (csp, ParallelSearch::new(root, &weights))
    }

    #[test]
    fn a_subtree_is_small_while_fewer_wait_than_there_are_workers() {
        let (csp, mut parallel) = small();
        let root = csp.root(&mut PropagationQueue::default()).expect("no conflict at the root");
        (parallel.limit, parallel.workers) = (100, 1);
        assert_eq!(parallel.share(), 100);
        parallel.workers = 2;
        assert_eq!(parallel.share(), 0);
        parallel.waiting.push(Subtree { root, place: 0 });
        assert_eq!(parallel.share(), 50);
    }

    #[test]
    #[should_panic(expected = "a scoped thread panicked")]
    fn a_panicking_worker_ends_the_search() {
        let (csp, mut parallel) = small();
        let cancel = CancelToken::default();
        let mut worker = FnWorker(|| panic!("injected panic"));
        parallel.continue_with(&csp, u64::MAX, vec![&mut worker], &cancel, &mut |_| true);
    }

    #[test]
    fn abandoned_subtrees_are_searched_later() {
        let (csp, mut parallel) = small();
        let cancel = CancelToken::default();
        let mut idle = FnWorker(|| {
            while !cancel.is_abandoned() {
                std::thread::yield_now();
            }
            SubtreeResult::Abandoned
        });
        let end = parallel.continue_with(&csp, u64::MAX, vec![&mut idle], &cancel, &mut |_| false);
        assert_eq!((end, parallel.nodes()), (SearchOutcome::LimitReached, 0));
        assert!(matches!(
            parallel.continue_on_threads(&csp, u64::MAX, 2, &mut |_| true),
            SearchOutcome::Found(_)
        ));
    }
}
