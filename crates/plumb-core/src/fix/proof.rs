//! The proof of a change: rendered again, exactly the intended fields of exactly the intended objects differ.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{ObjectChange, Unstable};
use crate::desired::DesiredSet;
use crate::object::{FieldPath, ObjectKey};

/// Why a change is not made, although the file could be changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProofFailure {
    /// The working copy asks for something else than what was compared with the cluster.
    #[error("the working copy has another value at {field} of {key} than the revision that was compared")]
    OtherRevision {
        /// The object.
        key: ObjectKey,
        /// Where.
        field: FieldPath,
    },
    /// Another change of the same run changed the place.
    #[error("another change of {key} changes {field} too; run plumb fix again after this one is merged")]
    Moved {
        /// The object.
        key: ObjectKey,
        /// Where.
        field: FieldPath,
    },
    /// The render of the working copy does not have the object.
    #[error("the render of the working copy does not have {key}")]
    NotRendered {
        /// The object.
        key: ObjectKey,
    },
    /// Another object changes too.
    #[error("{key} would change too")]
    OtherObject {
        /// That object.
        key: ObjectKey,
    },
    /// The object is not what it should be.
    #[error("the render does not take over the change of {key}")]
    NotTaken {
        /// The object.
        key: ObjectKey,
    },
}

/// Do Git's object and the one of the working copy say the same where this change begins? In a list, all of its items
/// have to be the same: the change names one by its position.
pub fn same_places(compared: &Value, rendered: &Value, change: &ObjectChange) -> Result<(), ProofFailure> {
    for operation in &change.operations {
        let mut field = FieldPath::root();
        for segment in operation.path().segments() {
            if field.find(compared).is_some_and(Value::is_array) {
                break;
            }
            field.push(segment.clone());
        }
        if field.find(compared) != field.find(rendered) {
            return Err(ProofFailure::OtherRevision { key: change.key.clone(), field });
        }
    }
    Ok(())
}

/// Is a place still what it was, after other changes of the same object? Then the change can be made there.
pub fn still_there(before: &Value, now: &Value, change: &ObjectChange) -> Result<(), ProofFailure> {
    for operation in &change.operations {
        let mut field = FieldPath::root();
        let moved = |field: &FieldPath| ProofFailure::Moved { key: change.key.clone(), field: field.clone() };
        for segment in operation.path().segments() {
            if let (Some(Value::Array(old)), Some(Value::Array(new))) = (field.find(before), field.find(now))
                && old.len() != new.len()
            {
                return Err(moved(&field));
            }
            field.push(segment.clone());
            let name = |object: &Value| field.find(object).and_then(|item| item.get("name")).cloned();
            if name(before) != name(now) {
                return Err(moved(&field));
            }
        }
        if field.find(before) != field.find(now) {
            return Err(moved(&field));
        }
    }
    Ok(())
}

/// Compares two renders of an app. Fails unless they differ by these changes alone, apart from what each render makes anew.
pub fn prove(
    before: &DesiredSet,
    after: &DesiredSet,
    changes: &[&ObjectChange],
    unstable: &Unstable,
) -> Result<(), ProofFailure> {
    let (mut expected, mut after) = (values(before), values(after));
    for change in changes {
        let not_taken = || ProofFailure::NotTaken { key: change.key.clone() };
        let value = expected
            .get_mut(&change.key)
            .ok_or_else(|| ProofFailure::NotRendered { key: change.key.clone() })?;
        for operation in &change.operations {
            *value = operation.apply(value).map_err(|_| not_taken())?;
        }
    }
    unstable.blank(&mut expected);
    unstable.blank(&mut after);
    let meant = |key: &ObjectKey| changes.iter().any(|change| change.key == *key);
    for key in expected.keys().chain(after.keys()) {
        if expected.get(key) != after.get(key) {
            let key = key.clone();
            return Err(if meant(&key) {
                ProofFailure::NotTaken { key }
            } else {
                ProofFailure::OtherObject { key }
            });
        }
    }
    Ok(())
}

/// Compares two renders of an app that reads a file which was changed for another app. Fails unless each object that
/// differs is one that a change of its own intends like this.
pub fn prove_intended(
    before: &DesiredSet,
    after: &DesiredSet,
    intended: &[&ObjectChange],
    unstable: &Unstable,
) -> Result<(), ProofFailure> {
    let (mut before, mut after) = (values(before), values(after));
    unstable.blank(&mut before);
    unstable.blank(&mut after);
    for key in before.keys().chain(after.keys()) {
        let (old, new) = (before.get(key), after.get(key));
        if old == new {
            continue;
        }
        let own = intended.iter().filter(|change| change.key == *key).flat_map(|change| &change.operations);
        let made = old.and_then(|old| {
            own.into_iter().try_fold(old.clone(), |value, operation| operation.apply(&value).ok())
        });
        if made.as_ref() != new {
            return Err(ProofFailure::OtherObject { key: key.clone() });
        }
    }
    Ok(())
}

