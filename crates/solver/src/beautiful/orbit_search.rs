//! Searches under the current bounds: short ones, long ones in parallel subtrees, and orbit
//! searches.

use std::panic::resume_unwind;
use std::sync::Arc;
use std::thread::{self, ScopedJoinHandle};

use super::csp::Csp;
use super::engine::{Engine, TrialOutcome};
use super::exact::Query;
use super::lp_search::LpSearch;
use super::orbits::OrbitId;
use super::parallel_search::{ParallelSearch, SubtreeWorker};
use super::params;
use super::propagation::{Node, PropagationQueue};
use super::search::{CancelToken, Search, SearchOutcome};
use super::subtree_task::RemoteWorker;
use crate::progress::Progress;
use crate::verdict::Unproven;
use nqueens_proof::Beauty;
use nqueens_proof::beautiful::Premises;

impl Engine<'_> {
    /// Searches under the current bounds for `nodes` nodes.
    pub(super) fn settle(&mut self, nodes: u64) -> Result<TrialOutcome, Unproven> {
        let csp = self.csp();
        let Ok(root) = csp.root(&mut PropagationQueue::default()) else {
            self.log.refuted(&[]);
            return Ok(TrialOutcome::Refuted);
        };
        let anchor =
            self.anchor().filter(|_| csp.candidates.len() <= params::MAX_CANDIDATES_FOR_ANCHOR);
        let root = match anchor {
            None => root,
            Some(orbit) => match self.below(&csp, root, orbit) {
                Some(below) => below,
                None => {
                    self.refute(anchor, &[]);
                    return Ok(TrialOutcome::Refuted);
                }
            },
        };
        let mut end = self.short_search(&csp, &root, nodes.min(params::UNSPLIT_NODES));
        if end == SearchOutcome::LimitReached && nodes > params::UNSPLIT_NODES {
            let mut parallel = ParallelSearch::new(root, &self.weights);
            let no_lp_nodes = self.limits.other_search;
            end = self.search_in_parallel(
                &csp,
                self.premises().as_ref(),
                &mut parallel,
                (nodes - params::UNSPLIT_NODES, no_lp_nodes),
            )?;
        }
        Ok(match end {
            SearchOutcome::Found(candidates) => TrialOutcome::Found(csp.columns(&candidates)),
            SearchOutcome::Refuted(tree) => {
                self.refute(anchor, &tree);
                TrialOutcome::Refuted
            }
            SearchOutcome::LimitReached => TrialOutcome::Open,
        })
    }

    /// Logs a refutation: `tree` refutes the board, or, with an anchor, the board with a queen on
    /// the first square of that orbit.
    fn refute(&mut self, anchor: Option<OrbitId>, tree: &[u8]) {
        match anchor {
            None => self.log.refuted(tree),
            Some(orbit) => {
                self.log.eliminated(self.orbits, orbit, tree);
                self.log.refuted(&[]);
            }
        }
    }

    /// Returns an orbit that has a queen in every solution. The queen can be assumed on its first
    /// square, since symmetries exchange its squares. The fewer queens the orbit has, the more this
    /// prunes; ties go to the outermost level.
    fn anchor(&self) -> Option<OrbitId> {
        let only = |level: usize| {
            let (least, most) = self.bounds.range(level).filter(|range| range.0 > 0)?;
            let mut remaining = self.bounds.remaining_on(&self.orbits.levels[level]);
            let orbit = remaining.next()?;
            let share = self.orbits.orbits[orbit].squares.len() as u32 / most;
            (remaining.next().is_none() && least > 0 && share > 1).then_some((share, orbit))
        };
        let best =
            (0..self.orbits.levels.len()).filter_map(only).rev().max_by_key(|&(share, _)| share);
        best.map(|(_, orbit)| orbit)
    }

    /// Returns the node with a queen on the first square of an orbit, or `None` if propagation
    /// finds a contradiction.
    fn below(&self, csp: &Csp, root: Node, orbit: OrbitId) -> Option<Node> {
        let candidate = csp.candidate_on(self.orbits.orbits[orbit].squares[0])?;
        if !root.state.is_remaining(candidate) {
            return root.placed.contains(&candidate).then_some(root);
        }
        csp.child(root, candidate).ok()
    }

    /// Runs a search with restarts, which learns weights. If it takes more than a few nodes,
    /// several threads run searches in different orders, each for its share of the other nodes; the
    /// first result of any of them counts.
    fn short_search(&mut self, csp: &Csp, root: &Node, nodes: u64) -> SearchOutcome {
        let first = params::SHARED_FROM_NODES;
        let number = nodes.saturating_sub(first) / params::LEAST_SHARE;
        let number = number.clamp(1, self.search.threads() as u64);
        let cancel = CancelToken::default();
        self.seed += 1;
        let mut search = Search::new(csp, &cancel, self.seed);
        if self.weights.len() == csp.constraints.len() {
            search.set_weights(&self.weights, 0);
        }
        let mut end = search.run(root, if number == 1 { nodes } else { first });
        let mut searches = vec![search];
        if end == SearchOutcome::LimitReached && number > 1 {
            for _ in 1..number {
                self.seed += 1;
                let mut other = Search::new(csp, &cancel, self.seed);
                other.set_weights(searches[0].weights(), 0);
                searches.push(other);
            }
            end = first_result(&mut searches, &cancel, root, (nodes - first).div_ceil(number));
        }
        self.nodes += searches.iter().map(|search| search.nodes).sum::<u64>();
        if let Some(longest) = searches.iter().max_by_key(|search| search.nodes) {
            self.weights = longest.weights().to_vec();
        }
        end
    }

    /// Returns the current bounds as premises for remote solvers.
    fn premises(&self) -> Option<Arc<Premises>> {
        let Query { n, norm, turning, .. } = self.query;
        self.bounds.premises(n, Beauty { norm, turning }).map(Arc::new)
    }

    /// Continues a long search for `nodes` nodes: first on this machine, then with remote solvers,
    /// if there are any. After `no_lp_nodes` nodes per solver it continues with the LP, on this
    /// machine.
    fn search_in_parallel(
        &mut self,
        csp: &Csp,
        premises: Option<&Arc<Premises>>,
        parallel: &mut ParallelSearch,
        (nodes, no_lp_nodes): (u64, u64),
    ) -> Result<SearchOutcome, Unproven> {
        let (before, level) = (self.nodes - parallel.nodes(), self.cost as usize);
        let threads = self.search.threads();
        let (sink, solvers, search) = (&mut *self.sink, &mut self.solvers, &self.search);
        let premises = premises.filter(|_| !solvers.is_empty());
        let mut stopped = false;
        let mut keep_going = |nodes: u64| {
            let nodes = before + search.dive_nodes() + nodes;
            let progress = Progress { level, bound: None, nodes };
            stopped = sink.report(&progress).is_break() || search.is_over();
            !stopped
        };
        let limit = parallel.nodes().saturating_add(nodes);
        // The board LP does not support candidates with images.
        let uses_board_lp = !self.query.turning;
        let no_lp_nodes = if uses_board_lp {
            limit.min(no_lp_nodes.saturating_mul(solvers.len().max(1) as u64))
        } else {
            limit
        };
        let local =
            if premises.is_some() { no_lp_nodes.min(params::LOCAL_NODES) } else { no_lp_nodes };
        let mut end = SearchOutcome::LimitReached;
        if parallel.nodes() < local {
            end = parallel.continue_on_threads(
                csp,
                local - parallel.nodes(),
                threads,
                &mut keep_going,
            );
        }
        if let Some(premises) = premises
            && end == SearchOutcome::LimitReached
            && parallel.nodes() < no_lp_nodes
            && keep_going(parallel.nodes())
        {
            let cancel = CancelToken::default();
            let weights: Arc<[f32]> = parallel.weights().into();
            let mut workers: Vec<RemoteWorker<'_>> = Vec::with_capacity(solvers.len());
            for solver in solvers.iter_mut() {
                let weights = Arc::clone(&weights);
                workers.push(RemoteWorker {
                    csp,
                    premises,
                    cancel: &cancel,
                    solver: &mut **solver,
                    weights,
                });
            }
            let workers =
                workers.iter_mut().map(|worker| worker as &mut dyn SubtreeWorker).collect();
            end = parallel.continue_with(
                csp,
                no_lp_nodes - parallel.nodes(),
                workers,
                &cancel,
                &mut keep_going,
            );
        }
        if uses_board_lp
            && end == SearchOutcome::LimitReached
            && parallel.nodes() < limit
            && keep_going(parallel.nodes())
        {
            parallel.restart_with_lp();
            let cancel = CancelToken::default();
            let (orbits, limits) = (self.orbits, self.limits);
            let mut workers: Vec<LpSearch<'_>> = (0..threads)
                .map(|seed| LpSearch::new(csp, orbits, limits, &cancel, seed as u64))
                .collect();
            let all = workers.iter_mut().map(|worker| worker as &mut dyn SubtreeWorker).collect();
            end = parallel.continue_with(
                csp,
                limit - parallel.nodes(),
                all,
                &cancel,
                &mut keep_going,
            );
            let lps_solved: u64 = workers.iter().map(LpSearch::lps_solved).sum();
            self.lps_solved += lps_solved;
            #[cfg(test)]
            {
                self.board_lps_solved += lps_solved;
            }
        }
        self.nodes = before + parallel.nodes();
        self.weights = parallel.weights().to_vec();
        if stopped { Err(Unproven::Stopped) } else { Ok(end) }
    }

    /// Continues an orbit search for `nodes` nodes, or begins one. A refuted orbit is eliminated,
    /// and the board is reduced again.
    pub(super) fn search_orbit(
        &mut self,
        orbit_search: &mut Option<OrbitSearch>,
        nodes: u64,
    ) -> Result<TrialOutcome, Unproven> {
        let end = self.nodes.saturating_add(nodes);
        while self.nodes < end {
            let Some(OrbitSearch { csp, premises, orbit, parallel }) = orbit_search else {
                *orbit_search = self.begin_orbit_search();
                if orbit_search.is_none() {
                    self.log.refuted(&[]);
                    return Ok(TrialOutcome::Refuted);
                }
                continue;
            };
            let left = end - self.nodes;
            let no_lp_nodes = self.limits.orbit_search;
            let (orbit, end) = (
                *orbit,
                self.search_in_parallel(csp, premises.as_ref(), parallel, (left, no_lp_nodes))?,
            );
            match end {
                SearchOutcome::Found(candidates) => {
                    return Ok(TrialOutcome::Found(csp.columns(&candidates)));
                }
                SearchOutcome::LimitReached => break,
                SearchOutcome::Refuted(tree) => {
                    self.log.eliminated(self.orbits, orbit, &tree);
                    self.bounds.eliminate(orbit);
                    *orbit_search = None;
                    if self.reduce()? {
                        return Ok(TrialOutcome::Refuted);
                    }
                    self.offer_checkpoint();
                }
            }
        }
        Ok(TrialOutcome::Open)
    }

    /// Chooses an orbit to search. Returns `None` if propagation finds that there is no solution.
    fn begin_orbit_search(&mut self) -> Option<OrbitSearch> {
        let csp = self.csp();
        let root = csp.root(&mut PropagationQueue::default()).ok()?;
        let cancel = CancelToken::default();
        let mut chooser = Search::new(&csp, &cancel, 1);
        if self.weights.len() == csp.constraints.len() {
            chooser.set_weights(&self.weights, 0);
        }
        let constraint = chooser.best_constraint(&root.state);
        let orbit_of =
            |candidate: u32| self.orbits.orbit_of[csp.candidates[candidate as usize][0] as usize];
        let orbit = self
            .anchor()
            .or_else(|| csp.remaining_on(&root.state, constraint).map(orbit_of).min())?;
        let weights = chooser.weights().to_vec();
        // Propagation alone does not refute this queen, since the board is reduced.
        let parallel = ParallelSearch::new(self.below(&csp, root, orbit)?, &weights);
        let premises = self.premises();
        Some(OrbitSearch { csp, premises, orbit, parallel })
    }
}

