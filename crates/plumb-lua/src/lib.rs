//! Health and actions that users write in Lua and keep in `argocd-cm`.
//!
//! [`Scripts`] holds what the settings say; it can be shared between threads. A script is compiled once a thread
//! and runs with fresh globals each time: what one run changes, no other sees. Time, instructions, memory and the
//! size of the answer are limited ([`Limits`]); a script that passes a limit cannot catch that.
//!
//! [`Scripts::list_actions`] and [`Scripts::run_action`] know the users' actions and those that Argo CD has built in
//! (`restart`, `scale` …), which are Rust, not Lua.
//!
//! What a script sees is what Argo CD gives it: `obj`, `actionParams`, the base and `table` libraries,
//! `require("os")` with the clock only; with `useOpenLibs` also `string`, `math`, `coroutine` and `os` (the clock
//! only). Left out on purpose, though Argo CD has them: `io`, `debug`, `os.execute` and the like, `dofile`, `loadfile`,
//! `load`, `module`, `getfenv`, `setfenv`, `newproxy`: a health script has no use for files, programs or the
//! globals of others.

mod action;
mod builtin;
mod convert;
mod error;
mod globals;
mod health;
mod sandbox;
mod scripts;
#[cfg(test)]
mod tests;

pub use action::{Action, Impact, Operation, Param, Write};
pub use error::{Error, Limit};
pub use sandbox::{Libraries, Limits, Sandbox};
pub use scripts::{Actions, Asks, Customization, Problem, Scripts};
