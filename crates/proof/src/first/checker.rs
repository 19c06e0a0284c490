//! The checker of refutations: it traverses a tree and repeats every step on one position.

use super::LARGEST;
use super::observer::{ListCollector, Observer};
use super::position::{Displaced, Kept, Position, TrailMark};
use super::refutation::{Node, Order, read, skip_tree};
use super::refuted_positions::RefutedPositions;
use crate::bytes::Reader;
use crate::{Meter, ProofError};

/// The largest depth of a tree.
pub(super) const DEEPEST: usize = 1000;

/// The largest number of nested branchings and case distinctions. It is sufficient, since a useful
/// one places a queen or excludes a set, and it is small enough for the stack of any thread.
const MOST_BRANCHES: usize = 3 * LARGEST;

pub(super) const TOO_DEEP: ProofError = ProofError::Damaged("a refutation is too deep");

/// The work of the checker: 1 for each queen that it places, [`Work::DUAL_BOUND`] for each dual
/// bound, each list of sets and each case. Certificates state a limit of it; the meter counts the
/// actual operations.
struct Work<'m, 'a> {
    done: u64,
    limit: u64,
    meter: &'m mut Meter<'a>,
}

impl Work<'_, '_> {
    /// The work of a dual bound, in placed queens.
    const DUAL_BOUND: u64 = 500;

    fn add(&mut self, more: u64) -> Result<(), ProofError> {
        self.done = self.done.saturating_add(more);
        if self.done > self.limit {
            return Err(ProofError::TooMuchWork(self.limit));
        }
        Ok(())
    }
}

/// The state to restore when a node is left.
struct Entered {
    mark: TrailMark,
    added: Added,
}

/// The addition of a node to the position besides its changes.
enum Added {
    Nothing,
    /// A dual bound, which may displace another one.
    DualBound(Displaced),
    /// Sets of diagonals.
    Sets,
}

/// A checker of the refutations that a reader contains one after the other.
pub(super) struct Checker<'r, 'm, 'a, O> {
    n: usize,
    reader: Reader<'r>,
    work: Work<'m, 'a>,
    /// The number of nested branchings and case distinctions at this node of the tree.
    branches: usize,
    observer: &'m mut O,
}

impl<'r, 'm, 'a, O: Observer> Checker<'r, 'm, 'a, O> {
    /// Creates a checker for the board of size `n` that does at most `limit` work, as stated in
    /// certificates, under this meter. It reports its steps to the observer.
    pub(super) const fn new(
        n: usize,
        reader: Reader<'r>,
        limit: u64,
        meter: &'m mut Meter<'a>,
        observer: &'m mut O,
    ) -> Self {
        Self { n, reader, work: Work { done: 0, limit, meter }, branches: 0, observer }
    }

    /// Returns whether everything was read.
    pub(super) const fn is_at_end(&self) -> bool {
        self.reader.is_empty()
    }

    /// Returns the work done so far, as stated in certificates.
    pub(super) const fn work(&self) -> u64 {
        self.work.done
    }

    /// Reports operations of the caller to the meter.
    ///
    /// # Errors
    /// Returns an error if the meter ends the check.
    pub(super) fn add_operations(&mut self, operations: u64) -> Result<(), ProofError> {
        self.work.meter.add(operations)
    }

    /// Reads the next tree and checks that it refutes the board with these queens on its first
    /// rows.
    pub(super) fn refute_prefix(&mut self, prefix: &[usize]) -> Result<(), ProofError> {
        if O::TRANSLATES && self.next_tree_lists_sets()? {
            let mut collector = ListCollector::new(self.observer.most_listed_sets());
            self.of_next_trees(&mut collector).refute_prefix(prefix)?;
            self.observer.define_lists(collector.lists)?;
        }
        let mut position = Position::new(self.n, prefix);
        self.meter(&position)?;
        let refuted = position.propagate();
        self.observer.begin_prefix(prefix, refuted)?;
        let checked = self.refute(&mut position, refuted, 0).map_err(|error| match error {
            ProofError::Refused(why) => {
                let columns: Vec<String> =
                    prefix.iter().map(|column| (column + 1).to_string()).collect();
                ProofError::Refused(format!("after {}: {why}", columns.join(" ")))
            }
            other => other,
        });
        checked.and_then(|()| self.observer.end_prefix(prefix, refuted))
    }

