//! JSON patches (RFC 6902).

use serde_json::Value;

/// Most operations of one patch. Each may move a whole list.
const MOST_OPERATIONS: usize = 10_000;

/// Applies a list of operations: add, replace, remove and test. The error says which one cannot be applied; the value is
/// then in between.
pub fn json_patch(value: &mut Value, changes: &Value) -> Result<(), String> {
    let operations = changes.as_array().ok_or("it is not a list of operations")?;
    if operations.len() > MOST_OPERATIONS {
        return Err(format!("it has more than {MOST_OPERATIONS} operations; send several patches"));
    }
    for operation in operations {
        let text = |name: &str| operation.get(name).and_then(Value::as_str).unwrap_or_default();
        let (kind, path) = (text("op"), text("path"));
        let new = operation.get("value").cloned().unwrap_or_default();
        if kind == "test" {
            if value.pointer(path) != Some(&new) {
                return Err(format!("test of {path} failed"));
            }
            continue;
        }
        let (parent, field) = path.rsplit_once('/').ok_or("a path must start with a slash")?;
        let field = field.replace("~1", "/").replace("~0", "~");
        let parent = value.pointer_mut(parent).ok_or_else(|| format!("{path} does not exist"))?;
        let done = match parent {
            Value::Object(map) => match kind {
                "add" => map.insert(field, new).map_or(Some(()), |_| Some(())),
                "replace" => map.get_mut(&field).map(|old| *old = new),
                "remove" => map.remove(&field).map(drop),
                _ => None,
            },
            Value::Array(list) => change_list(list, kind, &field, new),
            _ => None,
        };
        done.ok_or_else(|| format!("cannot {kind} {path}"))?;
    }
    Ok(())
}

fn change_list(list: &mut Vec<Value>, kind: &str, place: &str, new: Value) -> Option<()> {
    let at: usize = if place == "-" { list.len() } else { place.parse().ok()? };
    match kind {
        "add" if at <= list.len() => list.insert(at, new),
        "replace" => *list.get_mut(at)? = new,
        "remove" if at < list.len() => drop(list.remove(at)),
        _ => return None,
    }
    Some(())
}

/// Applies a merge patch (RFC 7396).
pub fn apply_merge_patch(value: &mut Value, patch: &Value) {
    let Value::Object(changes) = patch else {
        *value = patch.clone();
        return;
    };
    if !value.is_object() {
        *value = Value::Object(serde_json::Map::new());
    }
    let Value::Object(map) = value else { return };
    for (key, change) in changes {
        if change.is_null() {
            map.remove(key);
        } else {
            apply_merge_patch(map.entry(key.clone()).or_insert(Value::Null), change);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_patch_has_a_bounded_number_of_operations() {
        let add = json!({"op": "add", "path": "/list/0", "value": 1});
        let patch = |n: usize| Value::Array(vec![add.clone(); n]);
        let mut value = json!({"list": []});
        assert!(json_patch(&mut value, &patch(MOST_OPERATIONS + 1)).is_err());
        assert_eq!(value, json!({"list": []}));
        assert_eq!(json_patch(&mut value, &patch(MOST_OPERATIONS)), Ok(()));
    }

    #[test]
    fn patches_are_applied() {
        let app = json!({"spec": {"a": 1, "list": [1, 2]}, "metadata": {"labels": {"x": "y"}}});
        let mut merged = app.clone();
        apply_merge_patch(&mut merged, &json!({"spec": {"a": null, "b": {"c": 1}}}));
        assert_eq!(merged["spec"], json!({"list": [1, 2], "b": {"c": 1}}));
        let mut patched = app.clone();
        let changes = json!([
            {"op": "test", "path": "/spec/a", "value": 1},
            {"op": "replace", "path": "/spec/a", "value": 2},
            {"op": "add", "path": "/spec/list/-", "value": 3},
            {"op": "remove", "path": "/spec/list/0"},
            {"op": "add", "path": "/metadata/labels/p~1q", "value": "z"},
        ]);
        json_patch(&mut patched, &changes).unwrap();
        let wanted =
            json!({"spec": {"a": 2, "list": [2, 3]}, "metadata": {"labels": {"x": "y", "p/q": "z"}}});
        assert_eq!(patched, wanted);
        for wrong in [
            json!({}),
            json!([{"op": "remove", "path": "/spec/none"}]),
            json!([{"op": "replace", "path": "/spec/list/9", "value": 1}]),
            json!([{"op": "test", "path": "/spec/a", "value": 9}]),
            json!([{"op": "move", "path": "/spec/a"}]),
        ] {
            assert!(json_patch(&mut app.clone(), &wrong).is_err(), "{wrong}");
        }
    }
}
