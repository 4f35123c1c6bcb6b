//! Encrypted values put into a file that has a `SealedSecret` already. Everything else in the file keeps every byte.

use std::collections::BTreeMap;

use serde_json::Value;

use super::scope::SealingScope;
use super::sealed::is_sealed_secret;
use crate::object::{FieldPath, Manifest};
use crate::yaml::{EditRefusal, Limits, Operation, YamlError, edit_document, parse_documents_bytes};

/// The `SealedSecret` of a file, found by [`Merged::find`].
#[derive(Clone, Debug, PartialEq)]
pub struct Merged {
    /// Its number among the documents of the file.
    pub document: usize,
    /// Its name.
    pub name: String,
    /// Its namespace, if it names one.
    pub namespace: Option<String>,
    /// Where its values may be opened.
    pub scope: SealingScope,
    /// The keys that it has.
    pub keys: Vec<String>,
}

/// Why values cannot be put into a file.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum MergeProblem {
    /// The file cannot be read.
    #[error(transparent)]
    Yaml(YamlError),
    /// The file has no such object.
    #[error("it has no SealedSecret{}", named(.0.as_deref()))]
    None(Option<String>),
    /// The file has several.
    #[error("it has several SealedSecrets ({}); name one with --name", .0.join(", "))]
    Several(Vec<String>),
    /// The object has no name.
    #[error("its SealedSecret has no name")]
    Unnamed,
    /// The old form, in which one text has all values.
    #[error("its SealedSecret has the deprecated field `spec.data`, to which nothing can be added")]
    OldForm,
    /// The keys have values already.
    #[error("its SealedSecret has already {}", keys(.0))]
    KeysExist(Vec<String>),
    /// The text cannot be changed.
    #[error(transparent)]
    Edit(#[from] EditRefusal),
}

fn named(name: Option<&str>) -> String {
    name.map(|name| format!(" named {name}")).unwrap_or_default()
}

fn keys(keys: &[String]) -> String {
    format!("{} {}", if keys.len() == 1 { "the key" } else { "the keys" }, keys.join(", "))
}

impl Merged {
    /// The one `SealedSecret` of a file, or that with this name.
    pub fn find(file: &[u8], name: Option<&str>) -> Result<Self, MergeProblem> {
        let all = Self::all(file).map_err(MergeProblem::Yaml)?;
        let mut matching = all.iter().filter(|(_, sealed)| {
            name.is_none_or(|name| sealed.pointer("/metadata/name").and_then(Value::as_str) == Some(name))
        });
        match (matching.next(), matching.next()) {
            (None, _) => Err(MergeProblem::None(name.map(str::to_owned))),
            (Some((document, sealed)), None) => Self::of(*document, sealed),
            (Some(_), Some(_)) => {
                let name = |(_, sealed): &(usize, Value)| {
                    sealed.pointer("/metadata/name").and_then(Value::as_str).unwrap_or("?").to_owned()
                };
                Err(MergeProblem::Several(all.iter().map(name).collect()))
            }
        }
    }

    /// All `SealedSecrets` of a file, with their numbers among its documents.
    pub fn all(file: &[u8]) -> Result<Vec<(usize, Value)>, YamlError> {
        let documents = parse_documents_bytes(file, &Limits::default())?;
        let numbered = documents.into_iter().map(|document| document.value).enumerate();
        Ok(numbered.filter(|(_, value)| is_sealed_secret(value)).collect())
    }

    /// The `SealedSecrets` inside of the lists of a file (`kind: List`).
    pub fn in_lists(file: &[u8]) -> Result<Vec<Value>, YamlError> {
        let documents = parse_documents_bytes(file, &Limits::default())?;
        let items =
            documents.into_iter().filter_map(|mut document| match document.value.get_mut("items")?.take() {
                Value::Array(items) => Some(items),
                _ => None,
            });
        Ok(items.flatten().filter(is_sealed_secret).collect())
    }

