//! Where the Applications themselves are in the working copies.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use plumb_core::app::AppId;
use plumb_core::object::{Manifest, ObjectKey};
use plumb_core::yaml::{Limits, parse_documents_bytes};
use plumb_crd::Application;

use super::place::FilePlace;

/// Larger files are not read: no file of Applications is.
const MAX_BYTES: u64 = 4 << 20;
/// So deep are folders searched.
const MAX_DEPTH: usize = 16;

/// The files that describe Applications, by the name of the Application.
#[derive(Default)]
pub(super) struct ApplicationFiles {
    found: BTreeMap<String, Vec<Found>>,
}

struct Found {
    place: FilePlace,
    namespace: Option<String>,
    line: usize,
    application: Option<Application>,
}

/// The document of an Application.
pub(super) struct ApplicationFile {
    pub(super) place: FilePlace,
    /// Its key, as the document spells it.
    pub(super) key: ObjectKey,
    pub(super) line: usize,
}

impl ApplicationFiles {
    /// Searches working copies.
    pub(super) fn search(roots: &BTreeSet<PathBuf>) -> Self {
        let mut files = Self::default();
        for root in roots {
            files.walk(root, root, MAX_DEPTH);
        }
        files
    }

    fn walk(&mut self, root: &Path, folder: &Path, depth: usize) {
        // A folder that cannot be read has no Application that plumb could change.
        let Ok(entries) = std::fs::read_dir(folder) else { return };
        for entry in entries.flatten() {
            let (path, Ok(kind)) = (entry.path(), entry.file_type()) else { continue };
            let is_yaml =
                || path.extension().is_some_and(|end| end == "yaml" || end == "yml" || end == "json");
            if kind.is_dir() && depth > 0 && entry.file_name() != ".git" {
                self.walk(root, &path, depth - 1);
            } else if kind.is_file()
                && is_yaml()
                && entry.metadata().is_ok_and(|data| data.len() <= MAX_BYTES)
            {
                self.read(root, &path);
            }
        }
    }

    /// Templates are not YAML, and are passed over.
    fn read(&mut self, root: &Path, path: &Path) {
        let Ok(bytes) = std::fs::read(path) else { return };
        let Ok(documents) = parse_documents_bytes(&bytes, &Limits::default()) else { return };
        let file = path.strip_prefix(root).ok().and_then(Path::to_str);
        let Some(place) = file.and_then(|file| FilePlace::find(root, file).ok()) else { return };
        for document in documents {
            let Ok(manifest) = Manifest::new(document.value) else { continue };
            let is_application = manifest.kind() == Application::KIND && manifest.group() == "argoproj.io";
            if let Some(name) = manifest.name().filter(|_| is_application) {
                self.found.entry(name.to_owned()).or_default().push(Found {
                    place: place.clone(),
                    namespace: manifest.namespace().map(str::to_owned),
                    line: document.line,
                    application: Application::from_json(manifest.value()).ok(),
                });
            }
        }
    }

    /// The Applications that the files describe.
    pub(super) fn all(&self) -> impl Iterator<Item = &Application> {
        self.found.values().flatten().filter_map(|found| found.application.as_ref())
    }

    /// The document of an app; in words, why there is none.
    pub(super) fn of(&self, app: &AppId) -> Result<ApplicationFile, String> {
        let all = self.found.get(&app.name).map(Vec::as_slice).unwrap_or_default();
        let is_it =
            |found: &&Found| found.namespace.as_ref().is_none_or(|namespace| *namespace == app.namespace);
        let mut matching = all.iter().filter(is_it);
        match (matching.next(), matching.next()) {
            (None, _) => Err(format!("no file of the working copies describes the Application {app}")),
            (Some(one), Some(other)) => Err(format!(
                "the Application {app} is described twice: in {} and in {}",
                one.place.path, other.place.path
            )),
            (Some(found), None) => Ok(ApplicationFile {
                place: found.place.clone(),
                key: ObjectKey::new(
                    "argoproj.io",
                    Application::KIND,
                    Some(app.namespace.clone()),
                    app.name.clone(),
                ),
                line: found.line,
            }),
        }
    }
}
