//! Bundles the page (`page/`) with the Go program `tools/page`, compresses it, and writes `assets.rs`, which embeds it.
//!
//! `PLUMB_PAGE_DIST=DIRECTORY` takes a bundle that was built elsewhere. `PLUMB_PAGE=none` leaves the page out,
//! `PLUMB_PAGE=require` makes it an error if it cannot be built. Without Go the page is left out, with a warning.

#![expect(clippy::disallowed_methods, reason = "a build script reads files and its environment")]

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs, io};

fn main() -> io::Result<()> {
    for name in ["PLUMB_PAGE", "PLUMB_PAGE_DIST"] {
        println!("cargo::rerun-if-env-changed={name}");
    }
    let out = PathBuf::from(env::var("OUT_DIR").map_err(io::Error::other)?);
    let mode = env::var("PLUMB_PAGE").unwrap_or_default();
    let dist = env::var("PLUMB_PAGE_DIST").unwrap_or_default();
    let files = if mode == "none" {
        Vec::new()
    } else if dist.is_empty() {
        match bundle(&out.join("page")) {
            Ok(files) => files,
            Err(why) if mode == "require" => return Err(why),
            Err(why) => {
                let why = why.to_string().replace('\n', " ");
                println!("cargo::warning=plumb is built without its page: {why}");
                Vec::new()
            }
        }
    } else {
        let folder = dist_folder(&dist)?;
        println!("cargo::rerun-if-changed={}", folder.display());
        read(&folder)?
    };
    fs::write(out.join("assets.rs"), embed(&out, &files)?)
}

/// The folder of a bundle that was built elsewhere. A relative path begins at the workspace, as that of a command does.
fn dist_folder(named: &str) -> io::Result<PathBuf> {
    let here = PathBuf::from(env::var("CARGO_MANIFEST_DIR").map_err(io::Error::other)?);
    let folder = here.join("../..").join(named);
    folder
        .canonicalize()
        .map_err(|error| io::Error::other(format!("cannot read PLUMB_PAGE_DIST={named}: {error}")))
}

/// Runs the bundler. Its Go modules are downloaded once.
fn bundle(to: &Path) -> io::Result<Vec<PathBuf>> {
    let here = PathBuf::from(env::var("CARGO_MANIFEST_DIR").map_err(io::Error::other)?);
    let tool = here.join("../../tools/page");
    for place in [&here.join("page"), &here.join("vendor"), &tool] {
        println!("cargo::rerun-if-changed={}", place.display());
    }
    let program = to.with_extension("bundler");
    run(
        Command::new("go").args(["build", "-o"]).arg(&program).arg(".").current_dir(&tool),
        "build tools/page",
    )?;
    if to.exists() {
        fs::remove_dir_all(to)?;
    }
    fs::create_dir_all(to)?;
    run(Command::new(&program).arg(here.join("page")).arg(here.join("vendor")).arg(to), "bundle the page")?;
    read(to)
}

fn run(command: &mut Command, what: &str) -> io::Result<()> {
    let output = command.output().map_err(|error| {
        let hint = "install Go 1.26, or set PLUMB_PAGE_DIST to a built page, or PLUMB_PAGE=none";
        io::Error::other(format!("cannot {what}: {error}; {hint}"))
    })?;
    if output.status.success() {
        return Ok(());
    }
    Err(io::Error::other(format!("cannot {what}: {}", String::from_utf8_lossy(&output.stderr).trim())))
}

/// The script and the style of a folder.
fn read(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.extension().is_some_and(|end| end == "js" || end == "css") {
            files.push(path);
        }
    }
    files.sort();
    let count =
        |end: &str| files.iter().filter(|path| path.extension().is_some_and(|own| own == end)).count();
    let (scripts, styles) = (count("js"), count("css"));
    if (scripts, styles) != (1, 1) {
        // One of an earlier build beside the new one would be embedded, too, and might be the one that is used.
        let found = format!("{scripts} scripts and {styles} styles");
        return Err(io::Error::other(format!("{} has {found}; one of each is a page", folder.display())));
    }
    Ok(files)
}

/// The Rust table of the files, each with its compressed form.
fn embed(out: &Path, files: &[PathBuf]) -> io::Result<String> {
    let mut table = String::from("&[\n");
    for path in files {
        let name = path.file_name().unwrap_or_default().display().to_string();
        let packed = out.join(format!("{name}.gz"));
        let mut encoder = flate2::GzBuilder::new().write(Vec::new(), flate2::Compression::best());
        encoder.write_all(&fs::read(path)?)?;
        fs::write(&packed, encoder.finish()?)?;
        let (plain, packed) = (path.display().to_string(), packed.display().to_string());
        let _ = writeln!(
            table,
            "    Asset {{ name: {name:?}, plain: include_bytes!({plain:?}), gzip: include_bytes!({packed:?}) }},"
        );
    }
    table.push_str("]\n");
    Ok(table)
}
