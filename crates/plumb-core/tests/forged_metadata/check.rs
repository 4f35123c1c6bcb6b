//! What must hold whatever the metadata of a live object say. Every client that may edit an object may write all of it:
//! its annotations, its labels, its owners and, entry by entry, its `managedFields`. Shared with the fuzz target `live`.

use plumb_core::app::CompareOptions;
use plumb_core::desired::{DesiredObject, ObjectOptions};
use plumb_core::drift::{
    Answers, Autoscaler, DryRun, Evidence, Facts, Finding, LiveOwner, Outcome, Previous, Question,
    SecondRender, Verdict, VerdictStatus, judge,
};
use plumb_core::fields::{annotation_of_git, annotation_written_at, has_other_writers};
use plumb_core::health;
use plumb_core::ignore::IgnoreRules;
use plumb_core::object::{FieldPath, Manifest, ObjectKey, images};
use plumb_core::schema::SchemaSet;
use plumb_core::tracking::{TrackingSettings, tracked_by};
use serde_json::{Map, Value, json};

/// Bytes as a source of choices. At its end it chooses the first of everything.
pub(crate) struct Choices<'b>(pub(crate) &'b [u8]);

impl Choices<'_> {
    fn below(&mut self, end: usize) -> usize {
        let Some((first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        usize::from(*first) % end.max(1)
    }

    fn one<T: Clone>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())].clone()
    }
}

/// What an attacker changes: kind, Git's content and the live one.
fn edits() -> Vec<(&'static str, Value, Value)> {
    let pod = |image: &str| json!({"spec": {"replicas": 3, "template": {"spec": {"containers": [{"name": "c", "image": image}]}}}});
    let role = |verb: &str| json!({"rules": [{"verbs": [verb], "resources": ["secrets"]}]});
    let webhook = |policy: &str| json!({"webhooks": [{"name": "a", "failurePolicy": policy}]});
    vec![
        ("apps/v1 Deployment", pod("good:1"), pod("evil:1")),
        ("apps/v1 Deployment", json!({"spec": {"replicas": 3}}), json!({"spec": {"replicas": 0}})),
        ("rbac.authorization.k8s.io/v1 ClusterRole", role("get"), role("*")),
        ("v1 ConfigMap", json!({"data": {"level": "info"}}), json!({"data": {"level": "off"}})),
        ("v1 ConfigMap", json!({"data": {"level": "3"}}), json!({"data": {"level": "0"}})),
        ("v1 ConfigMap", json!({"data": {"level": "info"}}), json!({"data": {}})),
        ("v1 ConfigMap", json!({"data": {"level": "info"}}), json!({})),
        ("v1 ServiceAccount", json!({"automountServiceAccountToken": false}), json!({})),
        (
            "example.io/v1 Thing",
            json!({"spec": {"image": "x", "privileged": false}}),
            json!({"spec": {"image": "x"}}),
        ),
        (
            "rbac.authorization.k8s.io/v1 ClusterRole",
            role("get"),
            json!({"rules": [{"resources": ["secrets"]}]}),
        ),
        (
            "admissionregistration.k8s.io/v1 ValidatingWebhookConfiguration",
            webhook("Fail"),
            webhook("Ignore"),
        ),
        ("example.io/v1 Thing", json!({"spec": {"image": "good:1"}}), json!({"spec": {"image": "evil:1"}})),
        ("example.io/v1 Unknown", json!({"spec": {"image": "good:1"}}), json!({"spec": {"image": "evil:1"}})),
    ]
}

/// Each edit makes the object `OutOfSync`, and a sync replaces it, whatever the metadata say.
pub(crate) fn no_metadata_hides_an_edit(choices: &mut Choices<'_>) {
    let edits = edits();
    let (kind, git, live) = choices.one(&edits);
    let metadata = metadata(choices, &git, &live);
    let (previous, owner) = (choices.below(3), choices.below(3));
    let verdict = verdict(kind, &git, &live, &metadata, (previous, owner));
    let shown = || format!("{kind} with {}, previous {previous}", Value::Object(metadata.clone()));
    assert_eq!(verdict.status, VerdictStatus::OutOfSync, "{}", shown());
    assert!(verdict.counts_for_app, "{}", shown());
    // The date that the chart prints may count or not, and may be kept.
    let is_date = |field: &FieldPath| *field == FieldPath::from_pointer(DAY);
    let mut counted = verdict.findings.iter().filter(|finding| finding.counts);
    let is_more = |finding: &Finding| finding.fields.is_empty() || !finding.fields.iter().all(is_date);
    assert!(owner != 0 || counted.any(is_more), "{}: {:?}", shown(), verdict.findings);
    let kept = &verdict.advice.keep_live;
    assert!(kept.iter().all(is_date), "{}: {kept:?}", shown());
}

