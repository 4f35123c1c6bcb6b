//! Values and writers in a sentence.

use serde_json::Value;

use super::Case;
use crate::compare::Difference;
use crate::fields::Entry;

impl Case<'_> {
    /// `Git says 3, the cluster has 10`. Does not show the values of a Secret.
    pub(in crate::drift) fn values(&self, difference: &Difference<'_>) -> String {
        if self.is_secret() {
            return "the values differ (secret values are not shown)".to_owned();
        }
        let side = |value: Option<&Value>| value.map_or_else(|| "nothing".to_owned(), show);
        format!("Git says {}, the cluster has {}", side(difference.desired), side(difference.live))
    }
}

/// A value, on one line and not too long.
pub(in crate::drift) fn show(value: &Value) -> String {
    let text = value.to_string();
    let mut short: String = text.chars().take(80).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    short
}

/// `kubectl-edit`, or `kube-controller-manager (scale)`.
pub(in crate::drift) fn writer(entry: &Entry<'_>) -> String {
    match entry.subresource {
        Some(subresource) => format!("{} ({subresource})", entry.manager),
        None => entry.manager.to_owned(),
    }
}
