//! What a project must be like to be stored, in Argo CD's words.

use std::collections::BTreeSet;

use plumb_api::{Code, Status};
use plumb_core::glob::Glob;
use plumb_core::rbac::ProjectRoles;
use plumb_crd::{AppProject, convert::to_project_rules};
use serde_json::{Value, json};

/// What Argo CD checks on write: otherwise a role could give itself rights outside of its project, and a rule that cannot
/// be read would be noticed only by the Applications of the project.
pub(super) fn validate(project: &Value) -> Result<(), Status> {
    let typed = AppProject::from_json(project).map_err(|error| Status::invalid(error.to_string()))?;
    let name = project.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default();
    if name.is_empty() {
        return Err(Status::invalid("project name is required"));
    }
    check_destinations(project)?;
    check_texts(project, "sourceNamespaces", "source namespace")?;
    check_texts(project, "sourceRepos", "source repository")?;
    check_roles(project, name)?;
    check_windows(project)?;
    let (rules, _) = to_project_rules(&typed);
    if let Some(reason) = rules.sync_windows.iter().find_map(|window| window.time.as_ref().err()) {
        return Err(Status::invalid(reason.clone()));
    }
    check_service_accounts(project)
}

/// The entries of a list in the spec.
fn entries<'p>(project: &'p Value, list: &str) -> impl Iterator<Item = &'p Value> {
    let list = project.get("spec").and_then(|spec| spec.get(list)?.as_array());
    list.into_iter().flatten()
}

fn text<'v>(value: &'v Value, field: &str) -> &'v str {
    value.get(field).and_then(Value::as_str).unwrap_or_default()
}

fn malformed(what: &str, value: &str) -> Status {
    Status::invalid(format!("{what} has an invalid format, '{value}'"))
}

fn check_destinations(project: &Value) -> Result<(), Status> {
    let mut seen = BTreeSet::new();
    for destination in entries(project, "destinations") {
        let (server, name) = (text(destination, "server"), text(destination, "name"));
        let namespace = text(destination, "namespace");
        for (field, value) in [("name", name), ("server", server), ("namespace", namespace)] {
            if value == "!*" {
                return Err(malformed(field, value));
            }
        }
        let cluster = if server.is_empty() { name } else { server };
        let key = format!("{cluster}/{namespace}");
        if seen.contains(&key) {
            return Err(Status::invalid(format!("destination '{key}' already added")));
        }
        seen.insert(key);
    }
    Ok(())
}

fn check_texts(project: &Value, list: &str, what: &str) -> Result<(), Status> {
    let mut seen = BTreeSet::new();
    for entry in entries(project, list).filter_map(Value::as_str) {
        if entry == "!*" && list == "sourceRepos" {
            return Err(malformed(what, entry));
        }
        if !seen.insert(entry) {
            return Err(Status::invalid(format!("{what} '{entry}' already added")));
        }
    }
    Ok(())
}

fn check_roles(project: &Value, name: &str) -> Result<(), Status> {
    let mut seen = BTreeSet::new();
    for role in entries(project, "roles") {
        let role_name = text(role, "name");
        let is_name = |letter: char| letter.is_ascii_alphanumeric() || letter == '-' || letter == '_';
        let ends = |letter: Option<char>| letter.is_some_and(|letter| letter.is_ascii_alphanumeric());
        if !role_name.chars().all(is_name)
            || !ends(role_name.chars().next())
            || !ends(role_name.chars().last())
        {
            return Err(Status::invalid(format!(
                "invalid role name '{role_name}'. Must consist of alphanumeric characters, '-' or '_', and must start \
                 and end with an alphanumeric character"
            )));
        }
        if !seen.insert(role_name) {
            return Err(Status::new(Code::AlreadyExists, format!("role '{role_name}' already exists")));
        }
        for (list, what) in [("policies", "policy"), ("groups", "group")] {
            let mut seen = BTreeSet::new();
            for entry in role.get(list).and_then(Value::as_array).into_iter().flatten() {
                let entry = entry.as_str().unwrap_or_default();
                if !seen.insert(entry) {
                    let why = format!("{what} '{entry}' already exists for role '{role_name}'");
                    return Err(Status::new(Code::AlreadyExists, why));
                }
                if list == "policies" {
                    check_policy(name, role_name, entry)?;
                }
            }
        }
    }
    Ok(())
}

