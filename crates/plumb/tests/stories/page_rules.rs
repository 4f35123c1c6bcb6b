//! The page's own calls on a real server: who sees what, who may do what, a page that is read-only, a path below a proxy.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use plumb_testkit::{objects, wait};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::page::{automated, in_folder};
use crate::server::{Client, admin, initial_password, login, served};
use crate::stage::Stage;

/// How long the page may take to learn what the cluster has.
const SOON: Duration = Duration::from_secs(30);

/// Reads one of the page's calls.
async fn read(client: &Client, call: &str) -> Result<(u16, Value)> {
    let headers = format!("authorization: Bearer {}\r\n", client.token);
    let (code, _, answer) =
        client.send("GET", &format!("/api/plumb/v1/{call}"), &headers, &Value::Null).await?;
    Ok((code, answer))
}

/// Sends a plan or an act, as the page does.
async fn send(client: &Client, call: &str, body: &Value) -> Result<(u16, Value)> {
    let headers = format!(
        "authorization: Bearer {}\r\ncontent-type: application/json\r\nx-plumb-page: 1\r\n",
        client.token
    );
    let (code, _, answer) = client.send("POST", &format!("/api/plumb/v1/{call}"), &headers, body).await?;
    Ok((code, answer))
}

/// Waits until an answer holds this text.
async fn until_says(client: &Client, call: &str, text: &str) -> Result<Value> {
    let said = async || read(client, call).await.map(|(_, answer)| answer).unwrap_or_default();
    let holds = |answer: &Value| answer.to_string().contains(text);
    wait::until_seen(SOON, &format!("{call} says {text}"), said, holds).await
}

/// A stage with two apps: `shop`, and `other`, whose pod mounts a `ConfigMap` of `shop`, and which has an orphan.
async fn two_apps() -> Result<(Stage, Value, Value)> {
    let stage = served().await?;
    let volumes = json!([{"name": "config", "configMap": {"name": "settings"}}]);
    let pod = objects::with(objects::pod("other-pod"), "/spec/volumes", volumes);
    stage.repo.commit(&[
        ("other/gone.yaml", objects::manifests(&[objects::config_map("other-orphan", &[])])),
        ("other/stays.yaml", objects::manifests(&[pod, objects::config_map("other-stays", &[])])),
    ])?;
    let shop = stage.application("shop", automated(json!({}))).await?;
    let other = stage.application("other", in_folder("other", json!({}))).await?;
    stage.until_sync(&shop, "Synced").await?;
    stage.until_sync(&other, "Synced").await?;
    stage.repo.remove(&["other/gone.yaml"])?;
    stage.refresh(&other).await?;
    stage.until_sync(&other, "OutOfSync").await?;
    Ok((stage, shop, other))
}

/// A user who may see `shop`, and do nothing.
async fn ann(stage: &Stage, admin: &Client) -> Result<Client> {
    stage.setting("argocd-cm", "accounts.ann", "login").await?;
    stage.setting("argocd-rbac-cm", "policy.csv", "p, ann, applications, get, default/shop, allow").await?;
    let change = json!({"name": "ann", "currentPassword": initial_password(stage).await?, "newPassword": "ann's password"});
    let changed =
        async || admin.call("PUT", "account/password", change.clone()).await.map_or(0, |(code, _)| code);
    wait::until_seen(SOON, "ann has a password", changed, |code| *code == 200).await?;
    login(admin.address, "ann", "ann's password").await?.ok().context("ann cannot log in")
}

