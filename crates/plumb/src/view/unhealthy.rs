//! The unhealthy objects of an app, for `plumb app get`: since when, and why.

use jiff::Timestamp;
use plumb_core::health::in_words;
use plumb_core::text::one_line;
use plumb_crd::{DriftReport, UnhealthyObject};

/// The lines about unhealthy objects; none if all are healthy.
pub(crate) fn lines(report: &DriftReport, now: Timestamp) -> Vec<String> {
    let mut lines = Vec::new();
    for object in &report.health {
        lines.push(headline(object, now));
        let causes =
            if object.causes.is_empty() { std::slice::from_ref(&object.message) } else { &object.causes };
        lines.extend(
            causes.iter().filter(|cause| !cause.is_empty()).map(|cause| format!("  {}", one_line(cause))),
        );
    }
    lines
}

/// `apps/Deployment shop/web: Progressing for 21d 2h, stuck`.
fn headline(object: &UnhealthyObject, now: Timestamp) -> String {
    let status = if object.status.is_empty() { "a child resource is unhealthy" } else { &object.status };
    let length = object.since.map(|since| format!(" for {}", in_words(now.duration_since(since))));
    let stuck = if object.stuck { ", stuck" } else { "" };
    format!("{}: {status}{}{stuck}", object.key(), length.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_crash_loop_of_three_weeks_is_hard_to_miss() {
        let report = DriftReport::from_json(&json!({
            "metadata": {"name": "rollouts", "namespace": "argocd"},
            "summary": {"counted": 0, "explained": 0},
            "findings": [],
            "health": [{
                "group": "apps", "kind": "Deployment", "namespace": "argo", "name": "rollouts",
                "status": "Progressing", "since": "2026-03-26T21:00:00Z", "stuck": true, "message": "stuck",
                "causes": [
                    "apps/Deployment argo/rollouts: Progressing: 0 of 1 updated replicas are available",
                    "Pod argo/rollouts-6b4c-ghl9c: container main keeps crashing (CrashLoopBackOff): 1154 restarts",
                ],
            }],
        }))
        .expect("readable");
        let now = "2026-04-16T23:00:00Z".parse().expect("a time");
        let expected = "apps/Deployment argo/rollouts: Progressing for 21d 2h, stuck
  apps/Deployment argo/rollouts: Progressing: 0 of 1 updated replicas are available
  Pod argo/rollouts-6b4c-ghl9c: container main keeps crashing (CrashLoopBackOff): 1154 restarts";
        assert_eq!(lines(&report, now).join("\n"), expected);
    }
}
