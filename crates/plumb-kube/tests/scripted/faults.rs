use std::time::Duration;

use plumb_core::object::{Manifest, ObjectKey};
use plumb_core::tracking::TrackingSettings;
use plumb_kube::{Change, LiveOptions, LiveStore, owner_by};
use tokio::sync::mpsc::UnboundedReceiver;

use super::server::{Play, Server, added, bookmark, deleted, expired, list_end, modified, object, untracked};

fn key(name: &str) -> ObjectKey {
    ObjectKey::new("", "ConfigMap", Some("a".to_owned()), name)
}

fn start(server: &Server) -> (LiveStore, UnboundedReceiver<Change>) {
    let store = LiveStore::start(server.client(), LiveOptions::new(owner_by(TrackingSettings::default())));
    let (sender, changes) = tokio::sync::mpsc::unbounded_channel();
    store.each(move |change| sender.send(change.clone()).is_ok());
    (store, changes)
}

/// The next changes as `+name@version` and `-name`.
async fn told(changes: &mut UnboundedReceiver<Change>, n: usize) -> Vec<String> {
    let mut lines = Vec::new();
    for _ in 0..n {
        let change = tokio::time::timeout(Duration::from_hours(1), changes.recv()).await.unwrap().unwrap();
        let name = change.key.name.clone();
        lines.push(if change.gone {
            format!("-{name}")
        } else {
            format!("+{name}@{}", change.resource_version)
        });
    }
    lines
}

/// The watches that were asked for, by what they start from.
fn watches(server: &Server) -> Vec<String> {
    let from = |asked: &String| {
        let query = asked.split_once('?').map_or("", |(_, query)| query);
        let version = query.split('&').find_map(|part| part.strip_prefix("resourceVersion="));
        version.map_or_else(|| "list".to_owned(), str::to_owned)
    };
    server.seen().iter().filter(|asked| asked.contains("watch=true")).map(from).collect()
}

#[tokio::test(start_paused = true)]
async fn a_broken_watch_goes_on_where_it_was_without_a_list() {
    let server = Server::default();
    server
        .watch(vec![
            added("x", "u1", 5),
            added("y", "u2", 3),
            list_end(9),
            modified("x", "u1", 12),
            Play::Break,
        ])
        .watch(vec![modified("y", "u2", 14), bookmark(20), Play::Close])
        .watch(vec![deleted("x", "u1", 22)]);
    let (store, mut changes) = start(&server);
    assert_eq!(told(&mut changes, 5).await, ["+x@5", "+y@3", "+x@12", "+y@14", "-x"]);
    assert_eq!(watches(&server), ["list", "12", "20"]);
    assert!(store.is_complete());
    assert!(!store.contains(&key("x")));
}

#[tokio::test(start_paused = true)]
async fn an_expired_watch_lists_again_and_what_is_missing_is_gone() {
    let server = Server::default();
    server
        .watch(vec![added("x", "u1", 5), added("y", "u2", 6), added("z", "u3", 7), list_end(9), expired()])
        .watch(vec![added("x", "u1", 5), added("z", "u4", 30), list_end(40)]);
    let (store, mut changes) = start(&server);
    assert_eq!(told(&mut changes, 5).await, ["+x@5", "+y@6", "+z@7", "+z@30", "-y"]);
    assert_eq!(watches(&server), ["list", "list"]);
    assert!(store.contains(&key("x")) && store.contains(&key("z")));
}

#[tokio::test(start_paused = true)]
async fn a_list_that_breaks_off_deletes_nothing() {
    let server = Server::default();
    server
        .watch(vec![added("x", "u1", 5), added("y", "u2", 6), list_end(9), expired()])
        .watch(vec![added("x", "u1", 5), Play::Break])
        .watch(vec![Play::Refuse(503)])
        .watch(vec![added("x", "u1", 5), Play::Close])
        .watch(vec![added("x", "u1", 5), added("y", "u2", 6), added("w", "u9", 41), list_end(50)]);
    let (store, mut changes) = start(&server);
    assert_eq!(told(&mut changes, 3).await, ["+x@5", "+y@6", "+w@41"], "and no deletion before or after");
    assert!(store.contains(&key("y")));
    assert!(changes.try_recv().is_err());
}