/// Where a chart prints the date, if what was applied came from the same commit on another day.
const DAY: &str = "/metadata/annotations/day";

/// The metadata with that date.
fn on(day: &str, metadata: &Map<String, Value>) -> Map<String, Value> {
    let mut metadata = metadata.clone();
    let annotations = metadata.entry("annotations").or_insert_with(|| json!({}));
    annotations["day"] = json!(day);
    metadata
}

/// Reading any object as a live one never panics.
pub(crate) fn any_object(object: Value) {
    let Ok(live) = Manifest::new(object) else { return };
    let _ = (health::assess(&live), images(&live), has_other_writers(&live));
    let _ = annotation_of_git(&live, CompareOptions::ANNOTATION);
    let _ = annotation_written_at(live.value(), CompareOptions::ANNOTATION);
    let _ = tracked_by(&live, "app", &TrackingSettings::default());
    let Some(key) = live.key() else { return };
    let (rules, _) = IgnoreRules::compile([]);
    let evidence = Evidence {
        key: &key,
        desired: None,
        live: Some(&live),
        schemas: &SchemaSet::default(),
        rules: &rules,
        options: CompareOptions::default(),
        facts: Facts { app: "app", ..Facts::default() },
        answers: Answers::default(),
        now: "2026-02-01T00:00:00Z".parse().unwrap_or_default(),
    };
    let _ = judge(&evidence);
}

fn object(kind: &str, content: &Value, metadata: &Map<String, Value>) -> Manifest {
    let (api_version, kind) = kind.split_once(' ').unwrap_or_default();
    let mut value = json!({"apiVersion": api_version, "kind": kind, "metadata": metadata});
    value["metadata"]["name"] = json!("x");
    value["metadata"]["namespace"] = json!("n");
    if let (Some(value), Value::Object(content)) = (value.as_object_mut(), content) {
        value.extend(content.clone());
    }
    Manifest::new(value).expect("it has a version and a kind")
}

fn verdict(
    kind: &str,
    git: &Value,
    live: &Value,
    metadata: &Map<String, Value>,
    (previous, owner): (usize, usize),
) -> Verdict {
    let is_rerendered = previous == 2;
    let dated = |day: &str, metadata: &Map<String, Value>| {
        if is_rerendered { on(day, metadata) } else { metadata.clone() }
    };
    let desired = object(kind, git, &dated("Tue", &Map::new()));
    let second = desired.clone();
    let key = ObjectKey::new(desired.group(), desired.kind(), Some("n".to_owned()), "x");
    let options = ObjectOptions::parse(&desired);
    let restored = object(kind, git, &dated("Tue", metadata));
    let live = object(kind, live, &dated("Mon", metadata));
    let desired = DesiredObject { key: key.clone(), manifest: desired, options, origin: None };
    let (rules, _) = IgnoreRules::compile([]);
    let evidence = Evidence {
        key: &key,
        desired: Some(&desired),
        live: Some(&live),
        schemas: &schemas(),
        rules: &rules,
        options: CompareOptions::default(),
        facts: Facts {
            app: "app",
            owner: [LiveOwner::ThisApp, LiveOwner::Nobody, LiveOwner::App("other".to_owned())]
                .into_iter()
                .nth(owner)
                .unwrap_or_default(),
            previous: match previous {
                0 => Previous::Same,
                1 => Previous::Unknown,
                _ => Previous::Rerendered,
            },
            render_may_vary: is_rerendered,
            autoscalers: &[Autoscaler {
                kind: "HorizontalPodAutoscaler".to_owned(),
                name: "x".to_owned(),
                scales_to_zero: false,
            }],
            ..Facts::default()
        },
        answers: Answers::default(),
        now: "2026-02-01T00:00:00Z".parse().unwrap_or_default(),
    };
    settled(evidence, &restored, &second)
}

