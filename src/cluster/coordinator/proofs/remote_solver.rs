//! Remote solvers: workers answer queries, and each answer is validated before it is accepted. The
//! multipliers of refutations answer other queries without a worker.

use std::cell::RefCell;
use std::num::NonZeroUsize;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::super::lock;
use super::refutation_checks::{PrefixRefutation, RefutationChecks};
use super::task_queue::{Answered, TaskQueue};
use crate::board::{Piece, is_solution};
use crate::cluster::protocol::{CompletionQuery, TaskAnswer, TaskOutcome, TaskQuery};
use crate::decomposition::JobHash;
use crate::proof::beautiful::{CheckedTree, Premises, SubtreeChecker};
use crate::proof::first::Refutation;
use crate::proof::{Meter, ProofError};
use crate::solver::beautiful::{CancelToken, SubtreeSolver, SubtreeTask, ValidatedAnswer};
use crate::solver::first::{
    PrefixQuery, QueryOutcome, QuerySolver, SEARCH_NODES_PER_LP, Task, decide_by_propagation,
};

/// A semaphore that limits the number of concurrent checks.
#[derive(Debug)]
pub(super) struct CheckPermits {
    free: Mutex<usize>,
    released: Condvar,
}

/// Returns the number of threads for searches and long checks: one core is left for everything
/// else.
pub(super) fn check_threads() -> usize {
    let cores = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
    (cores - 1).max(1)
}

impl CheckPermits {
    /// Creates a semaphore with one permit for each of the threads for checks.
    pub(super) fn new() -> Self {
        Self { free: Mutex::new(check_threads()), released: Condvar::new() }
    }

    /// Runs `work` once a permit is free.
    pub(super) fn within<T>(&self, work: impl FnOnce() -> T) -> T {
        let free = self.released.wait_while(lock(&self.free), |free| *free == 0);
        let mut free = free.unwrap_or_else(PoisonError::into_inner);
        *free -= 1;
        drop(free);
        /// Returns the permit, also on a panic.
        struct PermitGuard<'a>(&'a CheckPermits);
        impl Drop for PermitGuard<'_> {
            fn drop(&mut self) {
                *lock(&self.0.free) += 1;
                self.0.released.notify_one();
            }
        }
        let _guard = PermitGuard(self);
        work()
    }
}

/// Returns the result of `work` and its duration.
pub(super) fn timed<T>(work: impl FnOnce() -> T) -> (T, Duration) {
    let began = Instant::now();
    (work(), began.elapsed())
}

/// The result of validating an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum AnswerVerdict {
    /// The answer is correct.
    Good,
    /// The answer is not known to be wrong but is useless: checking it takes too long, or it shows
    /// too little.
    Useless,
    /// The answer has a step of a kind unknown to this version. A newer version may know it.
    Unknown(String),
    /// The answer is wrong.
    Wrong(String),
}

/// An observer of validated answers.
pub(super) trait AnswerObserver: Send + Sync {
    /// Called after an answer was validated, which took `took`.
    fn validated(&self, answered: &Answered, verdict: &AnswerVerdict, took: Duration);
}

/// A solver that sends the queries of one proof to workers.
pub(super) struct RemoteSolver {
    pub(super) job: JobHash,
    pub(super) priority: i32,
    pub(super) queue: Arc<TaskQueue>,
    pub(super) permits: Arc<CheckPermits>,
    pub(super) listener: Arc<dyn AnswerObserver>,
}

impl RemoteSolver {
    /// Asks a worker. Returns `None` once the query is no longer `wanted`.
    fn ask(&self, query: TaskQuery, wanted: &dyn Fn() -> bool) -> Option<Answered> {
        self.queue.ask((self.job, self.priority), query, wanted)
    }