#[tokio::test(start_paused = true)]
async fn a_refusal_to_resume_lists_again() {
    let server = Server::default();
    server
        .watch(vec![added("x", "u1", 5), list_end(9), Play::Break])
        .watch(vec![Play::Refuse(410)])
        .watch(vec![list_end(40)]);
    let (_store, mut changes) = start(&server);
    assert_eq!(told(&mut changes, 2).await, ["+x@5", "-x"]);
    assert_eq!(watches(&server), ["list", "9", "list"]);
}

#[tokio::test(start_paused = true)]
async fn a_server_without_streaming_lists_is_listed_by_pages() {
    let server = Server::default();
    let item = |name: &str, uid: &str, version| {
        let mut item = object(name, uid, version);
        item.as_object_mut().unwrap().remove("apiVersion");
        item.as_object_mut().unwrap().remove("kind");
        item
    };
    server
        .watch(vec![Play::Refuse(422)])
        .answer(
            200,
            vec![],
            serde_json::json!({"metadata": {"resourceVersion": "8", "continue": "more"},
            "items": [item("x", "u1", 5)]}),
        )
        .answer(
            200,
            vec![],
            serde_json::json!({"metadata": {"resourceVersion": "8"}, "items": [item("y", "u2", 6)]}),
        )
        .watch(vec![modified("x", "u1", 12)]);
    let (store, mut changes) = start(&server);
    assert_eq!(told(&mut changes, 3).await, ["+x@5", "+y@6", "+x@12"]);
    assert_eq!(watches(&server), ["list", "8"]);
    let whole = store.get_kept(&key("y")).unwrap();
    assert_eq!((whole.api_version(), whole.kind()), ("v1", "ConfigMap"));
}

#[tokio::test(start_paused = true)]
async fn late_events_never_bring_back_an_older_state() {
    let server = Server::default();
    server.watch(vec![
        added("x", "u1", 5),
        list_end(9),
        modified("x", "u1", 20),
        modified("x", "u1", 12),
        deleted("x", "u0", 11),
        modified("x", "u1", 21),
    ]);
    let (store, mut changes) = start(&server);
    assert_eq!(told(&mut changes, 3).await, ["+x@5", "+x@20", "+x@21"]);
    assert_eq!(store.get_kept(&key("x")).unwrap().resource_version(), Some("21"));
}

#[tokio::test(start_paused = true)]
async fn a_write_is_known_at_once_and_never_brings_back_what_was_deleted_since() {
    let server = Server::default();
    server.watch(vec![added("x", "u1", 5), list_end(9), deleted("x", "u1", 30)]);
    let (store, mut changes) = start(&server);
    assert_eq!(told(&mut changes, 2).await, ["+x@5", "-x"]);

    // Our write's answer arrives after the watch told both the write and the deletion that followed it.
    store.observe_written(&Manifest::new(object("x", "u1", 20)).unwrap());
    assert!(!store.contains(&key("x")), "the ghost of a deleted object");
    // One that the watch has not reached yet.
    store.observe_written(&Manifest::new(object("x", "u5", 35)).unwrap());
    assert!(store.contains(&key("x")));
    assert_eq!(told(&mut changes, 1).await, ["+x@35"]);
}

#[tokio::test(start_paused = true)]
async fn a_list_does_not_delete_what_was_written_after_it() {
    let server = Server::default();
    server.watch(vec![list_end(9), Play::Pause(60), expired()]).watch(vec![list_end(50)]);
    let (store, mut changes) = start(&server);
    store.wait_complete().await;
    store.observe_written(&Manifest::new(object("older", "u1", 45)).unwrap());
    store.observe_written(&Manifest::new(object("newer", "u2", 60)).unwrap());
    assert_eq!(told(&mut changes, 3).await, ["+older@45", "+newer@60", "-older"]);
    tokio::time::sleep(Duration::from_mins(2)).await;
    assert!(store.contains(&key("newer")));
}

