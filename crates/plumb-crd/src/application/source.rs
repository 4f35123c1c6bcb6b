//! The sources of an Application's manifests.

use std::collections::BTreeMap;

use crate::wire::{IntOrString, RawMap, Wire, wire};

wire! {
    /// `spec.source`, or one entry of `spec.sources`.
    pub struct ApplicationSource {
        /// Git URL, Helm repository, `oci://…`, or the bare host of an OCI registry.
        "repoURL" repo_url: String = required,
        /// Directory in the repository.
        "path" path: String,
        /// Branch, tag, hash or constraint; empty means `HEAD`.
        "targetRevision" target_revision: String,
        /// Only tags with this prefix are considered.
        "tagPrefix" tag_prefix: String,
        /// Chart name; the source is then a Helm repository.
        "chart" chart: String,
        /// Name by which other sources refer to this one as `$name`.
        "ref" ref_name: String,
        /// A label for users.
        "name" name: String,
        /// Options for Helm.
        "helm" helm: Option<Box<HelmSource>>,
        /// Options for Kustomize.
        "kustomize" kustomize: Option<Box<KustomizeSource>>,
        /// Options for plain directories and Jsonnet.
        "directory" directory: Option<Box<DirectorySource>>,
        /// Options for a config management plugin.
        "plugin" plugin: Option<Box<PluginSource>>,
    }

    /// `helm`.
    pub struct HelmSource {
        /// Default: the app's name.
        "releaseName" release_name: String,
        /// In order, last wins.
        "valueFiles" value_files: Vec<String>,
        /// Skip value files that do not exist.
        "ignoreMissingValueFiles" ignore_missing_value_files: bool,
        /// Inline YAML; not used when `valuesObject` is set.
        "values" values: String,
        /// Inline map of values.
        "valuesObject" values_object: Option<RawMap>,
        /// `--set` and `--set-string`.
        "parameters" parameters: Vec<HelmParameter>,
        /// `--set-file`.
        "fileParameters" file_parameters: Vec<HelmFileParameter>,
        /// `v3` or `v4`; accepted for compatibility and not used.
        "version" version: String,
        /// Send credentials to every host that the chart's address leads to.
        "passCredentials" pass_credentials: bool,
        /// Do not install `crds/`.
        "skipCrds" skip_crds: bool,
        /// Do not install tests.
        "skipTests" skip_tests: bool,
        /// Do not validate values against `values.schema.json`.
        "skipSchemaValidation" skip_schema_validation: bool,
        /// `--namespace`; default: the destination's.
        "namespace" namespace: String,
        /// `--kube-version`; default: the cluster's.
        "kubeVersion" kube_version: String,
        /// `--api-versions`; default: the cluster's.
        "apiVersions" api_versions: Vec<String>,
    }

    /// One `helm.parameters` entry.
    pub struct HelmParameter {
        /// Dotted path.
        "name" name: String,
        /// Its value.
        "value" value: String,
        /// Use `--set-string`.
        "forceString" force_string: bool,
    }

    /// One `helm.fileParameters` entry.
    pub struct HelmFileParameter {
        /// Dotted path.
        "name" name: String,
        /// File whose content is the value.
        "path" path: String,
    }

    /// `kustomize`.
    pub struct KustomizeSource {
        /// Prefix of all names.
        "namePrefix" name_prefix: String,
        /// Suffix of all names.
        "nameSuffix" name_suffix: String,
        /// Namespace of all objects.
        "namespace" namespace: String,
        /// `old=new:tag`.
        "images" images: Vec<String>,
        /// Replica overrides.
        "replicas" replicas: Vec<KustomizeReplica>,
        /// Labels on all objects.
        "commonLabels" common_labels: BTreeMap<String, String>,
        /// Overwrite labels that exist.
        "forceCommonLabels" force_common_labels: bool,
        /// Do not add labels to selectors.
        "labelWithoutSelector" label_without_selector: bool,
        /// Also add labels to templates.
        "labelIncludeTemplates" label_include_templates: bool,
        /// Annotations on all objects.
        "commonAnnotations" common_annotations: BTreeMap<String, String>,
        /// Overwrite annotations that exist.
        "forceCommonAnnotations" force_common_annotations: bool,
        /// Replace build variables in annotation values.
        "commonAnnotationsEnvsubst" common_annotations_envsubst: bool,
        /// Inline patches.
        "patches" patches: Vec<KustomizePatch>,
        /// Components to add.
        "components" components: Vec<String>,
        /// Skip components that do not exist.
        "ignoreMissingComponents" ignore_missing_components: bool,
        /// A version registered in the settings.
        "version" version: String,
        /// Given to Helm when Kustomize inflates charts.
        "kubeVersion" kube_version: String,
        /// Given to Helm when Kustomize inflates charts.
        "apiVersions" api_versions: Vec<String>,
    }

    /// One `kustomize.replicas` entry.
    pub struct KustomizeReplica {
        /// Name of the workload.
        "name" name: String = required,
        /// Number of replicas.
        "count" count: IntOrString = required,
    }

    /// One `kustomize.patches` entry.
    pub struct KustomizePatch {
        /// File with the patch.
        "path" path: String,
        /// The patch itself.
        "patch" patch: String,
        /// What it applies to.
        "target" target: Option<KustomizeTarget>,
        /// `allowNameChange` and the like.
        "options" options: BTreeMap<String, bool>,
    }

    /// What a Kustomize patch applies to; empty means any.
    pub struct KustomizeTarget {
        /// API group.
        "group" group: String,
        /// API version.
        "version" version: String,
        /// Kind.
        "kind" kind: String,
        /// Name, as a regular expression.
        "name" name: String,
        /// Namespace, as a regular expression.
        "namespace" namespace: String,
        /// Selector on annotations.
        "annotationSelector" annotation_selector: String,
        /// Selector on labels.
        "labelSelector" label_selector: String,
    }

    /// `directory`.
    pub struct DirectorySource {
        /// Look into sub-directories.
        "recurse" recurse: bool,
        /// Jsonnet options.
        "jsonnet" jsonnet: Jsonnet,
        /// Glob of files to exclude; applied before `include`.
        "exclude" exclude: String,
        /// Glob of files to include.
        "include" include: String,
        /// Read files of every extension.
        "disableExtensionFilter" disable_extension_filter: bool,
    }

    /// `directory.jsonnet`.
    pub struct Jsonnet {
        /// External variables.
        "extVars" ext_vars: Vec<JsonnetVariable>,
        /// Top-level arguments.
        "tlas" tlas: Vec<JsonnetVariable>,
        /// Library directories, relative to the repository's root.
        "libs" libs: Vec<String>,
    }

    /// One Jsonnet variable.
    pub struct JsonnetVariable {
        /// Its name.
        "name" name: String = required,
        /// Its text.
        "value" value: String = required,
        /// True if the value is code, not a string.
        "code" code: bool,
    }

    /// `plugin`.
    pub struct PluginSource {
        /// The declared plugin; if empty, a discovery rule selects it.
        "name" name: String,
        /// Extra environment.
        "env" env: Vec<EnvEntry>,
        /// Parameters.
        "parameters" parameters: Vec<PluginParameter>,
    }

    /// One variable of a plugin's environment.
    pub struct EnvEntry {
        /// Its name.
        "name" name: String = required,
        /// Its value.
        "value" value: String = required,
    }

    /// One plugin parameter; at most one of `string`, `map` and `array` is set. Empty is not absent here.
    pub struct PluginParameter {
        /// Its name.
        "name" name: String,
        /// A string.
        "string" string: Option<String>,
        /// A map of strings.
        "map" map: Option<BTreeMap<String, String>>,
        /// A list of strings.
        "array" array: Option<Vec<String>>,
    }

    /// `spec.sourceHydrator`.
    pub struct SourceHydrator {
        /// What is rendered.
        "drySource" dry_source: DrySource = required,
        /// Where the rendered manifests are synced from.
        "syncSource" sync_source: SyncSource = required,
        /// A branch that the rendered manifests are pushed to first.
        "hydrateTo" hydrate_to: Option<HydrateTo>,
    }

    /// `spec.sourceHydrator.drySource`.
    pub struct DrySource {
        /// Git URL.
        "repoURL" repo_url: String = required,
        /// Branch, tag or hash.
        "targetRevision" target_revision: String = required,
        /// Directory in the repository.
        "path" path: String = required,
        /// Options for Helm.
        "helm" helm: Option<Box<HelmSource>>,
        /// Options for Kustomize.
        "kustomize" kustomize: Option<Box<KustomizeSource>>,
        /// Options for plain directories and Jsonnet.
        "directory" directory: Option<Box<DirectorySource>>,
        /// Options for a config management plugin.
        "plugin" plugin: Option<Box<PluginSource>>,
    }

    /// `spec.sourceHydrator.syncSource`.
    pub struct SyncSource {
        /// Git URL; empty: the dry source's.
        "repoURL" repo_url: String,
        /// Branch that is synced from.
        "targetBranch" target_branch: String = required,
        /// Directory in the branch; not its root.
        "path" path: String = required where {"minLength": 1, "pattern": "^.{2,}|[^./]$"},
    }

    /// `spec.sourceHydrator.hydrateTo`.
    pub struct HydrateTo {
        /// Branch that is pushed to.
        "targetBranch" target_branch: String = required,
    }
}

impl ApplicationSource {
    /// Without empty tool blocks. An empty `plugin` stays: it requests plugin discovery.
    #[must_use]
    pub fn normalized(&self) -> Self {
        let mut source = self.clone();
        source.helm = source.helm.filter(|helm| !helm.is_unset());
        source.kustomize = source.kustomize.filter(|kustomize| !kustomize.is_unset());
        source.directory = source.directory.filter(|directory| !directory.is_unset());
        source
    }
}

impl SourceHydrator {
    /// The source that is synced after the dry source was rendered.
    pub fn effective_sync_source(&self) -> ApplicationSource {
        let own = &self.sync_source.repo_url;
        ApplicationSource {
            repo_url: if own.is_empty() { self.dry_source.repo_url.clone() } else { own.clone() },
            path: self.sync_source.path.clone(),
            target_revision: self.sync_source.target_branch.clone(),
            ..ApplicationSource::default()
        }
    }
}
