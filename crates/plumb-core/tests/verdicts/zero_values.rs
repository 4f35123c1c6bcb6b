//! Values that look like nothing, removed from custom resources: by the types of an operator, or by a user.

use expect_test::expect;
use serde_json::{Value, json};

use crate::scene::{Scene, check, thing};

#[test]
fn a_removed_zero_value_of_a_custom_resource_needs_evidence() {
    let dropped = |git: Value, live: Value, writer: Option<&str>| {
        let mut scene = thing(git.clone(), live)
            .by("argocd-controller Apply 1", json!({"f:metadata": {"f:labels": {}}}))
            .server_makes(json!({"spec": git}));
        if let Some(writer) = writer {
            scene.live["metadata"] =
                json!({"annotations": {"plumb.dev/last-writer": format!("2026-01-01T00:00:02Z {writer}")}});
        }
        let verdict = scene.verdict();
        let counts = verdict.findings.iter().any(|finding| finding.counts);
        (counts, format!("{:?}", verdict.findings))
    };
    let zeros = || json!({"enabled": false, "other": false, "note": "", "workers": 3});
    let none = || json!({"workers": 3});
    let one = || json!({"other": false, "note": "", "workers": 3});
    for (live, writer, counts) in [
        // The types of the operator drop all of them.
        (none(), Some("knob-operator"), false),
        // There is no trace of such a write.
        (none(), None, true),
        // A user removes what Git sets.
        (none(), Some("kubectl-edit"), true),
        (none(), Some("someone"), true),
        // The witness does not note what plumb writes.
        (none(), Some("argocd-controller"), true),
        // One value of several is no write of a typed client, under any name.
        (one(), Some("knob-operator"), true),
        (one(), None, true),
    ] {
        let (found, findings) = dropped(zeros(), live.clone(), writer);
        assert_eq!(found, counts, "{live} by {writer:?}: {findings}");
    }
    // In a type of Kubernetes that is embedded, absent is not `false`.
    let (found, findings) =
        dropped(json!({"allowPrivilegeEscalation": false}), json!({}), Some("knob-operator"));
    assert!(found, "{findings}");
}

/// The API server drops an empty map of a `ConfigMap`. No answer to a dry-run is needed for that: none can be had here.
#[test]
fn an_empty_map_of_a_config_map_costs_no_dry_run() {
    let owned = json!({"f:data": {}});
    let scene = |live: Value| {
        Scene::new("v1 ConfigMap", json!({"data": {}}), live).by("argocd-controller Apply 1", owned.clone())
    };
    check(scene(json!({})), expect!["PhantomDefault /data"]);
    check(
        scene(json!({"data": {"a": "1"}})).by("kubectl-edit Update 2", json!({"f:data": {"f:a": {}}})),
        expect!["UnclaimedAddition /data/a by kubectl-edit"],
    );
}

/// Argo CD applies on the client by default, and the doctor asks for no dry-run: no entry is of a server-side apply then.
#[test]
fn without_an_owner_or_a_dry_run_nothing_is_missing_where_absent_is_the_same() {
    let deployment = |git: Value, live: Value| {
        let pod = |spec: Value| json!({"spec": {"template": {"spec": spec}}});
        Scene::new("apps/v1 Deployment", pod(git.clone()), pod(live))
            .by(
                "argocd-controller Update 1",
                json!({"f:spec": {"f:template": {"f:spec": {"f:dnsPolicy": {}}}}}),
            )
            .after_restart()
    };
    let plain = deployment(
        json!({"hostNetwork": false, "tolerations": [], "dnsPolicy": "Default"}),
        json!({"dnsPolicy": "Default"}),
    );
    check(plain, expect!["PhantomDefault /spec/template/spec/hostNetwork /spec/template/spec/tolerations"]);
    // What means something when it is gone counts.
    check(
        deployment(json!({"hostNetwork": true}), json!({})),
        expect!["! Behind /spec/template/spec/hostNetwork"],
    );
    check(
        deployment(json!({"enableServiceLinks": false}), json!({})),
        expect!["! Behind /spec/template/spec/enableServiceLinks"],
    );
    check(
        deployment(json!({"hostNetwork": false}), json!({"hostNetwork": true})),
        expect!["! Behind /spec/template/spec/hostNetwork"],
    );
    // A key of a map is content, whatever its name.
    let key = || Scene::new("v1 ConfigMap", json!({"data": {"hostname": ""}}), json!({"data": {}}));
    check(key().after_restart(), expect!["! Unexplained /data/hostname"]);
    check(
        thing(json!({"enabled": false}), json!({})).after_restart(),
        expect!["! Unexplained /spec/enabled"],
    );
}

#[test]
fn an_empty_address_is_left_to_the_server_without_asking_it() {
    let service = |git: Value, live: Value| {
        Scene::new("v1 Service", json!({"spec": git}), json!({"spec": live})).after_restart()
    };
    check(
        service(json!({"clusterIP": ""}), json!({"clusterIP": "10.0.0.7"})),
        expect!["PhantomDefault /spec/clusterIP"],
    );
    check(
        service(json!({"clusterIP": "None"}), json!({"clusterIP": "10.0.0.7"})),
        expect!["! Unexplained /spec/clusterIP"],
    );
    check(
        service(json!({"sessionAffinity": ""}), json!({"sessionAffinity": "ClientIP"})),
        expect!["! Unexplained /spec/sessionAffinity"],
    );
}

