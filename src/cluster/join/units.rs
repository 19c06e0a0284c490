//! Units in the form that a page reads, and the results that it returns.

use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use axum::http::StatusCode;
use bytemuck::cast_slice;
use serde_json::{Value, json};

use super::messages::framed;
use crate::cluster::campaign::{Source, UnitId, UnitResult};
use crate::cluster::net::replies::ErrorResponse;
use crate::cluster::protocol::{device_label, job_hash, messages, v1};
use crate::decomposition::{Decomposition, DecompositionCache, JobHash};
use crate::kernel::gpu::tables::{Tables, Variant};
use crate::kernel::gpu::{Fault, RemoteBatch, RemoteBatches, RemoteResult};
use crate::tally::{Parts, Tally};

/// The name of the shaders in results.
pub(super) const SHADERS: &str = "wgsl";
/// The maximum number of prefixes of a batch: 0.4 MB.
pub(super) const MOST_PREFIXES: u64 = 1 << 14;
/// The maximum number of prefixes of a unit that is given to a page.
const MOST_UNIT_PREFIXES: u64 = 1 << 18;
/// The number of jobs whose tables are kept, each in two images.
const MOST_TABLES: usize = 8;

/// A job in one of its images, as the shaders read it.
#[derive(Debug)]
pub(super) struct PageJob {
    job: JobHash,
    mirrored: bool,
    pub(super) decomposition: Arc<Decomposition>,
    pub(super) tables: Tables,
}

/// The jobs that pages count.
#[derive(Debug, Default)]
pub(super) struct PageJobs {
    decompositions: Mutex<DecompositionCache>,
    /// In order of use, the most recent last.
    jobs: Mutex<Vec<Arc<PageJob>>>,
    /// The texts of jobs, the most recent last.
    texts: Mutex<Vec<v1::Job>>,
}

impl PageJobs {
    /// Records the texts of jobs.
    pub(super) fn set_texts(&self, jobs: Vec<v1::Job>) {
        let mut texts = self.texts.lock().unwrap_or_else(PoisonError::into_inner);
        for job in jobs {
            texts.retain(|known| known.job != job.job);
            if texts.len() >= MOST_TABLES {
                texts.remove(0);
            }
            texts.push(job);
        }
    }

    fn text(&self, lease: &v1::Lease) -> Option<String> {
        let texts = self.texts.lock().unwrap_or_else(PoisonError::into_inner);
        texts.iter().find(|known| known.job == lease.job).map(|known| known.text.clone())
    }

    /// Returns the job of a lease. Takes seconds for large boards.
    ///
    /// # Errors
    /// The text of the job is not known, or the job cannot be decomposed.
    pub(super) fn get(&self, lease: &v1::Lease) -> Result<Arc<PageJob>, String> {
        let text = self.text(lease);
        let job = job_hash(&lease.job).map_err(|error| error.to_string())?;
        let mirrored = lease.mirrored;
        let mut jobs = self.jobs.lock().unwrap_or_else(PoisonError::into_inner);
        let at = jobs.iter().position(|known| (known.job, known.mirrored) == (job, mirrored));
        let found = match at {
            Some(at) => jobs.remove(at),
            None => {
                let mut cache = self.decompositions.lock().unwrap_or_else(PoisonError::into_inner);
                let decomposition = cache.get(job, text.as_deref(), mirrored)?;
                let tables = Tables::new(&decomposition);
                Arc::new(PageJob { job, mirrored, decomposition, tables })
            }
        };
        if jobs.len() >= MOST_TABLES {
            jobs.remove(0);
        }
        jobs.push(Arc::clone(&found));
        Ok(found)
    }
}

impl PageJob {
    /// Returns whether a page can count the job.
    pub(super) fn suits(&self) -> bool {
        !self.decomposition.has_sets()
            && self.tables.suits_all()
            && self.decomposition.job().unit_prefixes() <= MOST_UNIT_PREFIXES
    }

    /// Returns the tables as a page reads them.
    pub(super) fn tables(&self) -> Vec<u8> {
        let (lower, upper) = (self.tables.lower_rows(), self.tables.upper_rows());
        framed(&table_head(&self.tables), &[cast_slice(lower), cast_slice(upper)])
    }

