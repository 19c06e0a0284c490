//! The tuned constants of the search for the first solution, each with the measurement that it was
//! chosen by, if one was recorded. They change the time of a search and its certificate, never its
//! answer.

// For `decider.rs`:

/// LP limit of the shortest queries about a prefix that was not settled by its first query.
pub(super) const SHORT_QUERY_LPS: u64 = 16;

/// Maximum number of concurrent queries about a part of the greedy prefix.
pub(super) const MAX_GREEDY_ATTEMPTS: usize = 4;

/// A query is slow from this multiple of the mean time of recent refutations on, but not before
/// this time, in s. Not compared with other values.
pub(super) const SLOW_RATIO: f64 = 3.0;
pub(super) const LEAST_SLOW_S: f64 = 0.05;

/// Weight of a refutation in the mean time. Not compared with other values.
pub(super) const WEIGHT_OF_REFUTATION: f64 = 0.1;

// For `decision_job.rs`:

/// The next job waits for a slow one if it comes at least so many jobs later, although no
/// completion is expected. Chosen when solvers dived for the slow one instead.
pub(super) const MOST_JOBS_AHEAD: usize = 8;

// For `dive.rs`:

/// Nodes of the shortest dive.
pub(super) const SHORTEST_DIVE_NODES: u64 = 500;

/// Random noise added to the LP value of a cell, which is from 0 to 1. Measured on n = 71, 85 and
/// 101: better than 0.1 and 2.
pub(super) const DIVE_NOISE: f64 = 0.5;

/// Number of times that the marginals are fitted before the first dive, and at each node. Measured
/// on n = 87, first 31 queens of the greedy prefix, these and column 63, and n = 89, first 31 and
/// columns 51 and 65, in s for each completion: two times 1.9, 1.7 and 3.2, three times 1.9, 24.4
/// and 2.8.
pub(super) const FITS_OF_A_DIVE: usize = 50;
pub(super) const FITS_OF_A_NODE: usize = 2;

/// Temperature of the draws in proportion to the marginals: a cell is drawn in proportion to its
/// marginal to the power of the reciprocal. Measured on n = 87 and 89 with
/// five fits, branching on the lines of the weights only: 0.1 and 0.25 are better than 0.5 and 1.
pub(super) const DIVE_TEMPERATURE: f64 = 0.08;

/// Marginals are multiplied by a random factor from 1 to 1 plus this when a row is selected.
pub(super) const DIVE_MARGINAL_NOISE: f64 = 0.2;

/// Sizes of lines are multiplied by a random factor from 1 to 1 plus this.
pub(super) const DIVE_SIZE_NOISE: f64 = 0.1;

// For `components.rs`:

/// Minimum number of rows of a component. Smaller ones, such as a row whose queen is integral in
/// the LP solution, are ignored.
pub(super) const SMALLEST_COMPONENT_ROWS: usize = 5;

// For `weights.rs`:

/// Number of failures after which the weights are halved, so that old failures count little.
pub(super) const FAILURES_PER_HALVING: u32 = 20_000;

// For `listed_sets.rs`, `set_search.rs` and their queries:

/// Table entries and search nodes for listing the sets of a direction.
pub(super) const LISTING_ENTRIES: usize = 1 << 17;

/// Maximum number of successive boards whose sets are not listed.
pub(super) const MOST_SKIPPED: u32 = 15;

/// Maximum number of pairs of sets.
pub(super) const MOST_PAIRS: usize = 1000;

/// Maximum number of boards whose relaxations are solved in a search through sets of diagonals: per
/// LP of the query's limit, and in all.
pub(super) const SET_SEARCH_LPS_PER_LP: u64 = 300;
pub(super) const MOST_SET_SEARCH_LPS: u64 = 5000;

// For `probing.rs`:

/// Above this optimum of the assignment relaxation the knapsacks refute nothing. Measured on n = 58
/// and 62: below 0.05 they nearly always do, above 0.09 they never did.
pub(super) const PROMISING_OPTIMUM: f64 = 0.08;

/// Number of eliminated cells after which the LPs are solved again.
pub(super) const ELIMINATIONS_PER_SOLVE: usize = 8;

/// Number of consecutive cells that survive after which probing ends: before the first elimination,
/// and after one.
pub(super) const PROBING_PATIENCE: [usize; 2] = [20, 150];

/// Number of recent multipliers that are tried on a cell before the LPs.
pub(super) const RECENT_MULTIPLIERS: usize = 8;

// For `query.rs`:

/// Nodes of a limited search before LPs are solved instead. Measured on n = 44, 50, 62, 70, 74:
/// 1000 is about the same, 300 worse.
pub(super) const LIMITED_SEARCH_NODES: u64 = 3000;

/// Minimum number of nodes of a limited search whose refutation, for a query of another machine,
/// states the weights of the lines, which take at least two bytes for each row. A search may be
/// small because of what earlier queries learned. Without weights, 7 of 85 answers of three workers
/// for n = 106 took the coordinator 14.9 s to check, the others 3.2 s; the workers had taken 1.0 s
/// for the 7. In a local run, where one refutation is checked after the other, n = 80 took 0.64 s
/// without weights and 0.47 s with them, other sizes as long, and the certificate was a third
/// longer.
pub(super) const MIN_NODES_TO_STATE_WEIGHTS: u64 = 100;

/// Queries with at least this LP limit, and all on boards of odd size, keep only the refuted
/// positions of prefixes that theirs extends.
pub(super) const LONG_QUERY_LPS: u64 = 32;

