//! The roles that a project defines for itself.

use crate::rbac::pattern::MatchMode;
use crate::rbac::policy::{Line, Policy, read_line};

/// One role of a project: `spec.roles[]`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProjectRole {
    /// Its name.
    pub name: String,
    /// Its lines, as written in the project.
    pub policies: Vec<String>,
    /// The groups whose members have it.
    pub groups: Vec<String>,
}

/// The roles of one project.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProjectRoles {
    /// The name of the project.
    pub project: String,
    /// Its roles.
    pub roles: Vec<ProjectRole>,
}

impl ProjectRoles {
    /// The name of a role in policies, which is also the subject of its tokens.
    pub fn subject(project: &str, role: &str) -> String {
        format!("proj:{project}:{role}")
    }

    /// The compiled lines, or nothing if one of them cannot be read: then only the global policy counts.
    ///
    /// Lines whose subject is not the role itself are left out. Argo CD's server refuses to write them, but a user who
    /// may edit the project with kubectl could otherwise make himself an admin of it.
    pub(super) fn compile(&self, mode: MatchMode) -> Option<Policy> {
        let mut policy = Policy::parse("", mode).ok()?;
        for role in &self.roles {
            let subject = Self::subject(&self.project, &role.name);
            policy.add(Line::Permission {
                subject: subject.clone(),
                resource: "projects".to_owned(),
                action: "get".to_owned(),
                object: self.project.clone(),
                effect: "allow".to_owned(),
            });
            // A text of several lines is several lines.
            for line in role.policies.iter().flat_map(|policies| policies.lines()) {
                if let Some(line @ Line::Permission { .. }) = read_line(line).ok()?
                    && matches!(&line, Line::Permission { subject: named, .. } if *named == subject)
                {
                    policy.add(line);
                }
            }
            for group in &role.groups {
                // Argo CD pastes the group into a line, so a group with a comma carries its own quotes.
                if let Some(line) = read_line(&format!("g, {group}, {subject}")).ok()? {
                    policy.add(line);
                }
            }
        }
        Some(policy)
    }
}
