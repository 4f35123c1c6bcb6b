//! Byte soup in Applications, projects, settings and Secrets: who is poisoned says so, everybody else is served.

use anyhow::Result;
use plumb_testkit::git::GitRepo;
use plumb_testkit::objects;
use serde_json::{Value, json};

use crate::stage::Stage;

const SOUP: &str = "\u{fffd}{{[\t:'\"\\../--x\u{7}\u{202e}";

type Spoil = fn(&mut Value);

/// Applications that the API server takes and plumb cannot make sense of; each must end with a condition.
const REFUSED: [(&str, Spoil); 9] = [
    ("program", |app| app["spec"]["source"]["repoURL"] = json!("ext::sh -c touch% /tmp/plumb-was-here")),
    ("outside", |app| app["spec"]["source"]["path"] = json!("../../../../etc")),
    ("option", |app| {
        app["spec"]["source"]["targetRevision"] = json!("--upload-pack=touch /tmp/plumb-was-here");
    }),
    ("nowhere", |app| app["spec"]["destination"] = json!({"server": "http://[::1", "name": SOUP})),
    ("stranger", |app| app["spec"]["project"] = json!(SOUP)),
    ("spoilt", |app| app["spec"]["project"] = json!("soup")),
    ("jq", |app| {
        app["spec"]["ignoreDifferences"] = json!([{"group": "*", "kind": "*", "jqPathExpressions": [".[", "def f: f; f"], "jsonPointers": ["x"]}]);
    }),
    ("values", |app| app["spec"]["source"]["helm"] = json!({"values": SOUP, "version": "v9"})),
    ("both", |app| {
        app["spec"]["source"]["kustomize"] = json!({"namePrefix": "x"});
        app["spec"]["source"]["helm"] = json!({"releaseName": "y"});
    }),
];

/// Applications in which the soup stands where it harms nobody, not even themselves.
const HARMLESS: [(&str, Spoil); 3] = [
    ("notes", |app| {
        let keys = [
            "sync-options",
            "compare-options",
            "sync-wave",
            "hook",
            "deletion-approved",
            "manifest-generate-paths",
            "tracking-id",
            "refresh",
            "refresh-timestamp",
            "skip-reconcile",
            "client-side-apply-migration-manager",
        ];
        let mut annotations: serde_json::Map<String, Value> =
            keys.iter().map(|key| (format!("argocd.argoproj.io/{key}"), json!(SOUP))).collect();
        annotations.insert("plumb.dev/pause".to_owned(), json!(SOUP));
        annotations.insert("link.argocd.argoproj.io/x".to_owned(), json!("javascript:alert(1)"));
        app["metadata"]["annotations"] = Value::Object(annotations);
    }),
    ("retry", |app| {
        app["spec"]["syncPolicy"] =
            json!({"syncOptions": [SOUP, "=", "Prune="], "retry": {"limit": -9_223_372_036_854_775_808_i64}});
    }),
    ("info", |app| app["spec"]["info"] = json!([{"name": SOUP, "value": SOUP}])),
];

