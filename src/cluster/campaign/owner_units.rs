//! The units of an owner, as long as they are few.

use serde::{Deserialize, Serialize};

/// The number of units of an owner up to which they are listed. Most liars are found out before
/// they have counted more.
const MOST_LISTED: usize = 16;

/// The units that an owner has counted or confirmed, also if that is no longer in force.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct OwnerUnits {
    listed: Vec<u64>,
    /// True if there are more, so that none are listed.
    has_many: bool,
}

impl OwnerUnits {
    /// Adds a unit.
    pub(super) fn add(&mut self, unit: u64) {
        if self.has_many {
            return;
        }
        self.listed.push(unit);
        if self.listed.len() > MOST_LISTED {
            *self = Self { listed: Vec::new(), has_many: true };
        }
    }

    /// Returns the units, or `None` if there are too many.
    pub(super) fn listed(&self) -> Option<&[u64]> {
        (!self.has_many).then_some(&self.listed)
    }
}
