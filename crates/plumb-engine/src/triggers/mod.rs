//! What requests a run of an app: one file per trigger.

pub(crate) mod applications;
pub(crate) mod config_maps;
mod first_list;
pub(crate) mod initial_lists;
pub(crate) mod objects;
pub(crate) mod poll;
pub(crate) mod projects;
pub(crate) mod reports;
pub(crate) mod schemas;
pub(crate) mod secrets;
mod stream;
pub(crate) mod sync_windows;
pub(crate) mod time_travel;
