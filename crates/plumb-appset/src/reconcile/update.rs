//! How one Application becomes what was generated.

use plumb_core::object::{ObjectKey, merge_patch};
use plumb_crd::application::ApplicationSpec;
use plumb_crd::wire::Wire as _;
use plumb_crd::{Application, ApplicationSet};
use serde_json::{Map, Value as Json, json};

use super::ignored::IgnoredFields;
use super::ownership::{adopted, reference};
use super::policy::Rules;
use super::validate::name_of;

/// Annotations that other parts of Argo CD write.
const KEPT_ANNOTATIONS: [&str; 3] =
    ["notified.notifications.argoproj.io", "argocd.argoproj.io/refresh", "argocd.argoproj.io/hydrate"];

/// Finalizers that the application controller adds for hooks.
const KEPT_FINALIZERS: [&str; 2] =
    ["pre-delete-finalizer.argocd.argoproj.io", "post-delete-finalizer.argocd.argoproj.io"];

/// What all Applications of a set share.
pub(super) struct Updater<'a> {
    set: &'a ApplicationSet,
    ignored: IgnoredFields,
    annotations: Vec<&'a str>,
    labels: Vec<&'a str>,
}

impl<'a> Updater<'a> {
    pub(super) fn new(set: &'a ApplicationSet, rules: &'a Rules) -> Self {
        let own = set.spec.preserved_fields.as_ref();
        let listed =
            own.into_iter().flat_map(|fields| &fields.annotations).chain(&rules.preserved_annotations);
        let annotations = listed.map(String::as_str).chain(KEPT_ANNOTATIONS).collect();
        let labels = own.into_iter().flat_map(|fields| &fields.labels).chain(&rules.preserved_labels);
        let labels = labels.map(String::as_str).collect();
        Self { set, ignored: IgnoredFields::new(set), annotations, labels }
    }

    /// The Application to create.
    pub(super) fn create(&self, generated: &Json) -> Result<Json, String> {
        let mut object = json!({
            "apiVersion": Application::API_VERSION,
            "kind": Application::KIND,
            "metadata": generated["metadata"],
            "spec": normalized(&generated["spec"])?,
        });
        object["metadata"]["ownerReferences"] = json!([reference(self.set)]);
        if let Some(operation) = generated.get("operation") {
            object["operation"] = operation.clone();
        }
        Ok(object)
    }

    /// The merge patch that makes the live Application what was generated; `None` if it is that.
    pub(super) fn patch(&self, generated: &Json, live: &Json) -> Result<Option<Json>, String> {
        let mut before = comparable(live);
        before["spec"] = normalized(&live["spec"])?;
        let mut wanted = json!({"metadata": self.metadata(generated, live)?});
        wanted["spec"] = normalized(&generated["spec"])?;
        if let Some(operation) = generated.get("operation").or(live.get("operation")) {
            wanted["operation"] = operation.clone();
        }
        let key = ObjectKey::new(
            "argoproj.io",
            Application::KIND,
            Some(self.set.metadata.namespace.clone()),
            name_of(generated),
        );
        self.ignored.keep(&key, &mut wanted, &before)?;
        wanted["spec"] = normalized(&wanted["spec"])?;
        Ok(merge_patch(&before, &wanted))
    }

    /// True if the spec that was generated differs from the live one.
    pub(super) fn changes_spec(&self, generated: &Json, live: &Json) -> bool {
        let patch = self.patch(generated, live);
        patch.is_ok_and(|patch| patch.is_some_and(|patch| patch.get("spec").is_some()))
    }

    fn metadata(&self, generated: &Json, live: &Json) -> Result<Json, String> {
        let (wanted, now) = (&generated["metadata"], &live["metadata"]);
        let mut metadata = Map::new();
        for (field, kept) in [("annotations", &self.annotations), ("labels", &self.labels)] {
            let mut map = wanted[field].as_object().cloned().unwrap_or_default();
            for key in kept {
                if let Some(value) = now[field].get(*key) {
                    map.insert((*key).to_owned(), value.clone());
                }
            }
            if !map.is_empty() {
                metadata.insert(field.to_owned(), Json::Object(map));
            }
        }
        // The API server accepts no new finalizers on an object that is being deleted.
        let finalizers = if now.get("deletionTimestamp").is_some() {
            now["finalizers"].as_array().cloned().unwrap_or_default()
        } else {
            let mut finalizers = wanted["finalizers"].as_array().cloned().unwrap_or_default();
            let is_kept = |finalizer: &&Json| {
                let text = finalizer.as_str().unwrap_or_default();
                KEPT_FINALIZERS.iter().any(|prefix| text.starts_with(prefix))
                    && !finalizers.contains(finalizer)
            };
            let kept: Vec<Json> =
                now["finalizers"].as_array().into_iter().flatten().filter(is_kept).cloned().collect();
            finalizers.extend(kept);
            finalizers
        };
        if !finalizers.is_empty() {
            metadata.insert("finalizers".to_owned(), Json::Array(finalizers));
        }
        metadata.insert("ownerReferences".to_owned(), adopted(self.set, live)?);
        Ok(Json::Object(metadata))
    }
}

/// The parts of a live Application that a set may write.
fn comparable(live: &Json) -> Json {
    let mut metadata = Map::new();
    for field in ["annotations", "labels", "finalizers", "ownerReferences"] {
        let value = &live["metadata"][field];
        let is_empty =
            value.as_object().is_none_or(Map::is_empty) && value.as_array().is_none_or(Vec::is_empty);
        if !is_empty {
            metadata.insert(field.to_owned(), value.clone());
        }
    }
    let mut part = json!({"metadata": metadata});
    if let Some(operation) = live.get("operation").filter(|operation| !operation.is_null()) {
        part["operation"] = operation.clone();
    }
    part
}

/// The spec as Argo CD stores it.
pub(super) fn normalized(spec: &Json) -> Result<Json, String> {
    let read = ApplicationSpec::read(spec);
    let read = read.map_err(|error| format!("cannot read the spec of the Application: spec.{error}"))?;
    Ok(read.normalized().write())
}
