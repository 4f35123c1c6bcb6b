//! Checks that the object to send is the one of the permit.

use plumb_core::object::{Manifest, ObjectKey};

use super::refusal::Refusal;
use crate::write::Target;

pub(super) fn same_object(permitted: &ObjectKey, manifest: &Manifest) -> Result<(), Refusal> {
    let named = match (manifest.name(), manifest.generate_name()) {
        (Some(name), _) => name == permitted.name,
        (None, Some(prefix)) => permitted.name.starts_with(prefix),
        (None, None) => false,
    };
    let same = named
        && manifest.group() == permitted.group
        && manifest.kind() == permitted.kind
        && manifest.namespace() == permitted.namespace.as_deref();
    if same { Ok(()) } else { Err(other_object(permitted, &describe(manifest))) }
}

pub(super) fn same_target(permitted: &ObjectKey, target: &Target) -> Result<(), Refusal> {
    let same = target.name == permitted.name
        && target.gvk.group == permitted.group
        && target.gvk.kind == permitted.kind
        && target.namespace == permitted.namespace;
    if same { Ok(()) } else { Err(other_object(permitted, &format!("{} {}", target.gvk, target.name))) }
}

fn other_object(permitted: &ObjectKey, sent: &str) -> Refusal {
    Refusal::OtherObject { permitted: permitted.clone(), sent: sent.to_owned() }
}

pub(super) fn describe(manifest: &Manifest) -> String {
    let name = manifest.name().or(manifest.generate_name()).unwrap_or("without name");
    format!("{} {}/{name}", manifest.gvk(), manifest.namespace().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::permit::tests::key;
    use super::*;

    #[test]
    fn a_permit_fits_one_object() {
        let manifest = |metadata: serde_json::Value| {
            Manifest::new(json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})).unwrap()
        };
        let permitted = key("x");
        assert!(same_object(&permitted, &manifest(json!({"name": "x", "namespace": "a"}))).is_ok());
        assert!(same_object(&permitted, &manifest(json!({"name": "x"}))).is_err());
        assert!(same_object(&permitted, &manifest(json!({"name": "x", "namespace": "b"}))).is_err());
        assert!(same_object(&permitted, &manifest(json!({"name": "y", "namespace": "a"}))).is_err());
        assert!(same_object(&permitted, &manifest(json!({"namespace": "a"}))).is_err());
        let generated = manifest(json!({"generateName": "hook-", "namespace": "a"}));
        assert!(same_object(&key("hook-"), &generated).is_ok());
        assert!(same_object(&permitted, &generated).is_err());
    }
}
