//! How answers are printed: formats, colours, checks.

use std::io::{self, IsTerminal};
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;

use super::report::{duration, grouped};
use super::stream::Stream;
use super::{Exit, Failure};
use crate::board::{Piece, Placement, PlacementError};
use crate::render::Drawing;

/// How answers are to be printed.
#[derive(Clone, Copy, Debug, clap::Args)]
pub(super) struct Shape {
    /// text (columns by row), digits, board, ascii, variables, pairs, fen, csv, json, svg or png.
    #[arg(long, value_name = "FORMAT", value_parser = format, conflicts_with_all = ["board", "json"])]
    format: Option<Format>,
    /// Draw boards: unicode, or ascii.
    #[arg(
        long,
        value_name = "STYLE",
        value_parser = board,
        num_args = 0..=1,
        default_missing_value = "unicode",
        conflicts_with = "json"
    )]
    board: Option<Drawing>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// A format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    /// One object, or one a line.
    Json,
    /// Anything else.
    Drawn(Drawing),
}

fn format(text: &str) -> Result<Format, String> {
    let drawn = || text.parse().map(Format::Drawn);
    let wrong = |_| format!("'{text}' is not a format; choose json, {}", Drawing::names());
    if text == "json" { Ok(Format::Json) } else { drawn().map_err(wrong) }
}

fn board(text: &str) -> Result<Drawing, String> {
    match text {
        "unicode" => Ok(Drawing::Board),
        "ascii" => Ok(Drawing::Ascii),
        _ => Err(format!("'{text}' is not a style of boards; choose unicode or ascii")),
    }
}

impl Shape {
    /// The format for these boards; `several` if there may be more than one of them.
    ///
    /// # Errors
    /// They cannot be printed like that.
    pub(super) fn format(self, piece: Piece, n: usize, several: bool) -> Result<Format, Failure> {
        let drawn =
            self.board.map(Format::Drawn).or(self.format).unwrap_or(Format::Drawn(Drawing::Text));
        let format = if self.json { Format::Json } else { drawn };
        if let Format::Drawn(drawing) = format {
            drawing.fits(piece, n).map_err(Failure::usage)?;
            if several && !drawing.streams() {
                return Err(Failure::usage(format!(
                    "{drawing} is for one board, not for a list of them; choose svg, or nqueens solve"
                )));
            }
            if drawing == Drawing::Png && io::stdout().is_terminal() {
                return Err(Failure::usage(
                    "a PNG is not for the terminal; redirect it to a file: > board.png",
                ));
            }
        }
        Ok(format)
    }
}

/// Whether diagrams may be coloured: on a terminal that can, unless NO_COLOR says otherwise.
pub(super) fn coloured() -> bool {
    let set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
    io::stdout().is_terminal() && !set("NO_COLOR") && !dumb
}

/// What is printed of an answer that the checker has refused: nothing but this. It means a mistake in the program.
pub(super) fn refused(method: &str, error: &PlacementError) -> Failure {
    let message = format!("{method} gave an answer that is none: {error}; please report it");
    Failure { exit: Exit::CheckFailed, message }
}

/// Columns by row, from 1, as JSON has them; null for a row without a piece.
pub(super) fn from_one(placement: &Placement) -> Vec<Option<usize>> {
    placement.columns().map(|col| col.map(|col| col + 1)).collect()
}

/// Draws `placement` into the stream, as `drawing` says.
pub(super) fn draw(
    stream: &mut Stream,
    drawing: Drawing,
    placement: &Placement,
) -> ControlFlow<()> {
    stream.write(|out| drawing.write(placement, coloured(), out))
}

/// Writes one JSON object and a line feed into the stream.
pub(super) fn object(stream: &mut Stream, value: &impl Serialize) -> ControlFlow<()> {
    stream.write(|out| {
        serde_json::to_writer(&mut *out, value)?;
        io::Write::write_all(out, b"\n")
    })
}

/// What runs tell while they run: how much they have tried, on stderr if that is a terminal.
#[derive(Debug)]
pub(super) struct Ticker {
    bar: ProgressBar,
    unit: &'static str,
    began: Instant,
    shown: Instant,
}

impl Ticker {
    /// Begins to tell how many `unit`s are tried, unless it is to be `quiet`.
    pub(super) fn begin(unit: &'static str, quiet: bool) -> Self {
        let style = ProgressStyle::with_template("{spinner} {msg}").expect("the template is right");
        let bar = if quiet {
            ProgressBar::hidden()
        } else {
            ProgressBar::new_spinner().with_style(style)
        };
        Self { bar, unit, began: Instant::now(), shown: Instant::now() }
    }

    /// Tells it, ten times a second at most.
    pub(super) fn tell(&mut self, tried: u64, more: impl FnOnce() -> String) {
        if self.shown.elapsed() < Duration::from_millis(100) {
            return;
        }
        self.shown = Instant::now();
        let Self { bar, unit, began, .. } = self;
        bar.set_message(format!(
            "{} {unit} tried{}, {}",
            grouped(tried.into()),
            more(),
            duration(began.elapsed())
        ));
        bar.tick();
    }

    /// Since the beginning.
    pub(super) fn elapsed(&self) -> Duration {
        self.began.elapsed()
    }
}

impl Drop for Ticker {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
