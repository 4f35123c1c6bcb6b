//! What users do on the screens, beside what `main.rs` has: logins, permissions, many apps at once, addresses.

use anyhow::{Context as _, Result, ensure};
use plumb_testkit::browser::Tab;
use serde_json::json;

use crate::server::{Quirks, Server};

/// All of it.
pub(crate) async fn all(tab: &mut Tab<'_>, server: &Server) -> Result<()> {
    tab.shape(1280, 800, "light").await?;
    let mut failed = Vec::new();
    // One that fails leaves the others their say.
    for part in [
        "what is not known",
        "logins",
        "many apps at once",
        "a read-only page",
        "lists that follow",
        "objects of one name",
        "addresses",
        "connections",
        "addresses of Argo CD",
        "long values",
        "menus",
    ] {
        let result = match part {
            "what is not known" => no_false_calm(tab, server).await,
            "logins" => logins(tab, server).await,
            "many apps at once" => many_at_once(tab, server).await,
            "a read-only page" => read_only(tab, server).await,
            "lists that follow" => lists_follow(tab, server).await,
            "objects of one name" => same_name(tab, server).await,
            "addresses" => addresses(tab, server).await,
            "connections" => connections(tab, server).await,
            "addresses of Argo CD" => argo_addresses(tab, server).await,
            "long values" => long_values(tab, server).await,
            _ => menus(tab, server).await,
        };
        failed.extend(result.err().map(|why| format!("{part}: {why:#}")));
        server.quirks(|quirks| *quirks = Quirks::default());
    }
    ensure!(failed.is_empty(), "{}", failed.join("\n"));
    Ok(())
}

/// Whoever may see nothing is not told that all is well, and what cannot be read is said.
async fn no_false_calm(tab: &mut Tab<'_>, server: &Server) -> Result<()> {
    server.quirks(|quirks| quirks.hides_apps = true);
    tab.open(&server.url("")).await?;
    tab.until("document.querySelector('h1')?.textContent === 'No apps'").await?;
    let text = tab.text("main").await?;
    ensure!(text.contains("none that you may see") && !text.contains("All is well"), "{text}");
    server.quirks(|quirks| quirks.is_blind = true);
    tab.open(&server.url("applications")).await?;
    tab.until("document.querySelector('.banner')?.textContent.includes('cannot read DriftReports')").await?;
    server.quirks(|quirks| *quirks = Quirks::default());
    // The next beat says that it is over.
    tab.until("document.querySelector('.banner') === null").await
}

/// A user of an identity provider finds the way to it; whoever looks without a login can log in; there is always a way out.
async fn logins(tab: &mut Tab<'_>, server: &Server) -> Result<()> {
    server.quirks(|quirks| quirks.is_anonymous = true);
    tab.open(&server.url("applications?q=app-77")).await?;
    tab.until("document.querySelector('.me a')?.textContent === 'Log in'").await?;
    tab.eval("document.querySelector('.me a').click()").await?;
    tab.until("document.querySelector('form a.button')?.textContent === 'Log in with Example'").await?;
    let to = tab.eval("document.querySelector('form a.button').getAttribute('href')").await?;
    let back =
        server.url("applications?q=app-77").replace(':', "%3A").replace('/', "%2F").replace('?', "%3F");
    let back = back.replace('=', "%3D");
    ensure!(to == json!(format!("auth/login?return_url={back}")), "{to} does not lead back to {back}");
    tab.until("document.activeElement?.name === 'username'").await?;
    tab.write("test").await?;
    tab.press("Tab").await?;
    tab.write("secret").await?;
    tab.press("Enter").await?;
    tab.until(
        "location.search === '?q=app-77' && document.querySelector('.me a')?.textContent === 'Log out'",
    )
    .await?;
    for width in [720, 900, 1040] {
        tab.shape(width, 800, "light").await?;
        let shown = "document.querySelector('.me a').getBoundingClientRect()";
        tab.until(&format!("{shown}.width > 0 && {shown}.right <= innerWidth")).await?;
        let wide = tab.number("document.documentElement.scrollWidth").await?;
        ensure!(wide <= f64::from(width), "at {width} pixels the page is {wide} wide");
    }
    tab.shape(1280, 800, "light").await
}

