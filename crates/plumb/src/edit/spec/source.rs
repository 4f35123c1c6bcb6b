//! Flags for a source: where manifests come from and how they are rendered.

use std::path::PathBuf;

use serde_json::{Value, json};

use super::hydrator::HydratorFlags;
use crate::edit::json_path::{field, list, pair, remove_empty, set, set_list, upsert};
use crate::error::CommandError;

/// Where manifests come from and how they are rendered.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(next_help_heading = "Source")]
pub(crate) struct SourceFlags {
    /// URL of the repository.
    #[arg(long, value_name = "URL")]
    pub(crate) repo: Option<String>,
    /// Directory in the repository.
    #[arg(long)]
    pub(crate) path: Option<String>,
    /// Branch, tag, commit or version constraint to track.
    #[arg(long)]
    pub(crate) revision: Option<String>,
    /// Use only tags with this prefix.
    #[arg(long, value_name = "PREFIX")]
    pub(in crate::edit) tag_prefix: Option<String>,
    /// Chart in a Helm repository.
    #[arg(long, value_name = "CHART")]
    pub(in crate::edit) helm_chart: Option<String>,
    /// Name by which other sources refer to this one as `$NAME`.
    #[arg(long = "ref", value_name = "NAME")]
    pub(crate) ref_name: Option<String>,
    #[command(flatten)]
    helm: HelmFlags,
    #[command(flatten)]
    kustomize: KustomizeFlags,
    #[command(flatten)]
    directory: DirectoryFlags,
    #[command(flatten)]
    plugin: PluginFlags,
    #[command(flatten)]
    hydrator: HydratorFlags,
}

/// Options for Helm.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(next_help_heading = "Helm")]
struct HelmFlags {
    /// A parameter: `name=value`.
    #[arg(long, short = 'p', value_name = "NAME=VALUE")]
    parameter: Vec<String>,
    /// A values file, by its path in the repository.
    #[arg(long, value_name = "FILE")]
    values: Vec<String>,
    /// A local file whose content becomes the inline values.
    #[arg(long, value_name = "FILE")]
    values_literal_file: Option<PathBuf>,
    /// Name of the release.
    #[arg(long, value_name = "NAME")]
    release_name: Option<String>,
    /// A parameter, as `helm --set` takes it.
    #[arg(long, value_name = "NAME=VALUE")]
    helm_set: Vec<String>,
    /// A parameter whose value is always a string.
    #[arg(long, value_name = "NAME=VALUE")]
    helm_set_string: Vec<String>,
    /// A parameter whose value is the content of a file in the repository.
    #[arg(long, value_name = "NAME=FILE")]
    helm_set_file: Vec<String>,
    /// `v3`.
    #[arg(long, value_name = "VERSION")]
    helm_version: Option<String>,
    /// Leave out `crds/`.
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true", value_name = "BOOL")]
    helm_skip_crds: Option<bool>,
    /// Leave out tests.
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true", value_name = "BOOL")]
    helm_skip_tests: Option<bool>,
    /// Do not check values against their schema.
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true", value_name = "BOOL")]
    helm_skip_schema_validation: Option<bool>,
    /// Send credentials to every host that the chart's address leads to.
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true", value_name = "BOOL")]
    helm_pass_credentials: Option<bool>,
    /// Skip values files that do not exist.
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true", value_name = "BOOL")]
    ignore_missing_value_files: Option<bool>,
    /// Namespace for Helm [default: the destination's].
    #[arg(long, value_name = "NAMESPACE")]
    helm_namespace: Option<String>,
    /// Kubernetes version to render for.
    #[arg(long, value_name = "VERSION")]
    helm_kube_version: Option<String>,
    /// API versions to render for.
    #[arg(long, value_name = "VERSION")]
    helm_api_versions: Vec<String>,
}

