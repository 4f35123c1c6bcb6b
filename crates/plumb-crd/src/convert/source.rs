//! Converts one source: its tool, its options, and what is missing.

use plumb_core::app::{
    DirectoryOptions, HelmFileParameter, HelmOptions, HelmParameter, JsonnetVariable, KustomizeOptions,
    KustomizePatch, KustomizeReplica, PatchTarget, PluginOptions, PluginParameter, PluginValue, Source,
    SourceTool,
};
use serde_json::Value;

use super::problem::SpecProblem;
use super::text::non_empty;
use crate::application::{self as wire, ApplicationSource, DirectorySource, HelmSource, KustomizeSource};
use crate::wire::{IntOrString, Wire as _};

/// Checks one source. `field` is its path (`spec.source`, `spec.sources[1]`).
pub(super) fn to_source(
    source: &ApplicationSource,
    field: &str,
    multi_source: bool,
    problems: &mut Vec<SpecProblem>,
) -> Source {
    check_required(source, field, multi_source, problems);
    if !source.ref_name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-')) {
        problems.push(SpecProblem::new(
            format!("{field}.ref"),
            format!(
                "source ref {} may contain only letters, digits, `_` and `-`: other sources name it as ${}",
                source.ref_name, source.ref_name
            ),
        ));
    }
    Source {
        repo_url: source.repo_url.clone(),
        path: non_empty(&source.path),
        target_revision: non_empty(&source.target_revision),
        tag_prefix: non_empty(&source.tag_prefix),
        chart: non_empty(&source.chart),
        ref_name: non_empty(&source.ref_name),
        name: non_empty(&source.name),
        tool: tool(source, field, problems),
    }
}

fn check_required(
    source: &ApplicationSource,
    field: &str,
    multi_source: bool,
    problems: &mut Vec<SpecProblem>,
) {
    let has_place = !source.path.is_empty() || !source.chart.is_empty();
    let has_place = has_place || (multi_source && !source.ref_name.is_empty());
    if source.repo_url.is_empty() || !has_place {
        let message = if multi_source {
            format!(
                "spec.source.repoURL and either source.path, source.chart, or source.ref are required for \
                 source {field}"
            )
        } else {
            "spec.source.repoURL and either spec.source.path or spec.source.chart are required".to_owned()
        };
        problems.push(SpecProblem::new(field, message));
    } else if !source.chart.is_empty() && source.target_revision.is_empty() {
        problems.push(SpecProblem::new(
            format!("{field}.targetRevision"),
            "spec.source.targetRevision is required if the manifest source is a helm chart",
        ));
    }
}

/// The tool that the source names. Empty blocks are ignored (they are also dropped from stored specs), except `plugin`,
/// whose empty block requests discovery.
fn tool(source: &ApplicationSource, field: &str, problems: &mut Vec<SpecProblem>) -> Option<SourceTool> {
    let helm = source.helm.as_ref().filter(|helm| !helm.is_unset());
    let kustomize = source.kustomize.as_ref().filter(|kustomize| !kustomize.is_unset());
    let directory = source.directory.as_ref().filter(|directory| !directory.is_unset());
    let plugin = source.plugin.as_ref();
    let asked: Vec<&str> = [
        ("Kustomize", kustomize.is_some()),
        ("Helm", helm.is_some()),
        ("Directory", directory.is_some()),
        ("Plugin", plugin.is_some()),
    ]
    .into_iter()
    .filter_map(|(name, is_set)| is_set.then_some(name))
    .collect();
    if asked.len() > 1 {
        problems.push(SpecProblem::new(
            field,
            format!("multiple application sources defined: {}", asked.join(",")),
        ));
        return None;
    }
    if let Some(helm) = helm {
        Some(SourceTool::Helm(Box::new(helm_options(helm, field, problems))))
    } else if let Some(kustomize) = kustomize {
        Some(SourceTool::Kustomize(Box::new(kustomize_options(kustomize, field, problems))))
    } else if let Some(directory) = directory {
        Some(SourceTool::Directory(directory_options(directory)))
    } else {
        plugin.map(|plugin| SourceTool::Plugin(plugin_options(plugin, field, problems)))
    }
}

fn helm_options(helm: &HelmSource, field: &str, problems: &mut Vec<SpecProblem>) -> HelmOptions {
    if !matches!(helm.version.as_str(), "" | "v3" | "v4") {
        problems.push(SpecProblem::new(
            format!("{field}.helm.version"),
            format!("helm version {} is not supported: v3 and v4 are, or leave it out", helm.version),
        ));
    }
    HelmOptions {
        release_name: non_empty(&helm.release_name),
        value_files: helm.value_files.clone(),
        ignore_missing_value_files: helm.ignore_missing_value_files,
        values: non_empty(&helm.values),
        values_object: helm.values_object.as_ref().map(|map| Value::Object(map.0.clone())),
        parameters: helm.parameters.iter().map(helm_parameter).collect(),
        file_parameters: helm
            .file_parameters
            .iter()
            .map(|parameter| HelmFileParameter { name: parameter.name.clone(), path: parameter.path.clone() })
            .collect(),
        pass_credentials: helm.pass_credentials,
        skip_crds: helm.skip_crds,
        skip_tests: helm.skip_tests,
        skip_schema_validation: helm.skip_schema_validation,
        namespace: non_empty(&helm.namespace),
        kube_version: non_empty(&helm.kube_version),
        api_versions: helm.api_versions.clone(),
    }
}

fn helm_parameter(parameter: &wire::HelmParameter) -> HelmParameter {
    HelmParameter {
        name: parameter.name.clone(),
        value: parameter.value.clone(),
        force_string: parameter.force_string,
    }
}

