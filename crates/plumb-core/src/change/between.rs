//! The change of all apps.

use std::collections::{BTreeMap, BTreeSet};

use super::fields::changed;
use super::immutable::refused;
use super::restart::restarts;
use super::unstable::covers;
use super::{ObjectChange, Outcome};
use crate::desired::{DesiredObject, DesiredSet, PruneOption};
use crate::object::{FieldPath, ObjectKey};
use crate::schema::SchemaSet;

/// One app at one state of the repository.
#[derive(Clone, Debug, PartialEq)]
pub struct AppState {
    /// Its name.
    pub name: String,
    /// The cluster that it is for.
    pub destination: String,
    /// Does it delete objects that Git no longer has, by itself?
    pub prunes: bool,
    /// Are its objects deleted with it?
    pub cascades: bool,
    /// What it asks for.
    pub desired: DesiredSet,
    /// The fields that differ in each render: no commit changes them. The root stands for an object with another name in
    /// each render.
    pub unstable: BTreeMap<ObjectKey, Vec<FieldPath>>,
    /// Could it be rendered? If not, nothing is known about its objects.
    pub is_rendered: bool,
}

/// What changes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RepositoryChange {
    /// Apps that only the new state has.
    pub apps_added: Vec<String>,
    /// Apps that only the old state has.
    pub apps_removed: Vec<String>,
    /// Apps that could not be rendered in one of the states: nothing is said about their objects.
    pub unknown: Vec<String>,
    /// The objects, by app and key.
    pub objects: Vec<ObjectChange>,
}

impl AppState {
    fn is_unstable(&self, key: &ObjectKey, place: &FieldPath) -> bool {
        self.unstable.get(key).is_some_and(|fields| covers(fields, place))
    }
}

/// Compares two states of a repository.
pub fn between(old: &[AppState], new: &[AppState], schemas: &SchemaSet) -> RepositoryChange {
    let by_name =
        |apps: &[AppState]| -> BTreeSet<String> { apps.iter().map(|app| app.name.clone()).collect() };
    let (old_names, new_names) = (by_name(old), by_name(new));
    let unknown: BTreeSet<String> =
        old.iter().chain(new).filter(|app| !app.is_rendered).map(|app| app.name.clone()).collect();
    let known = |app: &&AppState| !unknown.contains(&app.name);
    let before = objects(old.iter().filter(known));
    let after = objects(new.iter().filter(known));
    let mut changes: Vec<ObjectChange> = Vec::new();
    for (place, (app, object)) in &after {
        let outcome = match before.get(place) {
            None => (!app.is_unstable(&object.key, &FieldPath::root())).then_some(Outcome::Added),
            Some((owner, earlier)) => outcome(owner, (app, object), earlier, schemas),
        };
        changes.extend(outcome.map(|outcome| change(app, object, outcome)));
    }
    for (place, (app, object)) in before.iter().filter(|(place, _)| !after.contains_key(*place)) {
        // An app that cannot be rendered any more may have it.
        let still = new.iter().find(|other| other.name == app.name);
        let outcome =
            left(&place.1, object, still.map_or(app.cascades, |still| still.prunes), still.is_some());
        changes.push(change(app, object, outcome));
    }
    changes.sort_by(|one, other| (&one.app, &one.key).cmp(&(&other.app, &other.key)));
    RepositoryChange {
        apps_added: new_names.difference(&old_names).cloned().collect(),
        apps_removed: old_names.difference(&new_names).cloned().collect(),
        unknown: unknown.into_iter().collect(),
        objects: changes,
    }
}

type Objects<'apps> = BTreeMap<(&'apps str, ObjectKey), (&'apps AppState, &'apps DesiredObject)>;

/// The objects by cluster and key. Of two apps that ask for the same one, the first counts.
fn objects<'apps>(apps: impl Iterator<Item = &'apps AppState>) -> Objects<'apps> {
    let mut objects = Objects::new();
    for app in apps {
        for (key, object) in &app.desired.objects {
            objects.entry((app.destination.as_str(), key.clone())).or_insert((app, object));
        }
    }
    objects
}

fn change(app: &AppState, object: &DesiredObject, outcome: Outcome) -> ObjectChange {
    ObjectChange { app: app.name.clone(), key: object.key.clone(), outcome, origin: object.origin.clone() }
}

/// What happens to an object that both states have; `None` if nothing does.
fn outcome(
    owner: &AppState,
    (app, object): (&AppState, &DesiredObject),
    earlier: &DesiredObject,
    schemas: &SchemaSet,
) -> Option<Outcome> {
    let mut fields = changed(&earlier.manifest, &object.manifest, schemas);
    fields.retain(|field| !app.is_unstable(&object.key, &field.path));
    if owner.name != app.name {
        return Some(Outcome::Moved { from: owner.name.clone(), fields });
    }
    if fields.is_empty() {
        return None;
    }
    let paths: Vec<FieldPath> = fields.iter().map(|field| field.path.clone()).collect();
    let refused = refused(&earlier.manifest, &object.manifest, &paths);
    let is_recreated = !refused.is_empty() && object.options.replace && object.options.force;
    Some(Outcome::Changed {
        restarts: restarts(&object.manifest, &paths),
        refused: if is_recreated { Vec::new() } else { refused },
        is_recreated,
        fields,
    })
}

fn left(key: &ObjectKey, object: &DesiredObject, deletes: bool, has_app: bool) -> Outcome {
    let option = if has_app { object.options.prune } else { object.options.delete };
    match option {
        Some(PruneOption::Never) => Outcome::Left { why: "its sync options keep it" },
        Some(PruneOption::Confirm) => Outcome::Left { why: "a user must confirm the deletion" },
        _ if object.options.helm_keep => Outcome::Left { why: "helm.sh/resource-policy keeps it" },
        _ if deletes => Outcome::Deleted { data: data_in(key) },
        _ if has_app => Outcome::Left { why: "its app does not prune automatically" },
        _ => Outcome::Left { why: "its app has no finalizer that deletes its objects" },
    }
}

/// What is lost with an object of this kind.
fn data_in(key: &ObjectKey) -> Option<&'static str> {
    match (key.group.as_str(), key.kind.as_str()) {
        ("", "PersistentVolumeClaim") => Some("the claim's volume"),
        ("", "PersistentVolume") => Some("the volume"),
        ("", "Namespace") => Some("everything in the namespace"),
        ("apiextensions.k8s.io", "CustomResourceDefinition") => Some("all objects of the kind"),
        _ => None,
    }
}
