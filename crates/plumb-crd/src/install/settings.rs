//! Argo CD's `ConfigMaps` and Secrets, from settings in the shape of its chart.

use serde_json::{Map, Value, json};

use super::exposure::is_empty;
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
/// What a registered cluster of the chart may have, besides labels and annotations.
const CLUSTER_KEYS: [&str; 6] = ["name", "server", "namespaces", "clusterResources", "project", "config"];
/// Places in `secret`, and the keys of `argocd-secret`.
const SECRET_KEYS: [(&str, &str); 9] = [
    ("/githubSecret", "webhook.github.secret"),
    ("/gitlabSecret", "webhook.gitlab.secret"),
    ("/bitbucketServerSecret", "webhook.bitbucketserver.secret"),
    ("/bitbucketUUID", "webhook.bitbucket.uuid"),
    ("/gogsSecret", "webhook.gogs.secret"),
    ("/azureDevops/username", "webhook.azuredevops.username"),
    ("/azureDevops/password", "webhook.azuredevops.password"),
    ("/argocdServerAdminPassword", "admin.password"),
    ("/argocdServerAdminPasswordMtime", "admin.passwordMtime"),
];
const SECRET_TYPE: &str = "argocd.argoproj.io/secret-type";
/// Keys of Argo CD's chart that are not settings.
const NOT_SETTINGS: [&str; 2] = ["create", "annotations"];

pub(super) fn settings(options: &InstallOptions) -> Vec<Value> {
    let mut objects = config_maps(options);
    for (place, prefix, kind) in SECRETS {
        for (name, data) in options.configs.pointer(place).and_then(Value::as_object).into_iter().flatten() {
            let mut labels = labels("argocd-repository");
            labels[SECRET_TYPE] = json!(kind);
            objects.push(secret(options, &format!("{prefix}{name}"), &labels, &texts(Some(data))));
        }
    }
    let clusters = options.configs.get("clusterCredentials").and_then(Value::as_object);
    objects
        .extend(clusters.into_iter().flatten().map(|(name, cluster)| cluster_secret(options, name, cluster)));
    let keys = options.configs.get("secret").map(secret_keys).unwrap_or_default();
    if !keys.is_empty() {
        objects.push(secret(options, "argocd-secret", &labels("argocd-secret"), &keys));
    }
    objects
}

fn config_maps(options: &InstallOptions) -> Vec<Value> {
    let mut objects = Vec::new();
    for (place, name) in CONFIG_MAPS {
        let part = place.split('/').nth(1).and_then(|part| options.configs.get(part));
        if is_others(part) {
            continue;
        }
        let mut data = texts(options.configs.pointer(place));
        if place == "/cm" && options.profile == Profile::Strict {
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
    objects
}

fn secret(options: &InstallOptions, name: &str, labels: &Value, data: &Map<String, Value>) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": name, "namespace": options.namespace, "labels": labels},
        "stringData": data,
    })
}

/// A registered cluster. Sets can select it by its labels, and read its annotations.
fn cluster_secret(options: &InstallOptions, name: &str, cluster: &Value) -> Value {
    let mut labels = labels("argocd-cluster");
    labels[SECRET_TYPE] = json!("cluster");
    for (key, value) in cluster["labels"].as_object().into_iter().flatten() {
        labels[key] = value.clone();
    }
    let mut data = texts(Some(cluster));
    data.retain(|key, _| CLUSTER_KEYS.contains(&key.as_str()));
    data.entry("name").or_insert_with(|| json!(name));
    let mut object = secret(options, &format!("argocd-cluster-{name}"), &labels, &data);
    if !is_empty(&cluster["annotations"]) {
        object["metadata"]["annotations"] = cluster["annotations"].clone();
    }
    object
}

/// What `secret` adds to `argocd-secret`. The keys of `extra` are its own.
fn secret_keys(part: &Value) -> Map<String, Value> {
    if part["createSecret"] == json!(false) {
        return Map::new();
    }
    let named =
        SECRET_KEYS.iter().filter_map(|(place, key)| Some(((*key).to_owned(), part.pointer(place)?.clone())));
    let mut keys = texts(Some(&Value::Object(named.collect())));
    for (key, value) in texts(part.get("extra")) {
        keys.entry(key).or_insert(value);
    }
    keys
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

/// The settings of a part, as the texts that a `ConfigMap` has. Empty ones are left out: they mean the default.
fn texts(part: Option<&Value>) -> Map<String, Value> {
    let text = |value: &Value| match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let settings = part.and_then(Value::as_object).into_iter().flatten();
    let is_set = |(key, value): &(&String, &Value)| {
        !NOT_SETTINGS.contains(&key.as_str()) && !value.is_null() && *value != ""
    };
    settings.filter(is_set).map(|(key, value)| (key.clone(), json!(text(value)))).collect()
}
