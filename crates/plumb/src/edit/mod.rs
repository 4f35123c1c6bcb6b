//! Changing objects: which JSON a flag writes, and how it gets into the cluster without losing another writer's change.

pub(crate) mod editor;
pub(crate) mod file;
pub(crate) mod json_path;
pub(crate) mod merge;
pub(crate) mod operation;
pub(crate) mod patch;
pub(crate) mod spec;
