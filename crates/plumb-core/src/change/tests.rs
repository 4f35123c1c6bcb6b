use std::collections::BTreeMap;

use expect_test::{Expect, expect};

use super::*;
use crate::desired::{DesiredContext, DesiredSet, KindFilter, RenderedManifest, Scopes, build};
use crate::schema::SchemaSet;
use crate::tracking::TrackingSettings;
use crate::yaml::{Limits, parse_documents};

fn desired(app: &str, text: &str) -> DesiredSet {
    let documents = parse_documents(text, &Limits::default()).expect("YAML");
    let rendered =
        documents.into_iter().map(|document| RenderedManifest { value: document.value, origin: None });
    build(
        rendered.collect(),
        &DesiredContext {
            app,
            destination_namespace: Some("team"),
            destination_server: "",
            scopes: &Scopes::built_in(),
            tracking: &TrackingSettings::default(),
            filter: &KindFilter::default(),
        },
    )
}

fn app(name: &str, text: &str) -> AppState {
    AppState {
        name: name.to_owned(),
        destination: "here".to_owned(),
        prunes: true,
        cascades: true,
        desired: desired(name, text),
        unstable: BTreeMap::new(),
        is_rendered: true,
    }
}

fn check(old: &[AppState], new: &[AppState], expected: &Expect) {
    let change = between(old, new, &SchemaSet::default());
    expected.assert_eq(&text(&change, "this merge"));
    // The other formats must not fail, and name the same objects.
    let n_rows = markdown(&change, "this merge").lines().filter(|line| line.starts_with("| ")).count();
    assert_eq!(n_rows.saturating_sub(1), change.objects.len());
    assert_eq!(data(&change)["objects"].as_array().map(Vec::len), Some(change.objects.len()));
}

const WEB: &str = "{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {replicas: 1, selector: {matchLabels: {a: b}}, \
    template: {spec: {containers: [{name: main, image: 'web:1'}]}}}}";

