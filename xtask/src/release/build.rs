//! The program for each architecture.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

use crate::plumb::build_by;
use crate::say::say;

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
pub(super) fn all(root: &Path) -> Result<Vec<Build>> {
    let is_auditable = runs("cargo-auditable", &["auditable", "--version"]);
    if !is_auditable {
        say("skipped: the list of crates inside the programs: `cargo install cargo-auditable`");
    }
    let cargo = || {
        let mut cargo = Command::new(env!("CARGO"));
        cargo.args(if is_auditable { &["auditable", "build"][..] } else { &["build"][..] });
        cargo
    };
    let here = Arch::here();
    let program = build_by(&mut cargo(), root, &["--package", "plumb"], "plumb")?;
    let mut builds = vec![Build { arch: here, program }];
    if here == Arch::X86_64 {
        match missing_for_cross_build()? {
            Some(missing) => say(&format!("skipped: aarch64: {missing}")),
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
fn missing_for_cross_build() -> Result<Option<String>> {
    let output = Command::new("rustc").args(["--print", "sysroot"]).output().context("cannot run rustc")?;
    let sysroot = PathBuf::from(String::from_utf8_lossy(&output.stdout).trim());
    if !sysroot.join("lib/rustlib/aarch64-unknown-linux-gnu/lib").is_dir() {
        return Ok(Some("`rustup target add aarch64-unknown-linux-gnu`".to_owned()));
    }
    let is_there = runs(CROSS_LINKER, &["--version"]);
    Ok((!is_there).then(|| "`apt-get install gcc-aarch64-linux-gnu libc6-dev-arm64-cross`".to_owned()))
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
