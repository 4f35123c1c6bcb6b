//! `plumb lint`

mod format;
mod targets;
mod run;

pub(crate) use run::{Args, run};
