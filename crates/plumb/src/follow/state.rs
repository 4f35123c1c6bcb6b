//! Following an Application until it has the state that a command waits for.

use jiff::Timestamp;
use plumb_crd::Application;
use plumb_kube::{ClusterClient, ObjectEvent, Target};

use super::refresh::follow;
use crate::context::Context;
use crate::error::CommandError;
use crate::output::Format;
use crate::select::app::{self, parse};
use crate::select::resource_filter::ResourceFilter;
use crate::view::describe::print_summary;
use crate::view::progress::Progress;
use crate::view::rows::object_rows;

/// The states to wait for. All that are set must hold.
#[derive(Clone, Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is one flag of `app wait`")]
pub(crate) struct Wanted {
    pub(crate) sync: bool,
    pub(crate) health: bool,
    pub(crate) operation: bool,
    pub(crate) suspended: bool,
    pub(crate) degraded: bool,
    pub(crate) delete: bool,
    pub(crate) resources: Vec<ResourceFilter>,
}

impl Wanted {
    pub(crate) fn in_words(&self) -> String {
        let words = [
            (self.sync, "synced"),
            (self.health, "healthy"),
            (self.operation, "without an operation"),
            (self.suspended, "suspended"),
            (self.degraded, "degraded"),
            (self.delete, "gone"),
        ];
        words.iter().filter(|(asked, _)| *asked).map(|(_, word)| *word).collect::<Vec<_>>().join(", ")
    }

    /// True if the Application has all wanted states.
    fn is_met(&self, application: &Application) -> bool {
        if self.delete {
            return false;
        }
        (!self.operation || is_idle(application))
            && if self.resources.is_empty() {
                let status = &application.status;
                (!self.sync || status.sync.status == "Synced") && self.health_fits(&status.health.status)
            } else {
                let states = object_rows(application);
                let mut chosen = states
                    .iter()
                    .filter(|state| ResourceFilter::any_matches(&self.resources, state))
                    .peekable();
                chosen.peek().is_some()
                    && chosen.all(|state| {
                        (!self.sync || state.status == "Synced")
                            && (state.health.is_empty() || self.health_fits(&state.health))
                    })
            }
    }

    fn health_fits(&self, health: &str) -> bool {
        let any = self.health || self.suspended || self.degraded;
        !any || (self.health && health == "Healthy")
            || (self.suspended && health == "Suspended")
            || (self.degraded && health == "Degraded")
    }
}

/// True if no operation runs, and the app was reconciled after the last one.
fn is_idle(application: &Application) -> bool {
    if application.operation.is_some() {
        return false;
    }
    match application.status.operation_state.as_deref() {
        None => true,
        Some(state) => match (state.finished_at, application.status.reconciled_at) {
            (Some(finished), Some(reconciled)) => {
                !matches!(state.phase.as_str(), "Running" | "Terminating")
                    && reconciled.as_second() >= finished.as_second()
            }
            (Some(_), None) => !matches!(state.phase.as_str(), "Running" | "Terminating"),
            (None, _) => false,
        },
    }
}

/// Follows one Application until it has the wanted states. Prints its progress, and the Application at the end.
pub(crate) async fn wait(
    context: &Context,
    client: &ClusterClient,
    target: &Target,
    wanted: &Wanted,
    output: Format,
) -> Result<(), CommandError> {
    let before = match app::read(context, client, target).await {
        Ok(before) => before,
        Err(_) if wanted.delete => return gone(context, target, wanted, output),
        Err(error) => return Err(error),
    };
    let was_degraded = before.status.health.status == "Degraded";
    let mut progress = Progress::new(context.out, output, &Application::default());
    let mut events = follow(client, target)?;
    let mut seen = false;
    while let Some(event) = progress.next(&mut events).await {
        match event {
            ObjectEvent::Seen(manifest) => {
                seen = true;
                let application = parse(&manifest)?;
                progress.show(&application, Timestamp::now());
                let health = &application.status.health;
                if wanted.health && !wanted.degraded && !was_degraded && health.status == "Degraded" {
                    progress.end();
                    return Err(CommandError::new(format!(
                        "{} became Degraded: {}",
                        target.name, health.message
                    ))
                    .hint(format!("`plumb app get {}` shows which object", target.name)));
                }
                if wanted.is_met(&application) {
                    progress.end();
                    if output.is_data() {
                        return context.out.object(output, &application.to_json());
                    }
                    print_summary(context.out, &application);
                    return Ok(());
                }
            }
            ObjectEvent::Gone { .. } => {
                progress.end();
                return gone(context, target, wanted, output);
            }
            ObjectEvent::Listed if !seen => return gone(context, target, wanted, output),
            ObjectEvent::Listed => {}
            ObjectEvent::Trouble(trouble) => progress.note(&trouble),
        }
    }
    Err(CommandError::new(format!("the watch of application {} ended", target.name)))
}

fn gone(context: &Context, target: &Target, wanted: &Wanted, output: Format) -> Result<(), CommandError> {
    if wanted.delete {
        let said = format!("application '{}' deleted", target.name);
        if output.is_data() {
            context.out.note(&said);
        } else {
            context.out.print(&said);
        }
        return Ok(());
    }
    Err(CommandError::new(format!("application {} was deleted", target.name)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn app(sync: &str, health: &str, operation: &serde_json::Value) -> Application {
        Application::from_json(&json!({
            "metadata": {"name": "a"}, "spec": {"destination": {}, "project": ""},
            "status": {"sync": {"status": sync}, "health": {"status": health},
                "reconciledAt": "2026-01-01T00:00:10Z", "operationState": operation},
        }))
        .unwrap()
    }

    #[test]
    fn all_wanted_states_must_hold() {
        let wanted = Wanted { sync: true, health: true, operation: true, ..Wanted::default() };
        let done = json!({"operation": {}, "phase": "Succeeded", "startedAt": "2026-01-01T00:00:00Z",
            "finishedAt": "2026-01-01T00:00:05Z"});
        assert!(wanted.is_met(&app("Synced", "Healthy", &done)));
        assert!(!wanted.is_met(&app("OutOfSync", "Healthy", &done)));
        assert!(!wanted.is_met(&app("Synced", "Progressing", &done)));
        let mut unseen = done.clone();
        unseen["finishedAt"] = json!("2026-01-01T00:00:11Z");
        assert!(!wanted.is_met(&app("Synced", "Healthy", &unseen)), "not reconciled since");
        let mut running = done;
        running["phase"] = json!("Running");
        assert!(!wanted.is_met(&app("Synced", "Healthy", &running)));
        let either = Wanted { health: true, suspended: true, ..Wanted::default() };
        assert!(either.is_met(&app("OutOfSync", "Suspended", &json!(null))));
        assert!(!either.is_met(&app("OutOfSync", "Degraded", &json!(null))));
    }
}
