//! A desk where workers answer queries: each answer is checked before it is believed.

use std::num::NonZeroUsize;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::task_queue::{Answered, TaskQueue};
use crate::board::{Piece, is_solution};
use crate::cluster::protocol::{CompletionQuery, TaskAnswer, TaskOutcome, TaskQuery};
use crate::decomposition::JobHash;
use crate::proof::beautiful::{Checked, PartChecker, Premises};
use crate::proof::first::{Refutation, check_refutation_within};
use crate::proof::{Meter, ProofError};
use crate::solver::beautiful::{CancelToken, Reached, SubtreeSolver, SubtreeTask};
use crate::solver::first::{Outcome, QuerySolver, Question, Task, at_once};

/// Checks that may go on at the same time.
#[derive(Debug)]
pub(super) struct Room {
    free: Mutex<usize>,
    left: Condvar,
}

impl Room {
    /// Room for as many as leave a core for everything else.
    pub(super) fn new() -> Self {
        let cores = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
        Self { free: Mutex::new((cores - 1).max(1)), left: Condvar::new() }
    }

    /// Does something when there is room for it, and says how long it took.
    fn within<T>(&self, work: impl FnOnce() -> T) -> (T, Duration) {
        let free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        let mut free = self.left.wait_while(free, |free| *free == 0).unwrap_or_else(PoisonError::into_inner);
        *free -= 1;
        drop(free);
        /// Gives the room back, whatever happens.
        struct Leaving<'a>(&'a Room);
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

/// What came of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Judgement {
    /// It is true.
    Good,
    /// It is not known to be wrong, and helps nobody: to check it takes too long, or it says too little.
    Useless,
    /// It has a step of a kind that this version does not know: a newer one may know better.
    Unknown(String),
    /// It is wrong.
    Wrong(String),
}

/// Who hears of answers.
pub(super) trait BoundAddress: Send + Sync {
    /// An answer was judged, which took so long.
    fn judged(&self, answered: &Answered, judgement: &Judgement, took: Duration);
}

/// Where the queries of one proof are asked.
pub(super) struct RemoteSolver {
    pub(super) job: JobHash,
    pub(super) pool: Arc<TaskQueue>,
    pub(super) room: Arc<Room>,
    pub(super) listener: Arc<dyn BoundAddress>,
}

impl RemoteSolver {
    /// Asks once and judges the answer. Who gives a wrong one, or too many useless ones, is asked no more. `judge` may
    /// correct what a worker says of its work. None once it is not `wanted` any more.
    fn ask<T>(
        &self,
        query: TaskQuery,
        wanted: &dyn Fn() -> bool,
        judge: impl FnOnce(&mut TaskAnswer) -> (Judgement, T),
    ) -> Option<(Judgement, T)> {
        let mut answered = self.pool.ask(self.job, query, wanted)?;
        let ((mut judgement, value), took) = self.room.within(|| judge(&mut answered.answer));
        if judgement == Judgement::Useless && !wanted() {
            // The check was stopped, which is nobody's fault.
            return None;
        }
        // Who gives up has shown nothing.
        let shown = judgement == Judgement::Good && answered.answer.outcome != TaskOutcome::GivenUp;
        if (shown || judgement == Judgement::Useless) && self.pool.is_useless(&answered.worker, shown) {
            judgement = Judgement::Wrong("ten answers in a row were of no use".to_owned());
        }
        self.listener.judged(&answered, &judgement, took);
        match &judgement {
            Judgement::Wrong(why) => self.pool.distrust(&answered.worker, why),
            Judgement::Unknown(why) => self.pool.cannot_read(&answered, why),
            Judgement::Good | Judgement::Useless => {}
        }
        Some((judgement, value))
    }
}

/// A desk for completions.
pub(super) struct RemoteQuerySolver {
    pub(super) n: usize,
    pub(super) solver: RemoteSolver,
}

