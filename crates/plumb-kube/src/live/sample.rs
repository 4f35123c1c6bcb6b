//! Reads a sample of the objects now and then, to find out whether the data of the API server went back in time.

use std::sync::Arc;
use std::time::Duration;

use http::Method;
use plumb_core::object::ObjectKey;
use serde::Deserialize;

use super::core::Core;
use super::feeder::number;
use super::record::{KindId, Record, Uid};
use super::rewind::{Answered, OF_CLUSTER, Told, contradiction, is_numbered_by_etcd, other_cluster};
use super::state::State;
use crate::backoff::jitter;
use crate::catalog::Resource;
use crate::client::Call;
use crate::error::ApiError;
use crate::read::METADATA_ONLY;

/// How often a sample is read. Together with the confirmation far less than a minute.
const SAMPLE_EVERY: Duration = Duration::from_secs(20);
/// A first suspicion is confirmed after this time.
const CONFIRM_AFTER: Duration = Duration::from_secs(1);

/// One object to read, or the version of one list.
#[derive(Debug, PartialEq, Eq)]
struct Sample {
    resource: Resource,
    namespace: Option<String>,
    name: Option<String>,
    told: Told,
    /// Of the namespace that exists as long as its cluster.
    uid: Option<Uid>,
}

impl State {
    /// What to read: the newest object, which a restore changes first, and the list of the kind whose watch is the furthest,
    /// which a restore sets back first, even if only deletions were undone. Versions of different kinds are not compared:
    /// they may be in different etcd clusters.
    fn samples(&self) -> Vec<Sample> {
        let is_numbered: Vec<bool> = self.kind_names().iter().map(is_numbered_by_etcd).collect();
        let is_numbered = |kind: KindId| {
            let at = usize::try_from(kind).unwrap_or(usize::MAX);
            is_numbered.get(at).copied().unwrap_or_default()
        };
        let of_etcd = self.all().filter(|(_, record)| is_numbered(record.address.kind));
        let newest = of_etcd.map(|(_, record)| record).max_by_key(|record| record.version);
        let tables = self.tables().filter(|table| is_numbered_by_etcd(&table.resource.gvk.group_kind()));
        let scopes = tables.flat_map(|table| table.scopes.iter().map(move |scope| (table, scope)));
        let furthest = scopes.filter(|(_, scope)| scope.listed).max_by_key(|(_, scope)| scope.position);
        let newest = newest.and_then(|newest| self.sample_of(newest));
        let furthest = furthest.map(|(table, scope)| Sample {
            resource: table.resource.clone(),
            namespace: scope.namespace.clone(),
            name: None,
            told: Told { list: scope.position, object: 0 },
            uid: None,
        });
        match (newest, furthest) {
            // The list of the newest object tells how far its kind is, too.
            (Some(newest), Some(furthest)) if newest.told.list >= furthest.told.list => vec![newest],
            (newest, furthest) => newest.into_iter().chain(furthest).collect(),
        }
    }

    fn sample_of(&self, record: &Record) -> Option<Sample> {
        let namespace = record.address.namespace.as_deref();
        let table = self.table(record.address.kind)?;
        let covers = |place: Option<&str>| place.is_none() || place == namespace;
        let scope = table.scopes.iter().find(|scope| covers(scope.namespace.as_deref()))?;
        Some(Sample {
            resource: table.resource.clone(),
            namespace: namespace.map(str::to_owned),
            name: Some(record.address.name.to_string()),
            told: Told { list: scope.position, object: record.version },
            uid: None,
        })
    }

    /// The namespace that exists as long as its cluster, if it is watched.
    fn sample_of_cluster(&self) -> Option<Sample> {
        let key = ObjectKey::new("", "Namespace", None, OF_CLUSTER);
        let record = self.record(self.find_key(&key)?)?;
        Some(Sample { uid: Some(record.uid.clone()), ..self.sample_of(record)? })
    }
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct List {
    metadata: Version,
    items: Vec<Item>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Item {
    metadata: Version,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Version {
    resource_version: String,
    uid: String,
}

/// Reads a sample now and then, and after each outage, until the server contradicts what it had told before.
pub(super) async fn detect(core: Arc<Core>) {
    loop {
        // Another cluster at the same address cannot come without an outage.
        let was_away = tokio::select! {
            () = tokio::time::sleep(SAMPLE_EVERY.saturating_sub(jitter(SAMPLE_EVERY / 4))) => false,
            () = core.came_back.notified() => true,
        };
        if look(&core, was_away).await.is_none() {
            continue;
        }
        tokio::time::sleep(CONFIRM_AFTER).await;
        if let Some(evidence) = look(&core, was_away).await {
            core.publish_rewound(evidence);
        }
    }
}

/// How the server contradicts what it had told before. `None` if it does not, or cannot be asked.
async fn look(core: &Core, was_away: bool) -> Option<String> {
    let samples = {
        let state = core.state();
        let of_cluster = if was_away { state.sample_of_cluster() } else { None };
        of_cluster.into_iter().chain(state.samples()).collect::<Vec<_>>()
    };
    for sample in samples {
        match ask(core, &sample).await {
            Ok((answered, uid)) => {
                let is_other = sample.uid.as_ref().and_then(|told| other_cluster(told, uid.as_ref()));
                if let Some(evidence) = is_other.or_else(|| contradiction(sample.told, answered)) {
                    return Some(evidence);
                }
            }
            Err(error) => tracing::debug!(%error, "cannot read a sample"),
        }
    }
    None
}

/// A list of one object: it answers with the version of the object and with that of all data.
async fn ask(core: &Core, sample: &Sample) -> Result<(Answered, Option<Uid>), ApiError> {
    let path = sample.resource.collection_path(sample.namespace.as_deref())?;
    let call = Call::new(Method::GET, path.clone()).accepting(METADATA_ONLY);
    let call = match &sample.name {
        Some(name) => call.query("fieldSelector", &format!("metadata.name={name}")),
        None => call.query("limit", "1"),
    };
    let answer = core.client.call(call).await?;
    let list: List = serde_json::from_slice(&answer.body)
        .map_err(|source| ApiError::unreadable(&path, "a list of objects", Some(source)))?;
    let object = list.items.first().filter(|_| sample.name.is_some());
    let answered = Answered {
        list: number(&list.metadata.resource_version),
        object: object.map(|object| number(&object.metadata.resource_version)),
    };
    Ok((answered, object.map(|object| Uid::new(&object.metadata.uid))))
}
