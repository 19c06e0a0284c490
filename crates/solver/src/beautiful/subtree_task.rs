//! Subtrees of long searches that are searched remotely: the task, the solver interface and the
//! searcher.

use std::sync::Arc;

use super::bounds::Bounds;
use super::csp::{Csp, Node};
use super::orbits::Orbits;
use super::parallel_search::{Searched, SubtreeWorker};
use super::search::{CancelToken, End, Search};
use nqueens_proof::beautiful::{Premises, Subtree};

/// Node limits of the smallest and the largest task. A tree of the largest fits into a message of
/// half a MiB.
const LEAST: u64 = 20_000;
const MOST: u64 = MOST_NODES;
/// The nodes of a task are all nodes so far divided by this, within these limits.
const SHARE: u64 = 16;

/// The number of constraints that a searcher probes before it branches. The tree has to be checked
/// by the other side, so it should be small.
const AHEAD: usize = 12;

/// The largest node limit of a task.
pub const MOST_NODES: u64 = 200_000;

/// A subtree task.
#[derive(Clone, Debug, PartialEq)]
pub struct SubtreeTask {
    /// The subtree.
    pub part: Subtree,
    /// The node limit, at most [`MOST_NODES`]. States still open then are left as holes.
    pub nodes: u64,
    /// The learned weight of each constraint: the larger, the sooner it is branched on.
    pub weights: Arc<[f32]>,
}

/// A validated answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reached {
    /// A solution in question that contains the queens of the part: the 0-based column of the queen
    /// in each row.
    Solution(Vec<usize>),
    /// A tree, the squares of the queens in each of its holes, and its nodes.
    Tree(Vec<u8>, Vec<Vec<usize>>, u64),
}

/// The interface to a solver that has subtrees searched elsewhere. It validates the answers; the
/// engine does not.
pub trait SubtreeSolver: Send {
    /// Returns the answer, or `None` if `cancel` is [abandoned](CancelToken::is_abandoned) first.
    fn ask(&mut self, question: SubtreeTask, cancel: &CancelToken) -> Option<Reached>;
}

/// A worker that passes its subtrees to a solver.
pub(super) struct RemoteWorker<'a> {
    pub(super) csp: &'a Csp,
    pub(super) n: usize,
    pub(super) known: &'a Arc<Premises>,
    pub(super) cancel: &'a CancelToken,
    pub(super) solver: &'a mut dyn SubtreeSolver,
    pub(super) weights: Arc<[f32]>,
}

impl RemoteWorker<'_> {
    /// Returns the states of holes. Each hole lists its queens, including all implied ones. Returns
    /// `None` if propagation finds a contradiction at a hole: an honest searcher leaves no hole
    /// there.
    fn roots(&self, holes: &[Vec<usize>]) -> Option<Vec<Node>> {
        holes.iter().map(|queens| self.csp.root_with(queens).ok()).collect()
    }
}

