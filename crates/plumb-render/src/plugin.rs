//! Plugins: commands declared in the settings, run in the sandbox on a copy of the repository.
//!
//! There is no sidecar: plumb reads from the settings what Argo CD reads from a `ConfigManagementPlugin` file in a
//! container. The command gets the build environment and the parameters in the same variables.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use plumb_core::app::{PluginOptions, PluginValue};
use plumb_core::desired::RenderedManifest;
use plumb_core::glob::Glob;
use plumb_core::source::{EntryKind, RepoPath, SourceFiles};
use serde_json::{Map, Value, json};

use crate::build_env::BuildEnvironment;
use crate::error::RenderError;
use crate::export;
use crate::parse;
use crate::plan_input::PlanInput;
use crate::read_set::ReadSet;
use crate::request::RenderRequest;
use crate::run_context::RunContext;
use crate::sandbox::{Hidden, IsolationLevel, ToolRun};
use crate::settings::{Plugin, PluginDiscovery, RenderSettings};
use crate::tools::locate;

/// The setting that lets plugins run where the system does not isolate them.
const UNCONFINED: &str = "plumb.plugins.allow-unconfined";

/// A plugin and its variables.
pub(crate) struct PluginPlan {
    name: String,
    directory: RepoPath,
    plugin: Plugin,
    environment: Vec<(String, String)>,
}

/// The plugin whose discovery rule matches a directory.
pub(crate) fn discover<'a>(
    plugins: &'a std::collections::BTreeMap<String, Plugin>,
    files: &dyn SourceFiles,
    directory: &RepoPath,
) -> Result<Option<&'a str>, RenderError> {
    for (name, plugin) in plugins {
        let (pattern, recurse) = match &plugin.discover {
            PluginDiscovery::Named => continue,
            PluginDiscovery::FileName(pattern) => (pattern, false),
            PluginDiscovery::Find(pattern) => (pattern, true),
        };
        let glob = Glob::url(pattern.trim_start_matches("./"))
            .map_err(|error| RenderError::Option { option: "plugin discovery", reason: error.to_string() })?;
        let mut search = Search { files, root: directory, recurse, glob, n_seen: 0 };
        if search.finds(directory, 0)? {
            return Ok(Some(name));
        }
    }
    Ok(None)
}

/// Most entries that a discovery rule may search, and its deepest directory.
const MOST_SEEN: usize = 200_000;
const MAX_DEPTH: usize = 32;

/// Searches for a file that a discovery rule matches.
struct Search<'a> {
    files: &'a dyn SourceFiles,
    root: &'a RepoPath,
    recurse: bool,
    glob: Glob,
    n_seen: usize,
}

