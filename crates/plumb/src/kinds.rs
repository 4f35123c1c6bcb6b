//! The kinds that most commands use. With them a command needs no discovery requests.

use plumb_core::object::GroupVersionKind;
use plumb_crd::{AppProject, Application, DriftReport};
use plumb_kube::Resource;

/// Group version, kind, plural, and whether its objects live in namespaces.
const KNOWN: [(&str, &str, &str, bool); 17] = [
    (Application::API_VERSION, Application::KIND, "applications", true),
    (Application::API_VERSION, "ApplicationSet", "applicationsets", true),
    (AppProject::API_VERSION, AppProject::KIND, "appprojects", true),
    (DriftReport::API_VERSION, DriftReport::KIND, "driftreports", true),
    ("v1", "ConfigMap", "configmaps", true),
    ("v1", "Event", "events", true),
    ("v1", "Namespace", "namespaces", false),
    ("v1", "Pod", "pods", true),
    ("v1", "Secret", "secrets", true),
    ("v1", "ServiceAccount", "serviceaccounts", true),
    ("apps/v1", "Deployment", "deployments", true),
    ("apps/v1", "StatefulSet", "statefulsets", true),
    ("coordination.k8s.io/v1", "Lease", "leases", true),
    ("rbac.authorization.k8s.io/v1", "ClusterRole", "clusterroles", false),
    ("rbac.authorization.k8s.io/v1", "ClusterRoleBinding", "clusterrolebindings", false),
    ("rbac.authorization.k8s.io/v1", "Role", "roles", true),
    ("rbac.authorization.k8s.io/v1", "RoleBinding", "rolebindings", true),
];

/// All of them, for [`plumb_kube::ClusterClient::assume_kinds`].
pub(crate) fn known() -> Vec<Resource> {
    let resource = |(api_version, kind, plural, namespaced): (&str, &str, &str, bool)| Resource {
        gvk: GroupVersionKind::from_api_version(api_version, kind),
        plural: plural.to_owned(),
        namespaced,
    };
    KNOWN.map(resource).into()
}

/// `Application`.
pub(crate) fn application() -> GroupVersionKind {
    GroupVersionKind::from_api_version(Application::API_VERSION, Application::KIND)
}

/// `AppProject`.
pub(crate) fn project() -> GroupVersionKind {
    GroupVersionKind::from_api_version(AppProject::API_VERSION, AppProject::KIND)
}

/// `DriftReport`.
pub(crate) fn drift_report() -> GroupVersionKind {
    GroupVersionKind::from_api_version(DriftReport::API_VERSION, DriftReport::KIND)
}

/// `Secret`.
pub(crate) fn secret() -> GroupVersionKind {
    GroupVersionKind::from_api_version("v1", "Secret")
}

/// `ConfigMap`.
pub(crate) fn config_map() -> GroupVersionKind {
    GroupVersionKind::from_api_version("v1", "ConfigMap")
}

/// The plural of a kind, for messages.
pub(crate) fn plural(kind: &str) -> String {
    KNOWN
        .iter()
        .find(|(_, known, ..)| *known == kind)
        .map_or_else(|| format!("{kind} objects"), |(_, _, plural, _)| (*plural).to_owned())
}
