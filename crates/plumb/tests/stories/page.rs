//! The page against a real plumb: the stories of a red column in a real Chromium, on a screen and on a phone, with the
//! keyboard alone. One cluster, one plumb and one browser serve all of them.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use plumb_testkit::browser::{self, Chromium, Tab};
use plumb_testkit::objects::{self, Trouble, annotated, troubled};
use plumb_testkit::proxy::{Fault, Requests, Times};
use plumb_testkit::wait;
use serde_json::{Value, json};

use crate::server::{admin, initial_password};
use crate::stage::Stage;
use crate::{page_costs, page_lists};

/// A card is there within a second. This machine may have other work, and a browser that draws without a graphics card.
const CARD_WITHIN: Duration = Duration::from_secs(5);
/// A value that nobody may see.
const CANARY: &str = "canary-5f1c9d-value";
/// The same, as Secrets have it.
const CANARY_BASE64: &str = "Y2FuYXJ5LTVmMWM5ZC12YWx1ZQ";

/// An address that stays while plumb restarts, as that of a Service does.
struct Door {
    address: std::net::SocketAddr,
    target: std::sync::Arc<std::sync::Mutex<std::net::SocketAddr>>,
}

impl Door {
    async fn open(target: std::net::SocketAddr) -> Result<Self> {
        let listener = tokio::net::TcpListener::bind(("127.0.0.1", 0)).await?;
        let door = Self { address: listener.local_addr()?, target: std::sync::Arc::new(target.into()) };
        let target = std::sync::Arc::clone(&door.target);
        tokio::spawn(async move {
            while let Ok((mut outside, _)) = listener.accept().await {
                let to = *target.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
                tokio::spawn(async move {
                    let Ok(mut inside) = tokio::net::TcpStream::connect(to).await else { return };
                    let _ = tokio::io::copy_bidirectional(&mut outside, &mut inside).await;
                });
            }
        });
        Ok(door)
    }

    fn lead_to(&self, target: std::net::SocketAddr) {
        *self.target.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = target;
    }
}

/// The page of a stage, opened in a browser.
pub(crate) struct Opened<'s, 'b> {
    pub(crate) stage: &'s Stage,
    pub(crate) tab: Tab<'b>,
    base: String,
}

impl Opened<'_, '_> {
    pub(crate) async fn desktop(&mut self) -> Result<()> {
        self.tab.shape(1280, 800, "light").await
    }

    pub(crate) async fn phone(&mut self) -> Result<()> {
        self.tab.shape(390, 844, "dark").await
    }

    pub(crate) async fn open(&mut self, path: &str) -> Result<()> {
        self.tab.open(&format!("{}/{path}", self.base)).await
    }

    /// The screen of an app; `rest` follows its name.
    pub(crate) async fn app(&mut self, name: &str, rest: &str) -> Result<()> {
        let path = format!("applications/{}/{name}{rest}", self.stage.place.name());
        self.open(&path).await
    }

    /// Goes to a screen with two keys, as `g h`.
    pub(crate) async fn go(&mut self, key: &str) -> Result<()> {
        self.tab.until("document.querySelector('main') !== null").await?;
        self.tab.press("g").await?;
        self.tab.press(key).await
    }

    /// Opens an app with the keyboard alone: the palette, its name, Enter.
    pub(crate) async fn find(&mut self, name: &str) -> Result<()> {
        self.tab.press("/").await?;
        self.tab.until("document.activeElement?.getAttribute('role') === 'combobox'").await?;
        self.tab.write(name).await?;
        self.tab
            .until(&format!(
                "document.querySelector('[role=option][aria-selected=true] b')?.textContent === {name:?}"
            ))
            .await?;
        self.tab.press("Enter").await?;
        let there =
            format!("location.pathname.endsWith('/{name}') && document.querySelector('.apphead') !== null");
        self.tab.until(&there).await
    }

    /// No secret value is in what servers sent, in what the scripts remember, or in the document.
    async fn keeps_secrets(&mut self, place: &str) -> Result<()> {
        let (heap, received) = (self.tab.heap_snapshot().await?, self.tab.received().await?);
        let shown = self.tab.eval("document.documentElement.outerHTML").await?.to_string();
        ensure!(heap.contains("/data/password") || heap.contains("++++"), "{place}: the search sees no heap");
        for (what, text) in [("the heap", &heap), ("an answer", &received), ("the document", &shown)] {
            ensure!(!text.contains(CANARY), "{place}: a secret value is in {what}");
            ensure!(!text.contains(CANARY_BASE64), "{place}: a secret value is in {what}, encoded");
            ensure!(!text.contains("s3cr3t-of-git"), "{place}: a value of Git is in {what}");
        }
        Ok(())
    }

