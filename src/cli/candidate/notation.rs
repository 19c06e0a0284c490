//! The formats in which the program writes solutions, read back.

use serde_json::Value;

use crate::board::Square;

/// The largest number of pieces of one solution: that of the largest board of `solve`.
pub(crate) const MAX_PIECES: usize = 10_000_000;

/// The pieces of a solution that is not checked yet: several may stand in one row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Candidate {
    /// The line where it begins, counted from 1.
    pub(crate) line: u64,
    pub(crate) n: usize,
    /// The squares of the pieces in row order, each once.
    pub(crate) squares: Vec<Square>,
}

impl Candidate {
    /// Creates a candidate of squares in any order.
    pub(super) fn new(n: usize, mut squares: Vec<Square>) -> Self {
        squares.sort_unstable();
        squares.dedup();
        Self { line: 1, n, squares }
    }

    /// Returns a piece that is not on the board, if there is one.
    pub(crate) fn off_board(&self) -> Option<Square> {
        self.squares.iter().copied().find(|square| square.row.max(square.col) >= self.n)
    }

    /// Returns the 0-based column in each row, if no row has two pieces.
    pub(crate) fn columns(&self) -> Option<Vec<Option<usize>>> {
        let mut columns = vec![None; self.n];
        for square in &self.squares {
            let place = columns.get_mut(square.row)?;
            if place.replace(square.col).is_some() {
                return None;
            }
        }
        Some(columns)
    }
}

/// Returns a candidate of columns, counted from 1, one for each row.
fn of_columns(columns: &[Option<usize>]) -> Result<Candidate, String> {
    if columns.len() > MAX_PIECES {
        return Err(too_many());
    }
    let mut squares = Vec::with_capacity(columns.len());
    for (row, column) in columns.iter().enumerate() {
        if let Some(column) = column {
            let col = column.checked_sub(1).ok_or("columns are counted from 1, not from 0")?;
            squares.push(Square::new(row, col));
        }
    }
    Ok(Candidate::new(columns.len(), squares))
}

fn too_many() -> String {
    format!("it has more than {MAX_PIECES} rows or pieces, the limit of this command")
}

/// The content of a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Line {
    /// A blank line, which ends a diagram.
    Blank,
    /// The names of the columns of a CSV table, or the summary of a JSON list.
    NoSolution,
    /// Whole solutions.
    Whole(Vec<Candidate>),
    /// The row of a diagram: its length, and the 0-based columns of its pieces.
    Row(usize, Vec<usize>),
}

/// Reads a line in any of the formats.
///
/// # Errors
/// Returns a message that says what is wrong.
pub(super) fn read_line(line: &str) -> Result<Line, String> {
    let line = line.trim().trim_start_matches('\u{feff}');
    let one = |found: Candidate| Line::Whole(vec![found]);
    let is_diagram = |c: char| "♛♕♜♖·".contains(c);
    if line.is_empty() {
        Ok(Line::Blank)
    } else if line.starts_with(['{', '[']) {
        json(line)
    } else if line.starts_with('(') {
        pairs(line).map(one)
    } else if line.starts_with("row1") {
        Ok(Line::NoSolution)
    } else if line.starts_with('x') && line.contains('=') {
        variables(line).map(one)
    } else if line.contains('/') {
        position(line).map(one)
    } else if line.contains(is_diagram) {
        diagram(line, is_diagram, "·")
    } else if line.split_whitespace().all(|word| matches!(word, "X" | "0")) {
        diagram(line, |c| "X0".contains(c), "0")
    } else if is_picture(line) {
        diagram(line, |c| "Q.x".contains(c), ".x")
    } else if line.starts_with("letting") || line.starts_with("language ESSENCE") {
        Err("it is a problem of CSPLib, which has no solution; nqueens solve --board FILE finds one, \
             and nqueens show --board FILE draws the board"
            .into())
    } else if line.contains(',') {
        let words: Vec<&str> = line.split(',').map(str::trim).collect();
        words_of_columns(&words, "").map(one)
    } else {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            [word] if word.chars().count() > 1 => digits(word).map(one),
            _ => words_of_columns(&words, "-").map(one),
        }
    }
}

fn words_of_columns(words: &[&str], none: &str) -> Result<Candidate, String> {
    let column = |word: &&str| match *word {
        word if word == none || word == "-" => Ok(None),
        word => word.parse().map(Some).map_err(|_| {
            format!("'{}' is not a column; columns are whole numbers from 1", shown(word))
        }),
    };
    of_columns(&words.iter().map(column).collect::<Result<Vec<_>, _>>()?)
}

