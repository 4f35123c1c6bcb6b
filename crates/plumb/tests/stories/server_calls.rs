//! The calls of the API that its usual clients make, and several replicas that look like one server.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use plumb_api::{FRAME_HEAD, Tables, decode, encode, frame, unframe};
use plumb_testkit::{objects, wait};
use serde_json::{Value, json};

use crate::server::{Client, admin, initial_password, login, served};
use crate::server_argocd::public_key;
use crate::stage::Stage;

fn names(list: &Value) -> Vec<String> {
    let items = list["items"].as_array().into_iter().flatten();
    items.filter_map(|item| item["metadata"]["name"].as_str().map(str::to_owned)).collect()
}

fn set(stage: &Stage, elements: &[&str]) -> Value {
    let elements: Vec<Value> = elements.iter().map(|name| json!({"name": name})).collect();
    json!({
        "metadata": {"name": "teams"},
        "spec": {
            "generators": [{"list": {"elements": elements}}],
            "template": {
                "metadata": {"name": "{{name}}"},
                "spec": {
                    "project": "default",
                    "source": {"repoURL": stage.repo.url(), "path": "app", "targetRevision": "HEAD"},
                    "destination": {"server": "https://kubernetes.default.svc", "namespace": stage.place.name()},
                },
            },
        },
    })
}

#[tokio::test]
async fn sets_are_listed_created_tried_and_deleted() -> Result<()> {
    let stage = served().await?;
    let admin = admin(&stage).await?;
    let body = json!({"applicationSet": set(&stage, &["one", "two"])});
    let (code, tried) = admin.call("POST", "applicationsets/generate", body).await?;
    ensure!(code == 200, "{tried}");
    let generated: Vec<&Value> =
        tried["applications"].as_array().into_iter().flatten().map(|app| &app["metadata"]["name"]).collect();
    assert_eq!(generated, ["one", "two"]);
    assert_eq!(names(&admin.get("applicationsets").await?.1), Vec::<String>::new(), "nothing was written");
    let (code, created) = admin.call("POST", "applicationsets", set(&stage, &["one"])).await?;
    ensure!(code == 200 && created["metadata"]["name"] == "teams", "{created}");
    assert_eq!(names(&admin.get("applicationsets").await?.1), ["teams"], "a client reads what it wrote");
    let (code, refused) = admin.call("POST", "applicationsets", set(&stage, &["two"])).await?;
    ensure!(code == 400 && refused["message"].as_str().unwrap_or_default().contains("upsert"), "{refused}");
    let (code, _) = admin.call("POST", "applicationsets?upsert=true", set(&stage, &["two"])).await?;
    assert_eq!(code, 200);
    let app = stage.application_named("two");
    stage.place.wait(&app, "is generated", |app| app["metadata"]["uid"].is_string()).await?;
    let mut templated = set(&stage, &["one"]);
    templated["spec"]["template"]["spec"]["project"] = json!("{{name}}");
    let (code, _) = admin.call("POST", "applicationsets", templated).await?;
    assert_eq!(code, 400, "a set that chooses projects by template could reach all");
    assert_eq!(admin.get("applicationsets/none").await?.0, 404);
    assert_eq!(admin.call("DELETE", "applicationsets/teams", Value::Null).await?.0, 200);
    let gone = async || admin.get("applicationsets").await.map(|(_, list)| names(&list)).unwrap_or_default();
    wait::until_seen(Duration::from_secs(30), "the set is gone", gone, Vec::is_empty).await?;
    Ok(())
}

