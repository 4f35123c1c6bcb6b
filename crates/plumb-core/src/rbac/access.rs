//! The one decision.

use std::collections::HashMap;

use crate::rbac::built_in;
use crate::rbac::caller::Caller;
use crate::rbac::policy::{Judged, Policies, Policy, PolicyProblem};
use crate::rbac::project_roles::ProjectRoles;
use crate::rbac::request::Request;
use crate::rbac::settings::AccessSettings;

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
        let mut judged = Judged::new();
        if self.default_role_allows(base, request, &mut judged) {
            return true;
        }
        // A line with an empty subject is for every caller.
        let mut for_all = || base.allow("", request, &mut judged);
        let Caller::Claims(_) = caller else { return for_all() };
        self.allows_claims(caller, request) || for_all()
    }

    fn allows_claims(&self, caller: &Caller, request: &Request<'_>) -> bool {
        let project = project_of(request).and_then(|name| self.projects.get_key_value(name));
        let policies =
            Policies { base: &self.base, project: project.and_then(|(_, policy)| policy.as_ref()) };
        let mut judged = Judged::new();
        let has_groups = match (project, project_of_token(caller.subject())) {
            (Some((name, _)), Some(of_token)) if name != of_token => return false,
            (Some(_), Some(_)) => false,
            _ => true,
        };
        self.default_role_allows(policies, request, &mut judged)
            || policies.allow(caller.subject(), request, &mut judged)
            || has_groups
                && caller
                    .groups(&self.scopes)
                    .any(|group| policies.is_member(group) && policies.allow(group, request, &mut judged))
    }

    /// The groups of a caller: the values of the claims that the setting `scopes` names.
    pub fn groups(&self, caller: &Caller) -> Vec<String> {
        caller.groups(&self.scopes).map(str::to_owned).collect()
    }

    fn default_role_allows<'p>(
        &'p self,
        policies: Policies<'p>,
        request: &Request<'_>,
        judged: &mut Judged<'p>,
    ) -> bool {
        !self.default_role.is_empty() && policies.allow(&self.default_role, request, judged)
    }
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
