//! A search that solves a linear relaxation of the whole board (the board LP) where a short search
//! does not finish.
//!
//! The orbit LP covers everything that is invariant under the symmetries. Once queens are placed,
//! no symmetry is left, and an LP with a variable for each square is much stronger: often it is
//! infeasible, or some squares are 0 in every solution. Such an LP takes as long as some ten
//! thousand nodes, so it is solved at few nodes only, and a short search is tried first.
//!
//! [`BoardLp`] turns the duals of the LP into integer prices, and derives what these prove.

use super::board_lp::{BoardLp, Implied, LpOutcome};
use super::csp::Csp;
use super::orbits::Orbits;
use super::parallel_search::{SubtreeResult, SubtreeWorker};
use super::params;
use super::propagation::{Node, PropagationQueue};
use super::search::{CancelToken, Search, SearchOutcome, write_number};
use nqueens_proof::bytes::Writer;

/// The numbers of nodes that are searched without the LP.
#[derive(Clone, Copy, Debug)]
pub(super) struct NodeLimits {
    /// Before the LP is used at all, in an orbit search and in any other search (when long, a
    /// case). Measured on whole runs for n = 128: orbit searches with 0.2, 1 and 4 million take
    /// 107, 86 and 42 s.
    pub(super) orbit_search: u64,
    pub(super) other_search: u64,
    /// In a subtree, before the LP and after it. Measured on cases of n = 160: with 10,000, 30,000,
    /// 100,000 and 300,000 after it, three cases take 49, 35, 29 and 31 s; with 3,000 and 10,000,
    /// three others take 63 and 44 s.
    pub(super) before_lp: u64,
    pub(super) after_lp: u64,
}

impl Default for NodeLimits {
    fn default() -> Self {
        Self { orbit_search: 4_000_000, other_search: 200_000, before_lp: 500, after_lp: 100_000 }
    }
}

/// A worker that refutes each subtree or branches on it once.
pub(super) struct LpSearch<'a> {
    csp: &'a Csp,
    limits: NodeLimits,
    cancel: &'a CancelToken,
    search: Search<'a>,
    lp: BoardLp<'a>,
}

impl<'a> LpSearch<'a> {
    pub(super) fn new(
        csp: &'a Csp,
        orbits: &Orbits,
        limits: NodeLimits,
        cancel: &'a CancelToken,
        seed: u64,
    ) -> Self {
        let search = Search::new(csp, cancel, seed);
        Self { csp, limits, cancel, search, lp: BoardLp::new(csp, orbits) }
    }

    /// Returns the number of LPs solved.
    pub(super) const fn lps_solved(&self) -> u64 {
        self.lp.lps_solved()
    }

    /// Searches below `root`. The tree may have holes. Returns [`SearchOutcome::LimitReached`] if
    /// stopped.
    fn tree(&mut self, root: &Node, holes: &mut Vec<Node>) -> SearchOutcome {
        match self.search.run(root, self.limits.before_lp) {
            SearchOutcome::LimitReached => {}
            end => return end,
        }
        let mut tree = Vec::new();
        let mut root = root.clone();
        for _ in 0..params::MAX_RESOLVES {
            let prices = match self.lp.solve(&root, self.cancel) {
                LpOutcome::Prices(prices) => prices,
                LpOutcome::Inconclusive => break,
                LpOutcome::Stopped => return SearchOutcome::LimitReached,
            };
            let Implied::Reductions { eliminated, full } = self.lp.implied(&root, &prices) else {
                self.write(&prices, &mut tree);
                return SearchOutcome::Refuted(tree);
            };
            if eliminated.is_empty() && full.is_empty() {
                break;
            }
            self.write(&prices, &mut tree);
            let before = self.lp.open(&root).count();
            let mut pending = PropagationQueue::default();
            let filled = self.csp.require(&mut root, &full, &mut pending);
            if filled
                .and_then(|()| {
                    self.csp.remove(&mut root, &self.csp.squares_of(&eliminated), &mut pending)
                })
                .is_err()
            {
                return SearchOutcome::Refuted(tree);
            }
            if root.state.is_complete() {
                return SearchOutcome::Found(root.placed);
            }
            if full.is_empty()
                && (before - self.lp.open(&root).count()) * params::RESOLVE_SHARE < before
            {
                break;
            }
        }
        match self.search.run(&root, self.limits.after_lp) {
            SearchOutcome::Refuted(rest) => tree.extend(rest),
            SearchOutcome::LimitReached if !self.cancel.is_stopped() => {
                if let Some(candidates) = self.branch(&root, &mut tree, holes) {
                    return SearchOutcome::Found(candidates);
                }
            }
            end => return end,
        }
        SearchOutcome::Refuted(tree)
    }

