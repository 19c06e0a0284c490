//! Proofs that a solution is most beautiful, written while the checker follows a certificate.
//!
//! The bound of a record holds for all solutions in question, whatever the levels before. So a
//! trial, or an assumption, is a proof by contradiction of the bound on a level that its refutation
//! establishes. A search with a queen on one square is written once for each square of the orbit,
//! under the symmetry that maps the first to the other.

use std::collections::HashMap;

use super::beautiful_tree::Recording;
use super::board_lines::{BoardLines, line_of_prices};
use super::claim::{self, queens_by_level};
use super::constraint::{Constraint, Variable};
use super::writer::{Id, ProofWriter, ReversePolish};
use crate::beautiful::{Board, LevelBound, Observer, prices};
use crate::board::Square;
use crate::symmetry::Symmetry;
use crate::{Beauty, ProofError};

/// A supposition: the bounds on levels before it.
struct Supposition {
    bound: LevelBound,
    at_least: Vec<Option<Id>>,
    at_most: Vec<Option<Id>>,
}

/// A writer of the proof that no solution is more beautiful than the given one.
pub(super) struct BeautifulProof<'p, 'w> {
    pub(super) n: usize,
    turning: bool,
    pub(super) writer: &'p mut ProofWriter<'w>,
    pub(super) lines: BoardLines,
    pub(super) levels: Vec<Vec<usize>>,
    /// By level: the number of queens of the given solution.
    claimed: Option<Vec<usize>>,
    /// By level: the identifiers of the claim's constraints.
    no_more: Vec<Option<Id>>,
    fewer: Vec<Option<Id>>,
    /// By level: the bounds proved or supposed.
    pub(super) at_least: Vec<Option<Id>>,
    pub(super) at_most: Vec<Option<Id>>,
    suppositions: Vec<Supposition>,
    /// By the first square of an orbit: "it has at most 4 queens", or at most 1.
    of_orbit: HashMap<usize, Id>,
    cliques: Vec<Vec<usize>>,
    /// "A clique has at most one queen", by its squares.
    of_clique: HashMap<Vec<usize>, Id>,
    pub(super) recording: Option<Recording>,
}

impl<'p, 'w> BeautifulProof<'p, 'w> {
    /// Begins the proof.
    pub(super) fn begin(
        n: usize,
        beauty: Beauty,
        solution: Option<&[usize]>,
        writer: &'p mut ProofWriter<'w>,
    ) -> Result<Self, ProofError> {
        let claim = claim::beautiful(n, beauty, solution);
        let (identifiers, count) = claim.formula.identifiers();
        writer.begin(count)?;
        let lines = BoardLines::new(n, &identifiers, writer)?;
        let levels = claim::levels(n, beauty.norm);
        let ids = |numbers: Vec<Option<usize>>| -> Vec<Option<Id>> {
            numbers.into_iter().map(|number| Some(identifiers[number?])).collect()
        };
        let mut proof = Self {
            n,
            turning: beauty.turning,
            writer,
            lines,
            claimed: solution.map(|columns| queens_by_level(&levels, columns)),
            no_more: ids(claim.at_most),
            fewer: ids(claim.fewer),
            at_least: vec![None; levels.len()],
            at_most: vec![None; levels.len()],
            levels,
            suppositions: Vec::new(),
            of_orbit: HashMap::new(),
            cliques: Vec::new(),
            of_clique: HashMap::new(),
            recording: None,
        };
        proof.bound_orbits()?;
        if proof.turning && n % 4 > 1 {
            proof.refute_by_residue()?;
        }
        Ok(proof)
    }

    /// Ends the proof.
    pub(super) fn end(self) -> Result<(), ProofError> {
        self.writer.conclude_unsatisfiable()
    }

    pub(super) const fn image(&self, symmetry: Symmetry, square: usize) -> usize {
        let image = symmetry.apply(self.n, Square::new(square / self.n, square % self.n));
        image.row * self.n + image.col
    }

    pub(super) fn orbit(&self, square: usize) -> Vec<usize> {
        let images = Symmetry::ALL.map(|symmetry| self.image(symmetry, square));
        let mut orbit = images.to_vec();
        orbit.sort_unstable();
        orbit.dedup();
        orbit
    }

