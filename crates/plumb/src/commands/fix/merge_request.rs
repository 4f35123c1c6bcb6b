//! The text of a merge request.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use super::case::Case;
use super::commits::subject;
use super::plan::Plan;

/// Most objects that are named for a class.
const MAX_OBJECTS: usize = 20;

/// Title and description, in Markdown.
pub(super) fn text(plan: &Plan, cases: &[Case]) -> String {
    let units = || plan.steps.iter().flat_map(|step| &step.units);
    let n_objects = units().map(|unit| &unit.key).collect::<BTreeSet<_>>().len();
    let apps: BTreeSet<String> =
        units().filter_map(|unit| cases.get(unit.case)).map(|case| case.id.name.clone()).collect();
    let objects = if n_objects == 1 { "1 object".to_owned() } else { format!("{n_objects} objects") };
    let of = match apps.len() {
        1 => apps.iter().next().cloned().unwrap_or_default(),
        n_apps => format!("{n_apps} apps"),
    };
    let mut text = format!("# Make Git and the cluster agree: {objects} of {of}\n");
    for step in &plan.steps {
        let reasons: BTreeSet<&str> = step.units.iter().map(|unit| unit.change.why()).collect();
        let keys: BTreeSet<String> = step.units.iter().map(|unit| unit.key.to_string()).collect();
        // Writing to a String cannot fail.
        let _ = writeln!(text, "\n## {} ({})\n", subject(step.class), step.class);
        for why in reasons {
            let _ = writeln!(text, "{}.\n", plain(why));
        }
        for key in keys.iter().take(MAX_OBJECTS) {
            let _ = writeln!(text, "- `{}`", plain(key));
        }
        if keys.len() > MAX_OBJECTS {
            let _ = writeln!(text, "- and {} more", keys.len() - MAX_OBJECTS);
        }
    }
    let has_edits = units().any(|unit| !unit.change.is_of_application());
    if has_edits {
        text.push_str(
            "\nChecked: every app was rendered again, and only the intended fields of these objects differ.\n",
        );
    }
    text.trim_end().to_owned()
}

/// Names and reasons quote others: they must not become links, images or HTML.
fn plain(text: &str) -> String {
    text.chars()
        .filter(|char| !char.is_control())
        .map(|char| if matches!(char, '<' | '>' | '[' | ']' | '`' | '!' | '|') { ' ' } else { char })
        .collect()
}
