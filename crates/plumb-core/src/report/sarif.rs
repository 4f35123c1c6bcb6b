//! SARIF 2.1.0, which code hosts show beside the code.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use serde_json::{Value, json};

/// One result.
#[derive(Clone, Copy, Debug)]
pub struct SarifResult<'text> {
    /// The name of the rule.
    pub rule: &'text str,
    /// `error`, `warning` or `note`.
    pub level: &'text str,
    /// What is wrong.
    pub text: &'text str,
    /// The app.
    pub app: &'text str,
    /// The object.
    pub object: &'text str,
    /// The part of the object, to tell two results of one rule apart; empty for the whole object.
    pub part: &'text str,
    /// Where it is in a file.
    pub location: Option<Location<'text>>,
}

/// A line of a file.
#[derive(Clone, Copy, Debug)]
pub struct Location<'text> {
    /// Path from the root of the repository.
    pub file: &'text str,
    /// From 1.
    pub line: usize,
}

/// The whole log. `version` is plumb's.
pub fn sarif(results: &[SarifResult<'_>], version: &str) -> Value {
    let used: BTreeSet<&str> = results.iter().map(|result| result.rule).collect();
    let rules: Vec<Value> = used.into_iter().map(|id| json!({"id": id})).collect();
    json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": {"driver": {"name": "plumb", "version": version, "rules": rules}},
            "results": results.iter().map(SarifResult::value).collect::<Vec<_>>(),
        }],
    })
}

impl SarifResult<'_> {
    fn value(&self) -> Value {
        let Self { rule, level, text, app, object, part, location } = self;
        let mut place = json!({"logicalLocations": [
            {"name": object, "fullyQualifiedName": format!("{app}: {object}"), "kind": "resource"}]});
        if let (Some(Location { file, line }), Some(place)) = (location, place.as_object_mut()) {
            let physical = json!({"artifactLocation": {"uri": uri(file)}, "region": {"startLine": line}});
            place.insert("physicalLocation".to_owned(), physical);
        }
        json!({
            "ruleId": rule,
            "level": level,
            "message": {"text": text},
            "locations": [place],
            // The same finding has the same fingerprint in every run.
            "partialFingerprints": {"plumb/v1": format!("{rule} {app} {object} {part}").trim_end()},
        })
    }
}

/// A path as a relative URI: everything but unreserved characters and `/` is escaped.
fn uri(path: &str) -> String {
    let mut uri = String::with_capacity(path.len());
    for byte in path.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~/".contains(&byte) {
            uri.push(char::from(byte));
        } else {
            // Writing to a String cannot fail.
            let _ = write!(uri, "%{byte:02X}");
        }
    }
    uri
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_a_relative_uri() {
        assert_eq!(uri("apps/a b/ä#1.yaml"), "apps/a%20b/%C3%A4%231.yaml");
    }
}
