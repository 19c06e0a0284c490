//! Remote solvers: workers answer queries, and each answer is validated before it is accepted.

use std::num::NonZeroUsize;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::task_queue::{Answered, TaskQueue};
use crate::board::{Piece, is_solution};
use crate::cluster::protocol::{CompletionQuery, TaskAnswer, TaskOutcome, TaskQuery};
use crate::decomposition::JobHash;
use crate::proof::beautiful::{CheckedTree, Premises, SubtreeChecker};
use crate::proof::first::{Refutation, check_refutation_within};
use crate::proof::{Meter, ProofError};
use crate::solver::beautiful::{CancelToken, Reached, SubtreeSolver, SubtreeTask};
use crate::solver::first::{Outcome, QuerySolver, Question, Task, at_once};

/// A semaphore that limits the number of concurrent checks.
#[derive(Debug)]
pub(super) struct CheckPermits {
    free: Mutex<usize>,
    left: Condvar,
}

impl CheckPermits {
    /// Creates a semaphore that leaves one core for everything else.
    pub(super) fn new() -> Self {
        let cores = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
        Self { free: Mutex::new((cores - 1).max(1)), left: Condvar::new() }
    }

    /// Runs `work` once a permit is free. Returns its result and its duration.
    fn within<T>(&self, work: impl FnOnce() -> T) -> (T, Duration) {
        let free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        let mut free =
            self.left.wait_while(free, |free| *free == 0).unwrap_or_else(PoisonError::into_inner);
        *free -= 1;
        drop(free);
        /// Returns the permit, also on a panic.
        struct Leaving<'a>(&'a CheckPermits);
        impl Drop for Leaving<'_> {
            fn drop(&mut self) {
                *self.0.free.lock().unwrap_or_else(PoisonError::into_inner) += 1;
                self.0.left.notify_one();
            }
        }
        let _leaving = Leaving(self);
        let began = Instant::now();
        (work(), began.elapsed())
    }
}

/// The result of validating an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum AnswerVerdict {
    /// The answer is correct.
    Good,
    /// The answer is not known to be wrong but is of no use: checking it takes too long, or it says
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
    pub(super) pool: Arc<TaskQueue>,
    pub(super) room: Arc<CheckPermits>,
    pub(super) listener: Arc<dyn AnswerObserver>,
}

impl RemoteSolver {
    /// Asks once and validates the answer. A worker that gives a wrong answer, or too many useless
    /// ones, is not asked again. The closure may correct the work that a worker claims. Returns
    /// `None` once the query is no longer `wanted`.
    fn ask<T>(
        &self,
        query: TaskQuery,
        wanted: &dyn Fn() -> bool,
        judge: impl FnOnce(&mut TaskAnswer) -> (AnswerVerdict, T),
    ) -> Option<(AnswerVerdict, T)> {
        let mut answered = self.pool.ask(self.job, query, wanted)?;
        let ((mut verdict, value), took) = self.room.within(|| judge(&mut answered.answer));
        if verdict == AnswerVerdict::Useless && !wanted() {
            // The check was stopped, which is not the worker's fault.
            return None;
        }
        // An answer that gives up shows nothing.
        let shown =
            verdict == AnswerVerdict::Good && answered.answer.outcome != TaskOutcome::GivenUp;
        if (shown || verdict == AnswerVerdict::Useless)
            && self.pool.is_useless(&answered.worker, shown)
        {
            verdict = AnswerVerdict::Wrong("ten answers in a row were of no use".to_owned());
        }
        self.listener.validated(&answered, &verdict, took);
        match &verdict {
            AnswerVerdict::Wrong(why) => self.pool.distrust(&answered.worker, why),
            AnswerVerdict::Unknown(why) => self.pool.cannot_read(&answered, why),
            AnswerVerdict::Good | AnswerVerdict::Useless => {}
        }
        Some((verdict, value))
    }
}

/// A remote solver for completion queries.
pub(super) struct RemoteQuerySolver {
    pub(super) n: usize,
    pub(super) solver: RemoteSolver,
}

