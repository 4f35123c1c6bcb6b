//! Clusters in a few words.

use std::collections::BTreeSet;

use jiff::Timestamp;

use crate::app::AppId;
use crate::doctor::*;
use crate::drift::{DriftClass, Finding, Fix, FixKind};
use crate::object::{FieldPath, ObjectKey};

pub(super) fn time(text: &str) -> Timestamp {
    text.parse().expect("a time")
}

pub(super) fn now() -> Timestamp {
    time("2026-04-16T23:00:00Z")
}

pub(super) fn key(kind: &str, name: &str) -> ObjectKey {
    let group = if kind == "Deployment" { "apps" } else { "" };
    ObjectKey::new(group, kind, Some("shop".to_owned()), name)
}

pub(super) fn finding(
    class: DriftClass,
    counts: bool,
    kind: &str,
    name: &str,
    field: &str,
    since: Option<&str>,
) -> Finding {
    Finding {
        key: key(kind, name),
        class,
        rule: "a-rule".into(),
        fields: vec![FieldPath::from_pointer(field)],
        counts,
        actor: (class == DriftClass::LiveEdit).then(|| "kubectl".to_owned()),
        since: since.map(time),
        evidence: vec!["what was seen".to_owned()],
        fix: Fix { kind: FixKind::None, text: format!("the fix of {class}"), patch: None },
    }
}

pub(super) fn app(namespace: &str, name: &str, findings: Vec<Finding>) -> AppFacts {
    AppFacts {
        app: AppId { namespace: namespace.to_owned(), name: name.to_owned() },
        project: if namespace == "argocd" { "default" } else { "team" }.to_owned(),
        is_judged: true,
        problem: None,
        status_of: StatusOf::Plumb,
        findings,
        unhealthy: Vec::new(),
        pauses: Vec::new(),
        red: BTreeSet::new(),
        plain_secrets: Vec::new(),
    }
}

pub(super) fn ill(
    status: &str,
    kind: &str,
    name: &str,
    since: Option<&str>,
    is_stuck: bool,
    causes: &[&str],
) -> UnhealthyFact {
    UnhealthyFact {
        key: key(kind, name),
        status: status.to_owned(),
        since: since.map(time),
        is_stuck,
        causes: causes.iter().map(|cause| (*cause).to_owned()).collect(),
    }
}

/// A crash loop of three weeks, under a lot of noise.
pub(super) fn cluster() -> Vec<AppFacts> {
    let mut rollouts = app("argocd", "rollouts", Vec::new());
    rollouts.unhealthy = vec![
        ill(
            "Progressing",
            "Deployment",
            "rollouts",
            Some("2026-03-26T21:00:00Z"),
            true,
            &[
                "apps/Deployment shop/rollouts: Progressing: 0 of 1 updated replicas are available",
                "Pod shop/rollouts-6b4c: container main keeps crashing (CrashLoopBackOff): 1154 restarts, exit code 1",
            ],
        ),
        ill("Progressing", "Deployment", "starting", Some("2026-04-16T22:59:00Z"), false, &["starts"]),
    ];
    let edit = |name: &str, since| {
        finding(DriftClass::LiveEdit, true, "Deployment", name, "/spec/replicas", Some(since))
    };
    let mut payments = app(
        "argocd",
        "payments",
        vec![
            edit("web", "2026-04-16T20:00:00Z"),
            finding(DriftClass::Blocked, true, "Service", "lb", "/spec/ports", None),
            finding(DriftClass::SchemaDefault, false, "Deployment", "web", "/spec/strategy", None),
            finding(DriftClass::PhantomDefault, false, "ConfigMap", "c", "/data/x", None),
            Finding {
                fields: Vec::new(),
                ..finding(DriftClass::Orphan, true, "Secret", "old|one", "", Some("2026-04-10T00:00:00Z"))
            },
        ],
    );
    payments.red = BTreeSet::from([key("ConfigMap", "c"), key("Deployment", "web")]);
    payments.unhealthy =
        vec![ill("Degraded", "Service", "lb", Some("2026-04-16T22:00:00Z"), false, &["no address"])];
    payments.pauses = vec![
        PauseFact {
            key: key("Deployment", "web"),
            until: Some(time("2026-04-17T01:00:00Z")),
            reason: "load test".to_owned(),
        },
        PauseFact {
            key: key("Deployment", "far"),
            until: Some(time("2026-05-17T01:00:00Z")),
            reason: String::new(),
        },
    ];
    let team = app(
        "team",
        "payments",
        vec![
            edit("api", "2026-04-14T23:00:00Z"),
            finding(
                DriftClass::UnstableRender,
                false,
                "Deployment",
                "api",
                "/spec/template/metadata/annotations/t",
                None,
            ),
        ],
    );
    vec![payments, team, rollouts]
}
