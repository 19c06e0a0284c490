//! A search that solves a linear relaxation of the whole board (the board LP) where a short search
//! does not finish.
//!
//! The orbit LP covers everything that is invariant under the symmetries. Once queens are placed,
//! no symmetry is left, and an LP with a variable for each square is much stronger: often it is
//! infeasible, or some squares are 0 in every solution. Such an LP takes as long as some ten
//! thousand nodes, so it is solved at few nodes only, and a short search is tried first.
//!
//! The result is trusted only in exact integers. Prices on columns, diagonals and levels give each
//! square a price. The total price of all queens still to be placed has an upper bound, since no
//! diagonal has two of them, and a lower bound, since each row pays at least for its cheapest
//! square. If the lower bound exceeds the upper one, there is no solution. A square whose price
//! exceeds the cheapest of its row by more than the gap between the bounds has no queen, and a
//! diagonal whose price exceeds the gap has one.

use std::ops::ControlFlow;
use std::time::Duration;

use super::csp::{Csp, Node, PropagationQueue};
use super::orbits::Orbits;
use super::parallel_search::{Searched, SubtreeWorker};
use super::search::{CancelToken, End, Search, write_number};
use crate::ilp::Linear as _;
use crate::ilp::model::Direction;
use crate::progress::{Progress, ProgressSink};
use crate::simplex::{Ended, Simplex};
use nqueens_proof::beautiful::prices;
use nqueens_proof::bytes::Writer;

/// The number of nodes that one LP counts as.
const PROGRAMME: u64 = 10_000;
/// The LP is solved again if it eliminated at least one in this many candidates or filled a
/// diagonal, ...
const WORTH_ASKING: usize = 10;
/// ... and at most this often.
const MOST_ROUNDS: usize = 4;
/// Prices are rounded to integers, scaled so that the largest has this magnitude.
const SCALE: f64 = (1 << 24) as f64;
/// When branching, the candidates per weight of a constraint are multiplied by this plus the square
/// of the largest LP value there; the smallest product is chosen.
const UNDECIDED: f32 = 0.3;
/// The least violation of a diagonal, and the number of rows that are added at once.
const VIOLATED: f64 = 1e-6;
const ROWS_AT_ONCE: usize = 50;

/// The numbers of nodes that are searched without the LP.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pace {
    /// Before the LP is used at all, in an orbit search and in any other search (when long, a
    /// case). Measured on whole runs for n = 128: orbit searches with 0.2, 1 and 4 million take
    /// 107, 86 and 42 s.
    pub(super) orbit_search: u64,
    pub(super) plain: u64,
    /// In a subtree, before the LP and after it. Measured on cases of n = 160: with 10,000, 30,000,
    /// 100,000 and 300,000 after it, three cases take 49, 35, 29 and 31 s; with 3,000 and 10,000,
    /// three others take 63 and 44 s.
    pub(super) glance: u64,
    pub(super) short: u64,
}

impl Default for Pace {
    fn default() -> Self {
        Self { orbit_search: 4_000_000, plain: 200_000, glance: 500, short: 100_000 }
    }
}

/// A worker that refutes each subtree or branches on it once.
pub(super) struct LpSearch<'a> {
    csp: &'a Csp,
    pace: Pace,
    cancel: &'a CancelToken,
    search: Search<'a>,
    programme: Programme<'a>,
}

/// The LP over all candidates: one for each required constraint, a number within its range on each
/// level, and at most 1 − t on each other diagonal, where t is maximised.
struct Programme<'a> {
    csp: &'a Csp,
    simplex: Simplex,
    /// The diagonals, in the order of their numbers in a certificate.
    diagonals: Vec<Diagonal>,
    /// The number in a certificate of each row of the LP.
    numbers: Vec<usize>,
    /// By number in a certificate: the least and the greatest number of candidates on a column, a
    /// diagonal or a level.
    bounds: Vec<(i64, i64)>,
    /// For each candidate, the numbers of its column, diagonals and level, and its row.
    prices_of: Vec<[usize; 4]>,
    row_of: Vec<usize>,
    /// The state of each candidate in the simplex.
    told: Vec<Told>,
    asked: u64,
}

