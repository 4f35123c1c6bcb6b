//! Where a field of the live object is in Git's object.

use serde_json::Value;

use crate::object::{FieldPath, Segment, has_all};

/// The same field in Git's object; it need not be there yet. `None` if it is inside a list item that Git does not have,
/// or of which it is not certain which one it is.
pub(super) fn git_path(desired: &Value, live: &Value, field: &FieldPath) -> Option<FieldPath> {
    let mut path = FieldPath::root();
    let (mut desired, mut live) = (Some(desired), Some(live));
    for segment in field.segments() {
        let name = match segment {
            Segment::Field(name) => name.to_string(),
            Segment::Index(index) => index.to_string(),
        };
        if let Some(Value::Array(live_items)) = live {
            let at: usize = name.parse().ok()?;
            let Some(Value::Array(items)) = desired else { return None };
            let found = position(items, live_items, at)?;
            path.push(Segment::Index(found));
            (desired, live) = (items.get(found), live_items.get(at));
        } else {
            path.push(Segment::Field(name.as_str().into()));
            desired = desired.and_then(|value| value.get(&name));
            live = live.and_then(|value| value.get(&name));
        }
    }
    Some(path)
}

/// The position of a live item in Git's list: the one item of which the live one has everything, or the one with its
/// name, or the one in its place if the lists have as many.
fn position(items: &[Value], live_items: &[Value], at: usize) -> Option<usize> {
    let live = live_items.get(at)?;
    let only = |is_it: &dyn Fn(&Value) -> bool| {
        let mut found = items.iter().enumerate().filter(|(_, item)| is_it(item));
        let first = found.next()?.0;
        found.next().is_none().then_some(first)
    };
    let name = live.get("name").filter(|name| name.is_string());
    match name {
        Some(name) => only(&|item| item.get("name") == Some(name)),
        None => only(&|item| has_all(live, item)).or_else(|| {
            (items.len() == live_items.len() && items.get(at)?.get("name").is_none()).then_some(at)
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn list_items_are_found_again() {
        let desired =
            json!({"c": [{"name": "b"}, {"name": "a"}], "data": [{"key": "x"}, {"key": "y"}], "cpu": ["1"]});
        let live = json!({
            "c": [{"name": "a"}, {"name": "b"}, {"name": "injected"}],
            "data": [{"key": "y", "p": 1}, {"key": "x", "p": 1}],
            "cpu": ["1000m"],
            "made": [{"x": 1}],
        });
        for (field, expected) in [
            ("/c/0/image", Some("/c/1/image")),
            ("/c/2/image", None),
            ("/data/0/p", Some("/data/1/p")),
            ("/cpu/0", Some("/cpu/0")),
            ("/spec/new/field", Some("/spec/new/field")),
            ("/made/0/x", None),
            ("/c/9", None),
        ] {
            let found = git_path(&desired, &live, &FieldPath::from_pointer(field));
            assert_eq!(found.map(|path| path.to_string()).as_deref(), expected, "{field}");
        }
    }
}
