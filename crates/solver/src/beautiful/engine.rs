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

use std::sync::Arc;

use super::background_dives::SearchControl;
use super::bounds::Bounds;
use super::csp::Csp;
use super::exact::{CheckpointSink, Position, Query, Stage};
use super::lp_search::NodeLimits;
use super::lp_witnesses::LpWitnesses;
use super::orbit_lp::OrbitLp;
use super::orbits::Orbits;
use super::params;
use super::proof_log::{Mark, ProofLog};
use super::propagation::PropagationQueue;
use super::resume;
use super::search::{CancelToken, Search, SearchOutcome};
use super::subtree_task::SubtreeSolver;
use crate::progress::{Progress, ProgressSink};
use crate::verdict::Unproven;
use nqueens_proof::beautiful::PartialProof;

/// The state of a run of the engine.
pub(super) struct Engine<'a> {
    pub(super) orbits: &'a Orbits,
    pub(super) query: Query,
    /// The solvers for long searches; empty if everything is searched on this machine.
    pub(super) solvers: Vec<Box<dyn SubtreeSolver>>,
    pub(super) sink: &'a mut dyn ProgressSink,
    pub(super) bounds: Bounds,
    pub(super) orbit_lp: OrbitLp<'a>,
    /// Cliques of squares with at most one queen; none is ever removed.
    pub(super) cliques: Vec<Vec<usize>>,
    pub(super) witnesses: LpWitnesses,
    pub(super) log: ProofLog,
    /// Nodes of all searches.
    pub(super) nodes: u64,
    /// The learned weight of each constraint.
    pub(super) weights: Vec<f32>,
    pub(super) seed: u64,
    pub(super) rng: fastrand::Rng,
    /// The number of dives in the current trial.
    pub(super) dives: u32,
    /// Shared with the dives on other threads.
    pub(super) search: Arc<SearchControl>,
    /// The incumbent: the best solution so far.
    pub(super) best: Option<Vec<usize>>,
    /// The queens of the incumbent on each level.
    counts: Vec<u32>,
    /// The cost of the current level.
    pub(super) cost: u64,
    /// LPs solved by board LPs and by orbit LPs that were replaced.
    pub(super) lps_solved: u64,
    /// LPs solved by board LPs.
    #[cfg(test)]
    pub(super) board_lps_solved: u64,
    position: Position,
    /// [`params::QUICK_NODES`] and [`params::WIDE_SQUARES`], except in tests.
    pub(super) quick: u64,
    pub(super) wide: usize,
    pub(super) limits: NodeLimits,
    checkpoint_sink: &'a mut CheckpointSink<'a>,
    /// The end of the log that a checkpoint may include: up to here it depends on no assumption but
    /// the current trial.
    checkpoint_end: Mark,
}

/// The point within a level at which a run was left.
struct ResumePoint {
    least: u32,
    trial: Option<OpenTrial>,
}

/// A trial in progress.
struct OpenTrial {
    /// The number of queens on the level that it is to prove as the minimum.
    least: u32,
    /// The bounds within the trial.
    bounds: Bounds,
    /// The end of the log before the trial.
    before: Mark,
}

