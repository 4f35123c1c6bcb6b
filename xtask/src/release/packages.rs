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
    let homepage = homepage(address);
    format!(
        "apiVersion: krew.googlecontainertools.github.com/v1alpha2\n\
         kind: Plugin\n\
         metadata:\n  name: plumb\n\
         spec:\n  version: v{version}\n  homepage: {homepage}\n  shortDescription: {DESCRIPTION}\n  \
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
    let homepage = homepage(address);
    format!(
        "class Plumb < Formula\n  desc \"{DESCRIPTION}\"\n  homepage \"{homepage}\"\n  version \"{version}\"\n  \
         license \"Apache-2.0\"\n\n{platforms}  depends_on :linux\n  \
         depends_on \"git\"\n\n  def install\n    bin.install \"plumb\"\n    man1.install \"man/plumb.1\"\n    \
         bash_completion.install \"completions/plumb.bash\" => \"plumb\"\n    \
         zsh_completion.install \"completions/plumb.zsh\" => \"_plumb\"\n    \
         fish_completion.install \"completions/plumb.fish\"\n  end\n\n  test do\n    \
         assert_match version.to_s, shell_output(\"#{{bin}}/plumb version --client\")\n  end\nend\n"
    )
}

/// The page of the project, from the address of its downloads.
fn homepage(address: &str) -> &str {
    address.split("/releases/").next().unwrap_or(address)
}

/// The newest version of the C library that a program asks for, as a relation of Debian; nothing if it asks for none.
fn glibc_of(program: &Path) -> Result<String> {
    let bytes = fs::read(program).with_context(|| format!("cannot read {}", program.display()))?;
    let newest = newest_glibc(&bytes);
    Ok(newest.map(|(major, minor)| format!(" (>= {major}.{minor})")).unwrap_or_default())
}

/// The newest of the symbol versions `GLIBC_MAJOR.MINOR`.
fn newest_glibc(bytes: &[u8]) -> Option<(u32, u32)> {
    const MARK: &[u8] = b"GLIBC_";
    let number = |bytes: &[u8]| {
        let digits: Vec<u8> = bytes.iter().copied().take_while(u8::is_ascii_digit).collect();
        let number = std::str::from_utf8(&digits).ok()?.parse::<u32>().ok()?;
        Some((number, digits.len()))
    };
    let version = |(place, _): (usize, &[u8])| {
        let rest = bytes.get(place + MARK.len()..)?;
        let (major, n_digits) = number(rest)?;
        let (minor, _) = number(rest.get(n_digits..)?.strip_prefix(b".")?)?;
        Some((major, minor))
    };
    bytes.windows(MARK.len()).enumerate().filter(|(_, window)| *window == MARK).filter_map(version).max()
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
    let glibc = glibc_of(&folder.join("plumb"))?;
    let control = format!(
        "Package: plumb\nVersion: {version}\nArchitecture: {arch}\nMaintainer: plumb <plumb@example.invalid>\n\
         Section: admin\nPriority: optional\nDepends: git (>= 1:2.30), libc6{glibc}, ca-certificates\n\
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
    fn the_package_asks_for_the_newest_glibc_that_the_program_names() {
        let program = b"x\0GLIBC_2.9\0GLIBC_2.34\0GLIBC_2.2.5\0GLIBC_PRIVATE\0GLIBC_";
        assert_eq!(newest_glibc(program), Some((2, 34)));
        assert_eq!(newest_glibc(b"static"), None);
    }

    #[test]
    fn the_manifests_name_the_archive_and_its_checksum() {
        let archive = |arch: Arch, sum: &str| Archive {
            arch,
            name: format!("plumb-1.2.3-{}-linux.tar.gz", arch.name()),
            sha256: sum.to_owned(),
        };
        let archives = [archive(Arch::X86_64, "abc"), archive(Arch::Aarch64, "def")];
        let (version, address) = ("1.2.3", "https://x.example/plumb/releases/download/v1.2.3");
        let krew = krew(version, address, &archives);
        assert!(krew.contains("\nspec:\n  version: v1.2.3\n"), "{krew}");
        for text in [krew, homebrew(version, address, &archives)] {
            for part in ["plumb-1.2.3-x86_64-linux.tar.gz", "plumb-1.2.3-aarch64-linux.tar.gz", "abc", "def"]
            {
                assert!(text.contains(part), "{part}: {text}");
            }
            assert!(text.contains(&format!("{address}/plumb-1.2.3-x86_64")), "{text}");
            let is_homepage = |line: &str| {
                line.trim().starts_with("homepage")
                    && line.trim_end_matches('"').ends_with("https://x.example/plumb")
            };
            assert!(text.lines().any(is_homepage), "{text}");
        }
    }
}
