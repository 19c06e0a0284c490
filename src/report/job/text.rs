//! The report of a count as text.

use std::fmt::Write as _;
use std::time::Duration;

use super::{JobReport, Share};
use crate::board::Problem;
use crate::report::format::{counted, grouped, percent, plural, predicted, rounded, time};
use crate::report::published::Published;

impl Share {
    /// Returns the worker in words: "w1 of anna (avx512 on cpu)".
    fn who(&self) -> String {
        let Self { worker, owner, kernel, device, .. } = self;
        let is_own = owner.is_empty() || owner == worker || worker.starts_with('(');
        let of_owner = if is_own { String::new() } else { format!(" of {owner}") };
        let with =
            if kernel.is_empty() { String::new() } else { format!(" ({kernel} on {device})") };
        format!("{worker}{of_owner}{with}")
    }
}

impl JobReport {
    /// Returns the job in words: "count of 14 queens, 2 placed".
    pub fn title(&self) -> String {
        title(self.n, self.piece, [self.placed.len(), self.blocked.len()])
    }

    /// Returns whether every unit is counted and only checks are left.
    pub fn is_verifying(&self) -> bool {
        self.state == "running" && self.units > 0 && self.units_done == self.units
    }

    /// Returns the state in words: "running", or "verifying (9 checks left)" once every unit is
    /// counted.
    pub fn state_sentence(&self) -> String {
        match (self.is_verifying(), self.recounts_due) {
            (false, _) => self.state.to_owned(),
            (true, 0) => "verifying".to_owned(),
            (true, due) => format!("verifying ({} left)", counted(due.into(), "check")),
        }
    }

    /// Returns the comparison with the published value in words, once the solutions are known.
    pub fn sentence(&self) -> Option<String> {
        self.published.zip(self.sequence).map(|(published, sequence)| published.sentence(sequence))
    }

    /// Returns the progress in a few words.
    pub fn progress(&self) -> String {
        let due = format!("{} due", counted(self.recounts_due.into(), "recount"));
        if self.is_disputed() {
            let total = self
                .solutions
                .as_ref()
                .map_or("the total".to_owned(), |total| format!("the total {total}"));
            return match self.dispute_exhausted {
                Some(true) => format!("{total} is disputed, no recount is left"),
                _ => format!("{total} is disputed, {due}"),
            };
        }
        if let Some(solutions) = &self.solutions {
            let noun = if solutions == "1" { "solution" } else { "solutions" };
            let verifying = self.is_verifying().then(|| format!(", {}", self.state_sentence()));
            return format!("{solutions} {noun}{}", verifying.unwrap_or_default());
        }
        let left = self.left().map(|left| format!(", {left}")).unwrap_or_default();
        format!("{} of {}{left}", self.percent_done(), counted(self.units.into(), "unit"))
    }

    /// Returns the percentage of the units that are done.
    pub fn percent_done(&self) -> String {
        let left = self.left_s.and_then(|left| Duration::try_from_secs_f64(left).ok());
        percent(self.units_done as f64 / self.units.max(1) as f64, left)
    }

    /// Returns the time left, if there is an estimate: "about 3 h left (2 h 40 min to 3 h 30 min)".
    pub fn left(&self) -> Option<String> {
        let band = self.left_range().map(|range| format!(" ({range})")).unwrap_or_default();
        Some(format!("{}{band}", self.left_about()?))
    }

    /// Returns the time left without its range: "about 3 h left".
    pub fn left_about(&self) -> Option<String> {
        Some(format!("about {} left", shown(self.left_s)?))
    }

    /// Returns the range of the time left: "2 h 40 min to 3 h 30 min", or `None` if it is shorter
    /// than the digits that are shown.
    pub fn left_range(&self) -> Option<String> {
        match (shown(self.left_least_s)?, shown(self.left_most_s)) {
            (least, Some(most)) if least == most => None,
            (least, Some(most)) => Some(format!("{least} to {most}")),
            (least, None) => {
                Some(format!("at least {least}; the rate varies too much for an upper bound"))
            }
        }
    }

    /// Returns the assurance that the checks give, in words, once a unit is counted.
    pub fn assurance_sentence(&self) -> Option<String> {
        let assurance = self.assurance?;
        // Rounded down, so that the text never claims too much.
        let decimals = if assurance < 0.01 { 1e4 } else { 1e2 };
        let least = (assurance * decimals).floor() / decimals;
        let found = if assurance >= 1.0 {
            "the checks would have found it".to_owned()
        } else if least <= 0.0 {
            "the checks could have missed it".to_owned()
        } else {
            format!("the checks would have found it with a probability of at least {least}")
        };
        Some(if self.published == Some(Published::Agrees) {
            format!(
                "a wrong total is excluded by the published value; if one owner had lied about units all the same, {found}"
            )
        } else {
            format!("if one owner had lied about at least one unit, {found}")
        })
    }

