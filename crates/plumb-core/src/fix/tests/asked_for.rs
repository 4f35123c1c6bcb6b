//! What is done only if a user asks for it, and what is never done.

use expect_test::expect;
use serde_json::{Value, json};

use super::scene::{Scene, finding, scene, shown, subject};
use crate::drift::DriftClass;
use crate::fix::*;

/// Whoever names a class or an object wants a change, also where Argo CD is green. Others do not.
#[test]
fn what_is_asked_for_is_done_where_argo_cd_is_green() {
    let scene = scene(
        "apiVersion: batch/v1\nkind: Job\nmetadata:\n  name: a\n  namespace: shop\n  annotations: {argocd.argoproj.io/hook: PostSync}\nspec:\n  a: 1\n  list: [{b: 1}]\n",
        json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "a", "namespace": "shop"},
            "spec": {"a": 2, "list": [{"b": 1, "c": 1}]}}),
    );
    let set = [json!({"op": "replace", "path": "/spec/a", "value": 2})];
    let mut lines = Vec::new();
    for class in DriftClass::ALL {
        let fields: &[&str] =
            if class == DriftClass::UnclaimedAddition { &["/spec/list/0/c"] } else { &["/spec/a"] };
        let found = finding(&scene, class, false, fields, &set);
        let green = Subject { is_red_in_argo_cd: Some(false), ..subject(&scene, &found) };
        let word = |subject: &Subject<'_>| {
            let proposals = propose(subject, FixGoal::ArgoCd);
            let words = proposals.iter().map(|proposal| match &proposal.action {
                Action::Edit(_) => "edit",
                Action::Through(..) => "through",
                Action::Ignore(_) => "ignore",
                Action::Compare(_) => "compare",
                Action::Drop(_) => "drop",
                Action::Instruct(_) => "instruct",
                Action::Nothing(_) => "nothing",
            });
            words.collect::<Vec<&str>>().join("+")
        };
        let asked = word(&Subject { is_asked_for: true, ..green });
        let kept = word(&Subject { keeps_live: true, ..green });
        assert_eq!(word(&green), "nothing", "{class}");
        lines.push(format!("{class}: asked for {asked}, kept {kept}"));
    }
    expect![[r"
        SchemaDefault: asked for ignore, kept nothing
        PhantomDefault: asked for edit, kept nothing
        Unadopted: asked for instruct, kept nothing
        Orphan: asked for instruct, kept nothing
        SharedResource: asked for nothing, kept nothing
        HookResidue: asked for edit, kept nothing
        UnstableRender: asked for ignore, kept nothing
        EquivalentValue: asked for edit, kept nothing
        ControllerOwned: asked for edit, kept nothing
        AdmissionMutated: asked for ignore, kept nothing
        RejectedField: asked for edit, kept nothing
        StaleOwnership: asked for instruct, kept nothing
        Blocked: asked for instruct, kept nothing
        UnclaimedAddition: asked for ignore, kept edit
        LiveEdit: asked for instruct, kept edit
        Behind: asked for instruct, kept nothing
        TugOfWar: asked for instruct, kept nothing
        Unexplained: asked for instruct, kept edit"]]
    .assert_eq(&lines.join("\n"));
}

/// What an admission policy changed, in an object whose live list begins with another item than Git's.
fn mutated(class: DriftClass, git: &'static str, live: Value, fields: &[&str]) -> String {
    let scene: Scene = scene(git, live);
    let found = finding(&scene, class, false, fields, &[]);
    shown(&scene, &propose(&subject(&scene, &found), FixGoal::ArgoCd))
}

const POD: &str = "apiVersion: v1\nkind: Pod\nmetadata: {name: a, namespace: shop}\nspec:\n  containers:\n  - {name: web, image: nginx, tty: false}\n";

fn live_pod() -> Value {
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "namespace": "shop"},
        "spec": {"containers": [{"name": "proxy", "image": "proxy"}, {"name": "web", "image": "mirror/nginx", "tty": true}]}})
}

