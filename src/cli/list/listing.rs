//! The output of `nqueens list`.

use std::io::Write as _;
use std::ops::ControlFlow;
use std::time::Duration;

use serde::Serialize;

use super::super::answer_text::{AnswerText, board_name, is_for_terminal};
use super::super::interrupt::Interrupt;
use super::super::solution_output::{Format, draw, from_one, object, refused};
use super::super::solve::conflict_reason;
use super::super::stream::Stream;
use super::super::{Exit, Failure, note};
use super::Args;
use crate::board::{Placement, Problem};
use crate::render::MAX_SHEET;
use crate::report::{counted, duration, grouped};
use crate::solver::Unproven;
use crate::symmetry::Group;

/// A line of the output of `--json`: a solution.
#[derive(Debug, Serialize)]
struct Line {
    solution: Vec<Option<usize>>,
}

/// The last line of the output of `--json`.
#[derive(Debug, Serialize)]
struct Summary {
    n: usize,
    piece: &'static str,
    method: &'static str,
    /// The number of solutions found. With `--fundamental`, fewer are listed.
    solutions: String,
    listed: String,
    /// True if the list is complete.
    complete: bool,
    tried: String,
    tried_unit: &'static str,
    elapsed_s: f64,
}

/// The end of a run, and its statistics.
#[derive(Debug)]
pub(super) struct Run {
    pub(super) method: &'static str,
    /// True if the search was completed.
    pub(super) complete: bool,
    /// The reason why it was not, if neither a limit nor the reader nor the user ended it.
    pub(super) unproven: Option<Unproven>,
    pub(super) tried: u64,
    pub(super) unit: &'static str,
    pub(super) elapsed: Duration,
}

/// The output: prints each solution when it is found, and stores none.
pub(super) struct Listing<'a> {
    problem: &'a Problem,
    format: Format,
    /// The symmetries, if only one solution of each orbit is listed.
    orbits: Option<Group>,
    limit: Option<usize>,
    pub(super) quiet: bool,
    /// The listed solutions that are drawn, if there is a picture.
    pub(super) drawn: Vec<Placement>,
    draws: bool,
    stream: Stream,
    interrupt: Interrupt,
    pub(super) found: u64,
    pub(super) listed: usize,
    refused: Option<Failure>,
}

impl<'a> Listing<'a> {
    pub(super) fn begin(problem: &'a Problem, format: Format, args: &Args) -> Self {
        Self {
            problem,
            format,
            orbits: args.fundamental.then(|| Group::of(problem)),
            limit: args.limit,
            quiet: args.quiet,
            drawn: Vec::new(),
            draws: args.pictures.given().is_some(),
            stream: Stream::begin(),
            interrupt: Interrupt::listen(),
            found: 0,
            listed: 0,
            refused: None,
        }
    }

