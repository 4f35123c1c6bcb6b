//! Cases from files.

use std::collections::BTreeMap;

use jiff::Timestamp;
use plumb_core::fix::FixGoal;
use plumb_crd::Application;

use super::application_files::Written;
use super::case::{Case, CaseObject, SyncResult};
use crate::context::Context;
use crate::error::CommandError;
use crate::local::{LocalRenderer, OfflineArgs};

/// One case per directory, and the Applications of the dump.
pub(super) fn cases(
    context: &Context,
    args: &OfflineArgs,
    renderer: &LocalRenderer,
    goal: Option<FixGoal>,
) -> Result<(Vec<Case>, Vec<Application>), CommandError> {
    let judged = args.judge(context, renderer, Timestamp::now())?;
    let live = &judged.live;
    let case = judged.apps.into_iter().map(|app| {
        let red = app.red();
        let results = app.application.as_ref().map(SyncResult::all).unwrap_or_default();
        let objects = app.verdicts.iter().map(|(key, verdict)| CaseObject {
            findings: verdict.findings.to_vec(),
            desired: CaseObject::in_git(&app.desired, key),
            live: live.get(key).cloned(),
            is_red: red.as_ref().map(|red| red.contains(key)),
            last_sync: results.get(key).cloned(),
        });
        Case {
            objects: objects.collect(),
            instance: app.instance.clone().unwrap_or_else(|| app.id.name.clone()),
            id: app.id,
            namespace: app.namespace,
            scopes: app.scopes,
            sources: BTreeMap::from([(app.source.index, app.source)]),
            goal: goal.unwrap_or(FixGoal::ArgoCd),
            written: app.application.as_ref().map(Written::of).unwrap_or_default(),
        }
    });
    Ok((case.collect(), judged.applications))
}