#[tokio::test]
async fn certificates_keys_and_names_of_notifications() -> Result<()> {
    let stage = served().await?;
    let admin = admin(&stage).await?;
    let key = json!({"items": [{"serverName": "git.example.com", "certType": "ssh", "certSubType": "ssh-rsa",
        "certData": STANDARD.encode("QUJD")}]});
    let (code, added) = admin.call("POST", "certificates", key.clone()).await?;
    ensure!(
        code == 200 && added["items"][0]["certInfo"].as_str().unwrap_or_default().starts_with("SHA256:"),
        "{added}"
    );
    let listed = admin.get("certificates?certType=ssh").await?.1;
    assert_eq!(listed["items"].as_array().map(Vec::len), Some(1));
    let mut broken = key;
    broken["items"][0]["serverName"] = json!("a\nb");
    assert_eq!(admin.call("POST", "certificates", broken).await?.0, 400);
    let path = "certificates?hostNamePattern=git.*&certType=ssh";
    assert_eq!(admin.call("DELETE", path, Value::Null).await?.1["items"].as_array().map(Vec::len), Some(1));
    let (code, refused) = admin.call("POST", "gpgkeys", json!({"keyData": "no key"})).await?;
    ensure!(code == 400, "{refused}");
    stage.setting("argocd-notifications-cm", "trigger.on-sync", "[]").await?;
    assert_eq!(admin.get("notifications/triggers").await?.1, json!({"items": [{"name": "on-sync"}]}));
    Ok(())
}

#[tokio::test]
async fn commits_actions_and_dry_runs() -> Result<()> {
    let stage = served().await?;
    let admin = admin(&stage).await?;
    let shop = stage.application("shop", |_| {}).await?;
    // The server answers from the engine's memory, which learns of what another client created a moment later.
    stage.place.wait(&shop, "is compared", |live| live["status"]["sync"]["status"].is_string()).await?;
    assert_eq!(admin.call("POST", "applications/shop/sync", json!({})).await?.0, 200);
    let synced = stage.until_sync(&shop, "Synced").await?;
    let commit = synced["status"]["sync"]["revision"].as_str().context("no commit")?.to_owned();
    let (code, said) = admin.get(&format!("applications/shop/revisions/{commit}/metadata")).await?;
    ensure!(code == 200 && said["author"].is_string() && said["date"].is_string(), "{said}");
    let namespace = stage.place.name();
    let object = format!("kind=ConfigMap&group=&version=v1&resourceName=settings&namespace={namespace}");
    let (code, actions) = admin.get(&format!("applications/shop/resource/actions?{object}")).await?;
    ensure!(code == 200 && actions["actions"].as_array().is_some_and(Vec::is_empty), "{actions}");
    let (code, refused) =
        admin.call("POST", &format!("applications/shop/resource/actions?{object}"), json!("restart")).await?;
    ensure!(code == 400, "an unknown action: {refused}");
    assert_eq!(admin.get("applications/shop/syncwindows").await?.1["canSync"], true);
    let (code, refs) = admin.get(&format!("repositories/{}/refs", escaped(&stage.repo.url()))).await?;
    ensure!(
        code == 200 && refs["branches"].as_array().is_some_and(|branches| !branches.is_empty()),
        "{refs}"
    );
    // Each write is an event with the name of the user.
    let events = admin.get("applications/shop/events").await?.1;
    let user = |event: &Value| event["metadata"]["annotations"]["user"] == "admin";
    ensure!(events["items"].as_array().into_iter().flatten().any(user), "{events}");
    Ok(())
}

fn escaped(text: &str) -> String {
    text.replace('%', "%25").replace('/', "%2F").replace(':', "%3A")
}

