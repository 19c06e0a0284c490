//! Dives: attempts to find a better incumbent by assuming the LP's targets for many levels at once.
//! A dive proves nothing.

use super::bounds::Bounds;
use super::engine::{Engine, TrialOutcome};
use super::params;
use super::proof_log::Mark;
use crate::verdict::Unproven;

/// The outcome of a dive.
pub(super) enum DiveOutcome {
    /// A solution was found.
    Found(Vec<usize>),
    /// No request of the dive is feasible: most likely there is no solution.
    Exhausted,
    /// The nodes are used up, or no level is left to request.
    Open,
}

/// A request of a dive: few queens on a block of levels below `level`, and `extra` more on the
/// first.
#[derive(Debug)]
struct Request {
    level: usize,
    extra: u32,
    /// The bounds before the request.
    before: Bounds,
    /// The blocks to try, where the last one is tried first. Each is a prefix of the next.
    blocks: Vec<Block>,
}

/// The first levels with squares left below the level of a request, with the LP's targets.
#[derive(Debug)]
struct Block {
    /// The number of levels.
    levels: usize,
    /// The last of them.
    last: usize,
    /// The bounds with the targets.
    bounds: Bounds,
}

impl Engine<'_> {
    /// Searches for a solution with as few queens as possible on the levels below `level`. The LP's
    /// targets are assumed block of levels by block, and the rest is searched for `nodes` nodes. If
    /// a request is refuted, a weaker one replaces it; if it stays open, further levels are
    /// requested. When no weaker request is left, the dive backtracks to the request before. The
    /// bounds and the log are restored afterwards.
    pub(super) fn dive(&mut self, level: usize, nodes: u64) -> Result<DiveOutcome, Unproven> {
        let before = (self.bounds.clone(), self.log.mark());
        let outcome = self.dive_below(level, nodes, before.1);
        self.bounds = before.0;
        self.log.roll_back(before.1);
        outcome
    }

    /// Dives without restoring the bounds and the log, whose end is `mark`.
    fn dive_below(
        &mut self,
        level: usize,
        nodes: u64,
        mark: Mark,
    ) -> Result<DiveOutcome, Unproven> {
        let mut spent = 0;
        self.dives += 1;
        let mut requests = Vec::new();
        let mut next = Some((level, params::FIRST_BLOCK_LEVELS));
        loop {
            self.report()?;
            if spent > nodes {
                return Ok(DiveOutcome::Open);
            }
            let effort_before = self.effort();
            if let Some((level, block)) = next.take() {
                let before = self.bounds.clone();
                let Some(blocks) = self.assume(level, block, 0)? else {
                    return Ok(DiveOutcome::Open);
                };
                requests.push(Request { level, extra: 0, before, blocks });
            }
            let Some(request) = requests.last_mut() else { return Ok(DiveOutcome::Exhausted) };
            if let Some(Block { levels, last, bounds }) = request.blocks.pop() {
                self.bounds = bounds;
                let settled = if self.reduce()? {
                    TrialOutcome::Refuted
                } else {
                    self.settle(self.node_limit(nodes))?
                };
                match settled {
                    TrialOutcome::Found(columns) => return Ok(DiveOutcome::Found(columns)),
                    TrialOutcome::Open => next = Some((last, 2 * levels)),
                    TrialOutcome::Refuted => {}
                }
            } else if request.extra < params::MAX_EXTRA_QUEENS {
                request.extra += self.step(request.level);
                self.bounds.clone_from(&request.before);
                request.blocks = self.assume(request.level, 1, request.extra)?.unwrap_or_default();
            } else {
                requests.pop();
            }
            // Nothing that the log has of a request is needed after it.
            self.log.roll_back(mark);
            spent += 1 + self.effort() - effort_before;
        }
    }

    /// Returns the effort so far in nodes: nodes plus the equivalent of all LPs.
    const fn effort(&self) -> u64 {
        self.nodes + params::DIVE_NODES_PER_LP * (self.lps_solved + self.orbit_lp.lps_solved)
    }

    /// Returns the nodes for one search in a dive of `nodes` nodes.
    fn node_limit(&self, nodes: u64) -> u64 {
        let very_wide = self.bounds.squares(self.orbits).len() > params::VERY_WIDE_SQUARES;
        (nodes / params::MIN_SEARCHES_PER_DIVE).min(if very_wide {
            params::VERY_WIDE_SEARCH_NODES
        } else {
            params::MAX_DIVE_SEARCH_NODES
        })
    }

    /// Assumes the LP's minimum of queens, plus `extra` on the first, on the next `block` levels
    /// below `level` that have squares left, one after the other. Returns the first one, the first
    /// two, four and so on, and all of them, as far as the LP allows, or `None` if there is no such
    /// level.
    fn assume(
        &mut self,
        level: usize,
        block: usize,
        extra: u32,
    ) -> Result<Option<Vec<Block>>, Unproven> {
        let mut blocks = Vec::new();
        let mut levels = 0;
        let mut last = level;
        for below in level + 1..self.orbits.levels.len() {
            if levels == block {
                break;
            }
            if self.bounds.remaining_on(&self.orbits.levels[below]).next().is_none() {
                continue;
            }
            if levels.is_power_of_two() {
                blocks.push(Block { levels, last, bounds: self.bounds.clone() });
            }
            let (target, multipliers) = self.bound(below, u32::MAX)?;
            if self.orbit_lp.prove(&multipliers).refutes() {
                return Ok(Some(blocks));
            }
            // The first dive requests the LP's targets; later dives request more on random levels.
            let chance = self.dives > 1 && self.rng.u32(..params::EXTRA_QUEEN_ODDS) == 0;
            let target = target + if levels == 0 { extra } else { 0 };
            let target = if chance { target + self.step(below) } else { target };
            if self.bounds.range(below).is_some_and(|range| range.1 < target) {
                return Ok(Some(blocks));
            }
            if target == 0 {
                self.close(below);
            } else {
                self.bounds.set_range(below, Some((target, target)));
            }
            levels += 1;
            last = below;
        }
        if levels == 0 {
            return Ok(None);
        }
        blocks.push(Block { levels, last, bounds: self.bounds.clone() });
        Ok(Some(blocks))
    }
}
