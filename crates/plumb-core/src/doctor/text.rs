//! One screen.

use jiff::Timestamp;

use super::{Diagnosis, Group, Illness, Place, StatusOf};
use crate::app::AppId;
use crate::drift::{DriftClass, FixKind};
use crate::health::in_words;
use crate::text::one_line;

/// Most apps that a line names.
const MAX_APPS: usize = 4;
/// Most objects that a group lists.
const MAX_PLACES: usize = 3;
/// Longer patches are not shown.
const MAX_PATCH: usize = 12;
/// Most illnesses and pauses that a block lists.
const MAX_LINES: usize = 10;

/// The screen: each block with the command that acts on it. `namespace` is the control plane's; apps of other namespaces
/// are named with theirs.
pub fn text(diagnosis: &Diagnosis, namespace: &str, now: Timestamp) -> String {
    let screen = Screen { namespace, now };
    let orphans = ["plumb orphans  # who still uses them, and in which order they can go"];
    let unstable = ["plumb fix --class UnstableRender --patch  # a rule for exactly these fields"];
    let blocks = [
        screen.ill(diagnosis),
        screen.groups("WRONG", &diagnosis.wrong, &wrong_commands(&diagnosis.wrong)),
        screen.groups(
            "RED, BUT NOTHING IS WRONG",
            &diagnosis.harmless,
            &["plumb fix --patch  # the changes of Git that end it; --branch NAME commits them"],
        ),
        screen.unexplained(diagnosis),
        screen.unjudged(diagnosis),
        screen.groups("NOT IN GIT", &diagnosis.orphans, &orphans),
        screen.groups("RENDERED DIFFERENTLY EACH TIME", &diagnosis.unstable, &unstable),
        screen.plain_secrets(diagnosis),
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
    let n_harmless = n_harmless + diagnosis.unexplained.len();
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
        // No title: the first line of the screen is the worst of them.
        let mut lines = Vec::new();
        for illness in diagnosis.ill.iter().take(MAX_LINES) {
            lines.push(self.headline(illness));
            lines.extend(illness.causes.iter().skip(1).map(|cause| format!("      {}", one_line(cause))));
        }
        lines.extend(more(diagnosis.ill.len(), MAX_LINES));
        lines.push("  → plumb unmask  # all of them, and what changed before each of them began".to_owned());
        lines
    }

    /// `UNHEALTHY for 21d 2h: rollouts: apps/Deployment argo/rollouts: Progressing, stuck`
    fn headline(&self, illness: &Illness) -> String {
        let status =
            if illness.status.is_empty() { "a child resource is unhealthy" } else { &illness.status };
        let since = self.since(illness.since).map(|since| format!(" {since}")).unwrap_or_default();
        let stuck = if illness.is_stuck { ", stuck" } else { "" };
        let app = app_name(&illness.app, self.namespace);
        one_line(&format!("UNHEALTHY{since}: {app}: {}: {status}{stuck}", illness.key)).into_owned()
    }

    fn groups(&self, title: &str, groups: &[Group], commands: &[&str]) -> Vec<String> {
        if groups.is_empty() {
            return Vec::new();
        }
        let n_findings: usize = groups.iter().map(|group| group.places.len()).sum();
        let mut lines = vec![format!("{title} ({n_findings})")];
        for group in groups {
            lines.push(self.group(group));
            lines.extend(group.places.iter().take(MAX_PLACES).map(|place| self.place(place)));
            lines.extend(more(group.places.len(), MAX_PLACES).map(|more| format!("    {more}")));
            lines.extend(ending(group));
        }
        lines.extend(commands.iter().map(|command| format!("  → {command}")));
        lines
    }

    fn place(&self, place: &Place) -> String {
        let fields: Vec<String> =
            place.finding.fields.iter().take(MAX_PLACES).map(ToString::to_string).collect();
        let rest = if place.finding.fields.len() > MAX_PLACES { ", …" } else { "" };
        let fields = if fields.is_empty() { String::new() } else { format!(": {}{rest}", fields.join(", ")) };
        // What Argo CD does not see is worth knowing where Argo CD is what people look at.
        let unseen = match place.in_argo_cd() {
            Some("Synced") if place.finding.counts => " (Argo CD: Synced)",
            _ => "",
        };
        let line =
            format!("      {} {}{fields}{unseen}", app_name(&place.app, self.namespace), place.finding.key);
        one_line(&line).into_owned()
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

    fn unexplained(&self, diagnosis: &Diagnosis) -> Vec<String> {
        if diagnosis.unexplained.is_empty() {
            return Vec::new();
        }
        let mut lines = vec![format!("RED, AND PLUMB FINDS NO DIFFERENCE ({})", diagnosis.unexplained.len())];
        let shown = diagnosis.unexplained.iter().take(MAX_LINES);
        lines.extend(
            shown.map(|(app, key)| {
                one_line(&format!("  {}: {key}", app_name(app, self.namespace))).into_owned()
            }),
        );
        lines.extend(more(diagnosis.unexplained.len(), MAX_LINES));
        lines.push("  → plumb app get APP --hard-refresh  # Argo CD compares again".to_owned());
        lines.push(
            "  → plumb doctor --app APP --dry-runs -o yaml  # still red: report it with this".to_owned(),
        );
        lines
    }

    fn unjudged(&self, diagnosis: &Diagnosis) -> Vec<String> {
        if diagnosis.unjudged.is_empty() {
            return Vec::new();
        }
        let mut lines = vec![format!("NOT JUDGED BY PLUMB ({})", diagnosis.unjudged.len())];
        for unjudged in diagnosis.unjudged.iter().take(MAX_LINES) {
            let mut names: Vec<String> =
                unjudged.red.iter().take(MAX_PLACES).map(ToString::to_string).collect();
            if unjudged.red.len() > MAX_PLACES {
                names.push(format!("{} more", unjudged.red.len() - MAX_PLACES));
            }
            let app = app_name(&unjudged.app, self.namespace);
            let out_of_sync = (!names.is_empty()).then(|| format!("OutOfSync: {}", names.join(", ")));
            let parts: Vec<String> = unjudged.problem.clone().into_iter().chain(out_of_sync).collect();
            lines.push(one_line(&format!("  {app}: {}", parts.join("; "))).into_owned());
        }
        lines.extend(more(diagnosis.unjudged.len(), MAX_LINES));
        lines.push("  → plumb app get APP  # its conditions".to_owned());
        lines
    }

    fn plain_secrets(&self, diagnosis: &Diagnosis) -> Vec<String> {
        let secrets = &diagnosis.plain_secrets;
        if secrets.is_empty() {
            return Vec::new();
        }
        let mut lines = vec![format!("SECRETS WITH THEIR VALUES IN GIT ({})", secrets.len())];
        let shown = secrets.iter().take(MAX_LINES);
        lines.extend(
            shown.map(|(app, key)| {
                one_line(&format!("  {}: {key}", app_name(app, self.namespace))).into_owned()
            }),
        );
        lines.extend(more(secrets.len(), MAX_LINES));
        lines.push(
            "  → plumb lint DIRECTORY  # names the files; a value that was in Git has to change".to_owned(),
        );
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

/// The commands that act on differences that count.
fn wrong_commands(groups: &[Group]) -> Vec<&'static str> {
    let places = || groups.iter().flat_map(|group| &group.places);
    let has = |is_it: fn(&Place) -> bool| places().any(is_it);
    let mut commands = Vec::new();
    if has(|place| place.status_of == StatusOf::Plumb) {
        commands.push("plumb drift APP  # the evidence; then sync, or change Git");
    }
    if has(|place| place.status_of == StatusOf::ArgoCd) {
        commands.push("plumb doctor --app APP -o yaml  # the evidence; then sync, or change Git");
    }
    // Where plumb's engine runs, it has asked.
    if has(|place| place.status_of == StatusOf::ArgoCd && place.finding.class == DriftClass::Unexplained) {
        commands
            .push("plumb doctor --dry-runs  # the API server can explain some of them; it changes nothing");
    }
    if has(|place| place.finding.class == DriftClass::Unadopted) {
        commands.push("plumb adopt --all --dry-run  # marks existing objects as the app's own");
    }
    if has(|place| place.finding.fix.kind == FixKind::EditGit) {
        commands.push("plumb fix --patch  # the changes of Git that end some of them");
    }
    commands
}

/// What ends the findings of a group.
fn ending(group: &Group) -> Vec<String> {
    let verdict =
        group.places.iter().all(|place| !place.finding.counts && place.in_argo_cd() == Some("OutOfSync"));
    let verdict = if verdict {
        format!("Argo CD: OutOfSync. plumb: nothing is wrong ({}), ", group.class)
    } else {
        String::new()
    };
    let patch = group.places.first().and_then(|place| place.finding.fix.patch.as_deref());
    // A patch names one object; of several, the first one is an example.
    if let Some(patch) = patch.filter(|patch| !verdict.is_empty() && patch.lines().count() <= MAX_PATCH) {
        let what = if group.places.len() == 1 { "this patch" } else { "patches like this one" };
        let mut lines = vec![format!("      {verdict}ends with {what}:")];
        lines.extend(patch.lines().map(|line| format!("        {}", one_line(line))));
        return lines;
    }
    let fix = Some(group.fix()).filter(|_| is_worth_saying(group));
    match fix {
        Some(fix) => vec![one_line(&format!("      {verdict}ends with: {fix}")).into_owned()],
        None if verdict.is_empty() => Vec::new(),
        None => vec![format!("      {}", verdict.trim_end_matches(", "))],
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