const RESOURCES: [&str; 6] = ["applications", "applicationsets", "repositories", "clusters", "logs", "exec"];
const ACTIONS: [&str; 8] = ["get", "create", "update", "delete", "sync", "override", "rollback", "*"];

fn check_policy(project: &str, role: &str, policy: &str) -> Result<(), Status> {
    let wrong = |why: &str| Err(Status::invalid(format!("invalid policy rule '{policy}': {why}")));
    let parts: Vec<&str> = policy.split(',').map(str::trim).collect();
    let [p, subject, resource, action, object, effect] = parts.as_slice() else {
        return wrong("must be of the form: 'p, sub, res, act, obj, eft'");
    };
    if policy.contains('\n') || *p != "p" {
        return wrong("must be one line that starts with p");
    }
    let expected = ProjectRoles::subject(project, role);
    if *subject != expected {
        return wrong(&format!("policy subject must be: '{expected}', not '{subject}'"));
    }
    if !RESOURCES.contains(resource) {
        return wrong(&format!(
            "project resource must be: 'applications', 'applicationsets', 'repositories', 'exec', 'logs' or 'clusters', \
             not '{resource}'"
        ));
    }
    let is_fine = ["action/", "update/", "delete/"].into_iter().any(|prefix| action.contains(prefix));
    if !ACTIONS.contains(action) && !is_fine {
        return wrong(&format!("invalid action '{action}'"));
    }
    let below = object.strip_prefix(project).and_then(|rest| rest.strip_prefix('/'));
    let is_word = |letter: char| letter.is_alphanumeric() || "*-._/".contains(letter);
    if !below.is_some_and(|rest| !rest.is_empty() && rest.chars().all(is_word)) {
        return wrong(&format!("object must be of form '{project}/*', '{project}[/<NAMESPACE>]/<APPNAME>'"));
    }
    if !["allow", "deny"].contains(effect) {
        return wrong("effect must be: 'allow' or 'deny'");
    }
    Ok(())
}

/// Two windows are the same if they differ only in what they are for: description and manual syncs.
fn check_windows(project: &Value) -> Result<(), Status> {
    const LONGEST_DESCRIPTION: usize = 255;
    let mut seen: Vec<Value> = Vec::new();
    for window in entries(project, "syncWindows").filter(|window| window.is_object()) {
        let (kind, schedule, duration) =
            (text(window, "kind"), text(window, "schedule"), text(window, "duration"));
        let mut identity = window.clone();
        if let Some(fields) = identity.as_object_mut() {
            for field in ["manualSync", "description", "syncOverrun"] {
                fields.remove(field);
            }
            fields.retain(|_, value| *value != json!(null) && *value != json!("") && *value != json!(false));
        }
        if seen.contains(&identity) {
            let why = format!(
                "sync window with kind '{kind}', schedule '{schedule}', and duration '{duration}' already exists"
            );
            return Err(Status::new(Code::AlreadyExists, why));
        }
        seen.push(identity);
        if text(window, "description").chars().count() > LONGEST_DESCRIPTION {
            return Err(Status::invalid("description must not exceed 255 characters"));
        }
        let names =
            |list: &str| window.get(list).and_then(Value::as_array).is_some_and(|list| !list.is_empty());
        if !["applications", "namespaces", "clusters"].into_iter().any(names) {
            let why = format!(
                "window '{kind}':'{schedule}':'{duration}' requires one of application, cluster or namespace"
            );
            return Err(Status::new(Code::OutOfRange, why));
        }
    }
    Ok(())
}

