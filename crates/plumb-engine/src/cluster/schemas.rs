//! The schemas of a cluster, fetched when first needed and again when the API server publishes a change.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use plumb_core::object::GroupVersionKind;
use plumb_core::schema::SchemaSet;
use plumb_kube::{ApiError, ClusterClient};
use tokio::sync::Mutex;

use crate::config::settings::Settings;

/// The schemas of one cluster.
pub(crate) struct Schemas {
    client: ClusterClient,
    cache: Mutex<SchemaCache>,
}

#[derive(Default)]
struct SchemaCache {
    set: Arc<SchemaSet>,
    /// What was read of each group version.
    documents: BTreeMap<String, ReadDocument>,
}

/// What was read of the schemas of one group version.
#[derive(Default)]
struct ReadDocument {
    /// Hash of the document that was read; empty if the API server has none.
    hash: String,
    /// The kinds that were asked for. Of custom resources the set has only these.
    kinds: BTreeSet<String>,
}

impl Schemas {
    pub(crate) fn new(client: ClusterClient) -> Self {
        Self { client, cache: Mutex::new(SchemaCache::default()) }
    }

    /// The schemas of these kinds. Their fields have the types that the settings name, and are hidden if the settings say
    /// so.
    pub(crate) async fn typed(
        &self,
        mut kinds: BTreeSet<GroupVersionKind>,
        settings: &Settings,
    ) -> Result<Arc<SchemaSet>, ApiError> {
        let has_types = kinds.iter().any(|kind| settings.knows_types_of(&kind.group_kind()));
        let has_secrets = kinds.iter().any(|kind| settings.hides_fields_of(&kind.group_kind()));
        if has_types {
            // The schemas of these types are in `v1`.
            kinds.insert(GroupVersionKind::from_api_version("v1", "Pod"));
        }
        let schemas = self.with(kinds).await?;
        if !has_types && !has_secrets {
            return Ok(schemas);
        }
        let mut schemas = SchemaSet::clone(&schemas);
        if has_types {
            schemas = schemas.with_known_types(Arc::clone(&settings.known_types));
        }
        if has_secrets {
            schemas = schemas.with_sensitive_fields(Arc::clone(&settings.sensitive_fields));
        }
        Ok(Arc::new(schemas))
    }

    /// The schemas of at least these kinds, as the API server publishes them now. Documents are read one at a time, and
    /// unchanged ones only for a kind that was not asked for before: a document takes much memory while it is read.
    pub(crate) async fn with(&self, kinds: BTreeSet<GroupVersionKind>) -> Result<Arc<SchemaSet>, ApiError> {
        let mut by_version: BTreeMap<String, Vec<GroupVersionKind>> = BTreeMap::new();
        for kind in kinds {
            by_version.entry(kind.api_version()).or_default().push(kind);
        }
        let mut cache = self.cache.lock().await;
        let catalog = self.client.catalog();
        for (api_version, kinds) in by_version {
            let published = catalog.schemas.get(&api_version).cloned().unwrap_or_default();
            let known = cache.documents.get(&api_version).filter(|known| known.hash == published);
            let is_read =
                |kind: &GroupVersionKind| known.is_some_and(|known| known.kinds.contains(&kind.kind));
            if known.is_some() && kinds.iter().all(|kind| is_read(kind) || cache.set.kind(kind).is_some()) {
                continue;
            }
            let before = cache.documents.get(&api_version);
            let mut asked = before.map(|before| before.kinds.clone()).unwrap_or_default();
            asked.extend(kinds.into_iter().map(|kind| kind.kind));
            let document = self.client.fetch_schema(&api_version).await?;
            let hash = document.as_ref().map(|document| document.hash.clone()).unwrap_or_default();
            let mut set = SchemaSet::clone(&cache.set).without(&api_version);
            if let Some(document) = document {
                set = set.with_openapi(&document.json, |kind| asked.contains(&kind.kind));
            }
            cache.set = Arc::new(set);
            // The document may be newer than the catalog, so its own hash is stored.
            let hash = if hash.is_empty() { published } else { hash };
            cache.documents.insert(api_version, ReadDocument { hash, kinds: asked });
        }
        Ok(Arc::clone(&cache.set))
    }
}
