//! Adds the Application's own options to the overlay, by `kustomize edit`.

use std::path::Path;

use plumb_core::app::{KustomizeOptions, KustomizePatch};
use plumb_core::source::RepoPath;
use plumb_core::yaml;
use serde_json::{Map, Value, json};

use super::plan::KUSTOMIZATION_FILES;
use crate::build_env::BuildEnvironment;
use crate::error::RenderError;
use crate::limits::Limits;

/// The runs of `kustomize edit`, in Argo CD's order. `--` keeps values from being parsed as options.
pub(super) fn commands(
    options: &KustomizeOptions,
    components: &[String],
    environment: &BuildEnvironment,
) -> Vec<Vec<String>> {
    let mut commands: Vec<Vec<String>> = Vec::new();
    let mut push = |start: &[&str], values: Vec<String>| {
        let mut command: Vec<String> = start.iter().map(|&word| word.to_owned()).collect();
        command.push("--".to_owned());
        command.extend(values);
        commands.push(command);
    };
    let text = |value: &Option<String>| value.clone().filter(|text| !text.is_empty());
    if let Some(prefix) = text(&options.name_prefix) {
        push(&["set", "nameprefix"], vec![prefix]);
    }
    if let Some(suffix) = text(&options.name_suffix) {
        push(&["set", "namesuffix"], vec![suffix]);
    }
    if !options.images.is_empty() {
        push(&["set", "image"], options.images.iter().map(|image| environment.expand(image)).collect());
    }
    if !options.replicas.is_empty() {
        let replicas = options.replicas.iter().map(|replica| format!("{}={}", replica.name, replica.count));
        push(&["set", "replicas"], replicas.collect());
    }
    if !options.common_labels.is_empty() {
        let mut start = vec!["add", "label"];
        for (wanted, flag) in [
            (options.force_common_labels, "--force"),
            (options.label_without_selector, "--without-selector"),
            (options.label_include_templates, "--include-templates"),
        ] {
            if wanted {
                start.push(flag);
            }
        }
        let labels =
            options.common_labels.iter().map(|(name, value)| format!("{name}:{}", environment.expand(value)));
        push(&start, labels.collect());
    }
    if !options.common_annotations.is_empty() {
        let mut start = vec!["add", "annotation"];
        if options.force_common_annotations {
            start.push("--force");
        }
        let annotations = options.common_annotations.iter().map(|(name, value)| {
            let value =
                if options.common_annotations_envsubst { environment.expand(value) } else { value.clone() };
            format!("{name}:{value}")
        });
        push(&start, annotations.collect());
    }
    if let Some(namespace) = text(&options.namespace) {
        push(&["set", "namespace"], vec![namespace]);
    }
    if !components.is_empty() {
        push(&["add", "component"], components.to_vec());
    }
    commands
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
    limits: &Limits,
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
    let mut documents = yaml::parse_documents_bytes(&text, &limits.yaml)
        .map_err(|source| RenderError::Yaml { file: format!("{overlay}/kustomization.yaml"), source })?;
    let mut kustomization = if documents.is_empty() { json!({}) } else { documents.swap_remove(0).value };
    let refused = |reason: &str| RenderError::Refused { file: overlay.clone(), reason: reason.to_owned() };
    let list = kustomization
        .as_object_mut()
        .ok_or_else(|| refused("the kustomization file is not a map"))?
        .entry("patches")
        .or_insert_with(|| json!([]));
    if list.is_null() {
        *list = json!([]);
    }
    list.as_array_mut()
        .ok_or_else(|| refused("`patches` of the kustomization file is not a list"))?
        .extend(patches.iter().cloned());
    // JSON is YAML.
    std::fs::write(&path, kustomization.to_string()).map_err(|error| RenderError::scratch(&error))
}