/// One app whose plan is old, and one whose name must be typed, keep nobody from the others, and are not done by accident.
async fn many_at_once(tab: &mut Tab<'_>, server: &Server) -> Result<()> {
    server.quirks(|quirks| {
        quirks.moved = Some("payments".to_owned());
        quirks.typed = vec!["tekton-extras".to_owned(), "infisical".to_owned()];
    });
    tab.open(&server.url("applications?sort=name&q=label:team%3Dpayments+is:drifted")).await?;
    tab.until("document.querySelectorAll('.row').length === 4").await?;
    tab.eval("document.querySelectorAll('.row input').forEach((box) => box.click())").await?;
    tab.until("document.querySelector('.selection b')?.textContent === '4 selected'").await?;
    tab.press("s").await?;
    tab.until("document.querySelectorAll('dialog h3').length === 4").await?;
    let typing = "document.querySelectorAll('dialog .field input')";
    tab.until(&format!("{typing}.length === 2")).await?;
    tab.eval(&format!("{typing}[0].focus()")).await?;
    tab.write("infisical").await?;
    tab.until("document.querySelector('dialog')?.textContent.includes('1 app is left out')").await?;
    tab.eval("document.querySelector('dialog button[type=submit]').click()").await?;
    tab.until("document.querySelectorAll('dialog h3').length === 2").await?;
    let left = tab.text("dialog").await?;
    ensure!(left.contains("payments") && left.contains("Something changed"), "{left}");
    let mut done: Vec<String> = server.acts().iter().map(|act| act["app"][1].to_string()).collect();
    done.sort();
    ensure!(done == ["\"infisical\"", "\"web\""], "done: {done:?}");
    tab.eval("document.querySelector('dialog button[type=submit]').click()").await?;
    tab.until("document.querySelectorAll('dialog h3').length === 1").await?;
    let acts = server.acts();
    ensure!(acts.len() == 1 && acts[0]["app"][1] == "payments", "{acts:?}");
    tab.press("Escape").await?;
    tab.until("document.querySelector('dialog') === null").await?;
    server.quirks(|quirks| *quirks = Quirks::default());
    Ok(())
}

/// A read-only page shows the plan and its commands, and no button that writes.
async fn read_only(tab: &mut Tab<'_>, server: &Server) -> Result<()> {
    server.quirks(|quirks| quirks.is_read_only = true);
    tab.open(&server.url("applications/argocd/payments")).await?;
    tab.until("document.querySelector('.apphead') !== null").await?;
    tab.use_control("Sync: plan").await?;
    tab.until("document.querySelector('dialog .command')?.textContent.includes('plumb app sync payments')")
        .await?;
    let buttons = tab.number("document.querySelectorAll('dialog button[type=submit]').length").await?;
    ensure!(buttons == 0.0, "a read-only page has a button that writes");
    server.quirks(|quirks| *quirks = Quirks::default());
    Ok(())
}

/// Lists of all apps, and what is shown of one object, change with the apps; what was restored has no button any more.
async fn lists_follow(tab: &mut Tab<'_>, server: &Server) -> Result<()> {
    tab.open(&server.url("doctor")).await?;
    tab.until("document.querySelector('details.card') !== null").await?;
    server.drift("app-150");
    tab.until("document.body.textContent.includes('mallory')").await?;
    tab.open(&server.url("undo")).await?;
    tab.until("document.querySelectorAll('.list button').length > 1").await?;
    tab.use_control("Restore").await?;
    tab.until("document.querySelector('dialog .steps')?.textContent.includes('from the copy')").await?;
    tab.eval("document.querySelector('dialog button[type=submit]').click()").await?;
    tab.until("document.querySelector('.list li')?.textContent.includes('It exists')").await?;
    let n_buttons = tab.number("document.querySelectorAll('.list button:not(.quiet)').length").await?;
    ensure!((n_buttons - 1.0).abs() < 0.5, "what is back has a button: {n_buttons}");
    tab.open(&server.url("applications/argocd/payments/o/apps/Deployment/pay/payments")).await?;
    tab.until("document.querySelector('.cl.mnew') !== null").await?;
    let asked =
        "performance.getEntriesByType('resource').filter((e) => e.name.includes('managed-resources')).length";
    let before = tab.number(asked).await?;
    server.touch("payments");
    tab.until(&format!("{asked} > {before}")).await
}

