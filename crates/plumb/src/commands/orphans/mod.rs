//! `plumb orphans`

mod cluster;
mod dump;
mod watch;
mod delete;
mod run;

pub(crate) use run::{Args, run};
