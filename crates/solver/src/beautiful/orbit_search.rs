//! Searches for what is known: short ones, long ones in pieces by many hands, and sieges of an orbit.

use std::sync::Arc;

use super::csp::{Agenda, Core, Root};
use super::exact::{Engine, Question, Settled};
use super::lp_search::Weighed;
use super::orbits::OrbitId;
use super::parallel_search::{Conquest, Hand};
use super::search::{End, Pulse, Search};
use super::subtree_task::There;
use crate::progress::Progress;
use crate::verdict::Doubt;
use nqueens_proof::Beauty;
use nqueens_proof::beautiful::Known;

/// Nodes of a search before it is cut into pieces.
const SHORT: u64 = 10_000;
/// Nodes of a search in pieces before others are asked, if there are others.
const HERE: u64 = 40_000;
/// With more men than this, solutions are looked for, not refutations.
const MOST_FOR_ANCHOR: usize = 3000;

impl Engine<'_> {
    /// Searches what is left for some nodes.
    pub(super) fn settle(&mut self, nodes: u64) -> Result<Settled, Doubt> {
        let core = self.core();
        let Ok(root) = core.root(&mut Agenda::default()) else {
            self.log.refuted(&[]);
            return Ok(Settled::Refuted);
        };
        let anchor = self.anchor().filter(|_| core.men.len() <= MOST_FOR_ANCHOR);
        let root = match anchor {
            None => root,
            Some(orbit) => match self.below(&core, root, orbit) {
                Some(below) => below,
                None => {
                    self.refute(anchor, &[]);
                    return Ok(Settled::Refuted);
                }
            },
        };
        let mut end = self.search_shortly(&core, &root, nodes.min(SHORT));
        if end == End::Spent && nodes > SHORT {
            let mut conquest = Conquest::new(root, &self.weights);
            let plain = self.pace.plain;
            end = self.conquer(&core, self.known().as_ref(), &mut conquest, (nodes - SHORT, plain))?;
        }
        Ok(match end {
            End::Found(men) => Settled::Found(core.columns(self.orbits.n, &men)),
            End::Refuted(tree) => {
                self.refute(anchor, &tree);
                Settled::Refuted
            }
            End::Spent => Settled::Open,
        })
    }

    /// Logs that there is no solution, by a tree below a queen on an orbit that must have one, or by a tree.
    fn refute(&mut self, anchor: Option<OrbitId>, tree: &[u8]) {
        match anchor {
            None => self.log.refuted(tree),
            Some(orbit) => {
                self.log.killed(self.orbits, orbit, tree);
                self.log.refuted(&[]);
            }
        }
    }

    /// An orbit that has a queen in every solution: that she stands on its first square is no loss, for symmetries
    /// exchange its squares. The fewer queens it has, the more solutions that saves; of the best ones the outermost.
    fn anchor(&self) -> Option<OrbitId> {
        let only = |level: usize| {
            let (least, most) = self.facts.range(level).filter(|range| range.0 > 0)?;
            let mut alive =
                self.orbits.levels[level].orbits.iter().filter(|&&orbit| self.facts.is_alive(orbit));
            let &orbit = alive.next()?;
            let share = self.orbits.orbits[orbit].squares.len() as u32 / most;
            (alive.next().is_none() && least > 0 && share > 1).then_some((share, orbit))
        };
        let best = (0..self.orbits.levels.len()).filter_map(only).rev().max_by_key(|&(share, _)| share);
        best.map(|(_, orbit)| orbit)
    }

    /// What is left with a queen on the first square of an orbit; `None`: propagation finds that nothing is.
    fn below(&self, core: &Core, root: Root, orbit: OrbitId) -> Option<Root> {
        let man = core.man_on(self.orbits.orbits[orbit].squares[0])?;
        if !root.state.is_alive(man) {
            return root.placed.contains(&man).then_some(root);
        }
        let mut agenda = Agenda::after(root.placed);
        let mut state = root.state;
        core.place(&mut state, man, &mut agenda).ok()?;
        Some(Root { state, placed: agenda.placed })
    }

    /// A search with restarts, which learns weights.
    fn search_shortly(&mut self, core: &Core, root: &Root, nodes: u64) -> End {
        self.seed += 1;
        let pulse = Pulse::default();
        let mut search = Search::new(core, &pulse, self.seed);
        if self.weights.len() == core.lines.len() {
            search.inherit(&self.weights, 0);
        }
        let end = search.run(root, nodes);
        self.nodes += search.nodes;
        self.weights = search.weights().to_vec();
        end
    }

    /// What is known at present, for others.
    fn known(&self) -> Option<Arc<Known>> {
        let Question { n, norm, turning, .. } = self.question;
        self.facts.known(n, Beauty { norm, turning }).map(Arc::new)
    }

    /// Goes on with a long search for some nodes: here at first, then by others, if there are others; and with the programme, here, when
    /// each of them has spent so many without it.
    fn conquer(
        &mut self,
        core: &Core,
        known: Option<&Arc<Known>>,
        conquest: &mut Conquest,
        (nodes, plain): (u64, u64),
    ) -> Result<End, Doubt> {
        let (before, level) = (self.nodes - conquest.nodes(), self.cost as usize);
        let (threads, n) = (self.question.threads.max(1), self.question.n);
        let (watch, desks) = (&mut *self.watch, &mut self.desks);
        let known = known.filter(|_| !desks.is_empty());
        let mut stopped = false;
        let mut look = |nodes: u64| {
            stopped = watch.look(&Progress { level, bound: None, nodes: before + nodes }).is_break();
            !stopped
        };
        let limit = conquest.nodes().saturating_add(nodes);
        // The programme knows nothing of men who bring images with them.
        let weighed = !self.question.turning;
        let plain = if weighed { limit.min(plain.saturating_mul(desks.len().max(1) as u64)) } else { limit };
        let here = if known.is_some() { plain.min(HERE) } else { plain };
        let mut end = End::Spent;
        if conquest.nodes() < here {
            end = conquest.go_on(core, here - conquest.nodes(), threads, &mut look);
        }
        if let Some(known) = known
            && end == End::Spent
            && conquest.nodes() < plain
            && look(conquest.nodes())
        {
            let pulse = Pulse::default();
            let weights: Arc<[f32]> = conquest.weights().into();
            let mut hands: Vec<There<'_>> = Vec::with_capacity(desks.len());
            for desk in desks.iter_mut() {
                let weights = Arc::clone(&weights);
                hands.push(There { core, n, known, pulse: &pulse, desk: &mut **desk, weights });
            }
            let hands = hands.iter_mut().map(|hand| hand as &mut dyn Hand).collect();
            end = conquest.go_on_by(core, plain - conquest.nodes(), hands, &pulse, &mut look);
        }
        if weighed && end == End::Spent && conquest.nodes() < limit && look(conquest.nodes()) {
            conquest.begin_weighing();
            let pulse = Pulse::default();
            let (orbits, pace) = (self.orbits, self.pace);
            let mut hands: Vec<Weighed<'_>> =
                (0..threads).map(|seed| Weighed::new(core, orbits, pace, &pulse, seed as u64)).collect();
            let all = hands.iter_mut().map(|hand| hand as &mut dyn Hand).collect();
            end = conquest.go_on_by(core, limit - conquest.nodes(), all, &pulse, &mut look);
            self.programmes += hands.iter().map(Weighed::programmes).sum::<u64>();
        }
        self.nodes = before + conquest.nodes();
        self.weights = conquest.weights().to_vec();
        if stopped { Err(Doubt::Stopped) } else { Ok(end) }
    }

    /// Goes on with a siege for some nodes, or begins one. An orbit that falls is dead, and the board is reduced.
    pub(super) fn besiege(&mut self, siege: &mut Option<Siege>, nodes: u64) -> Result<Settled, Doubt> {
        let end = self.nodes.saturating_add(nodes);
        while self.nodes < end {
            let Some(Siege { core, known, orbit, conquest }) = siege else {
                *siege = self.begin_siege();
                if siege.is_none() {
                    self.log.refuted(&[]);
                    return Ok(Settled::Refuted);
                }
                continue;
            };
            let left = end - self.nodes;
            let plain = self.pace.siege;
            let (orbit, end) = (*orbit, self.conquer(core, known.as_ref(), conquest, (left, plain))?);
            match end {
                End::Found(men) => return Ok(Settled::Found(core.columns(self.orbits.n, &men))),
                End::Spent => break,
                End::Refuted(tree) => {
                    self.log.killed(self.orbits, orbit, &tree);
                    self.facts.kill(orbit);
                    *siege = None;
                    if self.reduce()? {
                        return Ok(Settled::Refuted);
                    }
                    self.keep();
                }
            }
        }
        Ok(Settled::Open)
    }

    /// Chooses an orbit. `None`: propagation finds that there is no solution.
    fn begin_siege(&mut self) -> Option<Siege> {
        let core = self.core();
        let root = core.root(&mut Agenda::default()).ok()?;
        let pulse = Pulse::default();
        let mut chooser = Search::new(&core, &pulse, 1);
        if self.weights.len() == core.lines.len() {
            chooser.inherit(&self.weights, 0);
        }
        let line = chooser.best_line(&root.state);
        let orbit_of = |man: u32| self.orbits.orbit_of[core.men[man as usize][0] as usize];
        let alive = core.lines[line].iter().filter(|&&man| root.state.is_alive(man));
        let orbit = self.anchor().or_else(|| alive.map(|&man| orbit_of(man)).min())?;
        let weights = chooser.weights().to_vec();
        // It is possible, as far as propagation can tell: the board is reduced.
        let conquest = Conquest::new(self.below(&core, root, orbit)?, &weights);
        let known = self.known();
        Some(Siege { core, known, orbit, conquest })
    }
}

/// A long search below a queen on one orbit.
#[derive(Debug)]
pub(super) struct Siege {
    core: Core,
    known: Option<Arc<Known>>,
    orbit: OrbitId,
    conquest: Conquest,
}
