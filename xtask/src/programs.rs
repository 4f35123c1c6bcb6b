//! The programs that tasks start: kubectl, helm, kustomize.

use std::ffi::OsString;

use plumb_testkit::cluster::Programs;

/// PATH with the folders of these programs in front.
#[expect(clippy::disallowed_methods, reason = "PATH is passed on to the programs that are started")]
pub(crate) fn path_with(programs: &Programs) -> OsString {
    let before = std::env::var_os("PATH").unwrap_or_default();
    let folders = programs.path_additions().iter().cloned().chain(std::env::split_paths(&before));
    std::env::join_paths(folders).unwrap_or(before)
}
