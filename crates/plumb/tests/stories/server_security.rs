//! What earlier holes of Argo CD's server taught: each is tried here.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use plumb_testkit::{TestNamespace, objects, wait};
use serde_json::{Value, json};

use crate::borders::project_for;
use crate::server::{Client, admin, initial_password, login, served};
use crate::stage::Stage;

const PASSWORD: &str = "ann's password";

/// Settings of `argocd-cm`, all at once: another apply would take these away.
async fn settings(stage: &Stage, pairs: &[(&str, &str)]) -> Result<()> {
    let settings = objects::config_map("argocd-cm", pairs);
    stage.place.apply(&objects::labelled(settings, "app.kubernetes.io/part-of", "argocd")).await?;
    Ok(())
}

/// The account ann with a password, logged in.
async fn ann(stage: &Stage, admin: &Client) -> Result<Client> {
    settings(stage, &[("accounts.ann", "login, apiKey")]).await?;
    let current = initial_password(stage).await?;
    let change = json!({"name": "ann", "currentPassword": current, "newPassword": PASSWORD});
    let changed =
        async || admin.call("PUT", "account/password", change.clone()).await.ok().map(|(code, _)| code);
    let is_done = |code: &Option<u16>| *code == Some(200);
    wait::until_seen(Duration::from_secs(20), "ann has a password", changed, is_done).await?;
    login(admin.address, "ann", PASSWORD).await?.ok().context("ann cannot log in")
}

/// The status that a client gets for a call that needs a login.
async fn status(client: &Client) -> u16 {
    client.get("applications").await.map(|(code, _)| code).unwrap_or_default()
}

async fn until_refused(client: &Client, what: &str) -> Result<()> {
    wait::until_seen(Duration::from_secs(20), what, async || status(client).await, |code| *code == 401)
        .await?;
    Ok(())
}

/// The holder of a token may try passwords no more often than at a login: the failures count together.
#[tokio::test]
async fn a_stolen_token_does_not_find_the_password() -> Result<()> {
    let stage = served().await?;
    let admin = admin(&stage).await?;
    let ann = ann(&stage, &admin).await?;
    let change = |current: &str| json!({"currentPassword": current, "newPassword": "another password"});
    for _ in 0..5 {
        let (code, said) = ann.call("PUT", "account/password", change("a guess")).await?;
        ensure!(code == 400 && said.to_string().contains("current password does not match"), "{code} {said}");
    }
    let (code, said) = ann.call("PUT", "account/password", change(PASSWORD)).await?;
    ensure!(code == 400 && said.to_string().contains("current password does not match"), "{code} {said}");
    ensure!(login(ann.address, "ann", PASSWORD).await?.is_err(), "the name is locked for logins, too");
    assert_eq!(status(&admin).await, 200, "others go on");
    Ok(())
}

/// No token is lost where several callers create and delete tokens of one account.
#[tokio::test]
async fn tokens_that_are_created_at_once_are_all_there() -> Result<()> {
    let stage = served().await?;
    let admin = admin(&stage).await?;
    ann(&stage, &admin).await?;
    let create = async |id: String| admin.call("POST", "account/ann/token", json!({"id": id})).await;
    let created = futures::future::join_all((0..8).map(|n| create(format!("t{n}")))).await;
    for created in created {
        let (code, said) = created?;
        ensure!(code == 200, "{said}");
        let token = said["token"].as_str().context("no token")?.to_owned();
        assert_eq!(status(&Client { address: admin.address, token }).await, 200);
    }
    let (deleted, created) =
        tokio::join!(admin.call("DELETE", "account/ann/token/t0", Value::Null), create("t8".to_owned()));
    assert_eq!((deleted?.0, created?.0), (200, 200));
    let account = admin.get("account/ann").await?.1;
    let tokens = account["tokens"].as_array().into_iter().flatten();
    let mut ids: Vec<&str> = tokens.filter_map(|token| token["id"].as_str()).collect();
    ids.sort_unstable();
    assert_eq!(ids, ["t1", "t2", "t3", "t4", "t5", "t6", "t7", "t8"]);
    Ok(())
}

