//! `nqueens devices`.

use serde::Serialize;

use super::args::cores;
use super::{Exit, Failure, print_report};
use crate::board::Piece;
use crate::engine::{Device, find_every_device};
use crate::kernel::KernelKind;
use crate::kernel::gpu::{AdapterInfo, self_test};
use crate::report::counted;

/// List the CPU kernels and the GPUs of this machine, and test the GPUs.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Skip the self-test of the GPUs.
    #[arg(long)]
    no_test: bool,
    /// Print the result as one JSON object.
    #[arg(long)]
    json: bool,
}

/// The output of `--json`.
#[derive(Debug, Serialize)]
struct Report {
    cpu: CpuReport,
    adapters: Vec<AdapterReport>,
}

#[derive(Debug, Serialize)]
struct CpuReport {
    threads: usize,
    kernels: Vec<KernelReport>,
}

#[derive(Debug, Serialize)]
struct KernelReport {
    name: &'static str,
    runs_here: bool,
    /// True if it is the fastest one here for prefixes, by which small boards are counted.
    fastest: bool,
    /// True if it is the fastest one here for column sets, by which large boards are counted.
    fastest_for_sets: bool,
}

#[derive(Debug, Serialize)]
struct AdapterReport {
    #[serde(flatten)]
    info: AdapterInfo,
    /// "passed", "not_run", or the error.
    self_test: String,
}

pub(super) fn run(args: &Args) -> Result<Exit, Failure> {
    let fastest = KernelKind::fastest(Piece::Queen);
    let fastest_for_sets = KernelKind::fastest_for_sets();
    let kernels = KernelKind::ALL.into_iter().map(|kind| KernelReport {
        name: kind.name(),
        runs_here: kind.runs_here(),
        fastest: kind == fastest,
        fastest_for_sets: kind == fastest_for_sets,
    });
    let cpu = CpuReport { threads: cores(), kernels: kernels.collect() };
    let report = Report { cpu, adapters: adapters(args) };
    print_report(args.json, &report, || text(&report))?;
    Ok(Exit::Done)
}

/// Reports every adapter, including software drivers.
fn adapters(args: &Args) -> Vec<AdapterReport> {
    let report = |device: Device| {
        let info = device.info().cloned()?;
        let self_test = if args.no_test {
            "not_run".to_owned()
        } else {
            let outcome = device.open().and_then(|mut kernel| self_test(&mut kernel, false));
            outcome.map_or_else(|fault| fault.to_string(), |()| "passed".to_owned())
        };
        Some(AdapterReport { info, self_test })
    };
    find_every_device().into_iter().filter_map(report).collect()
}

fn text(report: &Report) -> String {
    let mut lines = vec![format!("cpu ({})", counted(report.cpu.threads as u128, "thread"))];
    for kernel in &report.cpu.kernels {
        let state = if kernel.fastest {
            "supported, the fastest for small boards"
        } else if kernel.fastest_for_sets {
            "supported, the fastest for large boards"
        } else if kernel.runs_here {
            "supported"
        } else {
            "not supported by this processor"
        };
        lines.push(format!("  {:<19} {state}", kernel.name));
    }
    for AdapterReport { info, self_test } in &report.adapters {
        lines.push(info.id.clone());
        let mut line = |name: &str, value: &str| lines.push(format!("  {name:<19} {value}"));
        line("name", &info.name);
        line("kind", &format!("{}, {}", info.kind.name(), info.backend));
        line("driver", &info.driver);
        let mebibytes = info.most_buffer_bytes >> 20;
        let (bytes, lanes) = (info.workgroup_bytes, info.workgroup_lanes);
        let step = info.subgroup_lanes;
        line("buffers", &format!("up to {mebibytes} MiB"));
        line("workgroups", &format!("{bytes} bytes, {lanes} lanes, subgroups of {step}"));
        line("self-test", if self_test == "not_run" { "not run" } else { self_test });
    }
    if report.adapters.is_empty() {
        lines.push(no_adapter().to_owned());
    }
    lines.join("\n") + "\n"
}

const fn no_adapter() -> &'static str {
    if cfg!(feature = "gpu") {
        "no GPU adapter found"
    } else {
        "built without GPU support (feature gpu)"
    }
}
