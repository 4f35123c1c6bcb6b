//! What earlier holes of Argo CD's server taught: each is tried here.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use plumb_testkit::{TestNamespace, objects, wait};
use serde_json::{Value, json};

use crate::borders::project_for;
use crate::server::{Client, admin, initial_password, served};

/// Strangers learn the version and what a login page needs (CVE-2021-26923, CVE-2024-37152), get safe headers
/// (CVE-2021-26924), and the same answer for every wrong login (CVE-2020-11576).
#[tokio::test]
async fn strangers_learn_little() -> Result<()> {
    let stage = served().await?;
    let nobody = Client { address: stage.address("webhooks").await?, token: String::new() };
    initial_password(&stage).await?;
    let (code, head, version) = nobody.send("GET", "/api/version", "", &Value::Null).await?;
    ensure!(code == 200 && version.as_object().is_some_and(|version| version.len() == 1), "{version}");
    for header in ["x-content-type-options: nosniff", "x-frame-options: deny", "content-security-policy:"] {
        ensure!(head.contains(header), "{header} is missing: {head}");
    }
    let (_, _, settings) = nobody.send("GET", "/api/v1/settings", "", &Value::Null).await?;
    for hidden in ["passwordPattern", "controllerNamespace", "resourceOverrides"] {
        ensure!(settings.get(hidden).is_none(), "{hidden} in {settings}");
    }
    let mut answers = Vec::new();
    for (user, password) in [("admin", "wrong"), ("nobody", "wrong")] {
        let body = json!({"username": user, "password": password});
        answers.push(
            nobody.send("POST", "/api/v1/session", "content-type: application/json\r\n", &body).await?.2,
        );
    }
    assert_eq!(answers[0], answers[1]);
    for path in
        ["applications", "clusters", "repositories", "projects", "certificates", "gpgkeys", "applicationsets"]
    {
        assert_eq!(nobody.get(path).await?.0, 401, "{path}");
    }
    // A badge says nothing unless the settings turn it on.
    let (code, head, badge) = nobody.send_for_text("GET", "/api/badge?name=x", "", &Value::Null).await?;
    ensure!(
        code == 200 && head.contains("image/svg+xml") && badge.contains("Unknown"),
        "{code} {head} {badge}"
    );
    // Nothing of the query is part of a page (CVE-2022-31102), and without single sign-on there is no login page.
    let (code, _, _) =
        nobody.send("GET", "/auth/login?return_url=https://evil.example", "", &Value::Null).await?;
    assert_eq!(code, 404);
    Ok(())
}

/// Forged tokens are refused, also where anonymous access is on (CVE-2022-29165).
#[tokio::test]
async fn a_token_that_fails_is_nobodys() -> Result<()> {
    let stage = served().await?;
    let admin = admin(&stage).await?;
    stage.setting("argocd-cm", "users.anonymous.enabled", "true").await?;
    stage.setting("argocd-rbac-cm", "policy.default", "role:readonly").await?;
    let anonymous = Client { address: admin.address, token: String::new() };
    let open = async || anonymous.get("projects").await.map(|(code, _)| code).unwrap_or_default();
    wait::until_seen(Duration::from_secs(20), "anonymous access is on", open, |code| *code == 200).await?;
    let part = |value: Value| URL_SAFE_NO_PAD.encode(value.to_string());
    let claims = |issuer: &str| json!({"iss": issuer, "sub": "admin:login", "iat": 1, "jti": "x", "exp": 9_999_999_999_i64});
    let (head, rest) = admin.token.split_once('.').context("no token")?;
    let (body, tag) = rest.split_once('.').context("no token")?;
    for forged in [
        format!("{}.{}.", part(json!({"alg": "none"})), part(claims("argocd"))),
        format!("{head}.{}.{tag}", part(claims("argocd"))),
        format!("{}.{body}.{tag}", part(json!({"alg": "RS256"}))),
        format!("{head}.{}.{tag}", part(claims("https://other.example"))),
        "a.b.c".to_owned(),
    ] {
        let forger = Client { address: admin.address, token: forged };
        assert_eq!(forger.get("projects").await?.0, 401, "{}", forger.token);
    }
    Ok(())
}

