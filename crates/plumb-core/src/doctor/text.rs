//! One screen.

use jiff::Timestamp;

use super::{Diagnosis, Group, Illness};
use crate::app::AppId;
use crate::drift::DriftClass;
use crate::health::in_words;
use crate::text::one_line;

/// Most apps that a line names.
const MAX_APPS: usize = 4;
/// Most objects that a group lists.
const MAX_PLACES: usize = 3;
/// Most illnesses and pauses that a block lists.
const MAX_LINES: usize = 10;

/// The screen: each block with the command that acts on it. `namespace` is the control plane's; apps of other namespaces
/// are named with theirs.
pub fn text(diagnosis: &Diagnosis, namespace: &str, now: Timestamp) -> String {
    let screen = Screen { namespace, now };
    let blocks = [
        screen.ill(diagnosis),
        screen.groups("WRONG", &diagnosis.wrong, "plumb drift APP  # the evidence; then sync, or change Git"),
        screen.groups(
            "RED, BUT NOTHING IS WRONG",
            &diagnosis.harmless,
            "plumb fix --patch  # the changes of Git that end it; plumb drift APP --all explains",
        ),
        screen.unjudged(diagnosis),
        screen.groups("NOT IN GIT", &diagnosis.orphans, "plumb app sync APP --prune --dry-run"),
        screen.groups(
            "RENDERED DIFFERENTLY EACH TIME",
            &diagnosis.unstable,
            "plumb fix --class UnstableRender --patch  # a rule for exactly these fields",
        ),
        screen.pauses(diagnosis),
    ];
    let mut lines: Vec<String> = Vec::new();
    for block in blocks.into_iter().filter(|block| !block.is_empty()) {
        if !lines.is_empty() {
            lines.push(String::new());
        }
        lines.extend(block);
    }
    if !lines.is_empty() {
        lines.push(String::new());
    }
    lines.push(summary(diagnosis));
    lines.join("\n")
}

fn summary(diagnosis: &Diagnosis) -> String {
    let n_wrong: usize = diagnosis.wrong.iter().map(|group| group.places.len()).sum();
    let n_harmless: usize = diagnosis.harmless.iter().map(|group| group.places.len()).sum();
    let n_orphans: usize = diagnosis.orphans.iter().map(|group| group.places.len()).sum();
    format!(
        "{}: {} unhealthy for too long, {n_wrong} wrong, {n_orphans} not in Git, {n_harmless} red without a reason; \
         {} without any meaning",
        counted(diagnosis.n_apps, "app"),
        counted(diagnosis.ill.len(), "object"),
        counted(diagnosis.n_quiet, "more difference"),
    )
}

/// `1 object`, `2 objects`.
fn counted(n: usize, word: &str) -> String {
    if n == 1 { format!("1 {word}") } else { format!("{n} {word}s") }
}

/// `payments` in the control-plane namespace, `team-a/payments` in another one.
pub(super) fn app_name(app: &AppId, namespace: &str) -> String {
    if app.namespace == namespace { app.name.clone() } else { format!("{}/{}", app.namespace, app.name) }
}

struct Screen<'names> {
    namespace: &'names str,
    now: Timestamp,
}

