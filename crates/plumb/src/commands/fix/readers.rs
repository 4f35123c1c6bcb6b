//! Who else is rendered from a file: other apps, and kustomizations that no known app uses.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use plumb_core::app::{AppId, Source, SourceTool};
use plumb_core::desired::Scopes;
use plumb_core::source::RepoPath;
use plumb_core::yaml::{Limits, parse_documents_bytes};
use plumb_render::AppFacts;
use serde_json::Value;

use super::place::{FilePlace, KUSTOMIZATIONS};
use crate::local::{LocalSource, RenderFacts};

/// Larger files are not read: no kustomization is.
const MAX_BYTES: u64 = 1 << 20;
/// So deep are folders searched.
const MAX_DEPTH: usize = 16;
/// Fields of a kustomization whose texts are no paths.
const NO_PATHS: [&str; 13] = [
    "apiVersion",
    "buildMetadata",
    "commonAnnotations",
    "commonLabels",
    "images",
    "kind",
    "labels",
    "metadata",
    "namePrefix",
    "nameSuffix",
    "namespace",
    "replicas",
    "sortOptions",
];

/// Something that is rendered from a working copy.
#[derive(Clone)]
pub(super) struct Reader {
    /// The app; `None` for a kustomization that no known app uses.
    pub(super) app: Option<AppId>,
    /// Its name in tracking marks.
    pub(super) instance: String,
    /// Namespace of objects that name none.
    pub(super) namespace: Option<String>,
    /// Where its kinds live.
    pub(super) scopes: Scopes,
    pub(super) source: LocalSource,
}

impl Reader {
    fn folder(&self) -> Option<RepoPath> {
        folder(&self.source)
    }

    /// Is the file one of the values files that the app names?
    fn names_values(&self, place: &FilePlace) -> bool {
        let Some(SourceTool::Helm(options)) = &self.source.source.tool else { return false };
        options.value_files.iter().any(|file| {
            let (root, path) =
                if let Some((name, path)) = file.strip_prefix('$').and_then(|rest| rest.split_once('/')) {
                    (self.source.refs.get(name), RepoPath::parse(path))
                } else {
                    // An absolute path begins at the root of the repository.
                    let path = match file.strip_prefix('/') {
                        Some(path) => RepoPath::parse(path),
                        None => self.folder().unwrap_or_default().join(file),
                    };
                    (Some(&self.source.root), path)
                };
            let may_match = |path: &RepoPath| *path == place.path || path.as_str().contains(['*', '?', '{']);
            root == Some(&place.root) && path.is_ok_and(|path| may_match(&path))
        })
    }

    /// In words, for a refusal.
    pub(super) fn name(&self) -> String {
        match &self.app {
            Some(app) => format!("the app {}", app.name),
            None => format!("the kustomization {}", self.source.source.path.as_deref().unwrap_or(".")),
        }
    }
}

fn folder(source: &LocalSource) -> Option<RepoPath> {
    RepoPath::root().join(source.source.path.as_deref().unwrap_or(".")).ok()
}

/// The kustomizations of the working copies, and the known apps.
#[derive(Default)]
pub(super) struct Readers {
    kustomizations: BTreeMap<PathBuf, Vec<Kustomization>>,
    /// The known apps that are rendered from a working copy, each source by itself.
    apps: Vec<Reader>,
}

struct Kustomization {
    folder: RepoPath,
    /// Everything that its texts could name.
    names: BTreeSet<RepoPath>,
}

impl Readers {
    /// Searches working copies for kustomizations.
    pub(super) fn search(roots: &BTreeSet<PathBuf>, apps: Vec<Reader>) -> Self {
        let mut kustomizations = BTreeMap::new();
        for root in roots {
            let mut found = Vec::new();
            walk(root, &RepoPath::root(), MAX_DEPTH, &mut found);
            kustomizations.insert(root.clone(), found);
        }
        Self { kustomizations, apps }
    }

    /// The file, if it is outside of the app's directory and this app alone uses it.
    pub(super) fn only_of(&self, app: &AppId, source: &LocalSource, file: &str) -> Option<FilePlace> {
        let place = FilePlace::find(&source.root, file).ok()?;
        let own = folder(source)?;
        let users = users(self.kustomizations.get(&place.root)?, &place.path);
        (users.contains(&own) && self.others(&place, app, source).is_empty()).then_some(place)
    }

    /// Everything else that may be rendered from the file.
    pub(super) fn others(&self, place: &FilePlace, app: &AppId, source: &LocalSource) -> Vec<Reader> {
        self.find(place, Some((app, source)))
    }

    /// Everything that may be rendered from the file.
    pub(super) fn of(&self, place: &FilePlace) -> Vec<Reader> {
        self.find(place, None)
    }

