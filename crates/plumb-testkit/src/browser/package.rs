//! Published packages that tests need and that are no part of this repository. A test fetches them with npm, once.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, ensure};
use sha2::{Digest as _, Sha256};

/// The digest of a file, as text.
pub(super) fn digest(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().fold(String::new(), |mut all, byte| {
        let _ = write!(all, "{byte:02x}");
        all
    })
}

/// Fetches a package into a folder.
pub(super) fn pack(folder: &Path, name: &str, version: &str) -> Result<PathBuf> {
    let run = Command::new("npm")
        .args(["pack", "--silent", &format!("{name}@{version}"), "--pack-destination"])
        .arg(folder)
        .current_dir(folder)
        .stdin(Stdio::null())
        .output();
    let run = run.with_context(|| format!("cannot run npm, which fetches {name}"))?;
    ensure!(
        run.status.success(),
        "npm cannot fetch {name} {version}: {}",
        String::from_utf8_lossy(&run.stderr).trim()
    );
    Ok(folder.join(format!("{name}-{version}.tgz")))
}
