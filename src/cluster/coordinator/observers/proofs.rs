//! The observation of proofs.

use super::super::event_log::OperatorEvent;
use super::super::proofs::Goal;
use super::{NotificationKind, Observers};
use crate::cluster::campaign::JobState;
use crate::decomposition::JobHash;

impl Observers {
    /// Observes a new proof.
    pub(in super::super) fn proof_submitted(&self, goal: Goal, submitter: &str) {
        let (job, text) = (goal.job(), goal.text());
        tracing::info!(%job, submitter, text, "a proof is submitted");
        let submitted = OperatorEvent::job_submitted(job, &goal.title(), submitter, None);
        self.event_log.add(submitted);
    }

    /// Observes a state that `by` requested.
    pub(in super::super) fn proof_state_changed(&self, goal: Goal, state: JobState, by: &str) {
        let job = goal.job();
        tracing::info!(%job, state = state.name(), "the state of a proof has changed");
        self.event_log.add(OperatorEvent::job_state(job, &goal.title(), state, by));
    }

    /// Observes a finished proof, whose certificate has this many bytes.
    pub(in super::super) fn proof_finished(&self, goal: Goal, bytes: usize) {
        let (job, proof) = (goal.job(), goal.text());
        tracing::info!(proof, bytes, "proved");
        let proved = OperatorEvent::job_state(job, &goal.title(), JobState::Finished, "");
        self.event_log.add(proved.with_outcome("it is proved"));
        let text = format!("job {job} is finished: {proof} is proved");
        self.notify(NotificationKind::Finished, Some(job), None, text);
    }

    /// Observes a stored certificate that fails its check.
    pub(in super::super) fn certificate_invalid(&self, job: JobHash, proof: &str, why: &str) {
        tracing::error!(proof, "a certificate fails its check: {why}");
        let text =
            format!("job {job} is paused: the certificate of {proof} fails its check: {why}");
        self.notify(NotificationKind::Trouble, Some(job), None, text);
    }

    /// Observes a search that ended with an error.
    pub(in super::super) fn proof_failed(&self, proof: &str, trouble: &str) {
        tracing::error!(proof, "{trouble}");
    }

    /// Observes an answer of another version.
    pub(in super::super) fn answer_unreadable(&self, worker: &str, proof: &str, why: &str) {
        tracing::warn!(worker, proof, why, "an answer cannot be read");
    }

    /// Observes an answer that failed its check.
    pub(in super::super) fn answer_wrong(&self, worker: &str, proof: &str, why: &str) {
        tracing::error!(worker, proof, why, "an answer is wrong");
    }
}
