//! The exact engine: level by level from the largest cost, with the certificate written on the way.
//!
//! An incumbent gives an upper bound on the number of queens on each level; the quotient's linear programme gives a
//! lower one. Where they meet, the level is fixed. Where they do not, solutions with fewer queens are looked for:
//! first in *dives*, with the programme's targets for a whole block of levels at once, fewer levels where that is too much,
//! more below where it is not, which either find a better incumbent or nothing; then on this level alone, which
//! either finds one or refutes that there is one. As many levels as possible at once pay: what is found is then good far below the
//! level in hand. After each level the board is reduced as far as it goes ([`crate::beautiful::presolve`]).

use super::bounds::Bounds;
use super::csp::{Csp, PropagationQueue};
use super::lp_search::Pace;
use super::lp_witnesses::LpWitnesses;
use super::orbit_lp::OrbitLp;
use super::orbits::Orbits;
use super::proof_log::{Mark, ProofLog};
use super::resume;
use super::search::{CancelToken, End, Search, every_solution};
use super::subtree_task::SubtreeSolver;
use crate::progress::{Progress, ProgressSink};
use crate::verdict::{Answer, Unproven, Verdict};
use nqueens_proof::beautiful::{PartialProof, claim};
use nqueens_proof::board::Norm;
use nqueens_proof::{Kind, seal};

/// Nodes for one radius while the first incumbent is looked for.
const RADIUS_NODES: u64 = 3000;
/// Nodes for what is tried on one level, before anything else is assumed.
const QUICK_NODES: u64 = 5_000;
/// With more squares than this a search loses its way: first, levels below are assumed, and then cases are searched.
const WIDE: usize = 1200;
/// Nodes of a dive on so many squares, before the first pass.
const WIDE_NODES: u64 = 250_000;
/// With so many squares a trial is not split into cases: that takes too many programmes.
const MOST_FOR_CASES: usize = 2000;
/// Cases into which a trial is split, for each pass, and the nodes for each at first.
const CASES: usize = 64;
const NODES_OF_CASE: u64 = 50_000;
/// Dives of a pass on so many squares.
const WIDE_DIVES: usize = 4;
/// How many times more nodes there are in each next pass.
const MORE: u64 = 4;
/// The same for a case: beyond its first nodes it is the programme that settles it, which takes more of them.
const MORE_FOR_CASE: u64 = 16;
/// Nodes of a dive, at most: what so many do not find is a matter of luck.
const MOST_OF_DIVE: u64 = 16_000_000;
/// Levels of the first block of a dive.
const FIRST_BLOCK: usize = 64;
/// Searches of one dive that take all their nodes, at least.
const SEARCHES: u64 = 16;
/// Nodes of one search in a dive, at most, ...
const MANY_NODES: u64 = 50_000;
/// ... and with more squares than this so many.
const VERY_WIDE: usize = 3000;
const FEW_NODES: u64 = 1000;
/// So many nodes a programme in a dive counts for.
const PROGRAMME: u64 = 200;
/// A dive asks for a queen more than the programme says on one in so many levels.
const ONE_MORE_IN: u32 = 8;
/// Queens more than the programme says, at most.
const MOST_MORE: u32 = 4;

/// What to look for.
#[derive(Clone, Copy, Debug)]
pub struct Question {
    /// The board size.
    pub n: usize,
    /// The cost of a square.
    pub norm: Norm,
    /// Only among the solutions that do not change under quarter turns.
    pub turning: bool,
    /// How many threads search.
    pub threads: usize,
}

/// What was found, and why it is the best.
#[derive(Clone, Debug)]
pub struct Exact {
    /// The answer; if it is proven, by the certificate.
    pub answer: Answer<Vec<usize>>,
    /// For [`nqueens_proof::check`]; none if nothing is proven.
    pub certificate: Option<Vec<u8>>,
    /// For [`crate::beautiful::resume::read`]; none if there is not even a solution.
    pub state: Option<Vec<u8>>,
}

