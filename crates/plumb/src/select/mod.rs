//! Selecting the Applications, projects and objects of a command.

pub(crate) mod app;
pub(crate) mod apps;
pub(crate) mod class;
pub(crate) mod namespaces;
pub(crate) mod object;
pub(crate) mod project;
pub(crate) mod resource_filter;
pub(crate) mod revisions;
