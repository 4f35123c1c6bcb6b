//! Plans and acts. An act runs a handler of the API, which checks the permission again and writes the line of the log.

use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use plumb_api::{Code, Status};
use plumb_core::app::{AppId, Pause, PausedObjects};
use plumb_core::object::ObjectKey;
use plumb_crd::Application;
use plumb_crd::annotations::DELETION_APPROVED;
use plumb_page::{GitFacts, Plan, PlanRequest, PlanSources, Verb, plan};
use serde_json::{Value, json};

use super::caller::{PageCaller, PageMode};
use super::feed::PageFeed;
use super::routes::Run;
use super::users::note_users_of_deletions;
use crate::call::Answer;

/// How long rendering for a plan may take. The plan says if it took longer.
const RENDERED_WITHIN: Duration = Duration::from_secs(15);
/// Most objects of one request.
const MOST_OBJECTS: usize = 1000;

/// What a request asks for.
pub(super) struct Asked {
    verb: Verb,
    app: AppId,
    request: PlanRequest,
    token: String,
}

impl Asked {
    pub(super) fn read(body: &Value) -> Result<Self, Status> {
        let text = |path: &str| body.pointer(path).and_then(Value::as_str).unwrap_or_default();
        let flag = |path: &str| body.pointer(path).and_then(Value::as_bool).unwrap_or_default();
        let number = |path: &str| body.pointer(path).and_then(Value::as_i64).unwrap_or_default();
        let verb = Verb::ALL.into_iter().find(|verb| verb.name() == text("/verb"));
        let verb = verb.ok_or_else(|| Status::invalid("the request names no verb that the page has"))?;
        let objects = body.pointer("/options/objects").and_then(Value::as_array).into_iter().flatten();
        let objects = objects.take(MOST_OBJECTS).map(|object| {
            let text = |field: &str| object.get(field).and_then(Value::as_str).unwrap_or_default();
            let namespace = Some(text("namespace")).filter(|namespace| !namespace.is_empty());
            ObjectKey::new(text("group"), text("kind"), namespace.map(str::to_owned), text("name"))
        });
        let request = PlanRequest {
            prune: flag("/options/prune"),
            dry_run: flag("/options/dryRun"),
            hard: flag("/options/hard"),
            cascade: flag("/options/cascade"),
            revision: text("/options/revision").to_owned(),
            objects: objects.collect(),
            reason: text("/options/reason").chars().take(300).collect(),
            minutes: number("/options/minutes"),
            history_id: number("/options/id"),
        };
        let app = AppId { namespace: text("/app/0").to_owned(), name: text("/app/1").to_owned() };
        Ok(Self { verb, app, request, token: text("/token").to_owned() })
    }
}

async fn planned(feed: &Arc<PageFeed>, caller: &PageCaller, asked: &Asked) -> Result<Plan, Status> {
    feed.ready().await?;
    let app = caller.app(&asked.app)?;
    let refusal = caller.refusal(asked.verb, &app, asked.request.objects.first());
    // Who may not sync must not make plumb render any revision of the repository either.
    let sources = if refusal.is_some() { PlanSources::default() } else { sources(caller, asked, &app).await };
    let report = feed.view().report(&asked.app).cloned();
    let mut plan = plan(asked.verb, &app, report.as_ref(), &sources, &asked.request, Timestamp::now());
    note_users_of_deletions(caller, &app, &mut plan.shown);
    plan.is_possible &= refusal.is_none() && caller.mode == PageMode::On;
    if let Some(why) = refusal {
        plan.shown["hurdle"] = json!(why);
    }
    Ok(plan)
}

/// What Git has at the commit that the app was compared with, and at the one that the verb goes to. It is rendered, or
/// comes from the cache of renderings.
async fn sources(caller: &PageCaller, asked: &Asked, app: &Application) -> PlanSources {
    let request = &asked.request;
    let past = || app.status.history.iter().find(|past| past.id == request.history_id);
    let revisions = match asked.verb {
        Verb::Sync if request.revision.is_empty() => Vec::new(),
        Verb::Sync => vec![request.revision.clone()],
        Verb::Rollback => match past() {
            Some(past) if past.revisions.is_empty() => vec![past.revision.clone()],
            Some(past) => past.revisions.clone(),
            None => return PlanSources::default(),
        },
        Verb::Delete if request.cascade => Vec::new(),
        _ => return PlanSources::default(),
    };
    let rendered = tokio::time::timeout(RENDERED_WITHIN, async {
        let next = facts(caller, app, revisions).await?;
        let compared = &app.status.sync.revision;
        let base = if compared.is_empty() || *compared == next.revision || !app.spec.sources.is_empty() {
            None
        } else {
            // Without it the plan knows the new objects, and not which of the others change.
            facts(caller, app, vec![compared.clone()]).await.ok()
        };
        Ok::<_, String>(PlanSources { base, next: Some(next), problem: None })
    });
    match rendered.await {
        Ok(Ok(sources)) => sources,
        Ok(Err(why)) => PlanSources { problem: Some(why), ..PlanSources::default() },
        Err(_) => {
            PlanSources { problem: Some("rendering takes too long".to_owned()), ..PlanSources::default() }
        }
    }
}

async fn facts(caller: &PageCaller, app: &Application, revisions: Vec<String>) -> Result<GitFacts, String> {
    let leader = caller.shared.handle.leader().ok_or("this replica does not lead yet")?;
    let rendered = leader.render(app.clone(), revisions).await?;
    let revision = rendered.revisions.first().cloned().unwrap_or_default();
    let objects = rendered.objects.iter().map(|(key, object)| (key, object));
    Ok(GitFacts::of(&revision, objects, rendered.hooks.iter()))
}

