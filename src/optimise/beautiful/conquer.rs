//! Long searches, in pieces and on all threads.
//!
//! A piece is a state that is searched for some nodes. If that does not settle it, it is split by the line that the
//! learned weights prefer, and each child is a piece that starts with those weights. Nothing is ever searched again
//! from the beginning, and the trees of the pieces make the tree of the whole.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::core::{Agenda, Core, Root};
use super::search::{End, Pulse, Search, write_number};

/// Nodes of a piece.
const PIECE: u64 = 50_000;
/// How often the caller looks up.
const LOOK_EVERY: Duration = Duration::from_millis(25);

/// A state that is to be searched.
struct Piece {
    root: Root,
    weights: Vec<f32>,
    /// Its place among the trees.
    place: usize,
}

/// What is known of a piece.
enum Tree {
    Open,
    Refuted(Vec<u8>),
    Split { line: usize, children: Vec<usize> },
}

/// What the threads share.
struct Shared {
    waiting: Vec<Piece>,
    /// Pieces in hand.
    working: usize,
    trees: Vec<Tree>,
    found: Option<Vec<u32>>,
    spent: bool,
    nodes: u64,
}

impl Shared {
    fn is_over(&self) -> bool {
        self.found.is_some() || self.spent || (self.waiting.is_empty() && self.working == 0)
    }
}

/// Searches below `root` on `threads` for about `budget` nodes. `look` is told the nodes so far and asked whether it may
/// go on.
pub(super) fn conquer(
    core: &Core,
    root: Root,
    weights: &[f32],
    (budget, threads): (u64, usize),
    look: &mut dyn FnMut(u64) -> bool,
) -> (End, u64) {
    let first = Piece { root, weights: weights.to_vec(), place: 0 };
    let shared = Mutex::new(Shared {
        waiting: vec![first],
        working: 0,
        trees: vec![Tree::Open],
        found: None,
        spent: false,
        nodes: 0,
    });
    let changed = Condvar::new();
    let pulse = Pulse::default();
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                work(core, &shared, &changed, &pulse, budget);
                changed.notify_all();
            });
        }
        let mut state = lock(&shared);
        while !state.is_over() {
            let waited = changed.wait_timeout(state, LOOK_EVERY);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
            let nodes = state.nodes;
            drop(state);
            let go_on = look(nodes);
            state = lock(&shared);
            if !go_on {
                state.spent = true;
            }
        }
        drop(state);
        pulse.stop();
        changed.notify_all();
    });
    let shared = shared.into_inner().unwrap_or_else(PoisonError::into_inner);
    let end = match shared.found {
        Some(men) => End::Found(men),
        None if shared.spent => End::Spent,
        None => {
            let mut tree = Vec::new();
            assemble(&shared.trees, 0, &mut tree);
            End::Refuted(tree)
        }
    };
    (end, shared.nodes)
}

fn lock(shared: &Mutex<Shared>) -> MutexGuard<'_, Shared> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

fn work(core: &Core, shared: &Mutex<Shared>, changed: &Condvar, pulse: &Pulse, budget: u64) {
    let mut search = Search::new(core, pulse, 1);
    let mut state = lock(shared);
    loop {
        if state.is_over() {
            return;
        }
        let Some(piece) = state.waiting.pop() else {
            state = changed.wait(state).unwrap_or_else(PoisonError::into_inner);
            continue;
        };
        state.working += 1;
        drop(state);
        let before = search.nodes;
        search.set_weights(&piece.weights);
        search.reseed(piece.place as u64);
        let end = search.run(&piece.root, None, PIECE);
        let split = (end == End::Spent).then(|| split(core, &search, &piece));
        state = lock(shared);
        state.working -= 1;
        state.nodes += search.nodes - before;
        match end {
            End::Found(men) => state.found = Some(men),
            End::Refuted(tree) => state.trees[piece.place] = Tree::Refuted(tree),
            End::Spent => state.spent |= state.nodes >= budget,
        }
        if let Some((line, roots)) = split {
            let first = state.trees.len();
            let children: Vec<usize> = (first..first + roots.len()).collect();
            state.trees.resize_with(first + roots.len(), || Tree::Open);
            // The first child is taken first.
            let weights = search.weights();
            let pieces = children.iter().copied().zip(roots).rev();
            state.waiting.extend(pieces.map(|(place, root)| Piece {
                root,
                weights: weights.to_vec(),
                place,
            }));
            state.trees[piece.place] = Tree::Split { line, children };
        }
        changed.notify_all();
    }
}

/// The line to branch on, and what propagation leaves of the children in ascending order.
fn split(core: &Core, search: &Search<'_>, piece: &Piece) -> (usize, Vec<Root>) {
    let parent = &piece.root;
    let line = search.best_line(&parent.state);
    let mut roots = Vec::new();
    for &man in core.lines[line].iter().filter(|&&man| parent.state.is_alive(man)) {
        let mut agenda = Agenda::after(parent.placed.clone());
        let mut state = parent.state.clone();
        if core.place(&mut state, man, &mut agenda).is_ok() {
            roots.push(Root { state, placed: agenda.placed });
        }
    }
    (line, roots)
}

fn assemble(trees: &[Tree], place: usize, tree: &mut Vec<u8>) {
    match &trees[place] {
        Tree::Open => unreachable!("no piece is left"),
        Tree::Refuted(bytes) => tree.extend_from_slice(bytes),
        Tree::Split { line, children } => {
            write_number(tree, *line as u64);
            for &child in children {
                assemble(trees, child, tree);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_on_threads_settle_what_one_search_settles() {
        for n in [6, 10, 16] {
            let squares: Vec<usize> = (0..n * n).filter(|square| square % (n + 1) > n / 3).collect();
            let core = Core::new(n, &squares, &[], false);
            let Ok(root) = core.root(&mut Agenda::default()) else { continue };
            let pulse = Pulse::default();
            let alone = Search::new(&core, &pulse, 1).run(&root, None, 1 << 40);
            for threads in [1, 3] {
                let weights = vec![1.0; core.lines.len()];
                let look = &mut |_| true;
                let (end, nodes) = conquer(&core, root.clone(), &weights, (u64::MAX, threads), look);
                assert!(nodes > 0);
                assert_eq!(matches!(end, End::Found(_)), matches!(alone, End::Found(_)), "n = {n}");
                assert_eq!(matches!(end, End::Refuted(_)), matches!(alone, End::Refuted(_)), "n = {n}");
            }
        }
    }

    #[test]
    fn a_search_ends_when_its_caller_wants() {
        // The sum of all rows and columns is even, and an odd number of odd sums is not: no solution, which takes a
        // search longer than anybody lives.
        let n = 41;
        let squares: Vec<usize> = (0..n * n).filter(|square| square % 2 == 1).collect();
        let core = Core::new(n, &squares, &[], false);
        let root = core.root(&mut Agenda::default()).expect("nothing follows yet");
        let weights = vec![1.0; core.lines.len()];
        let stopped = conquer(&core, root.clone(), &weights, (u64::MAX, 2), &mut |_| false);
        assert_eq!(stopped.0, End::Spent);
        let spent = conquer(&core, root, &weights, (30_000, 2), &mut |_| true);
        assert_eq!(spent.0, End::Spent);
    }
}