impl QuerySolver for RemoteQuerySolver {
    fn ask(&mut self, question: &Question<'_>, task: Task<'_>) -> Outcome {
        /// The maximum number of nodes credited per linear relaxation.
        const MOST_NODES: u64 = 1 << 20;
        let Question { prefix, programmes, attempt } = *question;
        if let Some(outcome) = at_once(self.n, prefix) {
            return outcome;
        }
        let query = CompletionQuery { n: self.n, prefix: prefix.to_vec(), programmes, attempt };
        loop {
            let wanted = || !task.is_stopped();
            let asked = self.solver.ask(TaskQuery::Completion(query.clone()), &wanted, |answer| {
                let is_stopped = || !wanted();
                let mut meter = Meter::new(Some(MOST_STEPS)).stopped_by(&is_stopped);
                let (verdict, outcome) = judge_completion(&query, &answer.outcome, &mut meter);
                let early =
                    answer.outcome == TaskOutcome::GivenUp && answer.programmes < programmes;
                let verdict = if early { AnswerVerdict::Useless } else { verdict };
                (verdict, (outcome, answer.nodes, answer.programmes))
            });
            match asked {
                None => return Outcome::Stopped,
                Some((AnswerVerdict::Good, (outcome, nodes, solved))) => {
                    // The work that a worker claims must not steer the search.
                    task.add_nodes(nodes.min(MOST_NODES.saturating_mul(programmes + 1)));
                    task.add_programmes(solved.min(2 * programmes + 1));
                    return outcome;
                }
                Some((AnswerVerdict::Useless | AnswerVerdict::Unknown(_), _)) => {
                    return Outcome::GivenUp;
                }
                Some((AnswerVerdict::Wrong(_), _)) => {}
            }
        }
    }
}

/// The maximum number of steps for checking an answer: a minute or two, more than any known answer
/// needs.
const MOST_STEPS: u64 = 100_000_000;

/// Returns the maximum work for checking a refutation, in the unit of certificates.
fn most_work(query: &CompletionQuery, refutation: &Refutation) -> u64 {
    /// For each linear relaxation that was allowed, and once more: as much as all of n = 62 takes,
    /// which is half a second.
    const EACH: u64 = 200_000;
    /// For an eliminated cell: a queen and a dual bound. A refutation may eliminate again all cells
    /// that were eliminated above it, which cost the solver no linear relaxation; but it has to
    /// name each cell.
    const SQUARE: u64 = 501;
    let squares = (query.n * query.n).min(refutation.as_bytes().len()) as u64;
    EACH.saturating_mul(query.programmes.saturating_add(1)).saturating_add(SQUARE * squares)
}

/// Validates an answer. Returns the verdict and the outcome to use.
fn judge_completion(
    query: &CompletionQuery,
    outcome: &TaskOutcome,
    meter: &mut Meter<'_>,
) -> (AnswerVerdict, Outcome) {
    let CompletionQuery { n, prefix, .. } = query;
    let wrong = |why: String| (AnswerVerdict::Wrong(why), Outcome::GivenUp);
    match outcome {
        TaskOutcome::Refuted(refutation) => {
            match check_refutation_within(
                *n,
                prefix,
                refutation,
                most_work(query, refutation),
                meter,
            ) {
                Ok(_) => (AnswerVerdict::Good, Outcome::Refuted(refutation.clone())),
                Err(
                    ProofError::TooMuchWork(_) | ProofError::LimitReached(_) | ProofError::Stopped,
                ) => (AnswerVerdict::Useless, Outcome::GivenUp),
                Err(error @ ProofError::UnknownStep(_)) => {
                    (AnswerVerdict::Unknown(format!("of a refutation, {error}")), Outcome::GivenUp)
                }
                Err(error) => wrong(format!("its refutation is wrong: {error}")),
            }
        }
        TaskOutcome::Completed(columns) if columns.len() == *n && columns.starts_with(prefix) => {
            if is_solution(Piece::Queen, columns) {
                (AnswerVerdict::Good, Outcome::Completed(columns.clone()))
            } else {
                wrong("the queens of its completion attack each other".to_owned())
            }
        }
        TaskOutcome::Completed(_) => {
            wrong("its completion is not of the board it was asked".to_owned())
        }
        TaskOutcome::Tree(_) => wrong("it answers what it was not asked".to_owned()),
        TaskOutcome::GivenUp | TaskOutcome::Stopped => (AnswerVerdict::Good, Outcome::GivenUp),
    }
}

/// Checkers for the current board, kept for reuse.
#[derive(Default)]
pub(super) struct Checkers(Mutex<Vec<SubtreeChecker>>);

impl Checkers {
    fn with<T>(&self, known: &Arc<Premises>, work: impl FnOnce(&mut SubtreeChecker) -> T) -> T {
        let free = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut checker = match free().pop() {
            Some(checker) if Arc::ptr_eq(checker.premises(), known) => checker,
            _ => SubtreeChecker::new(Arc::clone(known)),
        };
        let done = work(&mut checker);
        free().push(checker);
        done
    }
}

/// A remote solver for subtree tasks.
pub(super) struct RemoteSubtreeSolver {
    pub(super) solver: RemoteSolver,
    pub(super) checkers: Arc<Checkers>,
}