/// A diagonal in the LP.
#[derive(Clone, Debug)]
struct Diagonal {
    candidates: Vec<u32>,
    need: Need,
    /// Its rows, each added when first violated: at most 1 − t, and exactly 1.
    at_most: Option<usize>,
    exactly: Option<usize>,
}

/// The constraint on a diagonal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Need {
    /// At most one candidate.
    AtMost,
    /// Exactly one candidate.
    One,
    /// No constraint: it has its candidate.
    Nothing,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Told {
    Open,
    Closed,
    Placed,
}

/// The outcome of solving the LP.
enum Asked {
    /// The prices from the dual solution, by their number in a certificate.
    Prices(Vec<i64>),
    /// Nothing useful.
    Nothing,
    /// The solver was stopped.
    Stopped,
}

/// The conclusions that prices prove.
enum Shown {
    /// There is no solution.
    Nothing,
    /// No solution has any of the candidates `dead`, and every solution has a candidate on each
    /// diagonal in `full`.
    Some { dead: Vec<u32>, full: Vec<usize> },
}

impl<'a> LpSearch<'a> {
    pub(super) fn new(
        csp: &'a Csp,
        orbits: &Orbits,
        pace: Pace,
        cancel: &'a CancelToken,
        seed: u64,
    ) -> Self {
        let search = Search::new(csp, cancel, seed);
        Self { csp, pace, cancel, search, programme: Programme::new(csp, orbits) }
    }

    /// Returns the number of LPs solved.
    pub(super) const fn programmes(&self) -> u64 {
        self.programme.asked
    }

    /// Searches below `root`. The tree may have holes. Returns [`End::Spent`] if stopped.
    fn tree(&mut self, root: &Node, holes: &mut Vec<Node>) -> End {
        match self.search.run(root, self.pace.glance) {
            End::Spent => {}
            end => return end,
        }
        let mut tree = Vec::new();
        let mut root = root.clone();
        for _ in 0..MOST_ROUNDS {
            let prices = match self.programme.ask(&root, self.cancel) {
                Asked::Prices(prices) => prices,
                Asked::Nothing => break,
                Asked::Stopped => return End::Spent,
            };
            let Shown::Some { dead, full } = self.programme.shown(&root, &prices) else {
                self.write(&prices, &mut tree);
                return End::Refuted(tree);
            };
            if dead.is_empty() && full.is_empty() {
                break;
            }
            self.write(&prices, &mut tree);
            let before = self.programme.open(&root);
            let mut pending = PropagationQueue::default();
            let filled = self.csp.fill(&mut root, &full, &mut pending);
            if filled
                .and_then(|()| {
                    self.csp.without(&mut root, &self.csp.squares_of(&dead), &mut pending)
                })
                .is_err()
            {
                return End::Refuted(tree);
            }
            if root.state.is_complete() {
                return End::Found(root.placed);
            }
            if full.is_empty() && (before - self.programme.open(&root)) * WORTH_ASKING < before {
                break;
            }
        }
        match self.search.run(&root, self.pace.short) {
            End::Refuted(rest) => tree.extend(rest),
            End::Spent if !self.cancel.is_stopped() => {
                if let Some(candidates) = self.branch(&root, &mut tree, holes) {
                    return End::Found(candidates);
                }
            }
            end => return end,
        }
        End::Refuted(tree)
    }

