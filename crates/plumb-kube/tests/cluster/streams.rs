use plumb_core::object::GroupVersionKind;
use plumb_kube::{ObjectEvent, Selection};

use super::lab::{lab, within};

#[tokio::test]
async fn a_stream_shows_what_is_there_then_what_happens() {
    let Some(lab) = lab("stream").await else { return };
    let object = lab.apply(lab.config_map("one", None, "1")).await;
    let selection = Selection {
        namespace: Some(lab.namespace.clone()),
        fields: Some("metadata.name=one".to_owned()),
        labels: None,
    };
    let gvk = GroupVersionKind::from_api_version("v1", "ConfigMap");
    let mut stream = lab.client.watch_objects(&gvk, selection.clone()).unwrap();
    let mut next = async || within(10, stream.next()).await.unwrap();

    assert!(matches!(next().await, ObjectEvent::Seen(seen) if seen.uid() == object.uid()));
    assert!(matches!(next().await, ObjectEvent::Listed));
    lab.apply(lab.config_map("other", None, "1")).await;
    lab.apply(lab.config_map("one", None, "2")).await;
    assert!(matches!(next().await, ObjectEvent::Seen(seen) if seen.value()["data"]["text"] == "2"));
    lab.delete(&object).await;
    assert!(matches!(next().await, ObjectEvent::Gone { key, .. } if key.name == "one"));

    let listed = lab.client.list(&gvk, &Selection { fields: None, ..selection }).await.unwrap();
    assert!(listed.iter().any(|found| found.name() == Some("other") && found.kind() == "ConfigMap"));
}
