//! `argocd-rbac-cm`.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::rbac::pattern::MatchMode;
use crate::yaml::{Limits, parse_documents};

/// The claims that hold groups where the setting is absent.
const DEFAULT_SCOPE: &str = "groups";

/// The settings of permissions, as written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccessSettings {
    /// All lines: `policy.csv`, then the other files in the order of their names.
    pub policy: String,
    /// `policy.default`: the role that every caller has; empty for none.
    pub default_role: String,
    /// How the words of lines are read.
    pub mode: MatchMode,
    /// The claims that hold groups.
    pub scopes: Vec<String>,
}

impl Default for AccessSettings {
    fn default() -> Self {
        Self {
            policy: String::new(),
            default_role: String::new(),
            mode: MatchMode::default(),
            scopes: vec![DEFAULT_SCOPE.to_owned()],
        }
    }
}

/// A value of `argocd-rbac-cm` cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`scopes` of argocd-rbac-cm must be a YAML list of claim names, such as `[groups, email]`")]
pub struct AccessSettingsProblem;

impl AccessSettings {
    /// Reads the data of the `ConfigMap`.
    pub fn from_config(data: &BTreeMap<String, String>) -> Result<Self, AccessSettingsProblem> {
        let text = |key: &str| data.get(key).map(String::as_str).unwrap_or_default();
        Ok(Self {
            policy: policy_text(data),
            default_role: text("policy.default").to_owned(),
            mode: MatchMode::from_setting(text("policy.matchMode")),
            scopes: scopes(text("scopes"))?,
        })
    }
}

/// All files of lines, joined: `policy.csv` first, then `policy.NAME.csv` by name.
fn policy_text(data: &BTreeMap<String, String>) -> String {
    let is_overlay = |key: &str| {
        key != "policy.csv"
            && key.strip_prefix("policy.").is_some_and(|name| name.strip_suffix(".csv").is_some())
    };
    let overlays = data.iter().filter(|(key, _)| is_overlay(key)).map(|(_, text)| text.as_str());
    let first = data.get("policy.csv").map(String::as_str).unwrap_or_default();
    std::iter::once(first).chain(overlays).collect::<Vec<_>>().join("\n")
}

fn scopes(text: &str) -> Result<Vec<String>, AccessSettingsProblem> {
    if text.is_empty() {
        return Ok(vec![DEFAULT_SCOPE.to_owned()]);
    }
    let mut documents = parse_documents(text, &Limits::default()).map_err(|_| AccessSettingsProblem)?;
    match documents.pop().map(|document| document.value) {
        None | Some(Value::Null) => Ok(Vec::new()),
        Some(Value::Array(items)) if documents.is_empty() => {
            items.iter().map(|item| item.as_str().map(str::to_owned).ok_or(AccessSettingsProblem)).collect()
        }
        Some(_) => Err(AccessSettingsProblem),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_joined_in_the_order_of_their_names() {
        let data = [
            ("policy.b.csv", "b"),
            ("policy.csv", "first"),
            ("policy.B.csv", "B"),
            ("policy.default", "role:x"),
        ];
        let data = data.map(|(key, text)| (key.to_owned(), text.to_owned())).into();
        let settings = AccessSettings::from_config(&data).expect("settings");
        assert_eq!(settings.policy, "first\nB\nb");
        assert_eq!(settings.default_role, "role:x");
    }

    #[test]
    fn scopes_are_a_list() {
        for (text, expected) in [
            ("", Some(vec!["groups"])),
            ("[]", Some(vec![])),
            ("[groups, email]", Some(vec!["groups", "email"])),
            ("groups", None),
            ("[1]", None),
            ("[", None),
        ] {
            let expected = expected.map(|names| names.into_iter().map(str::to_owned).collect::<Vec<_>>());
            assert_eq!(scopes(text).ok(), expected, "{text}");
        }
    }
}