    /// Records the verdict on an answer, whose validation took `took`. A worker that gives a wrong
    /// answer, or too many useless ones, gets no more queries. Returns the final verdict.
    pub(super) fn conclude(
        &self,
        answered: &Answered,
        mut verdict: AnswerVerdict,
        took: Duration,
    ) -> AnswerVerdict {
        // An answer that gives up is neither useful nor useless.
        let useful =
            verdict == AnswerVerdict::Good && answered.answer.outcome != TaskOutcome::GivenUp;
        if (useful || verdict == AnswerVerdict::Useless)
            && self.queue.record_usefulness(&answered.worker, useful)
        {
            verdict = AnswerVerdict::Wrong("ten answers in a row were useless".to_owned());
        }
        self.listener.validated(answered, &verdict, took);
        match &verdict {
            AnswerVerdict::Wrong(why) => self.queue.quarantine(&answered.worker, why),
            AnswerVerdict::Unknown(why) => self.queue.mark_unreadable(answered, why),
            AnswerVerdict::Good | AnswerVerdict::Useless => {}
        }
        verdict
    }
}

/// A remote solver for completion queries.
pub(super) struct RemoteQuerySolver {
    pub(super) n: usize,
    pub(super) solver: RemoteSolver,
    pub(super) checks: Arc<RefutationChecks>,
}

impl QuerySolver for RemoteQuerySolver {
    fn solve(&mut self, query: &PrefixQuery<'_>, task: Task<'_>) -> QueryOutcome {
        /// The maximum number of nodes credited per linear relaxation.
        const MOST_NODES: u64 = 1 << 20;
        let PrefixQuery { prefix, lp_limit: programmes, attempt, only_dives, .. } = *query;
        let set_programmes = query.set_search_lps;
        if let Some(outcome) = decide_by_propagation(self.n, prefix) {
            if let QueryOutcome::Completed(columns) = &outcome {
                self.checks.add_solution(columns);
            }
            return outcome;
        }
        let most_nodes = programmes.saturating_mul(SEARCH_NODES_PER_LP).min(MOST_NODES_OF_A_SEARCH);
        let node_limit = query.node_limit.min(most_nodes);
        let (n, prefix) = (self.n, prefix.to_vec());
        let query = CompletionQuery {
            n,
            prefix,
            programmes,
            node_limit,
            attempt,
            only_dives,
            set_programmes,
        };
        let wanted = || !task.is_stopped();
        // The multipliers of other answers often refute this prefix, too, even while it is asked
        // for.
        let refuter = RefCell::new(self.checks.refuter(&query.prefix));
        let known = RefCell::new(None);
        let is_open = || {
            let refutation = (refuter.borrow_mut())();
            let is_open = refutation.is_none();
            known.replace(refutation);
            is_open
        };
        let is_needed = || wanted() && is_open();
        loop {
            if let Some(refutation) = self.checks.usable(&query.prefix, &wanted) {
                return QueryOutcome::Refuted(refutation);
            }
            if self.checks.is_uncheckable(&query) {
                return QueryOutcome::GivenUp;
            }
            let ask = || self.solver.ask(TaskQuery::Completion(query.clone()), &is_needed);
            let answered = if is_needed() { ask() } else { None };
            let Some(answered) = answered else {
                match known.take() {
                    Some(own) if self.checks.add_own(&query.prefix, &own, &wanted) => {
                        return QueryOutcome::Refuted(own);
                    }
                    Some(_) => continue,
                    None => return QueryOutcome::Stopped,
                }
            };
            let (nodes, solved) = (answered.answer.nodes, answered.answer.programmes);
            let Some(outcome) = self.outcome(&query, answered, &wanted) else { continue };
            // The work that a worker claims must not steer the search.
            let programmes = programmes.saturating_add(set_programmes);
            task.add_nodes(nodes.min(MOST_NODES.saturating_mul(programmes.saturating_add(1))));
            task.add_lps(solved.min(programmes.saturating_mul(2).saturating_add(1)));
            return outcome;
        }
    }
}