/// `operation` and `status` of a request never count (CVE-2023-50726); an app outside of its project's namespaces is
/// refused (CVE-2024-31990); clusters are shown without what was applied (CVE-2023-40029) and without credentials, also
/// in projects (CVE-2025-55190).
#[tokio::test]
async fn requests_change_and_show_only_what_they_may() -> Result<()> {
    let stage = served().await?;
    let admin = admin(&stage).await?;
    let mut app = stage.application_named("shop");
    app["metadata"] = json!({"name": "shop"});
    app["spec"] = json!({"project": "default", "source": {"repoURL": stage.repo.url(), "path": "app"},
        "destination": {"server": "https://kubernetes.default.svc", "namespace": stage.place.name()}});
    app["operation"] = json!({"sync": {"prune": true}});
    app["status"] = json!({"sync": {"status": "Synced"}});
    let (code, created) = admin.call("POST", "applications", app.clone()).await?;
    ensure!(code == 200 && created.get("operation").is_none(), "{created}");
    app["metadata"] = json!({"name": "elsewhere", "namespace": "kube-system"});
    assert_ne!(admin.call("POST", "applications", app).await?.0, 200);
    let config = json!({"bearerToken": "t0ken-value", "tlsClientConfig": {"insecure": true}});
    let cluster = json!({"server": "https://10.9.8.7", "name": "far", "project": "default", "config": config,
        "annotations": {"kubectl.kubernetes.io/last-applied-configuration": "t0ken-value", "note": "x"}});
    assert_eq!(admin.call("POST", "clusters", cluster).await?.0, 200);
    for path in ["clusters", "projects/default/detailed"] {
        let shown = admin.get(path).await?.1.to_string();
        ensure!(shown.contains("https://10.9.8.7") && !shown.contains("t0ken-value"), "{path}: {shown}");
    }
    Ok(())
}

/// Whoever may see an app sees nothing of what its project does not permit, and nothing of the other apps of the project
/// (CVE-2026-42880): not as a managed object, not in the tree, and not through a dry run of manifests of one's own.
#[tokio::test]
async fn an_app_shows_nothing_beyond_its_project_and_its_objects() -> Result<()> {
    let stage = served().await?;
    let victim = TestNamespace::new().await?;
    project_for(&stage, "team", stage.place.name()).await?;
    let admin = admin(&stage).await?;
    let secret = objects::config_map("elsewhere", &[("password", "canary-elsewhere")]);
    victim.apply(&secret).await?;
    let theirs = objects::in_namespace(objects::config_map("elsewhere", &[("a", "b")]), victim.name());
    stage.repo.commit(&[
        ("mine/all.yaml", objects::manifests(&[theirs, objects::config_map("own", &[("a", "b")])])),
        (
            "other/all.yaml",
            objects::manifests(&[objects::config_map("of-other", &[("a", "canary-of-other")])]),
        ),
    ])?;
    for name in ["mine", "other"] {
        let app = stage
            .application(name, |app| {
                app["spec"]["project"] = json!("team");
                app["spec"]["source"]["path"] = json!(name);
            })
            .await?;
        stage.until_sync(&app, "OutOfSync").await?;
    }
    assert_eq!(admin.call("POST", "applications/other/sync", json!({})).await?.0, 200);
    stage.until_sync(&stage.application_named("other"), "Synced").await?;
    // A stranger's object with the mark of the app.
    let mark = format!("mine:/ConfigMap:{}/marked", victim.name());
    let mut marked = objects::config_map("marked", &[("a", "canary-marked")]);
    marked["metadata"]["annotations"] = json!({"argocd.argoproj.io/tracking-id": mark});
    victim.apply(&marked).await?;
    stage.refresh_hard(&stage.application_named("mine")).await?;

    let mut shown = String::new();
    for path in ["managed-resources", "resource-tree"] {
        let (code, answer) = admin.get(&format!("applications/mine/{path}")).await?;
        ensure!(code == 200, "{path}: {answer}");
        shown.push_str(&answer.to_string());
    }
    ensure!(shown.contains("own") && !shown.contains("canary") && !shown.contains("marked"), "{shown}");
    let object = format!("resourceName=marked&kind=ConfigMap&version=v1&namespace={}", victim.name());
    assert_ne!(admin.get(&format!("applications/mine/resource?{object}")).await?.0, 200);
    let guess = |name: &str| {
        let object = objects::in_namespace(objects::config_map(name, &[("a", "guess")]), stage.place.name());
        format!("applications/mine/server-side-diff?targetManifests={}", escaped(&object.to_string()))
    };
    let (code, answer) = admin.get(&guess("of-other")).await?;
    ensure!(code == 403 && !answer.to_string().contains("canary"), "{code} {answer}");
    let (code, answer) = admin.get(&guess("own")).await?;
    ensure!(code == 200 && answer["modified"] == json!(true), "{code} {answer}");
    Ok(())
}

/// A text as a value of a query.
fn escaped(text: &str) -> String {
    text.bytes().fold(String::new(), |all, byte| all + &format!("%{byte:02X}"))
}

