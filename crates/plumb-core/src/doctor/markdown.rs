//! The diagnosis for a merge request or a chat.

use jiff::Timestamp;

use super::text::app_name;
use super::{Diagnosis, Group};
use crate::health::in_words;
use crate::report::row;

/// One table per block. Apps outside of `namespace` are named with theirs.
pub fn markdown(diagnosis: &Diagnosis, namespace: &str, now: Timestamp) -> String {
    let mut text = String::from("# plumb doctor\n");
    let long =
        |since: Option<Timestamp>| since.map(|since| in_words(now.duration_since(since))).unwrap_or_default();
    if !diagnosis.ill.is_empty() {
        text.push_str(
            "\n## Unhealthy for too long\n\n| app | object | health | for | cause |\n|---|---|---|---|---|\n",
        );
        for illness in &diagnosis.ill {
            let cells = [
                app_name(&illness.app, namespace),
                illness.key.to_string(),
                illness.status.clone(),
                long(illness.since),
                illness.causes.last().cloned().unwrap_or_default(),
            ];
            text.push_str(&row(&cells));
        }
    }
    let blocks = [
        ("Wrong", &diagnosis.wrong),
        ("Red, but nothing is wrong", &diagnosis.harmless),
        ("Not in Git", &diagnosis.orphans),
        ("Rendered differently each time", &diagnosis.unstable),
    ];
    for (title, groups) in blocks {
        if !groups.is_empty() {
            text.push_str(&table(title, groups, namespace, &long));
        }
    }
    if !diagnosis.unexplained.is_empty() {
        text.push_str("\n## Red, and plumb finds no difference\n\n| app | object |\n|---|---|\n");
        for (app, key) in &diagnosis.unexplained {
            text.push_str(&row(&[app_name(app, namespace), key.to_string()]));
        }
    }
    if !diagnosis.unjudged.is_empty() {
        text.push_str("\n## Not judged by plumb\n\n| app | out of sync | why not |\n|---|---|---|\n");
        for app in &diagnosis.unjudged {
            let objects: Vec<String> = app.red.iter().map(ToString::to_string).collect();
            let why = app.problem.clone().unwrap_or_default();
            text.push_str(&row(&[app_name(&app.app, namespace), objects.join(", "), why]));
        }
    }
    if !diagnosis.plain_secrets.is_empty() {
        text.push_str("\n## Secrets with their values in Git\n\n| app | object |\n|---|---|\n");
        for (app, key) in &diagnosis.plain_secrets {
            text.push_str(&row(&[app_name(app, namespace), key.to_string()]));
        }
    }
    if text.lines().count() == 1 {
        text.push_str("\nNothing is wrong.\n");
    }
    text
}

fn table(
    title: &str,
    groups: &[Group],
    namespace: &str,
    long: &dyn Fn(Option<Timestamp>) -> String,
) -> String {
    let mut text =
        format!("\n## {title}\n\n| class | app | object | fields | by | for |\n|---|---|---|---|---|---|\n");
    for place in groups.iter().flat_map(|group| &group.places) {
        let finding = &place.finding;
        let fields: Vec<String> = finding.fields.iter().map(ToString::to_string).collect();
        let cells = [
            finding.class.name().to_owned(),
            app_name(&place.app, namespace),
            finding.key.to_string(),
            fields.join(" "),
            finding.actor.clone().unwrap_or_default(),
            long(finding.since),
        ];
        text.push_str(&row(&cells));
    }
    text
}
