//! A square and its notation: `row,col`, 1-based, row 1 on top; or, up to column 26, the letter of
//! the column and the row.

use std::fmt;
use std::str::FromStr;

/// A square of the board, 0-based. Its notation is 1-based: the square in the top left corner is
/// `1,1` or `a1`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Square {
    /// Row, 0-based from the top.
    pub row: usize,
    /// Column, 0-based from the left.
    pub col: usize,
}

/// The error for a text that names no square.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SquareError(String);

impl fmt::Display for SquareError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "'{}' is not a square; write row,col counted from 1, for example 2,4, or d2",
            self.0
        )
    }
}

impl std::error::Error for SquareError {}

impl Square {
    /// Creates the square in `row` and `col`, both 0-based.
    pub const fn new(row: usize, col: usize) -> Self {
        Self { row, col }
    }

    /// Returns the mirror image on the board of size `n`, with left and right exchanged.
    #[must_use]
    pub const fn mirrored(self, n: usize) -> Self {
        Self { row: self.row, col: n - 1 - self.col }
    }
}

impl fmt::Display for Square {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{},{}", self.row.saturating_add(1), self.col.saturating_add(1))
    }
}

impl FromStr for Square {
    type Err = SquareError;

    fn from_str(text: &str) -> Result<Self, SquareError> {
        let from_one =
            |part: &str| -> Option<usize> { part.trim().parse::<usize>().ok()?.checked_sub(1) };
        let by_letter = || {
            let letter = text.bytes().next().filter(u8::is_ascii_alphabetic)?;
            let digits = text[1..].bytes().all(|byte| byte.is_ascii_digit());
            let col = usize::from(letter.to_ascii_lowercase() - b'a');
            Some(Self::new(from_one(&text[1..]).filter(|_| digits)?, col))
        };
        match text.split_once(',') {
            Some((row, col)) => from_one(row).zip(from_one(col)).map(|(r, c)| Self::new(r, c)),
            None => by_letter(),
        }
        .ok_or_else(|| SquareError(text.to_owned()))
    }
}

/// Parses squares separated by white space: `"2,4 4,5"`, `"d2 e4"`. Between squares with letters,
/// commas are also valid: `"d2,e4"`.
///
/// # Errors
/// Returns an error for the first word that is not a square, or if there are no words.
pub fn parse_squares(text: &str) -> Result<Vec<Square>, SquareError> {
    let has_letter = |part: &str| part.starts_with(|first: char| first.is_ascii_alphabetic());
    let mut squares = Vec::new();
    for word in text.split_whitespace() {
        if word.split(',').all(has_letter) {
            let parts = word.split(',').map(str::parse);
            squares.extend(parts.collect::<Result<Vec<Square>, _>>()?);
        } else {
            squares.push(word.parse()?);
        }
    }
    if squares.is_empty() { Err(SquareError(text.to_owned())) } else { Ok(squares) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn squares_are_numbered_from_one_in_text() {
        let square: Square = "2,4".parse().expect("a square");
        assert_eq!(square, Square::new(1, 3));
        assert_eq!(square.to_string(), "2,4");
        assert_eq!(parse_squares(" 2,4  4,5 "), Ok(vec![Square::new(1, 3), Square::new(3, 4)]));
    }

    #[test]
    fn a_letter_names_the_column_and_the_number_the_row_from_the_top() {
        for row in 0..30 {
            for col in 0..26 {
                let square = Square::new(row, col);
                let letter = char::from(b'a' + col as u8);
                assert_eq!(format!("{letter}{}", row + 1).parse(), Ok(square));
                let letter = letter.to_ascii_uppercase();
                assert_eq!(format!("{letter}{}", row + 1).parse(), Ok(square));
                assert_eq!(square.to_string().parse(), Ok(square));
            }
        }
        for text in ["d2 4,5", "d2 e4", "d2,e4"] {
            assert_eq!(
                parse_squares(text),
                Ok(vec![Square::new(1, 3), Square::new(3, 4)]),
                "{text}"
            );
        }
        for text in ["d2,", ",d2", "d2,4", "d2,,e4", "d2,e0"] {
            assert!(parse_squares(text).is_err(), "{text}");
        }
    }

    #[test]
    fn invalid_squares_are_refused() {
        for text in [
            "",
            "2",
            "0,1",
            "1,0",
            "a,b",
            "-1,2",
            "1,2,3",
            "1.5,2",
            "99999999999999999999,1",
            "a",
            "a0",
            "aa1",
            "a-1",
            "a+1",
            "a 1",
            "4e",
            "é4",
            "e4,",
            "a99999999999999999999",
        ] {
            assert!(parse_squares(text).is_err(), "{text:?}");
        }
    }
}
