//! Signatures: plumb has no key of its own. Whoever releases gives a program that signs a file.

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

/// Calls the program with the file as its only argument. It writes the signature beside it.
pub(crate) fn sign(program: &Path, file: &Path) -> Result<()> {
    let status = Command::new(program)
        .arg(file)
        .stdin(Stdio::null())
        .status()
        .with_context(|| format!("cannot run {}", program.display()))?;
    ensure!(status.success(), "cannot sign {}: {} ended with {status}", file.display(), program.display());
    Ok(())
}
