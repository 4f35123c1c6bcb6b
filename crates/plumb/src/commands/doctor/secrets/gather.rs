//! Reads what one cluster says about the Secrets of its apps.

use std::collections::BTreeSet;

use futures::StreamExt as _;
use futures::stream;
use jiff::Timestamp;
use plumb_core::app::AppId;
use plumb_core::health::expected_secret;
use plumb_core::object::{GroupKind, Manifest, ObjectKey};
use plumb_core::secrets::{
    EditedSecret, ExternalProblemKind, PlainInGit, SecretFacts, SecretsReport, controller_of, edited_by_hand,
    external_problems, is_sealed_secret, removed_by_hand, store_key, token_hints, unknown_secrets,
};
use plumb_crd::Application;
use plumb_crd::application::ConditionType;
use plumb_kube::{ClusterClient, Selection};
use serde_json::Value;

use super::certificates::{expiring_tls, sealing_certificates};
use crate::context::{Context, list_failed};
use crate::error::CommandError;

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
/// Namespaces are read so many at a time.
const NAMESPACES_AT_A_TIME: usize = 4;

/// An app with the objects that its status lists.
pub(super) struct AppObjects<'objects> {
    pub(super) id: AppId,
    pub(super) application: Application,
    pub(super) object: &'objects Manifest,
    /// The Secrets that it has in Git with their values, as its report names them.
    pub(super) plain: Vec<ObjectKey>,
    /// Did the user ask for it? Of the others, only the Secrets that they render matter.
    pub(super) is_wanted: bool,
}

