use std::collections::{BTreeMap, BTreeSet};

use expect_test::{Expect, expect};
use jiff::Timestamp;

use super::*;
use crate::app::AppId;
use crate::object::{Manifest, ObjectKey};
use crate::tracking::{TrackingMethod, TrackingSettings};
use crate::yaml::{Limits, parse_documents};

fn objects(text: &str) -> BTreeMap<ObjectKey, Manifest> {
    let documents = parse_documents(text, &Limits::default()).expect("YAML");
    let manifests = documents.into_iter().map(|document| Manifest::new(document.value).expect("an object"));
    manifests.map(|object| (object.key().expect("a name"), object)).collect()
}

fn app(name: &str, orphans: &[ObjectKey]) -> KnownApp {
    KnownApp {
        id: AppId { namespace: "argocd".to_owned(), name: name.to_owned() },
        instance: name.to_owned(),
        orphans: orphans.iter().cloned().collect(),
    }
}

fn now() -> Timestamp {
    "2026-04-16T23:00:00Z".parse().expect("a time")
}

fn mark(app: &str, id: &str) -> String {
    let written = "managedFields: [{manager: argocd-controller, time: \"2026-04-06T23:00:00Z\"}]";
    format!("annotations: {{argocd.argoproj.io/tracking-id: \"{app}:{id}\"}}, {written}")
}

fn check(live: &str, apps: &[KnownApp], expected: &Expect) {
    let orphans = find(&objects(live), apps, &TrackingSettings::default(), Some("argocd"));
    expected.assert_eq(&text(&orphans, now()));
    assert_eq!(data(&orphans)["orphans"].as_array().map(Vec::len), Some(orphans.len()));
}