    /// Branches on a constraint and leaves a hole for each of its candidates that can be placed.
    /// Returns the candidates of a solution, if one is complete then.
    fn branch(&self, root: &Node, tree: &mut Vec<u8>, holes: &mut Vec<Node>) -> Option<Vec<u32>> {
        let line = self.line(root);
        write_number(tree, self.csp.in_tree(line));
        for &candidate in
            self.csp.lines[line].iter().filter(|&&candidate| root.state.is_alive(candidate))
        {
            let mut pending = PropagationQueue::after(root.placed.clone());
            let mut state = root.state.clone();
            if self.csp.place(&mut state, candidate, &mut pending).is_ok() {
                if state.is_complete() {
                    return Some(pending.placed);
                }
                write_number(tree, self.csp.hole as u64);
                holes.push(Node { state, placed: pending.placed });
            }
        }
        None
    }

    /// Returns the constraint to branch on: one with few candidates for its weight and only
    /// small LP values.
    fn line(&self, root: &Node) -> usize {
        let values = self.programme.simplex.values();
        let value = |&candidate: &u32| {
            if root.state.is_alive(candidate) {
                values.get(candidate as usize).map_or(0.0, |&x| x as f32)
            } else {
                0.0
            }
        };
        let worth = |(line, choices): (usize, u16)| {
            let most = self.csp.lines[line].iter().map(value).fold(0.0, f32::max);
            (f32::from(choices) / self.search.weights()[line] * (UNDECIDED + most * most), line)
        };
        let best = root.state.open_lines().map(worth).min_by(|a, b| a.0.total_cmp(&b.0));
        best.map_or(0, |(_, line)| line)
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
        self.search.inherit(weights, height);
    }

    fn takes(&self, _: u64) -> u64 {
        self.pace.short + PROGRAMME
    }

    fn search(&mut self, root: &Node, _: u64) -> Searched {
        let before = self.search.nodes + PROGRAMME * self.programme.asked;
        let mut holes = Vec::new();
        let end = self.tree(root, &mut holes);
        let nodes = self.search.nodes + PROGRAMME * self.programme.asked - before;
        match end {
            End::Found(candidates) => Searched::Found(candidates, nodes),
            End::Refuted(tree) => Searched::Tree(tree, holes, nodes),
            End::Spent => Searched::Nothing,
        }
    }

    fn weights(&self) -> Option<&[f32]> {
        Some(self.search.weights())
    }
}

/// A progress sink that stops the simplex when the cancel token says so.
struct UntilStopped<'a>(&'a CancelToken);

impl ProgressSink for UntilStopped<'_> {
    fn look(&mut self, _: &Progress) -> ControlFlow<()> {
        if self.0.is_stopped() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    fn time_left(&self) -> Option<Duration> {
        None
    }
}

impl<'a> Programme<'a> {
    /// Creates the LP over all candidates of `csp`. Each must have a single square.
    fn new(csp: &'a Csp, orbits: &Orbits) -> Self {
        let n = orbits.n;
        let mut bounds = vec![(0, 1); prices::count(n, orbits.levels.len())];
        let mut rows = vec![None; bounds.len()];
        let (mut simplex, mut numbers) = (Simplex::new(Direction::Maximise), Vec::new());
        let mut add = |simplex: &mut Simplex, number: usize, least: f64, most: f64| {
            rows[number] = Some(simplex.rows());
            numbers.push(number);
            simplex.add_row_between(least, most, []);
        };
        for line in 0..2 * n {
            add(&mut simplex, line, 1.0, 1.0);
        }
        let mut level_of = vec![None; csp.candidates.len()];
        for group in &csp.groups {
            let Some(&candidate) = group.candidates.first() else { continue };
            let level = orbits.orbits
                [orbits.orbit_of[csp.candidates[candidate as usize][0] as usize]]
                .level;
            let number = prices::level(n, level);
            let range = (i64::from(*group.range.start()), i64::from(*group.range.end()));
            bounds[number] = range;
            add(&mut simplex, number, range.0 as f64, range.1 as f64);
            group
                .candidates
                .iter()
                .for_each(|&candidate| level_of[candidate as usize] = Some(number));
        }
        let lines_of: Vec<[usize; 4]> =
            csp.candidates.iter().map(|squares| prices::lines(n, squares[0] as usize)).collect();
        let diagonal = |line: usize| Diagonal {
            candidates: csp.lines[line].clone(),
            need: Need::AtMost,
            at_most: None,
            exactly: None,
        };
        let diagonals = (2 * n..csp.lines.len()).map(diagonal).collect();
        let nowhere = bounds.len();
        for (lines, level) in lines_of.iter().zip(&level_of) {
            let mut terms: Vec<(usize, f64)> = lines
                .iter()
                .chain(level)
                .filter_map(|&number| Some((rows[number]?, 1.0)))
                .collect();
            terms.sort_unstable_by_key(|term| term.0);
            simplex.add_column(0.0, (0.0, f64::INFINITY), &terms);
        }
        simplex.add_column(1.0, (f64::NEG_INFINITY, 1.0), &[]);
        bounds.push((0, 0));
        Self {
            csp,
            simplex,
            diagonals,
            numbers,
            bounds,
            prices_of: lines_of
                .iter()
                .zip(level_of)
                .map(|(lines, level)| [lines[1], lines[2], lines[3], level.unwrap_or(nowhere)])
                .collect(),
            row_of: lines_of.iter().map(|lines| lines[0]).collect(),
            told: vec![Told::Open; csp.candidates.len()],
            asked: 0,
        }
    }

