//! The checks of the refutations that the search for a first solution uses.
//!
//! A check may take longer than the worker's search did, so the search at the coordinator does not
//! wait for it: it uses a refutation at once, while other threads check those that it uses, in
//! lexicographic order of their prefixes, those below a refuted prefix last. The certificate is
//! made of checked refutations only. Refutations by the multipliers of other answers are checked
//! before they are used. If one cannot be used, because it is wrong or its check takes too long,
//! the search begins again without it and keeps the others. That stops the queries of honest
//! workers, too, so from the third time on, the search waits for the check of each refutation.

mod used_refutations;

use std::collections::BTreeSet;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

pub(super) use self::used_refutations::PrefixRefutation;
use self::used_refutations::{Unchecked, UsedRefutations};
use super::super::lock;
use super::remote_solver::{AnswerVerdict, MOST_STEPS, RemoteSolver, timed};
use crate::cluster::protocol::CompletionQuery;
use crate::proof::first::{CheckedRefutation, CheckedRefutationSet, Refutation};
use crate::proof::{Meter, ProofError};
use crate::solver::first::{KnownMultipliers, Refutations};

/// The size of the refutations that wait for their checks, in bytes, beyond which solvers wait.
const MOST_WAITING_BYTES: usize = 64 << 20;

/// The interval for polling a condition whose change no signal announces.
const POLL: Duration = Duration::from_millis(50);

/// The refutations that the search of one proof uses, and their checks.
pub(super) struct RefutationChecks {
    n: usize,
    state: Mutex<UsedRefutations>,
    changed: Condvar,
    /// The multipliers of the answers and of the saved refutations.
    known: KnownMultipliers,
}

impl RefutationChecks {
    /// Creates the checks for the board of size `n`, with the saved refutations of an earlier
    /// process. Checks those of `checked` again and removes those that fail; the others are to be
    /// checked.
    ///
    /// # Errors
    /// Returns an error if the meter ends the check.
    pub(super) fn new(
        n: usize,
        checked: &mut Refutations,
        unchecked: Refutations,
        meter: &mut Meter<'_>,
    ) -> Result<Self, ProofError> {
        let mut state = UsedRefutations::new(n);
        let known = KnownMultipliers::new(n);
        checked.values().chain(unchecked.values()).for_each(|refutation| known.add(refutation));
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
        Ok(Self { n, state: Mutex::new(state), changed: Condvar::new(), known })
    }

    /// Returns the refutation of this prefix that the search may use, if there is one. After
    /// several unusable ones, waits for its check as long as the refutation is `wanted`.
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