    /// Derives for each orbit how many queens it has at most.
    fn bound_orbits(&mut self) -> Result<(), ProofError> {
        for square in 0..self.n * self.n {
            let orbit = self.orbit(square);
            if orbit[0] != square || orbit.len() == 1 {
                continue;
            }
            let id = if orbit.len() == 4 {
                self.bound_clique(&orbit)?
            } else {
                let mut rows: Vec<usize> = orbit.iter().map(|square| square / self.n).collect();
                rows.dedup();
                let mut sum = ReversePolish::default();
                rows.iter().for_each(|&row| sum.add(self.lines.at_most[row], 1));
                for row in rows {
                    let others = self.lines.squares[row].iter();
                    for &other in others.filter(|other| !orbit.contains(other)) {
                        sum.weaken(Variable::queen(self.n, other));
                    }
                }
                Some(self.writer.pol(&sum)?)
            };
            if let Some(id) = id {
                self.of_orbit.insert(square, id);
            }
        }
        Ok(())
    }

    /// Derives "squares that attack each other have at most one queen", by adding one square after
    /// the other and dividing; `None` if there is only one.
    fn bound_clique(&mut self, squares: &[usize]) -> Result<Option<Id>, ProofError> {
        let mut sorted = squares.to_vec();
        sorted.sort_unstable();
        if let Some(&id) = self.of_clique.get(&sorted) {
            return Ok(Some(id));
        }
        let mut last: Option<Id> = None;
        for count in 2..=sorted.len() {
            let new = sorted[count - 1];
            let mut sum = ReversePolish::default();
            if let Some(last) = last {
                sum.add(last, count as i128 - 2);
            }
            for &other in &sorted[..count - 1] {
                let attack = self.attack(other, new)?;
                sum.add(attack, 1);
            }
            if count > 2 {
                sum.divide(count - 1);
            }
            last = Some(self.writer.pol(&sum)?);
        }
        if let (Some(id), true) = (last, self.suppositions.is_empty()) {
            self.of_clique.insert(sorted, id);
        }
        Ok(last)
    }

    /// Derives "one of two squares on a line has no queen".
    fn attack(&mut self, one: usize, other: usize) -> Result<Id, ProofError> {
        let of_other = self.lines.lines_of(other);
        let line = self.lines.lines_of(one).into_iter().find(|line| of_other.contains(line));
        let line = line.unwrap_or_default(); // The checker has tested that there is one.
        let mut sum = ReversePolish::default();
        sum.add(self.lines.at_most_one[line], 1);
        let others = self.lines.squares[line].iter();
        for &square in others.filter(|&&square| square != one && square != other) {
            sum.weaken(Variable::queen(self.n, square));
        }
        self.writer.pol(&sum)
    }

    /// Refutes the solutions invariant under quarter turns if n is 2 or 3 modulo 4: all queens but
    /// one in the centre come in fours.
    fn refute_by_residue(&mut self) -> Result<(), ProofError> {
        let n = self.n;
        // Σ over all squares is n, and by the equations of the formula 4 Σ' x + centre = n, where
        // Σ' has the first square of each orbit. Divided by 4, the two inequalities contradict.
        let mut contradiction = ReversePolish::default();
        for at_least in [false, true] {
            // All squares, by the rows; then the images are replaced by the equations.
            let mut sum = ReversePolish::default();
            for row in 0..n {
                let rows = if at_least { &self.lines.at_least } else { &self.lines.at_most };
                sum.add(rows[row], 1);
            }
            for square in 0..n * n {
                for id in self.turns_to(square) {
                    sum.add(if at_least { id } else { id + 1 }, 1);
                }
            }
            if !n.is_multiple_of(2) {
                let centre = Variable::queen(n, n * n / 2);
                sum.weaken(centre);
            }
            sum.divide(4);
            contradiction.add(self.writer.pol(&sum)?, 1);
        }
        self.writer.pol(&contradiction).map(drop)
    }

    /// Returns the identifier of x(square) + ~x(its image under a quarter turn) ≥ 1; the next one
    /// is the contrary inequality.
    fn turn_identifier(&self, square: usize) -> Id {
        let n = self.n;
        let fixed = !n.is_multiple_of(2) && square > n * n / 2;
        let queens = 2 * (2 * n) + (4 * n - 2);
        (queens + 1 + 2 * (square - usize::from(fixed))) as Id
    }

    /// Returns the identifiers of the turns from the first square of an orbit under quarter turns
    /// to this one.
    fn turns_to(&self, square: usize) -> Vec<Id> {
        let images = |from: usize| {
            std::iter::successors(Some(from), |&image| Some(claim::quarter_turn(self.n, image)))
        };
        let first = images(square).take(4).min().unwrap_or(square);
        let before = images(first).take_while(|&image| image != square);
        before.map(|image| self.turn_identifier(image)).collect()
    }

