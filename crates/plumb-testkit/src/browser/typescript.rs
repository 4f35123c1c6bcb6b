//! The compiler of TypeScript, which checks the types of the page. Building the page does not need it.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, ensure};

use super::package::{digest, pack};

const VERSION: &str = "5.9.3";
const DIGEST: &str = "10e108c9cf7d5f2879053dff18515fb405abf2ccef63eaaf017d9c571687a1d3";

/// The script of the compiler, for Node; `Err` with the reason where it cannot be had. `folder` keeps it.
pub fn typescript(folder: &Path) -> Result<PathBuf> {
    let runs = Command::new("node").arg("--version").stdin(Stdio::null()).output();
    ensure!(runs.is_ok_and(|run| run.status.success()), "Node is not installed");
    let kept = folder.join(format!("typescript-{VERSION}"));
    let script = kept.join("package/lib/tsc.js");
    if script.is_file() {
        return Ok(script);
    }
    let package = pack(folder, "typescript", VERSION)?;
    let bytes = std::fs::read(&package).with_context(|| format!("cannot read {}", package.display()))?;
    ensure!(digest(&bytes) == DIGEST, "typescript {VERSION} is not the package that this test knows");
    // Another test run must not find half of it.
    let unpacked = tempfile::tempdir_in(folder)?;
    let run = Command::new("tar").arg("-xzf").arg(&package).arg("-C").arg(unpacked.path()).output();
    ensure!(run.context("cannot run tar")?.status.success(), "cannot unpack {}", package.display());
    let moved = std::fs::rename(unpacked.keep(), &kept);
    ensure!(moved.is_ok() || script.is_file(), "cannot keep {}", kept.display());
    Ok(script)
}