    /// Returns the batches of a unit of a lease: of all of its sub-ranges, or of those that the
    /// lease names.
    ///
    /// # Errors
    /// The shaders do not support the unit.
    pub(super) fn batches(&self, lease: &v1::Lease, unit: u64) -> Result<RemoteBatches, Fault> {
        let requested =
            |number: u32| lease.sub_ranges.is_empty() || lease.sub_ranges.contains(&number);
        let ranges = self.decomposition.sub_ranges(unit).zip(0u32..);
        let ranges: Vec<Range<u64>> =
            ranges.filter(|&(_, number)| requested(number)).map(|(range, _)| range).collect();
        RemoteBatches::new(&self.decomposition, &self.tables, &ranges, MOST_PREFIXES)
    }
}

/// Returns the sizes that a page needs besides the rows.
pub(super) fn table_head(tables: &Tables) -> Value {
    let [most_lower, most_upper] = tables.most_rows();
    json!({
        "depth": tables.depth(),
        "most_lower": most_lower,
        "most_upper": most_upper,
        "most_emitted": tables.most_emitted(),
        "lower_rows": tables.lower_rows().len(),
        "upper_rows": tables.upper_rows().len(),
    })
}

const fn variant_name(variant: Variant) -> &'static str {
    match variant {
        Variant::Plain => "plain",
        Variant::Gated => "gated",
        Variant::General => "general",
    }
}

/// Returns the description of a batch; its data follows in the same order.
pub(super) fn batch_head(batch: &RemoteBatch) -> Value {
    json!({
        "variant": variant_name(batch.variant),
        "prefixes": batch.prefixes().len(),
        "segments": batch.segments().len(),
        "slots": batch.weights().len(),
        "checksum": batch.checksum(),
    })
}

/// Returns batches as a page reads them, after `head` and `data`; `batch_head` describes each.
pub(super) fn batches_frame<'a>(
    (mut head, mut data): (Value, Vec<&'a [u8]>),
    batches: &'a RemoteBatches,
    batch_head: impl Fn(&RemoteBatch) -> Value,
) -> Vec<u8> {
    head["batches"] = batches.batches().iter().map(batch_head).collect();
    for batch in batches.batches() {
        data.extend([cast_slice(batch.prefixes()), cast_slice(batch.segments())]);
    }
    framed(&head, &data)
}

/// Returns the result of a unit. Sums that contradict their residues are left to the coordinator,
/// which puts their sender in quarantine.
///
/// # Errors
/// The accounting of a batch does not balance, or the sums overflow.
pub(super) fn unit_result(
    (lease, unit): (&v1::Lease, u64),
    batches: &RemoteBatches,
    results: &[RemoteResult],
    (device, elapsed_s): (&str, f64),
) -> Result<v1::Result, ErrorResponse> {
    let unbalanced =
        |fault: Fault| ErrorResponse::new(StatusCode::UNPROCESSABLE_ENTITY, fault.to_string());
    let of_ranges = batches.parts(results).map_err(unbalanced)?;
    let mut parts = Parts::default();
    let (mut tally, mut sub_sums) = (Tally::default(), Vec::with_capacity(of_ranges.len()));
    for of_range in &of_ranges {
        let mut sum = Tally::default();
        for part in of_range.iter() {
            let nodes = u64::try_from(part.nodes).unwrap_or(u64::MAX);
            sum.add(part.weight, part.completions, part.residues, nodes.into())
                .map_err(|error| unbalanced(error.into()))?;
        }
        sub_sums.push(sum.thirds());
        tally.merge(&sum).map_err(|error| unbalanced(error.into()))?;
        parts.merge(of_range).map_err(|error| unbalanced(error.into()))?;
    }
    let job = job_hash(&lease.job)
        .map_err(|error| ErrorResponse::new(StatusCode::BAD_REQUEST, error.to_string()))?;
    let source = Source {
        kernel: SHADERS.to_owned(),
        device: device_label(device),
        // The coordinator knows the caller and its build.
        ..Source::default()
    };
    Ok(messages::result(&UnitResult {
        unit: UnitId { job, unit },
        attempt: lease.attempt,
        grant: lease.grant.clone(),
        tally,
        parts,
        sub_sums,
        source,
        elapsed_s,
        signature: None,
    }))
}
