//! Secrets whose values are in Git.

use serde_json::Value;

use super::{LintApp, LintFinding, LintRule};
use crate::normalize::is_secret;
use crate::object::{FieldPath, ObjectKey};

pub(super) fn check(app: &LintApp<'_>) -> Vec<LintFinding> {
    let mut findings = Vec::new();
    for item in app.items().filter(|item| is_secret(item.manifest)) {
        let fields: Vec<FieldPath> = ["data", "stringData"]
            .iter()
            .flat_map(|map| {
                let values = item.manifest.value().get(map).and_then(Value::as_object);
                let plain = values.into_iter().flatten().filter(|(name, value)| {
                    is_value(value) && !is_generated(app, item.key, (map, name.as_str()), value)
                });
                plain.map(|(name, _)| FieldPath::root().field(*map).field(name.as_str())).collect::<Vec<_>>()
            })
            .collect();
        if fields.is_empty() {
            continue;
        }
        let n_values = fields.len();
        let values = if n_values == 1 { "1 value".to_owned() } else { format!("{n_values} values") };
        let message =
            format!("the Secret has {values} in Git, which everyone who can read the repository can read");
        let fix = "encrypt it (a SealedSecret, SOPS), or fetch it (an ExternalSecret), and change the values: \
                   the history of Git keeps them";
        let finding = LintFinding::new(LintRule::PlainSecret, app.name, message, fix);
        findings.push(finding.of(item.key(), item.origin).at(fields));
    }
    findings
}

/// Does a second render have another value? Then the chart makes it up, and Git does not have it.
fn is_generated(
    app: &LintApp<'_>,
    key: Option<&ObjectKey>,
    (map, name): (&str, &str),
    value: &Value,
) -> bool {
    let again = app.second.zip(key).and_then(|(second, key)| second.objects.get(key));
    let again = again.and_then(|again| again.manifest.value().get(map)?.get(name));
    again.is_some_and(|again| again != value)
}

/// Placeholders that a plugin fills in are no secrets: `<path:…>` and `<name>` of the Vault plugin, `ENC[…]` of SOPS.
fn is_value(value: &Value) -> bool {
    let Some(text) = value.as_str() else { return !value.is_null() };
    let text = text.trim();
    let is_placeholder = text.starts_with('<') && text.ends_with('>') || text.starts_with("ENC[");
    !text.is_empty() && !is_placeholder
}
