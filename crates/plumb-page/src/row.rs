//! One app as a row of columns: what a list of ten thousand apps needs, and no more.

use jiff::Timestamp;
use plumb_core::app::AppId;
use plumb_crd::drift_report::DriftPause;
use plumb_crd::{Application, DriftReport, RecentEvent};
use serde_json::{Value, json};

use crate::trouble::{Sort, Trouble, pause_of, short, time, troubles};

/// Most labels of a row.
const MOST_LABELS: usize = 12;
/// Most pauses of objects of a row.
const MOST_PAUSES: usize = 10;

/// One app.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// Its name and namespace.
    pub id: AppId,
    /// Its project, which permissions name.
    pub project: String,
    pub(crate) cluster: String,
    pub(crate) namespace: String,
    pub(crate) sync: String,
    pub(crate) health: String,
    pub(crate) operation: String,
    pub(crate) operation_since: Option<Timestamp>,
    pub(crate) operation_by: String,
    pub(crate) counted: i64,
    pub(crate) explained: i64,
    pub(crate) revision: String,
    pub(crate) target: String,
    pub(crate) repo: String,
    pub(crate) automated: bool,
    pub(crate) paused_until: Option<Timestamp>,
    pub(crate) paused_by: String,
    pub(crate) pause_reason: String,
    pub(crate) labels: Vec<String>,
    pub(crate) troubles: Vec<Trouble>,
    /// Pauses of objects, not of the whole app.
    pub(crate) object_pauses: Vec<DriftPause>,
    /// The last sync that took back what a user changed: when it ended, and what the report says of it.
    pub(crate) healed: Option<(Timestamp, String)>,
    /// When a finding or an illness ended last, as far as the report remembers.
    pub(crate) mended: Option<Timestamp>,
    /// Which states of the Application and its report these are.
    pub(crate) version: String,
}

/// The names of the columns, in the order of [`Row::cells`].
pub fn columns() -> Value {
    json!([
        "ns",
        "name",
        "project",
        "cluster",
        "dest",
        "sync",
        "health",
        "op",
        "counted",
        "explained",
        "class",
        "actor",
        "since",
        "paused",
        "rev",
        "labels",
        "v",
        "auto",
        "repo",
        "target",
        "opSince",
        "others"
    ])
}

impl Row {
    /// The row of an Application. `cluster` is the name or the address of its cluster, `version` that of the report.
    pub fn of(app: &Application, report: Option<&DriftReport>, cluster: &str) -> Self {
        let operation = app.status.operation_state.as_deref();
        let pause = pause_of(app);
        let source = app.spec.sources.first().or(app.spec.source.as_deref());
        let revision = Some(&app.status.sync.revision).filter(|revision| !revision.is_empty());
        let revision = revision.or_else(|| app.status.sync.revisions.first());
        let labels = app.metadata.labels.iter().take(MOST_LABELS);
        let automated = app.spec.sync_policy.as_ref().and_then(|policy| policy.automated.as_ref());
        let version = report.map_or("", |report| &report.metadata.resource_version);
        Self {
            id: app.id(),
            project: app.project().to_owned(),
            cluster: cluster.to_owned(),
            namespace: app.spec.destination.namespace.clone(),
            sync: known(&app.status.sync.status),
            health: known(&app.status.health.status),
            operation: operation.map(|state| state.phase.clone()).unwrap_or_default(),
            operation_since: operation.map(|state| state.finished_at.unwrap_or(state.started_at)),
            operation_by: operation.map(|state| initiator(&state.operation.initiated_by)).unwrap_or_default(),
            counted: report.map_or(0, |report| report.summary.counted),
            explained: report.map_or(0, |report| report.summary.explained),
            revision: revision.map(|revision| revision.chars().take(12).collect()).unwrap_or_default(),
            target: source.map(|source| source.target_revision.clone()).unwrap_or_default(),
            repo: source.map(|source| without_userinfo(&source.repo_url)).unwrap_or_default(),
            automated: automated.is_some_and(|automated| automated.enabled != Some(false)),
            paused_until: pause.as_ref().and_then(|pause| pause.until),
            paused_by: pause.as_ref().and_then(|pause| pause.by.as_deref().map(short)).unwrap_or_default(),
            pause_reason: pause.as_ref().map(|pause| short(&pause.reason)).unwrap_or_default(),
            labels: labels.map(|(name, value)| format!("{name}={value}")).collect(),
            troubles: troubles(app, report),
            object_pauses: report.map(object_pauses).unwrap_or_default(),
            healed: report.and_then(|report| {
                let heals = report.recent.iter().filter(|event| is_heal(event));
                heals.max_by_key(|event| event.at).map(|event| (event.at, short(&event.text)))
            }),
            mended: report.and_then(|report| {
                let ended =
                    |event: &&RecentEvent| event.over && matches!(event.what.as_str(), "drift" | "health");
                report.recent.iter().filter(ended).map(|event| event.at).max()
            }),
            version: format!("{}.{version}", app.metadata.resource_version),
        }
    }

