//! `plumb app`: argocd's verbs for reading, changing and syncing Applications.

mod actions;
mod confirm_deletion;
mod create;
mod delete;
mod delete_resource;
mod diff_data;
mod diff;
mod edit;
mod get;
mod get_resource;
mod history;
mod list;
mod logs;
mod manifests;
mod object_actions;
mod patch;
mod patch_resource;
mod plan;
mod resources;
mod rollback;
mod set;
mod sources;
mod sync;
mod terminate_op;
mod unset;
mod verbs;
mod wait;

pub(crate) use verbs::{Args, run};
