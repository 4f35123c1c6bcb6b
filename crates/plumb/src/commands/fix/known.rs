//! Everything that is known to be rendered from the working copies.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use plumb_core::app::Source;
use plumb_core::desired::Scopes;
use plumb_core::project::normalize_repo_url;
use plumb_crd::{Application, to_app};

use super::case::Case;
use super::readers::Reader;
use crate::local::{LocalSource, RenderFacts, own_urls};

/// The apps of the cluster, and further Applications, if their repository is one of the working copies.
pub(super) fn all_readers<'apps>(
    mut readers: Vec<Reader>,
    cases: &[Case],
    applications: impl Iterator<Item = &'apps Application>,
    control_plane: &str,
) -> Vec<Reader> {
    let is_known = |readers: &[Reader], reader: &Reader| {
        readers.iter().any(|known| {
            known.app == reader.app
                && known.source.root == reader.source.root
                && known.source.source.path == reader.source.source.path
        })
    };
    for reader in cases.iter().flat_map(Case::readers) {
        if !is_known(&readers, &reader) {
            readers.push(reader);
        }
    }
    let mut urls: BTreeMap<PathBuf, BTreeSet<String>> = BTreeMap::new();
    for source in readers.iter().map(|reader| &reader.source) {
        let of_root = urls.entry(source.root.clone()).or_insert_with(|| own_urls(&source.root));
        of_root.insert(normalize_repo_url(&source.source.repo_url));
    }
    let facts = readers.first().map(|reader| reader.source.facts.clone()).unwrap_or_default();
    let others =
        applications.flat_map(|application| of_application(application, &urls, control_plane, &facts));
    for reader in others {
        if !is_known(&readers, &reader) {
            readers.push(reader);
        }
    }
    readers
}

/// The sources of an Application in a file. One that cannot be read is rendered from nothing.
fn of_application(
    application: &Application,
    urls: &BTreeMap<PathBuf, BTreeSet<String>>,
    control_plane: &str,
    facts: &RenderFacts,
) -> Vec<Reader> {
    let Ok(mut app) = to_app(application) else { return Vec::new() };
    if app.id.namespace.is_empty() {
        // A file without a namespace is applied to that of the control plane.
        control_plane.clone_into(&mut app.id.namespace);
    }
    let instance = app.id.instance_name(control_plane);
    let root_of = |other: &Source| {
        let url = normalize_repo_url(&other.repo_url);
        urls.iter().find(|(_, urls)| urls.contains(&url)).map(|(root, _)| root.clone())
    };
    let mut readers = Vec::new();
    for (index, source) in app.sources.iter().enumerate() {
        let Some(path) = source.path.as_deref().filter(|_| source.chart.is_none()) else { continue };
        let url = normalize_repo_url(&source.repo_url);
        let roots = urls.iter().filter(|(root, urls)| urls.contains(&url) && root.join(path).is_dir());
        readers.extend(roots.map(|(root, _)| Reader {
            app: Some(app.id.clone()),
            instance: instance.clone(),
            namespace: app.destination.namespace.clone(),
            scopes: Scopes::built_in(),
            source: LocalSource::of_app(
                root,
                application,
                &app,
                (index, source),
                control_plane,
                facts,
                &root_of,
            ),
        }));
    }
    readers
}