#[tokio::test]
async fn the_tree_has_what_is_missing_and_orphans_and_nothing_that_the_project_forbids() -> Result<()> {
    let stage = served().await?;
    let admin = admin(&stage).await?;
    let shop = stage.application("shop", |_| {}).await?;
    stage.place.wait(&shop, "is compared", |live| live["status"]["sync"]["status"] == "OutOfSync").await?;
    let tree = async || admin.get("applications/shop/resource-tree").await.map(|(_, tree)| tree);
    let seen = async || tree().await.unwrap_or_default();
    // plumb sees what it wrote a moment later than the story.
    let is_missing = |tree: &Value| {
        let mut nodes = tree["nodes"].as_array().into_iter().flatten();
        nodes.any(|node| node["name"] == "settings" && node["health"]["status"] == "Missing")
    };
    let missing = wait::until_seen(Duration::from_secs(30), "settings is missing", &seen, is_missing).await?;
    let mut nodes = missing["nodes"].as_array().into_iter().flatten();
    ensure!(nodes.all(|node| node.get("uid").is_none()), "nothing is live yet: {missing:?}");
    stage.place.apply(&objects::config_map("stray", &[("a", "b")])).await?;
    let change = async |spec: &Value| {
        let mut project = admin.get("projects/default").await?.1;
        for (field, value) in spec.as_object().into_iter().flatten() {
            project["spec"][field] = value.clone();
        }
        let (code, said) = admin.call("PUT", "projects/default", json!({"project": project})).await?;
        ensure!(code == 200, "{said}");
        Ok(())
    };
    change(&json!({"orphanedResources": {}})).await?;
    let has_stray = |tree: &Value| {
        let mut orphans = tree["orphanedNodes"].as_array().into_iter().flatten();
        orphans.any(|node| node["name"] == "stray")
    };
    wait::until_seen(Duration::from_secs(30), "the orphan is in the tree", &seen, has_stray).await?;
    let refused = change(&json!({"destinations": []})).await.err().map(|error| error.to_string());
    let refused = refused.context("an app lost its destination")?;
    ensure!(refused.contains("1 applications destination became invalid"), "{refused}");
    let default = objects::app_project("default");
    stage.place.patch_as("a-story", &default, &json!({"spec": {"destinations": []}})).await?;
    let is_empty = |tree: &Value| tree["nodes"].as_array().is_none_or(Vec::is_empty) && !has_stray(tree);
    wait::until_seen(Duration::from_secs(30), "the tree is empty", seen, is_empty).await?;
    stage
        .setting("argocd-cm", "project.links", "[{title: Docs, url: 'https://x/{{.project.metadata.name}}'}]")
        .await?;
    let links =
        async || admin.get("projects/default/links").await.map(|(_, links)| links).unwrap_or_default();
    let has_link = |links: &Value| links["items"][0]["url"] == "https://x/default";
    wait::until_seen(Duration::from_secs(30), "the link of the project", links, has_link).await?;
    Ok(())
}

#[tokio::test]
async fn a_repository_is_tested_before_it_is_registered() -> Result<()> {
    let stage = served().await?;
    let admin = admin(&stage).await?;
    let missing = json!({"repo": format!("{}-missing", stage.repo.url()), "type": "git"});
    let (code, refused) = admin.call("POST", "repositories", missing).await?;
    ensure!(
        code != 200 && refused["message"].as_str().unwrap_or_default().contains("connectivity"),
        "{refused}"
    );
    let there = json!({"repo": stage.repo.url(), "type": "git"});
    let (code, added) = admin.call("POST", "repositories", there).await?;
    ensure!(code == 200, "{added}");
    let listed = admin.get("repositories").await?.1;
    ensure!(listed["items"][0]["connectionState"]["status"] == "Successful", "{listed}");
    Ok(())
}

/// Two replicas with and without TLS between them; a client that is connected to the one that waits.
#[tokio::test]
async fn a_replica_that_waits_answers_like_the_leader() -> Result<()> {
    let stage = served().await?;
    let shop = stage.application("shop", |_| {}).await?;
    stage.until_sync(&shop, "OutOfSync").await?;
    let leader = admin(&stage).await?;
    let standby = stage.start_another("standby").await?;
    let waiting = Client { address: standby.address("webhooks").await?, token: leader.token.clone() };
    let seen = async || waiting.get("applications").await.ok();
    let is_there = |answer: &Option<(u16, Value)>| {
        answer.as_ref().is_some_and(|(code, list)| *code == 200 && names(list) == ["shop"])
    };
    wait::until_seen(Duration::from_mins(1), "the standby shows the app", seen, is_there).await?;
    assert_eq!(waiting.get("session/userinfo").await?.1["username"], "admin");
    // A write through the one is seen through the other at once.
    let body =
        json!({"name": "shop", "patchType": "merge", "patch": "{\"metadata\":{\"labels\":{\"a\":\"b\"}}}"});
    assert_eq!(waiting.call("PATCH", "applications/shop", body).await?.0, 200);
    assert_eq!(leader.get("applications/shop").await?.1["metadata"]["labels"]["a"], "b");
    assert_eq!(waiting.get("applications/shop").await?.1["metadata"]["labels"]["a"], "b");
    // Nobody but a replica can say who the client is.
    let headers = format!("authorization: Bearer {}\r\nx-plumb-client: 10.9.9.9 0 AAAA\r\n", leader.token);
    assert_eq!(leader.send("GET", "/api/v1/applications", &headers, &Value::Null).await?.0, 200);
    let nobody = Client { address: waiting.address, token: String::new() };
    assert_eq!(nobody.send("GET", "/api/v1/applications", "", &Value::Null).await?.0, 401);
    ensure!(!standby.log()?.contains("eyJ"), "a token in the log");
    // A session that ends at one replica has ended at the other, and failed logins count for both.
    let cookie = format!("cookie: argocd.token={}\r\n", leader.token);
    assert_eq!(leader.send("POST", "/auth/logout", &cookie, &Value::Null).await?.0, 303);
    let ended = async || waiting.get("applications").await.map(|(code, _)| code).unwrap_or_default();
    wait::until_seen(Duration::from_secs(20), "the session has ended", ended, |code| *code == 401).await?;
    for _ in 0..5 {
        ensure!(login(waiting.address, "admin", "wrong").await?.is_err());
    }
    let password = initial_password(&stage).await?;
    ensure!(login(leader.address, "admin", &password).await?.is_err(), "the name is locked everywhere");
    Ok(())
}

