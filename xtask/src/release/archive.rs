//! Archives whose bytes depend on nothing but their files.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

/// Packs a folder with its name.
pub(super) fn tar_gz(folder: &Path, archive: &Path) -> Result<()> {
    let (parent, name) = (folder.parent().context("a parent")?, folder.file_name().context("a name")?);
    let file = fs::File::create(archive).with_context(|| format!("cannot create {}", archive.display()))?;
    let mut tar = Command::new("tar")
        .args(["--sort=name", "--mtime=@0", "--owner=0", "--group=0", "--numeric-owner", "--format=ustar"])
        .args(["--create", "--directory"])
        .arg(parent)
        .arg(name)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .context("cannot run tar")?;
    let input = tar.stdout.take().context("tar has no output")?;
    let gzip = Command::new("gzip")
        .args(["-n", "-9"])
        .stdin(input)
        .stdout(file)
        .status()
        .context("cannot run gzip")?;
    ensure!(tar.wait()?.success() && gzip.success(), "cannot write {}", archive.display());
    Ok(())
}

/// Puts what users of the program need into a folder: the program, its manual, completions, the licence. `speaker` is a
/// plumb of the same version that this machine can run.
pub(super) fn program_folder(root: &Path, plumb: &Path, speaker: &Path, folder: &Path) -> Result<()> {
    fs::create_dir_all(folder.join("completions"))?;
    fs::create_dir_all(folder.join("man"))?;
    install(plumb, &folder.join("plumb"))?;
    for name in ["LICENSE", "README.md", "CHANGELOG.md"] {
        fs::copy(root.join(name), folder.join(name)).with_context(|| format!("cannot copy {name}"))?;
    }
    for shell in ["bash", "zsh", "fish"] {
        fs::write(
            folder.join("completions").join(format!("plumb.{shell}")),
            said(speaker, &["completion", shell])?,
        )?;
    }
    fs::write(folder.join("man/plumb.1"), said(speaker, &["man"])?).context("cannot write the manual")
}

/// Copies a program.
pub(super) fn install(from: &Path, to: &Path) -> Result<()> {
    fs::copy(from, to).with_context(|| format!("cannot copy {}", from.display()))?;
    fs::set_permissions(to, fs::Permissions::from_mode(0o755))?;
    Ok(())
}

/// What a program prints.
pub(super) fn said(program: &Path, words: &[&str]) -> Result<Vec<u8>> {
    let output = Command::new(program)
        .args(words)
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("cannot run {}", program.display()))?;
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{} {}: {errors}", program.display(), words.join(" "));
    Ok(output.stdout)
}
