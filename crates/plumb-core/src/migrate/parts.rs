//! The parts of an installation of Argo CD.

use serde_json::Value;

use super::facts::Installation;

const COMPONENT: &str = "app.kubernetes.io/component";
const PART_OF: &str = "app.kubernetes.io/part-of";
const NAME: &str = "app.kubernetes.io/name";

pub(super) fn name(object: &Value) -> &str {
    object["metadata"]["name"].as_str().unwrap_or_default()
}

pub(super) fn list<'a>(value: &'a Value, place: &str) -> &'a [Value] {
    value.pointer(place).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// True for a field with a value: `null` is none.
pub(super) fn is_set(value: &Value) -> bool {
    !value.is_null()
}

/// The workloads of a component, such as `repo-server`, whatever the release of its chart is called. The labels of Argo CD's
/// manifests and charts say it; without them the name does.
pub(super) fn workloads<'a>(
    installation: &'a Installation,
    component: &str,
) -> impl Iterator<Item = &'a Value> {
    let full = format!("argocd-{component}");
    installation.workloads.iter().filter(move |workload| {
        let label = |key: &str| {
            let labels =
                [&workload["metadata"]["labels"], &workload["spec"]["template"]["metadata"]["labels"]];
            labels.into_iter().find_map(|labels| labels[key].as_str())
        };
        let is_labelled =
            label(COMPONENT) == full.strip_prefix("argocd-") && label(PART_OF) == Some("argocd");
        is_labelled || label(NAME) == Some(&full) || name(workload).ends_with(&full)
    })
}

/// The first of [`workloads`].
pub(super) fn workload<'a>(installation: &'a Installation, component: &str) -> Option<&'a Value> {
    workloads(installation, component).next()
}

pub(super) fn runs(workload: &Value) -> bool {
    workload["spec"]["replicas"].as_u64() != Some(0)
}

pub(super) fn all_sources(application: &Value) -> Vec<&Value> {
    let many = list(application, "/spec/sources").iter();
    let one = application["spec"].get("source").into_iter();
    many.chain(one).collect()
}
