//! The comparison by method: the number of boards solved, the mean time, and the chart.

use serde::Serialize;

use super::super::chart::{Bar, Group, grouped_svg};
use super::{Measured, Report};
use crate::bench::Spread;
use crate::report::time;

/// The results of a method on all boards.
#[derive(Debug, PartialEq, Serialize)]
pub(super) struct MethodSummary {
    pub(super) method: &'static str,
    /// The number of boards that the method was run on.
    pub(super) boards: usize,
    /// The number of boards with a proven answer.
    pub(super) solved: usize,
    /// The shifted geometric mean of the times, those of unsolved boards included: with the shift s
    /// of 1 second, the geometric mean of the times plus s, minus s.
    pub(super) shifted_geometric_mean_s: f64,
}

/// The shift of the geometric mean, in seconds: differences between times far below it count
/// little.
const SHIFT_S: f64 = 1.0;

/// Returns the summary of each method, in the order of their first results.
pub(super) fn summaries(results: &[Measured]) -> Vec<MethodSummary> {
    let mut methods: Vec<&'static str> = Vec::new();
    for result in results {
        if !methods.contains(&result.method) {
            methods.push(result.method);
        }
    }
    let summary = |method| {
        let of: Vec<&Measured> = results.iter().filter(|r| r.method == method).collect();
        let logarithms: f64 = of.iter().map(|result| (result.elapsed_s + SHIFT_S).ln()).sum();
        MethodSummary {
            method,
            boards: of.len(),
            solved: of.iter().filter(|result| result.proven).count(),
            shifted_geometric_mean_s: (logarithms / of.len() as f64).exp() - SHIFT_S,
        }
    };
    methods.into_iter().map(summary).collect()
}

/// Returns the chart of times, grouped by method.
pub(super) fn chart_of(report: &Report<'_>) -> String {
    let bar = |result: &Measured| {
        let value = result.elapsed_s;
        let done = if result.proven { "" } else { ", not solved" };
        Bar {
            name: format!("n = {}", result.n),
            value: Spread { median: value, min: value, max: value },
            label: format!("{}{done}", short_time(value)),
        }
    };
    let group = |summary: &MethodSummary| Group {
        heading: Some(format!(
            "{}: {} of {} solved, mean {}",
            summary.method,
            summary.solved,
            summary.boards,
            short_time(summary.shifted_geometric_mean_s)
        )),
        bars: report.results.iter().filter(|r| r.method == summary.method).map(bar).collect(),
    };
    let groups: Vec<Group> = report.methods.iter().map(group).collect();
    let unit = format!("wall-clock time, solver {}", report.solver);
    grouped_svg(&format!("{}: time by method", report.query), &unit, &groups, &[], short_time)
}

/// Formats a time with three digits: "0.0521 ms", "110 ms", "1.234 s". (The fonts of a machine may
/// not have the sign of a microsecond.)
pub(super) fn short_time(seconds: f64) -> String {
    // Powers of ten are not exact, and must not become "1000 ms".
    if seconds >= 0.999_5 {
        return time(seconds);
    }
    let ms = seconds * 1e3;
    let decimals = [99.95, 9.995, 0.999_5, 0.099_95, 0.009_995, 0.0];
    let decimals = decimals.iter().position(|least| ms >= *least).unwrap_or(5);
    format!("{ms:.decimals$} ms")
}

#[cfg(test)]
mod tests {
    use super::super::tests::measured;
    use super::*;

    #[test]
    fn means_are_shifted_and_geometric_over_all_boards_of_a_method() {
        let of = |elapsed_s, proven| Measured { elapsed_s, ..measured(4, "cp", None, proven) };
        // The geometric mean of 1 + 1, 1 + 7 and 1 + 3 seconds is 4 seconds.
        let mut results = vec![of(1.0, true), of(7.0, false), of(3.0, true)];
        results.insert(1, measured(4, "ilp-iter", None, true));
        let summaries = summaries(&results);
        assert_eq!(summaries.len(), 2);
        assert_eq!((summaries[0].method, summaries[0].boards, summaries[0].solved), ("cp", 3, 2));
        assert!((summaries[0].shifted_geometric_mean_s - 3.0).abs() < 1e-9, "{summaries:?}");
        assert_eq!((summaries[1].method, summaries[1].solved), ("ilp-iter", 1));
        assert!((summaries[1].shifted_geometric_mean_s - 0.5).abs() < 1e-9, "{summaries:?}");
    }

    #[test]
    fn the_chart_is_grouped_by_method() {
        let results = [("cp", 4), ("exact", 4), ("cp", 5), ("exact", 5)]
            .map(|(method, n)| measured(n, method, None, true));
        let methods = summaries(&results);
        let report =
            Report { query: "first", solver: "microlp", limit_s: 60.0, results: &results, methods };
        let chart = chart_of(&report);
        let mean = "2 of 2 solved, mean 500 ms</text>";
        let heading = |name: &str| chart.find(&format!(">{name}: {mean}")).expect(name);
        let bars: Vec<usize> = chart.match_indices(">n = ").map(|(place, _)| place).collect();
        let order = [heading("cp"), bars[0], bars[1], heading("exact"), bars[2], bars[3]];
        assert!(bars.len() == 4 && order.is_sorted(), "{chart}");
    }

    #[test]
    fn times_have_three_digits() {
        for (seconds, text) in
            [(5.21e-5, "0.0521 ms"), (1e-3, "1.00 ms"), (0.11, "110 ms"), (1.2341, "1.234 s")]
        {
            assert_eq!(short_time(seconds), text);
        }
        assert_eq!(short_time(0.000_999_9), "1.00 ms");
        assert_eq!((short_time(1e-6), short_time(0.0)), ("0.00100 ms".into(), "0.00000 ms".into()));
    }
}
