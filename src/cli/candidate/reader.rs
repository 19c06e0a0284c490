//! Reading solutions from a stream, one at a time.

use std::collections::VecDeque;
use std::io::{BufRead, ErrorKind, Read as _};

use super::notation::{Candidate, Line, MAX_PIECES, read_line};
use crate::board::Square;
use crate::cli::{Exit, Failure};

/// The largest line in bytes: a solution of the largest board as text has fewer.
const LARGEST_LINE: u64 = 128 << 20;

/// Solutions in any of the formats, read line by line. At most one line and one solution are in
/// memory (with `beautiful --all --json`: the solutions of one line).
#[derive(Debug)]
pub(crate) struct Reader<R> {
    input: R,
    line: u64,
    ready: VecDeque<Candidate>,
    diagram: Option<Diagram>,
}

/// The rows of a diagram that were read.
#[derive(Debug)]
struct Diagram {
    line: u64,
    width: usize,
    rows: usize,
    squares: Vec<Square>,
}

impl<R: BufRead> Reader<R> {
    pub(crate) const fn new(input: R) -> Self {
        Self { input, line: 0, ready: VecDeque::new(), diagram: None }
    }

    /// Returns the next solution, or `None` at the end.
    ///
    /// # Errors
    /// The input cannot be read (exit code 7), or is no solution (exit code 2).
    pub(crate) fn next_candidate(&mut self) -> Result<Option<Candidate>, Failure> {
        loop {
            if let Some(found) = self.ready.pop_front() {
                return Ok(Some(found));
            }
            let Some(text) = self.next_line()? else {
                self.end_of_diagram()?;
                return Ok(None);
            };
            let read = read_line(&text).map_err(|error| self.wrong(&error))?;
            if !matches!(read, Line::Row(..)) {
                self.end_of_diagram()?;
            }
            match read {
                Line::Blank | Line::NoSolution => {}
                Line::Whole(all) => {
                    let line = self.line;
                    self.ready.extend(all.into_iter().map(|found| Candidate { line, ..found }));
                }
                Line::Row(width, columns) => self.row(width, &columns)?,
            }
        }
    }

    /// Adds a row to the diagram, which ends with as many rows as the first one has squares.
    fn row(&mut self, width: usize, columns: &[usize]) -> Result<(), Failure> {
        let line = self.line;
        let begun = || Diagram { line, width, rows: 0, squares: Vec::new() };
        let diagram = self.diagram.get_or_insert_with(begun);
        let (expected, row) = (diagram.width, diagram.rows);
        if width != expected || diagram.squares.len() + columns.len() > MAX_PIECES {
            return Err(
                self.wrong(&format!("the row of the diagram has {width} squares, not {expected}"))
            );
        }
        diagram.squares.extend(columns.iter().map(|&col| Square::new(row, col)));
        diagram.rows += 1;
        if diagram.rows == expected
            && let Some(Diagram { line, width, squares, .. }) = self.diagram.take()
        {
            self.ready.push_back(Candidate { line, ..Candidate::new(width, squares) });
        }
        Ok(())
    }

    /// Checks that no diagram is incomplete.
    fn end_of_diagram(&self) -> Result<(), Failure> {
        match &self.diagram {
            Some(Diagram { line, width, rows, .. }) => Err(Failure::usage(format!(
                "line {line}: the diagram has {rows} rows of {width} squares; a board is square"
            ))),
            None => Ok(()),
        }
    }

    fn next_line(&mut self) -> Result<Option<String>, Failure> {
        let mut bytes = Vec::new();
        let read = (&mut self.input).take(LARGEST_LINE + 1).read_until(b'\n', &mut bytes);
        self.line += 1;
        match read {
            Ok(0) => Ok(None),
            Ok(_) if bytes.len() as u64 > LARGEST_LINE => {
                Err(self.wrong(&format!("it is longer than {LARGEST_LINE} bytes, the limit")))
            }
            Ok(_) => {
                String::from_utf8(bytes).map(Some).map_err(|_| self.wrong("it is not UTF-8 text"))
            }
            Err(error) if error.kind() == ErrorKind::IsADirectory => {
                Err(Failure::new(Exit::File, "the input is a directory"))
            }
            Err(error) => {
                Err(Failure::new(Exit::File, format!("the input cannot be read: {error}")))
            }
        }
    }

    fn wrong(&self, what: &str) -> Failure {
        Failure::usage(format!("line {} is not a solution: {what}", self.line))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(text: &str) -> Result<Vec<Candidate>, Failure> {
        let mut reader = Reader::new(text.as_bytes());
        let mut all = Vec::new();
        while let Some(found) = reader.next_candidate()? {
            all.push(found);
        }
        Ok(all)
    }

    #[test]
    fn diagrams_are_read_with_and_without_empty_lines_between_them() {
        let board = "· ♛ · ·\n· · · ♛\n♛ · · ·\n· · ♛ ·\n";
        let ascii = "0 0 X 0\nX 0 0 0\n0 0 0 X\n0 X 0 0\n";
        let lists = [format!("{board}\n{ascii}"), format!("{board}{ascii}")];
        for (list, second) in lists.iter().zip([6, 5]) {
            let found = all(list).expect("two boards");
            assert_eq!(found.iter().map(|c| c.line).collect::<Vec<_>>(), [1, second]);
            let columns: Vec<_> = found.iter().filter_map(Candidate::columns).collect();
            assert_eq!(columns[0], [1, 3, 0, 2].map(Some));
            assert_eq!(columns[1], [2, 0, 3, 1].map(Some));
        }
        let picture = all(".Q..\n...Q\nQ.x.\n..Q.\n").expect("a board");
        assert_eq!(picture, all(". Q . .\n. . . Q\nQ . x .\n. . Q .\n").expect("a board"));
        assert_eq!(picture[0].columns(), Some([1, 3, 0, 2].map(Some).to_vec()));
        for text in ["· ♛ · ·\n· · · ♛\n", "0 X\n0\n", "0 X\n\n2 4 1 3\n", ".Q\nQ\n"] {
            assert_eq!(all(text).expect_err(text).exit, Exit::Usage);
        }
    }

    #[test]
    fn errors_name_the_line_and_empty_input_has_no_solution() {
        assert_eq!(all("").map(|all| all.len()), Ok(0));
        assert_eq!(all("\n\nrow1,row2\n").map(|all| all.len()), Ok(0));
        let error = all("letting n = 4\nletting blocks = [[1,1]]\n").expect_err("a problem");
        assert!(error.message.contains("nqueens solve --board"), "{error:?}");
        let error = all("2413\n3142\nqueens!\n").expect_err("no solution");
        assert!(error.exit == Exit::Usage && error.message.contains("line 3"), "{error:?}");
        let mut reader = Reader::new(&b"\xff\xfe\n"[..]);
        assert_eq!(reader.next_candidate().expect_err("no text").exit, Exit::Usage);
    }
}
