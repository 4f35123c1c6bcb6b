//! `clusters`: one parameter set per registered cluster.

use std::collections::BTreeMap;

use plumb_crd::application_set::ClusterGenerator;
use plumb_gotemplate::normalize;

use super::entry::Context;
use super::values;
use crate::error::GenerationError;
use crate::facts::ClusterRecord;
use crate::params::{Data, Params};
use crate::selector::{self, Values};

/// The cluster that plumb runs in.
pub(super) const IN_CLUSTER_SERVER: &str = "https://kubernetes.default.svc";
const TYPE_LABEL: &str = "argocd.argoproj.io/secret-type";

pub(super) fn params(
    context: &Context<'_>,
    generator: &ClusterGenerator,
) -> Result<Vec<Params>, GenerationError> {
    let mut wanted = generator.selector.clone();
    wanted.match_labels.insert(TYPE_LABEL.to_owned(), "cluster".to_owned());
    selector::check(&wanted, Values::Strict)
        .map_err(|error| GenerationError::generation(format!("error getting cluster secrets: {error}")))?;
    let all = context.facts.clusters()?;
    let mut matched: Vec<ClusterRecord> = Vec::new();
    for mut cluster in all {
        cluster.labels.insert(TYPE_LABEL.to_owned(), "cluster".to_owned());
        if !wanted.matches(&cluster.labels) {
            continue;
        }
        // Of two Secrets with one name the last counts.
        match matched.iter_mut().find(|known| known.name == cluster.name) {
            Some(known) => *known = cluster,
            None => matched.push(cluster),
        }
    }
    let mut sets = Vec::new();
    let has_local = matched.iter().any(|cluster| cluster.server == IN_CLUSTER_SERVER);
    if selector::is_empty(&generator.selector) && !has_local {
        sets.push(local(context, generator)?);
    }
    for cluster in &matched {
        sets.push(of_cluster(context, generator, cluster)?);
    }
    if generator.flat_list {
        let list = Data::List(sets.into_iter().map(Data::Map).collect());
        sets = vec![Params::from([("clusters".to_owned(), list)])];
    }
    Ok(sets)
}

fn local(context: &Context<'_>, generator: &ClusterGenerator) -> Result<Params, GenerationError> {
    let mut params = names("in-cluster", IN_CLUSTER_SERVER, "");
    values::append(context, &generator.values, &mut params)
        .map_err(|error| error.during("error appending templated values for local cluster"))?;
    Ok(params)
}

fn names(name: &str, server: &str, project: &str) -> Params {
    Params::from([
        ("name".to_owned(), Data::from(name)),
        ("nameNormalized".to_owned(), Data::Text(normalize(name))),
        ("server".to_owned(), Data::from(server)),
        ("project".to_owned(), Data::from(project)),
    ])
}

fn of_cluster(
    context: &Context<'_>,
    generator: &ClusterGenerator,
    cluster: &ClusterRecord,
) -> Result<Params, GenerationError> {
    let mut params = names(&cluster.name, &cluster.server, &cluster.project);
    let metadata = [("labels", &cluster.labels), ("annotations", &cluster.annotations)];
    if context.is_go() {
        let present = metadata.into_iter().filter(|(_, map)| !map.is_empty());
        let entries: BTreeMap<String, Data> =
            present.map(|(key, map)| (key.to_owned(), Data::TextMap(map.clone()))).collect();
        if !entries.is_empty() {
            params.insert("metadata".to_owned(), Data::Map(entries));
        }
    } else {
        for (kind, map) in metadata {
            params.extend(
                map.iter().map(|(key, text)| (format!("metadata.{kind}.{key}"), Data::from(text.as_str()))),
            );
        }
    }
    values::append(context, &generator.values, &mut params)
        .map_err(|error| error.during("error appending templated values for cluster"))?;
    Ok(params)
}
