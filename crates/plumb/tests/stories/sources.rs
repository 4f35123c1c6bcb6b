//! Where manifests come from: every kind of source, and what is refused.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use plumb_testkit::{objects, programs};
use serde_json::{Value, json};

use crate::stage::Stage;

/// A chart with one `ConfigMap` that says what it was given.
fn chart(name: &str) -> Vec<(String, String)> {
    let template = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: \"{{ .Chart.Name }}\"}\ndata:\n  greeting: \
                    {{ .Values.greeting | quote }}\n  release: {{ .Release.Name }}\n";
    vec![
        (format!("{name}/Chart.yaml"), format!("apiVersion: v2\nname: {name}\nversion: 1.2.3\n")),
        (format!("{name}/values.yaml"), "greeting: default\n".to_owned()),
        (format!("{name}/templates/cm.yaml"), template.to_owned()),
    ]
}

/// Serves a directory over HTTP until the process ends, and gives back its address.
fn serve(directory: PathBuf) -> Result<String> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = format!("http://{}", listener.local_addr()?);
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut lines = BufReader::new(&stream).lines();
            let first = lines.next().and_then(Result::ok).unwrap_or_default();
            let path = first.split(' ').nth(1).unwrap_or_default().trim_start_matches('/').to_owned();
            let answer = match std::fs::read(directory.join(path)) {
                Ok(content) => {
                    let head = format!(
                        "HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
                        content.len()
                    );
                    [head.into_bytes(), content].concat()
                }
                Err(_) => {
                    b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".to_vec()
                }
            };
            let _ = stream.write_all(&answer);
        }
    });
    Ok(address)
}

/// A Helm repository with one chart, made by the real program.
fn helm_repository(directory: &Path) -> Result<String> {
    for (path, content) in chart("remote") {
        let path = directory.join(path);
        std::fs::create_dir_all(path.parent().context("a file has a directory")?)?;
        std::fs::write(path, content)?;
    }
    let helm = &programs()?.helm;
    for arguments in [&["package", "remote"][..], &["repo", "index", "."]] {
        let status = Command::new(helm).args(arguments).current_dir(directory).status()?;
        ensure!(status.success(), "helm {}", arguments.join(" "));
    }
    serve(directory.to_owned())
}

fn config_map(name: &str) -> Value {
    objects::config_map(name, &[])
}

#[tokio::test]
async fn one_app_takes_from_every_kind_of_source() -> Result<()> {
    let stage = Stage::set().await?;
    let helm = tempfile::tempdir()?;
    let remote = helm_repository(helm.path())?;
    let plugin = r#"metadata: {name: shout}
spec:
  generate:
    command: [sh, -c]
    args:
    - |
      printf 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: shouted}\n'
      printf 'data: {app: %s, word: %s}\n' "$ARGOCD_APP_NAME" "$PARAM_WORD"
"#;
    let mut plugins = objects::config_map("plumb-plugins", &[("shout.yaml", plugin)]);
    plugins["metadata"]["labels"] = json!({"app.kubernetes.io/part-of": "argocd"});
    stage.place.apply(&plugins).await?;
    let mut files: Vec<(String, String)> = chart("local");
    files.extend(
        [
            ("values/eu.yaml", "greeting: from-another-source\n"),
            ("local/.argocd-source.yaml", "helm: {releaseName: overridden}\n"),
            (
                "jsonnet/main.jsonnet",
                "local lib = import 'lib.libsonnet';\nfunction(env) [lib.cm('evaluated', env)]\n",
            ),
            (
                "vendor/lib.libsonnet",
                "{ cm(name, env):: { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: name }, data: { env: env } } }\n",
            ),
            ("overlay/kustomization.yaml", "resources: [../base]\nnamePrefix: over-\n"),
            ("base/kustomization.yaml", "resources: [cm.yaml]\n"),
            ("base/cm.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: laid}\ndata: {a: b}\n"),
            ("plugin/word.txt", "x"),
        ]
        .map(|(path, content)| (path.to_owned(), content.to_owned())),
    );
    stage
        .repo
        .commit(&files.iter().map(|(path, content)| (path.as_str(), content.clone())).collect::<Vec<_>>())?;
    let app = stage
        .application("all", |app| {
            let url = app["spec"]["source"]["repoURL"].clone();
            app["spec"].as_object_mut().map(|spec| spec.remove("source"));
            app["spec"]["syncPolicy"] = json!({"automated": {}});
            app["spec"]["sources"] = json!([
                {"repoURL": url, "targetRevision": "HEAD", "ref": "shared"},
                {"repoURL": url, "path": "local", "helm": {"valueFiles": ["$shared/values/*.yaml"]}},
                {"repoURL": url, "path": "jsonnet", "directory": {"jsonnet": {
                    "libs": ["vendor"], "tlas": [{"name": "env", "value": "$ARGOCD_APP_NAME"}]}}},
                {"repoURL": url, "path": "overlay"},
                {"repoURL": url, "path": "plugin", "plugin": {"name": "shout", "parameters": [{"name": "word", "string": "hello"}]}},
                {"repoURL": remote, "chart": "remote", "targetRevision": "^1.0", "helm": {"valuesObject": {"greeting": "far"}}},
            ]);
        })
        .await?;
    let app = stage.until_sync(&app, "Synced").await?;
    let expected = [
        ("local", json!({"greeting": "from-another-source", "release": "overridden"})),
        ("evaluated", json!({"env": "all"})),
        ("over-laid", json!({"a": "b"})),
        ("shouted", json!({"app": "all", "word": "hello"})),
        ("remote", json!({"greeting": "far", "release": "all"})),
    ];
    for (name, data) in expected {
        let live = stage.place.wait(&config_map(name), "is there", |live| !live["data"].is_null()).await?;
        assert_eq!(live["data"], data, "{name}");
    }
    let status = &app["status"];
    assert_eq!(status["sourceTypes"], json!(["", "Helm", "Directory", "Kustomize", "Plugin", "Helm"]));
    assert_eq!(status["sync"]["revisions"][5], "1.2.3", "a chart's revision is its version");
    assert_eq!(status["sync"]["revisions"][0], status["sync"]["revisions"][1]);
    Ok(())
}

