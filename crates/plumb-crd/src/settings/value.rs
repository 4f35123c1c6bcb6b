//! One value of a `ConfigMap`, read with its default.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt::Display;
use std::str::FromStr;
use std::time::Duration;

use plumb_core::glob::Glob;
use plumb_core::yaml::{Limits, parse_documents};
use serde_json::Value;

use super::{ConfigData, SettingsProblem};
use crate::convert::parse_go_duration;
use crate::wire::Wire;

/// The form of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ValueForm {
    /// Any text, or text with a form of its own.
    Text,
    /// True or false.
    Bool,
    /// A whole number.
    Number,
    /// A duration of Go.
    Duration,
    /// A number of bytes.
    Bytes,
}

/// The keys that were read from each object, with the form of their values.
#[derive(Debug, Default)]
pub(super) struct AskedKeys(RefCell<BTreeMap<(&'static str, String), ValueForm>>);

impl AskedKeys {
    /// Object, key and form, in order.
    pub(super) fn into_keys(self) -> impl Iterator<Item = (&'static str, String, ValueForm)> {
        self.0.into_inner().into_iter().map(|((object, key), form)| (object, key, form))
    }

    /// A later form replaces `Text`: every form is read as text first.
    fn note(&self, object: &'static str, key: &str, form: ValueForm) {
        let mut keys = self.0.borrow_mut();
        let known = keys.entry((object, key.to_owned())).or_insert(form);
        if form != ValueForm::Text {
            *known = form;
        }
    }
}

/// Reads values. An invalid value is reported, and its default is used.
pub(super) struct Reader<'data> {
    object: &'static str,
    data: &'data ConfigData,
    problems: &'data mut Vec<SettingsProblem>,
    asked: Option<&'data AskedKeys>,
}

impl<'data> Reader<'data> {
    pub(super) fn new(
        object: &'static str,
        data: &'data ConfigData,
        problems: &'data mut Vec<SettingsProblem>,
        asked: Option<&'data AskedKeys>,
    ) -> Self {
        Self { object, data, problems, asked }
    }

    fn note(&self, key: &str, form: ValueForm) {
        if let Some(asked) = self.asked {
            asked.note(self.object, key, form);
        }
    }

    pub(super) fn report(&mut self, key: &str, reason: impl Display) {
        self.problems
            .push(SettingsProblem { place: format!("{} {key}", self.object), reason: reason.to_string() });
    }

    pub(super) fn get(&self, key: &str) -> Option<&'data str> {
        self.note(key, ValueForm::Text);
        self.data.get(key).map(String::as_str)
    }

    /// The value without surrounding space; absent is empty.
    pub(super) fn text(&self, key: &str) -> &'data str {
        self.get(key).map(str::trim).unwrap_or_default()
    }

    /// The keys that begin so, without that beginning, and their values.
    pub(super) fn with_prefix(&self, prefix: &str) -> Vec<(&'data str, &'data str)> {
        let entries = self.data.iter();
        entries.filter_map(|(key, value)| Some((key.strip_prefix(prefix)?, value.as_str()))).collect()
    }

    pub(super) fn parsed<T: FromStr<Err: Display>>(&mut self, key: &str, default: T) -> T {
        match self.text(key) {
            "" => default,
            text => text.parse().unwrap_or_else(|error| {
                self.report(key, error);
                default
            }),
        }
    }

    pub(super) fn bool(&mut self, key: &str, default: bool) -> bool {
        self.note(key, ValueForm::Bool);
        match self.text(key) {
            "" => default,
            "1" | "t" | "T" | "TRUE" | "true" | "True" => true,
            "0" | "f" | "F" | "FALSE" | "false" | "False" => false,
            _ => {
                self.report(key, format_args!("expected true or false; {default} is used"));
                default
            }
        }
    }

    pub(super) fn number(&mut self, key: &str, default: u64) -> u64 {
        self.note(key, ValueForm::Number);
        match self.text(key) {
            "" => default,
            text => text.parse().unwrap_or_else(|_| {
                self.report(key, format_args!("expected a whole number; {default} is used"));
                default
            }),
        }
    }

    /// The number, if a valid one is set.
    pub(super) fn set_number(&mut self, key: &str) -> Option<u64> {
        self.note(key, ValueForm::Number);
        match self.text(key) {
            "" => None,
            text => {
                let number = text.parse().ok();
                if number.is_none() {
                    self.report(key, "expected a whole number; it is not used");
                }
                number
            }
        }
    }

    /// The same as a number of seconds.
    pub(super) fn set_seconds(&mut self, key: &str) -> Option<Duration> {
        self.set_number(key).map(|seconds| Duration::from_secs(seconds.min(u64::from(u32::MAX))))
    }

    pub(super) fn seconds(&mut self, key: &str, default: u64) -> Duration {
        Duration::from_secs(self.number(key, default).min(u64::from(u32::MAX)))
    }

    pub(super) fn duration(&mut self, key: &str, default: Duration) -> Duration {
        self.note(key, ValueForm::Duration);
        match self.text(key) {
            "" => default,
            text => parse_go_duration(text).unwrap_or_else(|error| {
                self.report(key, error);
                default
            }),
        }
    }

    /// A number of bytes as Kubernetes writes quantities (`10M`, `64Mi`, `1000`), if a valid one is set.
    pub(super) fn set_bytes(&mut self, key: &str) -> Option<u64> {
        self.note(key, ValueForm::Bytes);
        match self.text(key) {
            "" => None,
            text => {
                let bytes = parse_bytes(text);
                if bytes.is_none() {
                    self.report(key, "expected a size such as 10M or 64Mi; it is not used");
                }
                bytes
            }
        }
    }

    /// A list of globs, or regular expressions between slashes, separated by commas.
    pub(super) fn globs(&mut self, key: &str) -> Vec<Glob> {
        let mut globs = Vec::new();
        for pattern in csv(self.text(key)) {
            match Glob::regex_or_plain(&pattern) {
                Ok(glob) => globs.push(glob),
                Err(error) => self.report(key, error),
            }
        }
        globs
    }

    /// A list of values, separated by commas.
    pub(super) fn each<T: FromStr<Err: Display>>(&mut self, key: &str) -> Vec<T> {
        let mut values = Vec::new();
        for text in csv(self.text(key)) {
            match text.parse() {
                Ok(value) => values.push(value),
                Err(error) => self.report(key, error),
            }
        }
        values
    }

    pub(super) fn yaml<T: Wire>(&mut self, key: &str) -> T {
        match read_yaml(self.get(key).unwrap_or_default()) {
            Ok(value) => value,
            Err(reason) => {
                self.report(key, reason);
                T::default()
            }
        }
    }
}

