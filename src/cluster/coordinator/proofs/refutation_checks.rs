//! The checks of the refutations that the search for a first solution uses.
//!
//! A check may take longer than the worker's search did, so the search at the coordinator does
//! not wait for it: it uses a refutation at once, while other threads check those that it uses,
//! in lexicographic order of their prefixes. The certificate is made of checked refutations only.
//! If one cannot be used, because it is wrong or its check takes too long, the search begins
//! again without it and keeps the others. That stops the queries of honest workers, too, so from
//! the third time on, the search waits for the check of each refutation.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::super::lock;
use super::remote_solver::{AnswerVerdict, MOST_STEPS, RemoteSolver, timed};
use super::task_queue::Answered;
use crate::cluster::protocol::CompletionQuery;
use crate::proof::first::{CheckedRefutation, CheckedRefutationSet, Refutation};
use crate::proof::{Meter, ProofError};
use crate::solver::first::Refutations;

/// The size of the refutations that wait for their checks, in bytes, beyond which solvers wait.
const MOST_WAITING_BYTES: usize = 64 << 20;

/// The number of times that a search begins again; from then on it waits for each check.
const MOST_RESTARTS: u32 = 3;

/// The interval for polling a condition whose change no signal announces.
const POLL: Duration = Duration::from_millis(50);

/// A refutation that is not checked.
enum Unchecked {
    /// It waits for its check.
    Waiting(Box<PrefixRefutation>),
    /// It is being checked.
    Checking(Refutation),
    /// It cannot be used, but the search may have used it.
    Unusable,
}

impl Unchecked {
    const fn refutation(&self) -> Option<&Refutation> {
        match self {
            Self::Waiting(one) => Some(&one.refutation),
            Self::Checking(refutation) => Some(refutation),
            Self::Unusable => None,
        }
    }
}

/// A refutation of a prefix.
pub(super) struct PrefixRefutation {
    pub(super) prefix: Vec<usize>,
    pub(super) refutation: Refutation,
    /// The query and the answer that it is from; `None` if an earlier process has saved it.
    pub(super) answered: Option<(CompletionQuery, Answered)>,
}

impl PrefixRefutation {
    /// Returns an upper bound on the memory that it takes, in bytes.
    fn size(&self) -> usize {
        1024 + 3 * (8 * self.prefix.len() + self.refutation.as_bytes().len())
    }

    fn worker(&self) -> Option<&str> {
        self.answered.as_ref().map(|(_, answered)| answered.worker.as_str())
    }

    fn check(&self, n: usize, meter: &mut Meter<'_>) -> Result<CheckedRefutation, ProofError> {
        let Self { prefix, refutation, answered } = self;
        let most = answered.as_ref().map_or(u64::MAX, |(query, _)| most_work(query, refutation));
        CheckedRefutation::new(n, prefix, refutation.clone(), most, meter)
    }
}

/// The refutations that a search uses, at most one of each prefix.
struct State {
    unchecked: BTreeMap<Vec<usize>, Unchecked>,
    checked: CheckedRefutationSet,
    waiting_bytes: usize,
    /// The earliest known solution. Prefixes after it need no refutation.
    solution: Option<Vec<usize>>,
    /// The queries whose refutations cannot be checked.
    uncheckable: Vec<CompletionQuery>,
    /// The number of checked refutations that were kept when others were last forgotten.
    kept: usize,
    /// True if there is one that cannot be used.
    has_unusable: bool,
    /// The number of times that the search has begun again.
    restarts: u32,
    /// True once no more checks are wanted.
    ended: bool,
}

impl State {
    fn needs(&self, prefix: &[usize]) -> bool {
        self.solution.as_deref().is_none_or(|solution| prefix < solution)
    }

    const fn checks_first(&self) -> bool {
        self.restarts >= MOST_RESTARTS
    }

    /// Returns the refutation of this prefix that the search may use.
    fn usable(&self, prefix: &[usize]) -> Option<&Refutation> {
        let unchecked = self.unchecked.get(prefix).filter(|_| !self.checks_first());
        unchecked.and_then(Unchecked::refutation).or_else(|| self.checked.get(prefix))
    }

