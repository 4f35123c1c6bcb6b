//! Every screen and dialog, and how to tell that it is there.

use anyhow::Result;
use plumb_testkit::browser::Tab;

use crate::server::{Mood, Server};

/// One screen.
pub(crate) struct Screen {
    pub(crate) name: &'static str,
    path: &'static str,
    /// What is there once the screen is.
    ready: &'static str,
    /// The key that is pressed then, or the menu that is opened, and what is there after it.
    key: Option<(&'static str, &'static str)>,
}

const fn screen(name: &'static str, path: &'static str, ready: &'static str) -> Screen {
    Screen { name, path, ready, key: None }
}

const fn dialog(
    name: &'static str,
    path: &'static str,
    ready: &'static str,
    key: (&'static str, &'static str),
) -> Screen {
    Screen { name, path, ready, key: Some(key) }
}

const PAYMENTS: &str = "applications/argocd/payments";

/// All of them.
pub(crate) const SCREENS: &[Screen] = &[
    screen("home", "", ".card"),
    screen("wall", "?wall", ".card"),
    screen("apps", "applications", ".row"),
    screen("apps-grouped", "applications?group=class&q=is:wrong", ".grouphead"),
    screen("apps-none", "applications?q=nothing-is-called-so", ".note"),
    screen("app", PAYMENTS, ".fielddiff .new"),
    screen("app-ill", "applications/argocd/argo-rollouts", ".card.ill"),
    screen("app-broken", "applications/argocd/ingress", ".note.bad"),
    screen("app-sync", "applications/argocd/web?tab=sync", ".waves"),
    screen("app-objects", "applications/argocd/five-hundred?tab=objects", ".trow.fold"),
    screen("app-timeline", "applications/argocd/payments?tab=timeline", ".timeline li"),
    screen("app-sources", "applications/argocd/payments?tab=sources", ".facts"),
    screen("app-missing", "applications/argocd/none", ".note.bad"),
    screen("object-diff", "applications/argocd/payments/o/apps/Deployment/pay/payments", ".cl.mnew"),
    screen(
        "object-live",
        "applications/argocd/payments/o/apps/Deployment/pay/payments?tab=live",
        ".code .cl",
    ),
    screen(
        "object-events",
        "applications/argocd/payments/o/apps/Deployment/pay/payments?tab=events",
        ".timeline li",
    ),
    screen(
        "object-logs",
        "applications/argocd/payments/o/apps/Deployment/pay/payments?tab=logs",
        ".code .cl",
    ),
    dialog("app-menu", PAYMENTS, ".fielddiff .new", ("More", ".menu[open]")),
    dialog(
        "object-menu",
        "applications/argocd/payments/o/apps/Deployment/pay/payments",
        ".cl.mnew",
        ("Copy as command", ".menu[open]"),
    ),
    screen("object-users", "applications/argocd/infisical/o/-/Service/pay/redis?tab=users", ".users"),
    screen("doctor", "doctor", "details.card"),
    screen("orphans", "orphans", ".places li"),
    screen("undo", "undo", ".list li"),
    screen("activity", "activity", ".lately li"),
    screen("settings", "settings", ".isset li"),
    screen("clusters", "settings/clusters", ".list li"),
    screen("repositories", "settings/repositories", ".list li"),
    screen("projects", "settings/projects", ".list li"),
    screen("applicationsets", "settings/applicationsets", ".list li"),
    screen("no-such-screen", "nowhere", ".note"),
    dialog("plan-sync", PAYMENTS, ".fielddiff .new", ("s", "dialog .steps li")),
    dialog("plan-pause", PAYMENTS, ".fielddiff .new", ("z", "dialog .command")),
    dialog("keys", PAYMENTS, ".fielddiff .new", ("?", "dialog .keys")),
    dialog("palette", PAYMENTS, ".fielddiff .new", ("/", "dialog .palette li")),
];

/// Goes there.
pub(crate) async fn show(tab: &mut Tab<'_>, server: &Server, screen: &Screen) -> Result<()> {
    tab.open(&server.url(screen.path)).await?;
    tab.until(&format!("document.querySelector({:?}) !== null", screen.ready)).await?;
    if let Some((key, ready)) = screen.key {
        if key.chars().count() > 1 {
            let menu = "[...document.querySelectorAll('.menu > summary')].find((e) => e.textContent === NAME).click()";
            tab.eval(&menu.replace("NAME", &format!("{key:?}"))).await?;
        } else {
            tab.press(key).await?;
        }
        tab.until(&format!("document.querySelector({ready:?}) !== null")).await?;
    }
    // What fades in is there.
    tab.until("document.getAnimations().every((one) => one.playState !== 'running')").await
}

/// The screen of somebody who is not logged in.
pub(crate) async fn login(tab: &mut Tab<'_>, server: &Server) -> Result<()> {
    server.become_like(Mood::LoggedOut);
    tab.open(&server.url("login")).await?;
    tab.until("document.querySelector('form input[type=password]') !== null").await
}
