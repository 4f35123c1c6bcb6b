//! Who refers to an object by name, and in which order orphans can go.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use plumb_core::app::AppId;
use plumb_core::object::ObjectKey;
use plumb_core::orphans::order;
use plumb_crd::Application;
use plumb_engine::{KnownApp, Leader};
use serde_json::{Value, json};

use super::caller::PageCaller;

/// How many users are named beside an object of a list.
const NAMED: usize = 3;
/// Of how many objects of a list the users are looked up.
const MOST_LOOKED_UP: usize = 200;
/// Of how many deletions of a plan.
const MOST_OF_A_PLAN: usize = 50;

/// The apps by the name that their objects carry.
pub(super) struct AppsByInstance(HashMap<String, (AppId, String)>);

impl AppsByInstance {
    pub(super) fn of(leader: &Leader, home: &str) -> Self {
        let apps = leader.apps();
        let heads = apps.iter().filter_map(KnownApp::head);
        let named = heads.map(|head| {
            let id = head.id();
            (id.instance_name(home), (id, head.project().to_owned()))
        });
        Self(named.collect())
    }
}

/// Who refers to one object.
#[derive(Default)]
pub(super) struct Users {
    /// Those that the caller may see, each with its app.
    pub(super) shown: Vec<Value>,
    /// How many others there are.
    pub(super) n_hidden: usize,
    keys: BTreeSet<ObjectKey>,
}

/// Who refers to an object of an app; `None` if the cluster is not connected. An object that no app tracks is a neighbour,
/// such as a pod, if it is in the same namespace.
pub(super) fn users_of(
    caller: &PageCaller,
    leader: &Leader,
    apps: &AppsByInstance,
    app: &Application,
    key: &ObjectKey,
) -> Option<Users> {
    let mut users = Users::default();
    for node in leader.referrers(app, key)? {
        let of = node.owner.as_deref().and_then(|instance| apps.0.get(instance));
        let sees = match (&node.owner, of) {
            (_, Some((id, project))) => caller.may_see(project, id),
            (None, None) => node.key.namespace == key.namespace,
            (Some(_), None) => false,
        };
        if sees {
            let of = of.map(|(id, _)| json!([id.namespace, id.name]));
            let found = &node.key;
            users.shown.push(
                json!({"group": found.group, "kind": found.kind, "namespace": found.namespace_or_empty(),
                                    "name": found.name, "app": of}),
            );
        } else {
            users.n_hidden += 1;
        }
        users.keys.insert(node.key);
    }
    Some(users)
}

/// The object that an entry of a list names.
fn key_of(object: &Value) -> ObjectKey {
    let text = |field: &str| object.get(field).and_then(Value::as_str).unwrap_or_default();
    let namespace = Some(text("namespace")).filter(|namespace| !namespace.is_empty());
    ObjectKey::new(text("group"), text("kind"), namespace.map(str::to_owned), text("name"))
}

/// Writes the users beside an object: a few by name, and how many there are.
fn note(entry: &mut Value, users: &Users) {
    entry["users"] = users.shown.iter().take(NAMED).cloned().collect();
    entry["used"] = json!(users.shown.len() + users.n_hidden);
}

