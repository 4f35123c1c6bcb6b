//! Joins the health rules (`src/health/rules/*.rules`, one file an API group) into one text that the library
//! embeds, so that a rule is added by adding lines to a file and nothing else.

#![expect(clippy::disallowed_methods, reason = "a build script reads files and its environment")]

use std::fmt::Write as _;
use std::path::Path;
use std::{env, fs, io};

fn main() -> io::Result<()> {
    let folder = Path::new("src/health/rules");
    println!("cargo::rerun-if-changed={}", folder.display());
    let mut files: Vec<_> = fs::read_dir(folder)?.collect::<io::Result<Vec<_>>>()?;
    files.sort_by_key(fs::DirEntry::file_name);
    let mut joined = String::new();
    for file in files {
        let path = file.path();
        if path.extension().is_some_and(|extension| extension == "rules") {
            let text = fs::read_to_string(&path)?;
            let _ = writeln!(joined, "file {}\n{text}", file.file_name().display());
        }
    }
    let out = env::var("OUT_DIR").map_err(io::Error::other)?;
    fs::write(Path::new(&out).join("health.rules"), joined)
}