/// The same over TLS: the replicas know each other by a key that only they have.
#[tokio::test]
async fn replicas_talk_over_tls() -> Result<()> {
    let mut stage = Stage::bare().await?;
    stage.serves = true;
    stage
        .repo
        .commit(&[("app/all.yaml", objects::manifests(&[objects::config_map("settings", &[("a", "b")])]))])?;
    stage.begin().await?;
    let shop = stage.application("shop", |_| {}).await?;
    stage.until_sync(&shop, "OutOfSync").await?;
    let password = initial_password(&stage).await?;
    let standby = stage.start_another("standby").await?;
    let address = standby.address("webhooks").await?;
    let client = reqwest::Client::builder().tls_danger_accept_invalid_certs(true).build()?;
    let body = json!({"username": "admin", "password": password}).to_string();
    let answer = client
        .post(format!("https://{address}/api/v1/session"))
        .header("content-type", "application/json")
        .body(body)
        .send()
        .await?;
    let answer: Value = serde_json::from_str(&answer.text().await?)?;
    let token = answer["token"].as_str().context("no token")?.to_owned();
    let seen = async || {
        let request = client.get(format!("https://{address}/api/v1/applications")).bearer_auth(&token);
        let answer = request.send().await.ok()?;
        serde_json::from_str::<Value>(&answer.text().await.ok()?).ok().map(|list| names(&list))
    };
    let is_there = |seen: &Option<Vec<String>>| seen.as_deref() == Some(&["shop".to_owned()]);
    wait::until_seen(Duration::from_mins(1), "the standby shows the app", seen, is_there).await?;
    Ok(())
}

