//! Checks and measurements of a GPU, in one run that ends within its time budget. Every count is
//! compared with the published value; a count that differs, or a device that fails, ends the run
//! with a panic.
//!
//! ```text
//! cargo bench --bench gpu                                # the first GPU, 420 s at most
//! cargo bench --bench gpu -- --device vulkan-10de-2335   # another device
//! cargo bench --bench gpu -- --sizes 12,13 --seconds 60  # other boards in the throughput part, less time
//! ```
//!
//! The parts, the most important first: the device; totals; throughput; the cost of bounded
//! dispatches; other shapes. Measurements that do not fit in the budget are left out and listed.
//! Lines with `#` are remarks; all others are comma-separated.
//!
//! Times of counting begin when the job's buffers exist and end with the last tally. The shaders
//! are compiled before, by counting the first prefixes of each board once.
#![allow(clippy::print_stdout, clippy::print_stderr)]

use std::process::ExitCode;
use std::time::Instant;

use nqueens::bench::Spread;
use nqueens::board::{Piece, Problem};
use nqueens::decomposition::{Decomposition, SymmetryCase};
use nqueens::engine::{CountOptions, CountTask, DeviceChoice, DeviceName};
use nqueens::kernel::gpu::layout::{TAKE, WORKGROUP};
use nqueens::kernel::gpu::{
    AdapterInfo, AdapterKind, Adapters, DeviceKernel, Fault, Shape, Tuning, self_test,
};
use nqueens::oeis::{Sequence, lookup};
use nqueens::tally::Tally;

/// The time budget in seconds.
const SECONDS: u64 = 420;
/// The board sizes of the totals.
const TOTALS: std::ops::RangeInclusive<usize> = 8..=20;
/// The board sizes of the throughput part.
const SIZES: [usize; 3] = [18, 20, 22];
/// A board of size n + 1 takes at most about this many times as long as one of size n.
const GROWTH: f64 = 9.0;
/// The least time in seconds of a count for comparing settings.
const LONG_ENOUGH: f64 = 0.25;
/// The board size for which the cost of bounded dispatches is measured, besides that of all
/// comparisons.
const BOUNDED: usize = 18;
/// A change that makes a count this many times as slow is not measured further.
const SLOW: f64 = 8.0;
/// The number of pairs of counts for the cost of bounded dispatches, and for another shape.
const BOUNDED_PAIRS: usize = 5;
const SHAPE_PAIRS: usize = 3;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| word != "--bench").collect();
    let began = Instant::now();
    match Arguments::read(&words).and_then(|arguments| Bench::begin(&arguments, began)) {
        Ok(Some(mut bench)) => {
            bench.run();
            ExitCode::SUCCESS
        }
        Ok(None) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("gpu: {message}");
            ExitCode::from(2)
        }
    }
}

/// The arguments of the command line.
struct Arguments {
    seconds: u64,
    device: Option<String>,
    sizes: Vec<usize>,
}

impl Arguments {
    fn read(words: &[String]) -> Result<Self, String> {
        let mut arguments = Self { seconds: SECONDS, device: None, sizes: SIZES.to_vec() };
        for pair in words.chunks(2) {
            let [flag, value] = pair else { return Err(format!("{} has no value", pair[0])) };
            let wrong = || format!("{flag} cannot be {value}");
            match flag.as_str() {
                "--seconds" => arguments.seconds = value.parse().map_err(|_| wrong())?,
                "--device" => arguments.device = Some(value.clone()),
                "--sizes" => {
                    let sizes = value
                        .split(',')
                        .map(|n| n.parse().ok().filter(|&n| published(n).is_some()));
                    arguments.sizes = sizes.collect::<Option<Vec<usize>>>().ok_or_else(wrong)?;
                }
                _ => {
                    return Err(format!(
                        "unknown: {flag}; known: --seconds S, --device ID, --sizes N,N"
                    ));
                }
            }
        }
        arguments.sizes.sort_unstable();
        Ok(arguments)
    }
}

/// Returns the value of OEIS A000170.
fn published(n: usize) -> Option<u128> {
    lookup(Sequence::Total, n)
}

/// A board with the same units as in the program.
struct Board {
    n: usize,
    task: CountTask,
    /// The time of the decomposition, in seconds.
    plan_s: f64,
}

/// The times of a count in seconds: allocating memory for the job, and counting.
#[derive(Clone, Copy)]
struct Counted {
    room_s: f64,
    count_s: f64,
    turns: u128,
}

