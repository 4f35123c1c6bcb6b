//! All apps of a repository.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

use plumb_core::app::AppId;
use plumb_core::desired::Scopes;
use plumb_core::object::Manifest;
use plumb_core::source::RepoPath;
use plumb_crd::application::ApplicationSpec;
use plumb_crd::to_app;
use serde_json::Value;

use super::app::{Failure, Rendering};
use super::applications::{FoundApplication, documents, of};
use super::sets::{FoundSet, SetSources, from_set, set_in};
use super::{RepositoryApp, RepositoryRenderer, RepositoryState, bare};
use crate::context::Context;

/// An app of apps that renders itself would not come to an end.
const MOST_APPS: usize = 5_000;

/// The apps of a repository at one state.
pub(crate) struct LoadedRepository {
    /// By name.
    pub(crate) apps: Vec<RepositoryApp>,
    /// What they may say about kinds.
    pub(crate) crds: Vec<Manifest>,
    /// Sets whose clusters no file names.
    pub(crate) lack_clusters: Vec<String>,
    /// Applications that are not among the apps, because another one has their name.
    twins: Vec<Twin>,
}

/// An Application that has the name of another one, and says something else.
struct Twin {
    name: String,
    file: String,
    /// The file of the other one.
    other: String,
}

impl LoadedRepository {
    /// Names the Applications that are not among the apps.
    pub(crate) fn note_twins(&self, context: &Context) {
        for Twin { name, file, other } in &self.twins {
            context.out.note(&format!(
                "note: {name} in {file} is not checked: another Application of this name is in {other}\n\
                 hint: name the directory of the one to check"
            ));
        }
    }
}

/// What waits to be rendered, and what was seen.
#[derive(Default)]
struct Waiting {
    applications: Vec<FoundApplication>,
    sets: Vec<FoundSet>,
    lack_clusters: Vec<String>,
}

impl Waiting {
    /// Takes a document, if it is an Application or a set.
    fn take(&mut self, value: &Value, file: &str) {
        if let Some(application) = of(value) {
            self.applications.push(FoundApplication { application, file: file.to_owned() });
        } else if let Some(set) = set_in(value) {
            self.sets.push(FoundSet { set, file: file.to_owned() });
        }
    }

    /// Of Applications with the same name, those in these directories come first. The last one waiting is taken first.
    fn prefer(&mut self, directories: &[String]) {
        let directories: Vec<RepoPath> =
            directories.iter().filter_map(|path| RepoPath::root().join(path).ok()).collect();
        self.applications.sort_by_cached_key(|found| {
            let file = RepoPath::parse(&found.file);
            file.is_ok_and(|file| directories.iter().any(|directory| file.is_within(directory)))
        });
    }

    /// Generates the Applications of the sets. Returns an app for each set that fails.
    fn generate(&mut self, sources: &SetSources<'_>, seen: &mut SeenSets) -> Vec<RepositoryApp> {
        let mut failed = Vec::new();
        for found in std::mem::take(&mut self.sets) {
            let name = &found.set.metadata.name;
            if !seen.sets.insert((found.set.metadata.namespace.clone(), name.clone())) {
                continue;
            }
            let mut generated = from_set(sources, &found);
            if generated.lacks_clusters {
                self.lack_clusters.push(name.clone());
            }
            let other = generated.applications.iter().find_map(|one| {
                let id = one.application.id();
                let other = seen.owners.insert(id.clone(), name.clone())?;
                Some(format!("the ApplicationSet {other} generates the Application {}, too", id.name))
            });
            if let Some(failure) = generated.failure.take().or(other.map(Failure::Broken)) {
                failed.push(RepositoryApp::of_set(name, &found.file, failure));
            }
            self.applications.extend(generated.applications);
        }
        failed
    }
}

/// The sets so far, and which set generates which Application.
#[derive(Default)]
struct SeenSets {
    sets: BTreeSet<(String, String)>,
    owners: BTreeMap<AppId, String>,
}

/// The Applications so far, each with its file.
#[derive(Default)]
struct SeenApplications {
    first: BTreeMap<AppId, (ApplicationSpec, String)>,
    twins: Vec<Twin>,
}

