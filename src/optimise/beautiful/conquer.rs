//! Long searches, in pieces and on all threads.
//!
//! A piece is a state that is searched for some nodes. What is left of it then, the states beside its path, is as many
//! pieces. So nothing is searched twice, and the trees of the pieces make the tree of the whole.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::core::{Core, Root};
use super::search::{End, Pulse, Search, read_number, write_number};

/// Nodes of a piece.
const PIECE: u64 = 20_000;
/// How often the caller looks up.
const LOOK_EVERY: Duration = Duration::from_millis(25);

/// A state that is to be searched.
#[derive(Debug)]
struct Piece {
    root: Root,
    /// Its place among the trees.
    place: usize,
}

/// What is known of a piece.
#[derive(Debug)]
struct Tree {
    bytes: Vec<u8>,
    /// The place of what is in its first hole; the others follow.
    holes: usize,
}

/// A search that can be interrupted and continued.
#[derive(Debug)]
pub(super) struct Conquest {
    /// The last one is taken first.
    waiting: Vec<Piece>,
    /// Pieces in hand.
    working: usize,
    trees: Vec<Option<Tree>>,
    found: Option<Vec<u32>>,
    spent: bool,
    weights: Vec<f32>,
    /// Queens at the root.
    height: usize,
    nodes: u64,
    /// The nodes at which it stops.
    limit: u64,
}

impl Conquest {
    /// Everything below `root` is to be searched, with these weights at first.
    pub(super) fn new(root: Root, weights: &[f32]) -> Self {
        Self {
            height: root.placed.len(),
            waiting: vec![Piece { root, place: 0 }],
            working: 0,
            trees: vec![None],
            found: None,
            spent: false,
            weights: weights.to_vec(),
            nodes: 0,
            limit: 0,
        }
    }

    /// Learned so far.
    pub(super) fn weights(&self) -> &[f32] {
        &self.weights
    }

    /// Nodes so far.
    pub(super) const fn nodes(&self) -> u64 {
        self.nodes
    }

