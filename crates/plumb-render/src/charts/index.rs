//! `index.yaml` of a Helm repository.

use std::collections::BTreeMap;

use plumb_core::version::{Constraint, Version};
use plumb_core::yaml::{self, YamlError};
use serde_json::Value;

/// Largest index, in bytes.
pub(super) const MAX_INDEX: usize = 128 << 20;

/// Why an index cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum IndexError {
    /// Not YAML.
    #[error("not valid YAML")]
    Yaml(#[source] YamlError),
    /// No `entries`.
    #[error("it has no `entries`; is this the address of a Helm repository?")]
    NoEntries,
    /// The task that parses it was cancelled.
    #[error("reading it was interrupted")]
    Interrupted,
}

/// The charts of a repository.
pub(super) struct Index {
    pub(super) digest: String,
    charts: BTreeMap<String, Vec<IndexEntry>>,
}

/// One version of one chart.
#[derive(Clone, Debug)]
pub(super) struct IndexEntry {
    pub(super) version: String,
    pub(super) urls: Vec<String>,
    pub(super) digest: String,
}

impl Index {
    pub(super) fn parse(bytes: &[u8], digest: String) -> Result<Self, IndexError> {
        let limits = yaml::Limits { max_bytes: MAX_INDEX, ..yaml::Limits::default() };
        let documents = yaml::parse_documents_bytes(bytes, &limits).map_err(IndexError::Yaml)?;
        let value = documents.into_iter().next().map(|document| document.value).unwrap_or_default();
        let entries = value.get("entries").and_then(Value::as_object).ok_or(IndexError::NoEntries)?;
        let charts = entries
            .iter()
            .map(|(name, versions)| {
                let versions = versions.as_array().into_iter().flatten().filter_map(entry).collect();
                (name.clone(), versions)
            })
            .collect();
        Ok(Self { digest, charts })
    }

    /// The exact version, else the newest that satisfies the constraint.
    pub(super) fn find(&self, name: &str, version: &str) -> Option<&IndexEntry> {
        let entries = self.charts.get(name)?;
        if let Some(exact) = entries.iter().find(|entry| entry.version == version) {
            return Some(exact);
        }
        // `v1.2.3` and `1.2.3` mean the same.
        if let Some(wanted) = Version::parse(version) {
            return entries.iter().find(|entry| {
                Version::parse(&entry.version).is_some_and(|found| found.precedence(&wanted).is_eq())
            });
        }
        let newest =
            Constraint::parse(version)?.newest(entries.iter().map(|entry| entry.version.as_str()))?;
        entries.iter().find(|entry| entry.version == newest)
    }

    /// What the repository has instead, for an error message.
    pub(super) fn hint(&self, name: &str) -> String {
        match self.charts.get(name) {
            None => format!("; it has {} charts, none of this name", self.charts.len()),
            Some(entries) => {
                let newest = Constraint::parse(">=0-0")
                    .and_then(|any| any.newest(entries.iter().map(|entry| entry.version.as_str())));
                newest.map_or_else(String::new, |version| format!("; the newest is {version}"))
            }
        }
    }
}

fn entry(value: &Value) -> Option<IndexEntry> {
    let text = |key: &str| value.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    let urls = value.get("urls")?.as_array()?.iter().filter_map(Value::as_str).map(str::to_owned).collect();
    Some(IndexEntry { version: text("version"), urls, digest: text("digest") })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_found_exactly_or_by_constraint() {
        let text = "entries:\n  web:\n  - {version: 1.0.0, urls: [a]}\n  - {version: v1.10.0, urls: [b]}\n  \
                    - {version: 1.9.0, urls: [c]}\n  - {version: 2.0.0-rc.1, urls: [d]}\n  - {urls: 3}\n";
        let index = Index::parse(text.as_bytes(), String::new()).unwrap();
        let find = |version| index.find("web", version).map(|entry| entry.urls[0].as_str());
        assert_eq!(find("1.0.0"), Some("a"));
        assert_eq!(find("v1.0.0"), Some("a"));
        assert_eq!(find("^1.0"), Some("b"));
        assert_eq!(find("*"), Some("b"));
        assert_eq!(find(">=2.0.0-0"), Some("d"));
        assert_eq!(find("3.x"), None);
        assert!(index.find("other", "*").is_none());
        assert_eq!(index.hint("web"), "; the newest is 2.0.0-rc.1");
        assert!(matches!(Index::parse(b"a: b", String::new()), Err(IndexError::NoEntries)));
        assert!(matches!(Index::parse(b"a: [", String::new()), Err(IndexError::Yaml(_))));
    }
}
