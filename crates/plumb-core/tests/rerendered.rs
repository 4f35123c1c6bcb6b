//! A chart that prints the day: two renderings within a day are the same, and yet the commit never stands still.

#![expect(clippy::unwrap_used, clippy::panic, reason = "what cannot be made or told fails the test")]

use plumb_core::app::CompareOptions;
use plumb_core::desired::{DesiredObject, ObjectOptions};
use plumb_core::drift::{
    Answers, DriftClass, DryRun, Evidence, Facts, LiveOwner, Outcome, Previous, SecondRender, Verdict,
    VerdictStatus, judge,
};
use plumb_core::ignore::IgnoreRules;
use plumb_core::object::{Manifest, ObjectKey};
use plumb_core::schema::SchemaSet;
use serde_json::json;

/// A `ConfigMap` that this app applied; `editor` wrote `day` later, if there is one.
fn map(day: &str, editor: Option<&str>) -> Manifest {
    let ours = json!({"manager": "argocd-controller", "operation": "Apply", "time": "2026-01-01T00:00:00Z",
        "fieldsV1": {"f:data": if editor.is_some() { json!({}) } else { json!({"f:day": {}}) }}});
    let theirs = editor.map(|editor| {
        json!({"manager": editor, "operation": "Update", "time": "2026-01-02T00:00:00Z",
            "fieldsV1": {"f:data": {"f:day": {}}}})
    });
    let managers: Vec<_> = [Some(ours), theirs].into_iter().flatten().collect();
    Manifest::new(json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"day": day},
        "metadata": {"name": "m", "namespace": "n", "managedFields": managers}}))
    .unwrap()
}

/// Git asks for the 16th, live has the 15th.
fn judged(previous: Previous<'_>, editor: Option<&str>) -> Verdict {
    let key = ObjectKey::new("", "ConfigMap", Some("n".to_owned()), "m");
    let (wanted, live) = (map("16", None), map("15", editor));
    let desired = DesiredObject {
        key: key.clone(),
        manifest: wanted.clone(),
        options: ObjectOptions::default(),
        origin: None,
    };
    let (schemas, rules) = (SchemaSet::default(), IgnoreRules::default());
    let outcome = judge(&Evidence {
        key: &key,
        desired: Some(&desired),
        live: Some(&live),
        schemas: &schemas,
        rules: &rules,
        options: CompareOptions::default(),
        facts: Facts {
            app: "app",
            owner: LiveOwner::ThisApp,
            previous,
            render_may_vary: true,
            ..Facts::default()
        },
        answers: Answers {
            dry_run: Some(DryRun::Object(&wanted)),
            second_render: Some(SecondRender::Object(Some(&wanted))),
            ..Answers::default()
        },
        now: "2026-02-01T00:00:00Z".parse().unwrap(),
    });
    match outcome {
        Outcome::Settled(verdict) => *verdict,
        Outcome::Ask(questions) => panic!("asks {questions:?}"),
    }
}

#[test]
fn what_was_applied_from_the_same_commit_is_no_step_behind_git() {
    let verdict = judged(Previous::Rerendered, None);
    assert_eq!(verdict.status, VerdictStatus::Synced);
    assert_eq!(verdict.findings[0].class, DriftClass::UnstableRender);
    assert_eq!(verdict.findings[0].fields.iter().map(ToString::to_string).collect::<Vec<_>>(), ["/data/day"]);
    // A sync for another reason leaves the day alone.
    assert_eq!(verdict.advice.keep_live.iter().map(ToString::to_string).collect::<Vec<_>>(), ["/data/day"]);
}

#[test]
fn another_commit_is_a_step_ahead() {
    let verdict = judged(Previous::Changed(None), None);
    assert_eq!(verdict.status, VerdictStatus::OutOfSync);
    assert_eq!(verdict.findings[0].class, DriftClass::Behind);
}

#[test]
fn an_edit_is_an_edit_all_the_same() {
    let verdict = judged(Previous::Rerendered, Some("kubectl-edit"));
    assert_eq!(verdict.status, VerdictStatus::OutOfSync);
    assert_eq!(verdict.findings[0].class, DriftClass::LiveEdit);
    assert_eq!(verdict.findings[0].actor.as_deref(), Some("kubectl-edit"));
}
