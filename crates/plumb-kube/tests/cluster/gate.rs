use plumb_core::object::{GroupVersionKind, Manifest};
use plumb_kube::{
    ApiError, ApplyOptions, DeletePermit, Deleted, FieldValidation, OwnWrite, Patch, PatchOptions, Reason,
    Refusal, Retry, Target, WriteError, WritePermit,
};
use serde_json::json;

use super::lab::{at_once, lab};

#[tokio::test]
async fn a_dry_run_changes_nothing_and_shows_defaults() {
    let Some(lab) = lab("dryrun").await else { return };
    let manifest = Manifest::new(json!({"apiVersion": "v1", "kind": "Service",
        "metadata": {"name": "web", "namespace": lab.namespace}, "spec": {"ports": [{"port": 80}]}}))
    .unwrap();
    let predicted = lab.client.dry_run_apply(&manifest, &ApplyOptions::default()).await.unwrap();
    assert!(predicted.created);
    assert_eq!(predicted.manifest.value()["spec"]["type"], "ClusterIP");
    assert!(lab.client.get(&manifest.key().unwrap()).await.unwrap().is_none());
}

#[tokio::test]
async fn an_unknown_field_is_refused_for_good() {
    let Some(lab) = lab("strict").await else { return };
    let mut object = lab.config_map("one", None, "1");
    object["spce"] = json!({});
    let manifest = Manifest::new(object).unwrap();
    let permit = WritePermit::requested_by_user(manifest.key().unwrap());
    for field_validation in [FieldValidation::Strict, FieldValidation::Warn] {
        let options = ApplyOptions { field_validation, ..ApplyOptions::default() };
        let error = lab.gate.apply(&permit, &manifest, &options).await.unwrap_err();
        let api = error.api().unwrap();
        assert!(api.status().unwrap().message.contains("spce"), "{api}");
        assert_eq!(api.retry(), Retry::Never, "{api:?}");
    }
}

#[tokio::test]
async fn a_deprecated_version_comes_with_a_warning() {
    let Some(lab) = lab("warning").await else { return };
    let object = json!({"apiVersion": "v1", "kind": "Endpoints",
        "metadata": {"name": "one", "namespace": lab.namespace}, "subsets": []});
    let manifest = Manifest::new(object).unwrap();
    let applied = lab.client.dry_run_apply(&manifest, &ApplyOptions::default()).await.unwrap();
    assert!(applied.warnings.iter().any(|warning| warning.contains("deprecated")), "{:?}", applied.warnings);
}

#[tokio::test]
async fn a_conflict_names_the_other_manager_and_the_field() {
    let Some(lab) = lab("conflict").await else { return };
    lab.apply(lab.config_map("one", None, "1")).await;
    let manifest = Manifest::new(lab.config_map("one", None, "2")).unwrap();
    let permit = WritePermit::requested_by_user(manifest.key().unwrap());
    let options = ApplyOptions { field_manager: "other".to_owned(), force: false, ..ApplyOptions::default() };
    let error = lab.gate.apply(&permit, &manifest, &options).await.unwrap_err();
    let api = error.api().unwrap();
    assert!(api.is_conflict());
    let cause = &api.status().unwrap().causes[0];
    assert_eq!((cause.kind.as_str(), cause.field.as_str()), ("FieldManagerConflict", ".data.text"));
    assert!(cause.message.contains("argocd-controller"));
}

#[tokio::test]
async fn a_permit_is_for_one_object_only() {
    let Some(lab) = lab("permit").await else { return };
    let manifest = Manifest::new(lab.config_map("one", None, "1")).unwrap();
    let permit = WritePermit::requested_by_user(lab.key("", "ConfigMap", "other"));
    let error = lab.gate.apply(&permit, &manifest, &ApplyOptions::default()).await.unwrap_err();
    assert!(matches!(error, WriteError::Refused(Refusal::OtherObject { .. })));
    assert!(lab.client.get(&manifest.key().unwrap()).await.unwrap().is_none());
}

#[tokio::test]
async fn an_object_permitted_for_a_namespace_is_never_written_to_the_cluster() {
    let Some(lab) = lab("scope").await else { return };
    let name = format!("{}-scope", lab.namespace);
    let manifest = Manifest::new(json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
        "metadata": {"name": name, "namespace": lab.namespace}, "rules": []}))
    .unwrap();
    let key = manifest.key().unwrap();
    let permit = WritePermit::requested_by_user(key.clone());
    let target = Target::of(&manifest).unwrap();
    let patch = Patch::Merge(json!({"metadata": {"labels": {"a": "b"}}}));
    let deletion = DeletePermit::requested_by_user(key, "uid");
    let (gate, options) = (&lab.gate, ApplyOptions::default());
    let errors = [
        gate.apply(&permit, &manifest, &options).await.unwrap_err(),
        gate.create(&permit, &manifest, "test").await.unwrap_err(),
        gate.replace(&permit, &manifest, "test").await.unwrap_err(),
        gate.patch(&permit, &target, &patch, &PatchOptions::default()).await.unwrap_err(),
        gate.delete(&deletion, &target, &at_once()).await.unwrap_err(),
        lab.client.dry_run_apply(&manifest, &options).await.unwrap_err().into(),
    ];
    for error in errors {
        assert!(matches!(error, WriteError::Api(ApiError::OtherScope { .. })), "{error}");
    }
    let created = lab.client.get_at(&target.gvk, None, &name).await.unwrap();
    assert!(created.is_none());
}

