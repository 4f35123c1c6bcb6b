//! Argo CD's `ConfigMaps` and Secrets, from settings in the shape of its chart.

use serde_json::{Map, Value, json};

use super::options::{InstallOptions, Profile};

/// A part of the settings, and the `ConfigMap` that has it.
const CONFIG_MAPS: [(&str, &str); 6] = [
    ("/cm", "argocd-cm"),
    ("/params", "argocd-cmd-params-cm"),
    ("/rbac", "argocd-rbac-cm"),
    ("/ssh", "argocd-ssh-known-hosts-cm"),
    ("/tls/certificates", "argocd-tls-certs-cm"),
    ("/gpg/keys", "argocd-gpg-keys-cm"),
];
/// A part of the settings, the beginning of its Secrets' names, and their type.
const SECRETS: [(&str, &str, &str); 2] = [
    ("/repositories", "argocd-repo-", "repository"),
    ("/credentialTemplates", "argocd-repo-creds-", "repo-creds"),
];
/// Keys of Argo CD's chart that are not settings.
const NOT_SETTINGS: [&str; 2] = ["create", "annotations"];

pub(super) fn settings(options: &InstallOptions) -> Vec<Value> {
    let mut objects = Vec::new();
    for (place, name) in CONFIG_MAPS {
        let mut data = texts(options.configs.pointer(place));
        if place == "/cm" && options.profile == Profile::Strict && !is_others(options.configs.get("cm")) {
            // Every sync acts as the service account that the project names for the destination.
            data.insert("application.sync.impersonation.enabled".to_owned(), json!("true"));
        }
        if place == "/ssh" {
            data = known_hosts(&data);
        }
        if !data.is_empty() {
            objects.push(json!({
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": {"name": name, "namespace": options.namespace, "labels": labels(name)},
                "data": data,
            }));
        }
    }
    for (place, prefix, kind) in SECRETS {
        for (name, data) in options.configs.pointer(place).and_then(Value::as_object).into_iter().flatten() {
            let mut labels = labels("argocd-repository");
            labels["argocd.argoproj.io/secret-type"] = json!(kind);
            objects.push(json!({
                "apiVersion": "v1",
                "kind": "Secret",
                "metadata": {"name": format!("{prefix}{name}"), "namespace": options.namespace, "labels": labels},
                "stringData": texts(Some(data)),
            }));
        }
    }
    objects
}

/// The one key whose name in the chart is not its name in the `ConfigMap`; two values become one.
fn known_hosts(part: &Map<String, Value>) -> Map<String, Value> {
    let hosts: Vec<&str> = ["knownHosts", "extraHosts"]
        .iter()
        .filter_map(|key| part.get(*key)?.as_str())
        .map(|hosts| hosts.strip_suffix('\n').unwrap_or(hosts))
        .filter(|hosts| !hosts.is_empty())
        .collect();
    let data = (!hosts.is_empty()).then(|| ("ssh_known_hosts".to_owned(), json!(hosts.join("\n") + "\n")));
    data.into_iter().collect()
}

/// Labels as Argo CD gives them.
fn labels(name: &str) -> Value {
    json!({"app.kubernetes.io/name": name, "app.kubernetes.io/part-of": "argocd"})
}

/// True for a part that another release creates.
fn is_others(part: Option<&Value>) -> bool {
    part.is_some_and(|part| part["create"] == json!(false))
}

/// The settings of a part, as the text that a `ConfigMap` has. A part that is not to be created has none.
fn texts(part: Option<&Value>) -> Map<String, Value> {
    let Some(part) = part.filter(|part| !is_others(Some(part))).and_then(Value::as_object) else {
        return Map::new();
    };
    let text = |value: &Value| match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let settings =
        part.iter().filter(|(key, value)| !NOT_SETTINGS.contains(&key.as_str()) && !value.is_null());
    settings.map(|(key, value)| (key.clone(), json!(text(value)))).collect()
}
