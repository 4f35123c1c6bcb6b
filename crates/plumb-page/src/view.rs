//! All rows, and what changed since a token.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::str::FromStr;

use plumb_core::app::AppId;
use plumb_crd::{Application, DriftReport};

use crate::row::Row;
use crate::trouble::waits;

/// How many apps that are gone are remembered.
const MOST_GONE: usize = 8192;
/// How many deletions that wait are kept for one app.
const MOST_WAITING: usize = 1000;

/// A place in the order of changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Token {
    /// Which view: a new one has another epoch.
    pub epoch: u64,
    /// The number of the last change that was seen.
    pub number: u64,
}

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.epoch, self.number)
    }
}

impl FromStr for Token {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let (epoch, number) = text.split_once('-').ok_or(())?;
        Ok(Self { epoch: epoch.parse().map_err(|_| ())?, number: number.parse().map_err(|_| ())? })
    }
}

/// What changed since a token.
#[derive(Debug, PartialEq)]
pub enum Changes<'v> {
    /// These rows are new or changed, in the order of their changes; these apps are gone, or hidden.
    Since {
        /// New and changed rows.
        rows: Vec<&'v Row>,
        /// Apps that are gone.
        gone: Vec<&'v AppId>,
    },
    /// Too much happened, or the token is of another view: take a new snapshot.
    Reset,
}

/// All rows. An app has one once its Application was seen; a report alone makes none.
#[derive(Debug)]
pub struct View {
    epoch: u64,
    number: u64,
    apps: BTreeMap<AppId, Entry>,
    /// Apps that are gone, with their projects, the oldest first.
    gone: VecDeque<(u64, AppId, String)>,
    /// The highest number of those that were forgotten.
    forgotten: u64,
}

#[derive(Debug, Default)]
struct Entry {
    app: Option<(Application, String)>,
    report: Option<DriftReport>,
    row: Option<Row>,
    number: u64,
}

impl View {
    /// An empty view. `epoch` is different for each view of this and other processes.
    pub fn new(epoch: u64) -> Self {
        Self { epoch, number: 0, apps: BTreeMap::new(), gone: VecDeque::new(), forgotten: 0 }
    }

    /// The place of the latest change.
    pub fn token(&self) -> Token {
        Token { epoch: self.epoch, number: self.number }
    }

    /// Notes an Application, with the name or address of its cluster. Of its objects only those whose deletion waits for a
    /// confirmation are kept, of its history nothing.
    pub fn note_app(&mut self, mut app: Application, cluster: &str) {
        app.status.resources.retain(waits);
        app.status.resources.truncate(MOST_WAITING);
        app.status.resources.shrink_to_fit();
        app.status.history = Vec::new();
        if let Some(result) = app.status.operation_state.as_mut().and_then(|state| state.sync_result.as_mut())
        {
            result.resources = Vec::new();
        }
        let id = app.id();
        self.entry(&id).app = Some((app, cluster.to_owned()));
        self.renew(&id);
    }

    /// Notes a report.
    pub fn note_report(&mut self, report: DriftReport) {
        let id = AppId { namespace: report.metadata.namespace.clone(), name: report.metadata.name.clone() };
        self.entry(&id).report = Some(report);
        self.renew(&id);
    }

    /// Notes that a report is gone.
    pub fn note_report_gone(&mut self, id: &AppId) {
        if let Some(entry) = self.apps.get_mut(id) {
            entry.report = None;
            self.renew(id);
        }
    }

    /// Notes that an Application is gone.
    pub fn note_app_gone(&mut self, id: &AppId) {
        if let Some(row) = self.apps.remove(id).and_then(|entry| entry.row) {
            self.bury(row);
        }
    }

    fn entry(&mut self, id: &AppId) -> &mut Entry {
        self.apps.entry(id.clone()).or_default()
    }

    fn bury(&mut self, row: Row) {
        self.number += 1;
        self.gone.push_back((self.number, row.id, row.project));
        if self.gone.len() > MOST_GONE
            && let Some((number, ..)) = self.gone.pop_front()
        {
            self.forgotten = number;
        }
    }

    fn renew(&mut self, id: &AppId) {
        let Some(entry) = self.apps.get_mut(id) else { return };
        let Some((app, cluster)) = &entry.app else { return };
        let row = Row::of(app, entry.report.as_ref(), cluster);
        let before = entry.row.replace(row.clone());
        if before.as_ref() == Some(&row) {
            return;
        }
        // Whoever may see the old project and not the new one must lose the row.
        if let Some(before) = before.filter(|before| before.project != row.project) {
            self.bury(before);
        }
        self.number += 1;
        if let Some(entry) = self.apps.get_mut(id) {
            entry.number = self.number;
        }
    }

    /// All rows, sorted by namespace and name.
    pub fn rows(&self) -> impl Iterator<Item = &Row> {
        self.apps.values().filter_map(|entry| entry.row.as_ref())
    }

