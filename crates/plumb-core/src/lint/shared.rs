//! Class E: two apps ask for the same object.

use std::collections::BTreeMap;

use super::{LintApp, LintFinding, LintRule};
use crate::desired::DesiredObject;
use crate::object::ObjectKey;

/// One finding per checked app that has the object.
pub(super) fn check(apps: &[LintApp<'_>]) -> Vec<LintFinding> {
    let mut owners: BTreeMap<(&str, &ObjectKey), Vec<(usize, &DesiredObject)>> = BTreeMap::new();
    for (number, app) in apps.iter().enumerate() {
        for object in app.objects() {
            owners.entry((app.destination, &object.key)).or_default().push((number, object));
        }
    }
    let mut findings = Vec::new();
    for (number, app) in apps.iter().enumerate().filter(|(_, app)| app.is_checked) {
        for object in app.objects() {
            let sharing = owners.get(&(app.destination, &object.key)).map(Vec::as_slice).unwrap_or_default();
            let others: Vec<String> = sharing
                .iter()
                .filter(|(other, _)| *other != number)
                .filter_map(|(other, theirs)| Some(named(apps.get(*other)?.name, theirs)))
                .collect();
            if others.is_empty() {
                continue;
            }
            let message = format!("{} has the same object", others.join(" and "));
            let fix = "keep it in one app: each sync of one makes the other OutOfSync";
            let finding = LintFinding::new(LintRule::SharedResource, app.name, message, fix);
            findings.push(finding.of(Some(object.key.clone()), object.origin.as_ref()));
        }
    }
    findings
}

fn named(app: &str, object: &DesiredObject) -> String {
    match &object.origin {
        Some(origin) => format!("app {app} ({}:{})", origin.file, origin.line),
        None => format!("app {app}"),
    }
}