    /// Returns the number of candidates that can still be placed.
    fn open(&self, root: &Node) -> usize {
        (0..self.told.len() as u32).filter(|&candidate| root.state.is_alive(candidate)).count()
    }

    /// Solves the LP at `root`.
    fn ask(&mut self, root: &Node, cancel: &CancelToken) -> Asked {
        let mut now = vec![Told::Closed; self.told.len()];
        for (candidate, told) in (0..).zip(&mut now) {
            if root.state.is_alive(candidate) {
                *told = Told::Open;
            }
        }
        root.placed.iter().for_each(|&candidate| now[candidate as usize] = Told::Placed);
        for (candidate, (told, &now)) in self.told.iter_mut().zip(&now).enumerate() {
            if *told != now {
                *told = now;
                let (least, most) = match now {
                    Told::Open => (0.0, f64::INFINITY),
                    Told::Closed => (0.0, 0.0),
                    Told::Placed => (1.0, 1.0),
                };
                self.simplex.set_bounds(candidate, least, most);
            }
        }
        self.tell_diagonals(root, &now);
        self.asked += 1;
        let mut ended = self.simplex.run(&mut UntilStopped(cancel));
        while ended == Ended::Optimal && self.add_diagonals() {
            ended = self.simplex.run(&mut UntilStopped(cancel));
        }
        let (multipliers, sign) = match ended {
            Ended::Optimal => (self.simplex.duals(), 1.0),
            Ended::Infeasible => (self.simplex.ray().unwrap_or_default(), -1.0),
            Ended::Stopped => return Asked::Stopped,
            Ended::Failed(_) => return Asked::Nothing,
        };
        let largest = multipliers.iter().fold(0.0, |largest: f64, y| largest.max(y.abs()));
        let scale = sign * SCALE / largest;
        if !scale.is_finite() {
            return Asked::Nothing;
        }
        let mut prices = vec![0; self.bounds.len() - 1];
        for (&number, y) in self.numbers.iter().zip(multipliers) {
            prices[number] += (y * scale).round() as i64;
        }
        let n = self.csp.n;
        // Rows have no prices. The price of a diagonal that may be empty is not negative.
        prices[..n].fill(0);
        for (diagonal, price) in self.diagonals.iter().zip(&mut prices[2 * n..]) {
            if diagonal.need == Need::AtMost {
                *price = (*price).max(0);
            }
        }
        Asked::Prices(prices)
    }

