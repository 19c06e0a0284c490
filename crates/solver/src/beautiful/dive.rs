//! Dives: attempts to find a better incumbent by assuming the LP's targets for many levels at once.
//! A dive proves nothing.

use super::engine::{Engine, TrialOutcome};
use super::params;
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

/// A request of a dive: few queens on `block` levels below `level`, and `extra` more on the first.
#[derive(Clone, Copy, Debug)]
struct Request {
    level: usize,
    block: usize,
    extra: u32,
}

impl Request {
    /// Returns the next request to try when this one is infeasible, or `None` if no request is
    /// left.
    fn weaker(self, step: u32) -> Option<Self> {
        if self.block > 1 {
            Some(Self { block: self.block / 2, ..self })
        } else if self.extra < params::MAX_EXTRA_QUEENS {
            Some(Self { extra: self.extra + step, ..self })
        } else {
            None
        }
    }
}

/// Returns the number of dives in a pass of a trial.
pub(super) const fn dives_in_pass(wide: bool) -> usize {
    if wide { params::WIDE_DIVES } else { 1 }
}

/// Returns the nodes of each dive in a pass, from 1, of a trial that began with a `wide` board.
pub(super) fn dive_nodes(wide: bool, pass: usize) -> u64 {
    pass_nodes(wide, pass).min(params::MAX_DIVE_NODES)
}

/// Returns the nodes of a pass, from 1, of a trial that began with a `wide` board.
pub(super) fn pass_nodes(wide: bool, pass: usize) -> u64 {
    let nodes = if wide { params::WIDE_DIVE_NODES } else { params::QUICK_NODES };
    nodes.saturating_mul(params::NODES_GROWTH.saturating_pow(pass.min(64) as u32))
}

impl Engine<'_> {
    /// Searches for a solution with as few queens as possible on the levels below `level`. The LP's
    /// targets are assumed block of levels by block, and the rest is searched for `nodes` nodes. If
    /// a request is refuted, a weaker one replaces it; if it stays open, further levels are
    /// requested. When no weaker request is left, the dive backtracks to the request before.
    pub(super) fn dive(&mut self, level: usize, nodes: u64) -> Result<DiveOutcome, Unproven> {
        let mut spent = 0;
        self.dives += 1;
        let mut requests = Vec::new();
        let mut next = Request { level, block: params::FIRST_BLOCK_LEVELS, extra: 0 };
        loop {
            self.report()?;
            if spent > nodes {
                return Ok(DiveOutcome::Open);
            }
            let effort_before = self.effort();
            let before = (self.bounds.clone(), self.log.mark());
            let Some((last, possible)) = self.assume(next)? else { return Ok(DiveOutcome::Open) };
            let settled = if possible && !self.reduce()? {
                self.settle(self.node_limit(nodes))?
            } else {
                TrialOutcome::Refuted
            };
            spent += 1 + self.effort() - effort_before;
            match settled {
                TrialOutcome::Found(columns) => return Ok(DiveOutcome::Found(columns)),
                TrialOutcome::Open => {
                    requests.push((next, before));
                    next = Request { level: last, block: 2 * next.block, extra: 0 };
                }
                TrialOutcome::Refuted => {
                    (self.bounds, _) = before;
                    self.log.roll_back(before.1);
                    next = loop {
                        if let Some(weaker) = next.weaker(self.step(last)) {
                            break weaker;
                        }
                        let Some((request, before)) = requests.pop() else {
                            return Ok(DiveOutcome::Exhausted);
                        };
                        next = request;
                        self.bounds = before.0;
                        self.log.roll_back(before.1);
                    };
                }
            }
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
    /// below `level` that have squares left. Returns the last of these levels and whether the LP
    /// allows the assumption, or `None` if there is no such level.
    fn assume(&mut self, request: Request) -> Result<Option<(usize, bool)>, Unproven> {
        let Request { level, block, extra } = request;
        let mut last = None;
        let mut levels = 0;
        for below in level + 1..self.orbits.levels.len() {
            if levels == block {
                break;
            }
            if self.bounds.remaining_on(&self.orbits.levels[below]).next().is_none() {
                continue;
            }
            let (target, multipliers) = self.bound(below, u32::MAX)?;
            if self.orbit_lp.prove(&multipliers).refutes() {
                return Ok(Some((below, false)));
            }
            // The first dive requests the LP's targets; later dives request more on random levels.
            let chance = self.dives > 1 && self.rng.u32(..params::EXTRA_QUEEN_ODDS) == 0;
            let target = target + if levels == 0 { extra } else { 0 };
            let target = if chance { target + self.step(below) } else { target };
            if self.bounds.range(below).is_some_and(|range| range.1 < target) {
                return Ok(Some((below, false)));
            }
            if target == 0 {
                self.close(below);
            } else {
                self.bounds.set_range(below, Some((target, target)));
            }
            levels += 1;
            last = Some((below, true));
        }
        Ok(last)
    }
}
