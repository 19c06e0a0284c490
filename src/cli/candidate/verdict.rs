//! The check of a solution that a user gives, with all reasons why it is not one.

use serde::Serialize;

use super::Candidate;
use crate::board::{Piece, Placement, PlacementError, Problem, Square};
use crate::cli::args::square_from_one;
use crate::report::plural;

/// The number of rows and of columns that a message names.
const MOST_NAMED: usize = 10;

/// The result of the check: what is wrong, if anything is.
#[derive(Debug)]
pub(crate) struct Verdict {
    piece: Piece,
    n: usize,
    pieces: usize,
    /// A placement, if no two pieces attack each other and all conditions hold.
    placement: Option<Placement>,
    error: Option<PlacementError>,
    empty_rows: Vec<usize>,
    empty_columns: Vec<usize>,
}

/// A verdict in JSON. Rows and columns are counted from 1.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    pub(crate) n: usize,
    pub(crate) piece: &'static str,
    pub(crate) valid: bool,
    pub(crate) pieces: usize,
    /// Two pieces that attack each other.
    pub(crate) attack: Option<[[usize; 2]; 2]>,
    pub(crate) empty_rows: Vec<usize>,
    pub(crate) empty_columns: Vec<usize>,
    /// The verdict in words.
    pub(crate) verdict: String,
}

impl Verdict {
    /// Checks a candidate for a problem of the same size.
    pub(crate) fn of(candidate: &Candidate, problem: &Problem) -> Self {
        let n = candidate.n;
        let (mut rows, mut columns) = (vec![false; n], vec![false; n]);
        for Square { row, col } in &candidate.squares {
            for (lines, line) in [(&mut rows, row), (&mut columns, col)] {
                if let Some(line) = lines.get_mut(*line) {
                    *line = true;
                }
            }
        }
        let empty = |lines: &[bool]| {
            let empty = lines.iter().zip(1..).filter(|(has, _)| !**has);
            empty.map(|(_, number)| number).collect::<Vec<usize>>()
        };
        let checked = match candidate.columns() {
            Some(columns) => Placement::check(problem, &columns),
            None => Err(without_columns(candidate)),
        };
        let (placement, error) = match checked {
            Ok(placement) => (Some(placement), None),
            Err(error) => (None, Some(error)),
        };
        Self {
            piece: problem.piece(),
            n,
            pieces: candidate.squares.len(),
            placement,
            error,
            empty_rows: empty(&rows),
            empty_columns: empty(&columns),
        }
    }

    /// Returns the checked solution, or `None` if it is not valid.
    pub(crate) fn solution(&self) -> Option<&Placement> {
        self.placement.as_ref().filter(|placement| placement.is_solution())
    }

    /// Returns the checked placement, which may leave rows empty.
    pub(crate) const fn placement(&self) -> Option<&Placement> {
        self.placement.as_ref()
    }

    /// Returns the verdict in words, on one line.
    pub(crate) fn words(&self) -> String {
        let piece = self.piece.noun();
        let pieces = plural(self.n as u128, piece);
        if self.solution().is_some() {
            return format!("valid: {} {pieces}, no two attack each other", self.n);
        }
        let mut words = Vec::new();
        words.extend(self.error.as_ref().map(ToString::to_string));
        words.push(format!("{} of {} {pieces}", self.pieces, self.n));
        for (line, numbers) in [("row", &self.empty_rows), ("column", &self.empty_columns)] {
            if !numbers.is_empty() {
                words.push(format!("no {piece} in {}", named(line, numbers)));
            }
        }
        format!("not valid: {}", words.join("; "))
    }

    /// Returns the verdict for JSON.
    pub(crate) fn report(&self) -> Report {
        let attack = match self.error {
            Some(PlacementError::Attack(a, b)) => Some([a, b].map(square_from_one)),
            _ => None,
        };
        Report {
            n: self.n,
            piece: self.piece.name(),
            valid: self.solution().is_some(),
            pieces: self.pieces,
            attack,
            empty_rows: self.empty_rows.clone(),
            empty_columns: self.empty_columns.clone(),
            verdict: self.words(),
        }
    }
}

/// Returns the error of a candidate with two pieces in a row, or one below the last row.
fn without_columns(candidate: &Candidate) -> PlacementError {
    let pair = candidate.squares.windows(2).find(|pair| pair[0].row == pair[1].row);
    match (candidate.off_board(), pair) {
        (None, Some(pair)) => PlacementError::Attack(pair[0], pair[1]),
        (Some(off), _) => PlacementError::OffBoard(off),
        (None, None) => PlacementError::Rows { found: candidate.squares.len(), n: candidate.n },
    }
}

/// Returns the first numbers in words: "rows 1, 3 and 2 more".
fn named(line: &str, numbers: &[usize]) -> String {
    let first: Vec<String> = numbers.iter().take(MOST_NAMED).map(usize::to_string).collect();
    let more = match numbers.len().saturating_sub(MOST_NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("{} {}{more}", plural(numbers.len() as u128, line), first.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::board::is_solution;

    fn words(n: usize, squares: &[(usize, usize)]) -> String {
        let squares = squares.iter().map(|&(row, col)| Square::new(row - 1, col - 1)).collect();
        let candidate = Candidate { line: 1, n, squares };
        Verdict::of(&candidate, &Problem::empty(Piece::Queen, n)).words()
    }

    #[test]
    fn a_verdict_names_the_attack_and_the_empty_lines() {
        assert_eq!(
            words(4, &[(1, 2), (2, 4), (3, 1), (4, 3)]),
            "valid: 4 queens, no two attack each other"
        );
        assert_eq!(
            words(4, &[(1, 1), (2, 2), (3, 4), (4, 2)]),
            "not valid: the pieces on 1,1 and 2,2 attack each other; 4 of 4 queens; no queen in column 3"
        );
        assert_eq!(
            words(4, &[(1, 2), (3, 1)]),
            "not valid: 2 of 4 queens; no queen in rows 2, 4; no queen in columns 3, 4"
        );
        assert!(words(2, &[(1, 1), (1, 2)]).contains("1,1 and 1,2 attack each other"));
        assert!(words(2, &[(1, 1), (2, 3)]).contains("2,3 is off the board"));
        assert!(words(2, &[(1, 1), (3, 1)]).contains("3,1 is off the board"));
        assert!(words(30, &[(1, 1)]).contains("rows 2, 3, 4, 5, 6, 7, 8, 9, 10, 11 and 19 more"));
    }

    #[test]
    fn a_solution_is_valid_exactly_if_it_is_one_by_the_plain_definition() {
        for piece in Piece::ALL {
            for code in 0..256usize {
                let columns = [code / 64 % 4, code / 16 % 4, code / 4 % 4, code % 4];
                let squares = (0..4).map(|row| Square::new(row, columns[row])).collect();
                let verdict =
                    Verdict::of(&Candidate { line: 1, n: 4, squares }, &Problem::empty(piece, 4));
                assert_eq!(verdict.solution().is_some(), is_solution(piece, &columns));
                assert_eq!(verdict.report().valid, is_solution(piece, &columns));
            }
        }
    }
}
