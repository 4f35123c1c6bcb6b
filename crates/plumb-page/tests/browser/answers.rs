//! What the server answers: the page's own calls from the real functions, Argo CD's calls with a few fixed objects.

use std::sync::Arc;

use plumb_core::object::ObjectKey;
use plumb_crd::{Application, DriftReport};
use plumb_page::{
    PlanRequest, PlanSources, Row, Verb, activity, columns, detail, doctor, failures, home, orphans, plan,
};
use serde_json::{Map, Value, json};

use crate::fleet::{now, tree};
use crate::server::{Shared, lock};

fn me(shared: &Shared) -> Value {
    let quirks = lock(&shared.quirks);
    let user = if quirks.is_anonymous { "" } else { "test" };
    json!({"user": user, "readOnly": quirks.is_read_only, "namespace": "argocd", "version": "v",
           "now": now().as_second(), "banner": ""})
}

/// What the server cannot read.
pub(crate) fn trouble(shared: &Shared) -> Value {
    if !lock(&shared.quirks).is_blind {
        return Value::Null;
    }
    json!({"since": now().as_second() - 60, "text": "plumb cannot read DriftReports: 403 Forbidden."})
}

/// The calls of the page.
pub(crate) fn own_call(shared: &Arc<Shared>, call: &str, body: Option<&Value>) -> Option<Value> {
    let view = lock(&shared.view);
    let parts: Vec<&str> = call.split('/').collect();
    Some(match parts.as_slice() {
        ["me"] => me(shared),
        ["home"] => {
            let hides = lock(&shared.quirks).hides_apps;
            let rows: Vec<&Row> = view.rows().filter(|_| !hides).collect();
            let mut home = home(rows.into_iter(), now()).into_json();
            home["token"] = json!(view.token().to_string());
            home["me"] = me(shared);
            home["trouble"] = trouble(shared);
            home
        }
        ["apps"] => {
            let rows: Vec<Value> = view.rows().map(Row::cells).collect();
            json!({"columns": columns(), "rows": rows, "token": view.token().to_string()})
        }
        ["apps", _, name] => {
            let app = shared.apps.get(*name)?;
            let mut shown = detail(app, view.report(&app.id()), "prod-eu", now());
            let can: Map<String, Value> =
                Verb::ALL.into_iter().map(|verb| (verb.name().to_owned(), Value::Null)).collect();
            shown["can"] = Value::Object(can);
            shown["window"] = Value::Null;
            shown
        }
        ["doctor"] => doctor(view.reports()),
        ["failures"] => failures(view.rows()),
        ["orphans"] => with_users(orphans(view.reports())),
        ["settings"] => json!({"settings": [
            {"object": "argocd-cm", "key": "timeout.reconciliation", "unused": null},
            {"object": "argocd-cm", "key": "url", "unused": null},
            {"object": "argocd-cmd-params-cm", "key": "controller.kubectl.parallelism.limit",
             "unused": "plumb does not use kubectl, and adapts the number of concurrent requests to the API server"}]}),
        ["activity"] => activity(view.rows(), view.reports()),
        ["undo"] => deleted(shared),
        ["find", name] => json!({"app": ["argocd", name]}),
        ["apps", _, _, ..] if parts.last() == Some(&"users") => json!({"users": [
            {"group": "apps", "kind": "Deployment", "namespace": "pay", "name": "web", "app": ["argocd", "web"]}], "hidden": 2}),
        ["plans"] => {
            let body = body?;
            if body["verb"] == "restore" {
                return Some(restoring(body));
            }
            let app = shared.apps.get(body["app"][1].as_str()?)?;
            planned(shared, app, view.report(&app.id()), body)?
        }
        ["acts"] => {
            let body = body?;
            let name = body["app"][1].as_str();
            let moves = lock(&shared.quirks).moved.take_if(|moved| Some(moved.as_str()) == name).is_some();
            if moves {
                let app = shared.apps.get(name?)?;
                return Some(json!({"plan": planned(shared, app, view.report(&app.id()), body)?}));
            }
            if let Some(id) = body["options"]["id"].as_str() {
                lock(&shared.quirks).restored.push(id.to_owned());
            }
            lock(&shared.acts).push(body.clone());
            json!({"done": body["verb"]})
        }
        _ => return None,
    })
}

