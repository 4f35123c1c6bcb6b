//! The controller of `ApplicationSets`.

mod facts;
mod gather;
mod write;
mod run;
mod controller;

pub(crate) use controller::run_app_sets;
