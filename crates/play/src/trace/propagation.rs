//! Constraint propagation, as in `nqueens_solver::cp` with the first open row as its branching: a
//! queen removes its column and its diagonals from the other domains, a row with one column left is
//! decided, and so is a column that is left in one row only.

use std::ops::ControlFlow;

use nqueens_proof::board::{Piece, Square};

use super::{Flow, Kind, Step, Trace, counted, written};
use crate::board::coordinates;

pub(super) fn run(trace: &mut Trace<'_>) -> Flow {
    let problem = trace.problem;
    let n = problem.n();
    let mut domains = vec![u32::MAX >> (32 - n); n];
    for square in problem.blocked() {
        domains[square.row] &= !(1 << square.col);
    }
    for square in problem.placed() {
        domains[square.row] &= 1 << square.col;
    }
    let state = State { domains, decided: vec![None; n], pending: Vec::new() };
    state.step(
        trace,
        Kind::Start,
        "Start: the domain of a row is its columns that are still possible.".into(),
        vec![],
    )?;
    state.search(trace)?;
    let text = format!(
        "The search is complete: {} with {}.",
        counted(trace.solutions.len() as u64, "solution"),
        counted(trace.nodes, "decision"),
    );
    let queens = super::placed(problem);
    trace.push(Step { kind: Kind::End, text, queens, ..Step::default() })
}

#[derive(Clone)]
struct State {
    domains: Vec<u32>,
    decided: Vec<Option<usize>>,
    /// Decided rows whose attacks are not yet removed from the other domains.
    pending: Vec<usize>,
}

/// The result of propagation: whether the domains are consistent.
type Consistent = ControlFlow<(), bool>;

impl State {
    fn step(&self, trace: &mut Trace<'_>, kind: Kind, text: String, marked: Vec<Square>) -> Flow {
        trace.push(Step {
            kind,
            text,
            queens: written(&self.decided),
            marked: marked.into_iter().map(coordinates).collect(),
            domains: self.domains.clone(),
            ..Step::default()
        })
    }

    fn search(mut self, trace: &mut Trace<'_>) -> Flow {
        loop {
            if !self.propagate(trace)? {
                return Flow::Continue(());
            }
            let Some(row) = self.decided.iter().position(Option::is_none) else {
                let columns: Vec<usize> = self.decided.iter().flatten().copied().collect();
                let (queens, domains) = (written(&self.decided), self.domains);
                return trace.solution(&columns, Step { queens, domains, ..Step::default() });
            };
            let col = self.domains[row].trailing_zeros() as usize;
            trace.nodes += 1;
            let mut child = self.clone();
            child.decide(row, col);
            let text = format!("Decide: row {} takes column {}, its first.", row + 1, col + 1);
            child.step(trace, Kind::Decide, text, vec![Square::new(row, col)])?;
            child.search(trace)?;
            self.domains[row] &= !(1 << col);
            let text = format!(
                "Back: with the earlier decisions, column {} of row {} is done; remove it.",
                col + 1,
                row + 1
            );
            self.step(trace, Kind::Undo, text, vec![Square::new(row, col)])?;
        }
    }

    fn decide(&mut self, row: usize, col: usize) {
        self.domains[row] = 1 << col;
        self.decided[row] = Some(col);
        self.pending.push(row);
    }

    /// Applies the rules until none changes a domain.
    fn propagate(&mut self, trace: &mut Trace<'_>) -> Consistent {
        loop {
            if let Some(row) = self.domains.iter().position(|&domain| domain == 0) {
                let text = format!("Row {} has no column left: a dead end.", row + 1);
                let marked = (0..self.domains.len()).map(|col| Square::new(row, col)).collect();
                self.step(trace, Kind::Fail, text, marked)?;
                return Consistent::Continue(false);
            }
            if let Some(row) = self.pending.pop() {
                self.remove_attacked(trace, row)?;
            } else if !self.decide_single_row(trace)? {
                match self.decide_single_column(trace)? {
                    Some(true) => {}
                    Some(false) => return Consistent::Continue(false),
                    None => return Consistent::Continue(true),
                }
            }
        }
    }

    /// Removes the squares that the queen in `row` attacks from all other domains.
    fn remove_attacked(&mut self, trace: &mut Trace<'_>, row: usize) -> Flow {
        let (n, Some(col)) = (self.domains.len(), self.decided[row]) else {
            return Flow::Continue(());
        };
        let queen = Square::new(row, col);
        let mut removed = Vec::new();
        for other in (0..n).filter(|&other| other != row) {
            for col in 0..n {
                let square = Square::new(other, col);
                if self.domains[other] >> col & 1 == 1 && Piece::Queen.attacks(n, queen, square) {
                    self.domains[other] &= !(1 << col);
                    removed.push(square);
                }
            }
        }
        if removed.is_empty() {
            return Flow::Continue(());
        }
        let squares = counted(removed.len() as u64, "square");
        let text = format!("The queen on {queen} removes {squares} from the other rows.");
        self.step(trace, Kind::Infer, text, removed)
    }

    /// Decides a row with a single column. Returns whether there was one.
    fn decide_single_row(&mut self, trace: &mut Trace<'_>) -> Consistent {
        let is_single =
            |row: &usize| self.decided[*row].is_none() && self.domains[*row].is_power_of_two();
        let Some(row) = (0..self.domains.len()).find(is_single) else {
            return Consistent::Continue(false);
        };
        let col = self.domains[row].trailing_zeros() as usize;
        self.decide(row, col);
        let text =
            format!("Row {} has one column left, column {}: a queen goes there.", row + 1, col + 1);
        self.step(trace, Kind::Infer, text, vec![Square::new(row, col)])?;
        Consistent::Continue(true)
    }

    /// Decides a column that is in one domain only. Returns whether there was one, or `Some(false)`
    /// if a column is in no domain.
    fn decide_single_column(&mut self, trace: &mut Trace<'_>) -> ControlFlow<(), Option<bool>> {
        let n = self.domains.len();
        for col in 0..n {
            let mut rows = (0..n).filter(|&row| self.domains[row] >> col & 1 == 1);
            match (rows.next(), rows.next()) {
                (None, _) => {
                    let text = format!("Column {} is left in no row: a dead end.", col + 1);
                    let marked = (0..n).map(|row| Square::new(row, col)).collect();
                    self.step(trace, Kind::Fail, text, marked)?;
                    return ControlFlow::Continue(Some(false));
                }
                (Some(row), None) if self.decided[row].is_none() => {
                    self.decide(row, col);
                    let text = format!(
                        "Column {} is left in row {} only: a queen goes there.",
                        col + 1,
                        row + 1
                    );
                    self.step(trace, Kind::Infer, text, vec![Square::new(row, col)])?;
                    return ControlFlow::Continue(Some(true));
                }
                _ => {}
            }
        }
        ControlFlow::Continue(None)
    }
}