    /// True if plumb does not know how the app differs from Git.
    pub(crate) fn is_unknown(&self) -> bool {
        self.sync == "Unknown"
    }

    /// The worst trouble that is not just a running sync.
    pub(crate) fn worst(&self) -> Option<&Trouble> {
        self.troubles.iter().find(|trouble| trouble.class != "Running")
    }

    /// The classes of the other troubles, for those who look for one of them.
    fn other_classes(&self, worst: Option<&Trouble>) -> Vec<&str> {
        let known = |class: &str| class == "Running" || worst.is_some_and(|worst| worst.class == class);
        let classes = self.troubles.iter().map(|trouble| trouble.class.as_str());
        let mut others: Vec<&str> = classes.filter(|class| !known(class)).collect();
        others.sort_unstable();
        others.dedup();
        others
    }

    /// The cells, in the order of [`columns`].
    pub fn cells(&self) -> Value {
        let worst = self.worst();
        let drift = self.troubles.iter().find(|trouble| trouble.sort == Sort::Drift);
        json!([
            self.id.namespace,
            self.id.name,
            self.project,
            self.cluster,
            self.namespace,
            self.sync,
            self.health,
            self.operation,
            self.counted,
            self.explained,
            worst.map_or("", |trouble| &trouble.class),
            drift.map_or("", |trouble| &trouble.actor),
            time(worst.and_then(|trouble| trouble.since)),
            time(self.paused_until),
            self.revision,
            self.labels,
            self.version,
            i32::from(self.automated),
            self.repo,
            self.target,
            // How long is too long for a sync depends on the clock, so the reader decides.
            time(self.operation_since.filter(|_| self.operation == "Running")),
            self.other_classes(worst),
        ])
    }
}

/// A sync that took back what a user changed.
pub(crate) fn is_heal(event: &RecentEvent) -> bool {
    event.what == "sync" && event.text.starts_with("healed")
}

/// The pauses of objects: that of the whole app is in the Application.
fn object_pauses(report: &DriftReport) -> Vec<DriftPause> {
    let of_objects = report.pauses.iter().filter(|pause| pause.kind != Application::KIND);
    of_objects.take(MOST_PAUSES).cloned().collect()
}

fn known(status: &str) -> String {
    if status.is_empty() { "Unknown".to_owned() } else { status.to_owned() }
}

/// Who requested an operation.
pub(crate) fn initiator(by: &plumb_crd::application::OperationInitiator) -> String {
    if by.automated { "plumb".to_owned() } else { short(&by.username) }
}

/// An address without a name and a password in it.
pub(crate) fn without_userinfo(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else { return url.to_owned() };
    let (host, path) = rest.split_once('/').map_or((rest, None), |(host, path)| (host, Some(path)));
    let host = host.rsplit_once('@').map_or(host, |(_, host)| host);
    path.map_or_else(|| format!("{scheme}://{host}"), |path| format!("{scheme}://{host}/{path}"))
}

