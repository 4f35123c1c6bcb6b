//! Values of Secrets leave plumb in one direction only: to the API server, in the Secret itself. One story takes
//! them through everything that talks, and reads all of it.

use anyhow::{Result, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use plumb_testkit::objects::{self, Trouble};
use serde_json::{Value, json};

use crate::stage::Stage;

/// Each canary sings where it got out.
const CANARIES: [&str; 9] = [
    "kestrel-in-string-data",
    "plover-in-base64",
    "wagtail-in-hex",
    "siskin-edited-by-hand",
    "dunlin-in-last-applied",
    "merlin-refused-by-the-server",
    "linnet-in-helm-values",
    "pipit-in-the-env-of-a-hook",
    "wryneck-pruned",
];

fn hex(text: &str) -> String {
    text.bytes().fold(String::new(), |hex, byte| format!("{hex}{byte:02x}"))
}

/// The canary's name in every dress; the first six letters are enough to know it, wherever a text is cut.
fn dresses(canary: &str) -> Vec<String> {
    let head: String = canary.chars().take(6).collect();
    vec![head.clone(), STANDARD.encode(&head), hex(&head), STANDARD.encode(hex(&head))]
}

fn check(place: &str, said: &str) -> Result<()> {
    for canary in CANARIES {
        for dress in dresses(canary) {
            if let Some(at) = said.find(&dress) {
                let around: String = said.chars().skip(at.saturating_sub(200)).take(500).collect();
                anyhow::bail!("{canary} ({dress}) got out in {place}: … {around} …");
            }
        }
    }
    Ok(())
}

/// All Secrets of the story, in Git.
fn secrets() -> Vec<(&'static str, Value)> {
    let opaque = |name: &str, data: Value| json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "data": data});
    vec![
        ("app/plain.yaml", objects::secret("plain", &[("password", CANARIES[0])])),
        ("app/encoded.yaml", opaque("encoded", json!({"password": STANDARD.encode(CANARIES[1])}))),
        ("app/hex.yaml", objects::secret("hex", &[("key", &hex(CANARIES[2]))])),
        ("app/edited.yaml", objects::secret("edited", &[("password", "before")])),
        ("app/adopted.yaml", opaque("adopted", json!({"password": STANDARD.encode("other")}))),
        ("app/pruned.yaml", objects::secret("pruned", &[("password", CANARIES[8])])),
    ]
}

/// A Secret whose chart takes the value from a file.
fn chart() -> Vec<(&'static str, String)> {
    let template = "apiVersion: v1\nkind: Secret\nmetadata: {name: charted}\nstringData: {password: {{ .Values.password }}, random: {{ randAlphaNum 8 | quote }}}\n";
    vec![
        ("chart/Chart.yaml", "apiVersion: v2\nname: charted\nversion: 1.0.0\n".to_owned()),
        ("chart/values.yaml", format!("password: {}\n", CANARIES[6])),
        ("chart/templates/secret.yaml", template.to_owned()),
    ]
}

async fn everything_said(stage: &Stage) -> Result<Vec<(String, String)>> {
    let mut said = vec![("the log".to_owned(), stage.log()?)];
    for (version, kind) in [
        ("argoproj.io/v1alpha1", "Application"),
        ("plumb.dev/v1alpha1", "DriftReport"),
        ("v1", "Event"),
        ("v1", "ConfigMap"),
        ("coordination.k8s.io/v1", "Lease"),
    ] {
        for (name, mut object) in stage.place.list(version, kind, "").await? {
            // What the user wrote is the user's: the spec, and the copy of it that a status keeps.
            if kind == "Application"
                && let Some(application) = object.as_object_mut()
            {
                application.remove("spec");
            }
            said.push((format!("{kind} {name}"), object.to_string()));
        }
    }
    // There `--namespace` is the object's.
    let all = format!("{}/all", stage.place.name());
    let commands: [&[&str]; 17] = [
        &["drift"],
        &["drift", "-o", "json"],
        &["app", "diff", "all"],
        &["app", "diff", "all", "--all"],
        &["app", "diff", "charted", "--all"],
        &["app", "diff", "refused", "--all"],
        &["app", "diff", "all", "--revision", "HEAD"],
        &["app", "manifests", "all"],
        &["app", "manifests", "all", "--source", "live"],
        &["app", "manifests", "charted"],
        &["app", "get-resource", &all, "--kind", "Secret", "--resource-name", "edited"],
        &["app", "get-resource", &all, "--kind", "Secret", "--show-managed-fields", "-o", "json"],
        &["app", "get", "all"],
        &["app", "get", "refused", "-o", "json"],
        &["app", "resources", "all"],
        &["app", "history", "all"],
        &["undo", "list"],
    ];
    for words in commands {
        said.push((format!("plumb {}", words.join(" ")), stage.plumb_says(words)?));
    }
    let list = stage.plumb_says(&["undo", "list", "all"])?;
    for id in list.lines().skip(1).filter_map(|line| line.split_whitespace().next()) {
        said.push((format!("plumb undo show {id}"), stage.plumb_says(&["undo", "show", id])?));
        said.push((format!("plumb undo restore {id}"), stage.plumb_says(&["undo", "restore", id])?));
    }
    Ok(said)
}

