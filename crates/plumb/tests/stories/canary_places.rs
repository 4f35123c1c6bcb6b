//! The places where plumb says something, for the story of the canaries: the API, the page, assistants, command lines.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use plumb_testkit::objects;
use serde_json::{Value, json};

use crate::server::Client;
use crate::stage::Stage;

/// Where something was said, and what.
pub(crate) type Said = Vec<(String, String)>;

/// All calls of the API, as the server knows them.
const CALLS: &str = include_str!("../../../plumb-api/src/tables/methods.txt");

/// What is asked about: apps, one of which has the objects.
pub(crate) struct Asked<'a> {
    pub(crate) apps: &'a [&'a str],
    pub(crate) with_objects: &'a str,
    pub(crate) objects: &'a [(&'a str, &'a str, &'a str, &'a str)],
}

/// What the user wrote is the user's: the spec, and the copies of it in the status of the same object, which Argo CD's
/// clients compare with it.
pub(crate) fn without_spec(value: &mut Value) {
    match value {
        Value::Object(map) => {
            for copy in ["spec", "source", "sources", "comparedTo"] {
                map.remove(copy);
            }
            map.values_mut().for_each(without_spec);
        }
        Value::Array(items) => items.iter_mut().for_each(without_spec),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// The same of an answer: JSON, or lines of a stream that have JSON.
fn without_specs(text: &str) -> String {
    let strip = |text: &str| {
        let mut value: Value = serde_json::from_str(text.trim().trim_start_matches("data:")).ok()?;
        without_spec(&mut value);
        Some(value.to_string())
    };
    strip(text).unwrap_or_else(|| {
        text.lines().map(|line| strip(line).unwrap_or_else(|| line.to_owned()) + "\n").collect()
    })
}

/// One request. Of a stream, what comes until it has shown something.
async fn ask(admin: &Client, path: &str) -> Result<String> {
    let url = format!("http://{}{path}", admin.address);
    let request = reqwest::Client::new().get(url).bearer_auth(&admin.token);
    let mut answer = request.header("accept", "application/json, text/event-stream").send().await?;
    let (mut text, is_stream) = (Vec::new(), path.contains("stream"));
    let code = answer.status().as_u16();
    loop {
        let wait = match (is_stream, text.is_empty()) {
            (false, _) => Duration::from_mins(1),
            (true, true) => Duration::from_secs(3),
            (true, false) => Duration::from_millis(300),
        };
        match tokio::time::timeout(wait, answer.chunk()).await {
            Ok(Ok(Some(part))) => text.extend_from_slice(&part),
            Ok(Ok(None)) => break,
            Ok(Err(error)) => return Err(error).context(path.to_owned()),
            Err(_) if is_stream => break,
            Err(error) => return Err(error).context(path.to_owned()),
        }
        if is_stream && text.len() > 64 << 10 {
            break;
        }
    }
    Ok(format!("{code} {}", String::from_utf8_lossy(&text)))
}

/// The paths of all calls that read, with every app and object in their places.
fn paths(stage: &Stage, asked: &Asked<'_>) -> Vec<String> {
    let namespace = stage.place.name();
    let mut paths = Vec::new();
    for rule in CALLS.lines().filter_map(|line| line.trim().strip_prefix("GET ")) {
        let is_of_app = rule.contains("/applications/{") || rule.contains("/stream/applications/{");
        let repository = rule.contains("/repositories/{") || rule.contains("/repocreds/{");
        let names: &[&str] = if is_of_app { asked.apps } else { &["default"] };
        for name in names {
            let filled: Vec<String> = rule
                .split('/')
                .map(|part| match part {
                    part if !part.starts_with('{') => part.to_owned(),
                    "{name}" | "{applicationName}" | "{appName}" => (*name).to_owned(),
                    "{revision}" => "HEAD".to_owned(),
                    _ if repository => stage.repo.url().replace('/', "%2F").replace(':', "%3A"),
                    _ => "https:%2F%2Fkubernetes.default.svc".to_owned(),
                })
                .collect();
            let path = filled.join("/");
            if is_of_app && *name == asked.with_objects {
                paths.extend(asked.objects.iter().map(|(group, version, kind, name)| {
                    format!(
                        "{path}?namespace={namespace}&resourceName={name}&kind={kind}&group={group}&version={version}"
                    )
                }));
            }
            paths.push(path);
        }
    }
    paths
}

/// Is it a call that shows the app with the objects, or one of the objects?
fn must_answer(path: &str, asked: &Asked<'_>) -> bool {
    let app = format!("/api/v1/applications/{}", asked.with_objects);
    match path.split_once('?') {
        None => path.strip_prefix(&app).is_some_and(|call| {
            ["", "/syncwindows", "/manifests", "/managed-resources", "/resource-tree", "/links"]
                .contains(&call)
        }),
        Some((call, _)) => call.strip_prefix(&app) == Some("/resource"),
    }
}

/// All calls of the API that read, by REST; some by gRPC-Web.
pub(crate) async fn api(stage: &Stage, admin: &Client, asked: &Asked<'_>) -> Result<Said> {
    let mut said = Vec::new();
    let paths = paths(stage, asked);
    ensure!(paths.len() > 60, "only {} calls", paths.len());
    // An error has no values because it has nothing.
    let mut unanswered = Vec::new();
    ensure!(paths.iter().filter(|path| must_answer(path, asked)).count() > 8, "no call has to answer");
    for path in paths {
        let answer = ask(admin, &path).await?;
        let (code, body) = answer.split_once(' ').unwrap_or_default();
        if code != "200" && must_answer(&path, asked) {
            unanswered.push(format!("{code} {path}: {}", body.chars().take(200).collect::<String>()));
        }
        said.push((format!("the API's answer {code} to {path}"), without_specs(body)));
    }
    ensure!(unanswered.is_empty(), "calls about the app that answer nothing:\n{}", unanswered.join("\n"));
    let name = asked.with_objects;
    for call in ["ManagedResources", "GetManifests", "ResourceTree"] {
        let mut message = vec![0x0a, u8::try_from(name.len())?];
        message.extend_from_slice(name.as_bytes());
        let mut frame = vec![0];
        frame.extend_from_slice(&u32::try_from(message.len())?.to_be_bytes());
        frame.extend_from_slice(&message);
        let url = format!("http://{}/application.ApplicationService/{call}", admin.address);
        let request = reqwest::Client::new().post(url).bearer_auth(&admin.token);
        let request = request.header("content-type", "application/grpc-web+proto").body(frame);
        let body = request.send().await?.bytes().await?;
        ensure!(body.len() > 100, "gRPC {call} answers {} bytes", body.len());
        said.push((format!("gRPC {call}"), String::from_utf8_lossy(&body).into_owned()));
    }
    Ok(said)
}

/// What the page reads, and the plans that it shows.
pub(crate) async fn page(stage: &Stage, admin: &Client, asked: &Asked<'_>) -> Result<Said> {
    let namespace = stage.place.name();
    let mut calls: Vec<String> =
        ["me", "home", "apps", "doctor", "orphans", "activity", "undo", "stream"].map(str::to_owned).to_vec();
    for app in asked.apps {
        calls.extend([format!("apps/{namespace}/{app}"), format!("find/{app}")]);
    }
    let mut said = Vec::new();
    for call in calls {
        let answer = ask(admin, &format!("/api/plumb/v1/{call}")).await?;
        ensure!(answer.starts_with("200 "), "the page's {call} answers {answer}");
        said.push((format!("the page's {call}"), answer));
    }
    for app in asked.apps {
        for verb in ["sync", "delete", "rollback", "refresh"] {
            let request = reqwest::Client::new()
                .post(format!("http://{}/api/plumb/v1/plans", admin.address))
                .bearer_auth(&admin.token)
                .header("content-type", "application/json")
                .header("x-plumb-page", "1")
                .body(json!({"verb": verb, "app": [namespace, app]}).to_string());
            let answer = request.send().await?.text().await?;
            said.push((format!("the page's plan to {verb} {app}"), answer));
        }
    }
    Ok(said)
}

/// What an assistant is told by every tool that reads.
pub(crate) fn assistant(stage: &Stage, asked: &Asked<'_>) -> Result<Said> {
    let mut child = Command::new(env!("CARGO_BIN_EXE_plumb"))
        .args(["mcp", "--namespace", stage.place.name(), "--kubeconfig"])
        .arg(stage.place.kubeconfig())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .context("start plumb mcp")?;
    let mut input = child.stdin.take().context("stdin")?;
    let mut output = BufReader::new(child.stdout.take().context("stdout")?);
    let mut talk = |method: &str, params: Value| -> Result<String> {
        writeln!(input, "{}", json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}))?;
        let mut line = String::new();
        output.read_line(&mut line)?;
        Ok(line)
    };
    let client = json!({"name": "test", "version": "1"});
    let hello = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client});
    talk("initialize", hello)?;
    let list: Value = serde_json::from_str(&talk("tools/list", json!({}))?)?;
    let mut said = Vec::new();
    for tool in list["result"]["tools"].as_array().context("tools")? {
        let name = tool["name"].as_str().context("a name")?;
        let takes_app = tool.pointer("/inputSchema/properties/app").is_some();
        let apps: &[&str] = if takes_app { asked.apps } else { &[""] };
        for app in apps {
            let arguments = if takes_app { json!({"app": app}) } else { json!({}) };
            let answer = talk("tools/call", json!({"name": name, "arguments": arguments}))?;
            // `get_app -o json` is the Application itself, in a text.
            let mut answer: Value = serde_json::from_str(&answer)?;
            let texts = answer.pointer_mut("/result/content").and_then(Value::as_array_mut);
            for text in texts.into_iter().flatten().filter_map(|item| item.get_mut("text")) {
                *text = json!(without_specs(text.as_str().unwrap_or_default()));
            }
            said.push((format!("the assistant's {name} {app}"), answer.to_string()));
        }
    }
    drop((input, output));
    child.wait().context("wait for plumb mcp")?;
    Ok(said)
}