/// Options for Kustomize.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(next_help_heading = "Kustomize")]
struct KustomizeFlags {
    /// Prefix of all names.
    #[arg(long, value_name = "PREFIX")]
    nameprefix: Option<String>,
    /// Suffix of all names.
    #[arg(long, value_name = "SUFFIX")]
    namesuffix: Option<String>,
    /// An image: `name=new:tag`, `name:tag` or `name@digest`.
    #[arg(long, value_name = "IMAGE")]
    kustomize_image: Vec<String>,
    /// Replicas of a workload: `name=3`.
    #[arg(long, value_name = "NAME=COUNT")]
    kustomize_replica: Vec<String>,
    /// Namespace of all objects.
    #[arg(long, value_name = "NAMESPACE")]
    kustomize_namespace: Option<String>,
    /// A Kustomize version from the settings.
    #[arg(long, value_name = "VERSION")]
    kustomize_version: Option<String>,
    /// A label on all objects: `name=value`.
    #[arg(long, value_name = "NAME=VALUE")]
    kustomize_common_label: Vec<String>,
    /// An annotation on all objects: `name=value`.
    #[arg(long, value_name = "NAME=VALUE")]
    kustomize_common_annotation: Vec<String>,
    /// Overwrite existing labels.
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true", value_name = "BOOL")]
    kustomize_force_common_label: Option<bool>,
    /// Overwrite existing annotations.
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true", value_name = "BOOL")]
    kustomize_force_common_annotation: Option<bool>,
    /// Do not add labels to selectors.
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true", value_name = "BOOL")]
    kustomize_label_without_selector: Option<bool>,
    /// Also add labels to pod templates.
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true", value_name = "BOOL")]
    kustomize_label_include_templates: Option<bool>,
    /// Skip components that do not exist.
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true", value_name = "BOOL")]
    ignore_missing_components: Option<bool>,
    /// Kubernetes version for Helm charts in the kustomization.
    #[arg(long, value_name = "VERSION")]
    kustomize_kube_version: Option<String>,
    /// API versions for Helm charts in the kustomization.
    #[arg(long, value_name = "VERSION")]
    kustomize_api_versions: Vec<String>,
}

/// Options for plain directories and Jsonnet.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(next_help_heading = "Directory and Jsonnet")]
struct DirectoryFlags {
    /// Include subdirectories.
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true", value_name = "BOOL")]
    directory_recurse: Option<bool>,
    /// Only files that match this pattern.
    #[arg(long, value_name = "GLOB")]
    directory_include: Option<String>,
    /// No files that match this pattern.
    #[arg(long, value_name = "GLOB")]
    directory_exclude: Option<String>,
    /// Read all files as manifests, whatever their extension.
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true", value_name = "BOOL")]
    directory_disable_extension_filter: Option<bool>,
    /// A top-level argument that is a string: `name=value`.
    #[arg(long, value_name = "NAME=VALUE")]
    jsonnet_tla_str: Vec<String>,
    /// A top-level argument that is code: `name=value`.
    #[arg(long, value_name = "NAME=VALUE")]
    jsonnet_tla_code: Vec<String>,
    /// An external variable that is a string: `name=value`.
    #[arg(long, value_name = "NAME=VALUE")]
    jsonnet_ext_var_str: Vec<String>,
    /// An external variable that is code: `name=value`.
    #[arg(long, value_name = "NAME=VALUE")]
    jsonnet_ext_var_code: Vec<String>,
    /// A library directory.
    #[arg(long, value_name = "PATH")]
    jsonnet_libs: Vec<String>,
}

/// Options for plugins.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(next_help_heading = "Plugin")]
struct PluginFlags {
    /// Name of the plugin.
    #[arg(long, value_name = "NAME")]
    config_management_plugin: Option<String>,
    /// A variable for the plugin: `name=value`.
    #[arg(long, value_name = "NAME=VALUE")]
    plugin_env: Vec<String>,
}

impl SourceFlags {
    /// True if none of these flags was given.
    pub(crate) fn is_empty(&self) -> bool {
        let mut probe = json!({});
        self.values_untouched() && self.apply(&mut probe).is_ok() && probe == json!({})
    }

    /// Refuses unsupported flags.
    pub(crate) fn refuse(&self) -> Result<(), CommandError> {
        self.hydrator.refuse()
    }

    /// A values file counts as given even if it cannot be read.
    fn values_untouched(&self) -> bool {
        self.helm.values_literal_file.is_none()
    }

    /// Writes the flags into a source.
    pub(crate) fn apply(&self, source: &mut Value) -> Result<(), CommandError> {
        set(source, "repoURL", self.repo.as_ref());
        set(source, "path", self.path.as_ref());
        set(source, "targetRevision", self.revision.as_ref());
        set(source, "tagPrefix", self.tag_prefix.as_ref());
        set(source, "chart", self.helm_chart.as_ref());
        set(source, "ref", self.ref_name.as_ref());
        self.helm.apply(field(source, "helm"))?;
        self.kustomize.apply(field(source, "kustomize"))?;
        self.directory.apply(field(source, "directory"))?;
        self.plugin.apply(field(source, "plugin"))?;
        for tool in ["helm", "kustomize", "directory", "plugin"] {
            remove_empty(source, tool);
        }
        Ok(())
    }
}

