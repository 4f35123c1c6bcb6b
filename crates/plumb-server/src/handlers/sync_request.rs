//! The operation that a sync or a rollback writes.

use plumb_api::Status;
use plumb_core::text::without_logins;
use plumb_crd::application::RevisionHistory;
use plumb_crd::{Application, Wire};
use serde_json::{Value, json};

/// True if the Application syncs by itself.
pub(super) fn is_automated(app: &Application) -> bool {
    let automated = app.spec.sync_policy.as_ref().and_then(|policy| policy.automated.as_ref());
    automated.is_some_and(|automated| automated.enabled != Some(false))
}

/// The operation of a sync request.
pub(super) fn of_sync(app: &Application, request: &Value, user: &str) -> Result<Value, Status> {
    let text = |field: &str| request.get(field).and_then(Value::as_str).unwrap_or_default();
    let flag = |field: &str| request.get(field).and_then(Value::as_bool).unwrap_or_default();
    let policy = app.spec.sync_policy.as_ref();
    let mut sync = json!({"prune": flag("prune"), "dryRun": flag("dryRun")});
    let others = other_revisions(app, request)?;
    if let Some(why) = others.first().filter(|_| is_automated(app) && !flag("dryRun")) {
        return Err(Status::precondition(why));
    }
    let revision = text("revision");
    if !revision.is_empty() && app.spec.sources.is_empty() {
        sync["revision"] = json!(revision);
    }
    if !app.spec.sources.is_empty()
        && let Some(revisions) = asked_revisions(app, request)?
    {
        sync["revisions"] = json!(revisions);
    }
    for (field, name) in
        [("strategy", "syncStrategy"), ("resources", "resources"), ("manifests", "manifests")]
    {
        let value = request.get(field);
        let is_empty = |value: &Value| value.as_array().is_some_and(Vec::is_empty);
        if let Some(value) = value.filter(|value| !value.is_null() && !is_empty(value)) {
            sync[name] = value.clone();
        }
    }
    // Options of the request replace all options of the spec, also if there are none of them.
    let options =
        request.pointer("/syncOptions").map(|options| options.get("items").cloned().unwrap_or(json!([])));
    match options {
        Some(options) => sync["syncOptions"] = options,
        None => set_options(&mut sync, app),
    }
    let mut operation = json!({"sync": sync, "initiatedBy": {"username": user}});
    if let Some(infos) =
        request.get("infos").filter(|infos| infos.as_array().is_some_and(|list| !list.is_empty()))
    {
        operation["info"] = infos.clone();
    }
    let retry = request.get("retryStrategy").filter(|retry| !retry.is_null()).cloned();
    let retry = retry.or_else(|| policy.and_then(|policy| policy.retry.as_ref()).map(Wire::write));
    if let Some(retry) = retry {
        operation["retry"] = retry;
    }
    Ok(operation)
}

/// The revisions that a sync request asks for instead of those that the Application tracks: why automated syncs would undo
/// each.
pub(super) fn other_revisions(app: &Application, request: &Value) -> Result<Vec<String>, Status> {
    let or_head = |tracked: &str| if tracked.is_empty() { "HEAD".to_owned() } else { tracked.to_owned() };
    if app.spec.sources.is_empty() {
        let revision = request.get("revision").and_then(Value::as_str).unwrap_or_default();
        let source = app.spec.source.as_ref();
        let tracked = or_head(source.map(|source| source.target_revision.as_str()).unwrap_or_default());
        let is_other = !revision.is_empty() && revision != tracked;
        let why = format!("Cannot sync to {revision}: auto-sync currently set to {tracked}");
        return Ok(is_other.then_some(why).into_iter().collect());
    }
    let asked = asked_revisions(app, request)?.unwrap_or_default();
    let asked = asked.iter().zip(&app.spec.sources);
    let whys = asked.filter_map(|(revision, source)| {
        let (revision, tracked) = (or_head(revision), or_head(&source.target_revision));
        let repo = without_logins(&source.repo_url);
        (revision != tracked)
            .then(|| format!("Cannot sync source {repo} to {revision}: auto-sync currently set to {tracked}"))
    });
    Ok(whys.collect())
}

/// The revision of each source: `revisions` with the positions of their sources, counted from 1, and what the others track.
/// `None` if the request asks for none.
fn asked_revisions(app: &Application, request: &Value) -> Result<Option<Vec<String>>, Status> {
    let list = |field: &str| request.get(field).and_then(Value::as_array).cloned().unwrap_or_default();
    let (revisions, positions) = (list("revisions"), list("sourcePositions"));
    if revisions.is_empty() {
        return Ok(None);
    }
    if revisions.len() != positions.len() {
        return Err(Status::invalid("each revision needs the position of its source"));
    }
    let mut all: Vec<String> = app.spec.sources.iter().map(|source| source.target_revision.clone()).collect();
    for (revision, position) in revisions.iter().zip(positions) {
        let position = position.as_u64().and_then(|position| usize::try_from(position).ok());
        let place = position.and_then(|position| all.get_mut(position.checked_sub(1)?));
        let place = place.ok_or_else(|| Status::invalid("source position is out of range"))?;
        // An empty revision is the one that the source tracks.
        if let Some(revision) = revision.as_str().filter(|revision| !revision.is_empty()) {
            revision.clone_into(place);
        }
    }
    Ok(Some(all))
}

