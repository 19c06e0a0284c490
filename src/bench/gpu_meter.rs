//! The clock and the power of an NVIDIA GPU during a run, as the program `nvidia-smi` reports them.
//! Without that program, or for another GPU, nothing is reported; it is never guessed.

use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The means over the samples of a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GpuReadings {
    /// The clock of the multiprocessors in MHz.
    pub clock_mhz: f64,
    /// The power of the whole card in W.
    pub power_w: f64,
}

/// A meter that takes a sample twice a second in a thread of its own.
#[derive(Debug)]
pub(super) struct GpuMeter {
    ended: Arc<AtomicBool>,
    /// `None` if nothing is measured.
    sampler: Option<JoinHandle<Vec<GpuReadings>>>,
}

impl GpuMeter {
    /// Starts to measure the GPU at a position on the PCI bus; with an empty position, nothing.
    pub(super) fn start(pci_bus_id: &str) -> Self {
        Self::start_with("nvidia-smi", pci_bus_id)
    }

    fn start_with(program: &str, pci_bus_id: &str) -> Self {
        const PERIOD: Duration = Duration::from_millis(500);
        let ended = Arc::new(AtomicBool::new(false));
        if pci_bus_id.is_empty() {
            return Self { ended, sampler: None };
        }
        let (program, id, flag) = (program.to_owned(), pci_bus_id.to_owned(), Arc::clone(&ended));
        let take_samples = move || {
            let mut samples = Vec::new();
            while !flag.load(Ordering::Relaxed) {
                let began = Instant::now();
                // A program that fails once is not asked again.
                let Some(sample) = sample(&program, &id) else { break };
                samples.push(sample);
                while began.elapsed() < PERIOD && !flag.load(Ordering::Relaxed) {
                    std::thread::sleep(Duration::from_millis(10));
                }
            }
            samples
        };
        // Without the thread nothing is reported.
        Self { ended, sampler: std::thread::Builder::new().spawn(take_samples).ok() }
    }

    /// Returns the means from the start to now; `None` without a sample.
    pub(super) fn readings(mut self) -> Option<GpuReadings> {
        self.ended.store(true, Ordering::Relaxed);
        let samples = self.sampler.take()?.join().ok()?;
        let mean = |of: fn(&GpuReadings) -> f64| {
            samples.iter().map(of).sum::<f64>() / samples.len() as f64
        };
        (!samples.is_empty()).then(|| GpuReadings {
            clock_mhz: mean(|sample| sample.clock_mhz),
            power_w: mean(|sample| sample.power_w),
        })
    }
}

impl Drop for GpuMeter {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Relaxed);
    }
}

/// Returns what the program says of the GPU now; `None` if it fails or does not know.
fn sample(program: &str, pci_bus_id: &str) -> Option<GpuReadings> {
    let output = Command::new(program)
        .arg(format!("--id={pci_bus_id}"))
        .args(["--query-gpu=clocks.sm,power.draw", "--format=csv,noheader,nounits"])
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output()
        .ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    let (clock, power) = text.lines().next()?.split_once(',')?;
    let number = |text: &str| {
        text.trim().parse().ok().filter(|value: &f64| value.is_finite() && *value >= 0.0)
    };
    let readings = GpuReadings { clock_mhz: number(clock)?, power_w: number(power)? };
    output.status.success().then_some(readings)
}

#[cfg(all(test, unix))]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    /// Returns what a meter reads from a program that runs this script.
    fn read(test: &str, script: &str) -> Option<GpuReadings> {
        let file = std::env::temp_dir().join(format!("nqueens-smi-{}-{test}", std::process::id()));
        fs::write(&file, format!("#!/bin/sh\n{script}\n")).expect("writable");
        fs::set_permissions(&file, fs::Permissions::from_mode(0o700)).expect("our own file");
        let meter = GpuMeter::start_with(file.to_str().expect("UTF-8"), "0000:01:00.0");
        // The thread ends by itself where the program fails; otherwise after a sample or more.
        let began = Instant::now();
        while began.elapsed() < Duration::from_secs(60)
            && meter.sampler.as_ref().is_some_and(|thread| !thread.is_finished())
            && !file.with_extension("ran").exists()
        {
            std::thread::sleep(Duration::from_millis(5));
        }
        let readings = meter.readings();
        let _ = (fs::remove_file(file.with_extension("ran")), fs::remove_file(&file));
        readings
    }

    #[test]
    fn clock_and_power_are_those_that_the_program_reports() {
        let script = r#"[ "$1" = --id=0000:01:00.0 ] && echo "1980, 401.25"; : >"$0.ran""#;
        assert_eq!(
            read("reports", script),
            Some(GpuReadings { clock_mhz: 1980.0, power_w: 401.25 })
        );
    }

    #[test]
    fn what_the_program_does_not_report_is_unknown() {
        for (test, script) in [
            ("fails", r#"echo "1980, 401.25"; exit 1"#),
            ("unsupported", r#"echo "1980, [N/A]""#),
            ("silent", "exit 0"),
            ("negative", r#"echo "-1, 5""#),
        ] {
            assert_eq!(read(test, script), None, "{test}");
        }
        assert_eq!(GpuMeter::start_with("/there/is/no/program", "0").readings(), None);
        assert_eq!(GpuMeter::start("").readings(), None);
    }
}
