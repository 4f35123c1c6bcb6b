//! `plumb seal`

mod args;
mod controller;
mod input;
mod encrypt;
mod files;
mod merge;
mod re_encrypt;
mod run;
mod validate;

pub(crate) use args::Args;
pub(crate) use run::run;
