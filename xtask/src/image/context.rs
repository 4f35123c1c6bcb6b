//! The folder that the Dockerfile is built in.

use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

/// What goes into the image.
#[derive(Clone, Debug)]
pub(super) struct Sources {
    /// The repository.
    pub(super) root: PathBuf,
    pub(super) plumb: PathBuf,
    pub(super) helm: PathBuf,
    pub(super) kustomize: PathBuf,
}

/// Makes the folder, and returns where it is. The files of Debian are kept from an earlier run unless `fresh`.
pub(super) fn prepare(folder: &Path, sources: &Sources, fresh: bool) -> Result<PathBuf> {
    let context = folder.join("context");
    let bin = context.join("bin");
    if bin.exists() {
        fs::remove_dir_all(&bin).with_context(|| format!("cannot remove {}", bin.display()))?;
    }
    fs::create_dir_all(&bin).with_context(|| format!("cannot create {}", bin.display()))?;
    for (name, program) in
        [("plumb", &sources.plumb), ("helm", &sources.helm), ("kustomize", &sources.kustomize)]
    {
        let to = bin.join(name);
        fs::copy(program, &to).with_context(|| format!("cannot copy {}", program.display()))?;
        fs::set_permissions(&to, fs::Permissions::from_mode(0o755))?;
        strip(&to)?;
    }
    std::os::unix::fs::symlink("plumb", bin.join("argocd")).context("cannot link argocd")?;
    debian(&sources.root.join("tools/image/root.sh"), &context.join("root.tar"), fresh)?;
    Ok(context)
}

/// Removes the symbols, where `strip` is installed. A released plumb and the tools have none.
fn strip(program: &Path) -> Result<()> {
    match Command::new("strip").arg(program).stdin(Stdio::null()).status() {
        Ok(status) => {
            ensure!(status.success(), "cannot strip {}", program.display());
            Ok(())
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error).context("cannot run strip"),
    }
}

/// The files of Debian. They are made again if the script changed.
fn debian(script: &Path, tar: &Path, fresh: bool) -> Result<()> {
    let written = fs::read(script).with_context(|| format!("cannot read {}", script.display()))?;
    let made_by = tar.with_extension("made-by");
    if !fresh && tar.exists() && fs::read(&made_by).is_ok_and(|before| before == written) {
        return Ok(());
    }
    let log = tar.with_extension("log");
    let status = Command::new("sh")
        .args([script, tar])
        .stdin(Stdio::null())
        .stdout(File::create(&log)?)
        .stderr(File::options().append(true).open(&log)?)
        .status()
        .context("cannot run sh")?;
    ensure!(
        status.success(),
        "cannot make {}: is mmdebstrap installed (`apt-get install mmdebstrap`)? Its messages: {}",
        tar.display(),
        fs::read_to_string(&log).unwrap_or_default().lines().rev().take(5).collect::<Vec<_>>().join("; ")
    );
    fs::write(made_by, written).context("cannot note what made the files of Debian")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The image that is built with Docker alone is the same image.
    #[test]
    fn both_dockerfiles_have_the_same_packages_user_and_last_lines() {
        let read = |name: &str| fs::read_to_string(crate::repository::root().join(name)).unwrap();
        let (plain, source) = (read("Dockerfile"), read("Dockerfile.source"));
        let end = |text: &str| text[text.find("\nARG VERSION").unwrap()..].to_owned();
        assert_eq!(end(&plain), end(&source));
        let script = read("tools/image/root.sh");
        let listed = script.lines().find_map(|line| line.trim().strip_prefix("--include=")).unwrap();
        let packages = listed.trim_end_matches([' ', '\\']).replace(',', " ");
        assert!(source.contains(&format!("      {packages} \\\n")), "{packages}");
        let user = script.lines().find_map(|line| line.strip_prefix("user=")).unwrap();
        assert!(source.contains(&format!("echo {user} >> /etc/passwd")), "{user}");
        for name in ["helm", "kustomize"] {
            assert!(crate::repository::root().join("tools/cluster/programs").join(name).is_dir(), "{name}");
            assert!(source.contains(&format!("cd /source/{name} ")), "{name}");
        }
    }
}