    /// Returns a function that refutes a prefix by the multipliers of recent refutations that were
    /// added since its last call, if any of them do.
    pub(super) fn refuter(&self, prefix: &[usize]) -> Box<dyn FnMut() -> Option<Refutation> + '_> {
        self.known.refuter(prefix)
    }

    /// Checks a refutation by known multipliers, which takes about as long as finding it, and adds
    /// it. Returns whether it can be used.
    pub(super) fn add_own(
        &self,
        prefix: &[usize],
        refutation: &Refutation,
        wanted: &dyn Fn() -> bool,
    ) -> bool {
        // One dual bound. Propagation does not count.
        let limit = 500;
        let is_stopped = || !wanted();
        let mut meter = Meter::new(Some(MOST_STEPS)).stopped_by(&is_stopped);
        match CheckedRefutation::new(self.n, prefix, refutation.clone(), limit, &mut meter) {
            Ok(checked) => {
                lock(&self.state).checked.insert(checked);
                return true;
            }
            Err(ProofError::Stopped) => {}
            Err(error) => tracing::warn!("known multipliers do not refute a prefix: {error}"),
        }
        false
    }

    /// Adds a refutation to be checked, unless its prefix has one. Returns that of the prefix, or
    /// `None` if it cannot be used or is no longer `wanted`.
    pub(super) fn add(
        &self,
        one: PrefixRefutation,
        wanted: &dyn Fn() -> bool,
    ) -> Option<Refutation> {
        let (prefix, refutation) = (one.prefix.clone(), one.refutation.clone());
        self.known.add(&refutation);
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

    /// Checks refutations until [`end`](Self::end). Records the verdicts on answers through
    /// `solver`.
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

    /// Checks the next waiting refutation.
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
        let Check { one: PrefixRefutation { prefix, refutation, answered }, result, took } = check;
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
        let is_open = state.is_checking(&prefix, &refutation);
        match result {
            Ok(checked) => {
                state.checked.insert(checked);
                if is_open {
                    state.unchecked.remove(&prefix);
                }
            }
            // It is saved without its check.
            Err(_) if was_stopped && state.needs(&prefix) => {}
            Err(_) if is_open => state.refuse(&prefix),
            Err(_) => {}
        }
        if let Some(liar) = liar {
            state.refuse_all_of(&liar);
        }
        drop(state);
        self.changed.notify_all();
    }

    /// Returns whether the search has to end, because a refutation cannot be used or there are no
    /// more checks.
    pub(super) fn interrupt_search(&self) -> bool {
        let state = lock(&self.state);
        state.has_unusable() || state.ended
    }

    /// Waits until the refutations of a certificate are checked, and forgets others that wait.
    /// Returns whether all of them are checked.
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
            let has_unusable = state.has_unusable();
            if has_unusable || state.ended || is_stopped() || !is_open {
                return !has_unusable && !is_open;
            }
            state = self.wait(state);
        }
    }

    /// Removes the refutations that cannot be used, so that the search can begin again. Of those
    /// that consist of others, the checked parts replace them. Returns false if there were none.
    pub(super) fn remove_unusable(&self, refuted: &mut Refutations) -> bool {
        let mut state = lock(&self.state);
        if !state.has_unusable() {
            return false;
        }
        state.restarts += 1;
        let checks_first = state.checks_first();
        let prevents_use = |one: &Unchecked| checks_first || matches!(one, Unchecked::Unusable);
        let mut parts = Refutations::new();
        refuted.retain(|prefix, _| {
            let is_removed = state.unchecked_below(prefix).any(prevents_use);
            if is_removed {
                parts.extend(state.checked_below(prefix));
            }
            !is_removed
        });
        refuted.append(&mut parts);
        state.unchecked.retain(|_, one| !matches!(one, Unchecked::Unusable));
        true
    }

    /// Returns the refutations to be saved: those that are checked, and those that are not. Of the
    /// refutations of a search that have unchecked parts, the checked parts are among the former.
    pub(super) fn to_save(&self, refuted: &Refutations) -> (Refutations, Refutations) {
        let state = lock(&self.state);
        let (mut checked, mut unchecked) = (Refutations::new(), Refutations::new());
        for (prefix, refutation) in refuted.iter().filter(|(prefix, _)| state.needs(prefix)) {
            if state.unchecked_below(prefix).next().is_none() {
                checked.insert(prefix.clone(), refutation.clone());
            } else {
                checked.extend(state.checked_below(prefix));
            }
        }
        for (prefix, one) in &state.unchecked {
            unchecked
                .extend(one.refutation().map(|refutation| (prefix.clone(), refutation.clone())));
        }
        (checked, unchecked)
    }

    /// Ends the checks and returns the checked refutations.
    pub(super) fn take_checked(&self) -> CheckedRefutationSet {
        self.end();
        std::mem::replace(&mut lock(&self.state).checked, CheckedRefutationSet::new(self.n))
    }

    /// Forgets checked refutations if there are many more than the last time. Keeps those of the
    /// prefixes of `refuted`, and those that these consist of.
    pub(super) fn forget_unused(&self, refuted: &Refutations) {
        const MOST_UNUSED: usize = 100;
        let UsedRefutations { checked, kept, .. } = &mut *lock(&self.state);
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
    fn wait<'s>(&self, state: MutexGuard<'s, UsedRefutations>) -> MutexGuard<'s, UsedRefutations> {
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
