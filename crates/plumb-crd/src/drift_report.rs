//! `plumb.dev/v1alpha1` `DriftReport`: every difference of one Application, explained.

use jiff::Timestamp;
use plumb_core::app::{AppId, Pause};
use plumb_core::drift::{DriftClass, Finding, Fix, FixKind};
use plumb_core::fields::{Exemption, Exemptions};
use plumb_core::object::{FieldPath, ObjectKey};
use serde_json::{Value, json};

use crate::metadata::{Metadata, object_key};
use crate::wire::{Wire, WireError, read_map, wire};

wire! {
    /// A report, with the name and namespace of its Application.
    pub struct DriftReport {
        /// Name and namespace.
        "metadata" metadata: Metadata = required,
        /// When these findings were first observed.
        "observedAt" observed_at: Option<Timestamp>,
        /// The revision that the cluster was compared with at that time. A later revision that changes no finding does not
        /// change the report.
        "revision" revision: String,
        /// Counts of the findings.
        "summary" summary: DriftSummary = required,
        /// Every explained difference.
        "findings" findings: Vec<DriftFinding> = required,
        /// Unhealthy objects, since when and why. plumb reads the times after a restart.
        "health" health: Vec<UnhealthyObject>,
        /// The app, or objects of it, that a user paused.
        "pauses" pauses: Vec<DriftPause>,
        /// Objects that Git exempted. plumb reads this after a restart: once Git no longer has an object, the annotations of
        /// the live object prove nothing. Absent until plumb has compared the app.
        "exempt" exempt: Option<Vec<ExemptObject>>,
        /// Secrets whose values are in Git. No value is here.
        "plainSecrets" plain_secrets: Vec<PlainSecretObject>,
        /// What happened to the app lately, the latest first, at most 100 entries. They are written with the report, and are
        /// no reason to write one.
        "recent" recent: Vec<RecentEvent>,
    }

    /// Something that happened to an app.
    pub struct RecentEvent {
        /// When it was noticed, or since when it is known.
        "at" at: Timestamp = required,
        /// `drift`, `health`, `pause`, `sync` or `sync-failed`.
        "what" what: String = required,
        /// True if it went or ended, false if it came.
        "over" over: bool,
        /// API group of the object, if it is about one.
        "group" group: String,
        /// Kind.
        "kind" kind: String,
        /// Namespace.
        "namespace" namespace: String,
        /// Name.
        "name" name: String,
        /// The drift class, or the health.
        "class" class: String,
        /// Who caused it, if known.
        "actor" actor: String,
        /// What happened, in a few words.
        "text" text: String = required,
    }

    /// A Secret whose values are in Git.
    pub struct PlainSecretObject {
        /// Namespace.
        "namespace" namespace: String,
        /// Name.
        "name" name: String = required,
    }

    /// An object that Git exempted by an annotation.
    pub struct ExemptObject {
        /// API group.
        "group" group: String,
        /// Kind.
        "kind" kind: String = required,
        /// Namespace.
        "namespace" namespace: String,
        /// Name.
        "name" name: String = required,
        /// True if the object does not make the app `OutOfSync` when Git no longer has it.
        "ignoreExtraneous" ignore_extraneous: bool,
        /// True if its health does not count for the app's.
        "ignoreHealth" ignore_health: bool,
    }

    /// An unhealthy object.
    pub struct UnhealthyObject {
        /// API group.
        "group" group: String,
        /// Kind.
        "kind" kind: String = required,
        /// Namespace.
        "namespace" namespace: String,
        /// Name.
        "name" name: String = required,
        /// Its health; empty for an object without its own health that has an unhealthy child.
        "status" status: String,
        /// Since when it has this health.
        "since" since: Option<Timestamp>,
        /// True if it has been progressing for longer than is normal.
        "stuck" stuck: bool,
        /// Why, in a sentence.
        "message" message: String,
        /// The chain of causes, starting with the object.
        "causes" causes: Vec<String>,
    }

    /// Counts of the findings.
    pub struct DriftSummary {
        /// How many count as `OutOfSync`.
        "counted" counted: i64 = required,
        /// How many are explained and do not count.
        "explained" explained: i64 = required,
        /// How many of the explained ones need no action, such as defaults that the API server fills in.
        "quiet" quiet: i64,
        /// The most severe class; empty without findings.
        "worst" worst: String,
        /// Since when the oldest finding that counts has existed, if known.
        "since" since: Option<Timestamp>,
    }

    /// One explained difference of one object.
    pub struct DriftFinding {
        /// API group.
        "group" group: String,
        /// Kind.
        "kind" kind: String = required,
        /// Namespace.
        "namespace" namespace: String,
        /// Name.
        "name" name: String = required,
        /// Why it differs.
        "class" class: String = required,
        /// The name of the rule that decided.
        "rule" rule: String,
        /// True if it makes the object `OutOfSync`.
        "counts" counts: bool = required,
        /// The fields, as JSON pointers; empty for the whole object.
        "fields" fields: Vec<String>,
        /// The writer that caused the difference.
        "actor" actor: String,
        /// Since when, if known.
        "since" since: Option<Timestamp>,
        /// What was observed, for users.
        "evidence" evidence: Vec<String>,
        /// How to resolve it.
        "fix" fix: Option<DriftFix>,
    }

    /// An app or object that a user paused.
    pub struct DriftPause {
        /// API group.
        "group" group: String,
        /// Kind.
        "kind" kind: String = required,
        /// Namespace.
        "namespace" namespace: String,
        /// Name.
        "name" name: String = required,
        /// Why.
        "reason" reason: String,
        /// Who.
        "by" by: String,
        /// When it ends automatically; without it, a user has to end it.
        "until" until: Option<Timestamp>,
    }

    /// How to resolve a difference.
    pub struct DriftFix {
        /// `none`, `edit-git`, `sync`, `adopt`, `prune`, `ignore` or `decide`.
        "kind" kind: String = required,
        /// The step, for users.
        "text" text: String,
        /// A patch to the file in Git, if one can be generated.
        "patch" patch: String,
    }
}

