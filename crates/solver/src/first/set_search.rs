//! The search through the sets of diagonals that a completion can use.
//!
//! On most boards there are astronomically many pairs of sets, but on the tightest ones, where the
//! linear relaxations leave many cells and limited searches do not end, there are a few hundred
//! ([`DiagonalSets`]). The search divides them by cases: a diagonal is used, or it is not.
//! Propagation refutes most sets of one direction at once. All diagonals of a set must be used, so
//! a few LPs refute most of the others, and decide the boards of the pairs that are left.

use std::sync::{Arc, Mutex};

use super::completion_search::CompletionSearch;
use super::components::Components;
use super::dual_bound::DualBound;
use super::limits::Limits;
use super::listed_sets::{keep_to, list};
use super::lp_states::Relaxations;
use super::proofs::Proofs;
use super::query::QueryOutcome;
use super::residual::{Branch, Residual, State};
use super::width::Width;
use nqueens_proof::first::{AssumedDiagonals, DiagonalSets, Line, Refutation};

/// No assumption about either direction.
const NOTHING: [AssumedDiagonals; 2] = [AssumedDiagonals::NONE; 2];

impl<W: Width> CompletionSearch<'_, W> {
    /// Searches through the sets of diagonals of the board with at most so many LPs, if these sets
    /// are few.
    pub(super) fn search_by_sets(&mut self, board: &Residual<'_, W>, lps: u64) -> QueryOutcome {
        if lps == 0 || !self.listing.is_due() {
            return QueryOutcome::GivenUp;
        }
        let listed = list(board);
        self.listing.add(listed.is_some());
        let Some(sets) = listed else { return QueryOutcome::GivenUp };
        // Multipliers that refute a case prove nothing about the whole board.
        let proofs = Mutex::new(Proofs::default());
        let mut relaxations = Relaxations::new(&[], board, &Arc::default());
        let mut search = CompletionSearch {
            n: self.n,
            task: self.task,
            left: Limits { lps, ..Limits::QUICK },
            relaxations: &mut relaxations,
            proofs: &proofs,
            weights: &mut *self.weights,
            refuted_positions: &mut *self.refuted_positions,
            listing: &mut *self.listing,
            nodes_of_refutation: &mut *self.nodes_of_refutation,
            is_local: self.is_local,
            components: Components::default(),
            random: self.random.clone(),
            noise: 0.0,
            in_order: false,
            only_dives: false,
        };
        let outcome = search.search_case(board, sets, &NOTHING, |search, board, branch, sets| {
            search.relax(&board, branch, sets)
        });
        match outcome {
            QueryOutcome::Refuted(then) => QueryOutcome::Refuted(Refutation::listed_sets(&then)),
            other => other,
        }
    }

    /// Searches the board with those of the sets that are possible under an assumption. `open`
    /// continues if propagation does not decide it.
    fn search_case<'b>(
        &mut self,
        board: &Residual<'b, W>,
        mut sets: DiagonalSets,
        assumed: &[AssumedDiagonals; 2],
        open: impl FnOnce(&mut Self, Residual<'b, W>, Branch, DiagonalSets) -> QueryOutcome,
    ) -> QueryOutcome {
        let mut board = *board;
        match keep_to(&mut sets, assumed, &mut board) {
            State::Refuted => QueryOutcome::Refuted(Refutation::search()),
            State::Full => QueryOutcome::Completed(board.solution()),
            State::Open(branch) => open(self, board, branch, sets),
        }
    }

    /// Looks for a refutation by the relaxations, and divides the sets if there is none.
    fn relax(
        &mut self,
        board: &Residual<'_, W>,
        branch: Branch,
        sets: DiagonalSets,
    ) -> QueryOutcome {
        if sets.len(0) == 1 && sets.len(1) == 1 {
            self.relaxations.master.knapsack().listed = None;
            return self.search(*board, branch);
        }
        if self.task.is_stopped() {
            return QueryOutcome::Stopped;
        }
        if self.left.lps == 0 {
            return QueryOutcome::GivenUp;
        }
        self.left.lps -= 1;
        self.relaxations.master.knapsack().listed = Some(sets.clone());
        let Some(multipliers) = self.relaxations.assignment.multipliers(board, self.task) else {
            return QueryOutcome::GivenUp;
        };
        let refuted = |then: &Refutation| Refutation::dual_bound(&multipliers, true, then);
        let Some((dual_bound, slack)) =
            DualBound::new(board, &multipliers, self.relaxations.master.knapsack())
        else {
            return QueryOutcome::Refuted(refuted(&Refutation::search()));
        };
        let mut bounded = *board;
        bounded.push(&dual_bound, slack);
        let outcome = self.search_case(&bounded, sets, &NOTHING, |search, board, _, sets| {
            search.refute_by_master(&board, &sets).unwrap_or_else(|| search.divide(&board, &sets))
        });
        match outcome {
            QueryOutcome::Refuted(then) => QueryOutcome::Refuted(refuted(&then)),
            other => other,
        }
    }

    /// Looks for a refutation by the master program over these sets.
    fn refute_by_master(
        &mut self,
        board: &Residual<'_, W>,
        sets: &DiagonalSets,
    ) -> Option<QueryOutcome> {
        let master = &mut self.relaxations.master;
        master.knapsack().listed = Some(sets.clone());
        let multipliers = master.refute(board, board.used(self.relaxations.rows), self.task)?;
        let then = Refutation::search();
        Some(QueryOutcome::Refuted(Refutation::dual_bound(&multipliers, true, &then)))
    }

    /// Divides the sets of the direction that has fewer, but more than one, until it has one in
    /// each case. The first case is the one that the assignment relaxation rather uses.
    fn divide(&mut self, board: &Residual<'_, W>, sets: &DiagonalSets) -> QueryOutcome {
        let [falling, rising] = [0, 1].map(|direction| sets.len(direction));
        if falling == 1 && rising == 1 {
            return self.search_case(
                board,
                sets.clone(),
                &NOTHING,
                |search, board, branch, sets| search.relax(&board, branch, sets),
            );
        }
        let direction = usize::from(falling == 1 || rising > 1 && rising < falling);
        let diagonal = most_even(sets, direction);
        let (branch, line) = match direction {
            0 => (Branch::Diagonal(diagonal), Line::Diagonal(diagonal)),
            _ => (Branch::Antidiagonal(diagonal), Line::Antidiagonal(diagonal)),
        };
        let values = self.relaxations.assignment.values(&board.cells(branch).collect::<Vec<_>>());
        let used_first = values.iter().sum::<f64>() > 0.5;
        let mut refutations = [Refutation::search(), Refutation::search()];
        for used in [used_first, !used_first] {
            let mut assumed = NOTHING;
            assumed[direction].add(diagonal, used);
            let outcome =
                self.search_case(board, sets.clone(), &assumed, |search, board, branch, sets| {
                    if sets.len(0) > 1 && sets.len(1) > 1 {
                        search.divide(&board, &sets)
                    } else {
                        search.relax(&board, branch, sets)
                    }
                });
            match outcome {
                QueryOutcome::Refuted(refutation) => refutations[usize::from(used)] = refutation,
                other => return other,
            }
        }
        let [unused, used] = &refutations;
        QueryOutcome::Refuted(Refutation::cases(self.n, line, unused, used))
    }
}

