//! `plumb app wait`

use jiff::Timestamp;
use plumb_crd::Application;
use plumb_kube::{ClusterClient, ObjectEvent, Target};

use super::chosen::Chosen;
use super::progress::Progress;
use super::refresh::follow;
use super::resource_filter::ResourceFilter;
use super::target::{self, parse};
use super::{describe, states};
use crate::context::{Context, limit};
use crate::error::CommandError;
use crate::exit::ExitCode;

/// Wait until Applications are in the state that is asked for.
///
/// Without a choice it is all of --sync, --health and --operation. Shows what is waited for and why. Exit code 0:
/// they are; 20: not in time, or it cannot come any more.
///
/// Examples: `plumb app wait payments --health --timeout 300`, `plumb app wait -l team=payments`
#[derive(Debug, clap::Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is one flag of the command line")]
pub(crate) struct Args {
    /// `name`, or `namespace/name`; several are waited for one after the other.
    #[arg(value_name = "APP", add = crate::commands::completion::apps())]
    apps: Vec<String>,
    /// Those with these labels, in place of names.
    #[arg(long, short = 'l', conflicts_with = "apps")]
    selector: Option<String>,
    /// Namespace of the Applications, where it is not the control plane's.
    #[arg(long, short = 'N', value_name = "NAMESPACE")]
    app_namespace: Option<String>,
    /// Wait until it is Synced.
    #[arg(long)]
    sync: bool,
    /// Wait until it is Healthy.
    #[arg(long)]
    health: bool,
    /// Wait until no operation is under way.
    #[arg(long)]
    operation: bool,
    /// Wait until it is Suspended (or Healthy, with --health).
    #[arg(long)]
    suspended: bool,
    /// Wait until it is Degraded.
    #[arg(long)]
    degraded: bool,
    /// Wait until it is gone.
    #[arg(long)]
    delete: bool,
    /// Refused: plumb does not render to branches yet.
    #[arg(long, hide = true)]
    hydrated: bool,
    /// Only look at these objects: `[!]GROUP:KIND:[NAMESPACE/]NAME`, `*` for any.
    #[arg(long, value_name = "RESOURCE")]
    resource: Vec<ResourceFilter>,
    /// Give up after this many seconds; 0 never.
    #[arg(long, default_value_t = 0)]
    timeout: u64,
}

pub(super) async fn run(context: &Context, args: &Args) -> Result<ExitCode, CommandError> {
    if args.hydrated {
        return Err(CommandError::refused_flag("--hydrated", "plumb does not render to branches yet"));
    }
    if args.apps.is_empty() && args.selector.is_none() {
        return Err(
            CommandError::usage("no app is named").hint("`plumb app wait payments`, or -l team=payments")
        );
    }
    let client = context.client().await?;
    let chosen = Chosen {
        names: &args.apps,
        selector: args.selector.as_deref(),
        projects: &[],
        namespace: args.app_namespace.as_deref(),
    };
    let targets = chosen.targets(context, &client).await?;
    let wanted = Wanted::of(args);
    for target in targets {
        let ended = tokio::time::timeout(limit(args.timeout), wait(context, &client, &target, &wanted)).await;
        ended.map_err(|_| {
            CommandError::new(format!(
                "timed out after {} s: {} is not {}",
                args.timeout,
                target.name,
                wanted.in_words()
            ))
            .hint(format!("`plumb app get {}` shows what holds it up", target.name))
        })??;
    }
    Ok(ExitCode::Success)
}

/// The states that are waited for.
#[derive(Clone, Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is one state that may be asked for")]
pub(super) struct Wanted {
    pub(super) sync: bool,
    pub(super) health: bool,
    pub(super) operation: bool,
    pub(super) suspended: bool,
    pub(super) degraded: bool,
    pub(super) delete: bool,
    pub(super) resources: Vec<ResourceFilter>,
}

impl Wanted {
    fn of(args: &Args) -> Self {
        let none = ![args.sync, args.health, args.operation, args.suspended, args.degraded, args.delete]
            .contains(&true);
        Self {
            sync: args.sync || none,
            health: args.health || none,
            operation: args.operation || none,
            suspended: args.suspended,
            degraded: args.degraded,
            delete: args.delete,
            resources: args.resource.clone(),
        }
    }

    fn in_words(&self) -> String {
        let words = [
            (self.sync, "synced"),
            (self.health, "healthy"),
            (self.operation, "without operation"),
            (self.suspended, "suspended"),
            (self.degraded, "degraded"),
            (self.delete, "gone"),
        ];
        words.iter().filter(|(asked, _)| *asked).map(|(_, word)| *word).collect::<Vec<_>>().join(", ")
    }

