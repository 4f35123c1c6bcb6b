//! `autoscaling` `HorizontalPodAutoscaler`: can it read its metrics and set the scale?

use serde_json::Value;

use super::super::Health;
use super::super::read::{Condition, Read, conditions};

/// Reasons that keep the autoscaler from doing its work, by condition. Their status is not asked, as in Argo CD.
const FAILURES: &[(&str, &[&str])] = &[
    ("AbleToScale", &["FailedGetScale", "FailedUpdateScale"]),
    (
        "ScalingActive",
        &[
            "FailedGetResourceMetric",
            "FailedGetObjectMetric",
            "FailedGetPodsMetric",
            "FailedGetExternalMetric",
            "FailedComputeMetricsReplicas",
            "InvalidSelector",
        ],
    ),
];

pub(super) fn judge_v2(object: &Value) -> Read<Health> {
    Ok(judge_conditions(&conditions(object)?))
}

/// The old version has no conditions; the API server keeps them in an annotation, as JSON.
pub(super) fn judge_v1(object: &Value) -> Read<Health> {
    let kept = object
        .get("metadata")
        .and_then(|metadata| metadata.get("annotations"))
        .and_then(|annotations| annotations.get("autoscaling.alpha.kubernetes.io/conditions"))
        .and_then(Value::as_str)
        .filter(|kept| !kept.is_empty());
    let Some(kept) = kept else { return Ok(judge_conditions(&[])) };
    let Ok(Value::Array(entries)) = serde_json::from_str::<Value>(kept) else {
        return Ok(Health::unknown("cannot read the conditions in the autoscaler's annotation"));
    };
    let conditions = entries.iter().map(Condition::read).collect::<Read<Vec<_>>>()?;
    Ok(judge_conditions(&conditions))
}

fn judge_conditions(conditions: &[Condition<'_>]) -> Health {
    let is_failure = |condition: &&Condition<'_>| {
        FAILURES.iter().any(|(kind, reasons)| *kind == condition.kind && reasons.contains(&condition.reason))
    };
    if let Some(failed) = conditions.iter().find(is_failure) {
        return Health::degraded(failed.words());
    }
    let works = conditions
        .iter()
        .find(|condition| matches!(condition.kind, "AbleToScale" | "ScalingLimited") && condition.is_true());
    match works {
        Some(condition) => Health::healthy(condition.message),
        None => Health::progressing("waiting to read its metrics"),
    }
}
