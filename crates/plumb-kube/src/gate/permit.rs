//! The right to create or change one object.

use plumb_core::app::AppId;
use plumb_core::object::ObjectKey;

use super::refusal::Refusal;
use crate::client::Impersonation;

/// The facts on which a write permit depends. The engine states them, [`WritePermit::judge`] decides.
#[derive(Clone, Debug)]
pub struct WriteFacts {
    /// The app that the write is for.
    pub app: AppId,
    /// The object.
    pub key: ObjectKey,
    /// The reason if a user has paused the app or the object.
    pub paused: Option<String>,
    /// Whether the app's project permits the object.
    pub project: ProjectAnswer,
    /// Which app the live object belongs to.
    pub ownership: Ownership,
    /// The user to impersonate, if the project names a service account.
    pub impersonation: Option<Impersonation>,
}

/// Whether a project permits an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProjectAnswer {
    /// The object is permitted.
    Allows,
    /// The object is not permitted.
    Denies {
        /// The rule that forbids it.
        why: String,
    },
}

/// Which app a live object belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ownership {
    /// The object does not exist yet.
    Absent,
    /// It has the app's tracking mark.
    Ours,
    /// It has no tracking mark or that of another app, and Git and the settings ask the app to take it over.
    Adopted,
    /// It belongs to another app and must not be taken over.
    Foreign {
        /// The other app.
        owner: String,
    },
}

/// The right to create or change one object. [`WritePermit::judge`] checks it; a user's command needs no
/// check.
#[derive(Clone, Debug)]
pub struct WritePermit {
    pub(super) key: ObjectKey,
    pub(super) impersonation: Option<Impersonation>,
}

impl WritePermit {
    /// Checks every fact.
    pub fn judge(facts: WriteFacts) -> Result<Self, Refusal> {
        if let Some(reason) = facts.paused {
            return Err(Refusal::Paused { app: facts.app.to_string(), reason });
        }
        if let ProjectAnswer::Denies { why } = facts.project {
            return Err(Refusal::Project { key: facts.key, why });
        }
        if let Ownership::Foreign { owner } = facts.ownership {
            return Err(Refusal::Foreign { key: facts.key, owner });
        }
        Ok(Self { key: facts.key, impersonation: facts.impersonation })
    }

    /// The permit of a user at the command line who named this object. The user's own RBAC permissions
    /// decide.
    pub fn requested_by_user(key: ObjectKey) -> Self {
        Self { key, impersonation: None }
    }

    /// The object that it is for.
    pub fn key(&self) -> &ObjectKey {
        &self.key
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(in crate::gate) fn key(name: &str) -> ObjectKey {
        ObjectKey::new("", "ConfigMap", Some("a".to_owned()), name)
    }

    pub(in crate::gate) fn facts() -> WriteFacts {
        WriteFacts {
            app: AppId { namespace: "argocd".to_owned(), name: "app".to_owned() },
            key: key("x"),
            paused: None,
            project: ProjectAnswer::Allows,
            ownership: Ownership::Ours,
            impersonation: None,
        }
    }

    #[test]
    fn each_fact_alone_can_refuse_a_write() {
        assert!(WritePermit::judge(facts()).is_ok());
        assert!(WritePermit::judge(WriteFacts { ownership: Ownership::Absent, ..facts() }).is_ok());
        assert!(WritePermit::judge(WriteFacts { ownership: Ownership::Adopted, ..facts() }).is_ok());
        let refusals = [
            WriteFacts { paused: Some("night shift".to_owned()), ..facts() },
            WriteFacts { project: ProjectAnswer::Denies { why: "no ConfigMaps".to_owned() }, ..facts() },
            WriteFacts { ownership: Ownership::Foreign { owner: "other".to_owned() }, ..facts() },
        ]
        .map(|facts| WritePermit::judge(facts).unwrap_err().to_string());
        assert_eq!(
            refusals,
            [
                "argocd/app is paused: night shift",
                "ConfigMap a/x is not permitted: no ConfigMaps",
                "ConfigMap a/x belongs to other",
            ]
        );
    }
}