impl RemoteQuerySolver {
    /// Returns the outcome of a query by this answer, or `None` if the answer cannot be used.
    fn outcome(
        &self,
        query: &CompletionQuery,
        answered: Answered,
        wanted: &dyn Fn() -> bool,
    ) -> Option<QueryOutcome> {
        if let TaskOutcome::Refuted(refutation) = &answered.answer.outcome {
            if let Err(verdict) = validate_encoding(query, refutation) {
                let verdict = self.solver.conclude(&answered, verdict, Duration::ZERO);
                let is_wrong = matches!(verdict, AnswerVerdict::Wrong(_));
                return (!is_wrong).then_some(QueryOutcome::GivenUp);
            }
            let (prefix, refutation) = (query.prefix.clone(), refutation.clone());
            let answered = Some((query.clone(), answered));
            let one = PrefixRefutation { prefix, refutation, answered };
            let refutation = self.checks.add(one, wanted)?;
            self.solver.queue.wake();
            return Some(QueryOutcome::Refuted(refutation));
        }
        let (verdict, took) = timed(|| validate_completion(query, &answered.answer));
        match (self.solver.conclude(&answered, verdict, took), answered.answer.outcome) {
            (AnswerVerdict::Wrong(_), _) => None,
            (AnswerVerdict::Good, TaskOutcome::Completed(columns)) => {
                self.checks.add_solution(&columns);
                Some(QueryOutcome::Completed(columns))
            }
            _ => Some(QueryOutcome::GivenUp),
        }
    }
}

/// The maximum number of steps for checking an answer: at most about two minutes.
pub(super) const MOST_STEPS: u64 = 160_000_000;

/// The largest node limit of a search at a worker, no more than can be checked within
/// [`MOST_STEPS`], at up to sixteen steps for a node. Measured with three workers and at most five
/// million nodes: n = 93 55 s, with ten million 31 s.
const MOST_NODES_OF_A_SEARCH: u64 = 10_000_000;

/// Checks that a refutation can be read, also as part of one of a shorter prefix.
///
/// # Errors
/// Returns the verdict on the answer if it cannot be read.
fn validate_encoding(
    query: &CompletionQuery,
    refutation: &Refutation,
) -> Result<(), AnswerVerdict> {
    let CompletionQuery { n, prefix, .. } = query;
    refutation.check_encoding(*n, 0).map_err(|error| AnswerVerdict::of_refutation(&error))?;
    refutation.check_encoding(*n, prefix.len()).map_err(|_| AnswerVerdict::Useless)
}

/// Returns the verdict on an answer that is no refutation.
fn validate_completion(query: &CompletionQuery, answer: &TaskAnswer) -> AnswerVerdict {
    let CompletionQuery { n, prefix, programmes, only_dives, .. } = query;
    let wrong = |why: &str| AnswerVerdict::Wrong(why.to_owned());
    match &answer.outcome {
        TaskOutcome::Completed(columns) if columns.len() != *n || !columns.starts_with(prefix) => {
            wrong("its completion does not extend the prefix of the query")
        }
        TaskOutcome::Completed(columns) if !is_solution(Piece::Queen, columns) => {
            wrong("the queens of its completion attack each other")
        }
        TaskOutcome::Refuted(_) | TaskOutcome::Tree(_) => {
            wrong("its answer is of another kind than the query")
        }
        // It gave up early.
        TaskOutcome::GivenUp if answer.programmes < *programmes && !only_dives => {
            AnswerVerdict::Useless
        }
        TaskOutcome::Completed(_) | TaskOutcome::GivenUp | TaskOutcome::Stopped => {
            AnswerVerdict::Good
        }
    }
}

/// Checkers for the current board, kept for reuse.
#[derive(Default)]
pub(super) struct Checkers(Mutex<Vec<SubtreeChecker>>);

