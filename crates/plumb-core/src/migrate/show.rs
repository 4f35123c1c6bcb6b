//! The report as a text and as data.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::facts::{AppVerdict, Level, Report};

/// One screen. What it quotes was written by others: the caller makes control characters visible.
pub fn text(report: &Report) -> String {
    let mut text = String::new();
    for (level, title) in [
        (Level::Missing, "What does not work with plumb:"),
        (Level::Step, "Before plumb starts:"),
        (Level::Differs, "What differs:"),
        (Level::Works, "What works:"),
    ] {
        let found: Vec<_> = report.findings.iter().filter(|finding| finding.level == level).collect();
        if !found.is_empty() {
            let _ = writeln!(text, "{title}");
        }
        for finding in found {
            let _ = writeln!(text, "  {}: {}\n      {}", finding.subject, finding.what, finding.next);
        }
    }
    let changed: Vec<&AppVerdict> = report.verdicts.iter().filter(|one| one.before != one.after).collect();
    if !report.verdicts.is_empty() {
        let _ = writeln!(
            text,
            "Apps: {} keep their sync status, {} change it",
            report.verdicts.len() - changed.len(),
            changed.len()
        );
    }
    for verdict in changed {
        let why = if verdict.why.is_empty() { String::new() } else { format!(" ({})", verdict.why) };
        let _ = writeln!(text, "  {}: {} -> {}{why}", verdict.app, verdict.before, verdict.after);
    }
    if report.findings.is_empty() && report.verdicts.is_empty() {
        text.push_str("There is nothing to move: no Applications, no Argo CD.\n");
    }
    text
}

/// The report for programs.
pub fn data(report: &Report) -> Value {
    let findings = report.findings.iter().map(|finding| {
        json!({"level": finding.level.name(), "subject": finding.subject, "what": finding.what, "next": finding.next})
    });
    let verdicts = report.verdicts.iter().map(|verdict| {
        json!({"app": verdict.app, "before": verdict.before, "after": verdict.after, "why": verdict.why})
    });
    json!({"findings": findings.collect::<Vec<_>>(), "apps": verdicts.collect::<Vec<_>>(), "blocked": report.is_blocked()})
}
