//! Presolve: eliminates squares and fills diagonals before a search, by unit propagation and by the
//! orbit LP.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::csp::Csp;
use super::engine::Engine;
use super::lp_witnesses::{ONE, Point};
use super::orbit_lp::{LpOutcome, Multipliers, OrbitLp, Proof};
use super::orbits::OrbitId;
use super::params;
use super::propagation::PropagationQueue;
use crate::verdict::Unproven;

/// The outcome of probing some orbits.
#[derive(Default)]
struct Probed {
    eliminated: usize,
    /// Set if there is no solution.
    refuted: bool,
    /// The multipliers that prove this.
    proofs: Vec<Multipliers>,
}

/// The orbits that a thread probes: its own ones, and then those of the other threads, in reverse
/// order, so that threads seldom meet.
struct Share {
    own: Vec<OrbitId>,
    others: Vec<OrbitId>,
}

impl Share {
    /// Creates the share of the thread with this number, from 0, of several.
    fn new(orbits: &[OrbitId], number: usize, threads: usize) -> Self {
        let (mut own, mut others) = (Vec::new(), Vec::new());
        for (place, &orbit) in orbits.iter().enumerate() {
            if place % threads == number { &mut own } else { &mut others }.push(orbit);
        }
        others.reverse();
        Self { own, others }
    }
}

