//! `plumb fix`

mod application_files;
mod bases;
mod case;
mod cluster;
mod commits;
mod keepers;
mod merge_request;
mod offline;
mod place;
mod plan;
mod run;
mod show;
mod through;
mod write;

pub(crate) use run::{Args, run};
