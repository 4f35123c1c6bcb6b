//! What a chart generates at random in each render.

use expect_test::expect;
use serde_json::{Value, json};

use crate::scene::{Scene, check};

/// A `ConfigMap` whose keys were all applied by us.
fn keys(git: Value, second: Value, live: Value) -> Scene {
    let owned: serde_json::Map<String, Value> =
        live.as_object().unwrap().keys().map(|key| (format!("f:{key}"), json!({}))).collect();
    Scene::new("v1 ConfigMap", json!({"data": git}), json!({"data": live}))
        .by("argocd-controller Apply 1", json!({"f:data": owned}))
        .rendered_again(json!({"data": second}))
        .applied_before(json!({"data": live}))
        .server_makes(json!({"data": git}))
}

fn kept(scene: &Scene) -> [Vec<String>; 2] {
    let advice = scene.verdict().advice;
    [advice.keep_live, advice.leave_out].map(|places| places.iter().map(ToString::to_string).collect())
}

#[test]
fn a_random_key_has_the_key_of_an_earlier_render_as_counterpart() {
    let scene = || {
        let git = json!({"a": "1", "run-x7f9a": "go"});
        keys(git, json!({"a": "1", "run-11ab2": "go"}), json!({"a": "1", "run-zz9pq": "go"}))
    };
    check(scene(), expect!["UnstableRender /data/run-x7f9a /data/run-zz9pq"]);
    // A sync for another reason keeps the existing key and does not add a second one.
    assert_eq!(kept(&scene()), [["/data/run-zz9pq"], ["/data/run-x7f9a"]]);
    // The first key, or one that another writer removed, has to be applied.
    let live = json!({"a": "1"});
    let git = json!({"a": "1", "run-x7f9a": "go"});
    check(keys(git, json!({"a": "1", "run-11ab2": "go"}), live), expect!["! Behind /data/run-x7f9a"]);
}

#[test]
fn a_key_removed_from_git_is_not_a_counterpart() {
    let git = json!({"run-x7f9a": "go"});
    let second = json!({"run-11ab2": "go"});
    // A name with another pattern.
    let live = json!({"run-zz9pq": "go", "settings": "old"});
    let scene = keys(git.clone(), second.clone(), live);
    check(scene, expect!["! Behind /data/settings\nUnstableRender /data/run-x7f9a /data/run-zz9pq"]);
    // Of two keys with the same pattern, it is not known which one Git removed.
    let live = json!({"run-zz9pq": "go", "run-final": "old"});
    let scene = keys(git, second, live);
    check(scene, expect!["! Behind /data/run-final /data/run-x7f9a /data/run-zz9pq"]);
    // Without random keys, a removed key goes, and a new one is applied.
    let scene = keys(json!({"b": "1"}), json!({"b": "1"}), json!({"a": "1"}));
    check(scene, expect!["! Behind /data/a /data/b"]);
}

#[test]
fn a_random_value_has_to_exist() {
    let scene = |live: Value| keys(json!({"password": "x7"}), json!({"password": "11"}), live);
    check(scene(json!({"password": "zz"})), expect!["UnstableRender /data/password"]);
    check(scene(json!({})), expect!["! Behind /data/password"]);
}

#[test]
fn an_item_with_a_random_key_has_the_one_of_an_earlier_render_as_counterpart() {
    let ports = |name: &str| json!({"ports": [{"name": "web", "port": 80}, {"name": name, "port": 81}]});
    let owned =
        |name: &str| json!({format!("k:{{\"name\":\"{name}\"}}"): {".": {}, "f:name": {}, "f:port": {}}});
    let scene = |live: Value, mine: Value| {
        Scene::new("example.io/v1 Thing", json!({"spec": ports("p-x7f9a")}), json!({"spec": live}))
            .by("argocd-controller Apply 1", json!({"f:spec": {"f:ports": mine}}))
            .rendered_again(json!({"spec": ports("p-11ab2")}))
            .applied_before(json!({"spec": ports("p-zz9pq")}))
            .server_makes(json!({"spec": ports("p-x7f9a")}))
    };
    let mine = || {
        let mut mine = owned("web");
        mine.as_object_mut().unwrap().extend(owned("p-zz9pq").as_object().unwrap().clone());
        mine
    };
    check(scene(ports("p-zz9pq"), mine()), expect!["UnstableRender /spec/ports/1"]);
    assert_eq!(kept(&scene(ports("p-zz9pq"), mine())), [["/spec/ports/1"], ["/spec/ports/1"]]);
    // An item with a fixed name has to exist, whatever else in it is random.
    let gone = Scene::new(
        "example.io/v1 Thing",
        json!({"spec": {"ports": [{"name": "web", "port": 80}]}}),
        json!({"spec": {"ports": []}}),
    )
    .by("argocd-controller Apply 1", json!({"f:spec": {"f:ports": {}}}))
    .rendered_again(json!({"spec": {"ports": [{"name": "web", "port": 8080}]}}));
    check(gone, expect!["! LiveEdit /spec/ports/0"]);
}

