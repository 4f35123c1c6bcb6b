//! What another writer changed, added or removed.

use expect_test::expect;
use plumb_core::drift::HealRecord;
use plumb_core::object::FieldPath;
use serde_json::{Value, json};

use crate::scene::{Scene, check, config, thing};

#[test]
fn an_added_key_in_a_map_that_is_one_value_is_an_edit() {
    let network = |git: Value, live: Value, owned: Value| {
        Scene::new("networking.k8s.io/v1 NetworkPolicy", json!({"spec": git}), json!({"spec": live}))
            .by("argocd-controller Apply 1", json!({"f:metadata": {"f:labels": {}}}))
            .by("kubectl-patch Update 2", json!({"f:spec": owned}))
    };
    check(
        network(
            json!({"podSelector": {}}),
            json!({"podSelector": {"matchLabels": {"x": "y"}}}),
            json!({"f:podSelector": {}}),
        ),
        expect!["! LiveEdit /spec/podSelector/matchLabels/x by kubectl-patch"],
    );
    check(
        network(
            json!({"ingress": [{"from": [{"podSelector": {}}]}]}),
            json!({"ingress": [{"from": [{"podSelector": {"matchLabels": {"x": "y"}}, "note": "z"}]}]}),
            json!({"f:ingress": {}}),
        ),
        expect![[r"
            ! LiveEdit /spec/ingress/0/from/0/podSelector/matchLabels/x by kubectl-patch
            ! Unexplained /spec/ingress/0/from/0/note"]],
    );
    check(
        thing(
            json!({"target": {"name": "a", "options": {"deep": {}}}}),
            json!({"target": {"name": "a", "options": {"deep": {"x": "y"}}}}),
        )
        .by("argocd-controller Apply 1", json!({"f:metadata": {"f:labels": {}}}))
        .by("kubectl-patch Update 2", json!({"f:spec": {"f:target": {}}})),
        expect!["! LiveEdit /spec/target/options/deep/x by kubectl-patch"],
    );
    // A key that an apply would keep was filled in, although a writer that changed another key owns it.
    let filled = json!({"target": {"name": "b", "options": {"deep": {"x": "y"}}}});
    check(
        thing(json!({"target": {"name": "a", "options": {"deep": {}}}}), filled)
            .by("argocd-controller Apply 1", json!({"f:metadata": {"f:labels": {}}}))
            .by("kubectl-patch Update 2", json!({"f:spec": {"f:target": {}}}))
            .server_makes(json!({"spec": {"target": {"name": "a", "options": {"deep": {"x": "y"}}}}})),
        expect![[r"
            ! LiveEdit /spec/target/name by kubectl-patch
            SchemaDefault /spec/target/options/deep/x"]],
    );
}

#[test]
fn options_of_an_edited_strategy_go_with_the_edit() {
    let strategy = |fields: Value| json!({"f:spec": {"f:updateStrategy": fields}});
    let live = json!({"type": "RollingUpdate", "rollingUpdate": {"partition": 0}});
    let edited = |owned: Value| {
        Scene::new(
            "apps/v1 StatefulSet",
            json!({"spec": {"replicas": 1, "updateStrategy": {"type": "OnDelete"}}}),
            json!({"spec": {"replicas": 1, "updateStrategy": live}}),
        )
        .by("argocd-controller Apply 1", json!({"f:spec": {"f:replicas": {}}}))
        .by("kubectl-edit Update 2", strategy(owned))
    };
    let with_options = json!({"f:type": {}, "f:rollingUpdate": {".": {}, "f:partition": {}}});
    let scene = edited(with_options);
    let moved = scene.verdict().advice.managed_fields.unwrap().to_string();
    assert!(moved.contains("f:rollingUpdate"), "{moved}");
    check(
        scene,
        expect![[r"
        ! LiveEdit /spec/updateStrategy/type by kubectl-edit
        UnclaimedAddition /spec/updateStrategy/rollingUpdate/partition by kubectl-edit"]],
    );
    assert!(edited(json!({"f:type": {}})).verdict().advice.managed_fields.is_none());
}

#[test]
fn an_applied_field_that_plumb_no_longer_owns_was_edited() {
    let elsewhere = || {
        thing(json!({"note": "a"}), json!({"note": "b"}))
            .by("argocd-controller Apply 1", json!({"f:spec": {"f:every": {}}}))
            .server_makes(json!({"spec": {"note": "a"}}))
    };
    check(elsewhere(), expect!["! LiveEdit /spec/note"]);
    check(
        elsewhere().by("kubectl-edit Update 2 example.io/v2", json!({"f:spec": {"f:notes": {}}})),
        expect!["! LiveEdit /spec/note by kubectl-edit"],
    );
}

#[test]
fn a_client_side_apply_within_the_second_of_ours_came_after_it() {
    let note = json!({"f:spec": {"f:note": {}}});
    let tie = |git: Value, live: Value| {
        thing(git, live)
            .by("argocd-controller Apply 1", json!({"f:metadata": {"f:labels": {}}}))
            .by("kubectl-client-side-apply Update 1", note.clone())
    };
    check(
        tie(json!({"note": "a"}), json!({"note": "b"})),
        expect!["! LiveEdit /spec/note by kubectl-client-side-apply"],
    );
    // A field that Git does not have was there before: it must go, although both applies have the same second.
    check(
        tie(json!({}), json!({"note": "b"})),
        expect!["! StaleOwnership /spec/note by kubectl-client-side-apply"],
    );
}

#[test]
fn another_alternative_goes_when_the_one_of_git_comes_back() {
    let place = "spec.template.spec.containers[0].securityContext";
    let spec = |context: Value| json!({"spec": {"template": {"spec": {"containers": [{"name": "c", "securityContext": context}]}}}});
    let owned = |field: &str| json!({"f:spec": {"f:template": {"f:spec": {"f:containers": {"k:{\"name\":\"c\"}": {"f:securityContext": {field: {}}}}}}}});
    let scene = |writer: &'static str| {
        Scene::new(
            "apps/v1 Deployment",
            spec(json!({"privileged": true})),
            spec(json!({"other": {"a": "1"}})),
        )
        .by("argocd-controller Apply 1", json!({"f:metadata": {"f:labels": {}}}))
        .by(writer, owned("f:other"))
        .refused(
            422,
            "invalid",
            &[
                ("FieldValueForbidden", &format!("{place}.other"), "may not specify more than 1 type"),
                ("FieldValueNotFound", "spec.template.spec.containers[0].name", "Not found"),
            ],
        )
    };
    let edited = scene("kubectl-edit Update 2").verdict();
    let counted: Vec<String> = edited
        .findings
        .iter()
        .filter(|finding| finding.counts)
        .map(|finding| format!("{} {}", finding.class, finding.fields.len()))
        .collect();
    assert!(!counted.iter().any(|line| line.starts_with("Blocked")), "{counted:?}");
    assert!(edited.advice.managed_fields.is_some(), "the other choice is taken over, so that it goes");
}

#[test]
fn an_empty_list_shown_as_null_is_not_part_of_an_edit_beside_it() {
    let rules = |verb: &str, resources: Value| json!({"rules": [{"verbs": [verb], "resources": resources}]});
    let scene = |answer: Value| {
        Scene::new(
            "rbac.authorization.k8s.io/v1 ClusterRole",
            rules("get", json!([])),
            rules("list", Value::Null),
        )
        .by("argocd-controller Apply 1", json!({"f:metadata": {}}))
        .by("kubectl-edit Update 2", json!({"f:rules": {}}))
        .server_makes(rules("get", answer))
    };
    check(
        scene(Value::Null),
        expect![[r"
            ! LiveEdit /rules/0/verbs/0 by kubectl-edit
            PhantomDefault /rules/0/resources"]],
    );
}

#[test]
fn an_ignored_item_hides_no_item_of_git() {
    let role = |names: &[&str]| {
        let rules: Vec<Value> =
            names.iter().map(|name| json!({"resources": [name], "verbs": ["get"]})).collect();
        json!({"rules": rules})
    };
    let scene = |live: &[&str], ignored: &'static str| {
        let mut scene = Scene::new("rbac.authorization.k8s.io/v1 ClusterRole", role(&["a"]), role(live))
            .by("argocd-controller Apply 1", json!({"f:metadata": {"f:labels": {}}}))
            .by("kubectl-edit Update 2", json!({"f:rules": {}}));
        scene.ignored_by_jq = Some(ignored);
        scene
    };
    let leases = r#".rules[] | select(.resources == ["x"])"#;
    check(scene(&["x", "a"], leases), expect![""]);
    check(scene(&["a", "x"], leases), expect![""]);
    check(scene(&["x"], leases), expect!["! LiveEdit /rules/0/resources/0 by kubectl-edit"]);
    check(scene(&["x", "b"], leases), expect!["! LiveEdit /rules/0/resources/0 /rules/1 by kubectl-edit"]);
    // An ignored item after an edited one is not named, nor an item that the rules ignore on both sides.
    check(scene(&["b", "x"], leases), expect!["! LiveEdit /rules/0/resources/0 by kubectl-edit"]);
    let mut named =
        Scene::new("rbac.authorization.k8s.io/v1 ClusterRole", role(&["a", "b"]), role(&["c", "d"]))
            .by("argocd-controller Apply 1", json!({"f:metadata": {"f:labels": {}}}))
            .by("kubectl-edit Update 2", json!({"f:rules": {}}));
    named.ignored = Some("/rules/0");
    check(named, expect!["! LiveEdit /rules/1/resources/0 by kubectl-edit"]);
}

#[test]
fn a_field_removed_from_git_remains_with_an_older_writer() {
    let scene = |writer: &'static str, ours: Value| {
        Scene::new("v1 ConfigMap", json!({"data": {"a": "1"}}), json!({"data": {"a": "1", "b": "2"}}))
            .by("argocd-controller Apply 5", json!({"f:data": ours}))
            .by(writer, json!({"f:data": {"f:a": {}, "f:b": {}}}))
            .applied_before(json!({"data": {"a": "1", "b": "2"}}))
    };
    let (both, one) = (json!({"f:a": {}, "f:b": {}}), json!({"f:a": {}}));
    check(scene("bootstrap Apply 1", both.clone()), expect!["! StaleOwnership /data/b by bootstrap"]);
    assert!(scene("bootstrap Apply 1", both.clone()).verdict().advice.managed_fields.is_some());
    // The writer delivered the whole object before us, or Git asked for it until now.
    check(scene("bootstrap Apply 1", one.clone()), expect!["! StaleOwnership /data/b by bootstrap"]);
    check(scene("bootstrap Apply 9", both), expect!["! StaleOwnership /data/b by bootstrap"]);
    // It wrote after us what Git never had, or only that, or it is an active controller.
    let later = scene("bootstrap Apply 9", one.clone()).after_restart();
    check(later, expect!["UnclaimedAddition /data/b by bootstrap"]);
    let mut only_that = scene("bootstrap Apply 1", one.clone()).after_restart();
    only_that.managers[1].1 = json!({"f:data": {"f:b": {}}});
    check(only_that, expect!["UnclaimedAddition /data/b by bootstrap"]);
    let at_work = scene("parcel-operator Apply 1", one).after_restart();
    check(at_work, expect!["UnclaimedAddition /data/b by parcel-operator"]);
}

#[test]
fn fields_of_a_helm_release_are_left_over_except_its_annotations() {
    let live = json!({"metadata": {"annotations": {"meta.helm.sh/release-name": "r"}}, "data": {"a": "1", "b": "2"}});
    let scene = Scene::new("v1 ConfigMap", json!({"data": {"a": "1"}}), live)
        .by("argocd-controller Apply 5", json!({"f:data": {"f:a": {}}}))
        .by(
            "helm Update 1",
            json!({"f:data": {".": {}, "f:a": {}, "f:b": {}},
                "f:metadata": {"f:annotations": {".": {}, "f:meta.helm.sh/release-name": {}}}}),
        )
        .after_restart();
    check(
        scene,
        expect![[r"
        ! StaleOwnership /data/b by helm
        UnclaimedAddition /metadata/annotations/meta.helm.sh~1release-name by helm"]],
    );
}

#[test]
fn an_addition_that_strict_removes_repeatedly_is_a_tug_of_war() {
    let scene = |rounds: usize| {
        let mut scene = config(json!({"level": "1"}), json!({"level": "1", "extra": "x"}))
            .by("shop-operator Update 2", json!({"f:data": {"f:extra": {}}}))
            .strict();
        scene.heals.push(HealRecord {
            field: FieldPath::from_pointer("/data/extra"),
            healed_at: vec!["2026-02-01T00:00:00Z".parse().unwrap(); rounds],
            stopped: false,
        });
        scene
    };
    check(scene(4), expect!["! UnclaimedAddition /data/extra by shop-operator"]);
    check(scene(5), expect!["! TugOfWar /data/extra by shop-operator"]);
    assert!(scene(5).verdict().advice.heal.is_empty());
}

#[test]
fn a_user_who_syncs_gets_what_self_heal_gave_up() {
    let pod = |image: &str| json!({"spec": {"template": {"spec": {"containers": [{"name": "c", "image": image}]}}}});
    let image = "/spec/template/spec/containers/0/image";
    let mut scene = Scene::new("apps/v1 Deployment", pod("good:1"), pod("evil:1"))
        .by("argocd-controller Apply 1", json!({"f:metadata": {"f:labels": {}}}))
        .by(
            "x-controller Update 2",
            json!({"f:spec": {"f:template": {"f:spec": {"f:containers": {
                "k:{\"name\":\"c\"}": {".": {}, "f:name": {}, "f:image": {}}}}}}}),
        );
    scene.heals.push(HealRecord {
        field: FieldPath::from_pointer(image),
        healed_at: Vec::new(),
        stopped: true,
    });
    let verdict = scene.verdict();
    check(scene, expect!["! TugOfWar /spec/template/spec/containers/0/image by x-controller"]);
    let pointers = |paths: &[FieldPath]| paths.iter().map(ToString::to_string).collect::<Vec<_>>();
    assert_eq!(pointers(&verdict.advice.keep_live), [image], "a self-heal of another field leaves it alone");
    assert_eq!(pointers(&verdict.advice.contested), [image]);
    assert_eq!(pointers(&verdict.advice.with_contested_restored().keep_live), Vec::<String>::new());
}

#[test]
fn replicas_that_git_does_not_set_and_that_are_not_the_default_were_scaled() {
    let scaled = |replicas: i64| {
        let live = json!({"spec": {"replicas": replicas, "template": {}}});
        Scene::new("apps/v1 Deployment", json!({"spec": {"template": {}}}), live)
            .by("argocd-controller Apply 1", json!({"f:spec": {"f:template": {}}}))
    };
    check(scaled(1), expect!["SchemaDefault /spec/replicas"]);
    check(scaled(3), expect!["UnclaimedAddition /spec/replicas"]);
    check(scaled(3).autoscaler("web"), expect!["ControllerOwned /spec/replicas"]);
    let mut strict = scaled(3);
    strict.strict = true;
    assert!(strict.verdict().advice.managed_fields.is_some(), "so that an apply takes it back");
    check(strict, expect!["! UnclaimedAddition /spec/replicas"]);
}

#[test]
fn a_removal_beside_a_change_of_git_is_a_removal() {
    let of = |level: &str| json!({"data": {"level": level, "other": "1"}});
    let scene = Scene::new("v1 ConfigMap", of("2"), json!({"data": {"level": "1"}}))
        .by("argocd-controller Apply 1", json!({"f:data": {"f:level": {}}}))
        .applied_before(of("1"))
        .server_makes(of("2"));
    check(
        scene,
        expect![[r"
        ! LiveEdit /data/other
        ! Behind /data/level"]],
    );
}

#[test]
fn a_reverted_edit_is_not_an_edit_of_what_git_changes_later() {
    let scene = |live: &str| {
        config(json!({"level": "2"}), json!({"level": live}))
            .by("kubectl-edit Update 2", json!({"f:data": {"f:level": {}}}))
            .applied_before(json!({"data": {"level": "1"}}))
            .server_makes(json!({"data": {"level": "2"}}))
    };
    check(scene("1"), expect!["! Behind /data/level"]);
    check(scene("7"), expect!["! LiveEdit /data/level by kubectl-edit"]);
}

#[test]
fn an_item_is_the_same_at_any_position_in_git() {
    let web = json!({"name": "web", "port": 80});
    let scene = thing(
        json!({"ports": [{"name": "new", "port": 1}, web]}),
        json!({"ports": [{"name": "old", "port": 2}]}),
    )
    .by("argocd-controller Apply 1", json!({"f:spec": {"f:ports": {}}}))
    .applied_before(json!({"spec": {"ports": [web, {"name": "old", "port": 2}]}}))
    .server_makes(json!({"spec": {"ports": [{"name": "new", "port": 1}, web]}}));
    check(
        scene,
        expect![[r"
        ! LiveEdit /spec/ports/1
        ! Behind /spec/ports/0"]],
    );
}

#[test]
fn an_addition_is_not_a_leftover_after_the_next_apply() {
    let scene = |ours: &'static str| {
        let live = json!({"data": {"level": "1", "added": "x"}});
        Scene::new("v1 ConfigMap", json!({"data": {"level": "1"}}), live)
            .by(ours, json!({"f:data": {"f:level": {}}}))
            .by("kubectl Apply 2", json!({"f:data": {"f:added": {}}}))
    };
    let before = scene("argocd-controller Apply 1");
    check(scene("argocd-controller Apply 1"), expect!["UnclaimedAddition /data/added by kubectl"]);
    let mut after = scene("argocd-controller Apply 3");
    after.earlier = before.verdict().findings.to_vec();
    check(after, expect!["UnclaimedAddition /data/added by kubectl"]);
    // Without an earlier finding it was there before the first apply of this app.
    check(scene("argocd-controller Apply 3"), expect!["! StaleOwnership /data/added by kubectl"]);
}

#[test]
fn the_new_name_that_takes_precedence_goes_first() {
    let of = |old: &str, new: &str| {
        let spec = json!({"serviceAccount": old, "serviceAccountName": new});
        json!({"spec": {"template": {"spec": spec}}})
    };
    let theirs =
        json!({"f:spec": {"f:template": {"f:spec": {"f:serviceAccount": {}, "f:serviceAccountName": {}}}}});
    let scene = |git: Value, live: Value| {
        Scene::new("apps/v1 Deployment", git, live)
            .by("argocd-controller Apply 1", json!({}))
            .by("kubectl-edit Update 2", theirs.clone())
    };
    // If Git has only the old name, the new one of the other writer has to go first.
    let only_old = json!({"spec": {"template": {"spec": {"serviceAccount": "a"}}}});
    let moved = scene(only_old.clone(), of("b", "b")).verdict().advice.managed_fields.unwrap().to_string();
    assert!(moved.contains("serviceAccountName"), "{moved}");
    check(
        scene(only_old, of("b", "b")),
        expect![[r"
            ! LiveEdit /spec/template/spec/serviceAccount by kubectl-edit
            UnclaimedAddition /spec/template/spec/serviceAccountName by kubectl-edit"]],
    );
}

#[test]
fn a_field_that_git_removes_after_an_edit_goes() {
    let scene = |previous: Value| {
        Scene::new("v1 ConfigMap", json!({"data": {"a": "1"}}), json!({"data": {"a": "1", "b": "9"}}))
            .by("argocd-controller Apply 1", json!({"f:data": {"f:a": {}}}))
            .by("kubectl-edit Update 2", json!({"f:data": {"f:b": {}}}))
            .applied_before(json!({"data": previous}))
    };
    check(scene(json!({"a": "1", "b": "2"})), expect!["! StaleOwnership /data/b by kubectl-edit"]);
    check(scene(json!({"a": "2"})), expect!["UnclaimedAddition /data/b by kubectl-edit"]);
}

#[test]
fn an_item_that_git_removes_from_a_list_is_behind() {
    let of = |args: Value| json!({"spec": {"args": args}});
    let scene = Scene::new("example.io/v1 Thing", of(json!(["a"])), of(json!(["a", "b"])))
        .by("argocd-controller Apply 1", json!({"f:spec": {"f:args": {}}}))
        .applied_before(of(json!(["a", "b"])))
        .server_makes(of(json!(["a"])));
    check(scene, expect!["! Behind /spec/args/1"]);
}

/// A missing item has no owner; its position is that of another item.
#[test]
fn an_ignored_manager_hides_no_item_that_git_adds() {
    let pods = |names: &[&str]| {
        let containers: Vec<Value> = names.iter().map(|name| json!({"name": name, "image": "x:1"})).collect();
        json!({"spec": {"template": {"spec": {"containers": containers}}}})
    };
    let owned = |name: &str| {
        let item = json!({".": {}, "f:name": {}, "f:image": {}});
        json!({"f:spec": {"f:template": {"f:spec": {"f:containers": {(format!("k:{{\"name\":\"{name}\"}}")): item}}}}})
    };
    let mut scene = Scene::new("apps/v1 Deployment", pods(&["c", "added"]), pods(&["c", "injected"]))
        .by("argocd-controller Apply 1", owned("c"))
        .by("injector Update 2", owned("injected"))
        .applied_before(pods(&["c"]));
    scene.ignored_manager = Some("injector");
    check(scene, expect!["! Behind /spec/template/spec/containers/1"]);
}

#[test]
fn fields_of_an_ignored_manager_do_not_count_and_those_of_others_do() {
    let of = |value: &str| json!({"data": {"k": value}});
    for (by, expected) in [
        ("tuner Update 2", expect![""]),
        ("kubectl-edit Update 2", expect!["! LiveEdit /data/k by kubectl-edit"]),
    ] {
        let mut scene = Scene::new("v1 ConfigMap", of("1"), of("2"))
            .by("argocd-controller Apply 1", json!({"f:metadata": {"f:labels": {}}}))
            .by(by, json!({"f:data": {"f:k": {}}}));
        scene.ignored_manager = Some("tuner");
        check(scene, expected);
    }
}
