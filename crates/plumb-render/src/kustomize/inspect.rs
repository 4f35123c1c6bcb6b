//! Finds what an overlay reads, by reading its kustomization files as Kustomize does.
//!
//! Bases may be anywhere in the repository, so they are followed; everything else is in the overlay's own directory.
//! Paths that leave the repository and remote bases are refused here, before Kustomize runs.

use std::collections::BTreeSet;

use plumb_core::source::{EntryKind, RepoPath, SourceError, SourceFiles, follow, read_following};
use plumb_core::yaml;
use serde_json::{Value, json};

use super::origins::OriginHints;
use super::plan::KUSTOMIZATION_FILES;
use crate::error::RenderError;
use crate::limits::Limits;
use crate::read_set::ReadSet;

/// What the walk over the overlays found.
#[derive(Default)]
pub(super) struct Inspection {
    /// A generator reads the revision from the environment.
    pub(super) uses_revision: bool,
    /// A base is remote.
    pub(super) uses_network: bool,
    /// From which files objects come.
    pub(super) hints: OriginHints,
}

/// Most overlays of one app.
const MAX_OVERLAYS: usize = 2000;

/// Lists of paths to files or other overlays.
const PATH_LISTS: [&str; 10] = [
    "resources",
    "bases",
    "components",
    "crds",
    "configurations",
    "generators",
    "transformers",
    "validators",
    "patchesStrategicMerge",
    "patches",
];

/// Lists of plugins, whose configuration may name files too.
const PLUGIN_LISTS: [&str; 3] = ["generators", "transformers", "validators"];

/// The plugins that are part of Kustomize and read files.
const READING_PLUGINS: [&str; 7] = [
    "ConfigMapGenerator",
    "SecretGenerator",
    "HelmChartInflationGenerator",
    "PatchTransformer",
    "PatchJson6902Transformer",
    "PatchStrategicMergeTransformer",
    "ReplacementTransformer",
];

/// Walks the overlays, starting at these directories, and adds what they read to the set.
pub(super) fn walk(
    roots: &[RepoPath],
    set: &mut ReadSet,
    allow_network: bool,
    limits: &Limits,
) -> Result<Inspection, RenderError> {
    let mut waiting: Vec<(RepoPath, bool)> = roots.iter().map(|root| (root.clone(), false)).collect();
    let mut seen = BTreeSet::new();
    let mut inspection = Inspection::default();
    while let Some((directory, holds_plugins)) = waiting.pop() {
        if !seen.insert((directory.clone(), holds_plugins)) {
            continue;
        }
        if seen.len() > MAX_OVERLAYS {
            return Err(RenderError::Limit {
                what: "number of overlays".to_owned(),
                limit: MAX_OVERLAYS as u64,
            });
        }
        set.add("", &directory, &format!("overlay `{directory}`"))?;
        let Some(files) = set.files("").cloned() else { continue };
        let Some((file, kustomization)) = read_kustomization(files.as_ref(), &directory, limits)? else {
            continue;
        };
        let mut overlay = Overlay {
            files: files.as_ref(),
            directory: &directory,
            file,
            holds_plugins,
            allow_network,
            limits,
            inspection: &mut inspection,
            outside: Vec::new(),
        };
        overlay.inspect(&kustomization)?;
        for (path, holds_plugins) in overlay.outside {
            let (_, kind) = follow(files.as_ref(), &path).map_err(RenderError::read(format!("`{path}`")))?;
            if kind == EntryKind::Directory {
                waiting.push((path, holds_plugins));
            } else {
                set.add("", &path, &format!("`{path}`"))?;
            }
        }
    }
    Ok(inspection)
}

fn read_kustomization(
    files: &dyn SourceFiles,
    directory: &RepoPath,
    limits: &Limits,
) -> Result<Option<(RepoPath, Value)>, RenderError> {
    for name in KUSTOMIZATION_FILES {
        let file = directory.child(name);
        let text = match read_following(files, &file) {
            Ok(text) => text,
            Err(SourceError::NotFound { .. }) => continue,
            Err(source) => return Err(RenderError::Read { what: format!("`{file}`"), source }),
        };
        let mut documents = yaml::parse_documents_bytes(&text, &limits.yaml)
            .map_err(|source| RenderError::Yaml { file: file.to_string(), source })?;
        let value = if documents.is_empty() { Value::Null } else { documents.swap_remove(0).value };
        return Ok(Some((file, value)));
    }
    Ok(None)
}