impl SeenApplications {
    /// Is it the first one of its name?
    fn is_new(&mut self, id: AppId, found: &FoundApplication) -> bool {
        match self.first.entry(id) {
            Entry::Vacant(entry) => {
                entry.insert((found.application.spec.clone(), found.file.clone()));
                true
            }
            Entry::Occupied(entry) => {
                let (spec, other) = entry.get();
                // What an app of apps renders from a file may say more than the file.
                if *other != found.file && *spec != found.application.spec {
                    self.twins.push(Twin {
                        name: entry.key().name.clone(),
                        file: found.file.clone(),
                        other: other.clone(),
                    });
                }
                false
            }
        }
    }
}

/// Renders every Application in the files, those that sets generate, and those that they render themselves. Without any, the directories are the
/// apps. `twice` renders a second time.
pub(crate) async fn load(
    renderer: &RepositoryRenderer,
    state: &RepositoryState,
    control_plane: &str,
    directories: &[String],
    twice: bool,
) -> LoadedRepository {
    let mut waiting = Waiting::default();
    for (value, file) in documents(state) {
        waiting.take(&value, &file);
    }
    let sources = renderer.set_sources(state);
    let mut seen_sets = SeenSets::default();
    let mut seen = SeenApplications::default();
    let mut apps = waiting.generate(&sources, &mut seen_sets);
    waiting.prefer(directories);
    while let Some(found) = waiting.applications.pop() {
        // A file may leave out the namespace. Then the app is taken to be in the control-plane namespace.
        let mut id = found.application.id();
        if id.namespace.is_empty() {
            control_plane.clone_into(&mut id.namespace);
        }
        if apps.len() >= MOST_APPS || !seen.is_new(id, &found) {
            continue;
        }
        let FoundApplication { application, file } = found;
        let app = match to_app(&application) {
            Ok(app) => app,
            Err(problems) => {
                let why: Vec<String> = problems.iter().map(|problem| problem.message.clone()).collect();
                let failure = Some(Failure::Broken(why.join("; ")));
                let rendering = Rendering { failure, ..Rendering::default() };
                apps.push(RepositoryApp::of_directory(&application.metadata.name, &file, rendering));
                continue;
            }
        };
        let id = &app.id;
        let instance =
            if id.namespace.is_empty() { id.name.clone() } else { id.instance_name(control_plane) };
        let rendering = renderer.application(state, &application, (&app, &instance), twice).await;
        for document in &rendering.first {
            let file = document.origin.as_ref().map_or(file.as_str(), |origin| origin.file.as_str());
            waiting.take(&document.value, file);
        }
        apps.extend(waiting.generate(&sources, &mut seen_sets));
        apps.push(RepositoryApp::of_application(&application, &app, (&file, control_plane), rendering));
    }
    if apps.is_empty() {
        // A directory that this state does not have yet is no app.
        let existing = directories.iter().filter(|path| *path == "." || state.has_directory(path));
        for path in existing {
            let last = path.rsplit('/').next().filter(|name| !name.is_empty() && *name != ".");
            let of_root = state.root.file_name().and_then(|name| name.to_str());
            let name = last.or(of_root).unwrap_or("app");
            let rendering = renderer.directory(state, &bare::source(state, path), name, twice).await;
            apps.push(RepositoryApp::of_directory(name, path, rendering));
        }
    }
    settle(apps, waiting.lack_clusters, seen.twins)
}

fn settle(mut apps: Vec<RepositoryApp>, lack_clusters: Vec<String>, twins: Vec<Twin>) -> LoadedRepository {
    let documents = apps.iter().flat_map(RepositoryApp::rendered);
    let crds: Vec<Manifest> = documents
        .filter(|document| document.value["kind"] == "CustomResourceDefinition")
        .filter_map(|document| Manifest::new(document.value.clone()).ok())
        .collect();
    let scopes = Scopes::built_in().with_crds(crds.iter());
    for app in &mut apps {
        app.settle(&scopes);
    }
    apps.sort_by(|one, other| one.name.cmp(&other.name));
    LoadedRepository { apps, crds, lack_clusters, twins }
}
