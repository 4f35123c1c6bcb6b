//! What a verb would do, before it is done.

use std::fmt::Write as _;

use jiff::{SignedDuration, Timestamp};
use plumb_core::app::Pause;
use plumb_core::object::ObjectKey;
use plumb_crd::application::ResourceStatus;
use plumb_crd::{Application, DriftReport};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::object_ref::object_ref;
use crate::trouble::short;

/// Kinds whose deletion loses data that no copy brings back.
const DATA: [&str; 4] =
    ["PersistentVolumeClaim", "PersistentVolume", "Namespace", "CustomResourceDefinition"];
/// More deletions than this, and more than half of the objects, need the name of the app.
const MANY: usize = 5;

/// What a user wants to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    /// Make the cluster equal to Git.
    Sync,
    /// Compare again.
    Refresh,
    /// Hold automated syncs and self-heal.
    Pause,
    /// End a pause.
    Resume,
    /// Stop the running operation.
    Terminate,
    /// Sync to an earlier state.
    Rollback,
    /// Delete the Application.
    Delete,
    /// Restart the pods of a workload.
    Restart,
    /// Delete one object.
    DeleteObject,
}

impl Verb {
    /// All verbs.
    pub const ALL: [Self; 9] = [
        Self::Sync,
        Self::Refresh,
        Self::Pause,
        Self::Resume,
        Self::Terminate,
        Self::Rollback,
        Self::Delete,
        Self::Restart,
        Self::DeleteObject,
    ];

    /// Its name in requests.
    pub fn name(self) -> &'static str {
        match self {
            Self::Sync => "sync",
            Self::Refresh => "refresh",
            Self::Pause => "pause",
            Self::Resume => "resume",
            Self::Terminate => "terminate",
            Self::Rollback => "rollback",
            Self::Delete => "delete",
            Self::Restart => "restart",
            Self::DeleteObject => "delete-object",
        }
    }

    /// The action that Argo CD's permissions name, on the Application or on one of its objects.
    pub fn action(self, object: Option<&ObjectKey>) -> String {
        let of = |verb: &str| {
            object.map_or_else(
                || verb.to_owned(),
                |key| format!("{verb}/{}/{}/{}/{}", key.group, key.kind, key.namespace_or_empty(), key.name),
            )
        };
        match self {
            Self::Sync | Self::Terminate | Self::Rollback => "sync".to_owned(),
            Self::Refresh => "get".to_owned(),
            Self::Pause | Self::Resume => "update".to_owned(),
            Self::Delete => "delete".to_owned(),
            Self::Restart => object.map_or_else(
                || "action/apps/Deployment/restart".to_owned(),
                |key| format!("action/{}/{}/restart", key.group, key.kind),
            ),
            Self::DeleteObject => of("delete"),
        }
    }
}

/// What a user asks for, on one app.
#[expect(clippy::struct_excessive_bools, reason = "each is a box that a user checks")]
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PlanRequest {
    /// Delete what Git no longer has.
    pub prune: bool,
    /// Only report what would be done.
    pub dry_run: bool,
    /// Hard refresh: read Git without caches.
    pub hard: bool,
    /// Delete the objects of the app, too.
    pub cascade: bool,
    /// Another revision.
    pub revision: String,
    /// Only these objects.
    pub objects: Vec<ObjectKey>,
    /// Why a pause.
    pub reason: String,
    /// How long a pause, in minutes.
    pub minutes: i64,
    /// The entry of the history to go back to.
    pub history_id: i64,
}

/// What would be done.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// What the page shows.
    pub shown: Value,
    /// Changes with the facts that the plan was made from.
    pub token: String,
    /// True if it can be done.
    pub is_possible: bool,
}

/// The steps and words of a plan while it is made.
#[derive(Default)]
struct Draft {
    steps: Vec<Value>,
    notes: Vec<String>,
    hurdle: Option<String>,
    button: String,
    undo: String,
    typed: bool,
    commands: Vec<String>,
}

