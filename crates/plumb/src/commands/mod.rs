//! One file per verb: its arguments, its help, and what it does. Code that several verbs use is in the modules above.
//!
//! A command is an `Args` whose doc comments are its help (with an example), and
//! `async fn run(context: &Context, args: &Args) -> Result<ExitCode, CommandError>`. It prints through
//! `context.out`, reads through `context.client()`, and fails with a [`CommandError`](crate::error::CommandError)
//! that says what to do next. It is listed in the enum of `verbs.rs` or `cli.rs` and has a golden file in `tests/cli`.

pub(crate) mod account;
pub(crate) mod admin;
pub(crate) mod adopt;
pub(crate) mod app;
pub(crate) mod appset;
pub(crate) mod cert;
pub(crate) mod cluster;
pub(crate) mod completion;
pub(crate) mod contexts;
pub(crate) mod diff;
pub(crate) mod doctor;
pub(crate) mod drift;
pub(crate) mod fix;
pub(crate) mod gpg;
pub(crate) mod install;
pub(crate) mod jsonnet_worker;
pub(crate) mod lint;
pub(crate) mod login;
pub(crate) mod man;
pub(crate) mod mcp;
pub(crate) mod migrate;
pub(crate) mod orphans;
pub(crate) mod pause;
pub(crate) mod proj;
pub(crate) mod render;
pub(crate) mod repo;
pub(crate) mod repocreds;
pub(crate) mod run;
pub(crate) mod schema;
pub(crate) mod seal;
pub(crate) mod support_bundle;
pub(crate) mod undo;
pub(crate) mod unmask;
pub(crate) mod version;
