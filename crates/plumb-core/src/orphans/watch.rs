//! Did a deletion harm anything?

use std::collections::BTreeMap;

use crate::health::{HealthStatus, assess};
use crate::object::{Manifest, ObjectKey};

/// The health of each object that has one, with what its controller says.
pub fn health_of<'objects>(
    objects: impl IntoIterator<Item = (&'objects ObjectKey, &'objects Manifest)>,
) -> BTreeMap<ObjectKey, (HealthStatus, String)> {
    let assessed = objects.into_iter().filter_map(|(key, object)| {
        let health = assess(object)?;
        Some((key.clone(), (health.status, health.message)))
    });
    assessed.collect()
}

/// What is worse than before, in words. An object that was ill before proves nothing.
pub fn worse(
    before: &BTreeMap<ObjectKey, (HealthStatus, String)>,
    after: &BTreeMap<ObjectKey, (HealthStatus, String)>,
) -> Vec<String> {
    let is_well = |status: HealthStatus| matches!(status, HealthStatus::Healthy | HealthStatus::Suspended);
    let was_well = before.iter().filter(|(_, (status, _))| is_well(*status));
    let worse = was_well.filter_map(|(key, (was, _))| match after.get(key) {
        Some((status, _)) if is_well(*status) => None,
        Some((status, message)) if message.is_empty() => Some(format!("{key} was {was} and is {status}")),
        Some((status, message)) => Some(format!("{key} was {was} and is {status}: {message}")),
        None => Some(format!("{key} was {was} and is gone")),
    });
    worse.collect()
}
