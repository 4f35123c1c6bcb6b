//! Which bases of Kustomize only one app uses.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use plumb_core::source::RepoPath;
use plumb_core::yaml::{Limits, parse_documents_bytes};
use serde_json::Value;

use super::place::FilePlace;
use super::through::KUSTOMIZATIONS;
use crate::local::LocalSource;

/// Larger files are not read: no kustomization is.
const MAX_BYTES: u64 = 1 << 20;
/// So deep are folders searched.
const MAX_DEPTH: usize = 16;

/// The kustomizations of the working copies, and the directories of the apps.
#[derive(Default)]
pub(super) struct Bases {
    by_root: BTreeMap<PathBuf, Vec<Kustomization>>,
    /// Every directory that some app is rendered from, in whichever repository.
    apps: BTreeSet<RepoPath>,
}

struct Kustomization {
    folder: RepoPath,
    /// Everything that its texts could name.
    names: BTreeSet<RepoPath>,
}

impl Bases {
    /// Searches working copies. `apps` are the directories of all known apps.
    pub(super) fn search(roots: &BTreeSet<PathBuf>, apps: BTreeSet<RepoPath>) -> Self {
        let mut by_root = BTreeMap::new();
        for root in roots {
            let mut found = Vec::new();
            walk(root, &RepoPath::root(), MAX_DEPTH, &mut found);
            by_root.insert(root.clone(), found);
        }
        Self { by_root, apps }
    }

    /// The file, if it is outside of the app's directory and this app alone uses it.
    pub(super) fn only_of(&self, source: &LocalSource, file: &str) -> Option<FilePlace> {
        let place = FilePlace::find(&source.root, file).ok()?;
        let own = RepoPath::root().join(source.source.path.as_deref().unwrap_or(".")).ok()?;
        let all = self.by_root.get(&place.root)?;
        is_only_of(all, &self.apps, &own, &place.path).then_some(place)
    }
}

/// Do all kustomizations that use the file lead to this app's, and does no other app read it?
fn is_only_of(all: &[Kustomization], apps: &BTreeSet<RepoPath>, own: &RepoPath, file: &RepoPath) -> bool {
    let mut users: BTreeSet<&RepoPath> = BTreeSet::new();
    loop {
        let uses = |one: &&Kustomization| {
            let names_it = one.names.contains(file) || users.iter().any(|user| one.names.contains(*user));
            names_it && !users.contains(&one.folder)
        };
        let Some(next) = all.iter().find(uses) else { break };
        users.insert(&next.folder);
    }
    let is_used = |folder: &RepoPath| {
        all.iter()
            .any(|one| one.folder != *folder && users.contains(&one.folder) && one.names.contains(folder))
    };
    let mut tops = users.iter().filter(|user| !is_used(user));
    let is_the_only_top = tops.next() == Some(&own) && tops.next().is_none();
    // An app of plain manifests reads every file of its directory.
    let mut others = apps.iter().filter(|app| *app != own);
    is_the_only_top && !others.any(|app| file.is_within(app) || users.contains(app))
}

fn walk(root: &Path, folder: &RepoPath, depth: usize, found: &mut Vec<Kustomization>) {
    let path = root.join(folder.as_str());
    // What cannot be read here is not rendered either.
    let Ok(entries) = std::fs::read_dir(&path) else { return };
    for entry in entries.flatten() {
        let (Ok(kind), name) = (entry.file_type(), entry.file_name()) else { continue };
        let Some(name) = name.to_str().filter(|name| *name != ".git") else { continue };
        if kind.is_dir() && depth > 0 {
            walk(root, &folder.child(name), depth - 1, found);
        } else if KUSTOMIZATIONS.contains(&name) && entry.metadata().is_ok_and(|data| data.len() <= MAX_BYTES)
        {
            found.push(Kustomization { folder: folder.clone(), names: names(&entry.path(), folder) });
        }
    }
}

/// Every path that a text of the file could mean. More than it uses: then a base counts as shared, and is left alone.
fn names(file: &Path, folder: &RepoPath) -> BTreeSet<RepoPath> {
    let documents =
        std::fs::read(file).ok().and_then(|bytes| parse_documents_bytes(&bytes, &Limits::default()).ok());
    let mut names = BTreeSet::new();
    for document in documents.into_iter().flatten() {
        collect(&document.value, folder, &mut names);
    }
    names
}

fn collect(value: &Value, folder: &RepoPath, names: &mut BTreeSet<RepoPath>) {
    match value {
        Value::String(text) => names.extend(folder.join(text)),
        Value::Array(items) => items.iter().for_each(|item| collect(item, folder, names)),
        Value::Object(map) => map.values().for_each(|item| collect(item, folder, names)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(text: &str) -> RepoPath {
        RepoPath::root().join(text).unwrap()
    }

    fn kustomization(folder: &str, names: &[&str]) -> Kustomization {
        let folder = path(folder);
        let names = names.iter().map(|name| folder.join(name).unwrap()).collect();
        Kustomization { folder, names }
    }

    #[test]
    fn a_base_belongs_to_an_app_if_all_ways_to_it_lead_through_the_app() {
        let base = || kustomization("base", &["web.yaml"]);
        let prod = || kustomization("prod", &["../base"]);
        let only = |all: &[Kustomization], apps: &[&str]| {
            let apps = apps.iter().map(|app| path(app)).collect();
            is_only_of(all, &apps, &path("prod"), &path("base/web.yaml"))
        };
        assert!(only(&[base(), prod()], &["prod", "elsewhere"]));
        assert!(only(
            &[base(), kustomization("middle", &["../base"]), kustomization("prod", &["../middle"])],
            &["prod"]
        ));
        // Another overlay, one that names the file itself, an app of the base, an app of a folder around it.
        assert!(!only(&[base(), prod(), kustomization("test", &["../base"])], &["prod"]));
        assert!(!only(&[base(), prod(), kustomization("test", &["../base/web.yaml"])], &["prod"]));
        assert!(!only(&[base(), prod()], &["prod", "base"]));
        assert!(!only(&[base(), prod()], &["prod", "."]));
        assert!(!only(&[base()], &["prod"]));
    }
}
