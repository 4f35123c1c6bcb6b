//! Which clusters a destination may name.

use plumb_core::app::ClusterRef;
use serde_json::Value as Json;

use crate::facts::ClusterRecord;

/// The known clusters.
#[derive(Clone, Debug, Default)]
pub struct Destinations {
    clusters: Vec<(String, String)>,
}

impl Destinations {
    /// The registered clusters, and the one that plumb runs in.
    pub fn new<'a>(clusters: impl IntoIterator<Item = &'a ClusterRecord>, in_cluster: bool) -> Self {
        let mut known: Vec<(String, String)> = clusters
            .into_iter()
            .map(|cluster| (cluster.name.clone(), cluster.server.trim_end_matches('/').to_owned()))
            .collect();
        let local = ClusterRef::IN_CLUSTER_SERVER;
        if in_cluster && !known.iter().any(|(_, server)| server == local) {
            known.push((ClusterRef::IN_CLUSTER_NAME.to_owned(), local.to_owned()));
        }
        Self { clusters: known }
    }

    /// Why `spec.destination` means no cluster, if so.
    pub(super) fn objection(&self, destination: &Json) -> Option<String> {
        let text = |key: &str| destination[key].as_str().unwrap_or_default();
        let (server, name) = (text("server").trim_end_matches('/'), text("name"));
        match (server.is_empty(), name.is_empty()) {
            (false, false) => Some(format!(
                "application destination can't have both name and server defined: {name} {server}"
            )),
            (true, true) => Some("Destination server missing from app spec".to_owned()),
            (false, true) => {
                let known = self.clusters.iter().any(|(_, known)| known == server);
                (!known).then(|| {
                    format!("error getting cluster by server \"{server}\": cluster \"{server}\" not found")
                })
            }
            (true, false) => {
                let servers: Vec<&str> = self
                    .clusters
                    .iter()
                    .filter(|(known, _)| known == name)
                    .map(|(_, server)| server.as_str())
                    .collect();
                match servers.as_slice() {
                    [] => Some(format!("there are no clusters with this name: {name}")),
                    [_] => None,
                    many => Some(format!(
                        "there are {} clusters with the same name: [{}]",
                        many.len(),
                        many.join(" ")
                    )),
                }
            }
        }
    }
}
