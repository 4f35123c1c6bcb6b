//! `plumb pause` and `plumb resume`

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use plumb_core::app::{Pause, PausedObjects};
use plumb_core::object::{Manifest, ObjectKey};
use plumb_kube::{ClusterClient, Patch, Target};
use serde_json::json;

use crate::config;
use crate::context::{Context, change, create};
use crate::edit::merge::edit_annotation;
use crate::error::CommandError;
use crate::exit::ExitCode;
use crate::select::app;

/// Pause automated sync and self-heal of an app or of one of its objects.
///
/// The pause is an annotation of the Application with a reason and an end, at most seven days ahead. No sync removes it. `plumb resume` ends it early. A manual
/// sync of a paused app is allowed; it skips objects that are paused themselves. A parent app does not change a paused
/// child app.
///
/// Examples: `plumb pause payments --for 30m --reason "testing a fix by hand"`,
/// `plumb pause payments apps/Deployment/web --for 2h --reason "incident 4711"`
#[derive(Debug, clap::Args)]
pub(crate) struct PauseArgs {
    #[command(flatten)]
    what: PauseTarget,
    /// Length of the pause, such as 30m or 2h30m.
    #[arg(long = "for", value_name = "TIME", value_parser = duration)]
    length: Duration,
    /// Why; shown together with the pause.
    #[arg(long)]
    reason: String,
}

/// End a pause early.
///
/// Examples: `plumb resume payments`, `plumb resume payments apps/Deployment/web`
#[derive(Debug, clap::Args)]
pub(crate) struct ResumeArgs {
    #[command(flatten)]
    what: PauseTarget,
}

/// What to pause.
#[derive(Debug, clap::Args)]
struct PauseTarget {
    /// `name`, or `namespace/name`.
    #[arg(value_name = "APP", add = crate::complete::apps())]
    app: String,
    /// One of its objects instead of the whole app: `[GROUP/]KIND/[NAMESPACE/]NAME`.
    object: Option<String>,
}

pub(crate) async fn pause(context: &Context, args: &PauseArgs) -> Result<ExitCode, CommandError> {
    if args.reason.trim().is_empty() {
        return Err(CommandError::usage("--reason is empty").hint("give a reason: other users will see it"));
    }
    let length = SignedDuration::try_from(args.length)
        .map_err(|error| CommandError::because("read --for", error).exit(ExitCode::Usage))?;
    if length > Pause::LONGEST {
        return Err(CommandError::usage("--for is longer than 7d, the longest pause").hint(
            "pause again before it ends, or change Git: a pause that is forgotten hides what is wrong",
        ));
    }
    let until = Timestamp::now()
        .checked_add(length)
        .map_err(|error| CommandError::because("read --for", error).exit(ExitCode::Usage))?;
    let until = Timestamp::from_second(until.as_second()).unwrap_or(until);
    let pause = Pause { until: Some(until), reason: args.reason.trim().to_owned(), by: Some(config::user()) };
    let found = args.what.find(context).await?;
    found.annotate(Some(&pause)).await?;
    let name = found.name();
    let message = format!("{name} until {until}: {}", pause.reason);
    write_event(context, &found.home, &args.what, "Paused", &message).await;
    context.out.note(&format!("{name} is paused until {until}"));
    Ok(ExitCode::Success)
}

pub(crate) async fn resume(context: &Context, args: &ResumeArgs) -> Result<ExitCode, CommandError> {
    let found = args.what.find(context).await?;
    found.annotate(None).await?;
    let name = found.name();
    write_event(context, &found.home, &args.what, "Resumed", &name).await;
    context.out.note(&format!("{name} is no longer paused"));
    Ok(ExitCode::Success)
}

/// What to pause. The pause is written on the Application: the right to pause is the right to change the Application.
struct Found {
    home: ClusterClient,
    /// The Application.
    target: Target,
    /// One of its objects instead of the whole app.
    object: Option<ObjectKey>,
}

impl Found {
    fn name(&self) -> String {
        match &self.object {
            Some(object) => format!("{} {}", object.kind, object.name),
            None => format!("{} {}", self.target.gvk.kind, self.target.name),
        }
    }

    async fn annotate(&self, pause: Option<&Pause>) -> Result<(), CommandError> {
        let Some(object) = &self.object else {
            let text = pause.map(Pause::to_text);
            let patch = json!({"metadata": {"annotations": {Pause::ANNOTATION: text}}});
            return change(&self.home, &self.target, &Patch::Merge(patch)).await.map(drop);
        };
        // Pauses of other objects are in the same annotation.
        let edit = |written: Option<&str>| {
            let mut paused = written.map(PausedObjects::parse).unwrap_or_default();
            paused.retain_holding(Timestamp::now());
            paused.set(object.clone(), pause.cloned());
            paused.to_text()
        };
        edit_annotation(&self.home, &self.target, PausedObjects::ANNOTATION, edit).await.map(drop)
    }
}

impl PauseTarget {
    async fn find(&self, context: &Context) -> Result<Found, CommandError> {
        let Some(object) = &self.object else {
            let home = context.client().await?;
            let target = app::target(context, &self.app, None);
            app::read(context, &home, &target).await?;
            return Ok(Found { home, target, object: None });
        };
        let home = context.client().await?;
        let target = app::target(context, &self.app, None);
        let application = app::read(context, &home, &target).await?;
        let wanted = ObjectName::parse(object)?;
        let mut found = application.status.resources.iter().filter(|state| wanted.matches(state));
        let Some(state) = found.next() else {
            return Err(CommandError::new(format!("{} has no object {object}", self.app))
                .hint(format!("`plumb app resources {}` lists its objects", self.app)));
        };
        if found.next().is_some() {
            return Err(CommandError::usage(format!("{object} matches several objects of {}", self.app))
                .hint("add group and namespace: GROUP/KIND/NAMESPACE/NAME"));
        }
        let object = Some(state.key());
        Ok(Found { home, target, object })
    }
}