    /// Adds a refutation to be checked.
    fn add(&mut self, one: PrefixRefutation) {
        self.waiting_bytes += one.size();
        self.unchecked.insert(one.prefix.clone(), Unchecked::Waiting(Box::new(one)));
    }

    /// Forgets the waiting refutations, except those of prefixes for which `is_kept` returns true.
    fn retain_waiting(&mut self, is_kept: impl Fn(&[usize]) -> bool) {
        let Self { unchecked, waiting_bytes, .. } = self;
        unchecked.retain(|prefix, one| match one {
            Unchecked::Waiting(one) if !is_kept(prefix) => {
                *waiting_bytes -= one.size();
                false
            }
            _ => true,
        });
    }

    /// Makes a refutation that failed its check unusable or, if the search cannot have used it, removes
    /// it.
    fn refuse(&mut self, prefix: &[usize]) {
        if self.needs(prefix) && !self.checks_first() {
            self.unchecked.insert(prefix.to_vec(), Unchecked::Unusable);
            self.has_unusable = true;
        } else {
            self.unchecked.remove(prefix);
        }
    }

    /// Refuses the other refutations of a worker that gave a wrong one, so that the search begins again
    /// only once.
    fn refuse_all_of(&mut self, worker: &str) {
        let waiting = self.unchecked.iter().filter_map(|(prefix, one)| match one {
            Unchecked::Waiting(one) if one.worker() == Some(worker) => {
                Some((prefix.clone(), one.size()))
            }
            _ => None,
        });
        for (prefix, size) in waiting.collect::<Vec<_>>() {
            self.waiting_bytes -= size;
            self.refuse(&prefix);
        }
    }

    /// Returns the waiting refutation with the first prefix, which then is being checked.
    fn begin_check(&mut self) -> Option<PrefixRefutation> {
        let is_waiting = |one: &&mut Unchecked| matches!(one, Unchecked::Waiting(_));
        let first = self.unchecked.values_mut().find(is_waiting)?;
        let checking = Unchecked::Checking(first.refutation()?.clone());
        let Unchecked::Waiting(one) = std::mem::replace(first, checking) else { return None };
        self.waiting_bytes -= one.size();
        Some(*one)
    }
}

/// Returns the unchecked refutations of prefixes that begin with this one.
fn beginning_with<'u>(
    unchecked: &'u BTreeMap<Vec<usize>, Unchecked>,
    prefix: &'u [usize],
) -> impl Iterator<Item = &'u Unchecked> {
    let from = unchecked.range::<[usize], _>((Bound::Included(prefix), Bound::Unbounded));
    from.take_while(move |(longer, _)| longer.starts_with(prefix)).map(|(_, one)| one)
}

/// The refutations that the search of one proof uses, and their checks.
pub(super) struct RefutationChecks {
    n: usize,
    state: Mutex<State>,
    changed: Condvar,
}

impl RefutationChecks {
    /// Creates the checks for the board of size `n`, with the saved refutations of an earlier process.
    /// Checks those of `checked` again and removes those that fail; the others are to be checked.
    ///
    /// # Errors
    /// Returns an error if the meter ends the check.
    pub(super) fn new(
        n: usize,
        checked: &mut Refutations,
        unchecked: Refutations,
        meter: &mut Meter<'_>,
    ) -> Result<Self, ProofError> {
        let mut state = State {
            unchecked: BTreeMap::new(),
            checked: CheckedRefutationSet::new(n),
            waiting_bytes: 0,
            solution: None,
            uncheckable: Vec::new(),
            kept: 0,
            has_unusable: false,
            restarts: 0,
            ended: false,
        };
        let (mut failed, mut ended) = (Vec::new(), Ok(()));
        for (prefix, refutation) in &*checked {
            match CheckedRefutation::new(n, prefix, refutation.clone(), u64::MAX, meter) {
                Ok(one) => state.checked.insert(one),
                Err(error @ (ProofError::Stopped | ProofError::LimitReached(_))) => {
                    ended = Err(error);
                    break;
                }
                Err(error) => {
                    tracing::warn!("a saved refutation cannot be used: {error}");
                    failed.push(prefix.clone());
                }
            }
        }
        ended?;
        failed.iter().for_each(|prefix| drop(checked.remove(prefix)));
        for (prefix, refutation) in unchecked {
            if !checked.contains_key(&prefix) {
                state.add(PrefixRefutation { prefix, refutation, answered: None });
            }
        }
        Ok(Self { n, state: Mutex::new(state), changed: Condvar::new() })
    }