fn planned(shared: &Shared, app: &Application, report: Option<&DriftReport>, body: &Value) -> Option<Value> {
    let mut shown = plan(verb(body)?, app, report, &PlanSources::default(), &request(body), now()).shown;
    if lock(&shared.quirks).typed.contains(&app.metadata.name) {
        shown["typed"] = json!(app.metadata.name);
    }
    Some(shown)
}

fn verb(body: &Value) -> Option<Verb> {
    Verb::ALL.into_iter().find(|verb| verb.name() == body["verb"])
}

fn request(body: &Value) -> PlanRequest {
    let options = &body["options"];
    let objects = options["objects"].as_array().into_iter().flatten().map(|object| {
        let text = |field: &str| object[field].as_str().unwrap_or_default();
        ObjectKey::new(text("group"), text("kind"), Some(text("namespace").to_owned()), text("name"))
    });
    PlanRequest {
        prune: options["prune"] == true,
        dry_run: options["dryRun"] == true,
        cascade: options["cascade"] == true,
        reason: options["reason"].as_str().unwrap_or_default().to_owned(),
        minutes: options["minutes"].as_i64().unwrap_or_default(),
        history_id: options["id"].as_i64().unwrap_or_default(),
        objects: objects.collect(),
        ..PlanRequest::default()
    }
}

/// The first orphan has a user.
fn with_users(mut list: Value) -> Value {
    for (at, orphan) in list["orphans"].as_array_mut().into_iter().flatten().enumerate() {
        let users = if at == 0 {
            json!([{"group": "apps", "kind": "Deployment", "namespace": "pay", "name": "web", "app": ["argocd", "web"]}])
        } else {
            json!([])
        };
        orphan["used"] = json!(if at == 0 { 3 } else { 0 });
        orphan["users"] = users;
    }
    list
}

/// The plan of a restore.
fn restoring(body: &Value) -> Value {
    json!({"verb": "restore", "app": body["app"], "notes": ["It was deleted an hour ago: removed from Git."], "hurdle": null,
           "steps": [{"group": "", "kind": "ServiceAccount", "namespace": "pay", "name": "redis", "what": "create",
                      "why": "from the copy that plumb kept", "wave": 0}],
           "button": "Restore ServiceAccount redis", "undo": "Delete it again on its screen.", "typed": null,
           "commands": [format!("plumb undo restore {}", body["options"]["id"].as_str().unwrap_or_default())], "token": "t"})
}

fn deleted(shared: &Shared) -> Value {
    let restored = lock(&shared.quirks).restored.clone();
    let exists = |id: &str| restored.iter().any(|one| one == id);
    let at = now().as_second() - 3600;
    json!({"deleted": [
        {"id": "d2f1a9c07b", "app": ["argocd", "infisical"], "object": {"group": "", "kind": "ServiceAccount", "namespace": "pay", "name": "redis"},
         "at": at, "why": "removed from Git", "revision": "77aa01e2b", "lost": null, "refusal": null, "exists": exists("d2f1a9c07b")},
        {"id": "a01be2d3f4", "app": ["argocd", "payments"], "object": {"group": "batch", "kind": "Job", "namespace": "pay", "name": "old-import"},
         "at": at - 86400, "why": "its app was deleted", "revision": null, "lost": "the data of its volume", "refusal": null, "exists": exists("a01be2d3f4")}]})
}

/// A Secret as the server shows it: two masks that differ in length say that the values differ.
fn masked() -> Value {
    let secret = |mask: &str| {
        let meta = json!({"name": "keys", "namespace": "pay"});
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": meta, "data": {"password": mask}})
            .to_string()
    };
    json!({"items": [{"liveState": secret("+++++++++"), "targetState": secret("++++++++")}]})
}

