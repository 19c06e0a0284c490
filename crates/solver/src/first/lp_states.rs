//! The LPs that several queries share, and their states after earlier queries: a basis that is
//! optimal for a similar board saves most of the iterations.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use super::params;
use super::relaxation::{Assignment, Master};
use super::residual::Residual;
use super::set_pool::SetPool;
use super::width::Width;

/// The LPs of a board that is common to several queries.
#[derive(Clone)]
pub(super) struct Relaxations<W: Width> {
    /// The columns of the first rows of that board.
    prefix: Vec<usize>,
    pub(super) assignment: Assignment,
    pub(super) master: Master<W>,
    /// The open rows of that board.
    pub(super) rows: W::Columns,
    /// The prefix of the last query.
    last_prefix: Vec<usize>,
}

impl<W: Width> Relaxations<W> {
    /// Builds the LPs of `board`, which has the queens of `prefix`.
    pub(super) fn new(
        prefix: &[usize],
        board: &Residual<'_, W>,
        set_pool: &Arc<Mutex<SetPool<W>>>,
    ) -> Self {
        Self {
            prefix: prefix.to_vec(),
            assignment: Assignment::new(board),
            master: Master::new(board, Arc::clone(set_pool)),
            rows: board.rows(),
            last_prefix: Vec::new(),
        }
    }

    /// Begins a query about this prefix.
    pub(super) fn begin_query(&mut self, prefix: &[usize]) {
        self.last_prefix = prefix.to_vec();
    }

    /// Returns whether queries about extensions of `shared` by one queen can use these LPs.
    pub(super) fn is_usable(&self, shared: &[usize]) -> bool {
        shared.starts_with(&self.prefix)
            && shared.len() - self.prefix.len() <= params::MAX_ROWS_BEYOND
            && self.master.sets() <= params::MOST_SETS
    }

    /// Returns the number of queens that this prefix has in common with that of the last query.
    fn in_common(&self, prefix: &[usize]) -> usize {
        self.last_prefix.iter().zip(prefix).take_while(|(a, b)| a == b).count()
    }
}

/// The states of LPs after queries that were given up, the most recent one for each number of
/// queens. No code that locks them can panic half-way through a change.
pub(super) struct LpStates<W: Width>(BTreeMap<usize, Arc<Relaxations<W>>>);

impl<W: Width> Default for LpStates<W> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<W: Width> LpStates<W> {
    /// Adds a state instead of those of queries about as many queens or more. If there are too
    /// many, forgets that of the query about the fewest.
    pub(super) fn add(&mut self, state: Arc<Relaxations<W>>) {
        let queens = state.last_prefix.len();
        drop(self.0.split_off(&queens));
        self.0.insert(queens, state);
        while self.0.len() > params::KEPT_LP_STATES {
            self.0.pop_first();
        }
    }

    /// Returns the state for queries about extensions of `shared` by one queen if it is better than
    /// `own`: that one is not usable, or its last query was about a board that has less in common.
    pub(super) fn better(
        &self,
        shared: &[usize],
        own: Option<&Relaxations<W>>,
    ) -> Option<Arc<Relaxations<W>>> {
        let own = own.filter(|own| own.is_usable(shared)).map(|own| own.in_common(shared));
        let usable = self.0.values().filter(|state| state.is_usable(shared));
        let best = usable.max_by_key(|state| state.in_common(shared))?;
        own.is_none_or(|own| own < best.in_common(shared)).then(|| Arc::clone(best))
    }
}

#[cfg(test)]
mod tests {
    use super::super::width::Width64x64;
    use super::*;
    use nqueens_proof::board::Square;

    /// Returns the LPs of the board with the queens of `prefix`, after a query about `last`.
    fn state(prefix: &[usize], last: &[usize]) -> Arc<Relaxations<Width64x64>> {
        let queens: Vec<_> =
            prefix.iter().enumerate().map(|(row, &column)| Square::new(row, column)).collect();
        let board = Residual::<Width64x64>::new(12, &queens);
        let mut state = Relaxations::new(prefix, &board, &Arc::default());
        state.begin_query(last);
        Arc::new(state)
    }

    /// Returns the prefix of the last query of the state that is better than `own`.
    fn better(
        states: &LpStates<Width64x64>,
        shared: &[usize],
        own: Option<&Relaxations<Width64x64>>,
    ) -> Option<Vec<usize>> {
        states.better(shared, own).map(|state| state.last_prefix.clone())
    }

    #[test]
    fn a_state_is_better_if_its_last_board_has_more_in_common() {
        let mut states = LpStates::default();
        states.add(state(&[0], &[0, 2]));
        states.add(state(&[0], &[0, 2, 4]));
        assert_eq!(better(&states, &[0, 2], None), Some(vec![0, 2, 4]));
        assert_eq!(better(&states, &[0, 2, 4], None), Some(vec![0, 2, 4]));
        assert_eq!(better(&states, &[0, 5], None), Some(vec![0, 2, 4]), "any one is usable");
        assert_eq!(better(&states, &[1], None), None, "none is usable");
        let own = state(&[0], &[0, 2, 5]);
        assert_eq!(better(&states, &[0, 2], Some(&own)), None);
        assert_eq!(better(&states, &[0, 2, 4], Some(&own)), Some(vec![0, 2, 4]));
        let other = state(&[1], &[1, 3]);
        assert_eq!(better(&states, &[0, 2], Some(&other)), Some(vec![0, 2, 4]));
    }

    #[test]
    fn lps_are_usable_for_a_few_more_rows() {
        let prefix = [0, 2, 4, 1, 3, 8];
        let most = params::MAX_ROWS_BEYOND;
        let mut states = LpStates::default();
        states.add(state(&prefix[..1], &prefix[..2]));
        assert!(states.better(&prefix[..=most], None).is_some());
        assert!(states.better(&prefix[..most + 2], None).is_none());
    }

    #[test]
    fn a_state_replaces_those_of_as_many_queens_or_more_and_the_number_is_limited() {
        let mut states = LpStates::default();
        let last: Vec<usize> = (0..params::KEPT_LP_STATES + 4).collect();
        let numbers = |states: &LpStates<Width64x64>| states.0.keys().copied().collect::<Vec<_>>();
        (2..last.len()).for_each(|queens| states.add(state(&[], &last[..queens])));
        assert_eq!(numbers(&states), (4..last.len()).collect::<Vec<_>>());
        states.add(state(&[], &last[..6]));
        assert_eq!(numbers(&states), [4, 5, 6]);
    }
}
