//! Jsonnet: what it imports is found here, evaluating it is left to a process of its own ([`worker`]).

mod imports;
mod worker;

use std::ffi::OsString;
use std::path::Path;

use plumb_core::app::{DirectoryOptions, JsonnetVariable};
use plumb_core::desired::{Origin, RenderedManifest};
use plumb_core::source::{EntryKind, RepoPath, follow};
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use worker::{WorkerError, jsonnet_worker};

use crate::readset::ReadSet;
use crate::sandbox::{Run, Workshop};
use crate::{BuildEnvironment, RenderError, RenderRequest, export};

/// How Jsonnet files are evaluated.
pub(crate) struct JsonnetPlan {
    search: Vec<RepoPath>,
    ext_vars: Vec<Variable>,
    tlas: Vec<Variable>,
}

/// What the worker is told, as a file.
#[derive(Serialize, Deserialize)]
struct WorkerRequest {
    /// Directory with the files of the source.
    root: String,
    /// Where imports are looked for besides the importing file's directory; the last one first.
    search: Vec<String>,
    ext_vars: Vec<Variable>,
    tlas: Vec<Variable>,
    /// The files to evaluate.
    files: Vec<String>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Variable {
    name: String,
    value: String,
    code: bool,
}

/// Settles variables and search paths, and adds what the files import to the read set.
pub(crate) fn plan(
    directory: &RepoPath,
    options: &DirectoryOptions,
    files: &[RepoPath],
    environment: &BuildEnvironment,
    set: &mut ReadSet,
) -> Result<JsonnetPlan, RenderError> {
    let mut search = vec![directory.clone()];
    for library in &options.libs {
        let bad = |reason: String| RenderError::Option { option: "directory.jsonnet.libs", reason };
        let path =
            RepoPath::parse(library.trim_start_matches('/')).map_err(|error| bad(error.to_string()))?;
        search.push(path);
    }
    let variables = |list: &[JsonnetVariable]| {
        list.iter()
            .map(|variable| Variable {
                name: variable.name.clone(),
                value: environment.expand(&variable.value),
                code: variable.code,
            })
            .collect()
    };
    imports::add_all(files, &search, set)?;
    Ok(JsonnetPlan { search, ext_vars: variables(&options.ext_vars), tlas: variables(&options.tlas) })
}

impl JsonnetPlan {
    /// Everything but the files, for the key of the cache.
    pub(crate) fn parameters(&self) -> String {
        format!("{:?}", (&self.search, &self.ext_vars, &self.tlas))
    }

    /// Evaluates the files, in order: the manifests of each.
    pub(crate) fn render(
        &self,
        files: &[RepoPath],
        request: &RenderRequest,
        set: &ReadSet,
        workshop: &Workshop<'_>,
    ) -> Result<Vec<Vec<RenderedManifest>>, RenderError> {
        let limits = workshop.limits;
        let scratch = workshop.scratch()?;
        let Some((program, arguments)) = workshop.tools.jsonnet.split_first() else {
            let reason = "no program that evaluates Jsonnet is configured".to_owned();
            return Err(RenderError::Option { option: "jsonnet", reason });
        };
        export::export(set, "", &scratch.repository(), limits)?;
        let told = WorkerRequest {
            root: scratch.repository().display().to_string(),
            search: self.search.iter().map(|path| path.as_str().to_owned()).collect(),
            ext_vars: self.ext_vars.clone(),
            tlas: self.tlas.clone(),
            files: files.iter().map(|path| path.as_str().to_owned()).collect(),
        };
        let request_file = scratch.path().join("jsonnet.json");
        let text =
            serde_json::to_vec(&told).map_err(|error| RenderError::Scratch { reason: error.to_string() })?;
        std::fs::write(&request_file, text).map_err(|error| RenderError::scratch(&error))?;
        let first = files.first().cloned().unwrap_or_default();
        let run = Run {
            program,
            arguments: arguments.iter().map(OsString::from).chain([request_file.into()]).collect(),
            directory: &scratch.repository(),
            environment: Vec::new(),
            helper: None,
            scratch: scratch.path(),
            network: false,
            limits,
        };
        let output = workshop.sandbox.run(&run).map_err(|source| RenderError::Tool {
            tool: "jsonnet",
            path: first.clone(),
            source,
        })?;
        let values: Vec<Value> = serde_json::from_slice(&output)
            .map_err(|source| RenderError::Json { file: first.to_string(), source })?;
        Ok(values.into_iter().zip(files).map(|(value, file)| manifests(value, file, request.index)).collect())
    }
}

/// An object is one manifest, a list is many.
fn manifests(value: Value, file: &RepoPath, source: usize) -> Vec<RenderedManifest> {
    let origin = Origin { source, file: file.as_str().to_owned(), line: 1, verbatim: false };
    let values = match value {
        Value::Array(items) => items,
        Value::Null => Vec::new(),
        one @ (Value::Object(_) | Value::Bool(_) | Value::Number(_) | Value::String(_)) => vec![one],
    };
    values.into_iter().map(|value| RenderedManifest { value, origin: Some(origin.clone()) }).collect()
}

/// Where an import leads: beside the importing file, else in the search path from its end.
fn resolve_import(
    from: &RepoPath,
    text: &str,
    search: &[RepoPath],
    is_file: impl Fn(&RepoPath) -> bool,
) -> Option<RepoPath> {
    std::iter::once(&from.parent())
        .chain(search.iter().rev())
        .filter_map(|directory| directory.join(text).ok())
        .find(is_file)
}

fn is_file(set: &ReadSet, path: &RepoPath) -> bool {
    set.files("").is_some_and(|files| {
        follow(files.as_ref(), path)
            .is_ok_and(|(_, kind)| matches!(kind, EntryKind::File | EntryKind::Executable))
    })
}

fn is_file_on_disk(root: &Path, path: &RepoPath) -> bool {
    root.join(path.as_str()).is_file()
}
