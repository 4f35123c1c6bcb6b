//! What plumb knows about each Application between two runs.

pub(crate) mod claims;
pub(crate) mod compressed_set;
pub(crate) mod conditions;
pub(crate) mod context;
pub(crate) mod deleting_projects;
pub(crate) mod followed_commits;
pub(crate) mod large_apps;
pub(crate) mod previous_report;
pub(crate) mod registry;
pub(crate) mod requests;
pub(crate) mod shown_text;
pub(crate) mod snapshot;