    /// Branches on a constraint and leaves a hole for each of its candidates that can be placed.
    /// Returns the candidates of a solution, if one is complete then.
    fn branch(&self, root: &Node, tree: &mut Vec<u8>, holes: &mut Vec<Node>) -> Option<Vec<u32>> {
        let constraint = self.constraint(root);
        write_number(tree, self.csp.in_tree(constraint));
        for candidate in self.csp.remaining_on(&root.state, constraint) {
            if let Ok(child) = self.csp.child(root.clone(), candidate) {
                if child.state.is_complete() {
                    return Some(child.placed);
                }
                write_number(tree, self.csp.hole as u64);
                holes.push(child);
            }
        }
        None
    }

    /// Returns the constraint to branch on: one with few candidates for its weight and only
    /// small LP values.
    fn constraint(&self, root: &Node) -> usize {
        let values = self.lp.values();
        let value = |&candidate: &u32| {
            if root.state.is_remaining(candidate) {
                values.get(candidate as usize).map_or(0.0, |&x| x as f32)
            } else {
                0.0
            }
        };
        let worth = |(constraint, choices): (usize, u16)| {
            let most = self.csp.constraints[constraint].iter().map(value).fold(0.0, f32::max);
            (
                f32::from(choices) / self.search.weights()[constraint]
                    * (params::LP_VALUE_OFFSET + most * most),
                constraint,
            )
        };
        let best = root.state.open_constraints().map(worth).min_by(|a, b| a.0.total_cmp(&b.0));
        best.map_or(0, |(_, constraint)| constraint)
    }

    /// Writes prices to a tree.
    fn write(&self, prices: &[i64], tree: &mut Vec<u8>) {
        write_number(tree, self.csp.priced as u64);
        let mut writer = Writer::new();
        writer.size(prices.iter().filter(|&&price| price != 0).count());
        for (number, &price) in prices.iter().enumerate().filter(|(_, price)| **price != 0) {
            writer.size(number);
            writer.signed(price);
        }
        tree.extend(writer.finish());
    }
}

