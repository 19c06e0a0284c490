//! The output of an optimum: the solution or its absence, and whether that is proven.

use std::ops::ControlFlow;
use std::time::Duration;

use serde::Serialize;

use super::answer_text::{AnswerText, is_for_terminal};
use super::cuts::CutsFound;
use super::solution_output::{Format, columns_from_one, object, refused, spaced};
use super::stream::Stream;
use super::terminal::Terminal;
use super::{Exit, Failure};
use crate::board::{Placement, Problem};
use crate::render::Drawing;
use crate::report::counted;
use crate::solver::{Answer, Verdict};

/// The output of `--json` for one board.
#[derive(Debug, Default, Serialize)]
pub(super) struct Report {
    pub(super) n: usize,
    /// The squares of the placed queens; rows and columns are counted from 1.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) placed: Vec<[usize; 2]>,
    /// The squares that must stay empty; rows and columns are counted from 1.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) blocked: Vec<[usize; 2]>,
    pub(super) method: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) solver: Option<&'static str>,
    /// The column of each row, counted from 1.
    pub(super) solution: Option<Vec<usize>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) fingerprint: Option<Vec<u64>>,
    pub(super) proven: bool,
    /// The reason why it is not proven.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) doubt: Option<String>,
    pub(super) nodes: String,
    pub(super) programmes: u64,
    /// The cuts that were added, if they were requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) cuts: Option<CutsFound>,
    /// The cost of a square.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) norm: Option<String>,
    /// True if only doubly symmetric solutions were considered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) symmetric: Option<bool>,
    /// The number of optimal solutions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) optimal_placements: Option<String>,
    /// All optimal solutions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) solutions: Option<Vec<Vec<usize>>>,
    /// The path of the certificate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) certificate: Option<String>,
    pub(super) elapsed_s: f64,
}

impl Report {
    pub(super) fn new(
        n: usize,
        method: &'static str,
        solver: Option<&'static str>,
        answer: &Answer<Vec<usize>>,
        elapsed: Duration,
    ) -> Self {
        let doubt = match &answer.verdict {
            Verdict::Proven => None,
            Verdict::NotProven(doubt) => Some(doubt.to_string()),
        };
        Self {
            n,
            method,
            solver,
            solution: answer.found.as_deref().map(columns_from_one),
            proven: doubt.is_none(),
            doubt,
            nodes: answer.nodes.to_string(),
            programmes: answer.lps_solved,
            elapsed_s: elapsed.as_secs_f64(),
            ..Self::default()
        }
    }

    /// Prints the answer, drawn by `draw`, and returns the exit code. On a terminal `text` gives
    /// the lines about the answer.
    pub(super) fn finish_by(
        &self,
        found: Option<&Placement>,
        format: Format,
        terminal: &Terminal,
        text: Option<&AnswerText>,
        draw: impl FnOnce(&mut Stream, Drawing, &Placement) -> ControlFlow<()>,
    ) -> Result<Exit, Failure> {
        let mut stream = Stream::begin();
        let _ = match (format, found) {
            (Format::Json, _) => object(&mut stream, self),
            (Format::Drawn(drawing), _) if let Some(text) = text => {
                text.write(&mut stream, drawing, found)
            }
            (Format::Drawn(drawing), Some(placement)) => draw(&mut stream, drawing, placement),
            (Format::Drawn(_), None) => ControlFlow::Continue(()),
        };
        stream.finish()?;
        match self.ending(terminal) {
            Ok(exit) => Ok(exit),
            Err(failure) if text.is_some() => Ok(failure.exit),
            Err(failure) => Err(failure),
        }
    }

    /// Returns the lines about the answer if stdout is a terminal: `title` says what was sought,
    /// and `next` what can be done with the answer.
    pub(super) fn text(
        &self,
        title: &str,
        format: Format,
        quiet: bool,
        next: String,
    ) -> Option<AnswerText> {
        if !is_for_terminal(format, quiet) {
            return None;
        }
        let none = if self.proven { "none exists" } else { "not found" };
        let title = match self.solution {
            Some(_) => title.to_owned(),
            None => format!("{title}: {none}"),
        };
        let proved = match (&self.doubt, self.norm.is_some(), self.solution.is_some()) {
            (Some(doubt), ..) => format!("nothing: {doubt}"),
            (None, _, false) => "no solution exists".to_owned(),
            (None, true, true) => "no solution has a smaller fingerprint".to_owned(),
            (None, false, true) => "no solution comes before it".to_owned(),
        };
        let mut text = AnswerText::new(title);
        if let Some(fingerprint) = &self.fingerprint {
            text = text.row("fingerprint", spaced(fingerprint));
        }
        text = text
            .row("proved", proved)
            .row("method", format!("{}, {}", self.method, self.work()))
            .time(Duration::from_secs_f64(self.elapsed_s));
        Some(if self.solution.is_some() { text.row("next", next) } else { text })
    }

    /// Returns the work of the method: the solver, nodes, programs and cuts.
    pub(super) fn work(&self) -> String {
        let nodes = counted(self.nodes.parse().unwrap_or(0), "node");
        let programs = match self.programmes {
            0 => String::new(),
            programs => format!(", {} solved", counted(programs.into(), "program")),
        };
        let cuts = self.cuts.map_or(String::new(), |cuts| format!(", cuts: {}", cuts.words()));
        format!("{nodes}{programs}{cuts}")
    }

    /// Returns the exit code, with a message unless the answer is a proven solution.
    fn ending(&self, terminal: &Terminal) -> Result<Exit, Failure> {
        let (exit, message) = match (&self.doubt, &self.solution) {
            (None, Some(_)) => return Ok(Exit::Done),
            (None, None) if self.placed.is_empty() && self.blocked.is_empty() => {
                let what = if self.symmetric == Some(true) {
                    "doubly symmetric solution"
                } else {
                    "solution"
                };
                (Exit::NoSolution, format!("no {what} exists for n = {}", self.n))
            }
            (None, None) => (Exit::NoSolution, "the board has no completion".into()),
            (Some(doubt), solution) => {
                let exit =
                    if terminal.is_interrupted() { Exit::Interrupted } else { Exit::Unproven };
                let shown = if solution.is_some() {
                    "best found, not proven"
                } else {
                    "no solution found, nothing proven"
                };
                (exit, format!("{shown}: {doubt}"))
            }
        };
        Err(Failure::new(exit, message))
    }
}

/// Returns the completion of a board after checking it again.
pub(super) fn completion(
    problem: &Problem,
    method: &str,
    answer: &Answer<Vec<usize>>,
) -> Result<Option<Placement>, Failure> {
    let check = |columns: &Vec<usize>| Placement::check_solution(problem, columns);
    answer.found.as_ref().map(check).transpose().map_err(|error| refused(method, &error))
}
