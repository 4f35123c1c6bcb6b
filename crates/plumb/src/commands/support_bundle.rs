//! `plumb support-bundle`

use plumb_core::object::GroupVersionKind;
use plumb_core::project::shown_repo_url;
use plumb_kube::{ClusterClient, LogOptions, Selection};
use serde_json::{Map, Value, json};

use crate::context::Context;
use crate::error::CommandError;
use crate::exit::ExitCode;
use crate::kinds;
use crate::output::Format;

/// Print what a bug report needs, without secrets.
///
/// Versions, the settings whose values are harmless, the Applications without their parameters, their `DriftReports`, and
/// the state and the last log lines of plumb's pods. Secrets are not read. Names of apps, namespaces and repositories are
/// in it: read it before you attach it to a public report.
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
const OMITTED: &str = "(omitted)";

pub(crate) async fn run(context: &Context, args: &Args) -> Result<ExitCode, CommandError> {
    let client = context.client().await?;
    let server = client.version().await.map(|version| version.git_version);
    let here = Selection { namespace: Some(context.namespace().to_owned()), ..Selection::default() };
    let mut problems = Vec::new();
    let mut listed = Map::new();
    for (name, kind) in [
        ("applications", kinds::application()),
        ("projects", kinds::project()),
        ("driftReports", kinds::drift_report()),
        ("configMaps", kinds::config_map()),
        ("pods", GroupVersionKind::from_api_version("v1", "Pod")),
    ] {
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
    let logs = logs(&client, context.namespace(), &listed["pods"], args.log_lines).await;
    let bundle = json!({
        "plumb": env!("CARGO_PKG_VERSION"),
        "kubernetes": server.unwrap_or_else(|error| error.to_string()),
        "objects": listed,
        "logs": logs,
        "problems": problems,
    });
    context.out.object(args.output, &bundle)?;
    Ok(ExitCode::Success)
}

/// The last lines of the pods of plumb.
async fn logs(client: &ClusterClient, namespace: &str, pods: &Value, n_lines: u32) -> Value {
    let mut logs = Map::new();
    for name in pods.as_array().into_iter().flatten().filter_map(|pod| pod["name"].as_str()) {
        let options = LogOptions { tail_lines: Some(n_lines), ..LogOptions::default() };
        let text = match client.logs(namespace, name, &options).await {
            Ok(text) => text,
            Err(error) => format!("cannot read: {error}"),
        };
        logs.insert(name.to_owned(), text.lines().collect());
    }
    Value::Object(logs)
}

/// What of an object goes into the bundle.
fn shown(of: &str, object: &Value) -> Option<Value> {
    let name = &object["metadata"]["name"];
    match of {
        "configMaps" => {
            let text = name.as_str()?;
            (text.starts_with("argocd-") || text.starts_with("plumb-"))
                .then(|| json!({"name": name, "data": settings(&object["data"])}))
        }
        "pods" => {
            let label = object.pointer("/metadata/labels/app.kubernetes.io~1name")?;
            (label == "plumb").then(|| json!({"name": name, "status": object["status"]}))
        }
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
        (key.clone(), if is_harmless { value.clone() } else { json!(OMITTED) })
    };
    Value::Object(data.as_object().into_iter().flatten().map(shown).collect())
}

/// Without parameters, and without credentials in addresses.
fn redacted(value: Value) -> Value {
    match value {
        Value::Object(map) => {
            let shown = map.into_iter().map(|(key, value)| {
                let is_parameter = PARAMETERS.contains(&key.as_str());
                let value = if is_parameter { json!(OMITTED) } else { redacted(value) };
                (key, value)
            });
            Value::Object(shown.collect())
        }
        Value::Array(items) => items.into_iter().map(redacted).collect(),
        Value::String(text) if text.contains("://") => json!(shown_repo_url(&text)),
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
            "kustomize": {"namePrefix": "p-"}}}, "operation": {"sync": {"manifests": ["canary"]}}});
        let text = shown("applications", &app).map(|value| value.to_string()).unwrap_or_default();
        assert!(
            !text.contains("canary") && text.contains("git.example.com") && text.contains("p-"),
            "{text}"
        );

        let settings = json!({"metadata": {"name": "argocd-cm"},
            "data": {"oidc.config": "clientSecret: canary", "timeout.reconciliation": "60s"}});
        let text = shown("configMaps", &settings).map(|value| value.to_string()).unwrap_or_default();
        assert!(!text.contains("canary") && text.contains("oidc.config") && text.contains("60s"), "{text}");
        assert_eq!(shown("configMaps", &json!({"metadata": {"name": "other"}, "data": {"a": "b"}})), None);
    }
}