fn check_service_accounts(project: &Value) -> Result<(), Status> {
    let mut seen = BTreeSet::new();
    for rule in entries(project, "destinationServiceAccounts") {
        let (server, namespace) = (text(rule, "server"), text(rule, "namespace"));
        for (field, pattern) in [("server", server), ("namespace", namespace)] {
            if pattern.contains('!') {
                return Err(malformed(field, pattern));
            }
        }
        let account = text(rule, "defaultServiceAccount");
        if account.trim_matches(' ').is_empty() || account.contains(['!', '*', '[', ']', '{', '}', '\\', '/'])
        {
            return Err(malformed("defaultServiceAccount", account));
        }
        for (field, pattern) in [("server", server), ("namespace", namespace)] {
            if Glob::plain(pattern).is_err() {
                return Err(malformed(field, pattern));
            }
        }
        let key = format!("{server}/{namespace}");
        if seen.contains(&key) {
            return Err(Status::invalid(format!("destinationServiceAccount '{key}' already added")));
        }
        seen.insert(key);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(spec: &Value) -> String {
        let project = json!({"apiVersion": AppProject::API_VERSION, "kind": AppProject::KIND,
            "metadata": {"name": "team", "namespace": "argocd"}, "spec": spec});
        validate(&project).err().map(|status| status.message).unwrap_or_default()
    }

    #[test]
    fn a_role_stays_inside_its_project() {
        let check = |policy: &str| check_policy("team", "dev", policy).is_ok();
        assert!(check("p, proj:team:dev, applications, sync, team/*, allow"));
        assert!(check("p, proj:team:dev, applications, action/apps/Deployment/restart, team/ns/app, deny"));
        for wrong in [
            "g, proj:team:dev, role:admin",
            "p, proj:other:dev, applications, get, team/*, allow",
            "p, proj:team:dev, projects, get, team/*, allow",
            "p, proj:team:dev, applications, get, other/*, allow",
            "p, proj:team:dev, applications, get, team, allow",
            "p, proj:team:dev, applications, get, team/*, maybe",
            "p, proj:team:dev, applications, get, team/*, allow\ng, x, role:admin",
        ] {
            assert!(!check(wrong), "{wrong}");
        }
    }

    #[test]
    fn rules_that_mean_nothing_are_refused() {
        let place = |server: &str, namespace: &str| json!({"server": server, "namespace": namespace});
        let account = |server: &str, namespace: &str, account: &str| json!({"server": server, "namespace": namespace, "defaultServiceAccount": account});
        let window = |duration: &str, manual: bool| {
            json!({"kind": "allow", "schedule": "* * * * *", "duration": duration, "applications": ["*"],
                "manualSync": manual})
        };
        for (spec, expected) in [
            (json!({"destinations": [place("https://a", "!*")]}), "namespace has an invalid format, '!*'"),
            (json!({"destinations": [place("!*", "b")]}), "server has an invalid format, '!*'"),
            (json!({"destinations": [place("https://a", "!b"), place("https://a", "b")]}), ""),
            (
                json!({"destinations": [place("https://a", "b"), place("https://a", "b")]}),
                "destination 'https://a/b' already added",
            ),
            (json!({"sourceRepos": ["a", "a"]}), "source repository 'a' already added"),
            (json!({"sourceRepos": ["!*"]}), "source repository has an invalid format, '!*'"),
            (json!({"sourceNamespaces": ["a", "a"]}), "source namespace 'a' already added"),
            (json!({"destinationServiceAccounts": [account("https://a", "", "x")]}), ""),
            (
                json!({"destinationServiceAccounts": [account("[[a*", "b", "x")]}),
                "server has an invalid format, '[[a*'",
            ),
            (
                json!({"destinationServiceAccounts": [account("a", "!b", "x")]}),
                "namespace has an invalid format, '!b'",
            ),
            (
                json!({"destinationServiceAccounts": [account("a", "b", "  ")]}),
                "defaultServiceAccount has an invalid format, '  '",
            ),
            (
                json!({"destinationServiceAccounts": [account("a", "b", "x"), account("a", "b", "y")]}),
                "destinationServiceAccount 'a/b' already added",
            ),
            (json!({"syncWindows": [window("1h", true), window("2h", true)]}), ""),
            (
                json!({"syncWindows": [window("1h", true), window("1h", false)]}),
                "sync window with kind 'allow', schedule '* * * * *', and duration '1h' already exists",
            ),
            (
                json!({"syncWindows": [{"kind": "allow", "schedule": "* * * * *", "duration": "1h"}]}),
                "window 'allow':'* * * * *':'1h' requires one of application, cluster or namespace",
            ),
            (
                json!({"syncWindows": [{"kind": "maybe", "applications": ["*"]}]}),
                "kind 'maybe' mismatch: can only be allow or deny",
            ),
            (
                json!({"roles": [{"name": "dev", "groups": ["a", "a"]}]}),
                "group 'a' already exists for role 'dev'",
            ),
        ] {
            assert_eq!(refusal(&spec), expected, "{spec}");
        }
    }
}
