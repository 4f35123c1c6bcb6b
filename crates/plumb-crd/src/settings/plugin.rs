//! Config management plugins, declared in a `ConfigMap`.
//!
//! Argo CD reads a `ConfigManagementPlugin` from a file in a sidecar. plumb has no sidecars: it reads the same
//! text from the `ConfigMap` `plumb-plugins`, one plugin per key, and runs the command in the sandbox of all tools.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{ConfigData, SettingsProblem, value::read_yaml};
use crate::wire::{Wire as _, wire};

/// Name of the `ConfigMap`.
pub const PLUGINS_CONFIG_MAP: &str = "plumb-plugins";

/// One declared plugin.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PluginDeclaration {
    /// Run first; its output is not used.
    pub init: Vec<String>,
    /// Prints the manifests.
    pub generate: Vec<String>,
    /// Selected for a source if a file in its directory matches this glob.
    pub file_name: Option<String>,
    /// Selected for a source if a file below its directory matches this glob.
    pub find_glob: Option<String>,
}

wire! {
    /// A `ConfigManagementPlugin`.
    struct RawPlugin {
        /// Its name.
        "metadata" metadata: RawMetadata,
        /// What it does.
        "spec" spec: RawSpec,
    }

    /// Metadata of a plugin.
    struct RawMetadata {
        /// Its name.
        "name" name: String,
    }

    /// `spec` of a plugin.
    struct RawSpec {
        /// Part of its name, if there is one.
        "version" version: String,
        /// Run first.
        "init" init: RawCommand,
        /// Prints the manifests.
        "generate" generate: RawCommand,
        /// Its discovery rule.
        "discover" discover: RawDiscover,
    }

    /// A program with its arguments.
    struct RawCommand {
        /// The program and its first arguments.
        "command" command: Vec<String>,
        /// More arguments.
        "args" args: Vec<String>,
    }

    /// The discovery rule of a plugin.
    struct RawDiscover {
        /// A glob on files of the directory.
        "fileName" file_name: String,
        /// More ways to find out.
        "find" find: RawFind,
    }

    /// More ways to find out.
    struct RawFind {
        /// A glob on files below the directory.
        "glob" glob: String,
        /// A command that prints something if it claims the directory.
        "command" command: Vec<String>,
    }
}

/// The schema of a plugin's text. What only Argo CD reads is allowed: the text is the same.
pub(crate) fn plugin_schema() -> Value {
    let mut schema = RawPlugin::schema();
    for (place, kind) in [
        ("/properties/spec/properties/parameters", "object"),
        ("/properties/spec/properties/preserveFileMode", "boolean"),
        ("/properties/spec/properties/provideGitCreds", "boolean"),
        ("/properties/spec/properties/discover/properties/find/properties/args", "array"),
    ] {
        let (parent, name) = place.rsplit_once('/').unwrap_or_default();
        if let Some(fields) = schema.pointer_mut(parent).and_then(Value::as_object_mut) {
            fields
                .insert(name.to_owned(), json!({"type": kind, "x-kubernetes-preserve-unknown-fields": true}));
        }
    }
    schema
}

/// The plugins of the `ConfigMap`, by the names that sources use: `name-version`, or `name` without version.
/// An invalid one is omitted and reported.
pub fn read_plugins(data: &ConfigData) -> (BTreeMap<String, PluginDeclaration>, Vec<SettingsProblem>) {
    let mut plugins = BTreeMap::new();
    let mut problems = Vec::new();
    for (key, text) in data {
        match read_plugin(text) {
            Ok((name, plugin)) => {
                plugins.insert(name, plugin);
            }
            Err(reason) => {
                problems.push(SettingsProblem { place: format!("{PLUGINS_CONFIG_MAP} {key}"), reason });
            }
        }
    }
    (plugins, problems)
}

fn read_plugin(text: &str) -> Result<(String, PluginDeclaration), String> {
    let raw: RawPlugin = read_yaml(text)?;
    let name = raw.metadata.name;
    if name.is_empty() {
        return Err("metadata.name is missing".to_owned());
    }
    let spec = raw.spec;
    let command = |raw: RawCommand| -> Vec<String> { raw.command.into_iter().chain(raw.args).collect() };
    let generate = command(spec.generate);
    if generate.is_empty() {
        return Err("spec.generate.command is missing".to_owned());
    }
    if !spec.discover.find.command.is_empty() {
        return Err(
            "spec.discover.find.command is not supported: use fileName or find.glob, or name the plugin in the \
             source"
                .to_owned(),
        );
    }
    let non_empty = |text: String| (!text.is_empty()).then_some(text);
    let plugin = PluginDeclaration {
        init: command(spec.init),
        generate,
        file_name: non_empty(spec.discover.file_name),
        find_glob: non_empty(spec.discover.find.glob),
    };
    let name = if spec.version.is_empty() { name } else { format!("{name}-{}", spec.version) };
    Ok((name, plugin))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plugin_is_the_text_that_argo_cd_takes() {
        let data: ConfigData = [
            (
                "a.yaml",
                "apiVersion: argoproj.io/v1alpha1\nkind: ConfigManagementPlugin\nmetadata: {name: cue}\n\
                 spec:\n  version: v1.0\n  init: {command: [sh, -c], args: ['true']}\n\
                 \x20 generate: {command: [cue], args: [export]}\n  discover: {fileName: './*.cue'}\n",
            ),
            ("b.yaml", "metadata: {name: plain}\nspec: {generate: {command: [cat, x.yaml]}}\n"),
            ("c.yaml", "metadata: {name: none}\nspec: {}\n"),
            (
                "d.yaml",
                "metadata: {name: asks}\nspec: {generate: {command: [a]}, discover: {find: {command: [b]}}}",
            ),
            ("e.yaml", "a: ["),
        ]
        .into_iter()
        .map(|(key, text)| (key.to_owned(), text.to_owned()))
        .collect();
        let (plugins, problems) = read_plugins(&data);
        assert_eq!(plugins.keys().collect::<Vec<_>>(), ["cue-v1.0", "plain"]);
        let cue = &plugins["cue-v1.0"];
        assert_eq!((cue.init.join(" "), cue.generate.join(" ")), ("sh -c true".into(), "cue export".into()));
        assert_eq!(cue.file_name.as_deref(), Some("./*.cue"));
        let places: Vec<&str> = problems.iter().map(|problem| problem.place.as_str()).collect();
        assert_eq!(places, ["plumb-plugins c.yaml", "plumb-plugins d.yaml", "plumb-plugins e.yaml"]);
    }
}
