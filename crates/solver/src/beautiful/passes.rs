//! Settling a trial in passes of dives and searches, each with more nodes than the one before.
//!
//! With several threads, all of them work on the first dive of a trial; then half of them dive
//! while the others search. One thread alternates.

use std::sync::Arc;
use std::thread;

use super::background_dives::{BackgroundDives, SearchControl, StopDives};
use super::dive::DiveOutcome;
use super::engine::{Engine, TrialOutcome};
use super::params;
use crate::verdict::Unproven;

/// Returns the number of dives in a pass, from 1, of a trial that began with a `wide` board,
/// without the first dive of the trial. Once a dive was exhausted, there are fewer.
pub(super) const fn dives_in_pass(pass: usize, wide: bool, was_exhausted: bool) -> usize {
    let dives = if wide && !was_exhausted { params::WIDE_DIVES } else { 1 };
    if pass == 1 { dives - 1 } else { dives }
}

/// Returns the nodes of each dive in a pass, from 1, of a trial that began with a `wide` board.
pub(super) fn dive_nodes(wide: bool, pass: usize) -> u64 {
    pass_nodes(wide, pass).min(params::MAX_DIVE_NODES)
}

/// Returns the nodes of a pass, from 1, of a trial that began with a `wide` board.
fn pass_nodes(wide: bool, pass: usize) -> u64 {
    let nodes = if wide { params::WIDE_DIVE_NODES } else { params::QUICK_NODES };
    nodes.saturating_mul(params::NODES_GROWTH.saturating_pow(pass.min(64) as u32))
}

impl Engine<'_> {
    /// Searches for a solution under the current bounds, including the trial on `level`. Returns
    /// it, or that there is none with the proof in the log. Gives up after `passes` passes, each
    /// with more nodes than the one before.
    pub(super) fn settle_level(
        &mut self,
        level: usize,
        passes: usize,
    ) -> Result<TrialOutcome, Unproven> {
        if self.reduce()? {
            return Ok(TrialOutcome::Refuted);
        }
        let wide = self.is_wide();
        self.dives = 0;
        if !wide {
            match self.settle(self.quick)? {
                TrialOutcome::Open => {}
                settled => return Ok(settled),
            }
        }
        let is_exhausted = match self.dive(level, dive_nodes(wide, 1))? {
            DiveOutcome::Found(columns) => return Ok(TrialOutcome::Found(columns)),
            DiveOutcome::Exhausted => true,
            DiveOutcome::Open => false,
        };
        let threads = self.query.threads;
        if threads <= 1 {
            return self.settle_in_passes(level, passes, wide, is_exhausted, None);
        }
        let dives = BackgroundDives::new(level, passes, threads, wide, is_exhausted);
        // After the dive, the LP has other bounds.
        self.update_lp();
        let start = self.start();
        self.search = Arc::clone(dives.search());
        let settled = thread::scope(|scope| {
            let _guard = StopDives(&dives);
            for _ in 0..threads / 2 {
                let (dives, start, seed) = (&dives, &start, self.rng.u64(..));
                scope.spawn(move || dives.run(start, seed));
            }
            self.settle_in_passes(level, passes, wide, is_exhausted, Some(&dives))
        });
        self.search = Arc::new(SearchControl::new(threads));
        self.adopt(dives.into_learned());
        settled
    }

    /// Settles a trial in passes after its first dive, each with more nodes than the one before:
    /// dives, unless there are some in the background, and a search. The board was `wide` at the
    /// beginning of the trial; the first dive may have been exhausted.
    fn settle_in_passes(
        &mut self,
        level: usize,
        passes: usize,
        wide: bool,
        mut is_exhausted: bool,
        background: Option<&BackgroundDives>,
    ) -> Result<TrialOutcome, Unproven> {
        let in_cases = (self.wide..params::MAX_SQUARES_FOR_CASES)
            .contains(&self.bounds.squares(self.orbits).len());
        let mut cases = None;
        let mut orbit_search = None;
        let mut case_nodes = params::CASE_NODES;
        for pass in 1..=passes {
            if let Some(dives) = background {
                dives.begin_pass(pass);
            } else {
                let nodes = dive_nodes(wide, pass);
                for _ in 0..dives_in_pass(pass, wide, is_exhausted) {
                    match self.dive(level, nodes)? {
                        DiveOutcome::Found(columns) => return Ok(TrialOutcome::Found(columns)),
                        DiveOutcome::Exhausted => {
                            is_exhausted = true;
                            break;
                        }
                        DiveOutcome::Open => {}
                    }
                }
            }
            let searched = if in_cases {
                let wanted = pass.saturating_mul(params::CASES);
                let searched = self.settle_cases(&mut cases, level, wanted, case_nodes);
                case_nodes = case_nodes.saturating_mul(params::CASE_NODES_GROWTH);
                searched
            } else {
                self.search_orbit(&mut orbit_search, pass_nodes(wide, pass))
            };
            match (searched, background) {
                (Ok(TrialOutcome::Open), _) => {}
                (Err(Unproven::Stopped), Some(dives)) => {
                    let found = dives.found()?;
                    return found.map(TrialOutcome::Found).ok_or(Unproven::Stopped);
                }
                (settled, _) => return settled,
            }
        }
        let found = background.map(|dives| dives.finish_all(&mut || self.report())).transpose()?;
        Ok(found.flatten().map_or(TrialOutcome::Open, TrialOutcome::Found))
    }
}
