//! Options, settings and projects.

pub(crate) mod app_namespaces;
pub(crate) mod load;
pub(crate) mod options;
pub(crate) mod projects;
pub(crate) mod settings;
pub(crate) mod store;
