//! Reading an Application, a project, a setting or a Secret with any content returns a value or an error, and never
//! panics.

mod check;

use check::{any_bytes, read_application, read_project, read_secret, read_settings};
use plumb_crd::settings::SecretData;
use plumb_crd::{ApplicationSet, DriftReport};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

/// Texts with a meaning for some field, and texts without one.
fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        any::<String>(),
        "[\\PC]{0,40}",
        proptest::sample::select(vec![
            "",
            " ",
            "\0",
            "\u{fffd}",
            "../..",
            "/",
            "--upload-pack=x",
            "ext::sh -c x",
            "https://",
            "git@:",
            "{{",
            "[",
            "*",
            "!*",
            "/(/",
            "{a,b",
            "* * * * *",
            "61 25 * * 8",
            "1h",
            "99999999999999999999h",
            "-5m",
            "P1D",
            "true",
            "null",
            "0x",
            "9223372036854775808",
            "2026-13-45T99:99:99Z",
            "Mars/Olympus",
            ".[",
            "del(.x)",
            "/a~2b",
            "Prune=",
            "a=b=c",
            "&a [*a]",
            "<<: *x",
            "!!python/object:x",
            "- - - -",
            "\t:",
            "---\n---",
            "key: {",
            "%YAML 9.9",
        ])
        .prop_map(str::to_owned),
    ]
}

/// Any JSON, small but deep.
fn soup() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        text().prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 40, 5, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            proptest::collection::btree_map(text(), inner, 0..5)
                .prop_map(|map| Value::Object(map.into_iter().collect::<Map<_, _>>())),
        ]
    })
}

/// An object that fills every part, to be spoilt in one place.
fn application() -> Value {
    json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
        "metadata": {"name": "web", "namespace": "argocd", "uid": "u", "generation": 1, "resourceVersion": "1",
            "finalizers": ["resources-finalizer.argocd.argoproj.io"], "labels": {"a": "b"},
            "annotations": {"argocd.argoproj.io/refresh": "normal", "argocd.argoproj.io/compare-options": "Strict=true",
                "argocd.argoproj.io/skip-reconcile": "false", "plumb.dev/pause": "{\"reason\":\"x\",\"until\":\"2026-11-16T00:00:00Z\"}",
                "argocd.argoproj.io/deletion-approved": "2026-11-16T00:00:00Z"}},
        "spec": {"project": "default", "revisionHistoryLimit": 3, "info": [{"name": "a", "value": "b"}],
            "destination": {"server": "https://kubernetes.default.svc", "namespace": "web"},
            "sources": [{"repoURL": "https://git.example.com/a.git", "path": "a", "targetRevision": "v1.*", "tagPrefix": "x-", "ref": "r",
                "helm": {"valueFiles": ["$r/a.yaml"], "valuesObject": {"a": 1}, "values": "a: 1", "parameters": [{"name": "a", "value": "b"}],
                    "fileParameters": [{"name": "a", "path": "b"}], "apiVersions": ["v1"], "version": "v3"}},
                {"repoURL": "b", "path": "b", "kustomize": {"images": ["a=b:c"], "replicas": [{"name": "a", "count": "1"}],
                    "patches": [{"patch": "x", "target": {"kind": "A"}, "options": {"allowNameChange": true}}], "commonLabels": {"a": "b"}}},
                {"repoURL": "c", "path": "c", "directory": {"recurse": true, "include": "*.yaml", "jsonnet": {"extVars": [{"name": "a", "value": "b"}], "libs": ["x"]}}},
                {"repoURL": "d", "path": "d", "plugin": {"name": "p", "env": [{"name": "a", "value": "b"}], "parameters": [{"name": "a", "array": []}]}}],
            "syncPolicy": {"automated": {"prune": true, "selfHeal": true}, "syncOptions": ["CreateNamespace=true"],
                "retry": {"limit": 3, "backoff": {"duration": "5s", "factor": 2, "maxDuration": "3m"}, "refresh": true},
                "managedNamespaceMetadata": {"labels": {"a": "b"}}},
            "ignoreDifferences": [{"group": "apps", "kind": "*", "jsonPointers": ["/spec/replicas"], "jqPathExpressions": [".spec"], "managedFieldsManagers": ["m"]}]},
        "operation": {"sync": {"revision": "x", "prune": true, "resources": [{"kind": "Pod", "name": "a"}], "manifests": ["{}"], "syncStrategy": {"hook": {"force": true}}},
            "initiatedBy": {"username": "u"}, "retry": {"limit": 1}, "info": [{"name": "a", "value": "b"}]},
        "status": {"sync": {"status": "Synced", "comparedTo": {"destination": {}}}, "health": {"status": "Healthy"}, "conditions": [{"type": "a", "message": "b"}],
            "history": [{"id": 1, "deployedAt": "2026-11-16T00:00:00Z", "revision": "x"}], "resources": [{"kind": "Pod", "name": "a", "syncWave": 1}],
            "operationState": {"operation": {}, "phase": "Running", "startedAt": "2026-11-16T00:00:00Z", "syncResult": {"revision": "x", "resources": []}}},
    })
}

