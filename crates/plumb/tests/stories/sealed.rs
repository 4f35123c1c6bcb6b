//! `plumb seal` and the Sealed Secrets controller, the real one: what one seals, the other opens.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use plumb_core::yaml::{Limits, parse_documents};
use plumb_testkit::{SealedSecretsController, another_cluster, objects, wait};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::stage::Stage;

/// Where `plumb seal` finds the controller of the one story.
static KUBECONFIG: OnceLock<PathBuf> = OnceLock::new();

/// What is sealed.
const VALUE: &str = "a secret\nof two lines";

/// A stage whose cluster has the kind. It is not the cluster of the other stories: they have a kind of that name, too.
async fn stage() -> Result<Stage> {
    let cluster = tokio::task::spawn_blocking(another_cluster).await??;
    let stage = Stage::bare_in(cluster).await?;
    let programs = tokio::task::spawn_blocking(SealedSecretsController::programs).await??;
    let text = std::fs::read_to_string(&programs.definition).context("read the definition")?;
    for document in parse_documents(&text, &Limits::default())? {
        stage.place.apply(&document.value).await?;
    }
    // The kind is served a moment after its definition was applied, which no watch tells.
    let served = async || stage.place.list("bitnami.com/v1alpha1", "SealedSecret", "").await.is_ok();
    wait::until_seen(Duration::from_mins(1), "the kind is served", served, |done| *done).await?;
    Ok(stage)
}

/// Runs `plumb seal` against the controller of the stage.
fn run(stage: &Stage, words: &[&str], stdin: &str) -> Result<Output> {
    use std::io::Write as _;
    let place = stage.place.name();
    let mut child = Command::new(env!("CARGO_BIN_EXE_plumb"))
        .args(["seal", "--namespace", place, "--controller-namespace", place, "--kubeconfig"])
        .arg(KUBECONFIG.get().context("the controller runs")?)
        .args(words)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .context("start plumb")?;
    // A command that does not read stdin closes the pipe.
    let _ = child.stdin.take().context("plumb has a stdin")?.write_all(stdin.as_bytes());
    child.wait_with_output().context("wait for plumb")
}

fn seal(stage: &Stage, words: &[&str], stdin: &str) -> Result<String> {
    let output = run(stage, words, stdin)?;
    let talk = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "plumb seal {}: {talk}", words.join(" "));
    ensure!(!talk.contains("two lines"), "plumb seal {}: {talk}", words.join(" "));
    Ok(String::from_utf8(output.stdout)?)
}

/// The certificate of the controller, once it answers.
async fn certificate(stage: &Stage, other_than: &str) -> Result<String> {
    let fetch = async || seal(stage, &["--fetch-cert"], "").unwrap_or_default();
    let is_new = |text: &String| text.contains("BEGIN CERTIFICATE") && text != other_than;
    wait::until_seen(Duration::from_mins(1), "the controller has a certificate", fetch, is_new).await
}

fn read(sealed: &str) -> Result<Value> {
    let mut documents = parse_documents(sealed, &Limits::default())?;
    Ok(documents.pop().context("a document")?.value)
}

fn secret(name: &str) -> String {
    objects::manifests(&[objects::secret(name, &[("password", VALUE)])])
}

/// Applies a `SealedSecret` and waits for the Secret that the controller makes of it.
async fn opened(stage: &Stage, sealed: &Value) -> Result<Value> {
    stage.place.apply(sealed).await?;
    let name = sealed["metadata"]["name"].as_str().context("a name")?;
    let has_value = |live: &Value| live["data"]["password"] == STANDARD.encode(VALUE);
    stage.place.wait(&objects::secret(name, &[]), "is what was sealed", has_value).await
}