#[tokio::test]
async fn the_page_shows_what_the_policy_permits() -> Result<()> {
    let (stage, shop, _) = two_apps().await?;
    let namespace = stage.place.name().to_owned();
    let admin = admin(&stage).await?;
    let ann = ann(&stage, &admin).await?;
    let names = |answer: &Value| -> Vec<String> {
        let rows = answer["rows"].as_array().into_iter().flatten();
        rows.filter_map(|row| row[1].as_str().map(str::to_owned)).collect()
    };
    until_says(&admin, "orphans", "other-orphan").await?;
    assert_eq!(names(&read(&admin, "apps").await?.1).len(), 2);
    let (_, seen) = read(&ann, "apps").await?;
    assert_eq!(names(&seen), ["shop"]);
    assert_eq!(read(&ann, "home").await?.1["apps"], 1);
    // What exists and what does not look the same to those who may not see it.
    let of = |name: &str| format!("apps/{namespace}/{name}");
    let (hidden, missing) = (read(&ann, &of("other")).await?, read(&ann, &of("none")).await?);
    assert_eq!((hidden.0, missing.0), (404, 404));
    assert_eq!(hidden.1.to_string().replace("other", "none"), missing.1.to_string());
    assert_eq!((read(&admin, "find/other").await?.0, read(&ann, "find/other").await?.0), (200, 404));
    for list in ["doctor", "orphans", "activity", "failures", "undo"] {
        let (code, answer) = read(&ann, list).await?;
        ensure!(
            code == 200 && !answer.to_string().contains("other"),
            "{list} tells ann of another app: {answer}"
        );
        ensure!(read(&admin, list).await?.0 == 200, "{list}");
    }
    // Users of an object are named to those who may see their app, and counted for all.
    let users = format!("{}/o/-/ConfigMap/{namespace}/settings/users", of("shop"));
    let seen = until_says(&admin, &users, "other-pod").await?;
    assert_eq!((&seen["users"][0]["app"], &seen["hidden"]), (&json!([namespace, "other"]), &json!(0)));
    assert_eq!(read(&ann, &users).await?.1, json!({"users": [], "hidden": 1}));
    let (_, orphans) = read(&admin, "orphans").await?;
    assert_eq!(orphans["orphans"][0]["used"], 0, "{orphans}");
    // What is set is for those who may see clusters.
    ensure!(read(&admin, "settings").await?.1["settings"].is_array());
    ensure!(read(&ann, "settings").await?.1["refusal"].is_string());
    // A verb that is refused says which permission is missing, and does nothing.
    let (_, detail) = read(&ann, &of("shop")).await?;
    ensure!(detail["can"]["sync"].to_string().contains("applications, sync"), "{}", detail["can"]);
    let sync = json!({"verb": "sync", "app": [namespace, "shop"], "options": {}});
    let (code, plan) = send(&ann, "plans", &sync).await?;
    ensure!(code == 200 && plan["hurdle"].to_string().contains("applications, sync"), "{plan}");
    let mut act = sync.clone();
    act["token"] = plan["token"].clone();
    assert_eq!(send(&ann, "acts", &act).await?.0, 409);
    assert_eq!(
        send(&ann, "plans", &json!({"verb": "sync", "app": [namespace, "other"], "options": {}})).await?.0,
        404
    );
    acts_need_a_plan(&admin, &sync).await?;
    told_of_what_goes(&stage, &ann, &shop, &seen_token(&ann).await?).await
}

/// An act needs the token of the plan as it is now, and comes from the page itself.
async fn acts_need_a_plan(admin: &Client, sync: &Value) -> Result<()> {
    let mut act = sync.clone();
    act["token"] = json!("stale");
    let (code, moved) = send(admin, "acts", &act).await?;
    ensure!(code == 409 && moved["plan"]["token"].is_string(), "{moved}");
    act["token"] = moved["plan"]["token"].clone();
    let bearer = format!("authorization: Bearer {}\r\ncontent-type: application/json\r\n", admin.token);
    let (code, _, _) = admin.send("POST", "/api/plumb/v1/acts", &bearer, &act).await?;
    assert_eq!(code, 403, "a form of another site could send it");
    let nobody = Client { address: admin.address, token: String::new() };
    assert_eq!(send(&nobody, "acts", &act).await?.0, 401);
    let (code, done) = send(admin, "acts", &act).await?;
    ensure!(code == 200, "{done}");
    Ok(())
}

/// Where a stream of this user may begin.
async fn seen_token(client: &Client) -> Result<String> {
    let (_, apps) = read(client, "apps").await?;
    Ok(apps["token"].as_str().context("no token")?.to_owned())
}

