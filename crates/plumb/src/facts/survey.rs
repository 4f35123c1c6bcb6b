//! What plumb finds out on this machine, read-only, with the user's own rights.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use plumb_core::app::AppId;
use plumb_core::doctor::{AppFacts, StatusOf};
use plumb_core::drift::Finding;
use plumb_core::object::Manifest;
use plumb_crd::Application;
use plumb_engine::{DryRuns, InspectError, SurveyOptions, Surveyed};

use super::args::JudgeArgs;
use super::progress::StatusLine;
use super::reports::{judged, red};
use crate::context::Context;
use crate::error::CommandError;
use crate::render_here::RenderArgs;

/// What is judged, and how.
pub(super) struct Survey<'args> {
    pub(super) args: &'args JudgeArgs,
    pub(super) render: &'args RenderArgs,
    /// All Applications, as the cluster has them.
    pub(super) objects: &'args [Manifest],
    pub(super) applications: &'args [Application],
    /// Those to judge.
    pub(super) wanted: BTreeSet<AppId>,
}

impl Survey<'_> {
    /// Judges the wanted apps. One that cannot be judged is a fact, too.
    pub(super) async fn facts(
        self,
        context: &Context,
        now: Timestamp,
    ) -> Result<BTreeMap<AppId, AppFacts>, CommandError> {
        let wanted =
            || self.applications.iter().filter(|application| self.wanted.contains(&application.id()));
        let options = SurveyOptions {
            inspect: self.render.options(context),
            apps: self.wanted.clone(),
            checkouts: self.args.checkouts(wanted())?,
            dry_runs: self.args.dry_runs(),
            keep_objects: false,
        };
        let line = StatusLine::begin();
        let connection = context.connect().await?;
        let mut outcomes =
            plumb_engine::survey(connection, options, self.objects, &|progress| line.show(progress))
                .await
                .map_err(|error| CommandError::because("judge the apps on this machine", error))?;
        line.end(context);
        let facts = wanted().filter_map(|application| {
            let id = application.id();
            let outcome = outcomes.remove(&id)?;
            Some((id, facts_of(application, outcome, now)))
        });
        Ok(facts.collect())
    }
}

/// Judges apps, and keeps their objects. `checkouts` are clones, by the normalized URL of their repository. The API server is asked for dry runs where a doubt is left.
pub(crate) async fn survey_objects(
    context: &Context,
    render: &RenderArgs,
    (apps, checkouts): (BTreeSet<AppId>, BTreeMap<String, String>),
    applications: &[Manifest],
) -> Result<BTreeMap<AppId, Result<Surveyed, InspectError>>, CommandError> {
    let options = SurveyOptions {
        inspect: render.options(context),
        apps,
        checkouts,
        dry_runs: DryRuns::Ask,
        keep_objects: true,
    };
    let line = StatusLine::begin();
    let connection = context.connect().await?;
    let surveyed = plumb_engine::survey(connection, options, applications, &|progress| line.show(progress))
        .await
        .map_err(|error| CommandError::because("judge the apps on this machine", error))?;
    line.end(context);
    Ok(surveyed)
}

fn facts_of(application: &Application, outcome: Result<Surveyed, InspectError>, now: Timestamp) -> AppFacts {
    match outcome {
        Ok(surveyed) => AppFacts {
            status_of: StatusOf::ArgoCd,
            findings: surveyed.findings.iter().map(|finding| seen(finding, now)).collect(),
            red: red(application),
            plain_secrets: surveyed.plain_secrets.clone(),
            problem: (!surveyed.unreadable.is_empty())
                .then(|| format!("cannot read {}", surveyed.unreadable.join(", "))),
            ..judged(application, &surveyed.report)
        },
        Err(error) => {
            AppFacts { problem: Some(error.to_string()), ..super::reports::from_status(application, now) }
        }
    }
}

/// Without an earlier look at the cluster, a difference without its own time begins now: that is not news.
fn seen(finding: &Finding, now: Timestamp) -> Finding {
    Finding { since: finding.since.filter(|since| since.as_second() < now.as_second()), ..finding.clone() }
}
