//! The decompositions of recent jobs. From a job's text, every machine derives the same
//! decomposition.

use std::sync::Arc;

use super::{Decomposition, Job, JobHash};

/// A cache of the decompositions of the most recently used jobs.
#[derive(Debug, Default)]
pub(crate) struct DecompositionCache {
    /// In order of use, the most recent last.
    jobs: Vec<CachedJob>,
}

#[derive(Debug)]
struct CachedJob {
    job: JobHash,
    itself: Arc<Decomposition>,
    mirrored: Option<Arc<Decomposition>>,
}

impl DecompositionCache {
    const MOST: usize = 8;

    /// Returns the decomposition of a job, or its mirror image. The text is needed for a job that
    /// is not in the cache. Takes seconds for large boards.
    ///
    /// # Errors
    /// The text is missing or is not that of the job, or the job cannot be decomposed.
    pub(crate) fn get(
        &mut self,
        job: JobHash,
        text: Option<&str>,
        mirrored: bool,
    ) -> Result<Arc<Decomposition>, String> {
        let found = self.jobs.iter().position(|cached| cached.job == job);
        let mut cached = match found {
            Some(at) => self.jobs.remove(at),
            None => CachedJob { job, itself: Arc::new(decompose(job, text)?), mirrored: None },
        };
        let decomposition = if mirrored {
            Arc::clone(cached.mirrored.get_or_insert_with(|| Arc::new(cached.itself.mirrored())))
        } else {
            Arc::clone(&cached.itself)
        };
        if self.jobs.len() >= Self::MOST {
            self.jobs.remove(0);
        }
        self.jobs.push(cached);
        Ok(decomposition)
    }
}

fn decompose(hash: JobHash, text: Option<&str>) -> Result<Decomposition, String> {
    let text = text.ok_or("the text of its job was not sent")?;
    let job: Job = text.parse().map_err(|error| format!("{error}"))?;
    if job.hash() != hash {
        return Err(format!("the text sent for its job is the text of job {}", job.hash()));
    }
    // A board of absurd dimensions must not end the worker.
    std::panic::catch_unwind(|| Decomposition::new(job))
        .map_err(|_| "its job cannot be decomposed".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::board::{Piece, Problem};
    use crate::decomposition::{Image, Scheme};

    #[test]
    fn a_job_is_decomposed_only_from_its_own_text() {
        let job = |n| {
            Job::new(Problem::empty(Piece::Queen, n), Scheme::CentreCross, None, 5).expect("small")
        };
        let mut cache = DecompositionCache::default();
        let (first, text) = (job(9), job(9).to_string());
        let itself = cache.get(first.hash(), Some(&text), false).expect("its own text");
        assert_eq!(*itself, Decomposition::new(first.clone()));
        // A cached job needs no text, and its mirror image is derived from it.
        let image = cache.get(first.hash(), None, true).expect("known");
        assert_eq!((image.image(), image.job()), (Image::Mirrored, &first));
        assert!(Arc::ptr_eq(&itself, &cache.get(first.hash(), None, false).expect("known")));
        for wrong in [None, Some(text.as_str()), Some("nqueens-job/9 of tomorrow"), Some("")] {
            assert!(cache.get(job(10).hash(), wrong, false).is_err(), "{wrong:?}");
        }
    }
}