/// The plan of a verb on one app.
pub fn plan(
    verb: Verb,
    app: &Application,
    report: Option<&DriftReport>,
    request: &PlanRequest,
    now: Timestamp,
) -> Plan {
    let mut draft = Draft::default();
    match verb {
        Verb::Sync => sync(&mut draft, app, report, request),
        Verb::Refresh => refresh(&mut draft, app, request),
        Verb::Pause => pause(&mut draft, app, request, now),
        Verb::Resume => resume(&mut draft, app),
        Verb::Terminate => terminate(&mut draft, app),
        Verb::Rollback => rollback(&mut draft, app, request),
        Verb::Delete => delete(&mut draft, app, request),
        Verb::Restart => restart(&mut draft, app, request),
        Verb::DeleteObject => delete_object(&mut draft, app, request),
    }
    let facts = json!([
        verb.name(),
        app.metadata.uid,
        draft.steps,
        draft.hurdle,
        app.operation.is_some(),
        format!("{request:?}"),
        app.status.sync.revision
    ]);
    let digest = Sha256::digest(facts.to_string().as_bytes());
    let token = digest.iter().take(16).fold(String::new(), |mut token, byte| {
        let _ = write!(token, "{byte:02x}");
        token
    });
    let shown = json!({
        "verb": verb.name(), "app": [app.metadata.namespace, app.metadata.name], "steps": draft.steps,
        "notes": draft.notes, "hurdle": draft.hurdle, "button": draft.button, "undo": draft.undo,
        "typed": if draft.typed { json!(app.metadata.name) } else { Value::Null }, "commands": draft.commands,
        "token": token,
    });
    Plan { shown, token, is_possible: draft.hurdle.is_none() }
}

fn name_of(app: &Application) -> String {
    if app.metadata.namespace == "argocd" {
        app.metadata.name.clone()
    } else {
        format!("{}/{}", app.metadata.namespace, app.metadata.name)
    }
}

fn step(key: &ObjectKey, what: &str, why: &str, wave: i64) -> Value {
    let mut step = object_ref(key);
    step["what"] = json!(what);
    step["why"] = json!(short(why));
    step["wave"] = json!(wave);
    step
}

fn refuse_busy(draft: &mut Draft, app: &Application) {
    if app.operation.is_some() {
        draft.hurdle = Some("another operation runs; wait for it or terminate it".to_owned());
    }
    if app.metadata.deletion_timestamp.is_some() {
        draft.hurdle = Some("the Application is being deleted".to_owned());
    }
}

/// How many objects of a sync are applied, deleted, kept and equal.
#[derive(Default)]
struct SyncCounts {
    applied: usize,
    deleted: usize,
    kept: usize,
    same: usize,
}

fn sync(draft: &mut Draft, app: &Application, report: Option<&DriftReport>, request: &PlanRequest) {
    refuse_busy(draft, app);
    let counts = sync_steps(draft, app, report, request);
    let SyncCounts { applied, deleted, kept, same } = counts;
    draft.typed |= deleted > MANY && deleted * 2 > applied + deleted + kept + same;
    if same > 0 {
        let objects = if same == 1 {
            "1 object is equal to Git. It is"
        } else {
            &format!("{same} objects are equal to Git. They are")
        };
        draft.notes.push(format!("{objects} applied again, which changes nothing."));
    }
    if kept > 0 {
        let objects = if kept == 1 {
            "1 object that left Git stays"
        } else {
            &format!("{kept} objects that left Git stay")
        };
        draft.notes.push(format!("{objects}, because prune is off."));
    }
    if !request.revision.is_empty() {
        draft.notes.push(format!(
            "The steps compare with the revision that the app follows. {} may differ; a dry run shows it.",
            short(&request.revision)
        ));
    }
    draft.notes.push(
        "Hooks run as Git declares them. Waves follow each other when the one before is healthy.".to_owned(),
    );
    let dry = if request.dry_run { "Dry run: " } else { "" };
    draft.button = match (applied, deleted) {
        (0, 0) => format!("{dry}Sync, nothing to change"),
        (applied, 0) => format!("{dry}Apply {applied}"),
        (0, deleted) => format!("{dry}Delete {deleted}"),
        (applied, deleted) => format!("{dry}Apply {applied}, delete {deleted}"),
    };
    let copies = if deleted > 0 { "A copy of each deleted object is kept; Undo restores it. " } else { "" };
    draft.undo = format!("{copies}Rollback goes back to the state before.");
    draft.commands.push(sync_command(app, request));
}

