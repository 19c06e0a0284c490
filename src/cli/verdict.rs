//! How one answer is printed: the solution or that there is none, and whether that is proved.

use std::time::Duration;

use serde::Serialize;

use super::terminal::Terminal;
use super::{Exit, Failure, print};
use crate::optimise::{Answer, Verdict};

/// What `--json` prints for one solution.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    pub(super) n: usize,
    pub(super) method: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) solver: Option<&'static str>,
    /// The column of each row, counted from 1.
    pub(super) solution: Option<Vec<usize>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) fingerprint: Option<Vec<u64>>,
    pub(super) proven: bool,
    /// Why it is not proven.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) doubt: Option<String>,
    pub(super) nodes: String,
    pub(super) programmes: u64,
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
            solution: answer.found.as_ref().map(|columns| columns.iter().map(|column| column + 1).collect()),
            fingerprint: None,
            proven: doubt.is_none(),
            doubt,
            nodes: answer.nodes.to_string(),
            programmes: answer.programmes,
            elapsed_s: elapsed.as_secs_f64(),
        }
    }

    /// The solution on one line, nothing if there is none.
    pub(super) fn line(&self) -> String {
        self.solution.as_ref().map_or(String::new(), |columns| {
            let words: Vec<String> = columns.iter().map(usize::to_string).collect();
            words.join(" ") + "\n"
        })
    }

    /// Prints the answer as `text`, or as one JSON object, and ends with the exit code that says what it is.
    pub(super) fn finish(&self, json: bool, text: &str) -> Result<Exit, Failure> {
        if json {
            print(&(serde_json::to_string(self).expect("numbers and strings serialise") + "\n"))?;
        } else {
            print(text)?;
        }
        let (exit, message) = match (&self.doubt, &self.solution) {
            (None, Some(_)) => return Ok(Exit::Done),
            (None, None) => (Exit::NoSolution, format!("there is no solution for n = {}", self.n)),
            (Some(doubt), solution) => {
                let exit = if Terminal::is_interrupted() { Exit::Interrupted } else { Exit::NotProven };
                let shown = if solution.is_some() { "best found, not proven" } else { "nothing found, nothing proven" };
                (exit, format!("{shown}: {doubt}"))
            }
        };
        Err(Failure { exit, message })
    }
}