impl Screen<'_> {
    fn since(&self, since: Option<Timestamp>) -> Option<String> {
        since.map(|since| format!("for {}", in_words(self.now.duration_since(since))))
    }

    fn ill(&self, diagnosis: &Diagnosis) -> Vec<String> {
        if diagnosis.ill.is_empty() {
            return Vec::new();
        }
        let mut lines = vec![format!("UNHEALTHY FOR TOO LONG ({})", diagnosis.ill.len())];
        for illness in diagnosis.ill.iter().take(MAX_LINES) {
            lines.push(self.headline(illness));
            lines.extend(illness.causes.iter().skip(1).map(|cause| format!("      {}", one_line(cause))));
        }
        lines.extend(more(diagnosis.ill.len(), MAX_LINES));
        lines.push("  → plumb app get APP".to_owned());
        lines
    }

    fn headline(&self, illness: &Illness) -> String {
        let status =
            if illness.status.is_empty() { "a child resource is unhealthy" } else { &illness.status };
        let since = self.since(illness.since).map(|since| format!(" {since}")).unwrap_or_default();
        let stuck = if illness.is_stuck { ", stuck" } else { "" };
        let app = app_name(&illness.app, self.namespace);
        one_line(&format!("  {app}: {}: {status}{since}{stuck}", illness.key)).into_owned()
    }

    fn groups(&self, title: &str, groups: &[Group], command: &str) -> Vec<String> {
        if groups.is_empty() {
            return Vec::new();
        }
        let n_findings: usize = groups.iter().map(|group| group.places.len()).sum();
        let mut lines = vec![format!("{title} ({n_findings})")];
        for group in groups {
            lines.push(self.group(group));
            for place in group.places.iter().take(MAX_PLACES) {
                let fields: Vec<String> =
                    place.finding.fields.iter().take(MAX_PLACES).map(ToString::to_string).collect();
                let rest = if place.finding.fields.len() > MAX_PLACES { ", …" } else { "" };
                let fields =
                    if fields.is_empty() { String::new() } else { format!(": {}{rest}", fields.join(", ")) };
                let line =
                    format!("      {} {}{fields}", app_name(&place.app, self.namespace), place.finding.key);
                lines.push(one_line(&line).into_owned());
            }
            lines.extend(more(group.places.len(), MAX_PLACES).map(|more| format!("    {more}")));
            if is_worth_saying(group) {
                lines.push(one_line(&format!("      ends with: {}", group.fix())).into_owned());
            }
        }
        lines.push(format!("  → {command}"));
        lines
    }

    /// `LiveEdit Deployment: 3 findings in payments, shop, by kubectl, for 2d`
    fn group(&self, group: &Group) -> String {
        let apps = group.apps();
        let mut names: Vec<String> =
            apps.iter().take(MAX_APPS).map(|app| app_name(app, self.namespace)).collect();
        if apps.len() > MAX_APPS {
            names.push(format!("{} more", apps.len() - MAX_APPS));
        }
        let actors: Vec<&str> = group.actors().into_iter().take(MAX_APPS).collect();
        let by = if actors.is_empty() { String::new() } else { format!(", by {}", actors.join(", ")) };
        let since = self.since(group.since()).map(|since| format!(", {since}")).unwrap_or_default();
        let n_findings = counted(group.places.len(), "finding");
        one_line(&format!(
            "  {} {}: {n_findings} in {}{by}{since}",
            group.class,
            group.kind,
            names.join(", ")
        ))
        .into_owned()
    }

    fn unjudged(&self, diagnosis: &Diagnosis) -> Vec<String> {
        if diagnosis.unjudged.is_empty() {
            return Vec::new();
        }
        let mut lines = vec![format!("OUT OF SYNC, NOT JUDGED BY PLUMB ({})", diagnosis.unjudged.len())];
        for (app, red) in diagnosis.unjudged.iter().take(MAX_LINES) {
            let mut names: Vec<String> = red.iter().take(MAX_PLACES).map(ToString::to_string).collect();
            if red.len() > MAX_PLACES {
                names.push(format!("{} more", red.len() - MAX_PLACES));
            }
            let line = format!("  {}: {}", app_name(app, self.namespace), names.join(", "));
            lines.push(one_line(&line).into_owned());
        }
        lines.extend(more(diagnosis.unjudged.len(), MAX_LINES));
        lines.push("  → plumb app diff APP  # what differs, and why".to_owned());
        lines
    }

    fn pauses(&self, diagnosis: &Diagnosis) -> Vec<String> {
        if diagnosis.pauses.is_empty() {
            return Vec::new();
        }
        let mut lines = vec![format!("PAUSED ({})", diagnosis.pauses.len())];
        for (app, pause) in diagnosis.pauses.iter().take(MAX_LINES) {
            let ends = match pause.until {
                Some(until) => format!("ends in {}", in_words(until.duration_since(self.now))),
                None => "does not end by itself".to_owned(),
            };
            let reason = if pause.reason.is_empty() { String::new() } else { format!(" ({})", pause.reason) };
            let line = format!("  {}: {}: {ends}{reason}", app_name(app, self.namespace), pause.key);
            lines.push(one_line(&line).into_owned());
        }
        lines.extend(more(diagnosis.pauses.len(), MAX_LINES));
        lines.push("  → plumb resume APP".to_owned());
        lines
    }
}

/// The text of the fix helps where it does not name one app or object.
fn is_worth_saying(group: &Group) -> bool {
    let first = group.fix();
    !first.is_empty()
        && group.class != DriftClass::Orphan
        && group.places.iter().all(|place| place.finding.fix.text == first)
}

fn more(n: usize, limit: usize) -> Option<String> {
    (n > limit).then(|| format!("  … and {} more", n - limit))
}
