//! Fields of list items, for rules that Argo CD carries out on Git's object and on the live one.

use std::fmt::Write as _;

use serde_json::Value;

use crate::object::{FieldPath, Manifest, Segment};

/// A jq path to this field that finds list items by their names; `None` if the pointer is the same on both sides, or if an
/// item has no name. `own` is the object in whose positions the field is given, `other` is the other side: Argo CD removes
/// what a pointer names from both.
pub(super) fn by_names(field: &FieldPath, own: &Manifest, other: &Manifest) -> Option<String> {
    let (mut own, mut other) = (Some(own.value()), Some(other.value()));
    let (mut path, mut differs) = (String::new(), false);
    for segment in field.segments() {
        let at = match (segment, own) {
            (Segment::Index(index), _) => Some(*index),
            // Reports have positions as texts.
            (Segment::Field(name), Some(Value::Array(_))) => name.parse().ok(),
            (Segment::Field(_), _) => None,
        };
        if let Some(at) = at {
            let name = own.and_then(|items| items.get(at)?.get("name")?.as_str());
            let name_of = |item: &Value| item.get("name").and_then(Value::as_str).map(str::to_owned);
            let items = other.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
            let there =
                name.and_then(|name| items.iter().position(|item| name_of(item).as_deref() == Some(name)));
            let is_same = match there {
                Some(there) => there == at,
                // Nothing else is in its place.
                None => items.get(at).is_none_or(|item| name.is_none() && name_of(item).is_none()),
            };
            differs |= !is_same;
            // Writing to a String cannot fail.
            match name {
                Some(name) => drop(write!(path, "[] | select(.name == {}) | ", Value::from(name))),
                None if is_same => drop(write!(path, "[{at}]")),
                None => return None,
            }
            own = own.and_then(|items| items.get(at));
            other = match name {
                Some(_) => there.and_then(|there| items.get(there)),
                None => items.get(at),
            };
        } else if let Segment::Field(name) = segment {
            let is_plain = !name.is_empty()
                && name.chars().all(|char| char.is_ascii_alphanumeric() || char == '_')
                && !name.starts_with(|char: char| char.is_ascii_digit());
            if is_plain {
                let _ = write!(path, ".{name}");
            } else {
                let _ = write!(path, ".[{}]", Value::from(name.as_str()));
            }
            own = own.and_then(|value| value.get(name.as_str()));
            other = other.and_then(|value| value.get(name.as_str()));
        }
    }
    differs.then(|| path.trim_end_matches(" | ").to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn pod(containers: &Value) -> Manifest {
        let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": {"containers": containers}});
        Manifest::new(pod).expect("an object")
    }

    #[test]
    fn an_item_with_another_position_is_found_by_its_name() {
        let git = pod(&json!([{"name": "web", "env": [{"name": "A"}]}, {"name": "b"}]));
        let live = pod(&json!([{"name": "proxy"}, {"name": "web", "env": [{"name": "B"}, {"name": "A"}]}]));
        for (own, other, field, expected) in [
            (&live, &git, "/spec/containers/0", Some(".spec.containers[] | select(.name == \"proxy\")")),
            (
                &live,
                &git,
                "/spec/containers/1/image",
                Some(".spec.containers[] | select(.name == \"web\") | .image"),
            ),
            (
                &live,
                &git,
                "/spec/containers/1/env/1/x-y",
                Some(
                    ".spec.containers[] | select(.name == \"web\") | .env[] | select(.name == \"A\") | .[\"x-y\"]",
                ),
            ),
            (
                &git,
                &live,
                "/spec/containers/0/image",
                Some(".spec.containers[] | select(.name == \"web\") | .image"),
            ),
            // The same on both sides, or only on one.
            (&live, &live, "/spec/containers/1/image", None),
            (&live, &pod(&json!([{"name": "proxy"}])), "/spec/containers/1", None),
            (
                &live,
                &pod(&json!([{"name": "web"}])),
                "/spec/containers/1/image",
                Some(".spec.containers[] | select(.name == \"web\") | .image"),
            ),
            (&live, &git, "/spec/hostname", None),
        ] {
            let found = by_names(&FieldPath::from_pointer(field), own, other);
            assert_eq!(found.as_deref(), expected, "{field}");
        }
    }
}
