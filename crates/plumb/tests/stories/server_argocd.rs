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
            // `app edit` and `proj edit` change nothing.
            .env("EDITOR", "true")
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
    let settings = [("installationID", namespace.as_str()), ("accounts.robot", "apiKey, login")];
    let settings =
        objects::labelled(objects::config_map("argocd-cm", &settings), "app.kubernetes.io/part-of", "argocd");
    stage.place.apply(&settings).await?;
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

/// What a command must do.
enum Must {
    /// Succeed.
    Work,
    /// Succeed, and say this.
    Say(&'static str),
    /// Fail, and say this.
    Refuse(&'static str),
}

use Must::{Refuse, Say, Work};

/// The commands of a day in their order. `$URL`, `$NAMESPACE`, `$FILES` and `$PASSWORD` stand for values of the stage.
const COMMANDS: &[(&str, Must)] = &[
    ("version", Say("argocd-server")),
    ("app sync shop", Say("Succeeded")),
    ("app list", Say("Synced")),
    ("app list -p default -o name", Say("shop")),
    ("app list -p other -o name", Work),
    ("app get shop", Say("Synced")),
    ("app get shop -o tree", Say("settings")),
    ("app get shop --hard-refresh", Say("Synced")),
    ("app resources shop", Say("settings")),
    ("app diff shop", Work),
    ("app diff shop --revision HEAD", Work),
    ("app wait shop --timeout 60", Work),
    ("app history shop", Work),
    ("app rollback shop 0", Work),
    ("app manifests shop", Say("settings")),
    ("app manifests shop --revision HEAD", Say("settings")),
    ("app manifests shop --source live", Say("settings")),
    ("app set shop --sync-option CreateNamespace=true", Work),
    ("app unset shop --ref", Work),
    ("app edit shop", Work),
    ("app patch shop --type merge --patch {\"metadata\":{\"labels\":{\"a\":\"b\"}}}", Work),
    ("app list -l a=b -o name", Say("shop")),
    ("app sync shop --revision HEAD", Say("Succeeded")),
    ("app sync -l a=b", Work),
    ("app sync shop --async", Work),
    ("app wait shop --timeout 60", Work),
    ("app sync shop --dry-run", Work),
    ("app terminate-op shop", Refuse("No operation is in progress")),
    ("app actions list shop --kind ConfigMap", Work),
    ("app create -f $FILES/many.yaml", Say("created")),
    ("app add-source many --repo $URL --path more", Say("updated")),
    ("app remove-source many --source-position 2", Work),
    ("app confirm-deletion many", Work),
    ("app delete many --yes --wait", Work),
    ("appset create $FILES/set.yaml --dry-run", Say("created")),
    ("appset create $FILES/set.yaml", Say("created")),
    ("appset create $FILES/set.yaml --upsert", Work),
    ("appset get teams", Say("teams")),
    ("appset delete teams --yes", Say("deleted")),
    ("proj create team --src *", Work),
    ("proj set team --description words", Work),
    ("proj edit team", Work),
    ("proj add-source team $URL", Work),
    ("proj remove-source team $URL", Work),
    ("proj add-destination team https://kubernetes.default.svc $NAMESPACE", Work),
    ("proj remove-destination team https://kubernetes.default.svc $NAMESPACE", Work),
    ("proj allow-cluster-resource team apps Namespace", Work),
    ("proj deny-namespace-resource team apps Deployment", Work),
    ("proj get team", Say("words")),
    ("proj role create team dev", Work),
    ("proj role add-policy team dev -a get -p allow -o *", Work),
    ("proj role remove-policy team dev -a get -p allow -o *", Work),
    ("proj role add-group team dev builders", Work),
    ("proj role remove-group team dev builders", Work),
    ("proj role create-token team dev", Say("eyJ")),
    ("proj role list-tokens team dev", Work),
    ("proj role get team dev", Say("dev")),
    ("proj role list team", Say("dev")),
    ("proj role delete team dev", Work),
    ("proj delete team", Work),
    ("cluster list", Say("in-cluster")),
    ("cluster get in-cluster", Say("kubernetes.default.svc")),
    ("repo add $URL", Work),
    ("repo get $URL", Say("$URL")),
    ("repo list", Say("Successful")),
    ("repo rm $URL", Work),
    ("account list", Say("robot")),
    ("account get --account robot", Say("apiKey")),
    ("account generate-token --account robot --id one", Say("eyJ")),
    ("account delete-token --account robot one", Work),
    (
        "account update-password --account robot --current-password $PASSWORD --new-password a-new-password",
        Say("updated"),
    ),
    (
        "account update-password --account robot --current-password wrong --new-password a-new-password",
        Refuse("current password does not match"),
    ),
    ("account can-i sync applications */*", Say("yes")),
    ("relogin --password $PASSWORD", Say("logged in")),
];

/// What plumb prints about the same things, with the login of `argocd`.
const SAME: &[&str] = &[
    "account list",
    "account can-i sync applications */*",
    "cluster list -o server",
    "proj list -o name",
    "repo list -o url",
];

/// Files that commands name.
fn files(stage: &Stage) -> Result<PathBuf> {
    let source = |path: &str| json!({"repoURL": stage.repo.url(), "path": path, "targetRevision": "HEAD"});
    let destination = json!({"server": "https://kubernetes.default.svc", "namespace": stage.place.name()});
    let many = json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "Application", "metadata": {"name": "many"},
        "spec": {"project": "default", "sources": [source("shop")], "destination": destination},
    });
    let set = json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "ApplicationSet", "metadata": {"name": "teams"},
        "spec": {
            "generators": [{"list": {"elements": [{"name": "one"}]}}],
            "template": {"metadata": {"name": "{{name}}"}, "spec": {
                "project": "default", "source": source("shop"), "destination": destination,
            }},
        },
    });
    let directory = stage.cache().join("files");
    std::fs::create_dir_all(&directory)?;
    std::fs::write(directory.join("many.yaml"), many.to_string())?;
    std::fs::write(directory.join("set.yaml"), set.to_string())?;
    Ok(directory)
}