    /// Updates the constraints on diagonals at `root`, where `now` has the states of the
    /// candidates.
    fn tell_diagonals(&mut self, root: &Node, now: &[Told]) {
        let first = 2 * self.csp.n;
        for (line, diagonal) in (first..).zip(&mut self.diagonals) {
            let is_done = diagonal
                .candidates
                .iter()
                .any(|&candidate| now[candidate as usize] == Told::Placed);
            let need = match root.state.choices(line) {
                _ if is_done => Need::Nothing,
                Some(_) => Need::One,
                None => Need::AtMost,
            };
            if diagonal.need == need {
                continue;
            }
            diagonal.need = need;
            let anything = (f64::NEG_INFINITY, f64::INFINITY);
            let bounds = |wanted: bool, bounds| if wanted { bounds } else { anything };
            if let Some(row) = diagonal.at_most {
                let (least, most) = bounds(need == Need::AtMost, (f64::NEG_INFINITY, 1.0));
                self.simplex.set_row_bounds(row, least, most);
            }
            if let Some(row) = diagonal.exactly {
                let (least, most) = bounds(need == Need::One, (1.0, 1.0));
                self.simplex.set_row_bounds(row, least, most);
            }
        }
    }

    /// Adds rows for the most violated diagonals. Returns whether there are any.
    fn add_diagonals(&mut self) -> bool {
        let values = self.simplex.values();
        let t = self.told.len();
        let excess = |diagonal: &Diagonal| {
            let on: f64 =
                diagonal.candidates.iter().map(|&candidate| values[candidate as usize]).sum();
            match diagonal.need {
                Need::AtMost if diagonal.at_most.is_none() => on + values[t] - 1.0,
                Need::One if diagonal.exactly.is_none() => (on - 1.0).abs(),
                _ => 0.0,
            }
        };
        let excess = self.diagonals.iter().map(excess).enumerate();
        let mut violated: Vec<(usize, f64)> =
            excess.filter(|(_, excess)| *excess > VIOLATED).collect();
        violated.sort_unstable_by(|a, b| b.1.total_cmp(&a.1));
        violated.truncate(ROWS_AT_ONCE);
        for &(number, _) in &violated {
            let diagonal = &mut self.diagonals[number];
            let row = Some(self.simplex.rows());
            let candidates = diagonal.candidates.iter().map(|&candidate| (candidate as usize, 1.0));
            if diagonal.need == Need::One {
                self.simplex.add_row_between(1.0, 1.0, candidates);
                diagonal.exactly = row;
            } else {
                self.simplex.add_row_between(f64::NEG_INFINITY, 1.0, candidates.chain([(t, 1.0)]));
                diagonal.at_most = row;
            }
            self.numbers.push(number + 2 * self.csp.n);
        }
        !violated.is_empty()
    }

