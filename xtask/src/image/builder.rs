//! Calls buildah. Its storage is below `target`: nothing of the user's own images changes.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

use super::sbom;

/// The version of this repository.
pub(super) const VERSION: &str = env!("CARGO_PKG_VERSION");

/// An image that was built.
#[derive(Clone, Debug)]
pub(crate) struct Image {
    /// Digest of its manifest.
    pub(crate) digest: String,
    /// An OCI archive: `docker load`, `podman load`, `skopeo copy oci-archive:…`.
    pub(crate) archive: PathBuf,
    /// Size of the archive.
    pub(super) n_bytes: u64,
    /// Its components, in `CycloneDX` format.
    pub(crate) components: PathBuf,
    /// The storage that has it.
    pub(super) storage: Storage,
}

/// What has to be installed to build the image and to run it; none if everything is there.
pub(crate) fn missing_tools() -> Option<String> {
    if !rustix::process::geteuid().is_root() {
        return Some("run as root".to_owned());
    }
    let is_missing = |name: &&str| Command::new(name).arg("--version").output().is_err();
    let missing: Vec<_> = ["buildah", "mmdebstrap", "runc"].into_iter().filter(is_missing).collect();
    (!missing.is_empty()).then(|| format!("install {}", missing.join(", ")))
}

/// Builds the image from the folder, with the same digest for the same files.
pub(super) fn build(root: &Path, folder: &Path, context: &Path) -> Result<Image> {
    let storage = Storage { folder: folder.join("storage"), name: format!("localhost/plumb:{VERSION}") };
    let revision = crate::repository::commit().unwrap_or_else(|| "unknown".to_owned());
    storage
        .buildah()
        .args([
            "build",
            "--isolation",
            "chroot",
            "--format",
            "oci",
            "--timestamp",
            "0",
            "--no-cache",
            "--quiet",
        ])
        .args(["--build-arg", &format!("VERSION={VERSION}"), "--build-arg", &format!("REVISION={revision}")])
        .args(["--tag", &storage.name, "--file"])
        .args([&root.join("Dockerfile"), context])
        .checked()?;
    let archive = folder.join("plumb.oci.tar");
    if archive.exists() {
        fs::remove_file(&archive).with_context(|| format!("cannot remove {}", archive.display()))?;
    }
    let digest_file = folder.join("digest");
    storage
        .buildah()
        .args(["push", "--quiet", "--digestfile"])
        .arg(&digest_file)
        .args([&storage.name, &format!("oci-archive:{}:plumb:{VERSION}", archive.display())])
        .checked()?;
    let digest = fs::read_to_string(&digest_file).context("cannot read the digest")?.trim().to_owned();
    let n_bytes = fs::metadata(&archive).context("cannot read the archive")?.len();
    let components = folder.join("plumb.cdx.json");
    fs::write(&components, sbom::of_image(root, context)?).context("cannot write the list of components")?;
    Ok(Image { digest, archive, n_bytes, components, storage })
}

impl Image {
    /// Pushes it to a registry, under this name. The registry must get the image that was checked.
    pub(crate) fn push(&self, name: &str) -> Result<()> {
        let digest_file = self.archive.with_extension("pushed");
        self.storage
            .buildah()
            .args(["push", "--quiet", "--digestfile"])
            .arg(&digest_file)
            .args([&self.storage.name, &format!("docker://{name}")])
            .checked()?;
        let pushed = fs::read_to_string(&digest_file).context("cannot read the digest of the push")?;
        ensure!(pushed.trim() == self.digest, "{name} has the digest {}, not {}", pushed.trim(), self.digest);
        Ok(())
    }
}

/// Pulls the smallest of the images that `Dockerfile.source` is based on.
pub(super) fn pull_base(folder: &Path) -> Result<()> {
    let storage = of_source(folder);
    storage.buildah().args(["pull", "--quiet", "docker.io/library/debian:bookworm"]).checked().map(drop)
}

/// Builds `Dockerfile.source` as `docker build` does, and returns the version that its plumb prints.
pub(super) fn build_source(root: &Path, folder: &Path) -> Result<String> {
    let storage = of_source(folder);
    let file = root.join("Dockerfile.source");
    storage
        .buildah()
        .args(["build", "--isolation", "chroot", "--quiet", "--tag", &storage.name, "--file"])
        .args([file.as_path(), root])
        .checked()?;
    let mounted = storage.mount()?;
    Command::new("chroot")
        .arg(&mounted.files)
        .args(["/usr/local/bin/plumb", "version", "--client"])
        .stdin(Stdio::null())
        .checked()
}

/// The storage of `Dockerfile.source`: base images are kept for the next build.
fn of_source(folder: &Path) -> Storage {
    Storage { folder: folder.join("source-storage"), name: "localhost/plumb-source".to_owned() }
}

/// Where buildah keeps images, and the name of ours.
#[derive(Clone, Debug)]
pub(super) struct Storage {
    folder: PathBuf,
    name: String,
}

impl Storage {
    /// The plainest storage driver: it needs no support by the kernel.
    fn buildah(&self) -> Command {
        let mut command = Command::new("buildah");
        command.arg("--root").arg(&self.folder).arg("--runroot").arg(self.folder.join("run"));
        command.args(["--storage-driver", "vfs"]).stdin(Stdio::null());
        command
    }

    /// The image's configuration: user, environment, entry point.
    pub(super) fn config(&self) -> Result<serde_json::Value> {
        let text = self.buildah().args(["inspect", "--type", "image", &self.name]).checked()?;
        let mut all: serde_json::Value =
            serde_json::from_str(&text).context("cannot read buildah's answer")?;
        Ok(all["OCIv1"]["config"].take())
    }

    /// The files of the image, until the value is dropped.
    pub(super) fn mount(&self) -> Result<Mounted> {
        let container =
            self.buildah().args(["from", "--pull-never", &self.name]).checked()?.trim().to_owned();
        let mut mounted = Mounted { storage: self.clone(), container, files: PathBuf::new() };
        let files = self.buildah().args(["mount", &mounted.container]).checked()?;
        mounted.files = PathBuf::from(files.trim());
        Ok(mounted)
    }
}

/// A container of buildah whose files can be read.
#[derive(Debug)]
pub(super) struct Mounted {
    storage: Storage,
    container: String,
    pub(super) files: PathBuf,
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = self.storage.buildah().args(["rm", &self.container]).output();
    }
}

/// Runs a program to its end and returns what it printed.
pub(super) trait Checked {
    fn checked(&mut self) -> Result<String>;
}

impl Checked for Command {
    fn checked(&mut self) -> Result<String> {
        let name = self.get_program().to_string_lossy().into_owned();
        let output = self.output().with_context(|| format!("cannot run {name}"))?;
        let said = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "{name} ended with {}: {}", output.status, said.trim());
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }
}