impl QuerySolver for RemoteQuerySolver {
    fn ask(&mut self, question: &Question<'_>, task: Task<'_>) -> Outcome {
        /// Nodes that are believed for each programme.
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
                let (judgement, outcome) = judge_completion(&query, &answer.outcome, &mut meter);
                let early = answer.outcome == TaskOutcome::GivenUp && answer.programmes < programmes;
                let judgement = if early { Judgement::Useless } else { judgement };
                (judgement, (outcome, answer.nodes, answer.programmes))
            });
            match asked {
                None => return Outcome::Stopped,
                Some((Judgement::Good, (outcome, nodes, solved))) => {
                    // Whatever a worker says of its work, it must not steer the search.
                    task.add_nodes(nodes.min(MOST_NODES.saturating_mul(programmes + 1)));
                    task.add_programmes(solved.min(2 * programmes + 1));
                    return outcome;
                }
                Some((Judgement::Useless | Judgement::Unknown(_), _)) => return Outcome::GivenUp,
                Some((Judgement::Wrong(_), _)) => {}
            }
        }
    }
}

/// The steps that checking an answer may take, whatever was asked: a minute or two, more than any answer that is known.
const MOST_STEPS: u64 = 100_000_000;

/// As much work as it may take to check a refutation, as certificates state it.
fn most_work(query: &CompletionQuery, refutation: &Refutation) -> u64 {
    /// For each programme that was allowed, and once more: as much as all of n = 62 takes, half a second.
    const EACH: u64 = 200_000;
    /// For a square that dies: a queen and a budget. A refutation may show again all that died above it, which took
    /// whoever asks no programme; but it has to name each.
    const SQUARE: u64 = 501;
    let squares = (query.n * query.n).min(refutation.as_bytes().len()) as u64;
    EACH.saturating_mul(query.programmes.saturating_add(1)).saturating_add(SQUARE * squares)
}

/// Whether an answer is true, and what it says then.
fn judge_completion(
    query: &CompletionQuery,
    outcome: &TaskOutcome,
    meter: &mut Meter<'_>,
) -> (Judgement, Outcome) {
    let CompletionQuery { n, prefix, .. } = query;
    let wrong = |why: String| (Judgement::Wrong(why), Outcome::GivenUp);
    match outcome {
        TaskOutcome::Refuted(refutation) => {
            match check_refutation_within(*n, prefix, refutation, most_work(query, refutation), meter) {
                Ok(_) => (Judgement::Good, Outcome::Refuted(refutation.clone())),
                Err(ProofError::TooMuchWork(_) | ProofError::LimitReached(_) | ProofError::Stopped) => {
                    (Judgement::Useless, Outcome::GivenUp)
                }
                Err(error @ ProofError::UnknownStep(_)) => {
                    (Judgement::Unknown(format!("of a refutation, {error}")), Outcome::GivenUp)
                }
                Err(error) => wrong(format!("its refutation is wrong: {error}")),
            }
        }
        TaskOutcome::Completed(columns) if columns.len() == *n && columns.starts_with(prefix) => {
            if is_solution(Piece::Queen, columns) {
                (Judgement::Good, Outcome::Completed(columns.clone()))
            } else {
                wrong("the queens of its completion attack each other".to_owned())
            }
        }
        TaskOutcome::Completed(_) => wrong("its completion is not of the board it was asked".to_owned()),
        TaskOutcome::Tree(_) => wrong("it answers what it was not asked".to_owned()),
        TaskOutcome::GivenUp | TaskOutcome::Stopped => (Judgement::Good, Outcome::GivenUp),
    }
}

/// Checkers that were made for the board in hand, for whoever needs one next.
#[derive(Default)]
pub(super) struct Checkers(Mutex<Vec<PartChecker>>);

impl Checkers {
    fn with<T>(&self, known: &Arc<Premises>, work: impl FnOnce(&mut PartChecker) -> T) -> T {
        let free = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut checker = match free().pop() {
            Some(checker) if Arc::ptr_eq(checker.known(), known) => checker,
            _ => PartChecker::new(Arc::clone(known)),
        };
        let done = work(&mut checker);
        free().push(checker);
        done
    }
}

/// A desk for parts of searches.
pub(super) struct RemoteSubtreeSolver {
    pub(super) solver: RemoteSolver,
    pub(super) checkers: Arc<Checkers>,
}

impl SubtreeSolver for RemoteSubtreeSolver {
    fn ask(&mut self, question: SubtreeTask, pulse: &CancelToken) -> Option<Reached> {
        loop {
            let wanted = || !pulse.is_abandoned();
            let (_, reached) = self.solver.ask(TaskQuery::Part(question.clone()), &wanted, |answer| {
                let known = question.part.known();
                let is_stopped = || !wanted();
                let mut meter = Meter::new(Some(most_steps(&question))).stopped_by(&is_stopped);
                self.checkers.with(known, |checker| judge_part(checker, &question, answer, &mut meter))
            })?;
            if reached.is_some() {
                return reached;
            }
        }
    }
}

