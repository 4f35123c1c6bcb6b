//! One file per command: its arguments, its help, what it does.
//!
//! A command is an `Args` whose doc comments are its help (with an example), and
//! `async fn run(context: &Context, args: &Args) -> Result<ExitCode, CommandError>`. It speaks through
//! `context.out`, asks through `context.client()`, and fails with a [`CommandError`](crate::error::CommandError)
//! that says what to do next. It is named in the enum above it and has a golden file in `tests/cli`.

pub(crate) mod app;
pub(crate) mod cluster;
pub(crate) mod completion;
pub(crate) mod drift;
pub(crate) mod install;
pub(crate) mod jsonnet_worker;
pub(crate) mod man;
pub(crate) mod pause;
pub(crate) mod proj;
pub(crate) mod render;
pub(crate) mod repo;
pub(crate) mod run;
pub(crate) mod undo;
pub(crate) mod version;
