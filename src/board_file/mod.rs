//! Boards in the formats of other programs: [`parse`] recognises the format by the content.
//!
//! | format | squares |
//! |---|---|
//! | the JSON of `nqueens count` and `nqueens solve` | `placed`, `blocked`; `solution` with null for an open row |
//! | FEN, the placement field; also of boards larger or smaller than 8 | queens |
//! | CSPLib prob080 (blocked queens): `letting blocks = [[1, 3], …]` | blocked, from 1 |
//! | CSPLib prob079 (completion): `letting init = [[0, 3], …]` | queens, from 0 |
//! | CSPLib prob079 (excluded diagonals): `diags = [[3, 0], …]` | all squares of a diagonal are blocked |
//! | a picture: lines of `Q`, `.` and `x`, with or without spaces | queens and blocked squares |
//!
//! I. P. Gent, C. Jefferson and P. Nightingale, *Complexity of n-Queens Completion*, Journal of
//! Artificial Intelligence Research 59 (2017), 815–848; <https://www.csplib.org/Problems/prob079>.

mod csplib;

use std::collections::BTreeMap;

use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::board::{Piece, Square};

/// The largest board that is read.
pub const MOST_ROWS: usize = 10_000_000;

/// A board that was read. Its squares may lie off the board or contradict each other, which
/// [`crate::board::Problem::new`] checks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BoardFile {
    /// The number of rows and columns.
    pub n: usize,
    /// The piece, if the format names it.
    pub piece: Option<Piece>,
    /// Squares that hold a piece.
    pub placed: Vec<Square>,
    /// Squares that must stay empty.
    pub blocked: Vec<Square>,
}

/// The reason why a text is not a board, in one line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct BoardFileError(String);

impl BoardFileError {
    fn new(why: impl Into<String>) -> Self {
        Self(why.into())
    }
}

/// Reads a board. Time and memory are proportional to the length of the text, and to n for each
/// excluded diagonal.
///
/// # Errors
/// The text is in none of the formats, or it contradicts itself.
pub fn parse(text: &str) -> Result<BoardFile, BoardFileError> {
    let text = text.trim_start_matches('\u{feff}').trim();
    let board = if text.starts_with('{') {
        json(text)
    } else if text.contains('=') || text.starts_with("letting") || text.starts_with("language") {
        csplib::parse(text)
    } else if text.split_whitespace().next().is_some_and(is_fen) {
        fen(text)
    } else {
        picture(text)
    }?;
    checked_size(board.n).map(|_| board)
}

fn checked_size(n: usize) -> Result<usize, BoardFileError> {
    let too_large = || format!("a board of n = {n} is too large; the limit is {MOST_ROWS}");
    if n <= MOST_ROWS { Ok(n) } else { Err(BoardFileError::new(too_large())) }
}

/// The fields of a board.
#[derive(Deserialize)]
struct Json {
    n: Option<usize>,
    piece: Option<String>,
    #[serde(default)]
    placed: Vec<[usize; 2]>,
    #[serde(default)]
    blocked: Vec<[usize; 2]>,
    solution: Option<Vec<Option<usize>>>,
    /// The other fields of the reports of `count` and `solve`. Any further field is a mistake: with
    /// a mistyped name a different board would be counted.
    #[serde(flatten)]
    others: BTreeMap<String, IgnoredAny>,
}

/// The fields of reports that say nothing about the board.
const OF_REPORTS: [&str; 23] = [
    "best",
    "classes",
    "conflict",
    "cuts",
    "devices",
    "doubt",
    "elapsed_s",
    "kernel",
    "method",
    "nodes",
    "proven",
    "published",
    "rate_per_s",
    "resumed_units",
    "seed",
    "solutions",
    "solver",
    "threads",
    "tried",
    "tried_unit",
    "units",
    "verified",
    "weight",
];