#[test]
fn what_runs_is_never_ignored_where_git_sets_it() {
    let fields = ["/spec/containers/0", "/spec/containers/1/image", "/spec/containers/1/tty"];
    expect![[r#"
        ignore {"jqPathExpressions":[".spec.containers[] | select(.name == \"proxy\")",".spec.containers[] | select(.name == \"web\") | .tty"],"kind":"Pod","name":"a","namespace":"shop"}, because the writer sets this on every write
        compare by dry runs, because the writer sets /spec/containers/1/image on every write; a rule would hide later changes of Git, so all objects of the app are compared with a dry run, which includes what admission sets
        else instruct: do not ignore /spec/containers/1/image: Argo CD would not see a later change of it in Git. Set in Git what the writer sets, if a second write of that stays as it is; or annotate the Application with `argocd.argoproj.io/compare-options: ServerSideDiff=true,IncludeMutationWebhook=true`
    "#]].assert_eq(&mutated(DriftClass::AdmissionMutated, POD, live_pod(), &fields));
}

#[test]
fn items_with_another_position_in_git_are_named() {
    let fields = ["/spec/containers/0/tty"];
    expect![[r#"
        ignore {"jqPathExpressions":[".spec.containers[] | select(.name == \"web\") | .tty"],"kind":"Pod","name":"a","namespace":"shop"}, because each render of the same commit has another value here
    "#]].assert_eq(&mutated(DriftClass::UnstableRender, POD, live_pod(), &fields));
    let fields = ["/spec/containers/1/tty"];
    expect![[r#"
        ignore {"jqPathExpressions":[".spec.containers[] | select(.name == \"web\") | .tty"],"kind":"Pod","name":"a","namespace":"shop"}, because the writer owns this field
    "#]].assert_eq(&mutated(DriftClass::ControllerOwned, POD, live_pod(), &fields));
}

#[test]
fn a_controller_that_changes_a_field_and_adds_an_item_gets_both() {
    let scene = scene(
        "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: a, namespace: shop}\nautomount: false\nimagePullSecrets:\n- name: own\n",
        json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "a", "namespace": "shop"},
            "automount": true, "imagePullSecrets": [{"name": "added"}, {"name": "own"}]}),
    );
    let patch = [json!({"op": "remove", "path": "/automount"})];
    let found =
        finding(&scene, DriftClass::ControllerOwned, false, &["/automount", "/imagePullSecrets/0"], &patch);
    expect![[r#"
        edit, because the writer owns this field; where syncs use client-side apply, the first one without it sets the default once (of replicas: 1)
        apiVersion: v1
        kind: ServiceAccount
        metadata: {name: a, namespace: shop}
        imagePullSecrets:
        - name: own
        ignore {"jqPathExpressions":[".imagePullSecrets[] | select(.name == \"added\")"],"kind":"ServiceAccount","name":"a","namespace":"shop"}, because the writer owns this field
    "#]].assert_eq(&shown(&scene, &propose(&subject(&scene, &found), FixGoal::ArgoCd)));
}

/// The text of a patch is bounded, and so findings with many fields have none.
#[test]
fn long_changes_are_made_without_a_patch_to_show() {
    let scene = deployment_of_long_names();
    let fields = ["/spec/cpu"];
    let found = finding(&scene, DriftClass::EquivalentValue, false, &fields, &[]);
    expect![[r#"
        edit, because the cluster writes the same value differently
        apiVersion: apps/v1
        kind: Deployment
        metadata: {name: web, namespace: shop}
        spec:
          cpu: "1" # one
          note: old
          args: [a, b]
    "#]]
    .assert_eq(&shown(&scene, &propose(&subject(&scene, &found), FixGoal::ArgoCd)));
    let edited = finding(&scene, DriftClass::LiveEdit, true, &["/spec/note"], &[]);
    let kept = Subject { keeps_live: true, ..subject(&scene, &edited) };
    expect![[r"
        edit, because keeps what the writer changed in the cluster
        apiVersion: apps/v1
        kind: Deployment
        metadata: {name: web, namespace: shop}
        spec:
          cpu: 1000m # one
          note: new
          args: [a, b]
    "]]
    .assert_eq(&shown(&scene, &propose(&kept, FixGoal::ArgoCd)));
    // An item of a list may be another one in Git.
    let edited = finding(&scene, DriftClass::LiveEdit, true, &["/spec/args/0"], &[]);
    let kept = Subject { keeps_live: true, ..subject(&scene, &edited) };
    expect![[r"
        instruct: what the finding says
    "]]
    .assert_eq(&shown(&scene, &propose(&kept, FixGoal::ArgoCd)));
}

fn deployment_of_long_names() -> Scene {
    scene(
        "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web, namespace: shop}\nspec:\n  cpu: 1000m # one\n  note: old\n  args: [a, b]\n",
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "namespace": "shop"},
            "spec": {"cpu": "1", "note": "new", "args": ["b", "c"]}}),
    )
}
