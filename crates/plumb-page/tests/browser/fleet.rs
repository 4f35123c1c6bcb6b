//! The apps that the tests show: one of each trouble, and thousands that are fine.

use jiff::{SignedDuration, Timestamp};
use plumb_crd::{Application, DriftReport};
use serde_json::{Value, json};

/// How many apps there are.
pub(crate) const N_APPS: usize = 10_000;
/// A text that must never become part of the document.
pub(crate) const HOSTILE: &str = "<img src=x onerror=alert(1)>";
/// How many pods a Deployment of the large apps has.
const PODS: usize = 8;

/// An app with its report.
pub(crate) struct Specimen {
    pub(crate) app: Application,
    pub(crate) report: Option<DriftReport>,
}

/// The time on the server. It stands still, so that a picture of a screen is the same tomorrow.
pub(crate) fn now() -> Timestamp {
    Timestamp::from_second(1_794_712_332).unwrap_or_default()
}

fn ago(minutes: i64) -> String {
    now().saturating_sub(SignedDuration::from_mins(minutes)).unwrap_or_default().to_string()
}

/// A plain app. Its values look like those of real fleets: names, projects, clusters, labels.
pub(crate) fn app(name: &str, health: &str, message: &str) -> Application {
    let n = name.bytes().fold(7_usize, |sum, byte| (sum * 31 + usize::from(byte)) % 9973);
    let cluster = ["prod-eu", "prod-us", "stage"].get(n % 3).copied().unwrap_or_default();
    let project = ["shop", "infra", "data", "web"].get(n % 4).copied().unwrap_or_default();
    let value = json!({
        "metadata": {"name": name, "namespace": "argocd", "uid": name, "resourceVersion": (n + message.len()).to_string(),
                     "labels": {"team": format!("team-{}", n % 40), "tier": n % 4}},
        "spec": {"project": project, "destination": {"name": cluster, "namespace": format!("{name}-ns")},
                 "syncPolicy": {"automated": {"selfHeal": n.is_multiple_of(2)}},
                 "source": {"repoURL": format!("https://git.example/team-{}/deploy.git", n % 40), "targetRevision": "main"}},
        "status": {"sync": {"status": "Synced", "revision": format!("{:07x}c1aa0", n * 26_843)},
                   "health": {"status": health, "message": message, "lastTransitionTime": "2026-11-01T00:00:00Z"}},
    });
    Application::from_json(&with_text_labels(value)).unwrap_or_default()
}

/// The report of an app in which somebody changed one value.
pub(crate) fn report_of(name: &str) -> DriftReport {
    let edited =
        finding("ConfigMap", name, "LiveEdit", true, &json!({"fields": ["/data/level"], "actor": "mallory"}));
    let report = json!({
        "metadata": {"name": name, "namespace": "argocd", "resourceVersion": "10"},
        "summary": {"counted": 1, "explained": 0, "worst": ""}, "findings": [edited], "health": []});
    DriftReport::from_json(&report).unwrap_or_default()
}

/// Labels are texts.
fn with_text_labels(mut app: Value) -> Value {
    if let Some(labels) = app.pointer_mut("/metadata/labels").and_then(Value::as_object_mut) {
        for value in labels.values_mut() {
            *value = json!(value.as_str().map_or_else(|| value.to_string(), str::to_owned));
        }
    }
    app
}

struct Draft {
    name: &'static str,
    spec: Value,
    status: Value,
    annotations: Value,
    report: Value,
}

fn specimen(draft: Draft) -> Specimen {
    let Draft { name, spec, status, annotations, report } = draft;
    let mut whole = json!({
        "metadata": {"name": name, "namespace": "argocd", "uid": name, "resourceVersion": "5", "annotations": annotations,
                     "creationTimestamp": ago(60 * 24 * 90), "labels": {"team": "payments"}},
        "spec": {"project": "shop", "destination": {"name": "prod-eu", "namespace": "pay"},
                 "syncPolicy": {"automated": {"selfHeal": true}},
                 "source": {"repoURL": "https://git.example/shop/deploy.git", "path": format!("apps/{name}"), "targetRevision": "main"}},
        "status": {"sync": {"status": "Synced", "revision": "3f2c9d1aa0bb4c1d"}, "health": {"status": "Healthy"},
                   "reconciledAt": ago(1),
                   "history": [{"id": 7, "revision": "3f2c9d1aa0bb4c1d", "deployedAt": ago(31), "deployStartedAt": ago(31), "initiatedBy": {"automated": true}},
                               {"id": 6, "revision": "77aa01e2bc55d101", "deployedAt": ago(1500), "deployStartedAt": ago(1500), "initiatedBy": {"username": "bob"}}]},
    });
    for (place, values) in [("spec", spec), ("status", status)] {
        for (key, value) in values.as_object().into_iter().flatten() {
            whole[place][key] = value.clone();
        }
    }
    let report = (!report.is_null()).then(|| {
        let findings = report["findings"].as_array().cloned().unwrap_or_default();
        let counted = findings.iter().filter(|finding| finding["counts"] == true).count();
        let whole = json!({
            "metadata": {"name": name, "namespace": "argocd", "resourceVersion": "9"},
            "summary": {"counted": counted, "explained": findings.len() - counted, "worst": ""},
            "findings": findings, "health": report["health"].as_array().cloned().unwrap_or_default(),
            "pauses": report["pauses"].as_array().cloned().unwrap_or_default(),
            "recent": report["recent"].as_array().cloned().unwrap_or_default(),
        });
        DriftReport::from_json(&whole).ok()
    });
    Specimen { app: Application::from_json(&whole).unwrap_or_default(), report: report.flatten() }
}