    /// Adds a multiple of the bound on a level's number of queens: the lower bound if `y` is
    /// positive, otherwise the upper one.
    fn add_level(&self, sum: &mut ReversePolish, level: usize, y: i128) {
        let queen = |square: usize| Variable::queen(self.n, square).positive();
        if y > 0 {
            match self.at_least[level] {
                Some(id) => sum.add(id, y),
                None => {
                    self.levels[level].iter().for_each(|&square| sum.add_literal(queen(square), y));
                }
            }
        } else if y < 0 {
            self.add_at_most(sum, level, -y);
        }
    }

    /// Adds a multiple of the upper bound on a level's number of queens, which is at most n.
    pub(super) fn add_at_most(&self, sum: &mut ReversePolish, level: usize, factor: i128) {
        if let Some(id) = self.at_most[level] {
            return sum.add(id, factor);
        }
        let mut inside = vec![false; self.n * self.n];
        self.levels[level].iter().for_each(|&square| inside[square] = true);
        (0..self.n).for_each(|row| sum.add(self.lines.at_most[row], factor));
        for square in (0..self.n * self.n).filter(|&square| !inside[square]) {
            sum.add_literal(Variable::queen(self.n, square).positive(), factor);
        }
    }

    /// Returns "a level has at least this number of queens", or the contrary.
    fn level_constraint(&self, bound: LevelBound) -> Constraint {
        let LevelBound { level, queens, at_least } = bound;
        let squares = self.levels[level].iter().map(|&square| Variable::queen(self.n, square));
        if at_least {
            Constraint::at_least(queens, squares.map(Variable::positive))
        } else {
            let empty = (self.levels[level].len() + 1).saturating_sub(queens);
            Constraint::at_least(empty, squares.map(Variable::negative))
        }
    }

    /// Rounds an upper bound on a level down: under quarter turns, its queens come in fours.
    fn rounded(&mut self, level: usize, at_most: Id) -> Result<Id, ProofError> {
        let squares = &self.levels[level];
        if !self.turning || squares.len() == 1 {
            return Ok(at_most);
        }
        let mut sum = ReversePolish::default();
        sum.add(at_most, 1);
        // Each image is replaced by the first square of its orbit, then put back.
        let mut back = ReversePolish::default();
        for id in squares.iter().flat_map(|&square| self.turns_to(square)) {
            sum.add(id + 1, 1);
            back.add(id, 1);
        }
        sum.divide(4);
        sum.multiply(4);
        let divided = self.writer.pol(&sum)?;
        back.add(divided, 1);
        self.writer.pol(&back)
    }

    fn set_bound(&mut self, bound: LevelBound, id: Id) -> Result<(), ProofError> {
        if bound.at_least {
            self.at_least[bound.level] = Some(id);
        } else {
            self.at_most[bound.level] = Some(self.rounded(bound.level, id)?);
        }
        Ok(())
    }
}

impl Observer for BeautifulProof<'_, '_> {
    fn suppose(&mut self, bound: LevelBound) -> Result<(), ProofError> {
        let (at_least, at_most) = (self.at_least.clone(), self.at_most.clone());
        self.suppositions.push(Supposition { bound, at_least, at_most });
        let negation = self.writer.begin_contradiction(&self.level_constraint(bound))?;
        self.set_bound(LevelBound { at_least: !bound.at_least, ..bound }, negation)
    }

    fn refute(&mut self) -> Result<(), ProofError> {
        // Without a supposition, there is no solution at all.
        let Some(Supposition { bound, at_least, at_most }) = self.suppositions.pop() else {
            return Ok(());
        };
        let id = self.writer.end_contradiction()?;
        (self.at_least, self.at_most) = (at_least, at_most);
        self.set_bound(bound, id)
    }

    fn next_level(&mut self, level: usize) -> Result<(), ProofError> {
        let queens = self.claimed.as_ref().map_or(0, |claimed| claimed[level]);
        if let (Some(fewer), Some(at_least)) = (self.fewer[level], self.at_least[level]) {
            let mut sum = ReversePolish::default();
            sum.add(at_least, 1);
            sum.add(fewer, 1);
            sum.saturate();
            self.writer.pol(&sum)?;
        }
        if let Some(no_more) = self.no_more[level] {
            let bound = LevelBound { level, queens: queens + 1, at_least: false };
            let negation = self.writer.begin_contradiction(&self.level_constraint(bound))?;
            let mut sum = ReversePolish::default();
            sum.add(negation, 1);
            sum.add(no_more, 1);
            sum.saturate();
            self.writer.pol(&sum)?;
            self.at_most[level] = Some(self.writer.end_contradiction()?);
        }
        Ok(())
    }

