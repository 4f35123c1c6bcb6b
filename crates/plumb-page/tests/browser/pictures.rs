//! The pictures of the README. `UPDATE=1` takes them; else the screens must still look like them.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use plumb_testkit::browser::Tab;
use serde_json::json;

use crate::screens::{SCREENS, show};
use crate::server::Server;

/// Screen, size, theme, file.
const PICTURES: &[(&str, u32, u32, &str, &str)] = &[
    ("home", 1180, 760, "light", "page-home.png"),
    ("app", 1180, 760, "dark", "page-app.png"),
    ("home", 390, 760, "dark", "page-phone.png"),
];
/// How much one of the 40 parts of the picture and of the screen may differ on average, of 255 steps of brightness: other
/// fonts do a little, a card that is gone or a screen that is blank does more.
const ALIKE: f64 = 9.0;

fn file(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/images").join(name)
}

/// Takes or compares them.
pub(crate) async fn readme(tab: &mut Tab<'_>, server: &Server) -> Result<()> {
    let folder = tempfile::tempdir()?;
    // It is there to attack the page, not to be shown.
    server.forget("app-3");
    // The clock of the browser stands still as that of the server does.
    let stands = json!({"source": "{ const at = Date.now(); Date.now = () => at; }"});
    tab.call("Page.addScriptToEvaluateOnNewDocument", stands).await?;
    for (name, width, height, theme, target) in PICTURES {
        let screen = SCREENS.iter().find(|screen| screen.name == *name).context("no such screen")?;
        tab.shape(*width, *height, theme).await?;
        show(tab, server, screen).await?;
        tab.until("document.querySelector('.fresh')?.textContent.startsWith('news 0 s')").await?;
        if std::env::var_os("UPDATE").is_some() {
            tab.screenshot(&file(target)).await?;
            continue;
        }
        let now = folder.path().join(target);
        tab.screenshot(&now).await?;
        // Does the comparison see anything? A screen of which nothing is left but its colour must differ.
        tab.eval("document.body.replaceChildren()").await?;
        let blank = folder.path().join("blank.png");
        tab.screenshot(&blank).await?;
        let apart = difference(tab, &file(target), &now).await?;
        let blank = difference(tab, &file(target), &blank).await?;
        println!("{target}: differs by {apart:.1} of 255, a blank screen by {blank:.1}");
        ensure!(blank > ALIKE * 2.0, "the comparison takes a blank screen for {target}");
        ensure!(apart < ALIKE, "the page no longer looks like docs/images/{target}; UPDATE=1 takes it again");
    }
    Ok(())
}

/// The mean difference of the brightness of two pictures in the one of 8 x 5 parts where it is largest. Each part is compared
/// at 12 x 12 places.
async fn difference(tab: &mut Tab<'_>, a: &Path, b: &Path) -> Result<f64> {
    tab.open("about:blank").await?;
    let (a, b) = (STANDARD.encode(std::fs::read(a)?), STANDARD.encode(std::fs::read(b)?));
    tab.number(&format!(
        "(async () => {{ const W = 96, H = 60; const grid = async (data) => {{ const image = new Image(); image.src = 'data:image/png;base64,' + data; \
         await image.decode(); const c = document.createElement('canvas'); c.width = W; c.height = H; const d = c.getContext('2d'); \
         d.imageSmoothingQuality = 'high'; d.drawImage(image, 0, 0, W, H); const p = d.getImageData(0, 0, W, H).data; const out = []; \
         for (let i = 0; i < p.length; i += 4) out.push(0.3 * p[i] + 0.59 * p[i + 1] + 0.11 * p[i + 2]); return out; }}; \
         const [x, y] = [await grid('{a}'), await grid('{b}')]; let worst = 0; \
         for (let ty = 0; ty < 5; ty++) for (let tx = 0; tx < 8; tx++) {{ let sum = 0; \
           for (let py = 0; py < 12; py++) for (let px = 0; px < 12; px++) {{ const i = (ty * 12 + py) * W + tx * 12 + px; sum += Math.abs(x[i] - y[i]); }} \
           worst = Math.max(worst, sum / 144); }} return worst; }})()"
    ))
    .await
}
