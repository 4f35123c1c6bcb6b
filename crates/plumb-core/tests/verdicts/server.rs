//! What the API server and its policies choose.

use expect_test::expect;
use serde_json::{Value, json};

use crate::scene::{Answer, Scene, check, config, thing};

#[test]
fn without_a_dry_run_admission_is_not_proven() {
    let scene = || config(json!({"level": "2"}), json!({"level": "1"})).policy("mirror");
    check(scene(), expect!["! Unexplained /data/level"]);
    check(scene().refused(503, "try again later", &[]), expect!["! Unexplained /data/level"]);
    check(
        scene().server_makes(json!({"data": {"level": "1"}})),
        expect!["AdmissionMutated /data/level by MutatingAdmissionPolicy `mirror`"],
    );
    // Without a dry-run, a field that may have been removed from Git is not called a default.
    let dropped = || {
        thing(json!({"steps": [{"name": "a"}]}), json!({"steps": [{"name": "a", "policy": "x"}]}))
            .by("argocd-controller Apply 1", json!({"f:spec": {"f:steps": {}}}))
    };
    check(
        dropped().applied_before(json!({"spec": {"steps": [{"name": "a", "policy": "x"}]}})),
        expect!["! Behind /spec/steps/0/policy"],
    );
    check(
        dropped().applied_before(json!({"spec": {"steps": [{"name": "a"}], "note": "x"}})),
        expect!["SchemaDefault /spec/steps/0/policy"],
    );
    check(dropped().after_restart(), expect!["! Unexplained /spec/steps/0/policy"]);
}

#[test]
fn fields_that_the_server_chooses_are_judged_like_any_other() {
    let ingress = || {
        Scene::new(
            "networking.k8s.io/v1 Ingress",
            json!({"spec": {"tls": []}}),
            json!({"spec": {"tls": [], "ingressClassName": "public"}}),
        )
    };
    let ours = json!({"f:spec": {"f:tls": {}}});
    let class = json!({"f:spec": {"f:ingressClassName": {}}});
    check(
        ingress().by("argocd-controller Apply 1", ours.clone()),
        expect!["SchemaDefault /spec/ingressClassName"],
    );
    let patched = || {
        ingress().by("argocd-controller Apply 1", ours.clone()).by("kubectl-patch Update 2", class.clone())
    };
    check(patched(), expect!["UnclaimedAddition /spec/ingressClassName by kubectl-patch"]);
    check(patched().strict(), expect!["! UnclaimedAddition /spec/ingressClassName by kubectl-patch"]);
    check(
        ingress()
            .by("argocd-controller Apply 1", json!({"f:spec": {"f:tls": {}, "f:ingressClassName": {}}}))
            .applied_before(json!({"spec": {"tls": [], "ingressClassName": "public"}}))
            .server_makes(json!({"spec": {"tls": []}})),
        expect!["! Behind /spec/ingressClassName"],
    );
    // A choice of the control plane is a default too, and so is one without an owner.
    check(
        ingress()
            .by("argocd-controller Apply 1", ours.clone())
            .by("kube-controller-manager Update 2", class.clone()),
        expect!["SchemaDefault /spec/ingressClassName by kube-controller-manager"],
    );
    check(ingress().strict(), expect!["SchemaDefault /spec/ingressClassName"]);
    let mut left = ingress()
        .by("argocd-controller Apply 2", ours.clone())
        .by("kubectl-client-side-apply Update 1", class.clone());
    left.last_applied = Some(json!({"spec": {"tls": [], "ingressClassName": "public"}}));
    check(left, expect!["! StaleOwnership /spec/ingressClassName by kubectl-client-side-apply"]);

    let pod = |image: &str, policy: &str| {
        let containers = json!([{"name": "c", "image": image}]);
        let filled = json!([{"name": "c", "image": image, "imagePullPolicy": policy}]);
        let spec = |containers: &Value| json!({"spec": {"template": {"spec": {"containers": containers}}}});
        let owned = json!({"f:spec": {"f:template": {"f:spec": {"f:containers":
            {"k:{\"name\":\"c\"}": {"f:imagePullPolicy": {}}}}}}});
        Scene::new("apps/v1 Deployment", spec(&containers), spec(&filled))
            .by("argocd-controller Apply 1", json!({"f:metadata": {"f:labels": {}}}))
            .by("kubectl-patch Update 2", owned)
    };
    let place = "/spec/template/spec/containers/0/imagePullPolicy";
    for (image, policy, is_default) in [
        ("nginx:1", "IfNotPresent", true),
        ("nginx:1", "Always", false),
        ("nginx", "Always", true),
        ("nginx:latest", "Always", true),
        ("host:5000/nginx", "Always", true),
        ("host:5000/nginx:1", "IfNotPresent", true),
        ("nginx@sha256:0", "IfNotPresent", true),
        ("nginx:latest", "Never", false),
    ] {
        let verdict = pod(image, policy).verdict();
        let [finding] = &*verdict.findings else { panic!("{:?}", verdict.findings) };
        assert_eq!(finding.fields[0].to_string(), place);
        let class = if is_default { "SchemaDefault" } else { "UnclaimedAddition" };
        assert_eq!(finding.class.name(), class, "{image} {policy}");
    }
}