/// The outcome of a search under the current bounds.
pub(super) enum TrialOutcome {
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
        query: Query,
        solvers: Vec<Box<dyn SubtreeSolver>>,
        sink: &'a mut dyn ProgressSink,
        checkpoint_sink: &'a mut CheckpointSink<'a>,
    ) -> Self {
        let bounds = Bounds::new(orbits);
        let orbit_lp = OrbitLp::new(orbits, &bounds, &[]);
        let known = (bounds, orbit_lp);
        Self { solvers, ..Self::with_bounds(orbits, query, sink, checkpoint_sink, known) }
    }

    /// Creates an engine without remote solvers that starts with these bounds, which the LP has.
    pub(super) fn with_bounds(
        orbits: &'a Orbits,
        query: Query,
        sink: &'a mut dyn ProgressSink,
        checkpoint_sink: &'a mut CheckpointSink<'a>,
        (bounds, orbit_lp): (Bounds, OrbitLp<'a>),
    ) -> Self {
        Self {
            orbits,
            query,
            solvers: Vec::new(),
            sink,
            orbit_lp,
            bounds,
            cliques: Vec::new(),
            witnesses: LpWitnesses::default(),
            log: ProofLog::default(),
            nodes: 0,
            weights: Vec::new(),
            seed: 0,
            rng: fastrand::Rng::with_seed(1),
            dives: 0,
            search: Arc::new(SearchControl::new(query.threads)),
            best: None,
            counts: Vec::new(),
            cost: 0,
            lps_solved: 0,
            #[cfg(test)]
            board_lps_solved: 0,
            position: Position::default(),
            quick: params::QUICK_NODES,
            wide: params::WIDE_SQUARES,
            limits: NodeLimits::default(),
            checkpoint_sink,
            checkpoint_end: Mark::default(),
        }
    }

    pub(super) fn run(&mut self, earlier: Option<PartialProof>) -> Result<(), Unproven> {
        let n = self.query.n;
        if n == 0 {
            self.best = Some(Vec::new());
            return Ok(());
        }
        // Queens come in fours, with at most one in the centre.
        let impossible = self.query.turning && n % 4 > 1;
        if impossible {
            return Ok(());
        }
        let (first, mut left) = match earlier {
            Some(earlier) => (earlier.level, Some(self.restore(earlier))),
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
            self.offer_checkpoint();
        }
        Ok(())
    }

    /// Restores what an earlier run has proved. Returns where that run left its level.
    fn restore(&mut self, earlier: PartialProof) -> ResumePoint {
        let PartialProof {
            solution, records, level, shown, eliminated, full, cliques, trial, ..
        } = earlier;
        self.counts = self.orbits.counts(&solution);
        self.best = Some(solution);
        self.log = ProofLog::of(&records, cliques.len());
        self.checkpoint_end = self.log.mark();
        self.cliques = cliques;
        for (level, &queens) in self.counts[..level].iter().enumerate() {
            self.bounds.set_range(level, Some((queens, queens)));
        }
        for square in eliminated {
            self.bounds.eliminate(self.orbits.orbit_of[square]);
        }
        full.into_iter().for_each(|distance| self.bounds.fill(distance));
        let trial = trial.map(|trial| {
            let mut bounds = self.bounds.clone();
            let least = trial.least as u32;
            bounds.set_range(level, Some((shown as u32, least - self.step(level))));
            for square in trial.eliminated {
                bounds.eliminate(self.orbits.orbit_of[square]);
            }
            trial.filled.into_iter().for_each(|distance| bounds.fill(distance));
            for (level, least, most) in trial.ranges {
                bounds.set_range(level, Some((least as u32, most as u32)));
            }
            OpenTrial { least, bounds, before: Mark { bytes: trial.begin, cliques: trial.cliques } }
        });
        ResumePoint { least: shown as u32, trial }
    }

    /// Marks the end of the log as that of the checkpoint, apart from the current trial, and offers
    /// the stage to `keep`.
    pub(super) fn offer_checkpoint(&mut self) {
        self.checkpoint_end = self.log.mark();
        if let Some(best) = &self.best {
            let squares = self.bounds.squares(self.orbits).len();
            let checkpoint = &|| resume::write(&self.query, best, self.log.as_bytes());
            (self.checkpoint_sink)(&Stage {
                position: Position { squares, ..self.position },
                best,
                checkpoint,
            });
        }
    }

    /// Returns the checkpoint of a run that has ended or was stopped.
    pub(super) fn checkpoint(&self) -> Option<Vec<u8>> {
        let records = self.log.as_bytes();
        let checkpoint_end = self.checkpoint_end.bytes.min(records.len());
        let best = self.best.as_ref()?;
        Some(resume::write(&self.query, best, &records[..checkpoint_end]))
    }

    /// Reports the progress to the sink.
    ///
    /// # Errors
    /// The sink, or a dive on another thread, stops the run.
    pub(super) fn report(&mut self) -> Result<(), Unproven> {
        self.report_with(0)
    }

    /// Reports the progress, with `more` nodes of other threads besides those of the dives.
    pub(super) fn report_with(&mut self, more: u64) -> Result<(), Unproven> {
        let nodes = self.nodes + self.search.dive_nodes() + more;
        let progress = Progress { level: self.cost as usize, bound: None, nodes };
        if self.sink.report(&progress).is_break() || self.search.is_over() {
            return Err(Unproven::Stopped);
        }
        Ok(())
    }

    /// Finds a first incumbent, within the smallest radius for which a limited search finds one.
    /// Returns `false` if there is no solution.
    fn first_incumbent(&mut self) -> Result<bool, Unproven> {
        let n = self.query.n;
        let orbits = self.orbits;
        let cost = |square: usize| orbits.levels[orbits.orbits[orbits.orbit_of[square]].level].cost;
        let least = (0..n).map(cost).min().unwrap_or(0);
        for level in (0..self.orbits.levels.len()).rev() {
            if self.orbits.levels[level].cost < least {
                continue;
            }
            self.report()?;
            let radius = self.orbits.levels[level].cost;
            let squares: Vec<usize> = (0..n * n).filter(|&square| cost(square) <= radius).collect();
            let csp = Csp::new(n, &squares, &[], self.query.turning);
            let Ok(root) = csp.root(&mut PropagationQueue::default()) else { continue };
            let cancel = CancelToken::default();
            let mut search = Search::new(&csp, &cancel, 1);
            let end = search.run(&root, params::RADIUS_NODES);
            self.nodes += search.nodes;
            if let SearchOutcome::Found(candidates) = end {
                self.set_incumbent(csp.columns(&candidates))?;
                return Ok(true);
            }
        }
        // Search the whole board without a limit.
        if self.reduce()? {
            return Ok(false);
        }
        match self.search_orbit(&mut None, u64::MAX)? {
            TrialOutcome::Found(columns) => self.set_incumbent(columns).map(|()| true),
            TrialOutcome::Refuted => Ok(false),
            TrialOutcome::Open => unreachable!("the node limit is infinite"),
        }
    }

    /// Returns the step between possible numbers of queens on a level: 1, or 4 with quarter turns.
    pub(super) fn step(&self, level: usize) -> u32 {
        if self.query.turning && self.orbits.levels[level].cost > 0 { 4 } else { 1 }
    }

    fn set_incumbent(&mut self, columns: Vec<usize>) -> Result<(), Unproven> {
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
    fn fix(&mut self, level: usize, left: Option<ResumePoint>) -> Result<u32, Unproven> {
        let ResumePoint { mut least, mut trial } =
            left.unwrap_or(ResumePoint { least: 0, trial: None });
        let queens = self.counts[..level].iter().sum();
        // Set to accept any better incumbent, not only one that attains the LP's lower bound.
        let mut any_better = false;
        loop {
            self.position =
                Position { cost: self.cost, least, most: self.counts[level], squares: 0, queens };
            if trial.is_none() {
                self.offer_checkpoint();
            }
            let most = self.counts[level];
            if most == 0 {
                self.close(level);
                self.log.next_level();
                return Ok(0);
            }
            if least < most && trial.is_none() {
                self.bounds.set_range(level, Some((least, self.query.n as u32)));
                let (bound, proof) = self.bound(level, most)?;
                if bound > least {
                    self.log.at_least(bound);
                    self.bounds.set_range(level, Some((least, bound - self.step(level))));
                    self.orbit_lp.set_bounds(&self.bounds);
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
            self.sink.describe(&|| {
                let cost = self.orbits.levels[level].cost;
                format!("cost {cost}: {least} to {most} queens, {squares} squares left")
            });
            self.report()?;
            if trial.is_none() {
                self.position = Position { least, ..self.position };
                self.offer_checkpoint();
            }
            let known = self.bounds.clone();
            let (target, mark) = match trial.take() {
                Some(OpenTrial { least, bounds, before }) => {
                    self.bounds = bounds;
                    (least, before)
                }
                None => {
                    let target = if any_better { most } else { least + self.step(level) };
                    let mark = self.log.mark();
                    self.log.at_least(target);
                    self.bounds.set_range(level, Some((least, target - self.step(level))));
                    (target, mark)
                }
            };
            // If no solution attains the LP's lower bound soon, any better incumbent is accepted.
            let passes = if target < most && self.is_wide() { 1 } else { usize::MAX };
            let settled = self.settle_level(level, passes)?;
            self.bounds = known;
            match settled {
                TrialOutcome::Found(columns) => {
                    self.log.roll_back(mark);
                    self.set_incumbent(columns)?;
                }
                TrialOutcome::Refuted => least = target,
                TrialOutcome::Open => {
                    self.log.roll_back(mark);
                    any_better = true;
                }
            }
        }
        self.log.next_level();
        Ok(self.counts[level])
    }

    pub(super) fn close(&mut self, level: usize) {
        self.bounds.set_range(level, Some((0, 0)));
        for &orbit in &self.orbits.levels[level].orbits {
            self.bounds.eliminate(orbit);
        }
    }

    /// Returns whether there are too many squares for a plain search.
    pub(super) fn is_wide(&self) -> bool {
        self.bounds.squares(self.orbits).len() > self.wide
    }
}