#[tokio::test]
async fn soup_poisons_only_whom_it_stands_in() -> Result<()> {
    let stage = Stage::set().await?;
    let map = |value: &str| objects::manifests(&[objects::config_map("good", &[("a", value)])]);
    let other = objects::manifests(&[objects::config_map("other", &[("a", "1")])]).into_bytes();
    stage.repo.commit(&[
        ("app/map.yaml", map("1").into_bytes()),
        ("other/map.yaml", other),
        ("soup/x.yaml", b"apiVersion: v1\nkind: \xff\xfe\0{{".to_vec()),
    ])?;

    let soup_project = objects::with(
        objects::app_project("soup"),
        "/spec",
        json!({
            "sourceRepos": ["!{", "["],
            "destinations": [{"server": "[", "namespace": "{"}],
            "syncWindows": [{"kind": "banana", "schedule": "61 * *", "duration": "x", "timeZone": "Mars/Olympus", "applications": ["["]}],
            "roles": [{"name": SOUP, "policies": [SOUP]}],
        }),
    );
    stage.place.apply(&soup_project).await?;
    let settings = [
        "resource.exclusions",
        "resource.inclusions",
        "resource.customizations",
        "resource.compareoptions",
        "resource.customizations.health.apps_Deployment",
        "resource.customizations.soup",
        "globalProjects",
        "timeout.reconciliation",
        "application.resourceTrackingMethod",
        "webhook.maxPayloadSizeMB",
    ];
    let settings: Vec<(&str, &str)> = settings.iter().map(|key| (*key, SOUP)).collect();
    stage.place.apply(&objects::config_map("argocd-cm", &settings)).await?;
    stage
        .place
        .apply(&objects::config_map(
            "argocd-cmd-params-cm",
            &[("controller.sync.timeout.seconds", SOUP), ("application.namespaces", "/(/")],
        ))
        .await?;
    for (name, kind) in
        [("repo-soup", "repository"), ("creds-soup", "repo-creds"), ("cluster-soup", "cluster")]
    {
        let secret = objects::secret(
            name,
            &[
                ("url", SOUP),
                ("type", SOUP),
                ("insecure", SOUP),
                ("server", SOUP),
                ("config", SOUP),
                ("sshPrivateKey", SOUP),
            ],
        );
        stage.place.apply(&objects::labelled(secret, "argocd.argoproj.io/secret-type", kind)).await?;
    }

    // The Secret of this very repository, and one that is not even text.
    let elsewhere = GitRepo::new()?;
    elsewhere.commit(&[("app/map.yaml", objects::manifests(&[objects::config_map("elsewhere", &[])]))])?;
    let secrets = [
        objects::secret("its-soup", &[("url", &elsewhere.url()), ("insecure", SOUP), ("type", "git")]),
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "bytes"},
               "data": {"url": "//79/P8=", "password": "AAECgP8=", "sshPrivateKey": ""}}),
    ];
    for secret in secrets {
        stage.place.apply(&objects::labelled(secret, "argocd.argoproj.io/secret-type", "repository")).await?;
    }

    let poisoned = async |name: &str, spoil: Spoil| {
        let spoil = |app: &mut Value| {
            app["spec"]["source"]["path"] = json!("other");
            spoil(app);
        };
        stage.application(name, spoil).await
    };
    let mut refused = Vec::new();
    for (name, spoil) in REFUSED {
        refused.push(poisoned(name, spoil).await?);
    }
    refused.push(stage.application("rendered", |app| app["spec"]["source"]["path"] = json!("soup")).await?);
    let its_secret = stage
        .application("its-secret", |app| app["spec"]["source"]["repoURL"] = json!(elsewhere.url()))
        .await?;
    refused.push(its_secret.clone());
    let mut harmless = Vec::new();
    for (name, spoil) in HARMLESS {
        harmless.push(poisoned(name, spoil).await?);
    }
    let good = stage
        .application("good", |app| app["spec"]["syncPolicy"] = json!({"automated": {"selfHeal": true}}))
        .await?;
    stage.until_sync(&good, "Synced").await?;

    let is_told = |app: &Value| {
        let conditions = app["status"]["conditions"].as_array();
        conditions.is_some_and(|list| {
            list.iter().any(|entry| entry["type"].as_str().is_some_and(|kind| kind.ends_with("Error")))
        })
    };
    for app in &refused {
        stage.place.wait(app, "says what is wrong with it", is_told).await?;
    }
    for app in &harmless {
        stage.place.wait(app, "is compared", |app| app["status"]["sync"]["status"].is_string()).await?;
    }
    assert!(!std::path::Path::new("/tmp/plumb-was-here").exists());
    let told = stage.place.get(&its_secret).await?.unwrap_or_default()["status"]["conditions"].to_string();
    assert!(told.contains("its-soup") && told.contains("insecure"), "it says which Secret and key: {told}");

    // Beside all of them, a new commit still comes and a live edit still goes.
    let second = stage.repo.commit(&[("app/map.yaml", map("2"))])?;
    stage.refresh(&good).await?;
    stage
        .place
        .wait(&good, "follows Git", |app| {
            app["status"]["sync"]["revision"] == second.as_str()
                && app["status"]["sync"]["status"] == "Synced"
        })
        .await?;
    let live = objects::config_map("good", &[]);
    stage.place.patch_as("kubectl-edit", &live, &json!({"data": {"a": "edited"}})).await?;
    stage.place.wait(&live, "is put back", |map| map["data"]["a"] == "2").await?;
    Ok(())
}

#[tokio::test]
async fn an_operation_that_nobody_can_carry_out_ends_and_a_wrong_app_can_be_deleted() -> Result<()> {
    let stage = Stage::set().await?;
    let map = objects::config_map("kept-out", &[("a", "1")]);
    stage.repo.commit(&[("app/map.yaml", objects::manifests(std::slice::from_ref(&map)))])?;
    let finalizer = json!(["resources-finalizer.argocd.argoproj.io"]);
    let app = stage
        .application("wrong", |app| {
            app["metadata"]["finalizers"] = finalizer.clone();
            app["spec"]["syncPolicy"] = json!({"automated": {}});
        })
        .await?;
    stage.until_sync(&app, "Synced").await?;
    let ended =
        |app: &Value| app["operation"].is_null() && app["status"]["operationState"]["phase"] == "Error";
    // The operation is wrong, or asks for nothing, or the spec is wrong.
    let by = json!({"username": "somebody"});
    for operation in [
        json!({"initiatedBy": by, "retry": {"limit": 1, "backoff": {"duration": "banana"}}, "sync": {}}),
        json!({"initiatedBy": by}),
    ] {
        stage.place.patch_as("somebody", &app, &json!({"operation": operation})).await?;
        let after = stage.place.wait(&app, "says that it cannot be done", ended).await?;
        assert!(after["status"]["operationState"]["message"].as_str().is_some_and(|text| !text.is_empty()));
        let sync = json!({"operation": {"initiatedBy": by, "sync": {}}});
        stage.place.patch_as("somebody", &app, &sync).await?;
        let synced = |app: &Value| {
            app["operation"].is_null() && app["status"]["operationState"]["phase"] == "Succeeded"
        };
        stage.place.wait(&app, "goes on with the next", synced).await?;
    }
    let spoilt = json!({"spec": {"syncPolicy": {"retry": {"backoff": {"duration": "banana"}}}},
        "operation": {"initiatedBy": by, "sync": {}}});
    stage.place.patch_as("somebody", &app, &spoilt).await?;
    stage.place.wait(&app, "ends what cannot go on", ended).await?;

    stage.place.delete(&app).await?;
    stage.place.wait_gone(&app).await?;
    assert!(stage.place.get(&map).await?.is_none(), "its objects went with it");

    // Nobody can say where its objects are.
    let nowhere = stage
        .application("nowhere", |app| {
            app["metadata"]["finalizers"] = finalizer.clone();
            app["spec"]["destination"]["name"] = json!("in-cluster");
        })
        .await?;
    stage.until_sync(&nowhere, "Unknown").await?;
    stage.place.delete(&nowhere).await?;
    stage.place.wait_gone(&nowhere).await?;
    Ok(())
}
