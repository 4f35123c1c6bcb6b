//! What `plumb fix` prints.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use similar::TextDiff;

use super::case::{Advice, Case, Unit};
use super::commits::subject;
use super::plan::{Contents, Plan};
use crate::context::Context;
use crate::output::Colour;

/// The changes as a unified diff that `git apply` and `patch -p1` accept.
pub(super) fn diff(before: &Contents, after: &Contents) -> String {
    let mut text = String::new();
    let mut root: Option<&Path> = None;
    let n_roots = after.keys().map(|place| &place.root).collect::<std::collections::BTreeSet<_>>().len();
    for (place, content) in after {
        if n_roots > 1 && root != Some(&place.root) {
            let _ = writeln!(text, "# in {}", place.root.display());
            root = Some(&place.root);
        }
        let old = before.get(place).map(Vec::as_slice).unwrap_or_default();
        // The editor changes only UTF-8.
        let (old, new) = (String::from_utf8_lossy(old), String::from_utf8_lossy(content));
        let path = place.path.as_str();
        let diff = TextDiff::from_lines(old.as_ref(), new.as_ref());
        let _ = writeln!(text, "diff --git a/{path} b/{path}");
        text.push_str(&diff.unified_diff().header(&format!("a/{path}"), &format!("b/{path}")).to_string());
    }
    text
}

/// Prints a diff with colours.
pub(super) fn print_diff(context: &Context, diff: &str) {
    for line in diff.lines() {
        match line.chars().next() {
            Some('+') => context.out.print_coloured(Colour::Green, line),
            Some('-') => context.out.print_coloured(Colour::Red, line),
            _ => context.out.print(line),
        }
    }
}

/// One line about a change, for a question.
pub(super) fn question(unit: &Unit, cases: &[Case]) -> String {
    let why = unit.change.why();
    let app = cases.get(unit.case).map(|case| case.id.to_string()).unwrap_or_default();
    format!("{app}: {} {}: {why}. Make this change?", unit.class, unit.key)
}

/// What changes, by class.
pub(super) fn print_steps(context: &Context, plan: &Plan) {
    for step in &plan.steps {
        let n_objects =
            step.units.iter().map(|unit| &unit.key).collect::<std::collections::BTreeSet<_>>().len();
        let objects = if n_objects == 1 { "1 object".to_owned() } else { format!("{n_objects} objects") };
        context.out.print(&format!("{}: {} ({objects})", step.class, subject(step.class)));
        for place in step.files.keys() {
            context.out.print(&format!("  {}", place.absolute().display()));
        }
    }
}

/// What is left to the user, to stderr: a patch on stdout stays a patch.
pub(super) fn note_advice(context: &Context, advice: &[Advice]) {
    if advice.is_empty() {
        return;
    }
    let mut by_text: BTreeMap<(&str, String), Vec<&Advice>> = BTreeMap::new();
    for advice in advice {
        by_text.entry((advice.class.name(), advice.text.clone())).or_default().push(advice);
    }
    context.out.note(&format!("left to you ({}):", advice.len()));
    for ((class, text), alike) in by_text {
        let first = alike.first().map(|advice| format!("{}: {}", advice.app, advice.key)).unwrap_or_default();
        let more = if alike.len() > 1 { format!(" and {} more", alike.len() - 1) } else { String::new() };
        context.out.note(&format!("  {class} {first}{more}\n    {text}"));
    }
}
