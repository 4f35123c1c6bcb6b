//! Deletes Applications and projects.

pub(crate) mod app;
pub(crate) mod project;
