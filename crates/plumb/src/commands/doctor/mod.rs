//! `plumb doctor`

mod format;
mod offline;
mod reports;
mod run;

pub(crate) use run::{Args, run};
