//! Files beside the ledger that the coordinator cannot write, as reported to operators.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::sync::{Arc, Mutex};

use super::lock;

/// The files that cannot be written, and the reasons. Clones share the state.
#[derive(Clone, Debug, Default)]
pub(super) struct WriteFailures(Arc<Mutex<BTreeMap<&'static str, String>>>);

impl WriteFailures {
    /// Records whether `what` could be written. Logs only changes.
    pub(super) fn record(&self, what: &'static str, written: Result<(), impl Display>) {
        let mut all = lock(&self.0);
        match written {
            Ok(()) => {
                if all.remove(what).is_some() {
                    tracing::info!("{what} can be written again");
                }
            }
            Err(error) => {
                let text = format!("{what} cannot be written: {error}");
                if all.get(what) != Some(&text) {
                    tracing::error!("{text}");
                    all.insert(what, text);
                }
            }
        }
    }

    /// Returns whether any file cannot be written.
    pub(super) fn has_any(&self) -> bool {
        !lock(&self.0).is_empty()
    }

    /// Joins the problem of the ledger with the problems of these files. Returns an empty text if
    /// there are no problems.
    pub(super) fn append_to(&self, ledger: String) -> String {
        let all = lock(&self.0);
        let each = std::iter::once(&ledger).chain(all.values()).filter(|text| !text.is_empty());
        each.map(String::as_str).collect::<Vec<_>>().join("; ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn write_failures_are_reported_until_a_write_succeeds() {
        let write_failures = WriteFailures::default();
        let other = write_failures.clone();
        assert_eq!(write_failures.append_to(String::new()), "");
        write_failures.record("b", Err("no room"));
        write_failures.record("a", Err("no right"));
        assert_eq!(
            other.append_to("the ledger is full".into()),
            "the ledger is full; a cannot be written: no right; b cannot be written: no room"
        );
        write_failures.record("b", Ok::<(), &str>(()));
        assert_eq!(other.append_to(String::new()), "a cannot be written: no right");
        write_failures.record("a", Ok::<(), &str>(()));
        assert!(!other.has_any());
    }
}
