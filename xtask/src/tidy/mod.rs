//! The repository's rules as checks. Each rule is one file (or folder) with one function `check` that returns
//! the violations. `command` runs the rules and subtracts the baseline.

mod arrows;
mod baseline;
mod columns;
mod command;
mod dependencies;
mod file_length;
mod function_length;
mod generated;
mod links;
mod mod_files;
mod module_names;
mod modules;
mod promises;
mod reachable;
mod reading;
mod summary;
mod violation;
mod visibility;
mod words;

pub(crate) use command::{Args, command, run};
