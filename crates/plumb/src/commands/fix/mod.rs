//! `plumb fix`

mod application_files;
mod case;
mod cluster;
mod commits;
mod merge_request;
mod offline;
mod place;
mod plan;
mod run;
mod show;
mod through;
mod write;

pub(crate) use run::{Args, run};
