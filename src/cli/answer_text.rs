//! The answer of a solver as it is shown on a terminal: what was asked and answered, what is
//! proved, by which method, the time, and what to do next.

use std::io::{self, IsTerminal as _, Write as _};
use std::ops::ControlFlow;
use std::time::Duration;

use super::solution_output::{Format, draw};
use super::stream::Stream;
use crate::board::{Placement, Problem};
use crate::render::Drawing;
use crate::report::{counted, duration};

/// An answer for a reader, with a title and one line for each fact.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct AnswerText {
    title: String,
    rows: Vec<(&'static str, String)>,
}

/// Returns whether answers in this format are shown in full: on a terminal, as text or as a drawn
/// board. Elsewhere, stdout gets the solution alone.
pub(super) fn is_for_terminal(format: Format, quiet: bool) -> bool {
    let legible = matches!(
        format,
        Format::Drawn(Drawing::Text | Drawing::Digits | Drawing::Board | Drawing::Ascii)
    );
    legible && !quiet && io::stdout().is_terminal()
}

/// Returns the name of a board: "8 queens", "8 queens, 2 placed, 1 square blocked".
pub(super) fn board_name(problem: &Problem) -> String {
    let mut name = counted(problem.n() as u128, problem.piece().noun());
    if !problem.placed().is_empty() {
        name += &format!(", {} placed", problem.placed().len());
    }
    if !problem.blocked().is_empty() {
        name += &format!(", {} blocked", counted(problem.blocked().len() as u128, "square"));
    }
    name
}

/// Formats the time of an answer. Many take less than a millisecond.
fn elapsed(time: Duration) -> String {
    if time < Duration::from_micros(500) { "less than 0.001 s".into() } else { duration(time) }
}

impl AnswerText {
    pub(super) const fn new(title: String) -> Self {
        Self { title, rows: Vec::new() }
    }

    /// Adds a line.
    pub(super) fn row(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.rows.push((name, value.into()));
        self
    }

    /// Adds the line with the time.
    pub(super) fn time(self, time: Duration) -> Self {
        self.row("time", elapsed(time))
    }

    /// Writes the title, the placement in the format `drawing`, and the lines.
    pub(super) fn write(
        &self,
        stream: &mut Stream,
        drawing: Drawing,
        placement: Option<&Placement>,
    ) -> ControlFlow<()> {
        stream.write(|out| writeln!(out, "{}", self.title))?;
        if let Some(placement) = placement {
            if matches!(drawing, Drawing::Text | Drawing::Digits) {
                stream.write(|out| write!(out, "  {:<19} ", "solution"))?;
            }
            draw(stream, drawing, placement)?;
        }
        self.write_rows(stream)
    }

    /// Writes the title and the lines.
    pub(super) fn write_alone(&self, stream: &mut Stream) -> ControlFlow<()> {
        stream.write(|out| writeln!(out, "{}", self.title))?;
        self.write_rows(stream)
    }

    fn write_rows(&self, stream: &mut Stream) -> ControlFlow<()> {
        stream.write(|out| {
            self.rows.iter().try_for_each(|(name, value)| writeln!(out, "  {name:<19} {value}"))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::board::{Piece, Square};

    #[test]
    fn a_board_is_named_with_its_decided_squares() {
        assert_eq!(board_name(&Problem::empty(Piece::Queen, 1)), "1 queen");
        assert_eq!(board_name(&Problem::empty(Piece::Toroidal, 1250)), "1 250 toroidal queens");
        let (placed, blocked) = (vec![Square::new(0, 1)], vec![Square::new(3, 3)]);
        let problem = Problem::new(Piece::Rook, 8, placed, blocked).expect("on the board");
        assert_eq!(board_name(&problem), "8 rooks, 1 placed, 1 square blocked");
    }

    #[test]
    fn only_boards_and_lists_of_columns_are_shown_in_full_and_never_in_a_pipe() {
        // The output of a test is captured or a pipe; a terminal is tried in tests/cli.
        assert!(!is_for_terminal(Format::Json, false));
        assert!(!is_for_terminal(Format::Drawn(Drawing::Csv), false));
        assert!(!is_for_terminal(Format::Drawn(Drawing::Text), true));
    }
}