impl Engine<'_> {
    /// Reduces the board to a fixed point. Returns `true` if there is no solution; the log then has
    /// the proof.
    pub(super) fn reduce(&mut self) -> Result<bool, Unproven> {
        loop {
            if self.probe_squares()? {
                return Ok(true);
            }
            self.update_lp();
            match self.probe_orbits()? {
                None => return Ok(true),
                Some(0) => {}
                Some(_) => continue,
            }
            match self.fill_diagonals()? {
                None => return Ok(true),
                Some(0) => return Ok(false),
                Some(_) => {}
            }
        }
    }

    /// Reduces the board in a trial on a level, where the levels below are limited too. Returns the
    /// same as [`reduce`](Self::reduce).
    pub(super) fn reduce_in(&mut self, trial: usize) -> Result<bool, Unproven> {
        loop {
            if self.reduce()? {
                return Ok(true);
            }
            match self.limit_levels(trial)? {
                None => return Ok(true),
                Some(0) => return Ok(false),
                Some(_) => {}
            }
        }
    }

    pub(super) fn csp(&self) -> Csp {
        let squares = self.bounds.squares(self.orbits);
        let groups = self.bounds.groups(self.orbits);
        Csp::new(self.orbits.n, &squares, &groups, self.query.turning)
            .with_full_diagonals(self.bounds.full())
    }

    /// Probes one square of each orbit with a queen: an orbit that leads to a contradiction is
    /// eliminated. Returns `true` if there is no solution.
    fn probe_squares(&mut self) -> Result<bool, Unproven> {
        let csp = self.csp();
        let remaining: Vec<OrbitId> = self.bounds.remaining().collect();
        for orbit in remaining {
            // The images of a queen here attack each other.
            if csp.candidate_on(self.orbits.orbits[orbit].squares[0]).is_none() {
                self.log.eliminated(self.orbits, orbit, &[]);
                self.bounds.eliminate(orbit);
            }
        }
        let mut pending = PropagationQueue::default();
        let Ok(mut root) = csp.root(&mut pending) else {
            self.log.refuted(&[]);
            return Ok(true);
        };
        let mut probe = root.state.clone();
        loop {
            let mut changed = false;
            self.report()?;
            let remaining: Vec<OrbitId> = self.bounds.remaining().collect();
            for orbit in remaining {
                let possible = csp.candidate_on(self.orbits.orbits[orbit].squares[0]).is_some_and(
                    |candidate| {
                        if !root.state.is_remaining(candidate) {
                            return root.placed.contains(&candidate);
                        }
                        probe.copy_from(&root.state);
                        csp.place(&mut probe, candidate, &mut pending).is_ok()
                    },
                );
                if possible {
                    continue;
                }
                changed = true;
                self.log.eliminated(self.orbits, orbit, &[]);
                self.bounds.eliminate(orbit);
                if csp.remove(&mut root, &self.orbits.orbits[orbit].squares, &mut pending).is_err()
                {
                    self.log.refuted(&[]);
                    return Ok(true);
                }
            }
            if !changed {
                return Ok(false);
            }
        }
    }

    /// Rebuilds the orbit LP when too many of its orbits are eliminated, and sets its bounds.
    pub(super) fn update_lp(&mut self) {
        let remaining = self.bounds.remaining().count();
        if self.orbit_lp.lacks(&self.bounds) || self.orbit_lp.size() > remaining + remaining / 3 + 8
        {
            self.lps_solved += self.orbit_lp.lps_solved;
            self.orbit_lp = OrbitLp::new(self.orbits, &self.bounds, &self.cliques);
        }
        self.orbit_lp.set_bounds(&self.bounds);
    }

    /// Maximises the queens on each orbit, up to one, with the orbit LP; an orbit with a maximum
    /// below 1 is eliminated. Returns the number of eliminated orbits, or `None` if there is no
    /// solution.
    fn probe_orbits(&mut self) -> Result<Option<usize>, Unproven> {
        let possible = self.possible_orbits();
        let remaining: Vec<OrbitId> = self.bounds.remaining().collect();
        let open: Vec<OrbitId> =
            remaining.iter().copied().filter(|&orbit| !possible[orbit]).collect();
        let threads = self.search.threads();
        if threads <= 1 || open.len() < params::MIN_ORBITS_FOR_THREADS {
            let probed = self.probe_orbits_of(&remaining, &[], possible, &[])?;
            return Ok((!probed.refuted).then_some(probed.eliminated));
        }
        let claimed: Vec<AtomicBool> = possible.iter().map(|_| AtomicBool::new(false)).collect();
        let shares: Vec<Share> =
            (0..threads).map(|number| Share::new(&open, number, threads)).collect();
        let probe = |engine: &mut Engine<'_>, share: &Share| {
            let before = (engine.bounds.clone(), engine.log.mark());
            let Share { own, others } = share;
            let probed = engine.probe_orbits_of(own, others, possible.clone(), &claimed)?;
            engine.bounds = before.0;
            engine.orbit_lp.set_bounds(&engine.bounds);
            engine.log.roll_back(before.1);
            Ok(probed)
        };
        let results = self.run_tasks(threads, &shares, probe, |probed| probed.refuted)?;
        let mut all = 0;
        // The LP has the same rows as its copies, since probing adds none.
        for multipliers in results.into_iter().flatten().flat_map(|probed| probed.proofs) {
            match self.eliminate_by(&multipliers) {
                Some(eliminated) => all += eliminated,
                None => return Ok(None),
            }
        }
        Ok(Some(all))
    }

    /// Probes its `own` orbits and then the `others`, but those that are `possible` or that a copy
    /// of the engine has claimed: it has shown them possible, or probes them.
    fn probe_orbits_of(
        &mut self,
        own: &[OrbitId],
        others: &[OrbitId],
        mut possible: Vec<bool>,
        claimed: &[AtomicBool],
    ) -> Result<Probed, Unproven> {
        let mut probed = Probed::default();
        self.show_possible(own, &mut possible, claimed)?;
        for &orbit in own.iter().chain(others) {
            if !self.bounds.is_remaining(orbit) || possible[orbit] {
                continue;
            }
            let was_claimed =
                claimed.get(orbit).is_some_and(|claimed| claimed.swap(true, Ordering::Relaxed));
            if was_claimed {
                continue;
            }
            self.report()?;
            let Some(outcome) = self.orbit_lp.most(orbit, self.sink)? else { continue };
            let multipliers = match outcome {
                LpOutcome::Infeasible(multipliers) => multipliers,
                LpOutcome::TargetReached(values) => {
                    self.add_point(values, &mut possible, claimed);
                    continue;
                }
                LpOutcome::Optimal { values, multipliers, .. } => {
                    let most = values[orbit];
                    self.add_point(values, &mut possible, claimed);
                    if most >= ONE {
                        continue;
                    }
                    multipliers
                }
            };
            let eliminated = self.eliminate_by(&multipliers);
            if eliminated != Some(0) {
                probed.proofs.push(multipliers);
                possible = self.possible_orbits();
            }
            match eliminated {
                Some(eliminated) => probed.eliminated += eliminated,
                None => {
                    probed.refuted = true;
                    break;
                }
            }
        }
        Ok(probed)
    }

    /// Finds points of the orbit LP that show many of these orbits `possible`: aggressive filtering
    /// (Gleixner, Berthold, Müller and Weltge, "Three enhancements for optimization-based bound
    /// tightening", 2017).
    fn show_possible(
        &mut self,
        orbits: &[OrbitId],
        possible: &mut [bool],
        claimed: &[AtomicBool],
    ) -> Result<(), Unproven> {
        let is_claimed = |orbit: OrbitId| {
            claimed.get(orbit).is_some_and(|claimed| claimed.load(Ordering::Relaxed))
        };
        let mut open = orbits.to_vec();
        open.retain(|&orbit| {
            self.bounds.is_remaining(orbit) && !possible[orbit] && !is_claimed(orbit)
        });
        let mut newly_shown = open.len();
        while newly_shown >= params::MIN_FILTERED && open.len() >= params::MIN_FILTERED {
            self.report()?;
            let Some(values) = self.orbit_lp.most_of(&open, self.sink)? else { break };
            self.add_point(values, possible, claimed);
            let before = open.len();
            open.retain(|&orbit| !possible[orbit] && !is_claimed(orbit));
            newly_shown = before - open.len();
        }
        Ok(())
    }

    /// Adds a point of the orbit LP, and marks the orbits that have a queen there.
    fn add_point(&mut self, values: Vec<f64>, possible: &mut [bool], claimed: &[AtomicBool]) {
        for &orbit in self.witnesses.add(self.orbits, values).occupied() {
            possible[orbit] = true;
            if let Some(claimed) = claimed.get(orbit) {
                claimed.store(true, Ordering::Relaxed);
            }
        }
    }

    /// Eliminates the orbits that multipliers prove to have no queens. Returns their number, or
    /// `None` if the multipliers prove that there is no solution.
    fn eliminate_by(&mut self, multipliers: &Multipliers) -> Option<usize> {
        let proof = self.prove(multipliers)?;
        let eliminated: Vec<OrbitId> =
            self.bounds.remaining().filter(|&orbit| proof.eliminates(orbit)).collect();
        if !eliminated.is_empty() {
            self.log.eliminated_by(&proof, &eliminated, self.orbits, &self.cliques);
            eliminated.iter().for_each(|&orbit| self.bounds.eliminate(orbit));
            self.orbit_lp.set_bounds(&self.bounds);
        }
        Some(eliminated.len())
    }

    /// Returns what multipliers prove, or `None` if they prove that there is no solution; the log
    /// then has the proof.
    pub(super) fn prove(&mut self, multipliers: &Multipliers) -> Option<Proof> {
        let proof = self.orbit_lp.prove(multipliers);
        if proof.refutes() {
            self.log.refuted_by(&proof, self.orbits, &self.cliques);
            return None;
        }
        Some(proof)
    }

    /// Minimises the queens on the diagonals at each distance with the orbit LP, whose bounds must
    /// be current: if none of the diagonals can be empty, they are filled. Returns the number of
    /// distances found, or `None` if there is no solution.
    fn fill_diagonals(&mut self) -> Result<Option<usize>, Unproven> {
        // With quarter turns, diagonals are not constraints of the CSP.
        if self.query.turning {
            return Ok(Some(0));
        }
        let mut found = 0;
        let mut empty = self.distances_with_slack();
        for distance in 0..self.query.n {
            if empty[distance] || self.bounds.is_full(distance) {
                continue;
            }
            self.report()?;
            let Some((outcome, most)) = self.orbit_lp.emptiest(distance, self.sink)? else {
                continue;
            };
            let multipliers = match outcome {
                LpOutcome::Infeasible(multipliers) => multipliers,
                LpOutcome::TargetReached(values) => {
                    self.add_slack_at(values, &mut empty);
                    continue;
                }
                LpOutcome::Optimal { objective, values, multipliers } => {
                    self.add_slack_at(values, &mut empty);
                    if objective < most as f64 - ONE {
                        continue;
                    }
                    multipliers
                }
            };
            let Some(proof) = self.prove(&multipliers) else { return Ok(None) };
            let mut full = proof.fills();
            full.retain(|&distance| !self.bounds.is_full(distance));
            if full.is_empty() {
                continue;
            }
            self.log.filled_by(&proof, &full, self.orbits, &self.cliques);
            found += full.len();
            full.into_iter().for_each(|distance| self.bounds.fill(distance));
        }
        Ok(Some(found))
    }

    /// Adds a point of the orbit LP, and marks the distances where it has at least one queen fewer
    /// than diagonals.
    fn add_slack_at(&mut self, values: Vec<f64>, empty: &mut [bool]) {
        mark_slack(empty, &self.witnesses.add(self.orbits, values));
    }

    /// Returns, by distance of diagonals, whether a known point has at least one queen fewer there
    /// than diagonals.
    fn distances_with_slack(&mut self) -> Vec<bool> {
        let mut shown = vec![false; self.query.n];
        self.known_points().into_iter().for_each(|point| mark_slack(&mut shown, point));
        shown
    }

    /// Returns which orbits can have a queen, as far as known points show.
    fn possible_orbits(&mut self) -> Vec<bool> {
        let mut possible = vec![false; self.orbits.orbits.len()];
        for point in self.known_points() {
            point.occupied().iter().for_each(|&orbit| possible[orbit] = true);
        }
        possible
    }

    /// Returns the known points that satisfy the bounds and the cliques. Drops those that violate a
    /// clique.
    pub(super) fn known_points(&mut self) -> Vec<&Arc<Point>> {
        self.witnesses.retain_under_cliques(self.orbits, &self.cliques);
        self.witnesses.within(self.orbits, &self.bounds)
    }
}

