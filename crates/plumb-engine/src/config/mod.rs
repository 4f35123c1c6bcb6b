//! Settings and projects, as the cluster holds them.

pub(crate) mod projects;
pub(crate) mod settings;
pub(crate) mod store;
