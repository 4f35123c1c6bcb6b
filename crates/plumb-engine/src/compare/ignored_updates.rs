//! Changes that trigger no run: `resource.customizations.ignoreResourceUpdates`.
//!
//! Some objects are written all the time (a counter in an annotation, a lease in a status). The settings can name
//! fields that do not matter. A change of only these fields that leaves the object's health as it was triggers no run.

use std::collections::HashMap;

use parking_lot::Mutex;
use plumb_core::health::{self, HealthStatus};
use plumb_core::object::{FieldPath, Fingerprint, ObjectKey, Segment};
use plumb_kube::{Change, LiveStore, Origin, Role};
use serde_json::Value;

use crate::config::settings::Settings;

/// The last seen state of objects, by cluster and key.
#[derive(Debug, Default)]
pub(crate) struct IgnoredUpdates(Mutex<HashMap<(String, ObjectKey), SeenObject>>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct SeenObject {
    content: Fingerprint,
    health: Option<HealthStatus>,
}

/// Always ignored, as in Argo CD: they change with every write.
const ALWAYS_IGNORED: [&str; 3] =
    ["/metadata/resourceVersion", "/metadata/generation", "/metadata/managedFields"];

impl IgnoredUpdates {
    /// True if this change triggers no run. Only watch events of objects that an app tracks can be ignored, and only if
    /// a rule of the settings matches the object.
    pub(crate) fn may_ignore(
        &self,
        server: &str,
        store: &LiveStore,
        settings: &Settings,
        change: &Change,
    ) -> bool {
        let Some(rules) = &settings.update_rules else { return false };
        let is_tracked = change.touched.iter().any(|touched| touched.role == Role::Tracked);
        if !is_tracked || change.origin == Origin::Written {
            return false;
        }
        let id = (server.to_owned(), change.key.clone());
        if change.gone {
            self.lock().remove(&id);
            return false;
        }
        let Some(live) = store.get_kept(&change.key) else { return false };
        let ignored = rules.of(&change.key, None, Some(&live)).live;
        // Only a run calls the users' health scripts, so it has to decide.
        if ignored.is_empty() || settings.scripts.health_asks(&live).is_some() {
            return false;
        }
        let seen = SeenObject {
            content: Fingerprint::of_value(&without(live.value(), &ignored)),
            health: health::assess(&live).map(|health| health.status),
        };
        self.lock().insert(id, seen.clone()) == Some(seen)
    }

    fn lock(&self) -> parking_lot::MutexGuard<'_, HashMap<(String, ObjectKey), SeenObject>> {
        self.0.lock()
    }
}

/// The object with these fields set to null. Nothing is removed, so the indexes of list items stay the same.
fn without(object: &Value, ignored: &[FieldPath]) -> Value {
    let mut rest = object.clone();
    let always = ALWAYS_IGNORED.iter().map(|pointer| FieldPath::from_pointer(pointer));
    for path in always.chain(ignored.iter().cloned()) {
        if let Some(value) = find_mut(&mut rest, &path) {
            *value = Value::Null;
        }
    }
    rest
}

fn find_mut<'value>(value: &'value mut Value, path: &FieldPath) -> Option<&'value mut Value> {
    path.segments().iter().try_fold(value, |value, segment| match (segment, value) {
        (Segment::Field(name), Value::Object(map)) => map.get_mut(name.as_str()),
        (Segment::Field(name), Value::Array(items)) => items.get_mut(name.parse::<usize>().ok()?),
        (Segment::Index(index), Value::Array(items)) => items.get_mut(*index),
        (Segment::Field(_) | Segment::Index(_), _) => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn ignored_fields_are_not_compared() {
        let object = |replicas: u32, version: &str, ready: u32| {
            json!({"metadata": {"resourceVersion": version, "name": "a"}, "spec": {"replicas": replicas},
                   "status": {"list": [{"ready": ready}]}})
        };
        let rules =
            [FieldPath::from_pointer("/status/list/0/ready"), FieldPath::from_pointer("/status/none")];
        let compared = |value: &Value| without(value, &rules);
        assert_eq!(compared(&object(1, "5", 0)), compared(&object(1, "6", 9)));
        assert_ne!(compared(&object(1, "5", 0)), compared(&object(2, "6", 0)));
    }
}
