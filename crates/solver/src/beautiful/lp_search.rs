//! A search that asks the linear programme of the whole board where a short search does not end.
//!
//! The quotient knows all that no symmetry changes. Once queens stand, the board has none left, and a programme with a variable
//! for each square says much more: often there is no point at all, or some squares have no queen at any. Such a
//! programme takes as long as some ten thousand nodes, so it is asked at few of them, and below it a short search is
//! tried first.
//!
//! What it says is believed only in whole numbers. Prices on columns, diagonals and levels make each square dear or cheap.
//! What all queens that are still to come pay together has an upper bound, since no diagonal has two of them, and a lower
//! one, since each row pays for its cheapest square at least. Where they cross there is no solution; a square
//! that costs more above the cheapest of its row than lies between them has no queen, and a diagonal dearer than that has one.

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

/// So many nodes a programme counts for.
const PROGRAMME: u64 = 10_000;
/// The programme is asked again where it has ruled out one square in so many, ...
const WORTH_ASKING: usize = 10;
/// ... and so often at most.
const MOST_ROUNDS: usize = 4;
/// Prices are rounded to whole numbers of which the largest is this.
const SCALE: f64 = (1 << 24) as f64;
/// A line counts as if it had so many times more men, and more by the square of the programme's greatest value there.
const UNDECIDED: f32 = 0.3;
/// A diagonal with so much more than it may have is violated; so many rows are added at once.
const VIOLATED: f64 = 1e-6;
const ROWS_AT_ONCE: usize = 50;

/// How many nodes are searched without the programme.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pace {
    /// Before it is asked at all: of a siege, and of anything else, which is a case if it is long. Measured on n = 128, whole
    /// runs: sieges with 0.2, 1 and 4 million take 107, 86 and 42 s.
    pub(super) orbit_search: u64,
    pub(super) plain: u64,
    /// Of a piece, before it is asked, and after it. Measured on cases of n = 160: with 10,000, 30,000, 100,000 and 300,000
    /// after it three of them take 49, 35, 29 and 31 s; with 3,000 and 10,000 other three take 63 and 44.
    pub(super) glance: u64,
    pub(super) short: u64,
}

impl Default for Pace {
    fn default() -> Self {
        Self { orbit_search: 4_000_000, plain: 200_000, glance: 500, short: 100_000 }
    }
}

/// Searches pieces: each is refuted, or branched on once.
pub(super) struct LpSearch<'a> {
    csp: &'a Csp,
    pace: Pace,
    cancel: &'a CancelToken,
    search: Search<'a>,
    programme: Programme<'a>,
}

/// The programme of all men: one on each line that must have one, as many on each level as it may have, and at most 1 − t on each
/// other diagonal, where t is to be large.
struct Programme<'a> {
    csp: &'a Csp,
    simplex: Simplex,
    /// By diagonal, in the order of their numbers in a certificate.
    diagonals: Vec<Diagonal>,
    /// The number of each row of the programme in a certificate.
    numbers: Vec<usize>,
    /// By the number in a certificate: how many men a column or diagonal has, or a level, at least and at most.
    bounds: Vec<(i64, i64)>,
    /// The numbers of each man's column, diagonals and level, and his row.
    prices_of: Vec<[usize; 4]>,
    row_of: Vec<usize>,
    /// What the simplex was told of each man.
    told: Vec<Told>,
    asked: u64,
}

/// A diagonal in the programme.
#[derive(Clone, Debug)]
struct Diagonal {
    candidates: Vec<u32>,
    need: Need,
    /// Its rows, each made when it is first violated: at most 1 − t, and exactly 1.
    at_most: Option<usize>,
    exactly: Option<usize>,
}

/// What a diagonal asks of the programme.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Need {
    /// At most one man.
    AtMost,
    /// Exactly one.
    One,
    /// Nothing: it has its man.
    Nothing,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Told {
    Open,
    Closed,
    Placed,
}

/// What the programme answers.
enum Asked {
    /// Prices that say the most, by their number in a certificate.
    Prices(Vec<i64>),
    /// Nothing of use.
    Nothing,
    /// It was stopped.
    Stopped,
}

/// What prices show.
enum Shown {
    /// There is no solution.
    Nothing,
    /// These men are none of one, and these diagonals have a man in each.
    Some { dead: Vec<u32>, full: Vec<usize> },
}

impl<'a> LpSearch<'a> {
    pub(super) fn new(csp: &'a Csp, orbits: &Orbits, pace: Pace, cancel: &'a CancelToken, seed: u64) -> Self {
        let search = Search::new(csp, cancel, seed);
        Self { csp, pace, cancel, search, programme: Programme::new(csp, orbits) }
    }

    /// How many programmes were solved.
    pub(super) const fn programmes(&self) -> u64 {
        self.programme.asked
    }

