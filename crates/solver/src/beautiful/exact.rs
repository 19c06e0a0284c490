//! The exact engine: level by level from the largest cost, with the certificate written on the way.
//!
//! An incumbent gives an upper bound on the number of queens on each level; the orbit LP gives a
//! lower bound. Where they meet, the level is fixed. Where they differ, the engine looks for a
//! solution with fewer queens. First come *dives*: they assume the LP's targets for a whole block
//! of levels at once, for fewer levels where that is infeasible, and for further levels below where
//! it is not. A dive finds a better incumbent or nothing. Then this level alone is searched, which
//! finds a solution or refutes that there is one. Assuming many levels at once pays off: a solution
//! found in this way is good far below the current level. After each level with queens the board is
//! reduced to a fixed point ([`crate::beautiful::presolve`]).

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

/// Nodes for one radius in the search for the first incumbent.
const RADIUS_NODES: u64 = 3000;
/// Nodes of the first search of a trial, before anything else is assumed.
const QUICK_NODES: u64 = 5_000;
/// With more squares than this, a plain search rarely finishes: dives come first, and then cases.
const WIDE: usize = 1200;
/// Nodes of a dive on that many squares, before the first pass multiplies them.
const WIDE_NODES: u64 = 250_000;
/// With this many squares a trial is not split into cases, which would take too many LPs.
const MOST_FOR_CASES: usize = 2000;
/// The number of cases into which a trial is split, per pass, and the nodes for each at first.
const CASES: usize = 64;
const NODES_OF_CASE: u64 = 50_000;
/// Dives in a pass on more than [`WIDE`] squares.
const WIDE_DIVES: usize = 4;
/// The factor by which the nodes grow with each pass.
const MORE: u64 = 4;
/// The same factor for a case: beyond its first nodes, a case is settled with the LP, which takes
/// more nodes.
const MORE_FOR_CASE: u64 = 16;
/// The most nodes of a dive: what a dive does not find with these is a matter of luck.
const MOST_OF_DIVE: u64 = 16_000_000;
/// The number of levels in the first block of a dive.
const FIRST_BLOCK: usize = 64;
/// The least number of searches that use up the nodes of a dive.
const SEARCHES: u64 = 16;
/// The most nodes of one search in a dive, ...
const MANY_NODES: u64 = 50_000;
/// ... and the most nodes with more squares than this.
const VERY_WIDE: usize = 3000;
const FEW_NODES: u64 = 1000;
/// The number of nodes that one LP counts as in a dive.
const PROGRAMME: u64 = 200;
/// A dive asks for more queens than the LP's target on one in this many levels, at random.
const ONE_MORE_IN: u32 = 8;
/// The most queens above the LP's target that a dive asks for on the first level of a block.
const MOST_MORE: u32 = 4;

/// The question: which solutions to search, and how.
#[derive(Clone, Copy, Debug)]
pub struct Question {
    /// The board size.
    pub n: usize,
    /// The norm that defines the cost of a square.
    pub norm: Norm,
    /// Set to consider only solutions that are invariant under quarter turns.
    pub turning: bool,
    /// The number of search threads.
    pub threads: usize,
}

/// The outcome of a run: the answer with its proof.
#[derive(Clone, Debug)]
pub struct Exact {
    /// The answer. If its verdict is proven, the certificate proves it.
    pub answer: Answer<Vec<usize>>,
    /// The certificate for [`nqueens_proof::check`]; `None` if nothing is proven.
    pub certificate: Option<Vec<u8>>,
    /// The checkpoint for [`crate::beautiful::resume::read`]; `None` if no solution was found.
    pub state: Option<Vec<u8>>,
}

/// Returns all solutions with the fingerprint of `columns`, in ascending order.
///
/// # Errors
/// The search was stopped.
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

/// The state of a run of the engine.
pub(super) struct Engine<'a> {
    pub(super) orbits: &'a Orbits,
    pub(super) question: Question,
    /// The solvers for long searches; empty if everything is searched on this machine.
    pub(super) solvers: Vec<Box<dyn SubtreeSolver>>,
    pub(super) watch: &'a mut dyn ProgressSink,
    pub(super) bounds: Bounds,
    pub(super) orbit_lp: OrbitLp<'a>,
    pub(super) cliques: Vec<Vec<usize>>,
    pub(super) witnesses: LpWitnesses,
    pub(super) log: ProofLog,
    /// Nodes of all searches.
    pub(super) nodes: u64,
    /// The learned weight of each constraint.
    pub(super) weights: Vec<f32>,
    pub(super) seed: u64,
    rng: fastrand::Rng,
    /// The number of dives in the current trial.
    dives: u32,
    pub(super) best: Option<Vec<usize>>,
    counts: Vec<u32>,
    /// The cost of the current level.
    pub(super) cost: u64,
    /// LPs solved by board LPs and by orbit LPs that were replaced.
    pub(super) programmes: u64,
    place: Place,
    /// [`QUICK_NODES`] and [`WIDE`], except in tests.
    pub(super) quick: u64,
    pub(super) wide: usize,
    pub(super) pace: Pace,
    keep: &'a mut Keep<'a>,
    /// The end of the log that a checkpoint may include: up to here it depends on no assumption but
    /// the current trial.
    sound: Mark,
}

