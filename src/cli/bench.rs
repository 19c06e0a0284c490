//! `nqueens bench`.

mod file;

use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::path::PathBuf;

use file::{BenchFile, ContestantResult, Machine};

use super::args::{DeviceArgs, OrAuto, ThreadsArg, board_size, number, or_auto};
use super::chart::{Bar, PNG_HELP, SVG_HELP, svg, write_chart};
use super::interrupt::Interrupt;
use super::picture_args::PictureArgs;
use super::progress::{STEPS, progress_bar};
use super::top::plain;
use super::{Exit, Failure, json_line, note, print};
use crate::bench::{BenchError, Contestant, Measurements, Spread, Turn, compare};
use crate::board::{Piece, Problem};
use crate::engine::{CountError, Device, DeviceChoice, find_devices};
use crate::kernel::KernelKind;
use crate::kernel::gpu::self_test;
use crate::oeis::{Sequence, lookup};
use crate::report::{counted, rounded};

/// The help of `--device`.
const DEVICE_HELP: &str = "\
The devices to compare with the kernels: auto (every GPU), cpu (no GPU), gpu, or ids from \
nqueens devices";

/// Benchmark the kernels and devices that count n queens.
///
/// Runs alternate (A B A B …), and every count is compared with the published value. If n is larger
/// than 16, the textbook kernel counts n = 16.
#[derive(Debug, clap::Args)]
#[command(
    mut_arg("device", |flag| flag.help(DEVICE_HELP)),
    mut_arg("svg", |flag| flag.help(SVG_HELP)),
    mut_arg("png", |flag| flag.help(PNG_HELP)),
)]
pub(super) struct Args {
    /// The board size, from 0 to 27.
    #[arg(default_value = "14", value_parser = board_size, allow_negative_numbers = true)]
    n: usize,
    /// A kernel to compare with the textbook kernel: auto (the fastest for this size on this
    /// processor), reference, scalar, avx2, avx512, generic, sets, sets-avx2 or sets-avx512. Repeat
    /// the flag for several kernels [default: the fastest for small and for large boards].
    #[arg(long, value_parser = or_auto::<KernelKind>)]
    kernel: Vec<OrAuto<KernelKind>>,
    #[command(flatten)]
    device: DeviceArgs,
    #[command(flatten)]
    threads: ThreadsArg,
    /// The number of timed runs per kernel and device.
    #[arg(long, value_name = "R", default_value = "5", value_parser = rounds, allow_negative_numbers = true)]
    rounds: NonZeroUsize,
    /// Print the result as one JSON object, a benchmark file that others can compare with.
    #[arg(long)]
    json: bool,
    /// Also show the results in FILE, which nqueens bench --json printed for the same size, on this
    /// or another machine. Repeat the flag for several files.
    #[arg(long, value_name = "FILE")]
    compare: Vec<PathBuf>,
    #[command(flatten)]
    chart: PictureArgs,
}

/// The largest board for the textbook kernel. Each larger size takes it eight times as long.
const LARGEST_FOR_TEXTBOOK: usize = 16;

fn rounds(text: &str) -> Result<NonZeroUsize, String> {
    number(text, "number of rounds", 1, 1000)
}

pub(super) fn run(args: &Args) -> Result<Exit, Failure> {
    if lookup(Sequence::Total, args.n).is_none() {
        return Err(BenchError::Unpublished(args.n).into());
    }
    let compared = args.compare.iter().map(|path| BenchFile::read(path, args.n));
    let compared = compared.collect::<Result<Vec<_>, _>>()?;
    let devices = find_devices(&args.device.choice()).map_err(CountError::from)?;
    let machine = Machine::here(&devices);
    let mut contestants = contestants(args, devices)?;
    // A chart that cannot be written is an error before the benchmark, not after it.
    let chart = args.chart.begin_files("chart")?;
    let measured = measure(&mut contestants, args.rounds)?;
    if args.json {
        let file = BenchFile {
            machine: Some(machine.clone()),
            compared: compared.clone(),
            ..report(args.n, args.rounds, &measured)
        };
        print(&json_line(&file))?;
    } else {
        print(&text(args.n, args.rounds, &measured))?;
        for (path, file) in args.compare.iter().zip(&compared) {
            print(&comparison(&path.display().to_string(), file, &measured))?;
        }
    }
    write_chart(chart, || chart_of(args.n, args.rounds, &measured, &compared, &machine))?;
    Ok(Exit::Done)
}