/// Returns a diagonal of a direction that about half of its sets contain.
fn most_even(sets: &DiagonalSets, direction: usize) -> usize {
    let mut with = [0; 256];
    sets.sets(direction).for_each(|set| set.iter().for_each(|diagonal| with[diagonal] += 1));
    let divided = |diagonal: usize| with[diagonal].min(sets.len(direction) - with[diagonal]);
    (0..with.len()).max_by_key(|&diagonal| divided(diagonal)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use fastrand::Rng;
    use nqueens_proof::first::check_refutation;

    use super::super::concurrent_queries::PrefixQuery;
    use super::super::control::{Control, Task};
    use super::super::query::{LocalSolver, QuerySolver as _};
    use super::super::tests::{completions, leftmost_prefix};
    use super::super::width::Width64x64;
    use super::*;

    #[test]
    fn searches_through_sets_of_diagonals_agree_with_backtracking() {
        let mut random = Rng::with_seed(30);
        let control = Control::default();
        let (mut given_up, mut refuted, mut completed) = (0, 0, 0);
        for n in 10..=16 {
            let mut solver = LocalSolver::<Width64x64>::new(n, &[], &[]);
            for _ in 0..60 {
                let queens = random.usize(n / 5..=n / 2);
                let prefix = leftmost_prefix(n, queens, 3, &mut random);
                let completions = completions(n, &prefix);
                let before = control.lps_solved();
                let set_search_lps = random.choice([1, 3, u64::MAX]).unwrap_or(0);
                // Without other LPs, nothing else decides an open board.
                let query = PrefixQuery { set_search_lps, ..PrefixQuery::new(&prefix, 0, 0) };
                let outcome = solver.solve(&query, Task::alone(&control));
                let is_searched = control.lps_solved() > before;
                match outcome {
                    QueryOutcome::Refuted(refutation) => {
                        assert!(completions.is_empty(), "{prefix:?} of {n}");
                        let checked = check_refutation(n, &prefix, &refutation, u64::MAX);
                        assert!(checked.is_ok(), "{prefix:?} of {n}");
                        refuted += usize::from(is_searched);
                    }
                    QueryOutcome::Completed(columns) => {
                        assert!(completions.contains(&columns), "{prefix:?} of {n}: {columns:?}");
                        completed += usize::from(is_searched);
                    }
                    QueryOutcome::GivenUp => given_up += 1,
                    QueryOutcome::Stopped => panic!("nothing stops it"),
                }
            }
        }
        let numbers = [given_up, refuted, completed];
        assert!(numbers.iter().all(|&number| number > 20), "{numbers:?}");
    }
}