#[test]
fn a_removal_by_a_policy_is_admission() {
    let ours = json!({"f:spec": {"f:note": {}, "f:args": {}, "f:tags": {"v:\"a\"": {}},
        "f:ports": {"k:{\"name\":\"a\"}": {".": {}, "f:name": {}}}}});
    let stripped = |git: Value, live: Value| {
        thing(git, live.clone())
            .by("argocd-controller Apply 1", ours.clone())
            .policy("strip")
            .server_makes(json!({"spec": live}))
    };
    check(
        stripped(json!({"ports": [{"name": "a"}, {"name": "b"}]}), json!({"ports": [{"name": "a"}]})),
        expect!["AdmissionMutated /spec/ports/1 by MutatingAdmissionPolicy `strip`"],
    );
    check(
        stripped(json!({"tags": ["a", "b"]}), json!({"tags": ["a"]})),
        expect!["AdmissionMutated /spec/tags/1 by MutatingAdmissionPolicy `strip`"],
    );
    check(
        stripped(json!({"args": ["a", "b"]}), json!({"args": ["a"]})),
        expect!["AdmissionMutated /spec/args/1 by MutatingAdmissionPolicy `strip`"],
    );
    check(
        stripped(json!({"args": ["a", "b"]}), json!({"args": ["b", "a"]})),
        expect!["AdmissionMutated /spec/args by MutatingAdmissionPolicy `strip`"],
    );
    check(
        stripped(json!({"note": "x"}), json!({})),
        expect!["AdmissionMutated /spec/note by MutatingAdmissionPolicy `strip`"],
    );
    // The policy matches, but another writer removed it: an apply would bring it back.
    check(
        stripped(json!({"args": ["a", "b"]}), json!({"args": ["a"]}))
            .server_makes(json!({"spec": {"args": ["a", "b"]}})),
        expect!["! LiveEdit /spec/args/1"],
    );
    let mut unasked = stripped(json!({"tags": ["a", "b"]}), json!({"tags": ["a"]}));
    unasked.answer = Answer::Unavailable;
    check(unasked, expect!["! LiveEdit /spec/tags/1"]);
}