/// Returns the contestants: the textbook kernel first, and each kernel once.
fn contestants(args: &Args, devices: Vec<Device>) -> Result<Vec<Contestant<'static>>, CountError> {
    let fastest = KernelKind::fastest_on_cpu(&Problem::empty(Piece::Queen, args.n));
    let mut kernels = vec![KernelKind::Textbook];
    let named = args.kernel.iter().map(|kernel| kernel.0.unwrap_or(fastest));
    // Both methods are compared.
    let both = [KernelKind::fastest(Piece::Queen), KernelKind::fastest_for_sets()];
    let default = both.into_iter().filter(|_| args.kernel.is_empty());
    for kernel in named.chain(default) {
        if !kernels.contains(&kernel) {
            kernels.push(kernel);
        }
    }
    let size = |kernel| match kernel {
        KernelKind::Textbook => smaller_for_textbook(args.n),
        _ => args.n,
    };
    let on_cpu = kernels
        .into_iter()
        .map(|kernel| Contestant::cpu(kernel, size(kernel), args.threads.given()));
    let mut contestants = on_cpu.collect::<Result<Vec<_>, _>>()?;
    contestants.extend(device_contestants(args, devices)?);
    Ok(contestants)
}

/// Opens the devices and tests them, which is not timed.
fn device_contestants(
    args: &Args,
    devices: Vec<Device>,
) -> Result<Vec<Contestant<'static>>, CountError> {
    if devices.is_empty() && args.device.choice() == DeviceChoice::Auto {
        note("no GPU adapter found; comparing CPU kernels only");
    }
    let tested = |device: Device| {
        let id = device.id().to_owned();
        let info = device.info().cloned();
        let opened =
            device.open().and_then(|mut kernel| self_test(&mut kernel, false).map(|()| kernel));
        match opened {
            Ok(kernel) => {
                Contestant::device(&info.expect("a device of this machine"), kernel, args.n)
            }
            Err(fault) => Err(CountError::DeviceFault(id, fault.to_string())),
        }
    };
    let mut contestants = Vec::new();
    for of_device in devices.into_iter().map(tested) {
        match of_device {
            Ok(of_device) => contestants.extend(of_device),
            // A failure of a device that was not named does not stop the benchmark.
            Err(error) if args.device.choice() == DeviceChoice::Auto => note(&error.to_string()),
            Err(error) => return Err(error),
        }
    }
    Ok(contestants)
}

/// Returns the board size for the textbook kernel where the others count n queens.
fn smaller_for_textbook(n: usize) -> usize {
    n.min(LARGEST_FOR_TEXTBOOK)
}

