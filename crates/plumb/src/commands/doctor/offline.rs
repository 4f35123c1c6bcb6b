//! What files say, without a cluster.

use jiff::Timestamp;
use plumb_core::doctor::{AppFacts, StatusOf};
use plumb_core::drift::Finding;
use plumb_core::dump::unhealthy;
use plumb_core::secrets::plain_secrets;
use plumb_crd::Application;

use crate::context::Context;
use crate::error::CommandError;
use crate::facts::from_status;
use crate::local::{LocalRenderer, OfflineArgs};
use crate::render_here::RenderArgs;

/// The directories as apps, and the other Applications of the dump by their status.
pub(super) fn facts(
    context: &Context,
    args: &OfflineArgs,
    render: &RenderArgs,
    now: Timestamp,
) -> Result<Vec<AppFacts>, CommandError> {
    let judged = args.judge(context, &LocalRenderer::new(render)?, now)?;
    let mut facts: Vec<AppFacts> = judged
        .apps
        .iter()
        .map(|app| AppFacts {
            app: app.id.clone(),
            project: app.application.as_ref().map_or("default", Application::project).to_owned(),
            is_judged: true,
            problem: None,
            status_of: if app.application.is_some() { StatusOf::ArgoCd } else { StatusOf::Plumb },
            findings: app.findings().map(|finding| seen(finding, now)).collect(),
            unhealthy: unhealthy(&judged.live, app.verdicts.keys(), now),
            pauses: Vec::new(),
            red: app.red().unwrap_or_default(),
            plain_secrets: plain_secrets(&app.desired, |_| true),
        })
        .collect();
    let others =
        judged.applications.iter().filter(|other| !judged.apps.iter().any(|app| app.id == other.id()));
    facts.extend(others.map(|application| from_status(application, now)));
    Ok(facts)
}

/// Without an earlier look at the cluster, a difference without its own time begins now: that is not news.
fn seen(finding: &Finding, now: Timestamp) -> Finding {
    Finding { since: finding.since.filter(|since| *since < now), ..finding.clone() }
}
