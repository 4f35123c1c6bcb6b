//! Where the Applications themselves are in the working copies.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use plumb_core::app::{AppId, Destination, Source};
use plumb_core::object::{FieldPath, Manifest, ObjectKey};
use plumb_core::yaml::{Limits, parse_documents_bytes};
use plumb_crd::{Application, ApplicationSet, to_app};
use serde_json::Value;

use super::place::FilePlace;

/// Larger files are not read: no file of Applications is.
const MAX_BYTES: u64 = 4 << 20;
/// So deep are folders searched.
const MAX_DEPTH: usize = 16;

/// The files that describe Applications or sets of them, by kind and name.
#[derive(Default)]
pub(super) struct ApplicationFiles {
    found: BTreeMap<(String, String), Vec<Found>>,
}

struct Found {
    place: FilePlace,
    namespace: Option<String>,
    line: usize,
    application: Option<Application>,
}

/// What tells an Application of the cluster from others of its name.
#[derive(Clone, Debug, Default)]
pub(super) struct Written {
    /// The `ApplicationSet` that makes it.
    pub(super) set: Option<String>,
    content: Option<(Vec<Source>, Destination)>,
}

impl Written {
    pub(super) fn of(application: &Application) -> Self {
        let owners = application.metadata.owner_references.iter().map(|owner| &owner.0);
        let text = |owner: &serde_json::Map<String, Value>, field: &str| {
            owner.get(field).and_then(Value::as_str).map(str::to_owned)
        };
        let mut sets = owners.filter(|owner| text(owner, "kind").as_deref() == Some(ApplicationSet::KIND));
        Self { set: sets.next().and_then(|owner| text(owner, "name")), content: content(application) }
    }

    /// Does it say what this Application says, as far as another one of the same name would not?
    fn is(&self, application: Option<&Application>) -> bool {
        self.content.is_some() && application.and_then(content) == self.content
    }
}

/// What an Application deploys, and where.
fn content(application: &Application) -> Option<(Vec<Source>, Destination)> {
    to_app(application).ok().map(|app| (app.sources, app.destination))
}

/// The document of an Application, or of the set that makes it.
pub(super) struct ApplicationFile {
    pub(super) place: FilePlace,
    /// Its key, as the document spells it.
    pub(super) key: ObjectKey,
    pub(super) line: usize,
    /// Where the Application is in the document.
    pub(super) inside: FieldPath,
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
            let (kind, is_set) = (manifest.kind(), manifest.kind() == ApplicationSet::KIND);
            if manifest.group() != "argoproj.io" || (kind != Application::KIND && !is_set) {
                continue;
            }
            if let Some(name) = manifest.name() {
                self.found.entry((kind.to_owned(), name.to_owned())).or_default().push(Found {
                    place: place.clone(),
                    namespace: manifest.namespace().map(str::to_owned),
                    line: document.line,
                    application: Application::from_json(manifest.value()).ok().filter(|_| !is_set),
                });
            }
        }
    }

    /// The Applications that the files describe.
    pub(super) fn all(&self) -> impl Iterator<Item = &Application> {
        self.found.values().flatten().filter_map(|found| found.application.as_ref())
    }

    /// The document of an app, or of the set that makes it: what a set makes, it also changes back. In words, why there is
    /// none.
    pub(super) fn of(&self, app: &AppId, written: &Written) -> Result<ApplicationFile, String> {
        let (kind, name, inside) = match &written.set {
            Some(set) => (ApplicationSet::KIND, set, FieldPath::from_pointer("/spec/template")),
            None => (Application::KIND, &app.name, FieldPath::root()),
        };
        let all = self.found.get(&(kind.to_owned(), name.clone())).map(Vec::as_slice).unwrap_or_default();
        let is_it =
            |found: &&Found| found.namespace.as_ref().is_none_or(|namespace| *namespace == app.namespace);
        let mut matching: Vec<&Found> = all.iter().filter(is_it).collect();
        if matching.len() > 1 && matching.iter().any(|found| written.is(found.application.as_ref())) {
            // Those of several control planes have the same name.
            matching.retain(|found| written.is(found.application.as_ref()));
        }
        let name = || AppId { namespace: app.namespace.clone(), name: name.clone() };
        match matching.as_slice() {
            [] => Err(format!("no file of the working copies describes the {kind} {}", name())),
            [one, other, ..] => Err(format!(
                "the {kind} {} is described twice: in {} and in {}",
                name(),
                one.place.path,
                other.place.path
            )),
            [found] => Ok(ApplicationFile {
                place: found.place.clone(),
                key: ObjectKey::new("argoproj.io", kind, Some(app.namespace.clone()), name().name),
                line: found.line,
                inside,
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn application(server: &str, owners: &Value) -> Value {
        json!({"apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
            "metadata": {"name": "shop", "namespace": "argocd", "ownerReferences": owners},
            "spec": {"project": "default", "destination": {"server": server, "namespace": "shop"},
                "source": {"repoURL": "https://example.com/shop.git", "path": "shop"}}})
    }

    /// The place of the document of the app `shop`, or why there is none.
    fn found(files: &[(&str, Value)], live: &Value) -> String {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        for (name, object) in files {
            std::fs::write(root.join(name), object.to_string()).unwrap();
        }
        let written = Written::of(&Application::from_json(live).unwrap());
        let app = AppId { namespace: "argocd".to_owned(), name: "shop".to_owned() };
        match ApplicationFiles::search(&BTreeSet::from([root])).of(&app, &written) {
            Ok(file) => format!("{} {}", file.place.path, file.inside),
            Err(why) => why,
        }
    }

    #[test]
    fn of_two_applications_of_a_name_it_is_the_one_with_its_content() {
        let (dev, prod) = ("https://dev.example.com", "https://kubernetes.default.svc");
        let file = |server: &str| application(server, &json!([]));
        let files = [("dev.json", file(dev)), ("prod.json", file(prod))];
        assert_eq!(found(&files, &file(prod)), "prod.json ");
        let alike = [("a.json", file(prod)), ("b.json", file(prod))];
        assert!(found(&alike, &file(prod)).starts_with("the Application argocd/shop is described twice"));
        // One that was changed since is still the only one.
        assert_eq!(found(&[("dev.json", file(dev))], &file(prod)), "dev.json ");
        assert!(found(&files, &file("https://third.example.com")).contains("described twice"));
    }

    #[test]
    fn an_application_of_a_set_is_changed_in_the_set() {
        let owners = json!([{"apiVersion": "argoproj.io/v1alpha1", "kind": "ApplicationSet", "name": "shops", "uid": "u"}]);
        let live = application("https://kubernetes.default.svc", &owners);
        let set = json!({"apiVersion": "argoproj.io/v1alpha1", "kind": "ApplicationSet",
            "metadata": {"name": "shops"}, "spec": {"template": {}}});
        assert_eq!(found(&[("set.json", set)], &live), "set.json /spec/template");
        assert_eq!(
            found(&[("shop.json", live.clone())], &live),
            "no file of the working copies describes the ApplicationSet argocd/shops"
        );
    }
}
