//! Requests runs when settings change, and takes the pushes that standby processes pass on.

use std::sync::Arc;

use plumb_core::object::GroupVersionKind;
use plumb_kube::{ObjectEvent, PUSHES_CONFIG_MAP, Selection};

use super::stream::stream;
use crate::config::load::SETTINGS_CONFIG_MAPS;
use crate::engine::Engine;
use crate::pushes::push_box::passed_on;
use crate::queue::{RefreshDepth, Trigger, TriggerReason};

/// Watches the `ConfigMaps` with settings. A change concerns every app.
pub(crate) async fn watch_config_maps(engine: Arc<Engine>) {
    let gvk = GroupVersionKind::from_api_version("v1", "ConfigMap");
    let selection = Selection { namespace: Some(engine.options.namespace.clone()), ..Selection::default() };
    let before = engine.config.settings();
    let mut stream = stream(&engine, &gvk, selection).await;
    let mut is_listed = false;
    while let Some(event) = stream.next().await {
        let changed = match event {
            ObjectEvent::Seen(object) if object.name() == Some(PUSHES_CONFIG_MAP) => {
                // What is there at the start was passed on to an earlier leader.
                if is_listed {
                    engine.pushes.add(passed_on(&object));
                }
                false
            }
            ObjectEvent::Seen(object) => {
                let name = object.name().unwrap_or_default().to_owned();
                SETTINGS_CONFIG_MAPS.contains(&name.as_str())
                    && engine.config.note_config_map(&name, Some(&object))
            }
            ObjectEvent::Gone { key, .. } => {
                SETTINGS_CONFIG_MAPS.contains(&key.name.as_str())
                    && engine.config.note_config_map(&key.name, None)
            }
            ObjectEvent::Listed => {
                is_listed = true;
                false
            }
            ObjectEvent::Trouble(_) => false,
        };
        if !changed {
            continue;
        }
        let now = engine.config.settings();
        if (&now.tracking, now.respect_rbac) != (&before.tracking, before.respect_rbac) {
            engine.restart.ask("the settings of tracking or RBAC changed");
        }
        for cluster in engine.clusters.connected() {
            cluster.store.reconsider();
        }
        engine.set_signals.settings();
        engine.request_all(Trigger::new(RefreshDepth::Git, TriggerReason::Settings));
    }
}