    fn find(&self, place: &FilePlace, but: Option<(&AppId, &LocalSource)>) -> Vec<Reader> {
        let own = but.and_then(|(_, source)| folder(source));
        let all = self.kustomizations.get(&place.root).map(Vec::as_slice).unwrap_or_default();
        let users = users(all, &place.path);
        let is_own = |reader: &Reader| {
            but.is_some_and(|(app, source)| {
                reader.app.as_ref() == Some(app)
                    && reader.folder() == own
                    && reader.source.index == source.index
            })
        };
        let reads = |reader: &&Reader| {
            let folder = reader.folder().filter(|_| reader.source.root == place.root);
            let is_below =
                folder.is_some_and(|folder| place.path.is_within(&folder) || users.contains(&folder));
            is_below || reader.names_values(place)
        };
        let apps = self.apps.iter().filter(reads).filter(|reader| !is_own(reader)).cloned();
        let is_known = |folder: &RepoPath| {
            own.as_ref() == Some(folder)
                || self.apps.iter().any(|reader| {
                    reader.source.root == place.root && reader.folder().as_ref() == Some(folder)
                })
        };
        // Of kustomizations that lead to each other, the last one shows what becomes of the file.
        let is_used = |folder: &RepoPath| {
            all.iter()
                .any(|one| one.folder != *folder && users.contains(&one.folder) && one.names.contains(folder))
        };
        let tops = users.iter().filter(|folder| !is_used(folder) && !is_known(folder));
        let facts = match (but, self.apps.first()) {
            (Some((_, source)), _) => source.facts.clone(),
            (None, Some(reader)) => reader.source.facts.clone(),
            (None, None) => RenderFacts::default(),
        };
        apps.chain(tops.map(|folder| unknown(&place.root, folder, &facts))).collect()
    }
}

/// A kustomization that no known app uses. Its namespace does not matter: both renders leave it out.
fn unknown(root: &Path, folder: &RepoPath, facts: &RenderFacts) -> Reader {
    Reader {
        app: None,
        instance: String::new(),
        namespace: None,
        scopes: Scopes::built_in(),
        source: LocalSource {
            root: root.to_owned(),
            source: Source { path: Some(folder.as_str().to_owned()), ..Source::default() },
            index: 0,
            overrides: None,
            app: AppFacts::default(),
            facts: facts.clone(),
            refs: BTreeMap::new(),
        },
    }
}

/// The folders of all kustomizations that use the file, directly or through others.
fn users(all: &[Kustomization], file: &RepoPath) -> BTreeSet<RepoPath> {
    let mut users: BTreeSet<RepoPath> = BTreeSet::new();
    loop {
        let is_next = |one: &&Kustomization| {
            let is_its_own = one.folder.child(name_of(file)) == *file && is_kustomization(file);
            let names_it = is_its_own
                || one.names.contains(file)
                || users.iter().any(|user| one.names.contains(user))
                || is_of_named_folder(one, file);
            names_it && !users.contains(&one.folder)
        };
        let Some(next) = all.iter().find(is_next) else { break };
        users.insert(next.folder.clone());
    }
    users
}

/// A chart or a folder of files that a kustomization names.
fn is_of_named_folder(one: &Kustomization, file: &RepoPath) -> bool {
    one.names.iter().any(|name| *name != one.folder && !one.folder.is_within(name) && file.is_within(name))
}

fn name_of(file: &RepoPath) -> &str {
    file.as_str().rsplit('/').next().unwrap_or_default()
}

fn is_kustomization(file: &RepoPath) -> bool {
    KUSTOMIZATIONS.contains(&name_of(file))
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
        let fields = document.value.as_object().into_iter().flatten();
        let fields = fields.filter(|(name, _)| !NO_PATHS.contains(&name.as_str()));
        fields.for_each(|(_, value)| collect(value, folder, &mut names));
    }
    names
}