/// What a verb would do. Nothing is written.
pub(super) async fn show(feed: &Arc<PageFeed>, caller: &PageCaller, body: &Value) -> Result<Value, Status> {
    Ok(planned(feed, caller, &Asked::read(body)?).await?.shown)
}

/// What became of an act.
pub(super) enum Acted {
    Done(Value),
    /// The world has moved: this is the plan now.
    Moved(Value),
}

/// Does what the plan of this token said.
pub(super) async fn act(
    feed: &Arc<PageFeed>,
    caller: &PageCaller,
    body: &Value,
    run: &Run<'_>,
) -> Result<Acted, Status> {
    let asked = Asked::read(body)?;
    if caller.mode != PageMode::On {
        return Err(Status::new(Code::PermissionDenied, "this page is read-only; copy the command"));
    }
    let plan = planned(feed, caller, &asked).await?;
    if plan.token != asked.token || !plan.is_possible {
        return Ok(Acted::Moved(plan.shown));
    }
    let (path, request) = call_of(caller, &asked)?;
    match run(path, request).await? {
        Answer::One(_) => {
            Ok(Acted::Done(json!({"done": asked.verb.name(), "app": [asked.app.namespace, asked.app.name]})))
        }
        Answer::Chosen(_) | Answer::Stream(_) => Err(Status::new(Code::Internal, "an act gave no object")),
    }
}

/// The call of the API that does it. Long because it is a table of verbs.
fn call_of(caller: &PageCaller, asked: &Asked) -> Result<(&'static str, Value), Status> {
    let Asked { app, request, .. } = asked;
    let mut sent = json!({"name": app.name, "appNamespace": app.namespace});
    let path = match asked.verb {
        Verb::Sync => {
            sent["prune"] = json!(request.prune);
            sent["dryRun"] = json!(request.dry_run);
            if !request.revision.is_empty() {
                sent["revision"] = json!(request.revision);
            }
            let objects = request.objects.iter().map(|key| {
                json!({"group": key.group, "kind": key.kind, "namespace": key.namespace_or_empty(), "name": key.name})
            });
            sent["resources"] = objects.collect();
            "application.ApplicationService/Sync"
        }
        Verb::Refresh => {
            sent["refresh"] = json!(if request.hard { "hard" } else { "normal" });
            "application.ApplicationService/Get"
        }
        Verb::Pause => {
            let pause = pause(caller, request)?;
            match request.objects.first() {
                Some(key) => annotate_objects(&mut sent, &caller.app(app)?, key, Some(pause)),
                None => annotate(&mut sent, Pause::ANNOTATION, Some(&pause.to_text())),
            }
            "application.ApplicationService/Patch"
        }
        Verb::Resume => {
            match request.objects.first() {
                Some(key) => annotate_objects(&mut sent, &caller.app(app)?, key, None),
                None => annotate(&mut sent, Pause::ANNOTATION, None),
            }
            "application.ApplicationService/Patch"
        }
        Verb::ConfirmDeletion => {
            let now = Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
            annotate(&mut sent, DELETION_APPROVED, Some(&now));
            "application.ApplicationService/Patch"
        }
        Verb::Terminate => "application.ApplicationService/TerminateOperation",
        Verb::Rollback => {
            sent["id"] = json!(request.history_id);
            sent["prune"] = json!(request.prune);
            "application.ApplicationService/Rollback"
        }
        Verb::Delete => {
            sent["cascade"] = json!(request.cascade);
            "application.ApplicationService/Delete"
        }
        Verb::Restart => {
            name_object(&mut sent, request)?;
            sent["action"] = json!("restart");
            sent["version"] = json!("v1");
            "application.ApplicationService/RunResourceAction"
        }
        Verb::DeleteObject => {
            name_object(&mut sent, request)?;
            "application.ApplicationService/DeleteResource"
        }
    };
    Ok((path, sent))
}

/// Names the object of the request as calls on one object do.
fn name_object(sent: &mut Value, request: &PlanRequest) -> Result<(), Status> {
    let key = request.objects.first().ok_or_else(|| Status::invalid("the request names no object"))?;
    for (field, value) in [("group", &key.group), ("kind", &key.kind), ("resourceName", &key.name)] {
        sent[field] = json!(value);
    }
    sent["namespace"] = json!(key.namespace_or_empty());
    Ok(())
}

fn pause(caller: &PageCaller, request: &PlanRequest) -> Result<Pause, Status> {
    let length = SignedDuration::from_mins(request.minutes.clamp(1, 7 * 24 * 60));
    let until = Timestamp::now().checked_add(length).map_err(|error| Status::invalid(error.to_string()))?;
    let until = Timestamp::from_second(until.as_second()).unwrap_or(until);
    let by = Some(caller.identity.username.clone()).filter(|name| !name.is_empty());
    Ok(Pause { until: Some(until), reason: request.reason.trim().to_owned(), by })
}

/// A patch of one annotation. The sources are not rendered for it: an app that does not render can be paused, too.
fn annotate(sent: &mut Value, annotation: &str, text: Option<&str>) {
    let patch = json!({"metadata": {"annotations": {annotation: text}}});
    sent["patch"] = json!(patch.to_string());
    sent["patchType"] = json!("merge");
    sent["validate"] = json!(false);
}

/// A patch of the pauses of objects: those that hold, with this one.
fn annotate_objects(sent: &mut Value, app: &Application, key: &ObjectKey, pause: Option<Pause>) {
    let text = app.metadata.annotations.get(PausedObjects::ANNOTATION).map_or("", String::as_str);
    let mut paused = PausedObjects::parse(text);
    paused.retain_holding(Timestamp::now());
    paused.set(key.clone(), pause);
    annotate(sent, PausedObjects::ANNOTATION, paused.to_text().as_deref());
}
