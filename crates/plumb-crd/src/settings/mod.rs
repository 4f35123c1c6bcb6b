//! The settings of an Argo CD installation, read from its `ConfigMap`s and Secrets.
//!
//! Reading never fails as a whole. A value that cannot be parsed keeps its default and is reported with its key, so that
//! one typo in `argocd-cm` does not stop every app.

mod argocd_cm;
mod cluster;
mod controller;
mod customization;
mod plugin;
mod problem;
mod repository;
mod secret;
#[cfg(test)]
mod tests;
mod unused;
mod value;

pub use argocd_cm::{
    CompareSettings, ConfigData, GlobalProject, Impersonation, KustomizeVersion, ReconciliationSettings,
    RespectRbac, Settings, StatusScope, StuckAfter, TRACKING_METHOD, ToolSettings, WebhookSettings,
};
pub use cluster::{ClusterAuth, ClusterSecret, ClusterTls, ExecConfig};
pub use controller::{AppSetSettings, ControllerSettings, SelfHealSettings};
pub use customization::{Customization, CustomizationKey, Customizations, IgnoredFields, KnownTypeField};
pub(crate) use plugin::plugin_schema;
pub use plugin::{PLUGINS_CONFIG_MAP, PluginDeclaration, read_plugins};
pub use problem::SettingsProblem;
pub use repository::{
    Credentials, DECLARES_ADDRESS, GithubApp, Repositories, Repository, RepositoryKind, TlsClient,
};
pub use secret::{SECRET_TYPE, SecretData, SecretText, WebhookSecrets, name_hash};
pub use unused::without_effect;
pub(crate) use value::ValueForm;
