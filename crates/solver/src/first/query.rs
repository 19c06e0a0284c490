//! One completion query: does the board with these queens on its first rows have a completion? The
//! answer is a completion or a refutation that can be checked.

use std::fmt;
use std::sync::{Arc, Mutex};

use fastrand::Rng;

use super::completion_search::CompletionSearch;
use super::components::Components;
use super::concurrent_queries::PrefixQuery;
use super::control::Task;
use super::limits::Limits;
use super::listed_sets::Backoff;
use super::lp_states::{LpStates, Relaxations};
use super::params;
use super::proofs::Proofs;
use super::refuted_positions::RefutedPositions;
use super::residual::{Residual, State};
use super::set_pool::SetPool;
use super::weights::Weights;
use super::width::{Width, Width64x64, Width128x128};
use crate::threads::lock;
use nqueens_proof::board::Square;
use nqueens_proof::first::Refutation;

/// The outcome of a query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum QueryOutcome {
    /// There is no completion.
    Refuted(Refutation),
    /// A completion: the column of each row.
    Completed(Vec<usize>),
    /// The query needs more LPs than its limit allows.
    GivenUp,
    /// The run was stopped.
    Stopped,
}

/// A solver for queries about one board, one after the other. Neighbouring prefixes are best sent
/// to the same solver, which reuses the LPs and the multipliers of earlier queries.
pub trait QuerySolver: Send {
    /// Decides whether the prefix of the query, together with the placed queens, has a completion.
    fn solve(&mut self, query: &PrefixQuery<'_>, task: Task<'_>) -> QueryOutcome;
}

/// A factory of solvers for one board, each of which uses what the others have proved, and their
/// LPs.
pub struct QuerySolverFactory(Box<dyn Fn() -> Box<dyn QuerySolver> + Send + Sync>);

impl fmt::Debug for QuerySolverFactory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("QuerySolverFactory").finish_non_exhaustive()
    }
}

impl QuerySolverFactory {
    /// Creates a factory of solvers for the queries of another machine, which limits the work for
    /// checking an answer. So these solvers remember no positions that were refuted for earlier
    /// queries, which the checker would have to search. The board of size `n` has no queens.
    ///
    /// # Panics
    /// If n is larger than [`LARGEST`](crate::first::LARGEST).
    pub fn remote(n: usize) -> Self {
        Self::new(n, &[], &[], false)
    }

    /// Creates a factory of solvers for the queries of this process or, unless `is_local` is set,
    /// of another machine. The board has placed queens and blocked squares as for
    /// [`query_solvers`].
    fn new(n: usize, placed: &[Square], blocked: &[Square], is_local: bool) -> Self {
        fn factory<W: Width>(board: LocalSolver<W>) -> QuerySolverFactory {
            QuerySolverFactory(Box::new(move || Box::new(board.sharing())))
        }
        assert!(n <= crate::first::LARGEST);
        if n <= Width64x64::ROWS {
            let board = LocalSolver::<Width64x64>::new(n, placed, blocked);
            factory(LocalSolver { is_local, ..board })
        } else {
            let board = LocalSolver::<Width128x128>::new(n, placed, blocked);
            factory(LocalSolver { is_local, ..board })
        }
    }

    /// Creates a solver.
    pub fn create(&self) -> Box<dyn QuerySolver> {
        (self.0)()
    }
}

/// Creates local solvers for the board of size `n` with placed queens, none of which attacks
/// another, and blocked squares, which no placed queen is on. Each of them uses what the others
/// have proved, and their LPs.
///
/// # Panics
/// If n is larger than [`LARGEST`](crate::first::LARGEST).
pub fn query_solvers(
    number: usize,
    n: usize,
    placed: &[Square],
    blocked: &[Square],
) -> Vec<Box<dyn QuerySolver>> {
    let factory = QuerySolverFactory::new(n, placed, blocked, true);
    (0..number).map(|_| factory.create()).collect()
}