/// Most findings in one report.
const MOST_FINDINGS: usize = 500;
/// Most bytes of findings in one report; the API server accepts little more than a megabyte.
const MOST_BYTES: usize = 500_000;
/// Most exempt objects in one report.
const MOST_EXEMPT: usize = 1000;
/// Most plain Secrets in one report.
const MOST_PLAIN_SECRETS: usize = 100;

impl DriftReport {
    /// `apiVersion` of a report.
    pub const API_VERSION: &'static str = "plumb.dev/v1alpha1";
    /// `kind` of a report.
    pub const KIND: &'static str = "DriftReport";

    /// The report on one app. Findings that count come first, then the order is that of the objects.
    ///
    /// Beyond [`MOST_FINDINGS`] and [`MOST_BYTES`], findings are only counted. Findings that do not count are omitted
    /// first.
    pub fn of<'f>(
        app: &AppId,
        revision: &str,
        observed_at: Timestamp,
        findings: impl IntoIterator<Item = &'f Finding>,
    ) -> Self {
        let mut sorted: Vec<&Finding> = findings.into_iter().collect();
        sorted.sort_by(|a, b| (!a.counts, &a.key, a.class).cmp(&(!b.counts, &b.key, b.class)));
        let counted = || sorted.iter().filter(|finding| finding.counts);
        let n_counted = counted().count();
        let n_quiet = sorted.iter().filter(|finding| finding.is_quiet()).count();
        Self {
            metadata: Metadata {
                name: app.name.clone(),
                namespace: app.namespace.clone(),
                ..Metadata::default()
            },
            observed_at: Some(observed_at),
            revision: revision.to_owned(),
            summary: DriftSummary {
                counted: i64::try_from(n_counted).unwrap_or(i64::MAX),
                explained: i64::try_from(sorted.len() - n_counted).unwrap_or(i64::MAX),
                quiet: i64::try_from(n_quiet).unwrap_or(i64::MAX),
                worst: worst(&sorted),
                since: counted().filter_map(|finding| finding.since).min(),
            },
            findings: bounded(sorted.into_iter().map(DriftFinding::of)),
            health: Vec::new(),
            pauses: Vec::new(),
            exempt: None,
            plain_secrets: Vec::new(),
            recent: Vec::new(),
        }
    }

    /// The same report with the unhealthy objects.
    #[must_use]
    pub fn with_health(self, health: Vec<UnhealthyObject>) -> Self {
        Self { health, ..self }
    }

    /// The same report with the pauses.
    #[must_use]
    pub fn with_pauses(self, pauses: impl IntoIterator<Item = (ObjectKey, Pause)>) -> Self {
        let pauses = pauses.into_iter().map(|(key, pause)| DriftPause {
            namespace: key.namespace_or_empty().to_owned(),
            group: key.group.clone(),
            kind: key.kind.clone(),
            name: key.name.clone(),
            reason: pause.reason,
            by: pause.by.unwrap_or_default(),
            until: pause.until,
        });
        Self { pauses: pauses.collect(), ..self }
    }

    /// The same report with the Secrets whose values are in Git. Beyond [`MOST_PLAIN_SECRETS`] they are left out.
    #[must_use]
    pub fn with_plain_secrets(self, secrets: &[ObjectKey]) -> Self {
        let secrets = secrets.iter().take(MOST_PLAIN_SECRETS).map(|key| PlainSecretObject {
            namespace: key.namespace_or_empty().to_owned(),
            name: key.name.clone(),
        });
        Self { plain_secrets: secrets.collect(), ..self }
    }

    /// The same report with the exempt objects. Beyond [`MOST_EXEMPT`] they are left out, and count after a restart.
    #[must_use]
    pub fn with_exemptions(self, exemptions: &Exemptions) -> Self {
        let exempt = exemptions.objects().take(MOST_EXEMPT).map(|(key, exemption)| ExemptObject {
            group: key.group.clone(),
            kind: key.kind.clone(),
            namespace: key.namespace_or_empty().to_owned(),
            name: key.name.clone(),
            ignore_extraneous: exemption.ignore_extraneous,
            ignore_health: exemption.ignore_health,
        });
        Self { exempt: Some(exempt.collect()), ..self }
    }

    /// The exempt objects, as far as the report tells.
    pub fn exemptions(&self) -> Exemptions {
        let Some(exempt) = &self.exempt else { return Exemptions::default() };
        Exemptions::recorded(exempt.iter().map(|object| {
            let key = object_key(&object.group, &object.kind, &object.namespace, &object.name);
            let (ignore_extraneous, ignore_health) = (object.ignore_extraneous, object.ignore_health);
            (key, Exemption { ignore_extraneous, ignore_health })
        }))
    }

    /// Reads a report.
    pub fn from_json(object: &Value) -> Result<Self, WireError> {
        read_map(object)?;
        Self::read(object)
    }

    /// The whole object.
    pub fn to_json(&self) -> Value {
        let mut object = self.write();
        object["apiVersion"] = Value::from(Self::API_VERSION);
        object["kind"] = Value::from(Self::KIND);
        object
    }

    /// Every text that quotes objects, writers or users. Patches are not among them: they are applied as they are.
    pub fn texts(&mut self) -> impl Iterator<Item = &mut String> {
        let findings = self.findings.iter_mut().flat_map(|finding| {
            let fix = finding.fix.iter_mut().map(|fix| &mut fix.text);
            finding.evidence.iter_mut().chain([&mut finding.actor]).chain(fix)
        });
        let health =
            self.health.iter_mut().flat_map(|object| object.causes.iter_mut().chain([&mut object.message]));
        let pauses = self.pauses.iter_mut().flat_map(|pause| [&mut pause.reason, &mut pause.by]);
        let recent = self.recent.iter_mut().flat_map(|event| [&mut event.text, &mut event.actor]);
        findings.chain(health).chain(pauses).chain(recent)
    }

    /// The content without time and revision.
    pub fn content(&self) -> Value {
        json!([self.summary.write(), self.findings.write(), self.beside_findings()])
    }

    /// The content without the values of findings that count for nothing: which objects and fields they are about.
    pub fn findings_content(&self) -> Value {
        let finding = |finding: &DriftFinding| {
            if finding.counts {
                return finding.write();
            }
            let DriftFinding { group, kind, namespace, name, class, fields, actor, .. } = finding;
            json!([group, kind, namespace, name, class, fields, actor])
        };
        let findings: Vec<Value> = self.findings.iter().map(finding).collect();
        json!([findings, self.beside_findings()])
    }

    /// The content without time, revision and the findings that count for nothing.
    pub fn counting_content(&self) -> Value {
        let counting: Vec<Value> =
            self.findings.iter().filter(|finding| finding.counts).map(Wire::write).collect();
        json!([counting, self.beside_findings()])
    }

    fn beside_findings(&self) -> Value {
        let plain = self.plain_secrets.write();
        json!([self.health.write(), self.pauses.write(), self.exempt.write(), plain])
    }
}