/// The requests of Backstage's plugin and of `argocd-diff-preview`, which use REST: verb, path, body, and the answer.
const OTHER_CLIENTS: [(&str, &str, &str, u16); 16] = [
    ("POST", "projects", r#"{"project":{"metadata":{"name":"team"},"spec":{"sourceRepos":["*"]}}}"#, 200),
    ("GET", "projects/team", "", 200),
    ("GET", "applications", "", 200),
    ("GET", "applications?selector=app%3Dshop", "", 200),
    ("GET", "applications?appNamespace=", "", 200),
    ("GET", "applications?projects=default", "", 200),
    ("GET", "applications/shop", "", 200),
    ("GET", "applications/shop?refresh=normal", "", 200),
    ("GET", "applications/shop/manifests", "", 200),
    ("GET", "applications/shop/resource-tree", "", 200),
    ("GET", "applications/shop/managed-resources", "", 200),
    ("POST", "applications/shop/sync", "{}", 200),
    ("GET", "session/userinfo", "", 200),
    ("DELETE", "projects/team", "", 200),
    ("DELETE", "applications/shop?cascade=false", "", 200),
    ("DELETE", "applications/none", "", 403),
];

#[tokio::test]
async fn the_requests_of_other_clients_are_answered() -> Result<()> {
    let stage = served().await?;
    let admin = admin(&stage).await?;
    let shop = stage.application("shop", |_| {}).await?;
    stage.until_sync(&shop, "OutOfSync").await?;
    for (verb, path, body, expected) in OTHER_CLIENTS {
        let body = if body.is_empty() { Value::Null } else { serde_json::from_str(body)? };
        let (code, answer) = admin.call(verb, path, body).await?;
        ensure!(code == expected, "{verb} {path}: {code} {answer}");
    }
    Ok(())
}

/// The calls of the Terraform provider in its order: resources are created, read, changed and deleted. A word with `$` stands
/// for a value of the stage or of an earlier answer.
const TERRAFORM: &[(&str, &str)] = &[
    ("version.VersionService/Version", "{}"),
    ("session.SessionService/Create", r#"{"username": "admin", "password": "$PASSWORD"}"#),
    ("cluster.ClusterService/List", r#"{"id": {"type": "server", "value": "https://10.9.8.7"}}"#),
    (
        "cluster.ClusterService/Create",
        r#"{"cluster": {"server": "https://10.9.8.7", "name": "far", "config": {"bearerToken": "x",
            "tlsClientConfig": {"insecure": true}}}}"#,
    ),
    ("cluster.ClusterService/Get", r#"{"server": "https://10.9.8.7"}"#),
    (
        "cluster.ClusterService/Update",
        r#"{"cluster": {"server": "https://10.9.8.7", "name": "farther"}, "updatedFields": ["name"]}"#,
    ),
    ("cluster.ClusterService/List", r#"{"id": {"type": "name", "value": "farther"}}"#),
    ("cluster.ClusterService/Delete", r#"{"server": "https://10.9.8.7"}"#),
    (
        "project.ProjectService/Create",
        r#"{"project": {"metadata": {"name": "tf"}, "spec": {"sourceRepos": ["*"], "roles": [{"name": "ci"}],
            "destinations": [{"server": "*", "namespace": "*"}]}}}"#,
    ),
    ("project.ProjectService/Get", r#"{"name": "tf"}"#),
    (
        "project.ProjectService/Update",
        r#"{"project": {"metadata": {"name": "tf", "resourceVersion": "$VERSION"}, "spec": {"sourceRepos": ["*"],
            "description": "x", "roles": [{"name": "ci"}], "destinations": [{"server": "*", "namespace": "*"}]}}}"#,
    ),
    ("project.ProjectService/CreateToken", r#"{"project": "tf", "role": "ci", "expiresIn": 3600}"#),
    ("project.ProjectService/DeleteToken", r#"{"project": "tf", "role": "ci", "iat": $IAT}"#),
    ("project.ProjectService/Delete", r#"{"name": "tf"}"#),
    ("repository.RepositoryService/ListRepositories", "{}"),
    ("repository.RepositoryService/CreateRepository", r#"{"repo": {"repo": "$URL", "type": "git"}}"#),
    ("repository.RepositoryService/UpdateRepository", r#"{"repo": {"repo": "$URL", "name": "x"}}"#),
    ("repository.RepositoryService/Get", r#"{"repo": "$URL"}"#),
    ("repository.RepositoryService/DeleteRepository", r#"{"repo": "$URL"}"#),
    (
        "repocreds.RepoCredsService/CreateRepositoryCredentials",
        r#"{"creds": {"url": "https://git.example.com/", "username": "u", "password": "p"}}"#,
    ),
    ("repocreds.RepoCredsService/ListRepositoryCredentials", "{}"),
    (
        "repocreds.RepoCredsService/UpdateRepositoryCredentials",
        r#"{"creds": {"url": "https://git.example.com/", "username": "v", "password": "p"}}"#,
    ),
    ("repocreds.RepoCredsService/DeleteRepositoryCredentials", r#"{"url": "https://git.example.com/"}"#),
    (
        "certificate.CertificateService/CreateCertificate",
        r#"{"certificates": {"items": [{"serverName": "git.example.com", "certType": "ssh",
            "certSubType": "ssh-rsa", "certData": "UVVKRA=="}]}}"#,
    ),
    (
        "certificate.CertificateService/ListCertificates",
        r#"{"hostNamePattern": "git.example.com", "certType": "ssh", "certSubType": "ssh-rsa"}"#,
    ),
    (
        "certificate.CertificateService/DeleteCertificate",
        r#"{"hostNamePattern": "git.example.com", "certType": "ssh", "certSubType": "ssh-rsa"}"#,
    ),
    ("gpgkey.GPGKeyService/Create", r#"{"publickey": {"keyData": "$KEY"}}"#),
    ("gpgkey.GPGKeyService/Get", r#"{"keyID": "$ID"}"#),
    ("gpgkey.GPGKeyService/Delete", r#"{"keyID": "$ID"}"#),
    (
        "application.ApplicationService/Create",
        r#"{"application": {"metadata": {"name": "tf"}, "spec": {"project": "default", "source": {"repoURL": "$URL",
            "path": "app"}, "destination": {"server": "https://kubernetes.default.svc", "namespace": "$NAMESPACE"}}},
            "validate": false}"#,
    ),
    ("application.ApplicationService/List", r#"{"name": "tf", "appNamespace": "$NAMESPACE"}"#),
    ("application.ApplicationService/Get", r#"{"name": "tf", "appNamespace": "$NAMESPACE"}"#),
    (
        "application.ApplicationService/Update",
        r#"{"application": {"metadata": {"name": "tf", "labels": {"a": "b"}}, "spec": {"project": "default", "source":
            {"repoURL": "$URL", "path": "app"}, "destination": {"server": "https://kubernetes.default.svc",
            "namespace": "$NAMESPACE"}}}, "validate": false}"#,
    ),
    ("application.ApplicationService/Delete", r#"{"name": "tf", "cascade": false}"#),
    ("applicationset.ApplicationSetService/Create", r#"{"applicationset": $SET}"#),
    ("applicationset.ApplicationSetService/Create", r#"{"applicationset": $SET, "upsert": true}"#),
    ("applicationset.ApplicationSetService/Get", r#"{"name": "teams"}"#),
    ("applicationset.ApplicationSetService/Delete", r#"{"name": "teams"}"#),
    ("account.AccountService/CreateToken", r#"{"name": "robot", "expiresIn": 3600, "id": "tf"}"#),
    ("account.AccountService/GetAccount", r#"{"name": "robot"}"#),
    ("account.AccountService/DeleteToken", r#"{"name": "robot", "id": "tf"}"#),
];

/// One call over gRPC-Web: the answer, or code and message of the error.
async fn web_call(client: &Client, path: &str, request: &Value) -> Result<Result<Value, (i64, String)>> {
    let tables = Tables::get();
    let method = tables.method(path).with_context(|| format!("there is no {path}"))?;
    let message = frame(&encode(tables, method.input, request)?);
    let headers = format!("content-type: application/grpc-web+proto\r\ntoken: {}\r\n", client.token);
    let (code, head, body) = client.send_bytes("POST", &format!("/{path}"), &headers, &message).await?;
    ensure!(code == 200, "{path}: {code}");
    let header = |name: &str| head.lines().find_map(|line| line.strip_prefix(name));
    if let Some(code) = header("grpc-status: ") {
        return Ok(Err((code.parse()?, header("grpc-message: ").unwrap_or_default().to_owned())));
    }
    let (message, taken) = unframe(&body, 1 << 20)?.context("no message")?;
    let end = body.get(taken + FRAME_HEAD..).unwrap_or_default();
    let is_ok = body.get(taken) == Some(&0x80) && end.starts_with(b"grpc-status: 0\r\n");
    ensure!(is_ok, "{path}: the end is {:?}", String::from_utf8_lossy(end));
    Ok(Ok(decode(tables, method.output, message)?))
}

/// When a token was issued.
fn issued_at(token: &str) -> Result<i64> {
    let claims = URL_SAFE_NO_PAD.decode(token.split('.').nth(1).context("no claims")?)?;
    serde_json::from_slice::<Value>(&claims)?["iat"].as_i64().context("no time")
}

#[tokio::test]
async fn the_calls_of_terraform_are_answered_over_grpc_web() -> Result<()> {
    let stage = served().await?;
    let admin = admin(&stage).await?;
    stage.setting("argocd-cm", "accounts.robot", "apiKey").await?;
    let account = async || admin.get("account/robot").await.map(|(code, _)| code).unwrap_or_default();
    wait::until_seen(Duration::from_secs(20), "the account is known", account, |code| *code == 200).await?;
    let mut known = vec![
        ("$PASSWORD", initial_password(&stage).await?),
        ("$URL", stage.repo.url()),
        ("$NAMESPACE", stage.place.name().to_owned()),
        ("$KEY", public_key().replace('\n', "\\n")),
        ("$SET", set(&stage, &["one"]).to_string()),
    ];
    for (path, request) in TERRAFORM {
        let text = known.iter().fold((*request).to_owned(), |text, (word, value)| text.replace(word, value));
        let answered = web_call(&admin, path, &serde_json::from_str(&text)?).await?;
        let answer = answered.map_err(|(code, said)| anyhow::anyhow!("{path} {text}: {code} {said}"))?;
        match *path {
            "project.ProjectService/Get" => {
                let version = answer["metadata"]["resourceVersion"].as_str().context("no version")?;
                known.push(("$VERSION", version.to_owned()));
            }
            "project.ProjectService/CreateToken" => {
                known.push(("$IAT", issued_at(answer["token"].as_str().context("no token")?)?.to_string()));
            }
            "gpgkey.GPGKeyService/Create" => {
                let id = answer["created"]["items"][0]["keyID"].as_str().context("no key")?;
                known.push(("$ID", id.to_owned()));
            }
            "cluster.ClusterService/List" => {
                let count = answer["items"].as_array().map_or(0, Vec::len);
                ensure!(count == usize::from(text.contains("farther")), "{text}: {answer}");
            }
            _ => {}
        }
    }
    // An error is in the headers of a good answer, with its blanks as they are.
    let missing = json!({"id": {"type": "server", "value": "https://nowhere"}});
    let refused = web_call(&admin, "cluster.ClusterService/Get", &missing).await?;
    assert_eq!(refused, Err((7, "permission denied".to_owned())));
    let headers = "content-type: application/grpc-web+proto\r\n";
    let (code, head, _) =
        admin.send_bytes("POST", "/grpc.health.v1.Health/Check", headers, &frame(&[])).await?;
    ensure!(code == 200 && head.contains("grpc-status: 12"), "{code} {head}");
    Ok(())
}

#[tokio::test]
async fn plumb_logs_in_with_argo_cds_own_file() -> Result<()> {
    let stage = served().await?;
    let password = initial_password(&stage).await?;
    let address = stage.address("webhooks").await?.to_string();
    let file = stage.cache().join("logins/config").to_string_lossy().into_owned();
    let plumb = |words: &[&str]| stage.plumb(&[words, &["--config", &file]].concat());
    let first = stage.plumb(&["admin", "initial-password"])?;
    ensure!(first.trim() == password, "another password");
    let wrong = plumb(&["login", &address, "--plaintext", "--username", "admin", "--password", "wrong"]);
    ensure!(wrong.is_err(), "a wrong password");
    let said = plumb(&["login", &address, "--plaintext", "--username", "admin", "--password", &password])?;
    ensure!(said.contains("'admin:login' logged in successfully"), "{said}");
    ensure!(plumb(&["context"])?.contains(&address));
    assert_eq!(plumb(&["account", "can-i", "sync", "applications", "default/shop"])?.trim(), "yes");
    assert_eq!(plumb(&["account", "can-i", "invoke", "extensions", "x"])?.trim(), "no");
    ensure!(plumb(&["account", "get-user-info"])?.contains("Username: admin"));
    ensure!(plumb(&["account", "list"])?.contains("admin"));
    plumb(&["logout", &address])?;
    ensure!(plumb(&["account", "list"]).is_err(), "the token is gone");
    ensure!(!std::fs::read_to_string(&file)?.contains("eyJ"), "the token is still in the file");
    Ok(())
}
