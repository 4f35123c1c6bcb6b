//! One call: who asks for what, and how it is answered.

use std::net::IpAddr;
use std::sync::Arc;

use plumb_api::{SelectedFields, Status};
use plumb_core::object::Manifest;
use plumb_core::text::one_line;
use plumb_crd::Application;
use plumb_engine::{Handle, Leader};
use serde_json::Value;
use tokio::sync::mpsc;

use crate::app_feed::{AppFeed, Item};
use crate::audit::AuditEvents;
use crate::backend::{Backend, Known};
use crate::connections::Connections;
use crate::session::{Identity, Sessions};
use crate::set_feed::SetFeed;
use crate::state::State;

/// What all calls share.
pub(crate) struct Shared {
    pub(crate) handle: Handle,
    pub(crate) backend: Backend,
    pub(crate) state: State,
    pub(crate) sessions: Sessions,
    pub(crate) feed: Arc<AppFeed>,
    pub(crate) sets: SetFeed,
    pub(crate) audit: AuditEvents,
    /// Which repositories can be reached.
    pub(crate) connections: Connections,
    /// The version that clients see.
    pub(crate) version: String,
}

/// One call.
pub(crate) struct Call {
    pub(crate) shared: Arc<Shared>,
    /// `None` where the call needs no login and there is none.
    pub(crate) identity: Option<Identity>,
    pub(crate) request: Value,
    pub(crate) fields: Option<SelectedFields>,
    pub(crate) peer: IpAddr,
    /// Where a proxy says that the request comes from; empty if none does. Any client can claim it.
    pub(crate) forwarded: String,
    /// The Application that the call is about, if its check names one.
    pub(crate) app: Option<FoundApp>,
    /// The kinds of things that permissions were asked for.
    pub(crate) asked: parking_lot::Mutex<Vec<String>>,
    /// The object that the handler wrote, if its answer does not have it.
    pub(crate) written: parking_lot::Mutex<Option<Value>>,
    /// The permissions that the answer needed: resource, action and object.
    pub(crate) granted: parking_lot::Mutex<Vec<(String, String, String)>>,
}

/// An Application that the caller may use.
#[derive(Clone, Debug)]
pub(crate) struct FoundApp {
    pub(crate) namespace: String,
    pub(crate) name: String,
    pub(crate) project: String,
    pub(crate) value: Value,
}

impl FoundApp {
    /// The typed Application.
    pub(crate) fn typed(&self) -> Result<Application, Status> {
        Application::from_json(&self.value)
            .map_err(|error| Status::precondition(format!("the application cannot be read: {error}")))
    }

    /// As permissions name it.
    pub(crate) fn object(&self, control_plane: &str) -> String {
        app_object(&self.project, &self.namespace, &self.name, control_plane)
    }
}

/// An Application as permissions name it.
pub(crate) fn app_object(project: &str, namespace: &str, name: &str, control_plane: &str) -> String {
    if namespace.is_empty() || namespace == control_plane {
        format!("{project}/{name}")
    } else {
        format!("{project}/{namespace}/{name}")
    }
}

/// The answer to a call.
pub(crate) enum Answer {
    One(Value),
    /// JSON with the fields that the request chose.
    Chosen(String),
    Stream(mpsc::Receiver<Result<Arc<Item>, Status>>),
}

impl Call {
    pub(crate) fn text(&self, field: &str) -> &str {
        self.request.get(field).and_then(Value::as_str).unwrap_or_default()
    }

    pub(crate) fn flag(&self, field: &str) -> Option<bool> {
        self.request.get(field).and_then(Value::as_bool)
    }

    pub(crate) fn number(&self, field: &str) -> Option<i64> {
        let value = self.request.get(field)?;
        value.as_i64().or_else(|| value.as_str()?.parse().ok())
    }

    pub(crate) fn texts(&self, field: &str) -> Vec<String> {
        let list = self.request.get(field).and_then(Value::as_array).into_iter().flatten();
        list.filter_map(|item| item.as_str().map(str::to_owned)).collect()
    }

    pub(crate) fn username(&self) -> &str {
        self.identity.as_ref().map(|identity| identity.username.as_str()).unwrap_or_default()
    }

    /// The control-plane namespace.
    pub(crate) fn namespace(&self) -> &str {
        self.shared.state.namespace()
    }

    /// May the caller do it?
    pub(crate) fn allows(&self, resource: &str, action: &str, object: &str) -> bool {
        let mut asked = self.asked.lock();
        if !asked.iter().any(|known| known == resource) {
            asked.push(resource.to_owned());
        }
        drop(asked);
        let Some(identity) = &self.identity else { return false };
        if identity.has_cluster {
            return true;
        }
        self.shared.state.allows(&identity.access, resource, action, object)
    }

    /// Notes which object was written, for the event about it.
    pub(crate) fn note_written(&self, object: &Value) {
        *self.written.lock() = Some(object.clone());
    }