/// Returns the outcome of a query that propagation alone decides, or `None` if it does not.
///
/// # Panics
/// If n is larger than [`LARGEST`](crate::first::LARGEST), or queens of `prefix` attack each other.
pub fn decide_by_propagation(n: usize, prefix: &[usize]) -> Option<QueryOutcome> {
    fn decide<W: Width>(n: usize, prefix: &[usize]) -> Option<QueryOutcome> {
        let mut board = LocalSolver::<W>::new(n, &[], &[]).board(prefix);
        match board.propagate() {
            State::Refuted => Some(QueryOutcome::Refuted(Refutation::search())),
            State::Full => Some(QueryOutcome::Completed(board.solution())),
            State::Open(_) => None,
        }
    }
    assert!(n <= crate::first::LARGEST);
    if n <= Width64x64::ROWS {
        decide::<Width64x64>(n, prefix)
    } else {
        decide::<Width128x128>(n, prefix)
    }
}

/// A solver in this process, with the state that is kept between queries.
pub(super) struct LocalSolver<W: Width> {
    n: usize,
    placed: Vec<Square>,
    blocked: Vec<Square>,
    relaxations: Option<Relaxations<W>>,
    weights: Weights,
    refuted_positions: RefutedPositions,
    /// The nodes of the last long search on a board of odd size if that refuted the board, or 0;
    /// also 0 after a dive with a completion.
    nodes_of_refutation: u64,
    listing: Backoff,
    /// True for the queries of this process: the work for checking an answer is not limited, so
    /// refuted positions are kept for later queries about the same prefix and longer ones, and
    /// refutations by limited searches are short.
    is_local: bool,
    proofs: Arc<Mutex<Proofs<W>>>,
    set_pool: Arc<Mutex<SetPool<W>>>,
    lp_states: Arc<Mutex<LpStates<W>>>,
}