/// The progress of a run: the current level.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// The cost of the squares of the level.
    pub cost: u64,
    /// The proven minimum of queens on the level, among solutions that equal the best on the levels
    /// before.
    pub least: u32,
    /// The queens that the best solution so far has on the level.
    pub most: u32,
    /// The number of squares that are not eliminated.
    pub squares: usize,
    /// The queens on the levels before, which are done.
    pub queens: u32,
}

/// A run at a moment when its checkpoint has changed.
pub struct Stage<'a> {
    /// The progress of the run.
    pub place: Place,
    /// The best solution so far: the 0-based column of the queen in each row.
    pub best: &'a [usize],
    state: &'a dyn Fn() -> Vec<u8>,
}

impl Stage<'_> {
    /// Returns the checkpoint for [`crate::beautiful::resume::read`].
    pub fn state(&self) -> Vec<u8> {
        (self.state)()
    }
}

/// A callback that receives each new stage of a run. It decides whether to create the checkpoint.
pub type Keep<'a> = dyn FnMut(&Stage<'_>) + 'a;

/// The point within a level at which a run was left.
struct Left {
    least: u32,
    trial: Option<LeftTrial>,
}

/// A trial in progress.
struct LeftTrial {
    /// The number of queens on the level that it is to prove as the minimum.
    least: u32,
    /// The bounds within the trial.
    bounds: Bounds,
    /// The end of the log before the trial.
    before: Mark,
}

/// Finds a most beautiful solution, or proves that there is no solution.
pub fn most_beautiful_exactly(question: Question, watch: &mut dyn ProgressSink) -> Exact {
    go_on_to_most_beautiful(question, None, watch, &mut |_| {})
}

/// Finds a most beautiful solution like [`most_beautiful_exactly`], but resumes from what an
/// earlier run for this question had proved. `keep` receives the stages from which a later run can
/// resume.
pub fn go_on_to_most_beautiful(
    question: Question,
    begun: Option<PartialProof>,
    watch: &mut dyn ProgressSink,
    keep: &mut Keep<'_>,
) -> Exact {
    most_beautiful_by(question, Vec::new(), begun, watch, keep)
}

/// Finds a most beautiful solution like [`go_on_to_most_beautiful`], with long searches done by
/// remote solvers. Each solver has one subtree task at a time.
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
    let programmes = engine.programmes + engine.orbit_lp.programmes;
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

/// The outcome of a dive.
enum Dived {
    /// A solution was found.
    Found(Vec<usize>),
    /// No request of the dive is feasible: most likely there is no solution.
    Exhausted,
    /// The nodes are used up, or no level is left to ask for.
    Open,
}

/// A request of a dive: few queens on `block` levels below `level`, and `more` extra on the first.
#[derive(Clone, Copy, Debug)]
struct Request {
    level: usize,
    block: usize,
    more: u32,
}