/// One story: a second one would remove the kind under the first one's feet.
#[tokio::test]
async fn what_plumb_seals_the_controller_opens() -> Result<()> {
    let mut stage = stage().await?;
    let controller = SealedSecretsController::start(&stage.place)?;
    KUBECONFIG.get_or_init(|| controller.kubeconfig());
    let first = certificate(&stage, "").await?;
    let folder = TempDir::new()?;
    let certificate_file = folder.path().join("cert.pem");
    std::fs::write(&certificate_file, &first)?;

    // Every scope; the second and third may be renamed.
    let strict = seal(&stage, &["-o", "json"], &secret("strict"))?;
    let live = opened(&stage, &read(&strict)?).await?;
    assert_eq!(live["metadata"]["ownerReferences"][0]["kind"], "SealedSecret");
    for scope in ["namespace-wide", "cluster-wide"] {
        let sealed = seal(&stage, &["--scope", scope], &secret(scope))?;
        let mut sealed = read(&sealed)?;
        sealed["metadata"]["name"] = json!(format!("{scope}-renamed"));
        opened(&stage, &sealed).await?;
    }
    // Type and immutability come along, and so do several ways in.
    let typed =
        objects::with(objects::secret("typed", &[("password", VALUE)]), "/type", json!("example.com/own"));
    let typed = objects::with(typed, "/immutable", json!(true));
    let live = opened(&stage, &read(&seal(&stage, &[], &typed.to_string())?)?).await?;
    assert_eq!((&live["type"], &live["immutable"]), (&json!("example.com/own"), &json!(true)));

    // Asked, the controller says which it can open: not a strict one under another name or in another namespace.
    let file = folder.path().join("strict.yaml");
    std::fs::write(&file, file_of(&read(&strict)?))?;
    let path = file.to_str().context("a path")?;
    seal(&stage, &["--validate", path], "")?;
    for renamed in [("/metadata/name", "other"), ("/metadata/namespace", "other")] {
        let moved = objects::with(read(&strict)?, renamed.0, json!(renamed.1));
        let output = run(&stage, &["--validate"], &moved.to_string())?;
        assert_eq!(output.status.code(), Some(1), "{}", String::from_utf8_lossy(&output.stderr));
    }

    // A value in a file with comments, and one for a template.
    let before = std::fs::read_to_string(&file)?;
    std::fs::write(&file, format!("# Keep me.\n{before}"))?;
    let value_file = folder.path().join("more");
    std::fs::write(&value_file, VALUE)?;
    let more = value_file.to_str().context("a path")?;
    seal(&stage, &["--merge-into", path, "--from-file", more], "")?;
    let merged = std::fs::read_to_string(&file)?;
    ensure!(merged.starts_with("# Keep me.\n"), "{merged}");
    stage.place.apply(&read(&merged)?).await?;
    let has_more = |live: &Value| live["data"]["more"] == STANDARD.encode(VALUE);
    stage.place.wait(&objects::secret("strict", &[]), "has the merged value", has_more).await?;
    let raw = seal(&stage, &["--raw", "--name", "raw", "--from-file", more], "")?;
    let raw = objects::custom(
        "bitnami.com",
        "SealedSecret",
        "raw",
        &json!({"encryptedData": {"password": raw.trim()}}),
    );
    opened(&stage, &objects::with(raw, "/apiVersion", json!("bitnami.com/v1alpha1"))).await?;

    of_kubeseal(&stage, &certificate_file)?;
    rotated(&stage, &controller, &first, &file).await?;
    in_waves(&mut stage, controller).await
}

/// A file that a user would write.
fn file_of(object: &Value) -> String {
    objects::manifests(std::slice::from_ref(object))
}

/// What kubeseal seals, plumb validates.
fn of_kubeseal(stage: &Stage, certificate: &Path) -> Result<()> {
    for scope in ["strict", "namespace-wide", "cluster-wide"] {
        let place = ["--namespace", stage.place.name(), "--scope", scope];
        let sealed = SealedSecretsController::kubeseal(certificate, &secret("of-kubeseal"), &place)?;
        seal(stage, &["--validate"], &sealed)?;
        let other = read(&sealed)?;
        let other = objects::with(other, "/metadata/name", json!("other"));
        let renamed = run(stage, &["--validate"], &other.to_string())?;
        assert_eq!(renamed.status.success(), scope != "strict", "{scope}");
    }
    Ok(())
}

/// A new key: what the old one sealed still opens, and can be sealed with the new one.
async fn rotated(
    stage: &Stage,
    controller: &SealedSecretsController,
    first: &str,
    file: &Path,
) -> Result<()> {
    let folder = file.parent().context("a folder")?;
    let others = [templated(stage)?, of_raw_text(stage, &folder.join("more"))?];
    let path_of = |sealed: &Value| -> Result<PathBuf> {
        let name = sealed["metadata"]["name"].as_str().context("a name")?;
        Ok(folder.join(format!("{name}.yaml")))
    };
    for other in &others {
        std::fs::write(path_of(other)?, file_of(other))?;
        opened_as_password(stage, other).await?;
    }
    controller.new_key()?;
    certificate(stage, first).await?;
    let before = std::fs::read_to_string(file)?;
    let path = folder.to_str().context("a path")?;
    seal(stage, &["--validate", path], "")?;
    seal(stage, &["--re-encrypt", path], "")?;
    let after = std::fs::read_to_string(file)?;
    ensure!(after.starts_with("# Keep me.\n") && before != after, "{after}");
    let texts = |text: &str| -> Result<Value> { Ok(read(text)?["spec"]["encryptedData"].clone()) };
    let (old, new) = (texts(&before)?, texts(&after)?);
    for key in ["password", "more"] {
        ensure!(new[key].is_string() && old[key] != new[key], "{key} is what it was");
    }
    seal(stage, &["--validate", path], "")?;
    stage.place.apply(&read(&after)?).await?;
    opened(stage, &read(&after)?).await?;
    for other in &others {
        let sealed = read(&std::fs::read_to_string(path_of(other)?)?)?;
        ensure!(sealed["spec"]["encryptedData"] != other["spec"]["encryptedData"], "{sealed}");
        ensure!(sealed["spec"]["template"] == other["spec"]["template"], "{sealed}");
        opened_as_password(stage, &sealed).await?;
    }
    Ok(())
}

