//! Fetches the discovery documents. Entity tags save the body of an unchanged one.

use std::sync::Arc;

use bytes::Bytes;
use http::{Method, header};
use serde::Deserialize;

use super::openapi;
use super::wire::{GroupDiscoveryList, GroupIndex, ResourceList, api_version};
use crate::catalog::{Catalog, ServerVersion, Tagged};
use crate::client::{Answer, Call, ClusterClient};
use crate::error::ApiError;

/// The aggregated form first, the older one for servers before 1.26.
const ACCEPT_AGGREGATED: &str = "application/json;v=v2;g=apidiscovery.k8s.io;as=APIGroupDiscoveryList,\
     application/json;v=v2beta1;g=apidiscovery.k8s.io;as=APIGroupDiscoveryList,application/json";

impl ClusterClient {
    /// Reads all kinds that the cluster serves and makes them the client's catalog. If nothing changed, the
    /// present catalog stays.
    pub async fn discover(&self) -> Result<Arc<Catalog>, ApiError> {
        let (server, core, groups, schemas) = futures::try_join!(
            self.version(),
            self.fetch_tagged("/api", ACCEPT_AGGREGATED),
            self.fetch_tagged("/apis", ACCEPT_AGGREGATED),
            openapi::fetch_index(self),
        )?;
        let mut catalog = Catalog { schemas, server, ..Catalog::default() };
        for (path, answer) in [("/api", core), ("/apis", groups)] {
            if answer.content_type.contains("apidiscovery.k8s.io") {
                let list: GroupDiscoveryList = parse(path, &answer.body, "APIGroupDiscoveryList")?;
                list.add_to(&mut catalog);
            } else {
                let index: GroupIndex = parse(path, &answer.body, "APIGroupList")?;
                self.add_group_by_group(&mut catalog, &index).await?;
            }
        }
        Ok(self.publish_catalog(|previous| catalog.with_stale_from(previous)))
    }

    /// Requests the server's version, to find out whether it answers and accepts the credentials.
    pub async fn probe(&self) -> Result<(), ApiError> {
        self.version().await.map(drop)
    }

    async fn add_group_by_group(&self, catalog: &mut Catalog, index: &GroupIndex) -> Result<(), ApiError> {
        let core = index.versions.iter().map(|version| (String::new(), version.clone()));
        let grouped = index.groups.iter().flat_map(super::wire::GroupEntry::group_versions);
        for (group, version) in core.chain(grouped) {
            let path =
                if group.is_empty() { format!("/api/{version}") } else { format!("/apis/{group}/{version}") };
            match self.call(Call::new(Method::GET, path.clone())).await {
                Ok(answer) => {
                    let list: ResourceList = parse(&path, &answer.body, "APIResourceList")?;
                    list.add_to(catalog, &group, &version);
                }
                // One aggregated API server that is down must not hide the others.
                Err(error) if error.is_unavailable() || error.is_not_found() => {
                    let api_version = api_version(&group, &version);
                    // Told once for each outage.
                    if !self.catalog().stale.contains(&api_version) {
                        tracing::warn!(%error, "cannot discover a group version");
                    }
                    catalog.stale.insert(api_version);
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// The server's version.
    pub async fn version(&self) -> Result<ServerVersion, ApiError> {
        #[derive(Default, Deserialize)]
        #[serde(rename_all = "camelCase", default)]
        struct Wire {
            major: String,
            minor: String,
            git_version: String,
        }
        let answer = self.call(Call::new(Method::GET, "/version".to_owned())).await?;
        let wire: Wire = parse("/version", &answer.body, "a server version")?;
        Ok(ServerVersion { major: wire.major, minor: wire.minor, git_version: wire.git_version })
    }

    async fn fetch_tagged(
        &self,
        path: &'static str,
        accept: &'static str,
    ) -> Result<FetchedDocument, ApiError> {
        let known = self.discovery().get(path);
        let mut call = Call::new(Method::GET, path.to_owned()).accepting(accept);
        if let Some(known) = &known {
            call = call.if_none_match(&known.etag);
        }
        let answer: Answer = self.call(call).await?;
        if let (304, Some(known)) = (answer.code, known) {
            return Ok(FetchedDocument { body: known.body, content_type: known.content_type });
        }
        let text = |name| {
            let value = answer.headers.get(name).and_then(|value| value.to_str().ok());
            value.unwrap_or_default().to_owned()
        };
        let content_type = text(header::CONTENT_TYPE);
        let etag = text(header::ETAG);
        if !etag.is_empty() {
            let tagged = Tagged { etag, body: answer.body.clone(), content_type: content_type.clone() };
            self.discovery().put(path, tagged);
        }
        Ok(FetchedDocument { body: answer.body, content_type })
    }
}

struct FetchedDocument {
    body: Bytes,
    content_type: String,
}

fn parse<'body, T: Deserialize<'body>>(
    path: &str,
    body: &'body [u8],
    expected: &'static str,
) -> Result<T, ApiError> {
    serde_json::from_slice(body).map_err(|source| ApiError::Unreadable {
        request: format!("GET {path}"),
        expected,
        source: Some(source),
    })
}
