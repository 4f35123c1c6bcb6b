//! The tracking rules of the core, applied to the metadata that a watch parses.

use std::sync::Arc;

use plumb_core::object::Manifest;
use plumb_core::tracking::{
    INSTALLATION_ANNOTATION, TRACKING_ANNOTATION, TrackingMethod, TrackingSettings, owner_of,
};
use serde_json::json;

use super::options::OwnerOf;
use crate::feed::Marks;

/// Finds an object's app by `settings`. Most objects have no tracking mark and cost one lookup.
pub fn owner_by(settings: TrackingSettings) -> Arc<OwnerOf> {
    Arc::new(move |marks: &Marks<'_>| {
        let label = marks.label(&settings.label_key);
        let annotation = marks.annotation(TRACKING_ANNOTATION);
        match settings.method {
            TrackingMethod::Label => label?,
            TrackingMethod::Annotation | TrackingMethod::AnnotationAndLabel => annotation?,
        };
        let value = json!({"apiVersion": "v1", "kind": "Marked", "metadata": {
        "labels": {settings.label_key.as_str(): label},
        "annotations": {
            TRACKING_ANNOTATION: annotation,
            INSTALLATION_ANNOTATION: marks.annotation(INSTALLATION_ANNOTATION),
        }}});
        owner_of(&Manifest::new(value).ok()?, &settings).map(|owner| owner.app)
    })
}
