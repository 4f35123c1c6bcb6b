//! One file per command: its arguments, its help, what it does.
//!
//! A command is an `Args` whose doc comments are its help (with an example), and
//! `async fn run(context: &Context, args: &Args) -> Result<ExitCode, CommandError>`. It speaks through
//! `context.out`, asks through `context.client()`, and fails with a [`CommandError`](crate::error::CommandError)
//! that says what to do next. It is named in the enum above it and has a golden file in `tests/cli`.

pub(crate) mod absent;
pub(crate) mod app;
pub(crate) mod cluster;
pub(crate) mod completion;
mod confirm;
pub(crate) mod drift;
mod editing;
pub(crate) mod install;
mod json;
pub(crate) mod jsonnet_worker;
pub(crate) mod man;
mod masks;
pub(crate) mod pause;
pub(crate) mod proj;
pub(crate) mod render;
pub(crate) mod repo;
pub(crate) mod run;
mod secrets;
pub(crate) mod undo;
pub(crate) mod version;
mod watching;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// The text in a base64 text, if it is one.
fn base64_decode(text: &str) -> Option<String> {
    String::from_utf8(STANDARD.decode(text.trim()).ok()?).ok()
}

/// Bytes as base64 text.
fn base64_encode(bytes: &[u8]) -> String {
    STANDARD.encode(bytes)
}