impl Board {
    fn plan(n: usize) -> Self {
        let began = Instant::now();
        let options = CountOptions {
            devices: DeviceChoice::These(vec![DeviceName::Cpu]),
            ..Default::default()
        };
        let task = CountTask::plan(&Problem::empty(Piece::Queen, n), &options)
            .expect("a board that is counted");
        Self { n, task, plan_s: began.elapsed().as_secs_f64() }
    }

    fn solutions(&self) -> u128 {
        published(self.n).expect("a size whose total is known")
    }

    /// Counts below one prefix of each symmetry case, so that all variants of the search are
    /// compiled.
    fn warm_up(&self, kernel: &mut DeviceKernel) -> Result<(), Fault> {
        let prefixes = self.task.decomposition().clone().with_unit_prefixes(1);
        let mut firsts: Vec<u64> = Vec::new();
        let (mut index, mut last) = (0, None);
        prefixes.for_each(0..prefixes.prefixes(), |plan, _| {
            if last.is_none_or(|last| !std::ptr::eq::<SymmetryCase>(last, plan)) {
                firsts.push(index);
                last = Some(plan);
            }
            index += 1;
        });
        kernel.open(&prefixes)?.count(&firsts, &|| true)?;
        Ok(())
    }

    /// Counts the board. Returns [`Fault::Stopped`] soon after `most_s` seconds.
    ///
    /// # Panics
    /// The count is wrong.
    fn count(&self, kernel: &mut DeviceKernel, most_s: f64) -> Result<Counted, Fault> {
        let decomposition: &Decomposition = self.task.decomposition();
        let units: Vec<u64> = (0..decomposition.units()).collect();
        let began = Instant::now();
        let mut job = kernel.open(decomposition)?;
        let room_s = began.elapsed().as_secs_f64();
        let began = Instant::now();
        let tallies = job.count(&units, &|| began.elapsed().as_secs_f64() < most_s)?;
        let mut total = Tally::default();
        tallies.iter().try_for_each(|tally| total.merge(tally))?;
        let count_s = began.elapsed().as_secs_f64();
        assert_eq!(total.solutions()?, self.solutions(), "n = {}", self.n);
        Ok(Counted { room_s, count_s, turns: total.nodes() })
    }
}

/// A setting of the device, and the tuning that it resulted in.
#[derive(Clone, Copy)]
struct Setting {
    shape: Shape,
    look_ahead: bool,
    in_flight: usize,
    tuning: Tuning,
}

/// A change of one parameter of the default setting.
#[derive(Clone, Copy, PartialEq)]
enum Change {
    Nothing,
    Lanes(u32),
    LookAhead(bool),
    InFlight(usize),
    Chunk(u32),
    Ring(u32),
}

impl Change {
    /// Returns the changes to try, by factors of the device's default shape.
    fn all(shape: Shape) -> Vec<Self> {
        let scaled = |value: u32, power: i32| {
            value.checked_shl(power.max(0).cast_unsigned()).map(|v| v >> (-power).max(0))
        };
        let powers = |value: u32, powers: &[i32]| -> Vec<u32> {
            powers
                .iter()
                .filter_map(|&power| scaled(value, power))
                .filter(|&scaled| scaled >= 64)
                .collect()
        };
        // The first compares the default with itself, which shows how exact a ratio is.
        let mut changes = vec![Self::Nothing];
        changes.extend(powers(shape.lanes, &[-1, 1, -2, 2, -3, -4]).into_iter().map(Self::Lanes));
        // Between these: a device rarely has a power of two of workgroups resident.
        let quarter = shape.lanes / 4 / WORKGROUP * WORKGROUP;
        let between = [3, 5, 6].map(|quarters| quarters * quarter);
        changes.extend(between.into_iter().filter(|&lanes| lanes > 0).map(Self::Lanes));
        changes.extend([Self::LookAhead(false), Self::InFlight(1), Self::InFlight(3)]);
        changes.extend(powers(shape.chunk, &[-2, -4, 1, -6]).into_iter().map(Self::Chunk));
        changes.extend(powers(shape.ring, &[-1, -2, 1, 2]).into_iter().map(Self::Ring));
        changes
    }