    /// Flushes the output if that is due, and returns whether to search on.
    pub(super) fn keep_going(&mut self) -> ControlFlow<()> {
        self.stream.flush_if_due()?;
        if self.interrupt.is_raised() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    /// Checks a solution of `method`, the 0-based column of the piece in each row, and prints it.
    pub(super) fn take(&mut self, method: &str, columns: &[usize]) -> ControlFlow<()> {
        let placement = match Placement::check_solution(self.problem, columns) {
            Ok(placement) => placement,
            Err(error) => {
                self.refused = Some(refused(method, &error));
                return ControlFlow::Break(());
            }
        };
        self.found += 1;
        if self.orbits.is_none_or(|orbits| orbits.is_least(columns)) {
            self.print(&placement)?;
            self.listed += 1;
            if self.draws && self.drawn.len() < MAX_SHEET {
                self.drawn.push(placement);
            }
            if Some(self.listed) == self.limit {
                return ControlFlow::Break(());
            }
        }
        self.keep_going()
    }

    fn print(&mut self, placement: &Placement) -> ControlFlow<()> {
        let drawing = match self.format {
            Format::Json => {
                return object(&mut self.stream, &Line { solution: from_one(placement) });
            }
            Format::Drawn(drawing) => drawing,
        };
        let before = match drawing.header(placement.n()) {
            Some(header) if self.listed == 0 => header + "\n",
            _ if self.listed > 0 => drawing.separator().into(),
            _ => String::new(),
        };
        self.stream.write(|out| out.write_all(before.as_bytes()))?;
        draw(&mut self.stream, drawing, placement)
    }

    /// Returns the title of the picture: "8 queens: 92 solutions, 12 fundamental".
    pub(super) fn sheet_title(&self) -> String {
        let found = counted(self.found.into(), "solution");
        let mut title = format!("{}: {found}{}", board_name(self.problem), self.fundamental());
        if self.listed > self.drawn.len() {
            title += &format!(", the first {}", self.drawn.len());
        }
        title
    }

    /// Returns the number of fundamental solutions in words, if only these are listed.
    fn fundamental(&self) -> String {
        match self.orbits {
            Some(_) => format!(", {} fundamental", grouped(self.listed as u128)),
            None => String::new(),
        }
    }

    /// Returns the lines about the list for a terminal.
    fn text(&self, run: &Run) -> AnswerText {
        let found = counted(self.found.into(), "solution");
        let proved = match (&run.unproven, run.complete) {
            (Some(unproven), _) => format!("these are solutions, perhaps not all: {unproven}"),
            (None, true) if self.found == 0 => {
                format!("no solution exists{}", conflict_reason(self.problem))
            }
            (None, true) => "these are all solutions".to_owned(),
            (None, false) => "these are solutions; there may be more".to_owned(),
        };
        let fundamental = self.fundamental();
        let tried = grouped(run.tried.into());
        let next = match self.orbits {
            Some(_) => "--draw draws the boards, --svg FILE writes a picture of them",
            None => {
                "--draw draws the boards, --fundamental omits images, --svg FILE writes a picture"
            }
        };
        AnswerText::new(format!("{}: {found}{fundamental}", board_name(self.problem)))
            .row("proved", proved)
            .row("method", format!("{}, {tried} {} tried", run.method, run.unit))
            .time(run.elapsed)
            .row("next", next)
    }

    /// Prints the last line, and returns the exit code.
    pub(super) fn end(mut self, run: &Run) -> Result<Exit, Failure> {
        if let Some(refused) = self.refused {
            return Err(refused);
        }
        if self.format == Format::Json {
            let _ = object(
                &mut self.stream,
                &Summary {
                    n: self.problem.n(),
                    piece: self.problem.piece().name(),
                    method: run.method,
                    solutions: self.found.to_string(),
                    listed: self.listed.to_string(),
                    complete: run.complete,
                    tried: run.tried.to_string(),
                    tried_unit: run.unit,
                    elapsed_s: run.elapsed.as_secs_f64(),
                },
            );
        }
        let text = is_for_terminal(self.format, self.quiet) && !self.interrupt.is_raised();
        if text {
            let _ = self.text(run).write_alone(&mut self.stream);
        }
        let fundamental = self.fundamental();
        let read_to_the_end = self.stream.finish()?;
        let summary = format!(
            "{}: {} {} tried, {} valid{fundamental}, {}",
            run.method,
            grouped(run.tried.into()),
            run.unit,
            grouped(self.found.into()),
            duration(run.elapsed)
        );
        if !run.complete && self.interrupt.is_raised() {
            let message = format!("interrupted; {summary}");
            return Err(Failure::new(Exit::Interrupted, message));
        }
        if text {
            return Ok(match run.complete {
                _ if run.unproven.is_some() => Exit::Unproven,
                true if self.found == 0 => Exit::NoSolution,
                _ => Exit::Done,
            });
        }
        if let Some(unproven) = &run.unproven {
            let message = format!("the list may not be complete: {unproven}; {summary}");
            return Err(Failure::new(Exit::Unproven, message));
        }
        if run.complete && self.found == 0 {
            let message = format!("no solution exists{}; {summary}", conflict_reason(self.problem));
            return Err(Failure::new(Exit::NoSolution, message));
        }
        if !self.quiet && read_to_the_end {
            note(&if run.complete {
                summary
            } else {
                format!("{summary}; there may be more solutions")
            });
        }
        Ok(Exit::Done)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::board::Piece;
    use crate::render::Drawing;

    #[test]
    fn a_wrong_answer_ends_the_list_with_its_own_exit_code() {
        let problem = Problem::empty(Piece::Queen, 4);
        let mut listing = Listing {
            problem: &problem,
            format: Format::Drawn(Drawing::Text),
            orbits: None,
            limit: None,
            quiet: true,
            drawn: Vec::new(),
            draws: false,
            stream: Stream::begin(),
            interrupt: Interrupt::listen(),
            found: 0,
            listed: 0,
            refused: None,
        };
        assert!(listing.take("faulty", &[0, 1, 2, 3]).is_break());
        assert_eq!((listing.found, listing.listed), (0, 0));
        let run = Run {
            method: "faulty",
            complete: true,
            unproven: None,
            tried: 1,
            unit: "nodes",
            elapsed: Duration::ZERO,
        };
        let failure = listing.end(&run).expect_err("two queens on a diagonal");
        assert_eq!(failure.exit, Exit::CheckFailed);
        assert!(
            failure.message.contains("faulty") && failure.message.contains("1,1 and 2,2"),
            "{failure:?}"
        );
    }
}
