//! Long searches, in pieces and by many hands: threads of this machine, or whoever else searches for it.
//!
//! A piece is a state that is searched for some nodes. What is left of it then, the states beside its path, is as many
//! pieces. So nothing is searched twice, and the trees of the pieces make the tree of the whole.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::csp::{Core, Root};
use super::search::{End, Pulse, Search, read_number, write_number};

/// Nodes of a piece for a thread of this machine.
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

/// What came of a piece.
#[derive(Debug)]
pub(super) enum Searched {
    /// The men of a solution, and how many nodes that took.
    Found(Vec<u32>, u64),
    /// A tree, and what is in its holes, in their order; and how many nodes that took.
    Tree(Vec<u8>, Vec<Root>, u64),
    /// Nothing: it was abandoned.
    Nothing,
}

/// Who searches pieces, one at a time.
pub(super) trait Hand: Send {
    /// Learns what is known when it begins, below a root with `height` queens.
    fn begin(&mut self, weights: &[f32], height: usize);

    /// How long a piece it takes, in nodes, when so many were searched in all.
    fn takes(&self, so_far: u64) -> u64;

    /// Searches below `root` for about so many nodes.
    fn search(&mut self, root: &Root, nodes: u64) -> Searched;

    /// What it has learned, if it tells.
    fn weights(&self) -> Option<&[f32]>;
}

impl Hand for Search<'_> {
    fn begin(&mut self, weights: &[f32], height: usize) {
        self.inherit(weights, height);
    }

    fn takes(&self, _: u64) -> u64 {
        PIECE
    }

    fn search(&mut self, root: &Root, nodes: u64) -> Searched {
        let before = self.nodes;
        match self.piece(root, nodes) {
            (End::Found(men), _) => Searched::Found(men, self.nodes - before),
            (End::Refuted(tree), holes) => Searched::Tree(tree, holes, self.nodes - before),
            (End::Spent, _) => unreachable!("a piece leaves holes"),
        }
    }

    fn weights(&self) -> Option<&[f32]> {
        Some(Search::weights(self))
    }
}

/// A search that can be interrupted and continued.
#[derive(Debug)]
pub(super) struct Conquest {
    root: Root,
    /// Its pieces are searched by [`crate::beautiful::lp_search`].
    is_weighed: bool,
    /// The last one is taken first.
    waiting: Vec<Piece>,
    /// Pieces in hand, and the nodes that they may take.
    working: usize,
    reserved: u64,
    trees: Vec<Option<Tree>>,
    found: Option<Vec<u32>>,
    /// Nothing more is to be begun.
    ended: bool,
    /// A hand has panicked.
    panicked: bool,
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
            waiting: vec![Piece { root: root.clone(), place: 0 }],
            root,
            is_weighed: false,
            working: 0,
            reserved: 0,
            trees: vec![None],
            found: None,
            ended: false,
            panicked: false,
            weights: weights.to_vec(),
            nodes: 0,
            limit: 0,
        }
    }

    /// Begins again, if it has not done so before, but with what was learned: pieces that were left by searches without
    /// the programme are many and badly cut.
    pub(super) fn begin_weighing(&mut self) {
        if !self.is_weighed {
            self.is_weighed = true;
            self.waiting = vec![Piece { root: self.root.clone(), place: 0 }];
            self.trees = vec![None];
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
        let pulse = Pulse::default();
        let mut searches: Vec<Search<'_>> =
            (0..threads).map(|seed| Search::new(core, &pulse, seed as u64)).collect();
        let hands = searches.iter_mut().map(|search| search as &mut dyn Hand).collect();
        self.go_on_by(core, budget, hands, &pulse, look)
    }

    /// The same by these hands, which heed `pulse`.
    ///
    /// # Panics
    /// If one of them does.
    pub(super) fn go_on_by(
        &mut self,
        core: &Core,
        budget: u64,
        hands: Vec<&mut dyn Hand>,
        pulse: &Pulse,
        look: &mut dyn FnMut(u64) -> bool,
    ) -> End {
        self.ended = false;
        self.limit = self.nodes.saturating_add(budget);
        let shared = Mutex::new(self);
        let changed = Condvar::new();
        // A hand that panics ends everything; the scope hands its panic on.
        std::thread::scope(|scope| {
            for hand in hands {
                let (shared, changed) = (&shared, &changed);
                scope.spawn(move || work(shared, changed, hand));
            }
            let mut state = lock(&shared);
            loop {
                if state.is_over() {
                    // What is in hand comes to an end, at once if nobody wants it.
                    pulse.stop();
                    if state.ended || state.found.is_some() {
                        pulse.abandon();
                    }
                    changed.notify_all();
                    if state.working == 0 || state.panicked {
                        break;
                    }
                }
                let waited = changed.wait_timeout(state, LOOK_EVERY);
                state = waited.unwrap_or_else(PoisonError::into_inner).0;
                let nodes = state.nodes;
                drop(state);
                let go_on = look(nodes);
                state = lock(&shared);
                state.ended |= !go_on;
            }
        });
        let this = shared.into_inner().unwrap_or_else(PoisonError::into_inner);
        if let Some(men) = &this.found {
            return End::Found(men.clone());
        }
        if !this.waiting.is_empty() {
            return End::Spent;
        }
        let mut tree = Vec::new();
        this.assemble(core, 0, &mut tree);
        End::Refuted(tree)
    }

    fn is_over(&self) -> bool {
        let spent = self.nodes >= self.limit;
        self.found.is_some() || self.ended || spent || (self.waiting.is_empty() && self.working == 0)
    }

    /// The next piece for who takes one of so many nodes, if those in hand leave something of the budget.
    fn take(&mut self, nodes: u64) -> Option<Piece> {
        if self.nodes.saturating_add(self.reserved) >= self.limit {
            return None;
        }
        let piece = self.waiting.pop()?;
        self.working += 1;
        self.reserved += nodes;
        Some(piece)
    }

    /// Enters what came of a piece of so many nodes.
    fn enter(&mut self, piece: Piece, nodes: u64, searched: Searched) {
        self.working -= 1;
        self.reserved -= nodes;
        match searched {
            Searched::Found(men, nodes) => {
                self.nodes += nodes;
                self.found = Some(men);
            }
            Searched::Tree(bytes, holes, nodes) => {
                self.nodes += nodes;
                let first = self.trees.len();
                self.trees[piece.place] = Some(Tree { bytes, holes: first });
                self.trees.resize_with(first + holes.len(), || None);
                let pieces = holes.into_iter().enumerate().rev();
                self.waiting.extend(pieces.map(|(hole, root)| Piece { root, place: first + hole }));
            }
            Searched::Nothing => self.waiting.push(piece),
        }
    }

    /// Writes the tree of a place, with the holes filled.
    fn assemble(&self, core: &Core, place: usize, tree: &mut Vec<u8>) {
        let Some(Tree { bytes, holes }) = &self.trees[place] else { unreachable!("no piece is left") };
        let (mut at, mut next) = (0, *holes);
        while at < bytes.len() {
            let line = read_number(bytes, &mut at);
            if line == core.hole as u64 {
                self.assemble(core, next, tree);
                next += 1;
                continue;
            }
            write_number(tree, line);
            if line == core.priced as u64 {
                let prices = read_number(bytes, &mut at);
                write_number(tree, prices);
                for _ in 0..2 * prices {
                    write_number(tree, read_number(bytes, &mut at));
                }
            }
        }
    }
}