/// What happens to each object.
fn sync_steps(
    draft: &mut Draft,
    app: &Application,
    report: Option<&DriftReport>,
    request: &PlanRequest,
) -> SyncCounts {
    let is_asked =
        |resource: &&ResourceStatus| request.objects.is_empty() || request.objects.contains(&resource.key());
    let why = |key: &ObjectKey| {
        let mut findings = report.into_iter().flat_map(|report| &report.findings);
        let finding = findings.find(|finding| finding.counts && finding.key() == *key);
        finding.map_or_else(String::new, |finding| {
            let evidence = finding.evidence.first().map_or("", String::as_str);
            format!("{}: {evidence}", finding.class)
        })
    };
    let mut sorted: Vec<&ResourceStatus> = app.status.resources.iter().filter(is_asked).collect();
    sorted.sort_by_key(|resource| (resource.requires_pruning, resource.sync_wave));
    let mut counts = SyncCounts::default();
    for resource in sorted {
        let (key, wave) = (resource.key(), resource.sync_wave);
        if resource.requires_pruning && request.prune {
            counts.deleted += 1;
            draft.typed |= DATA.contains(&key.kind.as_str());
            draft.steps.push(step(&key, "delete", "it is no longer in Git", wave));
        } else if resource.requires_pruning {
            counts.kept += 1;
            draft.steps.push(step(&key, "keep", "it is no longer in Git; prune would delete it", wave));
        } else if resource.status == "OutOfSync" {
            counts.applied += 1;
            draft.steps.push(step(&key, "apply", &why(&key), wave));
        } else if !resource.hook {
            counts.same += 1;
        }
    }
    counts
}

fn sync_command(app: &Application, request: &PlanRequest) -> String {
    let mut command = format!("plumb app sync {}", name_of(app));
    for (flag, holds) in [(" --prune", request.prune), (" --dry-run", request.dry_run)] {
        if holds {
            command.push_str(flag);
        }
    }
    if !request.revision.is_empty() {
        let _ = write!(command, " --revision {}", quoted(&request.revision));
    }
    for key in &request.objects {
        let namespace = key.namespace.as_ref().map(|namespace| format!("{namespace}/")).unwrap_or_default();
        let object = format!("{}:{}:{namespace}{}", key.group, key.kind, key.name);
        let _ = write!(command, " --resource {}", quoted(&object));
    }
    command
}

fn refresh(draft: &mut Draft, app: &Application, request: &PlanRequest) {
    let how = if request.hard {
        "Read Git again without caches, render, compare."
    } else {
        "Read Git again and compare."
    };
    draft.notes.push(format!("{how} Nothing is written to the cluster."));
    draft.button = if request.hard { "Hard refresh".to_owned() } else { "Refresh".to_owned() };
    let flag = if request.hard { "--hard-refresh" } else { "--refresh" };
    draft.commands.push(format!("plumb app get {} {flag}", name_of(app)));
}

/// The pause that a request asks for; an error says what is wrong with it.
fn asked_pause(request: &PlanRequest, now: Timestamp) -> Result<Timestamp, String> {
    if request.reason.trim().is_empty() {
        return Err("give a reason: other users will see it".to_owned());
    }
    let length = SignedDuration::from_mins(request.minutes.clamp(0, 1_000_000));
    if request.minutes <= 0 || length > Pause::LONGEST {
        return Err("a pause lasts from one minute to seven days".to_owned());
    }
    now.checked_add(length).map_err(|error| error.to_string())
}

fn pause(draft: &mut Draft, app: &Application, request: &PlanRequest, now: Timestamp) {
    if let Err(why) = asked_pause(request, now) {
        draft.hurdle = Some(why);
    }
    draft.notes.push(format!(
        "No automated sync and no self-heal of {} for {} minutes.",
        app.metadata.name, request.minutes
    ));
    draft.notes.push("A sync by hand stays possible. The pause ends by itself.".to_owned());
    draft.button = format!("Pause {} min", request.minutes);
    draft.undo.push_str("Resume ends it at any time.");
    let reason = quoted(request.reason.trim());
    draft.commands.push(format!("plumb pause {} --for {}m --reason {reason}", name_of(app), request.minutes));
}

fn resume(draft: &mut Draft, app: &Application) {
    if !app.metadata.annotations.contains_key(Pause::ANNOTATION) {
        draft.hurdle = Some("it is not paused".to_owned());
    }
    draft.notes.push("Automated syncs and self-heal start again at once.".to_owned());
    draft.button.push_str("Resume");
    draft.commands.push(format!("plumb resume {}", name_of(app)));
}

