//! Writing the tracking mark.

use serde_json::{Map, Value};

use super::{TrackingId, TrackingMethod, TrackingSettings};
use crate::object::Manifest;

/// The annotation that carries a [`TrackingId`].
pub const TRACKING_ANNOTATION: &str = "argocd.argoproj.io/tracking-id";
/// The annotation that separates the objects of one installation from those of another.
pub const INSTALLATION_ANNOTATION: &str = "argocd.argoproj.io/installation-id";
/// The annotation that `plumb adopt` writes to a CRD: CRDs carry no tracking mark.
pub const ADOPTED_ANNOTATION: &str = "plumb.dev/adopted-by";
/// The label key of Argo CD before 0.11; where it is configured, pod templates carry the label too.
pub const LEGACY_LABEL: &str = "applications.argoproj.io/app-name";

/// Is it a `CustomResourceDefinition`? They carry no mark: an engine that prunes by marks would take every
/// custom object of the kind with it. See [`tracked_by`](super::tracked_by()) for what replaces the mark.
pub fn is_crd(manifest: &Manifest) -> bool {
    manifest.kind() == "CustomResourceDefinition" && manifest.group() == "apiextensions.k8s.io"
}

/// The object with the mark of `app` (its instance name); CRDs come back as they are. `default_namespace` is
/// the destination's: the id of an object without namespace carries it, cluster-scoped objects included,
/// because that is what Argo CD writes and reads.
#[must_use]
pub fn mark(
    manifest: Manifest,
    app: &str,
    default_namespace: Option<&str>,
    settings: &TrackingSettings,
) -> Manifest {
    if is_crd(&manifest) {
        return manifest;
    }
    match settings.method {
        TrackingMethod::Label => with_instance_label(manifest, &settings.label_key, app),
        TrackingMethod::Annotation => with_annotations(manifest, app, default_namespace, settings),
        TrackingMethod::AnnotationAndLabel => {
            let marked = with_annotations(manifest, app, default_namespace, settings);
            match short_label(app) {
                Some(label) => with_instance_label(marked, &settings.label_key, label),
                None => marked,
            }
        }
    }
}

fn with_annotations(
    manifest: Manifest,
    app: &str,
    default_namespace: Option<&str>,
    settings: &TrackingSettings,
) -> Manifest {
    let id = TrackingId {
        app: app.to_owned(),
        group: manifest.group().to_owned(),
        kind: manifest.kind().to_owned(),
        namespace: manifest.namespace().or(default_namespace).unwrap_or_default().to_owned(),
        name: manifest.name().unwrap_or_default().to_owned(),
    };
    let marked = manifest.with_annotation(TRACKING_ANNOTATION, &id.to_string());
    match &settings.installation_id {
        Some(installation) => marked.with_annotation(INSTALLATION_ANNOTATION, installation),
        None if marked.annotation(INSTALLATION_ANNOTATION).is_some() => marked.edit_metadata(|metadata| {
            if let Some(Value::Object(annotations)) = metadata.get_mut("annotations") {
                annotations.remove(INSTALLATION_ANNOTATION);
            }
        }),
        None => marked,
    }
}

fn with_instance_label(manifest: Manifest, key: &str, label: &str) -> Manifest {
    let marked = manifest.with_label(key, label);
    if key != LEGACY_LABEL || !makes_pods(&marked) {
        return marked;
    }
    marked.edit_spec(|spec| {
        let Some(Value::Object(template)) = spec.get_mut("template") else { return };
        let metadata = template.entry("metadata").or_insert_with(|| Value::Object(Map::new()));
        let Value::Object(metadata) = metadata else { return };
        let labels = metadata.entry("labels").or_insert_with(|| Value::Object(Map::new()));
        if let Value::Object(labels) = labels {
            labels.insert(key.to_owned(), Value::String(label.to_owned()));
        }
    })
}

fn makes_pods(manifest: &Manifest) -> bool {
    matches!(
        (manifest.group(), manifest.kind()),
        ("apps" | "extensions", "Deployment" | "ReplicaSet" | "StatefulSet" | "DaemonSet") | ("batch", "Job")
    )
}

/// The app's name as a label value: at most 63 characters, ending in a letter or digit. `None` if nothing of
/// it can be a label.
pub(super) fn short_label(app: &str) -> Option<&str> {
    const LONGEST_LABEL: usize = 63;
    if app.len() <= LONGEST_LABEL {
        return Some(app);
    }
    let end = (0..=LONGEST_LABEL).rev().find(|&end| app.is_char_boundary(end))?;
    let short = app[..end].trim_end_matches(|last: char| !last.is_ascii_alphanumeric());
    (!short.is_empty()).then_some(short)
}
