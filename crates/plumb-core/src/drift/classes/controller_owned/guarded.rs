//! Names of fields, in any custom resource, that say what runs, who may do what, what is let through, and in which order.
//!
//! A kind that plumb does not know may use any name for an image or a right. So these lists are long, and what has no such
//! name must also have a plain value.

use serde_json::Value;

use crate::compare::Quantity;
use crate::object::{FieldPath, Segment};

/// Parts of the names of fields that say what runs, who may do what, and what is let through.
const GUARDED: &[&str] = &[
    "access",
    "account",
    "acl",
    "address",
    "admin",
    "allow",
    "approv",
    "arg",
    "auth",
    "backend",
    "blacklist",
    "bypass",
    "capabilit",
    "cert",
    "cidr",
    "client",
    "code",
    "command",
    "container",
    "cred",
    "default",
    "deny",
    "depend",
    "destination",
    "egress",
    "endpoint",
    "env",
    "exclu",
    "exec",
    "exempt",
    "expression",
    "extension",
    "from",
    "grant",
    "group",
    "hook",
    "host",
    "http",
    "image",
    "ingress",
    "issuer",
    "member",
    "middleware",
    "mirror",
    "module",
    "mount",
    "namespace",
    "network",
    "override",
    "owner",
    "package",
    "patch",
    "path",
    "peer",
    "permission",
    "plugin",
    "polic",
    "port",
    "principal",
    "privileg",
    "program",
    "provider",
    "proxy",
    "repo",
    "role",
    "route",
    "rule",
    "script",
    "secret",
    "secur",
    "select",
    "server",
    "service",
    "sidecar",
    "sink",
    "skip",
    "source",
    "store",
    "subject",
    "target",
    "task",
    "template",
    "tls",
    "token",
    "trust",
    "upstream",
    "uri",
    "url",
    "user",
    "value",
    "verif",
    "volume",
    "whitelist",
];

/// The same for whole names: as a part of a longer name they say nothing.
const GUARDED_NAMES: &[&str] = &["keys", "to"];

/// The same for a list of steps. Steps of which Git says no more than the name may be in another order.
const STEPS: &[&str] = &["stage", "step"];

/// Parts of the names of lists in which the first item counts, or one item follows another.
const SEQUENCES: &[&str] = &[
    "action",
    "chain",
    "fallback",
    "failover",
    "filter",
    "function",
    "handler",
    "intercept",
    "job",
    "layer",
    "location",
    "match",
    "migrat",
    "order",
    "overlay",
    "phase",
    "pipeline",
    "preceden",
    "priorit",
    "process",
    "resolver",
    "rewrite",
    "search",
    "stage",
    "transform",
];

/// The same for whole names.
const SEQUENCE_NAMES: &[&str] = &["sequence", "tcp"];

/// Fields of an item that names something, and says nothing else about it.
const REFERENCE: &[&str] = &["name", "namespace", "kind", "group", "apiGroup", "apiVersion", "key"];

/// Does a step of the path say what runs, who may do what, or what is let through?
pub(super) fn is_guarded(path: &FieldPath) -> bool {
    fields(path).any(|name| is_guarded_name(name) || has_part(name, STEPS))
}

/// Does a step of the path say that the first item counts, or that one item follows another?
pub(super) fn is_named_as_sequence(list: &FieldPath) -> bool {
    fields(list).any(|name| {
        has_part(name, SEQUENCES) || SEQUENCE_NAMES.iter().any(|other| name.eq_ignore_ascii_case(other))
    })
}

fn is_guarded_name(name: &str) -> bool {
    has_part(name, GUARDED) || GUARDED_NAMES.iter().any(|other| name.eq_ignore_ascii_case(other))
}

/// Does the order of this list mean something, as far as its name and Git's items tell? Only names of things, or things that
/// are only named, may be in any order: an item with other fields does something, and may do it after another one.
pub(super) fn is_sequence(list: &FieldPath, items: &[Value]) -> bool {
    let are_texts = !items.iter().any(Value::is_object);
    is_named_as_sequence(list)
        || fields(list).any(|name| is_guarded_name(name) || (are_texts && has_part(name, STEPS)))
        || !items.iter().all(is_only_named)
}

/// Is this item a reference by name, as that of a pull secret? An item of another shape may add a right, a host or a step.
pub(super) fn is_reference(item: &Value) -> bool {
    item.as_object().is_some_and(|fields| {
        fields.contains_key("name") && fields.keys().all(|field| REFERENCE.contains(&field.as_str()))
    })
}

