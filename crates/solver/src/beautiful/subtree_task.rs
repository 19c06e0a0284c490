//! Subtrees of long searches that are searched remotely: the task, the solver interface and the
//! searcher.

use std::sync::Arc;

use super::bounds::Bounds;
use super::csp::Csp;
use super::orbits::Orbits;
use super::parallel_search::{SubtreeResult, SubtreeWorker};
use super::params;
use super::propagation::Node;
use super::search::{CancelToken, Search, SearchOutcome};
use nqueens_proof::beautiful::{Premises, Subtree};

/// The node limit of the largest task, whose tree fits into a message of half a MiB.
const MAX_TASK_NODES: u64 = MOST_NODES;

/// The largest node limit of a task.
pub const MOST_NODES: u64 = 200_000;

/// A subtree task.
#[derive(Clone, Debug, PartialEq)]
pub struct SubtreeTask {
    /// The subtree.
    pub part: Subtree,
    /// The node limit, at most [`MOST_NODES`]. Nodes that are open when it is reached become holes
    /// of the tree (see [`Subtree`]).
    pub nodes: u64,
    /// The learned weight of each constraint: the larger, the sooner it is branched on.
    pub weights: Arc<[f32]>,
}

/// A validated answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ValidatedAnswer {
    /// A solution under the premises that contains the queens of the part: the 0-based column of
    /// the queen in each row.
    Solution(Vec<usize>),
    /// A tree, the squares of the queens at each of its holes (see [`Subtree`]), and the number of
    /// its nodes.
    Tree(Vec<u8>, Vec<Vec<usize>>, u64),
}

/// The interface to a solver that has subtrees searched elsewhere. It validates the answers; the
/// engine does not.
pub trait SubtreeSolver: Send {
    /// Returns the answer, or `None` if `cancel` is [abandoned](CancelToken::is_abandoned) first.
    fn solve(&mut self, task: SubtreeTask, cancel: &CancelToken) -> Option<ValidatedAnswer>;
}

/// A worker that passes its subtrees to a solver.
pub(super) struct RemoteWorker<'a> {
    pub(super) csp: &'a Csp,
    pub(super) premises: &'a Arc<Premises>,
    pub(super) cancel: &'a CancelToken,
    pub(super) solver: &'a mut dyn SubtreeSolver,
    pub(super) weights: Arc<[f32]>,
}

impl RemoteWorker<'_> {
    /// Returns the nodes at holes, each given by its queens, including all implied ones. Returns
    /// `None` if propagation finds a contradiction at a hole: a correct searcher leaves no hole
    /// there.
    fn roots(&self, holes: &[Vec<usize>]) -> Option<Vec<Node>> {
        holes.iter().map(|queens| self.csp.root_with(queens).ok()).collect()
    }
}

impl SubtreeWorker for RemoteWorker<'_> {
    fn begin(&mut self, _: &[f32], _: usize) {}

    fn task_nodes(&self, so_far: u64, _: u64) -> u64 {
        (so_far / params::TASK_SHARE).clamp(params::MIN_TASK_NODES, MAX_TASK_NODES)
    }

    fn search(&mut self, root: &Node, nodes: u64) -> SubtreeResult {
        let part = Subtree::new(Arc::clone(self.premises), self.csp.squares_of(&root.placed));
        let part = part.expect("its squares are of the board");
        let task = SubtreeTask { part, nodes, weights: Arc::clone(&self.weights) };
        match self.solver.solve(task, self.cancel) {
            None => SubtreeResult::Abandoned,
            Some(ValidatedAnswer::Solution(columns)) => {
                let squares =
                    columns.iter().enumerate().map(|(row, column)| row * self.csp.n + column);
                let mut candidates: Vec<u32> =
                    squares.filter_map(|square| self.csp.candidate_on(square)).collect();
                candidates.sort_unstable();
                candidates.dedup();
                // The number of nodes searched cannot be validated, so none are counted.
                SubtreeResult::Found(candidates, 0)
            }
            Some(ValidatedAnswer::Tree(tree, holes, nodes)) => match self.roots(&holes) {
                Some(holes) => SubtreeResult::Tree(tree, holes, nodes),
                // The subtree will be searched again.
                None => {
                    tracing::warn!(
                        "an answered tree has a hole where propagation finds a contradiction"
                    );
                    SubtreeResult::Abandoned
                }
            },
        }
    }

    fn weights(&self) -> Option<&[f32]> {
        None
    }
}

