//! One completion query: does the board with these queens on its first rows have a completion? The
//! answer is a completion or a refutation that can be checked.

use std::fmt;
use std::sync::{Arc, Mutex};

use fastrand::Rng;

use super::components::Components;
use super::concurrent_queries::PrefixQuery;
use super::control::Task;
use super::dive::dive;
use super::dual_bound::DualBound;
use super::limited_search::{LimitedOutcome, limited};
use super::limits::Limits;
use super::lp_states::{LpStates, Relaxations};
use super::params;
use super::pricing::Pricing;
use super::probing::{Eliminations, Probing};
use super::proofs::Proofs;
use super::refuted_positions::RefutedPositions;
use super::residual::{Branch, Residual, State};
use super::set_pool::SetPool;
use super::weights::Weights;
use super::width::{Width, Width64x64, Width128x128};
use crate::bitset::BitSet;
use crate::threads::lock;
use nqueens_proof::board::Square;
use nqueens_proof::first::{Line, Refutation};

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
    /// of another machine. The board has placed queens and blocked squares as for [`query_solvers`].
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
    /// True for the queries of this process: the work for checking an answer is not limited, so
    /// refuted positions are kept for later queries about the same prefix and longer ones, and
    /// refutations by limited searches are short.
    is_local: bool,
    proofs: Arc<Mutex<Proofs<W>>>,
    set_pool: Arc<Mutex<SetPool<W>>>,
    lp_states: Arc<Mutex<LpStates<W>>>,
}

/// A search for a completion.
struct CompletionSearch<'c, W: Width> {
    n: usize,
    task: Task<'c>,
    left: Limits,
    relaxations: &'c mut Relaxations<W>,
    proofs: &'c Mutex<Proofs<W>>,
    weights: &'c mut Weights,
    refuted_positions: &'c mut RefutedPositions,
    nodes_of_refutation: &'c mut u64,
    is_local: bool,
    /// The components in the last LP solution.
    components: Components,
    random: Rng,
    /// [`params::BRANCHING_NOISE`], or 0.
    noise: f64,
    /// True to branch on the first open row instead of the smallest line.
    in_order: bool,
    /// True to give up after the dives.
    only_dives: bool,
}

