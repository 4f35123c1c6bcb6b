//! `plumb fix`

mod application_files;
mod case;
mod cluster;
mod commits;
mod keepers;
mod known;
mod merge_request;
mod offline;
mod others;
mod place;
mod plan;
mod readers;
mod run;
mod show;
mod through;
mod write;

#[cfg(test)]
mod tests;

pub(crate) use run::{Args, run};
