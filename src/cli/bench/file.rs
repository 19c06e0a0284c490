//! Benchmark files: what `nqueens bench --json` prints, kept to be compared with other machines.

use std::path::Path;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::atomic_file;
use crate::bench::{Measurements, Spread};
use crate::cli::args::cores;
use crate::cli::top::plain;
use crate::cli::{Exit, Failure};
use crate::engine::{Device, processor};
use crate::oeis::Sequence;
use crate::report::{Published, counted};

/// The output of `--json`. Fields that files of earlier builds lack are optional.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct BenchFile {
    pub(super) n: usize,
    pub(super) rounds: usize,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) machine: Option<Machine>,
    pub(super) contestants: Vec<ContestantResult>,
    /// The other files that this one is compared with.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) compared: Vec<BenchFile>,
}

/// The machine, the program and the day of a benchmark.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Machine {
    pub(super) version: String,
    /// The commit that the program was built from; null if the build did not say.
    pub(super) commit: Option<String>,
    /// The day in UTC, such as 2026-11-24.
    pub(super) date: String,
    pub(super) processor: String,
    pub(super) cores: usize,
    /// The operating system and the architecture.
    pub(super) system: String,
    pub(super) devices: Vec<Adapter>,
}

/// A device that took part.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Adapter {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) driver: String,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct ContestantResult {
    pub(super) name: String,
    pub(super) kind: String,
    /// The size of the board that it counted. The textbook kernel may count a smaller board.
    pub(super) n: usize,
    pub(super) threads: usize,
    pub(super) elapsed_s: Spread,
    pub(super) solutions: String,
    pub(super) solutions_per_s: f64,
    pub(super) nodes_per_s: Option<f64>,
    pub(super) ratio_to_textbook: Option<Spread>,
    pub(super) energy_j: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) clock_mhz: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) power_w: Option<f64>,
    pub(super) published: Published,
}

impl Machine {
    /// Returns this machine with the devices that take part.
    pub(super) fn here(devices: &[Device]) -> Self {
        let adapter = |device: &Device| {
            let info = device.info()?;
            let (id, name) = (info.id.clone(), info.name.clone());
            Some(Adapter { id, name, driver: info.driver.clone() })
        };
        Self {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            commit: option_env!("NQUEENS_COMMIT").map(str::to_owned),
            date: Timestamp::now().strftime("%F").to_string(),
            processor: processor().to_owned(),
            cores: cores(),
            system: [std::env::consts::OS, std::env::consts::ARCH].join(" "),
            devices: devices.iter().filter_map(adapter).collect(),
        }
    }

    /// Returns the lines of a chart: the processor, each adapter, and the program with the date.
    pub(super) fn lines(&self) -> Vec<String> {
        let cores = counted(self.cores as u128, "core");
        let commit = self.commit.as_ref().map_or(String::new(), |commit| format!(" ({commit})"));
        let mut lines = vec![format!("{}, {cores}, {}", self.processor, self.system)];
        lines.extend(
            self.devices
                .iter()
                .map(|Adapter { id, name, driver }| format!("{id}: {name}, {driver}")),
        );
        lines.push(format!("nqueens {}{commit}, {}", self.version, self.date));
        lines
    }
}

impl ContestantResult {
    /// Returns the result of a contestant and its ratio to the textbook kernel.
    pub(super) fn new(measured: &Measurements, baseline: &Measurements) -> Self {
        let gpu = measured.gpu().map(|spreads| spreads.map(|spread| spread.median));
        Self {
            name: measured.name.clone(),
            kind: measured.kind.name().to_owned(),
            n: measured.n,
            threads: measured.threads(),
            elapsed_s: measured.seconds(),
            solutions: measured.solutions().to_string(),
            solutions_per_s: measured.solutions_per_s().median,
            nodes_per_s: measured.nodes_per_s().map(|rate| rate.median),
            ratio_to_textbook: measured.ratio_to(baseline),
            energy_j: measured.energy_j().map(|joules| joules.median),
            clock_mhz: gpu.map(|[clock, _]| clock),
            power_w: gpu.map(|[_, power]| power),
            published: Published::compare(Sequence::Total, measured.n, measured.solutions()),
        }
    }

    /// Returns the solutions per second; their spread is that of the times.
    pub(super) fn rates(&self) -> Spread {
        let rate = |s: f64| self.solutions_per_s * self.elapsed_s.median / s.max(f64::MIN_POSITIVE);
        let Spread { min, max, .. } = self.elapsed_s;
        Spread { median: self.solutions_per_s, min: rate(max), max: rate(min) }
    }
}

impl BenchFile {
    /// Reads the file at `path`, which must be of a board of this size.
    ///
    /// # Errors
    /// The file cannot be read, is not the output of `nqueens bench --json`, is of another size, or
    /// has a count that is not the published value.
    pub(super) fn read(path: &Path, n: usize) -> Result<Self, Failure> {
        /// A file has some kilobytes.
        const LARGEST_FILE: u64 = 1 << 20;
        let shown = path.display();
        let refuse = |message: String| Failure::new(Exit::File, message);
        let text = atomic_file::read_text(path, LARGEST_FILE).map_err(|error| {
            refuse(format!("the benchmark file {shown} cannot be read: {error}"))
        })?;
        let file: Self = serde_json::from_str(&text).map_err(|error| {
            refuse(format!("{shown} is no output of nqueens bench N --json: {error}"))
        })?;
        if file.n != n {
            let message = format!(
                "{shown} is a benchmark of n = {}; compare it with nqueens bench {}",
                file.n, file.n
            );
            return Err(Failure::usage(message));
        }
        // What the file says of it is not believed.
        let is_right = |contestant: &&ContestantResult| {
            contestant.solutions.parse().is_ok_and(|solutions| {
                Published::compare(Sequence::Total, contestant.n, solutions) == Published::Agrees
            })
        };
        match file.contestants.iter().find(|contestant| !is_right(contestant)) {
            None => Ok(file),
            Some(wrong) => Err(refuse(plain(&format!(
                "{shown}: {} counted {} solutions at n = {}, which is not the published value",
                wrong.name, wrong.solutions, wrong.n
            )))),
        }
    }

    /// Returns the line that names the machine, if the file does, without control characters.
    pub(super) fn machine_line(&self) -> Option<String> {
        let machine = self.machine.as_ref()?;
        let devices = machine.devices.iter().map(|device| format!(", {}", device.name));
        let commit = machine.commit.as_ref().map_or(String::new(), |commit| format!(" ({commit})"));
        Some(plain(&format!(
            "{} with {} cores{}; {}; nqueens {}{commit}, {}",
            machine.processor,
            machine.cores,
            devices.collect::<String>(),
            machine.system,
            machine.version,
            machine.date
        )))
    }
}
