//! What an app asked of its sources and has not been given yet. The request goes on while the app's worker serves other
//! apps, and a later run takes the result.

use std::time::Instant;

use super::error::SourceError;
use super::gathered::Gathered;
use super::inputs::RenderInputs;
use super::slow_servers::{Answered, InFlight, MAX_WAIT_IF_SLOW};
use crate::queue::RefreshDepth;

/// What is asked of the sources.
#[derive(Clone, Debug)]
pub(super) struct Asked {
    pub(super) inputs: RenderInputs,
    /// Revisions in place of those of the sources.
    pub(super) revisions: Vec<String>,
    pub(super) depth: RefreshDepth,
    /// A server that answered after this moment need not be asked again.
    pub(super) since: Instant,
}

impl Asked {
    /// True if the result of the other is one of this, apart from how new it is.
    fn is_same(&self, other: &Self) -> bool {
        self.inputs == other.inputs && self.revisions == other.revisions
    }

    /// True if the result of the other is as new as this asks for.
    fn is_met_by(&self, other: &Self) -> bool {
        other.since >= self.since && other.depth >= self.depth
    }
}

/// What the sources give, compared with the set that is known.
#[derive(Debug)]
pub(super) enum Outcome {
    /// The same commits.
    Same,
    /// Other commits, which do not affect the app.
    Moved(Vec<String>),
    /// Another set.
    Built(Box<Gathered>),
}

impl Outcome {
    /// True if it can be used without the set that was known when it was asked for.
    pub(super) fn is_whole(&self) -> bool {
        matches!(self, Self::Built(_))
    }
}

/// The requests of one app for one purpose: at most one whose result is wanted, and one whose result is not.
#[derive(Debug, Default)]
pub(crate) struct Parked {
    running: Option<(Asked, InFlight<Outcome>)>,
    /// A request for sources that the app no longer has.
    abandoned: Option<Answered>,
    /// When the last result was asked for that a run took, if it asked Git.
    pub(crate) taken: Option<Instant>,
    /// How often the sources changed before they were gathered.
    pub(crate) restarts: u32,
    /// True if the last result is older than its run asked for. Another run is needed.
    pub(crate) is_outdated: bool,
}

/// How an earlier request helps.
pub(super) enum Earlier {
    /// There is none: ask.
    None,
    /// It has ended with this result.
    Ended(Result<Outcome, SourceError>),
    /// It goes on. No second one is started.
    Running(Answered),
}

impl Parked {
    /// Notes that a run needed no request.
    pub(super) fn note_not_needed(&mut self) {
        self.taken = None;
        self.is_outdated = false;
    }

    /// Looks for an earlier request for the same. A result that is older than asked for is used all the same: sources that
    /// change faster than they can be gathered would otherwise never be.
    pub(super) async fn earlier(&mut self, asked: &Asked) -> Earlier {
        self.note_not_needed();
        let Some((before, mut request)) = self.running.take() else { return Earlier::None };
        if !before.is_same(asked) {
            return self.abandon(before, request);
        }
        if let Some(result) = request.within(MAX_WAIT_IF_SLOW).await {
            self.note_taken(&before);
            self.is_outdated = !asked.is_met_by(&before);
            Earlier::Ended(result)
        } else {
            let answered = request.answered();
            self.running = Some((before, request));
            Earlier::Running(answered)
        }
    }

    /// Leaves a request for sources that the app no longer has. Only one such request may go on: an app whose sources change
    /// all the time must not start more and more of them.
    fn abandon(&mut self, before: Asked, request: InFlight<Outcome>) -> Earlier {
        let answered = request.answered();
        if answered.is_over() {
            return Earlier::None;
        }
        if let Some(other) = self.abandoned.clone().filter(|other| !other.is_over()) {
            self.running = Some((before, request));
            return Earlier::Running(other);
        }
        self.restarts = self.restarts.saturating_add(1);
        self.abandoned = Some(answered);
        Earlier::None
    }