/// All solutions with the fingerprint of `columns`, in ascending order.
///
/// # Errors
/// It was stopped.
pub fn all_as_beautiful(
    question: Question,
    columns: &[usize],
    watch: &mut dyn ProgressSink,
) -> Result<Vec<Vec<usize>>, Unproven> {
    let orbits = Orbits::new(question.n, question.norm);
    let mut keep = |_: &Stage<'_>| {};
    let mut engine = Engine::new(&orbits, question, Vec::new(), watch, &mut keep);
    for (level, queens) in orbits.counts(columns).into_iter().enumerate() {
        if queens == 0 {
            engine.close(level);
        } else {
            engine.bounds.set_range(level, Some((queens, queens)));
        }
    }
    if question.n == 0 {
        return Ok(vec![Vec::new()]);
    }
    if engine.reduce()? {
        return Ok(Vec::new());
    }
    let csp = engine.csp();
    let Ok(root) = csp.root(&mut PropagationQueue::default()) else { return Ok(Vec::new()) };
    let mut found = Vec::new();
    let mut nodes = 0u64;
    let mut look = || {
        nodes += 1;
        let progress = Progress { level: 0, bound: None, nodes };
        !(nodes.is_multiple_of(1024) && engine.watch.look(&progress).is_break())
    };
    if !every_solution(&csp, &root, &mut look, &mut |candidates| {
        found.push(csp.columns(question.n, candidates))
    }) {
        return Err(Unproven::Stopped);
    }
    found.sort_unstable();
    Ok(found)
}

/// The engine at work.
pub(super) struct Engine<'a> {
    pub(super) orbits: &'a Orbits,
    pub(super) question: Question,
    /// Who has long searches done by others; nobody if all is searched here.
    pub(super) solvers: Vec<Box<dyn SubtreeSolver>>,
    pub(super) watch: &'a mut dyn ProgressSink,
    pub(super) bounds: Bounds,
    pub(super) quotient: OrbitLp<'a>,
    pub(super) cliques: Vec<Vec<usize>>,
    pub(super) witnesses: LpWitnesses,
    pub(super) log: ProofLog,
    /// Of all searches.
    pub(super) nodes: u64,
    /// Learned weights of rows and columns.
    pub(super) weights: Vec<f32>,
    pub(super) seed: u64,
    rng: fastrand::Rng,
    /// Dives for the trial in hand.
    dives: u32,
    pub(super) best: Option<Vec<usize>>,
    counts: Vec<u32>,
    /// The cost of the level in hand.
    pub(super) cost: u64,
    /// Programmes of quotients that are gone.
    pub(super) programmes: u64,
    place: Place,
    /// [`QUICK_NODES`] and [`WIDE`], but for tests.
    pub(super) quick: u64,
    pub(super) wide: usize,
    pub(super) pace: Pace,
    keep: &'a mut Keep<'a>,
    /// Up to here the log holds without an assumption.
    sound: Mark,
}

/// How far a run is: the level of cost in hand.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// The cost of its squares.
    pub cost: u64,
    /// Queens that every solution in question has there at least: those that are as good on the levels before.
    pub least: u32,
    /// Queens that the best solution so far has there.
    pub most: u32,
    /// Squares of the board that are not ruled out.
    pub squares: usize,
    /// Queens on the levels before, which are done.
    pub queens: u32,
}

/// A run at a moment when there is more to keep of it.
pub struct Stage<'a> {
    /// How far it is.
    pub place: Place,
    /// The best solution so far: the 0-based column of the queen in each row.
    pub best: &'a [usize],
    state: &'a dyn Fn() -> Vec<u8>,
}

impl Stage<'_> {
    /// For [`crate::beautiful::resume::read`].
    pub fn state(&self) -> Vec<u8> {
        (self.state)()
    }
}

/// Is offered the state of a run whenever there is more to keep; making it is for who is offered it.
pub type Keep<'a> = dyn FnMut(&Stage<'_>) + 'a;

/// Where a level was left.
struct Left {
    least: u32,
    trial: Option<LeftTrial>,
}

/// A trial that has begun.
struct LeftTrial {
    /// It is to show so many queens.
    least: u32,
    /// What is known in it.
    bounds: Bounds,
    /// The log before it.
    before: Mark,
}

/// A most beautiful solution, or that there is none.
pub fn most_beautiful_exactly(question: Question, watch: &mut dyn ProgressSink) -> Exact {
    go_on_to_most_beautiful(question, None, watch, &mut |_| {})
}

/// The same, from what an earlier run for this question had proved; `keep` is offered what is to be kept for a later one.
pub fn go_on_to_most_beautiful(
    question: Question,
    begun: Option<PartialProof>,
    watch: &mut dyn ProgressSink,
    keep: &mut Keep<'_>,
) -> Exact {
    most_beautiful_by(question, Vec::new(), begun, watch, keep)
}

