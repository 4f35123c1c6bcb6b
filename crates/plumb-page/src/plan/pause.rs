//! Plans of pauses.

use jiff::{SignedDuration, Timestamp};
use plumb_core::app::{Pause, PausedObjects};
use plumb_core::object::ObjectKey;
use plumb_crd::Application;

use super::PlanRequest;
use super::draft::{Draft, name_of, quoted, step};

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

/// The object of a pause as commands name it.
fn object_word(key: &ObjectKey) -> String {
    let group = if key.group.is_empty() { String::new() } else { format!("{}/", key.group) };
    let namespace = key.namespace.as_ref().map(|namespace| format!("{namespace}/")).unwrap_or_default();
    format!("{group}{}/{namespace}{}", key.kind, key.name)
}

/// A pause of one object: plumb leaves it alone, and goes on with the others.
fn pause_object(draft: &mut Draft, app: &Application, request: &PlanRequest, key: &ObjectKey) {
    draft.steps.push(step(key, "pause", "neither syncs nor self-heal change it", 0));
    draft.notes.push("All other objects are synced as before. The pause ends by itself.".to_owned());
    draft.button = format!("Pause {} {} min", key.name, request.minutes);
    draft.undo.push_str("Resume ends it at any time.");
    let (reason, object) = (quoted(request.reason.trim()), quoted(&object_word(key)));
    draft.commands.push(format!(
        "plumb pause {} {object} --for {}m --reason {reason}",
        name_of(app),
        request.minutes
    ));
}

pub(super) fn pause(draft: &mut Draft, app: &Application, request: &PlanRequest, now: Timestamp) {
    if let Err(why) = asked_pause(request, now) {
        draft.hurdle = Some(why);
    }
    if let Some(key) = request.objects.first() {
        pause_object(draft, app, request, key);
        return;
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

pub(super) fn resume(draft: &mut Draft, app: &Application, request: &PlanRequest) {
    if let Some(key) = request.objects.first() {
        let text = app.metadata.annotations.get(PausedObjects::ANNOTATION).map_or("", String::as_str);
        if PausedObjects::parse(text).get(key).is_none() {
            draft.hurdle = Some("it is not paused".to_owned());
        }
        draft.steps.push(step(key, "resume", "syncs and self-heal change it again", 0));
        draft.button = format!("Resume {}", key.name);
        draft.commands.push(format!("plumb resume {} {}", name_of(app), quoted(&object_word(key))));
        return;
    }
    if !app.metadata.annotations.contains_key(Pause::ANNOTATION) {
        draft.hurdle = Some("it is not paused".to_owned());
    }
    draft.notes.push("Automated syncs and self-heal start again at once.".to_owned());
    draft.button.push_str("Resume");
    draft.commands.push(format!("plumb resume {}", name_of(app)));
}