impl HelmFlags {
    fn apply(&self, helm: &mut Value) -> Result<(), CommandError> {
        set_list(helm, "valueFiles", &self.values);
        if let Some(file) = &self.values_literal_file {
            let text = std::fs::read_to_string(file)
                .map_err(|error| CommandError::because(format!("read {}", file.display()), error))?;
            *field(helm, "values") = text.into();
        }
        set(helm, "releaseName", self.release_name.as_ref());
        set(helm, "version", self.helm_version.as_ref());
        set(helm, "skipCrds", self.helm_skip_crds.as_ref());
        set(helm, "skipTests", self.helm_skip_tests.as_ref());
        set(helm, "skipSchemaValidation", self.helm_skip_schema_validation.as_ref());
        set(helm, "passCredentials", self.helm_pass_credentials.as_ref());
        set(helm, "ignoreMissingValueFiles", self.ignore_missing_value_files.as_ref());
        set(helm, "namespace", self.helm_namespace.as_ref());
        set(helm, "kubeVersion", self.helm_kube_version.as_ref());
        set_list(helm, "apiVersions", &self.helm_api_versions);
        let flags = [
            ("--parameter", &self.parameter, false),
            ("--helm-set", &self.helm_set, false),
            ("--helm-set-string", &self.helm_set_string, true),
        ];
        for (flag, given, force_string) in flags {
            for text in given {
                let (name, value) = pair(flag, text)?;
                let mut entry = json!({"name": name, "value": value});
                if force_string {
                    entry["forceString"] = json!(true);
                }
                upsert(list(field(helm, "parameters")), "name", entry);
            }
        }
        for text in &self.helm_set_file {
            let (name, path) = pair("--helm-set-file", text)?;
            upsert(list(field(helm, "fileParameters")), "name", json!({"name": name, "path": path}));
        }
        Ok(())
    }
}

impl KustomizeFlags {
    fn apply(&self, kustomize: &mut Value) -> Result<(), CommandError> {
        set(kustomize, "namePrefix", self.nameprefix.as_ref());
        set(kustomize, "nameSuffix", self.namesuffix.as_ref());
        set(kustomize, "namespace", self.kustomize_namespace.as_ref());
        set(kustomize, "version", self.kustomize_version.as_ref());
        set(kustomize, "kubeVersion", self.kustomize_kube_version.as_ref());
        set_list(kustomize, "apiVersions", &self.kustomize_api_versions);
        set(kustomize, "forceCommonLabels", self.kustomize_force_common_label.as_ref());
        set(kustomize, "forceCommonAnnotations", self.kustomize_force_common_annotation.as_ref());
        set(kustomize, "labelWithoutSelector", self.kustomize_label_without_selector.as_ref());
        set(kustomize, "labelIncludeTemplates", self.kustomize_label_include_templates.as_ref());
        set(kustomize, "ignoreMissingComponents", self.ignore_missing_components.as_ref());
        for image in &self.kustomize_image {
            let images = list(field(kustomize, "images"));
            let name = image_name(image);
            images.retain(|known| known.as_str().map(image_name) != Some(name));
            images.push(image.clone().into());
        }
        for text in &self.kustomize_replica {
            let (name, count) = pair("--kustomize-replica", text)?;
            let count: u32 = count.parse().map_err(|_| {
                CommandError::usage(format!("--kustomize-replica {text}: the count must be a number"))
            })?;
            upsert(list(field(kustomize, "replicas")), "name", json!({"name": name, "count": count}));
        }
        let maps = [
            ("--kustomize-common-label", "commonLabels", &self.kustomize_common_label),
            ("--kustomize-common-annotation", "commonAnnotations", &self.kustomize_common_annotation),
        ];
        for (flag, name, given) in maps {
            for text in given {
                let (key, value) = pair(flag, text)?;
                *field(field(kustomize, name), key) = value.into();
            }
        }
        Ok(())
    }
}

/// The name of an image: the part before `=`, the tag or the digest.
pub(crate) fn image_name(image: &str) -> &str {
    if let Some((name, _)) = image.split_once('=') {
        return name;
    }
    let image = image.split('@').next().unwrap_or(image);
    match image.rsplit_once(':') {
        // A colon before a slash is the port of the registry.
        Some((name, tag)) if !tag.contains('/') => name,
        _ => image,
    }
}

