//! Every call that plumb answers, with the permission that it needs.

use std::sync::Arc;

use futures::future::{BoxFuture, FutureExt as _};
use plumb_api::Status;
use serde_json::Value;

use super::{
    account, action, app_read, app_set, app_write, certificate, cluster, general, gpg_key, links, logs,
    notification, operation, project, report, repository, resource, revision, server_settings,
    server_side_diff, tree, watch,
};
use crate::call::{Answer, Call};

/// What a caller needs for a call. It is checked before the handler runs.
pub(crate) enum Access {
    /// Nothing: the answer is for everybody.
    Open,
    /// A login.
    Login,
    /// This action on the Application that the request names. Whoever lacks it learns nothing about the Application.
    App(fn(&Value) -> String),
    /// To see the Application that the request names, and then this action on it: the answer shows it.
    AppThen(&'static str),
    /// This action on the thing that the request names.
    On(&'static str, &'static str, fn(&Value) -> String),
    /// A login; the handler shows only what the caller may get.
    Shows,
    /// A login; what is needed follows from stored objects, and the handler asks about this kind of thing. One that does
    /// not is a defect, and its answer is withheld.
    Asks(&'static str),
}

impl Access {
    /// True if a handler that ended well has asked for what it needs. `asked` are the kinds of things that it asked about.
    pub(crate) fn was_asked(&self, asked: &[String]) -> bool {
        match self {
            Self::Asks(resource) => asked.iter().any(|asked| asked == resource),
            Self::Open | Self::Login | Self::App(_) | Self::AppThen(_) | Self::On(..) | Self::Shows => true,
        }
    }
}

type Run = fn(Arc<Call>) -> BoxFuture<'static, Result<Answer, Status>>;

/// One call.
pub(crate) struct Handler {
    pub(crate) path: &'static str,
    pub(crate) access: Access,
    /// True if it changes something: then it is logged with the name of the caller.
    pub(crate) writes: bool,
    pub(crate) run: Run,
}

macro_rules! handlers {
    ($($service:literal { $($method:literal $mode:ident $access:expr => $run:path;)* })*) => {
        &[$($(Handler {
            path: concat!($service, "/", $method),
            access: $access,
            writes: handlers!(@$mode),
            run: |call| $run(call).boxed(),
        },)*)*]
    };
    (@reads) => { false };
    (@writes) => { true };
}

fn get(_: &Value) -> String {
    "get".to_owned()
}

fn update(_: &Value) -> String {
    "update".to_owned()
}

fn sync(_: &Value) -> String {
    "sync".to_owned()
}

/// The right to sync, unless the settings have rollbacks need one of their own.
fn rollback(_: &Value) -> String {
    "rollback".to_owned()
}

/// `update/GROUP/KIND/NAMESPACE/NAME`: the action on one object of an Application.
fn on_object(verb: &str, request: &Value) -> String {
    let text = |field: &str| request.get(field).and_then(Value::as_str).unwrap_or_default();
    let (group, kind) = (text("group"), text("kind"));
    format!("{verb}/{group}/{kind}/{}/{}", text("namespace"), text("resourceName"))
}

/// `action/GROUP/KIND/ACTION`: one action on objects of an Application.
fn on_action(request: &Value) -> String {
    let text = |field: &str| request.get(field).and_then(Value::as_str).unwrap_or_default();
    format!("action/{}/{}/{}", text("group"), text("kind"), text("action"))
}

/// Certificates and keys have no names in permissions.
fn nothing(_: &Value) -> String {
    String::new()
}

fn name(request: &Value) -> String {
    request.get("name").and_then(Value::as_str).unwrap_or_default().to_owned()
}

fn new_project(request: &Value) -> String {
    request.pointer("/project/metadata/name").and_then(Value::as_str).unwrap_or_default().to_owned()
}

/// All calls that plumb answers.
static HANDLERS: &[Handler] = handlers! {
    "version.VersionService" {
        "Version" reads Access::Open => general::version;
    }
    "cluster.SettingsService" {
        "Get" reads Access::Open => server_settings::get;
        "GetPlugins" reads Access::Login => general::plugins;
    }
    "session.SessionService" {
        "Create" reads Access::Open => general::login;
        "GetUserInfo" reads Access::Open => general::user_info;
        "Delete" reads Access::Open => general::logout;
    }
    "account.AccountService" {
        "CanI" reads Access::Login => account::can_i;
        "ListAccounts" reads Access::Shows => account::list;
        "GetAccount" reads Access::Asks("accounts") => account::get;
        "CreateToken" writes Access::Asks("accounts") => account::create_token;
        "DeleteToken" writes Access::Asks("accounts") => account::delete_token;
        "UpdatePassword" writes Access::Asks("accounts") => account::update_password;
    }
    "application.ApplicationService" {
        "List" reads Access::Shows => app_read::list;
        "Get" reads Access::App(get) => app_read::get;
        "Watch" reads Access::Shows => watch::apps;
        "GetApplicationSyncWindows" reads Access::App(get) => app_read::sync_windows;
        "ListLinks" reads Access::App(get) => links::of_app;
        "ListResourceLinks" reads Access::App(get) => links::of_resource;
        "ListResourceEvents" reads Access::App(get) => resource::events;
        "RevisionMetadata" reads Access::App(get) => revision::metadata;
        "RevisionChartDetails" reads Access::App(get) => revision::chart;
        "GetOCIMetadata" reads Access::App(get) => revision::oci;
        "GetManifestsWithFiles" reads Access::App(get) => revision::manifests_with_files;
        "ServerSideDiff" reads Access::App(get) => server_side_diff::diff;
        "ListResourceActions" reads Access::App(get) => action::list;
        "RunResourceAction" writes Access::App(on_action) => action::run;
        "RunResourceActionV2" writes Access::App(on_action) => action::run;
        "Create" writes Access::Asks("applications") => app_write::create;
        "Update" writes Access::Asks("applications") => app_write::update;
        "UpdateSpec" writes Access::App(update) => app_write::update_spec;
        "Patch" writes Access::AppThen("update") => app_write::patch;
        "Delete" writes Access::AppThen("delete") => app_write::delete;
        "Sync" writes Access::AppThen("sync") => operation::sync;
        "Rollback" writes Access::App(rollback) => operation::rollback;
        "TerminateOperation" writes Access::App(sync) => operation::terminate;
        "ResourceTree" reads Access::App(get) => tree::tree;
        "WatchResourceTree" reads Access::App(get) => tree::watch;
        "ManagedResources" reads Access::App(get) => resource::managed;
        "GetManifests" reads Access::App(get) => resource::manifests;
        "GetResource" reads Access::App(get) => resource::get;
        "PatchResource" writes Access::App(|request| on_object("update", request)) => resource::patch;
        "DeleteResource" writes Access::App(|request| on_object("delete", request)) => resource::delete;
        "PodLogs" reads Access::App(get) => logs::pod_logs;
    }
    "project.ProjectService" {
        "List" reads Access::Shows => project::list;
        "Get" reads Access::On("projects", "get", name) => project::get;
        "GetDetailedProject" reads Access::On("projects", "get", name) => project::detailed;
        "GetGlobalProjects" reads Access::On("projects", "get", name) => project::globals;
        "GetSyncWindowsState" reads Access::On("projects", "get", name) => project::sync_windows;
        "ListLinks" reads Access::On("projects", "get", name) => links::of_project;
        "ListEvents" reads Access::On("projects", "get", name) => project::events;
        "Create" writes Access::On("projects", "create", new_project) => project::create;
        "Update" writes Access::On("projects", "update", new_project) => project::update;
        "Delete" writes Access::On("projects", "delete", name) => project::delete;
        "CreateToken" writes Access::Asks("projects") => project::create_token;
        "DeleteToken" writes Access::Asks("projects") => project::delete_token;
    }
    "cluster.ClusterService" {
        "List" reads Access::Shows => cluster::list;
        "Get" reads Access::Asks("clusters") => cluster::get;
        "Create" writes Access::Asks("clusters") => cluster::create;
        "Update" writes Access::Asks("clusters") => cluster::update;
        "Delete" writes Access::Asks("clusters") => cluster::delete;
        "RotateAuth" writes Access::Asks("clusters") => cluster::rotate_auth;
        "InvalidateCache" writes Access::Asks("clusters") => cluster::invalidate_cache;
    }
    "repository.RepositoryService" {
        "List" reads Access::Shows => repository::list;
        "ListRepositories" reads Access::Shows => repository::list;
        "Get" reads Access::Asks("repositories") => repository::get;
        "Create" writes Access::Asks("repositories") => repository::create;
        "CreateRepository" writes Access::Asks("repositories") => repository::create;
        "Update" writes Access::Asks("repositories") => repository::update;
        "UpdateRepository" writes Access::Asks("repositories") => repository::update;
        "Delete" writes Access::Asks("repositories") => repository::delete;
        "DeleteRepository" writes Access::Asks("repositories") => repository::delete;
        "ValidateAccess" reads Access::Asks("repositories") => repository::validate;
        "ListRefs" reads Access::Asks("repositories") => repository::refs;
    }
    "repocreds.RepoCredsService" {
        "ListRepositoryCredentials" reads Access::Shows => repository::list_credentials;
        "CreateRepositoryCredentials" writes Access::Asks("repositories") => repository::create_credentials;
        "UpdateRepositoryCredentials" writes Access::Asks("repositories") => repository::update_credentials;
        "DeleteRepositoryCredentials" writes Access::Asks("repositories") => repository::delete_credentials;
    }
    "applicationset.ApplicationSetService" {
        "Get" reads Access::Asks("applicationsets") => app_set::get;
        "List" reads Access::Shows => app_set::list;
        "Watch" reads Access::Shows => app_set::watch;
        "Create" writes Access::Asks("applicationsets") => app_set::create;
        "Delete" writes Access::Asks("applicationsets") => app_set::delete;
        "Generate" reads Access::Asks("applicationsets") => app_set::generate;
        "ResourceTree" reads Access::Asks("applicationsets") => app_set::tree;
        "ListResourceEvents" reads Access::Asks("applicationsets") => app_set::events;
    }
    "certificate.CertificateService" {
        "ListCertificates" reads Access::On("certificates", "get", nothing) => certificate::list;
        "CreateCertificate" writes Access::On("certificates", "create", nothing) => certificate::create;
        "DeleteCertificate" writes Access::On("certificates", "delete", nothing) => certificate::delete;
    }
    "gpgkey.GPGKeyService" {
        "List" reads Access::On("gpgkeys", "get", nothing) => gpg_key::list;
        "Get" reads Access::On("gpgkeys", "get", nothing) => gpg_key::get;
        "Create" writes Access::On("gpgkeys", "create", nothing) => gpg_key::create;
        "Delete" writes Access::On("gpgkeys", "delete", nothing) => gpg_key::delete;
    }
    "plumb.ReportService" {
        "List" reads Access::Shows => report::list;
    }
    "notification.NotificationService" {
        "ListTriggers" reads Access::Login => notification::triggers;
        "ListServices" reads Access::Login => notification::services;
        "ListTemplates" reads Access::Login => notification::templates;
    }
};

/// The calls that clients of the command line, Terraform and Backstage make.
#[cfg(test)]
const MUST: &str = include_str!("must.txt");

/// The handler of a call.
pub(crate) fn find(path: &str) -> Option<&'static Handler> {
    HANDLERS.iter().find(|handler| handler.path == path)
}

#[cfg(test)]
mod tests {
    use plumb_api::Tables;