impl<W: Width> QuerySolver for LocalSolver<W> {
    fn solve(&mut self, query: &PrefixQuery<'_>, task: Task<'_>) -> QueryOutcome {
        let PrefixQuery { prefix, lp_limit, node_limit, attempt, only_dives } = *query;
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
        let left = Limits::new(self.n, lp_limit, node_limit);
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
            if outcome == QueryOutcome::GivenUp {
                let state = Arc::new(relaxations.clone());
                lock(&self.lp_states).add(state);
            }
            return outcome;
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

impl<W: Width> CompletionSearch<'_, W> {
    /// Looks for a refutation by multipliers that refuted another board.
    fn prove_again(&mut self, board: &Residual<'_, W>) -> Option<Refutation> {
        let known = lock(self.proofs).multipliers.all();
        let mut pricing = Pricing::new(board);
        let knapsack = self.relaxations.master.knapsack();
        let multipliers =
            known.iter().find(|multipliers| pricing.is_refuted(multipliers, knapsack))?;
        lock(self.proofs).multipliers.renew(multipliers);
        Some(Refutation::dual_bound(multipliers, true, &Refutation::search()))
    }

    /// Eliminates cells of the board: first those that are known to be eliminated for a part of
    /// this prefix, then, if `more` is given, further ones with at most that many LP probes.
    /// Resumes from an earlier elimination for the same prefix, `own`.
    fn eliminate(
        &mut self,
        board: &mut Residual<'_, W>,
        known: Option<&Eliminations<W>>,
        own: Option<&Eliminations<W>>,
        more: Option<u64>,
    ) -> (State, Eliminations<W>) {
        let mut elimination = Probing {
            assignment: &mut self.relaxations.assignment,
            master: &mut self.relaxations.master,
            lp_rows: self.relaxations.rows,
            board,
            eliminated: own.map_or_else(Eliminations::default, Eliminations::resumed),
            task: self.task,
        };
        let mut state = elimination.board.propagate();
        if let Some(known) = known {
            state = elimination.reapply(known);
        }
        if let (Some(squares), State::Open(_)) = (more, state) {
            state = elimination.probe(squares);
        }
        (state, elimination.eliminated)
    }

    /// Runs a limited search, the LPs, the dives if they are still to be made, and finally
    /// branches.
    fn search(&mut self, board: Residual<'_, W>, mut branch: Branch) -> QueryOutcome {
        if self.task.is_stopped() {
            return QueryOutcome::Stopped;
        }
        if board.has_dual_bound() {
            let learned = (&mut *self.weights, &self.components);
            let limit = params::LIMITED_SEARCH_NODES;
            let (outcome, nodes) = limited(&board, limit, learned, None, self.task);
            match outcome {
                LimitedOutcome::Refuted => {
                    let is_short = self.is_local || nodes < params::MIN_NODES_TO_STATE_WEIGHTS;
                    let weights = if is_short { vec![] } else { self.weights.rounded() };
                    let search = Refutation::search_by_weight(&self.components.rows(), &weights);
                    return QueryOutcome::Refuted(search);
                }
                LimitedOutcome::Full(solution) => return QueryOutcome::Completed(solution),
                LimitedOutcome::GivenUp => {}
            }
        }
        if self.left.lps == 0 {
            return QueryOutcome::GivenUp;
        }
        self.left.lps -= 1;
        let Some(multipliers) = self.relaxations.assignment.multipliers(&board, self.task) else {
            return self.branch(&board, branch);
        };
        let refuted = |then: &Refutation| Refutation::dual_bound(&multipliers, true, then);
        let Some((dual_bound, slack)) =
            DualBound::new(&board, &multipliers, self.relaxations.master.knapsack())
        else {
            return QueryOutcome::Refuted(refuted(&Refutation::search()));
        };
        let mut board = board;
        board.push(&dual_bound, slack);
        match board.propagate() {
            State::Refuted => return QueryOutcome::Refuted(refuted(&Refutation::search())),
            State::Full => return QueryOutcome::Completed(board.solution()),
            State::Open(line) => branch = line,
        }
        let promising = self.relaxations.assignment.objective() < params::PROMISING_OPTIMUM;
        let used = board.used(self.relaxations.rows);
        let refute = || {
            let master = &mut self.relaxations.master;
            master.add_pooled(&board, used);
            master.refute(&board, used, self.task)
        };
        if let Some(knapsack) = promising.then(refute).flatten() {
            let then = Refutation::dual_bound(&knapsack, true, &Refutation::search());
            lock(self.proofs).multipliers.add(Arc::new(knapsack));
            return QueryOutcome::Refuted(refuted(&then));
        }
        let lp_values = self.lp_values(&board);
        self.components = Components::new(&board, &lp_values);
        let lp_limits = std::mem::take(&mut self.left.if_tight);
        if self.relaxations.assignment.objective() < params::TIGHT_OPTIMUM {
            self.left.search_long(lp_limits);
        }
        let diving = std::mem::take(&mut self.left.diving);
        if self.only_dives {
            let found = self.dive(&board, diving, &lp_values);
            return found.map_or(QueryOutcome::GivenUp, QueryOutcome::Completed);
        }
        let searching = std::mem::take(&mut self.left.searching);
        // A small tree is searched before the dives, and one that is to be refuted like the last
        // one.
        let small = diving.saturating_mul(params::NODES_PER_DIVE_NODE);
        let like_last =
            self.nodes_of_refutation.saturating_mul(params::NODES_PER_NODE_OF_REFUTATION);
        let first = searching.min(small.max(like_last));
        let then = if searching > first { searching } else { 0 };
        let outcome = self
            .search_long(&board, first)
            .or_else(|| self.dive(&board, diving, &lp_values).map(QueryOutcome::Completed))
            .or_else(|| self.search_long(&board, then))
            .unwrap_or_else(|| self.branch(&board, branch));
        match outcome {
            QueryOutcome::Refuted(then) => QueryOutcome::Refuted(refuted(&then)),
            other => other,
        }
    }

    /// Makes dives of so many nodes in all. Returns a completion if one was found.
    fn dive(
        &mut self,
        board: &Residual<'_, W>,
        nodes: u64,
        lp_values: &[f64],
    ) -> Option<Vec<usize>> {
        if nodes == 0 {
            return None;
        }
        // On boards of odd size, the long search learns from its own failures only.
        let mut copy = self.weights.clone();
        let (lp_values, weights) = if self.n.is_multiple_of(2) {
            (Some(lp_values), &mut *self.weights)
        } else {
            (None, &mut copy)
        };
        let learned = (weights, &self.components, &mut self.random);
        let found = dive(board, lp_values, nodes, learned, self.task);
        if found.is_some() {
            *self.nodes_of_refutation = 0;
        }
        found
    }

    /// Searches under the dual bounds of the board with at most `nodes` nodes. Returns `None` if they
    /// are not enough.
    fn search_long(&mut self, board: &Residual<'_, W>, nodes: u64) -> Option<QueryOutcome> {
        if nodes == 0 {
            return None;
        }
        let blocks = self.components.rows();
        let known = (!blocks.is_empty()).then_some(&mut *self.refuted_positions);
        let learned = (&mut *self.weights, &self.components);
        let (outcome, searched) = limited(board, nodes, learned, known, self.task);
        let is_refuted = matches!(outcome, LimitedOutcome::Refuted);
        *self.nodes_of_refutation =
            if is_refuted && !self.n.is_multiple_of(2) { searched } else { 0 };
        match outcome {
            LimitedOutcome::Refuted => {
                let learned = self.weights.rounded();
                let search = if blocks.is_empty() {
                    Refutation::search_by_weight(&blocks, &learned)
                } else {
                    Refutation::search_with_memory(&blocks, &learned)
                };
                Some(QueryOutcome::Refuted(search))
            }
            LimitedOutcome::Full(solution) => Some(QueryOutcome::Completed(solution)),
            LimitedOutcome::GivenUp => None,
        }
    }

    /// Returns the values of the assignment relaxation, by row × n + column.
    fn lp_values(&self, board: &Residual<'_, W>) -> Vec<f64> {
        let mut lp_values = vec![0.0; self.n * self.n];
        let rows = board.rows().iter();
        let cells: Vec<(usize, usize)> = rows
            .flat_map(|row| board.remaining(row).iter().map(move |column| (row, column)))
            .collect();
        for (&(row, column), value) in cells.iter().zip(self.relaxations.assignment.values(&cells))
        {
            lp_values[row * self.n + column] = value;
        }
        lp_values
    }

    /// Tries all cells of a line in descending order of their values in the assignment relaxation.
    /// On boards of even size the line is the first open row. Measured against the smallest line:
    /// 30 % fewer LPs for n = 62, 19 % more for n = 74, and completions are found sooner for
    /// n = 58.
    fn branch(&mut self, board: &Residual<'_, W>, branch: Branch) -> QueryOutcome {
        let branch = if self.in_order { Branch::Row(board.rows().least()) } else { branch };
        let mut cells: Vec<(usize, usize)> = board.cells(branch).collect();
        let mut values = self.relaxations.assignment.values(&cells);
        values.iter_mut().for_each(|value| *value += self.noise * self.random.f64());
        let mut order: Vec<usize> = (0..cells.len()).collect();
        order.sort_by(|&a, &b| values[b].total_cmp(&values[a]));
        cells = order.into_iter().map(|i| cells[i]).collect();
        let mut children = Vec::new();
        for (row, column) in cells {
            let mut child = *board;
            let outcome = match child.put(row, column) {
                State::Refuted => continue,
                State::Full => QueryOutcome::Completed(child.solution()),
                State::Open(branch) => self.search(child, branch),
            };
            match outcome {
                QueryOutcome::Refuted(refutation) => {
                    children.push((row * self.n + column, refutation))
                }
                other => return other,
            }
        }
        let line = match branch {
            Branch::Row(row) => Line::Row(row),
            Branch::Column(column) => Line::Column(column),
            Branch::Diagonal(diagonal) => Line::Diagonal(diagonal),
            Branch::Antidiagonal(antidiagonal) => Line::Antidiagonal(antidiagonal),
        };
        QueryOutcome::Refuted(Refutation::branch(self.n, line, &children))
    }
}
