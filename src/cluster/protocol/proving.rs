//! Conversions between messages and the tasks of proofs with their answers.

use std::sync::Arc;

use super::convert::{MOST_HELD, MOST_RESULTS, Malformed, at_most, seconds};
use super::v1;
use crate::board::{Norm, Piece, Square, first_attack};
use crate::proof::beautiful::{Premises, Subtree};
use crate::proof::first::Refutation;
use crate::proof::{self, Beauty};
use crate::solver::beautiful::{MOST_NODES, SubtreeAnswer, SubtreeTask};
use crate::solver::first::{LARGEST, QueryOutcome};

/// The query of a task.
#[derive(Clone, Debug, PartialEq)]
pub enum TaskQuery {
    /// A query about a first solution.
    Completion(CompletionQuery),
    /// A query about a most beautiful solution.
    Part(SubtreeTask),
}

/// The query whether the board of size n with queens in its first rows has a completion.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompletionQuery {
    /// The size of the board.
    pub n: usize,
    /// The 0-based columns of the queens in the first rows.
    pub prefix: Vec<usize>,
    /// The maximum number of linear relaxations (LPs) to solve.
    pub programmes: u64,
    /// The node limit of each exhaustive search under the first dual bound on boards of odd size.
    pub node_limit: u64,
    /// The number of the search order: 0 for the usual one, any other number for a different one.
    pub attempt: u64,
    /// True to give up after the dives, which can only find a completion.
    pub only_dives: bool,
    /// The maximum number of boards whose LPs are solved in a search through listed sets of
    /// diagonals.
    pub set_programmes: u64,
}

/// The outcome of a task, as claimed by the worker that solved it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TaskOutcome {
    /// There is no completion: a refutation, as in the certificates of first solutions.
    Refuted(Refutation),
    /// A completion, or a solution of a subtree: the 0-based column of the queen in each row.
    Completed(Vec<usize>),
    /// A search tree with holes for the unsearched subtrees, as in the certificates of most
    /// beautiful solutions.
    Tree(Vec<u8>),
    /// The task exceeds its limits.
    GivenUp,
    /// The task was cancelled.
    Stopped,
}

impl From<QueryOutcome> for TaskOutcome {
    fn from(outcome: QueryOutcome) -> Self {
        match outcome {
            QueryOutcome::Refuted(refutation) => Self::Refuted(refutation),
            QueryOutcome::Completed(columns) => Self::Completed(columns),
            QueryOutcome::GivenUp => Self::GivenUp,
            QueryOutcome::Stopped => Self::Stopped,
        }
    }
}

impl From<SubtreeAnswer> for TaskOutcome {
    fn from(answer: SubtreeAnswer) -> Self {
        match answer {
            SubtreeAnswer::Solution(columns) => Self::Completed(columns),
            SubtreeAnswer::Tree(tree) => Self::Tree(tree),
            SubtreeAnswer::Stopped => Self::Stopped,
        }
    }
}

/// The answer to a task, as claimed by the worker that gives it.
#[derive(Clone, Debug, PartialEq)]
pub struct TaskAnswer {
    /// The outcome; [`TaskOutcome::Stopped`] if there is none.
    pub outcome: TaskOutcome,
    /// The number of search nodes.
    pub nodes: u64,
    /// The number of linear relaxations solved.
    pub programmes: u64,
    /// The elapsed time, in seconds.
    pub elapsed_s: f64,
}

/// A worker's Prove call.
#[derive(Clone, Debug, PartialEq)]
pub struct ProveCall {
    /// A number that changes when the worker restarts.
    pub boot: u64,
    /// The number of the call since then.
    pub number: u64,
    /// The number of tasks that the worker can hold.
    pub capacity: usize,
    /// The number of its threads for tasks; 0 if it is of an earlier version.
    pub threads: usize,
    /// The tasks that the worker holds.
    pub holding: Vec<u64>,
    /// The answers, each with its task.
    pub answers: Vec<(u64, TaskAnswer)>,
    /// True if the worker searches subtrees of any kind, including those with full diagonals.
    pub parts: bool,
}

/// Returns the 1-based columns for the wire.
fn from_one(columns: &[usize]) -> Vec<u32> {
    // A board's side is far below 2^32.
    columns.iter().map(|&column| column as u32 + 1).collect()
}

