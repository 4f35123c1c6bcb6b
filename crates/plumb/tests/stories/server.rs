//! Clients of Argo CD's API: who may see and do what, and that the `argocd` program works.

use std::net::SocketAddr;

use anyhow::{Context, Result, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use plumb_testkit::{objects, wait};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::stage::Stage;

/// A user of the API.
pub(crate) struct Client {
    pub(crate) address: SocketAddr,
    pub(crate) token: String,
}

impl Client {
    /// One request with these headers: the status, the head and the JSON of the answer.
    pub(crate) async fn send(
        &self,
        method: &str,
        path: &str,
        headers: &str,
        body: &Value,
    ) -> Result<(u16, String, Value)> {
        let (code, head, text) = self.send_for_text(method, path, headers, body).await?;
        Ok((code, head, serde_json::from_str(&text).unwrap_or_default()))
    }

    /// The same, for an answer that is no JSON.
    pub(crate) async fn send_for_text(
        &self,
        method: &str,
        path: &str,
        headers: &str,
        body: &Value,
    ) -> Result<(u16, String, String)> {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let (code, head, answer) = self.send_bytes(method, path, headers, body.as_bytes()).await?;
        Ok((code, head, String::from_utf8(answer)?))
    }

    /// The same with bytes.
    pub(crate) async fn send_bytes(
        &self,
        method: &str,
        path: &str,
        headers: &str,
        body: &[u8],
    ) -> Result<(u16, String, Vec<u8>)> {
        let head = format!(
            "{method} {path} HTTP/1.1\r\nhost: plumb\r\nconnection: close\r\ncontent-length: {}\r\n{headers}\r\n",
            body.len()
        );
        let mut stream = TcpStream::connect(self.address).await?;
        stream.write_all(&[head.as_bytes(), body].concat()).await?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).await?;
        let end = answer.windows(4).position(|bytes| bytes == b"\r\n\r\n").unwrap_or(answer.len());
        let body = answer.get(end + 4..).unwrap_or_default().to_vec();
        answer.truncate(end);
        let head = String::from_utf8(answer)?;
        let code = head.split(' ').nth(1).context("no status line")?.parse()?;
        Ok((code, head.to_lowercase(), body))
    }

    pub(crate) async fn call(&self, method: &str, path: &str, body: Value) -> Result<(u16, Value)> {
        let headers = format!("content-type: application/json\r\nauthorization: Bearer {}\r\n", self.token);
        let (code, _, answer) = self.send(method, &format!("/api/v1/{path}"), &headers, &body).await?;
        Ok((code, answer))
    }

    pub(crate) async fn get(&self, path: &str) -> Result<(u16, Value)> {
        self.call("GET", path, Value::Null).await
    }
}

/// Logs in; the status if that fails.
pub(crate) async fn login(address: SocketAddr, user: &str, password: &str) -> Result<Result<Client, u16>> {
    let nobody = Client { address, token: String::new() };
    let body = json!({"username": user, "password": password});
    let headers = "content-type: application/json\r\n";
    let (code, _, answer) = nobody.send("POST", "/api/v1/session", headers, &body).await?;
    let token = answer["token"].as_str().map(str::to_owned);
    Ok(token.map(|token| Client { address, token }).ok_or(code))
}

/// The admin, of a server that leads.
pub(crate) async fn admin(stage: &Stage) -> Result<Client> {
    let (address, password) = (stage.address("webhooks").await?, initial_password(stage).await?);
    let admin = login(address, "admin", &password).await?.ok().context("admin cannot log in")?;
    let leads = async || admin.get("applications").await.map(|(code, _)| code).unwrap_or_default();
    wait::until_seen(std::time::Duration::from_secs(30), "the server leads", leads, |code| *code == 200)
        .await?;
    Ok(admin)
}

pub(crate) async fn initial_password(stage: &Stage) -> Result<String> {
    let secret = objects::secret("argocd-initial-admin-secret", &[]);
    let secret =
        stage.place.wait(&secret, "has a password", |secret| secret["data"]["password"].is_string()).await?;
    let password = secret["data"]["password"].as_str().context("no password")?;
    Ok(String::from_utf8(STANDARD.decode(password)?)?)
}