/// The same, with long searches done by others: each desk asks for one part at a time.
pub fn most_beautiful_by(
    question: Question,
    solvers: Vec<Box<dyn SubtreeSolver>>,
    begun: Option<PartialProof>,
    watch: &mut dyn ProgressSink,
    keep: &mut Keep<'_>,
) -> Exact {
    let orbits = Orbits::new(question.n, question.norm);
    let mut engine = Engine::new(&orbits, question, solvers, watch, keep);
    let end = engine.run(begun);
    let programmes = engine.programmes + engine.quotient.programmes;
    let nodes = engine.nodes;
    let state = engine.state();
    let Engine { best, log, .. } = engine;
    let (verdict, certificate) = match end {
        Ok(()) => {
            let mut proof = claim(question.norm, question.turning, best.as_deref());
            proof.bytes(log.as_bytes());
            (Verdict::Proven, Some(seal(Kind::Beautiful, question.n, &proof.finish())))
        }
        Err(doubt) => (Verdict::NotProven(doubt), None),
    };
    Exact { answer: Answer { found: best, verdict, nodes, programmes }, certificate, state }
}

/// How a dive ended.
enum Dived {
    /// With a solution.
    Found(Vec<usize>),
    /// Nothing that it asks for is possible: most likely there is no solution.
    Exhausted,
    /// Its nodes are spent.
    Open,
}

/// What a dive asks for: few queens on so many levels below one, and some more on the first of them.
#[derive(Clone, Copy, Debug)]
struct Request {
    level: usize,
    block: usize,
    more: u32,
}

impl Request {
    /// The next one to try when this is too much; `None`: there is none.
    fn less(self, step: u32) -> Option<Self> {
        if self.block > 1 {
            Some(Self { block: self.block / 2, ..self })
        } else if self.more < MOST_MORE {
            Some(Self { more: self.more + step, ..self })
        } else {
            None
        }
    }
}

/// How a question about the present facts was settled.
pub(super) enum Settled {
    /// A solution.
    Found(Vec<usize>),
    /// There is none, and the log says why.
    Refuted,
    /// It would take longer.
    Open,
}

impl<'a> Engine<'a> {
    pub(super) fn new(
        orbits: &'a Orbits,
        question: Question,
        solvers: Vec<Box<dyn SubtreeSolver>>,
        watch: &'a mut dyn ProgressSink,
        keep: &'a mut Keep<'a>,
    ) -> Self {
        let bounds = Bounds::new(orbits);
        Self {
            orbits,
            question,
            solvers,
            watch,
            quotient: OrbitLp::new(orbits, &bounds, &[]),
            bounds,
            cliques: Vec::new(),
            witnesses: LpWitnesses::default(),
            log: ProofLog::default(),
            nodes: 0,
            weights: Vec::new(),
            seed: 0,
            rng: fastrand::Rng::with_seed(1),
            dives: 0,
            best: None,
            counts: Vec::new(),
            cost: 0,
            programmes: 0,
            place: Place::default(),
            quick: QUICK_NODES,
            wide: WIDE,
            pace: Pace::default(),
            keep,
            sound: Mark::default(),
        }
    }

    pub(super) fn run(&mut self, begun: Option<PartialProof>) -> Result<(), Unproven> {
        let n = self.question.n;
        if n == 0 {
            self.best = Some(Vec::new());
            return Ok(());
        }
        // Queens in fours, and at most one in the centre.
        let impossible = self.question.turning && n % 4 > 1;
        if impossible {
            return Ok(());
        }
        let (first, mut left) = match begun {
            Some(begun) => (begun.level, Some(self.take_up(begun))),
            None if self.first_incumbent()? => (0, None),
            None => return Ok(()),
        };
        let mut fixed: u32 = self.counts[..first].iter().sum();
        for level in first..self.orbits.levels.len() {
            if fixed == n as u32 {
                break;
            }
            self.cost = self.orbits.levels[level].cost;
            let queens = self.fix(level, left.take())?;
            fixed += queens;
            if queens > 0 && fixed < n as u32 && self.reduce()? {
                return Err(Unproven::SolverFailed("the levels above contradict the incumbent".into()));
            }
            self.keep();
        }
        Ok(())
    }

