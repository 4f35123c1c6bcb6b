//! `plumb doctor --secrets`: the Secrets of apps, in the home cluster and in the others. Reads, and changes nothing.

use std::collections::{BTreeMap, BTreeSet};

use futures::StreamExt as _;
use futures::stream;

use jiff::Timestamp;
use plumb_core::app::{AppId, ClusterRef};
use plumb_core::health::expected_secret;
use plumb_core::object::{GroupKind, Manifest, ObjectKey};
use plumb_core::secrets::{
    EditedSecret, ExpiringCertificate, Expiry, ExternalProblemKind, SecretFacts, SecretsOfCluster,
    SecretsOfClusters, SecretsReport, controller_of, edited_by_hand, external_problems, is_sealed_secret,
    removed_by_hand, store_key, token_hints, unknown_secrets,
};
use plumb_crd::Application;
use plumb_crd::application::ConditionType;
use plumb_kube::{ClusterClient, Selection};
use plumb_seal::Certificate;
use serde_json::Value;

use super::format::DoctorFormat;
use crate::connect;
use crate::context::{Context, list_failed};
use crate::error::CommandError;
use crate::exit::ExitCode;
use crate::kinds;
use crate::output::Format;
use crate::secrets::base64;
use crate::secrets::clusters::{Registered, registered};
use crate::select::namespaces::list_in;

/// Kinds whose pods use Secrets.
const WORKLOADS: [(&str, &str); 8] = [
    ("apps", "Deployment"),
    ("apps", "StatefulSet"),
    ("apps", "DaemonSet"),
    ("apps", "ReplicaSet"),
    ("batch", "Job"),
    ("batch", "CronJob"),
    ("argoproj.io", "Rollout"),
    ("", "Pod"),
];
/// Kinds that stand for Secrets.
const MAKERS: [(&str, &str); 4] = [
    ("bitnami.com", "SealedSecret"),
    ("external-secrets.io", "ExternalSecret"),
    ("cert-manager.io", "Certificate"),
    ("onepassword.com", "OnePasswordItem"),
];
/// Clusters are read so many at a time.
const CLUSTERS_AT_A_TIME: usize = 4;
const SEALING_KEY: &str = "sealedsecrets.bitnami.com/sealed-secrets-key";

/// Which apps.
pub(super) struct Wanted<'args> {
    pub(super) apps: &'args [String],
    pub(super) projects: &'args [String],
    pub(super) namespace: Option<&'args str>,
}

pub(super) async fn run(
    context: &Context,
    wanted: &Wanted<'_>,
    format: DoctorFormat,
    exit_code: bool,
) -> Result<ExitCode, CommandError> {
    let client = context.client_of_all_kinds().await?;
    let list = async |namespace: Option<&str>| {
        let selection = Selection { namespace: namespace.map(str::to_owned), ..Selection::default() };
        client
            .list(&kinds::application(), &selection)
            .await
            .map_err(|error| list_failed(&kinds::application(), error))
    };
    let objects = list_in(context, &client, wanted.namespace, list).await?;
    let (here, others) = by_cluster(context, &client, chosen(wanted, &objects)?).await;
    let now = Timestamp::now();
    let report = SecretsOfClusters {
        here: report(context, &client, &here, now).await?,
        others: stream::iter(others)
            .map(|cluster| read_cluster(context, cluster, now))
            .buffered(CLUSTERS_AT_A_TIME)
            .collect()
            .await,
    };
    match format {
        DoctorFormat::Text => context.out.print(&report.text()),
        DoctorFormat::Json => context.out.object(Format::Json, &report.data())?,
        DoctorFormat::Yaml => context.out.object(Format::Yaml, &report.data())?,
        DoctorFormat::Sarif | DoctorFormat::Junit | DoctorFormat::Markdown => {
            return Err(CommandError::usage("--secrets has the formats text, json and yaml"));
        }
    }
    Ok(if exit_code && report.is_bad() { ExitCode::No } else { ExitCode::Success })
}

/// An app with the objects that its status lists.
struct AppObjects<'objects> {
    id: AppId,
    application: Application,
    object: &'objects Manifest,
}

/// The wanted apps.
fn chosen<'objects>(
    wanted: &Wanted<'_>,
    objects: &'objects [Manifest],
) -> Result<Vec<AppObjects<'objects>>, CommandError> {
    let mut apps = Vec::new();
    for object in objects {
        let Ok(application) = Application::from_json(object.value()) else { continue };
        let id = application.id();
        let named = wanted.apps.is_empty()
            || wanted.apps.iter().any(|name| *name == id.name || *name == id.to_string());
        let project = &application.spec.project;
        if named && (wanted.projects.is_empty() || wanted.projects.contains(project)) {
            apps.push(AppObjects { id, application, object });
        }
    }
    if apps.is_empty() && !(wanted.apps.is_empty() && wanted.projects.is_empty()) {
        return Err(
            CommandError::new("no app matches").hint("`plumb app list` shows the apps and their projects")
        );
    }
    Ok(apps)
}

