//! The names of triggers, services and templates of notifications.

use std::sync::Arc;

use plumb_api::Status;
use serde_json::{Value, json};

use super::config_map;
use crate::call::{Answer, Call};

/// The settings of notifications.
const CONFIG: &str = "argocd-notifications-cm";

async fn names(call: &Call, prefix: &str) -> Result<Answer, Status> {
    let data = config_map::read(call, CONFIG).await?;
    let names = data.keys().filter_map(|key| key.strip_prefix(prefix)).filter(|name| !name.is_empty());
    let items: Vec<Value> = names.map(|name| json!({"name": name})).collect();
    Ok(Answer::One(json!({"items": items})))
}

pub(super) async fn triggers(call: Arc<Call>) -> Result<Answer, Status> {
    names(&call, "trigger.").await
}

pub(super) async fn services(call: Arc<Call>) -> Result<Answer, Status> {
    names(&call, "service.").await
}

pub(super) async fn templates(call: Arc<Call>) -> Result<Answer, Status> {
    names(&call, "template.").await
}
