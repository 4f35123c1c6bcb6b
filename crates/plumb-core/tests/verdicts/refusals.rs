//! What the API server refuses.

use expect_test::expect;
use serde_json::{Value, json};

use crate::scene::{Scene, check, config, said};

#[test]
fn a_null_that_the_api_server_refuses_is_no_absent_value() {
    let scene = || {
        Scene::new("example.io/v1 Thing", json!({"spec": null}), json!({"spec": {"mode": "auto"}}))
            .by("argocd-controller Apply 1", json!({"f:metadata": {"f:labels": {}}}))
    };
    let required = [("FieldValueRequired", "spec", "Required value")];
    let message = "Thing.example.io \"x\" is invalid: spec: Required value";
    check(
        scene().refused(422, message, &required),
        expect![[r"
        ! Blocked /spec
        SchemaDefault /spec/mode"]],
    );
    check(
        scene(),
        expect![[r"
        SchemaDefault /spec/mode
        PhantomDefault /spec"]],
    );
}

#[test]
fn a_refusal_of_any_code_is_shown_in_the_servers_words() {
    for code in [400, 403, 404, 409, 410, 422] {
        let scene = || {
            config(json!({"level": "2"}), json!({"level": "1"}))
                .applied_before(json!({"data": {"level": "1"}}))
                .refused(code, "admission webhook \"guard\" denied the request: no such team", &[])
        };
        check(scene(), expect!["! Blocked /data/level"]);
        assert!(said(&scene()).contains("denied the request: no such team"), "{code}");
    }
    // The same for a missing object; but a missing namespace or kind may come with the sync.
    let missing = |code, message: &str| {
        let mut scene = config(json!({"level": "2"}), json!({})).refused(code, message, &[]);
        scene.live = Value::Null;
        scene
    };
    check(
        missing(404, "admission webhook \"guard\" denied the request: no such team"),
        expect!["! Blocked "],
    );
    check(missing(404, "namespaces \"n\" not found"), expect!["! Behind "]);
    // A busy or broken API server has not refused the object.
    for code in [429, 500, 503] {
        check(
            config(json!({"level": "2"}), json!({"level": "1"}))
                .applied_before(json!({"data": {"level": "1"}}))
                .refused(code, "try again later", &[]),
            expect!["! Behind /data/level"],
        );
    }
}

#[test]
fn a_refusal_names_the_fields_that_cannot_change() {
    let ours = json!({"f:spec": {"f:serviceName": {}, "f:replicas": {}, "f:volumeClaimTemplates": {}}});
    let set = |git: Value| {
        let live = json!({"serviceName": "a", "replicas": 1,
            "volumeClaimTemplates": [{"metadata": {"name": "d"}, "spec": {"size": "1"}}]});
        let only = "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template' and 'minReadySeconds' are forbidden";
        Scene::new("apps/v1 StatefulSet", json!({"spec": git}), json!({"spec": live}))
            .by("argocd-controller Apply 1", ours.clone())
            .applied_before(json!({"spec": live}))
            .refused(
                422,
                &format!("StatefulSet.apps \"x\" is invalid: spec: Forbidden: {only}"),
                &[("FieldValueForbidden", "spec", only)],
            )
    };
    let templates = json!([{"metadata": {"name": "d"}, "spec": {"size": "2"}}]);
    let renamed = || set(json!({"serviceName": "b", "replicas": 2, "volumeClaimTemplates": templates}));
    check(renamed(), expect!["! Blocked /spec/serviceName /spec/volumeClaimTemplates/0/spec/size"]);
    assert!(said(&renamed()).contains("-> the field is immutable: recreate the object"));
    check(set(json!({"serviceName": "a", "replicas": 1})), expect!["! Blocked /spec/volumeClaimTemplates"]);

    let role = |name: &str| json!({"roleRef": {"kind": "Role", "name": name}});
    let binding = || {
        Scene::new("rbac.authorization.k8s.io/v1 RoleBinding", role("b"), role("a"))
            .by("argocd-controller Apply 1", json!({"f:roleRef": {}}))
            .applied_before(role("a"))
            .refused(
                422,
                "RoleBinding \"x\" is invalid: roleRef: Invalid value: {}: cannot change roleRef",
                &[("FieldValueInvalid", "roleRef", "Invalid value: {}: cannot change roleRef")],
            )
    };
    check(binding(), expect!["! Blocked /roleRef/name"]);
    // An ignored field is not named, and does not hide the refusal.
    let mut ignoring = binding();
    ignoring.ignored = Some("/roleRef/name");
    check(ignoring, expect!["! Blocked /roleRef"]);
    assert!(said(&binding()).contains("-> the field is immutable: recreate the object"));
}

#[test]
fn a_choice_that_forbids_a_default_of_the_previous_one_can_be_applied() {
    let switched = Scene::new(
        "apps/v1 StatefulSet",
        json!({"spec": {"updateStrategy": {"type": "OnDelete"}}}),
        json!({"spec": {"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}}}}),
    )
    .by("argocd-controller Apply 1", json!({"f:spec": {"f:updateStrategy": {"f:type": {}}}}))
    .applied_before(json!({"spec": {"updateStrategy": {"type": "RollingUpdate"}}}))
    .refused(
        422,
        "spec.updateStrategy.rollingUpdate: Invalid value: {}: only allowed for updateStrategy 'RollingUpdate'",
        &[("FieldValueInvalid", "spec.updateStrategy.rollingUpdate", "only allowed for 'RollingUpdate'")],
    );
    assert!(switched.verdict().advice.managed_fields.is_some());
    check(
        switched,
        expect![[r"
        ! Behind /spec/updateStrategy/rollingUpdate /spec/updateStrategy/type
        SchemaDefault /spec/updateStrategy/rollingUpdate/partition"]],
    );
}

#[test]
fn a_refusal_names_the_field_that_git_sets() {
    let service = |address: &str| json!({"spec": {"clusterIP": address}});
    let scene = Scene::new(
        "v1 Service",
        service("10.0.0.7"),
        json!({"spec": {"clusterIP": "None", "clusterIPs": ["None"]}}),
    )
    .by("argocd-controller Apply 1", json!({"f:spec": {"f:clusterIP": {}}}))
    .applied_before(service("None"))
    .refused(
        422,
        "Service \"x\" is invalid: spec.clusterIPs[0]: Invalid value: may not change once set",
        &[
            ("FieldValueInvalid", "spec.clusterIPs[0]", "may not change once set"),
            ("FieldValueInvalid", "<nil>", "some validation rules were not checked"),
        ],
    );
    check(
        scene,
        expect![[r"
        ! Blocked /spec/clusterIP
        SchemaDefault /spec/clusterIPs"]],
    );
    let container = |image: Value| json!({"spec": {"template": {"spec": {"containers": [{"name": "c", "image": image}]}}}});
    let scene = Scene::new("apps/v1 Deployment", container(json!(["a"])), container(json!("a:1")))
        .by("argocd-controller Apply 1", json!({}))
        .applied_before(container(json!("a:1")))
        .refused(
            422,
            "failed to create typed patch object",
            &[(
                "FieldValueTypeInvalid",
                "spec.template.spec.containers[name=\"c\"].image",
                "expected string, got &value.valueUnstructured",
            )],
        );
    check(scene, expect!["! Blocked /spec/template/spec/containers/0/image"]);
}

#[test]
fn a_refusal_of_what_a_sync_does_not_send_does_not_block() {
    let claim = |size: &str| json!({"spec": {"resources": {"requests": {"storage": size}}}});
    let scene = |manager: &'static str| {
        let field = "spec.resources.requests.storage";
        Scene::new("v1 PersistentVolumeClaim", claim("4Gi"), claim("9Gi"))
            .by("argocd-controller Apply 1", json!({"f:metadata": {"f:labels": {}}}))
            .by(manager, json!({"f:spec": {"f:resources": {"f:requests": {"f:storage": {}}}}}))
            .refused(422, "only grows", &[("FieldValueInvalid", field, "only grows")])
    };
    let mut grown = scene("csi-resizer Update 2");
    grown.ignored = Some("/spec/note");
    check(grown, expect!["ControllerOwned /spec/resources/requests/storage by csi-resizer"]);
    let mut edited = scene("kubectl-edit Update 2");
    edited.ignored = Some("/spec/note");
    assert!(said(&edited).contains("the API server refuses it: only grows"), "{}", said(&edited));
}

#[test]
fn a_refusal_of_a_value_of_git_removes_nothing_of_other_writers() {
    let spec = |fields: Value| json!({"spec": fields});
    let scene =
        Scene::new("example.io/v1 Thing", spec(json!({"every": "wrong"})), spec(json!({"note": "theirs"})))
            .by("argocd-controller Apply 1", json!({"f:metadata": {"f:labels": {}}}))
            .by("an-operator Update 2", json!({"f:spec": {"f:note": {}}}))
            .applied_before(json!({"spec": {}}))
            .refused(422, "invalid", &[("FieldValueInvalid", "spec.every", "must be a duration")]);
    assert!(scene.verdict().advice.managed_fields.is_none());
    assert!(said(&scene).contains("the API server refuses it: must be a duration"), "{}", said(&scene));
}