/// Returns 0-based columns on a board of size at most `largest`.
fn from_zero(columns: &[u32], largest: usize) -> Result<Vec<usize>, Malformed> {
    at_most("columns", columns.len(), largest)?;
    let column =
        |&column: &u32| (1..=largest as u32).contains(&column).then(|| column as usize - 1);
    columns.iter().map(column).collect::<Option<_>>().ok_or(Malformed::Range("a column"))
}

impl From<&CompletionQuery> for v1::CompletionQuery {
    fn from(query: &CompletionQuery) -> Self {
        let CompletionQuery { n, ref prefix, programmes, attempt, only_dives, .. } = *query;
        let (node_limit, set_programmes) = (query.node_limit, query.set_programmes);
        let (n, columns, node_limit) = (n as u32, from_one(prefix), Some(node_limit));
        Self { n, columns, programmes, node_limit, attempt, only_dives, set_programmes }
    }
}

impl TryFrom<&v1::CompletionQuery> for CompletionQuery {
    type Error = Malformed;

    fn try_from(query: &v1::CompletionQuery) -> Result<Self, Malformed> {
        let n =
            usize::try_from(query.n).ok().filter(|&n| n <= LARGEST).ok_or(Malformed::Range("n"))?;
        let prefix = from_zero(&query.columns, LARGEST)?;
        let on_board = prefix.len() <= n && prefix.iter().all(|&column| column < n);
        let squares: Vec<Square> =
            prefix.iter().enumerate().map(|(row, &column)| Square::new(row, column)).collect();
        if !on_board || first_attack(Piece::Queen, n, &squares).is_some() {
            return Err(Malformed::Range("a column"));
        }
        /// The least number of programmes for which earlier versions searched, and the node limit
        /// for each of them.
        const EARLIER: (u64, u64) = (32, 10_000);
        let v1::CompletionQuery { programmes, node_limit, attempt, only_dives, .. } = *query;
        let set_programmes = query.set_programmes;
        let node_limit = node_limit.unwrap_or_else(|| {
            if programmes < EARLIER.0 { 0 } else { programmes.saturating_mul(EARLIER.1) }
        });
        Ok(Self { n, prefix, programmes, node_limit, attempt, only_dives, set_programmes })
    }
}

impl From<Norm> for v1::Norm {
    fn from(norm: Norm) -> Self {
        match norm {
            Norm::Euclidean => Self::Euclidean,
            Norm::Manhattan => Self::Manhattan,
            Norm::Chebyshev => Self::Chebyshev,
        }
    }
}

impl From<&SubtreeTask> for v1::PartQuery {
    fn from(task: &SubtreeTask) -> Self {
        let SubtreeTask { part, nodes, weights } = task;
        let known = part.premises();
        let mut alive = vec![0u8; known.candidates().len().div_ceil(8)];
        for (orbit, _) in known.candidates().iter().enumerate().filter(|(_, alive)| **alive) {
            alive[orbit / 8] |= 1 << (orbit % 8);
        }
        // All of these numbers are far below 2^32.
        let range = |&(level, least, most): &(usize, usize, usize)| v1::LevelRange {
            level: level as u32,
            least: least as u32,
            most: most as u32,
        };
        let Beauty { norm, turning } = known.beauty();
        Self {
            n: known.n() as u32,
            norm: v1::Norm::from(norm).into(),
            turning,
            alive,
            full: known.full().iter().map(|&distance| distance as u32).collect(),
            ranges: known.ranges().iter().map(range).collect(),
            queens: part.queens().iter().map(|&square| square as u32).collect(),
            nodes: *nodes,
            weights: weights.to_vec(),
        }
    }
}

impl TryFrom<&v1::PartQuery> for SubtreeTask {
    type Error = Malformed;