    /// Returns whether the next tree lists sets of diagonals.
    fn next_tree_lists_sets(&mut self) -> Result<bool, ProofError> {
        let mut lists_sets = false;
        skip_tree(&mut self.reader.clone(), self.n, 0, |node, operations| {
            lists_sets |= matches!(node, Node::ListedSets);
            self.work.meter.add(operations)
        })?;
        Ok(lists_sets)
    }

    /// Returns another checker of the next trees with this observer and the same meter.
    fn of_next_trees<'c, P: Observer>(&'c mut self, observer: &'c mut P) -> Checker<'r, 'c, 'a, P> {
        Checker::new(self.n, self.reader.clone(), u64::MAX, self.work.meter, observer)
    }

    /// Reads the next tree and checks that it refutes `position`, which is restored afterwards. If
    /// `refuted` is set, the tree is only read.
    fn refute(
        &mut self,
        position: &mut Position,
        mut refuted: bool,
        mut depth: usize,
    ) -> Result<(), ProofError> {
        // A node with one subtree is followed in this loop, without recursion.
        let mut entered = Vec::new();
        loop {
            if depth > DEEPEST {
                return Err(TOO_DEEP);
            }
            match self.read(position)? {
                Node::Search(_) if refuted => break,
                Node::Search(order) => {
                    self.weight_and_search(position, &order)?;
                    break;
                }
                Node::Branch { children, .. } if refuted => {
                    for _ in 0..children {
                        self.reader.size(usize::MAX)?;
                        self.skip_tree(depth + 1)?;
                    }
                    break;
                }
                Node::Branch { line, children } => {
                    if self.branches == MOST_BRANCHES {
                        return Err(TOO_DEEP);
                    }
                    self.branches += 1;
                    self.branch(position, line, children, depth)?;
                    self.branches -= 1;
                    break;
                }
                Node::Cases { .. } if refuted => {
                    for _ in 0..2 {
                        self.skip_tree(depth + 1)?;
                    }
                    break;
                }
                Node::Cases { line } => {
                    if self.branches == MOST_BRANCHES {
                        return Err(TOO_DEEP);
                    }
                    self.branches += 1;
                    self.distinguish(position, line, depth)?;
                    self.branches -= 1;
                    break;
                }
                Node::DualBound { .. } | Node::Elimination { .. } | Node::ListedSets if refuted => {
                }
                Node::DualBound { knapsack, y } => {
                    let (left, is_refuted) = self.enter_dual_bound(position, knapsack, &y)?;
                    entered.push(left);
                    refuted = is_refuted;
                }
                Node::Elimination { y, squares } => {
                    let (left, is_refuted) = self.enter_elimination(position, &y, squares)?;
                    entered.push(left);
                    refuted = is_refuted;
                }
                Node::ListedSets => {
                    let (left, is_refuted) = self.enter_listed_sets(position)?;
                    entered.push(left);
                    refuted = is_refuted;
                }
            }
            depth += 1;
        }
        while let Some(Entered { mark, added }) = entered.pop() {
            match added {
                Added::Nothing => {}
                Added::DualBound(displaced) => position.remove_dual_bound(displaced),
                Added::Sets => {
                    position.remove_sets();
                    self.observer.end_list();
                }
            }
            position.backtrack_to(&mark);
        }
        Ok(())
    }

    /// Reads the next tree, whose root has this depth, without checking it.
    fn skip_tree(&mut self, depth: usize) -> Result<(), ProofError> {
        let add = |_: &Node, operations| self.work.meter.add(operations);
        skip_tree(&mut self.reader, self.n, depth, add)
    }

