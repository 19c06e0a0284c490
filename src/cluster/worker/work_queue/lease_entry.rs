//! A held lease and the states of its units.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use super::LeasedUnit;
use crate::cluster::campaign::{Assignment, HeldLease};
use crate::decomposition::Decomposition;

/// A held lease.
#[derive(Debug)]
pub(super) struct LeaseEntry {
    pub(super) assignment: Arc<Assignment>,
    /// `None` until the job is decomposed.
    pub(super) decomposition: Option<Arc<Decomposition>>,
    pub(super) waiting: VecDeque<u64>,
    pub(super) counting: BTreeSet<u64>,
    pub(super) kept: BTreeSet<u64>,
}

impl LeaseEntry {
    pub(super) fn new(assignment: Assignment) -> Self {
        let waiting = assignment.units.clone().collect();
        let assignment = Arc::new(assignment);
        Self {
            assignment,
            decomposition: None,
            waiting,
            counting: BTreeSet::new(),
            kept: BTreeSet::new(),
        }
    }

    pub(super) fn left(&self) -> usize {
        self.waiting.len() + self.counting.len() + self.kept.len()
    }

    pub(super) fn held(&self) -> HeldLease {
        let (left, unstarted) = (self.left() as u64, self.waiting.len() as u64);
        HeldLease { lease: Assignment::clone(&self.assignment), left, unstarted }
    }

    /// Returns whether only some sub-ranges of the lease's units are to be counted.
    pub(super) fn is_spot(&self) -> bool {
        !self.assignment.sub_ranges.is_empty()
    }

    /// Returns a unit of the lease, ready to be counted.
    pub(super) fn leased(&self, unit: u64) -> LeasedUnit {
        LeasedUnit { lease: Arc::clone(&self.assignment), unit }
    }
}

/// Checks that a job has all units and sub-ranges that a lease asks for.
///
/// # Errors
/// A description of the missing unit or sub-range.
pub(super) fn check_lease(lease: &Assignment, decomposition: &Decomposition) -> Result<(), String> {
    let (last, units) = (lease.units.end.saturating_sub(1), decomposition.units());
    if last >= units {
        return Err(format!("the job has {units} units, numbered from 0; there is no unit {last}"));
    }
    let Some(number) = lease.sub_ranges.numbers().last() else { return Ok(()) };
    // All units but the last have the same size.
    let sub_ranges = decomposition.sub_ranges(last).len();
    if number as usize >= sub_ranges {
        return Err(format!(
            "unit {last} has {sub_ranges} sub-ranges, numbered from 0; there is no sub-range {number}"
        ));
    }
    Ok(())
}