fn kustomize_options(
    kustomize: &KustomizeSource,
    field: &str,
    problems: &mut Vec<SpecProblem>,
) -> KustomizeOptions {
    let mut replicas = Vec::new();
    for (index, replica) in kustomize.replicas.iter().enumerate() {
        let count = match &replica.count {
            IntOrString::Int(count) => Some(*count),
            IntOrString::String(text) => text.trim().parse().ok(),
        };
        match count {
            Some(count) => replicas.push(KustomizeReplica { name: replica.name.clone(), count }),
            None => problems.push(SpecProblem::new(
                format!("{field}.kustomize.replicas[{index}].count"),
                format!("the replica count of {} is not a number", replica.name),
            )),
        }
    }
    KustomizeOptions {
        name_prefix: non_empty(&kustomize.name_prefix),
        name_suffix: non_empty(&kustomize.name_suffix),
        namespace: non_empty(&kustomize.namespace),
        images: kustomize.images.clone(),
        replicas,
        common_labels: kustomize.common_labels.clone(),
        force_common_labels: kustomize.force_common_labels,
        label_without_selector: kustomize.label_without_selector,
        label_include_templates: kustomize.label_include_templates,
        common_annotations: kustomize.common_annotations.clone(),
        force_common_annotations: kustomize.force_common_annotations,
        common_annotations_envsubst: kustomize.common_annotations_envsubst,
        patches: kustomize.patches.iter().map(kustomize_patch).collect(),
        components: kustomize.components.clone(),
        ignore_missing_components: kustomize.ignore_missing_components,
        version: non_empty(&kustomize.version),
        kube_version: non_empty(&kustomize.kube_version),
        api_versions: kustomize.api_versions.clone(),
    }
}

fn kustomize_patch(patch: &wire::KustomizePatch) -> KustomizePatch {
    KustomizePatch {
        path: non_empty(&patch.path),
        patch: non_empty(&patch.patch),
        target: patch.target.as_ref().map(|target| PatchTarget {
            group: non_empty(&target.group),
            version: non_empty(&target.version),
            kind: non_empty(&target.kind),
            name: non_empty(&target.name),
            namespace: non_empty(&target.namespace),
            annotation_selector: non_empty(&target.annotation_selector),
            label_selector: non_empty(&target.label_selector),
        }),
        options: patch.options.clone(),
    }
}

fn directory_options(directory: &DirectorySource) -> DirectoryOptions {
    DirectoryOptions {
        recurse: directory.recurse,
        include: non_empty(&directory.include),
        exclude: non_empty(&directory.exclude),
        disable_extension_filter: directory.disable_extension_filter,
        ext_vars: directory.jsonnet.ext_vars.iter().map(jsonnet_variable).collect(),
        tlas: directory.jsonnet.tlas.iter().map(jsonnet_variable).collect(),
        libs: directory.jsonnet.libs.clone(),
    }
}

fn jsonnet_variable(variable: &wire::JsonnetVariable) -> JsonnetVariable {
    JsonnetVariable { name: variable.name.clone(), value: variable.value.clone(), code: variable.code }
}

fn plugin_options(
    plugin: &wire::PluginSource,
    field: &str,
    problems: &mut Vec<SpecProblem>,
) -> PluginOptions {
    let mut parameters = Vec::new();
    for (index, parameter) in plugin.parameters.iter().enumerate() {
        let value = match (&parameter.string, &parameter.map, &parameter.array) {
            (None, None, None) => None,
            (Some(string), None, None) => Some(PluginValue::String(string.clone())),
            (None, Some(map), None) => Some(PluginValue::Map(map.clone())),
            (None, None, Some(array)) => Some(PluginValue::Array(array.clone())),
            _ => {
                problems.push(SpecProblem::new(
                    format!("{field}.plugin.parameters[{index}]"),
                    format!("plugin parameter {} has more than one of string, map and array", parameter.name),
                ));
                continue;
            }
        };
        parameters.push(PluginParameter { name: parameter.name.clone(), value });
    }
    PluginOptions {
        name: non_empty(&plugin.name),
        env: plugin.env.iter().map(|entry| (entry.name.clone(), entry.value.clone())).collect(),
        parameters,
    }
}

/// A source with the overrides from its own directory (`.argocd-source.yaml` and similar), each merged over it as a JSON
/// merge patch. The overrides cannot change where the source comes from.
pub fn source_with_overrides(
    source: &ApplicationSource,
    overrides: &[Value],
    multi_source: bool,
) -> Result<Source, Vec<SpecProblem>> {
    let mut patched = source.write();
    for patch in overrides {
        merge(&mut patched, patch);
    }
    let read = ApplicationSource::read(&patched)
        .map_err(|error| vec![SpecProblem::new(error.path(), format!("override of the source: {error}"))])?;
    let overridden = ApplicationSource {
        repo_url: source.repo_url.clone(),
        path: source.path.clone(),
        target_revision: source.target_revision.clone(),
        tag_prefix: source.tag_prefix.clone(),
        chart: source.chart.clone(),
        ref_name: source.ref_name.clone(),
        name: source.name.clone(),
        ..read
    };
    let mut problems = Vec::new();
    let converted = to_source(&overridden, "override of the source", multi_source, &mut problems);
    if problems.is_empty() { Ok(converted) } else { Err(problems) }
}

/// RFC 7386.
fn merge(target: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else {
        *target = patch.clone();
        return;
    };
    if !target.is_object() {
        *target = Value::Object(serde_json::Map::new());
    }
    let Value::Object(target) = target else { return };
    for (key, value) in patch {
        if value.is_null() {
            target.remove(key);
        } else {
            merge(target.entry(key.clone()).or_insert(Value::Null), value);
        }
    }
}
