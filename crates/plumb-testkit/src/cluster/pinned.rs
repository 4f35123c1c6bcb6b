//! Versions are pinned in the go.mod files and nowhere else.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::{Context, Result};

/// The version that a directory's go.mod pins for a module.
pub(super) fn version(directory: &Path, module: &str) -> Result<String> {
    let path = directory.join("go.mod");
    let content = fs::read_to_string(&path).with_context(|| format!("read {}", path.display()))?;
    in_go_mod(&content, module).with_context(|| format!("{} does not pin {module}", path.display()))
}

/// Where Go keeps the sources of a module that a directory's go.mod pins. Fetches them if they are not there.
pub(super) fn folder(directory: &Path, module: &str) -> Result<PathBuf> {
    let pinned = format!("{module}@{}", version(directory, module)?);
    let output = Command::new("go")
        .args(["mod", "download", "-json", &pinned])
        .current_dir(directory)
        .env("GOWORK", "off")
        .stdin(Stdio::null())
        .output()
        .context("start `go mod download`")?;
    let said: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
    let folder = said.get("Dir").and_then(serde_json::Value::as_str).map(PathBuf::from);
    folder
        .with_context(|| format!("cannot fetch {module}: {}", String::from_utf8_lossy(&output.stderr).trim()))
}

fn in_go_mod(content: &str, module: &str) -> Option<String> {
    content.lines().find_map(|line| {
        let mut words = line.trim_start().trim_start_matches("require ").split_whitespace();
        (words.next()? == module).then(|| words.next().map(str::to_owned))?
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_of_require_are_read() {
        let content = "module x\n\nrequire a.io/b v1.2.3\n\nrequire (\n\tc.io/d v0.1.0 // indirect\n\tc.io/d/v2 v2.0.0\n)\n";
        assert_eq!(in_go_mod(content, "a.io/b").as_deref(), Some("v1.2.3"));
        assert_eq!(in_go_mod(content, "c.io/d").as_deref(), Some("v0.1.0"));
        assert_eq!(in_go_mod(content, "c.io/d/v2").as_deref(), Some("v2.0.0"));
        assert_eq!(in_go_mod(content, "c.io"), None);
    }
}
