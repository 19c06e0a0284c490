//! Counts, classes, estimates and published values.

use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::time::Duration;

use nqueens::board::{Piece, Problem};
use nqueens::decomposition::MAX_COUNT_SIZE;
use nqueens::engine::{
    AnnealingEstimate, CountEvent, CountOptions, CountOutcome, CountTask, DeviceChoice, DeviceName,
    Estimate, MAX_ANNEALING_SIZE, estimate_by_annealing,
};
use nqueens::kernel::symmetric::{Classes, classes};
use nqueens::oeis::{self, Sequence, totals_of};

use crate::failure::{Failure, FailureClass};
use crate::observer::{Observer, Progress, Throttle, run_beside};
use crate::request::size;

/// Counts the solutions or the completions of a board, and compares the total of an empty board
/// with the published value. The observer is called once more at the end.
///
/// # Errors
/// The board is too large, a device is not available, the observer ended the count, or a check of
/// the total failed.
pub fn count(
    problem: &Problem,
    options: &CountOptions,
    observer: &mut dyn Observer,
) -> Result<CountOutcome, Failure> {
    let mut throttle = Throttle::new(observer, None);
    let outcome = CountTask::plan(problem, options)?.run(|event| match event {
        CountEvent::Note(_) => ControlFlow::Continue(()),
        CountEvent::Progress(progress) => throttle.report(|| Progress {
            fraction: Some(progress.fraction),
            done: progress.units_done,
            all: progress.units,
            solutions: progress.solutions,
            left_s: progress.left.map(|left| left.as_secs_f64()),
            ..Progress::default()
        }),
    })?;
    let last = Progress {
        fraction: Some(1.0),
        done: outcome.units,
        all: outcome.units,
        solutions: outcome.solutions,
        left_s: Some(0.0),
        ..Progress::default()
    };
    if throttle.report_now(last).is_break() {
        return Err(Failure::interrupted());
    }
    if oeis::published(problem).is_some_and(|published| published != outcome.solutions) {
        return Err(differs(problem, outcome.solutions));
    }
    Ok(outcome)
}

fn differs(problem: &Problem, solutions: u128) -> Failure {
    let (n, oeis) = (problem.n(), totals_of(problem.piece()).oeis());
    let message = format!(
        "the count for n = {n}, {solutions}, differs from the published value (OEIS {oeis}); please report this"
    );
    Failure::new(FailureClass::CheckFailed, message)
}

/// Counts the solutions of the empty board by their symmetry.
///
/// # Errors
/// As for [`count`]; the piece is the rook, or the total is inconsistent with the symmetric
/// solutions.
pub fn count_classes(
    (piece, n): (Piece, usize),
    options: &CountOptions,
    observer: &mut dyn Observer,
) -> Result<Classes, Failure> {
    if piece == Piece::Rook {
        let message = "classes need queens, superqueens or toroidal queens";
        return Err(Failure::usage(message));
    }
    let total = count(&Problem::empty(piece, n), options, observer)?.solutions;
    let found = run_beside(observer, move || classes(piece, n, total))?;
    found.map_err(|error| Failure::new(FailureClass::CheckFailed, error))
}

/// A request for an estimate.
#[derive(Clone, Debug)]
pub struct EstimateRequest {
    /// The board.
    pub problem: Problem,
    /// The threads; `None` for one a core.
    pub threads: Option<NonZeroUsize>,
    /// The time to spend on dives, and again on samples, in seconds; above n = 32 the time to spend
    /// on annealing runs.
    pub seconds: f64,
    /// The seed of the random numbers.
    pub seed: u64,
}

/// An estimate.
#[derive(Clone, Debug)]
pub enum Estimated {
    /// Of a board that can be counted: by random dives, and the time by sampled subproblems.
    ByDives(Estimate),
    /// Of a larger board: by annealed importance sampling.
    ByAnnealing(AnnealingEstimate),
}

