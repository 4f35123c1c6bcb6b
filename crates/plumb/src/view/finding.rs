//! One finding of a drift report as text.

use plumb_core::text::one_line;
use plumb_crd::drift_report::DriftFinding;

/// A finding with its evidence and its fix; with the rule that decided, where one app is shown in detail.
pub(crate) fn described(finding: &DriftFinding, with_rule: bool) -> String {
    let place = if finding.namespace.is_empty() {
        finding.name.clone()
    } else {
        format!("{}/{}", finding.namespace, finding.name)
    };
    let mut text = format!("  {} {} {place}", finding.class, finding.kind);
    if !finding.fields.is_empty() {
        text = format!("{text}: {}", finding.fields.join(", "));
    }
    let actor = (!finding.actor.is_empty()).then(|| format!("by {}", finding.actor));
    let since = finding.since.map(|since| format!("since {since}"));
    let origin: Vec<String> = actor.into_iter().chain(since).collect();
    if !origin.is_empty() {
        text = format!("{text} ({})", origin.join(", "));
    }
    text = one_line(&text).into_owned();
    for line in &finding.evidence {
        text = format!("{text}\n      {}", one_line(line));
    }
    if with_rule && !finding.rule.is_empty() {
        text = format!("{text}\n      rule: {}", finding.rule);
    }
    match &finding.fix {
        Some(fix) if !fix.text.is_empty() => {
            format!("{text}\n      → {}{}", one_line(&fix.text), indented(&fix.patch, "        "))
        }
        _ => text,
    }
}

/// The lines of a patch, each after a line break and a margin.
pub(crate) fn indented(patch: &str, margin: &str) -> String {
    patch.lines().fold(String::new(), |text, line| format!("{text}\n{margin}{line}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_is_shown_with_and_without_an_actor() {
        let shown = |actor: &str, since: Option<&str>| {
            let finding = DriftFinding {
                class: "LiveEdit".to_owned(),
                kind: "Deployment".to_owned(),
                name: "web".to_owned(),
                actor: actor.to_owned(),
                since: since.map(|since| since.parse().unwrap()),
                rule: "edited-by-another-writer".to_owned(),
                ..DriftFinding::default()
            };
            described(&finding, false)
        };
        let time = Some("2026-11-15T18:00:00Z");
        assert_eq!(shown("", None), "  LiveEdit Deployment web");
        assert_eq!(shown("kubectl", None), "  LiveEdit Deployment web (by kubectl)");
        assert_eq!(shown("", time), "  LiveEdit Deployment web (since 2026-11-15T18:00:00Z)");
        assert_eq!(
            shown("kubectl", time),
            "  LiveEdit Deployment web (by kubectl, since 2026-11-15T18:00:00Z)"
        );
    }

    #[test]
    fn details_name_the_rule() {
        let finding = DriftFinding {
            class: "LiveEdit".to_owned(),
            kind: "Deployment".to_owned(),
            name: "web".to_owned(),
            rule: "edited-by-another-writer".to_owned(),
            evidence: vec!["`kubectl` wrote it".to_owned()],
            ..DriftFinding::default()
        };
        assert_eq!(
            described(&finding, true),
            "  LiveEdit Deployment web\n      `kubectl` wrote it\n      rule: edited-by-another-writer"
        );
    }
}