/// What the command lines say about a checkout, and about the cluster in every format.
pub(crate) fn commands(stage: &Stage) -> Result<Said> {
    let checkout = stage.repo.path().display().to_string();
    let mut lines: Vec<Vec<&str>> = Vec::new();
    for format in ["text", "json", "sarif", "junit", "github", "markdown"] {
        lines.push(vec!["lint", checkout.as_str(), "-o", format]);
    }
    for format in ["text", "json", "markdown"] {
        lines.push(vec!["diff", checkout.as_str(), "--from", "HEAD~1", "-o", format]);
    }
    for format in ["json", "yaml", "sarif", "junit", "markdown"] {
        lines.push(vec!["doctor", "-o", format]);
    }
    lines.extend([
        vec!["doctor", "--secrets", "-o", "yaml"],
        vec!["fix"],
        vec!["orphans"],
        vec!["orphans", "-o", "json"],
        vec!["unmask"],
        vec!["unmask", "-o", "json"],
        vec!["migrate", "check"],
        vec!["support-bundle"],
        vec!["undo", "list", "-o", "json"],
        vec!["app", "history", "thousand"],
        vec!["app", "resources", "thousand"],
        vec!["app", "sync", "thousand", "--dry-run"],
        vec!["appset", "list"],
        vec!["repo", "list", "-o", "json"],
        vec!["cluster", "list", "-o", "json"],
        vec!["proj", "list"],
    ]);
    let mut said = Vec::new();
    for words in lines {
        said.push(says(stage, &words)?);
    }
    Ok(said)
}

