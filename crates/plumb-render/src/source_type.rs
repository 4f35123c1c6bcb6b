//! How a source is rendered.

/// How a source is rendered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SourceType {
    /// Plain manifests and Jsonnet.
    Directory,
    /// A Helm chart.
    Helm,
    /// A Kustomize overlay.
    Kustomize,
    /// A declared command.
    Plugin,
}

impl SourceType {
    /// As `status.sourceType` spells it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Directory => "Directory",
            Self::Helm => "Helm",
            Self::Kustomize => "Kustomize",
            Self::Plugin => "Plugin",
        }
    }

    /// Reads what [`as_str`](Self::as_str) writes.
    pub(crate) fn from_name(name: &str) -> Option<Self> {
        [Self::Directory, Self::Helm, Self::Kustomize, Self::Plugin]
            .into_iter()
            .find(|source_type| source_type.as_str() == name)
    }
}