    /// Returns the whole report as text, on several lines.
    pub fn text(&self) -> String {
        let mut lines = vec![format!("job {}  {}, {}", self.job, self.title(), self.state)];
        let mut line = |name: &str, text: String| lines.push(format!("  {name:<12}{text}"));
        match (&self.solutions, &self.fault) {
            (Some(solutions), _) => {
                let grouped = solutions.parse().map_or_else(|_| solutions.clone(), grouped);
                let sentence = self.sentence().map(|sentence| format!(", {sentence}"));
                let disputed = if self.is_disputed() { ", DISPUTED" } else { "" };
                line("solutions", format!("{grouped}{}{disputed}", sentence.unwrap_or_default()));
            }
            (None, Some(fault)) => line("solutions", format!("no valid total: {fault}")),
            (None, None) => line("progress", self.progress()),
        }
        line(
            "units",
            format!("{} of {} done", grouped(self.units_done.into()), grouped(self.units.into())),
        );
        self.dispute.iter().for_each(|dispute| line("dispute", dispute.clone()));
        line("verified", self.verified());
        self.assurance_sentence().into_iter().for_each(|sentence| line("assurance", sentence));
        line(
            "recounts",
            format!(
                "{} agreed, {} differed, {} due{}; {} taken back",
                grouped(self.recounts_agreed.into()),
                grouped(self.recounts_differed.into()),
                grouped(self.recounts_due.into()),
                by_coordinator(self.audits_due),
                counted(self.results_taken_back.into(), "result"),
            ),
        );
        if self.units_per_s > 0.0 && self.state == "running" {
            line("rate", format!("{} units/s", rounded(self.units_per_s)));
        }
        line(
            "work",
            format!(
                "{} counting, {} recounting, {} since submission",
                time(self.counting_s),
                time(self.recounting_s),
                time(self.elapsed_s)
            ),
        );
        if self.guest_units > 0 {
            line("guests", self.guests());
        }
        for share in &self.by {
            line(
                "by",
                format!(
                    "{}: {}, {} verified by others, {} verified for others",
                    share.who(),
                    counted(share.units.into(), "unit"),
                    grouped(share.units_verified.into()),
                    grouped(share.verified_of_others.into()),
                ),
            );
        }
        if self.units_poisoned > 0 {
            let aside = counted(self.units_poisoned.into(), "unit");
            line("set aside", format!("{aside}; run nqueens resume {} to retry", self.short()));
        }
        for note in self.notes.iter().filter(|note| Some(*note) != self.dispute.as_ref()) {
            line("note", note.clone());
        }
        lines.join("\n") + "\n"
    }

    /// Returns the contribution of guests: "14 units, of which others counted 0.9 again; 13.1 net".
    fn guests(&self) -> String {
        let (units, rechecked) = (self.guest_units, self.guest_units_rechecked);
        format!(
            "{}, of which others counted {rechecked:.1} again; {:.1} net",
            counted(units.into(), "unit"),
            units as f64 - rechecked
        )
    }

    /// Returns the verified units: "14 of 64 units (21.9 %) recounted by others (3 by the
    /// coordinator), 40 spot-checked".
    fn verified(&self) -> String {
        let percent = 100.0 * self.units_verified as f64 / self.units.max(1) as f64;
        let mut text = format!(
            "{} of {} ({percent:.1} %) recounted by others{}, {} spot-checked",
            grouped(self.units_verified.into()),
            counted(self.units.into(), "unit"),
            by_coordinator(self.units_audited),
            grouped(self.units_spot_checked.into()),
        );
        if self.units_self_checked > 0 {
            let _ = write!(
                text,
                ", {} only by their own owner",
                grouped(self.units_self_checked.into())
            );
        }
        text
    }
}

/// Returns a count in words: "count of 14 queens, 2 placed". The numbers are those of the placed
/// queens and of the blocked squares.
fn title(n: usize, piece: &str, [placed, blocked]: [usize; 2]) -> String {
    let noun = if piece == "toroidal" { "toroidal queen" } else { piece };
    let mut title = format!("count of {n} {}", plural(n as u128, noun));
    for (squares, word) in [(placed, "placed"), (blocked, "blocked")] {
        if squares > 0 {
            let _ = write!(title, ", {squares} {word}");
        }
    }
    title
}

/// Returns the count of a problem in words: "count of 14 queens, 2 placed".
pub fn count_title(problem: &Problem) -> String {
    let squares = [problem.placed().len(), problem.blocked().len()];
    title(problem.n(), problem.piece().name(), squares)
}

/// Formats a number of seconds that is only predicted.
fn shown(seconds: Option<f64>) -> Option<String> {
    Duration::try_from_secs_f64(seconds?).ok().map(predicted)
}