    /// Reads the next node. The meter counts this and the operations on the position so far.
    fn read(&mut self, position: &Position) -> Result<Node, ProofError> {
        let before = self.reader.rest().len();
        let node = read(&mut self.reader, self.n)?;
        self.work.meter.add(node.operations(before - self.reader.rest().len()))?;
        self.meter(position)?;
        Ok(node)
    }

    /// Adds a dual bound. Returns the state to restore, and whether the position is refuted.
    fn enter_dual_bound(
        &mut self,
        position: &mut Position,
        knapsack: bool,
        y: &[i64],
    ) -> Result<(Entered, bool), ProofError> {
        self.work.add(Work::DUAL_BOUND)?;
        self.observer.dual_bound(position, y, knapsack)?;
        let mark = position.mark();
        let displaced = position.add_dual_bound(y, knapsack);
        let refuted = position.propagate() || self.keep_to_sets(position)?;
        self.meter(position)?;
        Ok((Entered { mark, added: Added::DualBound(displaced) }, refuted))
    }

    /// Lists the sets of diagonals. Returns the state to restore, and whether the position is
    /// refuted.
    fn enter_listed_sets(
        &mut self,
        position: &mut Position,
    ) -> Result<(Entered, bool), ProofError> {
        if position.has_sets() {
            return Err(ProofError::Refused("it lists the sets of diagonals twice".into()));
        }
        self.work.add(Work::DUAL_BOUND)?;
        let mark = position.mark();
        let listed = position.list_sets();
        self.meter(position)?;
        let Ok(listed) = listed else {
            return Err(ProofError::Refused("it lists too many sets of diagonals".into()));
        };
        self.observer.begin_list(position, &listed)?;
        let refuted = self.keep_to_sets(position)?;
        Ok((Entered { mark, added: Added::Sets }, refuted))
    }

    /// Removes squares whose diagonals are in no possible set, and propagates, until nothing
    /// changes. Returns whether the position is refuted.
    fn keep_to_sets(&mut self, position: &mut Position) -> Result<bool, ProofError> {
        loop {
            let kept = position.keep_to_sets();
            self.meter(position)?;
            match kept {
                Kept::Refuted => return Ok(true),
                Kept::Changed => {}
                Kept::Unchanged => return Ok(false),
            }
        }
    }

    /// Distinguishes the cases that a completion uses a listed set without a diagonal and that it
    /// uses one with it.
    fn distinguish(
        &mut self,
        position: &mut Position,
        line: usize,
        depth: usize,
    ) -> Result<(), ProofError> {
        for used in [false, true] {
            let mark = position.mark();
            let Some(before) = position.assume(line, used) else {
                return Err(ProofError::Refused(
                    "it distinguishes cases without a diagonal whose sets are listed".into(),
                ));
            };
            self.work.add(Work::DUAL_BOUND)?;
            let refuted = self.keep_to_sets(position)?;
            self.observer.begin_case(line, used, refuted)?;
            self.refute(position, refuted, depth + 1)?;
            self.observer.end_case(line, used, refuted)?;
            position.restore_assumed(&before);
            position.backtrack_to(&mark);
        }
        Ok(())
    }

    /// Eliminates squares. Returns the state to restore, and whether the position is refuted.
    fn enter_elimination(
        &mut self,
        position: &mut Position,
        y: &[i64],
        squares: Vec<usize>,
    ) -> Result<(Entered, bool), ProofError> {
        let mark = position.mark();
        let mut refuted = false;
        for square in squares {
            refuted = refuted || self.eliminate(position, square, y)?;
        }
        Ok((Entered { mark, added: Added::Nothing }, refuted))
    }

    fn weight_and_search(
        &mut self,
        position: &mut Position,
        order: &Order,
    ) -> Result<(), ProofError> {
        let mut blocks = Vec::new();
        if let Order::Weighted(lines) = order {
            position.set_weights(lines);
            // In one case, a position may be refuted that has a completion in the other.
            if lines.remembers && !O::TRANSLATES && !position.has_sets() {
                blocks.clone_from(&lines.blocks);
            }
        }
        self.observer.begin_search()?;
        self.search(position, order, &mut RefutedPositions::new(blocks))?;
        self.observer.end_search()
    }