/// One YAML document as a wire type; an empty one is the default.
pub(super) fn read_yaml<T: Wire>(text: &str) -> Result<T, String> {
    let limits = Limits { max_bytes: 1 << 20, ..Limits::default() };
    let documents = parse_documents(text, &limits).map_err(|error| error.to_string())?;
    let mut values = documents.into_iter().map(|document| document.value).filter(|value| !value.is_null());
    match (values.next(), values.next()) {
        (None, _) => Ok(T::default()),
        (Some(value), None) => T::read(&value).map_err(|error| error.to_string()),
        (Some(_), Some(_)) => Err("expected one YAML document, found several".to_owned()),
    }
}

/// A value that may be text or already YAML; Argo CD's older setting nests one in the other.
pub(super) fn read_nested<T: Wire>(value: &Value) -> Result<T, String> {
    match value {
        Value::String(text) => read_yaml(text),
        Value::Null => Ok(T::default()),
        other => T::read(other).map_err(|error| error.to_string()),
    }
}

/// Entries between commas, without surrounding space and without empty ones.
pub(super) fn csv(text: &str) -> Vec<String> {
    text.split(',').map(str::trim).filter(|entry| !entry.is_empty()).map(str::to_owned).collect()
}

fn parse_bytes(text: &str) -> Option<u64> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let scale = match text.get(digits.len()..)? {
        "" => 1,
        "k" | "K" => 1_000,
        "M" => 1_000_000,
        "G" => 1_000_000_000,
        "Ki" => 1 << 10,
        "Mi" => 1 << 20,
        "Gi" => 1 << 30,
        _ => return None,
    };
    digits.parse::<u64>().ok()?.checked_mul(scale)
}

/// `None` for zero, which means "never" or "no limit".
pub(super) fn non_zero(duration: Duration) -> Option<Duration> {
    (!duration.is_zero()).then_some(duration)
}
