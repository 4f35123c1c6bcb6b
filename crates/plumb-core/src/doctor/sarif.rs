//! The diagnosis as SARIF 2.1.0, which code hosts show beside the code.

use serde_json::Value;

use super::{Diagnosis, Group, Unjudged};
use crate::object::ObjectKey;
use crate::report::{SarifResult, sarif as sarif_of};

/// One result per finding and illness. `version` is plumb's.
pub fn sarif(diagnosis: &Diagnosis, version: &str) -> Value {
    let blocks = [
        (&diagnosis.wrong, "error"),
        (&diagnosis.harmless, "note"),
        (&diagnosis.orphans, "warning"),
        (&diagnosis.unstable, "note"),
    ];
    let mut results: Vec<Told> = diagnosis
        .ill
        .iter()
        .map(|illness| {
            let cause = illness.causes.last().map(|cause| format!(": {cause}")).unwrap_or_default();
            let text = format!("{} is {}{cause}", illness.key, illness.status);
            result("Unhealthy", "error", &text, (&illness.app.to_string(), &illness.key.to_string()))
        })
        .collect();
    results.extend(diagnosis.unexplained.iter().map(|(app, key)| {
        let text = format!("{key} is OutOfSync in Argo CD, and plumb finds no difference");
        result("OutOfSync", "note", &text, (&app.to_string(), &key.to_string()))
    }));
    results.extend(diagnosis.unjudged.iter().flat_map(|Unjudged { app, red, problem }| {
        let out_of_sync = |key: &ObjectKey| {
            let text = format!("{key} is OutOfSync, and plumb did not judge it");
            result("OutOfSync", "warning", &text, (&app.to_string(), &key.to_string()))
        };
        let problem = problem.iter().map(|problem| {
            let text = format!("the app {app} could not be judged: {problem}");
            result("NotJudged", "warning", &text, (&app.to_string(), &app.to_string()))
        });
        problem.chain(red.iter().map(out_of_sync)).collect::<Vec<_>>()
    }));
    results.extend(diagnosis.plain_secrets.iter().map(|(app, key)| {
        let text = format!("Git has the values of {key}");
        result("PlainSecret", "warning", &text, (&app.to_string(), &key.to_string()))
    }));
    results.extend(blocks.iter().flat_map(|(groups, level)| of_groups(groups, level)));
    let results: Vec<SarifResult<'_>> = results.iter().map(Told::result).collect();
    sarif_of(&results, version)
}

fn of_groups(groups: &[Group], level: &'static str) -> Vec<Told> {
    let places = groups.iter().flat_map(|group| &group.places);
    let finding = places.map(|place| {
        let finding = &place.finding;
        let fields: Vec<String> = finding.fields.iter().map(ToString::to_string).collect();
        let fields = if fields.is_empty() { String::new() } else { format!(": {}", fields.join(", ")) };
        let why = finding.evidence.first().map(|why| format!(" ({why})")).unwrap_or_default();
        let text = format!("{}{fields}{why}. {}", finding.key, finding.fix.text);
        result(finding.class.name(), level, &text, (&place.app.to_string(), &finding.key.to_string()))
    });
    finding.collect()
}

/// A result that owns its texts.
struct Told {
    rule: &'static str,
    level: &'static str,
    text: String,
    app: String,
    object: String,
}

impl Told {
    fn result(&self) -> SarifResult<'_> {
        SarifResult {
            rule: self.rule,
            level: self.level,
            text: &self.text,
            app: &self.app,
            object: &self.object,
            part: "",
            location: None,
        }
    }
}

fn result(rule: &'static str, level: &'static str, text: &str, (app, object): (&str, &str)) -> Told {
    Told { rule, level, text: text.to_owned(), app: app.to_owned(), object: object.to_owned() }
}
