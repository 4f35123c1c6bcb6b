//! Logins at a real identity provider, which `tools/oidc-provider` pins.

use std::net::{SocketAddr, TcpListener};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use plumb_testkit::{objects, wait};
use reqwest::{Client, Response, redirect::Policy};
use serde_json::{Value, json};

use crate::server::{initial_password, served};
use crate::stage::Stage;

/// The id of the provider's first user.
const USER: &str = "id1";

/// A running provider. It keeps nothing, so another one at the same address has other keys.
struct Provider(Child);

impl Drop for Provider {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[expect(clippy::disallowed_methods, reason = "where the program is, is chosen outside")]
async fn provider(stage: &Stage, address: SocketAddr, server: SocketAddr) -> Result<Provider> {
    let program =
        std::env::var_os("PLUMB_OIDC_PROVIDER").context("PLUMB_OIDC_PROVIDER must name the program")?;
    let log = std::fs::File::create(stage.cache().join("provider.log"))?;
    let child = Command::new(program)
        .args([address.port().to_string(), format!("http://{server}/auth/callback")])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(log)
        .spawn()?;
    let provider = Provider(child);
    let url = format!("http://{address}/.well-known/openid-configuration");
    let there =
        async || Client::new().get(&url).send().await.is_ok_and(|answer| answer.status().is_success());
    wait::until_seen(Duration::from_secs(30), "the provider answers", there, |there| *there).await?;
    Ok(provider)
}

fn header<'a>(answer: &'a Response, name: &str) -> &'a str {
    answer.headers().get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
}

fn place(base: &str, answer: &Response) -> Result<String> {
    let to = header(answer, "location");
    ensure!(!to.is_empty(), "no redirect: {}", answer.status());
    Ok(reqwest::Url::parse(base)?.join(to)?.to_string())
}

/// Logs in like a browser: to the provider, through its form, and back. Returns the token.
async fn log_in(server: SocketAddr) -> Result<String> {
    let browser = Client::builder().redirect(Policy::none()).build()?;
    let begin = format!("http://{server}/auth/login?return_url=http://{server}/applications");
    let answer = browser.get(&begin).send().await?;
    ensure!(answer.status() == 303, "{}", answer.text().await?);
    let cookie = header(&answer, "set-cookie").split(';').next().unwrap_or_default().to_owned();
    let mut url = place(&begin, &answer)?;
    ensure!(url.contains("code_challenge_method=S256") && url.contains("nonce="), "{url}");
    let mut answer = browser.get(&url).send().await?;
    while answer.status().is_redirection() {
        url = place(&url, &answer)?;
        answer = browser.get(&url).send().await?;
    }
    let (page, id) = url.split_once("?authRequestID=").context("no login page")?;
    let form = format!("id={id}&username=test-user%40127.0.0.1&password=verysecure");
    answer = browser
        .post(page)
        .header("content-type", "application/x-www-form-urlencoded")
        .body(form)
        .send()
        .await?;
    while answer.status().is_redirection() {
        url = place(&url, &answer)?;
        let at_home = url.starts_with(&format!("http://{server}/auth/callback"));
        let request = browser.get(&url);
        answer =
            if at_home { request.header("cookie", &cookie).send().await? } else { request.send().await? };
        if at_home {
            break;
        }
    }
    ensure!(answer.status() == 303, "{} at {url}", answer.status());
    assert_eq!(header(&answer, "location"), format!("http://{server}/applications"));
    let mut cookies = answer.headers().get_all("set-cookie").iter().filter_map(|value| value.to_str().ok());
    let token = cookies.find_map(|cookie| cookie.strip_prefix("argocd.token=")).context("no token")?;
    Ok(token.split(';').next().unwrap_or_default().to_owned())
}

async fn get(server: SocketAddr, path: &str, token: &str) -> Result<(u16, Value)> {
    let request = Client::new().get(format!("http://{server}/api/v1/{path}"));
    let answer = request.header("cookie", format!("argocd.token={token}")).send().await?;
    let code = answer.status().as_u16();
    Ok((code, serde_json::from_str(&answer.text().await?).unwrap_or_default()))
}

#[tokio::test]
#[ignore = "needs a provider, which takes minutes to build: set PLUMB_OIDC_PROVIDER"]
async fn users_of_an_identity_provider_log_in() -> Result<()> {
    let stage = served().await?;
    initial_password(&stage).await?;
    let server = stage.address("webhooks").await?;
    let place = TcpListener::bind("127.0.0.1:0")?.local_addr()?;
    let running = provider(&stage, place, server).await?;
    let config = json!({"name": "Here", "issuer": format!("http://{place}/"), "clientID": "web", "clientSecret": "secret"});
    // In one object: a second apply would take the first key away.
    let (url, config) = (format!("http://{server}"), config.to_string());
    let settings = objects::config_map("argocd-cm", &[("url", &url), ("oidc.config", &config)]);
    stage.place.apply(&objects::labelled(settings, "app.kubernetes.io/part-of", "argocd")).await?;
    stage.setting("argocd-rbac-cm", "policy.csv", &format!("g, {USER}, role:readonly")).await?;
    let known = async || get(server, "settings", "").await.map(|(_, settings)| settings).unwrap_or_default();
    wait::until_seen(Duration::from_secs(20), "the provider is known", known, |settings| {
        settings["oidcConfig"]["clientID"] == "web"
    })
    .await?;
    let token = log_in(server).await?;
    assert_eq!(get(server, "session/userinfo", &token).await?.1["username"], USER);
    let allowed =
        async || get(server, "projects/default", &token).await.map(|(code, _)| code).unwrap_or_default();
    wait::until_seen(Duration::from_secs(20), "the policy counts", allowed, |code| *code == 200).await?;
    // A changed token is refused, and so is one after its logout.
    let mut forged = token.clone();
    forged.replace_range(forged.len() - 8..forged.len() - 4, "AAAA");
    assert_eq!(get(server, "projects/default", &forged).await?.0, 401);
    let logout =
        Client::builder().redirect(Policy::none()).build()?.post(format!("http://{server}/auth/logout"));
    let left = logout.header("cookie", format!("argocd.token={token}")).send().await?;
    assert_eq!(left.status(), 303);
    assert_eq!(get(server, "projects/default", &token).await?.0, 401, "the token is revoked");
    // Another provider at the same place has other keys; plumb reads them when a token needs them.
    drop(running);
    let _running = provider(&stage, place, server).await?;
    let again = async || log_in(server).await.ok();
    let token =
        wait::until_seen(Duration::from_secs(40), "a login with new keys", again, Option::is_some).await?;
    assert_eq!(get(server, "projects/default", &token.context("no token")?).await?.0, 200);
    ensure!(!stage.log()?.contains("eyJ"), "a token in the log");
    Ok(())
}
