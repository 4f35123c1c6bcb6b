//! Reads Applications, projects, settings and Secrets with any content. Shared by a fuzz target and by a test of
//! plumb-crd that needs no fuzzer.

use plumb_core::ignore::IgnoreRules;
use plumb_core::project::Project;
use plumb_crd::settings::{
    ClusterSecret, ConfigData, Repository, SecretData, Settings, WebhookSecrets, without_effect,
};
use plumb_crd::{AppProject, Application, to_app, to_operation, to_project_rules};
use serde_json::Value;

/// Any bytes as an object, of each kind.
pub(crate) fn any_bytes(bytes: &[u8]) {
    let Ok(object) = serde_json::from_slice::<Value>(bytes) else { return };
    read_application(&object);
    read_project(&object);
    read_settings(&object);
    if let Ok((secret, _)) = SecretData::read(&object) {
        read_secret(&secret);
    }
}

/// Any object as an Application.
pub(crate) fn read_application(object: &Value) {
    let _ = Application::id_of(object);
    let Ok(application) = Application::from_json(object) else { return };
    let _ = application.spec.normalized();
    let _ = application.to_json();
    if let Some(operation) = &application.operation {
        let _ = to_operation(operation);
    }
    if let Ok(app) = to_app(&application) {
        let _ = IgnoreRules::compile(app.ignore_differences);
    }
}

/// Any object as a project.
pub(crate) fn read_project(object: &Value) {
    if let Ok(project) = AppProject::from_json(object) {
        let (rules, _) = to_project_rules(&project);
        let (project, _) = Project::compile(&rules);
        let _ = project.permits_source("https://git.example.com/a.git");
    }
}

/// Any map as the settings, in both of their places.
pub(crate) fn read_settings(object: &Value) {
    let Value::Object(map) = object else { return };
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let data: ConfigData = map.iter().map(|(key, value)| (key.clone(), text(value))).collect();
    let (settings, _) = Settings::read(&data, &data);
    let _ = IgnoreRules::compile(settings.customizations.ignore_rules(settings.compare.ignore_status));
    let _ = without_effect(&data, &data);
}

/// Any Secret as one of a repository, of a cluster and of webhooks.
pub(crate) fn read_secret(secret: &SecretData) {
    let _ = Repository::read(secret);
    let _ = ClusterSecret::read(secret);
    let _ = WebhookSecrets::read(secret);
}