    /// Returns the refutation of this prefix that the search may use, if there is one. After several
    /// unusable ones, waits for its check as long as the refutation is `wanted`.
    pub(super) fn usable(&self, prefix: &[usize], wanted: &dyn Fn() -> bool) -> Option<Refutation> {
        let mut state = lock(&self.state);
        while state.checks_first() && state.unchecked.contains_key(prefix) && wanted() {
            state = self.wait(state);
        }
        state.usable(prefix).cloned()
    }

    /// Returns whether a refutation that answered this query could not be checked.
    pub(super) fn is_uncheckable(&self, query: &CompletionQuery) -> bool {
        lock(&self.state).uncheckable.contains(query)
    }

    /// Adds a refutation to be checked, unless its prefix has one. Returns that of the prefix, or `None`
    /// if it cannot be used or is no longer `wanted`.
    pub(super) fn add(
        &self,
        one: PrefixRefutation,
        wanted: &dyn Fn() -> bool,
    ) -> Option<Refutation> {
        let (prefix, refutation) = (one.prefix.clone(), one.refutation.clone());
        let mut state = lock(&self.state);
        while state.waiting_bytes > MOST_WAITING_BYTES && wanted() {
            state = self.wait(state);
        }
        if let Some(usable) = state.usable(&prefix) {
            return Some(usable.clone());
        }
        if !state.needs(&prefix) {
            return Some(refutation);
        }
        if !wanted() {
            return None;
        }
        if !state.unchecked.contains_key(&prefix) {
            state.add(one);
            self.changed.notify_all();
        }
        drop(state);
        self.usable(&prefix, wanted)
    }

    /// Returns the earliest solution that is known.
    pub(super) fn solution(&self) -> Option<Vec<usize>> {
        lock(&self.state).solution.clone()
    }

    /// Records a solution: prefixes after the earliest one need no refutation.
    pub(super) fn add_solution(&self, columns: &[usize]) {
        let mut state = lock(&self.state);
        if state.needs(columns) {
            state.solution = Some(columns.to_vec());
            state.retain_waiting(|prefix| prefix < columns);
        }
    }

    /// Checks refutations until [`end`](Self::end). Records the verdicts on answers through `solver`.
    pub(super) fn run(&self, solver: &RemoteSolver, is_stopped: &(dyn Fn() -> bool + Sync)) {
        let _guard = EndChecks(self);
        while self.wait_for_work() {
            let checked = solver.permits.within(|| self.check_next(is_stopped));
            if let Some(checked) = checked {
                self.conclude(checked, solver);
            }
        }
    }

