use std::collections::BTreeMap;

use expect_test::{Expect, expect};
use plumb_core::object::Manifest;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::{Operation, Scripts, Write};

fn object(api_version: &str, kind: &str, rest: &Value) -> Manifest {
    let mut object = json!({
        "apiVersion": api_version, "kind": kind,
        "metadata": {"name": "web", "namespace": "shop", "uid": "u1", "generation": 3},
    });
    for (key, value) in rest.as_object().expect("a map") {
        object[key] = value.clone();
    }
    Manifest::new(object).expect("an object")
}

fn listed(object: &Manifest) -> String {
    let actions = Scripts::default().list_actions(object).expect("built-in ones do not fail");
    let shown = actions.iter().map(|action| {
        let params: Vec<&str> = action.params.iter().map(|param| param.name.as_str()).collect();
        let params = if params.is_empty() { String::new() } else { format!("({})", params.join(",")) };
        format!("{}{}{params}", if action.disabled { "-" } else { "" }, action.name)
    });
    shown.collect::<Vec<_>>().join(" ")
}

fn check_list(object: &Manifest, expected: &Expect) {
    expected.assert_eq(&listed(object));
}

/// What an action writes.
fn check(object: &Manifest, action: &str, params: &[(&str, &str)], expected: &Expect) {
    let params: BTreeMap<String, String> =
        params.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let now = "2026-03-01T12:30:05.7Z".parse().expect("a time");
    let told = match Scripts::default().run_action(object, action, &params, now) {
        Err(error) => error.to_string(),
        Ok(impacts) => {
            let lines = impacts.iter().map(|impact| match impact.write(object) {
                None => "nothing".to_owned(),
                Some(Write::Create(new)) => format!("create {new}"),
                Some(Write::Patch { body, status }) => {
                    let part = |name: &str, part: Option<Value>| {
                        part.map(|part| format!("{name} {part}")).unwrap_or_default()
                    };
                    format!("{}{}", part("patch", body), part("status", status))
                }
            });
            lines.collect::<Vec<_>>().join("\n")
        }
    };
    expected.assert_eq(&told);
}

