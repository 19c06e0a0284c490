//! The environment of a worker: the local time and the temperature of the machine.

use std::fs;
use std::path::{Path, PathBuf};

use super::working_hours::WorkingHours;

/// A clock and a thermometer; tests use their own.
pub trait Environment: Send + Sync {
    /// Returns the minutes since midnight, local time: 0 to 1439.
    fn minute_of_day(&self) -> u16;

    /// Returns the temperature of the hottest processor in degrees Celsius, or `None` if it is
    /// unknown.
    fn temperature_c(&self) -> Option<f64>;
}

/// The clock and the sensors of this machine.
#[derive(Clone, Debug)]
pub struct ThisMachine {
    sensors: PathBuf,
}

impl Default for ThisMachine {
    fn default() -> Self {
        Self { sensors: PathBuf::from("/sys/class/hwmon") }
    }
}

impl Environment for ThisMachine {
    fn minute_of_day(&self) -> u16 {
        let now = jiff::Zoned::now().time();
        // Both are small and not negative.
        u16::from(now.hour().unsigned_abs()) * 60 + u16::from(now.minute().unsigned_abs())
    }

    fn temperature_c(&self) -> Option<f64> {
        hottest(&self.sensors)
    }
}

/// Returns the temperature of the hottest processor sensor in a hwmon directory of Linux
/// (`hwmonK/name`, and `hwmonK/tempJ_input` in thousandths of a degree), or of the hottest of all
/// sensors if none is known to be a processor's.
fn hottest(sensors: &Path) -> Option<f64> {
    /// The drivers of processor sensors. Others (disks, or unconnected inputs of mainboards) say
    /// nothing about the load.
    const PROCESSORS: [&str; 6] =
        ["coretemp", "k10temp", "zenpower", "cpu_thermal", "soc_thermal", "via_cputemp"];
    let (mut processors, mut all): (Option<f64>, Option<f64>) = (None, None);
    for chip in fs::read_dir(sensors).ok()?.flatten() {
        let name = fs::read_to_string(chip.path().join("name")).unwrap_or_default();
        let is_processor = PROCESSORS.contains(&name.trim());
        for file in fs::read_dir(chip.path()).into_iter().flatten().flatten() {
            let file_name = file.file_name();
            let file_name = file_name.to_string_lossy();
            if !(file_name.starts_with("temp") && file_name.ends_with("_input")) {
                continue;
            }
            // A sleeping sensor cannot be read.
            let Ok(text) = fs::read_to_string(file.path()) else { continue };
            let Ok(thousandths) = text.trim().parse::<i32>() else { continue };
            let degrees = f64::from(thousandths) / 1000.0;
            let hotter =
                |known: Option<f64>| Some(known.map_or(degrees, |known| known.max(degrees)));
            all = hotter(all);
            if is_processor {
                processors = hotter(processors);
            }
        }
    }
    processors.or(all)
}

/// The conditions for a worker to rest.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Rest {
    /// The hours in which the worker counts; `None` for all of them.
    pub hours: Option<WorkingHours>,
    /// The temperature in degrees Celsius above which the worker pauses. It resumes once it is 5
    /// degrees cooler.
    pub max_temperature_c: Option<f64>,
}

/// The state of pausing for heat: whether a worker rests also depends on whether it was too hot
/// before.
#[derive(Debug, Default)]
pub(super) struct Pause {
    hot: bool,
}

impl Pause {
    /// Returns why the worker is to rest now, or `None` if it may count.
    pub(super) fn reason(&mut self, rest: &Rest, environment: &dyn Environment) -> Option<String> {
        /// The hysteresis, which lets the fan catch up before the next unit.
        const COOLER_BY_C: f64 = 5.0;
        if let Some(most) = rest.max_temperature_c {
            // A sensor that cannot be read for a while changes nothing.
            if let Some(found) = environment.temperature_c() {
                self.hot = if self.hot { found > most - COOLER_BY_C } else { found > most };
            }
            if self.hot {
                return Some(format!(
                    "the temperature is above {most} °C; counting resumes at {} °C or below",
                    most - COOLER_BY_C
                ));
            }
        }
        let hours = rest.hours?;
        (!hours.contains(environment.minute_of_day()))
            .then(|| format!("outside the working hours {hours}"))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    struct FakeEnvironment(Mutex<(u16, Option<f64>)>);

    impl Environment for FakeEnvironment {
        fn minute_of_day(&self) -> u16 {
            self.0.lock().expect("no panic").0
        }

        fn temperature_c(&self) -> Option<f64> {
            self.0.lock().expect("no panic").1
        }
    }

    #[test]
    fn a_hot_worker_rests_until_it_is_five_degrees_cooler() {
        let rest = Rest { hours: None, max_temperature_c: Some(80.0) };
        let environment = FakeEnvironment(Mutex::new((0, None)));
        let mut pause = Pause::default();
        let check = |(degrees, rests): (Option<f64>, bool)| {
            environment.0.lock().expect("no panic").1 = degrees;
            assert_eq!(pause.reason(&rest, &environment).is_some(), rests, "{degrees:?}");
        };
        [
            (None, false),
            (Some(80.0), false),
            (Some(80.1), true),
            (Some(76.0), true),
            (None, true),
            (Some(75.0), false),
            (Some(79.0), false),
        ]
        .into_iter()
        .for_each(check);
    }

    #[test]
    fn a_worker_rests_outside_its_hours() {
        let rest = Rest { hours: "18:00-08:00".parse().ok(), max_temperature_c: None };
        for (minute, rests) in [(0, false), (479, false), (480, true), (1079, true), (1080, false)]
        {
            let environment = FakeEnvironment(Mutex::new((minute, None)));
            assert_eq!(Pause::default().reason(&rest, &environment).is_some(), rests, "{minute}");
        }
    }

    #[test]
    fn this_machine_has_a_clock() {
        assert!(ThisMachine::default().minute_of_day() < 1440);
    }

    #[test]
    fn the_hottest_plausible_processor_temperature_is_used() {
        let scratch = tempfile::tempdir().expect("a folder");
        let folder = scratch.path().join("hwmon");
        let write = |chip: &str, file: &str, text: &str| {
            fs::create_dir_all(folder.join(chip)).expect("a folder");
            fs::write(folder.join(chip).join(file), text).expect("a file");
        };
        assert_eq!(hottest(&folder), None);
        write("hwmon0", "name", "nct6775\n");
        write("hwmon0", "temp1_input", "127000\n");
        assert_eq!(hottest(&folder), Some(127.0));
        write("hwmon1", "name", "coretemp\n");
        write("hwmon1", "temp1_input", "61500\n");
        write("hwmon1", "temp2_input", "63000\n");
        write("hwmon1", "temp3_input", "?\n");
        write("hwmon1", "temp1_max", "99000\n");
        assert_eq!(hottest(&folder), Some(63.0));
    }
}
