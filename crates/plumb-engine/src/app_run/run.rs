//! One run of one app: what it works with, and what it has found so far.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use plumb_core::app::{App, AppId, Pause};
use plumb_core::fields::object_pause;
use plumb_core::object::{Manifest, ObjectKey};
use plumb_core::tracking::RecordedObjects;
use plumb_crd::Application;

use crate::apps::conditions::Conditions;
use crate::apps::context::AppContext;
use crate::apps::snapshot::{AppSnapshot, RefreshRequest};
use crate::engine::Engine;
use crate::queue::{Job, Trigger};
use crate::sources::gather::FetchPolicy;
use crate::sources::gathered::Gathered;

/// One run of one app.
pub(crate) struct AppRun<'a> {
    pub(crate) engine: &'a Engine,
    /// The Application as the cluster holds it now. Each write of this run replaces it.
    pub(crate) snapshot: Arc<AppSnapshot>,
    /// Why the app runs. A refresh that an annotation asks for is part of it.
    pub(crate) trigger: Trigger,
    pub(crate) policy: FetchPolicy,
    pub(crate) now: Timestamp,
    /// The refresh annotations that this run answers.
    pub(crate) refresh: Option<RefreshRequest>,
    pub(crate) conditions: Conditions,
    /// What Git asks, once this run knows it. Its deletion hooks decide which finalizers the app needs.
    pub(crate) gathered: Option<Arc<Gathered>>,
}

/// What a run reads and never changes: the Application as it was at the start, checked, with its project, cluster and
/// settings.
#[derive(Clone, Copy)]
pub(crate) struct AppInputs<'a> {
    pub(crate) application: &'a Application,
    pub(crate) app: &'a App,
    pub(crate) context: &'a AppContext,
}

impl<'a> AppRun<'a> {
    pub(crate) fn new(engine: &'a Engine, job: &Job, snapshot: Arc<AppSnapshot>) -> Self {
        let depth =
            snapshot.requested_refresh().map_or(job.trigger.depth, |asked| asked.max(job.trigger.depth));
        let trigger = Trigger { depth, ..job.trigger };
        Self {
            engine,
            trigger,
            policy: FetchPolicy::of(&trigger),
            now: Timestamp::now(),
            refresh: snapshot.refresh_request(),
            conditions: Conditions::new(engine.shown_text()),
            gathered: None,
            snapshot,
        }
    }

    /// The app.
    pub(crate) fn id(&self) -> &AppId {
        &self.snapshot.id
    }

    /// Requests another run at this time.
    pub(crate) fn run_at(&self, trigger: Trigger, at: Timestamp) {
        let wait = Duration::try_from(at.duration_since(Timestamp::now())).unwrap_or_default();
        self.engine.queue.push_after(self.id().clone(), trigger, wait);
    }
}

impl AppInputs<'_> {
    /// The objects that the app's own status says Git had.
    pub(crate) fn recorded(&self) -> RecordedObjects {
        self.application.recorded_objects()
    }

    /// The pause of a live object, if a user paused it and the pause has not ended.
    pub(crate) fn pause_of(&self, key: &ObjectKey, live: &Manifest, now: Timestamp) -> Option<Pause> {
        object_pause(self.app, key, live, now)
    }

    /// The pause of the app itself, if it has not ended.
    pub(crate) fn pause(&self, now: Timestamp) -> Option<&Pause> {
        self.app.pause.as_ref().filter(|pause| pause.holds_at(now))
    }
}
