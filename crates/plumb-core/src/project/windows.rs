//! When syncs may run.

use jiff::Timestamp;
use jiff::civil::DateTime;

use super::{ProjectProblem, WindowKind, WindowRule, WindowTime, rules::compile_list};
use crate::glob::Glob;

/// A sync window, compiled.
#[derive(Clone, Debug)]
pub struct SyncWindow {
    rule: WindowRule,
    applications: Vec<Glob>,
    namespaces: Vec<Glob>,
    clusters: Vec<Glob>,
    /// One of its lists could not be read, so it applies to every app.
    unreadable: Option<String>,
}

/// The app that a window may concern.
#[derive(Clone, Copy, Debug)]
pub struct WindowSubject<'app> {
    /// Name of the app.
    pub app: &'app str,
    /// Namespace of its destination, may be empty.
    pub namespace: &'app str,
    /// Address of its cluster.
    pub server: &'app str,
    /// Name of its cluster.
    pub cluster: &'app str,
}

/// What started the sync.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SyncTrigger {
    /// A user.
    Manual,
    /// The engine.
    Automated,
}

/// May a sync run?
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WindowDecision {
    /// Yes.
    Allowed,
    /// No, and why.
    Denied(String),
}

impl WindowDecision {
    /// Is the sync allowed?
    pub fn is_allowed(&self) -> bool {
        *self == Self::Allowed
    }
}

pub(super) fn compile(rules: &[WindowRule], problems: &mut Vec<ProjectProblem>) -> Vec<SyncWindow> {
    rules.iter().enumerate().map(|(index, rule)| SyncWindow::compile(rule, index, problems)).collect()
}

impl SyncWindow {
    fn compile(rule: &WindowRule, index: usize, problems: &mut Vec<ProjectProblem>) -> Self {
        let before = problems.len();
        let mut list = |patterns: &[String], name: &str| {
            compile_list(patterns, &format!("syncWindows[{index}].{name}"), Glob::plain, problems)
        };
        let applications = list(&rule.applications, "applications");
        let namespaces = list(&rule.namespaces, "namespaces");
        let clusters = list(&rule.clusters, "clusters");
        let unreadable = problems.get(before).map(|problem| problem.reason.clone());
        if let Err(reason) = &rule.time {
            problems.push(ProjectProblem { field: format!("syncWindows[{index}]"), reason: reason.clone() });
        }
        Self { rule: rule.clone(), applications, namespaces, clusters, unreadable }
    }

    /// The rule it was made from.
    pub fn rule(&self) -> &WindowRule {
        &self.rule
    }

    /// Does it concern this app? One list that matches is enough, or with `andOperator` all that are set.
    pub fn concerns(&self, subject: &WindowSubject<'_>) -> bool {
        if self.unreadable.is_some() {
            return true;
        }
        let any = |globs: &[Glob], texts: &[&str]| {
            globs.iter().any(|glob| texts.iter().any(|text| glob.matches(text)))
        };
        let is_named = |text: &&str| !text.is_empty();
        let cluster: Vec<&str> = [subject.server, subject.cluster].into_iter().filter(is_named).collect();
        let lists = [
            (&self.applications, any(&self.applications, &[subject.app])),
            (&self.clusters, any(&self.clusters, &cluster)),
            (&self.namespaces, any(&self.namespaces, &[subject.namespace])),
        ];
        let mut set = lists.iter().filter(|(globs, _)| !globs.is_empty()).peekable();
        let has_lists = set.peek().is_some();
        has_lists
            && if self.rule.all_lists {
                set.all(|(_, matches)| *matches)
            } else {
                set.any(|(_, matches)| *matches)
            }
    }

    /// Is it open at this time?
    pub fn is_open(&self, now: Timestamp) -> Result<bool, String> {
        match (&self.unreadable, &self.rule.time) {
            (Some(reason), _) | (None, Err(reason)) => Err(reason.clone()),
            (None, Ok(time)) => Ok(time.is_open(now)),
        }
    }

    /// When it opens or closes next; `None` if never, or if it cannot be computed.
    fn next_change(&self, now: Timestamp) -> Option<Timestamp> {
        self.rule.time.as_ref().ok().filter(|_| self.unreadable.is_none())?.next_change(now)
    }
}

impl WindowTime {
    /// Wall-clock arithmetic in the window's zone, as Argo CD does it: a window of two hours is two hours on
    /// the clock of that zone.
    fn is_open(&self, now: Timestamp) -> bool {
        let now = now.to_zoned(self.zone.clone()).datetime();
        self.schedule.last_before(now).is_some_and(|opened| {
            let open_for = now.duration_since(opened);
            std::time::Duration::try_from(open_for).is_ok_and(|open_for| open_for < self.duration)
        })
    }
}