/// Walks through all commands, and through those that plumb answers with the same words.
async fn walk(stage: &Stage, argocd: &Argocd) -> Result<()> {
    let (url, files) = (stage.repo.url(), files(stage)?.to_string_lossy().into_owned());
    let password = initial_password(stage).await?;
    let known = |text: &str| {
        text.replace("$URL", &url)
            .replace("$NAMESPACE", stage.place.name())
            .replace("$FILES", &files)
            .replace("$PASSWORD", &password)
    };
    for (line, must) in COMMANDS {
        let line = known(line);
        let words: Vec<&str> = line.split(' ').collect();
        let said = argocd.run(&words);
        match must {
            Work => drop(said?),
            Say(text) => {
                let (said, text) = (said?, known(text));
                ensure!(said.contains(&text), "argocd {line} does not say {text:?}: {said}");
            }
            Refuse(text) => {
                let why = said.err().with_context(|| format!("argocd {line} succeeds"))?.to_string();
                ensure!(why.contains(text), "argocd {line} does not say {text:?}: {why}");
            }
        }
    }
    let config = argocd.config.to_string_lossy();
    for line in SAME {
        let words: Vec<&str> = line.split(' ').collect();
        let theirs = argocd.run(&words)?;
        let ours = Command::new(env!("CARGO_BIN_EXE_plumb"))
            .args(&words)
            .args(["--config", &config])
            .args(argocd.flags.iter().filter(|flag| *flag != "--grpc-web"))
            .output()?;
        let ours = String::from_utf8_lossy(&ours.stdout).into_owned();
        // The widths of columns may differ.
        let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        ensure!(words(&ours) == words(&theirs), "{line}\n--- argocd\n{theirs}\n--- plumb\n{ours}");
    }
    Ok(())
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
        let (stage, argocd, address) = logged_in(flags, server_flags).await?;
        stage.repo.commit(&[(
            "more/all.yaml",
            objects::manifests(&[objects::config_map("more", &[("a", "b")])]),
        )])?;
        walk(&stage, &argocd).await.with_context(|| format!("with {flags:?}"))?;
        argocd.run(&["app", "delete", "shop", "--yes", "--wait"])?;
        argocd.run(&["logout", &address])?;
        ensure!(argocd.run(&["app", "list"]).is_err(), "the login has ended");
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
pub(crate) fn public_key() -> String {
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
