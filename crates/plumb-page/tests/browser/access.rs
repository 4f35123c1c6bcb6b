//! Everybody can use it: axe-core on every screen, narrow screens, reduced motion, states that are not told by colour.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};
use plumb_testkit::browser::{Tab, axe_core};
use serde_json::{Value, json};

use crate::screens::{self, SCREENS, login, show};
use crate::server::{Mood, Server};

const SIZES: [(&str, u32, u32); 2] = [("desktop", 1280, 800), ("phone", 390, 844)];
const THEMES: [&str; 2] = ["light", "dark"];

/// The rules of WCAG 2.2, A and AA.
const RUN: &str = "axe.run(document, {resultTypes: ['violations'], runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa']})
    .then((found) => found.violations.map((rule) => `${rule.id}: ${rule.nodes.slice(0, 3).map((node) => node.target.join(' ') + ' ' + (node.any[0]?.message ?? '')).join('; ')}`))";

/// axe-core, or `None` if it cannot be had and need not be.
fn script() -> Result<Option<String>> {
    match axe_core(Path::new(env!("CARGO_TARGET_TMPDIR"))) {
        Ok(script) => Ok(Some(script)),
        Err(why) => plumb_testkit::skipped("AXE", &format!("axe-core: {why:#}")).map(|()| None),
    }
}

/// Where pictures go, if somebody wants to look at them.
fn shots() -> Option<PathBuf> {
    std::env::var_os("PLUMB_PAGE_SHOTS").map(PathBuf::from)
}

/// Everything.
pub(crate) async fn all(tab: &mut Tab<'_>, server: &Server) -> Result<()> {
    let axe = script()?;
    // The policy of the page keeps out other scripts, and that of the test, too.
    tab.call("Page.setBypassCSP", json!({"enabled": true})).await?;
    let mut found = Vec::new();
    for (size, width, height) in SIZES {
        for screen in SCREENS {
            tab.shape(width, height, "light").await?;
            show(tab, server, screen).await.context(screen.name)?;
            check(tab, (size, width, height), screen.name, axe.as_deref(), &mut found).await?;
        }
        tab.shape(width, height, "light").await?;
        login(tab, server).await?;
        check(tab, (size, width, height), "login", axe.as_deref(), &mut found).await?;
        server.become_like(Mood::Well);
    }
    if axe.is_some() {
        println!("axe-core: {} violations on {} screens, 2 themes, 2 sizes", found.len(), SCREENS.len() + 1);
    }
    ensure!(found.is_empty(), "axe-core found:\n{}", found.join("\n"));
    tab.call("Page.setBypassCSP", json!({"enabled": false})).await?;
    narrow(tab, server).await.context("narrow")?;
    large(tab, server).await.context("text at 200 %")?;
    calm(tab, server).await.context("reduced motion")?;
    shapes(tab, server).await.context("colours")
}

async fn check(
    tab: &mut Tab<'_>,
    (size, width, height): (&str, u32, u32),
    name: &str,
    axe: Option<&str>,
    found: &mut Vec<String>,
) -> Result<()> {
    if let Some(script) = axe {
        tab.eval(&format!("if (!window.axe) {{ {script} }}")).await?;
    }
    for theme in THEMES {
        tab.shape(width, height, theme).await?;
        // Colours fade from one theme to the other.
        tab.until("document.getAnimations().every((one) => one.playState !== 'running')").await?;
        if let Some(folder) = shots() {
            std::fs::create_dir_all(&folder)?;
            tab.screenshot(&folder.join(format!("{name}-{size}-{theme}.png"))).await?;
        }
        if axe.is_none() {
            continue;
        }
        let violations = tab.eval(RUN).await?;
        let violations = violations.as_array().into_iter().flatten().filter_map(Value::as_str);
        found.extend(violations.map(|rule| format!("{name} {size} {theme}: {rule}")));
    }
    Ok(())
}

/// At 320 pixels (1,280 at four times the size) nothing sticks out.
async fn narrow(tab: &mut Tab<'_>, server: &Server) -> Result<()> {
    tab.shape(320, 640, "light").await?;
    for screen in SCREENS {
        show(tab, server, screen).await.context(screen.name)?;
        let width = tab.number("document.documentElement.scrollWidth").await?;
        ensure!(width <= 320.0, "{} is {width} wide", screen.name);
    }
    Ok(())
}

/// Text of twice the size: nothing is cut off, and nothing sticks out.
async fn large(tab: &mut Tab<'_>, server: &Server) -> Result<()> {
    let size = |standard: u32, fixed: u32| json!({"fontSizes": {"standard": standard, "fixed": fixed}});
    tab.call("Page.setFontSizes", size(32, 26)).await?;
    let cut = "[...document.querySelectorAll('.row, .row > *, .trow, .cl, .grouphead')].filter((e) => e.scrollHeight > e.clientHeight + 2 && e.clientHeight > 0 && getComputedStyle(e).display !== 'inline')\
               .map((e) => `${e.className}: ${e.scrollHeight} in ${e.clientHeight}`).slice(0, 3)";
    for (width, height) in [(1280, 800), (640, 800)] {
        tab.shape(width, height, "light").await?;
        for screen in SCREENS {
            show(tab, server, screen).await.context(screen.name)?;
            let size = tab.number("parseFloat(getComputedStyle(document.documentElement).fontSize)").await?;
            ensure!(size > 29.0, "the text has {size} pixels, so this shows nothing");
            let wide = tab.number("document.documentElement.scrollWidth").await?;
            ensure!(wide <= f64::from(width), "{} is {wide} wide at {width} pixels", screen.name);
            let cut = tab.eval(cut).await?;
            ensure!(cut == json!([]), "{} at {width} pixels cuts off: {cut}", screen.name);
            if let Some(folder) = shots() {
                tab.screenshot(&folder.join(format!("large-{}-{width}.png", screen.name))).await?;
            }
        }
    }
    tab.call("Page.setFontSizes", size(16, 13)).await.map(drop)
}

