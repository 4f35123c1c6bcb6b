//! What changed before an illness began: from the history of the app, Git, and the field managers of the object.

use std::collections::BTreeMap;

use plumb_core::app::AppId;
use plumb_core::doctor::{Change, ChangeKind, Illness, changed_fields, edits, last_before};
use plumb_core::object::ObjectKey;
use plumb_crd::Application;
use plumb_crd::application::RevisionHistory;
use plumb_engine::{Inspector, RenderAt, RenderedApp};
use plumb_kube::ClusterClient;

use crate::context::Context;
use crate::error::CommandError;
use crate::render_here::RenderArgs;
use crate::select::app;

/// Reads what is needed when it is first needed.
pub(super) struct History<'run> {
    context: &'run Context,
    render: &'run RenderArgs,
    client: Option<ClusterClient>,
    inspector: Opened,
    applications: BTreeMap<AppId, Option<Application>>,
}

/// What renders commits.
enum Opened {
    NotYet,
    Open(Box<Inspector>),
    /// It could not be opened: commits are named, and their changes are not.
    Failed,
}

impl<'run> History<'run> {
    pub(super) fn new(context: &'run Context, render: &'run RenderArgs) -> Self {
        Self { context, render, client: None, inspector: Opened::NotYet, applications: BTreeMap::new() }
    }

    /// The last change before an illness began. What cannot be read is not known.
    pub(super) async fn before(&mut self, illness: &Illness) -> Result<Option<Change>, CommandError> {
        let Some(since) = illness.since else { return Ok(None) };
        let client = match &self.client {
            Some(client) => client.clone(),
            None => self.client.insert(self.context.client_of_all_kinds().await?).clone(),
        };
        let Some(application) = self.application(&client, &illness.app).await else { return Ok(None) };
        let history = &application.status.history;
        let previous = std::iter::once(None).chain(history.iter().map(|entry| Some(entry.id)));
        let mut changes: Vec<Change> =
            history.iter().zip(previous).map(|(entry, previous)| sync(entry, previous)).collect();
        if let Ok(Some(live)) = client.get(&illness.key).await {
            changes.extend(edits(&live));
        }
        let Some(mut last) = last_before(&changes, since).cloned() else { return Ok(None) };
        if let ChangeKind::Sync { id, commit, author, others, .. } = &mut last.kind {
            let (fields, beside) = self.changed(&application, *id, &illness.key).await.unwrap_or_default();
            last.fields = fields;
            *others = beside;
            *author = self.author(&application, commit).await.unwrap_or_default();
        }
        Ok(Some(last))
    }

    async fn application(&mut self, client: &ClusterClient, id: &AppId) -> Option<Application> {
        if let Some(known) = self.applications.get(id) {
            return known.clone();
        }
        let target = app::target(self.context, &id.to_string(), None);
        let read = app::read(self.context, client, &target).await.ok();
        self.applications.insert(id.clone(), read.clone());
        read
    }

    async fn inspector(&mut self) -> Option<&Inspector> {
        if matches!(self.inspector, Opened::NotYet) {
            let opened = self.render.open(self.context).await;
            self.inspector = opened.map_or(Opened::Failed, |inspector| Opened::Open(Box::new(inspector)));
        }
        match &self.inspector {
            Opened::Open(inspector) => Some(inspector),
            Opened::NotYet | Opened::Failed => None,
        }
    }

    /// The author of a commit.
    async fn author(&mut self, application: &Application, commit: &str) -> Option<String> {
        Some(self.inspector().await?.commit_details(application, commit).await?.author)
    }

    /// What a sync changed: the fields of this object, and the other objects.
    async fn changed(
        &mut self,
        application: &Application,
        id: i64,
        key: &ObjectKey,
    ) -> Option<(Vec<plumb_core::object::FieldPath>, Vec<String>)> {
        let history = &application.status.history;
        let at = history.iter().position(|entry| entry.id == id)?;
        let previous = history.get(at.checked_sub(1)?)?;
        let this = history.get(at)?;
        if revisions(previous) == revisions(this) {
            return None;
        }
        let inspector = self.inspector().await?;
        let before = rendered(inspector, application, previous).await?;
        let after = rendered(inspector, application, this).await?;
        let objects = |app: &RenderedApp| -> BTreeMap<ObjectKey, serde_json::Value> {
            let objects = app.desired().objects.iter();
            objects.map(|(key, object)| (key.clone(), object.manifest.value().clone())).collect()
        };
        let (before, after) = (objects(&before), objects(&after));
        let fields = match (before.get(key), after.get(key)) {
            (Some(before), Some(after)) => changed_fields(before, after),
            _ => Vec::new(),
        };
        let keys = before.keys().chain(after.keys().filter(|key| !before.contains_key(*key)));
        let others = keys.filter(|other| before.get(*other) != after.get(*other) && *other != key);
        Some((fields, others.map(ToString::to_string).collect()))
    }
}

fn sync(entry: &RevisionHistory, previous: Option<i64>) -> Change {
    let commit = revisions(entry).into_iter().next().unwrap_or_default();
    Change {
        // An object may fail before the sync has ended.
        at: entry.deploy_started_at.unwrap_or(entry.deployed_at),
        kind: ChangeKind::Sync { id: entry.id, previous, commit, author: String::new(), others: Vec::new() },
        fields: Vec::new(),
    }
}

fn revisions(entry: &RevisionHistory) -> Vec<String> {
    if entry.revisions.is_empty() { vec![entry.revision.clone()] } else { entry.revisions.clone() }
}

async fn rendered(
    inspector: &Inspector,
    application: &Application,
    entry: &RevisionHistory,
) -> Option<RenderedApp> {
    inspector.gather(application, &RenderAt::Revisions(&revisions(entry))).await.ok()
}
