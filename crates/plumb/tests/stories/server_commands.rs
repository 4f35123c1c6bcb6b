//! plumb's commands through the server say what they say with the kubeconfig.

use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

use crate::server::{admin, served};
use crate::stage::Stage;

/// A user without credentials of the cluster.
struct Remote {
    address: String,
    token: String,
}

impl Remote {
    /// Runs a command: what it prints, and whether it succeeded.
    fn try_run(&self, words: &[&str]) -> Result<(String, String, bool)> {
        let output = Command::new(env!("CARGO_BIN_EXE_plumb"))
            .args(words)
            .args(["--server", &self.address, "--auth-token", &self.token, "--plaintext"])
            // No kubeconfig: whatever needs one fails.
            .env("KUBECONFIG", "/nonexistent/kubeconfig")
            .env("HOME", "/nonexistent")
            .stdin(Stdio::null())
            .output()
            .context("run plumb")?;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Ok((text(&output.stdout), text(&output.stderr), output.status.success()))
    }

    fn run(&self, words: &[&str]) -> Result<String> {
        let (out, talk, succeeded) = self.try_run(words)?;
        ensure!(succeeded, "plumb {words:?}: {out}{talk}");
        Ok(out)
    }
}

/// Runs a command both ways and compares what it prints.
fn same(stage: &Stage, remote: &Remote, words: &[&str]) -> Result<String> {
    let (here, there) = (stage.plumb(words)?, remote.run(words)?);
    ensure!(here == there, "plumb {words:?}\n--- kubeconfig\n{here}\n--- server\n{there}");
    Ok(there)
}

#[tokio::test]
async fn commands_say_the_same_through_the_server() -> Result<()> {
    let stage = served().await?;
    let user = admin(&stage).await?;
    let remote = Remote { address: user.address.to_string(), token: user.token };
    let (url, namespace) = (stage.repo.url(), stage.place.name().to_owned());
    let server = "https://kubernetes.default.svc";
    let create = ["app", "create", "shop", "--repo", &url, "--path", "app", "--dest-server", server];
    let said = remote.run(&[&create[..], &["--dest-namespace", &namespace]].concat())?;
    ensure!(said.contains("application 'shop' created"), "{said}");
    let said = remote.run(&["app", "sync", "shop"])?;
    ensure!(said.contains("Succeeded"), "{said}");
    remote.run(&["app", "wait", "shop", "--timeout", "60"])?;
    // In these commands --namespace is that of the object.
    let shop = format!("{namespace}/shop");
    for words in [
        &["app", "list"][..],
        &["app", "list", "-o", "name"],
        &["app", "get", "shop"],
        &["app", "get", "shop", "-o", "tree"],
        &["app", "get", "shop", "-o", "json"],
        &["app", "get", "shop", "--refresh"],
        &["app", "history", "shop"],
        &["app", "resources", "shop"],
        &["app", "manifests", "shop"],
        &["app", "manifests", "shop", "--source", "live"],
        &["app", "diff", "shop"],
        &["app", "get-resource", &shop, "--kind", "ConfigMap", "--resource-name", "settings"],
        &["app", "actions", "list", &shop, "--kind", "ConfigMap"],
        &["proj", "list"],
        &["proj", "get", "default"],
        &["cluster", "list", "-o", "server"],
        &["cluster", "get", "in-cluster"],
        &["repo", "list"],
        &["repocreds", "list"],
        &["cert", "list"],
        &["gpg", "list"],
    ] {
        same(&stage, &remote, words)?;
    }
    changes(&stage, &remote)?;
    registrations(&stage, &remote)?;
    // What the server refuses is said as such.
    let stranger = Remote { token: String::new(), ..remote };
    let (_, talk, succeeded) = stranger.try_run(&["app", "list"])?;
    ensure!(!succeeded && talk.contains("plumb login"), "{talk}");
    Ok(())
}

