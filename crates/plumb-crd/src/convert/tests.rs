use std::time::Duration;

use expect_test::{Expect, expect};
use plumb_core::app::{
    App, Backoff, ClusterRef, Initiator, Operation, PluginValue, SourceTool, SyncStrategy,
};
use serde_json::{Value, json};

use crate::{Application, to_app, to_operation};

/// The minimal Application with `spec` merged over its spec.
fn app_with(spec: Value) -> Result<App, Vec<super::SpecProblem>> {
    let mut object = json!({
        "metadata": {"name": "web", "namespace": "argocd", "uid": "u", "generation": 3},
        "spec": {
            "project": "",
            "destination": {"server": "https://kubernetes.default.svc/"},
            "source": {"repoURL": "https://git.example.com/a.git", "path": "."},
        },
    });
    let Value::Object(spec) = spec else { panic!("a map") };
    for (key, value) in spec {
        object["spec"][key] = value;
    }
    to_app(&Application::from_json(&object).expect("readable"))
}

fn check_problems(spec: Value, expected: &Expect) {
    let problems = app_with(spec).expect_err("must be refused");
    let lines: Vec<String> =
        problems.iter().map(|problem| format!("{} | {}", problem.field, problem.message)).collect();
    expected.assert_eq(&lines.join("\n"));
}

#[test]
fn defaults() {
    let app = app_with(json!({})).expect("valid");
    assert_eq!(app.id.to_string(), "argocd/web");
    assert_eq!((app.uid.as_str(), app.generation), ("u", 3));
    assert_eq!(app.project, "default");
    assert_eq!(app.destination.cluster, ClusterRef::Server("https://kubernetes.default.svc".to_owned()));
    assert_eq!(app.destination.namespace, None);
    assert_eq!(app.revision_history_limit, 10);
    assert_eq!(app.sync_policy, plumb_core::app::SyncPolicy::default());
    assert!(!app.multi_source && !app.skip_reconcile && app.pause.is_none());
}

#[test]
fn sources_win_over_source_and_the_hydrator_over_both() {
    let sources = json!([
        {"repoURL": "https://charts.example.com", "chart": "c", "targetRevision": "1.0.0"},
        {"repoURL": "https://git.example.com/v.git", "ref": "values"},
    ]);
    let app = app_with(json!({"sources": sources})).expect("valid");
    assert!(app.multi_source);
    assert_eq!(app.sources.len(), 2);
    assert_eq!(app.sources[1].ref_name.as_deref(), Some("values"));
    let hydrator = json!({
        "drySource": {"repoURL": "https://git.example.com/dry.git", "targetRevision": "HEAD", "path": "app"},
        "syncSource": {"targetBranch": "env/prod", "path": "out"},
    });
    let app = app_with(json!({"sources": sources, "sourceHydrator": hydrator})).expect("valid");
    assert!(!app.multi_source);
    assert_eq!(app.sources[0].repo_url, "https://git.example.com/dry.git");
    assert_eq!(app.sources[0].target_revision.as_deref(), Some("env/prod"));
    assert_eq!(app.sources[0].path.as_deref(), Some("out"));
}

