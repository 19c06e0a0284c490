//! The certificate while it is being written; [`nqueens_proof::beautiful`] defines its format.

use super::orbit_lp::{Proof, RowId};
use super::orbits::{OrbitId, Orbits};
use nqueens_proof::beautiful::record;
use nqueens_proof::bytes::Writer;

/// The records so far. Records that prove unnecessary are rolled back.
#[derive(Clone, Debug, Default)]
pub(super) struct ProofLog {
    bytes: Writer,
    /// The numbers of the cliques written, in order.
    cliques: Vec<usize>,
}

/// A position to roll back to.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Mark {
    pub(super) bytes: usize,
    pub(super) cliques: usize,
}

impl ProofLog {
    pub(super) fn as_bytes(&self) -> &[u8] {
        self.bytes.as_bytes()
    }

    /// Creates a log with the records of another run, whose cliques are numbered in order.
    pub(super) fn of(records: &[u8], cliques: usize) -> Self {
        let mut bytes = Writer::new();
        bytes.bytes(records);
        Self { bytes, cliques: (0..cliques).collect() }
    }

    /// Returns a log without records in which the cliques have the same numbers.
    pub(super) fn continuation(&self) -> Self {
        Self { bytes: Writer::new(), cliques: self.cliques.clone() }
    }

    pub(super) fn mark(&self) -> Mark {
        Mark { bytes: self.bytes.as_bytes().len(), cliques: self.cliques.len() }
    }

    pub(super) fn roll_back(&mut self, mark: Mark) {
        self.bytes.truncate(mark.bytes);
        self.cliques.truncate(mark.cliques);
    }

    /// Removes and returns the records written since `mark`, which must not include cliques.
    pub(super) fn take_from(&mut self, mark: Mark) -> Vec<u8> {
        debug_assert_eq!(self.cliques.len(), mark.cliques);
        let taken = self.bytes.as_bytes()[mark.bytes..].to_vec();
        self.roll_back(mark);
        taken
    }

    /// Writes records that were removed before.
    pub(super) fn records(&mut self, records: &[u8]) {
        self.bytes.bytes(records);
    }

    /// Writes all cliques, so that the records that follow can be reordered.
    pub(super) fn cliques(&mut self, cliques: &[Vec<usize>]) {
        for number in 0..cliques.len() {
            self.clique(number, cliques);
        }
    }

    /// Writes a clique, unless it has been written.
    fn clique(&mut self, number: usize, cliques: &[Vec<usize>]) {
        if self.cliques.contains(&number) {
            return;
        }
        self.cliques.push(number);
        self.bytes.byte(record::CLIQUE);
        self.bytes.size(cliques[number].len());
        for &square in &cliques[number] {
            self.bytes.size(square);
        }
    }

    /// Writes that the current level has at least `least` queens. The records that follow refute
    /// fewer.
    pub(super) fn at_least(&mut self, least: u32) {
        self.bytes.byte(record::AT_LEAST);
        self.bytes.number(least.into());
    }

    /// Writes, within a trial, that `level` has at least `queens` queens or fewer than that. The
    /// records that follow refute the contrary.
    pub(super) fn assume(&mut self, level: usize, at_least: bool, queens: u32) {
        self.bytes.byte(record::ASSUME);
        self.bytes.size(level);
        self.bytes.byte(u8::from(!at_least));
        self.bytes.number(queens.into());
    }

    /// Writes that the current level is done.
    pub(super) fn next_level(&mut self) {
        self.bytes.byte(record::NEXT);
    }

    /// Writes that there is no solution, proved by a tree.
    pub(super) fn refuted(&mut self, tree: &[u8]) {
        self.bytes.byte(record::REFUTED);
        self.bytes.bytes(tree);
    }

    /// Writes that an orbit has no queen, proved by a tree below its first square.
    pub(super) fn eliminated(&mut self, orbits: &Orbits, orbit: OrbitId, tree: &[u8]) {
        self.bytes.byte(record::ELIMINATED);
        self.bytes.size(orbits.orbits[orbit].squares[0]);
        self.bytes.bytes(tree);
    }

    /// Writes that there is no solution, proved by multipliers.
    pub(super) fn refuted_by(&mut self, proof: &Proof, orbits: &Orbits, cliques: &[Vec<usize>]) {
        self.multipliers(record::REFUTED_BY_MULTIPLIERS, proof, orbits, cliques);
    }

    /// Writes that the orbits `eliminated` have no queens, proved by multipliers.
    pub(super) fn eliminated_by(
        &mut self,
        proof: &Proof,
        eliminated: &[OrbitId],
        orbits: &Orbits,
        cliques: &[Vec<usize>],
    ) {
        self.multipliers(record::ELIMINATED_BY_MULTIPLIERS, proof, orbits, cliques);
        self.bytes.size(eliminated.len());
        for &orbit in eliminated {
            self.bytes.size(orbits.orbits[orbit].squares[0]);
        }
    }

    /// Writes that every diagonal at these distances has a queen, proved by multipliers.
    pub(super) fn filled_by(
        &mut self,
        proof: &Proof,
        distances: &[usize],
        orbits: &Orbits,
        cliques: &[Vec<usize>],
    ) {
        self.multipliers(record::FULL_BY_MULTIPLIERS, proof, orbits, cliques);
        self.bytes.size(distances.len());
        distances.iter().for_each(|&distance| self.bytes.size(distance));
    }

    fn multipliers(&mut self, kind: u8, proof: &Proof, orbits: &Orbits, cliques: &[Vec<usize>]) {
        for &(id, _) in &proof.multipliers {
            if let RowId::Clique(number) = id {
                self.clique(number, cliques);
            }
        }
        self.bytes.byte(kind);
        self.bytes.size(proof.multipliers.len());
        let (ranks, n) = (orbits.n.div_ceil(2), orbits.n);
        for &(id, y) in &proof.multipliers {
            let number = match id {
                RowId::Rank(k) => k,
                RowId::Diagonal(d) => ranks + d,
                RowId::Level(level) => ranks + n + level,
                RowId::Clique(number) => {
                    let written = self.cliques.iter().position(|&other| other == number);
                    ranks + n + orbits.levels.len() + written.expect("it was written above")
                }
            };
            self.bytes.size(number);
            self.bytes.signed(y);
        }
    }
}
