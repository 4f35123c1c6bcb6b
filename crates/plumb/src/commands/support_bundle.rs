//! `plumb support-bundle`

use plumb_core::object::GroupVersionKind;
use plumb_core::project::shown_repo_url;
use plumb_core::text::redact_text;
use plumb_crd::install::{METRICS_PORT, NAME};
use plumb_kube::{ClusterClient, LogOptions, Selection};
use serde_json::{Map, Value, json};

use crate::context::Context;
use crate::error::CommandError;
use crate::exit::ExitCode;
use crate::output::Format;

/// Print what a bug report needs, without secrets.
///
/// Versions, the settings whose values are harmless, the Applications without their parameters, their `DriftReports`,
/// plumb's Deployment, Lease and events, and of its pods the state, whether they are ready, and the last log lines, also
/// those before a restart. Secrets are not read, and what looks like one is blanked. Names of apps, namespaces and
/// repositories are in it: read it before you attach it to a public report.
///
/// Example: `plumb support-bundle > bundle.json`
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Only this many lines of each pod's log.
    #[arg(long, default_value_t = 500, value_name = "N")]
    log_lines: u32,
    /// Output format: json or yaml.
    #[arg(long, short = 'o', value_enum, default_value_t = Format::Json)]
    output: Format,
}

/// Settings whose values say how plumb behaves, and nothing about users. Of the others, only the names are shown.
const HARMLESS: [&str; 8] = [
    "application.",
    "controller.",
    "helm.",
    "kustomize.",
    "reposerver.",
    "resource.",
    "server.insecure",
    "timeout.",
];
/// Parts of a source that often hold credentials.
const PARAMETERS: [&str; 10] = [
    "env",
    "extVars",
    "fileParameters",
    "manifests",
    "parameters",
    "patches",
    "stringData",
    "tlas",
    "values",
    "valuesObject",
];
/// Fields that hold one address.
const ADDRESSES: [&str; 2] = ["repoURL", "url"];
const OMITTED: &str = "(omitted)";
/// What is listed: its name in the bundle, API version and kind.
const LISTED: [(&str, &str, &str); 8] = [
    ("applications", "argoproj.io/v1alpha1", "Application"),
    ("projects", "argoproj.io/v1alpha1", "AppProject"),
    ("driftReports", "plumb.dev/v1alpha1", "DriftReport"),
    ("configMaps", "v1", "ConfigMap"),
    ("pods", "v1", "Pod"),
    ("events", "v1", "Event"),
    ("deployments", "apps/v1", "Deployment"),
    ("leases", "coordination.k8s.io/v1", "Lease"),
];

pub(crate) async fn run(context: &Context, args: &Args) -> Result<ExitCode, CommandError> {
    let client = context.client().await?;
    let server = client.version().await.map(|version| version.git_version);
    let here = Selection { namespace: Some(context.namespace().to_owned()), ..Selection::default() };
    let mut problems = Vec::new();
    let mut listed = Map::new();
    for (name, api_version, kind) in LISTED {
        let kind = GroupVersionKind::from_api_version(api_version, kind);
        let objects = match client.list(&kind, &here).await {
            Ok(objects) => objects,
            Err(error) => {
                problems.push(format!("cannot list {name}: {error}"));
                Vec::new()
            }
        };
        listed.insert(
            name.to_owned(),
            objects.iter().filter_map(|object| shown(name, object.value())).collect(),
        );
    }
    let (namespace, pods) = (context.namespace(), &listed["pods"]);
    let (logs, previous) = logs(&client, namespace, pods, args.log_lines).await;
    let readiness = readiness(&client, namespace, pods).await;
    let bundle = json!({
        "plumb": env!("CARGO_PKG_VERSION"),
        "kubernetes": server.unwrap_or_else(|error| redact_text(&error.to_string()).into_owned()),
        "objects": listed,
        "logs": logs,
        "logsBeforeRestart": previous,
        "readiness": readiness,
        "problems": redacted(json!(problems)),
    });
    context.out.object(args.output, &bundle)?;
    Ok(ExitCode::Success)
}

fn names(pods: &Value) -> impl Iterator<Item = &str> {
    pods.as_array().into_iter().flatten().filter_map(|pod| pod["name"].as_str())
}

/// The last lines of the pods of plumb, and those that a container wrote before it was started again.
async fn logs(client: &ClusterClient, namespace: &str, pods: &Value, n_lines: u32) -> (Value, Value) {
    let (mut now, mut before) = (Map::new(), Map::new());
    for name in names(pods) {
        let mut options = LogOptions { tail_lines: Some(n_lines), ..LogOptions::default() };
        let text = match client.logs(namespace, name, &options).await {
            Ok(text) => text,
            Err(error) => format!("cannot read: {error}"),
        };
        now.insert(name.to_owned(), lines(&text));
        options.previous = true;
        // A pod that never restarted has none, which is an error.
        if let Ok(text) = client.logs(namespace, name, &options).await {
            before.insert(name.to_owned(), lines(&text));
        }
    }
    (Value::Object(now), Value::Object(before))
}

/// A secret such as a private key may reach over several lines.
fn lines(text: &str) -> Value {
    redact_text(text).lines().collect()
}

/// What each pod says about itself.
async fn readiness(client: &ClusterClient, namespace: &str, pods: &Value) -> Value {
    let mut said = Map::new();
    for name in names(pods) {
        let answer = match client.read_from_pod(namespace, name, METRICS_PORT, "readyz").await {
            Ok(body) => String::from_utf8_lossy(&body).into_owned(),
            Err(error) => format!("not ready: {error}"),
        };
        said.insert(name.to_owned(), json!(redact_text(&answer)));
    }
    Value::Object(said)
}

