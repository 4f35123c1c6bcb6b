//! Where a sealed value may be opened.

use std::collections::BTreeMap;

const NAMESPACE_WIDE: &str = "sealedsecrets.bitnami.com/namespace-wide";
const CLUSTER_WIDE: &str = "sealedsecrets.bitnami.com/cluster-wide";

/// Where a sealed value may be opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SealingScope {
    /// Under one name in one namespace.
    #[default]
    Strict,
    /// Under any name in one namespace.
    NamespaceWide,
    /// Everywhere in the cluster.
    ClusterWide,
}

impl SealingScope {
    /// The scope that annotations of a Secret or a `SealedSecret` name.
    pub fn of_annotations<'text>(annotation: impl Fn(&str) -> Option<&'text str>) -> Self {
        let is_true = |name: &str| annotation(name) == Some("true");
        if is_true(CLUSTER_WIDE) {
            Self::ClusterWide
        } else if is_true(NAMESPACE_WIDE) {
            Self::NamespaceWide
        } else {
            Self::Strict
        }
    }

    /// The label of the encryption: the controller can open a value only with the same one.
    pub fn label(self, namespace: &str, name: &str) -> String {
        match self {
            Self::Strict => format!("{namespace}/{name}"),
            Self::NamespaceWide => namespace.to_owned(),
            Self::ClusterWide => String::new(),
        }
    }

    /// The name, as in `--scope`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Strict => "strict",
            Self::NamespaceWide => "namespace-wide",
            Self::ClusterWide => "cluster-wide",
        }
    }

    /// The annotations that name this scope.
    pub fn annotations(self) -> BTreeMap<String, String> {
        let mut annotations = BTreeMap::new();
        self.annotate(&mut annotations);
        annotations
    }

    /// Changes annotations so that they name this scope and no other.
    pub(super) fn annotate(self, annotations: &mut BTreeMap<String, String>) {
        annotations.remove(NAMESPACE_WIDE);
        annotations.remove(CLUSTER_WIDE);
        let name = match self {
            Self::Strict => return,
            Self::NamespaceWide => NAMESPACE_WIDE,
            Self::ClusterWide => CLUSTER_WIDE,
        };
        annotations.insert(name.to_owned(), "true".to_owned());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_annotations_name_the_scope() {
        for (annotations, scope, label) in [
            (vec![], SealingScope::Strict, "shop/db"),
            (vec![(NAMESPACE_WIDE, "true")], SealingScope::NamespaceWide, "shop"),
            (vec![(CLUSTER_WIDE, "true")], SealingScope::ClusterWide, ""),
            (vec![(CLUSTER_WIDE, "true"), (NAMESPACE_WIDE, "true")], SealingScope::ClusterWide, ""),
            (vec![(NAMESPACE_WIDE, "yes"), (CLUSTER_WIDE, "")], SealingScope::Strict, "shop/db"),
        ] {
            let map: BTreeMap<&str, &str> = annotations.into_iter().collect();
            let read = SealingScope::of_annotations(|name| map.get(name).copied());
            assert_eq!((read, read.label("shop", "db").as_str()), (scope, label));
            let written = scope.annotations();
            let again = SealingScope::of_annotations(|name| written.get(name).map(String::as_str));
            assert_eq!(again, scope);
        }
    }
}