fn object(kind: &str, name: &str, status: &str) -> Value {
    let group = if matches!(kind, "Deployment" | "ReplicaSet") { "apps" } else { "" };
    json!({"group": group, "version": "v1", "kind": kind, "namespace": "pay", "name": name, "status": status,
           "health": {"status": "Healthy"}})
}

fn finding(kind: &str, name: &str, class: &str, counts: bool, more: &Value) -> Value {
    let mut finding = object(kind, name, "");
    for (key, value) in [
        ("class", json!(class)),
        ("counts", json!(counts)),
        ("since", json!(ago(11))),
        ("rule", json!("a-rule")),
    ] {
        finding[key] = value;
    }
    for (key, value) in more.as_object().into_iter().flatten() {
        finding[key] = value.clone();
    }
    finding
}

fn drifted() -> Specimen {
    specimen(Draft {
        name: "payments",
        spec: json!({}),
        status: json!({"sync": {"status": "OutOfSync", "revision": "3f2c9d1aa0bb4c1d"}, "resources": [
            object("Deployment", "payments", "OutOfSync"), object("Service", "payments", "Synced"),
            object("ConfigMap", "payments", "Synced"), object("Secret", "keys", "OutOfSync")],
            "summary": {"externalURLs": ["https://payments.example"]}}),
        annotations: json!({}),
        report: json!({
            "findings": [
                finding("Deployment", "payments", "LiveEdit", true, &json!({
                    "fields": ["/spec/replicas"], "actor": "alice (kubectl-scale)",
                    "evidence": ["Git says 3, the cluster has 10", "field manager kubectl-scale wrote it"],
                    "fix": {"kind": "sync", "text": "sync to go back to 3, or commit 10"}})),
                finding("Secret", "keys", "LiveEdit", true, &json!({
                    "fields": ["/data/password"], "evidence": ["the value differs; it is not shown"],
                    "fix": {"kind": "sync", "text": "sync to apply the value of Git"}})),
                finding("Deployment", "payments", "SchemaDefault", false, &json!({
                    "fields": ["/spec/progressDeadlineSeconds"], "evidence": ["the API server fills it in"],
                    "fix": {"kind": "none", "text": ""}})),
            ],
            "recent": [
                {"at": ago(12), "what": "sync", "over": true, "text": "healed: successfully synced", "actor": "plumb"},
                {"at": ago(12), "what": "drift", "over": true, "class": "LiveEdit", "group": "apps", "kind": "Deployment",
                 "namespace": "pay", "name": "payments", "text": "LiveEdit Deployment payments is gone"},
                {"at": ago(13), "what": "drift", "class": "LiveEdit", "group": "apps", "kind": "Deployment", "namespace": "pay",
                 "name": "payments", "text": "LiveEdit Deployment payments /spec/replicas", "actor": "alice (kubectl-scale)"},
                {"at": ago(300), "what": "health", "over": true, "group": "apps", "kind": "Deployment", "namespace": "pay",
                 "name": "payments", "text": "Deployment payments is no longer Degraded"},
            ],
        }),
    })
}

fn crashing() -> Specimen {
    let since = ago(21 * 24 * 60);
    specimen(Draft {
        name: "argo-rollouts",
        spec: json!({"project": "infra"}),
        status: json!({"health": {"status": "Progressing", "lastTransitionTime": since},
                       "resources": [object("Deployment", "argo-rollouts", "Synced")]}),
        annotations: json!({}),
        report: json!({"findings": [], "health": [{
            "group": "apps", "kind": "Deployment", "namespace": "pay", "name": "argo-rollouts", "status": "Progressing",
            "stuck": true, "since": since, "message": "container main keeps crashing: 1154 restarts, exit code 1 (CrashLoopBackOff)",
            "causes": ["Deployment argo-rollouts has 0 of 1 replicas", "Pod argo-rollouts-6b4c4dfbd9-ghl9c is not ready",
                       "level=fatal msg=\"Failed to download plugins: response code Not Found\""]}]}),
    })
}