#[tokio::test]
async fn no_value_of_a_secret_is_ever_said() -> Result<()> {
    let mut stage = Stage::bare().await?;
    stage.arguments.push("--log-level=debug".to_owned());
    stage.begin().await?;
    // A bootstrap script left a copy of the values in an annotation.
    let last_applied = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "adopted"},
        "data": {"password": STANDARD.encode(CANARIES[4])}});
    let annotation = "kubectl.kubernetes.io/last-applied-configuration";
    let adopted = objects::annotated(last_applied.clone(), annotation, &last_applied.to_string());
    stage.place.apply_as("kubectl", &adopted).await?;

    let mut hook = objects::troubled(objects::job("migrate"), Trouble::Fail);
    hook["spec"]["template"]["spec"]["containers"][0]["env"] =
        json!([{"name": "PASSWORD", "value": CANARIES[7]}]);
    let hook = objects::annotated(hook, "argocd.argoproj.io/hook", "PostSync");
    // The server quotes what it does not like.
    let refused = [
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "nested"}, "data": {"a": {"b": CANARIES[5]}}}),
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "unencoded"}, "data": {"a": CANARIES[5]}}),
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "docker"}, "type": "kubernetes.io/dockerconfigjson",
            "stringData": {".dockerconfigjson": CANARIES[5]}}),
    ];
    let mut files: Vec<(&str, String)> =
        secrets().into_iter().map(|(path, secret)| (path, objects::manifests(&[secret]))).collect();
    files.extend(chart());
    files.push(("refused/secrets.yaml", objects::manifests(&refused)));
    files.push(("hooked/hook.yaml", objects::manifests(&[hook, objects::config_map("beside", &[])])));
    stage.repo.commit(&files)?;
    let automated = |path: &'static str| {
        move |app: &mut Value| {
            app["spec"]["source"]["path"] = json!(path);
            app["spec"]["syncPolicy"] = json!({"automated": {"prune": true}, "retry": {"limit": 0}});
        }
    };
    let all = stage.application("all", automated("app")).await?;
    let charted = stage.application("charted", automated("chart")).await?;
    let refused = stage.application("refused", automated("refused")).await?;
    let hooked = stage.application("hooked", automated("hooked")).await?;
    stage.until_sync(&all, "Synced").await?;
    stage.until_sync(&charted, "Synced").await?;
    let has_failed = |app: &Value| app["status"]["operationState"]["phase"] == "Failed";
    stage.place.wait(&refused, "has failed", has_failed).await?;
    stage.place.wait(&hooked, "has failed", has_failed).await?;

    stage.repo.remove(&["app/pruned.yaml"])?;
    stage.refresh(&all).await?;
    stage.place.wait_gone(&objects::secret("pruned", &[])).await?;
    let is_over = |app: &Value| app["operation"].is_null() && app["status"]["sync"]["status"] == "Synced";
    stage.place.wait(&all, "is through with the deletion", is_over).await?;
    let edited = objects::secret("edited", &[]);
    let patch = json!({"stringData": {"password": CANARIES[3]}});
    stage.place.patch_as("kubectl-edit", &edited, &patch).await?;
    stage.until_sync(&all, "OutOfSync").await?;
    stage.finding(&all, "Secret", "edited", "LiveEdit").await?;
    stage.refresh_hard(&charted).await?;

    let said = everything_said(&stage).await?;
    for (place, said) in &said {
        check(place, said)?;
    }
    // The commands did say something, and the canaries are where they belong.
    let by = |command: &str| said.iter().find(|(place, _)| place == command).map(|(_, said)| said.as_str());
    ensure!(
        by("plumb app diff all").is_some_and(|said| said.contains("LiveEdit")),
        "{:?}",
        by("plumb app diff all")
    );
    ensure!(by("plumb app manifests all").is_some_and(|said| said.contains("kind: Secret")));
    let is_shown = |(place, said): &(String, String)| place.contains("get-resource") && said.contains("++++");
    ensure!(said.iter().filter(|said| is_shown(said)).count() == 2, "get-resource shows nothing");
    ensure!(
        said.iter().any(|(place, said)| place.contains("undo restore") && said.contains("restored")),
        "nothing was undone"
    );
    let live = stage.place.get(&edited).await?.unwrap_or_default();
    assert_eq!(live["data"]["password"], STANDARD.encode(CANARIES[3]));
    Ok(())
}
