//! Why an app runs, and how far the run goes.

use std::time::Instant;

/// How much a run may not take from its caches. Ordered: a later one includes the earlier ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum RefreshDepth {
    /// The cluster changed: compare with the commit that is known.
    #[default]
    Live,
    /// Resolve the revision again, as each poll does.
    Git,
    /// Resolve the revision again because a user or a webhook asked for it.
    GitNow,
    /// Ask the repository and use no cached rendering or verdict.
    Hard,
}

/// Why an app runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TriggerReason {
    /// The automation waits for a time: a back-off ends, a pause ends.
    Automation,
    /// Another app started or stopped rendering one of the app's objects.
    Claim,
    /// The app's cluster became reachable or unreachable, or its registration changed.
    Cluster,
    /// The deletion of the app goes on.
    Deletion,
    /// Events and logs of an unhealthy object were read.
    Diagnostics,
    /// The Application was removed.
    Gone,
    /// The health of an object changes with time.
    Health,
    /// A live object changed.
    Live,
    /// All kinds of the cluster have been listed.
    Listed,
    /// Metadata of the Application changed.
    Metadata,
    /// Another app of the same repository prunes, and may hand an object over.
    Move,
    /// The Application is new.
    New,
    /// An operation was requested.
    Operation,
    /// An operation ended.
    OperationEnded,
    /// An object without an app appeared in or left a namespace whose orphans are counted.
    Orphans,
    /// A pause ended.
    PauseEnded,
    /// The poll interval passed.
    Poll,
    /// The project changed.
    Project,
    /// A user asked for a refresh.
    Refresh,
    /// A change of the report that counts for nothing is written now.
    Report,
    /// A failed step or write is tried again.
    Retry,
    /// The schema of one of the app's kinds changed.
    Schema,
    /// The end of an operation waits for the app to become healthy.
    Settled,
    /// Settings changed.
    Settings,
    /// A slot for runs on the app's cluster became free.
    Slot,
    /// The sources of the spec changed.
    Source,
    /// The spec changed.
    Spec,
    /// A sync waits for a time.
    Sync,
    /// A webhook told of a push.
    Webhook,
    /// A sync window opened or closed.
    Window,
}

impl TriggerReason {
    /// The value of the label `trigger` in metrics and logs.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Automation => "automation",
            Self::Claim => "claim",
            Self::Cluster => "cluster",
            Self::Deletion => "deletion",
            Self::Diagnostics => "diagnostics",
            Self::Gone => "gone",
            Self::Health => "health",
            Self::Live => "live",
            Self::Listed => "listed",
            Self::Metadata => "metadata",
            Self::Move => "move",
            Self::New => "new",
            Self::Operation => "operation",
            Self::OperationEnded => "operation ended",
            Self::Orphans => "orphans",
            Self::PauseEnded => "pause ended",
            Self::Poll => "poll",
            Self::Project => "project",
            Self::Refresh => "refresh",
            Self::Report => "report",
            Self::Retry => "retry",
            Self::Schema => "schema",
            Self::Settled => "settled",
            Self::Settings => "settings",
            Self::Slot => "slot",
            Self::Source => "source",
            Self::Spec => "spec",
            Self::Sync => "sync",
            Self::Webhook => "webhook",
            Self::Window => "window",
        }
    }
}

/// A request for a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Trigger {
    pub(crate) depth: RefreshDepth,
    pub(crate) reason: TriggerReason,
    /// When the reason arose. An answer that a server gave after that is new enough, whichever app asked for it.
    pub(crate) at: Instant,
    /// True if something changed. A poll and a time that has come are no changes.
    pub(crate) is_news: bool,
}

impl Trigger {
    /// A trigger whose reason arises now.
    pub(crate) fn new(depth: RefreshDepth, reason: TriggerReason) -> Self {
        Self { depth, reason, at: Instant::now(), is_news: true }
    }

    /// The cluster or something beside Git changed: compare with the commit that is known.
    pub(crate) fn live(reason: TriggerReason) -> Self {
        Self::new(RefreshDepth::Live, reason)
    }

    /// The poll interval passed.
    pub(crate) fn poll() -> Self {
        Self { is_news: false, ..Self::new(RefreshDepth::Git, TriggerReason::Poll) }
    }

    /// Time alone may have changed something.
    pub(crate) fn due(reason: TriggerReason) -> Self {
        Self { is_news: false, ..Self::live(reason) }
    }

    /// Both triggers as one: the greater depth wins.
    pub(crate) fn merged(self, other: Self) -> Self {
        let deeper = if other.depth > self.depth { other } else { self };
        // A trigger that does not ask Git makes no answer of Git outdated.
        let asks_git = |trigger: &Self| trigger.depth > RefreshDepth::Live;
        let at = [self, other].into_iter().filter(asks_git).map(|trigger| trigger.at).max();
        Self { at: at.unwrap_or(deeper.at), is_news: self.is_news || other.is_news, ..deeper }
    }
}