#[test]
fn workloads() {
    let web = object("apps/v1", "Deployment", &json!({"spec": {"replicas": 2, "template": {}}}));
    check_list(&web, &expect!["pause restart -resume scale(replicas)"]);
    check(
        &web,
        "restart",
        &[],
        &expect![[
            r#"patch {"spec":{"template":{"metadata":{"annotations":{"kubectl.kubernetes.io/restartedAt":"2026-03-01T12:30:05Z"}}}}}"#
        ]],
    );
    check(&web, "scale", &[("replicas", "5")], &expect![[r#"patch {"spec":{"replicas":5}}"#]]);
    check(&web, "scale", &[("replicas", "many")], &expect!["the action is refused: invalid number: many"]);
    check(&web, "pause", &[], &expect![[r#"patch {"spec":{"paused":true}}"#]]);
    check(&web, "fly", &[], &expect!["no action `fly` is defined for apps/Deployment"]);
    let paused = object("apps/v1", "Deployment", &json!({"spec": {"paused": true}}));
    check_list(&paused, &expect!["-pause restart resume scale(replicas)"]);
    check(&paused, "resume", &[], &expect![[r#"patch {"spec":{"paused":null}}"#]]);
    let set = object("apps/v1", "StatefulSet", &json!({"spec": {"replicas": 1}}));
    check_list(&set, &expect!["restart scale(replicas)"]);
    check(&set, "pause", &[], &expect!["no action `pause` is defined for apps/StatefulSet"]);
    check_list(&object("apps/v1", "DaemonSet", &json!({})), &expect!["restart"]);
    check_list(&object("v1", "ConfigMap", &json!({})), &expect![""]);
}

#[test]
fn jobs() {
    let template = json!({"metadata": {"labels": {"a": "b"}}, "spec": {"template": {"spec": {}}}});
    let cron = object("batch/v1", "CronJob", &json!({"spec": {"jobTemplate": template}}));
    check_list(&cron, &expect!["create-job suspend"]);
    check(
        &cron,
        "create-job",
        &[],
        &expect![[
            r#"create {"apiVersion":"batch/v1","kind":"Job","metadata":{"annotations":{"cronjob.kubernetes.io/instantiate":"manual"},"labels":{"a":"b"},"name":"web-2603011230","namespace":"shop","ownerReferences":[{"apiVersion":"batch/v1","blockOwnerDeletion":true,"controller":true,"kind":"CronJob","name":"web","uid":"u1"}]},"spec":{"template":{"spec":{}}}}"#
        ]],
    );
    let running = object("batch/v1", "Job", &json!({"spec": {}, "status": {"active": 1}}));
    check_list(&running, &expect!["suspend terminate"]);
    check(
        &running,
        "terminate",
        &[],
        &expect![[
            r#"status {"status":{"conditions":[{"lastTransitionTime":"2026-03-01T12:30:05Z","message":"ended by hand","reason":"ManuallyTerminated","status":"True","type":"FailureTarget"}]}}"#
        ]],
    );
    let done = json!({"conditions": [{"type": "Complete", "status": "True"}]});
    check_list(&object("batch/v1", "Job", &json!({"spec": {}, "status": done})), &expect![""]);
}

#[test]
fn rollouts() {
    let waiting = object(
        "argoproj.io/v1alpha1",
        "Rollout",
        &json!({
            "spec": {"strategy": {"canary": {"steps": [{}, {}, {}]}}},
            "status": {
                "observedGeneration": "3", "currentPodHash": "b", "stableRS": "a", "currentStepIndex": 1,
                "pauseConditions": [{"reason": "CanaryPauseStep"}],
            },
        }),
    );
    check_list(&waiting, &expect!["abort pause promote-full restart resume -retry skip-current-step"]);
    check(&waiting, "resume", &[], &expect![[r#"status {"status":{"pauseConditions":null}}"#]]);
    check(
        &waiting,
        "skip-current-step",
        &[],
        &expect![[r#"status {"status":{"currentStepIndex":2,"pauseConditions":null}}"#]],
    );
    check(&waiting, "promote-full", &[], &expect![[r#"status {"status":{"promoteFull":true}}"#]]);
    let done = object(
        "argoproj.io/v1alpha1",
        "Rollout",
        &json!({"spec": {"strategy": {"blueGreen": {}}}, "status": {"currentPodHash": "a", "stableRS": "a"}}),
    );
    check_list(&done, &expect!["-abort -pause -promote-full restart -resume -retry -skip-current-step"]);
}

#[test]
fn others() {
    let release = object("helm.toolkit.fluxcd.io/v2", "HelmRelease", &json!({"spec": {"suspend": true}}));
    check_list(&release, &expect!["-reconcile resume -suspend"]);
    check(&release, "resume", &[], &expect![[r#"patch {"spec":{"suspend":false}}"#]]);
    let secret =
        object("external-secrets.io/v1", "ExternalSecret", &json!({"spec": {"refreshInterval": "0s"}}));
    check_list(&secret, &expect!["-refresh"]);
    let scaler = object("keda.sh/v1alpha1", "ScaledObject", &json!({}));
    check(
        &scaler,
        "paused-replicas",
        &[("replicas", "2")],
        &expect![[r#"patch {"metadata":{"annotations":{"autoscaling.keda.sh/paused-replicas":"2"}}}"#]],
    );
    let postgres = object(
        "postgresql.cnpg.io/v1",
        "Cluster",
        &json!({"status": {"currentPrimary": "web-2", "instancesStatus": {"healthy": ["web-1", "web-2"]}}}),
    );
    check_list(&postgres, &expect!["promote(instance) reload restart suspend"]);
    check(
        &postgres,
        "promote",
        &[],
        &expect![[
            r#"status {"status":{"phase":"Switchover in progress","phaseReason":"Switching over to web-1","targetPrimary":"web-1","targetPrimaryTimestamp":"2026-03-01T12:30:05Z"}}"#
        ]],
    );
    check(
        &postgres,
        "promote",
        &[("instance", "9")],
        &expect!["the action is refused: no healthy instance is 9"],
    );
    let app =
        object("argoproj.io/v1alpha1", "Application", &json!({"spec": {"syncPolicy": {"automated": {}}}}));
    check(
        &app,
        "toggle-auto-sync",
        &[],
        &expect![[r#"patch {"spec":{"syncPolicy":{"automated":{"enabled":false}}}}"#]],
    );
    let pipeline = object(
        "numaflow.numaproj.io/v1alpha1",
        "Pipeline",
        &json!({"spec": {"lifecycle": {"desiredPhase": "Paused"}}}),
    );
    check_list(&pipeline, &expect!["-delete -force-promote -pause -unpause-fast unpause-gradual"]);
    check(
        &pipeline,
        "unpause-gradual",
        &[],
        &expect![[
            r#"patch {"metadata":{"annotations":{"numaflow.numaproj.io/resume-strategy":"slow"}},"spec":{"lifecycle":{"desiredPhase":"Running"}}}"#
        ]],
    );
}

const KINDS: &[(&str, &str)] = &[
    ("apps/v1", "Deployment"),
    ("apps/v1", "StatefulSet"),
    ("apps/v1", "DaemonSet"),
    ("batch/v1", "CronJob"),
    ("batch/v1", "Job"),
    ("argoproj.io/v1alpha1", "Rollout"),
    ("argoproj.io/v1alpha1", "AnalysisRun"),
    ("argoproj.io/v1alpha1", "Application"),
    ("argoproj.io/v1alpha1", "CronWorkflow"),
    ("argoproj.io/v1alpha1", "WorkflowTemplate"),
    ("promoter.argoproj.io/v1alpha1", "PullRequest"),
    ("helm.toolkit.fluxcd.io/v2", "HelmRelease"),
    ("notification.toolkit.fluxcd.io/v1", "Alert"),
    ("external-secrets.io/v1", "ExternalSecret"),
    ("external-secrets.io/v1", "PushSecret"),
    ("keda.sh/v1alpha1", "ScaledObject"),
    ("keda.sh/v1alpha1", "ScaledJob"),
    ("core.strimzi.io/v1beta2", "StrimziPodSet"),
    ("k8s.mariadb.com/v1alpha1", "MariaDB"),
    ("psmdb.percona.com/v1", "PerconaServerMongoDB"),
    ("postgresql.cnpg.io/v1", "Cluster"),
    ("numaflow.numaproj.io/v1alpha1", "InterStepBufferService"),
    ("numaflow.numaproj.io/v1alpha1", "MonoVertex"),
    ("numaflow.numaproj.io/v1alpha1", "Pipeline"),
    ("numaplane.numaproj.io/v1alpha1", "MonoVertexRollout"),
    ("numaplane.numaproj.io/v1alpha1", "PipelineRollout"),
];

#[test]
fn every_listed_action_can_be_run() {
    let status = json!({"instancesStatus": {"healthy": ["web-1", "web-2"]}});
    for (api_version, kind) in KINDS {
        let object = object(api_version, kind, &json!({"spec": {}, "status": status}));
        let scripts = Scripts::default();
        let actions = scripts.list_actions(&object).expect("a list");
        assert!(!actions.is_empty(), "{kind} has actions");
        for action in actions {
            let params = action.params.iter().map(|param| (param.name.clone(), "1".to_owned())).collect();
            let now = "2026-03-01T12:30:05Z".parse().expect("a time");
            let impacts = scripts.run_action(&object, &action.name, &params, now);
            let impacts = impacts.unwrap_or_else(|error| panic!("{kind} {}: {error}", action.name));
            assert!(impacts.iter().all(|impact| match impact.operation {
                Operation::Create => impact.object["metadata"]["name"] != "web",
                Operation::Patch => impact.object["metadata"]["name"] == "web",
            }));
        }
    }
}

#[test]
fn the_users_actions_join_the_built_in_ones_or_replace_them() {
    let actions = |merge: bool| {
        let text = format!(
            "mergeBuiltinActions: {merge}\ndiscovery.lua: |\n  return {{restart = {{disabled = true}}, stop = {{}}}}\ndefinitions:\n- name: stop\n  action.lua: |\n    obj.spec.replicas = 0\n    return obj\n"
        );
        let data = BTreeMap::from([("resource.customizations.actions.apps_StatefulSet".to_owned(), text)]);
        Scripts::parse(&data, crate::Limits::default()).0
    };
    let set = object("apps/v1", "StatefulSet", &json!({"spec": {"replicas": 1}}));
    let names = |scripts: &Scripts| {
        let listed = scripts.list_actions(&set).expect("a list");
        listed.iter().map(|action| (action.name.clone(), action.disabled)).collect::<Vec<_>>()
    };
    let owned = |pairs: &[(&str, bool)]| {
        pairs.iter().map(|(name, disabled)| ((*name).to_owned(), *disabled)).collect::<Vec<_>>()
    };
    assert_eq!(names(&actions(true)), owned(&[("restart", true), ("scale", false), ("stop", false)]));
    assert_eq!(names(&actions(false)), owned(&[("restart", true), ("stop", false)]));
    let now = "2026-03-01T12:30:05Z".parse().expect("a time");
    let run = |name: &str| actions(false).run_action(&set, name, &BTreeMap::new(), now);
    assert_eq!(run("stop").expect("runs")[0].object["spec"]["replicas"], 0);
    assert!(run("restart").is_ok(), "a built-in one of this name is there, as in Argo CD");
}

fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        "[a-zA-Z0-9/.]{0,8}".prop_map(Value::from),
    ];
    let fields = prop::sample::select(vec![
        "suspend",
        "paused",
        "strategy",
        "canary",
        "steps",
        "template",
        "metadata",
        "annotations",
        "labels",
        "conditions",
        "type",
        "status",
        "jobTemplate",
        "spec",
        "lifecycle",
        "pipeline",
        "monoVertex",
        "healthy",
        "instancesStatus",
        "pauseConditions",
        "currentStepIndex",
        "syncPolicy",
        "automated",
        "x",
    ]);
    leaf.prop_recursive(4, 40, 5, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((fields.clone(), inner), 0..5).prop_map(|entries| {
                Value::Object(entries.into_iter().map(|(key, value)| (key.to_owned(), value)).collect())
            }),
        ]
    })
}

proptest! {
    #[test]
    fn no_shape_of_an_object_is_too_odd(
        kind in prop::sample::select(KINDS),
        metadata in any_value(),
        spec in any_value(),
        status in any_value(),
    ) {
        let object = Manifest::new(json!({
            "apiVersion": kind.0, "kind": kind.1, "metadata": metadata, "spec": spec, "status": status,
        }));
        if let Ok(object) = object {
            let scripts = Scripts::default();
            let now = "2026-03-01T12:30:05Z".parse().expect("a time");
            for action in scripts.list_actions(&object).expect("a list") {
                let params = action.params.iter().map(|param| (param.name.clone(), "1".to_owned())).collect();
                if let Ok(impacts) = scripts.run_action(&object, &action.name, &params, now) {
                    let _ = impacts.iter().map(|impact| impact.write(&object)).collect::<Vec<_>>();
                }
            }
        }
    }
}
