//! A desk where workers answer queries: each answer is checked before it is believed.

use std::num::NonZeroUsize;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::pool::{Answered, Pool};
use crate::board::{Piece, is_solution};
use crate::optimise::exact::{Answering, Outcome, Question, Task, at_once};
use crate::preplacement::JobHash;
use crate::proof::ProofError;
use crate::proof::first::check_refutation;
use crate::wire::{CompletionQuery, TaskAnswer};

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

/// Nodes that are believed for each programme.
const MOST_NODES: u64 = 1 << 20;

/// Whether somebody gave up before trying what was allowed.
fn gives_up_early(answer: &TaskAnswer, query: &CompletionQuery) -> bool {
    answer.outcome == Outcome::GivenUp && answer.programmes < query.programmes
}

/// What came of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Judgement {
    /// It is true.
    Good,
    /// To check it takes too long: as good as given up.
    TooLong,
    /// It is wrong.
    Wrong(String),
}

/// Who hears of answers.
pub(super) trait Listening: Send + Sync {
    /// An answer was judged, which took so long.
    fn judged(&self, answered: &Answered, judgement: &Judgement, took: Duration);
}

/// A desk of one proof.
pub(super) struct Desk {
    pub(super) job: JobHash,
    pub(super) n: usize,
    pub(super) pool: Arc<Pool>,
    pub(super) room: Arc<Room>,
    pub(super) listener: Arc<dyn Listening>,
}

impl Answering for Desk {
    fn ask(&mut self, question: &Question<'_>, task: Task<'_>) -> Outcome {
        let Question { prefix, programmes, attempt } = *question;
        if let Some(outcome) = at_once(self.n, prefix) {
            return outcome;
        }
        let query = CompletionQuery { n: self.n, prefix: prefix.to_vec(), programmes, attempt };
        loop {
            let wanted = || !task.is_stopped();
            let Some(answered) = self.pool.ask(self.job, query.clone(), &wanted) else {
                return Outcome::Stopped;
            };
            let (mut judgement, took) = self.room.within(|| judge(&query, &answered.answer));
            let of_use = judgement == Judgement::Good && !gives_up_early(&answered.answer, &query);
            if self.pool.is_useless(&answered.worker, of_use) {
                judgement = Judgement::Wrong("ten answers in a row were of no use".to_owned());
            }
            self.listener.judged(&answered, &judgement, took);
            let Answered { worker, answer } = answered;
            match judgement {
                Judgement::Good => {
                    // Whatever a worker says of its work, it must not steer the search.
                    task.add_nodes(answer.nodes.min(MOST_NODES.saturating_mul(programmes + 1)));
                    task.add_programmes(answer.programmes.min(2 * programmes + 1));
                    return answer.outcome;
                }
                Judgement::TooLong => return Outcome::GivenUp,
                Judgement::Wrong(why) => self.pool.distrust(&worker, &why),
            }
        }
    }
}

/// Whether an answer is true.
fn judge(query: &CompletionQuery, answer: &TaskAnswer) -> Judgement {
    /// As much as a refutation may take to be checked, for each programme that was allowed: as much as all of n = 62
    /// takes, half a second.
    const WORK: u64 = 200_000;
    let CompletionQuery { n, prefix, programmes, .. } = query;
    match &answer.outcome {
        Outcome::Refuted(refutation) => {
            let limit = WORK.saturating_mul(programmes.saturating_add(1));
            match check_refutation(*n, prefix, refutation, limit) {
                Ok(_) => Judgement::Good,
                Err(ProofError::TooMuchWork(_)) => Judgement::TooLong,
                Err(error) => Judgement::Wrong(format!("its refutation is wrong: {error}")),
            }
        }
        Outcome::Completed(columns) if columns.len() == *n && columns.starts_with(prefix) => {
            if is_solution(Piece::Queen, columns) {
                Judgement::Good
            } else {
                Judgement::Wrong("the queens of its completion attack each other".to_owned())
            }
        }
        Outcome::Completed(_) => {
            Judgement::Wrong("its completion is not of the board it was asked".to_owned())
        }
        Outcome::GivenUp | Outcome::Stopped => Judgement::Good,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::optimise::exact::{Control, answering};
    use crate::proof::first::Refutation;

    fn answer(outcome: Outcome) -> TaskAnswer {
        TaskAnswer { outcome, nodes: 0, programmes: 0, elapsed_s: 0.0 }
    }

    #[test]
    fn what_is_true_is_believed_and_what_is_not_is_wrong() {
        // The first solution of eight queens begins with 1 5.
        let open = CompletionQuery { n: 8, prefix: vec![0], programmes: 1, attempt: 0 };
        let closed = CompletionQuery { n: 8, prefix: vec![0, 2], programmes: 1, attempt: 0 };
        let outcome = |query: &CompletionQuery| {
            let control = Control::default();
            let question = Question { prefix: &query.prefix, programmes: 100, attempt: 0 };
            answering(query.n, &[]).ask(&question, Task::alone(&control))
        };
        let (completed, refuted) = (outcome(&open), outcome(&closed));
        assert!(matches!(completed, Outcome::Completed(_)));
        assert!(matches!(refuted, Outcome::Refuted(_)));
        let judged = |query, outcome: &Outcome| judge(query, &answer(outcome.clone()));
        assert_eq!(judged(&open, &completed), Judgement::Good);
        assert_eq!(judged(&closed, &refuted), Judgement::Good);
        assert!(matches!(judged(&open, &refuted), Judgement::Wrong(_)));
        assert!(matches!(judged(&closed, &completed), Judgement::Wrong(_)));
        let attacked = Outcome::Completed((0..8).collect());
        assert!(matches!(judged(&open, &attacked), Judgement::Wrong(_)));
        let nonsense = Outcome::Refuted(Refutation::from_bytes(vec![9, 9]));
        assert!(matches!(judged(&closed, &nonsense), Judgement::Wrong(_)));
        // Nobody's checker is kept busy for ever by "find out yourself".
        let wide = CompletionQuery { n: 100, prefix: vec![0], programmes: 0, attempt: 0 };
        assert_eq!(judged(&wide, &Outcome::Refuted(Refutation::search())), Judgement::TooLong);
    }
}