/// Is it a name, a number, or a map of what names something?
fn is_only_named(item: &Value) -> bool {
    let is_naming = |field: &str| REFERENCE.contains(&field) || matches!(field, "id" | "type" | "value");
    match item {
        Value::Object(fields) => {
            fields.iter().all(|(name, value)| is_naming(name) && !value.is_object() && !value.is_array())
        }
        Value::Array(_) => false,
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => true,
    }
}

/// Is this a value that names no image, no address and no command: a number, a word, a quantity, and lists and maps of them
/// without a guarded name?
pub(super) fn is_plain(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => true,
        Value::String(text) => is_word(text) || Quantity::parse(text).is_some(),
        Value::Array(items) => items.iter().all(is_plain),
        Value::Object(map) => {
            let is_free = |name: &str| !is_guarded_name(name) && !has_part(name, STEPS);
            map.iter().all(|(name, value)| is_free(name) && is_plain(value))
        }
    }
}

fn is_word(text: &str) -> bool {
    const LONGEST: usize = 63;
    text.len() <= LONGEST && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'))
}

fn fields(path: &FieldPath) -> impl Iterator<Item = &str> {
    path.segments().iter().filter_map(|segment| match segment {
        Segment::Field(name) => Some(&**name),
        Segment::Index(_) => None,
    })
}

/// Does the name contain one of these parts?
fn has_part(name: &str, parts: &[&str]) -> bool {
    let name = name.to_ascii_lowercase();
    parts.iter().any(|part| name.contains(part))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn names_guard_what_runs_and_what_is_let_through() {
        for (pointer, expected) in [
            ("/spec/templates/0/podSpecPatch", true),
            ("/spec/templates/0/securityContext/privileged", true),
            ("/spec/endpoints/0/proxyUrl", true),
            ("/spec/endpoints/0/tlsConfig/insecureSkipVerify", true),
            ("/spec/services/0/namespace", true),
            ("/spec/endpoints/0/ports/tcp", true),
            ("/spec/steps/0/onError", true),
            ("/spec/params/0/default", true),
            ("/spec/keys/0", true),
            ("/spec/params/0/type", false),
            ("/spec/items/0/size", false),
            ("/spec/tolerance/0/keystone", false),
        ] {
            assert_eq!(is_guarded(&FieldPath::from_pointer(pointer)), expected, "{pointer}");
        }
    }

    #[test]
    fn a_sequence_is_told_by_its_name_and_its_items() {
        let named = json!([{"name": "a"}, {"name": "b"}]);
        for (pointer, items, expected) in [
            ("/spec/data", json!([{"key": "b"}, {"key": "a"}]), false),
            ("/spec/items", json!(["a", "b"]), false),
            ("/spec/zones", json!([{"id": 1, "type": "x"}]), false),
            ("/spec/steps", named.clone(), false),
            ("/spec/steps", json!(["build", "scan"]), true),
            ("/spec/steps", json!([{"setWeight": 10}, {"pause": {}}]), true),
            ("/spec/templates/0/steps", json!([[{"name": "a"}]]), true),
            ("/spec/items", json!([["a"], ["b"]]), true),
            ("/spec/items", json!([{"name": "a", "run": "x"}]), true),
            ("/spec/fallbacks", named, true),
            ("/spec/nameservers", json!(["10.0.0.1", "10.0.0.2"]), true),
        ] {
            let items = items.as_array().unwrap();
            assert_eq!(
                is_sequence(&FieldPath::from_pointer(pointer), items),
                expected,
                "{pointer} {items:?}"
            );
        }
    }

    #[test]
    fn a_plain_value_names_no_image_no_address_and_no_command() {
        for (value, expected) in [
            (json!("string"), true),
            (json!("RollingUpdate"), true),
            (json!("1.5Gi"), true),
            (json!(3), true),
            (json!({"size": [1, "two"]}), true),
            (json!("evil:1"), false),
            (json!("registry.example.com/x"), false),
            (json!("evil.example.com"), false),
            (json!("10.0.0.1"), false),
            (json!("rm -rf"), false),
            (json!("{\"a\":1}"), false),
            (json!({"image": "x"}), false),
            (json!([{"run": {"command": "x"}}]), false),
        ] {
            assert_eq!(is_plain(&value), expected, "{value}");
        }
    }
}