    /// One row.
    pub fn row(&self, id: &AppId) -> Option<&Row> {
        self.apps.get(id)?.row.as_ref()
    }

    /// The report of an app.
    pub fn report(&self, id: &AppId) -> Option<&DriftReport> {
        self.apps.get(id)?.report.as_ref()
    }

    /// All reports of apps that exist, with their rows.
    pub fn reports(&self) -> impl Iterator<Item = (&Row, &DriftReport)> {
        self.apps.values().filter_map(|entry| Some((entry.row.as_ref()?, entry.report.as_ref()?)))
    }

    /// What changed since the token, as far as `may_see` (project, app) permits.
    pub fn changes(&self, since: Token, may_see: impl Fn(&str, &AppId) -> bool) -> Changes<'_> {
        if since.epoch != self.epoch || since.number > self.number || since.number < self.forgotten {
            return Changes::Reset;
        }
        let changed = self.apps.values().filter(|entry| entry.number > since.number);
        let mut changed: Vec<(u64, &Row)> =
            changed.filter_map(|entry| Some((entry.number, entry.row.as_ref()?))).collect();
        changed.sort_by_key(|(number, _)| *number);
        let rows: Vec<&Row> =
            changed.into_iter().map(|(_, row)| row).filter(|row| may_see(&row.project, &row.id)).collect();
        let gone =
            self.gone.iter().filter(|(number, id, project)| *number > since.number && may_see(project, id));
        // One that came back, or moved to a project that the caller sees, is not gone.
        let gone = gone.map(|(_, id, _)| id).filter(|id| !rows.iter().any(|row| row.id == **id));
        Changes::Since { gone: gone.collect(), rows }
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use serde_json::json;

    use super::*;
    use crate::row::tests::{app, live_edit, report};

    fn id(name: &str) -> AppId {
        AppId { namespace: "argocd".to_owned(), name: name.to_owned() }
    }

    fn shown(changes: &Changes<'_>) -> String {
        match changes {
            Changes::Reset => "reset".to_owned(),
            Changes::Since { rows, gone } => {
                let rows: Vec<&str> = rows.iter().map(|row| row.id.name.as_str()).collect();
                let gone: Vec<&str> = gone.iter().map(|id| id.name.as_str()).collect();
                format!("rows {rows:?} gone {gone:?}")
            }
        }
    }

    #[test]
    fn changes_since_a_token() {
        let mut view = View::new(5);
        let synced = || json!({"sync": {"status": "Synced"}});
        for name in ["a", "b", "c"] {
            view.note_app(app(name, synced()), "prod");
        }
        let start = view.token();
        let check = |view: &View, since: Token, expected: Expect| {
            expected.assert_eq(&shown(&view.changes(since, |project, _| project == "shop")));
        };
        check(&view, Token { epoch: 5, number: 0 }, expect![[r#"rows ["a", "b", "c"] gone []"#]]);
        check(&view, start, expect!["rows [] gone []"]);
        // The same state again is no change.
        view.note_app(app("a", synced()), "prod");
        assert_eq!(view.token(), start);
        view.note_report(report("c", json!([live_edit()]), json!([])));
        view.note_app(app("a", json!({"sync": {"status": "OutOfSync"}})), "prod");
        check(&view, start, expect![[r#"rows ["c", "a"] gone []"#]]);
        view.note_app_gone(&id("b"));
        check(&view, start, expect![[r#"rows ["c", "a"] gone ["b"]"#]]);
        view.note_app(app("b", synced()), "prod");
        check(&view, start, expect![[r#"rows ["c", "a", "b"] gone []"#]]);
        check(&view, Token { epoch: 4, number: 1 }, expect!["reset"]);
        check(&view, Token { epoch: 5, number: 99 }, expect!["reset"]);
        assert_eq!(start.to_string().parse(), Ok(start));
        assert_eq!("5-x".parse::<Token>(), Err(()));
    }

    #[test]
    fn who_loses_the_right_loses_the_row() {
        let mut view = View::new(1);
        view.note_app(app("a", json!({})), "prod");
        let start = view.token();
        let mut moved = app("a", json!({}));
        moved.spec.project = "secret".to_owned();
        view.note_app(moved, "prod");
        let seen_by = |projects: &'static [&'static str]| {
            shown(&view.changes(start, |project, _| projects.contains(&project)))
        };
        assert_eq!(seen_by(&["shop"]), "rows [] gone [\"a\"]");
        assert_eq!(seen_by(&["shop", "secret"]), "rows [\"a\"] gone []");
        assert_eq!(seen_by(&["other"]), "rows [] gone []");
    }

    #[test]
    fn a_client_that_missed_too_many_deletions_starts_over() {
        let mut view = View::new(1);
        let start = view.token();
        for n in 0..=MOST_GONE {
            let name = format!("a{n}");
            view.note_app(app(&name, json!({})), "prod");
            view.note_app_gone(&id(&name));
        }
        assert_eq!(view.changes(start, |_, _| true), Changes::Reset);
    }
}