fn project() -> Value {
    json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "AppProject", "metadata": {"name": "team", "namespace": "argocd"},
        "spec": {"sourceRepos": ["*", "!x"], "destinations": [{"server": "*", "namespace": "*"}], "sourceNamespaces": ["a*", "/b.*/"],
            "clusterResourceWhitelist": [{"group": "*", "kind": "*"}], "namespaceResourceBlacklist": [{"group": "", "kind": "Secret"}],
            "orphanedResources": {"warn": true, "ignore": [{"group": "a", "kind": "b", "name": "c*"}]},
            "syncWindows": [{"kind": "deny", "schedule": "0 22 * * *", "duration": "1h", "timeZone": "Europe/Berlin", "applications": ["*"]}],
            "destinationServiceAccounts": [{"server": "*", "namespace": "*", "defaultServiceAccount": "a:b"}],
            "roles": [{"name": "r", "policies": ["p, proj:team:r, applications, get, team/*, allow"]}]},
    })
}

/// Every place of a value, as JSON pointers.
fn places(value: &Value, at: &str, all: &mut Vec<String>) {
    let escape = |key: &str| key.replace('~', "~0").replace('/', "~1");
    match value {
        Value::Object(map) => map.iter().for_each(|(key, inner)| {
            let place = format!("{at}/{}", escape(key));
            all.push(place.clone());
            places(inner, &place, all);
        }),
        Value::Array(list) => list.iter().enumerate().for_each(|(index, inner)| {
            let place = format!("{at}/{index}");
            all.push(place.clone());
            places(inner, &place, all);
        }),
        _ => {}
    }
}

fn spoilt(whole: &Value, at: usize, with: Value) -> Value {
    let mut all = Vec::new();
    places(whole, "", &mut all);
    let mut spoilt = whole.clone();
    if let Some(place) = spoilt.pointer_mut(&all[at % all.len()]) {
        *place = with;
    }
    spoilt
}

/// The keys of both `ConfigMaps` with structured values.
const KEYS: [&str; 19] = [
    "resource.exclusions",
    "resource.inclusions",
    "resource.customizations",
    "resource.customizations.health.apps_Deployment",
    "resource.customizations.ignoreDifferences.all",
    "resource.customizations.ignoreResourceUpdates.all",
    "resource.customizations.knownTypeFields.a_B",
    "resource.customizations.soup",
    "resource.compareoptions",
    "globalProjects",
    "timeout.reconciliation",
    "application.resourceTrackingMethod",
    "webhook.maxPayloadSizeMB",
    "kustomize.buildOptions.x",
    "application.namespaces",
    "controller.sync.timeout.seconds",
    "controller.self.heal.backoff.timeout.seconds",
    "controller.self.heal.timeout.seconds",
    "reposerver.max.combined.directory.manifests.size",
];

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn applications(object in soup(), spec in soup(), at in any::<usize>(), with in soup()) {
        read_application(&object);
        read_application(&json!({"metadata": {"name": "a", "namespace": "b"}, "spec": spec}));
        read_application(&spoilt(&application(), at, with));
    }

    #[test]
    fn projects_and_the_other_kinds(object in soup(), spec in soup(), at in any::<usize>(), with in soup()) {
        read_project(&object);
        read_project(&json!({"metadata": {"name": "a"}, "spec": spec}));
        read_project(&spoilt(&project(), at, with));
        let _ = ApplicationSet::from_json(&object);
        let _ = DriftReport::from_json(&object);
    }

    #[test]
    fn any_text(text in text()) {
        any_bytes(text.as_bytes());
    }

    #[test]
    fn settings(values in proptest::collection::vec(text(), KEYS.len()), more in soup()) {
        let config: Map<String, Value> =
            KEYS.iter().zip(&values).map(|(key, value)| ((*key).to_owned(), json!(value))).collect();
        read_settings(&Value::Object(config));
        // JSON is YAML: the structured settings also get structures.
        let config: Map<String, Value> = KEYS.iter().map(|key| ((*key).to_owned(), more.clone())).collect();
        read_settings(&Value::Object(config));
    }

    #[test]
    fn secrets(object in soup(), values in proptest::collection::btree_map("(url|type|name|project|username|password|sshPrivateKey|insecure|proxy|server|config|depth|githubAppID|webhook.github.secret)", text(), 0..10)) {
        any_bytes(object.to_string().as_bytes());
        let metadata = plumb_crd::Metadata::default();
        let values = values.into_iter().map(|(key, value)| (key, plumb_crd::settings::SecretText::new(value))).collect();
        let secret = SecretData::new(metadata, values);
        read_secret(&secret);
    }
}