    fn try_from(query: &v1::PartQuery) -> Result<Self, Malformed> {
        let n =
            usize::try_from(query.n).ok().filter(|n| (1..=proof::beautiful::LARGEST).contains(n));
        let n = n.ok_or(Malformed::Range("n"))?;
        let norm = match v1::Norm::try_from(query.norm).map_err(|_| Malformed::Range("a norm"))? {
            v1::Norm::Euclidean => Norm::Euclidean,
            v1::Norm::Manhattan => Norm::Manhattan,
            v1::Norm::Chebyshev => Norm::Chebyshev,
        };
        let half = n.div_ceil(2);
        let orbits = half * (half + 1) / 2;
        let found = query.alive.len();
        if found != orbits.div_ceil(8) {
            return Err(Malformed::Length("orbits", found, orbits.div_ceil(8)));
        }
        let alive =
            (0..orbits).map(|orbit| query.alive[orbit / 8] >> (orbit % 8) & 1 == 1).collect();
        let range = |range: &v1::LevelRange| {
            (range.level as usize, range.least as usize, range.most as usize)
        };
        let ranges = query.ranges.iter().map(range).collect();
        let beauty = Beauty { norm, turning: query.turning };
        let wrong = |error: proof::ProofError| Malformed::Problem(error.to_string());
        at_most("full diagonals", query.full.len(), n)?;
        let full = query.full.iter().map(|&distance| distance as usize).collect();
        let known = Premises::new(n, beauty, alive, full, ranges).map_err(wrong)?;
        let queens = query.queens.iter().map(|&square| square as usize).collect();
        let part = Subtree::new(Arc::new(known), queens).map_err(wrong)?;
        at_most("nodes", usize::try_from(query.nodes).unwrap_or(usize::MAX), MOST_NODES as usize)?;
        at_most("weights", query.weights.len(), 6 * n)?;
        Ok(Self { part, nodes: query.nodes, weights: query.weights.as_slice().into() })
    }
}

/// Returns the message with a task.
pub fn task(task: u64, query: &TaskQuery) -> v1::Task {
    use v1::task::Query;
    let query = match query {
        TaskQuery::Completion(query) => Query::Completion(query.into()),
        TaskQuery::Part(subtree) => Query::Part(subtree.into()),
    };
    v1::Task { task, query: Some(query) }
}

impl TryFrom<&v1::Task> for TaskQuery {
    type Error = Malformed;

    fn try_from(task: &v1::Task) -> Result<Self, Malformed> {
        use v1::task::Query;
        match task.query.as_ref().ok_or(Malformed::Missing("the query of a task"))? {
            Query::Completion(query) => Ok(Self::Completion(query.try_into()?)),
            Query::Part(query) => Ok(Self::Part(query.try_into()?)),
        }
    }
}

/// Returns the message with an answer, or `None` if there is no answer.
pub fn answered(task: u64, answer: &TaskAnswer) -> Option<v1::TaskAnswer> {
    use v1::task_answer::Answer;
    let TaskAnswer { outcome, nodes, programmes, elapsed_s } = answer;
    let outcome = match outcome {
        TaskOutcome::Refuted(refutation) => {
            Some(Answer::Refutation(refutation.as_bytes().to_vec()))
        }
        TaskOutcome::Completed(columns) => {
            Some(Answer::Completion(v1::Columns { columns: from_one(columns) }))
        }
        TaskOutcome::Tree(tree) => Some(Answer::Tree(tree.clone())),
        TaskOutcome::GivenUp => None,
        TaskOutcome::Stopped => return None,
    };
    let (nodes, programmes, elapsed_s) = (*nodes, *programmes, *elapsed_s);
    Some(v1::TaskAnswer { task, nodes, programmes, elapsed_s, answer: outcome })
}

