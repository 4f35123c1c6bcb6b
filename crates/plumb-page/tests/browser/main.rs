//! The page in a real Chromium, with ten thousand apps that this test makes.
//!
//! Where no Chromium is installed, the test says so and does nothing; `PLUMB_REQUIRE_BROWSER=1` makes that a failure.

#![expect(
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a skipped test says so, and looks for the browser in the environment"
)]

mod chromium;
mod server;

use anyhow::{Context as _, Result, ensure};
use serde_json::json;

use chromium::{Chromium, Tab};
use server::{HOSTILE, N_APPS, Server};

/// What cannot run here, in one line; an error if it must run.
fn skipped(why: &str) -> Result<()> {
    ensure!(std::env::var_os("PLUMB_REQUIRE_BROWSER").is_none(), "the page was not tested: {why}");
    println!("skipped: {why}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_page_in_a_browser() -> Result<()> {
    if plumb_page::index_html("/").is_none() {
        return skipped("plumb was built without its page");
    }
    let Some(program) = chromium::find() else { return skipped("install chromium") };
    let server = Server::start().await?;
    let mut browser = Chromium::start(&program).await?;
    let mut tab = browser.tab().await?;
    home(&mut tab, &server).await.context("home")?;
    apps(&mut tab, &server).await.context("apps")?;
    changes(&mut tab, &server).await.context("changes")?;
    narrow(&mut tab, &server).await.context("narrow")?;
    let problems = tab.problems();
    ensure!(problems.is_empty(), "the browser reported: {problems:?}");
    let elsewhere: Vec<&String> = tab
        .requests()
        .iter()
        .filter(|url| !url.starts_with(&server.url("")) && !url.starts_with("data:"))
        .collect();
    ensure!(elsewhere.is_empty(), "the page asked elsewhere: {elsewhere:?}");
    Ok(())
}

/// The gravest trouble is the first card, the title counts, and a name is text.
async fn home(tab: &mut Tab<'_>, server: &Server) -> Result<()> {
    tab.open(&server.url("")).await?;
    tab.until("document.querySelector('.card') !== null").await?;
    let first = tab.text(".card").await?;
    ensure!(first.contains("Stuck") && first.contains("app-3"), "the first card is {first}");
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
    ensure!(count.contains(&N_APPS.to_string()), "the list counts {count}");
    let rows = tab.eval("document.querySelectorAll('.row').length").await?;
    ensure!(rows.as_u64().is_some_and(|rows| rows < 100), "{rows} rows exist at once");
    // The last app can be reached.
    tab.eval("scrollTo(0, document.documentElement.scrollHeight)").await?;
    tab.until("document.body.textContent.includes('app-9999')").await?;
    // Argo CD's parameters, and the filter that they become.
    tab.open(&server.url("applications?health=Degraded")).await?;
    tab.until("document.querySelector('h1 .count')?.textContent.startsWith('1 of')").await?;
    // A key press in the filter: half of them within the budget, also on a busy machine.
    let typing = "(async () => { const field = document.querySelector('.find'); const took = [];
        for (const word of ['a', 'ap', 'app', 'app-1', 'app-12', 'is:wrong', 'class:LiveEdit', '-is:wrong', '']) {
            const start = performance.now(); field.value = word; field.dispatchEvent(new Event('input', {bubbles: true}));
            await new Promise((done) => requestAnimationFrame(() => setTimeout(done))); took.push(performance.now() - start); }
        return took.sort((a, b) => a - b)[4]; })()";
    let median = tab.eval(typing).await?.as_f64().context("no time")?;
    println!("a key press in the filter takes {median:.0} ms (median), {N_APPS} apps");
    ensure!(median < 250.0, "a key press takes {median} ms");
    Ok(())
}

/// A change of the server is on the screen without a request of the user, and a cut stream is said and mended.
async fn changes(tab: &mut Tab<'_>, server: &Server) -> Result<()> {
    tab.open(&server.url("applications?q=app-42")).await?;
    tab.until("document.querySelector('.row') !== null").await?;
    server.degrade("app-42");
    tab.until(
        "[...document.querySelectorAll('.row')].some((row) => row.textContent.includes('app-42') && \
               row.textContent.includes('Degraded'))",
    )
    .await?;
    server.cut();
    tab.until("document.querySelector('.banner') !== null || document.querySelector('.fresh') !== null")
        .await?;
    server.degrade("app-420");
    tab.until(
        "[...document.querySelectorAll('.row')].some((row) => row.textContent.includes('app-420') && \
               row.textContent.includes('Degraded'))",
    )
    .await
}

/// On a narrow screen nothing sticks out, in both themes.
async fn narrow(tab: &mut Tab<'_>, server: &Server) -> Result<()> {
    for (path, ready) in
        [("", ".card"), ("applications", ".row"), ("settings", ".list"), ("activity", ".toolbar")]
    {
        for theme in ["light", "dark"] {
            tab.shape(320, 640, theme).await?;
            tab.open(&server.url(path)).await?;
            tab.until(&format!("document.querySelector('{ready}') !== null")).await?;
            let width = tab.eval("document.documentElement.scrollWidth").await?;
            ensure!(width.as_u64().is_some_and(|width| width <= 320), "/{path} is {width} wide");
        }
    }
    Ok(())
}