    /// Waits until a refutation is to be checked. Returns false if no more checks are wanted.
    fn wait_for_work(&self) -> bool {
        let mut state = lock(&self.state);
        let is_waiting = |one: &Unchecked| matches!(one, Unchecked::Waiting(_));
        while !state.ended && !state.unchecked.values().any(is_waiting) {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        !state.ended
    }

    /// Checks the waiting refutation with the first prefix.
    fn check_next(&self, is_stopped: &dyn Fn() -> bool) -> Option<Check> {
        let one = lock(&self.state).begin_check()?;
        let is_stopped = || {
            let state = lock(&self.state);
            state.ended || !state.needs(&one.prefix) || is_stopped()
        };
        let mut meter = Meter::new(Some(MOST_STEPS)).stopped_by(&is_stopped);
        let (result, took) = timed(|| one.check(self.n, &mut meter));
        Some(Check { one, result, took })
    }

    /// Draws the conclusions from a check.
    fn conclude(&self, check: Check, solver: &RemoteSolver) {
        let Check { one: PrefixRefutation { prefix, answered, .. }, result, took } = check;
        let was_stopped = matches!(result, Err(ProofError::Stopped));
        let (mut uncheckable, mut liar) = (None, None);
        match (answered, &result) {
            _ if was_stopped => {}
            (Some((query, answered)), result) => {
                let verdict = result
                    .as_ref()
                    .map_or_else(AnswerVerdict::of_refutation, |_| AnswerVerdict::Good);
                match solver.conclude(&answered, verdict, took) {
                    AnswerVerdict::Good => {}
                    AnswerVerdict::Wrong(_) => liar = Some(answered.worker),
                    AnswerVerdict::Useless | AnswerVerdict::Unknown(_) => uncheckable = Some(query),
                }
            }
            (None, Err(error)) => tracing::warn!("a saved refutation cannot be used: {error}"),
            (None, Ok(_)) => {}
        }
        let mut state = lock(&self.state);
        state.uncheckable.extend(uncheckable);
        match result {
            Ok(checked) => {
                state.unchecked.remove(&prefix);
                state.checked.insert(checked);
            }
            // It is saved without its check.
            Err(_) if was_stopped && state.needs(&prefix) => {}
            Err(_) => state.refuse(&prefix),
        }
        if let Some(liar) = liar {
            state.refuse_all_of(&liar);
        }
        drop(state);
        self.changed.notify_all();
    }

    /// Returns whether the search has to end, because a refutation cannot be used or there are no more
    /// checks.
    pub(super) fn interrupt_search(&self) -> bool {
        let state = lock(&self.state);
        state.has_unusable || state.ended
    }

    /// Waits until the refutations of a certificate are checked, and forgets others that wait. Returns
    /// whether all of them are checked.
    pub(super) fn wait_for(&self, needed: &Refutations, is_stopped: &dyn Fn() -> bool) -> bool {
        let mut state = lock(&self.state);
        // Those of longer prefixes are needed only for refutations that consist of them.
        let is_whole = |(prefix, refutation): &(&Vec<usize>, &Refutation)| {
            state.usable(prefix) == Some(*refutation)
        };
        let whole: BTreeSet<Vec<usize>> =
            needed.iter().filter(is_whole).map(|(prefix, _)| prefix.clone()).collect();
        let is_needed = |prefix: &[usize]| {
            let mut shorter = (1..prefix.len()).map(|length| &prefix[..length]);
            whole.contains(prefix)
                || shorter.any(|shorter| needed.contains_key(shorter) && !whole.contains(shorter))
        };
        state.retain_waiting(is_needed);
        loop {
            let is_open = state.unchecked.keys().any(|prefix| is_needed(prefix));
            if state.has_unusable || state.ended || is_stopped() || !is_open {
                return !state.has_unusable && !is_open;
            }
            state = self.wait(state);
        }
    }

    /// Removes the refutations that cannot be used, so that the search can begin again. Returns false if
    /// there were none.
    pub(super) fn remove_unusable(&self, refuted: &mut Refutations) -> bool {
        let mut state = lock(&self.state);
        if !state.has_unusable {
            return false;
        }
        state.restarts += 1;
        let checks_first = state.checks_first();
        let prevents_use = |one: &Unchecked| checks_first || matches!(one, Unchecked::Unusable);
        refuted.retain(|prefix, _| !beginning_with(&state.unchecked, prefix).any(prevents_use));
        state.unchecked.retain(|_, one| !matches!(one, Unchecked::Unusable));
        state.has_unusable = false;
        true
    }

    /// Returns the refutations to be saved: those that are checked, and those that are not. Of the
    /// refutations of a search that have unchecked parts, the checked parts are among the former.
    pub(super) fn to_save(&self, refuted: &Refutations) -> (Refutations, Refutations) {
        let state = lock(&self.state);
        let (mut checked, mut unchecked) = (Refutations::new(), Refutations::new());
        for (prefix, refutation) in refuted.iter().filter(|(prefix, _)| state.needs(prefix)) {
            if beginning_with(&state.unchecked, prefix).next().is_none() {
                checked.insert(prefix.clone(), refutation.clone());
            } else {
                let parts = state.checked.iter().filter(|(longer, _)| longer.starts_with(prefix));
                checked.extend(parts.map(|(longer, part)| (longer.to_vec(), part.clone())));
            }
        }
        for (prefix, one) in &state.unchecked {
            unchecked
                .extend(one.refutation().map(|refutation| (prefix.clone(), refutation.clone())));
        }
        (checked, unchecked)
    }

    /// Calls `work` with the checked refutations.
    pub(super) fn with_checked<T>(&self, work: impl FnOnce(&CheckedRefutationSet) -> T) -> T {
        work(&lock(&self.state).checked)
    }

    /// Forgets checked refutations if there are many more than the last time. Keeps those of the
    /// prefixes of `refuted`, and those that these consist of.
    pub(super) fn forget_unused(&self, refuted: &Refutations) {
        const MOST_UNUSED: usize = 100;
        let State { checked, kept, .. } = &mut *lock(&self.state);
        if checked.len() <= MOST_UNUSED + 2 * *kept {
            return;
        }
        checked.retain(|prefix| {
            (1..=prefix.len()).any(|length| refuted.contains_key(&prefix[..length]))
        });
        *kept = checked.len();
    }

    /// Ends the checks.
    pub(super) fn end(&self) {
        lock(&self.state).ended = true;
        self.changed.notify_all();
    }

    /// Waits for a change, but no longer than [`POLL`].
    fn wait<'s>(&self, state: MutexGuard<'s, State>) -> MutexGuard<'s, State> {
        let waited = self.changed.wait_timeout(state, POLL);
        waited.unwrap_or_else(PoisonError::into_inner).0
    }
}