    fn apply(self, setting: &mut Setting) {
        let shape = &mut setting.shape;
        match self {
            Self::Nothing => {}
            Self::Lanes(lanes) => {
                shape.lanes = lanes;
                // Half of the ring is for the states that lanes return.
                shape.ring = shape.ring.max((4 * lanes * TAKE).next_power_of_two());
            }
            Self::LookAhead(look_ahead) => setting.look_ahead = look_ahead,
            Self::InFlight(in_flight) => setting.in_flight = in_flight,
            Self::Chunk(chunk) => shape.chunk = chunk,
            Self::Ring(ring) => shape.ring = ring,
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Nothing => "nothing",
            Self::Lanes(_) => "lanes",
            Self::LookAhead(_) => "look-ahead",
            Self::InFlight(_) => "in flight",
            Self::Chunk(_) => "chunk",
            Self::Ring(_) => "ring",
        }
    }
}

/// A device under measurement.
struct Bench {
    began: Instant,
    seconds: f64,
    sizes: Vec<usize>,
    adapters: Adapters,
    info: AdapterInfo,
    kernel: DeviceKernel,
    /// The time of the last count of each board, in seconds.
    counted: Vec<(usize, f64)>,
    /// The number of measurements that were left out.
    left_out: usize,
}

impl Bench {
    /// Opens the device and describes it: the first part. Returns `None`, with a message, if there
    /// is none.
    fn begin(arguments: &Arguments, began: Instant) -> Result<Option<Self>, String> {
        let adapters = Adapters::find();
        let find_s = began.elapsed().as_secs_f64();
        let chosen = match &arguments.device {
            Some(id) => {
                let named = adapters.infos().find(|info| info.id == *id);
                Some(named.ok_or_else(|| format!("no device '{id}' here"))?)
            }
            None => {
                let hardware = adapters.infos().find(|info| info.kind != AdapterKind::Software);
                hardware.or_else(|| adapters.infos().next())
            }
        };
        let Some(info) = chosen.cloned() else {
            let why =
                if cfg!(feature = "gpu") { "no adapter" } else { "built without the feature gpu" };
            if std::env::var("NQUEENS_EXPECT_ADAPTER").is_ok_and(|value| value == "1") {
                return Err(format!("{why}, and one is expected here"));
            }
            eprintln!("gpu: nothing to measure: {why}");
            return Ok(None);
        };
        println!("# the device");
        println!("what,value");
        println!("id,{}", info.id);
        println!("name,{}", info.name);
        println!("kind,{}", info.kind.name());
        println!("driver,{}", info.driver);
        println!("buffer_bytes_at_most,{}", info.most_buffer_bytes);
        println!("workgroup_bytes_at_most,{}", info.workgroup_bytes);
        println!("workgroup_lanes_at_most,{}", info.workgroup_lanes);
        println!("lanes_in_step,{}", info.subgroup_lanes);
        println!("find_s,{find_s:.3}");
        let opening = Instant::now();
        let kernel = open(&adapters, &info);
        println!("open_s,{:.3}", opening.elapsed().as_secs_f64());
        let (sizes, seconds) = (arguments.sizes.clone(), arguments.seconds as f64);
        let (counted, left_out) = (Vec::new(), 0);
        let mut bench = Self { began, seconds, sizes, adapters, info, kernel, counted, left_out };
        let testing = Instant::now();
        self_test(&mut bench.kernel, false).expect("a device that passes its self-test");
        println!("self_test_s,{:.3}", testing.elapsed().as_secs_f64());
        let Shape { lanes, chunk, ring, prefixes } = bench.kernel.shape();
        println!("shape,{lanes} lanes; chunk {chunk}; ring {ring}; {prefixes} prefixes");
        Ok(Some(bench))
    }

    fn run(&mut self) {
        self.totals();
        self.throughput();
        match self.size_to_compare() {
            Some(n) => {
                if n != BOUNDED && self.counted.iter().any(|&(m, _)| m == BOUNDED) {
                    self.bounded(&Board::plan(BOUNDED));
                }
                let board = Board::plan(n);
                self.bounded(&board);
                self.shapes(&board);
            }
            None => self.leave_out("bounded dispatches and shapes: no board was counted"),
        }
        let spent_s = self.seconds - self.left_s();
        println!(
            "# {spent_s:.0} s of {:.0} s; left out, as listed above: {}",
            self.seconds, self.left_out
        );
    }

    /// Returns the rest of the budget, in seconds.
    fn left_s(&self) -> f64 {
        self.seconds - self.began.elapsed().as_secs_f64()
    }

    fn leave_out(&mut self, what: &str) {
        println!("# left out: {what}; {:.0} s of the budget are left", self.left_s().max(0.0));
        self.left_out += 1;
    }