/// The steps that checking an answer about a part may take. A node takes less than ten on boards of 144, and at most some for
/// each square of a line.
fn most_steps(question: &SubtreeTask) -> u64 {
    const EACH: u64 = 500;
    const BESIDES: u64 = 1_000_000;
    EACH.saturating_mul(question.nodes).saturating_add(BESIDES).min(MOST_STEPS)
}

/// Whether an answer is true, and what it says if it is.
fn judge_part(
    checker: &mut PartChecker,
    question: &SubtreeTask,
    answer: &mut TaskAnswer,
    meter: &mut Meter<'_>,
) -> (Judgement, Option<Reached>) {
    let queens = question.part.queens();
    answer.nodes = 0;
    let judged = match &answer.outcome {
        TaskOutcome::Completed(columns) => checker
            .check_solution(queens, columns)
            .map(|()| Some(Reached::Solution(columns.clone())))
            .map_err(|error| format!("its solution is none: {error}")),
        TaskOutcome::Tree(tree) => match checker.check_within(queens, tree, question.nodes, meter) {
            Ok(Checked { holes, nodes }) => {
                answer.nodes = nodes;
                // Who leaves something open has spent its nodes.
                let whole = holes.is_empty() || nodes == question.nodes;
                Ok(whole.then(|| Reached::Tree(tree.clone(), holes, nodes)))
            }
            Err(ProofError::LimitReached(_) | ProofError::Stopped) => Ok(None),
            Err(error @ ProofError::UnknownStep(_)) => {
                return (Judgement::Unknown(format!("of a tree, {error}")), None);
            }
            Err(error) => Err(format!("its tree is wrong: {error}")),
        },
        TaskOutcome::Refuted(_) => Err("it answers what it was not asked".to_owned()),
        TaskOutcome::GivenUp | TaskOutcome::Stopped => Ok(None),
    };
    match judged {
        Ok(Some(reached)) => (Judgement::Good, Some(reached)),
        Ok(None) => (Judgement::Useless, None),
        Err(why) => (Judgement::Wrong(why), None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proof::Beauty;
    use crate::proof::beautiful::Part;
    use crate::proof::first::Multipliers;
    use crate::solver::beautiful::Searcher;
    use crate::solver::first::{Control, query_solver};

    #[test]
    fn what_is_true_is_believed_and_what_is_not_is_wrong() {
        // The first solution of eight queens begins with 1 5.
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
        let judged = |query, outcome: &Outcome| {
            judge_completion(query, &outcome.clone().into(), &mut Meter::default()).0
        };
        assert_eq!(judged(&open, &completed), Judgement::Good);
        assert_eq!(judged(&closed, &refuted), Judgement::Good);
        assert!(matches!(judged(&open, &refuted), Judgement::Wrong(_)));
        assert!(matches!(judged(&closed, &completed), Judgement::Wrong(_)));
        let attacked = Outcome::Completed((0..8).collect());
        assert!(matches!(judged(&open, &attacked), Judgement::Wrong(_)));
        let nonsense = Outcome::Refuted(Refutation::from_bytes(vec![0, 0]));
        assert!(matches!(judged(&closed, &nonsense), Judgement::Wrong(_)));
        // A step that this version does not know is no lie.
        let newer = Outcome::Refuted(Refutation::from_bytes(vec![9, 9]));
        assert!(matches!(judged(&closed, &newer), Judgement::Unknown(why) if why.contains("kind 9")));
        // Nobody's checker is kept busy for ever by "find out yourself".
        let wide = CompletionQuery { n: 100, prefix: vec![0], programmes: 0, attempt: 0 };
        assert_eq!(judged(&wide, &Outcome::Refuted(Refutation::search())), Judgement::Useless);
        let tree = judge_completion(&closed, &TaskOutcome::Tree(vec![]), &mut Meter::default());
        assert!(matches!(tree.0, Judgement::Wrong(_)));
    }

    #[test]
    fn a_refutation_may_show_all_dead_squares_again_but_not_do_more() {
        // The first solution of twelve queens begins with 1 3 5 8.
        let query = CompletionQuery { n: 12, prefix: vec![0, 2, 4, 1], programmes: 1, attempt: 0 };
        // Budgets that say nothing, each of work 500.
        let long = |budgets| {
            let nothing = Multipliers::none(12);
            let then = |then, _| Refutation::budget(&nothing, false, &then);
            (0..budgets).fold(Refutation::search(), then)
        };
        let judged = |refutation| {
            let outcome = Outcome::Refuted(refutation).into();
            judge_completion(&query, &outcome, &mut Meter::default()).0
        };
        assert_eq!(most_work(&query, &Refutation::search()), 400_501);
        assert_eq!(most_work(&query, &long(850)), 400_000 + 501 * 144);
        assert_eq!(judged(long(850)), Judgement::Good);
        assert_eq!(judged(long(950)), Judgement::Useless);
    }

    #[test]
    fn a_part_is_answered_by_a_true_tree_or_a_solution_in_question() {
        let alive = vec![true; 10];
        let known = Arc::new(Premises::new(8, Beauty::default(), alive, vec![], vec![]).expect("of a board"));
        let question = |queens: &[usize], nodes| {
            let part = Part::new(Arc::clone(&known), queens.to_vec()).expect("of a board");
            SubtreeTask { part, nodes, weights: Arc::new([]) }
        };
        let mut searcher = Searcher::default();
        let mut searched = |question: &SubtreeTask| searcher.search(question, &CancelToken::default()).into();
        let checkers = Checkers::default();
        let judged = |question: &SubtreeTask, outcome: &TaskOutcome| {
            let mut answer = TaskAnswer { outcome: outcome.clone(), nodes: 9, programmes: 0, elapsed_s: 0.0 };
            let mut meter = Meter::new(Some(most_steps(question)));
            checkers.with(&known, |checker| judge_part(checker, question, &mut answer, &mut meter))
        };
        // Queens in the corner and in the third column of the second row have no solution, one alone has.
        let (open, closed, short) = (question(&[0], 999), question(&[0, 10], 999), question(&[0], 1));
        let (solution, tree, holes) = (searched(&open), searched(&closed), searched(&short));
        let good = |judged: &(Judgement, Option<Reached>)| judged.0 == Judgement::Good && judged.1.is_some();
        assert!(good(&judged(&open, &solution)) && good(&judged(&closed, &tree)));
        let reached = judged(&short, &holes);
        assert!(matches!(reached, (Judgement::Good, Some(Reached::Tree(_, holes, 1))) if !holes.is_empty()));
        // Who leaves something open after fewer nodes than were asked for has not done its work.
        assert_eq!(judged(&open, &holes), (Judgement::Useless, None));
        assert_eq!(judged(&closed, &TaskOutcome::GivenUp), (Judgement::Useless, None));
        let TaskOutcome::Tree(mut altered) = tree else { panic!("{tree:?}") };
        altered[0] ^= 1;
        let attacked = TaskOutcome::Completed((0..8).collect());
        for lie in [&solution, &TaskOutcome::Tree(altered), &TaskOutcome::Tree(vec![]), &attacked] {
            assert!(matches!(judged(&closed, lie), (Judgement::Wrong(_), None)), "{lie:?}");
        }
        let newer = TaskOutcome::Tree(vec![127]);
        assert!(
            matches!(judged(&closed, &newer), (Judgement::Unknown(why), None) if why.contains("kind 127"))
        );
    }

    #[test]
    fn an_answer_that_asks_for_huge_work_is_given_up_by_the_coordinators_own_limit() {
        // Two bytes have the checker try everything, on a board where that never ends; the query allows it all.
        let query = CompletionQuery { n: 128, prefix: vec![], programmes: u64::MAX, attempt: 0 };
        let everything = TaskOutcome::Refuted(Refutation::search());
        let mut meter = Meter::new(Some(100_000));
        assert_eq!(judge_completion(&query, &everything, &mut meter).0, Judgement::Useless);
        assert!(meter.work() < 200_000, "{}", meter.work());
        // And who asked may have enough of it.
        let mut stopped = Meter::new(None).stopped_by(&|| true);
        assert_eq!(judge_completion(&query, &everything, &mut stopped).0, Judgement::Useless);
        // Nobody asks for more steps than these.
        let known = Premises::new(8, Beauty::default(), vec![true; 10], vec![], vec![]).expect("of a board");
        let part = Part::new(Arc::new(known), vec![]).expect("of a board");
        let question = SubtreeTask { part, nodes: u64::MAX, weights: Arc::new([]) };
        assert_eq!(most_steps(&question), MOST_STEPS);
    }
}
