//! Where manifests come from.

use std::collections::BTreeMap;

use serde_json::Value;

/// One entry of `spec.sources` (or `spec.source`).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Source {
    /// Git URL, Helm repository, `oci://…`, or the bare host of an OCI registry.
    pub repo_url: String,
    /// Directory in the repository; `None` for charts and for sources that are only referred to.
    pub path: Option<String>,
    /// Branch, tag, hash, constraint; `None` is `HEAD`.
    pub target_revision: Option<String>,
    /// Only tags with this prefix are looked at.
    pub tag_prefix: Option<String>,
    /// Chart name: the source is a Helm repository.
    pub chart: Option<String>,
    /// Name by which other sources refer to this one as `$name`.
    pub ref_name: Option<String>,
    /// Label for users.
    pub name: Option<String>,
    /// The tool that was asked for; `None`: detected from the files.
    pub tool: Option<SourceTool>,
}

/// The tool a source asks for, with its options.
#[derive(Clone, Debug, PartialEq)]
pub enum SourceTool {
    /// Plain manifests and Jsonnet.
    Directory(DirectoryOptions),
    /// A Helm chart.
    Helm(Box<HelmOptions>),
    /// A Kustomize overlay.
    Kustomize(Box<KustomizeOptions>),
    /// A command declared in the settings.
    Plugin(PluginOptions),
}

/// `directory`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DirectoryOptions {
    /// Look into sub-directories.
    pub recurse: bool,
    /// Glob of what is read, relative to the app's directory.
    pub include: Option<String>,
    /// Glob of what is left out; looked at first.
    pub exclude: Option<String>,
    /// Read files of every extension.
    pub disable_extension_filter: bool,
    /// Jsonnet external variables.
    pub ext_vars: Vec<JsonnetVariable>,
    /// Jsonnet top-level arguments.
    pub tlas: Vec<JsonnetVariable>,
    /// Jsonnet library directories, relative to the repository's root.
    pub libs: Vec<String>,
}

/// One Jsonnet variable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JsonnetVariable {
    /// Its name.
    pub name: String,
    /// Its text.
    pub value: String,
    /// Is the text code rather than a string?
    pub code: bool,
}

/// `helm`.
#[derive(Clone, Debug, Default, PartialEq)]
#[expect(clippy::struct_excessive_bools, reason = "each is one flag of helm, independent of the others")]
pub struct HelmOptions {
    /// Default: the app's name.
    pub release_name: Option<String>,
    /// In order, last wins.
    pub value_files: Vec<String>,
    /// Skip value files that do not exist.
    pub ignore_missing_value_files: bool,
    /// Inline YAML; not used when `values_object` is set.
    pub values: Option<String>,
    /// Inline map.
    pub values_object: Option<Value>,
    /// `--set` and `--set-string`.
    pub parameters: Vec<HelmParameter>,
    /// `--set-file`.
    pub file_parameters: Vec<HelmFileParameter>,
    /// Send credentials to every host that the chart's address redirects to.
    pub pass_credentials: bool,
    /// Leave out `crds/`.
    pub skip_crds: bool,
    /// Leave out tests.
    pub skip_tests: bool,
    /// Do not check values against `values.schema.json`.
    pub skip_schema_validation: bool,
    /// `--namespace`; default: the destination's.
    pub namespace: Option<String>,
    /// `--kube-version`; default: the cluster's.
    pub kube_version: Option<String>,
    /// `--api-versions`; default: the cluster's.
    pub api_versions: Vec<String>,
}

/// One `helm.parameters` entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HelmParameter {
    /// Dotted path.
    pub name: String,
    /// Its value.
    pub value: String,
    /// Use `--set-string`.
    pub force_string: bool,
}

/// One `helm.fileParameters` entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HelmFileParameter {
    /// Dotted path.
    pub name: String,
    /// File whose content is the value.
    pub path: String,
}

/// `kustomize`.
#[derive(Clone, Debug, Default, PartialEq)]
#[expect(clippy::struct_excessive_bools, reason = "each is one flag of kustomize, independent of the others")]
pub struct KustomizeOptions {
    /// Prefix of all names.
    pub name_prefix: Option<String>,
    /// Suffix of all names.
    pub name_suffix: Option<String>,
    /// Namespace of all objects.
    pub namespace: Option<String>,
    /// `old=new:tag`.
    pub images: Vec<String>,
    /// Replica overrides.
    pub replicas: Vec<KustomizeReplica>,
    /// Labels on all objects.
    pub common_labels: BTreeMap<String, String>,
    /// Overwrite labels that exist.
    pub force_common_labels: bool,
    /// Leave selectors alone.
    pub label_without_selector: bool,
    /// Label templates too.
    pub label_include_templates: bool,
    /// Annotations on all objects.
    pub common_annotations: BTreeMap<String, String>,
    /// Overwrite annotations that exist.
    pub force_common_annotations: bool,
    /// Replace build variables in annotation values.
    pub common_annotations_envsubst: bool,
    /// Inline patches.
    pub patches: Vec<KustomizePatch>,
    /// Components to add.
    pub components: Vec<String>,
    /// Skip components that do not exist.
    pub ignore_missing_components: bool,
    /// A version registered in the settings.
    pub version: Option<String>,
    /// Given to Helm when Kustomize inflates charts.
    pub kube_version: Option<String>,
    /// Given to Helm when Kustomize inflates charts.
    pub api_versions: Vec<String>,
}

/// One `kustomize.replicas` entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KustomizeReplica {
    /// Which workload.
    pub name: String,
    /// How many.
    pub count: i64,
}

/// One `kustomize.patches` entry.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KustomizePatch {
    /// File with the patch.
    pub path: Option<String>,
    /// The patch itself.
    pub patch: Option<String>,
    /// What it applies to.
    pub target: Option<PatchTarget>,
    /// `allowNameChange` and the like.
    pub options: BTreeMap<String, bool>,
}

/// What a Kustomize patch applies to; empty means any.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PatchTarget {
    /// API group.
    pub group: Option<String>,
    /// API version.
    pub version: Option<String>,
    /// Kind.
    pub kind: Option<String>,
    /// Name, as a regular expression.
    pub name: Option<String>,
    /// Namespace, as a regular expression.
    pub namespace: Option<String>,
    /// Selector on annotations.
    pub annotation_selector: Option<String>,
    /// Selector on labels.
    pub label_selector: Option<String>,
}

/// `plugin`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PluginOptions {
    /// The declared plugin; `None`: found by its own discovery rule.
    pub name: Option<String>,
    /// Extra environment, given to the command as `ARGOCD_ENV_<NAME>`.
    pub env: Vec<(String, String)>,
    /// Parameters.
    pub parameters: Vec<PluginParameter>,
}

/// One plugin parameter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PluginParameter {
    /// Its name.
    pub name: String,
    /// Its value; a parameter may be declared without any.
    pub value: Option<PluginValue>,
}

/// A plugin parameter's value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PluginValue {
    /// One string.
    String(String),
    /// A map of strings; may be empty.
    Map(BTreeMap<String, String>),
    /// A list of strings; may be empty.
    Array(Vec<String>),
}