    /// Takes up what an earlier run has proved; where it left its level.
    fn take_up(&mut self, begun: PartialProof) -> Left {
        let PartialProof { solution, records, level, shown, dead, full, cliques, trial, .. } = begun;
        self.counts = self.orbits.counts(&solution);
        self.best = Some(solution);
        self.log = ProofLog::of(&records, cliques.len());
        self.sound = self.log.mark();
        self.cliques = cliques;
        for (level, &queens) in self.counts[..level].iter().enumerate() {
            self.bounds.set_range(level, Some((queens, queens)));
        }
        for square in dead {
            self.bounds.kill(self.orbits.orbit_of[square]);
        }
        full.into_iter().for_each(|distance| self.bounds.fill(distance));
        let trial = trial.map(|trial| {
            let mut bounds = self.bounds.clone();
            let least = trial.least as u32;
            bounds.set_range(level, Some((shown as u32, least - self.step(level))));
            for square in trial.died {
                bounds.kill(self.orbits.orbit_of[square]);
            }
            trial.filled.into_iter().for_each(|distance| bounds.fill(distance));
            for (level, least, most) in trial.ranges {
                bounds.set_range(level, Some((least as u32, most as u32)));
            }
            LeftTrial { least, bounds, before: Mark { bytes: trial.begin, cliques: trial.cliques } }
        });
        Left { least: shown as u32, trial }
    }

    /// All that is proved so far holds without an assumption, but for the trial: it is offered.
    pub(super) fn keep(&mut self) {
        self.sound = self.log.mark();
        if let Some(best) = &self.best {
            let squares = self.bounds.squares(self.orbits).len();
            let state = &|| resume::write(&self.question, best, self.log.as_bytes());
            (self.keep)(&Stage { place: Place { squares, ..self.place }, best, state });
        }
    }

    /// What can be kept of a run that has ended, or was stopped.
    fn state(&self) -> Option<Vec<u8>> {
        let records = self.log.as_bytes();
        let sound = self.sound.bytes.min(records.len());
        let best = self.best.as_ref()?;
        Some(resume::write(&self.question, best, &records[..sound]))
    }

    pub(super) fn look(&mut self) -> Result<(), Unproven> {
        let progress = Progress { level: self.cost as usize, bound: None, nodes: self.nodes };
        if self.watch.look(&progress).is_break() { Err(Unproven::Stopped) } else { Ok(()) }
    }

    /// A first solution: within the smallest radius for which one is found quickly. `false`: there is none.
    fn first_incumbent(&mut self) -> Result<bool, Unproven> {
        let n = self.question.n;
        let orbits = self.orbits;
        let cost = |square: usize| orbits.levels[orbits.orbits[orbits.orbit_of[square]].level].cost;
        let least = (0..n).map(cost).min().unwrap_or(0);
        for level in (0..self.orbits.levels.len()).rev() {
            if self.orbits.levels[level].cost < least {
                continue;
            }
            self.look()?;
            let radius = self.orbits.levels[level].cost;
            let squares: Vec<usize> = (0..n * n).filter(|&square| cost(square) <= radius).collect();
            let csp = Csp::new(n, &squares, &[], self.question.turning);
            let Ok(root) = csp.root(&mut PropagationQueue::default()) else { continue };
            let cancel = CancelToken::default();
            let mut search = Search::new(&csp, &cancel, 1);
            let end = search.run(&root, RADIUS_NODES);
            self.nodes += search.nodes;
            if let End::Found(candidates) = end {
                self.improve(csp.columns(n, &candidates))?;
                return Ok(true);
            }
        }
        // The whole board, to the end.
        if self.reduce()? {
            return Ok(false);
        }
        match self.search_orbit(&mut None, u64::MAX)? {
            Settled::Found(columns) => self.improve(columns).map(|()| true),
            Settled::Refuted => Ok(false),
            Settled::Open => unreachable!("it has all the nodes it wants"),
        }
    }

    /// Queens come one by one on a level, or in fours.
    pub(super) fn step(&self, level: usize) -> u32 {
        if self.question.turning && self.orbits.levels[level].cost > 0 { 4 } else { 1 }
    }

