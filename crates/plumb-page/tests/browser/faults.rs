//! What goes wrong between the page and its server is said, and mended by itself. Nothing that is old looks fresh.

use anyhow::{Context as _, Result, ensure};
use plumb_testkit::browser::Tab;

use crate::server::{Mood, Server};

fn is_ill(name: &str) -> String {
    format!(
        "[...document.querySelectorAll('.row')].some((row) => row.querySelector('.name').textContent === {name:?} && \
         row.textContent.includes('Degraded'))"
    )
}

const STALE: &str = "document.documentElement.classList.contains('stale')";
const FRESH: &str =
    "!document.documentElement.classList.contains('stale') && document.querySelector('.banner') === null";

/// All faults, one after the other, in one open page.
pub(crate) async fn all(tab: &mut Tab<'_>, server: &Server) -> Result<()> {
    tab.shape(1280, 800, "light").await?;
    tab.open(&server.url("applications?q=app-77")).await?;
    tab.until("document.querySelectorAll('.row').length > 5").await?;
    tab.until(FRESH).await?;
    cut(tab, server).await.context("a cut stream")?;
    silent(tab, server).await.context("a silent connection")?;
    away(tab, server).await.context("a server that is away")?;
    restarted(tab, server).await.context("a restarted server")?;
    logged_out(tab, server).await.context("a lost session")?;
    wall(tab, server).await.context("the wall")?;
    old_home(tab, server).await.context("a Home that is old")?;
    late_start(tab, server).await.context("a server that starts later")?;
    lost_cluster(tab, server).await.context("a cluster that is away")?;
    broken_log(tab, server).await.context("a log that breaks off")?;
    other_build(tab, server).await.context("a server with another build")?;
    bad_answer(tab, server).await.context("an answer that fails")
}

/// A stream that breaks off goes on where it was: nothing is lost, and nothing is loaded again.
async fn cut(tab: &mut Tab<'_>, server: &Server) -> Result<()> {
    let before = tab.requests().iter().filter(|url| url.ends_with("v1/apps")).count();
    server.cut();
    server.degrade("app-77");
    tab.until(&is_ill("app-77")).await?;
    let after = tab.requests().iter().filter(|url| url.ends_with("v1/apps")).count();
    ensure!(before == after, "the page loaded everything again after a cut stream");
    tab.until(FRESH).await
}

/// A connection that is dead without an error is noticed, said, and replaced.
async fn silent(tab: &mut Tab<'_>, server: &Server) -> Result<()> {
    server.turn(Mood::Silent);
    tab.until(STALE).await?;
    tab.until("document.querySelector('.banner')?.textContent.includes('sends nothing')").await?;
    server.turn(Mood::Well);
    server.degrade("app-771");
    tab.until(&is_ill("app-771")).await?;
    tab.until(FRESH).await
}

/// A screen that nobody touches says how old it is, too.
async fn wall(tab: &mut Tab<'_>, server: &Server) -> Result<()> {
    tab.open(&server.url("?wall")).await?;
    tab.until(
        "document.querySelector('.wall .card') !== null && document.querySelector('.fresh time') !== null",
    )
    .await?;
    tab.until(FRESH).await?;
    server.become_like(Mood::Away);
    tab.until(STALE).await?;
    server.become_like(Mood::Well);
    tab.until(FRESH).await
}

/// Home has lengths that no event announces. It is asked for again although no app changes.
async fn old_home(tab: &mut Tab<'_>, server: &Server) -> Result<()> {
    tab.open(&server.url("")).await?;
    tab.until("document.querySelector('.card') !== null").await?;
    let asked = "performance.getEntriesByType('resource').filter((e) => e.name.endsWith('v1/home')).length";
    let before = tab.number(asked).await?;
    tab.eval("{ const now = Date.now; Date.now = () => now() + 31000; }").await?;
    tab.until(&format!("{asked} > {before}")).await
}

/// A page that is opened too early tries again by itself.
async fn late_start(tab: &mut Tab<'_>, server: &Server) -> Result<()> {
    server.become_like(Mood::Away);
    tab.open(&server.url("applications?q=app-77")).await?;
    tab.until("document.querySelector('.note.bad') !== null").await?;
    server.become_like(Mood::Well);
    tab.until("document.querySelectorAll('.row').length > 5").await
}

/// Nothing can be done while there is no news, and what is shown is marked as old.
async fn away(tab: &mut Tab<'_>, server: &Server) -> Result<()> {
    server.become_like(Mood::Away);
    tab.until(STALE).await?;
    tab.until("document.querySelector('.banner')?.textContent.includes('Trying again in')").await?;
    tab.until("document.title === 'No news · plumb'").await?;
    let rows = tab.number("document.querySelectorAll('.row').length").await?;
    ensure!(rows > 5.0, "what was shown is gone");
    tab.eval("document.querySelector('.row input').click()").await?;
    let off = "document.querySelector('.selection button')?.getAttribute('aria-disabled') === 'true'";
    tab.until(off).await?;
    server.become_like(Mood::Well);
    tab.until(FRESH).await?;
    tab.until("document.title.endsWith('wrong · plumb')").await?;
    tab.until(&format!("!({off})")).await
}