impl PlainSecretObject {
    /// The key of the Secret.
    pub fn key(&self) -> ObjectKey {
        object_key("", "Secret", &self.namespace, &self.name)
    }
}

impl UnhealthyObject {
    /// The key of the object.
    pub fn key(&self) -> ObjectKey {
        object_key(&self.group, &self.kind, &self.namespace, &self.name)
    }
}

impl DriftPause {
    /// The key of the object; for an app, of its Application.
    pub fn key(&self) -> ObjectKey {
        object_key(&self.group, &self.kind, &self.namespace, &self.name)
    }
}

impl DriftFinding {
    /// True if it asks nothing of anybody.
    pub fn is_quiet(&self) -> bool {
        self.finding().is_some_and(|finding| finding.is_quiet())
    }

    /// The key of the object.
    pub fn key(&self) -> ObjectKey {
        object_key(&self.group, &self.kind, &self.namespace, &self.name)
    }

    /// The finding; `None` for an unknown class (a newer plumb wrote it). List positions are read as fields, which print
    /// the same.
    pub fn finding(&self) -> Option<Finding> {
        let fix = self.fix.as_ref();
        let kinds = [
            FixKind::None,
            FixKind::EditGit,
            FixKind::Sync,
            FixKind::Adopt,
            FixKind::Prune,
            FixKind::Ignore,
            FixKind::Decide,
        ];
        let kind = kinds.into_iter().find(|kind| fix.is_some_and(|fix| fix.kind == fix_name(*kind)));
        Some(Finding {
            key: self.key(),
            class: DriftClass::ALL.into_iter().find(|class| class.name() == self.class)?,
            rule: self.rule.clone().into(),
            fields: self.fields.iter().map(|field| FieldPath::from_pointer(field)).collect(),
            counts: self.counts,
            actor: Some(self.actor.clone()).filter(|actor| !actor.is_empty()),
            since: self.since,
            evidence: self.evidence.clone(),
            fix: Fix {
                kind: kind.unwrap_or(FixKind::None),
                text: fix.map(|fix| fix.text.clone()).unwrap_or_default(),
                patch: fix.map(|fix| fix.patch.clone()).filter(|patch| !patch.is_empty()),
            },
        })
    }

