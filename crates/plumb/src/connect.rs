//! Clients of the clusters that apps are deployed to.

use std::time::Duration;

use plumb_core::app::ClusterRef;
use plumb_crd::Application;
use plumb_kube::ClusterClient;

use crate::context::Context;
use crate::error::CommandError;
use crate::secrets::clusters::{Registered, registered};

/// How long reading the kinds of a cluster may take: many requests, also of a busy API server.
const TIMEOUT: Duration = Duration::from_secs(15);

/// A client of the destination cluster of an app, with its discovered kinds.
pub(crate) async fn cluster_of(
    context: &Context,
    home: &ClusterClient,
    application: &Application,
) -> Result<ClusterClient, CommandError> {
    if context.door().is_some() {
        // The server shows the objects of the Application that was read, wherever they are.
        let discovered = home.discover().await;
        discovered.map_err(|error| CommandError::api("read the tree of the application", error))?;
        return Ok(home.clone());
    }
    let destination = &application.spec.destination;
    let cluster = match (destination.server.trim_end_matches('/'), destination.name.as_str()) {
        ("", name) => ClusterRef::Name(name.to_owned()),
        (server, _) => ClusterRef::Server(server.to_owned()),
    };
    reach(context, home, &cluster).await
}

/// A client of a cluster, with its discovered kinds. It never falls back to another cluster: an object must not be
/// written into the wrong one.
pub(crate) async fn reach(
    context: &Context,
    home: &ClusterClient,
    cluster: &ClusterRef,
) -> Result<ClusterClient, CommandError> {
    if *cluster == ClusterRef::Server(ClusterRef::IN_CLUSTER_SERVER.to_owned()) {
        return Ok(home.clone());
    }
    let all = registered(context, home).await?;
    let one = find(&all, cluster)?;
    if one.cluster.server == ClusterRef::IN_CLUSTER_SERVER {
        return Ok(home.clone());
    }
    connect(one).await
}

/// A client of a registered cluster other than the home cluster, with its discovered kinds.
pub(crate) async fn connect(one: &Registered) -> Result<ClusterClient, CommandError> {
    let server = &one.cluster.server;
    let unreachable = |why: Box<dyn std::error::Error + Send + Sync>| {
        CommandError::because(format!("reach cluster {server}"), why)
            .hint("`plumb cluster list` shows which clusters can be reached")
    };
    let client = one.connect().map_err(|why| unreachable(why.into()))?;
    match tokio::time::timeout(TIMEOUT, client.discover()).await {
        Ok(Ok(_)) => Ok(client),
        Ok(Err(error)) => Err(unreachable(error.into())),
        Err(_) => Err(unreachable(format!("no answer within {} s", TIMEOUT.as_secs()).into())),
    }
}

/// The registered cluster with this name or address.
pub(crate) fn find<'r>(all: &'r [Registered], cluster: &ClusterRef) -> Result<&'r Registered, CommandError> {
    let (text, matches): (&str, fn(&Registered, &str) -> bool) = match cluster {
        ClusterRef::Server(server) => (server, |one, server| one.cluster.server == server),
        ClusterRef::Name(name) => (name, |one, name| one.cluster.name == name),
    };
    let found: Vec<&Registered> = all.iter().filter(|one| matches(one, text)).collect();
    // The name `in-cluster` works even if the Secret of that cluster has another name.
    let home = all.iter().find(|one| one.cluster.server == ClusterRef::IN_CLUSTER_SERVER);
    let first = found.first().copied().or(home.filter(|_| cluster.is_in_cluster())).ok_or_else(|| {
        CommandError::new(format!("cluster {text} is not registered"))
            .hint("`plumb cluster list` lists the clusters, `plumb cluster add` registers one")
    })?;
    if found.iter().any(|one| one.cluster.server != first.cluster.server) {
        return Err(CommandError::new(format!("cluster name {text} is ambiguous"))
            .hint("several registered clusters have it: `plumb cluster list`"));
    }
    Ok(first)
}

#[cfg(test)]
mod tests {
    use plumb_crd::settings::ClusterSecret;

    use super::*;
    use crate::secrets::clusters::home;

    fn check(cluster: &ClusterRef, expected: &str) {
        let clusters = [
            ("east", "https://east"),
            ("twin", "https://one"),
            ("twin", "https://two"),
            ("here", ClusterRef::IN_CLUSTER_SERVER),
        ];
        let all = clusters.map(|(name, server)| Registered {
            cluster: ClusterSecret { name: name.to_owned(), server: server.to_owned(), ..home() },
            secret: None,
            state: None,
        });
        let found = match find(&all, cluster) {
            Ok(one) => one.cluster.server.clone(),
            Err(error) => error.to_string().lines().next().unwrap_or_default().to_owned(),
        };
        assert_eq!(found, expected);
    }

    #[test]
    fn a_cluster_is_the_registered_one_or_none() {
        let server = |text: &str| ClusterRef::Server(text.to_owned());
        let name = |text: &str| ClusterRef::Name(text.to_owned());
        check(&server("https://east"), "https://east");
        check(&name("east"), "https://east");
        check(&server("https://two"), "https://two");
        check(&name("twin"), "error: cluster name twin is ambiguous");
        check(&server("https://west"), "error: cluster https://west is not registered");
        check(&name("in-cluster"), ClusterRef::IN_CLUSTER_SERVER);
        check(&name("here"), ClusterRef::IN_CLUSTER_SERVER);
    }
}
