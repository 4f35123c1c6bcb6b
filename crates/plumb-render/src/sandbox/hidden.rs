//! Texts that a tool knows and that its messages must not repeat.
//!
//! Messages of tools reach conditions, logs and the API, where more people read them than may read the source's values.
//! A tool can print all that it was given: a plugin its variables, a chart a value with `fail`. Most values are no
//! secrets, and a message without them helps nobody. So a value is hidden if its name or its form says that it is a
//! secret, or if it looks random, and a variable where it is printed with its name.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use plumb_core::secrets::{is_secret_reference, looks_like, looks_random};
use plumb_core::text::{BLANK, is_secret_name, redact_text, without_texts};
use plumb_core::yaml::{Limits, parse_documents};
use serde_json::Value;

/// A shorter text is a part of many words.
const SHORTEST: usize = 6;
/// A line of a text with several lines is hidden on its own from this length on: tools print such texts line by line.
const SHORTEST_LINE: usize = 12;
/// Most files of a directory that are searched for secrets, most bytes of one, and of all.
const MOST_FILES: usize = 500;
const MOST_BYTES: u64 = 1 << 20;
const MOST_BYTES_OF_ALL: u64 = 8 << 20;
const MAX_DEPTH: usize = 8;
/// Most texts that are hidden.
const MOST_TEXTS: usize = 5000;
/// A longer text is hidden as it is and in base64 only.
const LONGEST_IN_EVERY_FORM: usize = 4096;
/// Changes between a letter and a digit from which on a word is no name with a number.
const MOST_CHANGES_OF_A_NAME: usize = 3;
const LIMITS: Limits =
    Limits { max_bytes: 1 << 20, max_depth: 100, max_alias_bytes: 4 << 20, max_memory: 64 << 20 };

/// What the messages of one run do not show.
#[derive(Default)]
pub(crate) struct Hidden {
    texts: BTreeSet<String>,
    /// Values by the name of the variable.
    variables: BTreeMap<String, String>,
    n_files: usize,
    n_bytes: u64,
}

impl Hidden {
    /// A variable of the tool's environment that the source sets.
    pub(crate) fn variable(&mut self, name: &str, value: &str) {
        self.named(name, value);
        if !value.is_empty() {
            self.variables.insert(name.to_owned(), value.to_owned());
        }
        if let Ok(value @ (Value::Array(_) | Value::Object(_))) = serde_json::from_str::<Value>(value) {
            self.value(name, &value, false);
        }
    }

    /// A value under a name. It is hidden if one of both says that it is a secret, or if no person would write it.
    pub(crate) fn named(&mut self, name: &str, value: &str) {
        let name = name.trim_end_matches(|c: char| c.is_ascii_digit() || "[]".contains(c));
        let name = name.rsplit(['.', '/']).next().unwrap_or_default();
        let is_secret = is_secret_name(name) && !is_secret_reference(name);
        if is_secret || looks_like(name, value).is_some() || has_random_word(value) {
            self.secret(value);
        }
    }

    /// Values as YAML. Of what is no YAML, the lines with a name and a value.
    pub(crate) fn yaml(&mut self, text: &str) {
        match parse_documents(text, &LIMITS) {
            Ok(documents) => documents.iter().for_each(|document| self.document(&document.value)),
            Err(_) => self.lines(text),
        }
    }

    /// The values of all files with values in a directory, up to a limit.
    pub(crate) fn directory(&mut self, directory: &Path) {
        self.search(directory, 0);
    }

    /// One file, if there is one.
    pub(crate) fn file(&mut self, path: &Path) {
        let is_small = path.symlink_metadata().is_ok_and(|file| file.is_file() && file.len() <= MOST_BYTES);
        let Some(bytes) = is_small.then(|| std::fs::read(path).ok()).flatten() else { return };
        let text = String::from_utf8_lossy(&bytes);
        match path.extension().and_then(std::ffi::OsStr::to_str) {
            Some("yaml" | "yml" | "json") => self.yaml(&text),
            _ => self.lines(&text),
        }
    }

