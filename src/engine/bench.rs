//! Comparison of ways to count n queens in one run: in turn (A B A B …), with each count compared
//! with the published value.

use std::cell::RefCell;
use std::fmt;
use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use super::count::{CountError, CountOptions, CountTask, Event};
use super::devices::{DeviceChoice, DeviceName};
use super::energy::EnergyMeter;
use super::progress::Progress;
use crate::board::{Piece, Problem};
use crate::kernel::KernelKind;
use crate::kernel::gpu::{DeviceKernel, Fault};
use crate::oeis::{Sequence, lookup};
use crate::tally::Tally;

/// The type of device that a contestant counts on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ContestantKind {
    /// The processor.
    Cpu,
    /// An adapter, by shaders.
    Gpu,
}

impl ContestantKind {
    /// Returns the name in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Cpu => "cpu",
            Self::Gpu => "gpu",
        }
    }
}

/// The measurement of one count.
#[derive(Clone, Copy, Debug)]
pub struct Run {
    /// The wall-clock time of the whole count, including planning.
    pub elapsed: Duration,
    /// The number of solutions.
    pub solutions: u128,
    /// The number of placements; `None` if they are not counted.
    pub nodes: Option<u128>,
    /// The number of threads that counted.
    pub threads: usize,
    /// Energy in J; `None` if it is not known.
    pub energy_j: Option<f64>,
}

impl Run {
    /// Returns `count` a second.
    fn rate(&self, count: u128) -> f64 {
        count as f64 / self.elapsed.as_secs_f64().max(f64::MIN_POSITIVE)
    }
}

/// A callback that receives the progress of a run, and may stop it.
pub type ProgressFn<'w> = dyn FnMut(&Progress) -> ControlFlow<()> + 'w;

/// A function that counts n queens once.
type Count<'a> = dyn FnMut(usize, &mut ProgressFn<'_>) -> Result<Run, CountError> + 'a;

/// A way of counting n queens.
pub struct Contestant<'a> {
    name: String,
    kind: ContestantKind,
    n: usize,
    count: Box<Count<'a>>,
}

impl fmt::Debug for Contestant<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({}, n = {})", self.name, self.kind.name(), self.n)
    }
}

impl<'a> Contestant<'a> {
    /// Creates a contestant from a function that receives n and a callback, to be called with the
    /// progress at least ten times a second. It measures itself; its setup (a device, a program for
    /// it) is not part of the comparison.
    pub fn new(
        name: impl Into<String>,
        kind: ContestantKind,
        n: usize,
        count: impl FnMut(usize, &mut ProgressFn<'_>) -> Result<Run, CountError> + 'a,
    ) -> Self {
        Self { name: name.into(), kind, n, count: Box::new(count) }
    }

    /// Creates a contestant with a CPU kernel.
    ///
    /// # Errors
    /// The kernel does not run here.
    pub fn cpu(
        kernel: KernelKind,
        n: usize,
        threads: Option<NonZeroUsize>,
    ) -> Result<Self, CountError> {
        kernel.build(Piece::Queen)?;
        let options = CountOptions { kernel: Some(kernel), threads, ..CountOptions::default() };
        Ok(Self::new(kernel.name(), ContestantKind::Cpu, n, move |n, watch| {
            let mut energy = EnergyMeter::start();
            let began = Instant::now();
            let mut task = CountTask::plan(&Problem::empty(Piece::Queen, n), &options)?;
            task.without_fallback();
            let outcome = task.run(|event| {
                energy.sample();
                match event {
                    Event::Progress(progress) => watch(progress),
                    Event::Note(_) => ControlFlow::Continue(()),
                }
            })?;
            let elapsed = began.elapsed();
            Ok(Run {
                elapsed,
                solutions: outcome.solutions,
                nodes: outcome.nodes,
                threads: outcome.threads,
                energy_j: energy.joules(elapsed),
            })
        }))
    }

    /// Creates a contestant with a device that is open and has passed its self-test. It counts all
    /// units at once, alone but for the thread that feeds it.
    pub fn device(id: &str, mut kernel: DeviceKernel, n: usize) -> Self {
        let name = id.to_owned();
        Self::new(id, ContestantKind::Gpu, n, move |n, watch| {
            let began = Instant::now();
            let options = CountOptions {
                devices: DeviceChoice::These(vec![DeviceName::Cpu]),
                ..Default::default()
            };
            let task = CountTask::plan(&Problem::empty(Piece::Queen, n), &options)?;
            let decomposition = task.decomposition();
            let units: Vec<u64> = (0..decomposition.units()).collect();
            let idle = Progress::nothing_yet(decomposition.units());
            // The device calls this about ten times a second to check whether to continue.
            let watch = RefCell::new(watch);
            let go_on = || (*watch.borrow_mut())(&idle).is_continue();
            let tallies = kernel.open(decomposition).and_then(|mut job| job.count(&units, &go_on));
            let tallies = tallies.map_err(|fault| match fault {
                Fault::Stopped => {
                    CountError::Stopped { units_done: 0, units: decomposition.units() }
                }
                fault => CountError::DeviceFault(name.clone(), fault.to_string()),
            })?;
            let mut total = Tally::default();
            tallies.iter().try_for_each(|tally| total.merge(tally))?;
            let solutions = total.solutions()?;
            let (elapsed, nodes) = (began.elapsed(), Some(total.nodes()));
            Ok(Run { elapsed, solutions, nodes, threads: 0, energy_j: None })
        })
    }
}

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

/// The runs of one contestant, one for each round.
#[derive(Clone, Debug)]
pub struct Measured {
    /// The contestant's name.
    pub name: String,
    /// The type of device that it counts on.
    pub kind: ContestantKind,
    /// The board size.
    pub n: usize,
    /// Its runs: at least one.
    pub runs: Vec<Run>,
}

impl Measured {
    /// Returns the solutions of each run: the published value.
    pub fn solutions(&self) -> u128 {
        self.runs[0].solutions
    }

