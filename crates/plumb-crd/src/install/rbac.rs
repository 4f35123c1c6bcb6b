//! What plumb's service account may do.

use serde_json::{Value, json};

use super::exposure::is_empty;
use super::objects::{NAME, labels};
use super::options::{InstallOptions, Profile};

const GROUP: &str = "rbac.authorization.k8s.io";
/// The role that lets plumb act as the service accounts of a namespace.
const IMPERSONATE: &str = "plumb-impersonate";
/// What discovery needs.
const URLS: [&str; 10] = [
    "/api",
    "/api/*",
    "/apis",
    "/apis/*",
    "/openapi",
    "/openapi/*",
    "/version",
    "/healthz",
    "/livez",
    "/readyz",
];

/// The service account with its roles and bindings.
pub(super) fn rbac(options: &InstallOptions) -> Vec<Value> {
    let mut account = json!({
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": {"name": NAME, "namespace": options.namespace, "labels": labels()},
    });
    if !is_empty(&options.pods.account_annotations) {
        account["metadata"]["annotations"] = options.pods.account_annotations.clone();
    }
    let mut objects = vec![account];
    match options.profile {
        // plumb applies any object that Git contains, so it needs all permissions: to create a role, a client needs
        // every permission that the role gives.
        Profile::Standard => {
            objects.push(cluster_role(
                NAME,
                &json!([{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}, urls()]),
            ));
            objects.push(cluster_binding(options));
        }
        Profile::Strict => {
            objects.push(cluster_role(NAME, &reads_and_own_kinds()));
            objects.push(cluster_binding(options));
            objects.push(own_namespace(options));
            objects.push(role_binding(&options.namespace, "Role", NAME, options));
            objects.push(cluster_role(
                IMPERSONATE,
                &json!([{"apiGroups": [""], "resources": ["serviceaccounts"], "verbs": ["impersonate"]}]),
            ));
            // In these namespaces only: a client that may impersonate every service account of the cluster has the
            // permissions of the most powerful one.
            let bound = options.impersonate_in.iter();
            objects
                .extend(bound.map(|namespace| role_binding(namespace, "ClusterRole", IMPERSONATE, options)));
        }
    }
    objects
}

fn urls() -> Value {
    json!({"nonResourceURLs": URLS, "verbs": ["get"]})
}

/// Watches of every kind, and writes of Applications, reports and events.
fn reads_and_own_kinds() -> Value {
    json!([
        {"apiGroups": ["*"], "resources": ["*"], "verbs": ["get", "list", "watch"]},
        {"apiGroups": ["argoproj.io"], "resources": ["applications", "applications/status", "appprojects"], "verbs": ["patch", "update"]},
        {"apiGroups": ["argoproj.io"], "resources": ["applications"], "verbs": ["create", "delete"]},
        {"apiGroups": ["argoproj.io"], "resources": ["applicationsets", "applicationsets/status"], "verbs": ["patch", "update"]},
        {"apiGroups": ["argoproj.io"], "resources": ["applicationsets"], "verbs": ["create", "delete"]},
        {"apiGroups": ["plumb.dev"], "resources": ["*"], "verbs": ["create", "delete", "patch", "update"]},
        {"apiGroups": ["", "events.k8s.io"], "resources": ["events"], "verbs": ["create", "patch"]},
        urls(),
    ])
}

/// The lease, tombstones, the first project and plumb's own record.
fn own_namespace(options: &InstallOptions) -> Value {
    json!({
        "apiVersion": format!("{GROUP}/v1"),
        "kind": "Role",
        "metadata": {"name": NAME, "namespace": options.namespace, "labels": labels()},
        "rules": [
            {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["create", "patch", "update"]},
            // Users register clusters and repositories, change passwords, and add certificates through the API.
            {"apiGroups": [""], "resources": ["secrets"], "verbs": ["create", "delete", "patch", "update"]},
            {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["create", "patch", "update"]},
            {"apiGroups": ["argoproj.io"], "resources": ["appprojects"], "verbs": ["create", "delete"]},
        ],
    })
}

fn cluster_role(name: &str, rules: &Value) -> Value {
    json!({
        "apiVersion": format!("{GROUP}/v1"),
        "kind": "ClusterRole",
        "metadata": {"name": name, "labels": labels()},
        "rules": rules,
    })
}

fn cluster_binding(options: &InstallOptions) -> Value {
    json!({
        "apiVersion": format!("{GROUP}/v1"),
        "kind": "ClusterRoleBinding",
        "metadata": {"name": NAME, "labels": labels()},
        "roleRef": {"apiGroup": GROUP, "kind": "ClusterRole", "name": NAME},
        "subjects": [{"kind": "ServiceAccount", "name": NAME, "namespace": options.namespace}],
    })
}

fn role_binding(namespace: &str, kind: &str, role: &str, options: &InstallOptions) -> Value {
    json!({
        "apiVersion": format!("{GROUP}/v1"),
        "kind": "RoleBinding",
        "metadata": {"name": role, "namespace": namespace, "labels": labels()},
        "roleRef": {"apiGroup": GROUP, "kind": kind, "name": role},
        "subjects": [{"kind": "ServiceAccount", "name": NAME, "namespace": options.namespace}],
    })
}
