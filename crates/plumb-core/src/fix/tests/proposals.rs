//! One case per class and goal: what is proposed, and what it makes of the files.

use expect_test::{Expect, expect};
use serde_json::json;

use super::scene::{Scene, finding, scene, shown, subject};
use crate::desired::Origin;
use crate::drift::{DriftClass, Finding};
use crate::fix::*;
use crate::object::{FieldPath, Manifest, ObjectKey};
use crate::yaml::{Limits, edit_document, parse_documents};

fn check(scene: &Scene, finding: &Finding, goal: FixGoal, expected: &Expect) {
    expected.assert_eq(&shown(scene, &propose(&subject(scene, finding), goal)));
}

fn external_secret() -> Scene {
    scene(
        "apiVersion: external-secrets.io/v1\nkind: ExternalSecret\nmetadata: {name: a, namespace: shop}\nspec:\n  data:\n    - secretKey: K # key\n      remoteRef:\n        key: K\n",
        json!({"apiVersion": "external-secrets.io/v1", "kind": "ExternalSecret", "metadata": {"name": "a", "namespace": "shop"},
            "spec": {"target": {"deletionPolicy": "Retain"}, "clusterIP": "10.0.0.1",
                "data": [{"secretKey": "K", "remoteRef": {"key": "K", "metadataPolicy": "None"}}]}}),
    )
}

const DEFAULTS: [&str; 2] = ["/spec/target/deletionPolicy", "/spec/data/0/remoteRef/metadataPolicy"];