#[tokio::test]
async fn what_is_not_whole_deletes_nothing_and_says_why() -> Result<()> {
    let stage = Stage::set().await?;
    let (one, two) = (objects::config_map("one", &[("a", "1")]), objects::config_map("two", &[("a", "1")]));
    stage.repo.commit(&[
        ("app/one.yaml", objects::manifests(std::slice::from_ref(&one))),
        ("app/two.yaml", objects::manifests(std::slice::from_ref(&two))),
    ])?;
    let app = stage
        .application("whole", |app| {
            app["spec"]["syncPolicy"] = json!({"automated": {"prune": true, "selfHeal": true}});
        })
        .await?;
    stage.until_sync(&app, "Synced").await?;
    // The second object loses its name: nobody can say that it left Git.
    let nameless = "apiVersion: v1\nkind: ConfigMap\nmetadata: {}\ndata: {a: \"1\"}\n".to_owned();
    stage.repo.commit(&[("app/two.yaml", nameless)])?;
    stage.refresh(&app).await?;
    let live = stage.until_sync(&app, "Unknown").await?;
    let condition = &live["status"]["conditions"][0];
    assert_eq!(condition["type"], "ComparisonError");
    let message = condition["message"].as_str().unwrap_or_default();
    assert!(message.contains("app/two.yaml:1") && message.contains("no name"), "{message}");
    assert!(stage.place.get(&two).await?.is_some(), "nothing was deleted");

    stage.repo.commit(&[("app/two.yaml", objects::manifests(std::slice::from_ref(&two)))])?;
    stage.refresh(&app).await?;
    stage.until_sync(&app, "Synced").await?;
    // A project that asks for signatures gets none.
    let mut project = objects::app_project("default");
    project["spec"]["signatureKeys"] = json!([{"keyID": "0123456789ABCDEF"}]);
    stage.place.apply(&project).await?;
    stage.refresh(&app).await?;
    let live = stage.until_sync(&app, "Unknown").await?;
    let message = live["status"]["conditions"][0]["message"].as_str().unwrap_or_default();
    assert!(message.contains("is not signed"), "{message}");

    // The newer field takes precedence, and decides by repository.
    let policy = |url: &str| {
        json!({"git": {"policies": [
            {"repos": [{"url": url}], "gpg": {"mode": "strict", "keys": ["0123456789ABCDEF"]}}]}})
    };
    project["spec"]["sourceIntegrity"] = policy("https://elsewhere.example.com/*");
    stage.place.apply(&project).await?;
    stage.until_sync(&app, "Synced").await?;
    project["spec"]["sourceIntegrity"] = policy("*");
    stage.place.apply(&project).await?;
    let live = stage.until_sync(&app, "Unknown").await?;
    let message = live["status"]["conditions"][0]["message"].as_str().unwrap_or_default();
    assert!(message.contains("is not signed"), "{message}");
    Ok(())
}

/// A server that takes connections and never answers. More apps than there are workers wait for it.
#[tokio::test]
async fn a_server_that_never_answers_keeps_nobody_else_waiting() -> Result<()> {
    let stage = Stage::set().await?;
    stage.repo.commit(&[("app/map.yaml", objects::manifests(&[config_map("good")]))])?;
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let dead = format!("http://{}/repo.git", listener.local_addr()?);
    let (held, n_held) = std::sync::mpsc::channel();
    std::thread::spawn(move || listener.incoming().flatten().for_each(|stream| drop(held.send(stream))));
    for n in 0..40 {
        let source = |app: &mut Value| app["spec"]["source"]["repoURL"] = json!(dead);
        stage.application(&format!("dead-{n}"), source).await?;
    }
    // They are being waited for.
    let first = n_held.recv_timeout(Duration::from_mins(1))?;
    let started = Instant::now();
    let automated = |app: &mut Value| app["spec"]["syncPolicy"] = json!({"automated": {}});
    let good = stage.application("good", automated).await?;
    stage.until_sync(&good, "Synced").await?;
    let took = started.elapsed();
    drop(first);
    // Asking for refs ends after 90 seconds: whoever waited for that has waited for longer.
    ensure!(took < Duration::from_mins(1), "the good app waited for {took:?}");
    Ok(())
}
