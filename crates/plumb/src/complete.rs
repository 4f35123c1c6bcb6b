//! The names that shells complete.

use std::ffi::OsStr;
use std::time::Duration;

use clap::Parser as _;
use clap_complete::engine::{ArgValueCompleter, CompletionCandidate};
use plumb_kube::{Resource, Selection};

use crate::context::Context;
use crate::error::CommandError;
use crate::kinds;

/// The variable with which a completion script calls this program.
pub(crate) const VARIABLE: &str = "PLUMB_COMPLETE";

/// A user who presses TAB does not wait longer.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Completes the names of Applications.
pub(crate) fn apps() -> ArgValueCompleter {
    ArgValueCompleter::new(|typed: &OsStr| names(typed, "Application"))
}

/// Completes the names of projects.
pub(crate) fn projects() -> ArgValueCompleter {
    ArgValueCompleter::new(|typed: &OsStr| names(typed, "AppProject"))
}

/// The names of a kind's objects that begin as typed. Any error means no candidates.
fn names(typed: &OsStr, kind: &str) -> Vec<CompletionCandidate> {
    let Some(typed) = typed.to_str() else { return Vec::new() };
    let Some(resource) = kinds::known().into_iter().find(|known| known.gvk.kind == kind) else {
        return Vec::new();
    };
    let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_all().build() else {
        return Vec::new();
    };
    let found = runtime.block_on(async { tokio::time::timeout(TIMEOUT, list(&resource)).await });
    let names = found.ok().and_then(Result::ok).unwrap_or_default();
    names.into_iter().filter(|name| name.starts_with(typed)).map(CompletionCandidate::new).collect()
}

async fn list(resource: &Resource) -> Result<Vec<String>, CommandError> {
    let context = typed_context();
    let client = context.client().await?;
    let selection = Selection { namespace: Some(context.namespace().to_owned()), ..Selection::default() };
    let found = client
        .list_metadata(resource, &selection)
        .await
        .map_err(|error| CommandError::api("list names", error))?;
    Ok(found.iter().filter_map(|object| object.name().map(str::to_owned)).collect())
}

/// The connection options of the line that is being completed.
fn typed_context() -> Context {
    #[derive(Debug, clap::Parser)]
    #[command(ignore_errors = true, disable_help_flag = true, disable_version_flag = true)]
    struct Line {
        #[command(flatten)]
        connection: crate::config::ConnectionArgs,
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        _rest: Vec<std::ffi::OsString>,
    }
    let wanted = ["--kubeconfig", "--context", "--kube-context", "--namespace", "-n", "--control-namespace"];
    let mut words: Vec<std::ffi::OsString> = vec!["plumb".into()];
    let mut line = std::env::args_os().skip_while(|word| word != "--").skip(1).peekable();
    while let Some(word) = line.next() {
        let text = word.to_string_lossy();
        if wanted.contains(&text.as_ref()) {
            words.push(word);
            words.extend(line.next());
        } else if wanted.iter().any(|option| text.starts_with(&format!("{option}="))) {
            words.push(word);
        }
    }
    let line = Line::try_parse_from(words);
    let connection = line.map_or_else(|_| crate::config::ConnectionArgs::default(), |line| line.connection);
    Context::new(connection, crate::context::NamespaceMeans::ControlPlane, false)
}
