//! Finds what an overlay reads, by reading its kustomization files as Kustomize does.
//!
//! Bases may be anywhere in the repository, so they are followed; everything else is in the overlay's own directory.
//! Paths that leave the repository and remote bases are refused here, before Kustomize runs.

use std::collections::BTreeSet;
use std::sync::Arc;

use plumb_core::source::{EntryKind, RepoPath, SourceError, SourceFiles, follow, read_following};
use plumb_core::yaml;
use serde_json::Value;

use super::keys;
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
const PATH_LISTS: [&str; 12] = [
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
    "patchesJson6902",
    "replacements",
];

/// Lists of plugins, whose configuration may name files too.
const PLUGIN_LISTS: [&str; 3] = ["generators", "transformers", "validators"];

/// The plugins that are part of Kustomize and read files.
const READING_PLUGINS: [&str; 8] = [
    "ConfigMapGenerator",
    "SecretGenerator",
    "HelmChartInflationGenerator",
    "PatchTransformer",
    "PatchJson6902Transformer",
    "PatchStrategicMergeTransformer",
    "ReplacementTransformer",
    "ValueAddTransformer",
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

/// Inspects an overlay as rendering does, without network and without running Kustomize: what would be refused is an
/// error.
pub fn inspect_overlay(files: Arc<dyn SourceFiles>, overlay: &RepoPath) -> Result<(), RenderError> {
    let limits = Limits::default().for_options();
    let mut set = ReadSet::new(files, limits.export_files);
    walk(std::slice::from_ref(overlay), &mut set, false, &limits).map(drop)
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
            for item in keys::items(kustomization, field) {
                match item {
                    Value::String(text) => self.path(field, text)?,
                    Value::Object(_) => self.paths(field, keys::text(item, "path"))?,
                    Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) => {}
                }
            }
        }
        let text = |field| keys::text(kustomization, field).map(str::to_owned);
        self.inspection.hints.prefixes.extend(text("namePrefix"));
        self.inspection.hints.suffixes.extend(text("nameSuffix"));
        for openapi in keys::values(kustomization, "openapi") {
            self.paths("openapi", keys::text(openapi, "path"))?;
        }
        for field in ["configMapGenerator", "secretGenerator"] {
            for generator in keys::items(kustomization, field) {
                self.generator(field, generator)?;
            }
        }
        let resources = self.holds_plugins.then_some("resources");
        for field in PLUGIN_LISTS.into_iter().chain(resources) {
            for text in keys::texts(kustomization, field) {
                self.plugin(field, text)?;
            }
        }
        for globals in keys::values(kustomization, "helmGlobals") {
            self.helm_globals(globals)?;
        }
        for field in ["helmCharts", "helmChartInflationGenerator"] {
            for chart in keys::items(kustomization, field) {
                self.chart(field, chart)?;
            }
        }
        Ok(())
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
            if READING_PLUGINS.contains(&kind) {
                self.plugin_config(field, &config)?;
            }
        }
        Ok(())
    }

    /// Everything that the configuration of a plugin may name, whichever plugin it is.
    fn plugin_config(&mut self, field: &str, config: &Value) -> Result<(), RenderError> {
        self.generator(field, config)?;
        for key in ["path", "targetFilePath"] {
            self.paths(field, keys::text(config, key))?;
        }
        self.paths(field, keys::texts(config, "paths"))?;
        for replacement in keys::items(config, "replacements") {
            self.paths(field, keys::text(replacement, "path"))?;
        }
        for globals in keys::values(config, "helmGlobals").chain([config]) {
            self.helm_globals(globals)?;
        }
        self.chart(field, config)
    }

    fn generator(&mut self, field: &str, generator: &Value) -> Result<(), RenderError> {
        for text in keys::texts(generator, "files") {
            // `key=path`, or only the path.
            let path = text.split_once('=').map_or(text, |(_, path)| path);
            self.path(field, path)?;
        }
        for text in keys::texts(generator, "envs").chain(keys::text(generator, "env")) {
            self.path(field, text)?;
            // A line with only a name takes its value from the environment.
            let content =
                self.directory.join(text).ok().and_then(|path| read_following(self.files, &path).ok());
            self.inspection.uses_revision |= content
                .is_some_and(|content| String::from_utf8_lossy(&content).contains("ARGOCD_APP_REVISION"));
        }
        Ok(())
    }

    fn helm_globals(&mut self, globals: &Value) -> Result<(), RenderError> {
        for key in ["chartHome", "configHome"] {
            self.paths("helmGlobals", keys::text(globals, key))?;
        }
        Ok(())
    }

    /// A chart that Kustomize inflates, if the settings allow it.
    fn chart(&mut self, field: &str, chart: &Value) -> Result<(), RenderError> {
        for key in ["valuesFile", "values", "chartHome", "configHome"] {
            self.paths(field, keys::text(chart, key))?;
        }
        self.paths(field, keys::texts(chart, "additionalValuesFiles"))?;
        for key in ["repo", "chartRepoUrl"] {
            for repository in keys::text(chart, key).filter(|text| !text.is_empty()) {
                self.remote(field, repository)?;
            }
        }
        // Kustomize joins it to the directory of the charts.
        for name in ["name", "chartName"].into_iter().flat_map(|key| keys::text(chart, key)) {
            if name.split('/').any(|step| step == "..") {
                return Err(self.refused(format!("`{field}`: `{name}` is not the name of a chart")));
            }
        }
        Ok(())
    }

    fn paths<'t>(
        &mut self,
        field: &str,
        mut texts: impl Iterator<Item = &'t str>,
    ) -> Result<(), RenderError> {
        texts.try_for_each(|text| self.path(field, text))
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
        let found = follow(self.files, &path);
        // Kustomize tries a file first, and then the address of a repository.
        let is_file = matches!(found, Ok((_, EntryKind::File | EntryKind::Executable)));
        if names_user(text) && !is_file {
            return self.remote(field, text);
        }
        match found {
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

/// True for the forms that Kustomize treats as the address of a repository or file.
fn looks_remote(text: &str) -> bool {
    let lower = text.to_ascii_lowercase();
    let names_user = lower.split_once(':').is_some_and(|(start, _)| names_user(start));
    lower.contains("://")
        || lower.contains("::")
        || names_user
        || ["git@", "gh:", "github.com/", "github.com:", "www.github.com"]
            .iter()
            .any(|start| lower.starts_with(start))
        || lower.contains("?ref=")
        || lower.contains("?version=")
}

/// True for `user@host/path`, which Kustomize reads as the address of a repository.
fn names_user(text: &str) -> bool {
    text.split('/').next().is_some_and(|start| start.contains('@'))
}

fn without_userinfo(text: &str) -> String {
    match text.split_once("://").and_then(|(scheme, rest)| Some((scheme, rest.rsplit_once('@')?.1))) {
        Some((scheme, rest)) => format!("{scheme}://{rest}"),
        None => text.to_owned(),
    }
}
