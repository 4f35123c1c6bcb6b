//! `plumb doctor`

mod format;
mod offline;
mod run;

pub(crate) use run::{Args, run};
