//! The `OpenAPI` v3 documents: one per group version, named by hash, fetched when first needed.
//!
//! A CRD that gains a default changes what its objects mean without giving them a new resource version. The
//! hash of its group version changes, so data derived from a schema is cached together with the hash.

use std::collections::BTreeMap;

use bytes::Bytes;
use http::Method;
use http::header::ETAG;
use serde::Deserialize;

use crate::client::{Call, ClusterClient};
use crate::error::ApiError;

/// One group version's schemas, as the server prints them.
#[derive(Clone, Debug)]
pub struct SchemaDocument {
    /// Hash of the document.
    pub hash: String,
    /// The document as JSON. It is large (a megabyte for `apps/v1`): callers keep only what they need.
    pub json: Bytes,
}

#[derive(Deserialize)]
struct Index {
    #[serde(default)]
    paths: BTreeMap<String, Entry>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Entry {
    #[serde(default, rename = "serverRelativeURL")]
    server_relative_url: String,
}

/// The hash of each group version's document. A server without `OpenAPI` v3 has none.
pub(super) async fn fetch_index(client: &ClusterClient) -> Result<BTreeMap<String, String>, ApiError> {
    let answer = match client.call(Call::new(Method::GET, "/openapi/v3".to_owned())).await {
        Ok(answer) => answer,
        Err(error) if error.is_not_found() || error.is_forbidden() => return Ok(BTreeMap::new()),
        Err(error) => return Err(error),
    };
    let index: Index = serde_json::from_slice(&answer.body).map_err(|source| ApiError::Unreadable {
        request: "GET /openapi/v3".to_owned(),
        expected: "the index of the schemas",
        source: Some(source),
    })?;
    let hashes = index.paths.into_iter().filter_map(|(path, entry)| {
        let api_version = path.strip_prefix("apis/").or_else(|| path.strip_prefix("api/"))?;
        let (_, hash) = entry.server_relative_url.split_once("hash=")?;
        Some((api_version.to_owned(), hash.to_owned()))
    });
    // `apis/apps` has no version: only entries that name one hold schemas of objects.
    Ok(hashes.filter(|(name, _)| name.contains('/') || name.starts_with('v')).collect())
}

impl ClusterClient {
    /// The schemas of one group version (`apps/v1`, `v1`); `None` if the server publishes none. The answer is
    /// not cached: callers cache what they need, by hash (see [`Catalog::schemas`](crate::Catalog)).
    pub async fn fetch_schema(&self, api_version: &str) -> Result<Option<SchemaDocument>, ApiError> {
        let catalog = self.catalog();
        let Some(hash) = catalog.schemas.get(api_version) else { return Ok(None) };
        let group = if api_version.contains('/') { "apis" } else { "api" };
        // Without `hash=` the server answers with the present document instead of a redirect, and its entity
        // tag is the hash.
        let path = format!("/openapi/v3/{group}/{api_version}");
        match self.call(Call::new(Method::GET, path)).await {
            Ok(answer) => {
                let tag = answer.headers.get(ETAG).and_then(|tag| tag.to_str().ok());
                let present = tag.map_or_else(|| hash.clone(), |tag| tag.trim_matches('"').to_owned());
                Ok(Some(SchemaDocument { hash: present, json: answer.body }))
            }
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(error),
        }
    }
}
