//! Counts on batch systems that users already have: a plan divides a job into parts, any scheduler
//! runs them, and the results are added up.
//!
//! The result of a part is a checkpoint ([`crate::checkpoint::Checkpoint`]) with its units, under
//! another name while it is incomplete, so that no unit is lost if the process is killed, and a
//! restarted task continues. Only units in such files are added, each once, and a total needs all
//! of them.
//!
//! The files of all parts are in a directory that all tasks share, or in object storage.
//!
//! Whoever counts a part may sign its units. The merged results are then a ledger like that of a
//! coordinator, which is shown, checked and published by the same code.

#[cfg(feature = "cluster")]
mod ledger;
mod merge;
#[cfg(all(feature = "cluster", not(feature = "object-store")))]
#[path = "no_object_storage.rs"]
mod object_storage;
#[cfg(feature = "object-store")]
mod object_storage;
mod plan_file;
#[cfg(feature = "cluster")]
mod result_files;
mod scripts;
#[cfg(feature = "cluster")]
mod signatures;

#[cfg(feature = "cluster")]
pub use ledger::{BatchLedgerError, write_ledger};
pub use merge::{
    MergeError, MergedResults, RecountError, Recounts, is_whole, result_file, unfinished_file,
};
pub use plan_file::{MOST_PARTS, PlanFile, PlanFileError};
#[cfg(feature = "cluster")]
pub use result_files::{ResultFiles, ResultFilesError};
pub use scripts::{Htcondor, Kubernetes, KubernetesResults, Slurm, TaskSettings};
#[cfg(feature = "cluster")]
pub use signatures::{PartSignatures, SignatureError, sign, signatures_file};
