//! What package managers read: Debian, krew, Homebrew.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::archive::{install, said};
use super::build::Arch;

const DESCRIPTION: &str = "A GitOps engine in which OutOfSync means that something is wrong";

/// A file that was made, with its checksum.
#[derive(Clone, Debug)]
pub(super) struct Archive {
    pub(super) arch: Arch,
    pub(super) name: String,
    pub(super) sha256: String,
}

/// The manifest of krew, the plugin manager of kubectl. The archives are downloaded from below `address`.
pub(super) fn krew(version: &str, address: &str, archives: &[Archive]) -> String {
    let platform = |Archive { arch, name, sha256 }: &Archive| {
        let (folder, arch) = (name.trim_end_matches(".tar.gz"), arch.short_name());
        format!(
            "  - selector:\n      matchLabels: {{os: linux, arch: {arch}}}\n    uri: {address}/{name}\n    \
             sha256: {sha256}\n    bin: plumb\n    \
             files:\n    - {{from: {folder}/plumb, to: .}}\n    - {{from: {folder}/LICENSE, to: .}}\n"
        )
    };
    let platforms: String = archives.iter().map(platform).collect();
    format!(
        "apiVersion: krew.googlecontainertools.github.com/v1alpha2\n\
         kind: Plugin\n\
         metadata:\n  name: plumb\n\
         spec:\n  version: v{version}\n  homepage: {address}\n  shortDescription: {DESCRIPTION}\n  \
         description: |\n    Shows why an app of Argo CD or plumb differs from Git, and how to end it.\n  \
         platforms:\n{platforms}"
    )
}

/// The formula of Homebrew.
pub(super) fn homebrew(version: &str, address: &str, archives: &[Archive]) -> String {
    let platform = |Archive { arch, name, sha256 }: &Archive| {
        let block = arch.homebrew();
        format!("  {block} do\n    url \"{address}/{name}\"\n    sha256 \"{sha256}\"\n  end\n\n")
    };
    let platforms: String = archives.iter().map(platform).collect();
    format!(
        "class Plumb < Formula\n  desc \"{DESCRIPTION}\"\n  homepage \"{address}\"\n  version \"{version}\"\n  \
         license \"Apache-2.0\"\n\n{platforms}  depends_on :linux\n  \
         depends_on \"git\"\n\n  def install\n    bin.install \"plumb\"\n    man1.install \"man/plumb.1\"\n    \
         bash_completion.install \"completions/plumb.bash\" => \"plumb\"\n    \
         zsh_completion.install \"completions/plumb.zsh\" => \"_plumb\"\n    \
         fish_completion.install \"completions/plumb.fish\"\n  end\n\n  test do\n    \
         assert_match version.to_s, shell_output(\"#{{bin}}/plumb version --client\")\n  end\nend\n"
    )
}

/// A package of Debian, from the folder of the archive. `None` where dpkg-deb is not installed.
pub(super) fn debian(
    folder: &Path,
    work: &Path,
    out: &Path,
    version: &str,
    arch: Arch,
) -> Result<Option<PathBuf>> {
    if said(Path::new("dpkg-deb"), &["--version"]).is_err() {
        return Ok(None);
    }
    let arch = arch.short_name();
    let tree = work.join(format!("deb-{arch}"));
    for part in [
        "DEBIAN",
        "usr/bin",
        "usr/share/man/man1",
        "usr/share/bash-completion/completions",
        "usr/share/doc/plumb",
    ] {
        fs::create_dir_all(tree.join(part))?;
    }
    install(&folder.join("plumb"), &tree.join("usr/bin/plumb"))?;
    for (from, to) in [
        ("man/plumb.1", "usr/share/man/man1/plumb.1"),
        ("completions/plumb.bash", "usr/share/bash-completion/completions/plumb"),
        ("LICENSE", "usr/share/doc/plumb/copyright"),
    ] {
        fs::copy(folder.join(from), tree.join(to)).with_context(|| format!("cannot copy {from}"))?;
    }
    let control = format!(
        "Package: plumb\nVersion: {version}\nArchitecture: {arch}\nMaintainer: plumb <plumb@example.invalid>\n\
         Section: admin\nPriority: optional\nDepends: git (>= 1:2.30), libc6, ca-certificates\n\
         Suggests: openssh-client, gpg\nDescription: {DESCRIPTION}\n plumb does the work of Argo CD's application controller with Argo CD's own objects.\n"
    );
    fs::write(tree.join("DEBIAN/control"), control)?;
    let package = out.join(format!("plumb_{version}_{arch}.deb"));
    let (from, to) = (tree.display().to_string(), package.display().to_string());
    said(
        Path::new("env"),
        &["SOURCE_DATE_EPOCH=0", "dpkg-deb", "-Zgzip", "--root-owner-group", "--build", &from, &to],
    )?;
    Ok(Some(package))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_manifests_name_the_archive_and_its_checksum() {
        let archive = |arch: Arch, sum: &str| Archive {
            arch,
            name: format!("plumb-1.2.3-{}-linux.tar.gz", arch.name()),
            sha256: sum.to_owned(),
        };
        let archives = [archive(Arch::X86_64, "abc"), archive(Arch::Aarch64, "def")];
        let (version, address) = ("1.2.3", "https://x.example/v1.2.3");
        let krew = krew(version, address, &archives);
        assert!(krew.contains("\nspec:\n  version: v1.2.3\n"), "{krew}");
        for text in [krew, homebrew(version, address, &archives)] {
            for part in ["plumb-1.2.3-x86_64-linux.tar.gz", "plumb-1.2.3-aarch64-linux.tar.gz", "abc", "def"]
            {
                assert!(text.contains(part), "{part}: {text}");
            }
            assert!(text.contains("https://x.example/v1.2.3/plumb-1.2.3-x86_64"), "{text}");
        }
    }
}