/// Judges until no question is open.
fn settled<'e>(mut evidence: Evidence<'e>, restored: &'e Manifest, second: &'e Manifest) -> Verdict {
    for _ in 0..4 {
        let questions = match judge(&evidence) {
            Outcome::Settled(verdict) => return *verdict,
            Outcome::Ask(questions) => questions,
        };
        for question in questions {
            match question {
                // The API server puts back what Git asks for.
                Question::DryRun => evidence.answers.dry_run = Some(DryRun::Object(restored)),
                // On one day, both renders are the same.
                Question::SecondRender => {
                    evidence.answers.second_render = Some(SecondRender::Object(Some(second)));
                }
                Question::LiveAt { .. } => evidence.answers.live_at = Some(None),
            }
        }
    }
    panic!("the judge does not stop asking");
}

/// Metadata as an attacker would write them.
fn metadata(choices: &mut Choices<'_>, git: &Value, live: &Value) -> Map<String, Value> {
    let mut metadata = Map::new();
    let entries: Vec<Value> = (0..choices.below(5)).map(|_| entry(choices, git, live)).collect();
    match choices.below(4) {
        0 => {}
        1 => drop(metadata.insert("managedFields".to_owned(), json!([{}]))),
        _ => drop(metadata.insert("managedFields".to_owned(), Value::Array(entries))),
    }
    let annotations: Map<String, Value> = (0..choices.below(4)).map(|_| annotation(choices, live)).collect();
    metadata.insert("annotations".to_owned(), Value::Object(annotations));
    if choices.below(4) == 1 {
        let owner = json!([{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "r", "uid": "u",
            "controller": true, "blockOwnerDeletion": true}]);
        metadata.insert("ownerReferences".to_owned(), owner);
    }
    if choices.below(4) == 1 {
        metadata.insert("labels".to_owned(), json!({"app.kubernetes.io/instance": "other", "app": "x"}));
    }
    if choices.below(4) == 1 {
        metadata.insert("creationTimestamp".to_owned(), time(choices));
        metadata.insert("generation".to_owned(), json!(choices.below(3)));
    }
    metadata
}

fn time(choices: &mut Choices<'_>) -> Value {
    choices.one(&[
        json!("2026-01-01T00:00:02Z"),
        json!("2026-01-01T00:00:00Z"),
        json!("2026-01-01T00:00:01Z"),
        json!("2099-01-01T00:00:00Z"),
        json!("1970-01-01T00:00:00Z"),
        json!("never"),
        json!(null),
        json!(7),
    ])
}

fn entry(choices: &mut Choices<'_>, git: &Value, live: &Value) -> Value {
    let manager = choices.one(&[
        "argocd-controller",
        "kube-controller-manager",
        "clusterrole-aggregation-controller",
        "kubectl-client-side-apply",
        "kubectl",
        "helm",
        "before-first-apply",
        "kustomize-controller",
        "helm-controller",
        "team-operator",
        "manager",
        "kube-scheduler",
        "kubelet",
        "system:serviceaccount:kube-system:x",
        "cert-manager-cainjector",
        "vpa-recommender",
        "keda",
        "someone",
        "plumb",
        "",
    ]);
    let fields = fields(choices, git, live);
    let mut entry = json!({"manager": manager, "fieldsType": "FieldsV1", "fieldsV1": fields});
    entry["operation"] = json!(choices.one(&["Apply", "Update", "apply", ""]));
    entry["time"] = time(choices);
    let subresource =
        choices.one(&[None, Some("scale"), Some("status"), Some(""), Some("ephemeralcontainers")]);
    if let Some(subresource) = subresource {
        entry["subresource"] = json!(subresource);
    }
    let version =
        choices.one(&[None, Some("apps/v1"), Some("v1"), Some("example.io/v1"), Some("apps/v1beta2")]);
    if let Some(version) = version {
        entry["apiVersion"] = json!(version);
    }
    entry
}

/// Field sets: all of the live object's, the tops of it, those of Git, or what no field of it is.
fn fields(choices: &mut Choices<'_>, git: &Value, live: &Value) -> Value {
    match choices.below(8) {
        0 => owned(live, usize::MAX),
        6 | 7 => owned(git, usize::MAX),
        1 => owned(live, 1),
        2 => owned(live, 2),
        3 => owned(live, 4),
        4 => json!({".": {}, "f:metadata": {"f:annotations": {".": {}}, "f:labels": {}}}),
        _ => choices.one(&[
            json!({}),
            json!(null),
            json!([]),
            json!({"f:spec": null, "f:rules": {"i:0": {}}, "f:data": "x"}),
            json!({"f:spec": {"f:template": {"f:spec": {"f:containers": {"k:{}": {}, "k:": {}, "v:": {}, "i:-1": {}}}}}}),
        ]),
    }
}

