use std::time::{Duration, Instant};

use plumb_core::object::{GroupKind, ObjectKey};
use plumb_kube::{Change, Fence, Gate, LiveStore, Origin, Role};
use serde_json::json;
use tokio::sync::mpsc::UnboundedReceiver;

use super::lab::{Lab, apply, lab, within};

/// Every single change from now on.
fn each(store: &LiveStore) -> UnboundedReceiver<Change> {
    let (sender, changes) = tokio::sync::mpsc::unbounded_channel();
    store.each(move |change| sender.send(change.clone()).is_ok());
    changes
}

/// Waits for a change of this object.
async fn change(changes: &mut UnboundedReceiver<Change>, key: &ObjectKey, gone: bool) -> Change {
    within(10, async {
        loop {
            let change = changes.recv().await.unwrap();
            if change.key == *key && change.gone == gone {
                return change;
            }
        }
    })
    .await
}

fn deployment(lab: &Lab, app: &str) -> serde_json::Value {
    let namespace = &lab.namespace;
    json!({"apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "web", "namespace": namespace,
            "annotations": {"argocd.argoproj.io/tracking-id": format!("{app}:apps/Deployment:{namespace}/web")}},
        "spec": {"replicas": 2, "selector": {"matchLabels": {"app": "web"}},
            "template": {"metadata": {"labels": {"app": "web"}},
                "spec": {"serviceAccountName": "default", "containers": [{"name": "web", "image": "web:1",
                    "envFrom": [{"configMapRef": {"name": "settings"}}]}]}}}})
}

#[tokio::test]
async fn a_workload_is_followed_down_to_its_pods() {
    let Some(lab) = lab("workload").await else { return };
    let app = lab.namespace.clone();
    let store = lab.store().await;
    let mut changes = each(&store);
    lab.apply(lab.config_map("settings", Some(&app), "1")).await;
    lab.apply(deployment(&lab, &app)).await;

    let key = lab.key("apps", "Deployment", "web");
    let first = change(&mut changes, &key, false).await;
    assert_eq!(first.touched.len(), 1);
    assert_eq!((&*first.touched[0].instance, first.touched[0].role), (app.as_str(), Role::Tracked));

    // Two pods, each touching the app as a child.
    let mut pods = std::collections::BTreeSet::new();
    within(20, async {
        while pods.len() < 2 {
            let change = changes.recv().await.unwrap();
            let here = change.key.namespace.as_deref() == Some(lab.namespace.as_str());
            // A pod may be told before its ReplicaSet is: each kind has a watch of its own.
            let is_child = change.touched.iter().any(|t| *t.instance == *app && t.role == Role::Child);
            if here && change.key.kind == "Pod" && is_child {
                pods.insert(change.key.name.clone());
            }
        }
    })
    .await;

    let tree = store.tree(&app);
    let kinds: Vec<&str> = tree.iter().map(|node| node.key.kind.as_str()).collect();
    assert_eq!(kinds, ["ConfigMap", "Pod", "Pod", "Deployment", "ReplicaSet"]);
    assert_eq!(tree[1].images.iter().map(|image| &**image).collect::<Vec<_>>(), ["web:1"]);
    assert_eq!(store.children(&first.uid).len(), 1);

    let users = store.referrers(&lab.key("", "ConfigMap", "settings"));
    let users: Vec<&str> = users.iter().map(|node| node.key.kind.as_str()).collect();
    assert_eq!(users, ["Pod", "Pod", "Deployment", "ReplicaSet"]);

    let snapshot = store.snapshot(&app, &[], &[]).await;
    assert!(snapshot.live.complete);
    assert!(snapshot.unreadable.is_empty());
    let names: Vec<String> = snapshot.live.objects.keys().map(ToString::to_string).collect();
    assert_eq!(names, [format!("ConfigMap {app}/settings"), format!("apps/Deployment {app}/web")]);
    let live = &snapshot.live.objects[&key];
    assert!(live.value()["metadata"]["managedFields"].is_array(), "kept for the comparison");
}

#[tokio::test]
async fn what_was_written_is_known_at_once_and_told_once() {
    let Some(lab) = lab("written").await else { return };
    let app = lab.namespace.clone();
    let store = lab.store().await;
    let gate = Gate::new(lab.client.clone(), Fence::of_command(), Some(store.clone()));
    let key = lab.key("", "ConfigMap", "one");
    for round in 0..50 {
        let mut changes = each(&store);
        let written = apply(&gate, lab.config_map("one", Some(&app), &round.to_string())).await;
        let known = store.get_kept(&key).unwrap();
        assert_eq!(known.value()["data"]["text"], round.to_string());
        let told = change(&mut changes, &key, false).await;
        assert_eq!(told.resource_version.to_string(), written.resource_version().unwrap());
    }
    // A change by another writer arrives through the watch.
    let mut changes = each(&store);
    lab.apply(lab.config_map("one", Some(&app), "last")).await;
    assert_eq!(change(&mut changes, &key, false).await.origin, Origin::Watched);
}