impl DirectoryFlags {
    fn apply(&self, directory: &mut Value) -> Result<(), CommandError> {
        set(directory, "recurse", self.directory_recurse.as_ref());
        set(directory, "include", self.directory_include.as_ref());
        set(directory, "exclude", self.directory_exclude.as_ref());
        set(directory, "disableExtensionFilter", self.directory_disable_extension_filter.as_ref());
        let variables = [
            ("--jsonnet-tla-str", "tlas", &self.jsonnet_tla_str, false),
            ("--jsonnet-tla-code", "tlas", &self.jsonnet_tla_code, true),
            ("--jsonnet-ext-var-str", "extVars", &self.jsonnet_ext_var_str, false),
            ("--jsonnet-ext-var-code", "extVars", &self.jsonnet_ext_var_code, true),
        ];
        for (flag, name, given, code) in variables {
            for text in given {
                let (key, value) = pair(flag, text)?;
                let mut entry = json!({"name": key, "value": value});
                if code {
                    entry["code"] = json!(true);
                }
                upsert(list(field(field(directory, "jsonnet"), name)), "name", entry);
            }
        }
        if !self.jsonnet_libs.is_empty() {
            set_list(field(directory, "jsonnet"), "libs", &self.jsonnet_libs);
        }
        Ok(())
    }
}

impl PluginFlags {
    fn apply(&self, plugin: &mut Value) -> Result<(), CommandError> {
        set(plugin, "name", self.config_management_plugin.as_ref());
        for text in &self.plugin_env {
            let (name, value) = pair("--plugin-env", text)?;
            upsert(list(field(plugin, "env")), "name", json!({"name": name, "value": value}));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;

    #[derive(Debug, clap::Parser)]
    struct Line {
        #[command(flatten)]
        flags: SourceFlags,
    }

    fn applied(line: &[&str], mut source: Value) -> Value {
        let line = Line::parse_from(std::iter::once(&"x").chain(line));
        line.flags.apply(&mut source).unwrap();
        source
    }

    #[test]
    fn nothing_given_changes_nothing() {
        assert!(SourceFlags::default().is_empty());
        let source = json!({"repoURL": "a", "helm": {"values": "x"}});
        assert_eq!(applied(&[], source.clone()), source);
    }

    #[test]
    fn parameters_replace_their_namesakes() {
        let source =
            json!({"helm": {"parameters": [{"name": "a", "value": "1"}, {"name": "b", "value": "2"}]}});
        let line = ["-p", "a=3=4", "--helm-set-string", "c=05", "--values", "x.yaml", "--helm-skip-crds"];
        assert_eq!(
            applied(&line, source),
            json!({"helm": {"skipCrds": true, "valueFiles": ["x.yaml"], "parameters": [
                {"name": "a", "value": "3=4"}, {"name": "b", "value": "2"},
                {"name": "c", "value": "05", "forceString": true}]}})
        );
    }

    #[test]
    fn images_replace_their_namesakes() {
        let source = json!({"kustomize": {"images": ["host:5000/web:v1", "db=other/db:2"]}});
        let line =
            ["--kustomize-image", "host:5000/web:v2", "--kustomize-replica", "web=3", "--nameprefix", "p-"];
        assert_eq!(
            applied(&line, source),
            json!({"kustomize": {"images": ["db=other/db:2", "host:5000/web:v2"], "namePrefix": "p-",
                "replicas": [{"name": "web", "count": 3}]}})
        );
        assert_eq!([image_name("a@sha256:1"), image_name("h:1/a"), image_name("a:1")], ["a", "h:1/a", "a"]);
    }

    #[test]
    fn jsonnet_and_plugins() {
        let line =
            ["--jsonnet-tla-code", "a=[1]", "--jsonnet-ext-var-str", "b=x", "--directory-recurse=false"];
        assert_eq!(
            applied(&line, json!({})),
            json!({"directory": {"recurse": false, "jsonnet": {
                "tlas": [{"name": "a", "value": "[1]", "code": true}], "extVars": [{"name": "b", "value": "x"}]}}})
        );
        let plugin = applied(&["--config-management-plugin", "p", "--plugin-env", "A=B"], json!({}));
        assert_eq!(plugin, json!({"plugin": {"name": "p", "env": [{"name": "A", "value": "B"}]}}));
    }
}