    fn improve(&mut self, columns: Vec<usize>) -> Result<(), Unproven> {
        let counts = self.orbits.counts(&columns);
        if self.best.is_some() && counts >= self.counts {
            return Err(Unproven::SolverFailed("a solution is not better than the incumbent".into()));
        }
        self.counts = counts;
        self.best = Some(columns);
        Ok(())
    }

    /// Fixes the number of queens on `level`, and returns it.
    fn fix(&mut self, level: usize, left: Option<Left>) -> Result<u32, Unproven> {
        let Left { mut least, mut trial } = left.unwrap_or(Left { least: 0, trial: None });
        let queens = self.counts[..level].iter().sum();
        // Not only one with the least that the programme allows.
        let mut any_better = false;
        loop {
            self.place = Place { cost: self.cost, least, most: self.counts[level], squares: 0, queens };
            if trial.is_none() {
                self.keep();
            }
            let most = self.counts[level];
            if most == 0 {
                self.close(level);
                self.log.next_level();
                return Ok(0);
            }
            if least < most && trial.is_none() {
                self.bounds.set_range(level, Some((least, self.question.n as u32)));
                let (bound, proof) = self.bound(level, most)?;
                if bound > least {
                    self.log.at_least(bound);
                    self.bounds.set_range(level, Some((least, bound - self.step(level))));
                    self.quotient.tell(&self.bounds);
                    let proof = self.quotient.prove(&proof);
                    self.log.refuted_by(&proof, self.orbits, &self.cliques);
                    least = bound;
                }
            }
            self.bounds.set_range(level, Some((least, most)));
            if least == most {
                break;
            }
            let squares = self.bounds.squares(self.orbits).len();
            self.watch.tell(&|| {
                let cost = self.orbits.levels[level].cost;
                format!("cost {cost}: {least} to {most} queens, {squares} squares left")
            });
            self.look()?;
            if trial.is_none() {
                self.place = Place { least, ..self.place };
                self.keep();
            }
            let known = self.bounds.clone();
            let (aim, mark) = match trial.take() {
                Some(LeftTrial { least, bounds, before }) => {
                    self.bounds = bounds;
                    (least, before)
                }
                None => {
                    let aim = if any_better { most } else { least + self.step(level) };
                    let mark = self.log.mark();
                    self.log.at_least(aim);
                    self.bounds.set_range(level, Some((least, aim - self.step(level))));
                    (aim, mark)
                }
            };
            // Where the least that the programme allows is not found soon, any better incumbent will do.
            let passes = if aim < most && self.is_wide() { 1 } else { usize::MAX };
            let settled = self.settle_level(level, passes)?;
            self.bounds = known;
            match settled {
                Settled::Found(columns) => {
                    self.log.back_to(mark);
                    self.improve(columns)?;
                }
                Settled::Refuted => least = aim,
                Settled::Open => {
                    self.log.back_to(mark);
                    any_better = true;
                }
            }
        }
        self.log.next_level();
        Ok(self.counts[level])
    }

    fn close(&mut self, level: usize) {
        self.bounds.set_range(level, Some((0, 0)));
        for &orbit in &self.orbits.levels[level].orbits {
            self.bounds.kill(orbit);
        }
    }

    /// A solution under the present facts, among which is what is tried on `level`; or none, and the log says why. It gives
    /// up after so many `passes`, each with more nodes than the last.
    fn settle_level(&mut self, level: usize, passes: usize) -> Result<Settled, Unproven> {
        if self.reduce()? {
            return Ok(Settled::Refuted);
        }
        let mut wide = self.is_wide();
        let mut nodes = if wide { WIDE_NODES } else { QUICK_NODES };
        self.dives = 0;
        if !wide {
            match self.settle(self.quick)? {
                Settled::Open => {}
                settled => return Ok(settled),
            }
        }
        let in_cases = (self.wide..MOST_FOR_CASES).contains(&self.bounds.squares(self.orbits).len());
        let mut cases = None;
        let mut orbit_search = None;
        let mut of_case = NODES_OF_CASE;
        for pass in 1..=passes {
            nodes = nodes.saturating_mul(MORE);
            let mut dives = if wide { WIDE_DIVES } else { 1 };
            while dives > 0 {
                let before = (self.bounds.clone(), self.log.mark());
                let found = self.dive(level, nodes.min(MOST_OF_DIVE))?;
                self.bounds = before.0;
                self.log.back_to(before.1);
                dives -= 1;
                match found {
                    Dived::Found(columns) => return Ok(Settled::Found(columns)),
                    Dived::Exhausted => {
                        dives = 0;
                        wide = false;
                    }
                    Dived::Open => {}
                }
            }
            if in_cases {
                match self.settle_cases(&mut cases, level, pass.saturating_mul(CASES), of_case)? {
                    Settled::Open => of_case = of_case.saturating_mul(MORE_FOR_CASE),
                    settled => return Ok(settled),
                }
                continue;
            }
            match self.search_orbit(&mut orbit_search, nodes)? {
                Settled::Open => {}
                settled => return Ok(settled),
            }
        }
        Ok(Settled::Open)
    }