/// A token ends with its time, when it is deleted, with the password, and with the account (CVE-2020-8826,
/// CVE-2021-26921).
#[tokio::test]
async fn tokens_end() -> Result<()> {
    let stage = served().await?;
    let admin = admin(&stage).await?;
    let session = ann(&stage, &admin).await?;
    let key = async |id: &str, seconds: i64| -> Result<Client> {
        let body = json!({"id": id, "expiresIn": seconds});
        let (code, said) = admin.call("POST", "account/ann/token", body).await?;
        ensure!(code == 200, "{said}");
        let token = said["token"].as_str().context("no token")?.to_owned();
        Ok(Client { address: admin.address, token })
    };
    until_refused(&key("short", 1).await?, "the token has expired").await?;
    let deleted = key("deleted", 0).await?;
    assert_eq!(status(&deleted).await, 200);
    assert_eq!(admin.call("DELETE", "account/ann/token/deleted", Value::Null).await?.0, 200);
    assert_eq!(status(&deleted).await, 401);
    // Tokens say their time in seconds, so one of the same second as the password would go on.
    let now = async || jiff::Timestamp::now().as_second();
    let begun = now().await;
    wait::until_seen(Duration::from_secs(5), "a second has passed", now, |now| *now > begun + 1).await?;
    assert_eq!(status(&session).await, 200);
    let change = json!({"currentPassword": PASSWORD, "newPassword": "another password"});
    assert_eq!(session.call("PUT", "account/password", change).await?.0, 200);
    assert_eq!(status(&session).await, 401, "the password has changed");
    let session = login(admin.address, "ann", "another password").await?.ok().context("ann cannot log in")?;
    let lasting = key("lasting", 0).await?;
    assert_eq!((status(&session).await, status(&lasting).await), (200, 200));
    settings(&stage, &[("accounts.ann", "login, apiKey"), ("accounts.ann.enabled", "false")]).await?;
    until_refused(&session, "the account is disabled").await?;
    until_refused(&lasting, "the account is disabled").await?;
    Ok(())
}

/// The first password is random, and stored as a slow hash only (CVE-2020-8828).
#[tokio::test]
async fn the_first_password_is_random() -> Result<()> {
    let stages = [served().await?, served().await?];
    let mut passwords = Vec::new();
    for stage in &stages {
        let password = initial_password(stage).await?;
        assert_eq!(password.len(), 16);
        let has_hash = |secret: &Value| secret["data"]["admin.password"].is_string();
        let stored = stage.place.wait(&objects::secret("argocd-secret", &[]), "has a hash", has_hash).await?;
        let hash = stored["data"]["admin.password"].as_str().context("no hash")?;
        let hash = String::from_utf8(base64::engine::general_purpose::STANDARD.decode(hash)?)?;
        let cost = hash.split('$').nth(2).context("no cost")?.parse::<u32>()?;
        ensure!(hash.starts_with("$2") && cost >= 10 && !hash.contains(&password), "another kind of hash");
        passwords.push(password);
    }
    assert_ne!(passwords[0], passwords[1]);
    Ok(())
}

/// Values of Secrets are in no error, event or status, also where the API server quotes them (CVE-2018-21034,
/// CVE-2021-23135, CVE-2025-23216).
#[tokio::test]
async fn a_secret_that_is_refused_is_quoted_nowhere() -> Result<()> {
    const CANARY: &str = "c4nary of a Secret";
    let stage = served().await?;
    let admin = admin(&stage).await?;
    // A value that the API server refuses, and may quote.
    let broken = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "broken"},
        "type": "kubernetes.io/dockerconfigjson", "stringData": {".dockerconfigjson": CANARY}});
    let sound = objects::secret("keys", &[("password", "s3cr3t-value")]);
    stage.repo.commit(&[("broken/all.yaml", objects::manifests(&[broken, sound]))])?;
    let app = stage.application("broken", |app| app["spec"]["source"]["path"] = json!("broken")).await?;
    stage.until_sync(&app, "OutOfSync").await?;
    let known = async || admin.get("applications/broken").await.map(|(code, _)| code).unwrap_or_default();
    wait::until_seen(Duration::from_secs(20), "the server knows the app", known, |code| *code == 200).await?;
    assert_eq!(admin.call("POST", "applications/broken/sync", json!({})).await?.0, 200);
    let failed = |live: &Value| live["status"]["operationState"]["phase"] == "Failed";
    let live = stage.place.wait(&app, "has failed", failed).await?;
    let mut shown = live.to_string();
    for path in ["", "/events", "/resource-tree", "/managed-resources", "/manifests"] {
        shown.push_str(&admin.get(&format!("applications/broken{path}")).await?.1.to_string());
    }
    // A value of another type in a patch.
    let object = "kind=Secret&group=&version=v1&resourceName=keys&patchType=application/merge-patch%2Bjson";
    let path = format!("applications/broken/resource?{object}&namespace={}", stage.place.name());
    let change = json!(json!({"data": {"password": CANARY}}).to_string());
    let (code, said) = admin.call("POST", &path, change).await?;
    ensure!(code != 200, "the patch is refused: {said}");
    shown.push_str(&said.to_string());
    shown.push_str(&stage.log()?);
    for secret in [CANARY, "s3cr3t-value"] {
        ensure!(!shown.contains(secret), "{secret:?} in {shown}");
    }
    Ok(())
}