fn waiting() -> Specimen {
    let entry = |kind: &str, name: &str, phase: &str, status: &str, message: &str| {
        json!({"group": if kind == "Job" { "batch" } else { "" }, "version": "v1", "kind": kind, "namespace": "pay", "name": name, "status": status,
               "message": message, "syncPhase": phase, "hookPhase": if status.is_empty() { "Running" } else { "Succeeded" }})
    };
    specimen(Draft {
        name: "web",
        spec: json!({}),
        status: json!({
            "sync": {"status": "OutOfSync", "revision": "9f31c0a77"}, "health": {"status": "Progressing"},
            "resources": [object("ConfigMap", "web", "Synced"), {"group": "batch", "version": "v1", "kind": "Job", "namespace": "pay",
                "name": "migrate", "status": "Synced", "syncWave": 1, "health": {"status": "Progressing", "message": "pod migrate-x2x: ImagePullBackOff"}},
                {"group": "apps", "version": "v1", "kind": "Deployment", "namespace": "pay", "name": "web", "status": "OutOfSync", "syncWave": 2}],
            "operationState": {"phase": "Running", "startedAt": ago(8), "message": "wave 1 waits for Job pay/migrate: pod migrate-x2x: ImagePullBackOff",
                "operation": {"sync": {"revision": "9f31c0a77"}, "initiatedBy": {"automated": true}},
                "syncResult": {"revision": "9f31c0a77", "resources": [
                    entry("ConfigMap", "web", "Sync", "Synced", "configmap/web created"),
                    entry("Job", "migrate", "Sync", "", "waits: pod migrate-x2x: ImagePullBackOff registry/migrate:1.9")]}},
        }),
        annotations: json!({}),
        report: json!({"findings": [finding("Deployment", "web", "Behind", true, &json!({
            "evidence": ["commit 9f31c0a changed it"], "fix": {"kind": "sync", "text": "sync"}}))]}),
    })
}

fn orphaned() -> Specimen {
    let orphan = |kind: &str, name: &str, used: &str| {
        finding(
            kind,
            name,
            "Orphan",
            true,
            &json!({
            "since": ago(40 * 24 * 60), "evidence": ["it left Git with 77aa01e", used], "fix": {"kind": "prune", "text": "prune it, or put it back"}}),
        )
    };
    specimen(Draft {
        name: "infisical",
        spec: json!({"project": "infra", "syncPolicy": {}}),
        status: json!({"sync": {"status": "OutOfSync", "revision": "77aa01e2b"}, "resources": [
            {"version": "v1", "kind": "Service", "namespace": "pay", "name": "redis", "status": "OutOfSync", "requiresPruning": true},
            {"version": "v1", "kind": "ServiceAccount", "namespace": "pay", "name": "mongodb", "status": "OutOfSync", "requiresPruning": true},
            {"version": "v1", "kind": "PersistentVolumeClaim", "namespace": "pay", "name": "data", "status": "OutOfSync", "requiresPruning": true,
             "requiresDeletionConfirmation": true}]}),
        annotations: json!({}),
        report: json!({"findings": [
            orphan("Service", "redis", "Deployment pay/web uses it"), orphan("ServiceAccount", "mongodb", "nothing that plumb can see uses it"),
            orphan("PersistentVolumeClaim", "data", "nothing that plumb can see uses it")]}),
    })
}

fn paused() -> Specimen {
    let until = ago(-6);
    specimen(Draft {
        name: "vault",
        spec: json!({}),
        status: json!({"summary": {"externalURLs": [
            "Wiki|https://wiki.example/vault", "http://2001:db8::1/x", "https://<host>/", "http://[2001:db8::1]/x"]}}),
        annotations: json!({"plumb.dev/pause": json!({"until": until, "by": "bob", "reason": "restore drill"}).to_string()}),
        report: Value::Null,
    })
}

fn unexplained() -> Specimen {
    specimen(Draft {
        name: "tekton-extras",
        spec: json!({"syncPolicy": {}}),
        status: json!({"sync": {"status": "OutOfSync", "revision": "77aa01e2b"}, "resources": [object("ConfigMap", "pipeline", "OutOfSync")]}),
        annotations: json!({}),
        report: json!({"findings": [finding("ConfigMap", "pipeline", "Unexplained", true, &json!({
            "fields": ["/data/a"], "evidence": ["no rule explains it"], "fix": {"kind": "decide", "text": "look at the difference"}}))]}),
    })
}