/// What is wrong with the Secrets of the wanted apps of a cluster.
pub(super) async fn report(
    context: &Context,
    client: &ClusterClient,
    apps: &[AppObjects<'_>],
    now: Timestamp,
) -> Result<SecretsReport, CommandError> {
    let mut gathering = Gathering::of(apps);
    let sought = std::mem::take(&mut gathering.sought);
    let namespaces: Vec<&String> = sought.namespaces.iter().collect();
    let mut reads = stream::iter(namespaces)
        .map(|namespace| NamespaceRead::of(client, &sought, namespace, now))
        .buffered(NAMESPACES_AT_A_TIME);
    while let Some(read) = reads.next().await {
        gathering.take(read?);
    }
    gathering.check_makers(client).await?;
    let Gathering { facts, mut report, .. } = gathering;
    sealing_certificates(context, client, &mut report, now).await?;
    let kind = GroupKind::new("external-secrets.io", "ExternalSecret");
    report.has_external_secrets = client.catalog().preferred(&kind).is_some();
    let live: BTreeSet<ObjectKey> = facts.secrets.iter().filter_map(Manifest::key).collect();
    for (key, is_live) in report.plain.iter_mut().flat_map(|plain| &mut plain.secrets) {
        *is_live = live.contains(key);
    }
    report.unknown = unknown_secrets(&facts);
    report.tokens.sort_by(|(one, _), (other, _)| one.cmp(other));
    Ok(report)
}

/// What to look for.
#[derive(Default)]
struct Sought {
    namespaces: BTreeSet<String>,
    /// The workloads of apps.
    workloads: Vec<(AppId, ObjectKey)>,
    /// The `ConfigMaps` of apps.
    config_maps: BTreeSet<ObjectKey>,
}

/// What was found so far.
struct Gathering {
    sought: Sought,
    /// What makes Secrets.
    makers: Vec<Manifest>,
    /// The stores that exist.
    stores: BTreeSet<ObjectKey>,
    /// Were all `SecretStores` read?
    sees_stores: bool,
    facts: SecretFacts,
    report: SecretsReport,
}

impl Gathering {
    /// What the Applications themselves say.
    fn of(apps: &[AppObjects<'_>]) -> Self {
        let n_apps = apps.iter().filter(|app| app.is_wanted).count();
        let mut gathering = Self {
            sought: Sought::default(),
            makers: Vec::new(),
            stores: BTreeSet::new(),
            sees_stores: true,
            facts: SecretFacts::default(),
            report: SecretsReport { n_apps, ..SecretsReport::default() },
        };
        for app in apps {
            for (key, is_rendered) in listed(&app.application) {
                let kind = (key.group.as_str(), key.kind.as_str());
                let is_secret = kind == ("", "Secret");
                if app.is_wanted {
                    gathering.sought.namespaces.extend(key.namespace.clone());
                    if kind == ("", "ConfigMap") {
                        gathering.sought.config_maps.insert(key.clone());
                    } else if WORKLOADS.contains(&kind) {
                        gathering.sought.workloads.push((app.id.clone(), key.clone()));
                    }
                }
                // A Secret that another app renders is one that Git knows; one that left Git is not.
                if is_secret && is_rendered {
                    gathering.facts.rendered.insert(key);
                }
            }
            if app.is_wanted {
                gathering.report.plain.extend(plain(app));
                gathering.report.tokens.extend(hints(app.object));
            }
        }
        gathering
    }

    fn take(&mut self, read: NamespaceRead) {
        let expected = read.makers.iter().filter_map(expected_secret).map(|expected| expected.secret);
        self.facts.expected.extend(expected);
        self.makers.extend(read.makers);
        self.stores.extend(read.stores);
        self.sees_stores &= read.sees_stores;
        self.facts.workloads.extend(read.facts.workloads);
        self.facts.pods.extend(read.facts.pods);
        self.facts.secrets.extend(read.facts.secrets);
        self.facts.accounts.extend(read.facts.accounts);
        self.report.tokens.extend(read.report.tokens);
        self.report.edited.extend(read.report.edited);
        self.report.expiring.extend(read.report.expiring);
        self.report.not_read.extend(read.report.not_read);
    }

    /// What cannot work: a store that does not exist, keys that no Secret can have, two objects for one Secret.
    async fn check_makers(&mut self, client: &ClusterClient) -> Result<(), CommandError> {
        let kind = GroupKind::new("external-secrets.io", "ClusterSecretStore");
        let mut sees_all_stores = true;
        if let Some(resource) = client.catalog().preferred(&kind).filter(|_| !self.makers.is_empty()) {
            match client.list(&resource.gvk, &Selection::default()).await {
                Ok(stores) => self.stores.extend(stores.iter().filter_map(store_key)),
                Err(error) if error.is_forbidden() => sees_all_stores = false,
                Err(error) => return Err(list_failed(&resource.gvk, error)),
            }
        }
        let makers: Vec<&Manifest> = self.makers.iter().collect();
        let mut broken = external_problems(&makers, &self.stores);
        broken.retain(|problem| match &problem.kind {
            ExternalProblemKind::UnknownStore(store) if store.kind == kind.kind => sees_all_stores,
            ExternalProblemKind::UnknownStore(_) => self.sees_stores,
            ExternalProblemKind::Malformed | ExternalProblemKind::TwoWriters => true,
        });
        self.report.broken = broken;
        Ok(())
    }
}

/// What one namespace says.
struct NamespaceRead {
    makers: Vec<Manifest>,
    stores: BTreeSet<ObjectKey>,
    sees_stores: bool,
    facts: SecretFacts,
    report: SecretsReport,
}

impl NamespaceRead {
    async fn of(
        client: &ClusterClient,
        sought: &Sought,
        namespace: &str,
        now: Timestamp,
    ) -> Result<Self, CommandError> {
        let mut read = Self {
            makers: Vec::new(),
            stores: BTreeSet::new(),
            sees_stores: true,
            facts: SecretFacts::default(),
            report: SecretsReport::default(),
        };
        read.read_makers(client, namespace).await?;
        read.read_workloads(client, sought, namespace).await?;
        for map in read.list(client, "", "ConfigMap", namespace).await?.unwrap_or_default() {
            if map.key().is_some_and(|key| sought.config_maps.contains(&key)) {
                read.report.tokens.extend(hints(&map));
            }
        }
        read.facts.accounts = read.list(client, "", "ServiceAccount", namespace).await?.unwrap_or_default();
        read.read_secrets(client, namespace, now).await?;
        Ok(read)
    }

    /// Objects of a kind; none where the cluster does not serve it. `None` if the user may not list them, which the
    /// report says.
    async fn list(
        &mut self,
        client: &ClusterClient,
        group: &str,
        kind: &str,
        namespace: &str,
    ) -> Result<Option<Vec<Manifest>>, CommandError> {
        let Some(resource) = client.catalog().preferred(&GroupKind::new(group, kind)) else {
            return Ok(Some(Vec::new()));
        };
        let selection = Selection { namespace: Some(namespace.to_owned()), ..Selection::default() };
        match client.list(&resource.gvk, &selection).await {
            Ok(objects) => Ok(Some(objects)),
            Err(error) if error.is_forbidden() => {
                self.report.not_read.push(format!("{kind} in namespace {namespace}: you may not list them"));
                Ok(None)
            }
            Err(error) => Err(list_failed(&resource.gvk, error)),
        }
    }

    async fn read_makers(&mut self, client: &ClusterClient, namespace: &str) -> Result<(), CommandError> {
        for (group, kind) in MAKERS {
            let makers = self.list(client, group, kind, namespace).await?;
            self.makers.extend(makers.unwrap_or_default());
        }
        let stores = self.list(client, "external-secrets.io", "SecretStore", namespace).await?;
        self.sees_stores = stores.is_some();
        self.stores.extend(stores.iter().flatten().filter_map(store_key));
        Ok(())
    }

    async fn read_workloads(
        &mut self,
        client: &ClusterClient,
        sought: &Sought,
        namespace: &str,
    ) -> Result<(), CommandError> {
        for (group, kind) in WORKLOADS {
            for object in self.list(client, group, kind, namespace).await?.unwrap_or_default() {
                let Some(key) = object.key() else { continue };
                let users = sought.workloads.iter().filter(|(_, workload)| *workload == key);
                let users: Vec<AppId> = users.map(|(app, _)| app.clone()).collect();
                if !users.is_empty() {
                    self.report.tokens.extend(hints(&object));
                }
                self.facts.workloads.extend(users.into_iter().map(|app| (app, object.clone())));
                if kind == "Pod" {
                    self.facts.pods.push(object);
                }
            }
        }
        Ok(())
    }

    /// Values are dropped as soon as the certificates among them are read.
    async fn read_secrets(
        &mut self,
        client: &ClusterClient,
        namespace: &str,
        now: Timestamp,
    ) -> Result<(), CommandError> {
        for secret in self.list(client, "", "Secret", namespace).await?.unwrap_or_default() {
            if let (Some(key), Some(maker)) = (secret.key(), self.maker(&secret)) {
                let removed = is_sealed_secret(maker.value()).then(|| removed_by_hand(&secret, maker));
                let edits = edited_by_hand(&secret, Some(maker)).into_iter().chain(removed.flatten());
                let owner = (maker.kind().to_owned(), maker.name().unwrap_or_default().to_owned());
                let edited = |edit| EditedSecret { key: key.clone(), owner: owner.clone(), edit };
                let edited: Vec<EditedSecret> = edits.map(edited).collect();
                self.report.edited.extend(edited);
            }
            self.report.expiring.extend(expiring_tls(&secret, now));
            self.facts.secrets.extend(without_values(secret));
        }
        Ok(())
    }

    /// What makes a Secret: what the Secret names as its controller, or what says that it makes it.
    fn maker(&self, secret: &Manifest) -> Option<&Manifest> {
        let key = secret.key()?;
        let owner = controller_of(secret);
        self.makers.iter().find(|maker| match owner {
            Some((kind, name)) => maker.kind() == kind && maker.name() == Some(name),
            None => expected_secret(maker).is_some_and(|expected| expected.secret == key),
        })
    }
}

/// The objects that a status lists, and whether Git has them: a status lists what is to be pruned, too.
fn listed(application: &Application) -> impl Iterator<Item = (ObjectKey, bool)> {
    let resources = application.status.resources.iter();
    resources.map(|resource| (resource.key(), !resource.requires_pruning))
}

fn hints(object: &Manifest) -> Vec<(ObjectKey, plumb_core::secrets::TokenHint)> {
    let Some(key) = object.key() else { return Vec::new() };
    token_hints(object).into_iter().map(|hint| (key.clone(), hint)).collect()
}

/// What an app has in plain text. The condition names the keys, too; where the project refuses plain Secrets, only the
/// report names them. Whether the cluster has the Secrets is not known yet.
fn plain(app: &AppObjects<'_>) -> Option<PlainInGit> {
    let conditions = app.application.status.conditions.iter();
    let messages: Vec<&str> = conditions
        .filter(|condition| condition.kind() == Some(ConditionType::PlainSecretWarning))
        .map(|condition| condition.message.as_str())
        .collect();
    let shown = |key: &ObjectKey| format!("{}/{}", key.namespace_or_empty(), key.name);
    let message = if !messages.is_empty() {
        messages.join("; ")
    } else if app.plain.is_empty() {
        return None;
    } else {
        let names: Vec<String> = app.plain.iter().map(shown).collect();
        format!("Secrets with their values in the sources: {}", names.join(", "))
    };
    let secrets = app.plain.iter().map(|key| (key.clone(), false)).collect();
    Some(PlainInGit { app: app.id.clone(), message, secrets })
}

/// The Secret with the names of its values, but without them.
fn without_values(secret: Manifest) -> Option<Manifest> {
    let mut value = secret.into_value();
    let data = value.get_mut("data").and_then(Value::as_object_mut);
    data.into_iter().flatten().for_each(|(_, value)| *value = Value::Null);
    Manifest::new(value).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object(resources: &Value, conditions: &Value) -> Manifest {
        let object = json!({"apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
            "metadata": {"name": "shop", "namespace": "argocd"},
            "spec": {"project": "default", "destination": {"namespace": "shop"}},
            "status": {"resources": resources, "conditions": conditions}});
        Manifest::new(object).unwrap()
    }

    fn app(object: &Manifest, plain: Vec<ObjectKey>) -> AppObjects<'_> {
        let application = Application::from_json(object.value()).unwrap();
        AppObjects { id: application.id(), application, object, plain, is_wanted: true }
    }

    fn secret(name: &str) -> ObjectKey {
        ObjectKey::new("", "Secret", Some("shop".to_owned()), name)
    }

    #[test]
    fn a_secret_that_left_git_is_rendered_by_no_app() {
        let listed = |name: &str, requires_pruning: bool| {
            json!({"version": "v1", "kind": "Secret", "namespace": "shop", "name": name,
                "requiresPruning": requires_pruning})
        };
        let object = object(&json!([listed("in-git", false), listed("left", true)]), &json!([]));
        let gathering = Gathering::of(&[app(&object, Vec::new())]);
        assert_eq!(gathering.facts.rendered, BTreeSet::from([secret("in-git")]));
        assert!(gathering.sought.namespaces.contains("shop"));
    }

    #[test]
    fn plain_secrets_are_named_with_and_without_a_condition() {
        let condition = json!([{"type": "PlainSecretWarning", "message": "1 Secret is in plain text"}]);
        let warned = object(&json!([]), &condition);
        let refused = object(&json!([]), &json!([]));
        let found = |object: &Manifest, keys: Vec<ObjectKey>| {
            Gathering::of(&[app(object, keys)]).report.plain.into_iter().next()
        };
        let plain = found(&warned, vec![secret("db")]).unwrap();
        assert_eq!((plain.message.as_str(), plain.secrets.len()), ("1 Secret is in plain text", 1));
        let plain = found(&refused, vec![secret("db")]).unwrap();
        assert_eq!(plain.message, "Secrets with their values in the sources: shop/db");
        assert_eq!(found(&refused, Vec::new()), None);
    }
}
