//! The search tree of a record, recorded once and written under symmetries.

use super::beautiful::BeautifulProof;
use super::board_lines::{BoardLines, line_of_prices};
use super::constraint::{Literal, Variable};
use super::search_tree::clause;
use super::writer::{Id, ReversePolish};
use crate::ProofError;
use crate::beautiful::Board;
use crate::symmetry::Symmetry;

/// Subtrees with more steps than this become a proof by contradiction of their own.
const SCOPE: usize = 200;

/// A summand of the sum that prices are, with its factor.
#[derive(Clone, Copy, Debug)]
enum Summand {
    AtLeastOn(usize),
    AtMostOn(usize),
    /// The upper bound of a level.
    MostOfLevel(usize),
    /// The lower bound of a level.
    LeastOfLevel(Id),
    /// A square has a queen, or has none: the literal is at least 0.
    Queen {
        square: usize,
        negated: bool,
    },
}

#[derive(Clone, Debug)]
enum Step {
    /// These squares do not all have queens.
    Clause(Vec<usize>),
    Begin(Vec<usize>),
    End,
    Prices(Vec<(Summand, i128)>),
}

/// The steps of a search.
#[derive(Debug, Default)]
pub(super) struct Recording {
    steps: Vec<Step>,
    /// The squares of the queens that were tried. The last choice of a line is forced when the
    /// others are refuted, so it is left out.
    decisions: Vec<usize>,
    /// The number of steps before each queen that was tried.
    marks: Vec<usize>,
}

impl Recording {
    /// Returns whether nothing was recorded: propagation refutes the position.
    pub(super) const fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    /// Returns the number of lines that the steps take, at least.
    pub(super) const fn lines(&self) -> u64 {
        self.steps.len() as u64
    }

    /// A queen is tried on a square; `last` says whether it is the last choice of its line.
    pub(super) fn enter(&mut self, square: usize, last: bool) {
        self.marks.push(self.steps.len());
        if !last {
            self.decisions.push(square);
        }
    }

    /// The queen that was tried last is refuted.
    pub(super) fn leave(&mut self, last: bool) {
        let mark = self.marks.pop().unwrap_or_default();
        if last {
            return;
        }
        if self.steps.len() - mark > SCOPE {
            // Inside, the decisions hold, so its clauses and scopes do without them.
            let mut depth = 0;
            for step in &mut self.steps[mark..] {
                depth -= i32::from(matches!(step, Step::End));
                let begins = matches!(step, Step::Begin(_));
                if let Step::Clause(of) | Step::Begin(of) = step
                    && depth == 0
                {
                    of.drain(..self.decisions.len());
                }
                depth += i32::from(begins);
            }
            self.steps.insert(mark, Step::Begin(self.decisions.clone()));
            self.steps.push(Step::End);
        } else {
            self.steps.push(Step::Clause(self.decisions.clone()));
        }
        self.decisions.pop();
    }

    /// Prices are evaluated on the board, by number of line or level.
    pub(super) fn prices(&mut self, board: &Board, price: &[i128], at_least: &[Option<Id>]) {
        let n = board.size();
        let mut summands = Vec::new();
        for number in n..6 * n {
            let price = price[number];
            if price != 0 && !board.open_on_line(number).is_empty() {
                let line = line_of_prices(n, number);
                let of = if price > 0 { Summand::AtMostOn } else { Summand::AtLeastOn };
                summands.push((of(line), price.abs()));
            }
        }
        for level in 0..at_least.len() {
            let (queens, (least, most)) = board.queens_on_level(level);
            let price = price[6 * n + level];
            let squares = board.open_on_level(level);
            if price > 0 {
                if most.saturating_sub(queens) <= squares.len() {
                    summands.push((Summand::MostOfLevel(level), price));
                } else {
                    let none = |square| (Summand::Queen { square, negated: true }, price);
                    summands.extend(squares.into_iter().map(none));
                }
            } else if price < 0 {
                match at_least[level] {
                    Some(id) if least > queens => {
                        summands.push((Summand::LeastOfLevel(id), -price));
                    }
                    _ => {
                        let one = |square| (Summand::Queen { square, negated: false }, -price);
                        summands.extend(squares.into_iter().map(one));
                    }
                }
            }
        }
        for row in 0..n {
            let squares = board.open_on_line(row).into_iter();
            let cheapest = squares.map(|square| board.price(square, price)).min();
            if let Some(cheapest) = cheapest.filter(|&cheapest| cheapest != 0) {
                let of = if cheapest > 0 { Summand::AtLeastOn } else { Summand::AtMostOn };
                summands.push((of(row), cheapest.abs()));
            }
        }
        self.steps.push(Step::Prices(summands));
    }

    /// Writes the steps under a symmetry.
    pub(super) fn write(
        &self,
        proof: &mut BeautifulProof<'_, '_>,
        symmetry: Symmetry,
    ) -> Result<(), ProofError> {
        let n = proof.n;
        for step in &self.steps {
            match step {
                Step::Clause(squares) | Step::Begin(squares) => {
                    let images: Vec<usize> =
                        squares.iter().map(|&square| proof.image(symmetry, square)).collect();
                    if matches!(step, Step::Clause(_)) {
                        proof.writer.rup(&clause(n, &images))?;
                    } else {
                        proof.writer.begin_contradiction(&clause(n, &images))?;
                    }
                }
                Step::End => {
                    proof.writer.end_contradiction()?;
                }
                Step::Prices(summands) => {
                    let mut sum = ReversePolish::default();
                    for &(summand, factor) in summands {
                        add(proof, &mut sum, summand, factor, symmetry);
                    }
                    if !sum.is_empty() {
                        proof.writer.pol(&sum)?;
                    }
                }
            }
        }
        Ok(())
    }
}

/// Adds the image of a summand.
fn add(
    proof: &BeautifulProof<'_, '_>,
    sum: &mut ReversePolish,
    summand: Summand,
    factor: i128,
    symmetry: Symmetry,
) {
    match summand {
        Summand::AtLeastOn(line) => {
            sum.add(proof.lines.at_least[image_of_line(proof, line, symmetry)], factor);
        }
        Summand::AtMostOn(line) => {
            sum.add(proof.lines.at_most[image_of_line(proof, line, symmetry)], factor);
        }
        Summand::MostOfLevel(level) => proof.add_at_most(sum, level, factor),
        Summand::LeastOfLevel(id) => sum.add(id, factor),
        Summand::Queen { square, negated } => {
            let variable = Variable::queen(proof.n, proof.image(symmetry, square));
            sum.add_literal(Literal { variable, negated }, factor);
        }
    }
}

/// Returns the image of a line.
fn image_of_line(proof: &BeautifulProof<'_, '_>, line: usize, symmetry: Symmetry) -> usize {
    let lines: &BoardLines = &proof.lines;
    let squares = &lines.squares[line];
    let images = |square: usize| lines.lines_of(proof.image(symmetry, square));
    let (first, last) = (images(squares[0]), images(squares[squares.len() - 1]));
    if squares.len() > 1 {
        first.into_iter().find(|line| last.contains(line)).unwrap_or(line)
    } else {
        // A corner: its diagonal of length 1 (or, for n = 1, any line).
        first.into_iter().rev().find(|&line| lines.squares[line].len() == 1).unwrap_or(line)
    }
}
