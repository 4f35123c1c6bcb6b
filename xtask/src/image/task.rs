//! Makes the image, and checks what it promises.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, ensure};
use plumb_testkit::cluster::Layout;

use super::builder::{self, Image};
use super::context::{self, Sources};
use super::story;
use crate::cluster::ensure_programs;
use crate::plumb::given_or_built;
use crate::say::say;

/// What the compressed image may weigh.
const MOST_BYTES: u64 = 120 * 1000 * 1000;

/// How to make the image.
#[derive(Debug, clap::Args)]
#[expect(clippy::struct_excessive_bools, reason = "flags of a command line")]
pub(crate) struct Args {
    /// Make the folder that the Dockerfile is built in, and no image.
    #[arg(long)]
    context_only: bool,
    /// Do not use the Debian packages of an earlier run.
    #[arg(long)]
    fresh: bool,
    /// Then run the image under runc against a cluster: syncs, a restart, a second build. With --fresh also make the
    /// Debian packages a second time, and compare.
    #[arg(long, conflicts_with = "context_only")]
    check: bool,
    /// Build `Dockerfile.source` instead, as a user with Docker alone does. It pulls base images, and takes as long as a
    /// release build.
    #[arg(long, conflicts_with_all = ["context_only", "fresh", "check", "plumb", "sign_with"])]
    source: bool,
    /// The plumb program to put into the image [default: built].
    #[arg(long, value_name = "FILE")]
    plumb: Option<PathBuf>,
    /// A program that signs a file: called with the image's archive, then with its list of components.
    #[arg(long, value_name = "PROGRAM")]
    sign_with: Option<PathBuf>,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let root = crate::repository::root().canonicalize().context("cannot find the repository")?;
    let folder = root.join("target/image");
    if args.source {
        return from_source(&root, &folder);
    }
    let sources = sources(&root, args.plumb.as_deref())?;
    if args.context_only {
        let context = context::prepare(&folder, &sources, args.fresh)?;
        say(&format!("docker build -f Dockerfile {}", context.display()));
        return Ok(ExitCode::SUCCESS);
    }
    let image = make(&root, &folder, &sources, args.fresh)?;
    if let Some(program) = &args.sign_with {
        for file in [&image.archive, &image.components] {
            crate::sign::sign(program, file)?;
        }
    }
    say(&format!("{}  {} MB compressed", image.digest, image.n_bytes / 1_000_000));
    say(&format!("{}", image.archive.display()));
    if args.check {
        check_image(&root, &image)?;
        if args.fresh {
            check_packages(&folder, &sources)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Builds the image from the sources alone; skipped where its base images cannot be pulled.
fn from_source(root: &Path, folder: &Path) -> Result<ExitCode> {
    if let Some(missing) = builder::missing_tools() {
        say(&format!("skipped: {missing}"));
        return Ok(ExitCode::SUCCESS);
    }
    if let Err(error) = builder::pull_base(folder) {
        say(&format!("skipped: base images cannot be pulled: {error:#}"));
        return Ok(ExitCode::SUCCESS);
    }
    let version = builder::build_source(root, folder)?;
    say(&format!("Dockerfile.source makes an image whose plumb says: {}", version.trim()));
    Ok(ExitCode::SUCCESS)
}

/// What goes into the image.
fn sources(root: &Path, plumb: Option<&Path>) -> Result<Sources> {
    let programs = ensure_programs(&Layout::from_environment()?)?;
    let plumb = given_or_built(plumb, root)?;
    Ok(Sources { root: root.to_owned(), plumb, helm: programs.helm, kustomize: programs.kustomize })
}

/// The image of a release, with this plumb and fresh packages.
pub(crate) fn release(root: &Path, plumb: &Path, checked: bool) -> Result<Image> {
    let sources = sources(root, Some(plumb))?;
    let image = make(root, &root.join("target/image"), &sources, true)?;
    if checked {
        check_image(root, &image)?;
        check_packages(&root.join("target/image"), &sources)?;
    }
    Ok(image)
}

/// Makes the folder, the image, its archive and its list of components.
fn make(root: &Path, folder: &Path, sources: &Sources, fresh: bool) -> Result<Image> {
    let context = context::prepare(folder, sources, fresh)?;
    builder::build(root, folder, &context)
}

/// Makes the image from this plumb and checks it: `cargo xtask test`.
pub(crate) fn check(root: &Path, plumb: Option<&Path>) -> Result<()> {
    let root = root.canonicalize().context("cannot find the repository")?;
    let sources = sources(&root, plumb)?;
    let image = make(&root, &root.join("target/image"), &sources, false)?;
    check_image(&root, &image)
}

/// The same packages must give the same files: those of Debian are made once more. Only right after they were made, because
/// Debian's archive changes.
fn check_packages(folder: &Path, sources: &Sources) -> Result<()> {
    let second = folder.join("second");
    let again = context::prepare(&second, sources, true)?.join("root.tar");
    let first = folder.join("context/root.tar");
    let same = same_bytes(&first, &again)?;
    ensure!(
        same,
        "{} and {} are not the same: compare them with diffoscope",
        first.display(),
        again.display()
    );
    std::fs::remove_dir_all(&second).context("cannot remove the second folder")?;
    say("the files of Debian have the same bytes when they are made again");
    Ok(())
}

fn same_bytes(one: &Path, other: &Path) -> Result<bool> {
    let read = |path: &Path| std::fs::read(path).with_context(|| format!("cannot read {}", path.display()));
    Ok(read(one)? == read(other)?)
}

fn check_image(root: &Path, image: &Image) -> Result<()> {
    let megabytes = image.n_bytes / 1_000_000;
    ensure!(image.n_bytes < MOST_BYTES, "the image has {megabytes} MB compressed");
    let again = builder::build(root, &root.join("target/image"), &root.join("target/image/context"))?;
    ensure!(again.digest == image.digest, "a second build has another digest: {}", again.digest);
    say(&format!("the image has {megabytes} MB compressed, and the same digest when it is built again"));
    story::run(root, image)
}