    fn clique(&mut self, squares: &[usize]) {
        self.cliques.push(squares.to_vec());
    }

    fn multipliers(&mut self, board: &Board, entries: &[(usize, i64)]) -> Result<(), ProofError> {
        let n = self.n;
        let (ranks, levels) = (n.div_ceil(2), self.levels.len());
        let (mut of_rank, mut of_distance) = (vec![0i128; ranks], vec![0i128; n]);
        let mut of_level = vec![0i128; levels];
        // By square: the sum of the multipliers of its constraints.
        let mut total = vec![0i128; n * n];
        let mut sum = ReversePolish::default();
        for &(number, y) in entries {
            let y = i128::from(y);
            if number < ranks {
                of_rank[number] += y;
            } else if number < ranks + n {
                of_distance[number - ranks] += y;
            } else if number < ranks + n + levels {
                of_level[number - ranks - n] += y;
            } else {
                let clique = self.cliques[number - ranks - n - levels].clone();
                for symmetry in Symmetry::ALL {
                    let image: Vec<usize> =
                        clique.iter().map(|&square| self.image(symmetry, square)).collect();
                    if let Some(id) = self.bound_clique(&image)? {
                        sum.add(id, -y);
                    }
                    image.iter().for_each(|&square| total[square] += y);
                }
            }
        }
        for (rank, &y) in of_rank.iter().enumerate() {
            let of = if y > 0 { &self.lines.at_least } else { &self.lines.at_most };
            let mut both = vec![rank, n - 1 - rank];
            both.dedup();
            for line in both.into_iter().flat_map(|line| [line, n + line]) {
                sum.add(of[line], y.abs());
            }
        }
        for (distance, &y) in of_distance.iter().enumerate() {
            let mut diagonals =
                prices::diagonals(n, distance).map(|line| line_of_prices(n, line)).to_vec();
            diagonals.sort_unstable();
            diagonals.dedup();
            diagonals.iter().for_each(|&line| sum.add(self.lines.at_most[line], -y));
        }
        for (level, &y) in of_level.iter().enumerate() {
            self.add_level(&mut sum, level, y);
            self.levels[level].iter().for_each(|&square| total[square] += y);
        }
        for (square, total) in total.iter_mut().enumerate() {
            let (row, column) = (square / n, square % n);
            *total += of_rank[row.min(n - 1 - row)] + of_rank[column.min(n - 1 - column)];
            *total += of_distance[row.abs_diff(column)];
            *total += of_distance[(row + column).abs_diff(n - 1)];
        }
        let mut orbits: Vec<(usize, Id)> = self.of_orbit.iter().map(|(&a, &b)| (a, b)).collect();
        orbits.sort_unstable();
        for (first, id) in orbits {
            if board.is_open(first) && total[first] > 0 {
                sum.add(id, total[first]);
            }
        }
        if sum.is_empty() { Ok(()) } else { self.writer.pol(&sum).map(drop) }
    }

    fn begin_search(&mut self) {
        self.recording = Some(Recording::default());
    }

    fn begin_queen(&mut self, square: usize, last: bool) -> Result<(), ProofError> {
        if let Some(recording) = &mut self.recording {
            recording.enter(square, last);
            self.writer.reserve(recording.lines())?;
        }
        Ok(())
    }

    fn end_queen(&mut self, last: bool) {
        if let Some(recording) = &mut self.recording {
            recording.leave(last);
        }
    }

    fn prices(&mut self, board: &Board, price: &[i128]) {
        if let Some(recording) = &mut self.recording {
            recording.prices(board, price, &self.at_least);
        }
    }

    fn end_search(&mut self, square: Option<usize>) -> Result<(), ProofError> {
        let Some(recording) = self.recording.take() else { return Ok(()) };
        let Some(square) = square else {
            return recording.write(self, Symmetry::Identity);
        };
        for image in self.orbit(square) {
            let symmetry =
                Symmetry::ALL.into_iter().find(|&symmetry| self.image(symmetry, square) == image);
            let empty = Constraint::clause([Variable::queen(self.n, image).negative()]);
            if recording.is_empty() {
                self.writer.rup(&empty)?;
            } else {
                self.writer.begin_contradiction(&empty)?;
                recording.write(self, symmetry.unwrap_or(Symmetry::Identity))?;
                self.writer.end_contradiction()?;
            }
        }
        Ok(())
    }
}