/// What a command line says. One that plumb does not take would say nothing of any value.
pub(crate) fn says(stage: &Stage, words: &[&str]) -> Result<(String, String)> {
    let said = stage.plumb_says(words)?;
    let line = format!("plumb {}", words.join(" "));
    ensure!(!said.contains("try '--help'"), "{line}: {said}");
    Ok((line, said))
}

/// Credentials of the control plane: of repositories, clusters, sets, and of the login at a provider. Nothing answers at
/// their addresses, so each is in use when something fails.
pub(crate) async fn plant_settings(
    stage: &Stage,
    mut hatch: impl FnMut() -> Result<String>,
    n: usize,
) -> Result<()> {
    let own = objects::secret("argocd-secret", &[]);
    let mut values = serde_json::Map::new();
    for key in ["oidc.clientSecret", "webhook.github.secret", "webhook.gitlab.secret"] {
        values.insert(key.to_owned(), json!(hatch()?));
    }
    for number in 0..n.checked_sub(11).context("more values")? {
        values.insert(format!("more{number}"), json!(hatch()?));
    }
    stage.place.patch_as("a-story", &own, &json!({"stringData": values})).await?;
    let oidc = json!({"name": "None", "issuer": "https://127.0.0.1:1", "clientID": "x",
        "clientSecret": "$oidc.clientSecret"});
    let settings = json!({"data": {"oidc.config": oidc.to_string(), "url": "http://127.0.0.1:1"}});
    stage.place.patch_as("a-story", &objects::config_map("argocd-cm", &[]), &settings).await?;

    let of_type = |kind: &str, name: &str, values: Value| {
        let secret =
            json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "stringData": values});
        objects::labelled(secret, "argocd.argoproj.io/secret-type", kind)
    };
    let private = "https://127.0.0.1:1/private.git";
    let repository =
        json!({"url": private, "username": "robot", "password": hatch()?, "bearerToken": hatch()?});
    let template =
        json!({"url": "https://127.0.0.1:1/templates", "password": hatch()?, "sshPrivateKey": hatch()?});
    let config = json!({"bearerToken": hatch()?, "password": hatch()?, "username": "robot"}).to_string();
    let cluster = json!({"name": "away", "server": "https://127.0.0.1:1", "config": config});
    let tokens = json!({"token": hatch()?, "other": hatch()?});
    for secret in [
        of_type("repository", "private", repository),
        of_type("repo-creds", "templates", template),
        of_type("cluster", "cluster-away", cluster),
        of_type("scm-creds", "set-tokens", tokens),
    ] {
        stage.place.apply(&secret).await?;
    }
    stage.application("thousand-private", |app| app["spec"]["source"]["repoURL"] = json!(private)).await?;
    stage
        .application("thousand-away", |app| {
            app["spec"]["destination"] = json!({"name": "away", "namespace": "default"});
        })
        .await?;
    let generators = json!([
        {"scmProvider": {"github": {"organization": "x", "api": "http://127.0.0.1:1",
            "tokenRef": {"secretName": "set-tokens", "key": "token"}}}},
        {"plugin": {"configMapRef": {"name": "set-plugin"}, "input": {"parameters": {}}}},
    ]);
    let plugin = objects::config_map(
        "set-plugin",
        &[("baseUrl", "http://127.0.0.1:1"), ("token", "$set-tokens:other")],
    );
    stage.place.apply(&plugin).await?;
    for (number, generator) in generators.as_array().into_iter().flatten().enumerate() {
        let set = json!({"apiVersion": "argoproj.io/v1alpha1", "kind": "ApplicationSet",
            "metadata": {"name": format!("set{number}")}, "spec": {"generators": [generator], "template": {
                "metadata": {"name": "{{x}}"}, "spec": {"project": "default",
                    "source": {"repoURL": stage.repo.url(), "path": "app"},
                    "destination": {"name": "in-cluster", "namespace": "default"}}}}});
        stage.place.apply(&set).await?;
        let told = |live: &Value| live["status"]["conditions"].as_array().is_some_and(|all| !all.is_empty());
        stage.place.wait(&set, "has a condition", told).await?;
    }
    Ok(())
}