#[tokio::test(start_paused = true)]
async fn an_object_that_was_written_and_deleted_while_a_list_ran_is_gone() {
    let server = Server::default();
    server.watch(vec![list_end(9), Play::Pause(10), expired()]).watch(vec![
        added("y", "u2", 7),
        Play::Pause(30),
        list_end(50),
    ]);
    let (store, mut changes) = start(&server);
    assert_eq!(told(&mut changes, 1).await, ["+y@7"], "the second list is under way");
    store.observe_written(&Manifest::new(object("x", "u1", 45)).unwrap());
    assert_eq!(told(&mut changes, 2).await, ["+x@45", "-x"]);
    assert!(store.contains(&key("y")));
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_falls_silent_is_given_up_and_resumed() {
    let server = Server::default();
    server
        .watch(vec![added("x", "u1", 5), list_end(9), Play::Pause(100_000)])
        .watch(vec![modified("x", "u1", 12)]);
    let (_store, mut changes) = start(&server);
    assert_eq!(told(&mut changes, 2).await, ["+x@5", "+x@12"]);
    assert_eq!(watches(&server), ["list", "9"]);
}

#[tokio::test(start_paused = true)]
async fn garbage_in_a_watch_is_trouble_of_this_watch_and_passes() {
    let server = Server::default();
    server
        .watch(vec![added("x", "u1", 5), list_end(9), Play::Event(serde_json::json!(["soup"]))])
        .watch(vec![Play::Event(serde_json::json!({"type": "ADDED", "object": {"metadata": {"name": 7}}}))])
        .watch(vec![
            Play::Event(
                serde_json::json!({"type": "NEWS", "object": {"metadata": {"resourceVersion": "13"}}}),
            ),
            modified("x", "u1", 15),
        ]);
    let (_store, mut changes) = start(&server);
    assert_eq!(told(&mut changes, 2).await, ["+x@5", "+x@15"]);
    assert_eq!(watches(&server), ["list", "9", "9"]);
}

#[tokio::test(start_paused = true)]
async fn a_kind_that_we_may_not_list_keeps_the_store_incomplete_unless_it_may_be_skipped() {
    let server = Server::default();
    for _ in 0..3 {
        server.watch(vec![Play::Refuse(403)]);
    }
    let (store, _) = start(&server);
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert!(!store.is_complete());
    let (kind, trouble) = store.unlisted().remove(0);
    assert_eq!(kind.to_string(), "ConfigMap");
    assert!(trouble.is_some());

    let server = Server::default();
    server.watch(vec![Play::Refuse(403)]);
    let options =
        LiveOptions { skip_forbidden: true, ..LiveOptions::new(owner_by(TrackingSettings::default())) };
    let store = LiveStore::start(server.client(), options);
    tokio::time::timeout(Duration::from_mins(1), store.wait_complete()).await.unwrap();
}

/// Waits for the store's evidence that the server went back in time; `None` if there is none within the hour.
async fn evidence(store: &LiveStore) -> Option<String> {
    let found = tokio::time::timeout(Duration::from_hours(1), store.went_back()).await;
    found.ok().map(|evidence| evidence.to_string())
}

/// The answer to a list: its version and that of the object `x`, if it exists.
fn listed(version: u64, x: Option<u64>) -> serde_json::Value {
    let items: Vec<_> = x.map(|version| object("x", "u1", version)).into_iter().collect();
    serde_json::json!({"metadata": {"resourceVersion": version.to_string()}, "items": items})
}

#[tokio::test(start_paused = true)]
async fn a_server_that_went_back_in_time_is_noticed_though_its_watches_are_silent() {
    for (first, second, expected) in [
        // Restored from a backup that is older than the last event.
        (listed(40, Some(30)), listed(41, Some(30)), Some("at resource version 41, and had reported 60")),
        (listed(40, None), listed(41, None), Some("at resource version 41, and had reported 60")),
        // The numbers went on from a higher one, or were passed again before the sample.
        (listed(1000, Some(30)), listed(1001, Some(30)), Some("has resource version 30, and had 50")),
        // One odd answer is not enough.
        (listed(40, Some(30)), listed(60, Some(50)), None),
        // The object is missing: its kind is listed again. Or it changed.
        (listed(70, None), listed(70, None), None),
        (listed(70, Some(65)), listed(70, Some(65)), None),
    ] {
        let server = Server::default();
        server.watch(vec![added("x", "u1", 50), list_end(60)]);
        server.answer(200, vec![], first).answer(200, vec![], second);
        let (store, _changes) = start(&server);
        store.wait_complete().await;
        let began = tokio::time::Instant::now();
        let found = evidence(&store).await;
        match expected {
            Some(part) => {
                assert!(found.as_ref().is_some_and(|text| text.contains(part)), "{found:?}, expected {part}");
                assert!(began.elapsed() < Duration::from_mins(1), "after {:?}", began.elapsed());
            }
            None => assert_eq!(found, None),
        }
    }
}

/// The restore took back the creation of an object, and the server has passed all versions since.
#[tokio::test(start_paused = true)]
async fn an_object_that_the_server_no_longer_has_is_listed_again() {
    let server = Server::default();
    server.watch(vec![added("x", "u1", 50), list_end(60)]).watch(vec![added("y", "u2", 20), list_end(80)]);
    server.answer(200, vec![], listed(70, None)).answer(200, vec![], listed(70, None));
    let (store, mut changes) = start(&server);
    assert_eq!(told(&mut changes, 3).await, ["+x@50", "+y@20", "-x"], "and what the restore brought back");
    assert_eq!(watches(&server), ["list", "list"]);
    assert!(!store.contains(&key("x")) && store.contains(&key("y")));
}

#[tokio::test(start_paused = true)]
async fn an_object_whose_deletion_the_watch_is_about_to_report_costs_no_list() {
    let server = Server::default();
    server.watch(vec![added("x", "u1", 50), list_end(60)]);
    server.answer(200, vec![], listed(70, None)).answer(200, vec![], listed(70, Some(50)));
    let (store, mut changes) = start(&server);
    assert_eq!(told(&mut changes, 1).await, ["+x@50"]);
    assert_eq!(evidence(&store).await, None);
    // A silent watch is resumed now and then.
    assert_eq!(watches(&server).iter().filter(|from| *from == "list").count(), 1);
}

/// After a restore another client writes the newest object again, with a higher version than before. The server has passed
/// all versions since. What an app tracks is as old as the backup.
#[tokio::test(start_paused = true)]
async fn a_newer_object_of_others_hides_no_change_of_what_an_app_tracks() {
    let server = Server::default();
    server.watch(vec![added("x", "u1", 50), untracked("of-others", "u2", 55), list_end(60)]);
    for _ in 0..2 {
        server.answer(200, vec![], listed(90, Some(80))).answer(200, vec![], listed(90, Some(30)));
    }
    let (store, _changes) = start(&server);
    let found = evidence(&store).await;
    assert!(found.as_ref().is_some_and(|text| text.contains("version 30, and had 50")), "{found:?}");
}

#[tokio::test(start_paused = true)]
async fn a_new_list_that_is_older_than_the_store_shows_that_the_server_went_back() {
    for (list, expected) in [
        (vec![added("x", "u1", 30), list_end(40)], Some("at resource version 40, and had reported 60")),
        // As after a restore whose revisions were raised: the list is new, the object is old.
        (vec![added("x", "u1", 30), list_end(1000)], Some("has resource version 30, and had 50")),
        (vec![added("x", "u1", 50), list_end(60)], None),
        (vec![added("x", "u1", 70), list_end(80)], None),
    ] {
        let server = Server::default();
        server.watch(vec![added("x", "u1", 50), list_end(60), Play::Pause(1), expired()]).watch(list);
        // The samples find nothing.
        for _ in 0..200 {
            server.answer(500, vec![], serde_json::json!({}));
        }
        let (store, _changes) = start(&server);
        store.wait_complete().await;
        let found = evidence(&store).await;
        match expected {
            Some(part) => assert!(found.as_ref().is_some_and(|text| text.contains(part)), "{found:?}"),
            None => assert_eq!(found, None),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn kinds_are_listed_again_on_demand_and_many_callers_cost_one_list() {
    let server = Server::default();
    server
        .watch(vec![added("x", "u1", 5), added("y", "u2", 6), list_end(9)])
        .watch(vec![added("x", "u1", 5), added("z", "u3", 12), list_end(20)])
        .watch(vec![added("x", "u1", 5), added("z", "u3", 12), list_end(20)]);
    let (store, mut changes) = start(&server);
    assert_eq!(told(&mut changes, 2).await, ["+x@5", "+y@6"]);
    store.wait_complete().await;
    let kinds = std::collections::BTreeSet::from([key("x").group_kind()]);
    tokio::time::sleep(Duration::from_secs(10)).await;
    let within = Duration::from_mins(1);
    tokio::join!(store.read_again(&kinds, within), store.read_again(&kinds, within));
    store.read_again(&kinds, within).await;
    assert_eq!(told(&mut changes, 2).await, ["+z@12", "-y"], "what is the same is not reported again");
    assert!(changes.try_recv().is_err());
    assert_eq!(watches(&server), ["list", "list"]);
    assert!(store.is_complete());
}
