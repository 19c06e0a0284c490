//! The entries of a campaign's ledger: its events with their times.

use serde::de::Error as _;

use crate::cluster::campaign::CampaignEvent;

/// An event of a campaign, and the time at which it was recorded.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// The event.
    pub event: CampaignEvent,
    /// The time in milliseconds since the Unix epoch, given by the caller.
    pub at_ms: u64,
}

/// The text before the time, which is the last field of every entry.
const TIME: &str = ",\"at_ms\":";
/// The text after the time: the ends of the event's fields and of the entry.
const END: &str = "}}";

impl Entry {
    /// Creates an entry. The time of a submission becomes that of the entry.
    pub fn new(mut event: CampaignEvent, at_ms: u64) -> Self {
        event.complete(at_ms);
        Self { event, at_ms }
    }

    /// Returns the JSON of the entry: that of the event, with the time as the last field.
    ///
    /// # Errors
    /// Returns an error if the event cannot be encoded.
    pub fn to_json(&self) -> serde_json::Result<String> {
        let mut text = serde_json::to_string(&self.event)?;
        // Every event has fields, of which none is called `at_ms`.
        text.truncate(text.len() - END.len());
        Ok(text + TIME + &self.at_ms.to_string() + END)
    }

    /// Parses what [`Self::to_json`] returns.
    ///
    /// # Errors
    /// Returns an error if the text is not that of an entry, or if it has unknown fields.
    pub fn from_json(text: &str) -> serde_json::Result<Self> {
        // A quotation mark within a string would be escaped.
        let fields = text.strip_suffix(END).and_then(|fields| fields.rsplit_once(TIME));
        let (event, at_ms) = fields
            .and_then(|(fields, time)| Some((fields.to_owned() + END, time.parse().ok()?)))
            .ok_or_else(|| serde_json::Error::custom("its last field is not the time at_ms"))?;
        Ok(Self::new(serde_json::from_str(&event)?, at_ms))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lines of `nqueens ledger export` of a program of commit 53eb59a, with every kind of entry.
    const STORED: &str =
        include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/formats/entries.jsonl"));

    fn stored() -> impl Iterator<Item = &'static str> {
        let entry = |line: &'static str| {
            let (_, entry) = line.split_once("\"entry\":").expect("an entry");
            entry.strip_suffix('}').expect("an object")
        };
        STORED.lines().map(entry)
    }

    #[test]
    fn the_text_of_every_kind_of_entry_is_stable() {
        let mut kinds = std::collections::BTreeSet::new();
        for text in stored() {
            let entry = Entry::from_json(text).unwrap_or_else(|error| panic!("{text}: {error}"));
            assert_eq!(entry.to_json().expect("it can be encoded"), text);
            let kind = text.split('"').nth(1).expect("a kind");
            assert_eq!(entry.event.job().is_some(), text.contains(r#"{"job":"#), "{text}");
            kinds.insert(kind);
        }
        let all = [
            "job_state",
            "job_submitted",
            "note",
            "recount",
            "spot_check",
            "unit_done",
            "unit_poisoned",
            "unit_revived",
            "unit_voided",
            "worker_drained",
            "worker_quarantined",
            "worker_released",
            "worker_seen",
        ];
        assert_eq!(kinds.into_iter().collect::<Vec<_>>(), all);
    }

    #[test]
    fn an_entry_with_a_missing_unknown_or_misplaced_field_is_refused() {
        for text in stored() {
            let unknown = text.replacen(r#"":{""#, r#"":{"new":1,""#, 1);
            let error = Entry::from_json(&unknown).expect_err("a later version wrote it");
            assert!(error.to_string().contains("unknown field `new`"), "{error}");
            let mut twice = text.to_owned();
            twice.insert_str(text.len() - END.len(), ",\"at_ms\":1");
            Entry::from_json(&twice).expect_err("a field of two values");
            let (start, _) = text.rsplit_once(TIME).expect("a time");
            Entry::from_json(&format!("{start}{END}")).expect_err("no time");
            Entry::from_json(&format!("{start},\"at_ms\":-1{END}")).expect_err("no time");
        }
        Entry::from_json(r#"{"worker_quarantined":{"reason":"","at_ms":1}}"#).expect_err("whose?");
        Entry::from_json(r#"{"renamed":{"worker":"w","at_ms":1}}"#).expect_err("no such kind");
        Entry::from_json("").expect_err("no entry");
    }

    #[test]
    fn a_submission_that_is_read_has_its_time_and_the_published_value() {
        let text = stored().find(|text| text.contains("job_submitted")).expect("a submission");
        let entry = Entry::from_json(text).expect("an entry");
        let CampaignEvent::JobSubmitted { at_ms, published, .. } = entry.event else {
            unreachable!("it is one")
        };
        assert_eq!((at_ms, published), (entry.at_ms, Some(92)));
    }
}
