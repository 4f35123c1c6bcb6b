//! The one decision.

use std::collections::HashMap;

use crate::rbac::built_in;
use crate::rbac::caller::Caller;
use crate::rbac::policy::{Policies, Policy, PolicyProblem};
use crate::rbac::project_roles::ProjectRoles;
use crate::rbac::settings::AccessSettings;

/// What a caller asks to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request<'a> {
    /// The kind of thing: `applications`, `clusters` …
    pub resource: &'a str,
    /// What is done with it: `get`, `sync`, `delete//Pod/ns/name` …
    pub action: &'a str,
    /// Which one: `project/app`, a server's address …
    pub object: &'a str,
}

/// The permissions of all callers, compiled.
#[derive(Clone, Debug)]
pub struct AccessRules {
    base: Policy,
    default_role: String,
    scopes: Vec<String>,
    /// `None` for a project whose lines cannot be read: the global policy alone counts for it.
    projects: HashMap<String, Option<Policy>>,
}

impl AccessRules {
    /// Compiles the settings without any project.
    pub fn new(settings: &AccessSettings) -> Result<Self, PolicyProblem> {
        let mut base = Policy::parse(&settings.policy, settings.mode)?;
        built_in::lines().for_each(|line| base.add(line));
        Ok(Self {
            base,
            default_role: settings.default_role.clone(),
            scopes: settings.scopes.clone(),
            projects: HashMap::new(),
        })
    }

    /// Adds a project, or replaces its roles.
    pub fn set_project(&mut self, roles: &ProjectRoles) {
        self.projects.insert(roles.project.clone(), roles.compile(self.base.mode()));
    }

    /// Forgets a project that is gone.
    pub fn remove_project(&mut self, name: &str) {
        self.projects.remove(name);
    }

    /// May the caller do it?
    ///
    /// The default role, the caller and each of the groups are judged one by one: what one of them allows, a line that
    /// denies it to another does not take away.
    pub fn allows(&self, caller: &Caller, request: &Request<'_>) -> bool {
        let base = Policies { base: &self.base, project: None };
        if self.default_role_allows(base, request) {
            return true;
        }
        let Caller::Claims(_) = caller else { return allow(base, "", request) };
        let project = project_of(request).and_then(|name| self.projects.get_key_value(name));
        let policies =
            Policies { base: &self.base, project: project.and_then(|(_, policy)| policy.as_ref()) };
        let is_allowed = match (project, project_of_token(caller.subject())) {
            (Some((name, _)), Some(of_token)) => {
                name == of_token
                    && (self.default_role_allows(policies, request)
                        || allow(policies, caller.subject(), request))
            }
            _ => {
                self.default_role_allows(policies, request)
                    || allow(policies, caller.subject(), request)
                    || caller
                        .groups(&self.scopes)
                        .any(|group| policies.is_member(group) && allow(policies, group, request))
            }
        };
        // A line with an empty subject is for every caller.
        is_allowed || allow(base, "", request)
    }

    /// The groups of a caller: the values of the claims that the setting `scopes` names.
    pub fn groups(&self, caller: &Caller) -> Vec<String> {
        caller.groups(&self.scopes).map(str::to_owned).collect()
    }

    fn default_role_allows(&self, policies: Policies<'_>, request: &Request<'_>) -> bool {
        !self.default_role.is_empty() && allow(policies, &self.default_role, request)
    }
}

fn allow(policies: Policies<'_>, subject: &str, request: &Request<'_>) -> bool {
    policies.allow(subject, request.resource, request.action, request.object)
}

/// The project whose roles count for this object.
fn project_of<'a>(request: &Request<'a>) -> Option<&'a str> {
    match request.resource {
        "applications" | "applicationsets" | "logs" | "exec" | "clusters" | "repositories" => {
            request.object.split_once('/').map(|(project, _)| project)
        }
        "projects" => Some(request.object),
        _ => None,
    }
}

/// The project of a token of one of its roles: the subject is `proj:PROJECT:ROLE`.
fn project_of_token(subject: &str) -> Option<&str> {
    let (project, role) = subject.strip_prefix("proj:")?.split_once(':')?;
    (!role.contains(':')).then_some(project)
}