#[tokio::test]
async fn an_object_that_was_made_anew_is_not_deleted_in_place_of_the_old_one() {
    let Some(lab) = lab("uid").await else { return };
    let old = lab.apply(lab.config_map("one", None, "1")).await;
    lab.delete(&old).await;
    let new = lab.apply(lab.config_map("one", None, "2")).await;
    let permit = DeletePermit::requested_by_user(old.key().unwrap(), old.uid().unwrap());
    let target = Target::of(&old).unwrap();
    let deleted = lab.gate.delete(&permit, &target, &at_once()).await.unwrap();
    assert_eq!(deleted, Deleted::WasAbsent);
    let live = lab.client.get(&new.key().unwrap()).await.unwrap().unwrap();
    assert_eq!(live.uid(), new.uid());
}

#[tokio::test]
async fn create_replace_patch_and_delete() {
    let Some(lab) = lab("verbs").await else { return };
    let first = Manifest::new(lab.config_map("one", None, "1")).unwrap();
    let permit = WritePermit::requested_by_user(first.key().unwrap());
    let created = lab.gate.create(&permit, &first, "plumb").await.unwrap();
    assert!(created.created);
    let again = lab.gate.create(&permit, &first, "plumb").await.unwrap_err();
    assert_eq!(again.api().unwrap().reason(), Some(&Reason::AlreadyExists));

    let second = Manifest::new(lab.config_map("one", None, "2")).unwrap();
    let replaced = lab.gate.replace(&permit, &second, "plumb").await.unwrap();
    assert_eq!(replaced.manifest.value()["data"]["text"], "2");

    let target = Target::of(&first).unwrap();
    let merge = Patch::Merge(json!({"data": {"more": "3"}}));
    let patched = lab.gate.patch(&permit, &target, &merge, &PatchOptions::default()).await.unwrap();
    assert_eq!(patched.manifest.value()["data"], json!({"text": "2", "more": "3"}));
    let stale = Patch::Json(json!([
        {"op": "test", "path": "/metadata/resourceVersion", "value": "1"},
        {"op": "remove", "path": "/data/more"}]));
    let error = lab.gate.patch(&permit, &target, &stale, &PatchOptions::default()).await.unwrap_err();
    assert_eq!(error.api().unwrap().code(), Some(422));

    let permit = DeletePermit::requested_by_user(first.key().unwrap(), created.manifest.uid().unwrap());
    let deleted = lab.gate.delete(&permit, &target, &at_once()).await.unwrap();
    assert_eq!(deleted, Deleted::Gone);
}

#[tokio::test]
async fn an_object_with_finalizers_is_going() {
    let Some(lab) = lab("finalizers").await else { return };
    let mut object = lab.config_map("one", None, "1");
    object["metadata"]["finalizers"] = json!(["plumb.dev/test"]);
    let object = lab.apply(object).await;
    let target = Target::of(&object).unwrap();
    let permit = DeletePermit::requested_by_user(object.key().unwrap(), object.uid().unwrap());
    let deleted = lab.gate.delete(&permit, &target, &at_once()).await.unwrap();
    assert!(matches!(deleted, Deleted::Going(object) if object.is_terminating()));
    let permit = WritePermit::requested_by_user(object.key().unwrap());
    let free = Patch::Merge(json!({"metadata": {"finalizers": null}}));
    lab.gate.patch(&permit, &target, &free, &PatchOptions::default()).await.unwrap();
    assert!(lab.client.get(&object.key().unwrap()).await.unwrap().is_none());
}

#[tokio::test]
async fn without_permit_only_plumbs_own_objects_are_written() {
    let Some(lab) = lab("own").await else { return };
    let event = json!({"apiVersion": "v1", "kind": "Event",
        "metadata": {"name": "e1", "namespace": lab.namespace}, "type": "Normal", "reason": "Tested",
        "involvedObject": {"kind": "Namespace", "name": lab.namespace, "namespace": lab.namespace, "uid": "some-uid"}});
    let create = |object| OwnWrite::Create {
        manifest: Manifest::new(object).unwrap(),
        field_manager: "plumb".to_owned(),
    };
    assert!(lab.gate.write_own(&create(event)).await.unwrap().is_some());
    let events = lab.client.events_of("some-uid", Some(&lab.namespace)).await.unwrap();
    assert_eq!(events.len(), 1);

    let foreign = create(lab.config_map("one", None, "1"));
    let error = lab.gate.write_own(&foreign).await.unwrap_err();
    assert!(matches!(error, WriteError::Refused(Refusal::NotOwn { .. })));
    let secret = |kind: &str| {
        create(json!({"apiVersion": "v1", "kind": "Secret", "type": kind,
            "metadata": {"name": "plumb-tombstone-1", "namespace": lab.namespace}}))
    };
    assert!(lab.gate.write_own(&secret("Opaque")).await.is_err());
    let tombstone = lab.gate.write_own(&secret("plumb.dev/tombstone")).await.unwrap().unwrap().manifest;
    let target = Target::of(&tombstone).unwrap();
    let uid = tombstone.uid().unwrap().to_owned();
    let delete = |target| OwnWrite::Delete { target, uid: uid.clone() };
    let other = Target { name: "other".to_owned(), ..target.clone() };
    assert!(lab.gate.write_own(&delete(other)).await.is_err());
    lab.gate.write_own(&delete(target)).await.unwrap();
    let gvk = GroupVersionKind::from_api_version("v1", "Secret");
    let left = lab.client.get_at(&gvk, Some(&lab.namespace), "plumb-tombstone-1").await.unwrap();
    assert!(left.is_none());
}
