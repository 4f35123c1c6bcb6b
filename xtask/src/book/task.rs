//! Makes the sources of the site, and the site where mdBook is installed.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use anyhow::{Context, Result, ensure};

use super::{html, pages};
use crate::plumb::given_or_built;
use crate::say::say;

/// What the site is made from.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The plumb program whose help becomes pages [default: built].
    #[arg(long, value_name = "FILE")]
    plumb: Option<PathBuf>,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let is_built = check(crate::repository::root(), args.plumb.as_deref())?;
    Ok(if is_built { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Makes the site and checks its links: `cargo xtask test`. False if mdBook is not installed.
pub(crate) fn check(root: &Path, plumb: Option<&Path>) -> Result<bool> {
    let root = root.canonicalize().context("cannot find the repository")?;
    let folder = root.join("target/book");
    if folder.exists() {
        fs::remove_dir_all(&folder).with_context(|| format!("cannot remove {}", folder.display()))?;
    }
    let n_pages = sources(&root, &given_or_built(plumb, &root)?, &folder.join("src"))?;
    let mdbook = || {
        let mut mdbook = Command::new("mdbook");
        mdbook.current_dir(&root).stdin(Stdio::null());
        mdbook
    };
    if mdbook().arg("--version").output().is_err() {
        say("skipped: the site: install mdbook (`cargo install mdbook`)");
        return Ok(false);
    }
    let built = mdbook().arg("build").output().context("cannot run mdbook")?;
    let said = String::from_utf8_lossy(&built.stderr);
    ensure!(built.status.success() && !said.contains("ERROR") && !said.contains("WARN"), "mdbook: {said}");
    let broken = html::broken(&folder.join("html"))?;
    ensure!(broken.is_empty(), "links to files that the site does not have:\n{}", broken.join("\n"));
    say(&format!("{} has {n_pages} pages of commands, and no broken link", folder.join("html").display()));
    Ok(true)
}

/// The documents at their places, so that their links hold, and the pages of the commands.
fn sources(root: &Path, plumb: &Path, to: &Path) -> Result<usize> {
    fs::create_dir_all(to).with_context(|| format!("cannot create {}", to.display()))?;
    let listed = Command::new("git")
        .args(["ls-files", "--cached", "--others", "--exclude-standard", "--", "*.md", "docs", "examples"])
        .args(["LICENSE", "charts/plumb/values.yaml"])
        .current_dir(root)
        .output()
        .context("cannot run git")?;
    for name in String::from_utf8_lossy(&listed.stdout).lines().filter(|name| root.join(name).is_file()) {
        let target = to.join(name);
        fs::create_dir_all(target.parent().context("a folder")?)?;
        fs::copy(root.join(name), &target).with_context(|| format!("cannot copy {name}"))?;
    }
    let commands = pages::commands(plumb)?;
    let more = pages::write(&commands, &to.join("docs/commands"))?;
    let contents = fs::read_to_string(root.join("docs/SUMMARY.md")).context("cannot read docs/SUMMARY.md")?;
    // The first page is also the site's index, so it is one whose links hold at the root.
    let contents = contents.replace("](", "](docs/").replacen("\n\n", "\n\n[README](README.md)\n\n", 1);
    fs::write(to.join("SUMMARY.md"), contents + &more + &others())?;
    Ok(commands.len())
}

/// The documents beside `docs`.
fn others() -> String {
    let mut lines = "\n# The repository\n\n".to_owned();
    for (title, file) in [
        ("Changes", "CHANGELOG.md"),
        ("Examples", "examples/README.md"),
        ("The chart", "charts/plumb/README.md"),
        ("Reporting a vulnerability", "SECURITY.md"),
        ("Architecture", "ARCHITECTURE.md"),
        ("Contributing", "CONTRIBUTING.md"),
    ] {
        let _ = writeln!(lines, "- [{title}]({file})");
    }
    lines
}