/// An object of another group with the same kind and name is another object.
async fn same_name(tab: &mut Tab<'_>, server: &Server) -> Result<()> {
    tab.open(&server.url("applications/argocd/payments/o/other.example/Deployment/pay/payments")).await?;
    tab.until("document.querySelector('.apphead h1')?.textContent.includes('payments')").await?;
    tab.until("document.querySelector('.cl.mnew') !== null").await?;
    let head = tab.text(".apphead").await?;
    ensure!(
        !head.contains("Healthy") && !head.contains("Sync this"),
        "it is taken for another object: {head}"
    );
    tab.open(&server.url("applications/argocd/five-hundred?tab=objects")).await?;
    tab.until(
        "document.querySelector('.trow:not(.fold) button.twist[aria-expanded=true]')?.textContent === '▾'",
    )
    .await
}

/// The address is the state: without `q` there is no filter, and what is typed does not end up on another screen.
async fn addresses(tab: &mut Tab<'_>, server: &Server) -> Result<()> {
    tab.open(&server.url("applications?q=app-77&cluster=prod-eu")).await?;
    tab.until("document.querySelectorAll('.row').length > 5").await?;
    tab.eval("document.querySelector('nav a[href=applications]').click()").await?;
    tab.until("document.querySelector('.find').value === '' && location.search === ''").await?;
    let type_and_leave = "const field = document.querySelector('.find'); field.value = 'web'; \
        field.dispatchEvent(new Event('input', {bubbles: true})); document.querySelector('nav a[href=doctor]').click();";
    // A timer that is set later and is longer ends later than that of the filter.
    let search = format!(
        "(async () => {{ {type_and_leave} await new Promise((done) => setTimeout(done, 200)); return location.search; }})()"
    );
    let search = tab.eval(&search).await?;
    ensure!(search == json!(""), "the filter is in the address of another screen: {search}");
    // A snapshot that fails once is loaded again without a word from the user.
    server.quirks(|quirks| quirks.failing_snapshots = 1);
    tab.open(&server.url("applications")).await?;
    tab.until("document.querySelectorAll('.row').length > 5 && document.querySelector('.note.bad') === null")
        .await
}

/// A repository that nobody tried is not shown as well, and one that all its apps complain about is not, either.
async fn connections(tab: &mut Tab<'_>, server: &Server) -> Result<()> {
    tab.open(&server.url("settings/repositories")).await?;
    tab.until("document.querySelectorAll('.list li').length === 3").await?;
    let word = |text: &str, word: &str| {
        format!(
            "[...document.querySelectorAll('.list li')].find((line) => line.textContent.includes({text:?}))?.querySelector('b')?.textContent === {word:?}"
        )
    };
    tab.until(&word("shop/deploy", "Works")).await?;
    tab.until(&word("unused", "Not known")).await?;
    tab.until(&word("charts", "Failed")).await
}