    /// Returns the maximum number of threads of any run.
    pub fn threads(&self) -> usize {
        self.runs.iter().map(|run| run.threads).fold(0, usize::max)
    }

    /// Returns the wall-clock time in seconds.
    pub fn seconds(&self) -> Spread {
        Spread::of(self.runs.iter().map(|run| run.elapsed.as_secs_f64()))
    }

    /// Returns the solutions a second.
    pub fn solutions_per_s(&self) -> Spread {
        Spread::of(self.runs.iter().map(|run| run.rate(run.solutions)))
    }

    /// Returns the placements a second; `None` if they are not counted.
    pub fn nodes_per_s(&self) -> Option<Spread> {
        let rates: Option<Vec<f64>> =
            self.runs.iter().map(|run| Some(run.rate(run.nodes?))).collect();
        rates.map(Spread::of)
    }

    /// Returns the energy of a run in J; `None` if it is unknown for any run.
    pub fn energy_j(&self) -> Option<Spread> {
        let joules: Option<Vec<f64>> = self.runs.iter().map(|run| run.energy_j).collect();
        joules.map(Spread::of)
    }

    /// Returns the ratio of the solutions a second to those of `baseline`, compared round by
    /// round. `None` if a board has no solutions.
    pub fn ratio_to(&self, baseline: &Self) -> Option<Spread> {
        let rates = self
            .runs
            .iter()
            .zip(&baseline.runs)
            .map(|(a, b)| (a.rate(a.solutions), b.rate(b.solutions)));
        let ratios: Option<Vec<f64>> =
            rates.map(|(a, b)| (a > 0.0 && b > 0.0).then(|| a / b)).collect();
        ratios.map(Spread::of)
    }
}

/// The median and the extremes of some values.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct Spread {
    /// The median; for an even number of values, the mean of the two in the middle.
    pub median: f64,
    /// The minimum.
    pub min: f64,
    /// The maximum.
    pub max: f64,
}

