//! Keys of kustomization files as Kustomize reads them: Go matches the keys of JSON with the names of fields in any case.

use serde_json::{Map, Value};

/// All values under a key, whatever its case. Kustomize uses one of them; which one depends on the order of the keys, so
/// all count.
pub(super) fn values<'a>(map: &'a Value, name: &'a str) -> impl Iterator<Item = &'a Value> {
    let entries = map.as_object().into_iter().flatten();
    entries.filter(move |(key, _)| is_same(key, name)).map(|(_, value)| value)
}

/// The items of all lists under a key.
pub(super) fn items<'a>(map: &'a Value, name: &'a str) -> impl Iterator<Item = &'a Value> {
    values(map, name).filter_map(Value::as_array).flatten()
}

/// The texts in all lists under a key.
pub(super) fn texts<'a>(map: &'a Value, name: &'a str) -> impl Iterator<Item = &'a str> {
    items(map, name).filter_map(Value::as_str)
}

/// All texts that are directly under a key.
pub(super) fn text<'a>(map: &'a Value, name: &'a str) -> impl Iterator<Item = &'a str> {
    values(map, name).filter_map(Value::as_str)
}

/// The key of a map that Kustomize reads as this name; the name itself if there is none.
pub(super) fn written(map: &Map<String, Value>, name: &str) -> String {
    map.keys().rfind(|key| is_same(key, name)).map_or_else(|| name.to_owned(), Clone::clone)
}

/// Go folds the case of all of Unicode. Two characters that are not ASCII fold to a letter: the long s and the sign of
/// Kelvin.
fn is_same(key: &str, name: &str) -> bool {
    let folded = key.chars().map(|character| match character {
        '\u{17f}' => 's',
        '\u{212a}' => 'k',
        other => other.to_ascii_lowercase(),
    });
    folded.eq(name.chars().map(|character| character.to_ascii_lowercase()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn keys_match_in_any_case() {
        for (key, name, expected) in [
            ("resources", "resources", true),
            ("Resources", "resources", true),
            ("RESOURCES", "resources", true),
            ("reſourceſ", "resources", true),
            ("patcheſ\u{212a}", "patchesk", true),
            ("resource", "resources", false),
            ("resourcesx", "resources", false),
            ("configmapgenerator", "configMapGenerator", true),
        ] {
            assert_eq!(is_same(key, name), expected, "{key}");
        }
        let map = json!({"Resources": ["a"], "resources": ["b", 1], "x": ["c"]});
        assert_eq!(texts(&map, "resources").collect::<Vec<_>>(), ["a", "b"]);
        assert_eq!(texts(&json!([]), "resources").count(), 0);
    }
}
