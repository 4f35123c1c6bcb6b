//! Who uses the page, and what that caller may do.

use std::sync::Arc;

use plumb_api::Status;
use plumb_core::app::AppId;
use plumb_core::object::ObjectKey;
use plumb_crd::Application;
use plumb_page::Verb;
use serde_json::{Map, Value, json};

use crate::call::{Shared, app_object, is_in_project};
use crate::session::Identity;

/// What the page may do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PageMode {
    /// It shows and acts.
    #[default]
    On,
    /// It shows, and offers commands to copy.
    ReadOnly,
    /// There is no page.
    Off,
}

/// The caller of one request, or of a stream.
#[derive(Clone)]
pub(super) struct PageCaller {
    pub(super) shared: Arc<Shared>,
    pub(super) identity: Identity,
    pub(super) mode: PageMode,
}

impl PageCaller {
    /// May the caller do this to an Application?
    pub(super) fn may(&self, action: &str, project: &str, app: &AppId) -> bool {
        self.allows("applications", action, project, app)
    }

    fn allows(&self, resource: &str, action: &str, project: &str, app: &AppId) -> bool {
        let object = app_object(project, &app.namespace, &app.name, self.shared.state.namespace());
        self.shared.state.allows(&self.identity.access, resource, action, &object)
    }

    pub(super) fn may_see(&self, project: &str, app: &AppId) -> bool {
        self.may("get", project, app) && is_in_project(&self.shared.state, project, &app.namespace)
    }

    /// An Application that the caller may see, whole. One that is hidden and one that is missing give the same answer.
    pub(super) fn app(&self, id: &AppId) -> Result<Application, Status> {
        let hidden = || Status::not_found(format!("there is no app {id}, or you may not see it"));
        let away = || Status::unavailable("this replica does not lead yet; try again");
        let leader = self.shared.handle.leader().ok_or_else(away)?;
        let value = leader.app(&id.namespace, &id.name).filter(|_| leader.permits_namespace(&id.namespace));
        drop(leader);
        let app = value.and_then(|value| Application::from_json(&value).ok()).ok_or_else(hidden)?;
        if self.may_see(app.project(), id) { Ok(app) } else { Err(hidden()) }
    }

    /// Why the caller may not use a verb on an app or on one of its objects; `None` if it is permitted. A page that is
    /// read-only shows the plan nevertheless, for its commands.
    pub(super) fn refusal(
        &self,
        verb: Verb,
        app: &Application,
        object: Option<&ObjectKey>,
    ) -> Option<String> {
        let action = verb.action(object);
        if self.may(&action, app.project(), &app.id()) {
            return None;
        }
        Some(format!("you may not: `applications, {action}` is missing in argocd-rbac-cm"))
    }

    /// What the caller may do with an app: for each verb the reason why not, or null. What is permitted for one object and
    /// not for another is not known here: the plan says it.
    pub(super) fn can(&self, app: &Application) -> Value {
        let verbs = Verb::ALL.into_iter().map(|verb| {
            let is_of_object = matches!(verb, Verb::Restart | Verb::DeleteObject);
            let refusal = if is_of_object { None } else { self.refusal(verb, app, None) };
            (verb.name().to_owned(), json!(refusal))
        });
        let mut can: Map<String, Value> = verbs.collect();
        let logs = self.allows("logs", "get", app.project(), &app.id());
        let missing = "you may not read logs: `logs, get` is missing in argocd-rbac-cm";
        can.insert("logs".to_owned(), if logs { Value::Null } else { json!(missing) });
        Value::Object(can)
    }
}
