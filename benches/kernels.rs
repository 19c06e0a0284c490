//! Compares every kernel with the textbook kernel, in turn (A B A B), in CPU seconds of one thread.
//! Each run asserts its count.
//!
//! ```text
//! cargo bench --bench kernels                 # n = 15 and 16, some minutes
//! cargo bench --bench kernels -- 17 18        # other sizes
//! cargo bench --bench kernels -- 16 avx512    # one kernel only
//! cargo bench --bench kernels -- sets 17 18   # column sets against prefixes, with the same instructions
//! cargo bench --bench kernels -- units 20     # the times of units of a campaign by column sets
//! cargo bench --bench kernels -- threads 17   # one thread against all, wall clock
//! cargo bench --bench kernels -- sub-ranges 19   # units itemised by sub-ranges, against whole units
//! ```
#![allow(clippy::print_stdout)]

use std::num::NonZeroUsize;
use std::ops::Range;
use std::time::Duration;

use nqueens::board::{Piece, Problem, Square};
use nqueens::decomposition::Subproblems;
use nqueens::engine::{CountOptions, CountOutcome, count, plan_for_campaign};
use nqueens::kernel::{KernelKind, count_range, count_sub_ranges};
use nqueens::oeis::{Sequence, lookup};
use nqueens::tally::Parts;

/// The number of pairs of runs.
const ROUNDS: usize = 5;
/// Board sizes if none are given.
const SIZES: [usize; 2] = [15, 16];

fn main() {
    let words: Vec<String> =
        std::env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
    let mut sizes: Vec<usize> = words.iter().filter_map(|word| word.parse().ok()).collect();
    if sizes.is_empty() {
        sizes.extend(SIZES);
    }
    if words.iter().any(|word| word == "threads") {
        return sizes.into_iter().for_each(compare_threads);
    }
    if words.iter().any(|word| word == "sub-ranges") {
        return sizes.into_iter().for_each(compare_sub_ranges);
    }
    if words.iter().any(|word| word == "sets") {
        return sizes.into_iter().for_each(compare_sets);
    }
    if words.iter().any(|word| word == "units") {
        return sizes.into_iter().for_each(time_units);
    }
    let named: Vec<KernelKind> = words.iter().filter_map(|word| word.parse().ok()).collect();
    let rivals = [KernelKind::Generic, KernelKind::Scalar, KernelKind::Avx2, KernelKind::Avx512];
    let rivals: Vec<KernelKind> = if named.is_empty() { rivals.to_vec() } else { named };
    for n in sizes {
        for &rival in rivals.iter().filter(|kind| kind.runs_here()) {
            compare(n, rival);
        }
    }
}

/// Prints how many times as fast as the textbook kernel `rival` is.
fn compare(n: usize, rival: KernelKind) {
    let runs: Vec<(f64, f64)> = (0..ROUNDS)
        .map(|_| {
            (
                cpu_seconds(n, KernelKind::Textbook).as_secs_f64(),
                cpu_seconds(n, rival).as_secs_f64(),
            )
        })
        .collect();
    let ratio = spread(runs.iter().map(|(textbook, rival)| textbook / rival));
    let seconds = spread(runs.iter().map(|run| run.1));
    println!("n = {n:2}  {rival:8}  {seconds} s  textbook / {rival} = {ratio}");
}

/// Prints how many times as fast column sets are as prefixes, with each instruction set: on the
/// empty board and with a blocked square.
fn compare_sets(n: usize) {
    let blocked = Problem::new(Piece::Queen, n, Vec::new(), vec![Square::new(0, 1)]);
    let blocked = blocked.expect("a square of the board");
    for (board, problem) in [("empty", Problem::empty(Piece::Queen, n)), ("blocked", blocked)] {
        for prefixes in [KernelKind::Scalar, KernelKind::Avx2, KernelKind::Avx512] {
            let sets = prefixes.for_sets();
            if !prefixes.runs_here() || !sets.runs_here() {
                continue;
            }
            let seconds = |kernel| {
                let before = cpu_clock();
                let solutions = run_on(&problem, kernel, NonZeroUsize::MIN).solutions;
                ((cpu_clock() - before).as_secs_f64(), solutions)
            };
            let runs: Vec<[f64; 2]> = (0..ROUNDS)
                .map(|_| {
                    let ((a, counted), (b, again)) = (seconds(prefixes), seconds(sets));
                    assert_eq!(counted, again, "{prefixes}, {sets}, n = {n}");
                    [a, b]
                })
                .collect();
            println!(
                "n = {n:2}, {board:7}  {sets:11} {} s  {prefixes} / {sets} = {}",
                spread(runs.iter().map(|run| run[1])),
                spread(runs.iter().map(|run| run[0] / run[1])),
            );
        }
    }
}

