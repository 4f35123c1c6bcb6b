//! The page in a real Chromium, with ten thousand apps that this test makes.
//!
//! Where no Chromium is installed, the test says so and does nothing; `PLUMB_REQUIRE_BROWSER=1` makes that a failure.
//! `PLUMB_PAGE_SHOTS=DIRECTORY` writes a picture of every screen, `UPDATE=1` the pictures of the README.

#![expect(
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a skipped test says so, figures are printed, and both look into the environment"
)]

mod fleet;
mod answers;
mod server;
mod budgets;
mod screens;
mod access;
mod faults;
mod usage;
mod pictures;

use anyhow::{Context as _, Result, ensure};
use plumb_testkit::browser::{self, Chromium, Tab};
use serde_json::json;

use fleet::{HOSTILE, N_APPS};
use server::Server;

/// What cannot run here, in one line; an error if it must run.
fn skipped(why: &str) -> Result<()> {
    plumb_testkit::skipped("BROWSER", why)
}

/// One browser at a time: what one test does must not slow down what another one measures.
static ONE: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());

/// Runs a part with a server and a browser of its own.
async fn with_page(part: impl AsyncFnOnce(&mut Tab<'_>, &Server) -> Result<()>) -> Result<()> {
    if plumb_page::index_html("/").is_none() {
        return skipped("plumb was built without its page");
    }
    let Some(program) = browser::find() else { return skipped("install chromium") };
    let _one = ONE.lock().await;
    let server = Server::start().await?;
    let mut browser = Chromium::start(&program).await?;
    let mut tab = browser.tab().await?;
    tab.call("Page.addScriptToEvaluateOnNewDocument", json!({"source": budgets::WATCH})).await?;
    part(&mut tab, &server).await?;
    let problems = tab.problems();
    ensure!(problems.is_empty(), "the browser reported: {problems:?}");
    let elsewhere: Vec<&String> = tab
        .requests()
        .iter()
        .filter(|url| {
            !url.starts_with(&server.url("")) && !url.starts_with("data:") && !url.starts_with("blob:")
        })
        .collect();
    ensure!(elsewhere.is_empty(), "the page asked elsewhere: {elsewhere:?}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn budgets_of_the_page() -> Result<()> {
    with_page(async |tab, server| budgets::all(tab, server).await).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_user_does() -> Result<()> {
    with_page(async |tab, server| {
        home(tab, server).await.context("home")?;
        apps(tab, server).await.context("apps")?;
        acts(tab, server).await.context("acts")?;
        usage::all(tab, server).await
    })
    .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn faults_are_said_and_mended() -> Result<()> {
    with_page(async |tab, server| faults::all(tab, server).await).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn everybody_can_use_it() -> Result<()> {
    with_page(async |tab, server| access::all(tab, server).await).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_pictures_of_the_readme() -> Result<()> {
    with_page(async |tab, server| pictures::readme(tab, server).await).await
}

/// The gravest trouble is the first card, the title counts, and a name is text.
async fn home(tab: &mut Tab<'_>, server: &Server) -> Result<()> {
    tab.open(&server.url("")).await?;
    tab.until("document.querySelector('.card') !== null").await?;
    let first = tab.text(".card").await?;
    ensure!(first.contains("1154 restarts") && first.contains("argo-rollouts"), "the first card is {first}");
    let title = tab.eval("document.title").await?;
    ensure!(title.as_str().is_some_and(|title| title.contains("wrong")), "the title is {title}");
    ensure!(
        tab.eval("document.querySelectorAll('#page img').length").await? == json!(0),
        "a name became HTML"
    );
    let shown = tab.eval("document.body.textContent.includes('onerror')").await?;
    ensure!(shown == json!(true), "the hostile name {HOSTILE} is not shown as text");
    Ok(())
}

/// All apps are there, few rows exist, and a filter finds what it should.
async fn apps(tab: &mut Tab<'_>, server: &Server) -> Result<()> {
    tab.open(&server.url("applications?sort=name")).await?;
    tab.until("document.querySelectorAll('.row').length > 5").await?;
    let count = tab.text("h1 .count").await?;
    let n_all = N_APPS + fleet::specimens().len() - 1;
    ensure!(count.contains(&n_all.to_string()), "the list counts {count}");
    let rows = tab.eval("document.querySelectorAll('.row').length").await?;
    ensure!(rows.as_u64().is_some_and(|rows| rows < 100), "{rows} rows exist at once");
    // The last app can be reached.
    tab.eval("scrollTo(0, document.documentElement.scrollHeight)").await?;
    tab.until("document.body.textContent.includes('web')").await?;
    // Argo CD's parameters, and the filter that they become.
    tab.open(&server.url("applications?health=Degraded&search=app-3")).await?;
    tab.until("document.querySelector('h1 .count')?.textContent.startsWith('1 of')").await
}

/// A plan is shown before the act, with the keyboard alone, and the act carries the plan's token.
async fn acts(tab: &mut Tab<'_>, server: &Server) -> Result<()> {
    tab.open(&server.url("applications/argocd/payments")).await?;
    tab.until("document.querySelector('.fielddiff .new') !== null").await?;
    tab.press("s").await?;
    tab.until("document.querySelector('dialog .steps li') !== null").await?;
    let plan = tab.text("dialog").await?;
    ensure!(plan.contains("apply") && plan.contains("plumb app sync payments"), "the plan is {plan}");
    tab.use_control("Apply 2").await?;
    tab.until("document.querySelector('dialog') === null").await?;
    let acts = server.acts();
    let act = acts.first().context("no act arrived")?;
    ensure!(act["verb"] == "sync" && act["token"].as_str().is_some_and(|token| !token.is_empty()), "{act}");
    // A pause needs a reason; Cancel does nothing.
    tab.press("z").await?;
    tab.until("document.querySelector('dialog .field input') !== null").await?;
    tab.until("document.querySelector('dialog')?.textContent.includes('Give a reason')").await?;
    tab.press("Escape").await?;
    tab.until("document.querySelector('dialog') === null").await?;
    ensure!(server.acts().is_empty(), "a cancelled plan did something");
    Ok(())
}