/// Strangers learn the version and what a login page needs (CVE-2021-26923, CVE-2024-37152), get safe headers
/// (CVE-2021-26924), and the same answer for every wrong login (CVE-2020-11576). There is no cache that another pod could
/// read or write (CVE-2024-31989): everything is in the memory of the process.
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
    let (code, said) = admin.call("POST", "applications", app).await?;
    ensure!(
        code == 400 && said.to_string().contains("namespace 'kube-system' is not permitted"),
        "{code} {said}"
    );
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
    // A change cannot move the identity of a cluster.
    let far = json!({"server": "https://10.9.8.6", "name": "far", "config": {"bearerToken": "x"}});
    assert_eq!(admin.call("POST", "clusters", far).await?.0, 200);
    let moved = json!({"server": "https://10.9.8.5", "name": "moved", "config": {"bearerToken": "y"}});
    assert_eq!(admin.call("PUT", "clusters/https%3A%2F%2F10.9.8.6", moved).await?.0, 200);
    let shown = admin.get("clusters").await?.1.to_string();
    ensure!(shown.contains("10.9.8.6") && !shown.contains("10.9.8.5"), "{shown}");
    Ok(())
}

/// The right to change clusters of one project is none to those of another, and none to move one there (CVE-2023-23947).
#[tokio::test]
async fn a_cluster_stays_in_its_project() -> Result<()> {
    let stage = served().await?;
    let admin = admin(&stage).await?;
    let ann = ann(&stage, &admin).await?;
    let policy = "p, ann, clusters, get, team/*, allow\np, ann, clusters, update, team/*, allow";
    stage.setting("argocd-rbac-cm", "policy.csv", policy).await?;
    let cluster = |project: &str, server: &str, name: &str| json!({"server": server, "name": name, "project": project, "config": {"bearerToken": "x"}});
    for (project, server, name) in
        [("team", "https://10.9.8.1", "ours"), ("other", "https://10.9.8.2", "theirs")]
    {
        let (code, said) = admin.call("POST", "clusters", cluster(project, server, name)).await?;
        ensure!(code == 200, "{said}");
    }
    let change = async |server: &str, to: Value| {
        let path = format!("clusters/{}", server.replace(':', "%3A").replace('/', "%2F"));
        ann.call("PUT", &path, to).await.map(|(code, _)| code).unwrap_or_default()
    };
    let (ours, theirs) = ("https://10.9.8.1", "https://10.9.8.2");
    let allowed = async || change(ours, cluster("team", ours, "ours")).await;
    wait::until_seen(Duration::from_secs(20), "the policy counts", allowed, |code| *code == 200).await?;
    assert_eq!(
        change(theirs, cluster("other", theirs, "theirs")).await,
        403,
        "the cluster of another project"
    );
    assert_eq!(change(theirs, cluster("team", theirs, "theirs")).await, 403, "one that would become ours");
    assert_eq!(change(ours, cluster("other", ours, "ours")).await, 403, "one that would become theirs");
    let clusters = admin.get("clusters").await?.1;
    let items = clusters["items"].as_array().into_iter().flatten();
    let projects: Vec<(&str, &str)> =
        items.filter_map(|item| Some((item["name"].as_str()?, item["project"].as_str()?))).collect();
    assert_eq!(projects, [("ours", "team"), ("theirs", "other")]);
    Ok(())
}
