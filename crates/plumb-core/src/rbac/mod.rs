//! Who may do what through the server: Argo CD's policy language.
//!
//! [`Policy`] is the compiled text of `argocd-rbac-cm`, [`AccessRules`] adds the default role, the scopes and the
//! roles of projects, and [`AccessRules::allows`] is the one decision. Names compare exactly; only resources, actions
//! and objects are patterns. A rule that cannot be read permits nothing.

mod access;
mod built_in;
mod caller;
mod csv;
mod go_regex;
mod pattern;
mod request;
mod policy;
mod project_roles;
mod settings;

#[cfg(test)]
mod tests;

pub use access::AccessRules;
pub use caller::Caller;
pub use pattern::MatchMode;
pub use policy::{Policy, PolicyProblem};
pub use project_roles::{ProjectRole, ProjectRoles};
pub use request::Request;
pub use settings::{AccessSettings, AccessSettingsProblem};
