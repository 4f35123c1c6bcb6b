//! Makes the files, and checks them as a user would.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, ensure};
use plumb_testkit::cluster::Layout;

use super::archive::{program_folder, said, tar_gz};
use super::build::{self, Arch, Build};
use super::lacks::Lacks;
use super::notes;
use super::packages::{self, Archive};
use crate::cluster::ensure_programs;
use crate::image;
use crate::plumb::given_or_built;
use crate::say::say;

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// What to release.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Make the files and publish nothing.
    #[arg(long)]
    dry_run: bool,
    /// Make the files twice without the image, compare and use them, and publish nothing: as `cargo xtask test` does.
    #[arg(long, conflicts_with_all = ["dry_run", "out", "without_image", "address", "registry", "sign_with"])]
    check: bool,
    /// Folder of the files [default: target/release-VERSION].
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// The plumb program to release [default: built].
    #[arg(long, value_name = "FILE")]
    plumb: Option<PathBuf>,
    /// Leave the image out.
    #[arg(long)]
    without_image: bool,
    /// Where the files will be downloaded from, for krew and Homebrew.
    #[arg(long, value_name = "URL", default_value = "https://example.invalid/plumb/releases/download")]
    address: String,
    /// Where the image and the chart are pushed to, such as `ghcr.io/OWNER`: the image becomes `REGISTRY/plumb:VERSION`, the
    /// chart `oci://REGISTRY/charts/plumb`. The chart and the manifests of the release name that image.
    #[arg(long, value_name = "HOST/OWNER")]
    registry: Option<String>,
    /// A program that signs a file: called with the list of checksums.
    #[arg(long, value_name = "PROGRAM")]
    sign_with: Option<PathBuf>,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let root = crate::repository::root().canonicalize().context("cannot find the repository")?;
    if args.check {
        check(&root, args.plumb.as_deref())?;
        return Ok(ExitCode::SUCCESS);
    }
    let lacks = if args.dry_run { Lacks::Skip } else { Lacks::Fail };
    let registry = args.registry.as_deref();
    if !args.without_image && registry.is_none() {
        lacks.say("a chart and manifests whose image can be pulled: give --registry HOST/OWNER")?;
    }
    if crate::repository::commit().is_none() {
        lacks.say("the commit in the image's labels: git cannot read this repository (`safe.directory`?)")?;
    }
    let builds = match &args.plumb {
        Some(program) => vec![Build { arch: Arch::here(), program: program.clone() }],
        None => build::all(&root, lacks)?,
    };
    let plumb = builds.first().context("nothing was built")?.program.clone();
    let out = args.out.clone().unwrap_or_else(|| root.join(format!("target/release-{VERSION}")));
    make(&root, &builds, &out, (&format!("{}/v{VERSION}", args.address), registry), lacks)?;
    let image = if args.without_image { None } else { add_image(&root, &plumb, &out, lacks)? };
    if let (Some(registry), Some(image)) = (registry, &image) {
        manifests(&plumb, &format!("{}@{}", image_name(registry), image.digest), &out)?;
    }
    checksums(&out)?;
    if let Some(program) = &args.sign_with {
        crate::sign::sign(program, &out.join("SHA256SUMS"))?;
    }
    verify(&out, &builds)?;
    for name in names(&out)? {
        say(&format!("{}", out.join(name).display()));
    }
    if let (Some(registry), Some(image)) = (registry, &image) {
        push(registry, image, &out, args.dry_run)?;
    }
    if !args.dry_run {
        publish(&out)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Pushes the image and the chart to their registry.
fn push(registry: &str, image: &image::Image, out: &Path, is_dry_run: bool) -> Result<()> {
    let (name, charts) = (image_name(registry), format!("oci://{registry}/charts"));
    if is_dry_run {
        say(&format!("not pushed: {name} with the digest {}, and the chart to {charts}", image.digest));
        return Ok(());
    }
    image.push(&name)?;
    let helm = ensure_programs(&Layout::from_environment()?)?.helm;
    said(&helm, &["push", &out.join(chart_file()).display().to_string(), &charts]).map(drop)
}

/// The name of the image in the registry.
fn image_name(registry: &str) -> String {
    format!("{registry}/plumb:{VERSION}")
}

fn chart_file() -> String {
    format!("plumb-chart-{VERSION}.tgz")
}

/// What `kubectl apply --server-side` installs without Helm: the objects of `plumb install` with the image that was made.
fn manifests(plumb: &Path, image: &str, out: &Path) -> Result<()> {
    let objects = said(plumb, &["install", "--without-project", "--image", image])?;
    let text = String::from_utf8(objects).context("plumb install prints no text")?;
    ensure!(text.contains(&format!("image: \"{image}\"")), "the manifests do not name {image}");
    fs::write(out.join(format!("plumb-{VERSION}-install.yaml")), text).context("cannot write the manifests")
}

/// The files of a release without the image, checked: `cargo xtask test`.
pub(crate) fn check(root: &Path, plumb: Option<&Path>) -> Result<()> {
    let root = root.canonicalize().context("cannot find the repository")?;
    let builds = [Build { arch: Arch::here(), program: given_or_built(plumb, &root)? }];
    let out = root.join("target/release-check");
    let make = || {
        let places = ("https://example.invalid", Some("registry.example.com/team"));
        make(&root, &builds, &out, places, Lacks::Skip)?;
        let digest = format!("sha256:{}", "0".repeat(64));
        manifests(
            &builds[0].program,
            &format!("{}@{digest}", image_name("registry.example.com/team")),
            &out,
        )?;
        checksums(&out)?;
        fs::read_to_string(out.join("SHA256SUMS")).context("cannot read the checksums")
    };
    let first = make()?;
    ensure!(make()? == first, "a second run makes other files");
    let helm = ensure_programs(&Layout::from_environment()?)?.helm;
    let chart = out.join(chart_file()).display().to_string();
    let rendered = String::from_utf8_lossy(&said(&helm, &["template", "plumb", &chart])?).into_owned();
    let image = format!("image: \"{}\"", image_name("registry.example.com/team"));
    ensure!(rendered.contains(&image), "the released chart does not make {image}");
    verify(&out, &builds)
}

/// Everything that does not need buildah. `places` are the address of the files, and the registry of the image.
fn make(
    root: &Path,
    builds: &[Build],
    out: &Path,
    (address, registry): (&str, Option<&str>),
    lacks: Lacks,
) -> Result<()> {
    let work = out.with_extension("work");
    for folder in [out, &work] {
        if folder.exists() {
            fs::remove_dir_all(folder).with_context(|| format!("cannot remove {}", folder.display()))?;
        }
        fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
    }
    let speaker = &builds.first().context("nothing to release")?.program;
    let mut archives = Vec::new();
    for Build { arch, program } in builds {
        let folder = work.join(stem(*arch));
        program_folder(root, program, speaker, &folder)?;
        let name = format!("{}.tar.gz", stem(*arch));
        tar_gz(&folder, &out.join(&name))?;
        let sum = said(Path::new("sha256sum"), &[&out.join(&name).display().to_string()])?;
        let sha256 = String::from_utf8_lossy(&sum).split(' ').next().unwrap_or_default().to_owned();
        archives.push(Archive { arch: *arch, name, sha256 });
        if packages::debian(&folder, &work, out, VERSION, *arch)?.is_none() {
            lacks.say("the package of Debian: install dpkg-deb")?;
        }
    }
    fs::write(out.join("krew.yaml"), packages::krew(VERSION, address, &archives))?;
    fs::write(out.join("homebrew.rb"), packages::homebrew(VERSION, address, &archives))?;
    // `helm package` writes the time into its archive.
    let chart = work.join("plumb");
    said(
        Path::new("cp"),
        &["-r", &root.join("charts/plumb").display().to_string(), &chart.display().to_string()],
    )?;
    if let Some(registry) = registry {
        name_image(&chart.join("values.yaml"), registry)?;
    }
    tar_gz(&chart, &out.join(chart_file()))?;
    let changelog = fs::read_to_string(root.join("CHANGELOG.md")).context("cannot read CHANGELOG.md")?;
    fs::write(out.join("notes.md"), notes::of_version(&changelog, VERSION)?)?;
    fs::write(out.join("plumb.cdx.json"), image::cargo_components(root)?)?;
    fs::remove_dir_all(&work).context("cannot remove the work folder")
}

/// Writes the name of the image into the values of the chart.
fn name_image(values: &Path, registry: &str) -> Result<()> {
    let text = fs::read_to_string(values).with_context(|| format!("cannot read {}", values.display()))?;
    let (unpublished, named) =
        ("repository: registry.invalid/plumb\n", format!("repository: {registry}/plumb\n"));
    ensure!(text.matches(unpublished).count() == 1, "{} has another repository", values.display());
    fs::write(values, text.replace(unpublished, &named)).context("cannot write the values of the chart")
}

/// Name of an archive and of the folder in it.
fn stem(arch: Arch) -> String {
    format!("plumb-{VERSION}-{}-linux", arch.name())
}

/// The image. One that will be published runs first.
fn add_image(root: &Path, plumb: &Path, out: &Path, lacks: Lacks) -> Result<Option<image::Image>> {
    if let Some(missing) = image::missing_tools() {
        lacks.say(&format!("the image: {missing}"))?;
        return Ok(None);
    }
    let image = image::release(root, plumb, lacks == Lacks::Fail)?;
    fs::copy(&image.archive, out.join(format!("plumb-image-{VERSION}.oci.tar")))
        .context("cannot copy the image")?;
    fs::copy(&image.components, out.join("plumb-image.cdx.json"))
        .context("cannot copy the list of components")?;
    fs::write(out.join("image-digest"), format!("{}\n", image.digest)).context("cannot write the digest")?;
    Ok(Some(image))
}

fn names(out: &Path) -> Result<Vec<String>> {
    let entries = fs::read_dir(out).with_context(|| format!("cannot read {}", out.display()))?;
    let mut names: Vec<String> =
        entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    Ok(names)
}

fn checksums(out: &Path) -> Result<()> {
    let names: Vec<String> = names(out)?.into_iter().filter(|name| name != "SHA256SUMS").collect();
    let output =
        Command::new("sha256sum").args(&names).current_dir(out).output().context("cannot run sha256sum")?;
    ensure!(output.status.success(), "cannot compute the checksums");
    fs::write(out.join("SHA256SUMS"), output.stdout).context("cannot write the checksums")
}

/// As a user: the checksums hold, the archives unpack, the program runs, Helm and Debian read their packages.
fn verify(out: &Path, builds: &[Build]) -> Result<()> {
    let checked =
        Command::new("sha256sum").args(["--check", "--quiet", "SHA256SUMS"]).current_dir(out).status()?;
    ensure!(checked.success(), "the checksums do not hold");
    let unpacked = out.with_extension("unpacked");
    if unpacked.exists() {
        fs::remove_dir_all(&unpacked)?;
    }
    fs::create_dir_all(&unpacked)?;
    for Build { arch, .. } in builds {
        let stem = stem(*arch);
        let (archive, into) =
            (out.join(format!("{stem}.tar.gz")).display().to_string(), unpacked.display().to_string());
        said(Path::new("tar"), &["--extract", "--file", &archive, "--directory", &into])?;
        let program = unpacked.join(&stem).join("plumb");
        build::ensure_is_for(&program, *arch)?;
        let manual = fs::read_to_string(unpacked.join(&stem).join("man/plumb.1")).context("no manual")?;
        ensure!(manual.contains(".TH plumb"), "the manual is none");
        if *arch == Arch::here() {
            let version = said(&program, &["version", "--client", "--short"])?;
            let version = String::from_utf8_lossy(&version).into_owned();
            ensure!(version.contains(VERSION), "the released program says {version}");
        }
    }
    let helm = ensure_programs(&Layout::from_environment()?)?.helm;
    let chart = out.join(chart_file()).display().to_string();
    let shown = String::from_utf8_lossy(&said(&helm, &["show", "chart", &chart])?).into_owned();
    ensure!(shown.contains(&format!("version: {VERSION}")), "the chart says {shown}");
    for name in names(out)?.iter().filter(|name| name.starts_with("plumb_")) {
        let listed = said(Path::new("dpkg-deb"), &["--contents", &out.join(name).display().to_string()])?;
        ensure!(String::from_utf8_lossy(&listed).contains("./usr/bin/plumb"), "{name} has no program");
    }
    fs::remove_dir_all(&unpacked).context("cannot remove what was unpacked")
}

/// Uploads the files to the code host, with its own program. The image and the chart are in their registry by then.
fn publish(out: &Path) -> Result<()> {
    let files: Vec<PathBuf> = names(out)?.iter().map(|name| out.join(name)).collect();
    let status = Command::new("gh")
        .args(["release", "create", &format!("v{VERSION}"), "--verify-tag", "--notes-file"])
        .arg(out.join("notes.md"))
        .args(&files)
        .status()
        .context("cannot run gh: install GitHub's command line, or use --dry-run")?;
    ensure!(status.success(), "cannot publish the release");
    Ok(())
}
