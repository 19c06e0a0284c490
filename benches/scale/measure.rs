//! Times of calls, and the memory of the process.

use std::fmt;
use std::time::{Duration, Instant};

/// The calls of one kind.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Calls {
    pub(crate) count: u64,
    pub(crate) total: Duration,
    longest: Duration,
}

impl Calls {
    /// Makes a call and adds its time.
    pub(crate) fn time<T>(&mut self, call: impl FnOnce() -> T) -> T {
        let began = Instant::now();
        let returned = call();
        let took = began.elapsed();
        self.count += 1;
        self.total += took;
        self.longest = self.longest.max(took);
        returned
    }
}

impl fmt::Display for Calls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mean_us = self.total.as_secs_f64() * 1e6 / self.count.max(1) as f64;
        write!(
            f,
            "{:>11} calls, {:>8.1} s, {mean_us:>8.2} us on average, {:.1} ms at most",
            self.count,
            self.total.as_secs_f64(),
            self.longest.as_secs_f64() * 1e3
        )
    }
}

/// Returns a value of `/proc/self/status` in MiB, on Linux: `VmRSS` or `VmHWM`.
pub(crate) fn memory_mib(name: &str) -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    Some(line.trim_start_matches(':').split_whitespace().next()?.parse::<u64>().ok()? / 1024)
}