fn changes(stage: &Stage, remote: &Remote) -> Result<()> {
    remote.run(&["app", "set", "shop", "--sync-option", "CreateNamespace=true"])?;
    remote.run(&[
        "app",
        "patch",
        "shop",
        "--type",
        "merge",
        "--patch",
        r#"{"metadata":{"labels":{"a":"b"}}}"#,
    ])?;
    same(stage, remote, &["app", "list", "-l", "a=b"])?;
    let patch = r#"{"data":{"a":"c"}}"#;
    let resource = ["--kind", "ConfigMap", "--resource-name", "settings"];
    let words = ["app", "patch-resource", "shop", "--patch-type", "application/merge-patch+json"];
    remote.run(&[&words[..], &["--patch", patch], &resource].concat())?;
    remote.run(&[&["app", "delete-resource", "shop", "--yes"][..], &resource].concat())?;
    remote.run(&["app", "sync", "shop"])?;
    remote.run(&["app", "rollback", "shop"])?;
    ensure!(remote.try_run(&["app", "terminate-op", "shop"])?.1.contains("no operation"), "nothing runs");
    remote.run(&["proj", "create", "team", "--src", "*", "--dest", "*,*"])?;
    remote.run(&["proj", "role", "create", "team", "ci"])?;
    remote.run(&["proj", "role", "add-policy", "team", "ci", "--action", "sync", "--object", "*"])?;
    let token = remote.run(&["proj", "role", "create-token", "team", "ci", "--token-only"])?;
    ensure!(token.starts_with("eyJ"), "{token}");
    let here = stage.plumb(&["proj", "role", "create-token", "team", "ci", "--token-only"])?;
    ensure!(here.starts_with("eyJ"), "{here}");
    let of_role = Remote { address: remote.address.clone(), token: here.trim().to_owned() };
    ensure!(of_role.run(&["account", "can-i", "sync", "applications", "team/x"])?.trim() == "yes");
    let tokens = same(stage, remote, &["proj", "role", "list-tokens", "team", "ci", "--unixtime"])?;
    ensure!(tokens.lines().count() == 3, "{tokens}");
    let id = tokens.lines().nth(1).and_then(|line| line.split_whitespace().next()).context("no token")?;
    remote.run(&["proj", "role", "delete-token", "team", "ci", id])?;
    same(stage, remote, &["proj", "role", "get", "team", "ci"])?;
    same(stage, remote, &["proj", "get", "team"])?;
    remote.run(&["proj", "delete", "team"])?;
    remote.run(&["app", "delete", "shop", "--yes", "--wait"])?;
    Ok(())
}

fn registrations(stage: &Stage, remote: &Remote) -> Result<()> {
    let url = "https://git.example.com/x.git";
    remote.run(&["repo", "add", url, "--username", "u", "--password", "p"])?;
    let listed = same(stage, remote, &["repo", "list"])?;
    ensure!(listed.contains(url), "{listed}");
    remote.run(&["repo", "rm", url])?;
    // The same handlers answer with the kubeconfig.
    let all = "https://git.example.com/team/";
    stage.plumb(&["repocreds", "add", all, "--username", "u", "--password", "p"])?;
    ensure!(remote.try_run(&["repocreds", "add", all, "--username", "u"])?.1.contains("upsert"), "it exists");
    same(stage, remote, &["repocreds", "list"])?;
    remote.run(&["repocreds", "rm", all])?;
    let file = stage.cache().join("known_hosts");
    std::fs::write(
        &file,
        "git.example.com ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f\n",
    )?;
    let file = file.to_string_lossy().into_owned();
    stage.plumb(&["cert", "add-ssh", "--batch", "--from", &file])?;
    let listed = same(stage, remote, &["cert", "list", "--cert-type", "ssh"])?;
    ensure!(listed.contains("git.example.com"), "{listed}");
    let removed = remote.run(&["cert", "rm", "git.example.com"])?;
    ensure!(removed.contains("Removed cert for 'git.example.com'"), "{removed}");
    Ok(())
}
