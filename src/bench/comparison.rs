//! The comparison: contestants count in turn, and each count is compared with the published value.

use std::num::NonZeroUsize;
use std::ops::ControlFlow;

use super::contestant::Contestant;
use super::measurements::Measurements;
use crate::engine::CountError;
use crate::oeis::{Sequence, lookup};

/// The run in progress.
#[derive(Clone, Copy, Debug)]
pub struct Turn<'a> {
    /// The round, starting at 1.
    pub round: usize,
    /// The contestant's name.
    pub name: &'a str,
    /// The board size.
    pub n: usize,
    /// The fraction of the whole comparison that is done, with all runs weighted equally: 0 to 1.
    pub fraction: f64,
}

/// The error returned when a comparison fails.
#[derive(Debug, thiserror::Error)]
pub enum BenchError {
    /// A count failed.
    #[error("{name}: {source}")]
    Count {
        /// The contestant's name.
        name: String,
        /// The cause.
        source: Box<CountError>,
    },
    /// A count is wrong, or the published value is.
    #[error("{name} counts {found} solutions at n = {n}; the published value is {published}")]
    Differs {
        /// The contestant's name.
        name: String,
        /// The board size.
        n: usize,
        /// The number of solutions that it counted.
        found: u128,
        /// The value of OEIS A000170.
        published: u128,
    },
    /// There is no published value to compare a count with.
    #[error(
        "there is no published value for n = {0} to compare the counts with; the largest is n = 27"
    )]
    Unpublished(usize),
    /// The callback requested a stop.
    #[error(
        "interrupted in round {round} of {rounds}, while {name} was counting; the comparison is incomplete"
    )]
    Stopped {
        /// The contestant that was counting.
        name: String,
        /// The round, starting at 1.
        round: usize,
        /// The number of rounds requested.
        rounds: usize,
    },
}

/// Runs the contestants in turn, `rounds` times each, and compares every count with the published
/// value. `on_turn` is called at the beginning of each turn and at least ten times a second; if it
/// returns `Break`, there is no comparison.
///
/// # Errors
/// A count fails or differs from the published value, there is no published value for this n, or
/// `on_turn` returned `Break`.
pub fn compare(
    contestants: &mut [Contestant<'_>],
    rounds: NonZeroUsize,
    mut on_turn: impl FnMut(&Turn<'_>) -> ControlFlow<()>,
) -> Result<Vec<Measurements>, BenchError> {
    let rounds = rounds.get();
    let published = contestants
        .iter()
        .map(|c| lookup(Sequence::Total, c.n).ok_or(BenchError::Unpublished(c.n)))
        .collect::<Result<Vec<u128>, BenchError>>()?;
    let mut measured: Vec<Measurements> = contestants
        .iter()
        .map(|c| Measurements {
            name: c.name.clone(),
            kind: c.kind,
            n: c.n,
            runs: Vec::with_capacity(rounds),
        })
        .collect();
    let turns = (rounds * contestants.len()) as f64;
    let mut turns_done = 0.0;
    for round in 1..=rounds {
        for ((contestant, &published), measured) in
            contestants.iter_mut().zip(&published).zip(&mut measured)
        {
            let (name, n) = (measured.name.as_str(), measured.n);
            let mut report = |share: f64| {
                on_turn(&Turn { round, name, n, fraction: (turns_done + share) / turns })
            };
            let stopped = || BenchError::Stopped { name: name.to_owned(), round, rounds };
            if report(0.0).is_break() {
                return Err(stopped());
            }
            let run = (contestant.count)(n, &mut |progress| report(progress.fraction));
            let run = run.map_err(|source| match source {
                CountError::Stopped { .. } => stopped(),
                source => BenchError::Count { name: name.to_owned(), source: Box::new(source) },
            })?;
            if run.solutions != published {
                let (name, found) = (name.to_owned(), run.solutions);
                return Err(BenchError::Differs { name, n, found, published });
            }
            measured.runs.push(run);
            turns_done += 1.0;
        }
    }
    Ok(measured)
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::time::Duration;

    use super::*;
    use crate::bench::{ContestantKind, Run};
    use crate::kernel::KernelKind;

    fn run(seconds: u64, solutions: u128) -> Run {
        let elapsed = Duration::from_secs(seconds);
        let (nodes, energy_j) = (Some(solutions * 10), Some(5.0));
        Run { elapsed, solutions, nodes, threads: 2, energy_j, gpu: None }
    }

    const fn rounds(rounds: usize) -> NonZeroUsize {
        NonZeroUsize::new(rounds).expect("rounds are at least one")
    }

    #[test]
    fn contestants_count_in_turn() {
        let turns = RefCell::new(String::new());
        let contestant = |name: &'static str| {
            let turns = &turns;
            Contestant::new(name, ContestantKind::Cpu, 8, move |n, _| {
                assert_eq!(n, 8);
                turns.borrow_mut().push_str(name);
                Ok(run(1, 92))
            })
        };
        let mut fractions = Vec::new();
        let measured = compare(&mut [contestant("a"), contestant("b")], rounds(3), |turn| {
            fractions.push(turn.fraction);
            ControlFlow::Continue(())
        });
        let measured = measured.expect("right counts");
        assert_eq!(*turns.borrow(), "ababab");
        assert!(measured.iter().all(|m| m.runs.len() == 3));
        assert!(fractions.is_sorted() && fractions[0] == 0.0, "{fractions:?}");
    }

    #[test]
    fn a_count_that_differs_ends_the_comparison() {
        let wrong = Contestant::new("wrong", ContestantKind::Cpu, 8, |_, _| Ok(run(1, 91)));
        let outcome = compare(&mut [wrong], rounds(1), |_| ControlFlow::Continue(()));
        assert!(matches!(outcome, Err(BenchError::Differs { found: 91, published: 92, n: 8, .. })));
    }

    #[test]
    fn nothing_is_counted_where_there_is_no_published_value() {
        let never = Contestant::new("never", ContestantKind::Cpu, 28, |_, _| panic!("counted"));
        let outcome = compare(&mut [never], rounds(1), |_| ControlFlow::Continue(()));
        assert!(matches!(outcome, Err(BenchError::Unpublished(28))));
    }

    #[test]
    fn every_kernel_that_runs_here_can_be_compared() {
        let kernels = KernelKind::ALL.into_iter().filter(|kind| kind.runs_here());
        let contestants = kernels.map(|kernel| Contestant::cpu(kernel, 9, NonZeroUsize::new(2)));
        let mut contestants =
            contestants.collect::<Result<Vec<_>, _>>().expect("kernels that run here");
        let measured = compare(&mut contestants, rounds(2), |_| ControlFlow::Continue(()));
        for measured in measured.expect("right counts") {
            assert_eq!(
                (measured.solutions(), measured.threads(), measured.runs.len()),
                (352, 2, 2)
            );
            assert_eq!(
                measured.nodes_per_s().is_none(),
                measured.name == "textbook",
                "{}",
                measured.name
            );
        }
    }

    #[test]
    fn the_progress_callback_can_stop_the_comparison_between_and_within_runs() {
        for stop_within in [false, true] {
            let mut contestants =
                [Contestant::cpu(KernelKind::Scalar, 12, None).expect("runs anywhere")];
            let mut turns = 0;
            let outcome = compare(&mut contestants, rounds(2), |_| {
                turns += 1;
                if turns > usize::from(stop_within) {
                    ControlFlow::Break(())
                } else {
                    ControlFlow::Continue(())
                }
            });
            assert!(matches!(outcome, Err(BenchError::Stopped { round: 1, rounds: 2, .. })));
        }
    }
}