    /// Is it so?
    fn is_met(&self, application: &Application) -> bool {
        if self.delete {
            return false;
        }
        (!self.operation || is_idle(application))
            && if self.resources.is_empty() {
                let status = &application.status;
                (!self.sync || status.sync.status == "Synced") && self.health_fits(&status.health.status)
            } else {
                let states = states::states(application);
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

/// Is no operation under way, and was the cluster looked at since the last one?
fn is_idle(application: &Application) -> bool {
    if application.operation.is_some() {
        return false;
    }
    match application.status.operation_state.as_deref() {
        None => true,
        Some(state) => match (state.finished_at, application.status.reconciled_at) {
            (Some(finished), Some(looked)) => {
                !matches!(state.phase.as_str(), "Running" | "Terminating")
                    && looked.as_second() >= finished.as_second()
            }
            (Some(_), None) => !matches!(state.phase.as_str(), "Running" | "Terminating"),
            (None, _) => false,
        },
    }
}

/// Follows one Application until it is as wanted, and tells how it goes on.
pub(super) async fn wait(
    context: &Context,
    client: &ClusterClient,
    target: &Target,
    wanted: &Wanted,
) -> Result<(), CommandError> {
    let before = match target::read(context, client, target).await {
        Ok(before) => before,
        Err(_) if wanted.delete => {
            context.out.say(&format!("application '{}' deleted", target.name));
            return Ok(());
        }
        Err(error) => return Err(error),
    };
    let was_degraded = before.status.health.status == "Degraded";
    let mut progress = Progress::new(context.out, &Application::default());
    let mut events = follow(client, target)?;
    let mut seen = false;
    while let Some(event) = progress.next(&mut events).await {
        match event {
            ObjectEvent::Seen(manifest) => {
                seen = true;
                let application = parse(&manifest)?;
                progress.tell(&application, Timestamp::now());
                let health = &application.status.health;
                if wanted.health && !wanted.degraded && !was_degraded && health.status == "Degraded" {
                    progress.end();
                    return Err(CommandError::new(format!(
                        "{} has become Degraded while it was waited for: {}",
                        target.name, health.message
                    ))
                    .hint(format!("`plumb app get {}` shows which object", target.name)));
                }
                if wanted.is_met(&application) {
                    progress.end();
                    conclude(context, &application);
                    return Ok(());
                }
            }
            ObjectEvent::Gone { .. } => {
                progress.end();
                return gone(context, target, wanted);
            }
            ObjectEvent::Listed if !seen => return gone(context, target, wanted),
            ObjectEvent::Listed => {}
            ObjectEvent::Trouble(trouble) => progress.complain(&trouble),
        }
    }
    Err(CommandError::new(format!("the watch of application {} ended", target.name)))
}

fn gone(context: &Context, target: &Target, wanted: &Wanted) -> Result<(), CommandError> {
    if wanted.delete {
        context.out.say(&format!("application '{}' deleted", target.name));
        return Ok(());
    }
    Err(CommandError::new(format!("application {} was deleted while it was waited for", target.name)))
}

/// How it is now, in the lines of `app get`.
pub(super) fn conclude(context: &Context, application: &Application) {
    let out = context.out;
    out.say("");
    out.say(&describe::line("Name", &describe::qualified(application)));
    out.say(&describe::line("Sync Status", &application.status.sync.status));
    out.say(&describe::line("Health Status", &application.status.health.status));
    if let Some(state) = &application.status.operation_state {
        out.say("");
        for (label, text) in describe::operation(state) {
            out.say(&describe::line(label, &text));
        }
    }
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
    fn all_that_is_asked_for_must_hold() {
        let wanted = Wanted { sync: true, health: true, operation: true, ..Wanted::default() };
        let done = json!({"operation": {}, "phase": "Succeeded", "startedAt": "2026-01-01T00:00:00Z",
            "finishedAt": "2026-01-01T00:00:05Z"});
        assert!(wanted.is_met(&app("Synced", "Healthy", &done)));
        assert!(!wanted.is_met(&app("OutOfSync", "Healthy", &done)));
        assert!(!wanted.is_met(&app("Synced", "Progressing", &done)));
        let mut unseen = done.clone();
        unseen["finishedAt"] = json!("2026-01-01T00:00:11Z");
        assert!(!wanted.is_met(&app("Synced", "Healthy", &unseen)), "nobody has looked since");
        let mut running = done;
        running["phase"] = json!("Running");
        assert!(!wanted.is_met(&app("Synced", "Healthy", &running)));
        let either = Wanted { health: true, suspended: true, ..Wanted::default() };
        assert!(either.is_met(&app("OutOfSync", "Suspended", &json!(null))));
        assert!(!either.is_met(&app("OutOfSync", "Degraded", &json!(null))));
    }
}