/// Estimates a count. If the observer ends the run, the threads of the estimate end by themselves
/// within about twice the requested time.
///
/// # Errors
/// The board or the time is too large, or the observer ended the run.
pub fn estimate(
    request: EstimateRequest,
    observer: &mut dyn Observer,
) -> Result<Estimated, Failure> {
    let EstimateRequest { problem, threads, seconds, seed } = request;
    let n = size(&problem.n().to_string(), MAX_ANNEALING_SIZE)?;
    let time = Duration::try_from_secs_f64(seconds).map_err(|_| {
        Failure::usage(format!("invalid time '{seconds}'; use a number of seconds, for example 2"))
    })?;
    // The sample is counted on the CPU.
    let devices = DeviceChoice::These(vec![DeviceName::Cpu]);
    let options = CountOptions { threads, devices, ..CountOptions::default() };
    if n <= MAX_COUNT_SIZE {
        let work = move || nqueens::engine::estimate(&problem, &options, time, seed);
        return Ok(Estimated::ByDives(run_beside(observer, work)??));
    }
    if !problem.is_empty() || problem.piece() != Piece::Queen {
        return Err(Failure::usage(format!(
            "decided squares and other pieces are for n up to {MAX_COUNT_SIZE}; the estimate of n = {n} is for the empty board of queens"
        )));
    }
    let found = run_beside(observer, move || estimate_by_annealing(n, &options, time, seed))?;
    found.map(Estimated::ByAnnealing).map_err(Failure::usage)
}

/// Returns the sequence with an OEIS number, or that of the totals of a piece.
///
/// # Errors
/// The text is neither.
pub fn sequence(text: &str) -> Result<Sequence, Failure> {
    let found = Sequence::ALL.into_iter().find(|sequence| sequence.oeis() == text);
    if let Some(sequence) = found.or_else(|| text.parse().ok().map(totals_of)) {
        return Ok(sequence);
    }
    let known: Vec<&str> = Sequence::ALL.into_iter().map(Sequence::oeis).collect();
    Err(Failure::usage(format!(
        "'{text}' is not a known sequence; choose a piece or one of {}",
        known.join(", ")
    )))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observer::Unobserved;

    #[test]
    fn a_count_is_the_published_value_and_ends_with_a_last_report() {
        struct Last(Progress);
        impl Observer for Last {
            fn observe(&mut self, progress: &Progress) -> ControlFlow<()> {
                self.0 = *progress;
                ControlFlow::Continue(())
            }
        }
        let mut last = Last(Progress::default());
        let problem = Problem::empty(Piece::Queen, 8);
        let found = count(&problem, &CountOptions::default(), &mut last).expect("counts");
        assert_eq!(found.solutions, 92);
        assert_eq!((last.0.fraction, last.0.solutions), (Some(1.0), 92));
    }

    #[test]
    fn an_observer_ends_counts_and_estimates() {
        struct Ends;
        impl Observer for Ends {
            fn observe(&mut self, _: &Progress) -> ControlFlow<()> {
                ControlFlow::Break(())
            }
        }
        let problem = Problem::empty(Piece::Queen, 20);
        let ended = count(&problem, &CountOptions::default(), &mut Ends).expect_err("ended");
        assert_eq!(ended.class, FailureClass::Interrupted);
        let request = EstimateRequest { problem, threads: None, seconds: 1.0, seed: 1 };
        let ended = estimate(request, &mut Ends).expect_err("ended");
        assert_eq!(ended.class, FailureClass::Interrupted);
    }

    #[test]
    fn classes_are_the_published_ones() {
        let of_8 = count_classes((Piece::Queen, 8), &CountOptions::default(), &mut Unobserved);
        let of_8 = of_8.expect("counts");
        assert_eq!((of_8.total, of_8.fundamental, of_8.point_symmetric), (92, 12, 4));
        let rooks = count_classes((Piece::Rook, 4), &CountOptions::default(), &mut Unobserved);
        assert_eq!(rooks.expect_err("rooks").class, FailureClass::Usage);
    }

    #[test]
    fn a_sequence_is_named_by_its_number_or_a_piece() {
        assert_eq!(sequence("A002562"), Ok(Sequence::Fundamental));
        assert_eq!(sequence("toroidal"), Ok(Sequence::Toroidal));
        let message = sequence("A1").expect_err("unknown").message;
        assert!(message.contains("'A1'") && message.contains("A000170"), "{message}");
    }
}