fn set_options(sync: &mut Value, app: &Application) {
    let policy = app.spec.sync_policy.as_ref();
    if let Some(options) = policy.map(|policy| &policy.sync_options).filter(|options| !options.is_empty()) {
        sync["syncOptions"] = json!(options);
    }
}

/// The operation of a rollback.
pub(super) fn of_rollback(app: &Application, entry: &RevisionHistory, request: &Value, user: &str) -> Value {
    let flag = |field: &str| request.get(field).and_then(Value::as_bool).unwrap_or_default();
    let mut sync = json!({"prune": flag("prune"), "dryRun": flag("dryRun"), "syncStrategy": {"apply": {}}});
    set_options(&mut sync, app);
    if entry.sources.is_empty() {
        sync["revision"] = json!(entry.revision);
        if let Some(source) = &entry.source {
            sync["source"] = source.write();
        }
    } else {
        sync["revisions"] = json!(entry.revisions);
        sync["sources"] = Value::Array(entry.sources.iter().map(Wire::write).collect());
    }
    json!({"sync": sync, "initiatedBy": {"username": user}})
}

#[cfg(test)]
mod tests {
    use super::*;

    fn app(policy: &Value) -> Application {
        Application::from_json(&json!({
            "apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
            "metadata": {"name": "shop", "namespace": "argocd"},
            "spec": {"project": "default", "source": {"repoURL": "r"}, "destination": {}, "syncPolicy": policy},
        }))
        .unwrap()
    }

    #[test]
    fn a_plain_sync_of_the_command_line() {
        let request =
            json!({"name": "shop", "revision": "", "strategy": {"hook": {"force": false}}, "prune": true});
        let operation = of_sync(&app(&json!({"syncOptions": ["A=b"]})), &request, "ann").unwrap();
        assert_eq!(
            operation,
            json!({"initiatedBy": {"username": "ann"}, "sync": {
                "prune": true, "dryRun": false, "syncOptions": ["A=b"], "syncStrategy": {"hook": {"force": false}}}})
        );
    }

    #[test]
    fn options_of_the_request_replace_those_of_the_spec() {
        let options = |request: Value| {
            let operation = of_sync(&app(&json!({"syncOptions": ["A=b"]})), &request, "ann").unwrap();
            operation["sync"]["syncOptions"].clone()
        };
        assert_eq!(options(json!({"syncOptions": {"items": ["C=d"]}})), json!(["C=d"]));
        assert_eq!(options(json!({"syncOptions": {}})), json!([]));
    }

    #[test]
    fn another_revision_would_be_undone_by_automation() {
        let automated = app(&json!({"automated": {}}));
        let error = of_sync(&automated, &json!({"revision": "v1"}), "ann").unwrap_err();
        assert_eq!(error.message, "Cannot sync to v1: auto-sync currently set to HEAD");
        assert!(of_sync(&automated, &json!({"revision": "v1", "dryRun": true}), "ann").is_ok());
        assert!(of_sync(&automated, &json!({"revision": "HEAD"}), "ann").is_ok(), "HEAD is what it tracks");
    }

    #[test]
    fn each_source_has_its_own_revision() {
        let mut value = app(&json!({"automated": {}})).to_json();
        value["spec"].as_object_mut().unwrap().remove("source");
        value["spec"]["sources"] =
            json!([{"repoURL": "https://u:p@h/one", "targetRevision": "v1"}, {"repoURL": "two"}]);
        let automated = Application::from_json(&value).unwrap();
        value["spec"].as_object_mut().unwrap().remove("syncPolicy");
        let manual = Application::from_json(&value).unwrap();
        let sync = |app: &Application, revisions: Value, positions: Value| {
            of_sync(app, &json!({"revisions": revisions, "sourcePositions": positions}), "ann")
                .map(|operation| operation["sync"]["revisions"].clone())
                .map_err(|status| status.message)
        };
        assert_eq!(sync(&manual, json!(["v2"]), json!([2])), Ok(json!(["v1", "v2"])));
        assert_eq!(sync(&automated, json!(["HEAD", "v1"]), json!([2, 1])), Ok(json!(["v1", "HEAD"])));
        assert_eq!(sync(&automated, json!([""]), json!([1])), Ok(json!(["v1", ""])));
        let why = sync(&automated, json!(["v2"]), json!([1])).unwrap_err();
        assert!(
            why.starts_with("Cannot sync source https://")
                && why.ends_with("set to v1")
                && !why.contains("u:p"),
            "{why}"
        );
        assert_eq!(sync(&manual, json!(["v2"]), json!([3])).unwrap_err(), "source position is out of range");
        let plain = of_sync(&automated, &json!({"revision": "v9"}), "ann").unwrap();
        assert_eq!(plain["sync"].get("revision"), None, "a single revision means nothing to several sources");
    }
}