    /// Derives what prices prove at `root`.
    fn shown(&self, root: &Node, prices: &[i64]) -> Shown {
        let n = self.csp.n;
        let mut prices = prices.to_vec();
        prices.push(0);
        let price = |candidate: u32| {
            self.prices_of[candidate as usize].iter().map(|&number| prices[number]).sum::<i64>()
        };
        let mut placed = vec![0; self.bounds.len()];
        root.placed
            .iter()
            .for_each(|&candidate| placed[self.prices_of[candidate as usize][3]] += 1);
        let candidates: Vec<u32> = (0..self.told.len() as u32)
            .filter(|&candidate| root.state.is_alive(candidate))
            .collect();
        let mut met = vec![0i64; self.bounds.len()];
        let mut cheapest = vec![i64::MAX; n];
        for &candidate in &candidates {
            self.prices_of[candidate as usize].iter().for_each(|&number| met[number] += 1);
            let row = self.row_of[candidate as usize];
            cheapest[row] = cheapest[row].min(price(candidate));
        }
        let most = |number: usize| {
            let (price, (least, most)) = (prices[number], self.bounds[number]);
            let first_level = prices::level(n, 0);
            if number < first_level {
                price * met[number].min(1)
            } else if price > 0 {
                price * (most - placed[number]).min(met[number])
            } else {
                price * (least - placed[number]).max(0)
            }
        };
        let between = (n..self.bounds.len() - 1).map(most).sum::<i64>()
            - cheapest.iter().filter(|&&cheapest| cheapest < i64::MAX).sum::<i64>();
        if between < 0 {
            return Shown::Nothing;
        }
        let dear = |&candidate: &u32| {
            price(candidate) - cheapest[self.row_of[candidate as usize]] > between
        };
        let full = (2 * n..).zip(&self.diagonals).filter(|&(line, diagonal)| {
            diagonal.need == Need::AtMost && met[line] > 0 && prices[line] > between
        });
        Shown::Some {
            full: full.map(|(line, _)| line).collect(),
            dead: candidates.into_iter().filter(dear).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::beautiful::cases::tests::solutions;
    use crate::beautiful::exact::Engine;
    use crate::beautiful::parallel_search::ParallelSearch;
    use crate::beautiful::search::read_number;
    use crate::beautiful::{Question, Stage, most_beautiful_exactly};
    use crate::progress::Unobserved;
    use nqueens_proof::beautiful::{check, claim};
    use nqueens_proof::board::Norm;

    /// A pace at which nothing is searched without the LP.
    const AT_ONCE: Pace = Pace { orbit_search: 0, plain: 0, glance: 0, short: 0 };

    /// Returns the proof, without the seal, of an engine that uses the LP at once, and its
    /// solution.
    fn weighed(n: usize, norm: Norm) -> (Vec<u8>, Vec<usize>) {
        let question = Question { n, norm, turning: false, threads: 1 };
        let orbits = Orbits::new(n, norm);
        let (mut watch, mut keep) = (Unobserved, |_: &Stage<'_>| {});
        let mut engine = Engine::new(&orbits, question, Vec::new(), &mut watch, &mut keep);
        (engine.quick, engine.pace) = (0, AT_ONCE);
        engine.run(None).expect("nobody stops it");
        let best = engine.best.expect("a solution");
        let mut proof = claim(norm, false, Some(&best));
        proof.bytes(engine.log.as_bytes());
        (proof.finish(), best)
    }

    #[test]
    fn prices_prove_what_one_search_proves() {
        for (n, norm) in [
            (8, Norm::Euclidean),
            (13, Norm::Euclidean),
            (16, Norm::Euclidean),
            (22, Norm::Euclidean),
            (32, Norm::Euclidean),
            (14, Norm::Manhattan),
            (10, Norm::Chebyshev),
        ] {
            let (proof, best) = weighed(n, norm);
            let question = Question { n, norm, turning: false, threads: 1 };
            let other =
                most_beautiful_exactly(question, &mut Unobserved).answer.found.expect("a solution");
            assert_eq!(norm.fingerprint(&best), norm.fingerprint(&other), "n = {n}");
            assert_eq!(check(n, &proof).expect("it proves that").solution, Some(best), "n = {n}");
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
            let mut all = Vec::new();
            solutions(n, &mut Vec::new(), &mut all);
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
            let mut parallel = ParallelSearch::new(root, &vec![1.0; csp.lines.len()]);
            let cancel = CancelToken::default();
            let mut worker = LpSearch::new(&csp, &orbits, AT_ONCE, &cancel, case);
            match parallel.go_on_by(&csp, u64::MAX, vec![&mut worker], &cancel, &mut |_| true) {
                End::Found(candidates) => {
                    assert!(possible && all.contains(&csp.columns(n, &candidates)), "case {case}");
                    found += 1;
                }
                End::Refuted(tree) => {
                    assert!(!possible, "case {case}");
                    refuted += 1;
                    prices += priced(&csp, &tree);
                }
                End::Spent => panic!("it has all the nodes it wants"),
            }
        }
        assert!(
            found > 100 && refuted > 100 && prices > 50,
            "{found} found, {refuted} refuted, {prices} prices"
        );
    }
}
