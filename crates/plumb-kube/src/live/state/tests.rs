use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use plumb_core::object::{GroupKind, GroupVersionKind, ObjectKey};
use proptest::prelude::*;

use super::super::record::{Address, Origin, Uid};
use super::super::refs::CLAIMS_OF_SET;
use super::{Id, Seen, State};
use crate::catalog::Resource;

const KINDS: [(&str, &str); 4] =
    [("apps", "Deployment"), ("apps", "ReplicaSet"), ("", "Pod"), ("", "ConfigMap")];

fn state() -> State {
    let mut state = State::default();
    for (group, kind) in KINDS {
        let resource = Resource {
            gvk: GroupVersionKind {
                group: group.to_owned(),
                version: "v1".to_owned(),
                kind: kind.to_owned(),
            },
            plural: format!("{}s", kind.to_lowercase()),
            namespaced: true,
        };
        state.open_table(&resource, &[None]);
    }
    state
}

fn key(kind: usize, name: u8) -> ObjectKey {
    let (group, kind) = KINDS[kind % KINDS.len()];
    ObjectKey::new(group, kind, Some("a".to_owned()), format!("n{name}"))
}

/// One step of a random history.
#[derive(Clone, Debug)]
struct Said {
    kind: usize,
    name: u8,
    uid: u8,
    version: u64,
    mark: Option<u8>,
    parent: Option<u8>,
    refers_to: Option<u8>,
    gone: bool,
}

fn said() -> impl Strategy<Value = Said> {
    let marks = (prop::option::of(0u8..3), prop::option::of(0u8..6), prop::option::of(0u8..4));
    (0usize..4, 0u8..4, 0u8..6, 1u64..40, marks, prop::bool::weighted(0.2)).prop_map(
        |(kind, name, uid, version, (mark, parent, refers_to), gone)| Said {
            kind,
            name,
            uid,
            version,
            mark,
            parent,
            refers_to,
            gone,
        },
    )
}

fn seen(state: &mut State, said: &Said) -> Seen {
    Seen {
        address: state.address(&key(said.kind, said.name)),
        uid: uid(said.kind, said.uid),
        version: said.version,
        created: 0,
        terminating: false,
        may_be_edited: false,
        mark: said.mark.map(|mark| state.intern(&format!("app-{mark}"))),
        parents: said.parent.map(|parent| uid(said.kind.wrapping_sub(1) % 4, parent)).into_iter().collect(),
        refs: said.refers_to.map(|name| state.address(&key(3, name))).into_iter().collect(),
        images: Box::default(),
        body: None,
    }
}

fn uid(kind: usize, n: u8) -> Uid {
    Uid::new(&format!("uid-{kind}-{n}"))
}

/// Every index matches the records.
fn check_indices(state: &State) {
    let mut children: HashMap<Uid, BTreeSet<Id>> = HashMap::new();
    let mut marked: HashMap<Arc<str>, BTreeSet<Id>> = HashMap::new();
    let mut referrers: HashMap<Address, BTreeSet<Id>> = HashMap::new();
    for (id, record) in state.all() {
        assert_eq!(state.find(&record.address), Some(id));
        for parent in &record.parents {
            children.entry(parent.clone()).or_default().insert(id);
        }
        if let Some(mark) = &record.mark {
            marked.entry(Arc::clone(mark)).or_default().insert(id);
        }
        for target in &record.refs {
            referrers.entry(target.clone()).or_default().insert(id);
        }
    }
    let as_set = |ids: &Vec<Id>| {
        let set: BTreeSet<Id> = ids.iter().copied().collect();
        assert_eq!(set.len(), ids.len(), "an id twice");
        set
    };
    assert_eq!(
        state.children.iter().map(|(k, v)| (k.clone(), as_set(v))).collect::<HashMap<_, _>>(),
        children
    );
    assert_eq!(state.marked.iter().map(|(k, v)| (k.clone(), as_set(v))).collect::<HashMap<_, _>>(), marked);
    assert_eq!(
        state.referrers.iter().map(|(k, v)| (k.clone(), as_set(v))).collect::<HashMap<_, _>>(),
        referrers
    );
    let names: usize = state.tables.values().map(|table| table.names.len()).sum();
    assert_eq!(names, state.all().count());
    for (uid, id) in &state.by_uid {
        assert_eq!(state.record(*id).map(|record| &record.uid), Some(uid));
    }
}