    /// Refuses what the caller may not do.
    pub(crate) fn require(&self, resource: &str, action: &str, object: &str) -> Result<(), Status> {
        if !self.allows(resource, action, object) {
            return Err(self.refused(resource, action));
        }
        self.granted.lock().push((resource.to_owned(), action.to_owned(), object.to_owned()));
        Ok(())
    }

    /// The refusal of an action, in Argo CD's words. It names no object: whether it exists is not for everybody.
    pub(crate) fn refused(&self, resource: &str, action: &str) -> Status {
        let subject = self.identity.as_ref().map(|identity| identity.text("sub")).unwrap_or_default();
        let denied = Status::denied();
        let message = format!("{}: {resource}, {action}, sub: {}", denied.message, one_line(subject));
        Status { message, ..denied }
    }

    /// Fails if the token of the request has ended or was revoked, or if one of the permissions that the answer needed is
    /// gone.
    pub(crate) async fn is_still_permitted(&self, headers: &http::HeaderMap) -> Result<(), Status> {
        let identity = self.shared.sessions.identify(headers).await?;
        let granted = self.granted.lock();
        let is_granted = granted.iter().all(|(resource, action, object)| {
            self.shared.state.allows(&identity.access, resource, action, object)
        });
        if is_granted { Ok(()) } else { Err(Status::denied()) }
    }

    /// The engine, if this process leads.
    pub(crate) fn leader(&self) -> Result<Leader, Status> {
        let away = || Status::unavailable("this replica does not lead yet; try again");
        self.shared.handle.leader().ok_or_else(away)
    }

    /// The Application that the check of this call found.
    pub(crate) fn app(&self) -> Result<&FoundApp, Status> {
        self.app.as_ref().ok_or_else(Status::denied)
    }

    /// The namespace of the Application that the request means.
    fn app_namespace(&self) -> String {
        match self.text("appNamespace") {
            "" => self.namespace().to_owned(),
            namespace => namespace.to_owned(),
        }
    }

    /// The action whose right a caller needs for another one: a rollback needs the right to sync, unless the settings have it
    /// need one of its own.
    pub(crate) fn needed_action<'a>(&self, action: &'a str) -> &'a str {
        let needs_own = || self.setting_is_on("server.rbac.rollback.enforce.enable");
        if action == "rollback" && !needs_own() { "sync" } else { action }
    }

    /// True if a setting that demands more rights is on.
    pub(crate) fn setting_is_on(&self, key: &str) -> bool {
        is_on(&self.shared.state.setting(key))
    }

    /// The actions of which a caller needs one. Unless the settings say otherwise, `update` and `delete` mean the Application
    /// alone, and its objects need rights of their own.
    fn enough<'a>(&self, action: &'a str) -> Vec<&'a str> {
        let whole = enough_for_objects(action, &self.shared.state.setting(NO_INHERITANCE));
        [whole, Some(self.needed_action(action))].into_iter().flatten().collect()
    }

    /// Finds an Application for an action. An Application that does not exist and one that the caller may not see give
    /// the same answer.
    pub(crate) fn find_app(&self, action: &str) -> Result<FoundApp, Status> {
        let projects = asked_projects(&self.request);
        let asked = match projects.as_slice() {
            [] => None,
            [project] => Some(*project),
            _ => {
                return Err(Status::invalid(
                    "multiple projects specified - the get endpoint accepts either zero or one project",
                ));
            }
        };
        let actions = self.enough(action);
        let name = ["name", "applicationName", "appName"].into_iter().map(|field| self.text(field));
        let name = name.into_iter().find(|name| !name.is_empty()).unwrap_or_default();
        let namespace = self.app_namespace();
        let may = |project: &str| {
            let object = app_object(project, &namespace, name, self.namespace());
            actions.iter().copied().find(|action| self.allows("applications", action, &object))
        };
        let hidden = || match asked {
            None => Status::denied(),
            Some(_) => Status::not_found(format!("applications.argoproj.io \"{name}\" not found")),
        };
        if asked.is_some_and(|project| may(project).is_none()) {
            return Err(Status::denied());
        }
        let leader = self.leader()?;
        let value = leader.app(&namespace, name).filter(|_| leader.permits_namespace(&namespace));
        let value = value.ok_or_else(hidden)?;
        let project = project_of(&value);
        let granted = may(&project).filter(|_| asked.is_none_or(|asked| asked == project));
        let action = granted.ok_or_else(hidden)?;
        self.check_project(&project, &namespace)?;
        let object = app_object(&project, &namespace, name, self.namespace());
        self.granted.lock().push(("applications".to_owned(), action.to_owned(), object));
        Ok(FoundApp { namespace, name: name.to_owned(), project, value })
    }

    /// The project exists and permits Applications of this namespace.
    pub(crate) fn check_project(&self, project: &str, namespace: &str) -> Result<(), Status> {
        let refused = || {
            Status::invalid(format!(
                "app is not allowed in project \"{project}\", or the project does not exist"
            ))
        };
        if is_in_project(&self.shared.state, project, namespace) { Ok(()) } else { Err(refused()) }
    }

    /// Patches an Application and makes the change visible at once.
    pub(crate) async fn patch_app(
        &self,
        namespace: &str,
        name: &str,
        patch: Value,
    ) -> Result<Manifest, Status> {
        let written = self.shared.backend.patch(Known::Application, namespace, name, patch).await?;
        self.note_app(&written);
        Ok(written)
    }

    /// Makes a written Application visible at once.
    pub(crate) fn note_app(&self, written: &Manifest) {
        if let Some(leader) = self.shared.handle.leader() {
            leader.note_written(written);
        }
    }
}