#[cfg(test)]
pub(crate) mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    #[expect(clippy::needless_pass_by_value, reason = "a table of cases is shorter so")]
    pub(crate) fn app(name: &str, status: Value) -> Application {
        Application::from_json(&json!({
            "metadata": {"name": name, "namespace": "argocd", "resourceVersion": "7", "labels": {"team": "a"}},
            "spec": {"project": "shop", "destination": {"name": "prod", "namespace": "pay"},
                     "source": {"repoURL": "https://u:p@git.example/x.git", "targetRevision": "main"},
                     "syncPolicy": {"automated": {}}},
            "status": status,
        }))
        .unwrap()
    }

    #[expect(clippy::needless_pass_by_value, reason = "a table of cases is shorter so")]
    pub(crate) fn report(name: &str, findings: Value, health: Value) -> DriftReport {
        let count = |counts: bool| {
            findings.as_array().unwrap().iter().filter(|finding| finding["counts"] == counts).count()
        };
        DriftReport::from_json(&json!({
            "metadata": {"name": name, "namespace": "argocd", "resourceVersion": "9"},
            "summary": {"counted": count(true), "explained": count(false), "worst": ""},
            "findings": findings, "health": health,
        }))
        .unwrap()
    }

    pub(crate) fn live_edit() -> Value {
        json!({"group": "apps", "kind": "Deployment", "namespace": "pay", "name": "payments", "class": "LiveEdit",
               "counts": true, "fields": ["/spec/replicas"], "actor": "alice (kubectl)", "since": "2026-11-15T03:01:12Z",
               "evidence": ["Git says 3, the cluster has 10"], "fix": {"kind": "sync", "text": "sync, or commit it"}})
    }

    #[test]
    fn cells() {
        let check = |status: Value, findings: Value, health: Value, expected: Expect| {
            let row = Row::of(&app("payments", status), Some(&report("payments", findings, health)), "prod");
            expected.assert_eq(&row.cells().to_string());
        };
        check(
            json!({"sync": {"status": "Synced", "revision": "3f2c9d1aa0bbccdd"}, "health": {"status": "Healthy"}}),
            json!([]),
            json!([]),
            expect![[
                r#"["argocd","payments","shop","prod","pay","Synced","Healthy","",0,0,"","",null,null,"3f2c9d1aa0bb",["team=a"],"7.9",1,"https://git.example/x.git","main",null,[]]"#
            ]],
        );
        check(
            json!({"sync": {"status": "OutOfSync"}, "health": {"status": "Healthy"}}),
            json!([live_edit()]),
            json!([]),
            expect![[
                r#"["argocd","payments","shop","prod","pay","OutOfSync","Healthy","",1,0,"LiveEdit","alice (kubectl)",1794711672,null,"",["team=a"],"7.9",1,"https://git.example/x.git","main",null,[]]"#
            ]],
        );
        // An app that is in sync and ill is wrong, and its illness comes first.
        check(
            json!({"sync": {"status": "OutOfSync"}, "health": {"status": "Degraded"}}),
            json!([live_edit()]),
            json!([{"kind": "Pod", "name": "x", "status": "Progressing", "stuck": true, "message": "crashes",
                    "since": "2026-10-25T21:08:00Z"}]),
            expect![[
                r#"["argocd","payments","shop","prod","pay","OutOfSync","Degraded","",1,0,"Stuck","alice (kubectl)",1792962480,null,"",["team=a"],"7.9",1,"https://git.example/x.git","main",null,["LiveEdit"]]"#
            ]],
        );
        // A running sync is no trouble until it hangs.
        check(
            json!({"sync": {"status": "Synced"}, "operationState": {"operation": {"sync": {}}, "phase": "Running",
                   "startedAt": "2026-11-15T03:01:12Z", "message": ""}}),
            json!([]),
            json!([]),
            expect![[
                r#"["argocd","payments","shop","prod","pay","Synced","Unknown","Running",0,0,"","",null,null,"",["team=a"],"7.9",1,"https://git.example/x.git","main",1794711672,[]]"#
            ]],
        );
    }

    #[test]
    fn addresses_lose_their_passwords() {
        for (url, shown) in [
            ("https://a:b@git.example/x", "https://git.example/x"),
            ("https://git.example", "https://git.example"),
            ("git@git.example:x.git", "git@git.example:x.git"),
        ] {
            assert_eq!(without_userinfo(url), shown);
        }
    }
}