    use super::*;

    /// The calls that everybody may make.
    const OPEN: [&str; 5] = [
        "version.VersionService/Version",
        "cluster.SettingsService/Get",
        "session.SessionService/Create",
        "session.SessionService/GetUserInfo",
        "session.SessionService/Delete",
    ];

    #[test]
    fn every_handler_names_its_check() {
        for handler in HANDLERS {
            let is_open = matches!(handler.access, Access::Open);
            assert_eq!(is_open, OPEN.contains(&handler.path), "{}", handler.path);
            assert!(!(is_open && handler.writes), "{} writes without a check", handler.path);
            // A login alone is enough only where the answer says nothing about stored things.
            if matches!(handler.access, Access::Login) {
                assert!(!handler.writes, "{} writes after a login alone", handler.path);
            }
        }
    }

    #[test]
    fn every_handler_is_a_call_of_the_tables() {
        let tables = Tables::get();
        for handler in HANDLERS {
            assert!(tables.method(handler.path).is_some(), "{}", handler.path);
            assert_eq!(
                HANDLERS.iter().filter(|other| other.path == handler.path).count(),
                1,
                "{}",
                handler.path
            );
        }
    }

    #[test]
    fn every_call_of_the_usual_clients_has_a_handler() {
        let missing: Vec<&str> = MUST.lines().filter(|path| find(path).is_none()).collect();
        assert_eq!(missing, Vec::<&str>::new());
        assert_eq!(MUST.lines().count(), 71);
    }

    #[test]
    fn a_handler_that_asked_for_nothing_is_a_defect() {
        let asks = Access::Asks("clusters");
        assert!(!asks.was_asked(&[]) && !asks.was_asked(&["projects".to_owned()]));
        assert!(asks.was_asked(&["clusters".to_owned()]));
    }
}
