//! Logins at a real identity provider, which `tools/oidc-provider` pins.

use std::net::{SocketAddr, TcpListener};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
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

/// A browser without cookies that follows no redirect by itself.
fn browser() -> Result<Client> {
    Ok(Client::builder().redirect(Policy::none()).build()?)
}

/// Logs in at the provider like a browser: to its form, and on until it sends the browser to `back`. Returns that address.
async fn log_in_at_provider(mut url: String, back: &str) -> Result<String> {
    let browser = browser()?;
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
        if url.starts_with(back) {
            return Ok(url);
        }
        answer = browser.get(&url).send().await?;
    }
    anyhow::bail!("no way back: {} at {url}", answer.status())
}

/// A login that has begun: the cookie of the browser, and where the provider sends it back.
async fn begin(server: SocketAddr) -> Result<(String, String)> {
    let begin = format!("http://{server}/auth/login?return_url=http://{server}/applications");
    let answer = browser()?.get(&begin).send().await?;
    ensure!(answer.status() == 303, "{}", answer.text().await?);
    let cookie = header(&answer, "set-cookie").split(';').next().unwrap_or_default().to_owned();
    let url = place(&begin, &answer)?;
    ensure!(url.contains("code_challenge_method=S256") && url.contains("nonce="), "{url}");
    let back = log_in_at_provider(url, &format!("http://{server}/auth/callback")).await?;
    Ok((cookie, back))
}

/// Logs in like a browser: to the provider, through its form, and back. Returns the token.
async fn log_in(server: SocketAddr) -> Result<String> {
    let (cookie, back) = begin(server).await?;
    let answer = browser()?.get(&back).header("cookie", &cookie).send().await?;
    ensure!(answer.status() == 303, "{} at {back}", answer.status());
    assert_eq!(header(&answer, "location"), format!("http://{server}/applications"));
    let mut cookies = answer.headers().get_all("set-cookie").iter().filter_map(|value| value.to_str().ok());
    let token = cookies.find_map(|cookie| cookie.strip_prefix("argocd.token=")).context("no token")?;
    Ok(token.split(';').next().unwrap_or_default().to_owned())
}

/// Logs in like `argocd login --sso`: as a client of its own, with PKCE and without a secret. Returns the ID token.
async fn log_in_by_command(provider: SocketAddr) -> Result<String> {
    const BACK: &str = "http://localhost:8085/auth/callback";
    let offer =
        Client::new().get(format!("http://{provider}/.well-known/openid-configuration")).send().await?;
    let offer: Value = serde_json::from_str(&offer.text().await?)?;
    let verifier = "v".repeat(43);
    let challenge = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, verifier.as_bytes());
    let challenge = URL_SAFE_NO_PAD.encode(challenge);
    let back = BACK.replace(':', "%3A").replace('/', "%2F");
    let begin = format!(
        "{}?client_id=cli&redirect_uri={back}&response_type=code&scope=openid%20profile%20email%20groups&state=x\
         &code_challenge={challenge}&code_challenge_method=S256",
        offer["authorization_endpoint"].as_str().context("no endpoint")?
    );
    let url = log_in_at_provider(begin, BACK).await?;
    let url = reqwest::Url::parse(&url)?;
    let code = url.query_pairs().find(|(name, _)| name == "code").context("no code")?.1.into_owned();
    let form = format!(
        "grant_type=authorization_code&client_id=cli&redirect_uri={back}&code={code}&code_verifier={verifier}"
    );
    let answer = Client::new()
        .post(offer["token_endpoint"].as_str().context("no endpoint")?)
        .header("content-type", "application/x-www-form-urlencoded")
        .body(form)
        .send()
        .await?;
    let answer: Value = serde_json::from_str(&answer.text().await?)?;
    Ok(answer["id_token"].as_str().with_context(|| format!("no token: {answer}"))?.to_owned())
}

async fn get(server: SocketAddr, path: &str, token: &str) -> Result<(u16, Value)> {
    let request = Client::new().get(format!("http://{server}/api/v1/{path}"));
    let answer = request.header("cookie", format!("argocd.token={token}")).send().await?;
    let code = answer.status().as_u16();
    Ok((code, serde_json::from_str(&answer.text().await?).unwrap_or_default()))
}