impl SubtreeSolver for RemoteSubtreeSolver {
    fn ask(&mut self, question: SubtreeTask, cancel: &CancelToken) -> Option<Reached> {
        loop {
            let wanted = || !cancel.is_abandoned();
            let (_, reached) =
                self.solver.ask(TaskQuery::Part(question.clone()), &wanted, |answer| {
                    let known = question.part.premises();
                    let is_stopped = || !wanted();
                    let mut meter = Meter::new(Some(most_steps(&question))).stopped_by(&is_stopped);
                    self.checkers
                        .with(known, |checker| judge_part(checker, &question, answer, &mut meter))
                })?;
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
fn judge_part(
    checker: &mut SubtreeChecker,
    question: &SubtreeTask,
    answer: &mut TaskAnswer,
    meter: &mut Meter<'_>,
) -> (AnswerVerdict, Option<Reached>) {
    let queens = question.part.queens();
    answer.nodes = 0;
    let validated = match &answer.outcome {
        TaskOutcome::Completed(columns) => checker
            .check_solution(queens, columns)
            .map(|()| Some(Reached::Solution(columns.clone())))
            .map_err(|error| format!("its solution is none: {error}")),
        TaskOutcome::Tree(tree) => {
            match checker.check_within(queens, tree, question.nodes, meter) {
                Ok(CheckedTree { holes, nodes }) => {
                    answer.nodes = nodes;
                    // A tree with open nodes must have used all of its nodes.
                    let whole = holes.is_empty() || nodes == question.nodes;
                    Ok(whole.then(|| Reached::Tree(tree.clone(), holes, nodes)))
                }
                Err(ProofError::LimitReached(_) | ProofError::Stopped) => Ok(None),
                Err(error @ ProofError::UnknownStep(_)) => {
                    return (AnswerVerdict::Unknown(format!("of a tree, {error}")), None);
                }
                Err(error) => Err(format!("its tree is wrong: {error}")),
            }
        }
        TaskOutcome::Refuted(_) => Err("it answers what it was not asked".to_owned()),
        TaskOutcome::GivenUp | TaskOutcome::Stopped => Ok(None),
    };
    match validated {
        Ok(Some(reached)) => (AnswerVerdict::Good, Some(reached)),
        Ok(None) => (AnswerVerdict::Useless, None),
        Err(why) => (AnswerVerdict::Wrong(why), None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proof::Beauty;
    use crate::proof::beautiful::Subtree;
    use crate::proof::first::Multipliers;
    use crate::solver::beautiful::Searcher;
    use crate::solver::first::{Control, query_solver};

    #[test]
    fn what_is_true_is_believed_and_what_is_not_is_wrong() {
        // The first solution of eight queens begins with 1 5 (1-based).
        let open = CompletionQuery { n: 8, prefix: vec![0], programmes: 1, attempt: 0 };
        let closed = CompletionQuery { n: 8, prefix: vec![0, 2], programmes: 1, attempt: 0 };
        let outcome = |query: &CompletionQuery| {
            let control = Control::default();
            let question = Question { prefix: &query.prefix, programmes: 100, attempt: 0 };
            query_solver(query.n, &[]).ask(&question, Task::alone(&control))
        };
        let (completed, refuted) = (outcome(&open), outcome(&closed));
        assert!(matches!(completed, Outcome::Completed(_)));
        assert!(matches!(refuted, Outcome::Refuted(_)));
        let validated = |query, outcome: &Outcome| {
            judge_completion(query, &outcome.clone().into(), &mut Meter::default()).0
        };
        assert_eq!(validated(&open, &completed), AnswerVerdict::Good);
        assert_eq!(validated(&closed, &refuted), AnswerVerdict::Good);
        assert!(matches!(validated(&open, &refuted), AnswerVerdict::Wrong(_)));
        assert!(matches!(validated(&closed, &completed), AnswerVerdict::Wrong(_)));
        let attacked = Outcome::Completed((0..8).collect());
        assert!(matches!(validated(&open, &attacked), AnswerVerdict::Wrong(_)));
        let nonsense = Outcome::Refuted(Refutation::from_bytes(vec![0, 0]));
        assert!(matches!(validated(&closed, &nonsense), AnswerVerdict::Wrong(_)));
        // An unknown step is not a wrong answer.
        let newer = Outcome::Refuted(Refutation::from_bytes(vec![9, 9]));
        assert!(
            matches!(validated(&closed, &newer), AnswerVerdict::Unknown(why) if why.contains("kind 9"))
        );
        // A refutation that only demands a search must not keep the checker busy for ever.
        let wide = CompletionQuery { n: 100, prefix: vec![0], programmes: 0, attempt: 0 };
        assert_eq!(
            validated(&wide, &Outcome::Refuted(Refutation::search())),
            AnswerVerdict::Useless
        );
        let tree = judge_completion(&closed, &TaskOutcome::Tree(vec![]), &mut Meter::default());
        assert!(matches!(tree.0, AnswerVerdict::Wrong(_)));
    }

    #[test]
    fn a_refutation_may_show_all_dead_squares_again_but_not_do_more() {
        // The first solution of twelve queens begins with 1 3 5 8 (1-based).
        let query = CompletionQuery { n: 12, prefix: vec![0, 2, 4, 1], programmes: 1, attempt: 0 };
        // Dual bounds that prove nothing, each of work 500.
        let long = |budgets| {
            let nothing = Multipliers::none(12);
            let then = |then, _| Refutation::dual_bound(&nothing, false, &then);
            (0..budgets).fold(Refutation::search(), then)
        };
        let validated = |refutation| {
            let outcome = Outcome::Refuted(refutation).into();
            judge_completion(&query, &outcome, &mut Meter::default()).0
        };
        assert_eq!(most_work(&query, &Refutation::search()), 400_501);
        assert_eq!(most_work(&query, &long(850)), 400_000 + 501 * 144);
        assert_eq!(validated(long(850)), AnswerVerdict::Good);
        assert_eq!(validated(long(950)), AnswerVerdict::Useless);
    }

    #[test]
    fn a_part_is_answered_by_a_true_tree_or_a_solution_in_question() {
        let alive = vec![true; 10];
        let known = Arc::new(
            Premises::new(8, Beauty::default(), alive, vec![], vec![]).expect("of a board"),
        );
        let question = |queens: &[usize], nodes| {
            let part = Subtree::new(Arc::clone(&known), queens.to_vec()).expect("of a board");
            SubtreeTask { part, nodes, weights: Arc::new([]) }
        };
        let mut searcher = Searcher::default();
        let mut searched =
            |question: &SubtreeTask| searcher.search(question, &CancelToken::default()).into();
        let checkers = Checkers::default();
        let validated = |question: &SubtreeTask, outcome: &TaskOutcome| {
            let mut answer =
                TaskAnswer { outcome: outcome.clone(), nodes: 9, programmes: 0, elapsed_s: 0.0 };
            let mut meter = Meter::new(Some(most_steps(question)));
            checkers.with(&known, |checker| judge_part(checker, question, &mut answer, &mut meter))
        };
        // Queens in the corner and in the third column of the second row have no solution; the
        // queen in the corner alone has one.
        let (open, closed, short) =
            (question(&[0], 999), question(&[0, 10], 999), question(&[0], 1));
        let (solution, tree, holes) = (searched(&open), searched(&closed), searched(&short));
        let good = |validated: &(AnswerVerdict, Option<Reached>)| {
            validated.0 == AnswerVerdict::Good && validated.1.is_some()
        };
        assert!(good(&validated(&open, &solution)) && good(&validated(&closed, &tree)));
        let reached = validated(&short, &holes);
        assert!(
            matches!(reached, (AnswerVerdict::Good, Some(Reached::Tree(_, holes, 1))) if !holes.is_empty())
        );
        // An answer with open nodes that used fewer nodes than were allowed is incomplete.
        assert_eq!(validated(&open, &holes), (AnswerVerdict::Useless, None));
        assert_eq!(validated(&closed, &TaskOutcome::GivenUp), (AnswerVerdict::Useless, None));
        let TaskOutcome::Tree(mut altered) = tree else { panic!("{tree:?}") };
        altered[0] ^= 1;
        let attacked = TaskOutcome::Completed((0..8).collect());
        for lie in [&solution, &TaskOutcome::Tree(altered), &TaskOutcome::Tree(vec![]), &attacked] {
            assert!(matches!(validated(&closed, lie), (AnswerVerdict::Wrong(_), None)), "{lie:?}");
        }
        let newer = TaskOutcome::Tree(vec![127]);
        assert!(
            matches!(validated(&closed, &newer), (AnswerVerdict::Unknown(why), None) if why.contains("kind 127"))
        );
    }

    #[test]
    fn an_answer_that_asks_for_huge_work_is_given_up_by_the_coordinators_own_limit() {
        // Two bytes make the checker try everything, on a board where that never ends; the query
        // allows it all.
        let query = CompletionQuery { n: 128, prefix: vec![], programmes: u64::MAX, attempt: 0 };
        let everything = TaskOutcome::Refuted(Refutation::search());
        let mut meter = Meter::new(Some(100_000));
        assert_eq!(judge_completion(&query, &everything, &mut meter).0, AnswerVerdict::Useless);
        assert!(meter.work() < 200_000, "{}", meter.work());
        // The solver may also stop the check.
        let mut stopped = Meter::new(None).stopped_by(&|| true);
        assert_eq!(judge_completion(&query, &everything, &mut stopped).0, AnswerVerdict::Useless);
        // No query allows more steps than this.
        let known = Premises::new(8, Beauty::default(), vec![true; 10], vec![], vec![])
            .expect("of a board");
        let part = Subtree::new(Arc::new(known), vec![]).expect("of a board");
        let question = SubtreeTask { part, nodes: u64::MAX, weights: Arc::new([]) };
        assert_eq!(most_steps(&question), MOST_STEPS);
    }
}