    /// The text without what is hidden, and without what looks like a secret wherever it comes from.
    pub(super) fn blank(&self, text: &str) -> String {
        let mut shown = text.to_owned();
        for (name, value) in &self.variables {
            shown = without_variable(&shown, name, value);
        }
        let shown = without_texts(&shown, self.texts.iter().map(String::as_str));
        redact_text(&shown).into_owned()
    }

    fn secret(&mut self, text: &str) {
        let text = text.trim();
        if text.len() < SHORTEST || self.texts.len() >= MOST_TEXTS {
            return;
        }
        self.texts.insert(text.to_owned());
        self.texts.insert(STANDARD.encode(text));
        if text.len() <= LONGEST_IN_EVERY_FORM {
            self.texts.extend([hex(text), url_encoded(text)]);
        }
        if text.contains('\n') {
            let lines = text.lines().map(str::trim).filter(|line| line.len() >= SHORTEST_LINE);
            self.texts.extend(lines.map(str::to_owned));
        }
    }

    fn document(&mut self, document: &Value) {
        let text = |field: &str| document.get(field).and_then(Value::as_str).unwrap_or_default();
        if text("kind") == "Secret" {
            for field in ["data", "stringData"] {
                self.value("secrets", document.get(field).unwrap_or(&Value::Null), true);
            }
        }
        let generators = document.get("secretGenerator").and_then(Value::as_array);
        for generator in generators.into_iter().flatten() {
            let literals = generator.get("literals").and_then(Value::as_array).into_iter().flatten();
            for literal in literals.filter_map(Value::as_str) {
                self.secret(literal);
                self.secret(literal.split_once('=').map_or("", |(_, value)| value));
            }
        }
        self.value("", document, false);
    }

