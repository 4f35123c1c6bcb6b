//! Health checks and actions that users write in Lua in `argocd-cm`.
//!
//! [`Scripts`] holds the scripts of the settings and can be shared between threads. A script is compiled once per thread
//! and gets fresh globals for each run, so one run cannot affect another. Time, instructions, memory and the size of the
//! answer are limited ([`Limits`]); a script cannot continue after it exceeds a limit.
//!
//! [`Scripts::list_actions`] and [`Scripts::run_action`] cover the users' actions and those that Argo CD has built in
//! (`restart`, `scale` …). The built-in ones are Rust, not Lua.
//!
//! A script gets what Argo CD gives it: `obj`, `actionParams`, the base and `table` libraries, and `require("os")` with
//! the clock only. With `useOpenLibs` it also gets `string`, `math`, `coroutine` and `os` (the clock only). Unlike in
//! Argo CD, there is no `io`, `debug`, `os.execute` and similar, `dofile`, `loadfile`, `load`, `module`, `getfenv`,
//! `setfenv` or `newproxy`: a health script needs no files, programs or globals of other scripts.
//!
//! A module uses only modules that are listed above it.

mod error;
mod limits;
mod convert;
mod globals;
mod sandbox;
mod action;
mod health;
mod builtin;
mod scripts;
#[cfg(test)]
mod tests;

pub use action::{Action, Impact, Operation, Param, Write};
pub use error::{Error, Limit};
pub use limits::{Libraries, Limits};
pub use sandbox::Sandbox;
pub use scripts::{Actions, Asks, Customization, Problem, Scripts};
