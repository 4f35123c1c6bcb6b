use plumb_core::object::{GroupKind, GroupVersionKind};

use super::lab::lab;

#[tokio::test]
async fn the_catalog_knows_the_kinds_their_scopes_and_their_schemas() {
    let Some(lab) = lab("discovery").await else { return };
    let catalog = lab.client.catalog();

    let deployment = catalog.kind(&GroupKind::new("apps", "Deployment")).unwrap();
    assert!(deployment.namespaced);
    assert_eq!(deployment.preferred().plural, "deployments");
    assert!(deployment.preferred().subresources.contains("scale"));
    assert_eq!(catalog.is_namespaced(&GroupKind::new("", "Namespace")), Some(false));
    assert!(catalog.kind(&GroupKind::new("apps", "Nonsense")).is_none());

    let scaler = catalog.kind(&GroupKind::new("autoscaling", "HorizontalPodAutoscaler")).unwrap();
    assert_eq!(scaler.preferred().version, "v2");
    assert!(scaler.version("v1").is_some());

    let names = catalog.api_versions();
    for name in ["v1", "v1/Pod", "apps/v1", "apps/v1/Deployment", "autoscaling/v1/HorizontalPodAutoscaler"] {
        assert!(names.iter().any(|known| known == name), "{name}");
    }
    assert_eq!(catalog.kube_version().split('.').count(), 3);

    let schema = lab.client.fetch_schema("apps/v1").await.unwrap().unwrap();
    assert_eq!(catalog.schemas.get("apps/v1"), Some(&schema.hash));
    assert!(schema.json.windows(30).any(|window| window == b"io.k8s.api.apps.v1.Deployment\""));
    assert!(lab.client.fetch_schema("nonsense/v1").await.unwrap().is_none());
}

#[tokio::test]
async fn an_unchanged_catalog_stays_the_same_value() {
    let Some(lab) = lab("unchanged").await else { return };
    let mut changes = lab.client.catalog_changes();
    changes.borrow_and_update();
    let before = lab.client.catalog().kinds.len();
    lab.client.discover().await.unwrap();
    // Other tests may add a kind meanwhile; without one there is no notification.
    if lab.client.catalog().kinds.len() == before {
        assert!(!changes.has_changed().unwrap());
    }
}

#[tokio::test]
async fn one_object_is_read_in_any_version() {
    let Some(lab) = lab("versions").await else { return };
    let namespace = lab.namespace.clone();
    lab.apply(serde_json::json!({"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "web", "namespace": namespace},
        "spec": {"maxReplicas": 3, "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}}}))
        .await;
    for version in ["autoscaling/v1", "autoscaling/v2"] {
        let gvk = GroupVersionKind::from_api_version(version, "HorizontalPodAutoscaler");
        let object = lab.client.get_at(&gvk, Some(&namespace), "web").await.unwrap().unwrap();
        assert_eq!(object.api_version(), version);
    }
    let gvk = GroupVersionKind::from_api_version("autoscaling/v1", "HorizontalPodAutoscaler");
    assert!(lab.client.get_at(&gvk, Some(&namespace), "other").await.unwrap().is_none());
}
