//! Changes that wake nobody: `resource.customizations.ignoreResourceUpdates`.
//!
//! Some objects are written all the time (a counter in an annotation, a lease in a status). Where the settings
//! name the fields that do not matter, a change that touches nothing else, and that leaves the object's health
//! as it was, asks for no run.

use std::collections::HashMap;

use parking_lot::Mutex;
use plumb_core::health::{self, HealthStatus};
use plumb_core::object::{FieldPath, Fingerprint, ObjectKey, Segment};
use plumb_kube::{Change, LiveStore, Origin, Role};
use serde_json::Value;

use crate::config::settings::Settings;

/// What objects looked like when they last woke somebody.
#[derive(Debug, Default)]
pub(crate) struct IgnoredUpdates(Mutex<HashMap<(String, ObjectKey), SeenObject>>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct SeenObject {
    matter: Fingerprint,
    health: Option<HealthStatus>,
}

/// Always left out, as in Argo CD: they change with everything else.
const ALWAYS: [&str; 3] = ["/metadata/resourceVersion", "/metadata/generation", "/metadata/managedFields"];

impl IgnoredUpdates {
    /// May this change be passed over? Only changes of objects that an app tracks, told by a watch, where a rule
    /// of the settings is about them.
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
        let place = (server.to_owned(), change.key.clone());
        if change.gone {
            self.lock().remove(&place);
            return false;
        }
        let Some(live) = store.get_kept(&change.key) else { return false };
        let ignored = rules.of(&change.key, None, Some(&live)).live;
        // What a user's script makes of a change only a run can tell.
        if ignored.is_empty() || settings.scripts.health_asks(&live).is_some() {
            return false;
        }
        let look = SeenObject {
            matter: Fingerprint::of_value(&without(live.value(), &ignored)),
            health: health::assess(&live).map(|health| health.status),
        };
        self.lock().insert(place, look.clone()) == Some(look)
    }

    fn lock(&self) -> parking_lot::MutexGuard<'_, HashMap<(String, ObjectKey), SeenObject>> {
        self.0.lock()
    }
}

/// The object with these places blanked out. Nothing is removed: the places of list items stay what they are.
fn without(object: &Value, ignored: &[FieldPath]) -> Value {
    let mut rest = object.clone();
    for place in ALWAYS.iter().map(|pointer| FieldPath::from_pointer(pointer)).chain(ignored.iter().cloned())
    {
        if let Some(value) = find_mut(&mut rest, &place) {
            *value = Value::Null;
        }
    }
    rest
}

fn find_mut<'value>(value: &'value mut Value, place: &FieldPath) -> Option<&'value mut Value> {
    place.segments().iter().try_fold(value, |value, segment| match (segment, value) {
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
    fn only_what_matters_is_compared() {
        let object = |replicas: u32, version: &str, ready: u32| {
            json!({"metadata": {"resourceVersion": version, "name": "a"}, "spec": {"replicas": replicas},
                   "status": {"list": [{"ready": ready}]}})
        };
        let rules =
            [FieldPath::from_pointer("/status/list/0/ready"), FieldPath::from_pointer("/status/none")];
        let look = |value: &Value| without(value, &rules);
        assert_eq!(look(&object(1, "5", 0)), look(&object(1, "6", 9)));
        assert_ne!(look(&object(1, "5", 0)), look(&object(2, "6", 0)));
    }
}