/// True if the project exists and permits Applications of this namespace.
pub(crate) fn is_in_project(state: &State, project: &str, namespace: &str) -> bool {
    let Some(known) = state.project(project) else { return false };
    permits_app_namespace(known.value(), namespace, state.namespace())
}

fn permits_app_namespace(project: &Value, namespace: &str, home: &str) -> bool {
    let sources = project.pointer("/spec/sourceNamespaces").and_then(Value::as_array);
    let permits = |pattern: &Value| {
        let pattern = pattern.as_str().and_then(|text| plumb_core::glob::Glob::regex_or_plain(text).ok());
        pattern.is_some_and(|pattern| pattern.matches(namespace))
    };
    namespace == home || sources.is_some_and(|list| list.iter().any(permits))
}

/// The projects that a request names: in a field of their own or in a list, by either name.
fn asked_projects(request: &Value) -> Vec<&str> {
    let named = |field: &str| -> Vec<&str> {
        let value = request.get(field);
        let list = value.and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
        value.and_then(Value::as_str).into_iter().chain(list).filter(|project| !project.is_empty()).collect()
    };
    ["project", "projects"].into_iter().map(named).find(|named| !named.is_empty()).unwrap_or_default()
}

/// The project of an Application.
pub(crate) fn project_of(application: &Value) -> String {
    let project = application.pointer("/spec/project").and_then(Value::as_str).unwrap_or_default();
    if project.is_empty() { "default".to_owned() } else { project.to_owned() }
}

/// Go's words for false.
const FALSE: [&str; 6] = ["0", "f", "F", "false", "False", "FALSE"];

/// True if a setting that demands more rights is on. A value that cannot be read is no permission.
fn is_on(setting: &str) -> bool {
    !setting.is_empty() && !FALSE.contains(&setting)
}

/// The setting that keeps `update` and `delete` from meaning the objects of an Application, too. It is on by default.
const NO_INHERITANCE: &str = "server.rbac.disableApplicationFineGrainedRBACInheritance";

/// The action on the whole Application that permits this one on one of its objects, if the setting says so.
fn enough_for_objects<'a>(action: &'a str, setting: &str) -> Option<&'a str> {
    let (whole, _) = action.split_once('/')?;
    (FALSE.contains(&setting) && ["update", "delete"].contains(&whole)).then_some(whole)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{asked_projects, enough_for_objects, is_on, permits_app_namespace};

    #[test]
    fn a_project_says_which_namespaces_may_use_it() {
        let project = json!({"spec": {"sourceNamespaces": ["team-*"]}});
        for (project, namespace, expected) in [
            (&project, "argocd", true),
            (&project, "team-a", true),
            (&project, "other", false),
            (&json!({}), "team-a", false),
        ] {
            assert_eq!(permits_app_namespace(project, namespace, "argocd"), expected, "{namespace}");
        }
    }

    #[test]
    fn a_request_names_projects_in_several_forms() {
        for (request, expected) in [
            (json!({}), &[][..]),
            (json!({"project": ""}), &[]),
            (json!({"project": "a"}), &["a"]),
            (json!({"project": ["a"]}), &["a"]),
            (json!({"project": ["a", "b"]}), &["a", "b"]),
            (json!({"projects": ["b"], "project": []}), &["b"]),
        ] {
            assert_eq!(asked_projects(&request), expected, "{request}");
        }
    }

    #[test]
    fn more_rights_are_needed_if_the_settings_say_so() {
        for (setting, expected) in [("", false), ("false", false), ("true", true), ("1", true), ("yes", true)]
        {
            assert_eq!(is_on(setting), expected, "{setting:?}");
        }
    }

    #[test]
    fn the_right_to_an_app_is_one_to_its_objects_only_if_the_settings_say_so() {
        let check = |action: &str, setting: &str, expected: Option<&str>| {
            assert_eq!(enough_for_objects(action, setting), expected, "{action} {setting:?}");
        };
        check("update//Pod/x/web", "false", Some("update"));
        check("delete/apps/Deployment/x/web", "false", Some("delete"));
        for setting in ["", "true", "no"] {
            check("update//Pod/x/web", setting, None);
        }
        check("action/apps/Deployment/restart", "false", None);
        check("update", "false", None);
    }
}
