//! Class G: the same files render differently each time.

use super::{LintApp, LintFinding, LintRule};
use crate::change::unstable_fields;
use crate::object::FieldPath;

pub(super) fn check(app: &LintApp<'_>) -> Vec<LintFinding> {
    let Some(second) = app.second else { return Vec::new() };
    let mut findings = Vec::new();
    for (key, fields) in unstable_fields(app.desired, second) {
        let is_gone = fields == [FieldPath::root()];
        let name = FieldPath::root().field("metadata").field("name");
        let fields = if is_gone { vec![name] } else { fields };
        let shown: Vec<String> = fields.iter().map(ToString::to_string).collect();
        let message = format!("a second render of the same files differs: {}", shown.join(", "));
        let fix = "set the value in the values of the chart, instead of a random one or the time";
        let origin = app.desired.objects.get(&key).and_then(|object| object.origin.as_ref());
        let finding = LintFinding::new(LintRule::UnstableRender, app.name, message, fix);
        findings.push(finding.of(Some(key), origin).at(fields));
    }
    findings
}
