//! The exact method: its interface and its results. The engine itself is in `engine.rs`.

use super::engine::Engine;
use super::orbits::Orbits;
use super::propagation::PropagationQueue;
use super::search::every_solution;
use super::subtree_task::SubtreeSolver;
use crate::progress::{Progress, ProgressSink};
use crate::verdict::{Answer, Unproven, Verdict};
use nqueens_proof::beautiful::{PartialProof, claim};
use nqueens_proof::board::Norm;
use nqueens_proof::{Kind, seal};

/// The solutions to search, and the method.
#[derive(Clone, Copy, Debug)]
pub struct Query {
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
    pub checkpoint: Option<Vec<u8>>,
}

/// Returns all solutions with the fingerprint of `columns`, in ascending order.
///
/// # Errors
/// The search was stopped.
pub fn all_equally_beautiful(
    query: Query,
    columns: &[usize],
    sink: &mut dyn ProgressSink,
) -> Result<Vec<Vec<usize>>, Unproven> {
    let orbits = Orbits::new(query.n, query.norm);
    let mut checkpoint_sink = |_: &Stage<'_>| {};
    let mut engine = Engine::new(&orbits, query, Vec::new(), sink, &mut checkpoint_sink);
    for (level, queens) in orbits.counts(columns).into_iter().enumerate() {
        if queens == 0 {
            engine.close(level);
        } else {
            engine.bounds.set_range(level, Some((queens, queens)));
        }
    }
    if query.n == 0 {
        return Ok(vec![Vec::new()]);
    }
    if engine.reduce()? {
        return Ok(Vec::new());
    }
    let csp = engine.csp();
    let Ok(root) = csp.root(&mut PropagationQueue::default()) else { return Ok(Vec::new()) };
    let mut found = Vec::new();
    let mut nodes = 0u64;
    let mut keep_going = || {
        nodes += 1;
        let progress = Progress { level: 0, bound: None, nodes };
        !(nodes.is_multiple_of(1024) && engine.sink.report(&progress).is_break())
    };
    if !every_solution(&csp, &root, &mut keep_going, &mut |candidates| {
        found.push(csp.columns(candidates))
    }) {
        return Err(Unproven::Stopped);
    }
    found.sort_unstable();
    Ok(found)
}

/// The progress of a run: the current level.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Position {
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
    pub position: Position,
    /// The best solution so far: the 0-based column of the queen in each row.
    pub best: &'a [usize],
    pub(super) checkpoint: &'a dyn Fn() -> Vec<u8>,
}

impl Stage<'_> {
    /// Returns the checkpoint for [`crate::beautiful::resume::read`].
    pub fn checkpoint(&self) -> Vec<u8> {
        (self.checkpoint)()
    }
}

/// A callback that receives each new stage of a run. It decides whether to create the checkpoint.
pub type CheckpointSink<'a> = dyn FnMut(&Stage<'_>) + 'a;

/// Finds a most beautiful solution, or proves that there is no solution.
pub fn most_beautiful_exactly(query: Query, sink: &mut dyn ProgressSink) -> Exact {
    resume_most_beautiful(query, None, sink, &mut |_| {})
}

/// Finds a most beautiful solution like [`most_beautiful_exactly`], but resumes from what an
/// earlier run for this query had proved. `checkpoint_sink` receives the stages from which a later
/// run can resume.
pub fn resume_most_beautiful(
    query: Query,
    earlier: Option<PartialProof>,
    sink: &mut dyn ProgressSink,
    checkpoint_sink: &mut CheckpointSink<'_>,
) -> Exact {
    most_beautiful_with(query, Vec::new(), earlier, sink, checkpoint_sink)
}

/// Finds a most beautiful solution like [`resume_most_beautiful`], with long searches done by
/// remote solvers. Each solver has one subtree task at a time.
pub fn most_beautiful_with(
    query: Query,
    solvers: Vec<Box<dyn SubtreeSolver>>,
    earlier: Option<PartialProof>,
    sink: &mut dyn ProgressSink,
    checkpoint_sink: &mut CheckpointSink<'_>,
) -> Exact {
    let orbits = Orbits::new(query.n, query.norm);
    let mut engine = Engine::new(&orbits, query, solvers, sink, checkpoint_sink);
    let end = engine.run(earlier);
    let lps_solved = engine.lps_solved + engine.orbit_lp.lps_solved;
    let nodes = engine.nodes;
    let checkpoint = engine.checkpoint();
    let (verdict, certificate) = match end {
        Ok(()) => (Verdict::Proven, Some(seal(Kind::Beautiful, query.n, &engine.proof()))),
        Err(unproven) => (Verdict::NotProven(unproven), None),
    };
    let best = engine.best;
    Exact { answer: Answer { found: best, verdict, nodes, lps_solved }, certificate, checkpoint }
}

impl Engine<'_> {
    /// Returns the proof that a complete run has written, without the seal.
    pub(super) fn proof(&self) -> Vec<u8> {
        let Query { norm, turning, .. } = self.query;
        let mut proof = claim(norm, turning, self.best.as_deref());
        proof.bytes(self.log.as_bytes());
        proof.finish()
    }
}