/// A stage with the API, without TLS.
pub(crate) async fn served() -> Result<Stage> {
    let mut stage = Stage::bare().await?;
    stage.serves = true;
    stage.arguments = vec!["--insecure".to_owned()];
    let deployed = objects::manifests(&[
        objects::config_map("settings", &[("a", "b")]),
        objects::secret("keys", &[("password", "s3cr3t-value")]),
    ]);
    stage.repo.commit(&[("app/all.yaml", deployed)])?;
    stage.begin().await?;
    Ok(stage)
}

#[tokio::test]
async fn users_see_and_do_what_the_policy_permits() -> Result<()> {
    let stage = served().await?;
    stage.setting("argocd-cm", "accounts.ann", "login").await?;
    stage.setting("argocd-rbac-cm", "policy.csv", "p, ann, applications, get, default/shop, allow").await?;
    let (shop, other) = (stage.application("shop", |_| {}).await?, stage.application("other", |_| {}).await?);
    stage.until_sync(&shop, "OutOfSync").await?;
    stage.until_sync(&other, "OutOfSync").await?;
    let address = stage.address("webhooks").await?;
    let password = initial_password(&stage).await?;
    let admin = login(address, "admin", &password).await?.ok().context("admin cannot log in")?;
    let change = json!({"name": "ann", "currentPassword": password, "newPassword": "ann's password"});
    assert_eq!(admin.call("PUT", "account/password", change).await?.0, 200);
    let ann = login(address, "ann", "ann's password").await?.ok().context("ann cannot log in")?;

    let names = |list: &Value| -> Vec<String> {
        let items = list["items"].as_array().into_iter().flatten();
        items.filter_map(|app| app["metadata"]["name"].as_str().map(str::to_owned)).collect()
    };
    assert_eq!(names(&admin.get("applications").await?.1), ["other", "shop"]);
    assert_eq!(names(&ann.get("applications").await?.1), ["shop"]);
    let fields = ann.get("applications?fields=items.metadata.name").await?.1;
    assert_eq!(fields, json!({"items": [{"metadata": {"name": "shop"}}]}));
    // What exists and what does not look the same to whoever may not see it.
    let (hidden, missing) = (ann.get("applications/other").await?, ann.get("applications/none").await?);
    assert_eq!(hidden, missing);
    assert_eq!(hidden.0, 403);
    // The same for every call (CVE-2022-41354).
    let patch = json!({"patch": "{}", "patchType": "merge"});
    for (verb, path, body) in [
        ("POST", "/sync", json!({})),
        ("POST", "/rollback", json!({"id": 1})),
        ("PATCH", "", patch),
        ("DELETE", "", Value::Null),
        ("DELETE", "/operation", Value::Null),
        ("PUT", "/spec", json!({"project": "default"})),
        ("GET", "/resource-tree", Value::Null),
        ("GET", "/managed-resources", Value::Null),
        ("GET", "/manifests", Value::Null),
        ("GET", "/events", Value::Null),
        ("GET", "/links", Value::Null),
        ("GET", "/syncwindows", Value::Null),
        ("GET", "/pods/x/logs", Value::Null),
        ("GET", "?project=default", Value::Null),
    ] {
        let hidden = ann.call(verb, &format!("applications/other{path}"), body.clone()).await?;
        let missing = ann.call(verb, &format!("applications/none{path}"), body).await?;
        ensure!(hidden == missing && hidden.0 == 403, "{verb} {path}: {hidden:?} or {missing:?}");
    }
    assert_eq!(ann.call("POST", "applications/shop/sync", json!({})).await?.0, 403);
    // A project that the request names is that of the Application.
    assert_eq!(admin.get("applications/shop?project=default").await?.0, 200);
    assert_eq!(admin.get("applications/shop?project=other").await?.0, 404);
    assert_eq!(ann.get("applications/shop?project=other").await?.0, 403);
    assert_eq!(ann.call("DELETE", "applications/shop", Value::Null).await?.0, 403);
    assert_eq!(ann.get("clusters").await?.1["items"], json!([]));
    let nobody = Client { address, token: String::new() };
    assert_eq!(nobody.send("GET", "/api/v1/applications", "", &Value::Null).await?.0, 401);
    // The rule against forms of other sites.
    let bearer = format!("authorization: Bearer {}\r\n", admin.token);
    let (code, _, _) = admin.send("POST", "/api/v1/applications/shop/sync", &bearer, &json!({})).await?;
    assert_eq!(code, 415);

    // Keys of Secrets are where the cluster has them.
    let (code, rendered) = ann.get("applications/shop/manifests").await?;
    let shown = rendered.to_string();
    ensure!(code == 200 && shown.contains("password") && !shown.contains("stringData"), "{shown}");
    let (code, synced) = admin.call("POST", "applications/shop/sync", json!({})).await?;
    assert_eq!((code, &synced["operation"]["initiatedBy"]["username"]), (200, &json!("admin")));
    stage.until_sync(&shop, "Synced").await?;
    let (code, managed) = ann.get("applications/shop/managed-resources").await?;
    let shown = managed.to_string();
    ensure!(code == 200 && shown.contains("settings") && shown.contains("++++"), "{shown}");
    ensure!(!shown.contains("s3cr3t") && !shown.contains(&STANDARD.encode("s3cr3t-value")), "{shown}");
    // The answer to a sync shows the Application, so the right to sync alone is not enough.
    let sync = "p, ann, applications, sync, default/shop, allow";
    stage.setting("argocd-rbac-cm", "policy.csv", sync).await?;
    let seen = async || ann.get("applications/shop").await.map(|(code, _)| code).unwrap_or_default();
    wait::until_seen(std::time::Duration::from_secs(20), "ann may only sync", &seen, |code| *code == 403)
        .await?;
    assert_eq!(ann.call("POST", "applications/shop/sync", json!({})).await?.0, 403);
    let both = format!("{sync}\np, ann, applications, get, default/shop, allow");
    stage.setting("argocd-rbac-cm", "policy.csv", &both).await?;
    wait::until_seen(std::time::Duration::from_secs(20), "ann may see, too", seen, |code| *code == 200)
        .await?;
    let syncs =
        async || ann.call("POST", "applications/shop/sync", json!({})).await.ok().map(|(code, _)| code);
    let is_begun = |code: &Option<u16>| *code == Some(200);
    wait::until_seen(std::time::Duration::from_secs(20), "ann syncs", syncs, is_begun).await?;
    // A permission that goes takes effect without a new login.
    stage.setting("argocd-rbac-cm", "policy.csv", "").await?;
    let denied = async || ann.get("applications/shop").await.map(|(code, _)| code).unwrap_or_default();
    wait::until_seen(std::time::Duration::from_secs(20), "ann may see nothing", denied, |code| *code == 403)
        .await?;
    Ok(())
}