    /// Eliminates a square, if it is a candidate. The dual bound of `y` must refute a queen there,
    /// unless propagation does. Returns whether the position is then refuted.
    fn eliminate(
        &mut self,
        position: &mut Position,
        square: usize,
        y: &[i64],
    ) -> Result<bool, ProofError> {
        if !position.is_candidate(square) {
            return Ok(false);
        }
        let mark = position.mark();
        let refuted = self.place(position, square)?;
        if !refuted {
            self.work.add(Work::DUAL_BOUND)?;
            let is_refuted = position.is_refuted_by(y);
            self.meter(position)?;
            if !is_refuted {
                return Err(ProofError::Refused(
                    "it eliminates a square that may have a queen".into(),
                ));
            }
            self.observer.dual_bound(position, y, true)?;
        }
        self.observer.end_queen(square, refuted)?;
        position.backtrack_to(&mark);
        position.eliminate(square);
        Ok(position.propagate())
    }

    fn branch(
        &mut self,
        position: &mut Position,
        line: usize,
        children: usize,
        depth: usize,
    ) -> Result<(), ProofError> {
        let refused = |what: &str| Err(ProofError::Refused(format!("it branches over {what}")));
        let Some(mut open) = position.choices(line) else {
            let Some(queen) = position.queen_on(line) else {
                return refused("a line that is not open");
            };
            let mut listed = false;
            for _ in 0..children {
                let here = self.reader.size(usize::MAX)? == queen;
                self.refute(position, !here, depth + 1)?;
                listed |= here;
            }
            return if listed { Ok(()) } else { refused("a line and omits the queen on it") };
        };
        if !position.is_mandatory(line) {
            return refused("a diagonal that a completion need not use");
        }
        for _ in 0..children {
            let square = self.reader.size(usize::MAX)?;
            let place = open.iter().position(|&other| other == square);
            match place.map(|place| open.swap_remove(place)) {
                Some(square) => {
                    let mark = position.mark();
                    let refuted = self.place(position, square)?;
                    self.refute(position, refuted, depth + 1)?;
                    self.observer.end_queen(square, refuted)?;
                    position.backtrack_to(&mark);
                }
                None => self.refute(position, true, depth + 1)?,
            }
        }
        for square in open {
            let mark = position.mark();
            if !self.place(position, square)? {
                return refused("a line and omits one of its squares");
            }
            self.observer.end_queen(square, true)?;
            position.backtrack_to(&mark);
        }
        Ok(())
    }

    /// Searches exhaustively by branching. Any branching rule is sound, since every completion uses
    /// each line that can be chosen.
    fn search(
        &mut self,
        position: &mut Position,
        order: &Order,
        known: &mut RefutedPositions,
    ) -> Result<(), ProofError> {
        let line = match order {
            Order::FewestCandidates => position.smallest_line(),
            Order::Weighted(lines) => position.weighted_line(lines),
        };
        let Some(line) = line else {
            return Err(ProofError::Refused("there is a completion".into()));
        };
        let complete = known.complete_blocks(position);
        for square in position.choices(line).into_iter().flatten() {
            let mark = position.mark();
            let refuted = self.place(position, square)?;
            if !refuted {
                let lines = known.open_lines(position, complete);
                if !lines.is_some_and(|lines| known.contains(&lines)) {
                    self.search(position, order, known)?;
                    lines.into_iter().for_each(|lines| known.insert(lines));
                }
            }
            self.observer.end_queen(square, refuted)?;
            position.backtrack_to(&mark);
        }
        Ok(())
    }

    /// Places a queen on `square`. Returns whether the position is then refuted.
    fn place(&mut self, position: &mut Position, square: usize) -> Result<bool, ProofError> {
        self.work.add(1)?;
        position.place(square);
        let refuted = position.propagate();
        self.meter(position)?;
        self.observer.begin_queen(square, refuted)?;
        Ok(refuted)
    }

    /// Reports the operations on a position to the meter.
    fn meter(&mut self, position: &Position) -> Result<(), ProofError> {
        self.work.meter.add(position.operations())
    }
}