impl Request {
    /// Returns the next request to try when this one is infeasible, or `None` if no request is
    /// left.
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

/// The outcome of a search under the current bounds.
pub(super) enum Settled {
    /// A solution.
    Found(Vec<usize>),
    /// There is no solution, and the log has the proof.
    Refuted,
    /// The search did not finish within its nodes.
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
            orbit_lp: OrbitLp::new(orbits, &bounds, &[]),
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
        // Queens come in fours, with at most one in the centre.
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
                return Err(Unproven::SolverFailed(
                    "the levels above contradict the incumbent".into(),
                ));
            }
            self.keep();
        }
        Ok(())
    }

    /// Restores what an earlier run has proved. Returns where that run left its level.
    fn take_up(&mut self, begun: PartialProof) -> Left {
        let PartialProof {
            solution, records, level, shown, eliminated, full, cliques, trial, ..
        } = begun;
        self.counts = self.orbits.counts(&solution);
        self.best = Some(solution);
        self.log = ProofLog::of(&records, cliques.len());
        self.sound = self.log.mark();
        self.cliques = cliques;
        for (level, &queens) in self.counts[..level].iter().enumerate() {
            self.bounds.set_range(level, Some((queens, queens)));
        }
        for square in eliminated {
            self.bounds.kill(self.orbits.orbit_of[square]);
        }
        full.into_iter().for_each(|distance| self.bounds.fill(distance));
        let trial = trial.map(|trial| {
            let mut bounds = self.bounds.clone();
            let least = trial.least as u32;
            bounds.set_range(level, Some((shown as u32, least - self.step(level))));
            for square in trial.eliminated {
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

    /// Marks the log so far as sound, apart from the current trial, and offers the stage to `keep`.
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

    /// Finds a first incumbent, within the smallest radius for which a limited search finds one.
    /// Returns `false` if there is no solution.
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
        // Search the whole board without a limit.
        if self.reduce()? {
            return Ok(false);
        }
        match self.search_orbit(&mut None, u64::MAX)? {
            Settled::Found(columns) => self.improve(columns).map(|()| true),
            Settled::Refuted => Ok(false),
            Settled::Open => unreachable!("it has all the nodes it wants"),
        }
    }

    /// Returns the step between possible numbers of queens on a level: 1, or 4 with quarter turns.
    pub(super) fn step(&self, level: usize) -> u32 {
        if self.question.turning && self.orbits.levels[level].cost > 0 { 4 } else { 1 }
    }

    fn improve(&mut self, columns: Vec<usize>) -> Result<(), Unproven> {
        let counts = self.orbits.counts(&columns);
        if self.best.is_some() && counts >= self.counts {
            return Err(Unproven::SolverFailed(
                "a solution is not better than the incumbent".into(),
            ));
        }
        self.counts = counts;
        self.best = Some(columns);
        Ok(())
    }

    /// Fixes the number of queens on `level` and returns it.
    fn fix(&mut self, level: usize, left: Option<Left>) -> Result<u32, Unproven> {
        let Left { mut least, mut trial } = left.unwrap_or(Left { least: 0, trial: None });
        let queens = self.counts[..level].iter().sum();
        // Set to accept any better incumbent, not only one that attains the LP's lower bound.
        let mut any_better = false;
        loop {
            self.place =
                Place { cost: self.cost, least, most: self.counts[level], squares: 0, queens };
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
                    self.orbit_lp.tell(&self.bounds);
                    let proof = self.orbit_lp.prove(&proof);
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
            // If no solution attains the LP's lower bound soon, any better incumbent is accepted.
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

    /// Searches for a solution under the current bounds, including the trial on `level`. Returns
    /// it, or that there is none with the proof in the log. Gives up after `passes` passes, each
    /// with more nodes than the one before.
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
        let in_cases =
            (self.wide..MOST_FOR_CASES).contains(&self.bounds.squares(self.orbits).len());
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

    /// Returns whether there are too many squares for a plain search.
    fn is_wide(&self) -> bool {
        self.bounds.squares(self.orbits).len() > self.wide
    }

    /// Looks for a solution with as few queens as possible on the levels below `level`. The LP's
    /// targets are assumed block of levels by block, and the rest is searched for some `nodes`. If
    /// a request is refuted, a weaker one replaces it; if it stays open, further levels are
    /// requested. When no weaker request is left, the dive backtracks to the request before.
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
                        let Some((request, before)) = asked.pop() else {
                            return Ok(Dived::Exhausted);
                        };
                        next = request;
                        self.bounds = before.0;
                        self.log.back_to(before.1);
                    };
                }
            }
        }
    }

    /// Returns the effort so far in nodes: nodes plus the equivalent of all LPs.
    const fn effort(&self) -> u64 {
        self.nodes + PROGRAMME * (self.programmes + self.orbit_lp.programmes)
    }

    /// Returns the nodes for one search in a dive of `nodes` nodes.
    fn patience(&self, nodes: u64) -> u64 {
        let very_wide = self.bounds.squares(self.orbits).len() > VERY_WIDE;
        (nodes / SEARCHES).min(if very_wide { FEW_NODES } else { MANY_NODES })
    }

    /// Assumes the LP's minimum of queens, plus `more` on the first, on the next `block` levels
    /// below `level` that have squares left. Returns the last of these levels and whether the LP
    /// allows the assumption, or `None` if there is no such level.
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
            if self.orbit_lp.prove(&multipliers).refutes() {
                return Ok(Some((below, false)));
            }
            // The first dive asks for the LP's targets; later dives ask for more on random levels.
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
