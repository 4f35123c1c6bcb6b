//! One finding of a drift report, in words.

use plumb_crd::drift_report::DriftFinding;

/// One finding in plain words.
pub(crate) fn described(finding: &DriftFinding) -> String {
    let place = if finding.namespace.is_empty() {
        finding.name.clone()
    } else {
        format!("{}/{}", finding.namespace, finding.name)
    };
    let mut text = format!("  {} {} {place}", finding.class, finding.kind);
    if !finding.fields.is_empty() {
        text = format!("{text}: {}", finding.fields.join(", "));
    }
    if !finding.actor.is_empty() {
        text = format!("{text} (by {}", finding.actor);
        text = finding.since.map_or_else(|| format!("{text})"), |since| format!("{text}, since {since})"));
    }
    for line in &finding.evidence {
        text = format!("{text}\n      {line}");
    }
    match &finding.fix {
        Some(fix) if !fix.text.is_empty() => {
            format!("{text}\n      → {}{}", fix.text, indented(&fix.patch, "        "))
        }
        _ => text,
    }
}

/// A patch below the line that it belongs to.
pub(crate) fn indented(patch: &str, margin: &str) -> String {
    patch.lines().fold(String::new(), |text, line| format!("{text}\n{margin}{line}"))
}
