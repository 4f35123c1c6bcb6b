//! `plumb doctor`

mod format;
mod offline;
mod run;
mod secrets;

pub(crate) use run::{Args, run};
