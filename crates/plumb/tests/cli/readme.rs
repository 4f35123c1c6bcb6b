//! The commands of the README, word for word.

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use plumb_testkit::{objects, programs};
use rcgen::{CertificateParams, KeyPair, PKCS_RSA_SHA256, RsaKeySize};
use serde_json::json;

use crate::bench::Bench;
use crate::shell::words;

const README: &str = include_str!("../../../../README.md");

/// Commands that other tests run, and which.
const ELSEWHERE: &[(&str, &str)] = &[
    ("cargo xtask demo", "`cargo xtask test` runs it twice"),
    ("cargo xtask test", "`.ci/run` is this command"),
    ("cargo install --locked --path crates/plumb", "the plumb of this test was built from that crate"),
    (
        "docker build -f Dockerfile.source",
        "`cargo xtask image --source` runs it where base images can be pulled",
    ),
    ("docker push", "it needs a registry"),
    ("docker run --rm --entrypoint cat", "`cargo xtask image --check` runs the plumb of the image"),
    (
        "helm upgrade --install plumb charts/plumb",
        "`cargo xtask image --check` runs these lines of the README",
    ),
    ("kubectl apply -n argocd -f", "`cargo xtask image --check` runs these lines of the README"),
    ("kubectl -n argocd exec deploy/plumb", "`cargo xtask image --check` runs these lines of the README"),
    ("plumb run --install", "the plumb of this test was started so"),
];
/// The answer of these is "no": a difference counts.
const ANSWER_IS_NO: &[&str] = &["plumb app diff payments", "plumb app diff payments --revision v1.2"];
/// What the machine of a user has, and this test must name.
const MORE_WORDS: &[(&str, &[&str])] = &[("plumb seal", &["--cert", "cert.pem"])];

/// The commands in the blocks of a document, without comments.
fn commands(document: &str) -> Vec<String> {
    let joined = document.replace("\\\n", " ");
    let lines = joined.lines().filter_map(|line| line.strip_prefix("$ "));
    lines.map(|line| line.split(" # ").next().unwrap_or(line).trim().to_owned()).collect()
}

#[tokio::test]
async fn every_command_of_the_readme_works_as_it_stands_there() -> Result<()> {
    let bench = Bench::with_engine().await?;
    let checkout = stage(&bench).await?;
    let all = commands(README);
    ensure!(all.len() > 25, "{all:?}");
    for line in &all {
        if ELSEWHERE.iter().any(|(start, _)| line.starts_with(start)) {
            continue;
        }
        let output = command(&bench, &checkout, line)?.stdin(Stdio::null()).output();
        let output = output.with_context(|| format!("run {line}"))?;
        let expected = i32::from(ANSWER_IS_NO.contains(&line.as_str()));
        let said = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.code() == Some(expected), "{line} ended with {}:\n{said}", output.status);
    }
    for (start, _) in ELSEWHERE {
        ensure!(all.iter().any(|line| line.starts_with(start)), "the README does not say {start} any more");
    }
    // `plumb install --apply` made them for the whole cluster.
    let mut kubectl = Command::new(&programs()?.kubectl);
    kubectl.args(["delete", "--ignore-not-found", "clusterrolebinding/plumb", "clusterrole/plumb"]);
    ensure!(kubectl.arg("--kubeconfig").arg(bench.place.kubeconfig()).status()?.success());
    Ok(())
}

/// The app `payments`, edited in the cluster, and a checkout on a branch with a change.
async fn stage(bench: &Bench) -> Result<std::path::PathBuf> {
    let manifests = |replicas| objects::manifests(&[objects::deployment("web", replicas)]);
    let place = bench.place.name();
    let application = objects::application("payments", &bench.repo.url(), "app", place);
    bench.repo.commit(&[("app/all.yaml", manifests(2)), ("app.yaml", application.to_string())])?;
    bench.repo.tag("v1.2")?;
    bench.repo.commit(&[("app/all.yaml", manifests(3))])?;
    let app = bench.application("payments", |_| {}).await?;
    bench.until(&app, "OutOfSync", "Missing").await?;
    let synced = bench.quietly("plumb app sync payments --timeout 60", &[], "")?;
    ensure!(synced.code == 0, "{}", synced.stderr);
    bench.until(&app, "Synced", "Healthy").await?;
    bench.place.scale_as("kubectl-scale", &objects::deployment("web", 3), 5).await?;
    bench.until(&app, "OutOfSync", "Healthy").await?;
    let report =
        json!({"apiVersion": "plumb.dev/v1alpha1", "kind": "DriftReport", "metadata": {"name": "payments"}});
    bench.place.wait(&report, "tells of the edit", |report| report["summary"]["worst"] == "LiveEdit").await?;
    let checkout = bench.shell.home.path().join("checkout");
    bench.repo.git(&["clone", "--quiet", &bench.repo.url(), &checkout.display().to_string()])?;
    std::fs::write(checkout.join("app/more.yaml"), objects::manifests(&[objects::config_map("more", &[])]))?;
    std::fs::write(checkout.join("password.txt"), "not-so-secret")?;
    let mut certificate = CertificateParams::default();
    certificate.not_before = rcgen::date_time_ymd(2020, 1, 1);
    certificate.not_after = rcgen::date_time_ymd(2200, 1, 1);
    let key = KeyPair::generate_rsa_for(&PKCS_RSA_SHA256, RsaKeySize::_2048)?;
    std::fs::write(checkout.join("cert.pem"), certificate.self_signed(&key)?.pem())?;
    Ok(checkout)
}

/// The line in the checkout. The namespace of this test stands for `argocd`.
fn command(bench: &Bench, checkout: &Path, line: &str) -> Result<Command> {
    let mut command = match line.strip_prefix("kubectl -n argocd ") {
        Some(rest) => {
            let mut kubectl = Command::new(&programs()?.kubectl);
            kubectl.arg("--kubeconfig").arg(bench.place.kubeconfig()).args(["-n", bench.place.name()]);
            kubectl.args(words(rest));
            kubectl
        }
        None => bench.command(line)?,
    };
    for (start, more) in MORE_WORDS {
        if line.starts_with(start) {
            command.args(*more);
        }
    }
    command.current_dir(checkout);
    Ok(command)
}

#[test]
fn lines_are_joined_and_comments_are_left_out() {
    let text = "```console\n$ helm a \\\n    --set b\n$ plumb app list   # all\nNAME\n```\n";
    assert_eq!(commands(text), ["helm a      --set b", "plumb app list"]);
}