fn terminate(draft: &mut Draft, app: &Application) {
    if app.operation.is_none() {
        draft.hurdle = Some("no operation runs".to_owned());
    }
    draft.notes.push("The running sync stops. What it has applied stays; its hooks are ended.".to_owned());
    draft.button.push_str("Terminate");
    draft.commands.push(format!("plumb app terminate-op {}", name_of(app)));
}

fn rollback(draft: &mut Draft, app: &Application, request: &PlanRequest) {
    refuse_busy(draft, app);
    match app.status.history.iter().find(|past| past.id == request.history_id) {
        None => draft.hurdle = Some(format!("the history has no entry {}", request.history_id)),
        Some(past) => {
            let revision = Some(&past.revision).filter(|text| !text.is_empty()).or(past.revisions.first());
            let revision: String = revision.map(|text| text.chars().take(12).collect()).unwrap_or_default();
            draft.notes.push(format!("Sync to {revision}, as it was applied on {}.", past.deployed_at));
            draft.button = format!("Roll back to {revision}");
        }
    }
    let automated = app.spec.sync_policy.as_ref().and_then(|policy| policy.automated.as_ref());
    if automated.is_some_and(|automated| automated.enabled != Some(false)) {
        draft.hurdle = Some(
            "automated sync would undo it: pause does not help, turn automation off in Git first".to_owned(),
        );
    }
    draft.undo.push_str("A later sync goes to what Git has.");
    draft.commands.push(format!("plumb app rollback {} {}", name_of(app), request.history_id));
}

fn delete(draft: &mut Draft, app: &Application, request: &PlanRequest) {
    if app.metadata.deletion_timestamp.is_some() {
        draft.hurdle = Some("the Application is being deleted".to_owned());
    }
    for resource in app.status.resources.iter().filter(|resource| !resource.hook) {
        let (what, why) =
            if request.cascade { ("delete", "its app goes") } else { ("keep", "only the Application goes") };
        draft.steps.push(step(&resource.key(), what, why, resource.sync_wave));
    }
    draft.typed = request.cascade;
    draft.button = if request.cascade {
        format!("Delete the Application and {} objects", draft.steps.len())
    } else {
        "Delete the Application only".to_owned()
    };
    draft.undo = if request.cascade {
        "Copies of the objects are kept; Undo restores them. Data in volumes does not come back.".to_owned()
    } else {
        "Apply the Application again: it adopts its objects.".to_owned()
    };
    let flag = if request.cascade { "" } else { " --cascade=false" };
    draft.commands.push(format!("plumb app delete {}{flag}", name_of(app)));
}

fn one_object<'r>(draft: &mut Draft, request: &'r PlanRequest) -> Option<&'r ObjectKey> {
    let object = request.objects.first();
    if object.is_none() {
        draft.hurdle = Some("name an object".to_owned());
    }
    object
}

fn restart(draft: &mut Draft, app: &Application, request: &PlanRequest) {
    let Some(key) = one_object(draft, request) else { return };
    if !matches!(key.kind.as_str(), "Deployment" | "StatefulSet" | "DaemonSet") {
        draft.hurdle = Some(format!("a {} cannot be restarted", key.kind));
    }
    draft.steps.push(step(key, "restart", "its pods are replaced one after the other", 0));
    draft.button = format!("Restart {}", key.name);
    draft.undo.push_str("Nothing to undo: the same pods start again.");
    let namespace = key.namespace_or_empty();
    draft.commands.push(format!(
        "kubectl -n {namespace} rollout restart {}/{}",
        key.kind.to_lowercase(),
        key.name
    ));
    draft.commands.push(format!(
        "plumb app actions run {} restart --kind {} --resource-name {}",
        name_of(app),
        key.kind,
        key.name
    ));
}

fn delete_object(draft: &mut Draft, app: &Application, request: &PlanRequest) {
    let Some(key) = one_object(draft, request) else { return };
    draft.steps.push(step(key, "delete", "you asked for it", 0));
    draft.typed = DATA.contains(&key.kind.as_str());
    let known = app.status.resources.iter().find(|resource| resource.key() == *key);
    if known.is_some_and(|resource| !resource.requires_pruning) {
        draft.notes.push("Git has it: the next sync creates it again.".to_owned());
    }
    draft.notes.push("This deletion keeps no copy. `plumb orphans --delete` keeps one.".to_owned());
    draft.button = format!("Delete {} {}", key.kind, key.name);
    let namespace = key.namespace.as_ref().map(|namespace| format!("-n {namespace} ")).unwrap_or_default();
    draft.commands.push(format!("kubectl {namespace}delete {}/{}", key.kind.to_lowercase(), key.name));
}