struct Overlay<'a> {
    files: &'a dyn SourceFiles,
    directory: &'a RepoPath,
    file: RepoPath,
    /// True if its resources are the configuration of plugins.
    holds_plugins: bool,
    allow_network: bool,
    limits: &'a Limits,
    inspection: &'a mut Inspection,
    /// Paths outside the directory and overlays inside it, each with whether it holds plugins.
    outside: Vec<(RepoPath, bool)>,
}

impl Overlay<'_> {
    fn inspect(&mut self, kustomization: &Value) -> Result<(), RenderError> {
        for field in PATH_LISTS {
            for item in kustomization.get(field).and_then(Value::as_array).into_iter().flatten() {
                match item {
                    Value::String(text) => self.path(field, text)?,
                    Value::Object(map) => {
                        if let Some(Value::String(text)) = map.get("path") {
                            self.path(field, text)?;
                        }
                    }
                    Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) => {}
                }
            }
        }
        let text = |field: &str| kustomization.get(field).and_then(Value::as_str).map(str::to_owned);
        self.inspection.hints.prefixes.extend(text("namePrefix"));
        self.inspection.hints.suffixes.extend(text("nameSuffix"));
        for field in ["replacements", "patchesJson6902"] {
            for item in kustomization.get(field).and_then(Value::as_array).into_iter().flatten() {
                if let Some(Value::String(text)) = item.get("path") {
                    self.path(field, text)?;
                }
            }
        }
        if let Some(Value::String(text)) =
            kustomization.get("openapi").and_then(|openapi| openapi.get("path"))
        {
            self.path("openapi", text)?;
        }
        for field in ["configMapGenerator", "secretGenerator"] {
            for generator in kustomization.get(field).and_then(Value::as_array).into_iter().flatten() {
                self.generator(field, generator)?;
            }
        }
        let resources = self.holds_plugins.then_some("resources");
        for field in PLUGIN_LISTS.into_iter().chain(resources) {
            for text in strings(kustomization.get(field)) {
                self.plugin(field, text)?;
            }
        }
        self.helm(kustomization)
    }

    /// A plugin's configuration, inline or in a file. The resources of a directory are inspected with that directory.
    fn plugin(&mut self, field: &str, text: &str) -> Result<(), RenderError> {
        let content = if is_inline(text) {
            text.as_bytes().to_vec()
        } else {
            let file = self.directory.join(text).ok();
            let Some(content) = file.and_then(|path| read_following(self.files, &path).ok()) else {
                return Ok(());
            };
            content
        };
        let documents = yaml::parse_documents_bytes(&content, &self.limits.yaml)
            .map_err(|source| RenderError::Yaml { file: format!("{field} of {}", self.file), source })?;
        for document in documents {
            let config = document.value;
            let kind = config.get("kind").and_then(Value::as_str).unwrap_or_default();
            if !READING_PLUGINS.contains(&kind) {
                continue;
            }
            self.generator(field, &config)?;
            let texts = ["path", "chartHome", "configHome", "valuesFile"].map(|key| config.get(key));
            let nested = config.get("replacements").and_then(Value::as_array).into_iter().flatten();
            let texts = texts.into_iter().chain(nested.map(|item| item.get("path")));
            for text in texts.flatten().filter_map(Value::as_str).chain(strings(config.get("paths"))) {
                self.path(field, text)?;
            }
            self.helm(&json!({"helmGlobals": config.get("helmGlobals"), "helmCharts": [config]}))?;
        }
        Ok(())
    }

    fn generator(&mut self, field: &str, generator: &Value) -> Result<(), RenderError> {
        for text in strings(generator.get("files")) {
            // `key=path`, or only the path.
            let path = text.split_once('=').map_or(text, |(_, path)| path);
            self.path(field, path)?;
        }
        for text in strings(generator.get("envs")).chain(generator.get("env").and_then(Value::as_str)) {
            self.path(field, text)?;
            // A line with only a name takes its value from the environment.
            let content =
                self.directory.join(text).ok().and_then(|path| read_following(self.files, &path).ok());
            self.inspection.uses_revision |= content
                .is_some_and(|content| String::from_utf8_lossy(&content).contains("ARGOCD_APP_REVISION"));
        }
        Ok(())
    }

    /// Charts that Kustomize inflates, if the settings allow it.
    fn helm(&mut self, kustomization: &Value) -> Result<(), RenderError> {
        if let Some(globals) = kustomization.get("helmGlobals") {
            for key in ["chartHome", "configHome"] {
                if let Some(text) = globals.get(key).and_then(Value::as_str) {
                    self.path("helmGlobals", text)?;
                }
            }
        }
        for field in ["helmCharts", "helmChartInflationGenerator"] {
            for chart in kustomization.get(field).and_then(Value::as_array).into_iter().flatten() {
                let values = chart.get("valuesFile").and_then(Value::as_str);
                for text in values.into_iter().chain(strings(chart.get("additionalValuesFiles"))) {
                    self.path(field, text)?;
                }
                let repository = ["repo", "chartRepoUrl"].iter().find_map(|key| chart.get(*key)?.as_str());
                if let Some(repository) = repository.filter(|text| !text.is_empty()) {
                    self.remote(field, repository)?;
                }
            }
        }
        Ok(())
    }

    fn refused(&self, reason: String) -> RenderError {
        RenderError::Refused { file: self.file.clone(), reason }
    }

    /// One entry that names a file, another overlay, or something remote.
    fn path(&mut self, field: &str, text: &str) -> Result<(), RenderError> {
        if text.is_empty() || is_inline(text) {
            return Ok(());
        }
        if looks_remote(text) {
            return self.remote(field, text);
        }
        let path = self.directory.join(text).map_err(|error| self.refused(format!("`{field}`: {error}")))?;
        match follow(self.files, &path) {
            Ok((real, kind)) => {
                if kind != EntryKind::Directory && field == "resources" && !self.holds_plugins {
                    self.inspection.hints.files.insert(real);
                }
                if kind == EntryKind::Directory || !path.is_within(self.directory) {
                    let holds_plugins = self.holds_plugins || PLUGIN_LISTS.contains(&field);
                    self.outside.push((path, holds_plugins));
                }
                Ok(())
            }
            // Kustomize reports missing files best itself.
            Err(SourceError::NotFound { .. }) => Ok(()),
            Err(source) => {
                Err(RenderError::Read { what: format!("`{path}`, named in {}", self.file), source })
            }
        }
    }

    fn remote(&mut self, field: &str, text: &str) -> Result<(), RenderError> {
        let lower = text.to_ascii_lowercase();
        if lower.contains("file://") || lower.contains("ext::") || text.starts_with('-') {
            return Err(
                self.refused(format!("`{field}`: `{text}` is neither in the repository nor on the network"))
            );
        }
        if !self.allow_network {
            return Err(self.refused(format!(
                "`{field}`: remote `{}` is refused, because rendering has no network access; put it into the repository",
                without_userinfo(text)
            )));
        }
        self.inspection.uses_network = true;
        Ok(())
    }
}

/// True for inline configuration, false for the path of a file.
fn is_inline(text: &str) -> bool {
    text.contains('\n') || text.trim_start().starts_with(['{', '['])
}

fn strings(value: Option<&Value>) -> impl Iterator<Item = &str> {
    value.and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str)
}

/// True for the forms that Kustomize treats as the address of a repository or file.
fn looks_remote(text: &str) -> bool {
    let lower = text.to_ascii_lowercase();
    let has_user =
        lower.split_once(':').is_some_and(|(start, _)| start.contains('@') && !start.contains('/'));
    lower.contains("://")
        || lower.contains("::")
        || has_user
        || ["git@", "gh:", "github.com/", "github.com:", "www.github.com"]
            .iter()
            .any(|start| lower.starts_with(start))
        || lower.contains("?ref=")
        || lower.contains("?version=")
}

fn without_userinfo(text: &str) -> String {
    match text.split_once("://").and_then(|(scheme, rest)| Some((scheme, rest.rsplit_once('@')?.1))) {
        Some((scheme, rest)) => format!("{scheme}://{rest}"),
        None => text.to_owned(),
    }
}