    /// Does the same after a fault. A count that was stopped took too long; other faults do not end
    /// the run unless the device counts wrongly.
    fn leave_out_after(&mut self, fault: &Fault, what: &str) {
        match fault {
            Fault::Stopped => return self.leave_out(&format!("{what}: it takes too long")),
            Fault::Miscounts(_) | Fault::Tally(_) => panic!("{what}: {fault}"),
            _ => self.leave_out(&format!("{what}: {fault}")),
        }
        // After a fault a device is not used again.
        self.kernel = open(&self.adapters, &self.info);
    }

    /// Estimates the time of a count in seconds, from the largest board counted up to n.
    fn forecast_s(&self, n: usize) -> f64 {
        let up_to = self.counted.iter().filter(|(m, _)| *m <= n).max_by_key(|(m, _)| *m);
        up_to.map_or(0.0, |&(m, seconds)| seconds * GROWTH.powi((n - m) as i32))
    }

    fn remember(&mut self, n: usize, seconds: f64) {
        self.counted.retain(|&(m, _)| m != n);
        self.counted.push((n, seconds));
    }

    /// Counts totals and compares each with the published value, up to a board that would take a
    /// seventh of the budget.
    fn totals(&mut self) {
        println!("# totals, each equal to the published value");
        println!("n,solutions,count_s,solutions_per_s");
        for n in TOTALS {
            let most_s = (self.seconds / 7.0).min(60.0).min(self.left_s());
            let forecast_s = self.forecast_s(n);
            // The first boards take no longer than a submission or two.
            if forecast_s > most_s.max(1.0) || most_s <= 0.0 {
                self.leave_out(&format!("totals from n = {n} on, about {forecast_s:.0} s"));
                return;
            }
            let board = Board::plan(n);
            board.warm_up(&mut self.kernel).expect("a device that works");
            match board.count(&mut self.kernel, most_s) {
                Ok(Counted { count_s, .. }) => {
                    let solutions = board.solutions();
                    println!("{n},{solutions},{count_s:.4},{:.4e}", solutions as f64 / count_s);
                    self.remember(n, count_s);
                }
                Err(Fault::Stopped) => {
                    self.leave_out(&format!(
                        "totals from n = {n} on, which takes more than {most_s:.0} s"
                    ));
                    return;
                }
                Err(fault) => panic!("n = {n}: {fault}"),
            }
        }
    }

    /// Measures rates, and prints the results of the tuning.
    fn throughput(&mut self) {
        println!(
            "# throughput; plan_s: decomposing the board into units, room_s: allocating the device's memory"
        );
        println!("n,run,count_s,room_s,plan_s,solutions_per_s,turns_per_s,turns,rounds,expansions");
        for n in self.sizes.clone() {
            let forecast_s = self.forecast_s(n);
            if forecast_s > self.left_s() {
                self.leave_out(&format!("throughput at n = {n}, about {forecast_s:.0} s"));
                continue;
            }
            let board = Board::plan(n);
            board.warm_up(&mut self.kernel).expect("a device that works");
            let runs = if forecast_s < 5.0 { 3 } else { 1 };
            for run in 1..=runs {
                let left_s = self.left_s();
                match board.count(&mut self.kernel, left_s) {
                    Ok(Counted { room_s, count_s, turns }) => {
                        let rate = |count: u128| count as f64 / count_s;
                        let (solutions, tuning) = (rate(board.solutions()), self.kernel.tuning());
                        println!(
                            "{n},{run},{count_s:.4},{room_s:.4},{:.4},{solutions:.4e},{:.4e},{},{},{}",
                            board.plan_s,
                            rate(turns),
                            tuning.turns,
                            tuning.rounds,
                            tuning.expansions
                        );
                        self.remember(n, count_s);
                    }
                    Err(Fault::Stopped) => {
                        self.leave_out(&format!(
                            "throughput at n = {n}, run {run}: it takes too long"
                        ));
                        break;
                    }
                    Err(fault) => panic!("n = {n}: {fault}"),
                }
            }
        }
    }