/// A cluster other than the home cluster, with the apps that deploy to it.
struct OtherCluster<'objects> {
    name: String,
    registered: Result<Registered, String>,
    apps: Vec<AppObjects<'objects>>,
}

/// The apps of the home cluster, and those of each other cluster.
async fn by_cluster<'objects>(
    context: &Context,
    client: &ClusterClient,
    apps: Vec<AppObjects<'objects>>,
) -> (Vec<AppObjects<'objects>>, Vec<OtherCluster<'objects>>) {
    let (mut here, mut elsewhere) = (Vec::new(), BTreeMap::<ClusterRef, Vec<AppObjects<'objects>>>::new());
    for app in apps {
        let destination = &app.application.spec.destination;
        match (destination.server.trim_end_matches('/'), destination.name.as_str()) {
            ("", "" | ClusterRef::IN_CLUSTER_NAME) | (ClusterRef::IN_CLUSTER_SERVER, _) => here.push(app),
            ("", name) => elsewhere.entry(ClusterRef::Name(name.to_owned())).or_default().push(app),
            (server, _) => elsewhere.entry(ClusterRef::Server(server.to_owned())).or_default().push(app),
        }
    }
    if elsewhere.is_empty() {
        return (here, Vec::new());
    }
    let all = registered(context, client).await.map_err(|error| one_line_of(&error));
    let mut others: BTreeMap<String, OtherCluster<'objects>> = BTreeMap::new();
    for (cluster, apps) in elsewhere {
        let (ClusterRef::Name(text) | ClusterRef::Server(text)) = &cluster;
        let found = all.as_ref().map_err(Clone::clone);
        let found = found.and_then(|all| connect::find(all, &cluster).map_err(|error| one_line_of(&error)));
        match found {
            Ok(one) if one.cluster.server == ClusterRef::IN_CLUSTER_SERVER => here.extend(apps),
            // Apps name one cluster by its name or by its address.
            Ok(one) => {
                let new = || OtherCluster {
                    name: one.cluster.name.clone(),
                    registered: Ok(Registered {
                        cluster: one.cluster.clone(),
                        secret: one.secret.clone(),
                        state: None,
                    }),
                    apps: Vec::new(),
                };
                others.entry(one.cluster.server.clone()).or_insert_with(new).apps.extend(apps);
            }
            Err(why) => {
                others.insert(text.clone(), OtherCluster { name: text.clone(), registered: Err(why), apps });
            }
        }
    }
    (here, others.into_values().collect())
}

async fn read_cluster(context: &Context, cluster: OtherCluster<'_>, now: Timestamp) -> SecretsOfCluster {
    let OtherCluster { name, registered, apps } = cluster;
    let server = registered.as_ref().ok().map(|one| one.cluster.server.clone());
    let report = async {
        let client = connect::connect(&registered?).await.map_err(|error| one_line_of(&error))?;
        report(context, &client, &apps, now).await.map_err(|error| one_line_of(&error))
    };
    SecretsOfCluster { report: report.await, name, server }
}

/// The first line of an error: its hints are about this machine.
fn one_line_of(error: &CommandError) -> String {
    let text = error.to_string();
    text.lines().next().unwrap_or_default().trim_start_matches("error: ").to_owned()
}

async fn report(
    context: &Context,
    client: &ClusterClient,
    apps: &[AppObjects<'_>],
    now: Timestamp,
) -> Result<SecretsReport, CommandError> {
    let mut gathering = Gathering::of(context, client, apps, now);
    for namespace in std::mem::take(&mut gathering.namespaces) {
        gathering.read_makers(&namespace).await?;
        gathering.read_workloads(&namespace).await?;
        gathering.read_config_maps(&namespace).await?;
        gathering.read_secrets(&namespace).await?;
    }
    gathering.check_makers().await?;
    let Gathering { facts, mut report, .. } = gathering;
    sealing_certificates(context, client, &mut report, now).await?;
    let kind = GroupKind::new("external-secrets.io", "ExternalSecret");
    report.has_external_secrets = client.catalog().preferred(&kind).is_some();
    report.unknown = unknown_secrets(&facts);
    report.tokens.sort_by(|(one, _), (other, _)| one.cmp(other));
    Ok(report)
}

/// What is sought, and what was found so far.
struct Gathering<'run> {
    context: &'run Context,
    client: &'run ClusterClient,
    now: Timestamp,
    namespaces: BTreeSet<String>,
    /// The workloads of apps.
    workloads: Vec<(AppId, ObjectKey)>,
    /// The `ConfigMaps` of apps.
    config_maps: BTreeSet<ObjectKey>,
    /// What makes Secrets, in the namespaces that were read.
    makers: Vec<Manifest>,
    /// Stores of the namespaces that were read.
    stores: BTreeSet<ObjectKey>,
    facts: SecretFacts,
    report: SecretsReport,
}

impl<'run> Gathering<'run> {
    /// What the Applications themselves say.
    fn of(
        context: &'run Context,
        client: &'run ClusterClient,
        apps: &[AppObjects<'_>],
        now: Timestamp,
    ) -> Self {
        let mut gathering = Self {
            context,
            client,
            now,
            namespaces: BTreeSet::new(),
            workloads: Vec::new(),
            config_maps: BTreeSet::new(),
            makers: Vec::new(),
            stores: BTreeSet::new(),
            facts: SecretFacts::default(),
            report: SecretsReport { n_apps: apps.len(), ..SecretsReport::default() },
        };
        for app in apps {
            for key in listed(&app.application) {
                gathering.namespaces.extend(key.namespace.clone());
                let kind = (key.group.as_str(), key.kind.as_str());
                if kind == ("", "Secret") {
                    gathering.facts.rendered.insert(key);
                } else if kind == ("", "ConfigMap") {
                    gathering.config_maps.insert(key);
                } else if WORKLOADS.contains(&kind) {
                    gathering.workloads.push((app.id.clone(), key));
                }
            }
            for condition in &app.application.status.conditions {
                if condition.kind() == Some(ConditionType::PlainSecretWarning) {
                    gathering.report.plain.push((app.id.clone(), condition.message.clone()));
                }
            }
            gathering.look_for_tokens(app.object);
        }
        gathering
    }

    fn look_for_tokens(&mut self, object: &Manifest) {
        let Some(key) = object.key() else { return };
        self.report.tokens.extend(token_hints(object).into_iter().map(|hint| (key.clone(), hint)));
    }

    async fn read_makers(&mut self, namespace: &str) -> Result<(), CommandError> {
        for (group, kind) in MAKERS {
            let makers = list(self.client, group, kind, namespace).await?;
            let expected = makers.iter().filter_map(expected_secret).map(|expected| expected.secret);
            self.facts.expected.extend(expected);
            self.makers.extend(makers);
        }
        let stores = list(self.client, "external-secrets.io", "SecretStore", namespace).await?;
        self.stores.extend(stores.iter().filter_map(store_key));
        Ok(())
    }

    /// What cannot work: a store that does not exist, keys that no Secret can have, two objects for one Secret.
    async fn check_makers(&mut self) -> Result<(), CommandError> {
        let kind = GroupKind::new("external-secrets.io", "ClusterSecretStore");
        let mut sees_all_stores = true;
        if let Some(resource) = self.client.catalog().preferred(&kind).filter(|_| !self.makers.is_empty()) {
            match self.client.list(&resource.gvk, &Selection::default()).await {
                Ok(stores) => self.stores.extend(stores.iter().filter_map(store_key)),
                Err(error) if error.is_forbidden() => sees_all_stores = false,
                Err(error) => return Err(list_failed(&resource.gvk, error)),
            }
        }
        let makers: Vec<&Manifest> = self.makers.iter().collect();
        self.report.broken = external_problems(&makers, &self.stores);
        self.report.broken.retain(|problem| match &problem.kind {
            ExternalProblemKind::UnknownStore(store) => sees_all_stores || store.kind != kind.kind,
            ExternalProblemKind::Malformed | ExternalProblemKind::TwoWriters => true,
        });
        Ok(())
    }

    /// What makes a Secret, as the Secret names it.
    fn maker(&self, namespace: &str, (kind, name): &(String, String)) -> Option<&Manifest> {
        let is_it = |maker: &&Manifest| {
            maker.kind() == kind
                && maker.name() == Some(name.as_str())
                && maker.namespace() == Some(namespace)
        };
        self.makers.iter().find(is_it)
    }

    async fn read_workloads(&mut self, namespace: &str) -> Result<(), CommandError> {
        for (group, kind) in WORKLOADS {
            for object in list(self.client, group, kind, namespace).await? {
                let Some(key) = object.key() else { continue };
                let users = self.workloads.iter().filter(|(_, sought)| *sought == key);
                let users: Vec<AppId> = users.map(|(app, _)| app.clone()).collect();
                if !users.is_empty() {
                    self.look_for_tokens(&object);
                }
                self.facts.workloads.extend(users.into_iter().map(|app| (app, object.clone())));
                if kind == "Pod" {
                    self.facts.pods.push(object);
                }
            }
        }
        Ok(())
    }

    async fn read_config_maps(&mut self, namespace: &str) -> Result<(), CommandError> {
        for map in list(self.client, "", "ConfigMap", namespace).await? {
            if map.key().is_some_and(|key| self.config_maps.contains(&key)) {
                self.look_for_tokens(&map);
            }
        }
        Ok(())
    }

    /// Values are dropped as soon as the certificates among them are read.
    async fn read_secrets(&mut self, namespace: &str) -> Result<(), CommandError> {
        let selection = Selection { namespace: Some(namespace.to_owned()), ..Selection::default() };
        for secret in self.context.list(self.client, &kinds::secret(), &selection).await? {
            let owner = controller_of(&secret).map(|(kind, name)| (kind.to_owned(), name.to_owned()));
            if let (Some(owner), Some(key)) = (owner, secret.key()) {
                let maker = self.maker(namespace, &owner);
                let sealed = maker.filter(|maker| is_sealed_secret(maker.value()));
                let removed = sealed.and_then(|sealed| removed_by_hand(&secret, sealed));
                let edits = edited_by_hand(&secret, maker.is_some()).into_iter().chain(removed);
                let edited = |edit| EditedSecret { key: key.clone(), owner: owner.clone(), edit };
                let edits: Vec<EditedSecret> = edits.map(edited).collect();
                self.report.edited.extend(edits);
            }
            let is_tls = secret.value().get("type").and_then(Value::as_str) == Some("kubernetes.io/tls");
            if is_tls && secret.label(SEALING_KEY).is_none() {
                self.report.expiring.extend(expiring(&secret, false, self.now));
            }
            self.facts.secrets.extend(without_values(secret));
        }
        Ok(())
    }
}

/// The objects that a status lists.
fn listed(application: &Application) -> impl Iterator<Item = ObjectKey> {
    application.status.resources.iter().map(|resource| {
        let namespace = (!resource.namespace.is_empty()).then(|| resource.namespace.clone());
        ObjectKey::new(resource.group.clone(), resource.kind.clone(), namespace, resource.name.clone())
    })
}

/// Objects of a kind, if the cluster serves it.
async fn list(
    client: &ClusterClient,
    group: &str,
    kind: &str,
    namespace: &str,
) -> Result<Vec<Manifest>, CommandError> {
    let Some(resource) = client.catalog().preferred(&GroupKind::new(group, kind)) else {
        return Ok(Vec::new());
    };
    let selection = Selection { namespace: Some(namespace.to_owned()), ..Selection::default() };
    client.list(&resource.gvk, &selection).await.map_err(|error| list_failed(&resource.gvk, error))
}

/// The newest key of each controller. Older ones only open what they sealed, which they do after their end, too.
async fn sealing_certificates(
    context: &Context,
    client: &ClusterClient,
    report: &mut SecretsReport,
    now: Timestamp,
) -> Result<(), CommandError> {
    let selection = Selection { labels: Some(format!("{SEALING_KEY}=active")), ..Selection::default() };
    let keys = match client.list(&kinds::secret(), &selection).await {
        // Few may read Secrets of all namespaces.
        Err(error) if error.is_forbidden() => {
            context.out.note(&format!(
                "note: sealing certificates of {} are not looked at: Secrets of all namespaces cannot be listed there",
                client.server()
            ));
            return Ok(());
        }
        keys => keys.map_err(|error| list_failed(&kinds::secret(), error))?,
    };
    let namespaces: BTreeSet<Option<&str>> = keys.iter().map(Manifest::namespace).collect();
    for namespace in namespaces {
        let here = keys.iter().filter(|key| key.namespace() == namespace);
        let newest = here.max_by_key(|key| certificate(key).map(|certificate| certificate.not_before()));
        report.expiring.extend(newest.and_then(|newest| expiring(newest, true, now)));
    }
    Ok(())
}

fn certificate(secret: &Manifest) -> Option<Certificate> {
    let text = secret.value().pointer("/data/tls.crt").and_then(Value::as_str)?;
    Certificate::from_pem(base64::decode(text)?.as_bytes()).ok()
}

fn expiring(secret: &Manifest, is_sealing: bool, now: Timestamp) -> Option<ExpiringCertificate> {
    let not_after = certificate(secret)?.not_after();
    let expiry = Expiry::of(not_after, now);
    (expiry != Expiry::Later).then(|| secret.key())?.map(|key| ExpiringCertificate {
        key,
        is_sealing,
        not_after,
        expiry,
    })
}

/// The Secret with the names of its values, but without them.
fn without_values(secret: Manifest) -> Option<Manifest> {
    let mut value = secret.into_value();
    let data = value.get_mut("data").and_then(Value::as_object_mut);
    data.into_iter().flatten().for_each(|(_, value)| *value = Value::Null);
    Manifest::new(value).ok()
}