/// Returns a word for a message: its first letters, without control characters.
fn shown(word: &str) -> String {
    const MOST: usize = 40;
    let mut shown: String = word.chars().take(MOST).filter(|c| !c.is_control()).collect();
    if word.chars().nth(MOST).is_some() {
        shown.push('…');
    }
    shown
}

fn digits(word: &str) -> Result<Candidate, String> {
    let column = |c: char| match c {
        '-' => Ok(None),
        _ => c.to_digit(36).map(|digit| Some(digit as usize)).ok_or_else(|| {
            format!(
                "'{}' is not a solution: '{}' is not a digit",
                shown(word),
                shown(&c.to_string())
            )
        }),
    };
    of_columns(&word.chars().map(column).collect::<Result<Vec<_>, _>>()?)
}

/// Returns whether this is a row of a picture of `Q`, `.` and `x`, as `--board` reads it.
fn is_picture(line: &str) -> bool {
    line.contains(['Q', '.']) && line.chars().all(|c| c.is_whitespace() || "Q.x".contains(c))
}

/// Reads a row of squares, of which those in `empty` have no piece.
fn diagram(line: &str, is_square: impl Fn(char) -> bool, empty: &str) -> Result<Line, String> {
    let mut columns = Vec::new();
    let mut width = 0;
    for c in line.chars().filter(|c| !c.is_whitespace()) {
        if !is_square(c) {
            return Err(format!("'{}' is not a square of a diagram", shown(&c.to_string())));
        }
        if !empty.contains(c) {
            columns.push(width);
        }
        width += 1;
    }
    Ok(Line::Row(width, columns))
}

/// Reads `((1 2) (2 4))`; the board is as large as its pieces need.
fn pairs(line: &str) -> Result<Candidate, String> {
    let wrong = || "a list of pairs looks like ((1 2) (2 4) (3 1) (4 3))".to_owned();
    let inner = line.strip_prefix('(').and_then(|rest| rest.strip_suffix(')')).ok_or_else(wrong)?;
    if !inner.trim_end().ends_with(')') && !inner.trim().is_empty() {
        return Err(wrong());
    }
    let mut squares = Vec::new();
    for pair in inner.split(')').map(str::trim).filter(|pair| !pair.is_empty()) {
        let numbers: Option<Vec<usize>> =
            pair.strip_prefix('(').and_then(|pair| pair.split_whitespace().map(from_one).collect());
        let Some([row, col]) = numbers.as_deref() else { return Err(wrong()) };
        squares.push(Square::new(*row, *col));
    }
    of_squares(squares)
}

fn from_one(word: &str) -> Option<usize> {
    word.parse::<usize>().ok()?.checked_sub(1)
}

/// Returns the candidate on the smallest board that has a row for each piece and all squares.
fn of_squares(squares: Vec<Square>) -> Result<Candidate, String> {
    let side = squares.iter().map(|square| square.row.max(square.col)).max();
    let side = side.map_or(0, |last| last.saturating_add(1)).max(squares.len());
    if side > MAX_PIECES { Err(too_many()) } else { Ok(Candidate::new(side, squares)) }
}

/// Reads `x1,1=0 x1,2=1 …`.
fn variables(line: &str) -> Result<Candidate, String> {
    let (mut n, mut squares) = (0, Vec::new());
    for word in line.split_whitespace() {
        let wrong = || format!("'{}' is not a variable such as x1,2=1", shown(word));
        let (name, value) =
            word.strip_prefix('x').and_then(|word| word.split_once('=')).ok_or_else(wrong)?;
        let square: Square = name.parse().map_err(|_| wrong())?;
        n = n.max(square.row.max(square.col).saturating_add(1));
        match value {
            "0" => {}
            "1" => squares.push(square),
            _ => return Err(wrong()),
        }
    }
    if n > MAX_PIECES { Err(too_many()) } else { Ok(Candidate::new(n, squares)) }
}

/// Reads the ranks of a FEN, of a board of any size.
fn position(line: &str) -> Result<Candidate, String> {
    let ranks = line.split_whitespace().next().unwrap_or("");
    let n = ranks.split('/').count();
    let mut squares = Vec::new();
    for (row, rank) in ranks.split('/').enumerate() {
        let wrong = |what: &str| format!("rank {} of the FEN {what}", row + 1);
        let (mut col, mut empty) = (0usize, 0usize);
        for c in rank.chars() {
            match (c, c.to_digit(10)) {
                (_, Some(digit)) => {
                    empty = empty.saturating_mul(10).saturating_add(digit as usize);
                }
                ('Q' | 'q' | 'R' | 'r', _) => {
                    col = col.saturating_add(empty);
                    squares.push(Square::new(row, col));
                    (col, empty) = (col.saturating_add(1), 0);
                }
                _ => return Err(wrong("has another letter than Q and R")),
            }
        }
        if col.saturating_add(empty) != n {
            return Err(wrong(&format!("does not have {n} squares")));
        }
    }
    Ok(Candidate::new(n, squares))
}

