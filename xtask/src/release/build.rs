//! The program for each architecture.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

use super::lacks::Lacks;
use crate::plumb::build_by;

/// The compiler that links for the other architecture.
const CROSS_LINKER: &str = "aarch64-linux-gnu-gcc";

/// An architecture that is released.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Arch {
    X86_64,
    Aarch64,
}

impl Arch {
    /// That of this machine.
    pub(super) fn here() -> Self {
        if std::env::consts::ARCH == "aarch64" { Self::Aarch64 } else { Self::X86_64 }
    }

    /// Its name in targets and archives.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::X86_64 => "x86_64",
            Self::Aarch64 => "aarch64",
        }
    }

    /// Its name for Debian, Go and Kubernetes.
    pub(super) fn short_name(self) -> &'static str {
        match self {
            Self::X86_64 => "amd64",
            Self::Aarch64 => "arm64",
        }
    }

    /// Its name for Homebrew.
    pub(super) fn homebrew(self) -> &'static str {
        match self {
            Self::X86_64 => "on_intel",
            Self::Aarch64 => "on_arm",
        }
    }

    /// `e_machine` in the header of a program.
    fn machine(self) -> u16 {
        match self {
            Self::X86_64 => 62,
            Self::Aarch64 => 183,
        }
    }
}

/// A plumb program.
#[derive(Clone, Debug)]
pub(super) struct Build {
    pub(super) arch: Arch,
    pub(super) program: PathBuf,
}

/// Builds plumb for this machine, and for the other architecture where that is possible.
pub(super) fn all(root: &Path, lacks: Lacks) -> Result<Vec<Build>> {
    let is_auditable = runs("cargo-auditable", &["auditable", "--version"]);
    if !is_auditable {
        lacks.say("the list of crates inside the programs: `cargo install cargo-auditable`")?;
    }
    let cargo = || {
        let mut cargo = Command::new(env!("CARGO"));
        cargo.args(if is_auditable { &["auditable", "build"][..] } else { &["build"][..] });
        // Without Go there would be a warning, and a release without its page.
        cargo.env("PLUMB_PAGE", "require");
        cargo
    };
    let here = Arch::here();
    let program = build_by(&mut cargo(), root, &["--package", "plumb"], "plumb")?;
    let mut builds = vec![Build { arch: here, program }];
    if here == Arch::X86_64 {
        match missing_for_cross_build(root)? {
            Some(missing) => lacks.say(&format!("aarch64: {missing}"))?,
            None => builds.push(Build { arch: Arch::Aarch64, program: cross_build(&mut cargo(), root)? }),
        }
    }
    for build in &builds {
        ensure!(
            !is_auditable || lists_crates(&build.program)?,
            "{} lists no crates",
            build.program.display()
        );
    }
    Ok(builds)
}

/// What has to be installed to build for aarch64.
fn missing_for_cross_build(root: &Path) -> Result<Option<String>> {
    let output = Command::new("rustc").args(["--print", "sysroot"]).output().context("cannot run rustc")?;
    let sysroot = PathBuf::from(String::from_utf8_lossy(&output.stdout).trim());
    if !sysroot.join("lib/rustlib/aarch64-unknown-linux-gnu/lib").is_dir() {
        return Ok(Some("`rustup target add aarch64-unknown-linux-gnu`".to_owned()));
    }
    let folder = root.join("target");
    fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
    let makes_programs = makes_programs(CROSS_LINKER, &folder.join("cross-probe"));
    Ok((!makes_programs).then(|| "`apt-get install gcc-aarch64-linux-gnu libc6-dev-arm64-cross`".to_owned()))
}

/// True if the compiler makes a program: it may be installed without the headers and libraries of its architecture.
fn makes_programs(compiler: &str, probe: &Path) -> bool {
    let compile = || -> std::io::Result<bool> {
        let mut child = Command::new(compiler)
            .args(["-x", "c", "-", "-o"])
            .arg(probe)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        if let Some(mut input) = child.stdin.take() {
            input.write_all(b"#include <stdlib.h>\nint main(void) { return EXIT_SUCCESS; }\n")?;
        }
        Ok(child.wait()?.success() && probe.exists())
    };
    let is_made = compile().unwrap_or(false);
    let _ = fs::remove_file(probe);
    is_made
}

fn cross_build(cargo: &mut Command, root: &Path) -> Result<PathBuf> {
    cargo
        .env("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER", CROSS_LINKER)
        .env("CC_aarch64_unknown_linux_gnu", CROSS_LINKER)
        .env("AR_aarch64_unknown_linux_gnu", "aarch64-linux-gnu-ar");
    build_by(cargo, root, &["--package", "plumb", "--target", "aarch64-unknown-linux-gnu"], "plumb")
}

fn runs(program: &str, words: &[&str]) -> bool {
    let mut command = Command::new(program);
    command.args(words).stdin(Stdio::null()).output().is_ok_and(|output| output.status.success())
}

/// True if the program has the section that scanners read (`cargo auditable`).
fn lists_crates(program: &Path) -> Result<bool> {
    let bytes = fs::read(program).with_context(|| format!("cannot read {}", program.display()))?;
    Ok(bytes.windows(7).any(|window| window == b".dep-v0"))
}

/// Fails if the program is not for this architecture.
pub(super) fn ensure_is_for(program: &Path, arch: Arch) -> Result<()> {
    let bytes = fs::read(program).with_context(|| format!("cannot read {}", program.display()))?;
    let machine = bytes.get(18..20).map(|pair| u16::from_le_bytes([pair[0], pair[1]]));
    ensure!(
        bytes.starts_with(b"\x7fELF") && machine == Some(arch.machine()),
        "{} is no program for {}",
        program.display(),
        arch.name()
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn a_compiler_without_headers_or_libraries_makes_no_program() {
        let folder = std::env::temp_dir().join(format!("plumb-cross-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let (broken, probe) = (folder.join("broken-gcc"), folder.join("probe"));
        // It says its version, and fails at the first header.
        fs::write(&broken, "#!/bin/sh\n[ \"$1\" = --version ] && exit 0\ncat >/dev/null\nexit 1\n").unwrap();
        fs::set_permissions(&broken, fs::Permissions::from_mode(0o755)).unwrap();
        assert!(runs(&broken.display().to_string(), &["--version"]));
        assert!(!makes_programs(&broken.display().to_string(), &probe));
        assert!(!makes_programs("/nonexistent/gcc", &probe));
        assert!(makes_programs("cc", &probe) && !probe.exists());
        fs::remove_dir_all(&folder).unwrap();
    }
}