impl Spread {
    /// Returns the spread of `values`.
    ///
    /// # Panics
    /// `values` is empty.
    pub fn of(values: impl IntoIterator<Item = f64>) -> Self {
        let mut values: Vec<f64> = values.into_iter().collect();
        values.sort_by(f64::total_cmp);
        let (upper, last) = (values.len() / 2, values.len() - 1);
        let lower = last / 2;
        let median = if lower == upper {
            values[upper]
        } else {
            f64::midpoint(values[lower], values[upper])
        };
        Self { median, min: values[0], max: values[last] }
    }
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
    #[error("there is no published value for n = {0} to hold the counts to; n = 27 is the largest")]
    Unpublished(usize),
    /// The callback requested a stop.
    #[error(
        "interrupted in round {round} of {rounds}, in which {name} was counting; no comparison is complete"
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
/// value. `watch` is called at the beginning of each turn and at least ten times a second; if it
/// returns `Break`, there is no comparison.
///
/// # Errors
/// A count fails or differs from the published value, there is no published value for this n, or
/// `watch` returned `Break`.
pub fn compare(
    contestants: &mut [Contestant<'_>],
    rounds: NonZeroUsize,
    mut watch: impl FnMut(&Turn<'_>) -> ControlFlow<()>,
) -> Result<Vec<Measured>, BenchError> {
    let rounds = rounds.get();
    let published = contestants
        .iter()
        .map(|c| lookup(Sequence::Total, c.n).ok_or(BenchError::Unpublished(c.n)))
        .collect::<Result<Vec<u128>, BenchError>>()?;
    let mut measured: Vec<Measured> = contestants
        .iter()
        .map(|c| Measured {
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
            let mut tell = |share: f64| {
                watch(&Turn { round, name, n, fraction: (turns_done + share) / turns })
            };
            let stopped = || BenchError::Stopped { name: name.to_owned(), round, rounds };
            if tell(0.0).is_break() {
                return Err(stopped());
            }
            let run = (contestant.count)(n, &mut |progress| tell(progress.fraction));
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

    use super::*;

    fn run(seconds: u64, solutions: u128) -> Run {
        let elapsed = Duration::from_secs(seconds);
        Run { elapsed, solutions, nodes: Some(solutions * 10), threads: 2, energy_j: Some(5.0) }
    }

    fn measured(seconds: &[u64]) -> Measured {
        let runs = seconds.iter().map(|&seconds| run(seconds, 92)).collect();
        Measured { name: "a".into(), kind: ContestantKind::Cpu, n: 8, runs }
    }

    const fn rounds(rounds: usize) -> NonZeroUsize {
        NonZeroUsize::new(rounds).expect("rounds are at least one")
    }

    #[test]
    fn the_median_is_the_middle_value_or_the_mean_of_two() {
        let spread = |values: &[f64]| {
            let Spread { median, min, max } = Spread::of(values.iter().copied());
            (median, min, max)
        };
        assert_eq!(spread(&[3.0]), (3.0, 3.0, 3.0));
        assert_eq!(spread(&[3.0, 1.0]), (2.0, 1.0, 3.0));
        assert_eq!(spread(&[9.0, 1.0, 2.0]), (2.0, 1.0, 9.0));
        assert_eq!(spread(&[9.0, 1.0, 2.0, 4.0]), (3.0, 1.0, 9.0));
    }

    #[test]
    fn ratios_compare_runs_of_the_same_round() {
        // The machine slows down from round to round, which does not affect the ratios.
        let (baseline, rival) = (measured(&[10, 20, 40]), measured(&[2, 4, 10]));
        let ratio = rival.ratio_to(&baseline).expect("boards with solutions");
        assert_eq!((ratio.median, ratio.min, ratio.max), (5.0, 4.0, 5.0));
        let same = baseline.ratio_to(&baseline).expect("boards with solutions");
        assert_eq!((same.median, same.min, same.max), (1.0, 1.0, 1.0));
    }

    #[test]
    fn boards_without_solutions_have_no_ratio() {
        let none = Measured { runs: vec![run(1, 0)], ..measured(&[]) };
        assert_eq!(none.ratio_to(&none), None);
        assert_eq!(none.solutions_per_s().median, 0.0);
    }

    #[test]
    fn rates_are_per_second_and_unknown_if_one_run_does_not_know() {
        let mut measured = measured(&[1, 2, 4]);
        assert_eq!(measured.solutions_per_s(), Spread { median: 46.0, min: 23.0, max: 92.0 });
        assert_eq!(measured.nodes_per_s(), Some(Spread { median: 460.0, min: 230.0, max: 920.0 }));
        assert_eq!(measured.energy_j().map(|joules| joules.median), Some(5.0));
        measured.runs[1].nodes = None;
        measured.runs[2].energy_j = None;
        assert_eq!((measured.nodes_per_s(), measured.energy_j()), (None, None));
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
    fn every_kernel_that_runs_here_can_compete() {
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
    fn a_watcher_that_breaks_off_stops_the_comparison_between_runs_and_within() {
        for stop_within in [false, true] {
            let mut contestants =
                [Contestant::cpu(KernelKind::Scalar, 12, None).expect("runs anywhere")];
            let mut told = 0;
            let outcome = compare(&mut contestants, rounds(2), |_| {
                told += 1;
                if told > usize::from(stop_within) {
                    ControlFlow::Break(())
                } else {
                    ControlFlow::Continue(())
                }
            });
            assert!(matches!(outcome, Err(BenchError::Stopped { round: 1, rounds: 2, .. })));
        }
    }
}