/// A large request of a stranger is refused before it is read.
#[tokio::test]
async fn a_stranger_sends_no_large_requests() -> Result<()> {
    let stage = served().await?;
    let admin = admin(&stage).await?;
    let nobody = Client { address: admin.address, token: String::new() };
    let large = json!({"name": "x".repeat(200_000)});
    for path in ["applications", "session"] {
        // The server may end the connection before it has read everything.
        let answer = nobody.call("POST", path, large.clone()).await;
        ensure!(answer.as_ref().map_or(true, |(code, _)| [401, 429].contains(code)), "{path}: {answer:?}");
    }
    // A user may send as much for one object.
    let (code, answer) =
        admin.call("PUT", "applications/none/spec", json!({"project": "x".repeat(200_000)})).await?;
    assert_eq!(code, 403, "{answer}");
    Ok(())
}

/// Requests that took more than they should have: each is refused, and no answer quotes a login or a script.
#[tokio::test]
async fn requests_of_earlier_attacks_are_refused() -> Result<()> {
    let stage = served().await?;
    let admin = admin(&stage).await?;
    let shop = stage.application("shop", |_| {}).await?;
    stage.until_sync(&shop, "OutOfSync").await?;
    let known = async || admin.get("applications/shop").await.map(|(code, _)| code).unwrap_or_default();
    wait::until_seen(Duration::from_secs(20), "the server knows the app", known, |code| *code == 200).await?;
    // An object that is no part of the app (CVE-2022-24768, CVE-2022-1025).
    let object = "kind=ConfigMap&group=&version=v1&resourceName=kube-root-ca.crt&namespace=kube-system";
    let path = format!("applications/shop/resource?{object}");
    for (method, body) in [("GET", Value::Null), ("DELETE", Value::Null), ("POST", json!("{}"))] {
        let (code, said) = admin.call(method, &path, body).await?;
        ensure!(code == 400, "{method}: {code} {said}");
    }
    // Only web addresses become links (CVE-2022-31035, CVE-2024-28175, CVE-2025-47933, CVE-2026-45738).
    let mut app = stage.application_named("linked");
    app["metadata"] = json!({"name": "linked",
        "annotations": {"argocd.argoproj.io/managed-by-url": "javascript:alert(1)"}});
    app["spec"] = json!({"project": "default", "source": {"repoURL": stage.repo.url(), "path": "app"},
        "destination": {"server": "https://kubernetes.default.svc", "namespace": stage.place.name()}});
    let (code, said) = admin.call("POST", "applications", app).await?;
    ensure!(code == 400, "{code} {said}");
    // The login in an address is in no error (CVE-2023-25163).
    let address = "http%3A%2F%2Fuser%3As3cr3t-login%40127.0.0.1%3A1%2Fx.git";
    let sent = json!("http://user:s3cr3t-login@127.0.0.1:1/x.git");
    let (code, said) = admin.call("POST", &format!("repositories/{address}/validate"), sent).await?;
    ensure!(code != 200 && !said.to_string().contains("s3cr3t-login"), "{code} {said}");
    // Nothing of a request is part of a page (CVE-2021-23347, CVE-2022-31102, CVE-2022-24905).
    let oidc = json!({"name": "None", "issuer": "https://127.0.0.1:1", "clientID": "x", "clientSecret": "y"});
    stage.setting("argocd-cm", "url", "http://127.0.0.1:1").await?;
    stage.setting("argocd-cm", "oidc.config", &oidc.to_string()).await?;
    let page = async |path: &str| admin.send_for_text("GET", path, "", &Value::Null).await;
    let login = async || page("/auth/login").await.map(|(code, _, _)| code).unwrap_or_default();
    let is_on = |code: &u16| *code == 400;
    wait::until_seen(Duration::from_secs(20), "single sign-on is configured", login, is_on).await?;
    for path in ["/auth/login?return_url=<script>x</script>", "/auth/callback?error=<script>x</script>"] {
        let (code, head, body) = page(&path.replace('<', "%3C").replace('>', "%3E")).await?;
        ensure!(code == 400 && body.contains("the login failed"), "{path}: {code} {head} {body}");
        ensure!(!format!("{head}{body}").contains("<script>"), "{path}: {head}{body}");
    }
    // There is no terminal (CVE-2023-40025, CVE-2024-41666).
    assert_eq!(admin.send("POST", "/terminal", "", &Value::Null).await?.0, 404);
    // A cluster that does not exist looks like one that is hidden (CVE-2024-36106).
    assert_eq!(admin.get("clusters/https%3A%2F%2Fnowhere").await?.0, 403);
    // A change cannot move the identity of a cluster (CVE-2023-23947).
    let far = json!({"server": "https://10.9.8.6", "name": "far", "config": {"bearerToken": "x"}});
    assert_eq!(admin.call("POST", "clusters", far).await?.0, 200);
    let moved = json!({"server": "https://10.9.8.5", "name": "moved", "config": {"bearerToken": "y"}});
    let _ = admin.call("PUT", "clusters/https%3A%2F%2F10.9.8.6", moved).await?;
    let shown = admin.get("clusters").await?.1.to_string();
    ensure!(!shown.contains("10.9.8.5"), "{shown}");
    Ok(())
}
