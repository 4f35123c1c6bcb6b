//! Evaluates the Jsonnet files of a directory.

use std::ffi::OsString;

use plumb_core::app::{DirectoryOptions, JsonnetVariable};
use plumb_core::desired::{Origin, RenderedManifest};
use plumb_core::source::RepoPath;
use serde_json::Value;

use super::imports;
use super::protocol::{Variable, WorkerRequest};
use crate::build_env::BuildEnvironment;
use crate::error::RenderError;
use crate::export;
use crate::parse;
use crate::read_set::ReadSet;
use crate::request::RenderRequest;
use crate::run_context::RunContext;
use crate::sandbox::{Hidden, ToolRun};

/// How Jsonnet files are evaluated.
pub(crate) struct JsonnetPlan {
    search: Vec<RepoPath>,
    ext_vars: Vec<Variable>,
    tlas: Vec<Variable>,
}

/// Fixes variables and search paths, and adds what the files import to the read set.
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
    /// Everything but the files, for the cache key.
    pub(crate) fn parameters(&self) -> String {
        format!("{:?}", (&self.search, &self.ext_vars, &self.tlas))
    }

    /// Evaluates the files, in order: the manifests of each.
    pub(crate) fn render(
        &self,
        files: &[RepoPath],
        request: &RenderRequest,
        set: &ReadSet,
        context: &RunContext<'_>,
    ) -> Result<Vec<Vec<RenderedManifest>>, RenderError> {
        let limits = context.limits;
        let scratch = context.scratch()?;
        let Some((program, arguments)) = context.tools.jsonnet.split_first() else {
            let reason = "no Jsonnet program is configured".to_owned();
            return Err(RenderError::Option { option: "jsonnet", reason });
        };
        export::export(set, "", &scratch.repository(), context.disk)?;
        let request_content = WorkerRequest {
            root: scratch.repository().display().to_string(),
            search: self.search.iter().map(|path| path.as_str().to_owned()).collect(),
            ext_vars: self.ext_vars.clone(),
            tlas: self.tlas.clone(),
            files: files.iter().map(|path| path.as_str().to_owned()).collect(),
        };
        let request_file = scratch.path().join("jsonnet.json");
        let text = serde_json::to_vec(&request_content)
            .map_err(|error| RenderError::Scratch { reason: error.to_string() })?;
        context.disk.write(&request_file, text)?;
        let first = files.first().cloned().unwrap_or_default();
        let hides = |hidden: &mut Hidden| {
            let variables = self.ext_vars.iter().chain(&self.tlas);
            variables.for_each(|variable| hidden.named(&variable.name, &variable.value));
            hidden.directory(&scratch.repository());
        };
        let run = ToolRun {
            program,
            arguments: arguments.iter().map(OsString::from).chain([request_file.into()]).collect(),
            directory: &scratch.repository(),
            environment: Vec::new(),
            helper: None,
            scratch: scratch.path(),
            network: false,
            limits,
            hides: &hides,
        };
        let output = context.run(("jsonnet", &first), &run, |_| false)?;
        let values: Vec<Value> = parse::json(&output, first.as_str(), limits)?;
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
