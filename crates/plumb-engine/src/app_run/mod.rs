//! One run of one app: what it works with, and how it compares.

pub(crate) mod compare;
pub(crate) mod gather;
mod restore;
mod run;

pub(crate) use restore::reported_jobs;
pub(crate) use run::{AppInputs, AppRun};