    /// The finding as a report has it.
    pub fn of(finding: &Finding) -> Self {
        Self {
            group: finding.key.group.clone(),
            kind: finding.key.kind.clone(),
            namespace: finding.key.namespace_or_empty().to_owned(),
            name: finding.key.name.clone(),
            class: finding.class.name().to_owned(),
            rule: finding.rule.to_string(),
            counts: finding.counts,
            fields: finding.fields.iter().map(ToString::to_string).collect(),
            actor: finding.actor.clone().unwrap_or_default(),
            since: finding.since,
            evidence: finding.evidence.clone(),
            fix: Some(DriftFix {
                kind: fix_name(finding.fix.kind).to_owned(),
                text: finding.fix.text.clone(),
                patch: finding.fix.patch.clone().unwrap_or_default(),
            }),
        }
    }
}

/// The first findings, up to the limits.
fn bounded(findings: impl Iterator<Item = DriftFinding>) -> Vec<DriftFinding> {
    let mut bytes = 0;
    findings
        .take(MOST_FINDINGS)
        .take_while(|finding| {
            bytes += finding.write().to_string().len();
            bytes <= MOST_BYTES
        })
        .collect()
}

fn worst(findings: &[&Finding]) -> String {
    let finding = findings.iter().max_by_key(|finding| (finding.counts, finding.class.severity()));
    finding.map(|finding| finding.class.name().to_owned()).unwrap_or_default()
}

fn fix_name(kind: FixKind) -> &'static str {
    match kind {
        FixKind::None => "none",
        FixKind::EditGit => "edit-git",
        FixKind::Sync => "sync",
        FixKind::Adopt => "adopt",
        FixKind::Prune => "prune",
        FixKind::Ignore => "ignore",
        FixKind::Decide => "decide",
    }
}

#[cfg(test)]
mod tests {
    use plumb_core::drift::Fix;
    use plumb_core::object::FieldPath;
    use serde_json::json;

    use super::*;

    fn finding(name: &str, class: DriftClass, counts: bool, since: Option<&str>) -> Finding {
        Finding {
            key: ObjectKey::new("apps", "Deployment", Some("prod".to_owned()), name),
            class,
            rule: "edited-by-another-writer".into(),
            fields: vec![FieldPath::from_pointer("/spec/replicas")],
            counts,
            actor: Some("kubectl".to_owned()),
            since: since.map(|since| since.parse().expect("a time")),
            evidence: vec!["kubectl set 5".to_owned()],
            fix: Fix { kind: FixKind::Sync, text: "sync".to_owned(), patch: None },
        }
    }

    fn report(findings: &[Finding]) -> DriftReport {
        let app = AppId { namespace: "argocd".to_owned(), name: "payments".to_owned() };
        DriftReport::of(&app, "3f2c", "2026-11-15T19:00:00.5Z".parse().expect("a time"), findings)
    }

