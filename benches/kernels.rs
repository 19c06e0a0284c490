//! Compares every kernel with the textbook kernel, in turn (A B A B), in CPU seconds of one thread.
//! Each run asserts its count.
//!
//! ```text
//! cargo bench --bench kernels                 # n = 15 and 16, some minutes
//! cargo bench --bench kernels -- 17 18        # other sizes
//! cargo bench --bench kernels -- 16 avx512    # one kernel only
//! cargo bench --bench kernels -- threads 17   # one thread against all, wall clock
//! cargo bench --bench kernels -- sub-ranges 19   # units itemised by sub-ranges, against whole units
//! ```
#![allow(clippy::print_stdout)]

use std::num::NonZeroUsize;
use std::ops::Range;
use std::time::Duration;

use nqueens::board::{Piece, Problem};
use nqueens::engine::{CountOptions, count, plan_for_campaign};
use nqueens::kernel::{KernelKind, count_sub_ranges};
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
    let decomposition =
        plan_for_campaign(&Problem::empty(Piece::Queen, n)).expect("a board that is counted");
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
    let options =
        CountOptions { kernel: Some(kernel), threads: Some(threads), ..CountOptions::default() };
    let outcome =
        count(&Problem::empty(Piece::Queen, n), &options).expect("a kernel that runs here");
    assert_eq!(Some(outcome.solutions), lookup(Sequence::Total, n), "{kernel}, n = {n}");
    outcome.elapsed
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