fn collect(value: &Value, folder: &RepoPath, names: &mut BTreeSet<RepoPath>) {
    match value {
        // Generators of ConfigMaps write `key=file`.
        Value::String(text) => {
            names.extend(folder.join(text));
            names.extend(text.split_once('=').and_then(|(_, file)| folder.join(file).ok()));
        }
        Value::Array(items) => items.iter().for_each(|item| collect(item, folder, names)),
        Value::Object(map) => map.values().for_each(|item| collect(item, folder, names)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use plumb_core::app::HelmOptions;

    use super::*;

    fn path(text: &str) -> RepoPath {
        RepoPath::root().join(text).unwrap()
    }

    fn source(root: &Path, folder: &str) -> LocalSource {
        LocalSource {
            root: root.to_owned(),
            source: Source { path: Some(folder.to_owned()), ..Source::default() },
            index: 0,
            overrides: None,
            app: AppFacts::default(),
            facts: RenderFacts::default(),
            refs: BTreeMap::new(),
        }
    }

    fn id(name: &str) -> AppId {
        AppId { namespace: "argocd".to_owned(), name: name.to_owned() }
    }

    fn app(root: &Path, name: &str, folder: &str) -> Reader {
        Reader {
            app: Some(id(name)),
            instance: name.to_owned(),
            namespace: None,
            scopes: Scopes::built_in(),
            source: source(root, folder),
        }
    }

    /// Folders with the resources of their kustomizations, and apps as name and folder.
    fn readers(root: &Path, kustomizations: &[(&str, &str)], apps: &[(&str, &str)]) -> Readers {
        for (folder, resource) in kustomizations {
            std::fs::create_dir_all(root.join(folder)).unwrap();
            let text = format!("namespace: base\nresources: [{resource}]\n");
            std::fs::write(root.join(folder).join("kustomization.yaml"), text).unwrap();
        }
        let apps = apps.iter().map(|(name, folder)| app(root, name, folder)).collect();
        Readers::search(&BTreeSet::from([root.to_owned()]), apps)
    }

    fn others(root: &Path, readers: &Readers, file: &str) -> Vec<String> {
        let place = FilePlace { root: root.to_owned(), path: path(file) };
        let others = readers.others(&place, &id("prod"), &source(root, "prod"));
        others.iter().map(Reader::name).collect()
    }

    #[test]
    fn a_base_belongs_to_an_app_if_all_ways_to_it_lead_through_the_app() {
        let scratch = tempfile::tempdir().unwrap();
        let root = scratch.path().canonicalize().unwrap();
        let only = |kustomizations: &[(&str, &str)], apps: &[(&str, &str)]| {
            let folder = tempfile::tempdir_in(&root).unwrap();
            let root = folder.path();
            let readers = readers(root, kustomizations, apps);
            std::fs::create_dir_all(root.join("base")).unwrap();
            std::fs::write(root.join("base/web.yaml"), "").unwrap();
            readers.only_of(&id("prod"), &source(root, "prod"), "base/web.yaml").is_some()
        };
        let (base, prod) = (("base", "web.yaml"), ("prod", "../base"));
        let own = ("prod", "prod");
        assert!(only(&[base, prod], &[own, ("elsewhere", "elsewhere")]));
        assert!(only(&[base, ("middle", "../base"), ("prod", "../middle")], &[own]));
        // Another overlay, one that names the file itself, an app of the base, an app of a folder around it.
        assert!(!only(&[base, prod, ("test", "../base")], &[own]));
        assert!(!only(&[base, prod, ("test", "../base/web.yaml")], &[own]));
        assert!(!only(&[base, prod], &[own, ("base", "base")]));
        assert!(!only(&[base, prod], &[own, ("all", ".")]));
        assert!(!only(&[base, prod], &[own, ("twin", "prod")]), "two apps of one folder");
        assert!(!only(&[base], &[own]));
    }

    #[test]
    fn an_app_of_the_same_name_in_another_namespace_is_another_reader() {
        let scratch = tempfile::tempdir().unwrap();
        let root = scratch.path().canonicalize().unwrap();
        let mut twin = app(&root, "prod", "prod");
        twin.app = Some(AppId { namespace: "team".to_owned(), ..id("prod") });
        let readers = Readers::search(&BTreeSet::new(), vec![app(&root, "prod", "prod"), twin]);
        assert_eq!(others(&root, &readers, "prod/web.yaml"), ["the app prod"]);
    }

    #[test]
    fn every_other_reader_of_a_file_is_known() {
        let scratch = tempfile::tempdir().unwrap();
        let root = scratch.path().canonicalize().unwrap();
        let kustomizations =
            [("prod", "web.yaml"), ("test", "../prod"), ("top/all", "../../test"), ("base", "x.yaml")];
        let apps = [("prod", "prod"), ("twin", "prod"), ("all", "."), ("base", "base")];
        let readers = readers(&root, &kustomizations, &apps);
        let expected = ["the app twin", "the app all", "the kustomization top/all"];
        assert_eq!(others(&root, &readers, "prod/web.yaml"), expected);
        assert_eq!(others(&root, &readers, "prod/kustomization.yaml"), expected);
        // The namespace `base` of the kustomizations is no path.
        assert_eq!(others(&root, &readers, "base/x.yaml"), ["the app all", "the app base"]);
        let mut apps =
            vec![app(&root, "near", "near"), app(&root, "far", "far"), app(&root, "other", "other")];
        for (app, file) in
            apps.iter_mut().zip(["../prod/values.yaml", "$values/prod/values.yaml", "values.yaml"])
        {
            let options = HelmOptions { value_files: vec![file.to_owned()], ..HelmOptions::default() };
            app.source.source.tool = Some(SourceTool::Helm(Box::new(options)));
            app.source.refs = BTreeMap::from([("values".to_owned(), root.clone())]);
        }
        let readers = Readers::search(&BTreeSet::new(), apps);
        assert_eq!(others(&root, &readers, "prod/values.yaml"), ["the app near", "the app far"]);
    }
}
