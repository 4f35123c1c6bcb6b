//! The files that differ between two states of a source.

use std::collections::BTreeMap;

use super::{Entry, EntryKind, RepoPath, SourceError, SourceFiles};

/// The files that are in only one of the two states, or differ between them; `None` if there are more than
/// `limit`. Directories with the same hash are not looked into.
pub fn changed_files(
    before: &dyn SourceFiles,
    after: &dyn SourceFiles,
    limit: usize,
) -> Result<Option<Vec<RepoPath>>, SourceError> {
    let mut changed = Vec::new();
    let mut waiting = vec![RepoPath::root()];
    while let Some(directory) = waiting.pop() {
        let mut names: BTreeMap<String, [Option<Entry>; 2]> = BTreeMap::new();
        for (side, files) in [before, after].into_iter().enumerate() {
            // Where one state has a file, or nothing, the other may have a directory.
            if files.kind(&directory)? != Some(EntryKind::Directory) {
                continue;
            }
            for entry in files.list(&directory)? {
                let sides = names.entry(entry.name.clone()).or_default();
                if let Some(place) = sides.get_mut(side) {
                    *place = Some(entry);
                }
            }
        }
        for (name, [old, new]) in names {
            let same = |old: &Entry, new: &Entry| (old.kind, &old.hash) == (new.kind, &new.hash);
            if old.as_ref().zip(new.as_ref()).is_some_and(|(old, new)| same(old, new)) {
                continue;
            }
            let path = directory.child(&name);
            let mut kinds = [&old, &new].into_iter().flatten().map(|entry| entry.kind);
            if kinds.any(|kind| kind == EntryKind::Directory) {
                waiting.push(path.clone());
            }
            let mut kinds = [&old, &new].into_iter().flatten().map(|entry| entry.kind);
            if kinds.any(|kind| kind != EntryKind::Directory) {
                changed.push(path);
            }
            if changed.len() > limit {
                return Ok(None);
            }
        }
    }
    changed.sort();
    Ok(Some(changed))
}
