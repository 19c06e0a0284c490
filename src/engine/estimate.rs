//! Estimates from sampled subtrees (Knuth, "Estimating the efficiency of backtrack programs",
//! 1975).
//!
//! A *dive* goes down the search tree, choosing one child at random in each row. Multiplying the
//! numbers of children along the way gives unbiased estimates of the nodes and solutions below the
//! start. Starts are prefixes sampled at equal distances over the whole job, so that each symmetry
//! case is represented proportionally. Dives are made in rounds, and the standard error is derived
//! from the spread between rounds.

use std::ops::Range;
use std::time::{Duration, Instant};

use super::calibration::{TimeForecast, forecast_time, student_95};
use super::count::{CountError, CountOptions};
use super::unit_size::{job, threads, with_prefixes};
use crate::board::Problem;
use crate::decomposition::{Decomposition, Prefix, SymmetryCase};
use crate::kernel::generic::Position;

/// A mean and its standard error.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Mean {
    /// The mean.
    pub mean: f64,
    /// The standard error: in two of three cases the true value is closer to the mean than this.
    pub error: f64,
    /// The number of values.
    pub values: usize,
}

impl Mean {
    fn of(values: &[f64]) -> Self {
        let count = values.len() as f64;
        let mean = values.iter().sum::<f64>() / count;
        let spread = values.iter().map(|v| (v - mean).powi(2)).sum::<f64>();
        let error = (spread / (count * (count - 1.0).max(1.0))).sqrt();
        Self { mean, error, values: values.len() }
    }

    /// Returns the bounds of the 90 % interval: Student's, a tenth wider, because few dives have
    /// most of the weight and a sample that misses them seems too certain.
    pub fn interval(self) -> [f64; 2] {
        let half = 1.1 * student_95(self.values.saturating_sub(1).max(1) as f64) * self.error;
        [self.mean - half, self.mean + half]
    }

    /// Returns the relative error; 0 for a mean of 0.
    pub fn relative(self) -> f64 {
        if self.mean == 0.0 { 0.0 } else { self.error / self.mean }
    }
}

/// The result of [`estimate`].
#[derive(Clone, Copy, Debug)]
pub struct Estimate {
    /// Solutions of the problem.
    pub solutions: Mean,
    /// Nodes of the search tree after symmetry reduction: placements without look-ahead. Kernels
    /// visit fewer of them.
    pub nodes: Mean,
    /// The number of dives made.
    pub dives: u64,
    /// The time that the count would take on this machine, with the kernel and threads of the
    /// options; `None` if its subproblems take too long to sample, or for pieces other than queens.
    pub time: Option<TimeForecast>,
}

/// The distribution of a job's work over its prefixes.
#[derive(Clone, Debug)]
pub struct Forecast {
    /// The expected nodes below each sampled prefix, which represents `stride` prefixes.
    samples: Vec<f64>,
    stride: u64,
}

impl Forecast {
    /// Creates the forecast of equal work for all subproblems.
    pub(super) fn even(nodes: f64, subproblems: u64) -> Self {
        let stride = subproblems.max(1);
        Self { samples: vec![nodes / stride as f64], stride }
    }

    /// Returns the standard error of the sum of all nodes, relative to that sum, as if the prefixes
    /// had been sampled at random.
    pub(super) fn relative_error(&self) -> f64 {
        Mean::of(&self.samples).relative()
    }

    /// Returns the expected nodes below a range of prefixes.
    pub fn nodes(&self, range: Range<u64>) -> f64 {
        (range.start / self.stride..range.end.div_ceil(self.stride))
            .zip(self.samples.iter().skip((range.start / self.stride) as usize))
            .map(|(block, nodes)| {
                let first = block * self.stride;
                let inside = range.end.min(first + self.stride) - range.start.max(first);
                nodes * inside as f64
            })
            .sum()
    }
}

/// The sums over some random dives.
struct Dives<'a> {
    rng: &'a mut fastrand::Rng,
    nodes: f64,
    solutions: f64,
}

impl Dives<'_> {
    fn dive(&mut self, case: &SymmetryCase, prefix: &Prefix) {
        let ((mut position, mut state), mut ways) = (Position::new(case, prefix), 1.0);
        for k in prefix.filled()..case.rows().len() {
            let available = position.available(k, state);
            if available == 0 {
                return;
            }
            ways *= f64::from(available.count_ones());
            self.nodes += ways;
            state = position.place(k, state, self.choose(available));
        }
        self.solutions += ways * f64::from(case.weight()) / 3.0;
    }

    /// Returns one of the set bits at random.
    fn choose(&mut self, mut available: u32) -> u32 {
        for _ in 0..self.rng.u32(..available.count_ones()) {
            available &= available - 1;
        }
        available & available.wrapping_neg()
    }
}