#[tokio::test]
async fn a_wanted_object_without_an_app_is_fetched_once_and_then_kept() {
    let Some(lab) = lab("wanted").await else { return };
    let store = lab.store().await;
    let mut changes = each(&store);
    let key = lab.key("", "ConfigMap", "foreign");
    let object = lab.apply(lab.config_map("foreign", None, "1")).await;
    change(&mut changes, &key, false).await;
    assert!(store.get_kept(&key).is_none(), "only its metadata is kept");

    let absent = lab.key("", "ConfigMap", "absent");
    let snapshot = store.snapshot("some-app", &[key.clone(), absent.clone()], &[]).await;
    assert_eq!(snapshot.live.objects.len(), 1);
    assert_eq!(snapshot.live.objects[&key].uid(), object.uid());
    assert!(store.get_kept(&key).is_some(), "kept from now on");

    lab.apply(lab.config_map("foreign", None, "2")).await;
    let told = change(&mut changes, &key, false).await;
    assert!(told.touched.iter().any(|t| &*t.instance == "some-app" && t.role == Role::Wanted));
    assert_eq!(store.get_kept(&key).unwrap().value()["data"]["text"], "2");
    // One that was wanted and did not exist.
    lab.apply(lab.config_map("absent", None, "1")).await;
    let told = change(&mut changes, &absent, false).await;
    assert!(told.touched.iter().any(|t| &*t.instance == "some-app"));

    lab.delete(&object).await;
    let told = change(&mut changes, &key, true).await;
    assert!(told.touched.iter().any(|t| &*t.instance == "some-app"));
    assert!(!store.contains(&key));
}

#[tokio::test]
async fn a_mark_that_goes_away_touches_the_app_that_it_named() {
    let Some(lab) = lab("unmarked").await else { return };
    let app = lab.namespace.clone();
    let store = lab.store().await;
    let key = lab.key("", "ConfigMap", "one");
    let mut changes = each(&store);
    lab.apply(lab.config_map("one", Some(&app), "1")).await;
    change(&mut changes, &key, false).await;
    lab.apply(lab.config_map("one", None, "1")).await;
    let told = change(&mut changes, &key, false).await;
    assert!(told.touched.iter().any(|t| *t.instance == *app && t.role == Role::Tracked));
    assert!(store.tracked(&app).is_empty());
}

fn crd(group: &str, kind: &str, schema: &serde_json::Value) -> serde_json::Value {
    let plural = format!("{}s", kind.to_lowercase());
    json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.{group}")},
        "spec": {"group": group, "scope": "Namespaced",
            "names": {"plural": plural, "singular": kind.to_lowercase(), "kind": kind, "listKind": format!("{kind}List")},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}}]}})
}

#[tokio::test]
async fn kinds_come_and_go_with_their_crds() {
    let Some(lab) = lab("crds").await else { return };
    let store = lab.store().await;
    let group = format!("{}.example", lab.namespace);
    let kind = GroupKind::new(group.as_str(), "Widget");
    let schema = json!({"type": "object", "properties": {"spec": {"type": "object",
        "properties": {"size": {"type": "integer"}}}}});

    let started = Instant::now();
    let definition = lab.apply(crd(&group, "Widget", &schema)).await;
    within(5, async {
        while !store.is_listed(&kind) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
    let took = started.elapsed();
    println!("a new kind is followed after {took:?}");
    // A fraction of it on a machine that is not busy with other things.
    assert!(took < Duration::from_secs(2), "{took:?}");

    let mut changes = each(&store);
    let widget = json!({"apiVersion": format!("{group}/v1"), "kind": "Widget",
        "metadata": {"name": "one", "namespace": lab.namespace}, "spec": {"size": 1}});
    lab.apply(widget).await;
    let key = lab.key(&group, "Widget", "one");
    change(&mut changes, &key, false).await;
    assert_eq!(store.count(&kind), Some(1));
    assert_eq!(store.referrers(&definition.key().unwrap()).len(), 1, "its instances");

    // A new default changes the hash of the schema.
    let api_version = format!("{group}/v1");
    within(5, async {
        while !lab.client.catalog().schemas.contains_key(&api_version) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await;
    let before = lab.client.catalog().schemas[&api_version].clone();
    let started = Instant::now();
    let schema = json!({"type": "object", "properties": {"spec": {"type": "object",
        "properties": {"size": {"type": "integer", "default": 7}}}}});
    let definition = lab.apply(crd(&group, "Widget", &schema)).await;
    within(10, async {
        while lab.client.catalog().schemas.get(&api_version) == Some(&before) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await;
    println!("a new schema is noticed after {:?}", started.elapsed());

    let started = Instant::now();
    lab.delete(&definition).await;
    change(&mut changes, &key, true).await;
    within(10, async {
        while store.count(&kind).is_some() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
    println!("a kind is gone after {:?}", started.elapsed());
}
