//! The controller of `ApplicationSets`.

mod facts;
mod github_app;
mod gather;
mod write;
mod run;
mod controller;

pub(crate) use controller::run_app_sets;
