//! The log of a solver of 0-1 programs on stderr, in the style of MIP solvers.

use std::io::{self, Write as _};
use std::time::Duration;

use crate::report::{counted, rounded, time};
use crate::solver::LogEntry;

/// The log of one run: a header, and a line for each entry.
#[derive(Clone, Copy, Debug)]
pub(super) struct SolverLog {
    /// The number of nodes between two entries.
    interval: u64,
    /// The number of entries so far.
    entries: u64,
    /// The rows that separation has added so far.
    cuts: usize,
}

const HEADER: &str =
    "       Nodes      Best bound       Incumbent       Gap     LP iter.    Cuts        Time";

impl SolverLog {
    pub(super) const fn new(interval: u64) -> Self {
        Self { interval, entries: 0, cuts: 0 }
    }

    pub(super) const fn interval(&self) -> u64 {
        self.interval
    }

    /// Prints an entry, after the header if it is the first one. Errors are ignored, as for all
    /// notes.
    pub(super) fn write(&mut self, entry: &LogEntry, elapsed: Duration) {
        let mut err = io::stderr().lock();
        if self.entries == 0 {
            let _ = writeln!(err, "{HEADER}");
        }
        self.entries += 1;
        self.cuts = entry.cuts.unwrap_or(self.cuts);
        let _ = writeln!(err, "{}", self.line(entry, elapsed));
    }

    /// Prints the program before it is solved.
    pub(super) fn begin(solver: &str, columns: usize, rows: usize) {
        let (columns, rows) = (counted(columns as u128, "column"), counted(rows as u128, "row"));
        let _ = writeln!(io::stderr(), "{solver}: 0-1 program with {columns} and {rows}");
    }

    fn line(&self, entry: &LogEntry, elapsed: Duration) -> String {
        let or_dash = |value: Option<String>| value.unwrap_or_else(|| "-".into());
        format!(
            "{:>12}{:>16}{:>16}{:>10}{:>13}{:>8}{:>12}",
            entry.nodes,
            or_dash(entry.bound.map(rounded)),
            or_dash(entry.incumbent.map(rounded)),
            or_dash(gap(entry).map(|gap| format!("{gap:.2} %"))),
            or_dash(entry.lp_iterations.map(|n| n.to_string())),
            self.cuts,
            time(elapsed.as_secs_f64()),
        )
    }
}

/// Returns the distance between the bound and the incumbent, as a percentage of the incumbent;
/// `None` if one of them is missing, or if the incumbent is 0 and the bound is not.
fn gap(entry: &LogEntry) -> Option<f64> {
    let (bound, incumbent) = (entry.bound?, entry.incumbent?);
    let distance = (bound - incumbent).abs();
    if distance < 1e-9 {
        return Some(0.0);
    }
    (incumbent.abs() > 1e-9).then(|| 100.0 * distance / incumbent.abs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_stand_below_their_names_and_missing_values_are_dashes() {
        let log = SolverLog { interval: 10, entries: 1, cuts: 7 };
        let entry = LogEntry {
            nodes: 120,
            bound: Some(55.0),
            incumbent: Some(50.0),
            lp_iterations: Some(4711),
            cuts: None,
        };
        let line = log.line(&entry, Duration::from_millis(1500));
        assert_eq!(line.chars().count(), HEADER.chars().count());
        let words: Vec<&str> = line.split_whitespace().collect();
        assert_eq!(words, ["120", "55.0", "50.0", "10.00", "%", "4711", "7", "1.500", "s"]);
        let line = log.line(&LogEntry::default(), Duration::ZERO);
        let words: Vec<&str> = line.split_whitespace().collect();
        assert_eq!(words, ["0", "-", "-", "-", "-", "7", "0.000", "s"]);
    }

    #[test]
    fn the_gap_is_relative_to_the_incumbent() {
        let of = |bound, incumbent| gap(&LogEntry { bound, incumbent, ..LogEntry::default() });
        assert_eq!(of(Some(-8.0), Some(-10.0)), Some(20.0));
        assert_eq!(of(Some(0.0), Some(0.0)), Some(0.0));
        assert_eq!(of(Some(1.0), Some(0.0)), None);
        assert_eq!(of(None, Some(1.0)), None);
    }
}
