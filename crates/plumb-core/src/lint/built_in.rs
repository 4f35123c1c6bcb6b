//! Which kinds are Kubernetes' own.

use crate::object::Manifest;
use crate::references::is_built_in_group;
use crate::schema::{Schema, SchemaSet};

/// Is it a kind of Kubernetes itself? The schema says so; without one, the API group does.
pub(super) fn is_built_in(manifest: &Manifest, schemas: &SchemaSet) -> bool {
    let named = schemas.kind(&manifest.gvk()).and_then(|kind| Schema::type_name(kind.root));
    match named {
        Some(name) => name.starts_with("io.k8s."),
        None => is_built_in_group(manifest.group()),
    }
}