    /// Reads one `SealedSecret`.
    pub fn of(document: usize, sealed: &Value) -> Result<Self, MergeProblem> {
        let manifest = Manifest::new(sealed.clone()).map_err(|_| MergeProblem::Unnamed)?;
        let name = manifest.name().filter(|name| !name.is_empty()).ok_or(MergeProblem::Unnamed)?;
        if sealed.pointer("/spec/data").is_some_and(|data| !data.is_null()) {
            return Err(MergeProblem::OldForm);
        }
        let encrypted = sealed.pointer("/spec/encryptedData").and_then(Value::as_object);
        Ok(Self {
            document,
            name: name.to_owned(),
            namespace: manifest.namespace().map(str::to_owned),
            scope: SealingScope::of_annotations(|name| manifest.annotation(name)),
            keys: encrypted.into_iter().flatten().map(|(key, _)| key.clone()).collect(),
        })
    }
}

/// The file with these encrypted values in its `SealedSecret`. Without `overwrite`, a key that has a value is refused.
pub fn merge(
    file: &[u8],
    into: &Merged,
    encrypted: &BTreeMap<String, String>,
    overwrite: bool,
) -> Result<String, MergeProblem> {
    let taken: Vec<String> = encrypted.keys().filter(|key| into.keys.contains(key)).cloned().collect();
    if !overwrite && !taken.is_empty() {
        return Err(MergeProblem::KeysExist(taken));
    }
    let place = FieldPath::root().field("spec").field("encryptedData");
    let operations: Vec<Operation> = encrypted
        .iter()
        .map(|(key, value)| Operation::Set {
            path: place.field(key.as_str()),
            value: Value::String(value.clone()),
        })
        .collect();
    Ok(edit_document(file, into.document, &operations)?.text)
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    const FILE: &str = "\
# The database of the shop.
apiVersion: v1
kind: ConfigMap
metadata: {name: db}
---
apiVersion: bitnami.com/v1alpha1
kind: SealedSecret
metadata:
  name: db   # as the Deployment names it
  namespace: shop
spec:
  encryptedData:
    # Changed every year.
    password: AgOld
  template: {type: Opaque}
";

    fn check(file: &str, name: Option<&str>, overwrite: bool, values: &[(&str, &str)], expected: &Expect) {
        let encrypted = values.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        let merged = Merged::find(file.as_bytes(), name)
            .and_then(|into| merge(file.as_bytes(), &into, &encrypted, overwrite));
        let shown = match merged {
            Ok(text) => similar_lines(file, &text),
            Err(problem) => format!("{problem}\n"),
        };
        expected.assert_eq(&shown);
    }

    /// The lines that only one of the texts has.
    fn similar_lines(before: &str, after: &str) -> String {
        let only = |sign: &str, one: &str, other: &str| -> String {
            let is_new = |line: &&str| !other.lines().any(|known| known == *line);
            one.lines().filter(is_new).flat_map(|line| [sign, line, "\n"]).collect()
        };
        only("-", before, after) + &only("+", after, before)
    }

    #[test]
    fn a_file_keeps_its_comments_and_its_order() {
        check(
            FILE,
            None,
            false,
            &[("user", "AgNew")],
            &expect![[r"
            +    user: AgNew
        "]],
        );
        check(
            FILE,
            Some("db"),
            true,
            &[("password", "AgNew"), ("a.b", "AgDot")],
            &expect![[r"
            -    password: AgOld
            +    password: AgNew
            +    a.b: AgDot
        "]],
        );
    }

    #[test]
    fn what_cannot_be_merged_is_named() {
        check(
            FILE,
            None,
            false,
            &[("password", "AgNew")],
            &expect![[r"
            its SealedSecret has already the key password
        "]],
        );
        check(
            FILE,
            Some("web"),
            false,
            &[("a", "b")],
            &expect![[r"
            it has no SealedSecret named web
        "]],
        );
        check(
            "a: [",
            None,
            false,
            &[("a", "b")],
            &expect![[r"
            line 2, column 1: expected a value, found the end of the text
        "]],
        );
        check(
            &format!("{FILE}---\n{FILE}"),
            None,
            false,
            &[("a", "b")],
            &expect![[r"
            it has several SealedSecrets (db, db); name one with --name
        "]],
        );
        check(
            "kind: SealedSecret\napiVersion: bitnami.com/v1alpha1\nspec: {}\n",
            None,
            true,
            &[],
            &expect![[r"
            its SealedSecret has no name
        "]],
        );
        let old = FILE.replace("  template:", "  data: AgA=\n  template:");
        check(
            &old,
            None,
            false,
            &[("a", "b")],
            &expect![[r"
            its SealedSecret has the deprecated field `spec.data`, to which nothing can be added
        "]],
        );
    }
}
