//! Files with `SealedSecrets`: finding them, and replacing all of them or none.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use similar::TextDiff;
use tempfile::NamedTempFile;

use crate::context::Context;
use crate::error::CommandError;

/// Larger files are not read: none with `SealedSecrets` is.
const MAX_BYTES: u64 = 8 << 20;
const MAX_DEPTH: usize = 32;
const MAX_FILES: usize = 20_000;

/// Why a file with a `SealedSecret` may be passed over.
pub(super) const NO_YAML: &str = "it names a SealedSecret, and is not YAML";

/// A file and what it shall be.
pub(super) struct Change {
    pub(super) path: PathBuf,
    pub(super) before: Vec<u8>,
    pub(super) after: String,
}

/// `1 file`, `2 files`.
pub(super) fn counted(n: usize, noun: &str) -> String {
    format!("{n} {noun}{}", if n == 1 { "" } else { "s" })
}

/// Says that a file is passed over, if it looks like one with a `SealedSecret`. False if it does not.
pub(super) fn note_passed_over(context: &Context, path: &Path, text: &[u8], why: &str) -> bool {
    const KIND: &[u8] = b"SealedSecret";
    let names_it = text.windows(KIND.len()).any(|part| part == KIND);
    if names_it {
        context.out.note(&format!("warning: {} is passed over: {why}", path.display()));
    }
    names_it
}

/// The YAML and JSON files of a folder, sorted; or the file itself.
pub(super) fn find(path: &Path) -> Result<Vec<PathBuf>, CommandError> {
    let kind = std::fs::metadata(path)
        .map_err(|error| CommandError::because(format!("read {}", path.display()), error))?;
    if kind.is_file() {
        return Ok(vec![path.to_owned()]);
    }
    let mut found = Vec::new();
    walk(path, MAX_DEPTH, &mut found)?;
    found.sort();
    Ok(found)
}

fn walk(folder: &Path, depth: usize, found: &mut Vec<PathBuf>) -> Result<(), CommandError> {
    let failed = |error| CommandError::because(format!("read {}", folder.display()), error);
    for entry in std::fs::read_dir(folder).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let (path, kind) = (entry.path(), entry.file_type().map_err(failed)?);
        let is_yaml = path.extension().is_some_and(|end| end == "yaml" || end == "yml" || end == "json");
        // A link is not followed: it may lead out of the folder.
        if kind.is_dir() && depth > 0 && entry.file_name() != ".git" {
            walk(&path, depth - 1, found)?;
        } else if kind.is_file() && is_yaml && entry.metadata().is_ok_and(|data| data.len() <= MAX_BYTES) {
            found.push(path);
        }
        if found.len() > MAX_FILES {
            return Err(CommandError::new(format!("there are more than {MAX_FILES} files"))
                .hint("name a folder with fewer files"));
        }
    }
    Ok(())
}

/// Replaces the files, or with `dry_run` prints the changes. All files are written beside their places first.
pub(super) fn replace(context: &Context, changes: &[Change], dry_run: bool) -> Result<(), CommandError> {
    if dry_run {
        for change in changes {
            let before = String::from_utf8_lossy(&change.before);
            let name = change.path.display().to_string();
            let diff = TextDiff::from_lines(before.as_ref(), &change.after);
            let (old, new) = (format!("a/{name}"), format!("b/{name}"));
            context.out.print(diff.unified_diff().header(&old, &new).to_string().trim_end());
        }
        return Ok(());
    }
    let mut ready = Vec::new();
    for change in changes {
        let none = |error| failed(change, error).hint("no file was changed");
        // What a link leads to is replaced, and not the link.
        let target = change.path.canonicalize().map_err(none)?;
        let new = beside(&target, change.after.as_bytes()).map_err(none)?;
        ready.push((new, target, change));
    }
    let mut done: Vec<(PathBuf, &Change)> = Vec::new();
    for (file, target, change) in ready {
        if let Err(error) = file.persist(&target) {
            // The first error is the one to report.
            return Err(failed(change, error.error).hint(put_back(&done)));
        }
        done.push((target, change));
    }
    Ok(())
}

/// Gives files their former content, and says what came of it.
fn put_back(done: &[(PathBuf, &Change)]) -> String {
    let is_back = |(target, change): &&(PathBuf, &Change)| {
        beside(target, &change.before).is_ok_and(|file| file.persist(target).is_ok())
    };
    let left: Vec<String> = done
        .iter()
        .filter(|one| !is_back(one))
        .map(|(_, change)| change.path.display().to_string())
        .collect();
    if left.is_empty() {
        return "no file was changed".to_owned();
    }
    format!("these files have the new content already, and could not be put back: {}", left.join(", "))
}

fn failed(change: &Change, error: std::io::Error) -> CommandError {
    CommandError::because(format!("write {}", change.path.display()), error)
}

/// A file in the same folder, with the same permissions. What it holds is encrypted.
fn beside(path: &Path, content: &[u8]) -> std::io::Result<NamedTempFile> {
    let permissions = std::fs::metadata(path)?.permissions();
    if permissions.readonly() {
        return Err(std::io::Error::from(std::io::ErrorKind::PermissionDenied));
    }
    let mut file = NamedTempFile::new_in(path.parent().unwrap_or(Path::new(".")))?;
    file.write_all(content)?;
    file.as_file().set_permissions(permissions)?;
    file.as_file().sync_all()?;
    Ok(file)
}