/// Returns prefixes at equal distances, about `most` of them, and the distance.
fn starts(decomposition: &Decomposition, most: u64) -> (Vec<(&SymmetryCase, Prefix)>, u64) {
    let stride = decomposition.prefixes().div_ceil(most).max(1);
    let mut starts = Vec::new();
    let mut index = 0;
    decomposition.for_each(0..decomposition.prefixes(), |case, prefix| {
        // The middle of each stride, or the first prefix of a last stride that is too short to have
        // a middle.
        let left = decomposition.prefixes() - index;
        if index % stride == stride / 2 || (index % stride == 0 && left <= stride / 2) {
            starts.push((case, *prefix));
        }
        index += 1;
    });
    (starts, stride)
}

/// Returns the distribution of the work of a queens job, from about `most` prefixes with `dives`
/// dives each. The same seed gives the same forecast.
pub fn forecast(decomposition: &Decomposition, most: u64, dives: u32, seed: u64) -> Forecast {
    let mut rng = fastrand::Rng::with_seed(seed);
    let (starts, stride) = starts(decomposition, most);
    let samples = starts
        .iter()
        .map(|(case, prefix)| {
            let mut below = Dives { rng: &mut rng, nodes: 0.0, solutions: 0.0 };
            (0..dives).for_each(|_| below.dive(case, prefix));
            below.nodes / f64::from(dives)
        })
        .collect();
    Forecast { samples, stride }
}

/// Rounds of dives from random prefixes of a job.
struct Rounds<'a> {
    prefixes: f64,
    starts: Vec<(&'a SymmetryCase, Prefix)>,
    /// The index of the next start.
    next: usize,
    rng: fastrand::Rng,
    /// The nodes and solutions of all prefixes, as each round estimates them.
    nodes: Vec<f64>,
    solutions: Vec<f64>,
}

impl<'a> Rounds<'a> {
    /// The dives of a round.
    const DIVES: usize = 1024;

    fn new(decomposition: &'a Decomposition, seed: u64) -> Self {
        /// Prefixes kept in memory as starts of dives.
        const STARTS: u64 = 1 << 16;
        let (starts, _) = starts(decomposition, STARTS);
        Self {
            prefixes: decomposition.prefixes() as f64,
            next: starts.len(),
            starts,
            rng: fastrand::Rng::with_seed(seed),
            nodes: Vec::new(),
            solutions: Vec::new(),
        }
    }

    /// Makes a round.
    fn make(&mut self) {
        let mut round = Dives { rng: &mut self.rng, nodes: 0.0, solutions: 0.0 };
        for _ in 0..Self::DIVES {
            if self.starts.is_empty() {
                break;
            }
            if self.next == self.starts.len() {
                round.rng.shuffle(&mut self.starts);
                self.next = 0;
            }
            let (case, prefix) = self.starts[self.next];
            round.dive(case, &prefix);
            self.next += 1;
        }
        self.nodes.push(round.nodes / Self::DIVES as f64 * self.prefixes);
        self.solutions.push(round.solutions / Self::DIVES as f64 * self.prefixes);
    }
}

