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
    id: String,
    name: String,
    backend: String,
    kind: &'static str,
    driver: String,
    most_buffer_bytes: u64,
    workgroup_bytes: u32,
    workgroup_lanes: u32,
    subgroup_lanes: u32,
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
        let tested = if args.no_test {
            "not_run".to_owned()
        } else {
            let outcome = device.open().and_then(|mut kernel| self_test(&mut kernel, false));
            outcome.map_or_else(|fault| fault.to_string(), |()| "passed".to_owned())
        };
        Some(adapter(&info, tested))
    };
    find_every_device().into_iter().filter_map(report).collect()
}

fn adapter(info: &AdapterInfo, self_test: String) -> AdapterReport {
    AdapterReport {
        id: info.id.clone(),
        name: info.name.clone(),
        backend: info.backend.clone(),
        kind: info.kind.name(),
        driver: info.driver.clone(),
        most_buffer_bytes: info.most_buffer_bytes,
        workgroup_bytes: info.workgroup_bytes,
        workgroup_lanes: info.workgroup_lanes,
        subgroup_lanes: info.subgroup_lanes,
        self_test,
    }
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
    for adapter in &report.adapters {
        lines.push(adapter.id.clone());
        let mut line = |name: &str, value: &str| lines.push(format!("  {name:<19} {value}"));
        line("name", &adapter.name);
        line("kind", &format!("{}, {}", adapter.kind, adapter.backend));
        line("driver", &adapter.driver);
        let mebibytes = adapter.most_buffer_bytes >> 20;
        let (bytes, lanes) = (adapter.workgroup_bytes, adapter.workgroup_lanes);
        let step = adapter.subgroup_lanes;
        line("buffers", &format!("up to {mebibytes} MiB"));
        line("workgroups", &format!("{bytes} bytes, {lanes} lanes, subgroups of {step}"));
        line(
            "self-test",
            if adapter.self_test == "not_run" { "not run" } else { &adapter.self_test },
        );
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