/// A chart that prints the date: two renders on one day are the same, on another day they differ.
fn days(editor: Option<&'static str>) -> Scene {
    let of = |day: &str| json!({"data": {"day": day}});
    let ours = if editor.is_some() { json!({}) } else { json!({"f:day": {}}) };
    let mut scene = Scene::new("v1 ConfigMap", of("16"), of("15"))
        .by("argocd-controller Apply 1", json!({"f:data": ours}))
        .rendered_again(of("16"))
        .applied_before(of("15"))
        .server_makes(of("16"));
    if let Some(editor) = editor {
        scene = scene.by(editor, json!({"f:data": {"f:day": {}}}));
    }
    scene
}

#[test]
fn a_value_applied_from_the_same_commit_is_not_behind() {
    let scene = || days(None).of_the_same_commit();
    check(scene(), expect!["UnstableRender /data/day"]);
    // A sync for another reason keeps the date.
    assert_eq!(kept(&scene()), [vec!["/data/day".to_owned()], vec![]]);
    // Another commit is a change, and an edit is still an edit.
    check(days(None), expect!["! Behind /data/day"]);
    let edited = days(Some("kubectl-edit Update 2")).of_the_same_commit();
    check(edited, expect!["! LiveEdit /data/day by kubectl-edit"]);
}

#[test]
fn a_date_may_be_a_key() {
    let of = |day: &str| json!({day: "x"});
    let scene = || keys(of("2026-11-17"), of("2026-11-17"), of("2026-11-16"));
    check(scene().of_the_same_commit(), expect!["UnstableRender /data/2026-11-16 /data/2026-11-17"]);
    check(scene(), expect!["! Behind /data/2026-11-16 /data/2026-11-17"]);
}

#[test]
fn a_removal_beside_a_random_value_is_a_removal() {
    let of = |at: &str| json!({"metadata": {"annotations": {"at": at}}, "data": {"a": "1", "b": "2"}});
    let live = json!({"metadata": {"annotations": {"at": "0"}}, "data": {"a": "1"}});
    let scene = || {
        Scene::new("v1 ConfigMap", of("1"), live.clone())
            .by(
                "argocd-controller Apply 1",
                json!({"f:data": {"f:a": {}}, "f:metadata": {"f:annotations": {"f:at": {}}}}),
            )
            .rendered_again(of("2"))
            .server_makes(of("1"))
    };
    check(
        scene().of_the_same_commit(),
        expect![[r"
        ! LiveEdit /data/b
        UnstableRender /metadata/annotations/at"]],
    );
    check(
        scene().applied_before(of("0")),
        expect![[r"
        ! LiveEdit /data/b
        UnstableRender /metadata/annotations/at"]],
    );
    // The value itself may be random.
    let random =
        || keys(json!({"password": "x7"}), json!({"password": "11"}), json!({})).of_the_same_commit();
    check(random(), expect!["! LiveEdit /data/password"]);
}

#[test]
fn a_random_value_inside_an_edited_list_is_unstable_and_the_rest_is_edited() {
    let of = |args: Value| json!({"spec": {"args": args}});
    let scene = |live: Value| {
        Scene::new("example.io/v1 Thing", of(json!(["x7", "b"])), of(live))
            .by("argocd-controller Apply 1", json!({}))
            .by("kubectl-edit Update 2", json!({"f:spec": {"f:args": {}}}))
            .rendered_again(of(json!(["11", "b"])))
    };
    check(
        scene(json!(["zz", "c"])),
        expect![[r"
        ! LiveEdit /spec/args/1 by kubectl-edit
        UnstableRender /spec/args/0"]],
    );
    assert_eq!(kept(&scene(json!(["zz", "c"])))[0], ["/spec/args/0"]);
    // If an item was added, the positions no longer match.
    check(
        scene(json!(["new", "zz", "b"])),
        expect!["! LiveEdit /spec/args/0 /spec/args/1 /spec/args/2 by kubectl-edit"],
    );
}
