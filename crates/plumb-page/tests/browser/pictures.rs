//! The pictures of the README. `UPDATE=1` takes them; else the screens must still look like them.

use std::path::PathBuf;

use anyhow::{Context as _, Result, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use plumb_testkit::browser::Tab;

use crate::screens::{SCREENS, show};
use crate::server::Server;

/// Screen, size, theme, file.
const PICTURES: &[(&str, u32, u32, &str, &str)] = &[
    ("home", 1180, 760, "light", "page-home.png"),
    ("app", 1180, 760, "dark", "page-app.png"),
    ("home", 390, 760, "dark", "page-phone.png"),
];
/// How much the brightness of the picture and the screen may differ, on average over 96 x 60 places: times, fonts and the
/// news of another minute do, another layout does more.
const ALIKE: f64 = 12.0;

fn file(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/images").join(name)
}

/// Takes or compares them.
pub(crate) async fn readme(tab: &mut Tab<'_>, server: &Server) -> Result<()> {
    let folder = tempfile::tempdir()?;
    // It is there to attack the page, not to be shown.
    server.forget("app-3");
    for (name, width, height, theme, target) in PICTURES {
        let screen = SCREENS.iter().find(|screen| screen.name == *name).context("no such screen")?;
        tab.shape(*width, *height, theme).await?;
        show(tab, server, screen).await?;
        if std::env::var_os("UPDATE").is_some() {
            tab.screenshot(&file(target)).await?;
            continue;
        }
        let now = folder.path().join(target);
        tab.screenshot(&now).await?;
        let (before, now) = (std::fs::read(file(target))?, std::fs::read(now)?);
        let apart = difference(tab, &before, &now).await?;
        println!("{target}: differs by {apart:.1} of 255");
        ensure!(apart < ALIKE, "the page no longer looks like docs/images/{target}; UPDATE=1 takes it again");
    }
    Ok(())
}

/// The mean difference of the brightness of two pictures, in a grid.
async fn difference(tab: &mut Tab<'_>, a: &[u8], b: &[u8]) -> Result<f64> {
    tab.open("about:blank").await?;
    let (a, b) = (STANDARD.encode(a), STANDARD.encode(b));
    tab.number(&format!(
        "(async () => {{ const grid = async (data) => {{ const image = new Image(); image.src = 'data:image/png;base64,' + data; \
         await image.decode(); const c = document.createElement('canvas'); c.width = 96; c.height = 60; const d = c.getContext('2d'); \
         d.imageSmoothingQuality = 'high'; d.drawImage(image, 0, 0, 96, 60); const p = d.getImageData(0, 0, 96, 60).data; const out = []; \
         for (let i = 0; i < p.length; i += 4) out.push(0.3 * p[i] + 0.59 * p[i + 1] + 0.11 * p[i + 2]); return out; }}; \
         const [x, y] = [await grid('{a}'), await grid('{b}')]; \
         return x.reduce((sum, v, i) => sum + Math.abs(v - y[i]), 0) / x.length; }})()"
    ))
    .await
}
