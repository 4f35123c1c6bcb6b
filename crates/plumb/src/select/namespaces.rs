//! The namespaces that Applications and their reports may be in.

use std::collections::BTreeSet;

use futures::future;
use plumb_core::glob::Glob;
use plumb_core::object::Manifest;
use plumb_kube::ClusterClient;

use crate::context::Context;
use crate::error::CommandError;
use crate::kinds;

/// Lists with `list`: in `namespace`, or, where none is given, in the control-plane namespace and in those that
/// `application.namespaces` names. `list` gets `None` for the whole cluster.
pub(crate) async fn list_in(
    context: &Context,
    client: &ClusterClient,
    namespace: Option<&str>,
    list: impl AsyncFn(Option<&str>) -> Result<Vec<Manifest>, CommandError>,
) -> Result<Vec<Manifest>, CommandError> {
    if namespace.is_some() {
        return list(namespace).await;
    }
    let home = context.namespace();
    let (at_home, further) = future::join(list(Some(home)), further_namespaces(context, client)).await;
    let mut found = at_home?;
    if !further.is_empty() {
        // Through the API server of plumb, the control-plane namespace has the name that it has there.
        let known: BTreeSet<_> = found.iter().map(place).collect();
        found.extend(list(None).await?.into_iter().filter(|object| {
            let namespace = object.namespace().unwrap_or_default();
            namespace != home
                && further.iter().any(|glob| glob.matches(namespace))
                && !known.contains(&place(object))
        }));
    }
    Ok(found)
}

fn place(object: &Manifest) -> (String, String) {
    let text = |part: Option<&str>| part.unwrap_or_default().to_owned();
    (text(object.namespace()), text(object.name()))
}

/// `application.namespaces` of the settings. A user who may not read the settings sees the Applications of the
/// control-plane namespace.
pub(crate) async fn further_namespaces(context: &Context, client: &ClusterClient) -> Vec<Glob> {
    let settings =
        client.get_at(&kinds::config_map(), Some(context.namespace()), "argocd-cmd-params-cm").await;
    let settings = settings.ok().flatten();
    let text = settings
        .as_ref()
        .and_then(|settings| settings.value().pointer("/data/application.namespaces")?.as_str())
        .unwrap_or_default();
    text.split(',')
        .map(str::trim)
        .filter(|word| !word.is_empty())
        .filter_map(|word| Glob::regex_or_plain(word).ok())
        .collect()
}
