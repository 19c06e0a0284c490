//! The energy of a run, from the counters of the processor's packages (RAPL, as Linux exposes them
//! under `/sys/class/powercap`). It is that of the whole packages, whatever else runs on them. If
//! the counters cannot be read, no energy is reported; it is never guessed.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// A meter that sums the counters of all packages between its start and its end. A counter wraps
/// after some minutes; the meter must be sampled more often than that.
#[derive(Debug)]
pub(super) struct EnergyMeter {
    /// `None` once a counter could not be read.
    packages: Option<Vec<Package>>,
    used_uj: u64,
    sampled: Instant,
}

/// The counter of one package, in µJ.
#[derive(Debug)]
struct Package {
    counter: PathBuf,
    last: u64,
    /// The value at which the counter wraps.
    range: u64,
}

impl EnergyMeter {
    /// Starts to measure this machine.
    pub(super) fn start() -> Self {
        Self::start_below(Path::new("/sys/class/powercap"))
    }

    fn start_below(folder: &Path) -> Self {
        let packages = packages(folder).filter(|packages| !packages.is_empty());
        Self { packages, used_uj: 0, sampled: Instant::now() }
    }

    /// Reads the counters if the last read was at least a second ago; must be called throughout the
    /// run.
    pub(super) fn sample(&mut self) {
        const PERIOD: Duration = Duration::from_secs(1);
        if self.sampled.elapsed() >= PERIOD {
            self.read();
        }
    }

    fn read(&mut self) {
        self.sampled = Instant::now();
        self.packages = self.packages.take().and_then(|mut packages| {
            for package in &mut packages {
                self.used_uj = self.used_uj.checked_add(package.advance()?)?;
            }
            Some(packages)
        });
    }

    /// Returns the energy in joules of a run that took `elapsed` and ends now. `None` without
    /// counters, and for runs that are short compared with the millisecond in which a counter
    /// advances.
    pub(super) fn joules(mut self, elapsed: Duration) -> Option<f64> {
        const SHORTEST: Duration = Duration::from_millis(50);
        self.read();
        (self.packages.is_some() && elapsed >= SHORTEST).then(|| self.used_uj as f64 / 1e6)
    }
}

impl Package {
    /// Returns the energy in µJ since the last call.
    fn advance(&mut self) -> Option<u64> {
        let now = number(&self.counter)?;
        let used = match now.checked_sub(self.last) {
            Some(used) => used,
            None => self.range.checked_sub(self.last)?.checked_add(now)?,
        };
        self.last = now;
        Some(used)
    }
}

/// Returns the packages of the machine, or `None` if one of them cannot be read, since the sum
/// would lack it. Subzones (cores, memory) and the platform are excluded, because they would be
/// counted twice.
fn packages(folder: &Path) -> Option<Vec<Package>> {
    let mut packages = Vec::new();
    for zone in fs::read_dir(folder).ok()? {
        let zone = zone.ok()?;
        let is_zone =
            zone.file_name().to_str().and_then(|name| name.strip_prefix("intel-rapl:")).is_some();
        let is_package =
            || fs::read_to_string(zone.path().join("name")).map(|n| n.starts_with("package"));
        if is_zone && is_package().ok()? {
            let counter = zone.path().join("energy_uj");
            let (last, range) =
                (number(&counter)?, number(&zone.path().join("max_energy_range_uj"))?);
            packages.push(Package { counter, last, range });
        }
    }
    Some(packages)
}

fn number(file: &Path) -> Option<u64> {
    fs::read_to_string(file).ok()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(3);

    /// A folder of energy counters.
    struct Counters(PathBuf);

    impl Counters {
        fn new(test: &str) -> Self {
            let folder =
                std::env::temp_dir().join(format!("nqueens-energy-{}-{test}", std::process::id()));
            fs::create_dir_all(&folder).expect("a folder for temporary files");
            Self(folder)
        }

        fn zone(&self, zone: &str, name: &str) {
            fs::create_dir_all(self.0.join(zone)).expect("writable");
            fs::write(self.0.join(zone).join("name"), format!("{name}\n")).expect("writable");
            fs::write(self.0.join(zone).join("max_energy_range_uj"), "10000000\n")
                .expect("writable");
            self.show(zone, 0);
        }

        fn show(&self, zone: &str, uj: u64) {
            fs::write(self.0.join(zone).join("energy_uj"), format!("{uj}\n")).expect("writable");
        }
    }

    impl Drop for Counters {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn packages_are_summed_and_nothing_is_counted_twice() {
        let counters = Counters::new("sum");
        let zones = [
            ("intel-rapl:0", "package-0"),
            ("intel-rapl:1", "package-1"),
            ("intel-rapl:0:0", "dram"),
            ("intel-rapl:2", "psys"),
            ("intel-rapl-mmio:0", "package-0"),
        ];
        zones.iter().for_each(|(zone, name)| counters.zone(zone, name));
        let meter = EnergyMeter::start_below(&counters.0);
        zones.iter().for_each(|(zone, _)| counters.show(zone, 1_500_000));
        assert_eq!(meter.joules(LONG), Some(3.0));
    }

    #[test]
    fn a_counter_that_wraps_between_samples_loses_nothing() {
        let counters = Counters::new("wrap");
        counters.zone("intel-rapl:0", "package-0");
        counters.show("intel-rapl:0", 9_000_000);
        let mut meter = EnergyMeter::start_below(&counters.0);
        for uj in [4_000_000, 8_000_000] {
            counters.show("intel-rapl:0", uj);
            meter.read();
        }
        counters.show("intel-rapl:0", 1_000_000);
        assert_eq!(meter.joules(LONG), Some(12.0));
    }

    #[test]
    fn an_unreadable_counter_gives_no_measurement() {
        let counters = Counters::new("none");
        assert_eq!(EnergyMeter::start_below(&counters.0).joules(LONG), None, "no counters");
        assert_eq!(
            EnergyMeter::start_below(&counters.0.join("nowhere")).joules(LONG),
            None,
            "no folder"
        );
        counters.zone("intel-rapl:0", "package-0");
        counters.zone("intel-rapl:1", "package-1");
        assert_eq!(
            EnergyMeter::start_below(&counters.0).joules(Duration::ZERO),
            None,
            "a short run"
        );
        let meter = EnergyMeter::start_below(&counters.0);
        fs::remove_file(counters.0.join("intel-rapl:1/energy_uj")).expect("permitted");
        assert_eq!(meter.joules(LONG), None, "a counter that disappeared");
        assert_eq!(EnergyMeter::start_below(&counters.0).joules(LONG), None, "one package of two");
    }
}
