//! The output of solutions: formats, colours, checks.

use std::ffi::OsString;
use std::fmt;
use std::io::{self, IsTerminal};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use clap::builder::TypedValueParser as _;
use serde::Serialize;

use super::stream::Stream;
use super::{Exit, Failure};
use crate::board::{Piece, Placement, PlacementError};
use crate::render::Drawing;

/// The options of the output format.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct OutputArgs {
    /// The output format: text (the column of each row), digits, board, ascii, variables, pairs,
    /// fen, csv, json, svg or png (default: text).
    #[arg(long, value_name = "FORMAT", value_parser = format, conflicts_with_all = ["draw", "json"])]
    format: Option<Format>,
    /// Draw boards, in the style unicode or ascii (default: unicode).
    #[arg(
        long,
        value_name = "STYLE",
        value_parser = style,
        num_args = 0..=1,
        default_missing_value = "unicode",
        conflicts_with = "json"
    )]
    draw: Option<Drawing>,
    /// Read the board from FILE, or from stdin if that is -: JSON of count or solve, a FEN, a file
    /// of CSPLib's problems 079 or 080, or lines of Q, . and x (blocked). --place and --block add
    /// to it.
    #[arg(
        long,
        value_name = "FILE",
        value_parser = clap::builder::OsStringValueParser::new().map(BoardFlag::new),
        num_args = 0..=1,
        default_missing_value = "unicode"
    )]
    board: Option<BoardFlag>,
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

fn style(text: &str) -> Result<Drawing, String> {
    match text {
        "unicode" => Ok(Drawing::Board),
        "ascii" => Ok(Drawing::Ascii),
        _ => Err(format!("invalid board style '{text}'; choose unicode or ascii")),
    }
}

/// Returns whether this value of `--board` is a style: until version 0.9 that flag was `--draw`.
pub(super) fn is_style(text: &str) -> bool {
    style(text).is_ok()
}

/// The value of `--board`.
#[derive(Clone, Debug)]
enum BoardFlag {
    /// Draws in this style.
    Style(Drawing),
    /// Names the file of the board.
    File(PathBuf),
}

impl BoardFlag {
    fn new(value: OsString) -> Self {
        let drawing = value.to_str().and_then(|text| style(text).ok());
        drawing.map_or_else(|| Self::File(value.into()), Self::Style)
    }
}

impl OutputArgs {
    /// Returns the file with the board.
    pub(super) fn file(&self) -> Option<&Path> {
        match &self.board {
            Some(BoardFlag::File(path)) => Some(path),
            _ => None,
        }
    }

    /// Returns the format for these boards; `several` if there may be more than one.
    ///
    /// # Errors
    /// The boards cannot be printed in this format.
    pub(super) fn format(&self, piece: Piece, n: usize, several: bool) -> Result<Format, Failure> {
        let styled = match self.board {
            Some(BoardFlag::Style(style)) => Some(style),
            _ => None,
        };
        if styled.is_some() && (self.json || self.format.is_some() || self.draw.is_some()) {
            return Err(Failure::usage(
                "the argument '--board [STYLE]' cannot be used with --format, --draw or --json",
            ));
        }
        let drawn = self.draw.or(styled).map(Format::Drawn);
        let drawn = drawn.or(self.format).unwrap_or(Format::Drawn(Drawing::Text));
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
    Failure::new(Exit::CheckFailed, message)
}

/// Returns the failure of a certificate that the checker has rejected, which means a bug.
pub(super) fn invalid_certificate(why: &dyn fmt::Display) -> Failure {
    let message = format!("internal error: the certificate is invalid: {why}; please report this");
    Failure::new(Exit::CheckFailed, message)
}

/// Returns the column of each row for JSON, counted from 1; null for a row without a piece.
pub(super) fn from_one(placement: &Placement) -> Vec<Option<usize>> {
    placement.columns().map(|col| col.map(|col| col + 1)).collect()
}

/// Returns the column of each row for JSON, counted from 1.
pub(super) fn columns_from_one(columns: &[usize]) -> Vec<usize> {
    columns.iter().map(|column| column + 1).collect()
}

/// Returns numbers with spaces between them.
pub(super) fn spaced(numbers: &[impl ToString]) -> String {
    numbers.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
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
