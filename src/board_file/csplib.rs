//! The parameter files of CSPLib's problems 079 and 080.

use super::{BoardFile, BoardFileError, checked_size, from_one};
use crate::board::Square;

/// The largest number of squares on excluded diagonals.
const MOST_SQUARES: usize = 10_000_000;

/// Reads assignments: `letting n = 8` or `n = 8`, and lists of pairs. `$` begins a comment.
pub(super) fn parse(text: &str) -> Result<BoardFile, BoardFileError> {
    let lines = text.lines().map(|line| line.split('$').next().unwrap_or(""));
    let text = lines.collect::<Vec<_>>().join("\n");
    let mut parser = Parser { rest: &text };
    let mut n = None;
    let mut board = BoardFile::default();
    let mut diagonals = Vec::new();
    while let Some(name) = parser.name()? {
        match name {
            "n" => n = Some(checked_size(parser.number()?)?),
            "numdiags" => drop(parser.number()?),
            "blocks" => board.blocked = from_one(&parser.pairs()?)?,
            "init" => {
                let queens = parser.pairs()?.into_iter();
                board.placed = queens.map(|[row, col]| Square::new(row, col)).collect();
            }
            "diags" => diagonals = parser.pairs()?,
            other => {
                return Err(wrong(&format!(
                    "the name '{other}' is not known; the names are n, blocks, init, diags and numdiags"
                )));
            }
        }
    }
    board.n = n.ok_or_else(|| wrong("there is no n"))?;
    exclude(&mut board, diagonals)?;
    Ok(board)
}

fn wrong(why: &str) -> BoardFileError {
    BoardFileError::new(format!("invalid CSPLib file: {why}"))
}

/// Blocks the squares of diagonals. The diagonal `[d, 1]` has row + column = d, and `[d, 0]` has
/// row − column = d − (n − 1), both counted from 0.
fn exclude(board: &mut BoardFile, mut diagonals: Vec<[usize; 2]>) -> Result<(), BoardFileError> {
    let n = board.n;
    diagonals.sort_unstable();
    diagonals.dedup();
    for [line, kind] in diagonals {
        if line + 1 >= 2 * n || kind > 1 {
            return Err(wrong(&format!(
                "[{line}, {kind}] is not a diagonal; the first number goes from 0 to {}, the second is 0 or 1",
                (2 * n).saturating_sub(2)
            )));
        }
        // With columns counted from the right, a difference is a sum.
        let rows = line.saturating_sub(n - 1)..=line.min(n - 1);
        if board.blocked.len() + n > MOST_SQUARES {
            return Err(wrong(&format!("the diagonals have more than {MOST_SQUARES} squares")));
        }
        board.blocked.extend(rows.map(|row| {
            let from_one_side = line - row;
            Square::new(row, if kind == 1 { from_one_side } else { n - 1 - from_one_side })
        }));
    }
    Ok(())
}

struct Parser<'a> {
    rest: &'a str,
}

impl<'a> Parser<'a> {
    fn skip_space(&mut self) {
        self.rest = self.rest.trim_start();
    }

    /// Takes the characters that `is_part` accepts.
    fn take(&mut self, is_part: impl Fn(char) -> bool) -> &'a str {
        self.skip_space();
        let end = self.rest.find(|letter| !is_part(letter)).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest;
        word
    }

    fn takes(&mut self, sign: char) -> bool {
        self.skip_space();
        let rest = self.rest.strip_prefix(sign);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    fn expect(&mut self, sign: char) -> Result<(), BoardFileError> {
        if self.takes(sign) { Ok(()) } else { Err(self.unexpected(&format!("'{sign}'"))) }
    }

    fn unexpected(&self, wanted: &str) -> BoardFileError {
        let found: String = self.rest.trim_start().chars().take(12).collect();
        let found = if found.is_empty() { "the end".into() } else { format!("{found:?}") };
        wrong(&format!("{wanted} is expected, not {found}"))
    }

    /// Reads `letting NAME =` or `NAME =`; `None` at the end.
    fn name(&mut self) -> Result<Option<&'a str>, BoardFileError> {
        self.skip_space();
        if let Some(rest) = self.rest.strip_prefix("language") {
            self.rest = rest.split_once('\n').map_or("", |(_, rest)| rest);
            return self.name_after_language();
        }
        self.name_after_language()
    }

    fn name_after_language(&mut self) -> Result<Option<&'a str>, BoardFileError> {
        self.skip_space();
        if self.rest.is_empty() {
            return Ok(None);
        }
        let is_letter = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
        let mut name = self.take(is_letter);
        if name == "letting" {
            name = self.take(is_letter);
        }
        if name.is_empty() {
            return Err(self.unexpected("a name such as n or blocks"));
        }
        self.expect('=')?;
        Ok(Some(name))
    }

    fn number(&mut self) -> Result<usize, BoardFileError> {
        let digits = self.take(|letter| letter.is_ascii_digit());
        if digits.is_empty() {
            return Err(self.unexpected("a whole number"));
        }
        digits.parse().map_err(|_| wrong("a number is too large"))
    }

    /// Reads `[[1, 3], [2, 4]]`.
    fn pairs(&mut self) -> Result<Vec<[usize; 2]>, BoardFileError> {
        let mut pairs = Vec::new();
        self.expect('[')?;
        while !self.takes(']') {
            if !pairs.is_empty() {
                self.expect(',')?;
                // Some files of CSPLib end their list with a comma.
                if self.takes(']') {
                    break;
                }
            }
            self.expect('[')?;
            let first = self.number()?;
            self.expect(',')?;
            pairs.push([first, self.number()?]);
            self.expect(']')?;
        }
        Ok(pairs)
    }
}