/// Runs these searches below `root`, each on a thread of its own for so many nodes, until one of
/// them has a result, and returns that. `cancel` is their token.
fn first_result(
    searches: &mut [Search<'_>],
    cancel: &CancelToken,
    root: &Node,
    nodes: u64,
) -> SearchOutcome {
    let run = &|search: &mut Search<'_>| {
        let end = search.run(root, nodes);
        if end != SearchOutcome::LimitReached {
            cancel.stop();
        }
        end
    };
    let ends: Vec<SearchOutcome> = thread::scope(|scope| {
        let threads: Vec<_> =
            searches.iter_mut().map(|search| scope.spawn(move || run(search))).collect();
        let join = |thread: ScopedJoinHandle<'_, SearchOutcome>| {
            thread.join().unwrap_or_else(|panic| resume_unwind(panic))
        };
        threads.into_iter().map(join).collect()
    });
    let result = ends.into_iter().find(|end| *end != SearchOutcome::LimitReached);
    result.unwrap_or(SearchOutcome::LimitReached)
}

/// A long search below a queen on one orbit.
#[derive(Debug)]
pub(super) struct OrbitSearch {
    csp: Csp,
    premises: Option<Arc<Premises>>,
    orbit: OrbitId,
    parallel: ParallelSearch,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::beautiful::Stage;
    use crate::beautiful::orbits::Orbits;
    use crate::progress::Unobserved;
    use nqueens_proof::board::{Norm, Piece, Placement, Problem};