/// Addresses that Argo CD's page, its notifications and its users write down lead to the same thing here.
async fn argo_addresses(tab: &mut Tab<'_>, server: &Server) -> Result<()> {
    let app = "applications/argocd/payments";
    let node = "node=apps/Deployment/pay/payments/0";
    let is_on = |tab: &str| {
        format!("document.querySelector('.tabs [aria-current]')?.textContent.startsWith({tab:?})")
    };
    for (path, there) in [
        (format!("{app}?tab=summary"), is_on("Findings")),
        (format!("{app}?node=argoproj.io/Application/argocd/payments/0&tab=manifest"), is_on("Findings")),
        (format!("{app}?{node}"), is_on("Difference")),
        (format!("{app}?{node}&tab=desired"), is_on("Git")),
        (format!("{app}?{node}&tab=manifest"), is_on("Live")),
        (format!("{app}?{node}&tab=events"), is_on("Events")),
        (format!("{app}?{node}&tab=logs"), is_on("Logs")),
        (format!("{app}?{node}&tab=diff"), is_on("Difference")),
        (format!("{app}?operation=true"), is_on("Sync")),
        (format!("{app}?rollback=0"), is_on("Timeline")),
        (format!("{app}?deploy=all"), "document.querySelector('dialog .steps li') !== null".to_owned()),
        (
            "settings/repos".to_owned(),
            "document.querySelector('h1')?.textContent === 'Repositories'".to_owned(),
        ),
        (
            "settings/projects/shop".to_owned(),
            "document.querySelectorAll('.list li').length === 1".to_owned(),
        ),
        (
            "settings/projects/none".to_owned(),
            "document.querySelectorAll('.list li').length === 0 && document.querySelector('h1') !== null"
                .to_owned(),
        ),
        (
            "applications?health=Degraded&proj=infra&sync=Synced".to_owned(),
            "document.querySelector('.find')?.value.includes('project:infra')".to_owned(),
        ),
    ] {
        tab.open(&server.url(&path)).await?;
        tab.until(&there).await.context(path)?;
    }
    Ok(())
}

/// A change in the middle of a long text is seen: on the card its line, on the screen of the object the lines around it.
async fn long_values(tab: &mut Tab<'_>, server: &Server) -> Result<()> {
    tab.open(&server.url("applications/argocd/payments/o/-/ConfigMap/pay/payments")).await?;
    tab.until("document.querySelector('.cl.mnew') !== null").await?;
    let lines = tab.eval("[...document.querySelectorAll('.diff .cl')].map((line) => line.querySelector('.txt')?.textContent.trim() ?? 'gap')").await?;
    let lines: Vec<&str> = lines.as_array().into_iter().flatten().filter_map(|line| line.as_str()).collect();
    let expected = [
        "gap",
        "data:",
        "level: |",
        "gap",
        "line 38 of the file",
        "line 39 of the file",
        "mode: fast",
        "mode: slow",
        "line 41 of the file",
        "line 42 of the file",
        "gap",
    ];
    ensure!(lines == expected, "{lines:?}");
    server.drift("vault");
    tab.open(&server.url("applications/argocd/vault")).await?;
    tab.until("document.querySelector('.fielddiff .new') !== null").await?;
    let card = tab.text(".fielddiff").await?;
    ensure!(card.contains("line 40") && card.contains("mode: fast") && card.contains("mode: slow"), "{card}");
    // Links that are no addresses, and those with a title as in Argo CD.
    let buttons = tab
        .eval("[...document.querySelectorAll('.apphead .actions a.button')].map((a) => a.textContent).slice(0, 2)")
        .await?;
    ensure!(buttons == json!(["Wiki", "[2001:db8::1]"]), "{buttons}");
    Ok(())
}

/// A menu is on the screen of a phone, and closes with Escape, which then does nothing else.
async fn menus(tab: &mut Tab<'_>, server: &Server) -> Result<()> {
    tab.shape(390, 844, "light").await?;
    for path in
        ["applications/argocd/payments", "applications/argocd/payments/o/apps/Deployment/pay/payments"]
    {
        tab.open(&server.url(path)).await?;
        tab.until("document.querySelector('.menu > summary') !== null").await?;
        tab.eval("document.querySelector('.menu > summary').click()").await?;
        tab.until("document.querySelector('.menu[open] > div button') !== null").await?;
        let out = "[...document.querySelectorAll('.menu > div > *')].filter((e) => { const box = e.getBoundingClientRect(); \
                   return box.left < 0 || box.right > innerWidth || box.top < 0 || box.bottom > innerHeight; }).length";
        let out = tab.number(out).await?;
        ensure!(out == 0.0, "{path}: {out} entries of the menu are not on the screen");
        tab.press("Escape").await?;
        tab.until("document.querySelector('.menu[open]') === null").await?;
        let place = tab.eval("location.pathname").await?;
        ensure!(place == json!(format!("/{path}")), "Escape left {path} for {place}");
    }
    tab.shape(1280, 800, "light").await
}