impl WindowTime {
    /// The next opening of a closed one, the end of an open one.
    fn next_change(&self, now: Timestamp) -> Option<Timestamp> {
        let clock = now.to_zoned(self.zone.clone()).datetime();
        let change = if self.is_open(now) { self.closes(clock)? } else { self.schedule.next_after(clock)? };
        change.to_zoned(self.zone.clone()).ok().map(|time| time.timestamp()).filter(|time| now < *time)
    }

    /// When it closes, if it is open now. Each opening before that puts it off; `None` if that goes on and on.
    fn closes(&self, now: DateTime) -> Option<DateTime> {
        const MOST_OPENINGS: usize = 500;
        let mut opened = self.schedule.last_before(now)?;
        for _ in 0..MOST_OPENINGS {
            let closes = opened.checked_add(self.duration).ok()?;
            match self.schedule.next_after(opened).filter(|next| *next <= closes) {
                Some(next) => opened = next,
                None => return Some(closes),
            }
        }
        None
    }
}

/// The next time after `now` at which the decision for an app can change.
pub(super) fn next_change(
    windows: &[SyncWindow],
    subject: &WindowSubject<'_>,
    now: Timestamp,
) -> Option<Timestamp> {
    let windows = windows.iter().filter(|window| window.concerns(subject));
    windows.filter_map(|window| window.next_change(now)).min()
}

/// The decision over all windows that concern the app.
pub(super) fn decide(
    windows: &[SyncWindow],
    subject: &WindowSubject<'_>,
    trigger: SyncTrigger,
    started: Option<Timestamp>,
    now: Timestamp,
) -> WindowDecision {
    let windows: Vec<&SyncWindow> = windows.iter().filter(|window| window.concerns(subject)).collect();
    let at_now = match WindowState::at(&windows, now) {
        Ok(state) => state,
        Err(reason) => return WindowDecision::Denied(format!("invalid sync windows: {reason}")),
    };
    let Err(obstacle) = at_now.verdict(trigger) else { return WindowDecision::Allowed };
    let may_overrun = obstacle.windows.iter().all(|window| window.rule.sync_overrun);
    let began_in_time = || {
        let state = started.map(|started| WindowState::at(&windows, started));
        matches!(state, Some(Ok(state)) if state.verdict(trigger).is_ok())
    };
    if may_overrun && began_in_time() {
        WindowDecision::Allowed
    } else {
        WindowDecision::Denied(obstacle.reason())
    }
}

/// Which windows are open at one time.
struct WindowState<'windows> {
    denying: Vec<&'windows SyncWindow>,
    allowing: Vec<&'windows SyncWindow>,
    closed_allowing: Vec<&'windows SyncWindow>,
}

/// The windows that forbid a sync; never empty.
struct Obstacle<'windows> {
    windows: Vec<&'windows SyncWindow>,
    kind: WindowKind,
}

impl<'windows> WindowState<'windows> {
    fn at(windows: &[&'windows SyncWindow], now: Timestamp) -> Result<Self, String> {
        let mut state = Self { denying: Vec::new(), allowing: Vec::new(), closed_allowing: Vec::new() };
        for window in windows {
            match (window.rule.kind, window.is_open(now)?) {
                (WindowKind::Deny, true) => state.denying.push(window),
                (WindowKind::Deny, false) => {}
                (WindowKind::Allow, true) => state.allowing.push(window),
                (WindowKind::Allow, false) => state.closed_allowing.push(window),
            }
        }
        Ok(state)
    }

    fn verdict(&self, trigger: SyncTrigger) -> Result<(), Obstacle<'windows>> {
        let (windows, kind) = if !self.denying.is_empty() {
            (&self.denying, WindowKind::Deny)
        } else if !self.allowing.is_empty() || self.closed_allowing.is_empty() {
            return Ok(());
        } else {
            (&self.closed_allowing, WindowKind::Allow)
        };
        let manual_is_fine = windows.iter().all(|window| window.rule.manual_sync);
        if trigger == SyncTrigger::Manual && manual_is_fine {
            return Ok(());
        }
        Err(Obstacle { windows: windows.clone(), kind })
    }
}

impl Obstacle<'_> {
    fn reason(&self) -> String {
        let what = match self.kind {
            WindowKind::Deny => "a deny window is open",
            WindowKind::Allow => "no allow window is open",
        };
        let described: Vec<&str> = self
            .windows
            .iter()
            .map(|window| window.rule.description.as_str())
            .filter(|text| !text.is_empty())
            .collect();
        if described.is_empty() { what.to_owned() } else { format!("{what} ({})", described.join("; ")) }
    }
}