/// A `ConfigMap` with a file of sixty lines, of which the fortieth differs.
fn long_text() -> Value {
    let map = |changed: &str| {
        let line = |n: usize| if n == 40 { changed.to_owned() } else { format!("line {n} of the file") };
        let text: String = (1..=60).map(|n| line(n) + "\n").collect();
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "payments", "namespace": "pay"},
               "data": {"level": text}})
        .to_string()
    };
    json!({"items": [{"liveState": map("mode: slow"), "targetState": map("mode: fast")}]})
}

/// A Deployment as Git and the cluster have it, as texts.
fn managed() -> Value {
    let deployment = |replicas: i64| {
        json!({"apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"name": "payments", "namespace": "pay", "labels": {"app": "payments"}},
            "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": "payments"}},
                     "template": {"spec": {"containers": [{"name": "main", "image": "registry/payments:1.9"}]}}}})
    };
    let mut live = deployment(10);
    live["spec"]["progressDeadlineSeconds"] = json!(600);
    json!({"items": [{"liveState": live.to_string(), "targetState": deployment(3).to_string()}]})
}

fn manifest() -> Value {
    let object = json!({"apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "payments", "namespace": "pay", "managedFields": [
            {"manager": "kubectl-scale", "operation": "Update", "time": "2026-11-15T03:01:12Z",
             "fieldsV1": {"f:spec": {"f:replicas": {}}}}]},
        "spec": {"replicas": 10, "template": {"spec": {"containers": [{"name": "main", "image": "registry/payments:1.9"}]}}},
        "status": {"readyReplicas": 10}});
    json!({"manifest": object.to_string()})
}

/// Calls of Argo CD's API that the page uses.
pub(crate) fn argo_call(shared: &Arc<Shared>, call: &str, query: &str) -> Option<Value> {
    let parts: Vec<&str> = call.split('/').collect();
    Some(match parts.as_slice() {
        ["applications", _, "managed-resources"] if query.contains("kind=Secret") => masked(),
        ["applications", _, "managed-resources"] if query.contains("kind=ConfigMap") => long_text(),
        ["applications", _, "managed-resources"] => managed(),
        ["applications", _, "resource"] => manifest(),
        ["applications", name, "resource-tree"] => tree(shared.apps.get(*name)?),
        ["applications", _, "events"] => json!({"items": [
            {"type": "Warning", "reason": "BackOff", "message": "Back-off restarting failed container main", "count": 1154, "lastTimestamp": "2026-11-15T03:11:12Z"},
            {"type": "Normal", "reason": "Pulled", "message": "Container image is present", "lastTimestamp": "2026-11-15T03:01:12Z"}]}),
        ["settings"] => {
            json!({"userLoginsDisabled": false, "oidcConfig": {"name": "Example", "issuer": "https://id.example"}})
        }
        ["session"] => {
            lock(&shared.quirks).is_anonymous = false;
            json!({"token": "t"})
        }
        ["clusters"] => json!({"items": [
            {"name": "prod-eu", "server": "https://10.0.0.1", "serverVersion": "1.36", "connectionState": {"status": "Successful"}},
            {"name": "prod-us", "server": "https://10.0.0.2", "connectionState": {"status": "Failed", "message": "dial tcp 10.0.0.2:443: i/o timeout"}}]}),
        ["repositories"] => json!({"items": [
            {"repo": "https://git.example/shop/deploy.git", "type": "git", "connectionState": {"status": "Unknown", "message": "not tested"}},
            {"repo": "https://git.example/unused.git", "type": "git", "connectionState": {"status": "Unknown", "message": "not tested"}},
            {"repo": "https://charts.example", "type": "helm", "connectionState": {"status": "Failed", "message": "401 Unauthorized"}}]}),
        ["projects"] => json!({"items": [{"metadata": {"name": "shop"}, "spec": {"description": "The shop",
            "sourceRepos": ["https://git.example/*"], "destinations": [{"name": "prod-*", "namespace": "pay"}], "syncWindows": [{"kind": "deny", "schedule": "0 22 * * *", "duration": "6h"}]}}]}),
        ["applicationsets"] => {
            json!({"items": [{"metadata": {"name": "per-cluster", "namespace": "argocd"}, "status": {"resources": [{}, {}]}}]})
        }
        _ => return None,
    })
}
