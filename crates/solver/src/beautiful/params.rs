//! The tuned constants of the search for the most beautiful solutions, each with the measurement
//! that it was chosen by, if one was recorded. They change the time of a search and its
//! certificate, never its answer.

// For `engine.rs`:

/// Nodes for one radius in the search for the first incumbent.
pub(super) const RADIUS_NODES: u64 = 3000;

/// Nodes of the first search of a trial, before anything else is assumed.
pub(super) const QUICK_NODES: u64 = 5_000;

/// With more squares than this, a plain search rarely finishes: dives come first, and then cases.
pub(super) const WIDE_SQUARES: usize = 1200;

/// Nodes of a dive on that many squares, before the first pass multiplies them.
pub(super) const WIDE_DIVE_NODES: u64 = 250_000;

/// With this many squares a trial is not split into cases, which would take too many LPs.
pub(super) const MAX_SQUARES_FOR_CASES: usize = 2000;

/// The number of cases into which a trial is split, per pass.
pub(super) const CASES: usize = 64;

/// The nodes of a case in the first pass.
pub(super) const CASE_NODES: u64 = 50_000;

/// Dives in a pass on more than [`WIDE_SQUARES`] squares.
pub(super) const WIDE_DIVES: usize = 4;

/// The factor by which the nodes grow with each pass.
pub(super) const NODES_GROWTH: u64 = 4;

/// The factor by which the nodes of a case grow with each pass: beyond its first nodes, a case is
/// settled with the LP, which takes more nodes.
pub(super) const CASE_NODES_GROWTH: u64 = 16;

// For `search.rs`:

/// The node limit of the first run of a search with restarts.
pub(super) const FIRST_RUN_NODES: f64 = 2000.0;

/// The factor by which that limit grows at each restart.
pub(super) const RUN_GROWTH: f64 = 1.5;

/// The factor by which learned weights decay at a restart.
pub(super) const RESTART_DECAY: f32 = 0.999;

/// A conflict this many candidates deeper adds less weight by a factor of e.
pub(super) const CONFLICT_DEPTH: f32 = 20.0;

/// The number of nodes after which learned weights decay.
pub(super) const DECAY_EVERY_NODES: u64 = 64;

/// The factor by which they then decay.
pub(super) const NODE_DECAY: f32 = 0.99;

// For `orbit_search.rs`:

/// Nodes of a search before it is split into subtrees.
pub(super) const UNSPLIT_NODES: u64 = 10_000;

/// Nodes of a search with restarts before several threads share it, so that easy boards have the
/// same solution with any number of threads. Against 0, two threads take 1.05 of the time with 200,
/// and 1.08 with 2000 (geometric mean of 12 sizes from 65 to 113, two runs each).
pub(super) const SHARED_FROM_NODES: u64 = 200;

/// The least share of the other nodes for a thread. Not compared with other values.
pub(super) const LEAST_SHARE: u64 = 1500;

/// Nodes of a parallel search before remote solvers are used, if there are any.
pub(super) const LOCAL_NODES: u64 = 40_000;

/// Above this number of candidates a search uses no [anchor](super::engine::Engine::anchor), since
/// it aims at solutions rather than at refutations.
pub(super) const MAX_CANDIDATES_FOR_ANCHOR: usize = 3000;

// For `dive.rs`:

/// The most nodes of a dive. More nodes rarely find what these do not.
pub(super) const MAX_DIVE_NODES: u64 = 16_000_000;

/// The number of levels in the first block of a dive.
pub(super) const FIRST_BLOCK_LEVELS: usize = 64;

/// The least number of searches that use up the nodes of a dive.
pub(super) const MIN_SEARCHES_PER_DIVE: u64 = 16;

/// The most nodes of one search in a dive.
pub(super) const MAX_DIVE_SEARCH_NODES: u64 = 50_000;

/// With more squares than this, a search in a dive is shorter.
pub(super) const VERY_WIDE_SQUARES: usize = 3000;

/// The most nodes of such a shorter search.
pub(super) const VERY_WIDE_SEARCH_NODES: u64 = 1000;

/// The number of nodes that one LP counts as in a dive.
pub(super) const DIVE_NODES_PER_LP: u64 = 200;

/// A dive requests more queens than the LP's target on one in this many levels, at random.
pub(super) const EXTRA_QUEEN_ODDS: u32 = 8;

/// The most queens above the LP's target that a dive requests on the first level of a block.
pub(super) const MAX_EXTRA_QUEENS: u32 = 4;

// For `cliques.rs`:

/// The minimum violation of a clique for which a row is added to the orbit LP.
pub(super) const MIN_CLIQUE_VIOLATION: f64 = 1e-3;

// For `board_lp.rs`:

/// The number of rows of diagonals that are added to the board LP at once.
pub(super) const DIAGONALS_AT_ONCE: usize = 50;

// For `lp_search.rs`:

/// The number of nodes that one solution of the board LP counts as in a search.
pub(super) const LP_SEARCH_NODES_PER_LP: u64 = 10_000;

/// The board LP is solved again if it eliminated at least one in this many candidates or filled a
/// diagonal.
pub(super) const RESOLVE_SHARE: usize = 10;

/// The most solutions of the board LP at one node.
pub(super) const MAX_RESOLVES: usize = 4;

/// When branching, the candidates per weight of a constraint are multiplied by this plus the square
/// of the largest LP value there; the smallest product is chosen.
pub(super) const LP_VALUE_OFFSET: f32 = 0.3;

// For `subtree_task.rs`:

/// The node limit of the smallest task for a remote searcher.
pub(super) const MIN_TASK_NODES: u64 = 20_000;

/// The nodes of a task are all nodes so far divided by this, within the limits of a task.
pub(super) const TASK_SHARE: u64 = 16;

/// The number of constraints that a searcher probes before it branches. Probing keeps the tree
/// small, which the side that assigned the task has to check.
pub(super) const PROBED_CONSTRAINTS: usize = 12;

// For `level_bounds.rs`:

/// The most cliques that one point may add.
pub(super) const CLIQUES_PER_ROUND: usize = 30;

/// The most rounds of cliques for one bound.
pub(super) const CLIQUE_ROUNDS: usize = 8;

// For `presolve.rs`:

/// With fewer orbits to probe by the orbit LP, copies of the engine for other threads cost too
/// much.
pub(super) const MIN_ORBITS_FOR_THREADS: usize = 32;

/// An orbit LP for many orbits at once must show at least this many of them possible; otherwise
/// they are probed one by one.
pub(super) const MIN_FILTERED: usize = 5;

// For `lp_witnesses.rs`:

/// The number of feasible points of the orbit LP that are kept.
pub(super) const MAX_LP_POINTS: usize = 400;

// For `parallel_search.rs`:

/// The most nodes of a subtree for a thread of this machine.
pub(super) const SUBTREE_NODES: u64 = 20_000;

/// The least nodes of a subtree: near the end of a search with few nodes, and while fewer subtrees
/// wait than there are workers.
pub(super) const MIN_SUBTREE_NODES: u64 = 1000;
