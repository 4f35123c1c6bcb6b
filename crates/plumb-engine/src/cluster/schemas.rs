//! The schemas of a cluster, fetched when first needed and again when the API server publishes a change.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use plumb_core::object::GroupKind;
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
    /// Group version → hash of the document that was read; empty if the API server has none.
    hashes: BTreeMap<String, String>,
}

impl Schemas {
    pub(crate) fn new(client: ClusterClient) -> Self {
        Self { client, cache: Mutex::new(SchemaCache::default()) }
    }

    /// The schemas of these group versions. Fields of these kinds have the types that the settings name, and are hidden if
    /// the settings say so.
    pub(crate) async fn typed(
        &self,
        mut api_versions: BTreeSet<String>,
        kinds: BTreeSet<GroupKind>,
        settings: &Settings,
    ) -> Result<Arc<SchemaSet>, ApiError> {
        let has_types = kinds.iter().any(|kind| settings.knows_types_of(kind));
        let has_secrets = kinds.iter().any(|kind| settings.hides_fields_of(kind));
        if has_types {
            // The schemas of these types are in `v1`.
            api_versions.insert("v1".to_owned());
        }
        let schemas = self.with(&api_versions).await?;
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

    /// The schemas of at least these group versions (`apps/v1`), as the API server publishes them now.
    /// Unchanged ones are not fetched again.
    pub(crate) async fn with(&self, api_versions: &BTreeSet<String>) -> Result<Arc<SchemaSet>, ApiError> {
        let mut cache = self.cache.lock().await;
        let catalog = self.client.catalog();
        for api_version in api_versions {
            let published = catalog.schemas.get(api_version).cloned().unwrap_or_default();
            if cache.hashes.get(api_version) == Some(&published) {
                continue;
            }
            let document = self.client.fetch_schema(api_version).await?;
            let hash = document.as_ref().map(|document| document.hash.clone()).unwrap_or_default();
            let parsed = document.and_then(|document| serde_json::from_slice(&document.json).ok());
            let set = SchemaSet::clone(&cache.set);
            cache.set = Arc::new(match parsed {
                Some(document) => set.with_document(&document),
                None => set.without(api_version),
            });
            // The document may be newer than the catalog, so its own hash is stored.
            cache.hashes.insert(api_version.clone(), if hash.is_empty() { published } else { hash });
        }
        Ok(Arc::clone(&cache.set))
    }
}
