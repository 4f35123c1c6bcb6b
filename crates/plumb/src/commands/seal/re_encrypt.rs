//! `plumb seal --re-encrypt`: the same values under the newest key of the controller.

use std::collections::BTreeMap;
use std::path::Path;

use plumb_core::secrets::{Merged, SealingScope, merge};
use serde_json::{Value, json};

use super::args::Args;
use super::controller::Controller;
use super::files::{self, Change};
use crate::context::Context;
use crate::error::CommandError;
use crate::exit::ExitCode;

pub(super) async fn run(context: &Context, args: &Args, path: &Path) -> Result<ExitCode, CommandError> {
    let controller = Controller::find(context, &args.controller).await?;
    let namespace = context.object_namespace();
    let mut changes = Vec::new();
    let mut n_sealed = 0;
    for file in files::find(path)? {
        let before = std::fs::read(&file)
            .map_err(|error| CommandError::because(format!("read {}", file.display()), error))?;
        // Templates of charts are not YAML, and are passed over.
        let (Ok(all), Ok(listed)) = (Merged::all(&before), Merged::in_lists(&before)) else {
            files::note_passed_over(context, &file, &before, files::NO_YAML);
            continue;
        };
        if !listed.is_empty() {
            files::note_passed_over(context, &file, &before, "it has SealedSecrets inside of a List");
            continue;
        }
        let mut after = None;
        for (document, sealed) in all {
            let failed = |what: &str| format!("re-encrypt {what} of {}", file.display());
            let into = Merged::of(document, &sealed)
                .map_err(|problem| CommandError::because(failed("a SealedSecret"), problem))?;
            let asked = for_rotation(with_namespace(sealed, namespace, &into, &file)?, into.scope);
            let rotated = controller.rotate(&asked).await?;
            let scope = scope_of(&rotated);
            if scope != into.scope {
                let (theirs, own) = (scope.name(), into.scope.name());
                return Err(CommandError::new(format!(
                    "cannot {}: the answer has the scope {theirs}, not {own}; nothing was changed",
                    failed(&into.name)
                )));
            }
            let encrypted = same_keys(&into, &rotated).ok_or_else(|| {
                CommandError::new(format!("cannot {}: the answer lacks one of its keys", failed(&into.name)))
            })?;
            let text = after.as_ref().map_or(before.as_slice(), String::as_bytes);
            let merged = merge(text, &into, &encrypted, true)
                .map_err(|problem| CommandError::because(failed(&into.name), problem))?;
            after = Some(merged);
            n_sealed += 1;
        }
        changes.extend(after.map(|after| Change { path: file, before, after }));
    }
    files::replace(context, &changes, args.dry_run)?;
    let verb = if args.dry_run { "would re-encrypt" } else { "re-encrypted" };
    let (sealed, files) = (files::counted(n_sealed, "SealedSecret"), files::counted(changes.len(), "file"));
    context.out.note(&format!("{verb} {sealed} in {files}"));
    if n_sealed == 0 {
        return Err(CommandError::new(format!("{} has no SealedSecret", path.display())));
    }
    Ok(ExitCode::Success)
}

/// The object as the controller needs it: with its namespace, which files of an app often leave out.
pub(super) fn with_namespace(
    mut sealed: Value,
    namespace: Option<&str>,
    into: &Merged,
    file: &Path,
) -> Result<Value, CommandError> {
    match (&into.namespace, namespace) {
        (Some(_), _) => Ok(sealed),
        (None, Some(namespace)) => {
            if let Some(metadata) = sealed.get_mut("metadata").and_then(Value::as_object_mut) {
                metadata.insert("namespace".to_owned(), Value::String(namespace.to_owned()));
            }
            Ok(sealed)
        }
        (None, None) if into.scope == SealingScope::ClusterWide => {
            with_namespace(sealed, Some("default"), into, file)
        }
        (None, None) => Err(CommandError::usage(format!(
            "SealedSecret {} of {} names no namespace",
            into.name,
            file.display()
        ))
        .hint("pass --namespace: the namespace is a part of what opens it")),
    }
}

/// The values with nothing but their scope. The controller takes the scope of the new values from the template, older
/// releases from nowhere else, and encrypts what the template's `data` makes of a value in its place.
fn for_rotation(mut sealed: Value, scope: SealingScope) -> Value {
    if let Some(spec) = sealed.get_mut("spec").and_then(Value::as_object_mut) {
        spec.insert("template".to_owned(), json!({"metadata": {"annotations": scope.annotations()}}));
    }
    sealed
}

/// The scope of a `SealedSecret`.
fn scope_of(sealed: &Value) -> SealingScope {
    let annotations = sealed.pointer("/metadata/annotations");
    SealingScope::of_annotations(|name| annotations?.get(name)?.as_str())
}

/// The new values of exactly the keys that were there. The controller answers with the keys of its template, too.
fn same_keys(into: &Merged, rotated: &Value) -> Option<BTreeMap<String, String>> {
    let new = rotated.pointer("/spec/encryptedData").and_then(Value::as_object)?;
    let value = |key: &String| Some((key.clone(), new.get(key)?.as_str()?.to_owned()));
    into.keys.iter().map(value).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_controller_gets_the_scope_and_no_template() {
        let scope = json!({"sealedsecrets.bitnami.com/cluster-wide": "true"});
        let sealed = |annotations: &Value, template: Option<Value>| {
            let mut sealed = json!({"metadata": {"name": "db", "annotations": annotations},
                "spec": {"encryptedData": {"password": "Ag"}}});
            if let Some(template) = template {
                sealed["spec"]["template"] = template;
            }
            sealed
        };
        // As users write around the output of `--raw`: the scope is named only here.
        let raw = sealed(&scope, None);
        assert_eq!(scope_of(&raw), SealingScope::ClusterWide);
        let asked = for_rotation(raw, SealingScope::ClusterWide);
        assert_eq!(asked, sealed(&scope, Some(json!({"metadata": {"annotations": scope}}))));

        let template =
            json!({"data": {"password": "pw={{ .password }}"}, "metadata": {"annotations": scope}});
        let asked = for_rotation(sealed(&json!({}), Some(template)), SealingScope::Strict);
        assert_eq!(asked, sealed(&json!({}), Some(json!({"metadata": {"annotations": {}}}))));
        assert_eq!(scope_of(&asked), SealingScope::Strict);
    }
}
