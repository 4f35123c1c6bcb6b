//! The real `argocd` program, unmodified, against plumb's API.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use plumb_testkit::objects;
use serde_json::json;

use crate::server::initial_password;
use crate::stage::Stage;

/// The program, as a user who has logged in.
struct Argocd {
    program: OsString,
    config: PathBuf,
    flags: Vec<String>,
}

impl Argocd {
    /// Runs a command, which must succeed, and returns what it says.
    fn run(&self, words: &[&str]) -> Result<String> {
        let output = Command::new(&self.program)
            .arg("--config")
            .arg(&self.config)
            .args(words)
            .args(&self.flags)
            .output()?;
        let said =
            format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        ensure!(output.status.success(), "argocd {words:?} {:?}: {}\n{said}", self.flags, output.status);
        Ok(said)
    }

    /// Runs a command and looks for a text in what it says.
    fn says(&self, words: &[&str], text: &str) -> Result<()> {
        let said = self.run(words)?;
        ensure!(said.contains(text), "argocd {words:?} does not say {text:?}: {said}");
        Ok(())
    }
}

/// A stage with plumb's API, and the program logged in as admin. `PLUMB_ARGOCD` names the program; `tools/argocd` pins
/// it, see its README.
#[expect(clippy::disallowed_methods, reason = "where the program is, is chosen outside")]
async fn logged_in(flags: &[&str], server_flags: &[&str]) -> Result<(Stage, Argocd, String)> {
    let program = std::env::var_os("PLUMB_ARGOCD").context("PLUMB_ARGOCD must name the argocd program")?;
    let mut stage = Stage::bare().await?;
    stage.serves = true;
    stage.arguments = server_flags.iter().map(|flag| (*flag).to_owned()).collect();
    let deployed = objects::manifests(&[objects::config_map("settings", &[("a", "b")])]);
    stage.repo.commit(&[("shop/all.yaml", deployed)])?;
    // Other stories have an app of this name on the same cluster.
    let namespace = stage.place.name().to_owned();
    stage.setting("argocd-cm", "installationID", &namespace).await?;
    stage.begin().await?;
    let address = stage.address("webhooks").await?.to_string();
    let password = initial_password(&stage).await?;
    let flags = flags.iter().map(|flag| (*flag).to_owned()).collect();
    let argocd = Argocd { program, config: stage.cache().join("argocd.config"), flags };
    argocd.run(&["login", &address, "--username", "admin", "--password", &password])?;
    let url = stage.repo.url();
    let create = ["app", "create", "shop", "--repo", &url, "--path", "shop", "--dest-namespace", &namespace];
    argocd.run(&[&create[..], &["--dest-server", "https://kubernetes.default.svc"]].concat())?;
    Ok((stage, argocd, address))
}

#[tokio::test]
#[ignore = "needs the argocd program, which takes minutes to build: set PLUMB_ARGOCD"]
async fn the_daily_commands_work_over_all_transports() -> Result<()> {
    for (flags, server_flags) in [
        (&["--insecure"][..], &[][..]),
        (&["--insecure", "--grpc-web"], &[]),
        (&["--plaintext"], &["--insecure"]),
        (&["--plaintext", "--grpc-web"], &["--insecure"]),
    ] {
        let (_stage, argocd, address) = logged_in(flags, server_flags).await?;
        argocd.says(&["app", "sync", "shop"], "Succeeded")?;
        argocd.says(&["app", "list"], "Synced")?;
        argocd.says(&["app", "resources", "shop"], "settings")?;
        argocd.run(&["app", "diff", "shop"])?;
        argocd.run(&["app", "wait", "shop", "--timeout", "60"])?;
        argocd.run(&["app", "history", "shop"])?;
        argocd.run(&["app", "rollback", "shop", "0"])?;
        argocd.says(&["app", "manifests", "shop"], "settings")?;
        argocd.run(&["proj", "create", "team", "--src", "*"])?;
        argocd.run(&["proj", "role", "create", "team", "dev"])?;
        argocd.says(&["proj", "role", "create-token", "team", "dev"], "eyJ")?;
        argocd.run(&["proj", "delete", "team"])?;
        argocd.says(&["cluster", "list"], "in-cluster")?;
        argocd.says(&["account", "can-i", "sync", "applications", "*/*"], "yes")?;
        argocd.run(&["app", "delete", "shop", "--yes", "--wait"])?;
        argocd.run(&["logout", &address])?;
    }
    Ok(())
}