fn broken() -> Specimen {
    specimen(Draft {
        name: "ingress",
        spec: json!({}),
        status: json!({"sync": {"status": "Unknown"}, "health": {"status": "Unknown"}, "conditions": [
            {"type": "ComparisonError", "message": "cannot render apps/ingress: values.yaml:12: mapping values are not allowed here",
             "lastTransitionTime": ago(180)}]}),
        annotations: json!({}),
        report: Value::Null,
    })
}

fn explained(name: &'static str) -> Specimen {
    let patch = format!(
        "# JSON patch of the document at line 1 of apps/{name}/a.yaml\n- {{\"op\":\"remove\",\"path\":\"/spec/syncPolicy/automated/prune\"}}\n"
    );
    specimen(Draft {
        name,
        spec: json!({}),
        status: json!({"resources": [object("ConfigMap", name, "Synced")]}),
        annotations: json!({}),
        report: json!({"findings": [
            finding("ExternalSecret", name, "SchemaDefault", false, &json!({"fields": ["/spec/target/deletionPolicy"],
                "evidence": ["the definition of the kind fills it in"], "fix": {"kind": "none", "text": "nothing; or pin it in Git"}})),
            finding("Application", name, "PhantomDefault", false, &json!({"fields": ["/spec/syncPolicy/automated/prune"],
                "evidence": ["a typed client drops it"], "fix": {"kind": "edit-git", "text": "drop the line", "patch": patch}}))]}),
    })
}

fn deployment_name(n: usize) -> String {
    format!("service-{n:03}")
}

/// An app with this many objects in all, pods included; every fiftieth Deployment is ill.
fn large(name: &'static str, n_objects: usize) -> Specimen {
    let n = n_objects / (PODS + 2);
    let resource = |n: usize| {
        let mut resource = object("Deployment", &deployment_name(n), "Synced");
        if n.is_multiple_of(50) {
            resource["health"] = json!({"status": "Degraded", "message": "0 of 8 replicas are available"});
        }
        resource
    };
    let resources: Vec<Value> = (0..n).map(resource).collect();
    specimen(Draft {
        name,
        spec: json!({}),
        status: json!({"resources": resources}),
        annotations: json!({}),
        report: Value::Null,
    })
}

/// What the objects of an app own, as the call of the API answers.
pub(crate) fn tree(app: &Application) -> Value {
    let mut nodes = Vec::new();
    let node = |group: &str, kind: &str, name: &str, parent: Option<&str>| {
        json!({"group": group, "version": "v1", "kind": kind, "namespace": "pay", "name": name, "uid": format!("{kind}-{name}"),
               "createdAt": "2026-09-01T00:00:00Z", "health": {"status": "Healthy"},
               "parentRefs": parent.map(|uid| vec![json!({"uid": uid})]).unwrap_or_default()})
    };
    for resource in &app.status.resources {
        nodes.push(node(&resource.group, &resource.kind, &resource.name, None));
        if resource.kind != "Deployment" {
            continue;
        }
        let set = format!("{}-7d4f9", resource.name);
        nodes.push(node("apps", "ReplicaSet", &set, Some(&format!("Deployment-{}", resource.name))));
        for pod in 0..PODS {
            nodes.push(node("", "Pod", &format!("{set}-{pod}"), Some(&format!("ReplicaSet-{set}"))));
        }
    }
    json!({"nodes": nodes})
}

/// All specimens.
pub(crate) fn specimens() -> Vec<Specimen> {
    let hostile = {
        let report = json!({
            "metadata": {"name": "app-3", "namespace": "argocd"},
            "summary": {"counted": 0, "explained": 0, "worst": ""}, "findings": [],
            "health": [{"group": "apps", "kind": "Deployment", "namespace": "pay", "name": HOSTILE, "status": "Progressing",
                        "stuck": true, "message": HOSTILE, "since": "2026-11-01T00:00:00Z"}],
        });
        Specimen { app: app("app-3", "Degraded", HOSTILE), report: DriftReport::from_json(&report).ok() }
    };
    let mut all =
        vec![hostile, drifted(), crashing(), waiting(), orphaned(), paused(), unexplained(), broken()];
    all.extend([large("five-hundred", 500), large("five-thousand", 5_000)]);
    all.extend(["grafana", "gitea", "paperclip", "agents", "tekton"].map(explained));
    all
}