    /// Returns the largest board counted so far with which all comparisons fit in the rest of the
    /// budget; otherwise the smallest that takes long enough to be measured.
    fn size_to_compare(&self) -> Option<usize> {
        let counts = 2 * (BOUNDED_PAIRS + 1)
            + 2 * (SHAPE_PAIRS + 1) * (Change::all(self.kernel.shape()).len() + 1);
        let most_s = self.left_s() / counts as f64;
        let sizes = |least_s: f64, most_s: f64| {
            let within = move |&&(_, seconds): &&(usize, f64)| (least_s..most_s).contains(&seconds);
            self.counted.iter().filter(within).map(|&(n, _)| n)
        };
        let fitting = sizes(LONG_ENOUGH, most_s).max();
        fitting
            .or_else(|| sizes(LONG_ENOUGH, f64::INFINITY).min())
            .or_else(|| sizes(0.0, f64::INFINITY).max())
    }

    /// Measures the cost of bounded dispatches: the tuned amounts against the longest searches, in
    /// turn.
    fn bounded(&mut self, board: &Board) {
        let n = board.n;
        println!(
            "# tuned dispatches against the longest searches that a dispatch can have, n = {n}"
        );
        let needed_s = (2 * BOUNDED_PAIRS + 3) as f64 * self.forecast_s(n);
        if needed_s > self.left_s() {
            return self
                .leave_out(&format!("bounded dispatches at n = {n}, about {needed_s:.0} s"));
        }
        let before = self.kernel.tuning();
        if let Err(fault) = self.measure_bounded(board) {
            self.leave_out_after(&fault, &format!("bounded dispatches at n = {n}"));
        }
        self.kernel.freeze_tuning(false);
        self.kernel.set_tuning(before);
    }

    fn measure_bounded(&mut self, board: &Board) -> Result<(), Fault> {
        let seconds = |tuning: Tuning, kernel: &mut DeviceKernel, most_s: f64| {
            kernel.set_tuning(tuning);
            board.count(kernel, most_s).map(|counted| counted.count_s)
        };
        let left_s = self.left_s();
        seconds(self.kernel.tuning(), &mut self.kernel, left_s)?;
        let tuned = self.kernel.tuning();
        let mut longest = tuned.longest();
        // As many expansions per turn as before, unless a submission would become too long.
        let per_search =
            u64::from(tuned.expansions) * u64::from(longest.turns) / u64::from(tuned.turns);
        longest.expansions = longest.expansions.max(per_search.min(256) as u32);
        let amounts = |Tuning { turns, rounds, expansions, .. }: Tuning| {
            format!("{turns} turns, {rounds} rounds, {expansions} expansions")
        };
        println!("# tuned: {}; longest: {}", amounts(tuned), amounts(longest));
        println!("n,pair,tuned_s,longest_s,tuned_by_longest");
        self.kernel.freeze_tuning(true);
        let mut ratios = Vec::new();
        for pair in 0..=BOUNDED_PAIRS {
            let left_s = self.left_s();
            let tuned_s = seconds(tuned, &mut self.kernel, left_s)?;
            let longest_s = seconds(longest, &mut self.kernel, left_s - tuned_s)?;
            // The first pair is only a warm-up.
            if pair > 0 {
                println!(
                    "{},{pair},{tuned_s:.4},{longest_s:.4},{:.4}",
                    board.n,
                    tuned_s / longest_s
                );
                ratios.push(tuned_s / longest_s);
            }
        }
        let Spread { median, min, max } = Spread::of(ratios);
        println!("# n = {}: tuned / longest = {median:.3} ({min:.3} to {max:.3})", board.n);
        Ok(())
    }

    /// Returns the default shape of the board's job on this device.
    fn fitted(&mut self, board: &Board) -> Shape {
        self.kernel
            .open(board.task.decomposition())
            .expect("a device that works")
            .shape()
            .expect("a job of prefixes")
    }