#[test]
fn who_uses_an_orphan_and_in_which_order_they_go() {
    let live = format!(
        "
{{apiVersion: v1, kind: ConfigMap, metadata: {{name: used, namespace: a, {}}}}}
---
{{apiVersion: v1, kind: Pod, metadata: {{name: by-hand, namespace: a}}, spec: {{volumes: [{{configMap: {{name: used}}}}]}}}}
---
{{apiVersion: v1, kind: ServiceAccount, metadata: {{name: bot, namespace: a, creationTimestamp: \"2026-03-26T23:00:00Z\", {}}}}}
---
{{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {{name: bot, {}}}}}
---
{{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {{name: bot, {}}}, roleRef: {{kind: ClusterRole, name: bot}},
  subjects: [{{kind: ServiceAccount, name: bot, namespace: a}}]}}
---
{{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingWebhookConfiguration, metadata: {{name: check, {}}},
  webhooks: [{{clientConfig: {{service: {{name: check, namespace: a}}}}}}]}}
---
{{apiVersion: v1, kind: Service, metadata: {{name: check, namespace: a, {}}}}}
---
{{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {{name: data, namespace: a, {}}}}}
---
{{apiVersion: v1, kind: ConfigMap, metadata: {{name: fine, namespace: a, {}}}}}
",
        mark("shop", "/ConfigMap:a/used"),
        mark("gone", "/ServiceAccount:a/bot"),
        mark("gone", "rbac.authorization.k8s.io/ClusterRole:a/bot"),
        mark("gone", "rbac.authorization.k8s.io/ClusterRoleBinding:a/bot"),
        mark("gone", "admissionregistration.k8s.io/ValidatingWebhookConfiguration:a/check"),
        mark("gone", "/Service:a/check"),
        mark("gone", "/PersistentVolumeClaim:a/data"),
        mark("shop", "/ConfigMap:a/fine"),
    );
    let used = ObjectKey::new("", "ConfigMap", Some("a".to_owned()), "used");
    check(
        &live,
        &[app("shop", &[used])],
        &expect![[r"
            1. admissionregistration.k8s.io/ValidatingWebhookConfiguration check
               app gone no longer exists
               nothing refers to it; last sign: it was written 10d 0h ago
            2. rbac.authorization.k8s.io/ClusterRoleBinding bot
               app gone no longer exists
               nothing refers to it; last sign: it was written 10d 0h ago
            3. ConfigMap a/used
               no longer in Git, app argocd/shop
               1 object that stays refers to it; last sign: it was written 10d 0h ago
                 Pod a/by-hand /spec/volumes/0/configMap/name
               not deleted: it is still used
            4. Service a/check
               app gone no longer exists
               only other orphans refer to it; last sign: it was written 10d 0h ago
                 admissionregistration.k8s.io/ValidatingWebhookConfiguration check /webhooks/0/clientConfig/service/name, app gone, an orphan
            5. ServiceAccount a/bot
               app gone no longer exists
               only other orphans refer to it; last sign: it was written 10d 0h ago
                 rbac.authorization.k8s.io/ClusterRoleBinding bot /subjects/0/name, app gone, an orphan
            6. PersistentVolumeClaim a/data
               app gone no longer exists
               nothing refers to it; last sign: it was written 10d 0h ago
               not deleted: the claim's volume would be lost; --with-data deletes it
            7. rbac.authorization.k8s.io/ClusterRole bot
               app gone no longer exists
               only other orphans refer to it; last sign: it was written 10d 0h ago
                 rbac.authorization.k8s.io/ClusterRoleBinding bot /roleRef/name, app gone, an orphan

            7 orphans, 5 can be deleted"]],
    );
}

#[test]
fn what_helm_left_behind() {
    let live = "
{apiVersion: v1, kind: ConfigMap, metadata: {name: left, namespace: a, labels: {app.kubernetes.io/managed-by: Helm},
  annotations: {meta.helm.sh/release-name: old, meta.helm.sh/release-namespace: a}, managedFields: [{manager: helm}]}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: forged, namespace: a, labels: {app.kubernetes.io/managed-by: Helm},
  annotations: {meta.helm.sh/release-name: old, meta.helm.sh/release-namespace: a}, managedFields: [{manager: kubectl}]}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: current, namespace: a, labels: {app.kubernetes.io/managed-by: Helm},
  annotations: {meta.helm.sh/release-name: new, meta.helm.sh/release-namespace: a}}}
---
{apiVersion: v1, kind: Secret, type: helm.sh/release.v1, metadata: {name: sh.helm.release.v1.new.v1, namespace: a, labels: {name: new}}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: users, namespace: a}}
";
    check(
        live,
        &[app("shop", &[])],
        &expect![[r"
            1. ConfigMap a/forged
               Helm release a/old no longer exists
               nothing refers to it
               not deleted: only its mark names the owner, which has never written it; delete it by its name if it is yours
            2. ConfigMap a/left
               Helm release a/old no longer exists
               nothing refers to it

            2 orphans, 1 can be deleted"]],
    );
}

#[test]
fn a_pod_of_an_orphaned_deployment_is_no_user_that_stays() {
    let live = format!(
        "
{{apiVersion: apps/v1, kind: Deployment, metadata: {{name: web, namespace: a, {}}}, spec: {{template: {{spec: {{volumes: [{{configMap: {{name: c}}}}]}}}}}}}}
---
{{apiVersion: apps/v1, kind: ReplicaSet, metadata: {{name: web-1, namespace: a, ownerReferences: [{{apiVersion: apps/v1, kind: Deployment, name: web, uid: x}}]}}}}
---
{{apiVersion: v1, kind: Pod, metadata: {{name: web-1-x, namespace: a, ownerReferences: [{{apiVersion: apps/v1, kind: ReplicaSet, name: web-1, uid: y}}]}},
  spec: {{volumes: [{{configMap: {{name: c}}}}]}}}}
---
{{apiVersion: v1, kind: ConfigMap, metadata: {{name: c, namespace: a, {}}}}}
",
        mark("gone", "apps/Deployment:a/web"),
        mark("gone", "/ConfigMap:a/c"),
    );
    check(
        &live,
        &[app("shop", &[])],
        &expect![[r"
            1. apps/Deployment a/web
               app gone no longer exists
               nothing refers to it; last sign: it was written 10d 0h ago
            2. ConfigMap a/c
               app gone no longer exists
               only other orphans refer to it; last sign: it was written 10d 0h ago
                 Pod a/web-1-x /spec/volumes/0/configMap/name, an orphan
                 apps/Deployment a/web /spec/template/spec/volumes/0/configMap/name, app gone, an orphan

            2 orphans, 2 can be deleted"]],
    );
}

/// A Service of nobody selects the pods of an orphaned Deployment: it stays, and so does what it needs.
#[test]
fn what_a_staying_orphan_uses_stays_too() {
    let live = format!(
        "
{{apiVersion: v1, kind: Service, metadata: {{name: web, namespace: a}}, spec: {{selector: {{app: web}}}}}}
---
{{apiVersion: apps/v1, kind: Deployment, metadata: {{name: web, namespace: a, {}}},
  spec: {{template: {{metadata: {{labels: {{app: web}}}}, spec: {{volumes: [{{configMap: {{name: c}}}}]}}}}}}}}
---
{{apiVersion: v1, kind: ConfigMap, metadata: {{name: c, namespace: a, {}}}}}
",
        mark("gone", "apps/Deployment:a/web"),
        mark("gone", "/ConfigMap:a/c"),
    );
    check(
        &live,
        &[app("shop", &[])],
        &expect![[r"
        1. apps/Deployment a/web
           app gone no longer exists
           1 object that stays refers to it; last sign: it was written 10d 0h ago
             Service a/web /spec/selector
           not deleted: it is still used
        2. ConfigMap a/c
           app gone no longer exists
           only other orphans refer to it; last sign: it was written 10d 0h ago
             apps/Deployment a/web /spec/template/spec/volumes/0/configMap/name, app gone, an orphan
           not deleted: an orphan that is not deleted uses it

        2 orphans, 0 can be deleted"]],
    );
}

/// An earlier revision of a Deployment and a pod that has ended need nothing any more.
#[test]
fn what_only_records_of_earlier_runs_name_can_go() {
    let live = format!(
        "
{{apiVersion: apps/v1, kind: Deployment, metadata: {{name: web, namespace: a}}}}
---
{{apiVersion: apps/v1, kind: ReplicaSet, metadata: {{name: web-1, namespace: a, ownerReferences: [{{apiVersion: apps/v1, kind: Deployment, name: web, uid: x}}]}},
  spec: {{replicas: 0, template: {{spec: {{volumes: [{{configMap: {{name: c}}}}]}}}}}}}}
---
{{apiVersion: v1, kind: Pod, metadata: {{name: done, namespace: a}}, spec: {{volumes: [{{configMap: {{name: c}}}}]}}, status: {{phase: Succeeded}}}}
---
{{apiVersion: v1, kind: ConfigMap, metadata: {{name: c, namespace: a, {}}}}}
",
        mark("gone", "/ConfigMap:a/c"),
    );
    check(
        &live,
        &[app("shop", &[])],
        &expect![[r"
            1. ConfigMap a/c
               app gone no longer exists
               2 objects that stay refer to it; last sign: it was written 10d 0h ago
                 Pod a/done /spec/volumes/0/configMap/name, optional
                 apps/ReplicaSet a/web-1 /spec/template/spec/volumes/0/configMap/name, optional

            1 orphan, 1 can be deleted"]],
    );
}

#[test]
fn what_would_take_data_along_is_held() {
    let live = format!(
        "
{{apiVersion: argoproj.io/v1alpha1, kind: Application, metadata: {{name: child, namespace: argocd, {},
  finalizers: [resources-finalizer.argocd.argoproj.io/background]}}}}
---
{{apiVersion: argoproj.io/v1alpha1, kind: Application, metadata: {{name: only-its-name, namespace: argocd, {}}}}}
---
{{apiVersion: db.example.com/v1, kind: Cluster, metadata: {{name: pg, namespace: a, {}}}}}
---
{{apiVersion: v1, kind: Pod, metadata: {{name: pg-1, namespace: a,
  ownerReferences: [{{apiVersion: db.example.com/v1, kind: Cluster, name: pg}}]}}}}
---
{{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {{name: pg-1, namespace: a,
  ownerReferences: [{{apiVersion: v1, kind: Pod, name: pg-1}}]}}}}
---
{{apiVersion: apps/v1, kind: StatefulSet, metadata: {{name: queue, namespace: a, {}}},
  spec: {{persistentVolumeClaimRetentionPolicy: {{whenDeleted: Delete}}, volumeClaimTemplates: [{{metadata: {{name: d}}}}]}}}}
---
{{apiVersion: apps/v1, kind: StatefulSet, metadata: {{name: keeps, namespace: a, {}}},
  spec: {{persistentVolumeClaimRetentionPolicy: {{whenDeleted: Retain}}, volumeClaimTemplates: [{{metadata: {{name: d}}}}]}}}}
",
        mark("gone", "argoproj.io/Application:argocd/child"),
        mark("gone", "argoproj.io/Application:argocd/only-its-name"),
        mark("gone", "db.example.com/Cluster:a/pg"),
        mark("gone", "apps/StatefulSet:a/queue"),
        mark("gone", "apps/StatefulSet:a/keeps"),
    );
    let orphans = find(&objects(&live), &[app("shop", &[])], &TrackingSettings::default(), Some("argocd"));
    let held: BTreeMap<String, String> =
        orphans.iter().map(|orphan| (orphan.key.name.clone(), format!("{:?}", orphan.hold))).collect();
    expect![[r#"
        {
            "child": "Some(Data(\"everything that its Application deployed\"))",
            "keeps": "None",
            "only-its-name": "None",
            "pg": "Some(Data(\"the volume of a claim that it owns\"))",
            "queue": "Some(Data(\"the volume of a claim that it owns\"))",
        }
    "#]]
    .assert_debug_eq(&held);
}

#[test]
fn a_label_alone_makes_an_orphan_only_if_a_sync_wrote_the_object() {
    let live = "
{apiVersion: v1, kind: Service, metadata: {name: web, namespace: a, labels: {app.kubernetes.io/instance: gone},
  managedFields: [{manager: argocd-controller, time: \"2026-04-06T23:00:00Z\"}]}}
---
{apiVersion: v1, kind: Endpoints, metadata: {name: web, namespace: a, labels: {app.kubernetes.io/instance: gone},
  managedFields: [{manager: kube-controller-manager, time: \"2026-04-06T23:00:00Z\"}]}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: of-helm, namespace: a, labels: {app.kubernetes.io/instance: release}}}
";
    let by_label = TrackingSettings { method: TrackingMethod::Label, ..TrackingSettings::default() };
    let names = |tracking: &TrackingSettings| -> Vec<String> {
        let found = find(&objects(live), &[app("shop", &[])], tracking, Some("argocd"));
        found.iter().map(|orphan| orphan.key.to_string()).collect()
    };
    assert_eq!(names(&by_label), ["Service a/web"]);
    assert_eq!(names(&TrackingSettings::default()), Vec::<String>::new());
}

#[test]
fn without_any_app_no_app_is_gone() {
    let live = format!(
        "{{apiVersion: v1, kind: ConfigMap, metadata: {{name: c, namespace: a, {}}}}}",
        mark("x", "/ConfigMap:a/c")
    );
    check(&live, &[], &expect!["0 orphans, 0 can be deleted"]);
}

#[test]
fn a_circle_comes_to_an_end() {
    let key = |name: &str| ObjectKey::new("", "ConfigMap", Some("a".to_owned()), name);
    let used_by = BTreeMap::from([
        (key("a"), BTreeSet::from([key("b")])),
        (key("b"), BTreeSet::from([key("a")])),
        (key("c"), BTreeSet::new()),
    ]);
    let names: Vec<String> = super::order::order(&used_by).iter().map(|key| key.name.clone()).collect();
    assert_eq!(names, ["c", "a", "b"]);
}

#[test]
fn only_what_was_well_can_become_worse() {
    let pods = |phase: &str| {
        objects(&format!(
            "{{apiVersion: v1, kind: Pod, metadata: {{name: p, namespace: a}}, spec: {{restartPolicy: Always}}, status: {{phase: {phase}, \
            conditions: [{{type: Ready, status: \"True\"}}]}}}}"
        ))
    };
    let health = |phase: &str| health_of(&pods(phase));
    assert_eq!(worse(&health("Running"), &health("Running")), Vec::<String>::new());
    assert_eq!(worse(&health("Running"), &health("Failed")).len(), 1);
    assert_eq!(worse(&health("Failed"), &health("Failed")), Vec::<String>::new());
    assert_eq!(worse(&health("Running"), &BTreeMap::new()), ["Pod a/p was Healthy and is gone"]);
}
