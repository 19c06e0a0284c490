//! The signatures of a part: a file beside its result, so that a count on a batch system can be
//! published and audited like a campaign.
//!
//! One JSON object per line: the key, the kernel and the devices of whoever counted the part, then
//! a signature for each unit:
//!
//! ```text
//! {"format":"nqueens-signatures/1","job":"9f3c…","part":3,"parts":500,"key":"LS0t…","kernel":"avx512","devices":["cpu"]}
//! {"unit":3,"signature":"47DE…"}
//! ```

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::plan_file::PlanFile;
use crate::atomic_file::{self, AtomicFile};
use crate::checkpoint::{Checkpoint, CheckpointError};
use crate::cluster::auth::SigningKey;
use crate::cluster::campaign::{
    ResultKey, ResultSignature, Statement, SubRangeSet, UnitId, commitment,
};
use crate::decomposition::JobHash;
use crate::tally::Tally;

const FORMAT: &str = "nqueens-signatures/1";

/// The file extension of the signatures of a part.
pub(super) const SIGNED: &str = "signed";

/// The maximum size in bytes of a file to be read: that of ten million units.
const LARGEST_FILE: u64 = 2 << 30;

/// The first line of the file.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Header {
    format: String,
    job: JobHash,
    part: u64,
    parts: u64,
    key: ResultKey,
    kernel: String,
    devices: Vec<String>,
}

/// Any other line.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    unit: u64,
    signature: ResultSignature,
}

/// The signatures of a part.
#[derive(Clone, Debug)]
pub struct PartSignatures {
    /// The key that verifies them.
    pub key: ResultKey,
    /// The kernel that counted the part.
    pub kernel: String,
    /// The devices that counted it.
    pub devices: Vec<String>,
    signatures: BTreeMap<u64, ResultSignature>,
}

/// The reason that a part cannot be signed, or that its signatures cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum SignatureError {
    /// The file cannot be read or written.
    #[error("{path} cannot be {action}: {source}", path = .path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The attempted operation.
        action: &'static str,
        /// The underlying error.
        source: io::Error,
    },
    /// The result of the part cannot be read.
    #[error(transparent)]
    Result(#[from] CheckpointError),
    /// There is no such file.
    #[error("{path} is missing; count the part with run-unit --key", path = .0.display())]
    Missing(PathBuf),
    /// The file does not have the signatures of this part.
    #[error("{path} is not usable: {1}", path = .0.display())]
    Unusable(PathBuf, String),
}

/// Returns the path of the signatures of the part whose result is at `result`.
pub fn signatures_file(result: &Path) -> PathBuf {
    result.with_extension(SIGNED)
}

/// Returns what is signed for the result of a unit. The sums of its sub-ranges are not kept on
/// batch systems, so none are committed to.
fn statement<'a>(job: JobHash, unit: u64, tally: &Tally, kernel: &'a str) -> Statement<'a> {
    Statement {
        unit: UnitId { job, unit },
        mirrored: false,
        sub_ranges: SubRangeSet::default(),
        thirds: tally.thirds(),
        commitment: commitment(&[]),
        kernel,
    }
}

/// Signs all units of the result at `counted`, and writes the signatures beside `result`, which is
/// the name that it will have.
///
/// # Errors
/// The result cannot be read, or the signatures cannot be written.
pub fn sign(
    plan: &PlanFile,
    part: u64,
    (counted, result): (&Path, &Path),
    (kernel, devices): (&str, &[String]),
    signer: &SigningKey,
) -> Result<(), SignatureError> {
    let file = Checkpoint::read(counted)?;
    let job = plan.job().hash();
    let header = Header {
        format: FORMAT.to_owned(),
        job,
        part,
        parts: plan.parts().get(),
        key: ResultKey::from_bytes(signer.public()),
        kernel: kernel.to_owned(),
        devices: devices.to_owned(),
    };
    let path = signatures_file(result);
    let unwritten = |source| SignatureError::Io { path: path.clone(), action: "written", source };
    let encode = |error: serde_json::Error| unwritten(error.into());
    let mut text = serde_json::to_string(&header).map_err(encode)? + "\n";
    let units: BTreeMap<u64, &Tally> = file.completed().finished().collect();
    for (unit, tally) in units {
        let signature = signer.sign(&statement(job, unit, tally, kernel).to_bytes());
        let signature = ResultSignature { commitment: commitment(&[]), signature };
        text += &serde_json::to_string(&Line { unit, signature }).map_err(encode)?;
        text.push('\n');
    }
    let written = AtomicFile::begin(&path).and_then(|file| file.finish_durably(text.as_bytes()));
    written.map(drop).map_err(unwritten)
}

impl PartSignatures {
    /// Reads the signatures of the part whose result is at `result`.
    ///
    /// # Errors
    /// The file is missing, cannot be read, or belongs to another job.
    pub fn read(plan: &PlanFile, result: &Path) -> Result<Self, SignatureError> {
        let path = signatures_file(result);
        let unread = |source: io::Error| match source.kind() {
            io::ErrorKind::NotFound => SignatureError::Missing(path.clone()),
            _ => SignatureError::Io { path: path.clone(), action: "read", source },
        };
        let text = atomic_file::read_text(&path, LARGEST_FILE).map_err(unread)?;
        let unusable = |why: String| SignatureError::Unusable(path.clone(), why);
        let mut lines = text.lines();
        let first = lines.next().unwrap_or_default();
        let header: Header =
            serde_json::from_str(first).map_err(|error| unusable(format!("line 1: {error}")))?;
        if header.format != FORMAT {
            return Err(unusable(format!("it has format {}, not {FORMAT}", header.format)));
        }
        if header.job != plan.job().hash() {
            return Err(unusable(format!("it belongs to job {}", header.job)));
        }
        let mut signatures = BTreeMap::new();
        for (number, line) in (2..).zip(lines) {
            let line: Line = serde_json::from_str(line)
                .map_err(|error| unusable(format!("line {number}: {error}")))?;
            signatures.insert(line.unit, line.signature);
        }
        let Header { key, kernel, devices, .. } = header;
        Ok(Self { key, kernel, devices, signatures })
    }

    /// Returns the signature of the result of a unit, or `None` if it has none that verifies.
    pub fn verified(&self, job: JobHash, unit: u64, tally: &Tally) -> Option<ResultSignature> {
        let signature = *self.signatures.get(&unit)?;
        let statement = statement(job, unit, tally, &self.kernel);
        self.key.has_signed(&statement, &signature).then_some(signature)
    }
}