/// A cluster that is away is one thing on Home, and each of its apps says so.
async fn lost_cluster(tab: &mut Tab<'_>, server: &Server) -> Result<()> {
    let apps = ["app-2001", "app-2002", "app-2003"];
    server.lose_cluster(&apps);
    tab.open(&server.url("")).await?;
    let cards = "[...document.querySelectorAll('.card')].filter((card) => card.textContent.includes('cannot be reached')).length";
    tab.until(&format!("{cards} === 1")).await?;
    tab.open(&server.url("applications?q=class:ComparisonError+app-200")).await?;
    tab.until("document.querySelectorAll('.row').length === 3").await?;
    tab.until("document.querySelector('.row .mark.ill') !== null").await
}

/// A log that breaks off says so, comes back by itself, and shows no line twice. Long lines can be read.
async fn broken_log(tab: &mut Tab<'_>, server: &Server) -> Result<()> {
    server.quirks(|quirks| quirks.cuts_logs = true);
    let logs = "applications/argocd/payments/o/apps/Deployment/pay/payments?tab=logs";
    tab.open(&server.url(logs)).await?;
    tab.until("document.querySelector('.logs [role=status]')?.textContent.includes('Interrupted since')")
        .await?;
    tab.until("document.querySelector('.logs')?.textContent.includes('request 4')").await?;
    tab.until("document.querySelector('.logs [role=status]').textContent.startsWith('Following')").await?;
    let shown = tab.text(".vlist").await?;
    ensure!(shown.contains("interrupted for"), "the gap is not marked: {shown}");
    ensure!(shown.matches("request 2\"").count() == 1, "a line is there twice: {shown}");
    server.quirks(|quirks| quirks.cuts_logs = false);
    tab.shape(390, 844, "light").await?;
    tab.open(&server.url(logs)).await?;
    tab.until("document.querySelector('.logs')?.textContent.includes('end-of-a-long-line')").await?;
    tab.until("document.querySelector('.code').scrollWidth > document.querySelector('.code').clientWidth")
        .await?;
    tab.eval(
        "[...document.querySelectorAll('.cl')].find((line) => line.textContent.includes('end-of-a')).click()",
    )
    .await?;
    tab.until("document.querySelector('dialog pre')?.textContent.includes('end-of-a-long-line')").await?;
    tab.until("document.querySelector('dialog pre').getBoundingClientRect().right <= innerWidth").await?;
    tab.shape(1280, 800, "light").await
}

/// After an upgrade the page is taken from the server again, once the stream has broken off.
async fn other_build(tab: &mut Tab<'_>, server: &Server) -> Result<()> {
    tab.open(&server.url("applications?q=app-77")).await?;
    tab.until("document.querySelectorAll('.row').length > 5").await?;
    tab.until(FRESH).await?;
    tab.eval("window.stays = true").await?;
    server.quirks(|quirks| quirks.is_upgraded = true);
    server.cut();
    tab.until("window.stays === undefined && document.querySelectorAll('.row').length > 5").await
}

/// A server that knows no token is asked for everything again, and the page shows its state.
async fn restarted(tab: &mut Tab<'_>, server: &Server) -> Result<()> {
    tab.until(&is_ill("app-77")).await?;
    server.restart();
    tab.until(&format!("!({})", is_ill("app-77"))).await?;
    tab.until(FRESH).await
}

/// Whoever is logged out keeps the view, marked as old, with a way to log in that leads back.
async fn logged_out(tab: &mut Tab<'_>, server: &Server) -> Result<()> {
    server.become_like(Mood::LoggedOut);
    tab.until("document.querySelector('.banner')?.textContent.includes('logged out')").await?;
    tab.until(STALE).await?;
    ensure!(tab.number("document.querySelectorAll('.row').length").await? > 5.0, "the view is gone");
    let back = tab.eval("document.querySelector('.banner a').getAttribute('href')").await?;
    ensure!(back.as_str().is_some_and(|to| to.contains("return_url=") && to.contains("app-77")), "{back}");
    server.become_like(Mood::Well);
    tab.open(&server.url("applications?q=app-77")).await?;
    tab.until("document.querySelectorAll('.row').length > 5").await?;
    tab.until(FRESH).await
}

/// One part that fails says so, with a way to try again; the rest of the page lives on.
async fn bad_answer(tab: &mut Tab<'_>, server: &Server) -> Result<()> {
    tab.open(&server.url("doctor")).await?;
    tab.until("document.querySelector('details.card') !== null").await?;
    server.become_like(Mood::Away);
    tab.eval("document.querySelector('a[href=orphans]').click()").await?;
    tab.until("document.querySelector('.note.bad button')?.textContent === 'Try again'").await?;
    server.become_like(Mood::Well);
    tab.eval("document.querySelector('.note.bad button').click()").await?;
    tab.until("document.querySelector('.places li') !== null").await?;
    // A hidden tab ends its stream; that of a tab that is left is not held.
    tab.open("about:blank").await?;
    for _ in 0..500 {
        if server.n_streams() == 0 {
            return Ok(());
        }
        tab.eval("new Promise((done) => setTimeout(done, 20))").await?;
    }
    anyhow::bail!("{} streams are open although no page is", server.n_streams())
}