impl Search<'_> {
    fn finds(&mut self, directory: &RepoPath, depth: usize) -> Result<bool, RenderError> {
        let entries =
            self.files.list(directory).map_err(RenderError::read(format!("directory `{directory}`")))?;
        for entry in entries {
            self.n_seen += 1;
            if self.n_seen > MOST_SEEN {
                let what = format!("number of files in `{}` that plugin discovery looks at", self.root);
                return Err(RenderError::Limit { what, limit: MOST_SEEN as u64 });
            }
            let path = directory.child(&entry.name);
            let found = match entry.kind {
                EntryKind::Directory => self.recurse && depth < MAX_DEPTH && self.finds(&path, depth + 1)?,
                EntryKind::File | EntryKind::Executable | EntryKind::Link | EntryKind::Submodule => {
                    self.glob.matches(path.below(self.root).unwrap_or_default())
                }
            };
            if found {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// Selects the plugin and its variables. A plugin may read the whole repository.
pub(crate) fn plan(
    input: &PlanInput<'_>,
    options: &PluginOptions,
    set: &mut ReadSet,
) -> Result<PluginPlan, RenderError> {
    let PlanInput { request, path: directory, environment, .. } = *input;
    let plugins = &request.settings.plugins;
    let bad = |reason: String| RenderError::Option { option: "plugin", reason };
    let name = match options.name.as_deref().filter(|name| !name.is_empty()) {
        Some(name) => name,
        None => discover(plugins, request.files.as_ref(), directory)?.ok_or_else(|| {
            bad("the source names no plugin, and no declared plugin discovers it".to_owned())
        })?,
    };
    let plugin = plugins.get(name).ok_or_else(|| {
        let known: Vec<&str> = plugins.keys().map(String::as_str).collect();
        bad(format!("plugin `{name}` is not declared in the settings (declared: {})", known.join(", ")))
    })?;
    if plugin.generate.is_empty() {
        return Err(bad(format!("plugin `{name}` has no `generate` command")));
    }
    set.add("", &RepoPath::root(), "the repository")?;
    Ok(PluginPlan {
        name: name.to_owned(),
        directory: directory.clone(),
        plugin: plugin.clone(),
        environment: variables(request, options, environment),
    })
}

/// Build environment, cluster, and the source's own variables and parameters.
fn variables(
    request: &RenderRequest,
    options: &PluginOptions,
    environment: &BuildEnvironment,
) -> Vec<(String, String)> {
    let mut variables: Vec<(String, String)> =
        environment.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    variables.push(("KUBE_VERSION".to_owned(), request.cluster.kube_version.clone().unwrap_or_default()));
    variables.push(("KUBE_API_VERSIONS".to_owned(), request.cluster.api_versions.join(",")));
    for (name, value) in &options.env {
        variables.push((format!("ARGOCD_ENV_{name}"), environment.expand(value)));
    }
    let mut announced = Vec::new();
    for parameter in &options.parameters {
        let mut entry = Map::new();
        entry.insert("name".to_owned(), json!(parameter.name));
        let variable = format!("PARAM_{}", variable_name(&parameter.name));
        match &parameter.value {
            None => {}
            Some(PluginValue::String(text)) => {
                entry.insert("string".to_owned(), json!(text));
                variables.push((variable, text.clone()));
            }
            Some(PluginValue::Map(map)) => {
                entry.insert("map".to_owned(), json!(map));
                variables.extend(
                    map.iter()
                        .map(|(key, text)| (format!("{variable}_{}", variable_name(key)), text.clone())),
                );
            }
            Some(PluginValue::Array(items)) => {
                entry.insert("array".to_owned(), json!(items));
                variables.extend(
                    items
                        .iter()
                        .enumerate()
                        .map(|(index, text)| (format!("{variable}_{index}"), text.clone())),
                );
            }
        }
        announced.push(Value::Object(entry));
    }
    variables.push(("ARGOCD_APP_PARAMETERS".to_owned(), Value::Array(announced).to_string()));
    // An invalid variable name or a NUL byte would keep the command from starting.
    variables.retain(|(name, value)| !name.contains(['=', '\0']) && !value.contains('\0'));
    variables
}

/// Does the source set the variable?
fn is_of_source(name: &str) -> bool {
    name.starts_with("ARGOCD_ENV_") || name.starts_with("PARAM_") || name == "ARGOCD_APP_PARAMETERS"
}

/// Upper case, everything but letters and digits as underscores.
fn variable_name(name: &str) -> String {
    name.chars()
        .map(|character| if character.is_ascii_alphanumeric() { character.to_ascii_uppercase() } else { '_' })
        .collect()
}

impl PluginPlan {
    /// A plugin can do whatever its files tell it to, so only the kernel can keep it from plumb and from other apps.
    /// Where the kernel does not, an administrator has to allow it in the settings.
    pub(crate) fn check_confinement(
        &self,
        level: IsolationLevel,
        settings: &RenderSettings,
    ) -> Result<(), RenderError> {
        let missing = level.missing_for_plugins();
        if missing.is_empty() || settings.allow_unconfined_plugins {
            return Ok(());
        }
        let missing: Vec<String> =
            missing.into_iter().map(|(name, reason)| format!("{name} ({reason})")).collect();
        Err(RenderError::Option {
            option: "plugin",
            reason: format!(
                "plugin `{}` is not run: this system does not isolate it from plumb and other apps. Missing: {}. Run plumb \
                 on a system that does, or set `{UNCONFINED}: \"true\"` in argocd-cm if everyone who can write to the \
                 repositories may have what plumb has",
                self.name,
                missing.join("; ")
            ),
        })
    }

    /// Everything but the files, for the cache key.
    pub(crate) fn parameters(&self) -> String {
        format!("{:?}", (&self.name, &self.directory, &self.plugin, &self.environment))
    }

    /// The programs of its commands, and files outside the repository that their arguments name.
    pub(crate) fn programs(&self) -> Vec<PathBuf> {
        let commands = [&self.plugin.init, &self.plugin.generate];
        let programs = commands.iter().filter_map(|command| command.first()).map(|name| locate(name.into()));
        let arguments = commands.iter().flat_map(|command| command.iter().skip(1)).map(PathBuf::from);
        programs.chain(arguments).filter(|path| path.is_absolute()).collect()
    }

    /// Runs the commands.
    pub(crate) fn render(
        &self,
        set: &ReadSet,
        context: &RunContext<'_>,
    ) -> Result<Vec<RenderedManifest>, RenderError> {
        let limits = context.limits;
        let scratch = context.scratch()?;
        let repository = scratch.repository();
        export::export(set, "", &repository, context.disk)?;
        let directory = repository.join(self.directory.as_str());
        let hides = |hidden: &mut Hidden| {
            let own = self.environment.iter().filter(|(name, _)| is_of_source(name));
            own.for_each(|(name, value)| hidden.variable(name, value));
            hidden.directory(&directory);
        };
        let run = |command: &[String], tool: &'static str| {
            let Some((program, arguments)) = command.split_first() else { return Ok(Vec::new()) };
            let run = ToolRun {
                program: Path::new(program),
                arguments: arguments.iter().map(OsString::from).collect(),
                directory: &directory,
                environment: self
                    .environment
                    .iter()
                    .map(|(name, value)| (name.into(), value.into()))
                    .collect(),
                helper: None,
                scratch: scratch.path(),
                network: false,
                limits,
                hides: &hides,
            };
            let output = context.sandbox.run(&run);
            // A plugin may remove and change files as it likes. A cache directory that was removed is gone as a whole.
            if !repository.is_dir() {
                let reason = "files were removed while a plugin read them".to_owned();
                return Err(RenderError::Scratch { reason });
            }
            output.map_err(|source| RenderError::Tool { tool, path: self.directory.clone(), source })
        };
        run(&self.plugin.init, "plugin init")?;
        let output = run(&self.plugin.generate, "plugin generate")?;
        (context.before_reading)(output.len());
        parse::tool_output(&output, "the plugin", limits, |_| None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameter_names_become_variable_names() {
        assert_eq!(variable_name("helm-params.image"), "HELM_PARAMS_IMAGE");
    }
}
