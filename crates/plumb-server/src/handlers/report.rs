//! plumb's own reports on Applications. The engine keeps them in the cluster, not in memory.

use std::collections::HashMap;
use std::sync::Arc;

use plumb_api::{Code, Status};
use plumb_core::object::Manifest;
use serde_json::{Value, json};

use super::app_read::may_get;
use super::resource::without_managed_fields;
use crate::backend::Known;
use crate::call::{Answer, Call};

/// The reports on the Applications that the caller may see, each as JSON text.
pub(super) async fn list(call: Arc<Call>) -> Result<Answer, Status> {
    let leader = call.leader()?;
    let (name, namespace) = (call.text("name"), call.text("appNamespace"));
    let home = if namespace.is_empty() { call.namespace() } else { namespace };
    let found: Vec<Manifest> = if name.is_empty() {
        let place = Some(namespace).filter(|namespace| !namespace.is_empty());
        call.shared.backend.list(Known::DriftReport, place, None).await?
    } else if leader.permits_namespace(home) {
        call.shared.backend.get(Known::DriftReport, home, name).await?.into_iter().collect()
    } else {
        Vec::new()
    };
    let apps = leader.apps();
    drop(leader);
    // Thousands of reports take a while, for which other requests must not wait.
    let work = tokio::task::spawn_blocking(move || {
        let heads =
            apps.iter().filter_map(|app| Some(((app.namespace(), app.name()), app.head()?.project())));
        let projects: HashMap<(&str, &str), &str> = heads.collect();
        // The report of an Application that is gone, or that the caller may not see, looks like none.
        let is_shown = |report: &Manifest| {
            let (namespace, name) =
                (report.namespace().unwrap_or_default(), report.name().unwrap_or_default());
            let project = projects.get(&(namespace, name));
            project.is_some_and(|project| may_get(&call, namespace, name, project))
        };
        let shown = found.into_iter().filter(is_shown);
        shown
            .map(|report| json!(without_managed_fields(report.into_value()).to_string()))
            .collect::<Vec<Value>>()
    });
    let texts = work.await.map_err(|_| Status::new(Code::Internal, "the answer was aborted"))?;
    Ok(Answer::One(json!({"items": texts})))
}