/// The answer of a searcher.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SubtreeAnswer {
    /// A solution: the 0-based column of the queen in each row.
    Solution(Vec<usize>),
    /// A tree, possibly with holes.
    Tree(Vec<u8>),
    /// No answer: the search was stopped.
    Stopped,
}

/// A searcher of subtree tasks. It keeps learned weights as long as the premises stay the same.
#[derive(Debug, Default)]
pub struct Searcher {
    board: Option<Prepared>,
}

/// The problem under some premises, and the weights learned on it.
#[derive(Debug)]
struct Prepared {
    premises: Arc<Premises>,
    csp: Csp,
    weights: Vec<f32>,
}

impl Prepared {
    fn new(premises: &Arc<Premises>) -> Self {
        let (n, beauty) = (premises.n(), premises.beauty());
        let orbits = Orbits::new(n, beauty.norm);
        let bounds = Bounds::of(&orbits, premises);
        let csp = Csp::new(n, &bounds.squares(&orbits), &bounds.groups(&orbits), beauty.turning);
        let csp = csp.with_full_diagonals(bounds.full());
        let weights = vec![1.0; csp.constraints.len()];
        Self { premises: Arc::clone(premises), csp, weights }
    }
}

impl Searcher {
    /// Searches the subtree of a task.
    pub fn search(&mut self, task: &SubtreeTask, cancel: &CancelToken) -> SubtreeAnswer {
        let SubtreeTask { part, nodes, weights } = task;
        if self.board.as_ref().is_none_or(|board| board.premises != *part.premises()) {
            let board = self.board.insert(Prepared::new(part.premises()));
            let good = weights.iter().all(|weight| weight.is_finite() && *weight >= 1.0);
            if good && weights.len() == board.weights.len() {
                board.weights.copy_from_slice(weights);
            }
        }
        let Some(Prepared { csp, weights, .. }) = &mut self.board else {
            unreachable!("it was made above")
        };
        let Ok(root) = csp.root_with(part.queens()) else { return SubtreeAnswer::Tree(Vec::new()) };
        let mut search = Search::new(csp, cancel, 1);
        search.set_weights(weights, root.placed.len());
        search.probed_constraints = params::PROBED_CONSTRAINTS;
        let (end, _) = search.subtree(&root, (*nodes).min(MOST_NODES));
        let learned = search.weights().to_vec();
        let answer = match end {
            // The tree of an interrupted search proves too little.
            _ if cancel.is_stopped() => SubtreeAnswer::Stopped,
            SearchOutcome::Found(candidates) => SubtreeAnswer::Solution(csp.columns(&candidates)),
            SearchOutcome::Refuted(tree) => SubtreeAnswer::Tree(tree),
            SearchOutcome::LimitReached => unreachable!("a subtree search leaves holes"),
        };
        weights.copy_from_slice(&learned);
        answer
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use proptest::prelude::*;

    use super::*;
    use crate::Verdict;
    use crate::beautiful::engine::Engine;
    use crate::beautiful::lp_search::NodeLimits;
    use crate::beautiful::{Position, Query, Stage, most_beautiful_exactly, most_beautiful_with};
    use crate::progress::Unobserved;
    use crate::test_support::solutions;
    use nqueens_proof as proof;
    use nqueens_proof::Beauty;
    use nqueens_proof::beautiful::{SubtreeChecker, check};
    use nqueens_proof::board::Norm;

    /// A solver that searches and validates locally, and counts tasks and holes.
    struct LocalSolver {
        searcher: Searcher,
        counts: Arc<Mutex<(usize, usize)>>,
    }

    impl SubtreeSolver for LocalSolver {
        fn solve(&mut self, task: SubtreeTask, cancel: &CancelToken) -> Option<ValidatedAnswer> {
            let mut checker = SubtreeChecker::new(Arc::clone(task.part.premises()));
            let queens = task.part.queens();
            Some(match self.searcher.search(&task, cancel) {
                SubtreeAnswer::Stopped => return None,
                SubtreeAnswer::Solution(columns) => {
                    assert_eq!(checker.check_solution(queens, &columns), Ok(()));
                    ValidatedAnswer::Solution(columns)
                }
                SubtreeAnswer::Tree(tree) => {
                    let checked = checker.check(queens, &tree, task.nodes).expect("a valid tree");
                    assert!(checked.holes.is_empty() || checked.nodes == task.nodes);
                    let mut counts = self.counts.lock().expect("no thread panics");
                    counts.0 += 1;
                    counts.1 += checked.holes.len();
                    ValidatedAnswer::Tree(tree, checked.holes, checked.nodes)
                }
            })
        }
    }

    /// Solves a query with three solvers. Returns the solution, the certificate, and the numbers
    /// of tasks and of holes.
    fn by_solvers(query: Query) -> (Vec<usize>, Vec<u8>, (usize, usize)) {
        let counts = Arc::new(Mutex::new((0, 0)));
        let solver = |_| -> Box<dyn SubtreeSolver> {
            Box::new(LocalSolver { searcher: Searcher::default(), counts: Arc::clone(&counts) })
        };
        let mut places: Vec<Position> = Vec::new();
        let exact = most_beautiful_with(
            query,
            (0..3).map(solver).collect(),
            None,
            &mut Unobserved,
            &mut |stage| {
                assert_eq!(stage.best.len(), query.n);
                places.push(stage.position);
            },
        );
        assert_eq!(exact.answer.verdict, Verdict::Proven);
        assert!(places.is_sorted_by_key(|place| place.queens), "levels come one after the other");
        let counts = *counts.lock().expect("no thread panics");
        (exact.answer.found.expect("a solution"), exact.certificate.expect("proved"), counts)
    }

    #[test]
    fn remote_solvers_prove_the_same_optimum_as_one_machine() {
        let query = |threads| Query { n: 84, norm: Norm::Euclidean, turning: false, threads };
        let alone = most_beautiful_exactly(query(1), &mut Unobserved).answer.found;
        let alone = query(1).norm.fingerprint(&alone.expect("a solution"));
        let (mut tasks, mut holes) = (0, 0);
        // A search may take few tasks, or tasks without holes, when solvers are free late.
        for threads in [1, 1, 1, 2] {
            let query = query(threads);
            let (columns, certificate, counts) = by_solvers(query);
            (tasks, holes) = (tasks + counts.0, holes + counts.1);
            assert_eq!(query.norm.fingerprint(&columns), alone);
            let proved = proof::check(&certificate).expect("it proves");
            assert_eq!(proved.solution, Some(columns));
        }
        assert!(tasks > 3 && holes > 3, "{tasks} tasks with {holes} holes");
    }

    /// Solves a query with three solvers. Returns the numbers of board LPs and of tasks.
    fn with_limits(limits: NodeLimits) -> (u64, usize) {
        let query = Query { n: 84, norm: Norm::Euclidean, turning: false, threads: 1 };
        let orbits = Orbits::new(query.n, query.norm);
        let counts = Arc::new(Mutex::new((0, 0)));
        let solver = |_| -> Box<dyn SubtreeSolver> {
            Box::new(LocalSolver { searcher: Searcher::default(), counts: Arc::clone(&counts) })
        };
        let (mut sink, mut keep) = (Unobserved, |_: &Stage<'_>| {});
        let solvers = (0..3).map(solver).collect();
        let mut engine = Engine::new(&orbits, query, solvers, &mut sink, &mut keep);
        engine.limits = limits;
        engine.run(None).expect("not stopped");
        assert_eq!(check(query.n, &engine.proof()).expect("a valid proof").solution, engine.best);
        assert!(engine.best.is_some());
        let parts = counts.lock().expect("no thread panics").0;
        (engine.board_lps_solved, parts)
    }

    #[test]
    fn slow_subtrees_are_solved_with_the_board_lp() {
        let short = with_limits(NodeLimits {
            orbit_search: 20_000,
            other_search: 20_000,
            ..NodeLimits::default()
        });
        let long = with_limits(NodeLimits::default());
        assert!(
            short.0 > long.0 && (1..long.1).contains(&short.1),
            "{short:?} {long:?} board LPs and tasks"
        );
    }

    /// A solver that leaves a hole with these queens.
    struct LeavesHole(Vec<usize>);

    impl SubtreeSolver for LeavesHole {
        fn solve(&mut self, task: SubtreeTask, _: &CancelToken) -> Option<ValidatedAnswer> {
            Some(ValidatedAnswer::Tree(
                vec![task.part.premises().hole() as u8],
                vec![self.0.clone()],
                1,
            ))
        }
    }

    #[test]
    fn a_hole_at_a_contradiction_keeps_the_subtree_open() {
        let n = 8;
        let premises = Arc::new(
            Premises::new(n, Beauty::default(), vec![true; 10], vec![], vec![])
                .expect("a valid task"),
        );
        let csp = Csp::new(n, &(0..n * n).collect::<Vec<usize>>(), &[], false);
        let root = csp.root_with(&[]).expect("no conflict at the root");
        let searched = |queens: &[usize]| {
            let (cancel, mut solver) = (CancelToken::default(), LeavesHole(queens.to_vec()));
            let weights = Arc::new([]);
            let mut worker = RemoteWorker {
                csp: &csp,
                premises: &premises,
                cancel: &cancel,
                solver: &mut solver,
                weights,
            };
            worker.search(&root, 1)
        };
        assert!(matches!(searched(&[0]), SubtreeResult::Tree(_, holes, 1) if holes.len() == 1));
        assert!(matches!(searched(&[0, 1]), SubtreeResult::Abandoned));
    }

    /// Solves a subtree as the engine does. Returns a solution, if there is one.
    fn settle(part: Subtree, nodes: u64) -> Option<Vec<usize>> {
        let premises = Arc::clone(part.premises());
        let mut checker = SubtreeChecker::new(Arc::clone(&premises));
        let mut searcher = Searcher::default();
        let mut open = vec![part];
        while let Some(part) = open.pop() {
            let task = SubtreeTask { part: part.clone(), nodes, weights: Arc::new([]) };
            match searcher.search(&task, &CancelToken::default()) {
                SubtreeAnswer::Solution(columns) => {
                    assert_eq!(checker.check_solution(part.queens(), &columns), Ok(()));
                    return Some(columns);
                }
                SubtreeAnswer::Tree(tree) => {
                    let holes =
                        checker.check(part.queens(), &tree, nodes).expect("a valid tree").holes;
                    open.extend(holes.into_iter().map(|queens| {
                        Subtree::new(Arc::clone(&premises), queens).expect("squares")
                    }));
                }
                SubtreeAnswer::Stopped => panic!("it is not stopped"),
            }
        }
        None
    }

    proptest! {
        #[test]
        fn a_subtree_has_a_solution_exactly_if_the_engine_finds_one(
            n in 1usize..=9,
            turning in any::<bool>(),
            eliminated in proptest::collection::vec(any::<prop::sample::Index>(), 0..3),
            full in proptest::collection::btree_set(0usize..6, 0..3),
            range in (0usize..6, 0usize..2, 0usize..4),
            queen in any::<prop::sample::Index>(),
            nodes in 1u64..9,
        ) {
            let half = n.div_ceil(2);
            let mut remaining = vec![true; half * (half + 1) / 2];
            for orbit in eliminated {
                let orbit = orbit.index(remaining.len());
                remaining[orbit] = false;
            }
            // With quarter turns, the engine first eliminates the squares whose images attack each
            // other.
            let firsts = (0..half).flat_map(|row| (row..half).map(move |column| (row, column)));
            for (remaining, (row, column)) in remaining.iter_mut().zip(firsts) {
                let attacked = row == column || 2 * column + 1 == n;
                *remaining &= !(turning && attacked && 2 * row + 1 < n);
            }
            let full = full.into_iter().filter(|&distance| distance < n && !turning).collect();
            let ranges = vec![(range.0.min(n / 2), range.1.min(n), (range.1 + range.2).min(n))];
            let beauty = Beauty { norm: Norm::Euclidean, turning };
            let Ok(premises) = Premises::new(n, beauty, remaining, full, ranges) else { return Ok(()) };
            let part = Subtree::new(Arc::new(premises), vec![queen.index(n * n)]).expect("a square");
            let checker = SubtreeChecker::new(Arc::clone(part.premises()));
            let exists = solutions(n)
                .iter()
                .any(|columns| checker.check_solution(part.queens(), columns).is_ok());
            prop_assert_eq!(settle(part, nodes).is_some(), exists);
        }
    }
}
