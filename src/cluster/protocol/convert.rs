//! Conversions between messages and the campaign's types. This is the only place where input from
//! outside is validated.

use std::net::IpAddr;

use crate::board::{Piece, Problem, Square};
use crate::cluster::campaign::{
    Assignment, HeldLease, JobState, ResultKey, ResultSignature, ResultVerdict, Source,
    SubRangeSet, SyncRequest, SyncResponse, UnitId, UnitResult, commitment, possession_message,
};
use crate::decomposition::{JobHash, Subproblems};
use crate::tally::{Parts, Residues, Tally};

use super::v1;

/// The maximum size of a message in bytes.
pub const MOST_MESSAGE_BYTES: usize = 1 << 20;
/// The maximum number of leases in a sync.
pub const MOST_HELD: usize = 4096;
/// The maximum number of results in a call.
pub const MOST_RESULTS: usize = 1024;
const MOST_PARTS: usize = 64;
const MOST_DEVICES: usize = 64;
const MOST_KERNELS: usize = 64;
const MOST_JOBS: usize = 4096;
const MOST_NAME_BYTES: usize = 256;
const MOST_SQUARES: usize = 4096;
const MOST_SUB_RANGES: usize = 32;
const MOST_GRANT_BYTES: usize = 256;

/// The error for an invalid message.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// A required field is missing.
    #[error("{0} is missing")]
    Missing(&'static str),
    /// A byte string has the wrong length.
    #[error("{0} has length {1} instead of {2}")]
    Length(&'static str, usize, usize),
    /// A list has too many items.
    #[error("{1} {0}; at most {2} are allowed")]
    TooMany(&'static str, usize, usize),
    /// A value is out of range.
    #[error("{0} is out of range")]
    Range(&'static str),
    /// A worker presents a key without the proof that it has the private one.
    #[error("the key of the worker is not signed by the key itself")]
    KeyProof,
    /// The piece or the board is invalid.
    #[error("{0}")]
    Problem(String),
}

pub(super) fn at_most(what: &'static str, found: usize, most: usize) -> Result<(), Malformed> {
    if found <= most { Ok(()) } else { Err(Malformed::TooMany(what, found, most)) }
}

fn bytes<const N: usize>(what: &'static str, bytes: &[u8]) -> Result<[u8; N], Malformed> {
    bytes.try_into().map_err(|_| Malformed::Length(what, bytes.len(), N))
}

/// Returns the job hash in a byte string.
///
/// # Errors
/// There are not 16 bytes.
pub fn job_hash(hash: &[u8]) -> Result<JobHash, Malformed> {
    Ok(JobHash::from_bytes(bytes("a job's name", hash)?))
}

fn name(what: &'static str, name: String) -> Result<String, Malformed> {
    let is_plain = name.len() <= MOST_NAME_BYTES && !name.chars().any(char::is_control);
    if is_plain { Ok(name) } else { Err(Malformed::Range(what)) }
}

pub(super) fn seconds(what: &'static str, seconds: f64) -> Result<f64, Malformed> {
    if seconds.is_finite() && seconds >= 0.0 { Ok(seconds) } else { Err(Malformed::Range(what)) }
}

fn residues(values: &[u64]) -> Result<Residues, Malformed> {
    let values: [u64; 2] =
        values.try_into().map_err(|_| Malformed::Length("residues", values.len(), 2))?;
    Ok(Residues::from_values(values))
}

fn number(what: &'static str, be: &[u8]) -> Result<u128, Malformed> {
    Ok(u128::from_be_bytes(bytes(what, be)?))
}

impl From<&Tally> for v1::Tally {
    fn from(tally: &Tally) -> Self {
        Self {
            thirds: tally.thirds().to_be_bytes().into(),
            residues: tally.residues().values().into(),
            nodes: tally.nodes().to_be_bytes().into(),
        }
    }
}

impl TryFrom<&v1::Tally> for Tally {
    type Error = Malformed;

    /// Converts the fields as they were sent: their consistency is not checked.
    fn try_from(tally: &v1::Tally) -> Result<Self, Malformed> {
        let thirds = number("a sum", &tally.thirds)?;
        Ok(Self::from_parts(thirds, residues(&tally.residues)?, number("nodes", &tally.nodes)?))
    }
}

fn parts(sent: &[v1::Part]) -> Result<Parts, Malformed> {
    at_most("parts", sent.len(), MOST_PARTS)?;
    let mut parts = Parts::default();
    for part in sent {
        let completions = number("completions", &part.completions)?;
        let (residues, nodes) = (residues(&part.residues)?, number("nodes", &part.nodes)?);
        let added = parts.add(part.weight, completions, residues, nodes);
        added.map_err(|_| Malformed::Range("the sum of the parts"))?;
    }
    Ok(parts)
}

/// Returns the signature of a result, if it has one, with the commitment to its sums.
fn signature(sent: &[u8], sub_sums: &[u8]) -> Result<Option<ResultSignature>, Malformed> {
    if sent.is_empty() {
        return Ok(None);
    }
    let commitment = commitment(&self::sub_sums(sub_sums)?);
    Ok(Some(ResultSignature { commitment, signature: bytes("a signature", sent)? }))
}

fn sub_sums(bytes: &[u8]) -> Result<Vec<u128>, Malformed> {
    let (sums, rest) = bytes.as_chunks::<16>();
    at_most("sums of sub-ranges", sums.len(), MOST_SUB_RANGES)?;
    if !rest.is_empty() {
        return Err(Malformed::Length("a sum of a sub-range", rest.len(), 16));
    }
    Ok(sums.iter().map(|sum| u128::from_be_bytes(*sum)).collect())
}

fn lease(assignment: &Assignment) -> v1::Lease {
    v1::Lease {
        attempt: assignment.attempt,
        job: assignment.job.to_bytes().into(),
        first_unit: assignment.units.start,
        units: assignment.units.end - assignment.units.start,
        mirrored: assignment.mirrored,
        not_kernel: assignment.not_kernel.clone().unwrap_or_default(),
        sub_ranges: assignment.sub_ranges.numbers().collect(),
        grant: assignment.grant.clone(),
    }
}

fn assignment(lease: v1::Lease) -> Result<Assignment, Malformed> {
    let end = lease.first_unit.checked_add(lease.units).ok_or(Malformed::Range("a lease"))?;
    let not_kernel = name("a kernel", lease.not_kernel)?;
    let sub_ranges =
        SubRangeSet::from_numbers(lease.sub_ranges).ok_or(Malformed::Range("a sub-range"))?;
    at_most("bytes of a grant", lease.grant.len(), MOST_GRANT_BYTES)?;
    Ok(Assignment {
        attempt: lease.attempt,
        job: job_hash(&lease.job)?,
        units: lease.first_unit..end,
        mirrored: lease.mirrored,
        not_kernel: (!not_kernel.is_empty()).then_some(not_kernel),
        sub_ranges,
        grant: lease.grant,
    })
}

/// Returns a device's name as used in results: printable ASCII, at most 200 characters.
pub fn device_label(name: &str) -> String {
    name.chars().filter(char::is_ascii).filter(|letter| !letter.is_control()).take(200).collect()
}

/// Returns the names that results may use for a device.
fn device_labels(device: &v1::Device) -> [String; 2] {
    [device_label(&device.id), device_label(&format!("{}, {}", device.id, device.name))]
}

/// Conversions between messages and the campaign's types.
pub mod messages {
    use super::*;

    /// Returns the submitted problem.
    ///
    /// # Errors
    /// The piece or the board is invalid, or too many squares are decided.
    pub fn problem(request: &v1::SubmitRequest) -> Result<Problem, Malformed> {
        at_most("squares", request.placed.len() + request.blocked.len(), MOST_SQUARES)?;
        let piece: Piece = request.piece.parse().map_err(|e| Malformed::Problem(format!("{e}")))?;
        let zero_based = |from_one: u32| from_one.checked_sub(1).map(|i| i as usize);
        let square = |s: &v1::Square| Some(Square::new(zero_based(s.row)?, zero_based(s.column)?));
        let squares = |squares: &[v1::Square]| -> Result<Vec<Square>, Malformed> {
            let all: Option<Vec<Square>> = squares.iter().map(square).collect();
            all.ok_or_else(|| {
                Malformed::Problem("rows and columns of squares start at 1".to_owned())
            })
        };
        let (placed, blocked) = (squares(&request.placed)?, squares(&request.blocked)?);
        let n = request.n as usize;
        Problem::new(piece, n, placed, blocked).map_err(|e| Malformed::Problem(e.to_string()))
    }

    /// Returns the subproblems that a submission chooses, or `None` for those that the coordinator
    /// chooses.
    ///
    /// # Errors
    /// A value of another version of the protocol.
    pub fn subproblems(request: &v1::SubmitRequest) -> Result<Option<Subproblems>, Malformed> {
        let known = v1::Subproblems::try_from(request.subproblems);
        known.map(Into::into).map_err(|_| Malformed::Range("the kind of subproblems"))
    }

    /// Returns a worker's sync request; the call's credentials determine the worker.
    ///
    /// # Errors
    /// The message exceeds a limit or is invalid.
    pub fn sync_request(
        request: v1::SyncRequest,
        (worker, owner, address): (String, String, Option<IpAddr>),
    ) -> Result<SyncRequest, Malformed> {
        at_most("devices", request.devices.len(), MOST_DEVICES)?;
        at_most("leases", request.held.len(), MOST_HELD)?;
        at_most("kernels", request.kernels.len(), MOST_KERNELS)?;
        at_most("rates", request.rates.len(), MOST_JOBS)?;
        let held = request.held.into_iter().map(|held| {
            let lease = assignment(held.lease.ok_or(Malformed::Missing("a lease"))?)?;
            Ok(HeldLease { lease, left: held.left, unstarted: held.unstarted.min(held.left) })
        });
        let kernels = request.kernels.into_iter().map(|kernel| name("a kernel", kernel));
        let rates = request.rates.iter().map(|rate| Ok((job_hash(&rate.job)?, rate.units_per_s)));
        Ok(SyncRequest {
            worker,
            owner,
            address,
            boot: request.boot,
            capacity: request.capacity,
            kernels: kernels.collect::<Result<_, _>>()?,
            devices: request.devices.iter().flat_map(device_labels).collect(),
            units_per_s: rates.collect::<Result<_, _>>()?,
            held: held.collect::<Result<_, _>>()?,
            draining: request.draining,
        })
    }

    /// Returns the key that a worker presents with a sync, if it does.
    ///
    /// # Errors
    /// The worker does not prove that it has the private key.
    pub fn result_key(
        request: &v1::SyncRequest,
        worker: &str,
    ) -> Result<Option<ResultKey>, Malformed> {
        if request.result_key.is_empty() {
            return Ok(None);
        }
        let key = ResultKey::from_bytes(bytes("a key", &request.result_key)?);
        let proof = bytes("the signature of a key", &request.key_signature)?;
        if key.verifies(&possession_message(worker), &proof) {
            Ok(Some(key))
        } else {
            Err(Malformed::KeyProof)
        }
    }

    /// Returns a worker's devices with texts that are safe to display.
    ///
    /// # Errors
    /// There are too many.
    pub fn devices(devices: Vec<v1::Device>) -> Result<Vec<v1::Device>, Malformed> {
        at_most("devices", devices.len(), MOST_DEVICES)?;
        let displayable = |text: String| {
            let printable = text.chars().filter(|letter| !letter.is_control());
            printable.take(MOST_NAME_BYTES / 4).collect::<String>()
        };
        let device = |device: v1::Device| v1::Device {
            id: displayable(device.id),
            name: displayable(device.name),
            kernel: displayable(device.kernel),
            fault: displayable(device.fault),
            ..device
        };
        Ok(devices.into_iter().map(device).collect())
    }

    /// Returns the message for a held lease.
    pub fn held(held: &HeldLease) -> v1::Held {
        v1::Held { lease: Some(lease(&held.lease)), left: held.left, unstarted: held.unstarted }
    }

    /// Returns the answer to a sync, without the texts of its jobs.
    pub fn sync_response(response: &SyncResponse) -> v1::SyncResponse {
        v1::SyncResponse {
            desired: response.desired.iter().map(lease).collect(),
            cancel: response.cancel.clone(),
            // Saturating: no wait is that long.
            next_sync_ms: u32::try_from(response.next_sync_ms).unwrap_or(u32::MAX),
            ..v1::SyncResponse::default()
        }
    }

    /// Returns the leases of an answer.
    ///
    /// # Errors
    /// A lease is invalid.
    pub fn desired(leases: Vec<v1::Lease>) -> Result<Vec<Assignment>, Malformed> {
        leases.into_iter().map(assignment).collect()
    }

    /// Returns a result, with the worker's name, owner and build.
    ///
    /// # Errors
    /// The message exceeds a limit or is invalid. Its consistency is not checked here.
    pub fn unit_result(
        result: v1::Result,
        (worker, owner): (&str, &str),
        build: &str,
    ) -> Result<UnitResult, Malformed> {
        let unit = UnitId { job: job_hash(&result.job)?, unit: result.unit };
        let source = Source {
            worker: worker.to_owned(),
            owner: owner.to_owned(),
            kernel: name("a kernel", result.kernel)?,
            device: name("a device", result.device)?,
            build: build.to_owned(),
        };
        at_most("bytes of a grant", result.grant.len(), MOST_GRANT_BYTES)?;
        Ok(UnitResult {
            unit,
            attempt: result.attempt,
            grant: result.grant,
            sub_sums: sub_sums(&result.sub_sums)?,
            tally: Tally::try_from(&result.tally.ok_or(Malformed::Missing("a tally"))?)?,
            parts: parts(&result.parts)?,
            source,
            elapsed_s: seconds("the elapsed time", result.elapsed_s)?,
            signature: signature(&result.signature, &result.sub_sums)?,
        })
    }

    /// Returns the message with a result. The worker is omitted, since the call's credentials
    /// determine it.
    pub fn result(completion: &UnitResult) -> v1::Result {
        let parts = completion.parts.iter().map(|part| v1::Part {
            weight: part.weight,
            completions: part.completions.to_be_bytes().into(),
            residues: part.residues.values().into(),
            nodes: part.nodes.to_be_bytes().into(),
        });
        v1::Result {
            attempt: completion.attempt,
            job: completion.unit.job.to_bytes().into(),
            unit: completion.unit.unit,
            tally: Some((&completion.tally).into()),
            parts: parts.collect(),
            kernel: completion.source.kernel.clone(),
            device: completion.source.device.clone(),
            elapsed_s: completion.elapsed_s,
            sub_sums: completion.sub_sums.iter().flat_map(|sum| sum.to_be_bytes()).collect(),
            grant: completion.grant.clone(),
            signature: completion.signature.map_or(Vec::new(), |signed| signed.signature.into()),
        }
    }
}

impl From<ResultVerdict> for v1::Verdict {
    fn from(verdict: ResultVerdict) -> Self {
        match verdict {
            ResultVerdict::Accepted => Self::Accepted,
            ResultVerdict::Duplicate => Self::Duplicate,
            ResultVerdict::Conflict => Self::Conflict,
            ResultVerdict::StaleJob => Self::StaleJob,
            ResultVerdict::Refused => Self::Refused,
            ResultVerdict::Quarantined => Self::Quarantined,
        }
    }
}

impl From<Subproblems> for v1::Subproblems {
    fn from(subproblems: Subproblems) -> Self {
        match subproblems {
            Subproblems::Prefixes => Self::Prefixes,
            Subproblems::ColumnSets => Self::ColumnSets,
        }
    }
}

impl From<v1::Subproblems> for Option<Subproblems> {
    fn from(subproblems: v1::Subproblems) -> Self {
        match subproblems {
            v1::Subproblems::Unspecified => None,
            v1::Subproblems::Prefixes => Some(Subproblems::Prefixes),
            v1::Subproblems::ColumnSets => Some(Subproblems::ColumnSets),
        }
    }
}

impl From<JobState> for v1::JobState {
    fn from(state: JobState) -> Self {
        match state {
            JobState::Running => Self::Running,
            JobState::Paused => Self::Paused,
            JobState::Cancelled => Self::Cancelled,
            JobState::Finished => Self::Finished,
            JobState::Disputed => Self::Disputed,
        }
    }
}

impl TryFrom<v1::JobState> for JobState {
    type Error = Malformed;

    fn try_from(state: v1::JobState) -> Result<Self, Malformed> {
        match state {
            v1::JobState::Running => Ok(Self::Running),
            v1::JobState::Paused => Ok(Self::Paused),
            v1::JobState::Cancelled => Ok(Self::Cancelled),
            v1::JobState::Finished => Ok(Self::Finished),
            v1::JobState::Disputed => Ok(Self::Disputed),
            v1::JobState::Unspecified => Err(Malformed::Missing("a state")),
        }
    }
}

#[cfg(test)]
mod tests;