/// Settings of a provider, with these on top.
async fn configure(stage: &Stage, server: SocketAddr, provider: SocketAddr, more: &Value) -> Result<()> {
    let mut config = json!({"name": "Here", "issuer": format!("http://{provider}/"), "clientID": "web",
        "clientSecret": "secret", "cliClientID": "cli"});
    for (field, value) in more.as_object().into_iter().flatten() {
        config[field] = value.clone();
    }
    // In one object: a second apply would take the first key away.
    let (url, config) = (format!("http://{server}"), config.to_string());
    let settings = objects::config_map("argocd-cm", &[("url", &url), ("oidc.config", &config)]);
    stage.place.apply(&objects::labelled(settings, "app.kubernetes.io/part-of", "argocd")).await?;
    Ok(())
}

/// Waits until a call of this user has this status.
async fn until_code(server: SocketAddr, token: &str, what: &str, expected: u16) -> Result<()> {
    let code =
        async || get(server, "projects/default", token).await.map(|(code, _)| code).unwrap_or_default();
    wait::until_seen(Duration::from_secs(20), what, code, |code| *code == expected).await?;
    Ok(())
}

#[tokio::test]
#[ignore = "needs a provider, which takes minutes to build: set PLUMB_OIDC_PROVIDER"]
async fn users_of_an_identity_provider_log_in() -> Result<()> {
    let stage = served().await?;
    initial_password(&stage).await?;
    let server = stage.address("webhooks").await?;
    let place = TcpListener::bind("127.0.0.1:0")?.local_addr()?;
    let running = provider(&stage, place, server).await?;
    configure(&stage, server, place, &json!({})).await?;
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

/// Groups decide, those of the token or those of the user info; commands log in as a client of their own.
#[tokio::test]
#[ignore = "needs a provider, which takes minutes to build: set PLUMB_OIDC_PROVIDER"]
async fn groups_and_clients_of_an_identity_provider_count() -> Result<()> {
    let stage = served().await?;
    initial_password(&stage).await?;
    let server = stage.address("webhooks").await?;
    let place = TcpListener::bind("127.0.0.1:0")?.local_addr()?;
    let _running = provider(&stage, place, server).await?;
    configure(&stage, server, place, &json!({})).await?;
    stage.setting("argocd-rbac-cm", "policy.csv", "g, team, role:readonly").await?;
    let again = async || log_in(server).await.ok();
    let token = wait::until_seen(Duration::from_secs(20), "a login", again, Option::is_some).await?;
    let token = token.context("no token")?;
    until_code(server, &token, "the group of the token decides", 200).await?;
    assert_eq!(get(server, "session/userinfo", &token).await?.1["groups"], json!(["team"]));
    // The client of commands is another audience.
    let of_command = log_in_by_command(place).await?;
    assert_eq!(get(server, "projects/default", &of_command).await?.0, 200);
    configure(&stage, server, place, &json!({"allowedAudiences": ["web"]})).await?;
    until_code(server, &of_command, "the client of commands is no audience", 401).await?;
    assert_eq!(get(server, "projects/default", &token).await?.0, 200);
    // A cookie belongs to one login.
    let ((cookie, _), (_, back)) = (begin(server).await?, begin(server).await?);
    let mixed = browser()?.get(&back).header("cookie", &cookie).send().await?;
    assert_eq!(mixed.status(), 400);
    ensure!(mixed.headers().get("set-cookie").is_none(), "a token for the wrong login");
    // Groups of the user info are asked for when a browser logs in.
    configure(&stage, server, place, &json!({"enableUserInfoGroups": true, "userInfoPath": "/userinfo"}))
        .await?;
    stage.setting("argocd-rbac-cm", "policy.csv", "g, crew, role:readonly").await?;
    until_code(server, &of_command, "the groups are not known", 401).await?;
    let (_, said) = get(server, "projects/default", &of_command).await?;
    ensure!(said.to_string().contains("log in again with a browser"), "{said}");
    let token = log_in(server).await?;
    until_code(server, &token, "the group of the user info decides", 200).await?;
    assert_eq!(get(server, "session/userinfo", &token).await?.1["groups"], json!(["crew"]));
    assert_eq!(get(server, "projects/default", &of_command).await?.0, 200, "the same user");
    Ok(())
}
