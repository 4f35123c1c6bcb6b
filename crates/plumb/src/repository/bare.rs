//! A directory without an Application, as an app.

use plumb_core::app::{DirectoryOptions, Source, SourceTool};
use plumb_core::source::{EntryKind, RepoPath};

use super::RepositoryState;

/// The directory as a source. Plain manifests are read from all folders below.
pub(super) fn source(state: &RepositoryState, path: &str) -> Source {
    let of_tools = ["Chart.yaml", "kustomization.yaml", "kustomization.yml", "Kustomization"];
    let has = |name: &str| {
        let file = RepoPath::parse(path).map(|directory| directory.child(name));
        file.is_ok_and(|file| {
            matches!(state.files.kind(&file), Ok(Some(EntryKind::File | EntryKind::Executable)))
        })
    };
    let options = DirectoryOptions { recurse: true, ..DirectoryOptions::default() };
    let is_plain = !of_tools.into_iter().any(has);
    Source {
        path: Some(path.to_owned()),
        tool: is_plain.then_some(SourceTool::Directory(options)),
        ..Source::default()
    }
}
