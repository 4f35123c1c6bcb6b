//! Editing objects: what each flag writes, and how a change is written without losing the change of another writer.

pub(crate) mod editor;
pub(crate) mod file;
pub(crate) mod json_path;
pub(crate) mod merge;
pub(crate) mod operation;
pub(crate) mod patch;
pub(crate) mod spec;