impl SubtreeWorker for RemoteWorker<'_> {
    fn begin(&mut self, _: &[f32], _: usize) {}

    fn takes(&self, so_far: u64) -> u64 {
        (so_far / SHARE).clamp(LEAST, MOST)
    }

    fn search(&mut self, root: &Node, nodes: u64) -> Searched {
        let part = Subtree::new(Arc::clone(self.known), self.csp.squares_of(&root.placed));
        let part = part.expect("its squares are of the board");
        let question = SubtreeTask { part, nodes, weights: Arc::clone(&self.weights) };
        match self.solver.ask(question, self.cancel) {
            None => Searched::Nothing,
            Some(Reached::Solution(columns)) => {
                let squares = columns.iter().enumerate().map(|(row, column)| row * self.n + column);
                let mut candidates: Vec<u32> =
                    squares.filter_map(|square| self.csp.candidate_on(square)).collect();
                candidates.sort_unstable();
                candidates.dedup();
                // The nodes searched for a solution cannot be validated.
                Searched::Found(candidates, 0)
            }
            Some(Reached::Tree(tree, holes, nodes)) => match self.roots(&holes) {
                Some(holes) => Searched::Tree(tree, holes, nodes),
                // The subtree will be searched again.
                None => {
                    tracing::warn!("an answered tree has a hole where there is a contradiction");
                    Searched::Nothing
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
    board: Option<Board>,
}

/// The problem under some premises, and the weights learned on it.
#[derive(Debug)]
struct Board {
    known: Arc<Premises>,
    csp: Csp,
    weights: Vec<f32>,
}

impl Board {
    fn new(known: &Arc<Premises>) -> Self {
        let (n, beauty) = (known.n(), known.beauty());
        let orbits = Orbits::new(n, beauty.norm);
        let bounds = Bounds::of(&orbits, known);
        let csp = Csp::new(n, &bounds.squares(&orbits), &bounds.groups(&orbits), beauty.turning);
        let csp = csp.filling(bounds.full());
        let weights = vec![1.0; csp.lines.len()];
        Self { known: Arc::clone(known), csp, weights }
    }
}

impl Searcher {
    /// Searches the subtree of a task.
    pub fn search(&mut self, question: &SubtreeTask, cancel: &CancelToken) -> SubtreeAnswer {
        let SubtreeTask { part, nodes, weights } = question;
        if self.board.as_ref().is_none_or(|board| board.known != *part.premises()) {
            let board = self.board.insert(Board::new(part.premises()));
            let good = weights.iter().all(|weight| weight.is_finite() && *weight >= 1.0);
            if good && weights.len() == board.weights.len() {
                board.weights.copy_from_slice(weights);
            }
        }
        let Some(Board { csp, weights, .. }) = &mut self.board else {
            unreachable!("it was made above")
        };
        let Ok(root) = csp.root_with(part.queens()) else { return SubtreeAnswer::Tree(Vec::new()) };
        let mut search = Search::new(csp, cancel, 1);
        search.inherit(weights, root.placed.len());
        search.ahead = AHEAD;
        let (end, _) = search.subtree(&root, (*nodes).min(MOST_NODES));
        let learned = search.weights().to_vec();
        let answer = match end {
            // The tree of an interrupted search proves too little.
            _ if cancel.is_stopped() => SubtreeAnswer::Stopped,
            End::Found(candidates) => {
                SubtreeAnswer::Solution(csp.columns(part.premises().n(), &candidates))
            }
            End::Refuted(tree) => SubtreeAnswer::Tree(tree),
            End::Spent => unreachable!("a piece leaves holes"),
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
    use crate::beautiful::exact::{Engine, Stage};
    use crate::beautiful::lp_search::Pace;
    use crate::beautiful::{Place, Question, most_beautiful_by, most_beautiful_exactly};
    use crate::progress::Unobserved;
    use nqueens_proof as proof;
    use nqueens_proof::Beauty;
    use nqueens_proof::beautiful::{SubtreeChecker, check, claim};
    use nqueens_proof::board::Norm;

    /// A solver that searches and validates locally, and counts tasks and holes.
    struct LocalSolver {
        searcher: Searcher,
        asked: Arc<Mutex<(usize, usize)>>,
    }

    impl SubtreeSolver for LocalSolver {
        fn ask(&mut self, question: SubtreeTask, cancel: &CancelToken) -> Option<Reached> {
            let mut checker = SubtreeChecker::new(Arc::clone(question.part.premises()));
            let queens = question.part.queens();
            Some(match self.searcher.search(&question, cancel) {
                SubtreeAnswer::Stopped => return None,
                SubtreeAnswer::Solution(columns) => {
                    assert_eq!(checker.check_solution(queens, &columns), Ok(()));
                    Reached::Solution(columns)
                }
                SubtreeAnswer::Tree(tree) => {
                    let checked =
                        checker.check(queens, &tree, question.nodes).expect("an honest tree");
                    assert!(checked.holes.is_empty() || checked.nodes == question.nodes);
                    let mut asked = self.asked.lock().expect("nobody panics");
                    asked.0 += 1;
                    asked.1 += checked.holes.len();
                    Reached::Tree(tree, checked.holes, checked.nodes)
                }
            })
        }
    }

    /// Solves a question with three solvers. Returns the solution, the certificate, and the numbers
    /// of tasks and of holes.
    fn by_solvers(question: Question) -> (Vec<usize>, Vec<u8>, (usize, usize)) {
        let asked = Arc::new(Mutex::new((0, 0)));
        let solver = |_| -> Box<dyn SubtreeSolver> {
            Box::new(LocalSolver { searcher: Searcher::default(), asked: Arc::clone(&asked) })
        };
        let mut places: Vec<Place> = Vec::new();
        let exact = most_beautiful_by(
            question,
            (0..3).map(solver).collect(),
            None,
            &mut Unobserved,
            &mut |stage| {
                assert_eq!(stage.best.len(), question.n);
                places.push(stage.place);
            },
        );
        assert_eq!(exact.answer.verdict, Verdict::Proven);
        assert!(places.is_sorted_by_key(|place| place.queens), "levels come one after the other");
        let asked = *asked.lock().expect("nobody panics");
        (exact.answer.found.expect("a solution"), exact.certificate.expect("proved"), asked)
    }

    #[test]
    fn remote_solvers_prove_what_one_machine_proves() {
        // The search is long enough to be distributed.
        let question = Question { n: 84, norm: Norm::Euclidean, turning: false, threads: 1 };
        let (columns, certificate, (asked, holes)) = by_solvers(question);
        assert!(asked > 3 && holes > 3, "{asked} parts with {holes} holes");
        let alone =
            most_beautiful_exactly(question, &mut Unobserved).answer.found.expect("a solution");
        assert_eq!(question.norm.fingerprint(&columns), question.norm.fingerprint(&alone));
        let proved = proof::check(&certificate).expect("it proves");
        assert_eq!(proved.solution, Some(columns));
    }

    /// Solves a question with three solvers. Returns the numbers of LPs and of tasks.
    fn at_pace(pace: Pace) -> (u64, usize) {
        let question = Question { n: 84, norm: Norm::Euclidean, turning: false, threads: 2 };
        let orbits = Orbits::new(question.n, question.norm);
        let asked = Arc::new(Mutex::new((0, 0)));
        let solver = |_| -> Box<dyn SubtreeSolver> {
            Box::new(LocalSolver { searcher: Searcher::default(), asked: Arc::clone(&asked) })
        };
        let (mut watch, mut keep) = (Unobserved, |_: &Stage<'_>| {});
        let solvers = (0..3).map(solver).collect();
        let mut engine = Engine::new(&orbits, question, solvers, &mut watch, &mut keep);
        engine.pace = pace;
        engine.run(None).expect("nobody stops it");
        let best = engine.best.expect("a solution");
        let mut proof = claim(question.norm, false, Some(&best));
        proof.bytes(engine.log.as_bytes());
        assert_eq!(
            check(question.n, &proof.finish()).expect("it proves that").solution,
            Some(best)
        );
        let parts = asked.lock().expect("nobody panics").0;
        (engine.programmes, parts)
    }

    #[test]
    fn what_takes_solvers_too_long_is_settled_with_the_linear_programme() {
        let short = at_pace(Pace { orbit_search: 20_000, plain: 20_000, ..Pace::default() });
        let long = at_pace(Pace::default());
        assert!(
            short.0 > long.0 && (1..long.1).contains(&short.1),
            "{short:?} {long:?} programmes and parts"
        );
    }

    /// A solver that leaves a hole with these queens.
    struct Leaving(Vec<usize>);

    impl SubtreeSolver for Leaving {
        fn ask(&mut self, question: SubtreeTask, _: &CancelToken) -> Option<Reached> {
            Some(Reached::Tree(
                vec![question.part.premises().hole() as u8],
                vec![self.0.clone()],
                1,
            ))
        }
    }

    #[test]
    fn a_hole_at_a_contradiction_leaves_the_part_to_be_asked_again() {
        let n = 8;
        let known = Arc::new(
            Premises::new(n, Beauty::default(), vec![true; 10], vec![], vec![])
                .expect("of a board"),
        );
        let csp = Csp::new(n, &(0..n * n).collect::<Vec<usize>>(), &[], false);
        let root = csp.root_with(&[]).expect("nothing follows yet");
        let searched = |queens: &[usize]| {
            let (cancel, mut solver) = (CancelToken::default(), Leaving(queens.to_vec()));
            let weights = Arc::new([]);
            let mut there = RemoteWorker {
                csp: &csp,
                n,
                known: &known,
                cancel: &cancel,
                solver: &mut solver,
                weights,
            };
            there.search(&root, 1)
        };
        assert!(matches!(searched(&[0]), Searched::Tree(_, holes, 1) if holes.len() == 1));
        assert!(matches!(searched(&[0, 1]), Searched::Nothing));
    }

    /// Settles a part as the engine does. Returns a solution, if there is one.
    fn settle(part: Subtree, nodes: u64) -> Option<Vec<usize>> {
        let known = Arc::clone(part.premises());
        let mut checker = SubtreeChecker::new(Arc::clone(&known));
        let mut searcher = Searcher::default();
        let mut open = vec![part];
        while let Some(part) = open.pop() {
            let question = SubtreeTask { part: part.clone(), nodes, weights: Arc::new([]) };
            match searcher.search(&question, &CancelToken::default()) {
                SubtreeAnswer::Solution(columns) => {
                    assert_eq!(checker.check_solution(part.queens(), &columns), Ok(()));
                    return Some(columns);
                }
                SubtreeAnswer::Tree(tree) => {
                    let holes =
                        checker.check(part.queens(), &tree, nodes).expect("an honest tree").holes;
                    open.extend(
                        holes.into_iter().map(|queens| {
                            Subtree::new(Arc::clone(&known), queens).expect("squares")
                        }),
                    );
                }
                SubtreeAnswer::Stopped => panic!("nobody stops it"),
            }
        }
        None
    }

    /// Returns all solutions, by the plain definition.
    fn oracle(n: usize) -> Vec<Vec<usize>> {
        let mut found = Vec::new();
        let mut watch = |columns: &[usize]| found.push(columns.to_vec());
        every(n, &mut Vec::new(), &mut watch);
        found
    }

    fn every(n: usize, rows: &mut Vec<usize>, found: &mut dyn FnMut(&[usize])) {
        if rows.len() == n {
            return found(rows);
        }
        for column in 0..n {
            let free = rows
                .iter()
                .enumerate()
                .all(|(row, &other)| other != column && other.abs_diff(column) != rows.len() - row);
            if free {
                rows.push(column);
                every(n, rows, found);
                rows.pop();
            }
        }
    }

    proptest! {
        #[test]
        fn a_part_has_a_solution_exactly_if_its_searchers_find_one(
            n in 1usize..=9,
            turning in any::<bool>(),
            dead in proptest::collection::vec(any::<prop::sample::Index>(), 0..3),
            full in proptest::collection::btree_set(0usize..6, 0..3),
            range in (0usize..6, 0usize..2, 0usize..4),
            queen in any::<prop::sample::Index>(),
            nodes in 1u64..9,
        ) {
            let half = n.div_ceil(2);
            let mut alive = vec![true; half * (half + 1) / 2];
            for orbit in dead {
                let orbit = orbit.index(alive.len());
                alive[orbit] = false;
            }
            // With quarter turns, the engine first eliminates the squares whose images attack each
            // other.
            let firsts = (0..half).flat_map(|row| (row..half).map(move |column| (row, column)));
            for (alive, (row, column)) in alive.iter_mut().zip(firsts) {
                let attacked = row == column || 2 * column + 1 == n;
                *alive &= !(turning && attacked && 2 * row + 1 < n);
            }
            let full = full.into_iter().filter(|&distance| distance < n && !turning).collect();
            let ranges = vec![(range.0.min(n / 2), range.1.min(n), (range.1 + range.2).min(n))];
            let beauty = Beauty { norm: Norm::Euclidean, turning };
            let Ok(known) = Premises::new(n, beauty, alive, full, ranges) else { return Ok(()) };
            let part = Subtree::new(Arc::new(known), vec![queen.index(n * n)]).expect("a square");
            let checker = SubtreeChecker::new(Arc::clone(part.premises()));
            let exists = oracle(n).iter().any(|columns| checker.check_solution(part.queens(), columns).is_ok());
            prop_assert_eq!(settle(part, nodes).is_some(), exists);
        }
    }
}