#[test]
fn a_field_in_managed_fields_and_not_in_the_object_was_dropped_on_write() {
    let spec = |note: Value| json!({"spec": {"template": {"spec": note}}});
    let scene = Scene::new(
        "apps/v1 Deployment",
        spec(json!({"nodeName": "a"})),
        spec(json!({"serviceAccountName": "b"})),
    )
    .by("argocd-controller Apply 1", json!({}))
    .by("kubectl-edit Update 2", json!({"f:spec": {"f:template": {"f:spec": {"f:nodeName": {}}}}}))
    .server_makes(spec(json!({"serviceAccountName": "b"})));
    check(
        scene,
        expect![[r"
        SchemaDefault /spec/template/spec/serviceAccountName
        RejectedField /spec/template/spec/nodeName"]],
    );
}

#[test]
fn a_field_that_is_generated_on_each_write_was_not_removed_from_git() {
    let of = |subjects: Value| json!({"subjects": subjects});
    let scene = |predicted: Value| {
        Scene::new(
            "rbac.authorization.k8s.io/v1 RoleBinding",
            of(json!([{"kind": "User"}])),
            of(json!([{"kind": "User", "name": "at-10"}])),
        )
        .by("argocd-controller Apply 1", json!({"f:subjects": {}}))
        .applied_before(of(json!([{"kind": "Group"}])))
        .server_makes(of(predicted))
    };
    check(scene(json!([{"kind": "User", "name": "at-11"}])), expect!["SchemaDefault /subjects/0/name"]);
    check(scene(json!([{"kind": "User"}])), expect!["! Behind /subjects/0/name"]);
}

#[test]
fn a_rewrite_by_a_policy_inside_an_edited_list_is_admission() {
    let of = |args: Value| json!({"spec": {"args": args}});
    let scene = Scene::new("example.io/v1 Thing", of(json!(["a", "b"])), of(json!(["A", "c"])))
        .by("argocd-controller Apply 1", json!({}))
        .by("kubectl-edit Update 2", json!({"f:spec": {"f:args": {}}}))
        .policy("capitals")
        .server_makes(of(json!(["A", "b"])));
    check(
        scene,
        expect![[r"
        ! LiveEdit /spec/args/1 by kubectl-edit
        AdmissionMutated /spec/args/0 by MutatingAdmissionPolicy `capitals`"]],
    );
}

#[test]
fn a_field_that_is_always_there_was_removed_by_the_writer_of_null() {
    let spec = |note: Value| json!({"spec": {"template": {"spec": note}}});
    let scene =
        Scene::new("apps/v1 Deployment", spec(json!({"nodeName": "a"})), spec(json!({"nodeName": null})))
            .by("argocd-controller Apply 1", json!({}))
            .by("kubectl-edit Update 2", json!({"f:spec": {"f:template": {"f:spec": {"f:nodeName": {}}}}}))
            .server_makes(spec(json!({"nodeName": "a"})));
    check(scene, expect!["! LiveEdit /spec/template/spec/nodeName by kubectl-edit"]);
}

#[test]
fn a_default_removed_from_git_counts_if_an_apply_removes_it() {
    let pods = |spec: &Value| json!({"spec": {"template": {"spec": spec}}});
    let (with, without) =
        (pods(&json!({"enableServiceLinks": true})), pods(&json!({"dnsPolicy": "Default"})));
    let live = pods(&json!({"dnsPolicy": "Default", "enableServiceLinks": true}));
    let owned =
        json!({"f:spec": {"f:template": {"f:spec": {"f:enableServiceLinks": {}, "f:dnsPolicy": {}}}}});
    let scene = || {
        Scene::new("apps/v1 Deployment", without.clone(), live.clone())
            .by("argocd-controller Apply 1", owned.clone())
            .applied_before(with.clone())
    };
    check(
        scene().server_makes(live.clone()),
        expect!["SchemaDefault /spec/template/spec/enableServiceLinks"],
    );
    check(scene().server_makes(without.clone()), expect!["! Behind /spec/template/spec/enableServiceLinks"]);
    // No dry-run if plumb did not apply it.
    let filled = Scene::new("apps/v1 Deployment", without.clone(), live.clone())
        .by("argocd-controller Apply 1", json!({"f:spec": {"f:template": {"f:spec": {"f:dnsPolicy": {}}}}}));
    check(filled.applied_before(with), expect!["SchemaDefault /spec/template/spec/enableServiceLinks"]);
}

/// `hostNetwork: false` is not stored, and our entry keeps its name: that does not prove that the API server drops `true`.
#[test]
fn an_entry_of_another_value_proves_nothing() {
    let pods = |spec: &Value| json!({"spec": {"template": {"spec": spec}}});
    let (off, on, nothing) =
        (pods(&json!({"hostNetwork": false})), pods(&json!({"hostNetwork": true})), pods(&json!({})));
    let owned = json!({"f:spec": {"f:template": {"f:spec": {"f:hostNetwork": {}}}}});
    let scene = || {
        Scene::new("apps/v1 Deployment", on.clone(), nothing.clone())
            .by("argocd-controller Apply 1", owned.clone())
    };
    let flipped = || scene().applied_before(off.clone());
    check(flipped().server_makes(on.clone()), expect!["! Behind /spec/template/spec/hostNetwork"]);
    check(flipped().server_makes(nothing.clone()), expect!["RejectedField /spec/template/spec/hostNetwork"]);
    check(
        scene().after_restart().server_makes(on.clone()),
        expect!["! Behind /spec/template/spec/hostNetwork"],
    );
    // A field that was applied like this and is missing was dropped, or a client removed it and kept the entry.
    check(scene().server_makes(nothing.clone()), expect!["RejectedField /spec/template/spec/hostNetwork"]);
    check(scene().server_makes(on.clone()), expect!["! LiveEdit /spec/template/spec/hostNetwork"]);
}

#[test]
fn an_entry_of_another_writer_does_not_prove_an_edit() {
    // The API server dropped what both asked for, and left an empty map that the other writer owns.
    let pods = |spec: &Value| json!({"spec": {"template": {"spec": spec}}});
    let asked = pods(&json!({"securityContext": {"runAsUser": 7}}));
    let left = pods(&json!({"securityContext": {}}));
    let theirs = json!({"f:spec": {"f:template": {"f:spec": {"f:securityContext": {}}}}});
    let scene = || {
        Scene::new("apps/v1 Deployment", asked.clone(), left.clone())
            .by("kubectl-create Update 1", theirs.clone())
            .after_restart()
    };
    check(
        scene().server_makes(left.clone()),
        expect!["RejectedField /spec/template/spec/securityContext/runAsUser"],
    );
    check(
        scene().server_makes(asked.clone()),
        expect!["! LiveEdit /spec/template/spec/securityContext/runAsUser by kubectl-create"],
    );
    // An empty value in Git leaves the choice to the API server.
    let service = |kind: &str| json!({"spec": {"sessionAffinity": kind}});
    let scene = || {
        Scene::new("v1 Service", service(""), service("None"))
            .by("argocd-controller Apply 1", json!({"f:spec": {}}))
            .by("kubectl-edit Update 2", json!({"f:spec": {"f:sessionAffinity": {}}}))
    };
    check(scene().server_makes(service("None")), expect!["PhantomDefault /spec/sessionAffinity"]);
    check(scene().server_makes(service("")), expect!["! LiveEdit /spec/sessionAffinity by kubectl-edit"]);
}

/// `""` and 0 are no value where the API server fills in a default: what another writer sets there is an addition, as it
/// is where Git leaves the field out.
#[test]
fn a_value_beside_an_empty_one_is_an_addition() {
    let service = |kind: &str| json!({"spec": {"sessionAffinity": kind}});
    let edited = |git: Value| {
        Scene::new("v1 Service", git, service("ClientIP"))
            .by("argocd-controller Apply 1", json!({"f:spec": {}}))
            .by("kubectl-patch Update 2", json!({"f:spec": {"f:sessionAffinity": {}}}))
            .server_makes(service("None"))
    };
    let addition = "UnclaimedAddition /spec/sessionAffinity by kubectl-patch";
    for git in [service(""), json!({"spec": {}}), json!({"spec": {"sessionAffinity": null}})] {
        check(edited(git.clone()), expect![[r"UnclaimedAddition /spec/sessionAffinity by kubectl-patch"]]);
        let strict = edited(git).strict().verdict();
        assert!(strict.findings.iter().any(|finding| finding.counts), "{addition}: {strict:?}");
    }
    // A sync of other fields leaves it alone.
    let verdict = edited(service("")).verdict();
    assert!(!verdict.advice.needed && verdict.advice.heal.is_empty(), "{:?}", verdict.advice);
    assert_eq!(verdict.advice.leave_out.len(), 1, "{:?}", verdict.advice);
    // A value that Git sets counts, be it the default or not.
    check(edited(service("None")), expect![[r"! LiveEdit /spec/sessionAffinity by kubectl-patch"]]);
    // So does an empty value that the API server keeps, or for which there is no default.
    check(
        edited(service("")).server_makes(service("")),
        expect![[r"! LiveEdit /spec/sessionAffinity by kubectl-patch"]],
    );
    let pods = |account: &str| json!({"spec": {"template": {"spec": {"serviceAccount": account}}}});
    let scene = Scene::new("apps/v1 Deployment", pods(""), pods("admin"))
        .by("argocd-controller Apply 1", json!({"f:spec": {}}))
        .by("kubectl-edit Update 2", json!({"f:spec": {"f:template": {"f:spec": {"f:serviceAccount": {}}}}}))
        .server_makes(json!({"spec": {"template": {"spec": {}}}}));
    check(scene, expect![[r"! LiveEdit /spec/template/spec/serviceAccount by kubectl-edit"]]);
    // Without an answer of the API server nothing is excused.
    let mut unanswered = edited(service(""));
    unanswered.answer = Answer::Unavailable;
    check(unanswered, expect![[r"! LiveEdit /spec/sessionAffinity by kubectl-patch"]]);
}
