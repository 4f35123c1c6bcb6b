//! Secrets that controllers make from an app's objects, and that another writer edited.
//!
//! The watch tells which Secrets may be edited. Only of these the metadata is read, once per version: what the maker
//! names decides, and who wrote which key. Values are not read.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use plumb_core::health::expected_secret;
use plumb_core::object::{GroupKind, Manifest, ObjectKey};
use plumb_core::secrets::{EditedSecret, edited_by_hand};
use plumb_kube::{ApiError, ClusterClient, Selection};
use tracing::debug;

use super::dependencies::PermitsNamespace;
use crate::cluster::destination::Cluster;

/// At most this many Secrets of an app are read in one run. The others follow in the next.
const MOST_READS: usize = 20;

/// What was found out about a Secret.
#[derive(Clone, Debug)]
pub(super) struct Look {
    /// The versions of the Secret and of its maker.
    versions: (String, Option<String>),
    edits: Vec<EditedSecret>,
}

/// The edits of all Secrets that these objects make. A look that is not repeated stays as it is.
pub(super) async fn edited(
    cluster: &Cluster,
    permits_namespace: &PermitsNamespace<'_>,
    live: &BTreeMap<ObjectKey, Arc<Manifest>>,
    looks: &mut HashMap<ObjectKey, Look>,
) -> Vec<EditedSecret> {
    let mut seen = HashMap::new();
    let mut n_reads = 0;
    for (key, maker) in live {
        let Some(secret) = expected_secret(maker).map(|expected| expected.secret) else { continue };
        let is_permitted = secret.namespace.as_deref().is_none_or(permits_namespace);
        let node = cluster.store.node(&secret).filter(|node| is_permitted && node.may_be_edited);
        let Some(node) = node else { continue };
        let versions = (node.resource_version, maker.resource_version().map(str::to_owned));
        let mut look = looks.remove(key);
        let is_new = look.as_ref().is_none_or(|look| look.versions != versions);
        if is_new && n_reads < MOST_READS {
            n_reads += 1;
            match metadata(&cluster.client, &secret).await {
                Ok(found) => {
                    let edits = found.iter().flat_map(|found| edits_of(found, maker)).collect();
                    look = Some(Look { versions, edits });
                }
                Err(error) => debug!(secret = %secret, %error, "cannot read who wrote the Secret"),
            }
        }
        seen.extend(look.map(|look| (key.clone(), look)));
    }
    *looks = seen;
    let mut edits: Vec<EditedSecret> = looks.values().flat_map(|look| look.edits.iter().cloned()).collect();
    edits.sort_by(|one, other| (&one.key, &one.edit.keys).cmp(&(&other.key, &other.edit.keys)));
    edits
}

fn edits_of(secret: &Manifest, maker: &Manifest) -> Vec<EditedSecret> {
    let Some(key) = secret.key() else { return Vec::new() };
    let owner = (maker.kind().to_owned(), maker.name().unwrap_or_default().to_owned());
    let edits = edited_by_hand(secret, Some(maker)).into_iter();
    edits.map(|edit| EditedSecret { key: key.clone(), owner: owner.clone(), edit }).collect()
}

/// A Secret without its values.
async fn metadata(client: &ClusterClient, key: &ObjectKey) -> Result<Option<Manifest>, ApiError> {
    let Some(resource) = client.catalog().preferred(&GroupKind::new("", "Secret")) else { return Ok(None) };
    let selection = Selection {
        namespace: key.namespace.clone(),
        fields: Some(format!("metadata.name={}", key.name)),
        ..Selection::default()
    };
    Ok(client.list_metadata(&resource, &selection).await?.into_iter().next())
}
