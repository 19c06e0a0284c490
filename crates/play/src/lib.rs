//! The computations behind the page on which a board of queens is played with.
//!
//! [`answer`] maps a request to its answer, both as JSON. Squares are `[row, column]`, counted from
//! 1, row 1 on top. A request names what it asks for:
//!
//! | `ask` | other fields | answer |
//! |---|---|---|
//! | `count` | board, `most_nodes` | the number of completions, in total and for each square |
//! | `complete` | board | one completion |
//! | `relaxation` | board | an optimum of the linear relaxation |
//! | `trace` | board, `method` | the steps of a method |
//! | `record` | `kind`, `n` | the first or a most beautiful solution, from `records` |
//! | `classes` | `n` | the fundamental solutions and their orbits |
//!
//! A board has the fields `n`, `placed` and `blocked`.
//!
//! ```
//! let answer = nqueens_play::answer(r#"{"ask": "count", "n": 8, "placed": [[1, 1]]}"#);
//! assert!(answer.contains(r#""completions":"4""#));
//! ```

#![forbid(unsafe_code)]

mod board;
mod classes;
mod count;
mod records;
mod relaxation;
mod trace;

use serde::Deserialize;
use serde_json::{Value, json};

use board::Board;

/// A request of the page.
#[derive(Debug, Deserialize)]
#[serde(tag = "ask", rename_all = "lowercase")]
enum Request {
    Count {
        #[serde(flatten)]
        board: Board,
        #[serde(default = "count::usual_nodes")]
        most_nodes: u64,
    },
    Complete {
        #[serde(flatten)]
        board: Board,
    },
    Relaxation {
        #[serde(flatten)]
        board: Board,
    },
    Trace {
        #[serde(flatten)]
        board: Board,
        method: trace::Method,
    },
    Record {
        kind: records::Kind,
        n: usize,
    },
    Classes {
        n: usize,
    },
}

/// The reason why a request has no answer.
#[derive(Debug, thiserror::Error)]
enum RequestError {
    #[error("the request cannot be read: {0}")]
    Json(#[from] serde_json::Error),
    #[error(transparent)]
    Problem(#[from] nqueens_proof::board::ProblemError),
    #[error("n = {n} is too large; {what} goes up to n = {most}")]
    TooLarge { what: &'static str, n: usize, most: usize },
    #[error("there is no board of size 0 here; n is at least 1")]
    TooSmall,
    #[error("the linear program was not solved: {0}")]
    Linear(String),
    #[error("a placement failed its check: {0}")]
    Placement(#[from] nqueens_proof::board::PlacementError),
}

/// Checks that a board size is from 1 to `most`.
fn check_size(what: &'static str, n: usize, most: usize) -> Result<(), RequestError> {
    match n {
        0 => Err(RequestError::TooSmall),
        _ if n > most => Err(RequestError::TooLarge { what, n, most }),
        _ => Ok(()),
    }
}

/// Returns the answer to a request, on one line: an object of the fields in the table above, or
/// `{"error": "…"}` with one line that says what is wrong.
pub fn answer(request: &str) -> String {
    let found = serde_json::from_str(request).map_err(RequestError::from).and_then(respond);
    found.unwrap_or_else(|error| json!({ "error": error.to_string() })).to_string()
}

fn respond(request: Request) -> Result<Value, RequestError> {
    match request {
        Request::Count { board, most_nodes } => count::answer(&board.problem()?, most_nodes),
        Request::Complete { board } => count::one_completion(&board.problem()?),
        Request::Relaxation { board } => relaxation::answer(&board.problem()?),
        Request::Trace { board, method } => trace::answer(&board.problem()?, method),
        Request::Record { kind, n } => records::answer(kind, n),
        Request::Classes { n } => classes::answer(n),
    }
}

#[cfg(test)]
mod tests;