/// A word for a shell.
fn quoted(text: &str) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-_./:@".contains(letter);
    if !text.is_empty() && text.chars().all(is_plain) {
        return text.to_owned();
    }
    format!("'{}'", short(text).replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;
    use crate::row::tests::{app, live_edit, report};

    fn application() -> Application {
        let resource = |kind: &str, name: &str, status: &str, prune: bool| {
            json!({"group": "apps", "kind": kind, "namespace": "pay", "name": name, "status": status,
                   "requiresPruning": prune})
        };
        app(
            "payments",
            json!({"resources": [
                resource("Deployment", "payments", "OutOfSync", false),
                resource("Deployment", "fine", "Synced", false),
                resource("PersistentVolumeClaim", "old", "OutOfSync", true),
            ]}),
        )
    }

    #[expect(clippy::needless_pass_by_value, reason = "a table of cases is shorter so")]
    fn check(verb: Verb, request: &PlanRequest, expected: Expect) {
        let report = report("payments", json!([live_edit()]), json!([]));
        let now = "2026-11-15T03:12:12Z".parse().unwrap();
        let shown = plan(verb, &application(), Some(&report), request, now).shown;
        let mut text = String::new();
        for step in shown["steps"].as_array().unwrap() {
            let _ = writeln!(text, "{} {}: {}", step["what"], step["name"], step["why"]);
        }
        let _ = writeln!(text, "[{}] typed {} hurdle {}", shown["button"], shown["typed"], shown["hurdle"]);
        let _ = writeln!(text, "$ {}", shown["commands"][0]);
        expected.assert_eq(&text);
    }

    #[test]
    fn plans() {
        check(
            Verb::Sync,
            &PlanRequest::default(),
            expect![[r#"
                "apply" "payments": "LiveEdit: Git says 3, the cluster has 10"
                "keep" "old": "it is no longer in Git; prune would delete it"
                ["Apply 1"] typed null hurdle null
                $ "plumb app sync payments"
            "#]],
        );
        check(
            Verb::Sync,
            &PlanRequest { prune: true, ..PlanRequest::default() },
            expect![[r#"
                "apply" "payments": "LiveEdit: Git says 3, the cluster has 10"
                "delete" "old": "it is no longer in Git"
                ["Apply 1, delete 1"] typed "payments" hurdle null
                $ "plumb app sync payments --prune"
            "#]],
        );
        check(
            Verb::Pause,
            &PlanRequest { minutes: 30, reason: "it's $(mine)".to_owned(), ..PlanRequest::default() },
            expect![[r#"
                ["Pause 30 min"] typed null hurdle null
                $ "plumb pause payments --for 30m --reason 'it'\\''s $(mine)'"
            "#]],
        );
        check(
            Verb::Pause,
            &PlanRequest { minutes: 30, ..PlanRequest::default() },
            expect![[r#"
                ["Pause 30 min"] typed null hurdle "give a reason: other users will see it"
                $ "plumb pause payments --for 30m --reason ''"
            "#]],
        );
        check(
            Verb::Terminate,
            &PlanRequest::default(),
            expect![[r#"
                ["Terminate"] typed null hurdle "no operation runs"
                $ "plumb app terminate-op payments"
            "#]],
        );
    }

    #[test]
    fn a_token_holds_for_the_same_facts_only() {
        let now = "2026-11-15T03:12:12Z".parse().unwrap();
        let token =
            |app: &Application, request: &PlanRequest| plan(Verb::Sync, app, None, request, now).token;
        let plain = PlanRequest::default();
        let mut other = application();
        assert_eq!(token(&application(), &plain), token(&other, &plain));
        assert_ne!(token(&other, &plain), token(&other, &PlanRequest { prune: true, ..plain.clone() }));
        if let Some(resource) = other.status.resources.get_mut(1) {
            resource.status = "OutOfSync".to_owned();
        }
        assert_ne!(token(&application(), &plain), token(&other, &plain));
    }
}