#[test]
fn what_sources_need() {
    check_problems(
        json!({"source": null}),
        &expect![
            "spec.source | spec.source.repoURL and either spec.source.path or spec.source.chart are required"
        ],
    );
    check_problems(
        json!({"source": {"repoURL": "https://git.example.com/a.git", "ref": "x"}}),
        &expect![
            "spec.source | spec.source.repoURL and either spec.source.path or spec.source.chart are required"
        ],
    );
    check_problems(
        json!({"source": {"repoURL": "https://charts.example.com", "chart": "c"}}),
        &expect![
            "spec.source.targetRevision | spec.source.targetRevision is required if the manifest source is a helm chart"
        ],
    );
    check_problems(
        json!({"sources": [
            {"repoURL": "https://git.example.com/a.git", "ref": "x"},
            {"repoURL": "https://git.example.com/a.git"},
            {"repoURL": "https://git.example.com/b.git", "ref": "x"},
            {"repoURL": "https://git.example.com/b.git", "ref": "x/y"},
        ]}),
        &expect![[r"
            spec.sources[1] | spec.source.repoURL and either source.path, source.chart, or source.ref are required for source spec.sources[1]
            spec.sources[3].ref | source ref x/y may contain only letters, digits, `_` and `-`: other sources name it as $x/y
            spec.sources[2].ref | invalid sources: multiple sources had the same `ref` key: x"]],
    );
    check_problems(
        json!({"source": {
            "repoURL": "https://git.example.com/a.git", "path": ".",
            "helm": {"releaseName": "x"}, "kustomize": {"namePrefix": "x"}, "directory": {},
        }}),
        &expect!["spec.source | multiple application sources defined: Kustomize,Helm"],
    );
    check_problems(
        json!({"source": {"repoURL": "https://git.example.com/a.git", "path": ".", "helm": {"version": "v2"}}}),
        &expect![
            "spec.source.helm.version | helm version v2 is not supported: v3 and v4 are, or leave it out"
        ],
    );
    check_problems(
        json!({"source": {"repoURL": "r", "path": ".",
            "kustomize": {"replicas": [{"name": "web", "count": "many"}]}}}),
        &expect!["spec.source.kustomize.replicas[0].count | the replica count of web is not a number"],
    );
}

#[test]
fn a_tool_block_that_says_nothing_asks_for_nothing() {
    let source = |block: Value| {
        let mut source = json!({"repoURL": "r", "path": "."});
        for (key, value) in block.as_object().expect("a map") {
            source[key] = value.clone();
        }
        app_with(json!({"source": source})).expect("valid").sources.remove(0).tool
    };
    assert_eq!(source(json!({"helm": {}, "kustomize": {}, "directory": {"recurse": false}})), None);
    assert!(matches!(source(json!({"plugin": {}})), Some(SourceTool::Plugin(_))), "discovery");
    let Some(SourceTool::Plugin(plugin)) = source(json!({"plugin": {"parameters": [
        {"name": "s", "string": ""}, {"name": "m", "map": {}}, {"name": "a", "array": []}, {"name": "none"},
    ]}})) else {
        panic!("a plugin")
    };
    let values: Vec<_> = plugin.parameters.into_iter().map(|parameter| parameter.value).collect();
    assert_eq!(
        values,
        [
            Some(PluginValue::String(String::new())),
            Some(PluginValue::Map(std::collections::BTreeMap::new())),
            Some(PluginValue::Array(Vec::new())),
            None,
        ]
    );
}

#[test]
fn a_destination_is_one_cluster() {
    check_problems(
        json!({"destination": {"server": "https://a", "name": "b"}}),
        &expect![
            "spec.destination | application destination can't have both name and server defined: b https://a"
        ],
    );
    check_problems(
        json!({"destination": {"namespace": "prod"}}),
        &expect![
            "spec.destination | Destination server missing from app spec: spec.destination needs either server or name"
        ],
    );
    let app = app_with(json!({"destination": {"name": "in-cluster", "namespace": "prod"}})).expect("valid");
    assert!(app.destination.cluster.is_in_cluster());
}

#[test]
fn automation_is_on_unless_switched_off() {
    let automated = |value: Value| {
        app_with(json!({"syncPolicy": {"automated": value}})).expect("valid").sync_policy.automated
    };
    assert!(automated(json!({})).is_some());
    assert!(automated(json!({"enabled": true})).is_some());
    assert!(automated(json!({"enabled": false, "prune": true})).is_none());
    assert!(automated(json!(null)).is_none());
    let on = automated(json!({"prune": true, "selfHeal": true})).expect("on");
    assert!(on.prune && on.self_heal && !on.allow_empty);
}

#[test]
fn retry_strategies() {
    let retry = |value: Value| {
        app_with(json!({"syncPolicy": {"retry": value}})).expect("valid").sync_policy.retry.expect("set")
    };
    assert_eq!(retry(json!({})).limit, Some(0));
    assert_eq!(retry(json!({"limit": 5})).backoff, Backoff::default());
    assert_eq!(retry(json!({"limit": -1})).limit, None);
    let backoff = retry(json!({"backoff": {"duration": "7", "factor": 3, "maxDuration": "1m30s"}})).backoff;
    let expected = Backoff { duration: Duration::from_secs(7), factor: 3, max: Duration::from_secs(90) };
    assert_eq!(backoff, expected);
    check_problems(
        json!({"syncPolicy": {"retry": {"backoff": {"duration": "5 s", "factor": -2, "maxDuration": "1d"}}}}),
        &expect![[r"
            spec.syncPolicy.retry.backoff.duration | spec.syncPolicy.retry.backoff.duration: `5 s` is not a duration such as 30s, 5m or 1h30m
            spec.syncPolicy.retry.backoff.maxDuration | spec.syncPolicy.retry.backoff.maxDuration: `1d` is not a duration such as 30s, 5m or 1h30m
            spec.syncPolicy.retry.backoff.factor | spec.syncPolicy.retry.backoff.factor: a wait can be multiplied with 1 to 4294967295"]],
    );
}

#[test]
fn annotations_of_the_application() {
    let mut application = Application::from_json(&crate::application::tests::complete()).expect("readable");
    application.spec.source_hydrator = None;
    let set = |key: &str, text: &str| {
        let mut application = application.clone();
        application.metadata.annotations.insert(key.to_owned(), text.to_owned());
        to_app(&application).expect("valid")
    };
    assert!(set("argocd.argoproj.io/skip-reconcile", "true").skip_reconcile);
    assert!(set("argocd.argoproj.io/skip-reconcile", "1").skip_reconcile);
    assert!(!set("argocd.argoproj.io/skip-reconcile", "yes").skip_reconcile, "not a boolean in Go");
    assert!(
        set("argocd.argoproj.io/compare-options", "Strict=true, IgnoreExtraneous").compare_options.strict
    );
    assert!(set("plumb.dev/pause", r#"{"reason":"freeze"}"#).pause.is_some());
}

#[test]
fn the_complete_application_is_valid() {
    let mut application = Application::from_json(&crate::application::tests::complete()).expect("readable");
    application.spec.source_hydrator = None;
    let app = to_app(&application).expect("valid");
    assert_eq!(app.sources.len(), 5);
    let Some(SourceTool::Helm(helm)) = &app.sources[0].tool else { panic!("helm") };
    assert_eq!(
        helm.values_object.as_ref().expect("set")["nothing"],
        Value::Null,
        "nulls are Helm's business"
    );
    assert_eq!(app.revision_history_limit, 0);
    assert!(app.sync_policy.has("CreateNamespace=true"));
    assert!(!app.sync_policy.has("createNamespace=true"));
}

fn operation(value: Value) -> Result<Operation, Vec<super::SpecProblem>> {
    let mut object = crate::application::tests::complete();
    object["operation"] = value;
    to_operation(&Application::from_json(&object).expect("readable").operation.expect("set"))
}

#[test]
fn operations_stand_on_their_own() {
    let asked = operation(json!({"sync": {}})).expect("valid");
    assert_eq!(asked.options, [], "the spec's options are not added");
    assert_eq!(asked.retry.limit, Some(0));
    assert_eq!(asked.strategy, SyncStrategy::Hook { force: false });
    assert_eq!(asked.initiated_by, Initiator::Unnamed);
    assert!(asked.runs_hooks() && asked.sources.is_none() && asked.manifests.is_none());
    assert!(asked.selects("apps", "Deployment", "prod", "web"));

    let complete = operation(crate::application::tests::complete()["operation"].clone()).expect("valid");
    assert_eq!(complete.strategy, SyncStrategy::Apply { force: true });
    assert_eq!(complete.revisions, ["1.2.3", "3f2c"]);
    assert_eq!(complete.initiated_by, Initiator::Automated);
    assert!(complete.selects("apps", "Deployment", "prod", "web"));
    assert!(!complete.selects("apps", "Deployment", "test", "web"));
    assert!(!complete.selects("", "Deployment", "prod", "web"));
    assert_eq!(complete.self_heal_attempts, 2);

    let selective =
        operation(json!({"sync": {"resources": [{"kind": "Secret", "name": "s"}]}})).expect("valid");
    assert!(!selective.runs_hooks() && selective.selects("", "Secret", "any", "s"));
    let stored_empty = operation(json!({"sync": {"source": {"repoURL": ""}}})).expect("valid");
    assert_eq!(stored_empty.sources, None);
}

#[test]
fn an_operation_must_ask_for_something() {
    let problems = operation(json!({"initiatedBy": {"username": "ada"}})).expect_err("nothing asked for");
    assert_eq!(problems[0].message, "Invalid operation request: no operation specified");
}

#[test]
fn a_source_can_be_overridden_from_inside_but_not_moved() {
    let source = crate::application::ApplicationSource {
        repo_url: "https://git.example.com/a.git".to_owned(),
        path: "app".to_owned(),
        helm: Some(Box::new(crate::application::HelmSource {
            value_files: vec!["values.yaml".to_owned()],
            release_name: "web".to_owned(),
            ..crate::application::HelmSource::default()
        })),
        ..crate::application::ApplicationSource::default()
    };
    let general = json!({"repoURL": "https://evil", "path": "..", "targetRevision": "x", "chart": "c",
        "helm": {"parameters": [{"name": "a", "value": "1"}], "releaseName": "x"}});
    let special = json!({"helm": {"releaseName": null, "valueFiles": ["prod.yaml"]}});
    let overridden = crate::source_with_overrides(&source, &[general, special], false).expect("valid");
    assert_eq!(overridden.repo_url, "https://git.example.com/a.git");
    assert_eq!(overridden.path.as_deref(), Some("app"));
    assert_eq!((overridden.target_revision, overridden.chart), (None, None));
    let Some(SourceTool::Helm(helm)) = overridden.tool else { panic!("helm") };
    assert_eq!(helm.value_files, ["prod.yaml"]);
    assert_eq!(helm.release_name, None);
    assert_eq!(helm.parameters[0].name, "a");
    for broken in [json!([]), json!("x"), json!({"helm": []}), json!({"kustomize": {"namePrefix": "x"}})] {
        assert!(
            crate::source_with_overrides(&source, std::slice::from_ref(&broken), false).is_err(),
            "{broken}"
        );
    }
}
