//! What is read from the wire types as types of the core.

use plumb_core::object::{GroupVersionKind, ObjectKey};
use plumb_core::sync::OperationPhase;

use super::operation::SyncOperation;
use super::status::{OperationState, ResourceResult, ResourceStatus, RevisionHistory, SyncOperationResult};
use crate::metadata::object_key;

impl ResourceStatus {
    /// The key of the object.
    pub fn key(&self) -> ObjectKey {
        object_key(&self.group, &self.kind, &self.namespace, &self.name)
    }

    /// Group, version and kind of the object.
    pub fn gvk(&self) -> GroupVersionKind {
        GroupVersionKind { group: self.group.clone(), version: self.version.clone(), kind: self.kind.clone() }
    }
}

impl ResourceResult {
    /// The key of the object.
    pub fn key(&self) -> ObjectKey {
        object_key(&self.group, &self.kind, &self.namespace, &self.name)
    }
}

impl OperationState {
    /// The phase; `None` for a name that is not a phase.
    pub fn phase(&self) -> Option<OperationPhase> {
        OperationPhase::from_name(&self.phase)
    }
}

impl SyncOperation {
    /// The requested revisions, one per source; empty if the request names none.
    pub fn all_revisions(&self) -> &[String] {
        match (self.revisions.is_empty(), self.revision.is_empty()) {
            (true, true) => &[],
            (true, false) => std::slice::from_ref(&self.revision),
            (false, _) => &self.revisions,
        }
    }
}

impl SyncOperationResult {
    /// The resolved revisions, one per source.
    pub fn all_revisions(&self) -> &[String] {
        one_or_many(&self.revision, &self.revisions)
    }
}

impl RevisionHistory {
    /// The resolved revisions, one per source.
    pub fn all_revisions(&self) -> &[String] {
        one_or_many(&self.revision, &self.revisions)
    }
}

/// An app with one source has `revision`, an app with several has `revisions`.
fn one_or_many<'a>(one: &'a String, many: &'a [String]) -> &'a [String] {
    if many.is_empty() { std::slice::from_ref(one) } else { many }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_namespace_is_none() {
        for (namespace, expected) in [("", None), ("shop", Some("shop"))] {
            let status = ResourceStatus {
                group: "apps".to_owned(),
                version: "v1".to_owned(),
                kind: "Deployment".to_owned(),
                namespace: namespace.to_owned(),
                name: "web".to_owned(),
                ..ResourceStatus::default()
            };
            let expected = ObjectKey::new("apps", "Deployment", expected.map(str::to_owned), "web");
            assert_eq!(status.key(), expected);
            assert_eq!(status.gvk().api_version(), "apps/v1");
            let result = ResourceResult {
                group: status.group.clone(),
                kind: status.kind.clone(),
                namespace: status.namespace.clone(),
                name: status.name.clone(),
                ..ResourceResult::default()
            };
            assert_eq!(result.key(), expected);
        }
    }

    #[test]
    fn one_revision_or_many() {
        for (one, many, expected, requested) in [
            ("a", &[][..], &["a"][..], &["a"][..]),
            ("a", &["b", "c"], &["b", "c"], &["b", "c"]),
            ("", &["b"], &["b"], &["b"]),
            ("", &[], &[""], &[]),
        ] {
            let revision = one.to_owned();
            let revisions: Vec<String> = many.iter().map(|text| (*text).to_owned()).collect();
            let result = SyncOperationResult {
                revision: revision.clone(),
                revisions: revisions.clone(),
                ..SyncOperationResult::default()
            };
            assert_eq!(result.all_revisions(), expected);
            let past = RevisionHistory {
                revision: revision.clone(),
                revisions: revisions.clone(),
                ..RevisionHistory::default()
            };
            assert_eq!(past.all_revisions(), expected);
            let request = SyncOperation { revision, revisions, ..SyncOperation::default() };
            assert_eq!(request.all_revisions(), requested);
        }
    }

    #[test]
    fn phases_are_read_by_name() {
        for (name, expected) in [
            ("Running", Some(OperationPhase::Running)),
            ("Terminating", Some(OperationPhase::Terminating)),
            ("Succeeded", Some(OperationPhase::Succeeded)),
            ("Failed", Some(OperationPhase::Failed)),
            ("Error", Some(OperationPhase::Error)),
            ("", None),
            ("running", None),
        ] {
            let state = OperationState { phase: name.to_owned(), ..OperationState::default() };
            assert_eq!(state.phase(), expected, "{name}");
        }
    }
}
