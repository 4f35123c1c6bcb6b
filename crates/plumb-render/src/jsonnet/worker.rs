//! The process that evaluates Jsonnet. It reads only the request file and the directory that the request names.

use std::cell::RefCell;
use std::collections::HashMap;
use std::fmt::Display;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use jrsonnet_evaluator::async_import::{AsyncImportResolver, ResolvedImportResolver, async_import};
use jrsonnet_evaluator::manifest::JsonFormat;
use jrsonnet_evaluator::tla::TlaArg;
use jrsonnet_evaluator::trace::{CompactFormat, PathResolver, TraceFormat as _};
use jrsonnet_evaluator::{AsPathLike, IStr, SourcePath, SourceVirtual, State, Val, apply_tla, stack};
use jrsonnet_stdlib::ContextInitializer;
use plumb_core::source::RepoPath;

use super::imports::resolve_import;
use super::protocol::WorkerRequest;

/// The stack limit of the Go implementation.
const MAX_STACK: usize = 500;

/// Why evaluation failed, as shown to the user.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct WorkerError(String);

/// Evaluates the files that the request names and prints one JSON list with an entry per Jsonnet file. It runs in a
/// separate process, started by the command in [`crate::Tools::jsonnet`].
pub fn jsonnet_worker(request: &Path, output: &mut dyn Write) -> Result<(), WorkerError> {
    let failed = |error: &dyn Display| WorkerError(error.to_string());
    let text = std::fs::read(request).map_err(|error| failed(&error))?;
    let request: WorkerRequest = serde_json::from_slice(&text).map_err(|error| failed(&error))?;
    stack::set_stack_depth_limit(MAX_STACK);
    let mut results = Vec::with_capacity(request.files.len());
    for file in &request.files {
        results.push(evaluate(&request, file)?);
    }
    output.write_all(format!("[{}]", results.join(",")).as_bytes()).map_err(|error| failed(&error))
}

/// One file to JSON.
fn evaluate(request: &WorkerRequest, file: &str) -> Result<String, WorkerError> {
    let explained = |error: jrsonnet_evaluator::Error| {
        let format = CompactFormat { resolver: PathResolver::FileName, max_trace: 8, padding: 2 };
        let text = format.format(&error).unwrap_or_else(|_| error.to_string());
        WorkerError(format!("{file}: {}", text.replace("virtual:", "")))
    };
    let context = ContextInitializer::new(PathResolver::FileName);
    let variables = context.clone();
    let mut builder = State::builder();
    builder.context_initializer(context).import_resolver(ResolvedImportResolver::new());
    let state = builder.build();
    let _entered = state.enter();
    for variable in &request.ext_vars {
        let name = IStr::from(variable.name.as_str());
        if variable.code {
            let value = state.evaluate_snippet(format!("<extVar {name}>"), variable.value.as_str());
            variables.add_ext_var(name, value.map_err(explained)?);
        } else {
            variables.add_ext_str(name, variable.value.as_str().into());
        }
    }
    #[expect(
        clippy::mutable_key_type,
        reason = "the evaluator's own string type, which it uses as key itself"
    )]
    let mut arguments: HashMap<IStr, TlaArg> = HashMap::new();
    for variable in &request.tlas {
        let argument = if variable.code {
            let value = state.evaluate_snippet(format!("<tla {}>", variable.name), variable.value.as_str());
            TlaArg::Val(value.map_err(explained)?)
        } else {
            TlaArg::String(variable.value.as_str().into())
        };
        arguments.insert(variable.name.as_str().into(), argument);
    }
    let files = Files::new(request)?;
    let entry = ready(async_import(state.clone(), files, &file))?;
    let value: Val = state.import_resolved(entry).map_err(explained)?;
    let value = apply_tla(&arguments, value).map_err(explained)?;
    value.manifest(JsonFormat::minify()).map_err(explained)
}

/// Imports inside the directory, by paths that cannot leave it.
struct Files {
    root: PathBuf,
    search: Vec<RepoPath>,
    /// Bytes that may still be read.
    budget: RefCell<u64>,
}

impl Files {
    fn new(request: &WorkerRequest) -> Result<Self, WorkerError> {
        let search: Result<_, _> = request.search.iter().map(|path| RepoPath::parse(path)).collect();
        let search = search.map_err(|error| WorkerError(error.to_string()))?;
        Ok(Self { root: PathBuf::from(&request.root), search, budget: RefCell::new(256 << 20) })
    }
}

impl AsyncImportResolver for Files {
    type Error = WorkerError;

    async fn resolve_from(
        &self,
        from: &SourcePath,
        path: &dyn AsPathLike,
    ) -> Result<SourcePath, WorkerError> {
        let path = path.as_path();
        let text = path.as_ref().to_string_lossy();
        let importing = from.downcast_ref::<SourceVirtual>().map(|source| source.0.to_string());
        let found = match &importing {
            // The file that was asked for.
            None => RepoPath::parse(&text).ok().filter(|path| is_file_on_disk(&self.root, path)),
            Some(importing) => {
                let importing = RepoPath::parse(importing).map_err(|error| WorkerError(error.to_string()))?;
                resolve_import(&importing, &text, &self.search, |path| is_file_on_disk(&self.root, path))
            }
        };
        let found = found.ok_or_else(|| {
            let importing = importing.unwrap_or_default();
            WorkerError(format!("{importing}: import `{text}` is not found in the repository"))
        })?;
        Ok(SourcePath::new(SourceVirtual(found.as_str().into())))
    }

    async fn load_file_contents(&self, resolved: &SourcePath) -> Result<Vec<u8>, WorkerError> {
        let Some(source) = resolved.downcast_ref::<SourceVirtual>() else {
            return Err(WorkerError(format!("{resolved}: not a file")));
        };
        let content = std::fs::read(self.root.join(source.0.as_str()))
            .map_err(|error| WorkerError(format!("{}: {error}", source.0)))?;
        let mut budget = self.budget.borrow_mut();
        *budget = budget
            .checked_sub(content.len() as u64)
            .ok_or_else(|| WorkerError(format!("{}: too many bytes are imported", source.0)))?;
        Ok(content)
    }
}

fn is_file_on_disk(root: &Path, path: &RepoPath) -> bool {
    root.join(path.as_str()).is_file()
}

/// Polls once: no import here ever waits.
fn ready<T>(future: impl Future<Output = Result<T, WorkerError>>) -> Result<T, WorkerError> {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(result) => result,
        Poll::Pending => Err(WorkerError("import did not finish".to_owned())),
    }
}
