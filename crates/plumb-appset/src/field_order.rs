//! The order of fields in Go's structs. Strings are rendered in it: it decides which error of several is reported, and what
//! a template that changes its parameters (`set`) leaves to later ones.

use serde_json::{Map, Value as Json};

/// The fields of each struct, by the key under which it stands. Fields that no template can be in are left out.
const ORDER: &[(&str, &[&str])] = &[
    ("metadata", &["name", "namespace", "labels", "annotations", "finalizers"]),
    (
        "spec",
        &[
            "source",
            "destination",
            "project",
            "syncPolicy",
            "ignoreDifferences",
            "info",
            "sources",
            "sourceHydrator",
        ],
    ),
    ("source", SOURCE),
    ("sources", SOURCE),
    ("drySource", SOURCE),
    ("sourceHydrator", &["drySource", "syncSource", "hydrateTo"]),
    ("syncSource", &["targetBranch", "path"]),
    ("destination", &["server", "namespace", "name"]),
    (
        "helm",
        &[
            "valueFiles",
            "parameters",
            "releaseName",
            "values",
            "fileParameters",
            "version",
            "valuesObject",
            "namespace",
            "kubeVersion",
            "apiVersions",
        ],
    ),
    (
        "kustomize",
        &[
            "namePrefix",
            "nameSuffix",
            "images",
            "commonLabels",
            "version",
            "commonAnnotations",
            "namespace",
            "replicas",
            "patches",
            "components",
            "kubeVersion",
            "apiVersions",
        ],
    ),
    ("patches", &["path", "patch", "target", "options"]),
    ("target", &["group", "version", "kind", "name", "namespace", "annotationSelector", "labelSelector"]),
    ("directory", &["jsonnet", "exclude", "include"]),
    ("jsonnet", &["extVars", "tlas", "libs"]),
    ("plugin", &["name", "env", "parameters"]),
    ("parameters", &["name", "value", "string", "map", "array"]),
    ("syncPolicy", &["syncOptions", "retry", "managedNamespaceMetadata"]),
    ("managedNamespaceMetadata", &["labels", "annotations"]),
    ("backoff", &["duration", "maxDuration"]),
    (
        "ignoreDifferences",
        &["group", "kind", "name", "namespace", "jsonPointers", "jqPathExpressions", "managedFieldsManagers"],
    ),
    ("git", &["repoURL", "directories", "files", "revision", "pathParamPrefix"]),
];

const SOURCE: &[&str] = &[
    "repoURL",
    "path",
    "targetRevision",
    "helm",
    "kustomize",
    "directory",
    "plugin",
    "chart",
    "ref",
    "name",
];

/// The fields of what stands under this key, in Go's order. Go has no order for the entries of maps; here it is that of
/// their names.
pub(crate) fn in_go_order<'a>(under: &str, map: &'a Map<String, Json>) -> Vec<(&'a String, &'a Json)> {
    let order = ORDER.iter().find(|(key, _)| *key == under).map_or(&[][..], |(_, order)| *order);
    let rank = |key: &str| order.iter().position(|known| *known == key).unwrap_or(order.len());
    let mut fields: Vec<_> = map.iter().collect();
    fields.sort_by(|(a, _), (b, _)| rank(a).cmp(&rank(b)).then_with(|| a.cmp(b)));
    fields
}
