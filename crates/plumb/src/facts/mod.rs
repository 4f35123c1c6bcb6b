//! What is known about all apps: from the reports of plumb's engine where one runs, else judged on this machine.

mod args;
mod engine;
mod known;
mod progress;
mod reports;
mod survey;

pub(crate) use args::JudgeArgs;
pub(crate) use known::{Known, KnownApp, known};
pub(crate) use reports::from_status;