/// `[GROUP/]KIND/[NAMESPACE/]NAME`. A kind begins with a capital letter, a group does not.
struct ObjectName<'a> {
    group: Option<&'a str>,
    kind: &'a str,
    namespace: Option<&'a str>,
    name: &'a str,
}

impl<'a> ObjectName<'a> {
    fn parse(text: &'a str) -> Result<Self, CommandError> {
        let parts: Vec<&str> = text.split('/').collect();
        let is_kind = |part: &str| part.starts_with(|letter: char| letter.is_ascii_uppercase());
        let at = parts.iter().position(|part| is_kind(part)).filter(|at| *at < 2);
        let split =
            at.map(|at| (parts.get(..at).unwrap_or_default(), parts.get(at + 1..).unwrap_or_default()));
        match (at.and_then(|at| parts.get(at)), split) {
            (Some(kind), Some((group, [name]))) => {
                Ok(Self { group: group.first().copied(), kind, namespace: None, name })
            }
            (Some(kind), Some((group, [namespace, name]))) => {
                Ok(Self { group: group.first().copied(), kind, namespace: Some(namespace), name })
            }
            _ => Err(CommandError::usage(format!("`{text}` is not the name of an object"))
                .hint("[GROUP/]KIND/[NAMESPACE/]NAME, such as apps/Deployment/web")),
        }
    }

    fn matches(&self, state: &plumb_crd::application::ResourceStatus) -> bool {
        self.kind == state.kind
            && self.name == state.name
            && self.group.is_none_or(|group| group == state.group)
            && self.namespace.is_none_or(|namespace| namespace == state.namespace)
    }
}

/// Writes an event on the Application. A failure is only noted.
async fn write_event(
    context: &Context,
    client: &ClusterClient,
    what: &PauseTarget,
    reason: &str,
    message: &str,
) {
    let app = app::target(context, &what.app, None);
    let Ok(application) = app::read_whole(context, client, &app).await else { return };
    let now = Timestamp::now();
    let event = Manifest::new(json!({
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"generateName": format!("{}.", app.name), "name": format!("{}.{:x}", app.name, now.as_nanosecond()), "namespace": app.namespace},
        "involvedObject": {
            "apiVersion": application.api_version(), "kind": application.kind(), "name": app.name,
            "namespace": app.namespace, "uid": application.uid(),
        },
        "type": "Normal",
        "reason": reason,
        "message": format!("{} by {}", message, config::user()),
        "source": {"component": "plumb"},
        "firstTimestamp": now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
        "lastTimestamp": now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
        "count": 1,
    }));
    if let Ok(event) = event
        && let Err(error) = create(client, &event).await
    {
        context.out.note(&format!("warning: no event was written: {}", error.message()));
    }
}

/// `90s`, `30m`, `2h30m`, `1d`.
fn duration(text: &str) -> Result<Duration, String> {
    let mut total = Duration::ZERO;
    let mut rest = text.trim();
    while !rest.is_empty() {
        let digits = rest.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(rest.len());
        let number: u64 = rest
            .get(..digits)
            .and_then(|number| number.parse().ok())
            .ok_or("expected a duration such as 30m or 2h30m")?;
        let unit = rest.get(digits..=digits).ok_or("the unit is missing: s, m, h or d")?;
        let seconds = match unit {
            "s" => 1,
            "m" => 60,
            "h" => 3600,
            "d" => 86_400,
            _ => return Err(format!("`{unit}` is not a unit: use s, m, h or d")),
        };
        total += Duration::from_secs(number.checked_mul(seconds).ok_or("the duration is too long")?);
        rest = rest.get(digits + 1..).unwrap_or_default();
    }
    if total.is_zero() { Err("the duration must not be 0".to_owned()) } else { Ok(total) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_parsed() {
        assert_eq!(duration("30m"), Ok(Duration::from_mins(30)));
        assert_eq!(duration("2h30m"), Ok(Duration::from_mins(150)));
        assert_eq!(duration("1d"), Ok(Duration::from_hours(24)));
        for wrong in ["", "30", "m", "0m", "3x", "-3m", "99999999999999999999h"] {
            assert!(duration(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn group_and_namespace_of_an_object_are_optional() {
        let parts = |text: &str| {
            let name = ObjectName::parse(text).ok()?;
            let owned = |part: Option<&str>| part.unwrap_or("-").to_owned();
            Some(format!("{} {} {} {}", owned(name.group), name.kind, owned(name.namespace), name.name))
        };
        assert_eq!(parts("Deployment/web").as_deref(), Some("- Deployment - web"));
        assert_eq!(parts("apps/Deployment/web").as_deref(), Some("apps Deployment - web"));
        assert_eq!(parts("Deployment/prod/web").as_deref(), Some("- Deployment prod web"));
        assert_eq!(parts("apps/Deployment/prod/web").as_deref(), Some("apps Deployment prod web"));
        for wrong in ["", "web", "deployment/web", "a/b/Deployment/web", "Deployment", "Deployment/a/b/c"] {
            assert_eq!(parts(wrong), None, "{wrong}");
        }
    }
}
