//! Findings for other programs.

use serde_json::{Value, json};

use super::{LintFinding, Severity};
use crate::change::{self, RepositoryChange};
use crate::report::{self, Annotation, Level, Location, SarifResult, TestCase, row};

/// Everything, with stable names. `change` is what a merge would do, if it was asked for.
pub fn data(findings: &[LintFinding], change: Option<&RepositoryChange>) -> Value {
    let count = |severity: Severity| findings.iter().filter(|finding| finding.severity == severity).count();
    let mut data = json!({
        "summary": {
            "errors": count(Severity::Error), "warnings": count(Severity::Warning), "hints": count(Severity::Hint),
        },
        "findings": findings.iter().map(finding_data).collect::<Vec<_>>(),
    });
    if let (Some(change), Some(data)) = (change, data.as_object_mut()) {
        data.insert("merge".to_owned(), change::data(change));
    }
    data
}

fn finding_data(finding: &LintFinding) -> Value {
    let place = finding.place();
    let mut data = json!({
        "rule": finding.rule.name(),
        "severity": finding.severity.name(),
        "app": finding.app,
        "fields": finding.fields.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "file": place.map(|(file, _)| file),
        "line": place.map(|(_, line)| line),
        "message": finding.message,
        "fix": finding.fix,
    });
    if let (Some(key), Some(data)) = (&finding.key, data.as_object_mut()) {
        data.insert("group".to_owned(), json!(key.group));
        data.insert("kind".to_owned(), json!(key.kind));
        data.insert("namespace".to_owned(), json!(key.namespace_or_empty()));
        data.insert("name".to_owned(), json!(key.name));
    }
    data
}

/// What a finding says, in one line.
pub(super) fn sentence(finding: &LintFinding) -> String {
    match &finding.key {
        Some(key) => format!("{key}: {}", finding.message),
        None => finding.message.clone(),
    }
}

/// The same with what ends it.
fn advice(finding: &LintFinding) -> String {
    format!("{}. Fix: {}", sentence(finding), finding.fix)
}

/// SARIF 2.1.0. `version` is plumb's.
pub fn sarif(findings: &[LintFinding], version: &str) -> Value {
    let told: Vec<(String, String, String)> = findings
        .iter()
        .map(|finding| {
            let object = finding.key.as_ref().map(ToString::to_string).unwrap_or_default();
            let part = finding.fields.first().map(ToString::to_string).unwrap_or_default();
            (advice(finding), object, part)
        })
        .collect();
    let results: Vec<SarifResult<'_>> = findings
        .iter()
        .zip(&told)
        .map(|(finding, (text, object, part))| SarifResult {
            rule: finding.rule.name(),
            level: match finding.severity {
                Severity::Error => "error",
                Severity::Warning => "warning",
                Severity::Hint => "note",
            },
            text,
            app: &finding.app,
            object,
            part,
            location: finding.place().map(|(file, line)| Location { file, line }),
        })
        .collect();
    report::sarif(&results, version)
}

/// A `JUnit` report: one suite per app, one failure per error and warning. An app without any has a test that passed.
pub fn junit(findings: &[LintFinding], apps: &[&str]) -> String {
    let cases = |app: &str| -> Vec<TestCase> {
        let own = findings.iter().filter(|finding| finding.app == app);
        let cases: Vec<TestCase> = own
            .map(|finding| TestCase {
                class: app.to_owned(),
                name: match finding.place() {
                    Some((file, line)) => format!("{} {file}:{line}", finding.rule),
                    None => finding.rule.to_string(),
                },
                failure: (finding.severity != Severity::Hint)
                    .then(|| (sentence(finding), format!("{}\n{}", sentence(finding), finding.fix))),
            })
            .collect();
        if cases.is_empty() {
            vec![TestCase { class: app.to_owned(), name: "no findings".to_owned(), failure: None }]
        } else {
            cases
        }
    };
    let suites: Vec<(&str, Vec<TestCase>)> = apps.iter().map(|app| (*app, cases(app))).collect();
    report::junit("plumb lint", &suites)
}

/// Annotations for GitHub Actions, one per line.
pub fn github(findings: &[LintFinding], change: Option<&str>) -> String {
    let mut lines: Vec<String> = findings
        .iter()
        .map(|finding| {
            let message = advice(finding);
            report::annotation(&Annotation {
                level: match finding.severity {
                    Severity::Error => Level::Error,
                    Severity::Warning => Level::Warning,
                    Severity::Hint => Level::Notice,
                },
                title: &format!("{} ({})", finding.rule, finding.app),
                place: finding.place(),
                message: &message,
            })
        })
        .collect();
    lines.extend(change.map(|sentence| {
        let title = "plumb lint";
        report::annotation(&Annotation { level: Level::Notice, title, place: None, message: sentence })
    }));
    lines.join("\n")
}

/// For a comment on a merge request.
pub fn markdown(findings: &[LintFinding], change: Option<&RepositoryChange>) -> String {
    let mut text = String::from("# plumb lint\n");
    if let Some(change) = change {
        text.push('\n');
        text.push_str(&change::markdown(change, "this merge"));
    }
    if findings.is_empty() {
        text.push_str("\nNo findings.\n");
        return text;
    }
    text.push_str("\n| severity | rule | app | place | finding | fix |\n|---|---|---|---|---|---|\n");
    for finding in findings {
        let place = finding.place().map(|(file, line)| format!("{file}:{line}")).unwrap_or_default();
        let cells = [
            finding.severity.name().to_owned(),
            finding.rule.name().to_owned(),
            finding.app.clone(),
            place,
            sentence(finding),
            finding.fix.clone(),
        ];
        text.push_str(&row(&cells));
    }
    text
}