/// Where the witness was not asked, `managedFields` are the evidence: a controller that wrote the object itself.
#[test]
fn without_a_witness_a_controller_leaves_a_trace_when_it_writes_an_object_back() {
    let git = json!({"enabled": false, "workers": 3});
    let scene = |writer: &'static str, fields: Value| {
        thing(git.clone(), json!({"workers": 3}))
            .by("argocd-controller Apply 1", json!({"f:spec": {"f:workers": {}}}))
            .by(writer, fields)
            .server_makes(json!({"spec": git}))
    };
    let finalizer = || json!({"f:metadata": {"f:finalizers": {}}});
    let status = || json!({"f:status": {"f:phase": {}}});
    check(scene("knob-operator Update 2", finalizer()), expect!["PhantomDefault /spec/enabled"]);
    check(scene("knob-operator Update 2 status", status()), expect!["! LiveEdit /spec/enabled"]);
    // The time of an entry is that of its last change, and the operator drops the same values again after each apply.
    check(scene("knob-operator Update 0", finalizer()), expect!["PhantomDefault /spec/enabled"]);
    check(scene("kubectl-edit Update 2", finalizer()), expect!["! LiveEdit /spec/enabled"]);
}

/// A list that is replaced as a whole has one owner, whoever wrote the object last.
#[test]
fn a_zero_value_that_is_gone_from_a_list_went_with_the_writer_of_the_list() {
    let git = json!({"steps": [{"name": "a", "on": false}]});
    let scene = |owner: &'static str, last: &str| {
        let mut scene = thing(git.clone(), json!({"steps": [{"name": "a"}]}))
            .by("argocd-controller Apply 1", json!({"f:spec": {}}))
            .by(owner, json!({"f:spec": {"f:steps": {}}}))
            .server_makes(json!({"spec": git}));
        scene.live["metadata"] =
            json!({"annotations": {"plumb.dev/last-writer": format!("2026-01-01T00:00:03Z {last}")}});
        scene.verdict().findings.iter().any(|finding| finding.counts)
    };
    assert!(scene("kubectl-edit Update 2", "knob-operator"), "a user wrote the list");
    assert!(!scene("knob-operator Update 2", "kubectl-edit"), "the operator wrote the list");
}

/// Git's new line is not what the API server dropped, however much of the list around it is ours.
#[test]
fn a_zero_value_that_is_new_in_git_is_behind() {
    let (before, now) = (json!({"steps": [{"name": "a"}]}), json!({"steps": [{"name": "a", "on": false}]}));
    let scene = thing(now.clone(), before.clone())
        .by("argocd-controller Apply 1", json!({"f:spec": {"f:steps": {}}}))
        .applied_before(json!({"spec": before}))
        .server_makes(json!({"spec": now}));
    check(scene, expect!["! Behind /spec/steps/0/on"]);
    let scene = thing(json!({"enabled": false}), json!({}))
        .by("argocd-controller Apply 1", json!({"f:spec": {}}))
        .applied_before(json!({"spec": {}}))
        .server_makes(json!({"spec": {"enabled": false}}));
    check(scene, expect!["! Behind /spec/enabled"]);
}

/// A user removes a line, and the operator writes the object for another reason.
#[test]
fn a_later_write_of_a_controller_does_not_undo_an_edit() {
    let git = json!({"enabled": false});
    let scene = |last: &str| {
        let mut scene = thing(git.clone(), json!({}))
            .by("argocd-controller Apply 1", json!({"f:spec": {}}))
            .server_makes(json!({"spec": git}));
        scene.live["metadata"] =
            json!({"annotations": {"plumb.dev/last-writer": format!("2026-01-01T00:00:0{last}")}});
        scene
    };
    let edited = scene("2Z kubectl-edit");
    check(scene("2Z kubectl-edit"), expect!["! LiveEdit /spec/enabled by kubectl-edit"]);
    let mut later = scene("3Z knob-operator");
    later.earlier = edited.verdict().findings.to_vec();
    check(later, expect!["! LiveEdit /spec/enabled by kubectl-edit"]);
}

/// In a Rollout, which is in the same group as an Application, absent is not `false`.
#[test]
fn the_types_of_argo_cd_are_not_those_of_its_group() {
    let scene = |kind: &'static str, field: &str| {
        let git = json!({"spec": {field: false}});
        let mut scene = Scene::new(kind, git.clone(), json!({"spec": {}}))
            .by("argocd-controller Apply 1", json!({"f:spec": {}}))
            .server_makes(git);
        scene.live["metadata"] =
            json!({"annotations": {"plumb.dev/last-writer": "2026-01-01T00:00:02Z kubectl-edit"}});
        scene.verdict().findings.iter().any(|finding| finding.counts)
    };
    assert!(scene("argoproj.io/v1alpha1 Rollout", "autoPromotionEnabled"));
    assert!(!scene("argoproj.io/v1alpha1 Application", "prune"));
    assert!(scene("argoproj.io/v1alpha1 Application", "enabled"), "of `automated`, absent is true");
}