/// The fields of an object in the notation of `fieldsV1`, down to a depth; below it, a field is one value.
fn owned(value: &Value, depth: usize) -> Value {
    let below = |value: &Value| if depth == 0 { json!({}) } else { owned(value, depth - 1) };
    match value {
        Value::Object(map) => map.iter().map(|(name, value)| (format!("f:{name}"), below(value))).collect(),
        Value::Array(items) => items
            .iter()
            .enumerate()
            .map(|(index, item)| match item.get("name") {
                Some(name) => (format!("k:{}", json!({"name": name})), below(item)),
                None => (format!("i:{index}"), below(item)),
            })
            .collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => json!({}),
    }
}

fn annotation(choices: &mut Choices<'_>, live: &Value) -> (String, Value) {
    let last_applied = "kubectl.kubernetes.io/last-applied-configuration";
    let live = live.to_string();
    let all = [
        (last_applied, live.as_str()),
        (last_applied, "{}"),
        (last_applied, "no JSON"),
        ("plumb.dev/last-writer", "2026-01-01T00:00:02Z kube-controller-manager"),
        (
            "plumb.dev/last-writer",
            "2026-01-01T00:00:02Z \"system:kube-controller-manager\" kube-controller-manager",
        ),
        ("plumb.dev/last-writer", "2099-01-01T00:00:02Z \"\" "),
        ("argocd.argoproj.io/compare-options", "IgnoreExtraneous,ServerSideDiff=false"),
        ("argocd.argoproj.io/sync-options", "Prune=false,Replace=true,Force=true"),
        ("argocd.argoproj.io/hook", "PostSync"),
        ("argocd.argoproj.io/hook", "Skip"),
        ("helm.sh/hook", "test"),
        ("argocd.argoproj.io/tracking-id", "other:v1/ConfigMap:n/x"),
        ("argocd.argoproj.io/ignore-healthcheck", "true"),
        ("plumb.dev/pause", "for ever"),
        ("deployment.kubernetes.io/revision", "3"),
    ];
    let (key, text) = choices.one(&all);
    (key.to_owned(), json!(text))
}

fn schemas() -> SchemaSet {
    let text = json!({"type": "string"});
    let kind = |group: &str, version: &str, kind: &str, fields: Value| {
        let mut properties = json!({"apiVersion": text, "kind": text, "metadata": {"type": "object"}});
        if let (Some(properties), Value::Object(fields)) = (properties.as_object_mut(), fields) {
            properties.extend(fields);
        }
        json!({"type": "object", "properties": properties,
            "x-kubernetes-group-version-kind": [{"group": group, "version": version, "kind": kind}]})
    };
    let list = |list_type: &str, item: Value| {
        json!({"type": "array", "x-kubernetes-list-type": list_type, "x-kubernetes-list-map-keys": ["name"],
            "items": {"type": "object", "properties": item}})
    };
    let containers = list("map", json!({"name": text, "image": text}));
    let texts = json!({"type": "array", "items": text, "x-kubernetes-list-type": "atomic"});
    SchemaSet::from_openapi([&json!({"components": {"schemas": {
        "io.k8s.api.apps.v1.Deployment": kind("apps", "v1", "Deployment", json!({"spec": {"type": "object",
            "properties": {"replicas": {"type": "integer"}, "template": {"type": "object", "properties": {
                "spec": {"type": "object", "properties": {"containers": containers}}}}}}})),
        "io.k8s.api.rbac.v1.ClusterRole": kind("rbac.authorization.k8s.io", "v1", "ClusterRole",
            json!({"rules": list("atomic", json!({"verbs": texts, "resources": texts}))})),
        "io.k8s.api.core.v1.ConfigMap": kind("", "v1", "ConfigMap",
            json!({"data": {"type": "object", "additionalProperties": text}})),
        "io.k8s.api.admissionregistration.v1.ValidatingWebhookConfiguration": kind(
            "admissionregistration.k8s.io", "v1", "ValidatingWebhookConfiguration",
            json!({"webhooks": list("map", json!({"name": text, "failurePolicy": text}))})),
        "io.k8s.api.core.v1.ServiceAccount": kind("", "v1", "ServiceAccount",
            json!({"automountServiceAccountToken": {"type": "boolean"}})),
        "example.v1.Thing": kind("example.io", "v1", "Thing",
            json!({"spec": {"type": "object", "properties": {"image": text, "privileged": {"type": "boolean"}}}})),
    }}})])
}