/// A template under the name of its own value.
fn templated(stage: &Stage) -> Result<Value> {
    let mut sealed = read(&seal(stage, &[], &secret("templated"))?)?;
    sealed["spec"]["template"]["data"] = json!({"password": "pw={{ .password }}"});
    Ok(sealed)
}

/// What users write around the output of `--raw`: the scope is named outside of the template only.
fn of_raw_text(stage: &Stage, value: &Path) -> Result<Value> {
    let value = value.to_str().context("a path")?;
    let text = seal(stage, &["--raw", "--scope", "cluster-wide", "--from-file", value], "")?;
    Ok(json!({
        "apiVersion": "bitnami.com/v1alpha1", "kind": "SealedSecret",
        "metadata": {
            "name": "of-raw-text", "namespace": stage.place.name(),
            "annotations": {"sealedsecrets.bitnami.com/cluster-wide": "true"},
        },
        "spec": {"encryptedData": {"password": text.trim()}},
    }))
}

/// Applies a `SealedSecret` as a new one, and waits for what its template makes of the value.
async fn opened_as_password(stage: &Stage, sealed: &Value) -> Result<()> {
    let name = sealed["metadata"]["name"].as_str().context("a name")?;
    let secret = objects::secret(name, &[]);
    if stage.place.get(&secret).await?.is_some() {
        stage.place.delete(&secret).await?;
    }
    stage.place.apply(sealed).await?;
    let template = sealed["spec"]["template"]["data"]["password"].is_string();
    let expected = if template { format!("pw={VALUE}") } else { VALUE.to_owned() };
    let has_value = |live: &Value| live["data"]["password"] == STANDARD.encode(&expected);
    stage.place.wait(&secret, "is what was sealed", has_value).await?;
    Ok(())
}

/// A `SealedSecret` in Git, and a Deployment of the next wave that waits for its Secret.
async fn in_waves(stage: &mut Stage, controller: SealedSecretsController) -> Result<()> {
    let sealed = seal(stage, &[], &secret("db"))?;
    // Nobody opens it until the story says so.
    drop(controller);
    stage.begin().await?;
    let mut web = objects::annotated(objects::deployment("web", 1), "argocd.argoproj.io/sync-wave", "1");
    web["spec"]["template"]["spec"]["containers"][0]["envFrom"] = json!([{"secretRef": {"name": "db"}}]);
    stage
        .repo
        .commit(&[("app/sealed.yaml", sealed), ("app/web.yaml", objects::manifests(&[web.clone()]))])?;
    let app =
        stage.application("sealed-shop", |app| app["spec"]["syncPolicy"] = json!({"automated": {}})).await?;
    let waits = |live: &Value| {
        let message = live["status"]["operationState"]["message"].as_str().unwrap_or_default();
        live["status"]["operationState"]["phase"] == "Running" && message.contains("SealedSecret/db")
    };
    stage.place.wait(&app, "waits for the SealedSecret", waits).await?;
    ensure!(stage.place.get(&web).await?.is_none(), "the next wave did not wait");

    let _controller = SealedSecretsController::start(&stage.place)?;
    stage.until_sync(&app, "Synced").await?;
    let is_well = |live: &Value| live["status"]["health"]["status"] == "Healthy";
    let live = stage.place.wait(&app, "is Healthy", is_well).await?;
    let said = live.to_string() + &stage.log()?;
    ensure!(!said.contains("two lines") && !said.contains(&STANDARD.encode(VALUE)), "the value is told");
    let made = stage.place.get(&objects::secret("db", &[])).await?.context("the Secret")?;
    let deployed = stage.place.get(&web).await?.context("the Deployment")?;
    let created =
        |live: &Value| live["metadata"]["creationTimestamp"].as_str().unwrap_or_default().to_owned();
    ensure!(created(&made) <= created(&deployed), "{} after {}", created(&made), created(&deployed));
    Ok(())
}
