//! The tree of an exhaustive search, and its proof by clauses over the decisions.

use super::constraint::{Constraint, Variable};
use super::writer::ProofWriter;
use crate::ProofError;

/// Subtrees with more nodes than this become a proof by contradiction of their own, so that their
/// clauses are deleted at its end. Measured with n = 30 (98 779 nodes): 30 took 12.7 s, 200 took
/// 7.5 s, 1000 took 8.3 s.
const SCOPE: usize = 200;

/// A search tree in postorder: 6 bytes for each node.
#[derive(Debug, Default)]
pub(super) struct SearchTree {
    /// By node: the square of its queen.
    squares: Vec<u16>,
    /// By node: the number of nodes of its subtree.
    sizes: Vec<u32>,
    /// For each node that is entered, beginning with the root: the number of nodes before it, and
    /// the number of its children.
    open: Vec<(usize, u64)>,
    /// The number of lines that the nodes so far take.
    lines: u64,
}

impl SearchTree {
    /// Creates the tree of a search that begins.
    pub(super) fn new() -> Self {
        Self { open: vec![(0, 0)], ..Self::default() }
    }

    /// Enters a child of the current node.
    pub(super) fn enter(&mut self) {
        if let Some(parent) = self.open.last_mut() {
            parent.1 += 1;
        }
        self.open.push((self.squares.len(), 0));
    }

    /// Leaves the current node, which has a queen on `square`.
    pub(super) fn leave(&mut self, square: usize) {
        let (before, children) = self.open.pop().unwrap_or_default();
        self.squares.push(square as u16);
        self.sizes.push((self.squares.len() - before) as u32);
        self.lines += children.saturating_sub(1);
    }

    /// Returns the number of lines that the nodes so far take, at least.
    pub(super) const fn lines(&self) -> u64 {
        self.lines
    }

    /// Writes the proof that the search leads to contradictions everywhere.
    pub(super) fn write(&self, n: usize, writer: &mut ProofWriter<'_>) -> Result<(), ProofError> {
        self.write_children(0, self.squares.len(), &mut Vec::new(), n, writer)
    }

    /// Writes clauses for the children of a node, which are the last nodes from `begin` to `end`,
    /// in postorder. The last child is forced when the others are refuted, so it needs no clause,
    /// and the clauses below it do without its square.
    fn write_children(
        &self,
        begin: usize,
        mut end: usize,
        decisions: &mut Vec<usize>,
        n: usize,
        writer: &mut ProofWriter<'_>,
    ) -> Result<(), ProofError> {
        let mut begin = begin;
        loop {
            let mut children = Vec::new();
            let mut child = end;
            while child > begin {
                children.push(child - 1);
                child -= self.sizes[child - 1] as usize;
            }
            children.reverse();
            children.sort_by_key(|&child| self.sizes[child]);
            let Some(largest) = children.pop() else { return Ok(()) };
            for child in children {
                let (size, square) = (self.sizes[child] as usize, self.squares[child].into());
                decisions.push(square);
                let first = child + 1 - size;
                if size > SCOPE {
                    writer.begin_contradiction(&clause(n, decisions))?;
                    self.write_children(first, child, &mut Vec::new(), n, writer)?;
                    writer.end_contradiction()?;
                } else {
                    self.write_children(first, child, decisions, n, writer)?;
                    writer.rup(&clause(n, decisions))?;
                }
                decisions.pop();
            }
            (begin, end) = (largest + 1 - self.sizes[largest] as usize, largest);
        }
    }
}

/// Returns "not all of these squares have queens".
pub(super) fn clause(n: usize, squares: &[usize]) -> Constraint {
    Constraint::clause(squares.iter().map(|&square| Variable::queen(n, square).negative()))
}
