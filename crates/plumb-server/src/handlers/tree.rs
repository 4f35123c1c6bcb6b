//! The objects of an Application and all objects below them.

use std::sync::Arc;

use plumb_api::Status;
use plumb_engine::TreeNode;
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

/// The nodes of the tree.
pub(super) fn nodes(call: &Call, app: &FoundApp) -> Result<Vec<TreeNode>, Status> {
    let away = || Status::unavailable("the cluster of the application is not connected");
    call.leader()?.tree(&app.namespace, &app.name).ok_or_else(away)
}

fn shown(call: &Call, app: &FoundApp) -> Result<Value, Status> {
    let nodes = nodes(call, app)?;
    Ok(json!({"nodes": nodes.iter().map(node).collect::<Vec<_>>()}))
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

/// The tree now, and again after each change of the Application. The right is checked again each time.
pub(super) async fn watch(call: Arc<Call>) -> Result<Answer, Status> {
    let away = || Status::unavailable("this replica does not lead yet; try again");
    let mut changes = call.shared.feed.subscribe().ok_or_else(away)?;
    let app = call.app()?.clone();
    let first = shown(&call, &app)?;
    let (sender, receiver) = mpsc::channel(4);
    tokio::spawn(async move {
        let mut last = first.clone();
        if !send(&sender, Arc::new(Item::new(first))).await {
            return;
        }
        loop {
            let event = tokio::select! {
                event = changes.recv() => event,
                () = sender.closed() => return,
            };
            match event {
                Ok(event) => {
                    let text = |path: &str| event.application().pointer(path).and_then(Value::as_str);
                    if text("/metadata/name") != Some(&app.name)
                        || text("/metadata/namespace") != Some(&app.namespace)
                    {
                        continue;
                    }
                }
                Err(RecvError::Lagged(_)) => {}
                Err(RecvError::Closed) => return,
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