fn answer(answer: v1::TaskAnswer) -> Result<(u64, TaskAnswer), Malformed> {
    use v1::task_answer::Answer;
    /// The maximum numbers for one task, which are not reached in a year.
    const MOST: u64 = 1 << 44;
    let outcome = match answer.answer {
        Some(Answer::Refutation(bytes)) => TaskOutcome::Refuted(Refutation::from_bytes(bytes)),
        Some(Answer::Completion(columns)) => {
            TaskOutcome::Completed(from_zero(&columns.columns, proof::beautiful::LARGEST)?)
        }
        Some(Answer::Tree(tree)) => TaskOutcome::Tree(tree),
        None => TaskOutcome::GivenUp,
    };
    let elapsed_s = seconds("the elapsed time", answer.elapsed_s)?;
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
            threads: request.threads as usize,
            holding: request.holding,
            answers: request.answers.into_iter().map(answer).collect::<Result<_, _>>()?,
            parts: request.parts && request.heeds_full,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_of_an_earlier_coordinator_has_its_search_limit() {
        let node_limit = |programmes| {
            let sent = v1::CompletionQuery { n: 8, programmes, ..Default::default() };
            CompletionQuery::try_from(&sent).map(|query| query.node_limit)
        };
        assert_eq!([31, 32, u64::MAX].map(node_limit), [Ok(0), Ok(320_000), Ok(u64::MAX)]);
    }

    #[test]
    fn queries_and_answers_round_trip_through_messages() {
        let query = CompletionQuery {
            n: 8,
            prefix: vec![0, 4, 7],
            programmes: 15,
            node_limit: 9,
            attempt: 3,
            only_dives: true,
            set_programmes: 7,
        };
        assert_eq!(CompletionQuery::try_from(&v1::CompletionQuery::from(&query)), Ok(query));
        let outcomes = [
            TaskOutcome::Refuted(Refutation::search()),
            TaskOutcome::Completed(vec![0, 4, 7, 5, 2, 6, 1, 3]),
            TaskOutcome::Tree(vec![3, 16]),
            TaskOutcome::GivenUp,
        ];
        for outcome in outcomes {
            let sent = TaskAnswer { outcome, nodes: 3, programmes: 2, elapsed_s: 0.5 };
            let message = answered(9, &sent).expect("an answer");
            assert_eq!(answer(message), Ok((9, sent)));
        }
        let stopped =
            TaskAnswer { outcome: TaskOutcome::Stopped, nodes: 0, programmes: 0, elapsed_s: 0.0 };
        assert_eq!(answered(9, &stopped), None);
    }

    #[test]
    fn invalid_queries_are_refused() {
        for (n, columns) in
            [(129, vec![]), (8, vec![0]), (8, vec![9]), (8, vec![1, 2]), (2, vec![1; 3])]
        {
            let query = v1::CompletionQuery { n, columns, programmes: 1, ..Default::default() };
            assert!(CompletionQuery::try_from(&query).is_err(), "{query:?}");
        }
    }

    fn part(turning: bool) -> SubtreeTask {
        let beauty = Beauty { norm: Norm::Chebyshev, turning };
        let alive = (0..15).map(|orbit| orbit % 3 > 0).collect();
        let full = if turning { vec![] } else { vec![0, 8] };
        let known = Premises::new(9, beauty, alive, full, vec![(0, 0, 0), (2, 1, 9)])
            .expect("a valid task");
        let part = Subtree::new(Arc::new(known), vec![80, 3]).expect("a valid task");
        SubtreeTask { part, nodes: MOST_NODES, weights: Arc::new([1.0, 2.5]) }
    }

    #[test]
    fn subtrees_round_trip_through_messages() {
        for turning in [false, true] {
            let sent = TaskQuery::Part(part(turning));
            assert_eq!(TaskQuery::try_from(&task(7, &sent)), Ok(sent));
        }
    }

    #[test]
    fn subtrees_are_only_for_workers_that_support_full_diagonals() {
        for (parts, heeds_full) in [(false, false), (false, true), (true, false), (true, true)] {
            let request = v1::ProveRequest { parts, heeds_full, ..Default::default() };
            assert_eq!(ProveCall::try_from(request).expect("a call").parts, parts && heeds_full);
        }
    }

    #[test]
    fn invalid_subtrees_are_refused() {
        let good = v1::PartQuery::from(&part(false));
        let is_good = |query: &v1::PartQuery| SubtreeTask::try_from(query).is_ok();
        assert!(is_good(&good));
        let bad: [fn(&mut v1::PartQuery); 12] = [
            |query| query.n = 0,
            |query| query.n = 513,
            |query| query.norm = 3,
            |query| query.alive.push(0),
            |query| query.ranges[0].level = 2,
            |query| query.ranges[0].least = 1,
            |query| query.queens[0] = 81,
            |query| query.nodes += 1,
            |query| query.weights = vec![1.0; 55],
            |query| query.full = vec![9],
            |query| query.full = vec![3, 3],
            |query| query.turning = true,
        ];
        for (number, spoil) in bad.into_iter().enumerate() {
            let mut query = good.clone();
            spoil(&mut query);
            assert!(!is_good(&query), "{number}");
        }
    }

    #[test]
    fn the_longest_tree_fits_in_a_message() {
        // Each node names one line of the board (a row, column or diagonal), which takes two bytes
        // on the largest board. Holes are few: at most one per square of the lines on one path.
        let holes = proof::beautiful::LARGEST * proof::beautiful::LARGEST;
        let bytes = 2 * (MOST_NODES as usize + holes);
        assert!(bytes + (64 << 10) <= crate::cluster::protocol::MOST_MESSAGE_BYTES, "{bytes}");
    }
}
