//! The container images of a workload.

use super::Manifest;

/// The images of a workload's pods, sorted.
pub fn images(manifest: &Manifest) -> Vec<String> {
    let spec =
        ["/spec/template/spec", "/spec/jobTemplate/spec/template/spec", "/spec"].iter().find_map(|pointer| {
            manifest.value().pointer(pointer).filter(|spec| spec.get("containers").is_some())
        });
    let mut found: Vec<String> = ["initContainers", "containers"]
        .iter()
        .filter_map(|field| spec?.get(*field)?.as_array())
        .flatten()
        .filter_map(|container| Some(container.get("image")?.as_str()?.to_owned()))
        .collect();
    found.sort();
    found.dedup();
    found
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn images_are_read_from_pods_and_from_what_makes_pods() {
        let pod =
            json!({"initContainers": [{"image": "b"}], "containers": [{"image": "a"}, {"image": "b"}, {}]});
        let images = |kind: &str, spec: serde_json::Value| {
            let object = json!({"apiVersion": "v1", "kind": kind, "spec": spec});
            images(&Manifest::new(object).unwrap())
        };
        assert_eq!(images("Pod", pod.clone()), ["a", "b"]);
        assert_eq!(images("Deployment", json!({"template": {"spec": pod}})), ["a", "b"]);
        assert_eq!(
            images("CronJob", json!({"jobTemplate": {"spec": {"template": {"spec": pod}}}})),
            ["a", "b"]
        );
        assert!(images("Service", json!({"ports": []})).is_empty());
    }
}
