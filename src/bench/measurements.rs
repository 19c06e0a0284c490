//! The runs of a contestant, and the rates derived from them.

use super::contestant::{ContestantKind, Run};
use super::gpu_meter::GpuReadings;
use super::spread::Spread;

/// The runs of one contestant, one for each round.
#[derive(Clone, Debug)]
pub struct Measurements {
    /// The contestant's name.
    pub name: String,
    /// The type of device that it counts on.
    pub kind: ContestantKind,
    /// The board size.
    pub n: usize,
    /// Its runs: at least one.
    pub runs: Vec<Run>,
}

impl Measurements {
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

    /// Returns the clock in MHz and the power in W of a GPU; `None` if they are unknown for any
    /// run.
    pub fn gpu(&self) -> Option<[Spread; 2]> {
        let readings: Option<Vec<GpuReadings>> = self.runs.iter().map(|run| run.gpu).collect();
        readings.map(|readings| {
            [
                Spread::of(readings.iter().map(|gpu| gpu.clock_mhz)),
                Spread::of(readings.iter().map(|gpu| gpu.power_w)),
            ]
        })
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

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn run(seconds: u64, solutions: u128) -> Run {
        let elapsed = Duration::from_secs(seconds);
        let gpu = Some(GpuReadings { clock_mhz: 1500.0, power_w: 100.0 });
        let nodes = Some(solutions * 10);
        Run { elapsed, solutions, nodes, threads: 2, energy_j: Some(5.0), gpu }
    }

    fn measured(seconds: &[u64]) -> Measurements {
        let runs = seconds.iter().map(|&seconds| run(seconds, 92)).collect();
        Measurements { name: "a".into(), kind: ContestantKind::Cpu, n: 8, runs }
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
        let none = Measurements { runs: vec![run(1, 0)], ..measured(&[]) };
        assert_eq!(none.ratio_to(&none), None);
        assert_eq!(none.solutions_per_s().median, 0.0);
    }

    #[test]
    fn rates_are_per_second_and_unknown_if_one_run_has_none() {
        let mut measured = measured(&[1, 2, 4]);
        assert_eq!(measured.solutions_per_s(), Spread { median: 46.0, min: 23.0, max: 92.0 });
        assert_eq!(measured.nodes_per_s(), Some(Spread { median: 460.0, min: 230.0, max: 920.0 }));
        assert_eq!(measured.energy_j().map(|joules| joules.median), Some(5.0));
        let gpu = measured.gpu().map(|spreads| spreads.map(|spread| spread.median));
        assert_eq!(gpu, Some([1500.0, 100.0]));
        measured.runs[0].gpu = None;
        assert!(measured.gpu().is_none());
        measured.runs[1].nodes = None;
        measured.runs[2].energy_j = None;
        assert_eq!((measured.nodes_per_s(), measured.energy_j()), (None, None));
    }
}
