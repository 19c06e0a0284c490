//! The output of solutions: formats, colours, checks.

use std::io::{self, IsTerminal};
use std::ops::ControlFlow;

use serde::Serialize;

use super::stream::Stream;
use super::{Exit, Failure};
use crate::board::{Piece, Placement, PlacementError};
use crate::render::Drawing;

/// The options of the output format.
#[derive(Clone, Copy, Debug, clap::Args)]
pub(super) struct OutputArgs {
    /// The output format: text (the column of each row), digits, board, ascii, variables, pairs,
    /// fen, csv, json, svg or png (default: text).
    #[arg(long, value_name = "FORMAT", value_parser = format, conflicts_with_all = ["board", "json"])]
    format: Option<Format>,
    /// Draw boards, in the style unicode or ascii (default: unicode).
    #[arg(
        long,
        value_name = "STYLE",
        value_parser = board,
        num_args = 0..=1,
        default_missing_value = "unicode",
        conflicts_with = "json"
    )]
    board: Option<Drawing>,
    /// Print JSON: one object, or one per line for a list.
    #[arg(long)]
    json: bool,
}

/// An output format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    /// JSON: one object, or one per line.
    Json,
    /// Any other format.
    Drawn(Drawing),
}

fn format(text: &str) -> Result<Format, String> {
    let drawn = || text.parse().map(Format::Drawn);
    let wrong = |_| format!("invalid format '{text}'; choose json, {}", Drawing::names());
    if text == "json" { Ok(Format::Json) } else { drawn().map_err(wrong) }
}

fn board(text: &str) -> Result<Drawing, String> {
    match text {
        "unicode" => Ok(Drawing::Board),
        "ascii" => Ok(Drawing::Ascii),
        _ => Err(format!("invalid board style '{text}'; choose unicode or ascii")),
    }
}

impl OutputArgs {
    /// Returns the format for these boards; `several` if there may be more than one.
    ///
    /// # Errors
    /// The boards cannot be printed in this format.
    pub(super) fn format(self, piece: Piece, n: usize, several: bool) -> Result<Format, Failure> {
        let drawn =
            self.board.map(Format::Drawn).or(self.format).unwrap_or(Format::Drawn(Drawing::Text));
        let format = if self.json { Format::Json } else { drawn };
        if let Format::Drawn(drawing) = format {
            drawing.fits(piece, n).map_err(Failure::usage)?;
            if several && !drawing.streams() {
                return Err(Failure::usage(format!(
                    "{drawing} holds only one board; choose another format, or use nqueens solve"
                )));
            }
            if drawing == Drawing::Png && io::stdout().is_terminal() {
                return Err(Failure::usage(
                    "a PNG cannot be shown on a terminal; redirect it to a file: > board.png",
                ));
            }
        }
        Ok(format)
    }
}

/// Returns whether output may be coloured: on a terminal that supports it, unless NO_COLOR is set.
pub(super) fn coloured() -> bool {
    let set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
    io::stdout().is_terminal() && !set("NO_COLOR") && !dumb
}

/// Returns the failure of a solution that the checker has rejected, which means a bug.
pub(super) fn refused(method: &str, error: &PlacementError) -> Failure {
    let message =
        format!("internal error: {method} returned a wrong solution: {error}; please report this");
    Failure { exit: Exit::CheckFailed, message }
}

/// Returns the column of each row for JSON, counted from 1; null for a row without a piece.
pub(super) fn from_one(placement: &Placement) -> Vec<Option<usize>> {
    placement.columns().map(|col| col.map(|col| col + 1)).collect()
}

/// Writes `placement` to the stream in the format `drawing`.
pub(super) fn draw(
    stream: &mut Stream,
    drawing: Drawing,
    placement: &Placement,
) -> ControlFlow<()> {
    stream.write(|out| drawing.write(placement, coloured(), out))
}

/// Writes one JSON object and a line feed to the stream.
pub(super) fn object(stream: &mut Stream, value: &impl Serialize) -> ControlFlow<()> {
    stream.write(|out| {
        serde_json::to_writer(&mut *out, value)?;
        io::Write::write_all(out, b"\n")
    })
}