/// Measures with a progress bar. Ctrl-C stops the benchmark at once.
fn measure(
    contestants: &mut [Contestant<'_>],
    rounds: NonZeroUsize,
) -> Result<Vec<Measurements>, BenchError> {
    let interrupt = Interrupt::listen();
    let bar = progress_bar();
    let measured = compare(contestants, rounds, |turn: &Turn<'_>| {
        // The fraction is between 0 and 1.
        bar.set_position((turn.fraction * STEPS as f64) as u64);
        bar.set_message(format!("round {} of {rounds}: {}, n = {}", turn.round, turn.name, turn.n));
        if interrupt.is_raised() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    bar.finish_and_clear();
    measured
}

/// Returns the baseline and, if it counted a smaller board than n, the size of that board.
fn baseline(n: usize, measured: &[Measurements]) -> (&Measurements, Option<usize>) {
    let baseline = &measured[0];
    (baseline, (baseline.n != n).then_some(baseline.n))
}

fn report(n: usize, rounds: NonZeroUsize, measured: &[Measurements]) -> BenchFile {
    let (baseline, _) = baseline(n, measured);
    let contestants = measured.iter().map(|m| ContestantResult::new(m, baseline));
    BenchFile {
        n,
        rounds: rounds.get(),
        machine: None,
        contestants: contestants.collect(),
        compared: Vec::new(),
    }
}

/// Formats a spread: "2.13 (2.10 to 2.40) ms".
fn spread(value: Spread, unit: &str) -> String {
    let Spread { median, min, max } = value;
    let (median, min, max) = (rounded(median), rounded(min), rounded(max));
    let ends = if min == max { String::new() } else { format!(" ({min} to {max})") };
    format!("{median}{ends}{unit}")
}

/// Formats a time in s, or in ms below one second.
fn seconds(value: Spread) -> String {
    if value.median >= 1.0 {
        return spread(value, " s");
    }
    let [median, min, max] = [value.median, value.min, value.max].map(|s| 1000.0 * s);
    spread(Spread { median, min, max }, " ms")
}

/// A value that is not known.
const UNKNOWN: &str = "—";

fn text(n: usize, rounds: NonZeroUsize, measured: &[Measurements]) -> String {
    let unknown = || UNKNOWN.to_owned();
    let (baseline, smaller) = baseline(n, measured);
    let head =
        ["contestant", "n", "threads", "time", "solutions/s", "nodes/s", "× textbook", "energy"];
    let mut rows = vec![head.map(str::to_owned)];
    rows.extend(measured.iter().map(|m| {
        let mark = if m.n == baseline.n { "" } else { " *" };
        [
            m.name.clone(),
            m.n.to_string(),
            m.threads().to_string(),
            seconds(m.seconds()),
            rounded(m.solutions_per_s().median),
            m.nodes_per_s().map_or_else(unknown, |rate| rounded(rate.median)),
            m.ratio_to(baseline).map_or_else(unknown, |ratio| spread(ratio, mark)),
            m.energy_j().map_or_else(unknown, |joules| format!("{} J", rounded(joules.median))),
        ]
    }));
    let rounds = counted(rounds.get() as u128, "round");
    let mut lines = vec![format!("{n} queens, {rounds}: median (minimum to maximum)")];
    lines.extend(aligned(&rows));
    lines.push("  every count agrees with OEIS A000170".into());
    if let Some(smaller) = smaller {
        lines.push(format!(
            "  * solutions/s at n = {n} over those of the textbook kernel at n = {smaller}"
        ));
    }
    lines.join("\n") + "\n"
}

/// Returns the results of a benchmark file, with their ratios to the fastest contestant here.
fn comparison(path: &str, file: &BenchFile, measured: &[Measurements]) -> String {
    let mut lines = vec![format!("\n{path}")];
    lines.extend(file.machine_line().map(|machine| format!("  {machine}")));
    let head = ["contestant", "n", "threads", "time", "solutions/s", "nodes/s", "× fastest here"];
    let mut rows = vec![head.map(str::to_owned)];
    rows.extend(file.contestants.iter().map(|there| {
        let of_size = measured.iter().filter(|here| here.n == there.n);
        let fastest = of_size.map(|here| here.solutions_per_s().median).fold(0.0, f64::max);
        [
            plain(&there.name),
            there.n.to_string(),
            there.threads.to_string(),
            seconds(there.elapsed_s),
            rounded(there.solutions_per_s),
            there.nodes_per_s.map_or_else(|| UNKNOWN.to_owned(), rounded),
            if fastest > 0.0 {
                rounded(there.solutions_per_s / fastest)
            } else {
                UNKNOWN.to_owned()
            },
        ]
    }));
    lines.extend(aligned(&rows));
    lines.join("\n") + "\n"
}

/// Returns the rows with aligned columns.
pub(super) fn aligned<const COLUMNS: usize>(rows: &[[String; COLUMNS]]) -> Vec<String> {
    let letters = |text: &String| text.chars().count();
    let widths: [usize; COLUMNS] = std::array::from_fn(|column| {
        rows.iter().map(|row| letters(&row[column])).max().unwrap_or(0)
    });
    let line = |row: &[String; COLUMNS]| {
        let cells = row.iter().zip(widths).map(|(cell, width)| format!("  {cell:<width$}"));
        cells.collect::<String>().trim_end().to_owned()
    };
    rows.iter().map(line).collect()
}

/// Returns the chart of solutions per second, with the results of other files below.
fn chart_of(
    n: usize,
    rounds: NonZeroUsize,
    measured: &[Measurements],
    compared: &[BenchFile],
    machine: &Machine,
) -> String {
    let (baseline, smaller) = baseline(n, measured);
    let bars = measured.iter().map(|m| {
        let value = m.solutions_per_s();
        let times = m.ratio_to(baseline).filter(|_| !std::ptr::eq(m, baseline));
        let times =
            times.map_or(String::new(), |ratio| format!(", {} × textbook", rounded(ratio.median)));
        let size = if smaller.is_some() { format!(", n = {}", m.n) } else { String::new() };
        Bar {
            name: format!("{}{size}", m.name),
            value,
            label: format!("{}{times}", rounded(value.median)),
        }
    });
    let of_files = compared.iter().flat_map(|file| {
        let of = file.machine.as_ref().map_or("", |machine| &machine.processor);
        file.contestants.iter().map(move |there| Bar {
            name: plain(&format!("{} ({of})", there.name)),
            value: there.rates(),
            label: rounded(there.solutions_per_s),
        })
    });
    let bars = bars.chain(of_files);
    let unit =
        format!("solutions per second, median of {}", counted(rounds.get() as u128, "round"));
    svg(&format!("Counting {n} queens"), &unit, &bars.collect::<Vec<Bar>>(), &machine.lines())
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::time::Duration;

    use super::*;
    use crate::bench::{ContestantKind, Run};

    const ROUNDS: NonZeroUsize = NonZeroUsize::new(3).expect("three");

    fn measured(
        name: &str,
        n: usize,
        ms: [u64; 3],
        solutions: u128,
        nodes: Option<u128>,
    ) -> Measurements {
        let run = |ms| Run {
            elapsed: Duration::from_millis(ms),
            solutions,
            nodes,
            threads: 2,
            energy_j: nodes.map(|_| 1.5),
            gpu: None,
        };
        Measurements { name: name.into(), kind: ContestantKind::Cpu, n, runs: ms.map(run).to_vec() }
    }

    fn pair(n: usize, solutions: u128) -> [Measurements; 2] {
        [
            measured("textbook", 16, [2000, 1000, 4000], 14_772_512, None),
            measured("avx512", n, [20, 20, 20], solutions, Some(1_000_000)),
        ]
    }

    #[test]
    fn json_has_the_documented_shape() {
        let report =
            serde_json::to_value(report(16, ROUNDS, &pair(16, 14_772_512))).expect("serialises");
        assert_eq!((&report["n"], &report["rounds"]), (&16.into(), &3.into()));
        let expected = serde_json::json!({
            "name": "avx512",
            "kind": "cpu",
            "n": 16,
            "threads": 2,
            "elapsed_s": { "median": 0.02, "min": 0.02, "max": 0.02 },
            "solutions": "14772512",
            "solutions_per_s": 738_625_600.0,
            "nodes_per_s": 5e7,
            "ratio_to_textbook": { "median": 100.0, "min": 50.0, "max": 200.0 },
            "energy_j": 1.5,
            "published": "agrees",
        });
        assert_eq!(report["contestants"][1], expected);
        let textbook = &report["contestants"][0];
        assert!(textbook["nodes_per_s"].is_null() && textbook["energy_j"].is_null());
        assert_eq!(textbook["ratio_to_textbook"]["max"], 1.0);
    }

    /// Writes a benchmark file of n = 16, changed by `change`, and reads it.
    fn read(test: &str, change: impl FnOnce(&mut serde_json::Value)) -> Result<BenchFile, Failure> {
        let path =
            std::env::temp_dir().join(format!("nqueens-bench-{}-{test}", std::process::id()));
        let mut report =
            serde_json::to_value(report(16, ROUNDS, &pair(16, 14_772_512))).expect("serialises");
        change(&mut report);
        std::fs::write(&path, report.to_string()).expect("writable");
        let file = BenchFile::read(&path, 16);
        let _ = std::fs::remove_file(&path);
        file
    }

    #[test]
    fn a_benchmark_file_is_compared_with_the_fastest_contestant_here() {
        let add_machine = |report: &mut serde_json::Value| {
            report["machine"] = serde_json::to_value(Machine::here(&[])).expect("serialises");
        };
        let file = read("compared", add_machine).expect("a valid file");
        let here = [measured("avx2", 16, [40, 40, 40], 14_772_512, None)];
        let shown = comparison("their.json", &file, &here);
        let lines: Vec<&str> = shown.lines().skip(1).collect();
        assert_eq!((lines.len(), lines[0]), (5, "their.json"), "{shown}");
        assert!(lines[1].contains(env!("CARGO_PKG_VERSION")), "{shown}");
        assert!(lines[4].contains("avx512") && lines[4].ends_with("2.00"), "{shown}");
        // As earlier builds wrote it.
        let file = read("earlier", |_| {}).expect("a valid file");
        assert!(file.machine.is_none());
        assert_eq!(comparison("their.json", &file, &here).lines().count(), 5);
    }

    #[test]
    fn an_unsuitable_benchmark_file_is_refused_with_the_reason() {
        type Change = fn(&mut serde_json::Value);
        let cases: [(&str, Change, Exit, &str); 3] = [
            ("size", |report| report["n"] = 15.into(), Exit::Usage, "nqueens bench 15"),
            ("shape", |report| report["contestants"] = 1.into(), Exit::File, "bench N --json"),
            (
                "wrong",
                |report| report["contestants"][1]["solutions"] = "14772513".into(),
                Exit::File,
                "not the published value",
            ),
        ];
        for (test, change, exit, words) in cases {
            let failure = read(test, change).expect_err(test);
            assert_eq!(failure.exit, exit, "{test}");
            assert!(failure.message.contains(words), "{test}: {}", failure.message);
        }
        let missing = BenchFile::read(Path::new("/there/is/no/file"), 16).expect_err("no file");
        assert!(missing.message.contains("cannot be read"), "{}", missing.message);
    }

    #[test]
    fn the_table_marks_unknown_values() {
        let table = text(16, ROUNDS, &pair(16, 14_772_512));
        let lines: Vec<&str> = table.lines().collect();
        assert_eq!(lines.len(), 5, "{table}");
        for (line, words) in [
            (lines[1], &["contestant", "threads", "time", "solutions/s", "nodes/s", "energy"][..]),
            (lines[2], &["textbook", "2.00 (1.00 to 4.00) s", "7.39e6", "—", "1.00"]),
            (lines[3], &["avx512", "20.0 ms", "7.39e8", "5.00e7", "100 (50.0 to 200)", "1.50 J"]),
        ] {
            assert!(words.iter().all(|word| line.contains(word)), "{words:?}: {line}");
        }
        assert!(!table.contains('*'));
    }

    #[test]
    fn a_ratio_between_boards_of_different_sizes_is_marked() {
        let pair = pair(18, 666_090_624);
        let table = text(18, ROUNDS, &pair);
        assert!(table.contains(") *\n") || table.contains(") * "), "{table}");
        assert!(
            table.contains("* solutions/s at n = 18 over those of the textbook kernel at n = 16"),
            "{table}"
        );
        let machine = Machine::here(&[]);
        let chart = chart_of(18, ROUNDS, &pair, &[], &machine);
        for words in [machine.processor.as_str(), &machine.date, &machine.version] {
            assert!(chart.contains(words), "{words}: {chart}");
        }
        assert!(!chart.contains("WebGPU"));
        assert!(chart.contains("textbook, n = 16") && chart.contains("avx512, n = 18"), "{chart}");
        let report = serde_json::to_value(report(18, ROUNDS, &pair)).expect("serialises");
        assert_eq!(
            (&report["contestants"][0]["n"], &report["contestants"][1]["n"]),
            (&16.into(), &18.into())
        );
    }

    #[test]
    fn a_count_that_differs_is_exit_code_6_with_both_values() {
        let error = BenchError::Differs { name: "avx2".into(), n: 8, found: 91, published: 92 };
        let failure = Failure::from(error);
        assert_eq!(failure.exit, Exit::CheckFailed);
        assert!(
            ["avx2", "91", "92"].iter().all(|word| failure.message.contains(word)),
            "{}",
            failure.message
        );
    }

    #[test]
    fn the_textbook_kernel_counts_a_smaller_board_only_where_n_is_large() {
        assert_eq!([0, 14, 16, 17, 27].map(smaller_for_textbook), [0, 14, 16, 16, 16]);
    }
}
