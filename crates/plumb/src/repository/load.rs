//! All apps of a repository.

use std::collections::BTreeSet;

use plumb_core::app::AppId;
use plumb_core::desired::Scopes;
use plumb_core::object::Manifest;
use plumb_crd::to_app;

use super::app::{Failure, Rendering};
use super::applications::{FoundApplication, find, of};
use super::{RepositoryApp, RepositoryRenderer, RepositoryState, bare};

/// An app of apps that renders itself would not come to an end.
const MOST_APPS: usize = 5_000;

/// The apps of a repository at one state.
pub(crate) struct LoadedRepository {
    /// By name.
    pub(crate) apps: Vec<RepositoryApp>,
    /// What they may say about kinds.
    pub(crate) crds: Vec<Manifest>,
}

/// Renders every Application in the files, and those that they render themselves. Without any, the directories are the
/// apps. `twice` renders a second time.
pub(crate) async fn load(
    renderer: &RepositoryRenderer,
    state: &RepositoryState,
    control_plane: &str,
    directories: &[String],
    twice: bool,
) -> LoadedRepository {
    let mut waiting = find(state);
    let mut seen: BTreeSet<AppId> = BTreeSet::new();
    let mut apps = Vec::new();
    while let Some(FoundApplication { application, file }) = waiting.pop() {
        // A file may leave out the namespace. Then the app is taken to be in the control-plane namespace.
        let mut id = application.id();
        if id.namespace.is_empty() {
            control_plane.clone_into(&mut id.namespace);
        }
        if apps.len() >= MOST_APPS || !seen.insert(id) {
            continue;
        }
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
        let children = rendering.first.iter().filter_map(|document| {
            let file = document.origin.as_ref().map_or_else(|| file.clone(), |origin| origin.file.clone());
            Some(FoundApplication { application: of(&document.value)?, file })
        });
        waiting.extend(children);
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
    settle(apps)
}

fn settle(mut apps: Vec<RepositoryApp>) -> LoadedRepository {
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
    LoadedRepository { apps, crds }
}