impl Checkers {
    fn with<T>(&self, known: &Arc<Premises>, work: impl FnOnce(&mut SubtreeChecker) -> T) -> T {
        let mut checker = match lock(&self.0).pop() {
            Some(checker) if Arc::ptr_eq(checker.premises(), known) => checker,
            _ => SubtreeChecker::new(Arc::clone(known)),
        };
        let done = work(&mut checker);
        lock(&self.0).push(checker);
        done
    }
}

/// A remote solver for subtree tasks.
pub(super) struct RemoteSubtreeSolver {
    pub(super) solver: RemoteSolver,
    pub(super) checkers: Arc<Checkers>,
}

impl SubtreeSolver for RemoteSubtreeSolver {
    fn solve(&mut self, question: SubtreeTask, cancel: &CancelToken) -> Option<ValidatedAnswer> {
        loop {
            let wanted = || !cancel.is_abandoned();
            let mut answered = self.solver.ask(TaskQuery::Part(question.clone()), &wanted)?;
            let answer = &mut answered.answer;
            let validate = || {
                let is_stopped = || !wanted();
                let mut meter = Meter::new(Some(most_steps(&question))).stopped_by(&is_stopped);
                self.checkers.with(question.part.premises(), |checker| {
                    validate_part(checker, &question, answer, &mut meter)
                })
            };
            let ((verdict, reached), took) = self.solver.permits.within(|| timed(validate));
            if verdict == AnswerVerdict::Useless && !wanted() {
                // The check was stopped, which is not the worker's fault.
                return None;
            }
            self.solver.conclude(&answered, verdict, took);
            if reached.is_some() {
                return reached;
            }
        }
    }
}

/// Returns the maximum number of steps for checking the answer to a subtree task. A node takes
/// fewer than ten steps on boards of size 144, and at most a few per cell of a row, column or
/// diagonal.
fn most_steps(question: &SubtreeTask) -> u64 {
    const EACH: u64 = 500;
    const BESIDES: u64 = 1_000_000;
    EACH.saturating_mul(question.nodes).saturating_add(BESIDES).min(MOST_STEPS)
}

/// Validates the answer to a subtree task. Returns the verdict, and the result if the answer is
/// good.
fn validate_part(
    checker: &mut SubtreeChecker,
    question: &SubtreeTask,
    answer: &mut TaskAnswer,
    meter: &mut Meter<'_>,
) -> (AnswerVerdict, Option<ValidatedAnswer>) {
    let queens = question.part.queens();
    answer.nodes = 0;
    let validated = match &answer.outcome {
        TaskOutcome::Completed(columns) => checker
            .check_solution(queens, columns)
            .map(|()| Some(ValidatedAnswer::Solution(columns.clone())))
            .map_err(|error| format!("its solution is not a solution: {error}")),
        TaskOutcome::Tree(tree) => {
            match checker.check_within(queens, tree, question.nodes, meter) {
                Ok(CheckedTree { holes, nodes }) => {
                    answer.nodes = nodes;
                    // A tree with open nodes must have used all of its nodes.
                    let whole = holes.is_empty() || nodes == question.nodes;
                    Ok(whole.then(|| ValidatedAnswer::Tree(tree.clone(), holes, nodes)))
                }
                Err(ProofError::LimitReached(_) | ProofError::Stopped) => Ok(None),
                Err(error @ ProofError::UnknownStep(_)) => {
                    return (AnswerVerdict::Unknown(format!("of a tree, {error}")), None);
                }
                Err(error) => Err(format!("its tree is wrong: {error}")),
            }
        }
        TaskOutcome::Refuted(_) => Err("its answer is of another kind than the query".to_owned()),
        TaskOutcome::GivenUp | TaskOutcome::Stopped => Ok(None),
    };
    match validated {
        Ok(Some(reached)) => (AnswerVerdict::Good, Some(reached)),
        Ok(None) => (AnswerVerdict::Useless, None),
        Err(why) => (AnswerVerdict::Wrong(why), None),
    }
}

#[cfg(test)]
mod tests;
