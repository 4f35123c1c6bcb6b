//! The narrowest rule of `ignoreDifferences`.

use serde_json::{Map, Value};

use crate::object::{FieldPath, ObjectKey};
use crate::yaml::Operation;

/// A rule for exactly these fields of exactly this object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IgnoreEntry {
    /// The object.
    pub key: ObjectKey,
    /// The fields.
    pub pointers: Vec<FieldPath>,
    /// Fields in list items that have another position in Git, as jq paths that find the item by its name.
    pub expressions: Vec<String>,
    /// Why, for the comment above the rule.
    pub why: String,
}

impl IgnoreEntry {
    /// The rule as the Application has it. A group or namespace that is empty is left out: Argo CD would drop it, and
    /// the Application itself would differ from Git.
    pub fn value(&self) -> Value {
        let mut rule = self.identity();
        for (name, values) in self.lists() {
            if !values.is_empty() {
                rule.insert(name.to_owned(), Value::Array(values));
            }
        }
        Value::Object(rule)
    }

    fn lists(&self) -> [(&'static str, Vec<Value>); 2] {
        let pointers = self.pointers.iter().map(|pointer| Value::from(pointer.to_string())).collect();
        let expressions =
            self.expressions.iter().map(|expression| Value::from(expression.as_str())).collect();
        [("jsonPointers", pointers), ("jqPathExpressions", expressions)]
    }

    fn identity(&self) -> Map<String, Value> {
        let fields = [
            ("group", self.key.group.as_str()),
            ("kind", self.key.kind.as_str()),
            ("namespace", self.key.namespace_or_empty()),
            ("name", self.key.name.as_str()),
        ];
        let fields = fields.into_iter().filter(|(_, value)| !value.is_empty());
        fields.map(|(name, value)| (name.to_owned(), Value::from(value))).collect()
    }

    /// What adds the rule to the document of an Application. A rule for the same object gets the pointers that it
    /// lacks.
    pub fn operations(&self, application: &Value) -> Vec<Operation> {
        let list = FieldPath::from_pointer("/spec/ignoreDifferences");
        let rules = list.find(application).and_then(Value::as_array);
        let known = rules.and_then(|rules| rules.iter().position(|rule| self.is_of_this_object(rule)));
        let Some(known) = known else {
            return vec![Operation::Append {
                path: list,
                value: self.value(),
                comment: Some(self.why.clone()),
            }];
        };
        let rule = list.index(known);
        let append = |(name, values): (&str, Vec<Value>)| {
            let path = rule.field(name);
            let comment = Some(self.why.clone());
            let append =
                move |value| Operation::Append { path: path.clone(), value, comment: comment.clone() };
            values.into_iter().map(append).collect::<Vec<Operation>>()
        };
        self.lists().into_iter().flat_map(append).collect()
    }

    /// A rule that names this object, and nothing but pointers.
    fn is_of_this_object(&self, rule: &Value) -> bool {
        let Some(rule) = rule.as_object() else { return false };
        let identity = self.identity();
        let is_empty = |value: &Value| value.is_null() || value == "";
        let named = ["group", "kind", "namespace", "name"].iter().all(|name| match identity.get(*name) {
            Some(value) => rule.get(*name) == Some(value),
            None => rule.get(*name).is_none_or(is_empty),
        });
        named && rule.get("jsonPointers").is_some_and(Value::is_array)
    }
}
