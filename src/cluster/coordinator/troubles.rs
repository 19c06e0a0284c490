//! Files beside the ledger that a coordinator cannot write, for people.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What cannot be written, and why. Clones share it.
#[derive(Clone, Debug, Default)]
pub(super) struct Troubles(Arc<Mutex<BTreeMap<&'static str, String>>>);

impl Troubles {
    fn all(&self) -> MutexGuard<'_, BTreeMap<&'static str, String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes whether `what` could be written. Only a change is logged.
    pub(super) fn note(&self, what: &'static str, written: Result<(), impl Display>) {
        let mut all = self.all();
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

    /// Returns whether there is any.
    pub(super) fn is_some(&self) -> bool {
        !self.all().is_empty()
    }

    /// Adds them to what is wrong with the ledger; empty if nothing is.
    pub(super) fn added_to(&self, ledger: String) -> String {
        let all = self.all();
        let each = std::iter::once(&ledger).chain(all.values()).filter(|text| !text.is_empty());
        each.map(String::as_str).collect::<Vec<_>>().join("; ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn troubles_are_told_until_they_are_over() {
        let troubles = Troubles::default();
        let other = troubles.clone();
        assert_eq!(troubles.added_to(String::new()), "");
        troubles.note("b", Err("no room"));
        troubles.note("a", Err("no right"));
        assert_eq!(
            other.added_to("the ledger is full".into()),
            "the ledger is full; a cannot be written: no right; b cannot be written: no room"
        );
        troubles.note("b", Ok::<(), &str>(()));
        assert_eq!(other.added_to(String::new()), "a cannot be written: no right");
        troubles.note("a", Ok::<(), &str>(()));
        assert!(!other.is_some());
    }
}
