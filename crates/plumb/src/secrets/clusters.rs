//! The Secrets that register clusters.

use std::time::Duration;

use plumb_core::app::ClusterRef;
use plumb_core::object::Manifest;
use plumb_crd::settings::ClusterSecret;
use plumb_kube::{ClusterClient, Connection, ExecPlugins, RegisteredCluster};
use serde_json::{Value, json};

use super::write::list;
use crate::context::Context;
use crate::error::CommandError;

/// How long a cluster may take to answer.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(5);

/// A cluster and the Secret that registers it. The cluster that plumb runs in needs none.
pub(crate) struct Registered {
    pub(crate) cluster: ClusterSecret,
    pub(crate) secret: Option<Manifest>,
    /// The version of the cluster or why it cannot be reached, where a server tells it.
    pub(crate) state: Option<Result<String, String>>,
}

impl Registered {
    /// A client with the registered credentials of the cluster.
    pub(crate) fn connect(&self) -> Result<ClusterClient, String> {
        let Some(secret) = &self.secret else { return Err("no Secret has its credentials".to_owned()) };
        let (data, _) =
            plumb_crd::settings::SecretData::read(secret.value()).map_err(|error| error.to_string())?;
        let config = data.get("config").map(|text| text.expose().as_bytes().to_vec()).unwrap_or_default();
        let cluster = RegisteredCluster { server: self.cluster.server.clone(), config };
        // The author of a Secret must not be able to start programs on the machine of the user.
        let connection =
            Connection::from_registered(&cluster, ExecPlugins::Off).map_err(|error| error.to_string())?;
        connection.client().map_err(|error| error.to_string())
    }
}

pub(crate) async fn registered(
    context: &Context,
    client: &ClusterClient,
) -> Result<Vec<Registered>, CommandError> {
    let mut clusters = Vec::new();
    for (data, object) in list(context, client, "cluster").await? {
        match ClusterSecret::read(&data) {
            Ok(cluster) => {
                let state = state(object.value());
                clusters.push(Registered { cluster, secret: Some(object), state });
            }
            Err(why) => {
                context.out.note(&format!("warning: cannot read secret {}: {why}", data.metadata.name));
            }
        }
    }
    clusters.sort_by(|one, other| one.cluster.name.cmp(&other.cluster.name));
    let is_home = |registered: &Registered| registered.cluster.server == ClusterRef::IN_CLUSTER_SERVER;
    if !clusters.iter().any(is_home) {
        clusters.push(Registered { cluster: home(), secret: None, state: None });
    }
    Ok(clusters)
}

/// The state of the connection, which a server shows beside the fields of the Secret.
fn state(secret: &Value) -> Option<Result<String, String>> {
    let shown = secret.get("connectionState")?;
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let version = text(&secret["serverVersion"]);
    Some(match shown["status"].as_str() {
        Some("Failed") => Err(text(&shown["message"])),
        _ if version.is_empty() => Err("the server is not connected to it".to_owned()),
        _ => Ok(version.trim_start_matches('v').to_owned()),
    })
}

/// The cluster that plumb runs in. It is always there.
pub(crate) fn home() -> ClusterSecret {
    ClusterSecret {
        name: ClusterRef::IN_CLUSTER_NAME.to_owned(),
        server: ClusterRef::IN_CLUSTER_SERVER.to_owned(),
        namespaces: Vec::new(),
        cluster_resources: true,
        project: None,
        auth: plumb_crd::settings::ClusterAuth::default(),
        tls: plumb_crd::settings::ClusterTls::default(),
        proxy_url: None,
        disable_compression: false,
        labels: std::collections::BTreeMap::new(),
        annotations: std::collections::BTreeMap::new(),
        skip_reconcile: false,
    }
}

/// The cluster with this name or address.
pub(crate) async fn find(
    context: &Context,
    client: &ClusterClient,
    which: &str,
) -> Result<Registered, CommandError> {
    let wanted = which.trim_end_matches('/');
    registered(context, client)
        .await?
        .into_iter()
        .find(|one| one.cluster.server == wanted || one.cluster.name == wanted)
        .ok_or_else(|| {
            CommandError::new(format!("cluster {which} is not registered"))
                .hint("`plumb cluster list` lists the clusters")
        })
}

/// A cluster without its credentials.
pub(crate) fn readable(one: &Registered) -> Value {
    let cluster = &one.cluster;
    let mut shown = json!({
        "server": cluster.server,
        "name": cluster.name,
        "config": {"tlsClientConfig": {"insecure": cluster.tls.insecure}},
    });
    if let Some(name) = &cluster.tls.server_name {
        shown["config"]["tlsClientConfig"]["serverName"] = json!(name);
    }
    if !cluster.namespaces.is_empty() {
        shown["namespaces"] = json!(cluster.namespaces);
        shown["clusterResources"] = json!(cluster.cluster_resources);
    }
    if let Some(project) = &cluster.project {
        shown["project"] = json!(project);
    }
    for (field, map) in [("labels", &cluster.labels), ("annotations", &cluster.annotations)] {
        let own = |key: &&String| !key.starts_with("argocd.argoproj.io/") && *key != "managed-by";
        let shown_map: serde_json::Map<String, Value> = map
            .keys()
            .filter(own)
            .filter(|key| key.as_str() != plumb_core::normalize::LAST_APPLIED)
            .filter_map(|key| Some((key.clone(), json!(map.get(key)?))))
            .collect();
        if !shown_map.is_empty() {
            shown[field] = Value::Object(shown_map);
        }
    }
    shown
}