    /// Searches the squares of these numbers on a board of size `n` on three threads. Returns the
    /// outcome, and the number of nodes.
    fn search(n: usize, squares: &[usize], nodes: u64) -> (SearchOutcome, u64, Csp) {
        let orbits = Orbits::new(n, Norm::Euclidean);
        let query = Query { n, norm: Norm::Euclidean, turning: false, threads: 3 };
        let (mut sink, mut keep) = (Unobserved, |_: &Stage<'_>| {});
        let mut engine = Engine::new(&orbits, query, Vec::new(), &mut sink, &mut keep);
        let csp = Csp::new(n, squares, &[], false);
        let root = csp.root(&mut PropagationQueue::default()).expect("no conflict at the root");
        let end = engine.short_search(&csp, &root, nodes);
        assert_eq!(engine.weights.len(), csp.constraints.len());
        (end, engine.nodes, csp)
    }

    #[test]
    fn short_searches_on_several_threads_find_solutions_and_refutations() {
        let all: Vec<usize> = (0..400).collect();
        let (end, _, csp) = search(20, &all, 100_000);
        let SearchOutcome::Found(candidates) = end else { panic!("{end:?}") };
        let problem = Problem::empty(Piece::Queen, 20);
        assert!(Placement::check_solution(&problem, &csp.columns(&candidates)).is_ok());
        // Queens only on squares with odd row + column of an odd board: the sum of all rows and
        // columns is even, but an odd number of odd terms has an odd sum.
        let odd = |n: usize| (0..n * n).filter(|square| square % 2 == 1).collect::<Vec<usize>>();
        let (end, nodes, _) = search(9, &odd(9), 100_000);
        assert!(matches!(end, SearchOutcome::Refuted(_)) && nodes > 0, "{end:?}");
        let (end, nodes, _) = search(41, &odd(41), 9000);
        assert_eq!(end, SearchOutcome::LimitReached);
        assert!(nodes >= 9000, "{nodes} nodes of three searches");
    }
}