/// Passwords, tokens and keys in requests to the API. All are refused.
pub(crate) async fn sessions(
    admin: &Client,
    mut hatch: impl FnMut() -> Result<String>,
    n: usize,
) -> Result<Said> {
    let mut said = Vec::new();
    for number in 0..n / 10 {
        let nobody = Client { address: admin.address, token: hatch()? };
        let login = json!({"username": format!("nobody{number}"), "password": hatch()?});
        let json_headers = "content-type: application/json\r\n";
        let cookie = format!("cookie: argocd.token={}\r\n", hatch()?);
        let basic = format!("authorization: Basic {}\r\n", hatch()?);
        let callback = format!("/auth/callback?code={}&state={}", hatch()?, hatch()?);
        for (method, path, headers, body) in [
            ("POST", "/api/v1/session", json_headers, &login),
            ("GET", "/api/v1/applications", cookie.as_str(), &Value::Null),
            ("GET", "/api/v1/applications", basic.as_str(), &Value::Null),
            ("GET", callback.as_str(), "", &Value::Null),
        ] {
            let (code, head, answer) = nobody.send(method, path, headers, body).await?;
            let place = path.split('?').next().unwrap_or_default();
            said.push((format!("the answer {code} to {method} {place}"), format!("{head}{answer}")));
        }
        let password = hatch()?;
        let url = format!("https://a:{password}@127.0.0.1:1/x.git");
        let repository = json!({"repo": url, "username": "a", "password": password});
        let config = json!({"bearerToken": hatch()?});
        let cluster = json!({"server": "https://127.0.0.1:1", "name": "x", "config": config, "bad": 1});
        let password = json!({"name": "none", "currentPassword": hatch()?, "newPassword": hatch()?});
        for (method, path, body) in [
            ("GET", "applications", Value::Null),
            ("POST", "repositories", repository),
            ("POST", "clusters", cluster),
            ("PUT", "account/password", password),
        ] {
            let caller = if method == "GET" { &nobody } else { admin };
            let (code, answer) = caller.call(method, path, body).await?;
            said.push((format!("the answer {code} to {method} {path}"), answer.to_string()));
        }
    }
    Ok(said)
}
