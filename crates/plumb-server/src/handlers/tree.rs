//! The objects of an Application and all objects below them.

use std::sync::Arc;
use std::time::Duration;

use plumb_api::Status;
use plumb_engine::{AppTree, TreeNode};
use serde_json::{Value, json};
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::mpsc;

use super::watch::send;
use crate::app_feed::Item;
use crate::call::{Answer, Call, FoundApp};

/// The tree.
pub(super) async fn tree(call: Arc<Call>) -> Result<Answer, Status> {
    shown(&call, call.app()?).map(Answer::One)
}

/// The live objects of the tree. Orphans are only shown: they are not the app's.
pub(super) fn nodes(call: &Call, app: &FoundApp) -> Result<Vec<TreeNode>, Status> {
    whole(call, app).map(|tree| tree.nodes)
}

fn whole(call: &Call, app: &FoundApp) -> Result<AppTree, Status> {
    let away = || Status::unavailable("the cluster of the application is not connected");
    call.leader()?.tree(&app.namespace, &app.name).ok_or_else(away)
}

fn shown(call: &Call, app: &FoundApp) -> Result<Value, Status> {
    Ok(on_wire(&whole(call, app)?))
}

fn on_wire(tree: &AppTree) -> Value {
    let missing = tree.missing.iter().map(|(key, version)| {
        json!({
            "group": key.group, "version": version, "kind": key.kind, "namespace": key.namespace_or_empty(),
            "name": key.name, "health": {"status": "Missing"},
        })
    });
    let nodes: Vec<Value> = tree.nodes.iter().map(node).chain(missing).collect();
    let mut shown = json!({"nodes": nodes});
    if !tree.orphans.is_empty() {
        shown["orphanedNodes"] = tree.orphans.iter().map(node).collect();
    }
    shown
}

fn reference(node: &plumb_kube::Node) -> Value {
    json!({
        "group": node.key.group, "version": node.version, "kind": node.key.kind,
        "namespace": node.key.namespace_or_empty(), "name": node.key.name, "uid": node.uid.to_string(),
    })
}

fn node(shown: &TreeNode) -> Value {
    let node = &shown.node;
    let mut value = reference(node);
    value["resourceVersion"] = json!(node.resource_version);
    if !shown.parents.is_empty() {
        value["parentRefs"] = Value::Array(shown.parents.iter().map(reference).collect());
    }
    if !node.images.is_empty() {
        value["images"] = node.images.iter().map(|image| json!(**image)).collect();
    }
    if let Some((status, message)) = &shown.health {
        value["health"] = json!({"status": status, "message": message});
    }
    if let Some(created) = jiff::Timestamp::from_second(node.created).ok().filter(|_| node.created > 0) {
        value["createdAt"] = json!(created.to_string());
    }
    value
}

/// How often the tree is compared with what was sent last: objects of controllers, such as pods, come and go without a change
/// of the Application.
const LOOK_AGAIN: Duration = Duration::from_secs(2);

/// The tree now, and again after each change of the Application or of an object in the tree. The right is checked again each time.
pub(super) async fn watch(call: Arc<Call>) -> Result<Answer, Status> {
    let away = || Status::unavailable("this replica does not lead yet; try again");
    let mut changes = call.shared.feed.subscribe().ok_or_else(away)?;
    let app = call.app()?.clone();
    let first = shown(&call, &app)?;
    let (sender, receiver) = mpsc::channel(4);
    tokio::spawn(async move {
        let mut last = first.clone();
        let mut looks = tokio::time::interval(LOOK_AGAIN);
        looks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        if !send(&sender, Arc::new(Item::new(first))).await {
            return;
        }
        loop {
            let event = tokio::select! {
                event = changes.recv() => Some(event),
                _ = looks.tick() => None,
                () = sender.closed() => return,
            };
            match event {
                Some(Ok(event)) => {
                    let text = |path: &str| event.application().pointer(path).and_then(Value::as_str);
                    if text("/metadata/name") != Some(&app.name)
                        || text("/metadata/namespace") != Some(&app.namespace)
                    {
                        continue;
                    }
                }
                None | Some(Err(RecvError::Lagged(_))) => {}
                Some(Err(RecvError::Closed)) => return,
            }
            let current = call.find_app("get").and_then(|app| shown(&call, &app));
            match current {
                Ok(tree) if tree == last => {}
                Ok(tree) => {
                    last = tree.clone();
                    if !send(&sender, Arc::new(Item::new(tree))).await {
                        return;
                    }
                }
                Err(status) => {
                    let _ = sender.send(Err(status)).await;
                    return;
                }
            }
        }
    });
    Ok(Answer::Stream(receiver))
}

#[cfg(test)]
mod tests {
    use plumb_core::object::ObjectKey;

    use super::*;

    #[test]
    fn an_object_that_only_git_has_is_missing() {
        let key = ObjectKey::new("apps", "Deployment", Some("prod".to_owned()), "web");
        let tree = AppTree { missing: vec![(key, "v1".to_owned())], ..AppTree::default() };
        let missing = json!({"group": "apps", "version": "v1", "kind": "Deployment", "namespace": "prod",
            "name": "web", "health": {"status": "Missing"}});
        assert_eq!(on_wire(&tree), json!({"nodes": [missing]}));
    }
}