/// Reads the output of `--json`, or an array of columns.
fn json(line: &str) -> Result<Line, String> {
    let value: Value =
        serde_json::from_str(line).map_err(|error| format!("it is not JSON: {error}"))?;
    if value.is_array() {
        return columns_of_json(&value, None).map(|found| Line::Whole(vec![found]));
    }
    let n = value.get("n").and_then(Value::as_u64).and_then(|n| usize::try_from(n).ok());
    if let Some(all) = value.get("solutions").and_then(Value::as_array) {
        let all = all.iter().map(|columns| columns_of_json(columns, n));
        return Ok(Line::Whole(all.collect::<Result<_, _>>()?));
    }
    match ["solution", "best"].iter().find_map(|key| value.get(key).filter(|v| !v.is_null())) {
        Some(columns) => Ok(Line::Whole(vec![columns_of_json(columns, n)?])),
        None if value.is_object() => Ok(Line::NoSolution),
        None => Err("the JSON value is not a solution".into()),
    }
}

fn columns_of_json(value: &Value, n: Option<usize>) -> Result<Candidate, String> {
    let wrong = || "a solution in JSON is an array of columns, such as [2,4,1,3]".to_owned();
    let column = |value: &Value| match value {
        Value::Null => Ok(None),
        value => {
            let column = value.as_u64().and_then(|column| usize::try_from(column).ok());
            column.map(Some).ok_or_else(wrong)
        }
    };
    let columns: Vec<_> =
        value.as_array().ok_or_else(wrong)?.iter().map(column).collect::<Result<_, _>>()?;
    match n {
        Some(n) if n != columns.len() => {
            Err(format!("the solution has {} rows, and n is {n}", columns.len()))
        }
        _ => of_columns(&columns),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::board::{Piece, Placement, Problem};
    use crate::render::Drawing;

    fn whole(line: &str) -> Candidate {
        match read_line(line) {
            Ok(Line::Whole(mut all)) if all.len() == 1 => all.remove(0),
            other => panic!("{line}: {other:?}"),
        }
    }

    #[test]
    fn every_line_format_of_the_program_is_read_back() {
        let columns = [0, 4, 7, 5, 2, 6, 1, 3];
        let problem = Problem::empty(Piece::Queen, 8);
        let solution = Placement::check_solution(&problem, &columns).expect("a solution");
        let mut some = columns.map(Some).to_vec();
        (some[2], some[6]) = (None, None);
        let partial = Placement::check(&problem, &some).expect("a placement");
        for drawing in Drawing::ALL {
            if matches!(drawing, Drawing::Board | Drawing::Ascii | Drawing::Svg | Drawing::Png) {
                continue;
            }
            for placement in [&solution, &partial] {
                let mut out = Vec::new();
                drawing.write(placement, false, &mut out).expect("memory can be written");
                let found = whole(std::str::from_utf8(&out).expect("text"));
                let expected: Vec<Square> = placement.squares().collect();
                assert_eq!((found.n, found.squares), (8, expected), "{drawing}");
            }
        }
        assert_eq!(whole("{\"solution\":[2,4,1,3]}"), whole("2413"));
        assert_eq!(whole("{\"n\":4,\"solution\":null,\"best\":[2,4,null,3]}"), whole("2 4 - 3"));
        assert_eq!(whole("[2, 4, 1, 3]"), whole("2,4,1,3"));
        assert_eq!(
            read_line("{\"n\":6,\"solutions\":\"4\",\"complete\":true}"),
            Ok(Line::NoSolution)
        );
    }

    #[test]
    fn hostile_lines_are_an_error_of_one_line() {
        for line in [
            "1 2 x",
            "2 0 1",
            "{\"solution\":[[[",
            "{\"n\":9,\"solution\":[1]}",
            "[1,-2]",
            "3",
            "((1 2)",
            "((1 2 3))",
            "((99999999999999999999 1))",
            "((9999999999 1))",
            "x1,1=2",
            "x1,18446744073709551615=1",
            "8/8",
            "99999999999999999999Q/2",
            "K1/2",
            "· ♛ z",
            "1 99999999999999999999",
            "24é3",
        ] {
            if line == "3" {
                // The piece is off the board, as the checker says later.
                assert_eq!(whole(line).squares, [Square::new(0, 2)]);
                continue;
            }
            let error = read_line(line).expect_err(line);
            assert_eq!(error.lines().count(), 1, "{line}: {error}");
        }
    }
}
