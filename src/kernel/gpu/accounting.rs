//! The accounting checks of a batch, and the tallies of its slots.
//!
//! A batch is accepted only if
//! 1. each submission's stamp came back in order, and the number of searches that ran is the number
//!    requested (see `device_kernel.rs`),
//! 2. every state put on a level was expanded, and read back as it was written (sums of checksums
//!    agree),
//! 3. every state emitted to the ring was finished by a lane, and read back as it was written,
//! 4. every parked lane was found unchanged, with its stack,
//! 5. the hits agree with the shadow (turns minus misses, summed separately) as residues, and no
//!    slot has more hits than turns,
//! 6. the tables of rows are in the device's memory as they were written (see `device.rs`).
//!
//! So memory that comes back as zeros or stale, or a dropped dispatch, is a [`Fault`] and never a
//! count. These checks cannot detect wrong arithmetic on sound memory; self-tests and recounts
//! cover that.

use super::fault::Fault;
use super::layout::{Counters, Slot};
use crate::tally::{Parts, Residues, Tally, Thirds};

/// Returns whether no work is left.
pub(super) fn drained(counters: &Counters) -> bool {
    let waiting = counters.ring_write.wrapping_sub(counters.ring_read).cast_signed();
    waiting <= 0
        && counters.ring_returned == 0
        && counters.busy == 0
        && counters.level_count.iter().all(|&count| count == 0)
}

/// Checks that all work of a batch with so many prefixes and slots was done exactly once.
pub(super) fn audit(
    (prefixes, slots_of_batch): (usize, usize),
    end: &Counters,
    slots: &[Slot],
) -> Result<(), Fault> {
    let wrong = |what: String| Err(Fault::Miscounts(what));
    // A batch holds far fewer than 2^32 prefixes.
    let to_expand = (prefixes as u32).wrapping_add(end.appended);
    if end.expanded != to_expand {
        return wrong(format!("{} of {to_expand} states were expanded", end.expanded));
    }
    if end.lower_put != end.lower_taken || end.ring_put != end.ring_taken {
        return wrong("states in memory were damaged".into());
    }
    if end.faults > 0 {
        return wrong(format!("{} parked lanes were damaged", end.faults));
    }
    let emitted = end.ring_write.wrapping_sub(end.returned_total);
    let finished = slots.iter().fold(0u32, |sum, slot| sum.wrapping_add(slot.finished));
    if finished != emitted {
        return wrong(format!("{finished} of {emitted} states were finished"));
    }
    if slots.len() != slots_of_batch {
        return wrong(format!("{} of {slots_of_batch} slots came back", slots.len()));
    }
    for slot in slots {
        if pair(slot.hits, slot.hits_high) > pair(slot.turns, slot.turns_high) {
            return wrong("a slot has more solutions than turns".into());
        }
    }
    Ok(())
}

/// Adds a slot's count to a range's result.
pub(super) fn enter(slot: &Slot, weight: Thirds, parts: &mut Parts) -> Result<(), Fault> {
    let (hits, shadow, turns) = parts_of(slot);
    // Verified here, and not only in the sum, because two errors in one range could cancel out.
    Tally::from_parts(hits.into(), shadow, turns.into()).verify()?;
    Ok(parts.add(weight, hits, shadow, turns)?)
}

/// Returns the hits of a slot, the residues of its shadow, and its turns.
pub(super) fn parts_of(slot: &Slot) -> (u64, Residues, u64) {
    let [low, low_high, high, high_high] = slot.shadow;
    let shadow = u128::from(pair(low, low_high)) + (u128::from(pair(high, high_high)) << 16);
    let (hits, turns) = (pair(slot.hits, slot.hits_high), pair(slot.turns, slot.turns_high));
    (hits, Residues::of(shadow), turns)
}

const fn pair(low: u32, high: u32) -> u64 {
    (high as u64) << 32 | low as u64
}
