//! The commands that bring a Secret or a credential into Git as a `SealedSecret`.

use std::collections::{BTreeMap, BTreeSet};

use super::tokens::TokenHint;
use crate::object::ObjectKey;

/// What seals a Secret of the cluster, and lets the controller take it over once the file is committed.
pub(super) fn seal_live(key: &ObjectKey) -> Vec<String> {
    let (namespace, name) = (key.namespace_or_empty(), &key.name);
    if !is_word(namespace) || !is_word(name) {
        return Vec::new();
    }
    vec![
        format!(
            "kubectl -n {namespace} get secret {name} -o yaml | plumb seal -n {namespace} > {name}.sealed.yaml"
        ),
        format!("kubectl -n {namespace} annotate secret {name} sealedsecrets.bitnami.com/managed=true"),
    ]
}

/// What seals a Secret that is only in Git: the file is the one that it is in. None for a Secret whose name the API
/// server makes up.
pub(super) fn seal_file(key: &ObjectKey) -> Vec<String> {
    let (namespace, name) = (key.namespace_or_empty(), &key.name);
    let has_name = is_word(namespace) && is_word(name) && !name.ends_with('-');
    let command = || format!("plumb seal -n {namespace} FILE > {name}.sealed.yaml");
    has_name.then(command).into_iter().collect()
}

/// What seals the value of each hint, read from stdin. Values of objects of one name are put into one `SealedSecret`. None
/// for an Application, whose Secret would be in another namespace, and for a second value of the same name.
pub(super) fn seal_values(tokens: &[(ObjectKey, TokenHint)]) -> Vec<Option<String>> {
    let mut sealed: BTreeMap<(&str, &str), BTreeSet<&str>> = BTreeMap::new();
    let mut commands = Vec::new();
    for (key, hint) in tokens {
        let (namespace, name, value) = (key.namespace_or_empty(), key.name.as_str(), value_name(&hint.path));
        let has_names = key.kind != "Application" && is_word(namespace) && is_word(name);
        let values = sealed.entry((namespace, name)).or_default();
        let is_first = values.is_empty();
        commands.push((has_names && values.insert(value)).then(|| {
            let from = format!("--from-file {value}=-");
            if is_first {
                format!("plumb seal -n {namespace} --name {name} {from} > {name}.sealed.yaml")
            } else {
                format!("plumb seal --merge-into {name}.sealed.yaml {from}")
            }
        }));
    }
    commands
}

/// The name of a value in a Secret, from the place where a hint found it: the last name of the place.
fn value_name(path: &str) -> &str {
    let last = path.rsplit(": ").next().unwrap_or_default();
    let name = ["data.", "env."].iter().find_map(|start| last.strip_prefix(start)).unwrap_or(last);
    if is_word(name) { name } else { "value" }
}

/// Has it no character that means something to a shell? Names in Git can have any.
fn is_word(text: &str) -> bool {
    !text.is_empty()
        && !text.starts_with('-')
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(kind: &str, name: &str) -> ObjectKey {
        ObjectKey::new("", kind, Some("shop".to_owned()), name)
    }

    #[test]
    fn names_that_a_shell_would_read_have_no_command() {
        assert_eq!(seal_live(&key("Secret", "db")).len(), 2);
        assert_eq!(seal_file(&key("Secret", "db")), ["plumb seal -n shop FILE > db.sealed.yaml"]);
        assert!(seal_file(&key("Secret", "later-")).is_empty(), "its name ends with random letters");
        for name in ["$(reboot)", "a;b", "a b", "", "--help"] {
            assert!(seal_live(&key("Secret", name)).is_empty(), "{name}");
            assert!(seal_file(&key("Secret", name)).is_empty(), "{name}");
        }
    }

    #[test]
    fn values_of_one_object_are_sealed_into_one_file() {
        let hint = |kind: &str, name: &str, path: &str| {
            (key(kind, name), TokenHint { path: path.to_owned(), looks_like: "a random text" })
        };
        let tokens = [
            hint("Application", "shop", "spec.sources[0].helm.values: password"),
            hint("ConfigMap", "web", "data.app.properties: db.password"),
            hint("ConfigMap", "web", "data.TOKEN"),
            hint("ConfigMap", "web", "data.other.yaml: TOKEN"),
            hint("Deployment", "web", "container web: env.KEY"),
            hint("Deployment", "web", "container web: args[1]"),
            hint("Deployment", "web", "container web: $(reboot)"),
        ];
        let commands: Vec<String> = seal_values(&tokens).into_iter().map(Option::unwrap_or_default).collect();
        assert_eq!(
            commands,
            [
                "",
                "plumb seal -n shop --name web --from-file db.password=- > web.sealed.yaml",
                "plumb seal --merge-into web.sealed.yaml --from-file TOKEN=-",
                "",
                "plumb seal --merge-into web.sealed.yaml --from-file KEY=-",
                "plumb seal --merge-into web.sealed.yaml --from-file value=-",
                "",
            ]
        );
    }
}
