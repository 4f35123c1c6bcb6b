//! What is known about all apps: from the reports of plumb's engine where one runs, else judged on this machine.

mod args;
mod engine;
mod known;
mod progress;
mod reports;
mod survey;

pub(crate) use args::JudgeArgs;
pub(crate) use engine::{all_said_by_engine, engine_runs, said_by_engine};
pub(crate) use known::{Known, known};
pub(crate) use reports::from_status;
pub(crate) use survey::survey_objects;
