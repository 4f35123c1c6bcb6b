//! The right to create or change one object.

use plumb_core::app::AppId;
use plumb_core::object::ObjectKey;

use super::refusal::Refusal;
use crate::client::Impersonation;

/// What the right to write one object rests on. The engine states it, [`WritePermit::judge`] decides.
#[derive(Clone, Debug)]
pub struct WriteFacts {
    /// The app on whose behalf.
    pub app: AppId,
    /// The object.
    pub key: ObjectKey,
    /// Is the app (or the object) held by a person, and with which reason?
    pub paused: Option<String>,
    /// What the app's project says about this object in this place.
    pub project: ProjectAnswer,
    /// Whose the live object is.
    pub ownership: Ownership,
    /// Whose permissions to use, where the project names a service account.
    pub impersonation: Option<Impersonation>,
}

/// What a project says about an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProjectAnswer {
    /// It may be there.
    Allows,
    /// It may not.
    Denies {
        /// Which rule.
        why: String,
    },
}

/// Whose a live object is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ownership {
    /// There is none yet.
    Absent,
    /// It carries our app's mark.
    Ours,
    /// It carries no mark, or another one, and taking it over is what Git and the settings ask.
    Adopted,
    /// It belongs to somebody else and is not to be taken.
    Foreign {
        /// Who.
        owner: String,
    },
}

/// The right to create or change one object. It can only come out of a judgement.
#[derive(Clone, Debug)]
pub struct WritePermit {
    pub(super) key: ObjectKey,
    pub(super) impersonation: Option<Impersonation>,
}

impl WritePermit {
    /// Decides.
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

    /// The permit of a person at the command line, who asked for this very object by name.
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