    /// Searches on `threads` for about `budget` more nodes. `look` is told the nodes so far and asked whether it may go
    /// on.
    pub(super) fn go_on(
        &mut self,
        core: &Core,
        budget: u64,
        threads: usize,
        look: &mut dyn FnMut(u64) -> bool,
    ) -> End {
        self.spent = false;
        self.limit = self.nodes.saturating_add(budget);
        let shared = Mutex::new(self);
        let changed = Condvar::new();
        let pulse = Pulse::default();
        std::thread::scope(|scope| {
            for seed in 0..threads {
                let (shared, changed, pulse) = (&shared, &changed, &pulse);
                scope.spawn(move || {
                    work(shared, changed, Search::new(core, pulse, seed as u64));
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
        let this = shared.into_inner().unwrap_or_else(PoisonError::into_inner);
        if let Some(men) = &this.found {
            return End::Found(men.clone());
        }
        if !this.waiting.is_empty() {
            return End::Spent;
        }
        let mut tree = Vec::new();
        this.assemble(core.lines.len() as u64, 0, &mut tree);
        End::Refuted(tree)
    }

    fn is_over(&self) -> bool {
        self.found.is_some() || self.spent || (self.waiting.is_empty() && self.working == 0)
    }

    /// Writes the tree of a place, with the holes filled.
    fn assemble(&self, lines: u64, place: usize, tree: &mut Vec<u8>) {
        let Some(Tree { bytes, holes }) = &self.trees[place] else { unreachable!("no piece is left") };
        let mut at = 0;
        while at < bytes.len() {
            match read_number(bytes, &mut at) {
                line if line < lines => write_number(tree, line),
                hole => self.assemble(lines, holes + (hole - lines) as usize, tree),
            }
        }
    }
}

fn lock<'a, 'b>(shared: &'a Mutex<&'b mut Conquest>) -> MutexGuard<'a, &'b mut Conquest> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What one thread does.
fn work(shared: &Mutex<&mut Conquest>, changed: &Condvar, mut search: Search<'_>) {
    let mut state = lock(shared);
    search.inherit(&state.weights, state.height);
    while !state.is_over() {
        let Some(piece) = state.waiting.pop() else {
            state = changed.wait(state).unwrap_or_else(PoisonError::into_inner);
            continue;
        };
        state.working += 1;
        drop(state);
        let before = search.nodes;
        let (end, holes) = search.piece(&piece.root, PIECE);
        state = lock(shared);
        state.working -= 1;
        state.nodes += search.nodes - before;
        state.spent |= state.nodes >= state.limit;
        match end {
            End::Found(men) => state.found = Some(men),
            End::Refuted(bytes) => {
                let first = state.trees.len();
                state.trees[piece.place] = Some(Tree { bytes, holes: first });
                state.trees.resize_with(first + holes.len(), || None);
                let pieces = holes.into_iter().enumerate().rev();
                state.waiting.extend(pieces.map(|(hole, root)| Piece { root, place: first + hole }));
            }
            End::Spent => unreachable!("a piece leaves holes"),
        }
        changed.notify_all();
    }
    state.weights.copy_from_slice(search.weights());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::optimise::beautiful::core::Agenda;

    /// A search of any length in one go.
    fn alone(core: &Core, root: &Root) -> End {
        let pulse = Pulse::default();
        Search::new(core, &pulse, 1).run(root, 1 << 40)
    }

    #[test]
    fn pieces_on_threads_settle_what_one_search_settles() {
        for n in [6, 10, 16] {
            let squares: Vec<usize> = (0..n * n).filter(|square| square % (n + 1) > n / 3).collect();
            let core = Core::new(n, &squares, &[], false);
            let Ok(root) = core.root(&mut Agenda::default()) else { continue };
            let alone = alone(&core, &root);
            for threads in [1, 3] {
                let mut conquest = Conquest::new(root.clone(), &vec![1.0; core.lines.len()]);
                let end = conquest.go_on(&core, u64::MAX, threads, &mut |_| true);
                assert!(conquest.nodes() > 0);
                assert_eq!(matches!(end, End::Found(_)), matches!(alone, End::Found(_)), "n = {n}");
                assert_eq!(matches!(end, End::Refuted(_)), matches!(alone, End::Refuted(_)), "n = {n}");
            }
        }
    }

    /// Checks that a tree has a line for each state that propagation does not refute, and nothing behind.
    fn follow(core: &Core, root: &Root, tree: &[u8], at: &mut usize) {
        let line = read_number(tree, at) as usize;
        assert!(root.state.choices(line).is_some());
        for &man in core.lines[line].iter().filter(|&&man| root.state.is_alive(man)) {
            let mut agenda = Agenda::after(root.placed.clone());
            let mut state = root.state.clone();
            if core.place(&mut state, man, &mut agenda).is_ok() {
                follow(core, &Root { state, placed: agenda.placed }, tree, at);
            }
        }
    }

    #[test]
    fn a_search_goes_on_where_it_stopped_and_its_tree_is_whole() {
        // Queens on the black squares of an odd board: the sum of all rows and columns is even, and an odd number of odd
        // sums is not.
        let n = 15;
        let squares: Vec<usize> = (0..n * n).filter(|square| square % 2 == 1).collect();
        let core = Core::new(n, &squares, &[], false);
        let root = core.root(&mut Agenda::default()).expect("nothing follows yet");
        let mut conquest = Conquest::new(root.clone(), &vec![1.0; core.lines.len()]);
        let tree = loop {
            match conquest.go_on(&core, 3, 2, &mut |_| true) {
                End::Refuted(tree) => break tree,
                End::Spent => {}
                End::Found(men) => panic!("{men:?} are no solution"),
            }
        };
        let mut at = 0;
        follow(&core, &root, &tree, &mut at);
        assert_eq!(at, tree.len());
        let pulse = Pulse::default();
        let (_, holes) = Search::new(&core, &pulse, 1).piece(&root, 3);
        assert!(!holes.is_empty(), "three nodes leave holes");
    }

    #[test]
    fn a_search_ends_when_its_caller_wants() {
        // As above, but it takes a search longer than anybody lives.
        let n = 41;
        let squares: Vec<usize> = (0..n * n).filter(|square| square % 2 == 1).collect();
        let core = Core::new(n, &squares, &[], false);
        let root = core.root(&mut Agenda::default()).expect("nothing follows yet");
        let mut conquest = Conquest::new(root, &vec![1.0; core.lines.len()]);
        assert_eq!(conquest.go_on(&core, u64::MAX, 2, &mut |_| false), End::Spent);
        assert_eq!(conquest.go_on(&core, 50_000, 2, &mut |_| true), End::Spent);
        assert!(conquest.nodes() >= 50_000);
    }
}