    /// Searches below `root`; a tree may have holes. [`End::Spent`]: it was stopped.
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
                .and_then(|()| self.csp.without(&mut root, &self.csp.squares_of(&dead), &mut pending))
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

    /// Branches on a line: each of its men who can be placed leaves a hole. The men of a solution, if one is complete then.
    fn branch(&self, root: &Node, tree: &mut Vec<u8>, holes: &mut Vec<Node>) -> Option<Vec<u32>> {
        let line = self.line(root);
        write_number(tree, self.csp.in_tree(line));
        for &candidate in self.csp.lines[line].iter().filter(|&&candidate| root.state.is_alive(candidate)) {
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

    /// The line to branch on: with the fewest men for its weight, and where the programme's point is undecided.
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

    /// Writes that prices rule out what they do.
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

/// Stops the simplex when nobody wants its answer.
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
    /// Of all men of `csp`, none of whom brings images with him.
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
            let level = orbits.orbits[orbits.orbit_of[csp.candidates[candidate as usize][0] as usize]].level;
            let number = prices::level(n, level);
            let range = (i64::from(*group.range.start()), i64::from(*group.range.end()));
            bounds[number] = range;
            add(&mut simplex, number, range.0 as f64, range.1 as f64);
            group.candidates.iter().for_each(|&candidate| level_of[candidate as usize] = Some(number));
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
            let mut terms: Vec<(usize, f64)> =
                lines.iter().chain(level).filter_map(|&number| Some((rows[number]?, 1.0))).collect();
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

    /// How many men can still be placed.
    fn open(&self, root: &Node) -> usize {
        (0..self.told.len() as u32).filter(|&candidate| root.state.is_alive(candidate)).count()
    }

    /// Asks about `root`.
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
        // Rows pay what they must, and nobody is paid for standing on a diagonal that may be empty.
        prices[..n].fill(0);
        for (diagonal, price) in self.diagonals.iter().zip(&mut prices[2 * n..]) {
            if diagonal.need == Need::AtMost {
                *price = (*price).max(0);
            }
        }
        Asked::Prices(prices)
    }

    /// Tells the programme what diagonals need at `root`, where men were told `now`.
    fn tell_diagonals(&mut self, root: &Node, now: &[Told]) {
        let first = 2 * self.csp.n;
        for (line, diagonal) in (first..).zip(&mut self.diagonals) {
            let is_done =
                diagonal.candidates.iter().any(|&candidate| now[candidate as usize] == Told::Placed);
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

    /// Adds rows for the diagonals that are violated most. Whether there are any.
    fn add_diagonals(&mut self) -> bool {
        let values = self.simplex.values();
        let t = self.told.len();
        let excess = |diagonal: &Diagonal| {
            let on: f64 = diagonal.candidates.iter().map(|&candidate| values[candidate as usize]).sum();
            match diagonal.need {
                Need::AtMost if diagonal.at_most.is_none() => on + values[t] - 1.0,
                Need::One if diagonal.exactly.is_none() => (on - 1.0).abs(),
                _ => 0.0,
            }
        };
        let excess = self.diagonals.iter().map(excess).enumerate();
        let mut violated: Vec<(usize, f64)> = excess.filter(|(_, excess)| *excess > VIOLATED).collect();
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

    /// What prices show of `root`.
    fn shown(&self, root: &Node, prices: &[i64]) -> Shown {
        let n = self.csp.n;
        let mut prices = prices.to_vec();
        prices.push(0);
        let price = |candidate: u32| {
            self.prices_of[candidate as usize].iter().map(|&number| prices[number]).sum::<i64>()
        };
        let mut placed = vec![0; self.bounds.len()];
        root.placed.iter().for_each(|&candidate| placed[self.prices_of[candidate as usize][3]] += 1);
        let candidates: Vec<u32> =
            (0..self.told.len() as u32).filter(|&candidate| root.state.is_alive(candidate)).collect();
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
        let dear = |&candidate: &u32| price(candidate) - cheapest[self.row_of[candidate as usize]] > between;
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

    /// Nothing is searched without the programme.
    const AT_ONCE: Pace = Pace { orbit_search: 0, plain: 0, glance: 0, short: 0 };

    /// The proof of an engine that asks the programme at once, without the seal; and its solution.
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
            let other = most_beautiful_exactly(question, &mut Unobserved).answer.found.expect("a solution");
            assert_eq!(norm.fingerprint(&best), norm.fingerprint(&other), "n = {n}");
            assert_eq!(check(n, &proof).expect("it proves that").solution, Some(best), "n = {n}");
        }
    }

    /// How many times a tree has prices.
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
                columns.iter().enumerate().all(|(row, column)| squares.contains(&(row * n + column)))
                    && groups.iter().all(|(level, range, _)| range.contains(&counts[*level]))
            });
            let groups: Vec<_> = groups.into_iter().map(|(_, range, squares)| (range, squares)).collect();
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
