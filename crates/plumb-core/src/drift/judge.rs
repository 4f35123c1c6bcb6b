//! From evidence to a verdict.

use super::{ApplyAdvice, Evidence, NotCompared, Outcome, Verdict, VerdictStatus};

/// Judges one object. Total: every input leads to a verdict, or to questions that were not answered yet.
pub fn judge(evidence: &Evidence<'_>) -> Outcome {
    Outcome::Settled(Box::new(Verdict {
        key: evidence.key.clone(),
        status: VerdictStatus::NotCompared(NotCompared::Absent),
        findings: Vec::new(),
        requires_pruning: false,
        counts_for_app: false,
        advice: ApplyAdvice::default(),
    }))
}