    /// Everything below a value. `is_secret` if a name above says so.
    fn value(&mut self, name: &str, value: &Value, is_secret: bool) {
        let is_secret = is_secret || is_group(name) && !is_secret_reference(name);
        match value {
            Value::String(text) if is_secret => {
                self.secret(text);
                let bytes = STANDARD.decode(text.split_ascii_whitespace().collect::<String>());
                if let Some(decoded) = bytes.ok().and_then(|bytes| String::from_utf8(bytes).ok()) {
                    self.secret(&decoded);
                }
            }
            Value::String(text) => self.named(name, text),
            Value::Number(number) if is_secret || is_secret_name(name) => self.secret(&number.to_string()),
            Value::Array(items) => items.iter().for_each(|item| self.value(name, item, is_secret)),
            Value::Object(map) => map.iter().for_each(|(name, item)| self.value(name, item, is_secret)),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    fn lines(&mut self, text: &str) {
        for line in text.lines() {
            let Some((name, value)) = line.split_once([':', '=']) else { continue };
            let value = value.trim().trim_matches(['"', '\'']);
            if !value.contains("{{") {
                self.named(name.trim().trim_start_matches("- ").trim_matches(['"', '\'']), value);
            }
        }
    }

    fn search(&mut self, directory: &Path, depth: usize) {
        let Ok(entries) = std::fs::read_dir(directory) else { return };
        let mut entries: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
        entries.sort();
        for path in entries {
            if self.n_files >= MOST_FILES || self.n_bytes >= MOST_BYTES_OF_ALL {
                return;
            }
            let Ok(kind) = path.symlink_metadata() else { continue };
            if kind.is_dir() && depth < MAX_DEPTH {
                self.search(&path, depth + 1);
            } else if kind.is_file() && has_values(&path) {
                self.n_files += 1;
                self.n_bytes += kind.len();
                self.file(&path);
            }
        }
    }
}

/// The name of a map or a list whose values are all secrets.
fn is_group(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    ["secrets", "credentials", "passwords", "tokens", "stringdata", "secretdata"]
        .iter()
        .any(|end| name.ends_with(end))
}

/// The text without a variable where it is printed with its name: by `env` and `export -p`, or as YAML, JSON and what
/// Python and Ruby print.
fn without_variable(text: &str, name: &str, value: &str) -> String {
    let values = [Value::from(value).to_string(), format!("'{value}'"), value.to_owned()];
    let mut shown = text.to_owned();
    for sign in ["=", ": ", "\": ", "\":", "': ", "'=>", "\"=>", "\" => "] {
        if shown.contains(&format!("{name}{sign}")) {
            for value in &values {
                shown = shown.replace(&format!("{name}{sign}{value}"), &format!("{name}{sign}{BLANK}"));
            }
        }
    }
    shown
}

/// Has the value a word that no person would write? Digests and names with numbers are none.
fn has_random_word(value: &str) -> bool {
    let is_one = |word: &str| {
        let changes = |class: fn(u8) -> u8| {
            let pairs = word.as_bytes().windows(2);
            pairs
                .filter(|pair| pair.first().map(|one| class(*one)) != pair.last().map(|one| class(*one)))
                .count()
        };
        let digits = changes(|byte| u8::from(byte.is_ascii_digit()));
        let all = changes(|byte| u8::from(byte.is_ascii_digit()) + 2 * u8::from(byte.is_ascii_uppercase()));
        let is_mixed = digits > MOST_CHANGES_OF_A_NAME || all * 3 >= word.len();
        is_mixed && looks_random(word) && !is_digest(word)
    };
    let value = value.trim();
    !value.contains(char::is_whitespace) && value.split(|c: char| !c.is_ascii_alphanumeric()).any(is_one)
}

/// A commit, or the digest of an image.
fn is_digest(word: &str) -> bool {
    matches!(word.len(), 40 | 64) && word.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

fn hex(text: &str) -> String {
    text.bytes().fold(String::with_capacity(2 * text.len()), |mut hex, byte| {
        // Writing to a string cannot fail.
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}

/// As in an address.
fn url_encoded(text: &str) -> String {
    let encoded = |byte: u8| match byte {
        b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => char::from(byte).to_string(),
        _ => format!("%{byte:02X}"),
    };
    text.bytes().map(encoded).collect()
}

fn has_values(path: &Path) -> bool {
    let extension = path.extension().and_then(std::ffi::OsStr::to_str);
    matches!(extension, Some("yaml" | "yml" | "json" | "env" | "properties" | "toml"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hidden(change: impl FnOnce(&mut Hidden)) -> Hidden {
        let mut hidden = Hidden::default();
        change(&mut hidden);
        hidden
    }

    #[test]
    fn values_are_hidden_if_their_name_or_their_form_says_so() {
        let values = "auth: {password: kestrel-one, user: shop-admin}\ntls: {key: x}\nport: 543210\n\
                      dbPassword: 12345678\nimage: registry/shop\n";
        let hidden = hidden(|hidden| hidden.yaml(values));
        for (said, shown) in [
            ("execution error: kestrel-one is too short", "execution error: •••• is too short"),
            ("a3N0cmVs is not a2VzdHJlbC1vbmU=", "a3N0cmVs is not ••••"),
            ("bad number 12345678", "bad number ••••"),
            (
                "user shop-admin, port 543210, image registry/shop",
                "user shop-admin, port 543210, image registry/shop",
            ),
        ] {
            assert_eq!(hidden.blank(said), shown);
        }
    }

    #[test]
    fn variables_are_hidden_where_they_are_printed_as_such() {
        let hidden = hidden(|hidden| {
            hidden.variable("ARGOCD_ENV_FILE", "values-prod.yaml");
            hidden.variable("ARGOCD_ENV_DB_PASSWORD", "wagtail-two");
            hidden.variable("ARGOCD_APP_PARAMETERS", r#"[{"name":"x","map":{"token":"siskin-three"}}]"#);
        });
        for (said, shown) in [
            ("open values-prod.yaml: no such file", "open values-prod.yaml: no such file"),
            ("ARGOCD_ENV_FILE=values-prod.yaml\nHOME=/x", "ARGOCD_ENV_FILE=••••\nHOME=/x"),
            ("declare -x ARGOCD_ENV_FILE=\"values-prod.yaml\"", "declare -x ARGOCD_ENV_FILE=••••"),
            ("{'ARGOCD_ENV_FILE': 'values-prod.yaml'}", "{'ARGOCD_ENV_FILE': ••••}"),
            (r#"{"ARGOCD_ENV_FILE":"values-prod.yaml"}"#, r#"{"ARGOCD_ENV_FILE":••••}"#),
            ("ARGOCD_ENV_FILE: values-prod.yaml", "ARGOCD_ENV_FILE: ••••"),
            ("it is wagtail-two", "it is ••••"),
            ("token siskin-three is refused", "token •••• is refused"),
        ] {
            assert_eq!(hidden.blank(said), shown);
        }
    }

    #[test]
    fn values_of_secrets_are_hidden_whatever_their_names() {
        let secret = "kind: Secret\nstringData: {a: linnet-four, b: \"line-number-one\\nline-number-two\"}\n\
                      data: {c: cGlwaXQtZml2ZQ==}\n---\nsecretGenerator: [{literals: [d=merlin-six]}]\n";
        let hidden = hidden(|hidden| hidden.yaml(secret));
        for said in [
            "linnet-four",
            "  line-number-two",
            "pipit-five",
            "cGlwaXQtZml2ZQ==",
            "merlin-six",
            "d=merlin-six",
        ] {
            assert_eq!(hidden.blank(said).trim(), "••••", "{said}");
        }
        let broken = hidden_lines("a: [\npassword: \"dunlin-seven\"\ntemplate: {{ .Values.password }}\n");
        assert_eq!(broken.blank("dunlin-seven in <.Values.password>"), "•••• in <.Values.password>");
    }

    #[test]
    fn what_looks_random_is_hidden_whatever_its_name() {
        let digest = "0123456789abcdef".repeat(4);
        let values = format!(
            "key0: k3m9x2p7v4q8w5z6\nkey1: aBcDeFgHiJkLmNo1\nurl: db/q9X2mB7vK4pL8wZ1nR5t\nimage: shop@sha256:{digest}\nsha: {}\n\
             host: shop-frontend-2.prod1.example.com\nfile: templates/deployment-v2beta1.yaml\n\
             name: shopFrontend2Production1\n",
            &digest[..40]
        );
        let hidden = hidden(|hidden| hidden.yaml(&values));
        assert_eq!(
            hidden.blank("k3m9x2p7v4q8w5z6, aBcDeFgHiJkLmNo1 and db/q9X2mB7vK4pL8wZ1nR5t"),
            "••••, •••• and ••••"
        );
        for said in [
            format!("no image shop@sha256:{digest}"),
            format!("no commit {}", &digest[..40]),
            "shop-frontend-2.prod1.example.com, templates/deployment-v2beta1.yaml, shopFrontend2Production1"
                .to_owned(),
        ] {
            assert_eq!(hidden.blank(&said), said);
        }
    }

    #[test]
    fn a_secret_is_hidden_in_other_forms_too() {
        let hidden = hidden(|hidden| hidden.named("password", "kestrel/one?"));
        for said in ["kestrel/one?", "6b65737472656c2f6f6e653f", "kestrel%2Fone%3F", "a2VzdHJlbC9vbmU/"] {
            assert_eq!(hidden.blank(said), "••••", "{said}");
        }
    }

    fn hidden_lines(text: &str) -> Hidden {
        hidden(|hidden| hidden.yaml(text))
    }

    #[test]
    fn ordinary_errors_stay_as_they_are() {
        let hidden = hidden(|hidden| hidden.yaml("existingSecret: shop/templates\npassword: short\n"));
        for said in [
            "Error: execution error at (shop/templates/secret.yaml:3:4): a value is required",
            "Error: YAML parse error on shop/templates/secret.yaml: error converting YAML to JSON: yaml: line 5: did \
             not find expected key",
            "Error: template: shop/templates/auth.yaml:12:20: executing \"shop/templates/auth.yaml\" at \
             <.Values.auth.password>: nil pointer evaluating interface {}.password",
            "Error: accumulating resources: accumulation err='accumulating resources from 'base': open base: no such \
             file or directory'",
            "RUNTIME ERROR: couldn't open import \"lib/k.libsonnet\": no match locally or in the Jsonnet library paths",
        ] {
            assert_eq!(hidden.blank(said), said);
        }
    }
}