/// Names who uses each orphan, and sorts them: by app, and in the order in which they can go.
pub(super) fn note_users_of_orphans(caller: &PageCaller, list: &mut Value) {
    let Some(leader) = caller.shared.handle.leader() else { return };
    let Some(orphans) = list.get_mut("orphans").and_then(Value::as_array_mut) else { return };
    if orphans.is_empty() {
        return;
    }
    let apps = AppsByInstance::of(&leader, caller.shared.state.namespace());
    let known = leader.apps();
    let heads: HashMap<AppId, &Application> =
        known.iter().filter_map(KnownApp::head).map(|head| (head.id(), head)).collect();
    let app_of = |entry: &Value| {
        let text = |place: &str| entry.pointer(place).and_then(Value::as_str).unwrap_or_default().to_owned();
        AppId { namespace: text("/app/0"), name: text("/app/1") }
    };
    let mut used: BTreeMap<AppId, BTreeMap<ObjectKey, BTreeSet<ObjectKey>>> = BTreeMap::new();
    for entry in orphans.iter_mut().take(MOST_LOOKED_UP) {
        let id = app_of(entry);
        let key = key_of(&entry["object"]);
        // What the project does not permit is not the app's, whatever the report says.
        let head = heads.get(&id).filter(|head| leader.denies(head, &key).is_none());
        let users = head.and_then(|head| users_of(caller, &leader, &apps, head, &key));
        let Some(users) = users else { continue };
        note(entry, &users);
        used.entry(id).or_default().insert(key, users.keys);
    }
    let places: BTreeMap<AppId, BTreeMap<ObjectKey, (bool, usize)>> =
        used.iter().map(|(id, used)| (id.clone(), places(used))).collect();
    orphans.sort_by_cached_key(|entry| {
        let id = app_of(entry);
        let place = places.get(&id).and_then(|places| places.get(&key_of(&entry["object"])).copied());
        (id, place.unwrap_or((true, usize::MAX)))
    });
}

/// For each orphan whether it must stay for now, because something uses it that stays, and its place in the order in which
/// they can go.
fn places(used: &BTreeMap<ObjectKey, BTreeSet<ObjectKey>>) -> BTreeMap<ObjectKey, (bool, usize)> {
    let among = used.iter().map(|(key, users)| {
        let orphans = users.iter().filter(|user| *user != key && used.contains_key(*user));
        (key.clone(), orphans.cloned().collect())
    });
    let mut places: BTreeMap<ObjectKey, (bool, usize)> = BTreeMap::new();
    // Users come before what they use, so what is known of them is complete.
    for (at, key) in order(&among.collect()).into_iter().enumerate() {
        let holds = |user: &ObjectKey| {
            *user != key && (!used.contains_key(user) || places.get(user).is_some_and(|(stays, _)| *stays))
        };
        let stays = used.get(&key).is_some_and(|users| users.iter().any(holds));
        places.insert(key, (stays, at));
    }
    places
}

/// Names who uses what a plan deletes.
pub(super) fn note_users_of_deletions(caller: &PageCaller, app: &Application, plan: &mut Value) {
    let steps = plan.get_mut("steps").and_then(Value::as_array_mut).into_iter().flatten();
    let deletions: Vec<&mut Value> =
        steps.filter(|step| step["what"] == "delete").take(MOST_OF_A_PLAN).collect();
    if deletions.is_empty() {
        return;
    }
    let Some(leader) = caller.shared.handle.leader() else { return };
    let apps = AppsByInstance::of(&leader, caller.shared.state.namespace());
    for step in deletions {
        let key = key_of(step);
        if leader.denies(app, &key).is_some() {
            continue;
        }
        if let Some(users) = users_of(caller, &leader, &apps, app, &key) {
            note(step, &users);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nothing_uses_goes_first_and_what_is_held_comes_last() {
        let key = |name: &str| ObjectKey::new("", "ConfigMap", Some("pay".to_owned()), name);
        let by = |users: &[&str]| users.iter().map(|name| key(name)).collect::<BTreeSet<_>>();
        // `web` is no orphan: it holds `b`, and with it `a`, which `b` uses. `d` goes once `c` is gone.
        let used = BTreeMap::from([
            (key("a"), by(&["b"])),
            (key("b"), by(&["web"])),
            (key("c"), by(&[])),
            (key("d"), by(&["c", "d"])),
        ]);
        let mut sorted: Vec<((bool, usize), String)> =
            places(&used).into_iter().map(|(key, place)| (place, key.name.clone())).collect();
        sorted.sort();
        let shown: Vec<String> = sorted.iter().map(|((stays, _), name)| format!("{name} {stays}")).collect();
        assert_eq!(shown, ["c false", "d false", "b true", "a true"]);
    }
}