/// Marks the distances where a point has at least one queen fewer than diagonals.
fn mark_slack(empty: &mut [bool], point: &Point) {
    for (empty, &has_slack) in empty.iter_mut().zip(point.slack()) {
        *empty |= has_slack;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::beautiful::bounds::Bounds;
    use crate::beautiful::engine::TrialOutcome;
    use crate::beautiful::orbits::Orbits;
    use crate::beautiful::{Query, Stage};
    use crate::progress::Unobserved;
    use crate::test_support::solutions;
    use nqueens_proof::beautiful::prices;
    use nqueens_proof::board::{Norm, Piece, Placement, Problem};

    /// Returns whether a solution satisfies the bounds.
    fn satisfies(columns: &[usize], orbits: &Orbits, bounds: &Bounds) -> bool {
        let remaining = |(row, column): (usize, &usize)| {
            bounds.is_remaining(orbits.orbit_of[row * orbits.n + column])
        };
        let counts = orbits.counts(columns);
        let within = |level: usize| {
            bounds.range(level).is_none_or(|(least, most)| (least..=most).contains(&counts[level]))
        };
        columns.iter().enumerate().all(remaining) && (0..orbits.levels.len()).all(within)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(60))]

        #[test]
        fn presolving_never_excludes_a_solution(
            n in 4usize..=8,
            model in any::<prop::sample::Index>(),
            eliminated in proptest::collection::vec(any::<prop::sample::Index>(), 0..4),
            ranges in proptest::collection::vec((any::<prop::sample::Index>(), 0u32..2, 0u32..2), 0..6),
            norm in prop::sample::select(&Norm::ALL[..]),
        ) {
            let orbits = Orbits::new(n, norm);
            let solutions = solutions(n);
            let model = model.get(&solutions);
            let mut sink = Unobserved;
            let query = Query { n, norm, turning: false, threads: 1 };
            let mut keep = |_: &Stage<'_>| {};
            let mut engine = Engine::new(&orbits, query, Vec::new(), &mut sink, &mut keep);
            for orbit in eliminated {
                engine.bounds.eliminate(orbit.index(orbits.orbits.len()));
            }
            let counts = orbits.counts(model);
            for (level, below, above) in ranges {
                let level = level.index(orbits.levels.len());
                let range = (counts[level].saturating_sub(below), counts[level] + above);
                engine.bounds.set_range(level, Some(range));
            }
            let left: Vec<&Vec<usize>> =
                solutions.iter().filter(|columns| satisfies(columns, &orbits, &engine.bounds)).collect();
            for level in 0..orbits.levels.len() {
                let (bound, _) = engine.bound(level, u32::MAX).expect("not stopped");
                let fewest = left.iter().map(|columns| orbits.counts(columns)[level]).min();
                prop_assert!(fewest.is_none_or(|fewest| bound <= fewest));
            }
            let refuted = engine.reduce().expect("not stopped");
            prop_assert!(!refuted || left.is_empty());
            for columns in &left {
                prop_assert!(satisfies(columns, &orbits, &engine.bounds));
                let squares: Vec<usize> = (0..n).map(|row| row * n + columns[row]).collect();
                for diagonal in engine.bounds.full().flat_map(|distance| prices::diagonals(n, distance)) {
                    let has_queen = squares.iter().any(|&square| prices::lines(n, square).contains(&diagonal));
                    prop_assert!(has_queen, "diagonal {diagonal} of {columns:?}");
                }
            }
            if !refuted {
                match engine.settle(1_000_000).expect("not stopped") {
                    TrialOutcome::Found(columns) => {
                        let problem = Problem::empty(Piece::Queen, n);
                        prop_assert!(Placement::check_solution(&problem, &columns).is_ok());
                        prop_assert!(left.contains(&&columns));
                    }
                    TrialOutcome::Refuted => prop_assert!(left.is_empty()),
                    TrialOutcome::Open => prop_assert!(false, "a million nodes are enough"),
                }
            }
        }
    }
}