    #[test]
    fn a_report_as_it_is_documented() {
        let findings = [
            finding("a", DriftClass::SchemaDefault, false, Some("2026-01-01T00:00:00Z")),
            finding("payments", DriftClass::LiveEdit, true, Some("2026-11-15T18:58:11Z")),
        ];
        let expected = json!({
            "apiVersion": "plumb.dev/v1alpha1",
            "kind": "DriftReport",
            "metadata": {"name": "payments", "namespace": "argocd"},
            "observedAt": "2026-11-15T19:00:00Z",
            "revision": "3f2c",
            "summary": {"counted": 1, "explained": 1, "worst": "LiveEdit", "since": "2026-11-15T18:58:11Z"},
            "findings": [
                {
                    "group": "apps", "kind": "Deployment", "namespace": "prod", "name": "payments",
                    "class": "LiveEdit", "rule": "edited-by-another-writer", "counts": true,
                    "fields": ["/spec/replicas"], "actor": "kubectl",
                    "since": "2026-11-15T18:58:11Z", "evidence": ["kubectl set 5"],
                    "fix": {"kind": "sync", "text": "sync"},
                },
                {
                    "group": "apps", "kind": "Deployment", "namespace": "prod", "name": "a",
                    "class": "SchemaDefault", "rule": "edited-by-another-writer", "counts": false,
                    "fields": ["/spec/replicas"], "actor": "kubectl",
                    "since": "2026-01-01T00:00:00Z", "evidence": ["kubectl set 5"],
                    "fix": {"kind": "sync", "text": "sync"},
                },
            ],
        });
        let report = report(&findings);
        assert_eq!(report.to_json(), expected);
        let read = DriftReport::from_json(&expected).expect("readable");
        assert_eq!(read.content(), report.content());
    }

    /// After a restart, the report is the only record of earlier findings.
    #[test]
    fn findings_come_back_from_a_report() {
        let found = finding("web", DriftClass::LiveEdit, true, Some("2026-11-15T18:58:11Z"));
        let read = DriftReport::from_json(&report(std::slice::from_ref(&found)).to_json()).unwrap();
        let back = read.findings.first().and_then(DriftFinding::finding).unwrap();
        let print =
            |finding: &Finding| -> Vec<String> { finding.fields.iter().map(ToString::to_string).collect() };
        assert_eq!(print(&back), print(&found));
        assert_eq!(Finding { fields: found.fields.clone(), ..back }, found);
    }

    #[test]
    fn findings_that_ask_nothing_of_anybody_are_counted_apart() {
        let quiet = |name: &str, counts| {
            let finding = finding(name, DriftClass::SchemaDefault, counts, None);
            Finding { fix: Fix { kind: FixKind::None, text: String::new(), patch: None }, ..finding }
        };
        let edit = finding("c", DriftClass::EquivalentValue, false, None);
        let report = report(&[quiet("a", false), quiet("b", true), edit]);
        assert_eq!(
            report.to_json()["summary"],
            json!({"counted": 1, "explained": 2, "quiet": 1, "worst": "SchemaDefault"})
        );
        let listed: Vec<bool> = report.findings.iter().map(DriftFinding::is_quiet).collect();
        assert_eq!(listed, [false, true, false]);
    }

    #[test]
    fn what_counts_is_worse_than_what_does_not() {
        let worst = |findings: &[Finding]| report(findings).summary.worst;
        assert_eq!(worst(&[]), "");
        let blocked = || finding("a", DriftClass::Blocked, true, None);
        let behind = || finding("b", DriftClass::Behind, true, None);
        let addition = || finding("c", DriftClass::UnclaimedAddition, false, None);
        assert_eq!(worst(&[behind(), blocked(), addition()]), "Blocked");
        assert_eq!(worst(&[addition(), behind()]), "Behind");
        assert_eq!(worst(&[addition()]), "UnclaimedAddition");
    }

    #[test]
    fn exempt_objects_come_back_from_a_report() {
        let exemption = Exemption { ignore_extraneous: true, ignore_health: false };
        let key = ObjectKey::new("", "ConfigMap", Some("prod".to_owned()), "old");
        for exemptions in [Exemptions::recorded([(key, exemption)]), Exemptions::recorded([])] {
            let written = report(&[]).with_exemptions(&exemptions).to_json();
            assert_eq!(DriftReport::from_json(&written).unwrap().exemptions(), exemptions);
        }
        // A report of an earlier version says nothing about them.
        assert_eq!(
            DriftReport::from_json(&report(&[]).to_json()).unwrap().exemptions(),
            Exemptions::default()
        );
    }

    #[test]
    fn a_report_without_findings_has_its_required_fields() {
        let written = report(&[]).to_json();
        assert_eq!(written["findings"], json!([]));
        assert_eq!(written["summary"], json!({"counted": 0, "explained": 0}));
    }
}
