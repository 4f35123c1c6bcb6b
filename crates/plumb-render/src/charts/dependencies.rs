//! The dependencies that a chart does not contain.

use std::collections::BTreeMap;

use plumb_core::source::{EntryKind, RepoPath, SourceError, SourceFiles, follow, read_following};
use plumb_core::yaml;
use serde_json::Value;

use crate::error::RenderError;
use crate::limits::Limits;

/// Most dependencies of a chart: each may be a request to a server.
const MAX_DEPENDENCIES: usize = 200;

/// Most entries of `charts/`: each may be a file to read.
const MAX_VENDORED: usize = 2_000;

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
    /// True if it is in the same repository, so that nothing has to be fetched.
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
    // Charts of API version v1 have a separate file for dependencies.
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
    let present = vendored(files, chart, limits)?;
    // One chart may be listed twice, in two versions under two aliases. The lock file has the same order.
    let mut n_seen: BTreeMap<&str, usize> = BTreeMap::new();
    let mut missing = Vec::new();
    for dependency in &declared {
        let nth = n_seen.entry(&dependency.name).or_default();
        let pinned = locked.iter().filter(|pinned| pinned.name == dependency.name).nth(*nth);
        *nth += 1;
        if present.iter().any(|chart| chart.is(&dependency.name)) {
            continue;
        }
        let version = pinned.map_or_else(|| dependency.version.clone(), |pinned| pinned.version.clone());
        missing.push(ChartDependency { version, ..dependency.clone() });
    }
    Ok(missing)
}

/// An entry of `charts/`: its name, and for a directory the name of the chart in it.
struct Vendored {
    file: String,
    chart: Option<String>,
}

impl Vendored {
    fn is(&self, name: &str) -> bool {
        self.chart.as_deref() == Some(name) || is_archive_of(&self.file, name)
    }
}

/// `name` as a directory, or `name-1.2.3.tgz`.
fn is_archive_of(file: &str, name: &str) -> bool {
    file == name
        || file.strip_prefix(name).and_then(|rest| rest.strip_prefix('-')?.strip_suffix(".tgz")).is_some_and(
            |version| version.starts_with(|character: char| character.is_ascii_digit() || character == 'v'),
        )
}

fn vendored(
    files: &dyn SourceFiles,
    chart: &RepoPath,
    limits: &Limits,
) -> Result<Vec<Vendored>, RenderError> {
    let directory = chart.child("charts");
    let entries = match follow(files, &directory) {
        Ok((real, EntryKind::Directory)) => {
            files.list(&real).map_err(RenderError::read(format!("`{directory}`")))?
        }
        Ok(_) | Err(SourceError::NotFound { .. }) => return Ok(Vec::new()),
        Err(source) => return Err(RenderError::Read { what: format!("`{directory}`"), source }),
    };
    let vendored = entries.into_iter().take(MAX_VENDORED).map(|entry| {
        // Helm uses the name in `Chart.yaml`, not that of the directory. Helm itself reports unreadable charts.
        let definition = directory.child(&entry.name).child("Chart.yaml");
        let definition = read_yaml(files, &definition, limits).ok().flatten();
        let chart = definition.and_then(|chart| Some(chart.get("name")?.as_str()?.to_owned()));
        Vendored { file: entry.name, chart }
    });
    Ok(vendored.collect())
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