/// Compares two renders of an app. Fails unless exactly this object is gone from the second.
pub fn prove_dropped(
    before: &DesiredSet,
    after: &DesiredSet,
    key: &ObjectKey,
    unstable: &Unstable,
) -> Result<(), ProofFailure> {
    let (mut expected, mut after) = (values(before), values(after));
    unstable.blank(&mut expected);
    unstable.blank(&mut after);
    if expected.remove(key).is_none() {
        return Err(ProofFailure::NotRendered { key: key.clone() });
    }
    if after.contains_key(key) {
        return Err(ProofFailure::NotTaken { key: key.clone() });
    }
    let mut keys = expected.keys().chain(after.keys());
    match keys.find(|other| expected.get(*other) != after.get(*other)) {
        Some(other) => Err(ProofFailure::OtherObject { key: other.clone() }),
        None => Ok(()),
    }
}

/// Objects and hooks. Hooks of a generated name are told apart by their place in the list.
pub(super) fn values(set: &DesiredSet) -> BTreeMap<ObjectKey, Value> {
    let objects = set.objects.iter().map(|(key, object)| (key.clone(), object.manifest.value().clone()));
    let hooks = set.hooks.iter().enumerate().map(|(place, hook)| {
        let manifest = hook.manifest.clone().with_namespace(hook.namespace.as_deref());
        let key = manifest.key().unwrap_or_else(|| {
            let name = format!("{}{place}", manifest.generate_name().unwrap_or_default());
            ObjectKey::new(manifest.group(), manifest.kind(), hook.namespace.clone(), name)
        });
        (key, hook.manifest.value().clone())
    });
    objects.chain(hooks).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::desired::{DesiredContext, KindFilter, Origin, RenderedManifest, Scopes, build};
    use crate::tracking::TrackingSettings;
    use crate::yaml::Operation;
    use serde_json::json;

    fn set(values: &[Value]) -> DesiredSet {
        let rendered = values.iter().map(|value| RenderedManifest { value: value.clone(), origin: None });
        build(
            rendered.collect(),
            &DesiredContext {
                app: "shop",
                destination_namespace: Some("web"),
                destination_server: "",
                scopes: &Scopes::built_in(),
                tracking: &TrackingSettings::default(),
                filter: &KindFilter::default(),
            },
        )
    }

    fn map(name: &str, data: &Value) -> Value {
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data})
    }

    fn change(name: &str, path: &str) -> ObjectChange {
        ObjectChange {
            key: ObjectKey::new("", "ConfigMap", Some("web".to_owned()), name),
            origin: Origin { source: 0, file: "a.yaml".to_owned(), line: 1, verbatim: true },
            operations: vec![Operation::Remove { path: FieldPath::from_pointer(path) }],
            why: String::new(),
        }
    }

    /// A chart may make a password, or print the time.
    #[test]
    fn what_each_render_makes_anew_does_not_matter() {
        let with = |stamp: &str, x: &str| {
            set(&[map("a", &json!({"stamp": stamp, "x": x, "y": "2"})), map("b", &json!({"stamp": stamp}))])
        };
        let unstable = Unstable::between(&with("1", "1"), &with("2", "1"));
        let removed = change("a", "/data/x");
        let without = |stamp: &str| {
            set(&[map("a", &json!({"stamp": stamp, "y": "2"})), map("b", &json!({"stamp": stamp}))])
        };
        let before = with("1", "1");
        assert!(prove(&before, &without("3"), &[&removed], &Unstable::default()).is_err());
        assert_eq!(prove(&before, &without("3"), &[&removed], &unstable), Ok(()));
        assert_eq!(prove_intended(&before, &with("3", "1"), &[], &unstable), Ok(()));
        // Everything else counts, and a change of such a value cannot be proved.
        assert!(prove(&before, &with("3", "1"), &[&removed], &unstable).is_err());
        assert!(prove_intended(&before, &with("3", "2"), &[], &unstable).is_err());
        assert!(prove(&before, &without("3"), &[&change("a", "/data/stamp")], &unstable).is_err());
    }

    #[test]
    fn only_the_dropped_object_may_go() {
        let (a, b) = (map("a", &json!({"x": "1"})), map("b", &json!({"x": "1"})));
        let key = change("a", "").key;
        let before = set(&[a.clone(), b.clone()]);
        let proved = |after: &[Value]| {
            prove_dropped(&before, &set(after), &key, &Unstable::default()).map_err(|why| why.to_string())
        };
        assert_eq!(proved(std::slice::from_ref(&b)), Ok(()));
        assert_eq!(
            proved(&[a, b]),
            Err("the render does not take over the change of ConfigMap web/a".to_owned())
        );
        assert_eq!(proved(&[]), Err("ConfigMap web/b would change too".to_owned()));
    }

    #[test]
    fn only_the_intended_fields_may_change() {
        let before = set(&[map("a", &json!({"x": "1", "y": "2"})), map("b", &json!({"x": "1"}))]);
        let removed = change("a", "/data/x");
        let proved = |after: &[Value]| {
            prove(&before, &set(after), &[&removed], &Unstable::default()).map_err(|why| why.to_string())
        };
        assert_eq!(proved(&[map("a", &json!({"y": "2"})), map("b", &json!({"x": "1"}))]), Ok(()));
        for (after, why) in [
            (
                vec![map("a", &json!({"x": "1", "y": "2"})), map("b", &json!({"x": "1"}))],
                "the render does not take over the change of ConfigMap web/a",
            ),
            (
                vec![map("a", &json!({})), map("b", &json!({"x": "1"}))],
                "the render does not take over the change of ConfigMap web/a",
            ),
            (vec![map("a", &json!({"y": "2"})), map("b", &json!({}))], "ConfigMap web/b would change too"),
            (vec![map("a", &json!({"y": "2"}))], "ConfigMap web/b would change too"),
        ] {
            assert_eq!(proved(&after), Err(why.to_owned()));
        }
        let other = change("c", "/data/x");
        assert_eq!(
            prove(&before, &before, &[&other], &Unstable::default()).map_err(|why| why.to_string()),
            Err("the render of the working copy does not have ConfigMap web/c".to_owned())
        );
    }

    #[test]
    fn another_app_changes_only_as_it_intends() {
        let (a, b) = (map("a", &json!({"x": "1", "y": "2"})), map("b", &json!({"x": "1"})));
        let before = set(&[a.clone(), b.clone()]);
        let without = map("a", &json!({"y": "2"}));
        let proved = |after: &[Value], intended: &[&ObjectChange]| {
            prove_intended(&before, &set(after), intended, &Unstable::default())
                .map_err(|why| why.to_string())
        };
        let own = change("a", "/data/x");
        assert_eq!(proved(&[a.clone(), b.clone()], &[]), Ok(()), "nothing differs");
        assert_eq!(proved(&[a.clone(), b.clone()], &[&own]), Ok(()), "it is not made yet");
        assert_eq!(proved(&[without.clone(), b.clone()], &[&own]), Ok(()));
        for (after, intended) in [
            (vec![without.clone(), b.clone()], &[] as &[&ObjectChange]),
            (vec![map("a", &json!({"x": "1"})), b], &[&own]),
            (vec![without], &[&own]),
        ] {
            assert!(proved(&after, intended).is_err_and(|why| why.ends_with("would change too")));
        }
    }

    #[test]
    fn a_change_beside_other_changes_needs_its_own_place_as_it_was() {
        let before = json!({"list": [{"name": "a", "x": 1}, {"name": "b"}], "map": {"x": 1}});
        for (now, path, is_same) in [
            (json!({"list": [{"name": "a", "x": 1, "y": 2}, {"name": "b"}]}), "/list/0/x", true),
            (json!({"list": [{"name": "a", "x": 2}, {"name": "b"}]}), "/list/0/x", false),
            (json!({"list": [{"name": "a", "x": 1}]}), "/list/0/x", false),
            (json!({"list": [{"name": "b", "x": 1}, {"name": "a"}]}), "/list/0/x", false),
            (json!({"map": {"x": 1, "y": 1}}), "/map/x", true),
            (json!({"map": {}}), "/map/x", false),
        ] {
            assert_eq!(still_there(&before, &now, &change("a", path)).is_ok(), is_same, "{now} {path}");
        }
    }

    #[test]
    fn a_working_copy_of_another_revision_is_noticed() {
        let here = json!({"data": {"x": "1"}, "list": [{"a": 1}, {"b": 2}]});
        for (there, path, is_same) in [
            (json!({"data": {"x": "1"}, "other": 1}), "/data/x", true),
            (json!({"data": {"x": "2"}}), "/data/x", false),
            (json!({"data": {}}), "/data/x", false),
            (json!({"list": [{"a": 1}, {"b": 2}]}), "/list/1/b", true),
            (json!({"list": [{"b": 2}]}), "/list/1/b", false),
        ] {
            let removed = change("a", path);
            assert_eq!(same_places(&here, &there, &removed).is_ok(), is_same, "{there} {path}");
        }
    }
}