proptest! {
    #[test]
    fn the_indices_follow_any_history(history in prop::collection::vec(said(), 1..120)) {
        let mut state = state();
        for said in &history {
            if said.gone {
                if let Some(id) = state.find_key(&key(said.kind, said.name)) {
                    prop_assert!(state.remove(id).is_some());
                }
            } else {
                let seen = seen(&mut state, said);
                state.put(seen, Some(1), Origin::Watched);
            }
            check_indices(&state);
        }
        // Cycles of owners end.
        for app in 0..3 {
            let roots = state.tracked(&format!("app-{app}"));
            prop_assert!(state.tree(&roots).len() <= state.all().count());
        }
        for (group, kind) in KINDS {
            let kind = state.kind_id(&GroupKind::new(group, kind));
            state.close_table(kind);
        }
        prop_assert_eq!(state.all().count(), 0);
        prop_assert!(state.children.is_empty() && state.marked.is_empty() && state.referrers.is_empty());
        prop_assert!(state.by_uid.is_empty());
    }

    /// The newest state of an object stays, in whatever order its states arrive.
    #[test]
    fn the_newest_state_wins(versions in prop::collection::vec(1u64..1000, 1..30)) {
        let mut state = state();
        for version in &versions {
            let said = Said { kind: 2, name: 0, uid: 0, version: *version, mark: None, parent: None,
                refers_to: None, gone: false };
            let seen = seen(&mut state, &said);
            state.put(seen, Some(1), Origin::Watched);
        }
        let id = state.find_key(&key(2, 0)).unwrap();
        prop_assert_eq!(Some(state.record(id).unwrap().version), versions.iter().copied().max());
    }
}

#[test]
fn a_claim_belongs_to_its_stateful_set_and_a_copied_mark_does_not_count() {
    let mut state = State::default();
    for (group, kind) in [("apps", "StatefulSet"), ("", "PersistentVolumeClaim")] {
        let resource = Resource {
            gvk: GroupVersionKind {
                group: group.to_owned(),
                version: "v1".to_owned(),
                kind: kind.to_owned(),
            },
            plural: String::new(),
            namespaced: true,
        };
        state.open_table(&resource, &[None]);
    }
    let at = |group: &str, kind: &str, name: &str| ObjectKey::new(group, kind, Some("a".to_owned()), name);
    let mut put = |key: ObjectKey, uid: &str, refs: Vec<ObjectKey>| {
        let seen = Seen {
            address: state.address(&key),
            uid: Uid::new(uid),
            version: 1,
            created: 0,
            terminating: false,
            may_be_edited: false,
            mark: Some(state.intern("app")),
            parents: Box::default(),
            refs: refs.iter().map(|key| state.address(key)).collect(),
            images: Box::default(),
            body: None,
        };
        state.put(seen, Some(1), Origin::Watched)
    };
    put(at("", "PersistentVolumeClaim", "data-db-0"), "claim", vec![]);
    put(at("", "PersistentVolumeClaim", "data-other-0"), "other", vec![]);
    put(at("apps", "StatefulSet", "db"), "set", vec![at("", CLAIMS_OF_SET, "data-db")]);

    let names = |ids: Vec<Id>| {
        let mut names: Vec<String> =
            ids.iter().map(|id| state.record(*id).unwrap().address.name.to_string()).collect();
        names.sort();
        names
    };
    assert_eq!(names(state.children(&Uid::new("set"))), ["data-db-0"]);
    assert_eq!(names(state.tracked("app")), ["data-other-0", "db"]);
    assert_eq!(names(state.tree(&state.tracked("app"))), ["data-db-0", "data-other-0", "db"]);
}

#[test]
fn an_answer_does_not_bring_back_what_the_watch_saw_deleted() {
    let mut state = state();
    let written = |version| Said {
        kind: 0,
        name: 1,
        uid: 1,
        version,
        mark: None,
        parent: None,
        refers_to: None,
        gone: false,
    };
    let answer = |state: &mut State, version| {
        let seen = seen(state, &written(version));
        state.put_answer(seen, "v1", Origin::Written).is_some()
    };
    let kind = state.address(&key(0, 1)).kind;
    assert!(answer(&mut state, 20), "the watch has not reached it");
    // The answer to a deletion is processed after the watch event of the same deletion.
    let late = seen(&mut state, &written(25));
    let id = state.find_key(&key(0, 1)).unwrap();
    state.scope_mut(kind, 0).unwrap().position = 30;
    state.remove(id);
    assert!(state.put_answer(late, "v1", Origin::Written).is_none());
    assert_eq!(state.find_key(&key(0, 1)), None, "the ghost of a deleted object");
    let other_version = seen(&mut state, &written(40));
    assert!(state.put_answer(other_version, "v1beta1", Origin::Written).is_none());
    assert!(answer(&mut state, 40), "it was created again");
}