/// Returns " (3 by the coordinator)", or nothing for 0.
fn by_coordinator(units: u64) -> String {
    if units == 0 {
        String::new()
    } else {
        format!(" ({} by the coordinator)", grouped(units.into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::protocol::v1;
    use crate::tally::Tally;

    fn status() -> v1::JobStatus {
        let source = v1::SourceStatus {
            worker: "w1".into(),
            owner: "anna".into(),
            kernel: "avx2".into(),
            device: "cpu".into(),
            units: 64,
            confirmed: 14,
            ..v1::SourceStatus::default()
        };
        v1::JobStatus {
            job: vec![0xab; 16],
            text: "nqueens-job/1 piece=queen n=8 placed=[] blocked=[] scheme=centre-cross depth=4 unit=152"
                .into(),
            state: v1::JobState::Running.into(),
            units: 64,
            done: 64,
            checked: 14,
            audited: 3,
            spot_checked: 40,
            assurance: 0.129,
            checks_due: 5,
            audits_due: 2,
            total: Some((&tally(92)).into()),
            sources: vec![source],
            ..v1::JobStatus::default()
        }
    }

    fn tally(solutions: u128) -> Tally {
        let thirds = 3 * solutions;
        Tally::from_parts(thirds, crate::tally::Residues::of(thirds), 1000)
    }

    fn text(status: v1::JobStatus) -> String {
        JobReport::new(status, 0).text()
    }

    #[test]
    fn a_report_says_how_much_was_checked_and_by_whom() {
        let text = text(status());
        for line in [
            "  verified    14 of 64 units (21.9 %) recounted by others (3 by the coordinator), 40 spot-checked",
            "5 due (2 by the coordinator)",
            "  by          w1 of anna (avx2 on cpu): 64 units, 14 verified by others",
        ] {
            assert!(text.contains(line), "{line}\n{text}");
        }
    }

    #[test]
    fn a_job_with_all_units_counted_says_how_many_checks_are_left() {
        let words = |status: v1::JobStatus| {
            let report = JobReport::new(status, 0);
            (report.state_sentence(), report.progress())
        };
        let verifying = "verifying (5 checks left)";
        assert_eq!(words(status()), (verifying.into(), format!("92 solutions, {verifying}")));
        let last = v1::JobStatus { checks_due: 1, ..status() };
        assert_eq!(words(last).0, "verifying (1 check left)");
        let none = v1::JobStatus { checks_due: 0, ..status() };
        assert_eq!(words(none).0, "verifying");
        // Units are still being counted, or everything is done.
        assert_eq!(words(v1::JobStatus { done: 63, ..status() }).0, "running");
        let finished = v1::JobStatus { state: v1::JobState::Finished.into(), ..status() };
        assert_eq!(words(finished), ("finished".into(), "92 solutions".into()));
    }

    #[test]
    fn a_report_never_claims_more_than_its_figures() {
        let claim = |assurance: f64, solutions: u128| {
            let total = Some((&tally(solutions)).into());
            let report = JobReport::new(v1::JobStatus { assurance, total, ..status() }, 0);
            report.assurance_sentence().expect("units are done")
        };
        let lie = "if one owner had lied about at least one unit, the checks";
        for (assurance, found) in [
            (0.129, "would have found it with a probability of at least 0.12"),
            (0.9999, "would have found it with a probability of at least 0.99"),
            (0.00129, "would have found it with a probability of at least 0.0012"),
            (0.0, "could have missed it"),
            (0.00001, "could have missed it"),
            (1.0, "would have found it"),
        ] {
            assert_eq!(claim(assurance, 91), format!("{lie} {found}"));
        }
        assert!(claim(0.5, 92).starts_with("a wrong total is excluded by the published value; "));
        // While units are missing there is no total, and without units no assurance.
        let part = v1::JobStatus { done: 63, ..status() };
        assert!(!JobReport::new(part, 0).text().contains("excluded"));
        let none = v1::JobStatus { done: 0, assurance: 1.0, ..status() };
        let report = JobReport::new(none, 0);
        assert_eq!(report.assurance_sentence(), None);
        assert!(serde_json::to_value(&report).expect("JSON").get("assurance").is_none());
    }

    #[test]
    fn a_disputed_total_is_never_shown_as_the_answer() {
        let dispute =
            "the total 93 contradicts the published value 92; units are being counted again";
        let disputed = v1::JobStatus {
            state: v1::JobState::Disputed.into(),
            total: Some((&tally(93)).into()),
            dispute: dispute.into(),
            notes: vec![dispute.into(), "another".into()],
            ..status()
        };
        let report = JobReport::new(disputed.clone(), 0);
        assert!(!report.is_over() && report.is_disputed());
        assert_eq!(report.progress(), "the total 93 is disputed, 5 recounts due");
        let text = report.text();
        assert!(
            text.contains("DIFFERS from OEIS A000170: one of the two is wrong, DISPUTED"),
            "{text}"
        );
        assert_eq!(text.matches(dispute).count(), 1, "{text}");
        assert!(text.contains("  note        another"), "{text}");
        let json = serde_json::to_value(&report).expect("JSON");
        assert_eq!(
            (&json["state"], &json["dispute_exhausted"]),
            (&"disputed".into(), &false.into())
        );
        let over = JobReport::new(v1::JobStatus { dispute_exhausted: true, ..disputed }, 0);
        assert!(over.is_over());
        assert_eq!(over.progress(), "the total 93 is disputed, no recount is left");
        // A job that is not disputed has no such fields.
        let json = serde_json::to_value(JobReport::new(status(), 0)).expect("JSON");
        assert!(json.get("dispute").is_none() && json.get("dispute_exhausted").is_none());
    }
}