/// What of an object goes into the bundle.
fn shown(of: &str, object: &Value) -> Option<Value> {
    let name = &object["metadata"]["name"];
    let is_labelled = || object.pointer("/metadata/labels/app.kubernetes.io~1name") == Some(&json!(NAME));
    match of {
        "configMaps" => {
            let text = name.as_str()?;
            (text.starts_with("argocd-") || text.starts_with("plumb-"))
                .then(|| json!({"name": name, "data": settings(&object["data"])}))
        }
        "pods" => is_labelled().then(|| json!({"name": name, "status": redacted(object["status"].clone())})),
        "events" => {
            // Those about Applications are too many, and the log has the same.
            let about = &object["involvedObject"];
            let is_own = about["name"].as_str()?.starts_with(NAME) && about["kind"] != "Application";
            let fields =
                ["type", "reason", "message", "count", "firstTimestamp", "lastTimestamp", "eventTime"];
            let fields = fields.iter().map(|field| ((*field).to_owned(), object[field].clone()));
            let mut event: Map<_, _> = fields.filter(|(_, value)| !value.is_null()).collect();
            event.insert("about".to_owned(), json!({"kind": about["kind"], "name": about["name"]}));
            is_own.then(|| redacted(Value::Object(event)))
        }
        "deployments" if !is_labelled() => None,
        "leases" if name != NAME => None,
        _ => {
            let mut object = object.clone();
            if let Some(metadata) = object["metadata"].as_object_mut() {
                metadata.remove("managedFields");
                metadata.remove("annotations");
            }
            Some(redacted(object))
        }
    }
}

/// Names of settings, with the values that are harmless.
fn settings(data: &Value) -> Value {
    let shown = |(key, value): (&String, &Value)| {
        let is_harmless = HARMLESS.iter().any(|prefix| key.starts_with(prefix));
        (key.clone(), if is_harmless { redacted(value.clone()) } else { json!(OMITTED) })
    };
    Value::Object(data.as_object().into_iter().flatten().map(shown).collect())
}

/// Without parameters, without credentials in addresses, and without what looks like a secret.
fn redacted(value: Value) -> Value {
    match value {
        Value::Object(map) => {
            let shown = map.into_iter().map(|(key, value)| {
                let value = match &value {
                    _ if PARAMETERS.contains(&key.as_str()) => json!(OMITTED),
                    Value::String(address) if ADDRESSES.contains(&key.as_str()) => {
                        json!(shown_repo_url(address))
                    }
                    _ => redacted(value),
                };
                (key, value)
            });
            Value::Object(shown.collect())
        }
        Value::Array(items) => items.into_iter().map(redacted).collect(),
        Value::String(text) => json!(redact_text(&text)),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_credentials_and_unknown_settings_are_left_out() {
        let app = json!({"metadata": {"name": "web", "annotations": {"a": "canary"}}, "spec": {"source": {
            "repoURL": "https://robot:canary@git.example.com/x", "helm": {"values": "password: canary",
            "parameters": [{"name": "password", "value": "canary"}], "valuesObject": {"a": "canary"}},
            "kustomize": {"namePrefix": "p-"}}},
            "status": {"conditions": [
                {"message": "cannot read https://h/a and https://robot:canary@h/b"},
                {"message": "the hook said password=canary"}]},
            "operation": {"sync": {"manifests": ["canary"]}}});
        let text = shown("applications", &app).map(|value| value.to_string()).unwrap_or_default();
        assert!(
            !text.contains("canary") && text.contains("git.example.com") && text.contains("p-"),
            "{text}"
        );

        let settings = json!({"metadata": {"name": "argocd-cm"},
            "data": {"oidc.config": "clientSecret: canary", "timeout.reconciliation": "60s"}});
        let text = shown("configMaps", &settings).map(|value| value.to_string()).unwrap_or_default();
        assert!(!text.contains("canary") && text.contains("oidc.config") && text.contains("60s"), "{text}");
        assert_eq!(lines("a\ntoken: canary\nb"), json!(["a", "token: ••••", "b"]));
        assert_eq!(shown("configMaps", &json!({"metadata": {"name": "other"}, "data": {"a": "b"}})), None);
    }

    #[test]
    fn of_the_control_plane_only_plumb_is_shown() {
        let event = |name: &str| {
            json!({"metadata": {"name": "x"}, "reason": "BackOff", "message": "token=canary",
            "involvedObject": {"kind": "Pod", "name": name}})
        };
        let expected = json!({"reason": "BackOff", "message": "token=••••", "about": {"kind": "Pod", "name": "plumb-1"}});
        assert_eq!(shown("events", &event("plumb-1")), Some(expected));
        assert_eq!(shown("events", &event("argocd-server-1")), None);
        let deployment = json!({"metadata": {"name": "plumb", "labels": {"app.kubernetes.io/name": "plumb"}},
            "spec": {"template": {"spec": {"containers": [{"env": [{"name": "A", "value": "canary"}]}]}}}});
        let text = shown("deployments", &deployment).map(|value| value.to_string()).unwrap_or_default();
        assert!(text.contains("containers") && !text.contains("canary"), "{text}");
        assert_eq!(shown("deployments", &json!({"metadata": {"name": "argocd-server"}})), None);
        assert_eq!(shown("leases", &json!({"metadata": {"name": "other"}})), None);
    }
}
