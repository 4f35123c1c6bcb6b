//! Files of a cache directory. Other processes may remove or damage any of them at any moment, and put anything in their
//! place: it is removed, and the file is made again.

use std::fs;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::Path;

/// Makes a directory that only plumb's user can read, if it does not exist. Anything else in its place, or in place of the
/// directory that contains it, is removed first. What is above these two is not plumb's.
pub(crate) fn make_directory(directory: &Path) -> std::io::Result<()> {
    for path in directory.ancestors().take(2) {
        if !path.is_dir() && fs::symlink_metadata(path).is_ok() {
            fs::remove_file(path)?;
        }
    }
    fs::DirBuilder::new().recursive(true).mode(0o700).create(directory)
}

/// Removes whatever has this name.
pub(crate) fn remove(path: &Path) {
    let is_directory = fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_dir());
    let removed = if is_directory { fs::remove_dir_all(path) } else { fs::remove_file(path) };
    // What cannot be removed is reported by the next write.
    drop(removed);
}

/// True for a file that is neither a link nor a device, whose content could be without end.
pub(crate) fn is_file(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_file())
}

/// Moves a temporary file to its place.
pub(crate) fn persist(file: tempfile::NamedTempFile, path: &Path) -> std::io::Result<()> {
    if !is_file(path) {
        remove(path);
    }
    file.persist(path).map(drop).map_err(|error| error.error)
}