impl<W: Width> QuerySolver for LocalSolver<W> {
    fn solve(&mut self, query: &PrefixQuery<'_>, task: Task<'_>) -> QueryOutcome {
        let PrefixQuery { prefix, lp_limit, attempt, only_dives, .. } = *query;
        let set_search_lps = if only_dives { 0 } else { query.set_search_lps };
        let mut board = self.board(prefix);
        let branch = match board.propagate() {
            State::Refuted => return QueryOutcome::Refuted(Refutation::search()),
            State::Full => return QueryOutcome::Completed(board.solution()),
            State::Open(branch) => branch,
        };
        // Queries that differ in the last row share the LPs of the board without it.
        let shared = &prefix[..prefix.len().saturating_sub(1)];
        let better = lock(&self.lp_states).better(shared, self.relaxations.as_ref());
        if let Some(better) = better {
            self.relaxations = Some(Relaxations::clone(&better));
        } else if !self.relaxations.as_ref().is_some_and(|own| own.is_usable(shared)) {
            let mut lp_board = self.board(shared);
            if !matches!(lp_board.propagate(), State::Open(_)) {
                lp_board = self.board(shared);
            }
            self.relaxations = Some(Relaxations::new(shared, &lp_board, &self.set_pool));
        }
        let Some(relaxations) = &mut self.relaxations else { return QueryOutcome::GivenUp };
        relaxations.begin_query(prefix);
        let left = Limits::new(self.n, lp_limit, query.node_limit);
        if left.searching > 0 || lp_limit >= params::LONG_QUERY_LPS {
            if !self.is_local {
                self.refuted_positions = RefutedPositions::default();
            }
            self.refuted_positions.begin(prefix);
        }
        let noise = if attempt > 0 { params::BRANCHING_NOISE } else { 0.0 };
        let mut search = CompletionSearch {
            n: self.n,
            task,
            left,
            relaxations,
            proofs: &self.proofs,
            weights: &mut self.weights,
            refuted_positions: &mut self.refuted_positions,
            nodes_of_refutation: &mut self.nodes_of_refutation,
            listing: &mut self.listing,
            is_local: self.is_local,
            components: Components::default(),
            random: Rng::with_seed(attempt),
            noise,
            in_order: self.n.is_multiple_of(2),
            only_dives,
        };
        if let Some(refutation) = search.prove_again(&board) {
            return QueryOutcome::Refuted(refutation);
        }
        let known = lock(&self.proofs).eliminated(prefix);
        let known = known.as_ref();
        let own = known.filter(|(other, _)| other == prefix).map(|(_, eliminated)| &**eliminated);
        let more = lp_limit >= params::ELIMINATING_QUERY_LPS
            && own.is_none_or(|own| {
                own.can_continue(lp_limit.saturating_mul(params::MAX_PROBES_PER_LP))
            });
        if !more && known.is_none() {
            let outcome = search.search(board, branch);
            if outcome != QueryOutcome::GivenUp {
                return outcome;
            }
            lock(&self.lp_states).add(Arc::new(search.relaxations.clone()));
            return search.search_by_sets(&board, set_search_lps);
        }
        // A prefix that is easily refuted does not need elimination.
        if attempt == 0 {
            let all = std::mem::replace(&mut search.left, Limits::QUICK);
            match search.search(board, branch) {
                QueryOutcome::GivenUp => {}
                other => return other,
            }
            search.left = all;
        }
        match search.search_by_sets(&board, set_search_lps) {
            QueryOutcome::GivenUp => {}
            other => return other,
        }
        let (state, eliminated) = search.eliminate(
            &mut board,
            known.map(|(_, eliminated)| &**eliminated),
            own,
            more.then_some(lp_limit.saturating_mul(params::MAX_PROBES_PER_LP)),
        );
        search.in_order = false;
        search.left.if_tight = lp_limit;
        let outcome = match state {
            State::Refuted => QueryOutcome::Refuted(Refutation::search()),
            State::Full => QueryOutcome::Completed(board.solution()),
            State::Open(branch) => search.search(board, branch),
        };
        let outcome = match outcome {
            QueryOutcome::Refuted(then) => {
                QueryOutcome::Refuted(eliminated.refutation(self.n, then))
            }
            other => other,
        };
        if more {
            let others = params::OTHER_ELIMINATIONS * Arc::strong_count(&self.proofs);
            lock(&self.proofs).add_eliminated(prefix, eliminated, others);
        }
        outcome
    }
}

impl<W: Width> LocalSolver<W> {
    pub(super) fn new(n: usize, placed: &[Square], blocked: &[Square]) -> Self {
        Self {
            n,
            placed: placed.to_vec(),
            blocked: blocked.to_vec(),
            relaxations: None,
            weights: Weights::new(n),
            refuted_positions: RefutedPositions::default(),
            nodes_of_refutation: 0,
            listing: Backoff::default(),
            is_local: true,
            proofs: Arc::default(),
            set_pool: Arc::default(),
            lp_states: Arc::default(),
        }
    }

    /// Returns a solver for the same board that shares the proofs, the sets and the LP states of
    /// this one.
    fn sharing(&self) -> Self {
        let is_local = self.is_local;
        let proofs = Arc::clone(&self.proofs);
        let (set_pool, lp_states) = (Arc::clone(&self.set_pool), Arc::clone(&self.lp_states));
        Self {
            is_local,
            proofs,
            set_pool,
            lp_states,
            ..Self::new(self.n, &self.placed, &self.blocked)
        }
    }

    fn board(&self, prefix: &[usize]) -> Residual<'static, W> {
        let above = prefix.iter().enumerate().map(|(row, &column)| Square::new(row, column));
        let below = self.placed.iter().copied().filter(|square| square.row >= prefix.len());
        let mut board = Residual::new(self.n, &above.chain(below).collect::<Vec<_>>());
        for square in &self.blocked {
            board.eliminate(square.row, square.col);
        }
        board
    }
}
