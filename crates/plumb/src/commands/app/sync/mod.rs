//! `plumb app sync`

mod args;
mod request;
mod run;

pub(super) use args::Args;
pub(super) use run::run;
