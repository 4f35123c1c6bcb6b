//! `plumb doctor --secrets`

mod certificates;
mod gather;
mod run;

pub(super) use run::{Wanted, run};