#[tokio::test]
async fn a_session_ends_and_failures_count_across_restarts() -> Result<()> {
    let mut stage = served().await?;
    let password = initial_password(&stage).await?;
    let address = stage.address("webhooks").await?;
    let admin = login(address, "admin", &password).await?.ok().context("admin cannot log in")?;
    assert_eq!(admin.get("session/userinfo").await?.1["username"], "admin");
    let cookie = format!("cookie: argocd.token={}\r\n", admin.token);
    let (code, head, _) = admin.send("POST", "/auth/logout", &cookie, &Value::Null).await?;
    ensure!(code == 303 && head.contains("argocd.token=;") && head.contains("httponly"), "{head}");
    assert_eq!(admin.get("applications").await?.0, 401, "the token is revoked");
    for _ in 0..5 {
        ensure!(login(address, "admin", "wrong").await?.is_err());
    }
    ensure!(login(address, "admin", &password).await?.is_err(), "the name is locked");
    stage.stop_plumb()?;
    std::fs::remove_file(stage.cache().join("plumb.log"))?;
    stage.start_plumb()?;
    let address = stage.address("webhooks").await?;
    ensure!(login(address, "admin", &password).await?.is_err(), "the name is locked after a restart");
    assert_eq!(Client { address, token: admin.token }.get("applications").await?.0, 401, "still revoked");
    let log = stage.log()?;
    ensure!(!log.contains(&password) && !log.contains("eyJ"), "secrets in the log: {log}");
    Ok(())
}