#[tokio::test]
#[ignore = "needs the argocd program, which takes minutes to build: set PLUMB_ARGOCD"]
async fn apps_are_changed_and_looked_into() -> Result<()> {
    let (stage, argocd, _) = logged_in(&["--plaintext"], &["--insecure"]).await?;
    let namespace = stage.place.name().to_owned();
    argocd.says(&["app", "sync", "shop"], "Succeeded")?;
    argocd.says(&["app", "get", "shop", "-o", "tree"], "settings")?;
    argocd.says(&["app", "get", "shop", "--refresh"], "Synced")?;
    argocd.says(&["app", "get", "shop", "--hard-refresh"], "Synced")?;
    argocd.run(&["app", "set", "shop", "--sync-option", "CreateNamespace=true"])?;
    argocd.run(&[
        "app",
        "patch",
        "shop",
        "--type",
        "merge",
        "--patch",
        "{\"metadata\":{\"labels\":{\"a\":\"b\"}}}",
    ])?;
    argocd.says(&["app", "list", "-l", "a=b", "-o", "name"], "shop")?;
    argocd.says(&["app", "manifests", "shop", "--source", "live"], "settings")?;
    let object = ["--kind", "ConfigMap", "--resource-name", "settings"];
    argocd.says(&[&["app", "get-resource", "shop"][..], &object[..]].concat(), "settings")?;
    argocd.run(&[&["app", "actions", "list", "shop"][..], &object[..]].concat())?;
    let patch = ["--patch", "{\"data\":{\"a\":\"c\"}}", "--patch-type", "application/merge-patch+json"];
    argocd.run(
        &[&["app", "patch-resource", "shop", "--namespace", &namespace][..], &object[..], &patch[..]]
            .concat(),
    )?;
    let differs = argocd.run(&["app", "diff", "shop", "--refresh"]);
    ensure!(differs.is_err_and(|error| error.to_string().contains("a: c")), "the edit is a difference");
    argocd
        .run(&[&["app", "delete-resource", "shop", "--namespace", &namespace][..], &object[..]].concat())?;
    argocd.run(&["app", "sync", "shop", "--server-side"])?;
    let there = argocd.run(&["app", "diff", "shop", "--server-side-diff"])?;
    ensure!(!there.contains("ConfigMap"), "{there}");
    Ok(())
}

#[tokio::test]
#[ignore = "needs the argocd program, which takes minutes to build: set PLUMB_ARGOCD"]
async fn settings_are_changed() -> Result<()> {
    let (stage, argocd, _) = logged_in(&["--plaintext"], &["--insecure"]).await?;
    let url = stage.repo.url();
    argocd.run(&["repo", "add", &url])?;
    argocd.says(&["repo", "list"], &url)?;
    argocd.run(&["repo", "rm", &url])?;
    let missing = argocd.run(&["repo", "add", &format!("{url}-missing")]);
    ensure!(missing.is_err(), "a repository that does not exist is refused");
    argocd.run(&["repocreds", "add", "https://example.com", "--username", "u", "--password", "p"])?;
    argocd.says(&["repocreds", "list"], "example.com")?;
    argocd.run(&["repocreds", "rm", "https://example.com"])?;
    let hosts = stage.cache().join("hosts");
    std::fs::write(&hosts, format!("git.example.com ssh-ed25519 {}\n", host_key()))?;
    argocd.run(&["cert", "add-ssh", "--from", &hosts.to_string_lossy(), "--batch"])?;
    argocd.says(&["cert", "list"], "git.example.com")?;
    argocd.run(&["cert", "rm", "git.example.com"])?;
    let key = stage.cache().join("key.asc");
    std::fs::write(&key, public_key())?;
    argocd.says(&["gpg", "add", "--from", &key.to_string_lossy()], "Created")?;
    argocd.says(&["gpg", "list"], "RSA2048")?;
    argocd.says(&["account", "list"], "admin")?;
    argocd.says(&["account", "get-user-info"], "admin")?;
    argocd.says(&["cluster", "get", "in-cluster"], "kubernetes.default.svc")?;
    argocd.run(&["cluster", "set", "in-cluster", "--name", "in-cluster", "--label", "tier=home"])?;
    argocd.says(&["cluster", "get", "in-cluster"], "tier")?;
    argocd.run(&[
        "proj",
        "windows",
        "add",
        "default",
        "--kind",
        "allow",
        "--schedule",
        "* * * * *",
        "--duration",
        "1h",
        "--applications",
        "*",
    ])?;
    argocd.says(&["proj", "windows", "list", "default"], "allow")?;
    Ok(())
}

/// The key of an SSH server, as `known_hosts` has it.
fn host_key() -> String {
    let mut bytes = vec![0, 0, 0, 11];
    bytes.extend(b"ssh-ed25519");
    bytes.extend([0, 0, 0, 32]);
    bytes.extend([7; 32]);
    STANDARD.encode(bytes)
}

/// A public key that no one can sign with.
fn public_key() -> String {
    let mut bytes = vec![0xc6, 16, 4, 0, 0, 0, 1, 1, 8, 0];
    bytes.extend([0xff; 8]);
    bytes.extend([0xcd, 3]);
    bytes.extend(b"Ann");
    format!(
        "-----BEGIN PGP PUBLIC KEY BLOCK-----\n\n{}\n-----END PGP PUBLIC KEY BLOCK-----\n",
        STANDARD.encode(bytes)
    )
}

#[tokio::test]
#[ignore = "needs the argocd program, which takes minutes to build: set PLUMB_ARGOCD"]
async fn sets_are_created_and_deleted() -> Result<()> {
    let (stage, argocd, _) = logged_in(&["--plaintext"], &["--insecure"]).await?;
    let set = json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "ApplicationSet", "metadata": {"name": "teams"},
        "spec": {
            "generators": [{"list": {"elements": [{"name": "one"}]}}],
            "template": {"metadata": {"name": "{{name}}"}, "spec": {
                "project": "default",
                "source": {"repoURL": stage.repo.url(), "path": "shop", "targetRevision": "HEAD"},
                "destination": {"server": "https://kubernetes.default.svc", "namespace": stage.place.name()},
            }},
        },
    });
    let file = stage.cache().join("set.yaml");
    std::fs::write(&file, set.to_string())?;
    let file = file.to_string_lossy().into_owned();
    argocd.says(&["appset", "generate", &file], "one")?;
    argocd.says(&["appset", "create", &file], "created")?;
    argocd.says(&["appset", "list"], "teams")?;
    argocd.says(&["appset", "get", "teams"], "teams")?;
    argocd.says(&["appset", "delete", "teams", "--yes"], "deleted")?;
    Ok(())
}