    /// Keeps a request that goes on.
    pub(super) fn keep(&mut self, asked: Asked, request: InFlight<Outcome>) -> Answered {
        let answered = request.answered();
        self.running = Some((asked, request));
        answered
    }

    /// Notes that a run took the result of a request.
    pub(super) fn note_taken(&mut self, asked: &Asked) {
        self.taken = (asked.depth >= RefreshDepth::Git).then_some(asked.since);
        self.restarts = 0;
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use super::*;

    fn asked(instance: &str, depth: RefreshDepth, since: Instant) -> Asked {
        let inputs = RenderInputs {
            sources: Vec::new(),
            asked: Vec::new(),
            namespace: None,
            instance: instance.to_owned(),
            project: String::new(),
            signatures: Vec::new(),
            kube_version: String::new(),
            api_versions: Arc::new([]),
            scopes: 0,
            settings: 0,
        };
        Asked { inputs, revisions: Vec::new(), depth, since }
    }

    fn takes(seconds: u64) -> InFlight<Outcome> {
        InFlight::start(async move {
            tokio::time::sleep(Duration::from_secs(seconds)).await;
            Ok(Outcome::Same)
        })
    }

    #[tokio::test(start_paused = true)]
    async fn a_later_run_takes_the_result_of_the_request_that_it_yielded_to() {
        let mut parked = Parked::default();
        let start = Instant::now();
        let first = asked("web", RefreshDepth::Git, start);
        assert!(matches!(parked.earlier(&first).await, Earlier::None));
        let answered = parked.keep(first.clone(), takes(60));
        assert!(matches!(parked.earlier(&first).await, Earlier::Running(_)));
        answered.wait().await;
        assert!(matches!(parked.earlier(&first).await, Earlier::Ended(Ok(Outcome::Same))));
        assert_eq!((parked.taken, parked.is_outdated), (Some(start), false));
        assert!(matches!(parked.earlier(&first).await, Earlier::None), "it is taken once");
        assert_eq!(parked.taken, None);
    }

    #[tokio::test(start_paused = true)]
    async fn an_older_result_is_used_and_another_run_is_needed() {
        let mut parked = Parked::default();
        let start = Instant::now();
        let later = start + Duration::from_millis(1);
        for (before, asks, is_outdated) in [
            ((RefreshDepth::Git, start), (RefreshDepth::Git, later), true),
            ((RefreshDepth::Git, later), (RefreshDepth::Hard, start), true),
            ((RefreshDepth::Hard, later), (RefreshDepth::Git, start), false),
        ] {
            parked.keep(asked("web", before.0, before.1), takes(1)).wait().await;
            let taken = parked.earlier(&asked("web", asks.0, asks.1)).await;
            assert!(matches!(taken, Earlier::Ended(_)));
            assert_eq!(parked.is_outdated, is_outdated, "{before:?} {asks:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn sources_that_change_leave_one_request_behind_and_no_more() {
        let mut parked = Parked::default();
        let now = Instant::now();
        let of = |name: &str| asked(name, RefreshDepth::Git, now);
        let first = parked.keep(of("a"), takes(60));
        assert!(matches!(parked.earlier(&of("b")).await, Earlier::None), "the new sources are asked at once");
        parked.keep(of("b"), takes(120));
        assert_eq!(parked.restarts, 1);
        assert!(matches!(parked.earlier(&of("c")).await, Earlier::Running(_)), "one is left behind already");
        assert!(matches!(parked.earlier(&of("b")).await, Earlier::Running(_)), "this one is still wanted");
        first.wait().await;
        assert!(matches!(parked.earlier(&of("c")).await, Earlier::None));
        assert_eq!(parked.restarts, 2);
        parked.keep(of("c"), takes(1)).wait().await;
        assert!(matches!(parked.earlier(&of("c")).await, Earlier::Ended(_)));
        assert_eq!(parked.restarts, 0, "it was gathered");
    }
}