fn json(text: &str) -> Result<BoardFile, BoardFileError> {
    let wrong = |why: String| {
        BoardFileError::new(format!(
            "invalid JSON of a board: {why}; use the fields n, piece, placed, blocked or solution"
        ))
    };
    let read: Json = serde_json::from_str(text).map_err(|error| wrong(error.to_string()))?;
    if let Some(name) = read.others.keys().find(|name| !OF_REPORTS.contains(&name.as_str())) {
        return Err(wrong(format!("unknown field '{name}'")));
    }
    let rows = read.solution.as_ref().map(Vec::len);
    let n = read.n.or(rows).ok_or_else(|| wrong("there is no n".into()))?;
    if let Some(rows) = rows.filter(|&rows| rows != n) {
        return Err(wrong(format!("the solution has {rows} rows, not n = {n}")));
    }
    let piece = read.piece.map(|name| name.parse::<Piece>()).transpose();
    let piece = piece.map_err(|error| wrong(error.to_string()))?;
    let solution = read.solution.unwrap_or_default();
    let queens = (1..).zip(solution).filter_map(|(row, col)| Some([row, col?]));
    let placed: Vec<[usize; 2]> = read.placed.into_iter().chain(queens).collect();
    let (placed, blocked) = (from_one(&placed)?, from_one(&read.blocked)?);
    Ok(BoardFile { n, piece, placed, blocked })
}

/// Returns squares that are counted from 1.
fn from_one(pairs: &[[usize; 2]]) -> Result<Vec<Square>, BoardFileError> {
    let square = |&[row, col]: &[usize; 2]| {
        let square = row.checked_sub(1).zip(col.checked_sub(1));
        square.map(|(row, col)| Square::new(row, col)).ok_or_else(|| {
            BoardFileError::new(format!(
                "square {row},{col} is off the board; rows and columns are counted from 1"
            ))
        })
    };
    pairs.iter().map(square).collect()
}

/// Returns whether a word may be the placement field of a FEN.
fn is_fen(word: &str) -> bool {
    word.bytes().any(|byte| matches!(byte, b'/' | b'0'..=b'9'))
        && word.bytes().all(|byte| byte == b'/' || byte.is_ascii_alphanumeric())
}

fn fen(text: &str) -> Result<BoardFile, BoardFileError> {
    let wrong = |why: String| BoardFileError::new(format!("invalid FEN: {why}"));
    let ranks: Vec<&str> = text.split_whitespace().next().unwrap_or("").split('/').collect();
    let n = ranks.len();
    let mut placed = Vec::new();
    for (row, rank) in ranks.iter().enumerate() {
        let mut col = 0usize;
        let mut rest = *rank;
        while let Some(letter) = rest.chars().next() {
            let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
            if digits > 0 {
                let empty = rest[..digits].parse().unwrap_or(usize::MAX);
                col = col.saturating_add(empty);
                rest = &rest[digits..];
                continue;
            }
            if !matches!(letter, 'Q' | 'q') {
                return Err(wrong(format!(
                    "'{letter}' in rank {} is not a queen; write Q, and numbers of empty squares",
                    row + 1
                )));
            }
            placed.push(Square::new(row, col));
            col = col.saturating_add(1);
            rest = &rest[letter.len_utf8()..];
        }
        if col != n {
            return Err(wrong(format!(
                "there are {n} ranks, so that each must have {n} squares; rank {} has {col}",
                row + 1
            )));
        }
    }
    Ok(BoardFile { n, placed, ..BoardFile::default() })
}

/// Reads lines of squares. `♛` and `·` are those of `nqueens solve --draw`.
fn picture(text: &str) -> Result<BoardFile, BoardFileError> {
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let n = lines.len();
    let mut board = BoardFile { n, ..BoardFile::default() };
    for (row, line) in lines.iter().enumerate() {
        let mut cols = 0;
        for (col, letter) in line.chars().filter(|letter| !letter.is_whitespace()).enumerate() {
            let square = Square::new(row, col);
            match letter {
                'Q' | '♛' => board.placed.push(square),
                'x' => board.blocked.push(square),
                '.' | '·' => {}
                _ => {
                    return Err(BoardFileError::new(format!(
                        "no board was recognised: line {} has the character {letter:?}; use JSON, a FEN, a file of CSPLib's prob079 or prob080, or lines of Q, . and x",
                        row + 1
                    )));
                }
            }
            cols = col + 1;
        }
        if cols != n {
            return Err(BoardFileError::new(format!(
                "there are {n} lines, so that each must have {n} squares; line {} has {cols}",
                row + 1
            )));
        }
    }
    if n == 0 {
        return Err(BoardFileError::new("there is no board in an empty text"));
    }
    Ok(board)
}

#[cfg(test)]
mod tests;
