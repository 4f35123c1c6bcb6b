//! Findings for a terminal.

use super::formats::sentence;
use super::{LintFinding, Severity};

/// One line per finding as compilers print them, one for what ends it, and a summary. `change` is what a merge would do.
pub fn text(findings: &[LintFinding], n_apps: usize, change: Option<&str>) -> String {
    let mut lines = Vec::new();
    for finding in findings {
        let place = match finding.place() {
            Some((file, line)) => format!("{file}:{line}: "),
            None => String::new(),
        };
        let (severity, rule) = (finding.severity, finding.rule);
        lines.push(format!("{place}{severity}: {rule}: {}: {}", finding.app, sentence(finding)));
        lines.push(format!("    {}", finding.fix));
    }
    if !lines.is_empty() {
        lines.push(String::new());
    }
    lines.extend(change.map(str::to_owned));
    let count = |severity: Severity| findings.iter().filter(|finding| finding.severity == severity).count();
    let several = |n: usize, word: &str| if n == 1 { format!("1 {word}") } else { format!("{n} {word}s") };
    lines.push(format!(
        "{}: {}, {}, {}",
        several(n_apps, "app"),
        several(count(Severity::Error), "error"),
        several(count(Severity::Warning), "warning"),
        several(count(Severity::Hint), "hint"),
    ));
    lines.join("\n")
}