/// The result of a check, and the time that it took.
struct Check {
    one: PrefixRefutation,
    result: Result<CheckedRefutation, ProofError>,
    took: Duration,
}

/// A guard that ends the checks, also on a panic.
pub(super) struct EndChecks<'a>(pub(super) &'a RefutationChecks);

impl Drop for EndChecks<'_> {
    fn drop(&mut self) {
        self.0.end();
    }
}

/// Returns the maximum work for checking a refutation, in the unit of certificates.
fn most_work(query: &CompletionQuery, refutation: &Refutation) -> u64 {
    /// For each node of such a search: two to four queens are usual.
    const NODE: u64 = 8;
    /// For each linear relaxation that was allowed, and once more: as much as all of n = 62 takes,
    /// which is half a second.
    const EACH: u64 = 200_000;
    /// For an eliminated cell: a queen and a dual bound. A refutation may eliminate again all cells
    /// that were eliminated above it, which cost the solver no linear relaxation; but it has to
    /// name each cell.
    const SQUARE: u64 = 501;
    let squares = (query.n * query.n).min(refutation.as_bytes().len()) as u64;
    EACH.saturating_mul(query.programmes.saturating_add(1))
        .saturating_add(NODE.saturating_mul(query.node_limit))
        .saturating_add(SQUARE * squares)
}

impl AnswerVerdict {
    /// Returns the verdict on a refutation whose check ended with this error.
    pub(super) fn of_refutation(error: &ProofError) -> Self {
        match error {
            ProofError::TooMuchWork(_) | ProofError::LimitReached(_) | ProofError::Stopped => {
                Self::Useless
            }
            ProofError::UnknownStep(_) => Self::Unknown(format!("of a refutation, {error}")),
            _ => Self::Wrong(format!("its refutation is wrong: {error}")),
        }
    }
}

#[cfg(test)]
mod tests;
