//! Why a project refuses an object.

/// A project does not permit an object.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The kind (or cluster-scoped object) is on no allow list, or on a deny list.
    #[error("resource {kind} is not permitted in project {project}")]
    Kind {
        /// `group:Kind`, as Argo CD prints it.
        kind: String,
        /// Name of the project.
        project: String,
    },
    /// The object's namespace is not a permitted destination.
    #[error("namespace {namespace} is not permitted in project '{project}'")]
    Namespace {
        /// The namespace.
        namespace: String,
        /// Name of the project.
        project: String,
    },
}
