//! Adds the Application's own options to the overlay, by `kustomize edit`.

use std::path::Path;

use plumb_core::app::{KustomizeOptions, KustomizePatch};
use plumb_core::source::RepoPath;
use plumb_core::yaml;
use serde_json::{Map, Value, json};

use super::keys;
use super::plan::KUSTOMIZATION_FILES;
use crate::build_env::BuildEnvironment;
use crate::error::RenderError;
use crate::run_context::RunContext;

/// The runs of `kustomize edit`, in Argo CD's order.
pub(super) fn commands(
    options: &KustomizeOptions,
    components: &[String],
    environment: &BuildEnvironment,
) -> Vec<Vec<String>> {
    let one = |value: &Option<String>| value.clone().filter(|text| !text.is_empty()).into_iter().collect();
    let images = options.images.iter().map(|image| environment.expand(image)).collect();
    let replicas = options.replicas.iter().map(|replica| format!("{}={}", replica.name, replica.count));
    let runs: [(Vec<&str>, Vec<String>); 8] = [
        (vec!["set", "nameprefix"], one(&options.name_prefix)),
        (vec!["set", "namesuffix"], one(&options.name_suffix)),
        (vec!["set", "image"], images),
        (vec!["set", "replicas"], replicas.collect()),
        (label_command(options), labels(options, environment)),
        (annotation_command(options), annotations(options, environment)),
        (vec!["set", "namespace"], one(&options.namespace)),
        (vec!["add", "component"], components.to_vec()),
    ];
    // `--` keeps values from being parsed as options.
    let command = |(start, values): (Vec<&str>, Vec<String>)| {
        start.into_iter().chain(["--"]).map(str::to_owned).chain(values).collect()
    };
    runs.into_iter().filter(|(_, values)| !values.is_empty()).map(command).collect()
}

fn label_command(options: &KustomizeOptions) -> Vec<&'static str> {
    let flags = [
        (options.force_common_labels, "--force"),
        (options.label_without_selector, "--without-selector"),
        (options.label_include_templates, "--include-templates"),
    ];
    let flags = flags.into_iter().filter(|(wanted, _)| *wanted).map(|(_, flag)| flag);
    ["add", "label"].into_iter().chain(flags).collect()
}

fn labels(options: &KustomizeOptions, environment: &BuildEnvironment) -> Vec<String> {
    let labels = options.common_labels.iter();
    labels.map(|(name, value)| format!("{name}:{}", environment.expand(value))).collect()
}

fn annotation_command(options: &KustomizeOptions) -> Vec<&'static str> {
    let force = options.force_common_annotations.then_some("--force");
    ["add", "annotation"].into_iter().chain(force).collect()
}

fn annotations(options: &KustomizeOptions, environment: &BuildEnvironment) -> Vec<String> {
    let value = |text: &String| {
        if options.common_annotations_envsubst { environment.expand(text) } else { text.clone() }
    };
    options.common_annotations.iter().map(|(name, text)| format!("{name}:{}", value(text))).collect()
}

/// A patch in the form of a kustomization file.
pub(super) fn patch_entry(patch: &KustomizePatch) -> Value {
    let mut entry = Map::new();
    let mut insert = |name: &str, text: &Option<String>| {
        if let Some(text) = text {
            entry.insert(name.to_owned(), json!(text));
        }
    };
    insert("path", &patch.path);
    insert("patch", &patch.patch);
    if let Some(target) = &patch.target {
        let fields = [
            ("group", &target.group),
            ("version", &target.version),
            ("kind", &target.kind),
            ("name", &target.name),
            ("namespace", &target.namespace),
            ("annotationSelector", &target.annotation_selector),
            ("labelSelector", &target.label_selector),
        ];
        let fields: Map<String, Value> = fields
            .into_iter()
            .filter_map(|(name, value)| Some((name.to_owned(), json!(value.as_ref()?))))
            .collect();
        entry.insert("target".to_owned(), Value::Object(fields));
    }
    if !patch.options.is_empty() {
        entry.insert("options".to_owned(), json!(patch.options));
    }
    Value::Object(entry)
}

/// Adds patches to the kustomization file in the scratch directory.
pub(super) fn append_patches(
    directory: &Path,
    overlay: &RepoPath,
    patches: &[Value],
    context: &RunContext<'_>,
) -> Result<(), RenderError> {
    if patches.is_empty() {
        return Ok(());
    }
    let Some(path) = KUSTOMIZATION_FILES.iter().map(|name| directory.join(name)).find(|path| path.exists())
    else {
        return Err(RenderError::Refused {
            file: overlay.clone(),
            reason: "it has no kustomization file".to_owned(),
        });
    };
    let text = std::fs::read(&path).map_err(|error| RenderError::scratch(&error))?;
    let mut documents = yaml::parse_documents_bytes(&text, &context.limits.yaml)
        .map_err(|source| RenderError::Yaml { file: format!("{overlay}/kustomization.yaml"), source })?;
    let mut kustomization = if documents.is_empty() { json!({}) } else { documents.swap_remove(0).value };
    let refused = |reason: &str| RenderError::Refused { file: overlay.clone(), reason: reason.to_owned() };
    let fields =
        kustomization.as_object_mut().ok_or_else(|| refused("the kustomization file is not a map"))?;
    let list = fields.entry(keys::written(fields, "patches")).or_insert_with(|| json!([]));
    if list.is_null() {
        *list = json!([]);
    }
    list.as_array_mut()
        .ok_or_else(|| refused("`patches` of the kustomization file is not a list"))?
        .extend(patches.iter().cloned());
    // JSON is YAML.
    context.disk.write(&path, kustomization.to_string())
}