/// Estimates the count of a problem by dives for about `time`, and the time that the count would
/// take here by subproblems that are counted for about `time`. The time is for queens only.
///
/// # Errors
/// The board is too large to count, or the kernel cannot count it here.
pub fn estimate(
    problem: &Problem,
    options: &CountOptions,
    time: Duration,
    seed: u64,
) -> Result<Estimate, CountError> {
    /// The minimum number of rounds.
    const LEAST_ROUNDS: usize = 16;
    let (job, kernel) = job(problem, options)?;
    let decomposition = Decomposition::new(job);
    let prefixes = &*with_prefixes(&decomposition);
    let mut rounds = Rounds::new(prefixes, seed);
    let began = Instant::now();
    while rounds.nodes.len() < LEAST_ROUNDS || began.elapsed() < time {
        rounds.make();
    }
    Ok(Estimate {
        solutions: Mean::of(&rounds.solutions),
        nodes: Mean::of(&rounds.nodes),
        dives: (rounds.nodes.len() * Rounds::DIVES) as u64,
        time: forecast_time(&decomposition, None, (kernel, threads(options)), time, seed)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::board::{Piece, Square};
    use crate::decomposition::{AttackState, Job, Scheme};
    use crate::oeis::{Sequence, lookup};

    /// Returns the nodes of a case below a state whose first `filled` open rows are filled.
    fn nodes_below(case: &SymmetryCase, filled: usize, state: AttackState) -> u64 {
        if filled == case.rows().len() {
            return 0;
        }
        let available = case.available(filled, state);
        let below =
            |column: usize| nodes_below(case, filled + 1, case.place(filled, state, 1 << column));
        u64::from(available.count_ones())
            + crate::decomposition::columns_of(available).map(below).sum::<u64>()
    }

    /// Returns the estimate of a problem by many rounds with a seed.
    fn estimated(problem: &Problem, seed: u64) -> Mean {
        let scheme = Scheme::best(problem);
        let job = Job::new(problem.clone(), scheme, None, 1).expect("a small board");
        let decomposition = Decomposition::new(job);
        let mut rounds = Rounds::new(&decomposition, seed);
        (0..200).for_each(|_| rounds.make());
        Mean::of(&rounds.solutions)
    }

    #[test]
    fn estimates_are_close_to_the_counts_of_every_piece_and_of_decided_squares() {
        let squares = |list: &[(usize, usize)]| {
            list.iter().map(|&(row, col)| Square::new(row, col)).collect::<Vec<_>>()
        };
        for (piece, n, placed, blocked) in [
            (Piece::Queen, 10, vec![], vec![]),
            (Piece::Queen, 12, squares(&[(3, 4)]), squares(&[(0, 0), (7, 7), (11, 2)])),
            (Piece::Rook, 8, vec![], vec![]),
            (Piece::Rook, 9, squares(&[(0, 0)]), squares(&[(1, 1), (8, 8)])),
            (Piece::Superqueen, 12, vec![], vec![]),
            (Piece::Toroidal, 11, vec![], vec![]),
            (Piece::Toroidal, 8, vec![], vec![]),
        ] {
            let problem = Problem::new(piece, n, placed, blocked).expect("on the board");
            let truth = count(&problem) as f64;
            let Mean { mean, error, .. } = estimated(&problem, 7);
            assert!((mean - truth).abs() <= 5.0 * error + 1e-9, "{problem:?}: {mean} for {truth}");
            assert!(error < 0.1 * truth + 1e-9, "{problem:?}: error {error} of {truth}");
        }
    }

    /// Returns the number of solutions by placing pieces row by row.
    fn count(problem: &Problem) -> u64 {
        fn below(problem: &Problem, above: &mut Vec<Square>) -> u64 {
            let (n, row) = (problem.n(), above.len());
            if row == n {
                return 1;
            }
            let mut solutions = 0;
            for column in 0..n {
                let square = Square::new(row, column);
                let is_placed = |placed: &Square| placed.row != row || *placed == square;
                let attacks = |other: &Square| problem.piece().attacks(n, *other, square);
                if !problem.blocked().contains(&square)
                    && problem.placed().iter().all(is_placed)
                    && !above.iter().any(attacks)
                {
                    above.push(square);
                    solutions += below(problem, above);
                    above.pop();
                }
            }
            solutions
        }
        below(problem, &mut Vec::new())
    }

    #[test]
    fn nine_of_ten_intervals_contain_the_solutions_and_the_nodes() {
        /// Forecasts of each size.
        const FORECASTS: u64 = 200;
        const ROUNDS: usize = 64;
        let (mut solutions, mut exact) = (Vec::new(), Vec::new());
        for n in 14..=19 {
            let problem = Problem::empty(Piece::Queen, n);
            let job = Job::new(problem.clone(), Scheme::best(&problem), None, 1).expect("a job");
            let decomposition = Decomposition::new(job);
            let published = lookup(Sequence::Total, n).expect("a published value") as f64;
            // Larger trees take long to walk.
            let nodes = (n <= 16).then(|| {
                let mut nodes = 0;
                decomposition.for_each(0..decomposition.prefixes(), |case, prefix| {
                    nodes += nodes_below(case, prefix.filled(), prefix.state());
                });
                nodes as f64
            });
            let contains = |mean: Mean, truth: f64| {
                let [least, most] = mean.interval();
                least <= truth && truth <= most
            };
            for seed in 0..FORECASTS {
                let mut rounds = Rounds::new(&decomposition, seed);
                (0..ROUNDS).for_each(|_| rounds.make());
                solutions.push(contains(Mean::of(&rounds.solutions), published));
                exact.extend(nodes.map(|nodes| contains(Mean::of(&rounds.nodes), nodes)));
            }
        }
        for found in [solutions, exact] {
            let inside = found.iter().filter(|inside| **inside).count();
            assert!(10 * inside >= 9 * found.len(), "{inside} of {}", found.len());
        }
    }
}