/// Prints how much the CPU times of units differ that a campaign by column sets has, for units that
/// are spread over the job: by the forecast all units take equally long.
fn time_units(n: usize) {
    // From n = 23 on a unit takes several seconds.
    let units: u64 = if n <= 22 { 300 } else { 60 };
    let problem = Problem::empty(Piece::Queen, n);
    let planned = plan_for_campaign(&problem, Subproblems::ColumnSets);
    let planned = planned.expect("a board that is counted");
    let kind = KernelKind::fastest_for_sets();
    let mut kernel = kind.build(Piece::Queen).expect("runs here");
    let measured = units.min(planned.units());
    let mut times: Vec<f64> = (0..measured)
        .map(|i| {
            let unit = planned.unit((2 * i + 1) * planned.units() / (2 * measured));
            let before = cpu_clock();
            count_range(&mut *kernel, &planned, unit).expect("128 bits are enough");
            (cpu_clock() - before).as_secs_f64()
        })
        .collect();
    let count = times.len() as f64;
    let mean = times.iter().sum::<f64>() / count;
    let variance = times.iter().map(|time| (time - mean).powi(2)).sum::<f64>() / count;
    times.sort_by(f64::total_cmp);
    let at = |share: f64| times[((count - 1.0) * share) as usize];
    println!(
        "n = {n:2}  {kind}  {measured} of {} units of {} subproblems: mean {mean:.3} s, coefficient of \
         variation {:.3}, {:.3} to {:.3} s, 5 % below {:.3} s and above {:.3} s",
        planned.units(),
        planned.job().unit_prefixes(),
        variance.sqrt() / mean,
        times[0],
        times[times.len() - 1],
        at(0.05),
        at(0.95),
    );
}

/// Prints how many times as fast all cores are as one.
fn compare_threads(n: usize) {
    let wall = |threads| run(n, KernelKind::fastest(Piece::Queen), threads).as_secs_f64();
    let all = std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
    let ratio = spread((0..ROUNDS).map(|_| wall(NonZeroUsize::MIN) / wall(all)));
    println!("n = {n:2}  1 thread / {all} threads, wall clock = {ratio}");
}

/// Prints, for units that are spread over the job, the time of a unit itemised by sub-ranges as a
/// ratio to the time of the whole unit, and the time of a spot check as a ratio to its share of the
/// unit.
fn compare_sub_ranges(n: usize) {
    const UNITS: u64 = 5;
    let decomposition = plan_for_campaign(&Problem::empty(Piece::Queen, n), Subproblems::Prefixes)
        .expect("a board that is counted");
    let mut kernel = KernelKind::fastest(Piece::Queen).build(Piece::Queen).expect("runs here");
    let (mut all, mut spot) = (Vec::new(), Vec::new());
    for unit in (0..UNITS).map(|i| (2 * i + 1) * decomposition.units() / (2 * UNITS)) {
        let mut time = |ranges: Vec<Range<u64>>| {
            let before = cpu_clock();
            let parts = count_sub_ranges(&mut *kernel, &decomposition, ranges)
                .expect("128 bits are enough");
            (cpu_clock() - before, parts)
        };
        let ranges: Vec<Range<u64>> = decomposition.sub_ranges(unit).collect();
        let (whole, sum) = time(vec![decomposition.unit(unit)]);
        let (itemised, sums) = time(ranges.clone());
        let mut total = Parts::default();
        sums.iter().for_each(|part| total.merge(part).expect("small"));
        assert_eq!(total.total(), sum[0].total());
        let two = vec![ranges[ranges.len() / 3].clone(), ranges[2 * ranges.len() / 3].clone()];
        let share = two.len() as f64 / ranges.len() as f64;
        let (of_two, _) = time(two);
        all.push(itemised.as_secs_f64() / whole.as_secs_f64());
        spot.push(of_two.as_secs_f64() / whole.as_secs_f64() / share);
    }
    println!(
        "n = {n:2}  {} units: itemised / whole = {}, spot check / its share = {}",
        decomposition.units(),
        spread(all.into_iter()),
        spread(spot.into_iter())
    );
}

/// Formats values as "median (min to max)".
fn spread(values: impl Iterator<Item = f64>) -> String {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    format!("{:.3} ({:.3} to {:.3})", values[values.len() / 2], values[0], values[values.len() - 1])
}

/// Counts, asserts the count and returns the wall-clock time.
fn run(n: usize, kernel: KernelKind, threads: NonZeroUsize) -> Duration {
    let outcome = run_on(&Problem::empty(Piece::Queen, n), kernel, threads);
    assert_eq!(Some(outcome.solutions), lookup(Sequence::Total, n), "{kernel}, n = {n}");
    outcome.elapsed
}

fn run_on(problem: &Problem, kernel: KernelKind, threads: NonZeroUsize) -> CountOutcome {
    let options =
        CountOptions { kernel: Some(kernel), threads: Some(threads), ..CountOptions::default() };
    count(problem, &options).expect("a kernel that runs here")
}

/// Returns the CPU time of the whole count on one thread, including planning.
fn cpu_seconds(n: usize, kernel: KernelKind) -> Duration {
    let before = cpu_clock();
    run(n, kernel, NonZeroUsize::MIN);
    cpu_clock() - before
}

#[cfg(unix)]
fn cpu_clock() -> Duration {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::try_from(now).expect("a clock that runs forward")
}

/// Returns the wall-clock time, since there is no CPU clock.
#[cfg(not(unix))]
fn cpu_clock() -> Duration {
    static START: std::sync::LazyLock<std::time::Instant> =
        std::sync::LazyLock::new(std::time::Instant::now);
    START.elapsed()
}
