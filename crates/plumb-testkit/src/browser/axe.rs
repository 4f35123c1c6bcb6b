//! axe-core, which checks a page for what people with disabilities cannot use. It is not part of this repository: a test
//! fetches the published package with npm, once, and compares it with its digest.

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, ensure};

use super::package::{digest, pack};

const VERSION: &str = "4.14.0";
const DIGEST: &str = "20c09fe157a8a34a30e241aaa1fcdade657734f08ab379ecfbeb7d45cc46e878";

/// The script; `Err` with the reason where it cannot be had. `folder` keeps it.
pub fn axe_core(folder: &Path) -> Result<String> {
    let kept = folder.join(format!("axe-core-{VERSION}.js"));
    if let Ok(script) = std::fs::read_to_string(&kept)
        && digest(script.as_bytes()) == DIGEST
    {
        return Ok(script);
    }
    let package = pack(folder, "axe-core", VERSION)?;
    let script = unpack(&package)?;
    ensure!(digest(script.as_bytes()) == DIGEST, "axe-core {VERSION} is not the file that this test knows");
    std::fs::write(&kept, &script).with_context(|| format!("cannot write {}", kept.display()))?;
    Ok(script)
}

fn unpack(package: &Path) -> Result<String> {
    let run =
        Command::new("tar").arg("-xzOf").arg(package).arg("package/axe.min.js").stdin(Stdio::null()).output();
    let run = run.context("cannot run tar")?;
    ensure!(run.status.success(), "cannot unpack {}", package.display());
    String::from_utf8(run.stdout).context("axe-core is not text")
}