#[test]
fn defaults_are_pinned_for_argo_cd_alone() {
    let scene = external_secret();
    let found = finding(&scene, DriftClass::SchemaDefault, false, &DEFAULTS, &[]);
    check(
        &scene,
        &found,
        FixGoal::ArgoCd,
        &expect![[r"
        edit, because the API server fills in these defaults; set here, a later change of them shows
        apiVersion: external-secrets.io/v1
        kind: ExternalSecret
        metadata: {name: a, namespace: shop}
        spec:
          data:
            - secretKey: K # key
              remoteRef:
                key: K
                metadataPolicy: None
          target:
            deletionPolicy: Retain
    "]],
    );
    check(
        &scene,
        &found,
        FixGoal::Plumb,
        &expect![[r"
        nothing: plumb does not count the difference, and asks for no change of Git
    "]],
    );
}

#[test]
fn defaults_that_argo_cd_does_not_show_are_pinned_only_if_asked_for() {
    let scene = deployment();
    let fields = ["/spec/revisionHistoryLimit"];
    let found = finding(&scene, DriftClass::SchemaDefault, false, &fields, &[]);
    let first = |subject: &Subject<'_>| shown(&scene, &propose(subject, FixGoal::ArgoCd));
    let red = subject(&scene, &found);
    let nothing = "nothing: Argo CD does not compare defaults outside of lists\n";
    for is_red_in_argo_cd in [None, Some(true)] {
        assert_eq!(first(&Subject { is_red_in_argo_cd, ..red }), nothing);
    }
    // Nothing else explains what Argo CD shows.
    assert!(first(&Subject { is_alone: true, ..red }).starts_with("edit, because"));
    assert!(
        first(&Subject { is_asked_for: true, is_red_in_argo_cd: None, ..red }).starts_with("edit, because")
    );
    let unknown = Subject { is_alone: true, is_red_in_argo_cd: None, ..red };
    assert_eq!(first(&unknown), nothing);
}

#[test]
fn what_argo_cd_does_not_flag_is_left_alone() {
    let scene = external_secret();
    let found = finding(&scene, DriftClass::SchemaDefault, false, &DEFAULTS, &[]);
    let green = Subject { is_red_in_argo_cd: Some(false), ..subject(&scene, &found) };
    assert_eq!(
        shown(&scene, &propose(&green, FixGoal::ArgoCd)),
        "nothing: Argo CD shows the object as Synced\n"
    );
}

#[test]
fn a_value_that_the_cluster_chooses_is_ignored_not_pinned() {
    let scene = external_secret();
    let fields = ["/spec/clusterIP", "/spec/target/deletionPolicy"];
    let found = finding(&scene, DriftClass::SchemaDefault, false, &fields, &[]);
    let alone = Subject { is_alone: true, ..subject(&scene, &found) };
    let proposals = propose(&alone, FixGoal::ArgoCd);
    let ignored = proposals.iter().find_map(|proposal| match &proposal.action {
        Action::Ignore(entry) => Some(entry.value()),
        Action::Edit(_)
        | Action::Through(..)
        | Action::Drop(_)
        | Action::Compare(_)
        | Action::Instruct(_)
        | Action::Nothing(_) => None,
    });
    let expected = json!({"group": "external-secrets.io", "kind": "ExternalSecret", "namespace": "shop", "name": "a",
        "jsonPointers": ["/spec/clusterIP"]});
    assert_eq!(ignored, Some(expected));
    assert_eq!(proposals.len(), 2);
}

#[test]
fn the_app_that_does_not_own_a_shared_object_gives_it_up() {
    let scene = external_secret();
    let mut theirs = finding(&scene, DriftClass::SharedResource, true, &[], &[]);
    theirs.actor = Some("other".to_owned());
    let expected = expect![[r"
        drop, because app other keeps it: one object belongs to one app
    "]];
    check(&scene, &theirs, FixGoal::Plumb, &expected);
    // What the owner's copy lacks is lost.
    let kept = json!({"apiVersion": "external-secrets.io/v1", "kind": "ExternalSecret",
        "metadata": {"name": "a", "namespace": "shop"}, "spec": {}});
    let kept = Manifest::new(kept).expect("an object");
    let with_kept = Subject { kept: Some(&kept), ..subject(&scene, &theirs) };
    expect![[r"
        drop, because app other keeps it: one object belongs to one app; only in this copy: /spec/data
    "]]
    .assert_eq(&shown(&scene, &propose(&with_kept, FixGoal::Plumb)));
    let ours = Finding { counts: false, ..theirs.clone() };
    let expected = expect![[r"
        nothing: this app keeps it; another one has to give it up
    "]];
    check(&scene, &ours, FixGoal::ArgoCd, &expected);
    // The user chooses the other one.
    let chosen = |finding: &Finding, keeper| {
        let subject = Subject { keeper: Some(keeper), ..subject(&scene, finding) };
        shown(&scene, &propose(&subject, FixGoal::ArgoCd))
    };
    let given_up = "drop, because app mine keeps it: one object belongs to one app\n";
    assert_eq!(chosen(&ours, Keeper::Other("mine")), given_up);
    let kept = "nothing: this app keeps it; another one has to give it up\n";
    assert_eq!(chosen(&theirs, Keeper::ThisApp), kept);
}

#[test]
fn defaults_of_a_rendered_object_are_set_where_the_tool_reads_them() {
    let scene = external_secret();
    let found = finding(&scene, DriftClass::SchemaDefault, false, &DEFAULTS, &[]);
    let rendered = Origin { verbatim: false, ..scene.origin.clone() };
    let subject = Subject { origin: Some(&rendered), ..subject(&scene, &found) };
    expect![[r#"
        where the tool reads it: set /spec/target/deletionPolicy to "Retain"; set /spec/data/0/remoteRef/metadataPolicy to "None"
        else ignore {"group":"external-secrets.io","jsonPointers":["/spec/data/0/remoteRef/metadataPolicy","/spec/target/deletionPolicy"],"kind":"ExternalSecret","name":"a","namespace":"shop"}, because the API server fills in this value
    "#]]
    .assert_eq(&shown(&scene, &propose(&subject, FixGoal::ArgoCd)));
}

fn child_app() -> Scene {
    scene(
        "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata:\n  name: child\n  namespace: argocd\nspec:\n  syncPolicy:\n    automated:\n      prune: false\n      selfHeal: true\n",
        json!({"apiVersion": "argoproj.io/v1alpha1", "kind": "Application", "metadata": {"name": "child", "namespace": "argocd"},
            "spec": {"syncPolicy": {"automated": {"selfHeal": true}}}}),
    )
}

#[test]
fn phantom_lines_go_for_both() {
    let scene = child_app();
    let pointer = "/spec/syncPolicy/automated/prune";
    let patch = [json!({"op": "remove", "path": pointer})];
    let found = finding(&scene, DriftClass::PhantomDefault, false, &[pointer], &patch);
    for goal in [FixGoal::ArgoCd, FixGoal::Plumb] {
        check(
            &scene,
            &found,
            goal,
            &expect![[r"
            edit, because Git sets what the object would have anyway
            apiVersion: argoproj.io/v1alpha1
            kind: Application
            metadata:
              name: child
              namespace: argocd
            spec:
              syncPolicy:
                automated:
                  selfHeal: true
        "]],
        );
    }
}

fn deployment() -> Scene {
    scene(
        "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web, namespace: shop}\nspec:\n  replicas: 2\n  replica: 3 # typo\n  cpu: 1000m\n",
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "namespace": "shop"},
            "spec": {"replicas": 5, "cpu": "1", "revisionHistoryLimit": 10}}),
    )
}

#[test]
fn fields_of_a_controller_leave_git() {
    let scene = deployment();
    let patch = [json!({"op": "remove", "path": "/spec/replicas"})];
    let found = finding(&scene, DriftClass::ControllerOwned, false, &["/spec/replicas"], &patch);
    check(
        &scene,
        &found,
        FixGoal::ArgoCd,
        &expect![[r"
            edit, because the writer owns this field; where syncs use client-side apply, the first one without it sets the default once (of replicas: 1)
            apiVersion: apps/v1
            kind: Deployment
            metadata: {name: web, namespace: shop}
            spec:
              replica: 3 # typo
              cpu: 1000m
        "]],
    );
    // Git does not set it: there is no line to remove, and Argo CD does not see it.
    let added = finding(&scene, DriftClass::ControllerOwned, false, &["/spec/extra"], &[]);
    check(
        &scene,
        &added,
        FixGoal::ArgoCd,
        &expect![[r"
        nothing: Git does not set the field, and Argo CD compares only what Git sets
    "]],
    );
}

/// Argo CD compares lists of custom resources as a whole, and so what others add to their items.
#[test]
fn additions_are_ignored_where_git_sets_the_list() {
    let scene = external_secret();
    for class in [DriftClass::ControllerOwned, DriftClass::UnclaimedAddition] {
        let added = finding(&scene, class, false, &["/spec/data/0/remoteRef/x", "/spec/target/y"], &[]);
        let proposals = propose(&subject(&scene, &added), FixGoal::ArgoCd);
        let [Proposal { action: Action::Ignore(entry), .. }] = proposals.as_slice() else {
            panic!("{proposals:?}")
        };
        assert_eq!(entry.value()["jsonPointers"], json!(["/spec/data/0/remoteRef/x"]));
    }
}

/// Argo CD takes the pointers one by one, and an empty list is not the same as none.
#[test]
fn rules_for_items_work_in_argo_cd() {
    let cluster_role = scene(
        "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: r}\nrules: []\n",
        json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "r"},
            "rules": [{}, {}]}),
    );
    let fields = ["/rules/0", "/rules/1"];
    let found = finding(&cluster_role, DriftClass::ControllerOwned, false, &fields, &[]);
    let shown_rule =
        |scene: &Scene, found: &Finding| shown(scene, &propose(&subject(scene, found), FixGoal::ArgoCd));
    assert!(shown_rule(&cluster_role, &found).contains(r#""jsonPointers":["/rules"]"#));
    let account = scene(
        "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: a, namespace: n}\nimagePullSecrets: [{name: a}]\n",
        json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "a", "namespace": "n"},
            "imagePullSecrets": [{"name": "a"}, {"name": "b"}, {"name": "c"}]}),
    );
    let fields = ["/imagePullSecrets/1", "/imagePullSecrets/2"];
    let found = finding(&account, DriftClass::ControllerOwned, false, &fields, &[]);
    let pointers = r#""jsonPointers":["/imagePullSecrets/2","/imagePullSecrets/1"]"#;
    assert!(shown_rule(&account, &found).contains(pointers));
}

#[test]
fn a_typo_is_renamed_and_never_ignored() {
    let scene = deployment();
    let patch = [json!({"op": "move", "from": "/spec/replica", "path": "/spec/minReadySeconds"})];
    let found = finding(&scene, DriftClass::RejectedField, true, &["/spec/replica"], &patch);
    check(
        &scene,
        &found,
        FixGoal::Plumb,
        &expect![[r"
        edit, because the API server does not keep this field
        apiVersion: apps/v1
        kind: Deployment
        metadata: {name: web, namespace: shop}
        spec:
          replicas: 2
          minReadySeconds: 3 # typo
          cpu: 1000m
    "]],
    );
    let rendered = Subject { origin: None, ..subject(&scene, &found) };
    assert_eq!(shown(&scene, &propose(&rendered, FixGoal::ArgoCd)), "instruct: what the finding says\n");
}

#[test]
fn the_spelling_of_the_cluster_is_adopted_for_argo_cd() {
    let scene = deployment();
    let patch = [json!({"op": "replace", "path": "/spec/cpu", "value": "1"})];
    let found = finding(&scene, DriftClass::EquivalentValue, false, &["/spec/cpu"], &patch);
    check(
        &scene,
        &found,
        FixGoal::ArgoCd,
        &expect![[r#"
        edit, because the cluster writes the same value differently
        apiVersion: apps/v1
        kind: Deployment
        metadata: {name: web, namespace: shop}
        spec:
          replicas: 2
          replica: 3 # typo
          cpu: "1"
    "#]],
    );
}

#[test]
fn random_and_rewritten_values_are_ignored_narrowly() {
    let scene = deployment();
    let fields =
        ["/spec/template/metadata/annotations/checksum~1config", "/spec/template/metadata/annotations/b"];
    let unstable = finding(&scene, DriftClass::UnstableRender, false, &fields, &[]);
    check(
        &scene,
        &unstable,
        FixGoal::ArgoCd,
        &expect![[r#"
        ignore {"group":"apps","jsonPointers":["/spec/template/metadata/annotations/b","/spec/template/metadata/annotations/checksum~1config"],"kind":"Deployment","name":"web","namespace":"shop"}, because each render of the same commit has another value here
    "#]],
    );
    let mutated = finding(&scene, DriftClass::AdmissionMutated, false, &["/spec/cpu"], &[]);
    check(
        &scene,
        &mutated,
        FixGoal::ArgoCd,
        &expect![[r#"
        ignore {"group":"apps","jsonPointers":["/spec/cpu"],"kind":"Deployment","name":"web","namespace":"shop"}, because the writer sets this on every write
    "#]],
    );
}

/// A rule for all of `/spec`, or for the object, would hide what matters.
#[test]
fn rules_are_never_wide() {
    let scene = deployment();
    for fields in [&[] as &[&str], &["/spec"], &["/metadata/name"], &["/metadata"], &[""], &["/kind"]] {
        let found = finding(&scene, DriftClass::AdmissionMutated, false, fields, &[]);
        check(
            &scene,
            &found,
            FixGoal::ArgoCd,
            &expect![[r"
            instruct: what the finding says
        "]],
        );
    }
}

/// A list that Git leaves empty and a controller fills, beside `metadata`.
#[test]
fn a_field_of_the_object_itself_can_be_ignored() {
    let scene = scene(
        "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: a, namespace: n}\nimagePullSecrets: []\n",
        json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "a", "namespace": "n"},
            "imagePullSecrets": [{"name": "added"}]}),
    );
    let found = finding(&scene, DriftClass::ControllerOwned, false, &["/imagePullSecrets/0"], &[]);
    check(
        &scene,
        &found,
        FixGoal::ArgoCd,
        &expect![[r#"
        ignore {"jsonPointers":["/imagePullSecrets"],"kind":"ServiceAccount","name":"a","namespace":"n"}, because the writer owns this field
    "#]],
    );
}

#[test]
fn a_live_edit_is_kept_only_if_the_user_says_so() {
    let scene = deployment();
    let patch = [json!({"op": "replace", "path": "/spec/replicas", "value": 5})];
    let found = finding(&scene, DriftClass::LiveEdit, true, &["/spec/replicas"], &patch);
    for goal in [FixGoal::ArgoCd, FixGoal::Plumb] {
        check(
            &scene,
            &found,
            goal,
            &expect![[r"
            instruct: what the finding says
        "]],
        );
        let kept = Subject { keeps_live: true, ..subject(&scene, &found) };
        expect![[r"
            edit, because keeps what the writer changed in the cluster
            apiVersion: apps/v1
            kind: Deployment
            metadata: {name: web, namespace: shop}
            spec:
              replicas: 5
              replica: 3 # typo
              cpu: 1000m
        "]]
        .assert_eq(&shown(&scene, &propose(&kept, goal)));
    }
}

#[test]
fn hooks_are_deleted_after_success() {
    let hook = |annotations: &'static str| {
        scene(
            annotations,
            json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j", "namespace": "shop"}}),
        )
    };
    for (file, expected) in [
        (
            "apiVersion: batch/v1\nkind: Job\nmetadata:\n  name: j\n  annotations:\n    argocd.argoproj.io/hook: PostSync\n    argocd.argoproj.io/hook-delete-policy: BeforeHookCreation # x\n",
            Some("hook-delete-policy: BeforeHookCreation,HookSucceeded # x\n"),
        ),
        (
            "apiVersion: batch/v1\nkind: Job\nmetadata:\n  name: j\n  annotations:\n    argocd.argoproj.io/hook: PostSync\n",
            Some("hook-delete-policy: BeforeHookCreation,HookSucceeded\n"),
        ),
        (
            "apiVersion: batch/v1\nkind: Job\nmetadata:\n  name: j\n  annotations: {helm.sh/hook: post-install}\n",
            Some("helm.sh/hook-delete-policy: \"before-hook-creation,hook-succeeded\"}\n"),
        ),
        (
            "apiVersion: batch/v1\nkind: Job\nmetadata:\n  name: j\n  annotations:\n    argocd.argoproj.io/hook: PostSync\n    argocd.argoproj.io/hook-delete-policy: HookSucceeded\n",
            None,
        ),
    ] {
        let scene = hook(file);
        let found = finding(&scene, DriftClass::HookResidue, false, &[], &[]);
        let shown = shown(&scene, &propose(&subject(&scene, &found), FixGoal::ArgoCd));
        match expected {
            Some(expected) => assert!(shown.ends_with(expected), "{shown}"),
            None => assert!(shown.starts_with("nothing:"), "{shown}"),
        }
    }
}

#[test]
fn a_job_that_its_time_to_live_removes_stays_for_argo_cd() {
    let scene = scene(
        "apiVersion: batch/v1\nkind: Job\nmetadata: {name: seed, namespace: shop}\nspec:\n  ttlSecondsAfterFinished: 0\n  backoffLimit: 1\n",
        json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "seed", "namespace": "shop"}}),
    );
    let gone = finding(&scene, DriftClass::HookResidue, false, &[], &[]);
    let job = Subject { live: None, ..subject(&scene, &gone) };
    expect![[r"
        edit, because Argo CD shows a Job as missing that its time to live removed; now it stays
        apiVersion: batch/v1
        kind: Job
        metadata: {name: seed, namespace: shop}
        spec:
          backoffLimit: 1
    "]]
    .assert_eq(&shown(&scene, &propose(&job, FixGoal::ArgoCd)));
    let behind = finding(&scene, DriftClass::Behind, true, &[], &[]);
    let unknown = Subject { finding: &behind, ..job };
    assert!(
        shown(&scene, &propose(&unknown, FixGoal::ArgoCd))
            .contains("remove that line, or make the Job a hook")
    );
    assert!(!shown(&scene, &propose(&unknown, FixGoal::Plumb)).contains("hook"));
    let applied = Subject { last_sync: LastSync::Applied, ..unknown };
    let kept = shown(&scene, &propose(&applied, FixGoal::ArgoCd));
    assert!(kept.contains("it runs once more") && !kept.contains("ttlSeconds"), "{kept}");
}

#[test]
fn what_needs_a_decision_is_an_instruction() {
    let scene = deployment();
    for class in [
        DriftClass::Unadopted,
        DriftClass::Orphan,
        DriftClass::StaleOwnership,
        DriftClass::Blocked,
        DriftClass::Behind,
        DriftClass::TugOfWar,
        DriftClass::Unexplained,
    ] {
        let found = finding(&scene, class, true, &["/spec/replicas"], &[]);
        check(
            &scene,
            &found,
            FixGoal::ArgoCd,
            &expect![[r"
            instruct: what the finding says
        "]],
        );
    }
}

#[test]
fn a_rule_joins_the_one_for_the_same_object() {
    let entry = |pointer: &str| IgnoreEntry {
        expressions: Vec::new(),
        key: ObjectKey::new("", "Service", Some("shop".to_owned()), "web"),
        pointers: vec![FieldPath::from_pointer(pointer)],
        why: "the cluster chooses it".to_owned(),
    };
    let add = |text: &str, entry: &IgnoreEntry| {
        let document = parse_documents(text, &Limits::default()).expect("readable").remove(0);
        edit_document(text.as_bytes(), 0, &entry.operations(&document.value)).expect("edited").text
    };
    let one = add("kind: Application\nspec:\n  project: p\n", &entry("/spec/clusterIP"));
    expect![[r"
        kind: Application
        spec:
          project: p
          ignoreDifferences:
            # the cluster chooses it
            - kind: Service
              name: web
              namespace: shop
              jsonPointers:
                - /spec/clusterIP
    "]]
    .assert_eq(&one);
    let two = add(&one, &entry("/spec/ports/0/nodePort"));
    expect![[r"
        kind: Application
        spec:
          project: p
          ignoreDifferences:
            # the cluster chooses it
            - kind: Service
              name: web
              namespace: shop
              jsonPointers:
                - /spec/clusterIP
                # the cluster chooses it
                - /spec/ports/0/nodePort
    "]]
    .assert_eq(&two);
    assert_eq!(add(&two, &entry("/spec/clusterIP")), two);
}
