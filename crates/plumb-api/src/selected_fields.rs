//! `fields=`: the parts of an answer that a client wants.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

/// Which fields of an answer are sent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SelectedFields {
    names: Node,
    is_exclusive: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Node {
    children: BTreeMap<String, Node>,
}

impl SelectedFields {
    /// Reads the parameter: paths with commas between them; with a minus before the first, all but these.
    pub fn parse(text: &str) -> Option<Self> {
        let (is_exclusive, text) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let mut names = Node::default();
        for path in text.split(',').map(str::trim).filter(|path| !path.is_empty()) {
            let mut node = &mut names;
            for name in path.split('.') {
                node = node.children.entry(name.to_owned()).or_default();
            }
        }
        (!names.children.is_empty()).then_some(Self { names, is_exclusive })
    }

    /// The part of a value that was asked for. Lists keep their entries.
    pub fn of(&self, value: &Value) -> Value {
        if self.is_exclusive { without(&self.names, value) } else { only(&self.names, value) }
    }

    /// The choice within a field of the answer, if that field is sent in part; `None` if all or nothing of it is sent, or
    /// if the fields are those to leave out.
    #[must_use]
    pub fn within(&self, name: &str) -> Option<Self> {
        let node =
            self.names.children.get(name).filter(|node| !node.children.is_empty() && !self.is_exclusive)?;
        Some(Self { names: node.clone(), is_exclusive: false })
    }

    /// True if this field of the answer is sent at all.
    pub fn wants(&self, path: &[&str]) -> bool {
        let mut node = &self.names;
        for name in path {
            match node.children.get(*name) {
                None => return self.is_exclusive,
                Some(child) if child.children.is_empty() => return !self.is_exclusive,
                Some(child) => node = child,
            }
        }
        true
    }
}

fn only(node: &Node, value: &Value) -> Value {
    match value {
        _ if node.children.is_empty() => value.clone(),
        Value::Array(list) => list.iter().map(|item| only(node, item)).collect(),
        Value::Object(map) => {
            let chosen = node.children.iter();
            let chosen = chosen.filter_map(|(name, node)| Some((name.clone(), only(node, map.get(name)?))));
            Value::Object(chosen.collect::<Map<String, Value>>())
        }
        other => other.clone(),
    }
}

fn without(node: &Node, value: &Value) -> Value {
    match value {
        Value::Array(list) => list.iter().map(|item| without(node, item)).collect(),
        Value::Object(map) => {
            let kept = map.iter().filter_map(|(name, value)| match node.children.get(name) {
                None => Some((name.clone(), value.clone())),
                Some(child) if child.children.is_empty() => None,
                Some(child) => Some((name.clone(), without(child, value))),
            });
            Value::Object(kept.collect())
        }
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_these_or_all_but_these() {
        let list = json!({"metadata": {"x": 1}, "items": [{"metadata": {"name": "a", "uid": "u"}, "spec": {"p": 1}}]});
        let fields = SelectedFields::parse("items.metadata.name,items.spec").unwrap();
        assert_eq!(fields.of(&list), json!({"items": [{"metadata": {"name": "a"}, "spec": {"p": 1}}]}));
        let within = fields.within("items").unwrap();
        assert_eq!(within.of(&list["items"][0]), json!({"metadata": {"name": "a"}, "spec": {"p": 1}}));
        assert!(fields.within("metadata").is_none());
        assert!(fields.wants(&["items", "spec", "p"]) && !fields.wants(&["items", "status"]));
        let fields = SelectedFields::parse("-items.spec,metadata").unwrap();
        assert_eq!(fields.of(&list), json!({"items": [{"metadata": {"name": "a", "uid": "u"}}]}));
        assert!(!fields.wants(&["items", "spec"]) && fields.wants(&["items", "status"]));
        assert_eq!(SelectedFields::parse(""), None);
    }
}
