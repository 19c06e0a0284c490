//! The JSON of the page, and its conversion to the messages of the protocol.

use data_encoding::{BASE64, HEXLOWER};
use serde::{Deserialize, Serialize};

use crate::cluster::protocol::v1;
use crate::kernel::gpu::RemoteResult;
use crate::kernel::gpu::layout::{Counters, Slot};

/// The maximum number of leases that a page lists.
pub(super) const MOST_LEASES: usize = 200;
/// The maximum number of letters that are shown of what a page says of itself.
const MOST_LETTERS: usize = 100;

/// The error for an invalid message.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0} is invalid")]
pub(super) struct Invalid(pub(super) &'static str);

/// A lease. A page returns it as it got it. Numbers that JavaScript cannot represent are texts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Lease {
    pub(super) attempt: String,
    pub(super) job: String,
    pub(super) first: String,
    pub(super) units: u64,
    pub(super) mirrored: bool,
    pub(super) sub_ranges: Vec<u32>,
    pub(super) grant: String,
}

impl From<&v1::Lease> for Lease {
    fn from(lease: &v1::Lease) -> Self {
        Self {
            attempt: lease.attempt.to_string(),
            job: HEXLOWER.encode(&lease.job),
            first: lease.first_unit.to_string(),
            units: lease.units,
            mirrored: lease.mirrored,
            sub_ranges: lease.sub_ranges.clone(),
            grant: BASE64.encode(&lease.grant),
        }
    }
}

impl TryFrom<&Lease> for v1::Lease {
    type Error = Invalid;

    fn try_from(lease: &Lease) -> Result<Self, Invalid> {
        Ok(Self {
            attempt: number(&lease.attempt)?,
            job: HEXLOWER.decode(lease.job.as_bytes()).map_err(|_| Invalid("a job"))?,
            first_unit: number(&lease.first)?,
            units: lease.units,
            mirrored: lease.mirrored,
            not_kernel: String::new(),
            sub_ranges: lease.sub_ranges.clone(),
            grant: BASE64.decode(lease.grant.as_bytes()).map_err(|_| Invalid("a grant"))?,
        })
    }
}

/// Parses a number that is sent as a text.
pub(super) fn number(text: &str) -> Result<u64, Invalid> {
    text.parse().map_err(|_| Invalid("a number"))
}

/// Returns a text from a page so that it is safe to show.
pub(super) fn plain(text: &str) -> String {
    text.chars().filter(|letter| !letter.is_control()).take(MOST_LETTERS).collect()
}

/// The body of `POST /api/session`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct OpenRequest {
    /// The token of the link, if it has one.
    #[serde(default)]
    pub(super) token: Option<String>,
}

/// A lease that a page holds.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Held {
    pub(super) lease: Lease,
    /// The units of the lease whose results are not acknowledged.
    pub(super) left: u64,
    /// Those of `left` that are not begun.
    pub(super) unstarted: u64,
}

/// A rate that a page has measured.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Rate {
    pub(super) job: String,
    pub(super) units_per_s: f64,
}

/// The body of `POST /api/sync`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SyncRequest {
    /// Changes when the page is opened again.
    pub(super) boot: String,
    /// True if the page wants units.
    pub(super) wants: bool,
    pub(super) held: Vec<Held>,
    #[serde(default)]
    pub(super) rates: Vec<Rate>,
    /// The name of the GPU.
    #[serde(default)]
    pub(super) device: String,
}

/// The body of requests about a unit of a lease.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct UnitRequest {
    /// The number of the lease.
    pub(super) attempt: String,
    pub(super) unit: String,
}

/// The result of a page for a batch.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct BatchResult {
    /// The counters at the end and the slots, as they are in memory, in base64.
    pub(super) counters: String,
    pub(super) slots: String,
}

/// The body of `POST /api/result`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ResultRequest {
    pub(super) attempt: String,
    pub(super) unit: String,
    pub(super) elapsed_s: f64,
    pub(super) batches: Vec<BatchResult>,
}

/// The body of `POST /api/fail`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FailRequest {
    pub(super) attempt: String,
    pub(super) unit: String,
    pub(super) detail: String,
}