/// Where the system asks for less motion, nothing moves.
async fn calm(tab: &mut Tab<'_>, server: &Server) -> Result<()> {
    tab.shape(1280, 800, "light").await?;
    let media = |motion: &str| json!({"features": [{"name": "prefers-reduced-motion", "value": motion}]});
    let moves = "[...document.querySelectorAll('*')].filter((e) => { const s = getComputedStyle(e); \
                 return s.animationName !== 'none' || s.transitionDuration.split(',').some((d) => parseFloat(d) > 0); }).length";
    let dialog = SCREENS.iter().find(|screen| screen.name == "plan-sync").context("no dialog")?;
    show(tab, server, dialog).await?;
    tab.call("Emulation.setEmulatedMedia", media("no-preference")).await?;
    ensure!(tab.number(moves).await? > 0.0, "the check for motion sees none where there is some");
    tab.call("Emulation.setEmulatedMedia", media("reduce")).await?;
    let n = tab.number(moves).await?;
    ensure!(n == 0.0, "{n} elements move although the user asked for none");
    Ok(())
}

/// The words of each state, as one expression. A name of an app says nothing about its state.
const WORDS: &[(&str, &str)] = &[
    ("ill", "not well|crash|stuck|no image|degraded|missing|fail|error|cannot|invalid|delete"),
    ("counts", "[A-Z][a-z]+[A-Z][a-z]+|[Oo]rphan|Behind|Blocked|Unexplained|Unadopted|waits|fail"),
    ("busy", "syncing|sync hangs|running|progressing|terminating|waits|apply|create|hook|restart"),
    (
        "well",
        "healthy|synced|in sync|well|no findings|no orphans|nothing|succeeded|done|restored|connected|works|is gone|no longer|created|healed|exists|equal|pulled",
    ),
    ("paused", "paused"),
    ("unknown", "unknown|not known|not compared|could not compare"),
    ("explained", "explained|nothing|keep|to come"),
];

/// Marks without a word of their state, in the part of the screen that they belong to.
const WORDLESS: &str = "[...document.querySelectorAll('svg.mark')].map((mark) => {
    const state = mark.classList[1];
    const box = (mark.closest('.row, .trow, li, .card > header, .card > summary, .apphead, .line, .note, .calm, summary, h2, h3, p') ?? mark.parentElement).cloneNode(true);
    for (const name of box.querySelectorAll('.name, h1 + .crumbs, .crumbs')) name.remove();
    const words = WORDS[state];
    return words && new RegExp(words, state === 'counts' ? '' : 'i').test(box.textContent) ? '' : `${state}: ${box.textContent.trim().slice(0, 60)}`;
}).filter(Boolean)";

/// Each state has a shape of its own and a word, so that it can be told without colours.
async fn shapes(tab: &mut Tab<'_>, server: &Server) -> Result<()> {
    let mut by_state: std::collections::BTreeMap<String, String> = std::collections::BTreeMap::new();
    let words: serde_json::Map<String, Value> =
        WORDS.iter().map(|(state, words)| ((*state).to_owned(), json!(words))).collect();
    let wordless = WORDLESS.replace("WORDS", &Value::Object(words).to_string());
    for width in [1280, 390] {
        tab.shape(width, 800, "light").await?;
        for screen in SCREENS {
            screens::show(tab, server, screen).await?;
            let name = screen.name;
            let marks = tab
                .eval("[...document.querySelectorAll('svg.mark')].map((e) => [e.classList[1], e.firstElementChild.getAttribute('d')])")
                .await?;
            for mark in marks.as_array().into_iter().flatten() {
                let (Some(state), Some(shape)) = (mark[0].as_str(), mark[1].as_str()) else { continue };
                let known = by_state.entry(state.to_owned()).or_insert_with(|| shape.to_owned());
                ensure!(known == shape, "{state} has two shapes");
            }
            let alone = tab.eval(&wordless).await?;
            ensure!(
                alone == json!([]),
                "{name}, {width} pixels: marks without a word of their state: {alone}"
            );
        }
    }
    tab.shape(1280, 800, "light").await?;
    let apps = SCREENS.iter().find(|screen| screen.name == "apps").context("no list")?;
    screens::show(tab, server, apps).await?;
    tab.eval(
        "document.querySelectorAll('.row .drift, .row .health').forEach((e) => { e.textContent = ''; })",
    )
    .await?;
    let alone = tab.eval(&wordless).await?;
    ensure!(alone != json!([]), "the search for marks without a word finds none where there are some");
    let shapes: std::collections::BTreeSet<&String> = by_state.values().collect();
    ensure!(shapes.len() == by_state.len() && by_state.len() >= 5, "shapes of states: {by_state:?}");
    // Whoever sees no colours at all still reads everything: the contrast is one of brightness.
    for kind in ["protanopia", "deuteranopia", "tritanopia", "achromatopsia"] {
        tab.call("Emulation.setEmulatedVisionDeficiency", json!({"type": kind})).await?;
        let home = SCREENS.first().context("no screen")?;
        screens::show(tab, server, home).await?;
        if let Some(folder) = shots() {
            tab.screenshot(&folder.join(format!("home-{kind}.png"))).await?;
        }
    }
    tab.call("Emulation.setEmulatedVisionDeficiency", json!({"type": "none"})).await.map(drop)
}