    /// Measures other shapes and settings, each against the default in turn.
    fn shapes(&mut self, board: &Board) {
        println!("# n = {}, with changes; times_as_fast: default_s / changed_s", board.n);
        println!(
            "changed,lanes,chunk,ring,look_ahead,in_flight,turns,rounds,expansions,default_s,changed_s,\
             times_as_fast,least,greatest"
        );
        let mut default = Setting {
            shape: self.fitted(board),
            look_ahead: true,
            in_flight: DeviceKernel::IN_FLIGHT,
            tuning: self.kernel.tuning(),
        };
        // The best of each kind, if it is better than the default in every pair.
        let mut best: Vec<(Change, f64)> = Vec::new();
        for change in Change::all(default.shape) {
            let Some(times) = self.try_changes(board, &mut default, &[change]) else { continue };
            if change == Change::Nothing || times.min <= 1.0 {
                continue;
            }
            let ratio = times.median;
            match best.iter_mut().find(|(other, _)| other.name() == change.name()) {
                Some(other) if other.1 < ratio => *other = (change, ratio),
                Some(_) => {}
                None => best.push((change, ratio)),
            }
        }
        if best.len() > 1 {
            let changes: Vec<Change> = best.iter().map(|&(change, _)| change).collect();
            self.try_changes(board, &mut default, &changes);
        }
        let best = best.into_iter().max_by(|a, b| a.1.total_cmp(&b.1));
        match best {
            Some((change, ratio)) => {
                let mut setting = default;
                change.apply(&mut setting);
                let Setting { shape, look_ahead, in_flight, .. } = setting;
                let Shape { lanes, chunk, ring, .. } = shape;
                let what =
                    format!("{},{lanes},{chunk},{ring},{look_ahead},{in_flight}", change.name());
                println!("# best single change: {what}: {ratio:.3} times as fast");
            }
            None => println!("# best: the default"),
        }
    }

    /// Counts with the default and with the changes in turn, and prints the line. Returns how many
    /// times as fast the changed setting is, or `None` if it was not measured.
    fn try_changes(
        &mut self,
        board: &Board,
        default: &mut Setting,
        changes: &[Change],
    ) -> Option<Spread> {
        let names: Vec<&str> = changes.iter().map(|change| change.name()).collect();
        let name = names.join(" and ");
        let mut changed = *default;
        changes.iter().for_each(|change| change.apply(&mut changed));
        let Shape { lanes, chunk, ring, .. } = changed.shape;
        let what =
            format!("{name},{lanes},{chunk},{ring},{},{}", changed.look_ahead, changed.in_flight);
        let default_s = self.forecast_s(board.n);
        let needed_s = 2.0 * (SHAPE_PAIRS + 1) as f64 * default_s;
        if needed_s > self.left_s() {
            self.leave_out(&format!("{what}: about {needed_s:.0} s"));
            return None;
        }
        match self.compare(board, default, &mut changed) {
            Ok(runs) => {
                let times =
                    Spread::of(runs.iter().map(|(default_s, changed_s)| default_s / changed_s));
                let default_s = Spread::of(runs.iter().map(|run| run.0)).median;
                let changed_s = Spread::of(runs.iter().map(|run| run.1)).median;
                self.remember(board.n, default_s);
                let Tuning { turns, rounds, expansions, .. } = changed.tuning;
                println!(
                    "{what},{turns},{rounds},{expansions},{default_s:.4},{changed_s:.4},{:.3},{:.3},{:.3}",
                    times.median, times.min, times.max
                );
                Some(times)
            }
            Err(fault) => {
                self.leave_out_after(&fault, &what);
                None
            }
        }
    }

    /// Returns pairs of times in seconds, after a first pair that compiles and tunes.
    fn compare(
        &mut self,
        board: &Board,
        default: &mut Setting,
        changed: &mut Setting,
    ) -> Result<Vec<(f64, f64)>, Fault> {
        let most_s = SLOW * self.forecast_s(board.n);
        let mut runs = Vec::with_capacity(SHAPE_PAIRS + 1);
        for _ in 0..=SHAPE_PAIRS {
            let default_s = self.count_with(board, default, most_s)?;
            runs.push((default_s, self.count_with(board, changed, most_s)?));
        }
        Ok(runs.split_off(1))
    }

    /// Returns the time of a count with a setting in seconds, and continues the tuning of the
    /// setting.
    fn count_with(
        &mut self,
        board: &Board,
        setting: &mut Setting,
        most_s: f64,
    ) -> Result<f64, Fault> {
        let most_s = most_s.min(self.left_s());
        let kernel = &mut self.kernel;
        kernel.set_shape(setting.shape);
        kernel.set_look_ahead(setting.look_ahead);
        kernel.set_in_flight(setting.in_flight);
        kernel.set_tuning(setting.tuning);
        if kernel.open(board.task.decomposition())?.shape() != Some(setting.shape) {
            return Err(Fault::Refused("this shape does not fit".into()));
        }
        let counted = board.count(kernel, most_s)?;
        setting.tuning = kernel.tuning();
        Ok(counted.count_s)
    }
}

fn open(adapters: &Adapters, info: &AdapterInfo) -> DeviceKernel {
    adapters.open(&info.id).expect("an adapter that was found").expect("a device that opens")
}
