//! The controller of `ApplicationSets`.

mod facts;
mod github_app;
mod decisions;
mod answer;
mod gather;
mod write;
mod run;
mod controller;

pub(crate) use controller::{permits, run_app_sets};
pub(crate) use gather::generate_set;