/// The body of `POST /api/leave`, which a browser sends without headers of the page.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct LeaveRequest {
    pub(super) session: String,
    pub(super) boot: String,
}

/// Returns values of `T` in base64, in little-endian order.
fn values<T: bytemuck::Pod>(text: &str) -> Result<Vec<T>, Invalid> {
    let bytes = BASE64.decode(text.as_bytes()).map_err(|_| Invalid("base64"))?;
    let (chunks, rest) = bytes.as_chunks::<4>();
    if !rest.is_empty() || !bytes.len().is_multiple_of(size_of::<T>()) {
        return Err(Invalid("the length of base64"));
    }
    let words: Vec<u32> = chunks.iter().map(|chunk| u32::from_le_bytes(*chunk)).collect();
    Ok(bytemuck::pod_collect_to_vec(&words))
}

impl TryFrom<&BatchResult> for RemoteResult {
    type Error = Invalid;

    fn try_from(result: &BatchResult) -> Result<Self, Invalid> {
        match values::<Counters>(&result.counters)?[..] {
            [counters] => Ok(Self { counters, slots: values::<Slot>(&result.slots)? }),
            _ => Err(Invalid("the counters")),
        }
    }
}

/// Returns a response of two parts: a JSON object, and binary data that begins at a multiple of 4
/// bytes. The JSON is preceded by its length in 4 bytes, in little-endian order.
pub(super) fn framed(head: &serde_json::Value, data: &[&[u8]]) -> Vec<u8> {
    let mut json = head.to_string().into_bytes();
    // Spaces may follow JSON.
    json.resize(json.len().next_multiple_of(4), b' ');
    // A head has some kilobytes.
    let length = u32::try_from(json.len()).unwrap_or(u32::MAX).to_le_bytes();
    [&length, &json[..]].into_iter().chain(data.iter().copied()).collect::<Vec<_>>().concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leases_round_trip_through_json() {
        let lease = v1::Lease {
            attempt: u64::MAX,
            job: vec![7; 16],
            first_unit: u64::MAX - 9,
            units: 2,
            mirrored: true,
            not_kernel: String::new(),
            sub_ranges: vec![3, 31],
            grant: vec![1, 2, 255],
        };
        let json = serde_json::to_string(&Lease::from(&lease)).expect("serialises");
        let read: Lease = serde_json::from_str(&json).expect("reads back");
        assert_eq!(v1::Lease::try_from(&read), Ok(lease));
        for (field, wrong) in
            [("attempt", "\"-1\""), ("job", "\"xyz\""), ("first", "\"1e3\""), ("grant", "\"$\"")]
        {
            let mut value: serde_json::Value = serde_json::from_str(&json).expect("JSON");
            value[field] = serde_json::from_str(wrong).expect("JSON");
            let lease: Lease = serde_json::from_value(value).expect("a lease");
            assert!(v1::Lease::try_from(&lease).is_err(), "{field}");
        }
    }

    #[test]
    fn results_are_read_as_they_are_in_memory_and_other_lengths_are_refused() {
        let counters = Counters { stamp: 7, ..Counters::default() };
        let slots = [Slot { hits: 5, ..Slot::default() }, Slot::default()];
        let (of_counters, of_slots): (&[u8], &[u8]) =
            (bytemuck::bytes_of(&counters), bytemuck::cast_slice(&slots));
        let sent = |counters: &[u8], slots: &[u8]| BatchResult {
            counters: BASE64.encode(counters),
            slots: BASE64.encode(slots),
        };
        let read = RemoteResult::try_from(&sent(of_counters, of_slots));
        assert_eq!(read, Ok(RemoteResult { counters, slots: slots.to_vec() }));
        for (counters, slots) in [
            (&of_counters[4..], of_slots),
            (&[][..], of_slots),
            (of_counters, &of_slots[..of_slots.len() - 4]),
            (of_counters, &of_slots[..3]),
        ] {
            assert!(RemoteResult::try_from(&sent(counters, slots)).is_err());
        }
        let text = BatchResult { counters: "?".into(), slots: String::new() };
        assert_eq!(RemoteResult::try_from(&text), Err(Invalid("base64")));
    }
}
