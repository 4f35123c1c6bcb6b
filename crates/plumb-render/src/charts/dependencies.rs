//! Charts that a chart depends on and does not bring along.

use plumb_core::source::{EntryKind, RepoPath, SourceError, SourceFiles, follow, read_following};
use plumb_core::yaml;
use serde_json::Value;

use crate::{Limits, RenderError};

/// Each may be a request to a server.
const MAX_DEPENDENCIES: usize = 200;

/// A dependency that `charts/` lacks.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ChartDependency {
    /// Name of the chart.
    pub name: String,
    /// Version or constraint; what `Chart.lock` pins, if it does.
    pub version: String,
    /// Address of its repository: `https://…`, `oci://…`, `file://../other`, `@alias`.
    pub repository: String,
}

impl ChartDependency {
    /// Is it in the same repository, so that nothing has to be fetched?
    pub fn is_local(&self) -> bool {
        self.repository.starts_with("file://")
    }

    /// The directory in the same repository that a `file://` dependency means.
    pub fn local_directory(&self, chart: &RepoPath) -> Option<Result<RepoPath, plumb_core::source::BadPath>> {
        Some(chart.join(self.repository.strip_prefix("file://")?))
    }
}

/// The dependencies of a chart that have to be fetched before it can be rendered.
pub fn missing_dependencies(
    files: &dyn SourceFiles,
    chart: &RepoPath,
    limits: &Limits,
) -> Result<Vec<ChartDependency>, RenderError> {
    let Some(definition) = read_yaml(files, &chart.child("Chart.yaml"), limits)? else {
        return Ok(Vec::new());
    };
    // Charts of the first API version have a file of their own for it.
    let old = match definition.get("dependencies") {
        Some(_) => None,
        None => read_yaml(files, &chart.child("requirements.yaml"), limits)?,
    };
    let declared = dependencies(old.as_ref().unwrap_or(&definition));
    if declared.is_empty() {
        return Ok(Vec::new());
    }
    if declared.len() > MAX_DEPENDENCIES {
        let what = format!("number of dependencies of chart `{chart}`");
        return Err(RenderError::Limit { what, limit: MAX_DEPENDENCIES as u64 });
    }
    let lock = match read_yaml(files, &chart.child("Chart.lock"), limits)? {
        Some(lock) => Some(lock),
        None => read_yaml(files, &chart.child("requirements.lock"), limits)?,
    };
    let locked = lock.as_ref().map(dependencies).unwrap_or_default();
    let present = vendored(files, chart)?;
    Ok(declared
        .into_iter()
        .filter(|dependency| !present.iter().any(|file| is_archive_of(file, &dependency.name)))
        .map(|dependency| {
            let pinned = locked
                .iter()
                .find(|pinned| pinned.name == dependency.name)
                .map(|pinned| pinned.version.clone());
            ChartDependency { version: pinned.unwrap_or(dependency.version), ..dependency }
        })
        .collect())
}

/// `name` as a directory, or `name-1.2.3.tgz`.
fn is_archive_of(file: &str, name: &str) -> bool {
    file == name
        || file.strip_prefix(name).and_then(|rest| rest.strip_prefix('-')?.strip_suffix(".tgz")).is_some_and(
            |version| version.starts_with(|character: char| character.is_ascii_digit() || character == 'v'),
        )
}

fn vendored(files: &dyn SourceFiles, chart: &RepoPath) -> Result<Vec<String>, RenderError> {
    let directory = chart.child("charts");
    match follow(files, &directory) {
        Ok((real, EntryKind::Directory)) => {
            let entries = files.list(&real).map_err(RenderError::read(format!("`{directory}`")))?;
            Ok(entries.into_iter().map(|entry| entry.name).collect())
        }
        Ok(_) | Err(SourceError::NotFound { .. }) => Ok(Vec::new()),
        Err(source) => Err(RenderError::Read { what: format!("`{directory}`"), source }),
    }
}

fn dependencies(value: &Value) -> Vec<ChartDependency> {
    let text =
        |value: &Value, key: &str| value.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    value
        .get("dependencies")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .map(|item| ChartDependency {
            name: text(item, "name"),
            version: text(item, "version"),
            repository: text(item, "repository"),
        })
        .filter(|dependency| !dependency.name.is_empty())
        .collect()
}

fn read_yaml(
    files: &dyn SourceFiles,
    file: &RepoPath,
    limits: &Limits,
) -> Result<Option<Value>, RenderError> {
    let text = match read_following(files, file) {
        Ok(text) => text,
        Err(SourceError::NotFound { .. }) => return Ok(None),
        Err(source) => return Err(RenderError::Read { what: format!("`{file}`"), source }),
    };
    let documents = yaml::parse_documents_bytes(&text, &limits.yaml)
        .map_err(|source| RenderError::Yaml { file: file.to_string(), source })?;
    Ok(documents.into_iter().next().map(|document| document.value))
}
