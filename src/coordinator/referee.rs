//! The referee: where two results for a unit differ, it counts the unit itself, on this machine's CPU, twice: the unit by
//! the fastest kernel, its mirror image by another. It speaks only if both agree.

use std::sync::mpsc;
use std::time::Instant;

use crate::campaign::{Source, UnitId};
use crate::kernel::{KernelKind, count_range};
use crate::preplacement::{Decomposition, Job};
use crate::tally::Tally;
use crate::wire::BUILD;

/// The referee's own name, which no worker can have.
pub(super) const NAME: &str = "(referee)";

/// What the referee found.
#[derive(Clone, Debug)]
pub(super) struct Ruling {
    pub(super) unit: UnitId,
    /// The unit's result, or why there is none.
    pub(super) truth: Result<Tally, String>,
    pub(super) source: Source,
    pub(super) elapsed_s: f64,
}

/// A unit in dispute.
#[derive(Clone, Debug)]
pub(super) struct Dispute {
    pub(super) unit: UnitId,
    pub(super) job: Job,
}

/// Starts the referee; it ends when the sender is dropped. It has the decomposition of the last job at hand.
pub(super) fn start(mut rule: impl FnMut(Ruling) + Send + 'static) -> std::io::Result<mpsc::Sender<Dispute>> {
    let (sender, disputes) = mpsc::channel::<Dispute>();
    let work = move || {
        let mut last: Option<Decomposition> = None;
        for Dispute { unit, job } in disputes {
            let began = Instant::now();
            let (first, second) = kernels(&job);
            let decomposition = match last.take() {
                Some(known) if *known.job() == job => known,
                _ => Decomposition::new(job),
            };
            // On a thread of its own: if that panics, there is a ruling all the same.
            let truth = std::thread::scope(|scope| {
                let counting = scope.spawn(|| count_twice(&decomposition, unit.unit, first, second));
                counting.join().unwrap_or_else(|_| Err("counting failed; see the log".to_owned()))
            });
            last = Some(decomposition);
            let source = Source {
                worker: NAME.to_owned(),
                kernel: format!("{first}+{second}"),
                device: "cpu".to_owned(),
                build: BUILD.to_owned(),
            };
            rule(Ruling { unit, truth, source, elapsed_s: began.elapsed().as_secs_f64() });
        }
    };
    std::thread::Builder::new().name("referee".to_owned()).spawn(work)?;
    Ok(sender)
}

/// The two fastest kernels that can count the job here; one twice, if there is only one.
fn kernels(job: &Job) -> (KernelKind, KernelKind) {
    let problem = job.problem();
    let fits = |kind: &KernelKind| {
        kind.runs_here() && kind.build(problem.piece()).is_ok() && kind.scheme(problem) == job.scheme()
    };
    let order = [KernelKind::Avx512, KernelKind::Avx2, KernelKind::Scalar, KernelKind::Generic];
    let mut able = order.into_iter().filter(fits);
    let first = able.next().unwrap_or(KernelKind::Generic);
    (first, able.next().unwrap_or(first))
}

fn count_twice(
    decomposition: &Decomposition,
    unit: u64,
    first: KernelKind,
    second: KernelKind,
) -> Result<Tally, String> {
    if unit >= decomposition.units() {
        return Err(format!("the job has {} units only", decomposition.units()));
    }
    let piece = decomposition.job().problem().piece();
    let count = |kind: KernelKind, decomposition: &Decomposition| {
        let mut kernel = kind.build(piece).map_err(|error| error.to_string())?;
        count_range(&mut *kernel, decomposition, decomposition.unit(unit)).map_err(|error| error.to_string())
    };
    let tally = count(first, decomposition)?;
    let image = count(second, &decomposition.mirrored())?;
    if tally.thirds() == image.thirds() {
        return Ok(tally);
    }
    let (one, other) = (tally.thirds(), image.thirds());
    Err(format!(
        "{first} counts {one} thirds, {second} in the mirror {other}: this machine is not to be trusted"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::board::{Piece, Problem};
    use crate::engine::plan_for_campaign;

    #[test]
    fn the_referee_counts_what_the_oracle_counts() {
        for piece in [Piece::Queen, Piece::Rook] {
            let decomposition = plan_for_campaign(&Problem::empty(piece, 8)).expect("small");
            let job = decomposition.job().clone();
            let (sender, receiver) = mpsc::channel();
            let disputes = start(move |ruling| sender.send(ruling).expect("waited for")).expect("a thread");
            let mut total = Tally::default();
            for unit in 0..decomposition.units() {
                let unit = UnitId { job: job.hash(), unit };
                disputes.send(Dispute { unit, job: job.clone() }).expect("it waits");
                let ruling = receiver.recv().expect("it rules");
                assert_eq!(ruling.unit, unit);
                total.merge(&ruling.truth.expect("both kernels agree")).expect("small");
            }
            let known = if piece == Piece::Queen { 92 } else { 40_320 };
            assert_eq!(total.solutions(), Ok(known));
            let unit = UnitId { job: job.hash(), unit: decomposition.units() };
            disputes.send(Dispute { unit, job }).expect("it waits");
            assert!(receiver.recv().expect("it rules").truth.is_err());
        }
    }
}
