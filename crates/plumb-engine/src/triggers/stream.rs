//! The watch of a kind of the home cluster that the engine needs.

use plumb_core::object::GroupVersionKind;
use plumb_kube::{ObjectStream, Selection};
use tracing::{info, warn};

use crate::engine::Engine;

/// Watches the objects of a kind. If the cluster does not serve it, its definition was deleted, or etcd was restored from a
/// backup that does not have it. plumb then waits: another process could not do more.
pub(super) async fn stream(engine: &Engine, gvk: &GroupVersionKind, selection: Selection) -> ObjectStream {
    let client = &engine.home.client;
    let mut changes = client.catalog_changes();
    let mut is_told = false;
    loop {
        changes.mark_unchanged();
        match client.watch_objects(gvk, selection.clone()) {
            Ok(stream) => {
                if is_told {
                    info!(kind = gvk.kind, "the cluster serves the kind again");
                }
                return stream;
            }
            Err(error) if !is_told => {
                is_told = true;
                warn!(kind = gvk.kind, %error, "plumb cannot work without this kind and waits for its definition");
            }
            Err(_) => {}
        }
        if changes.changed().await.is_err() {
            return std::future::pending().await;
        }
    }
}