    /// Waits for a card on the screen that is open, with all these words.
    pub(crate) async fn card(&mut self, words: &[&str]) -> Result<()> {
        let holds =
            words.iter().map(|word| format!("text.includes({word:?})")).collect::<Vec<_>>().join(" && ");
        let condition = format!(
            "[...document.querySelectorAll('.card')].some((card) => {{ const text = card.textContent; return {holds}; }})"
        );
        self.tab.until(&condition).await
    }

    /// Waits until the plan in the sheet can be done, and does it with the keyboard.
    pub(crate) async fn confirm(&mut self, button: &str) -> Result<()> {
        let ready = format!(
            "(() => {{ const b = document.querySelector('dialog button[type=submit]'); \
             return b?.textContent.startsWith({button:?}) && b.getAttribute('aria-disabled') !== 'true'; }})()"
        );
        self.tab.until(&ready).await?;
        self.tab.use_control(button).await?;
        self.tab.until("document.querySelector('dialog') === null").await
    }
}

pub(crate) fn automated(policy: Value) -> impl FnOnce(&mut Value) {
    move |app| app["spec"]["syncPolicy"] = json!({"automated": policy, "retry": {"limit": 0}})
}

pub(crate) fn in_folder(path: &'static str, policy: Value) -> impl FnOnce(&mut Value) {
    move |app| {
        automated(policy)(app);
        app["spec"]["source"]["path"] = json!(path);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_stories_of_a_red_column_in_a_browser() -> Result<()> {
    let Some(program) = browser::find() else {
        return plumb_testkit::skipped("BROWSER", "install chromium");
    };
    let (mut stage, proxy) = Stage::bare_behind_proxy().await?;
    stage.serves = true;
    stage.arguments = vec!["--insecure".to_owned()];
    stage.setting("argocd-cm", "plumb.tug-of-war.rounds", "2").await?;
    let log = "starting\nlevel=fatal msg=\"Failed to download plugins: response code Not Found\"\n";
    proxy.inject(Fault::Answer(log.to_owned()), Requests::to("/log?"), Times::Always);
    stage.begin().await?;
    let client = admin(&stage).await?;
    let password = initial_password(&stage).await?;
    let door = Door::open(client.address).await?;
    let base = format!("http://{}", door.address);
    let mut chromium = Chromium::start(&program).await?;
    let tab = chromium.tab().await?;
    let mut page = Opened { stage: &stage, tab, base };

    log_in(&mut page, &password).await.context("log in")?;
    crash_loop(&mut page).await.context("the unmasked bug")?;
    scaled_by_hand(&mut page).await.context("scaled by hand")?;
    wave_waits(&mut page).await.context("the wave waits")?;
    deleted_folder(&mut page).await.context("a deleted folder")?;
    secret_differs(&mut page).await.context("a secret differs")?;
    tug_of_war(&mut page).await.context("tug of war")?;
    page_lists::zombies(&mut page).await.context("zombies")?;
    page_lists::residuals(&mut page).await.context("two residuals")?;
    page_lists::doctor(&mut page).await.context("twenty of fifty-two")?;
    timeline(&mut page).await.context("timeline")?;

    let heap = page.tab.heap_snapshot().await?;
    let received = page.tab.received().await?;
    ensure!(
        received.contains("LiveEdit") && heap.contains("LiveEdit"),
        "the search for secrets sees nothing"
    );
    for (place, text) in [("an answer", &received), ("the heap", &heap), ("the log", &stage.log()?)] {
        ensure!(!text.contains(CANARY), "a secret value is in {place}");
        ensure!(!text.contains(CANARY_BASE64), "a secret value is in {place}, encoded");
    }
    ensure!(!received.contains(&password), "the password is in an answer");
    let problems = page.tab.problems();
    ensure!(problems.is_empty(), "the browser reported: {problems:?}");
    let elsewhere: Vec<&String> = page
        .tab
        .requests()
        .iter()
        .filter(|url| !url.starts_with(&page.base) && !url.starts_with("data:") && !url.starts_with("about:"))
        .collect();
    ensure!(elsewhere.is_empty(), "the page asked elsewhere: {elsewhere:?}");
    let Opened { tab, base, .. } = page;
    restarted(&mut stage, &door, tab, &base).await.context("a restart")?;
    page_costs::all(&stage).await.context("what open pages cost the server")
}

/// Whoever is not logged in gets a form, and after it the screen that was asked for.
async fn log_in(page: &mut Opened<'_, '_>, password: &str) -> Result<()> {
    page.desktop().await?;
    page.open("").await?;
    page.tab.until("document.activeElement?.name === 'username'").await?;
    page.tab.write("admin").await?;
    page.tab.press("Tab").await?;
    page.tab.write(password).await?;
    page.tab.press("Enter").await?;
    page.tab.until("document.querySelector('.headline, .calm') !== null").await
}

/// Pods crash for weeks while the app is in sync: the first screen of a phone has the reason, without a tap.
async fn crash_loop(page: &mut Opened<'_, '_>) -> Result<()> {
    let mut rollouts = troubled(objects::deployment("argo-rollouts", 1), Trouble::CrashLoop);
    rollouts["spec"]["template"]["metadata"]["annotations"] = json!({"plumb.dev/exit-code": "1"});
    page.stage.repo.commit(&[("loop/all.yaml", objects::manifests(&[rollouts]))])?;
    page.stage.application("argo-rollouts", in_folder("loop", json!({}))).await?;
    page.phone().await?;
    page.open("").await?;
    page.card(&["argo-rollouts", "keeps crashing", "Failed to download plugins"]).await?;
    let first = "document.querySelector('.card').getBoundingClientRect().bottom < innerHeight";
    page.tab.until(first).await?;
    let well = page.tab.text("h1").await?;
    ensure!(well.contains("wrong"), "the headline is {well}");
    page.desktop().await?;
    page.card(&["argo-rollouts", "keeps crashing", "Failed to download plugins"]).await
}

/// A pause, made with the keyboard, holds self-heal back; the card names who scaled; the pause ends by itself.
#[expect(clippy::print_stdout, reason = "the figure is a budget")]
async fn scaled_by_hand(page: &mut Opened<'_, '_>) -> Result<()> {
    let web = objects::deployment("payments", 3);
    page.stage.repo.commit(&[("payments/all.yaml", objects::manifests(std::slice::from_ref(&web)))])?;
    let app = page.stage.application("payments", in_folder("payments", json!({"selfHeal": true}))).await?;
    page.stage.until_sync(&app, "Synced").await?;
    page.find("payments").await?;
    page.tab.press("z").await?;
    page.tab.tab_to("Why?").await?;
    page.tab.write("incident 4711").await?;
    page.confirm("Pause 30 min").await?;
    let is_held = |live: &Value| live["metadata"]["annotations"]["plumb.dev/pause"].is_string();
    let held = page.stage.place.wait(&app, "is paused", is_held).await?;
    let note = held["metadata"]["annotations"]["plumb.dev/pause"].as_str().unwrap_or_default();
    ensure!(note.contains("incident 4711") && note.contains("admin"), "{note}");
    page.go("h").await?;
    page.tab.until_shown("incident 4711").await?;
    let scaled = Instant::now();
    page.stage.place.scale_as("kubectl-scale", &web, 10).await?;
    page.card(&["payments", "LiveEdit", "/spec/replicas", "kubectl-scale"]).await?;
    let took = scaled.elapsed();
    println!("from the edit to the card on Home: {} ms (budget 1,000 ms)", took.as_millis());
    ensure!(took < CARD_WITHIN, "the card came {took:?} after the edit");
    page.phone().await?;
    page.card(&["payments", "kubectl-scale"]).await?;
    let live = page.stage.place.get(&web).await?.unwrap_or_default();
    ensure!(live["spec"]["replicas"] == 10, "the pause did not hold self-heal back");
    let end = jiff::Timestamp::now().saturating_add(jiff::SignedDuration::from_secs(1))?;
    let pause = json!({"until": end, "reason": "incident 4711", "by": "admin"}).to_string();
    let patch = json!({"metadata": {"annotations": {"plumb.dev/pause": pause}}});
    page.stage.place.patch_as("a-story", &app, &patch).await?;
    page.stage.place.wait(&web, "is healed", |live| live["spec"]["replicas"] == 3).await?;
    page.tab
        .until("![...document.querySelectorAll('.card')].some((card) => card.textContent.includes('kubectl-scale'))")
        .await?;
    page.desktop().await
}

/// The running sync says for which Job of which wave it waits, and why; it is ended with the keyboard.
async fn wave_waits(page: &mut Opened<'_, '_>) -> Result<()> {
    let wave = |object: Value, wave: &str| annotated(object, "argocd.argoproj.io/sync-wave", wave);
    let migrate = wave(troubled(objects::job("migrate"), Trouble::ImagePullBackOff), "1");
    let all = [objects::config_map("conf", &[]), migrate, wave(objects::service("last", 80), "2")];
    page.stage.repo.commit(&[("wave/all.yaml", objects::manifests(&all))])?;
    let app = page.stage.application("web", in_folder("wave", json!({}))).await?;
    page.phone().await?;
    page.find("web").await?;
    page.tab.until_shown("Sync: running").await?;
    page.tab.use_control("Sync: running").await?;
    page.tab.until("document.querySelector('.operation')?.textContent.includes('migrate')").await?;
    // What waits behind it is there, too.
    page.tab
        .until("document.querySelector('.operation')?.innerText.includes('Sync wave 2 1 to come')")
        .await?;
    page.tab.until_shown("ImagePullBackOff").await?;
    page.desktop().await?;
    page.tab.use_control("Terminate").await?;
    page.confirm("Terminate").await?;
    let phase = |live: &Value| live["status"]["operationState"]["phase"] == "Failed";
    page.stage.place.wait(&app, "has ended", phase).await?;
    page.tab.until_shown("Sync failed").await
}

/// Most of an app leaves Git at once: the deletions wait, the page says who uses them, a user confirms, and undoes.
async fn deleted_folder(page: &mut Opened<'_, '_>) -> Result<()> {
    let map = |n: usize| objects::config_map(&format!("c-{n}"), &[("n", "1")]);
    let many: Vec<Value> = (1..8).map(map).collect();
    page.stage.repo.commit(&[
        ("store/many.yaml", objects::manifests(&many)),
        ("store/stays.yaml", objects::manifests(&[objects::config_map("stays", &[])])),
    ])?;
    let app = page.stage.application("store", in_folder("store", json!({"prune": true}))).await?;
    page.stage.until_sync(&app, "Synced").await?;
    let volumes = json!([{"name": "config", "configMap": {"name": "c-1"}}]);
    let user = objects::with(objects::pod("by-hand"), "/spec/volumes", volumes);
    page.stage.place.apply_as("a-person", &user).await?;
    page.stage.repo.remove(&["store/many.yaml"])?;
    page.stage.refresh(&app).await?;
    page.go("h").await?;
    page.card(&["Deletion waits", "store"]).await?;
    page.phone().await?;
    page.card(&["Deletion waits", "store"]).await?;
    page.desktop().await?;
    page.find("store").await?;
    page.tab.until_shown("Confirm deletions").await?;
    let object = format!("/o/-/ConfigMap/{}/c-1?tab=users", page.stage.place.name());
    page.app("store", &object).await?;
    page.tab.until_shown("by-hand").await?;
    page.tab.press("Escape").await?;
    page.tab.until_shown("Confirm deletions").await?;
    page.tab.use_control("Confirm deletions").await?;
    page.confirm("Confirm 7 deletions").await?;
    page.stage.place.wait_gone(&map(2)).await?;
    page.go("u").await?;
    page.tab.until_shown("c-2").await?;
    page.tab.use_control("Restore").await?;
    page.confirm("Restore ConfigMap").await?;
    let back = async || {
        let mut n = 0;
        for at in 1..8 {
            n += usize::from(matches!(page.stage.place.get(&map(at)).await, Ok(Some(_))));
        }
        n
    };
    wait::until_seen(wait::LIMIT, "one object is back", back, |n| *n == 1).await?;
    Ok(())
}

/// That a value differs is said; the value is not, anywhere.
async fn secret_differs(page: &mut Opened<'_, '_>) -> Result<()> {
    let secret = objects::secret("keys", &[("password", "s3cr3t-of-git")]);
    page.stage.repo.commit(&[("keys/all.yaml", objects::manifests(std::slice::from_ref(&secret)))])?;
    let app = page.stage.application("keys", in_folder("keys", json!({}))).await?;
    page.stage.until_sync(&app, "Synced").await?;
    let edit = json!({"stringData": {"password": CANARY}});
    page.stage.place.patch_as("kubectl-edit", &secret, &edit).await?;
    page.find("keys").await?;
    page.card(&["Secret", "keys", "/data/password"]).await?;
    page.phone().await?;
    page.card(&["Secret", "keys", "/data/password"]).await?;
    page.desktop().await?;
    page.app("keys", &format!("/o/-/Secret/{}/keys", page.stage.place.name())).await?;
    page.tab.until("document.querySelector('.cl.mnew') !== null").await?;
    page.tab.until("document.querySelector('.code')?.textContent.includes('++++')").await?;
    page.keeps_secrets("difference").await?;
    for tab in ["live", "git"] {
        let path = format!("/o/-/Secret/{}/keys?tab={tab}", page.stage.place.name());
        page.app("keys", &path).await?;
        page.tab.until("document.querySelector('.code')?.textContent.includes('++++')").await?;
        page.keeps_secrets(tab).await?;
    }
    page.app("keys", "").await?;
    page.tab.until("document.querySelector('.fielddiff .new')?.textContent.includes('++++')").await?;
    page.keeps_secrets("app").await
}

/// A writer that undoes each heal is named.
async fn tug_of_war(page: &mut Opened<'_, '_>) -> Result<()> {
    let fought = objects::config_map("fought", &[("a", "1")]);
    page.stage.repo.commit(&[("tug/all.yaml", objects::manifests(std::slice::from_ref(&fought)))])?;
    let app = page.stage.application("tug", in_folder("tug", json!({"selfHeal": true}))).await?;
    page.stage.until_sync(&app, "Synced").await?;
    let edit = json!({"data": {"a": "2"}});
    for _ in 0..2 {
        page.stage.place.patch_as("night-writer", &fought, &edit).await?;
        page.stage.place.wait(&fought, "is healed", |live| live["data"]["a"] == "1").await?;
    }
    page.stage.place.patch_as("night-writer", &fought, &edit).await?;
    page.phone().await?;
    page.go("h").await?;
    page.card(&["tug", "TugOfWar", "night-writer"]).await?;
    page.desktop().await?;
    page.find("tug").await?;
    page.card(&["TugOfWar", "night-writer", "Ends it:"]).await?;
    // The boundary between the two writers, as a patch to copy.
    page.tab
        .eval("navigator.clipboard.writeText = (text) => { window.copied = text; return Promise.resolve(); }")
        .await?;
    page.tab.use_control("Copy patch").await?;
    page.tab.until("window.copied?.includes('ignoreDifferences') && window.copied.includes('/data/a')").await
}

/// What came and went is on the timeline: the edit by hand that is over, and its heal.
async fn timeline(page: &mut Opened<'_, '_>) -> Result<()> {
    page.find("payments").await?;
    page.tab.use_control("Timeline").await?;
    let has = |text: &str| format!("document.querySelector('.timeline')?.innerText.includes({text:?})");
    page.tab.until(&has("LiveEdit Deployment payments is gone")).await?;
    page.tab.until(&has("kubectl-scale")).await?;
    page.tab.until(&has("healed")).await
}

/// A restart under an open page: it says that its news is old, comes back by itself, and still knows what happened.
async fn restarted(stage: &mut Stage, door: &Door, mut tab: Tab<'_>, base: &str) -> Result<()> {
    tab.open(&format!("{base}/applications/{}/payments?tab=timeline", stage.place.name())).await?;
    let knows =
        "document.querySelector('.timeline')?.innerText.includes('LiveEdit Deployment payments is gone')";
    tab.until(knows).await?;
    tab.eval("window.stays = true").await?;
    stage.kill_plumb()?;
    tab.until(
        "document.documentElement.classList.contains('stale') && document.querySelector('.banner') !== null",
    )
    .await?;
    // Its log, and with it its address, begins anew.
    std::fs::remove_file(stage.cache().join("plumb.log"))?;
    stage.begin().await?;
    door.lead_to(stage.address("webhooks").await?);
    tab.until(
        "!document.documentElement.classList.contains('stale') && document.querySelector('.banner') === null",
    )
    .await?;
    ensure!(tab.eval("window.stays").await? == json!(true), "the page was loaded again");
    // What is read now comes from the plumb that has just started.
    tab.open(&format!("{base}/applications/{}/payments?tab=timeline", stage.place.name())).await?;
    tab.until(knows).await
}