/// The stream tells that an app is gone, and nothing of the others.
async fn told_of_what_goes(stage: &Stage, ann: &Client, shop: &Value, from: &str) -> Result<()> {
    let mut stream = TcpStream::connect(ann.address).await?;
    let request = format!(
        "GET /api/plumb/v1/stream?from={from} HTTP/1.1\r\nhost: plumb\r\nauthorization: Bearer {}\r\n\r\n",
        ann.token
    );
    stream.write_all(request.as_bytes()).await?;
    stage.place.delete(shop).await?;
    let gone = json!([[stage.place.name(), "shop"]]).to_string();
    let mut seen = String::new();
    let told = tokio::time::timeout(SOON, async {
        while !seen.contains(&format!("\"gone\":{gone}")) {
            let mut some = [0; 4096];
            let n = stream.read(&mut some).await?;
            ensure!(n > 0, "the stream ended: {seen}");
            seen.push_str(&String::from_utf8_lossy(&some[..n]));
        }
        Ok(())
    });
    told.await.with_context(|| format!("the stream says nothing of it: {seen}"))??;
    ensure!(!seen.contains("other"), "the stream tells ann of another app: {seen}");
    Ok(())
}

#[tokio::test]
async fn a_read_only_page_below_a_path_refuses_every_act() -> Result<()> {
    let mut stage = Stage::bare().await?;
    stage.serves = true;
    stage.arguments =
        ["--insecure", "--page", "read-only", "--rootpath", "/tools/plumb"].map(str::to_owned).to_vec();
    stage.repo.commit(&[("app/all.yaml", objects::manifests(&[objects::config_map("settings", &[])]))])?;
    stage.begin().await?;
    let (address, password) = (stage.address("webhooks").await?, initial_password(&stage).await?);
    let nobody = Client { address, token: String::new() };
    let shop = stage.application("shop", automated(json!({}))).await?;
    stage.until_sync(&shop, "Synced").await?;

    // The document, its files and its calls are below the path, and so is the cookie.
    let (code, _, document) =
        nobody.send_for_text("GET", "/tools/plumb/applications", "", &Value::Null).await?;
    if document.contains("built without its page") {
        return Ok(());
    }
    ensure!(code == 200 && document.contains("<base href=\"/tools/plumb/\">"), "{code}: {document}");
    let script =
        document.split("src=\"").nth(1).and_then(|rest| rest.split('"').next()).context("no script")?;
    let (code, head, _) =
        nobody.send_for_text("HEAD", &format!("/tools/plumb/{script}"), "", &Value::Null).await?;
    ensure!(code == 200 && head.contains("text/javascript"), "{code}: {head}");
    let body = json!({"username": "admin", "password": password});
    let json = "content-type: application/json\r\n";
    let (code, head, session) = nobody.send("POST", "/tools/plumb/api/v1/session", json, &body).await?;
    ensure!(code == 200 && head.contains("path=/tools/plumb"), "{code}: {head}");
    let token = session["token"].as_str().context("no token")?;

    let headers = format!("authorization: Bearer {token}\r\n{json}x-plumb-page: 1\r\n");
    let send = async |call: &str, body: &Value| -> Result<(u16, Value)> {
        let path = format!("/tools/plumb/api/plumb/v1/{call}");
        let method = if body.is_null() { "GET" } else { "POST" };
        let (code, _, answer) = nobody.send(method, &path, &headers, body).await?;
        Ok((code, answer))
    };
    let me = async || send("me", &Value::Null).await.map(|(_, answer)| answer).unwrap_or_default();
    let me = wait::until_seen(SOON, "the server leads", me, |me| me["user"] == "admin").await?;
    assert_eq!(me["readOnly"], true);
    let sync = json!({"verb": "sync", "app": [stage.place.name(), "shop"], "options": {}});
    let plan = async || send("plans", &sync).await.unwrap_or_default();
    let (_, plan) = wait::until_seen(SOON, "there is a plan", plan, |(code, _)| *code == 200).await?;
    ensure!(plan["commands"][0].to_string().contains("plumb app sync"), "a plan has its command: {plan}");
    let mut act = sync.clone();
    act["token"] = plan["token"].clone();
    assert_eq!(send("acts", &act).await?.0, 403);
    assert_eq!(
        send("acts", &json!({"verb": "restore", "options": {"id": "none"}, "token": "t"})).await?.0,
        403
    );
    Ok(())
}