/// Nodes of the long search under the first dual bound on boards of odd size, per LP of the query's
/// limit. Measured with 200,000 and this, user s: n = 79 1.7, 1.6; 91 10.1, 12.3; 93 19.1, 10.3; 97
/// 13.9, 13.8; 101 17.5, 18.2; 103 6.9, 7.0.
pub const SEARCH_NODES_PER_LP: u64 = 800_000;

/// Before the dives, a long search has at most so many nodes per node of the dives, each of which
/// takes two to four times as long. Measured on n = 87 and 89, boards refuted by long searches of
/// more than 0.3 s, before the dives and after them: 17 and 35 in queries of 128 LPs, 23 and 45 of
/// 32 LPs.
pub(super) const NODES_PER_DIVE_NODE: u64 = 4;

/// On boards of odd size, a long search before the dives has at least this number of nodes per node
/// of the last one, if that refuted its board: refutations follow each other, and dives are useless
/// for them. Measured with one worker for all, and without it, wall-clock s: n = 85 5.1, 5.1; 91
/// 15.8, 16.1; 93 17.8, 28.0; 97 20.7, 27.7; 99 111.8, 100.1; 101 30.8, 37.2; 103 15.1, 15.2.
pub(super) const NODES_PER_NODE_OF_REFUTATION: u64 = 2;

/// Queries with at least this LP limit eliminate cells first. Measured with 16, 64 and 128, in s:
/// n = 44 2.8, 3.3, 4.6; n = 60 11.4, 9.2, 6.6; n = 62 8.0, 6.3, 7.1.
pub(super) const ELIMINATING_QUERY_LPS: u64 = 128;

/// Maximum number of cells probed by LPs, per LP of the query's limit: enough for elimination to
/// finish. n = 58, first 21 queens: six dives of 2 million nodes found no completion after 128
/// cells, each found one after 256 or more.
pub(super) const MAX_PROBES_PER_LP: u64 = 4;

/// Maximum number of rows that a query decides beyond the board of the LPs; with more, the LPs are
/// rebuilt, or replaced by a saved state. Measured on n = 44, 60, 62, 72: 3 is a little better than
/// 0 and 6.
pub(super) const MAX_ROWS_BEYOND: usize = 3;

/// A board after elimination counts as tight if the optimum of the assignment relaxation is below
/// this; it is then searched for longer. For n = 58 the optimum falls from 0.055 to 0.03 and then
/// to 0.
pub(super) const TIGHT_OPTIMUM: f64 = 0.04;

/// Nodes of the dives and of the long search of a tight board, per LP of the query's limit.
/// Measured on n = 58, three seeds each: 25 to 37 s of search with these, 41 to 44 s with 4000 and
/// 10,000.
pub(super) const TIGHT_NODES_PER_LP: [u64; 2] = [10_000, 40_000];

/// Random noise added to the LP values of cells, which are from 0 to 1, in all orders but the
/// default one. Measured on n = 58: better than 0.15 and 0.6.
pub(super) const BRANCHING_NOISE: f64 = 0.3;

// For `proofs.rs` and `query.rs`:

/// Number of prefixes per solver, and as many more in a worker, whose eliminated cells are kept
/// although they are not parts of the current prefix.
pub(super) const OTHER_ELIMINATIONS: usize = 4;

// For `known_multipliers.rs`:

/// Number of multipliers that are kept. With 8, one thread takes as long for n = 44 to 86.
pub(super) const MAX_MULTIPLIERS: usize = 32;

// For `relaxation.rs`:

/// Number of simplex steps of the master program between two inspections of its multipliers. With 5
/// and 20, one thread takes 0.97 and 1.01 of the time for n = 44 to 86 (geometric mean of ten
/// sizes).
pub(super) const STEPS_PER_INSPECTION: u64 = 10;

/// Maximum number of rounds of column generation.
pub(super) const COLUMN_GENERATION_ROUNDS: usize = 60;

// For `lp_states.rs`:

/// Number of LP states that are kept, of about 3 MB each for n = 84. With 16, n = 66 takes 3 %
/// fewer LPs, and n = 70 to 88 as many.
pub(super) const KEPT_LP_STATES: usize = 6;

/// Number of sets of diagonals in the LPs above which they are rebuilt, with those of the pool that
/// fit. It only limits the memory and the time of one LP in long runs.
pub(super) const MOST_SETS: usize = 3000;

// For `set_pool.rs`:

/// Number of sets of diagonals that are kept for later queries. Those that fit a board are a small
/// part: with at most 20, 100 and 2000 of them, n = 66 takes 12.5, 13.4 and 12.8 s with one thread,
/// 80 6.0, 5.5 and 5.4, 82 10.0, 10.0 and 10.4.
pub(super) const POOLED_SETS: usize = 1000;

// For `limited_search.rs`:

/// Nodes after which the size of a search tree is estimated first, and the part of the limit that
/// has to be spent before: early estimates are too large, since the nodes at the left are searched
/// before the weights are learned. Measured on n = 89, 38 queens: 390, 198, 49 and 56 million after
/// 65,536, 131,072, 262,144 and 524,288 nodes.
pub(super) const NODES_BEFORE_ESTIMATE: u64 = 1 << 15;
pub(super) const LIMIT_PER_ESTIMATE: u64 = 64;

// For `placements.rs`:

/// Number of placements whose boards are searched at once, to learn how many nodes that takes.
pub(super) const SAMPLED_PLACEMENTS: u64 = 16;