fn lock<'a, 'b>(shared: &'a Mutex<&'b mut Conquest>) -> MutexGuard<'a, &'b mut Conquest> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What one thread does.
fn work(shared: &Mutex<&mut Conquest>, changed: &Condvar, hand: &mut dyn Hand) {
    /// Ends everything if its thread panics, so that nobody waits for it.
    struct Guard<'a, 'b>(&'a Mutex<&'b mut Conquest>, &'a Condvar);
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
    hand.begin(&state.weights, state.height);
    while !state.is_over() {
        let nodes = hand.takes(state.nodes);
        let Some(piece) = state.take(nodes) else {
            state = changed.wait(state).unwrap_or_else(PoisonError::into_inner);
            continue;
        };
        drop(state);
        let searched = hand.search(&piece.root, nodes);
        state = lock(shared);
        state.enter(piece, nodes, searched);
        changed.notify_all();
    }
    if let Some(weights) = hand.weights() {
        state.weights.copy_from_slice(weights);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::beautiful::csp::Agenda;

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

    /// A hand that does something of its own.
    struct Odd<F>(F);

    impl<F: FnMut() -> Searched + Send> Hand for Odd<F> {
        fn begin(&mut self, _: &[f32], _: usize) {}

        fn takes(&self, _: u64) -> u64 {
            1
        }

        fn search(&mut self, _: &Root, _: u64) -> Searched {
            (self.0)()
        }

        fn weights(&self) -> Option<&[f32]> {
            None
        }
    }

    fn small() -> (Core, Conquest) {
        let core = Core::new(6, &(0..36).collect::<Vec<usize>>(), &[], false);
        let root = core.root(&mut Agenda::default()).expect("nothing follows yet");
        let weights = vec![1.0; core.lines.len()];
        (core, Conquest::new(root, &weights))
    }

    #[test]
    #[should_panic(expected = "a scoped thread panicked")]
    fn nobody_waits_for_a_hand_that_panics() {
        let (core, mut conquest) = small();
        let pulse = Pulse::default();
        let mut odd = Odd(|| panic!("as it may happen"));
        conquest.go_on_by(&core, u64::MAX, vec![&mut odd], &pulse, &mut |_| true);
    }

    #[test]
    fn what_is_abandoned_is_searched_later() {
        let (core, mut conquest) = small();
        let pulse = Pulse::default();
        let mut idle = Odd(|| {
            while !pulse.is_abandoned() {
                std::thread::yield_now();
            }
            Searched::Nothing
        });
        let end = conquest.go_on_by(&core, u64::MAX, vec![&mut idle], &pulse, &mut |_| false);
        assert_eq!((end, conquest.nodes()), (End::Spent, 0));
        assert!(matches!(conquest.go_on(&core, u64::MAX, 2, &mut |_| true), End::Found(_)));
    }
}
