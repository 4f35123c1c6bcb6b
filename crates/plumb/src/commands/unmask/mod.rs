//! `plumb unmask`

mod before;
mod run;
mod show;

pub(crate) use run::{Args, run};
