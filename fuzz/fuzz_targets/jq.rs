#![no_main]

//! Whatever the bytes are, a jq path ends within its budget: no panic, no abort, no overflow of the stack.

use libfuzzer_sys::fuzz_target;
use plumb_core::app::IgnoreRule;
use plumb_core::ignore::IgnoreRules;
use plumb_core::object::Manifest;
use serde_json::json;

fuzz_target!(|expression: &str| {
    let rule = IgnoreRule {
        kind: "*".to_owned(),
        jq_path_expressions: vec![expression.to_owned()],
        ..IgnoreRule::default()
    };
    let (rules, _) = IgnoreRules::compile([rule]);
    let object = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "labels": {"a": "b"}},
        "data": {"a": "x".repeat(50), "b": "[1, 2]", "c": ""}, "list": [[1, 2.5, null], {"a": true}, "a"],
    });
    let Ok(object) = Manifest::new(object) else { return };
    if let Some(key) = object.key() {
        let _ = rules.of(&key, Some(&object), Some(&object));
    }
});