impl SubtreeWorker for LpSearch<'_> {
    fn begin(&mut self, weights: &[f32], height: usize) {
        self.search.set_weights(weights, height);
    }

    fn task_nodes(&self, _: u64, _: u64) -> u64 {
        self.limits.after_lp + params::LP_SEARCH_NODES_PER_LP
    }

    fn search(&mut self, root: &Node, _: u64) -> SubtreeResult {
        let before = self.search.nodes + params::LP_SEARCH_NODES_PER_LP * self.lp.lps_solved();
        let mut holes = Vec::new();
        let end = self.tree(root, &mut holes);
        let nodes =
            self.search.nodes + params::LP_SEARCH_NODES_PER_LP * self.lp.lps_solved() - before;
        match end {
            SearchOutcome::Found(candidates) => SubtreeResult::Found(candidates, nodes),
            SearchOutcome::Refuted(tree) => SubtreeResult::Tree(tree, holes, nodes),
            SearchOutcome::LimitReached => SubtreeResult::Abandoned,
        }
    }

    fn weights(&self) -> Option<&[f32]> {
        Some(self.search.weights())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::beautiful::concurrent::tests::assert_is_best;
    use crate::beautiful::engine::Engine;
    use crate::beautiful::parallel_search::ParallelSearch;
    use crate::beautiful::search::read_number;
    use crate::beautiful::{Query, Stage};
    use crate::progress::Unobserved;
    use crate::test_support::solutions;
    use nqueens_proof::board::Norm;

    /// Limits with which nothing is searched without the LP.
    const LP_AT_ONCE: NodeLimits =
        NodeLimits { orbit_search: 0, other_search: 0, before_lp: 0, after_lp: 0 };

    /// Returns the proof, without the seal, of an engine that uses the LP at once, and its
    /// solution.
    fn uses_board_lp(query: Query) -> (Vec<u8>, Vec<usize>) {
        let orbits = Orbits::new(query.n, query.norm);
        let (mut sink, mut keep) = (Unobserved, |_: &Stage<'_>| {});
        let mut engine = Engine::new(&orbits, query, Vec::new(), &mut sink, &mut keep);
        (engine.quick, engine.limits) = (0, LP_AT_ONCE);
        engine.run(None).expect("not stopped");
        let proof = engine.proof();
        (proof, engine.best.expect("a solution"))
    }

    #[test]
    fn prices_prove_the_same_optimum_as_one_search() {
        for (n, norm) in [
            (8, Norm::Euclidean),
            (13, Norm::Euclidean),
            (16, Norm::Euclidean),
            (22, Norm::Euclidean),
            (32, Norm::Euclidean),
            (14, Norm::Manhattan),
            (10, Norm::Chebyshev),
        ] {
            let query = Query { n, norm, turning: false, threads: 1 };
            let (proof, best) = uses_board_lp(query);
            assert_is_best(query, &best, &proof);
        }
    }

    /// Returns how often a tree has prices.
    fn priced(csp: &Csp, tree: &[u8]) -> usize {
        let (mut at, mut priced) = (0, 0);
        while at < tree.len() {
            if read_number(tree, &mut at) == csp.priced as u64 {
                priced += 1;
                for _ in 0..2 * read_number(tree, &mut at) {
                    read_number(tree, &mut at);
                }
            }
        }
        priced
    }

    #[test]
    fn a_search_with_prices_finds_a_solution_exactly_if_there_is_one() {
        let mut random = fastrand::Rng::with_seed(11);
        let (mut found, mut refuted, mut prices) = (0, 0, 0);
        for case in 0..1500 {
            let n = random.usize(5..=8);
            let orbits = Orbits::new(n, Norm::Euclidean);
            let all = solutions(n);
            let counts = orbits.counts(random.choice(&all).expect("there are solutions"));
            let share = random.f64();
            let squares: Vec<usize> = (0..n * n).filter(|_| random.f64() > 0.5 * share).collect();
            let level_of = |square: usize| orbits.orbits[orbits.orbit_of[square]].level;
            let mut groups = Vec::new();
            for (level, &queens) in counts.iter().enumerate() {
                if random.bool() {
                    continue;
                }
                let range = queens.saturating_sub(random.u32(0..2))..=queens + random.u32(0..2);
                let on_level = squares.iter().copied().filter(|&square| level_of(square) == level);
                groups.push((level, range, on_level.collect::<Vec<usize>>()));
            }
            let possible = all.iter().any(|columns| {
                let counts = orbits.counts(columns);
                columns
                    .iter()
                    .enumerate()
                    .all(|(row, column)| squares.contains(&(row * n + column)))
                    && groups.iter().all(|(level, range, _)| range.contains(&counts[*level]))
            });
            let groups: Vec<_> =
                groups.into_iter().map(|(_, range, squares)| (range, squares)).collect();
            let csp = Csp::new(n, &squares, &groups, false);
            let Ok(root) = csp.root(&mut PropagationQueue::default()) else {
                assert!(!possible, "case {case}");
                continue;
            };
            let mut parallel = ParallelSearch::new(root, &vec![1.0; csp.constraints.len()]);
            let cancel = CancelToken::default();
            let mut worker = LpSearch::new(&csp, &orbits, LP_AT_ONCE, &cancel, case);
            match parallel.continue_with(&csp, u64::MAX, vec![&mut worker], &cancel, &mut |_| true)
            {
                SearchOutcome::Found(candidates) => {
                    assert!(possible && all.contains(&csp.columns(&candidates)), "case {case}");
                    found += 1;
                }
                SearchOutcome::Refuted(tree) => {
                    assert!(!possible, "case {case}");
                    refuted += 1;
                    prices += priced(&csp, &tree);
                }
                SearchOutcome::LimitReached => panic!("the node limit is infinite"),
            }
        }
        assert!(
            found > 100 && refuted > 100 && prices > 50,
            "{found} found, {refuted} refuted, {prices} prices"
        );
    }
}
