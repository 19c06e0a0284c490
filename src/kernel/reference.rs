//! The oracle: the plain definition, and nothing else.
//!
//! Fills the rows from top to bottom, compares every new piece with every other one by
//! [`Piece::attacks`], and finally asks the symmetry case whether it counts the completion. No
//! masks, no symmetry, no look-ahead. Cost: about n comparisons a placement and the nodes of the
//! plain tree below the prefix.
//!
//! [`Piece::attacks`]: crate::board::Piece::attacks

use super::Kernel;
use crate::board::{Problem, Square};
use crate::decomposition::{Prefix, SymmetryCase};
use crate::tally::{Parts, Residues, TallyError};

/// The oracle with which every kernel is compared.
#[derive(Debug)]
pub struct Reference;

impl Kernel for Reference {
    fn count(
        &mut self,
        case: &SymmetryCase,
        prefixes: &[Prefix],
        parts: &mut Parts,
    ) -> Result<(), TallyError> {
        for prefix in prefixes {
            let (completions, nodes) = completions(case, prefix);
            parts.add(case.weight(), completions, Residues::of(completions.into()), nodes)?;
        }
        Ok(())
    }
}

/// Returns the completions of `prefix` that `case` counts, and the number of placements tried.
/// Exact up to 2^64 of either, which no run of the oracle reaches.
pub fn completions(case: &SymmetryCase, prefix: &Prefix) -> (u64, u64) {
    let given: Vec<Square> = case
        .problem()
        .placed()
        .iter()
        .chain(case.block())
        .copied()
        .chain(prefix.squares(case))
        .collect();
    if crate::board::first_attack(case.piece(), case.n(), &given).is_some() {
        return (0, 0);
    }
    let mut search =
        Search { problem: case.problem(), case, queens: given, completions: 0, nodes: 0 };
    search.fill(0);
    (search.completions, search.nodes)
}

struct Search<'a> {
    problem: &'a Problem,
    case: &'a SymmetryCase,
    queens: Vec<Square>,
    completions: u64,
    nodes: u64,
}

impl Search<'_> {
    fn fill(&mut self, row: usize) {
        let n = self.problem.n();
        if row == n {
            let mut columns = vec![0; n];
            for queen in &self.queens {
                columns[queen.row] = queen.col;
            }
            self.completions += u64::from(self.case.counts(&columns));
            return;
        }
        if self.queens.iter().any(|q| q.row == row) {
            return self.fill(row + 1);
        }
        for col in 0..n {
            let square = Square::new(row, col);
            let attacked = self.queens.iter().any(|&q| self.problem.piece().attacks(n, q, square));
            if !attacked && !self.problem.blocked().contains(&square) {
                self.queens.push(square);
                self.nodes += 1;
                self.fill(row + 1);
                self.queens.pop();
            }
        }
    }
}
