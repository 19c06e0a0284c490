//! Tasks of proofs and what they come to, as messages.

use super::convert::{MOST_HELD, MOST_RESULTS, Malformed, at_most, seconds};
use super::v1;
use crate::board::{Piece, Square, first_attack};
use crate::optimise::exact::{LARGEST, Outcome};
use crate::proof::first::Refutation;

/// Whether the board of size n with queens on its first rows has a completion.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompletionQuery {
    /// The size of the board.
    pub n: usize,
    /// The 0-based columns of the queens on the first rows.
    pub prefix: Vec<usize>,
    /// Linear programmes that may be solved for it.
    pub programmes: u64,
    /// 0 for the usual order of trials; each other number is another order.
    pub attempt: u64,
}

/// What a query came to, by the word of whoever answers it.
#[derive(Clone, Debug, PartialEq)]
pub struct TaskAnswer {
    /// [`Outcome::Stopped`] for none.
    pub outcome: Outcome,
    /// Nodes of its searches.
    pub nodes: u64,
    /// Linear programmes that were solved.
    pub programmes: u64,
    /// How long it took.
    pub elapsed_s: f64,
}

/// A call of a worker.
#[derive(Clone, Debug, PartialEq)]
pub struct ProveCall {
    /// Changes when the worker restarts.
    pub boot: u64,
    /// The number of the call since then.
    pub number: u64,
    /// Tasks that it can have in hand.
    pub capacity: usize,
    /// Tasks that it has.
    pub holding: Vec<u64>,
    /// Answers, each with its task.
    pub answers: Vec<(u64, TaskAnswer)>,
}

/// Columns on the wire, from 1.
fn from_one(columns: &[usize]) -> Vec<u32> {
    // A board's side fits many times over.
    columns.iter().map(|&column| column as u32 + 1).collect()
}

/// 0-based columns on a board of size at most [`LARGEST`].
fn from_zero(columns: &[u32]) -> Result<Vec<usize>, Malformed> {
    at_most("columns", columns.len(), LARGEST)?;
    let column = |&column: &u32| (1..=LARGEST as u32).contains(&column).then(|| column as usize - 1);
    columns.iter().map(column).collect::<Option<_>>().ok_or(Malformed::Range("a column"))
}

impl From<&CompletionQuery> for v1::CompletionQuery {
    fn from(query: &CompletionQuery) -> Self {
        let CompletionQuery { n, prefix, programmes, attempt } = query;
        Self { n: *n as u32, columns: from_one(prefix), programmes: *programmes, attempt: *attempt }
    }
}

impl TryFrom<&v1::CompletionQuery> for CompletionQuery {
    type Error = Malformed;

    fn try_from(query: &v1::CompletionQuery) -> Result<Self, Malformed> {
        let n = usize::try_from(query.n).ok().filter(|&n| n <= LARGEST).ok_or(Malformed::Range("n"))?;
        let prefix = from_zero(&query.columns)?;
        let on_board = prefix.len() <= n && prefix.iter().all(|&column| column < n);
        let squares: Vec<Square> =
            prefix.iter().enumerate().map(|(row, &column)| Square::new(row, column)).collect();
        if !on_board || first_attack(Piece::Queen, n, &squares).is_some() {
            return Err(Malformed::Range("a column"));
        }
        Ok(Self { n, prefix, programmes: query.programmes, attempt: query.attempt })
    }
}

/// An answer as it is sent; `None` if there is none.
pub fn answered(task: u64, answer: &TaskAnswer) -> Option<v1::TaskAnswer> {
    use v1::task_answer::Answer;
    let TaskAnswer { outcome, nodes, programmes, elapsed_s } = answer;
    let outcome = match outcome {
        Outcome::Refuted(refutation) => Some(Answer::Refutation(refutation.as_bytes().to_vec())),
        Outcome::Completed(columns) => Some(Answer::Completion(v1::Columns { columns: from_one(columns) })),
        Outcome::GivenUp => None,
        Outcome::Stopped => return None,
    };
    let (nodes, programmes, elapsed_s) = (*nodes, *programmes, *elapsed_s);
    Some(v1::TaskAnswer { task, nodes, programmes, elapsed_s, answer: outcome })
}

fn answer(answer: v1::TaskAnswer) -> Result<(u64, TaskAnswer), Malformed> {
    use v1::task_answer::Answer;
    /// Of one task; more are not made in a year.
    const MOST: u64 = 1 << 44;
    let outcome = match answer.answer {
        Some(Answer::Refutation(bytes)) => Outcome::Refuted(Refutation::from_bytes(bytes)),
        Some(Answer::Completion(columns)) => Outcome::Completed(from_zero(&columns.columns)?),
        None => Outcome::GivenUp,
    };
    let elapsed_s = seconds("a time", answer.elapsed_s)?;
    let (nodes, programmes) = (answer.nodes.min(MOST), answer.programmes.min(MOST));
    Ok((answer.task, TaskAnswer { outcome, nodes, programmes, elapsed_s }))
}

impl TryFrom<v1::ProveRequest> for ProveCall {
    type Error = Malformed;

    fn try_from(request: v1::ProveRequest) -> Result<Self, Malformed> {
        at_most("tasks", request.holding.len(), MOST_HELD)?;
        at_most("answers", request.answers.len(), MOST_RESULTS)?;
        Ok(Self {
            boot: request.boot,
            number: request.call,
            capacity: request.capacity as usize,
            holding: request.holding,
            answers: request.answers.into_iter().map(answer).collect::<Result<_, _>>()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_and_answers_arrive_as_they_were_sent() {
        let query = CompletionQuery { n: 8, prefix: vec![0, 4, 7], programmes: 15, attempt: 3 };
        assert_eq!(CompletionQuery::try_from(&v1::CompletionQuery::from(&query)), Ok(query));
        let outcomes = [
            Outcome::Refuted(Refutation::search()),
            Outcome::Completed(vec![0, 4, 7, 5, 2, 6, 1, 3]),
            Outcome::GivenUp,
        ];
        for outcome in outcomes {
            let sent = TaskAnswer { outcome, nodes: 3, programmes: 2, elapsed_s: 0.5 };
            let message = answered(9, &sent).expect("an answer");
            assert_eq!(answer(message), Ok((9, sent)));
        }
        let stopped = TaskAnswer { outcome: Outcome::Stopped, nodes: 0, programmes: 0, elapsed_s: 0.0 };
        assert_eq!(answered(9, &stopped), None);
    }

    #[test]
    fn queries_about_no_board_are_refused() {
        for (n, columns) in [(129, vec![]), (8, vec![0]), (8, vec![9]), (8, vec![1, 2]), (2, vec![1; 3])] {
            let query = v1::CompletionQuery { n, columns, programmes: 1, attempt: 0 };
            assert!(CompletionQuery::try_from(&query).is_err(), "{query:?}");
        }
    }
}