    /// Whether a search would lose its way.
    fn is_wide(&self) -> bool {
        self.bounds.squares(self.orbits).len() > self.wide
    }

    /// Looks for a solution with as few queens on the levels below `level` as seems possible: block of levels by block,
    /// the programme's targets are assumed and the rest is searched for some `nodes`. What is refuted by that is too
    /// much to ask, what stays open is asked for more. Where nothing can be asked, what was asked before was too much.
    fn dive(&mut self, level: usize, nodes: u64) -> Result<Dived, Unproven> {
        let mut spent = 0;
        self.dives += 1;
        let mut asked = Vec::new();
        let mut next = Request { level, block: FIRST_BLOCK, more: 0 };
        loop {
            self.look()?;
            if spent > nodes {
                return Ok(Dived::Open);
            }
            let begun = self.effort();
            let before = (self.bounds.clone(), self.log.mark());
            let Some((last, possible)) = self.assume(next)? else { return Ok(Dived::Open) };
            let settled = if possible && !self.reduce()? {
                self.settle(self.patience(nodes))?
            } else {
                Settled::Refuted
            };
            spent += 1 + self.effort() - begun;
            match settled {
                Settled::Found(columns) => return Ok(Dived::Found(columns)),
                Settled::Open => {
                    asked.push((next, before));
                    next = Request { level: last, block: 2 * next.block, more: 0 };
                }
                Settled::Refuted => {
                    (self.bounds, _) = before;
                    self.log.back_to(before.1);
                    next = loop {
                        if let Some(less) = next.less(self.step(last)) {
                            break less;
                        }
                        let Some((request, before)) = asked.pop() else { return Ok(Dived::Exhausted) };
                        next = request;
                        self.bounds = before.0;
                        self.log.back_to(before.1);
                    };
                }
            }
        }
    }

    /// Nodes and programmes so far, in nodes.
    const fn effort(&self) -> u64 {
        self.nodes + PROGRAMME * (self.programmes + self.quotient.programmes)
    }

    /// Nodes for what is assumed in a dive of so many.
    fn patience(&self, nodes: u64) -> u64 {
        let very_wide = self.bounds.squares(self.orbits).len() > VERY_WIDE;
        (nodes / SEARCHES).min(if very_wide { FEW_NODES } else { MANY_NODES })
    }

    /// Assumes as few queens as the programme says, and `more` on the first, on a block of levels below `level` that are
    /// alive. The last of them, and whether that is possible as far as the programme can tell; `None`: there are none.
    fn assume(&mut self, request: Request) -> Result<Option<(usize, bool)>, Unproven> {
        let Request { level, block, more } = request;
        let mut last = None;
        let mut asked = 0;
        for below in level + 1..self.orbits.levels.len() {
            if asked == block {
                break;
            }
            if self.orbits.levels[below].orbits.iter().all(|&orbit| !self.bounds.is_alive(orbit)) {
                continue;
            }
            let (target, multipliers) = self.bound(below, u32::MAX)?;
            if self.quotient.prove(&multipliers).refutes() {
                return Ok(Some((below, false)));
            }
            // The first dive asks for what the programme says; each other one somewhere for one more.
            let chance = self.dives > 1 && self.rng.u32(..ONE_MORE_IN) == 0;
            let target = target + if asked == 0 { more } else { 0 };
            let target = if chance { target + self.step(below) } else { target };
            if self.bounds.range(below).is_some_and(|range| range.1 < target) {
                return Ok(Some((below, false)));
            }
            if target == 0 {
                self.close(below);
            } else {
                self.bounds.set_range(below, Some((target, target)));
            }
            asked += 1;
            last = Some((below, true));
        }
        Ok(last)
    }
}