#[test]
fn what_a_merge_does() {
    let old = format!(
        "{WEB}
---
{{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {{name: data}}, spec: {{resources: {{requests: {{storage: 2Gi}}}}}}}}
---
{{apiVersion: v1, kind: ConfigMap, metadata: {{name: old}}, data: {{a: b}}}}
---
{{apiVersion: v1, kind: ConfigMap, metadata: {{name: kept, annotations: {{argocd.argoproj.io/sync-options: Prune=false}}}}}}
---
{{apiVersion: v1, kind: Secret, metadata: {{name: s, annotations: {{token: one, argocd.argoproj.io/sync-wave: '1'}}}}, stringData: {{password: first}}}}
"
    );
    let new = format!(
        "{}
---
{{apiVersion: v1, kind: ConfigMap, metadata: {{name: new}}, data: {{a: b}}}}
---
{{apiVersion: v1, kind: Secret, metadata: {{name: s, annotations: {{token: two, argocd.argoproj.io/sync-wave: '2'}}}}, stringData: {{password: second}}}}
",
        WEB.replace("web:1", "web:2").replace("a: b", "a: c")
    );
    check(
        &[app("shop", &old)],
        &[app("shop", &new)],
        &expect![[r#"
            shop
              - ConfigMap team/kept  (stays in the cluster: its sync options keep it)
              + ConfigMap team/new
              - ConfigMap team/old  (deleted)
              - PersistentVolumeClaim team/data  (deleted, with the claim's volume)
              ~ Secret team/s
                  /data/password: "<secret value 1>" -> "<secret value 3>"
                  /metadata/annotations/argocd.argoproj.io~1sync-wave: "1" -> "2"
                  /metadata/annotations/token: "<secret value 2>" -> "<secret value 4>"
              ~ apps/Deployment team/web  (restarts)
                  /spec/selector/matchLabels/a: "b" -> "c"  (immutable: the API server refuses it)
                  /spec/template/spec/containers/0/image: "web:1" -> "web:2"

            this merge deletes 2 objects, 1 of them holds data, removes 1 object from Git, not from the cluster, adds 1 object, changes 2 objects; 1 Deployment restarts; 1 immutable field will be refused"#]],
    );
}

#[test]
fn apps_come_go_and_hand_over() {
    let map = "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {x: y}}";
    check(
        &[app("one", map), app("two", "{apiVersion: v1, kind: Namespace, metadata: {name: n}}")],
        &[app("three", map)],
        &expect![[r"
            three (app added)
              > ConfigMap team/a  (from one)
            one (app removed)
            two (app removed)

            this merge moves 1 object to another app"]],
    );
}

#[test]
fn nothing_is_said_about_an_app_that_cannot_be_rendered() {
    let broken = AppState { is_rendered: false, ..app("one", "") };
    check(
        &[app("one", WEB)],
        &[broken],
        &expect![[r"
            one: cannot be rendered in one of the states, its objects are not compared

            this merge changes no object"]],
    );
}

#[test]
fn without_prune_objects_stay_and_spellings_are_no_change() {
    let old = AppState { prunes: false, cascades: false, ..app("one", WEB) };
    let new = AppState { prunes: false, cascades: false, ..app("one", "") };
    check(
        std::slice::from_ref(&old),
        &[new],
        &expect![[r"
            one
              - apps/Deployment team/web  (stays in the cluster: its app does not prune automatically)

            this merge removes 1 object from Git, not from the cluster"]],
    );
    check(std::slice::from_ref(&old), std::slice::from_ref(&old), &expect!["this merge changes no object"]);
}

#[test]
fn immutable_fields_of_each_kind() {
    for (old, new, expected) in [
        (
            "{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: a}, spec: {serviceName: a, replicas: 1}}",
            "{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: a}, spec: {serviceName: b, replicas: 2}}",
            "/spec/serviceName",
        ),
        (
            "{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: a}, spec: {resources: {requests: {storage: 2Gi}}}}",
            "{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: a}, spec: {resources: {requests: {storage: 3Gi}}}}",
            "",
        ),
        (
            "{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: a}, spec: {resources: {requests: {storage: 2Gi}}}}",
            "{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: a}, spec: {resources: {requests: {storage: 1Gi}}}}",
            "/spec/resources/requests/storage",
        ),
        (
            "{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: a}, roleRef: {name: a}}",
            "{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: a}, roleRef: {name: b}}",
            "/roleRef/name",
        ),
        (
            "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {a: b}}",
            "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {a: c}}",
            "",
        ),
        (
            "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, immutable: true, data: {a: b}}",
            "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, immutable: true, data: {a: c}}",
            "/data/a",
        ),
        (
            "{apiVersion: batch/v1, kind: Job, metadata: {name: a}, spec: {template: {spec: {x: 1}}}}",
            "{apiVersion: batch/v1, kind: Job, metadata: {name: a}, spec: {template: {spec: {x: 2}}}}",
            "/spec/template/spec/x",
        ),
        (
            "{apiVersion: batch/v1, kind: Job, metadata: {name: a}, spec: {template: {spec: {x: 1}}}}",
            "{apiVersion: batch/v1, kind: Job, metadata: {name: a, annotations: {argocd.argoproj.io/sync-options: 'Replace=true,Force=true'}}, spec: {template: {spec: {x: 2}}}}",
            "",
        ),
    ] {
        let change = between(&[app("one", old)], &[app("one", new)], &SchemaSet::default());
        let refused: Vec<String> = change
            .objects
            .iter()
            .flat_map(|object| match &object.outcome {
                Outcome::Changed { refused, .. } => refused.clone(),
                _ => Vec::new(),
            })
            .map(|path| path.to_string())
            .collect();
        assert_eq!(refused.join(" "), expected, "{new}");
    }
}

/// A password that the chart makes up differs between any two renders. No commit changed it.
#[test]
fn what_differs_in_each_render_is_no_change() {
    let secret = |password: &str, user: &str| {
        format!(
            "{{apiVersion: v1, kind: Secret, metadata: {{name: s}}, stringData: {{password: {password}, user: {user}}}}}"
        )
    };
    let old = app("one", &secret("a1", "first"));
    let mut new = app("one", &secret("b2", "second"));
    let again = app("one", &secret("c3", "second"));
    new.unstable = unstable_fields(&new.desired, &again.desired);
    check(
        &[old],
        &[new],
        &expect![[r#"
            one
              ~ Secret team/s
                  /data/user: "<secret value 2>" -> "<secret value 4>"

            this merge changes 1 object"#]],
    );
}
