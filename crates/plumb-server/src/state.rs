//! What the server knows of the control plane: settings, accounts, permissions, projects. Kept up to date by watches
//! that start with the first request, so that a server without clients costs nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::RwLock;
use plumb_api::Status;
use plumb_core::object::Manifest;
use plumb_core::rbac::{AccessRules, AccessSettings, Caller, ProjectRole, ProjectRoles, Request};
use plumb_core::yaml::{Limits, parse_documents};
use plumb_crd::settings::SecretData;
use plumb_kube::{ObjectEvent, Selection};
use serde_json::Value;
use tokio::sync::{OnceCell, watch};
use tracing::{error, warn};

use crate::accounts::{self, Account};
use crate::backend::{Backend, Known};

/// Failed logins and revoked tokens, for all replicas and across restarts.
pub(crate) const SESSIONS: &str = "plumb-sessions";
/// The settings of permissions.
const RBAC: &str = "argocd-rbac-cm";
/// The general settings.
const CONFIG: &str = "argocd-cm";
/// Passwords, tokens, keys.
pub(crate) const SECRET: &str = "argocd-secret";
/// The certificate of the server.
pub(crate) const TLS_SECRET: &str = "argocd-server-tls";
/// How long the first lists may take.
const LISTED_WITHIN: Duration = Duration::from_secs(10);

/// The watched objects of the control-plane namespace; its projects come on top.
const CONFIG_MAPS: [&str; 3] = [CONFIG, RBAC, SESSIONS];
const SECRETS: [&str; 2] = [SECRET, TLS_SECRET];
/// The name of the watch of projects.
const PROJECTS: &str = "";
/// The Secrets whose values settings may name as `$SECRET:KEY`.
const NAMED_SECRETS: &str = "app.kubernetes.io/part-of=argocd";

/// How long a watch may be behind what this server has written.
const BEHIND: Duration = Duration::from_secs(10);

/// The state of the control plane. Cheap to clone.
#[derive(Clone)]
pub(crate) struct State(Arc<Shared>);

struct Shared {
    backend: Backend,
    namespace: String,
    known: RwLock<Seen>,
    /// The watches whose first list has arrived. A watch lists again after it was interrupted.
    listed: watch::Sender<BTreeSet<&'static str>>,
    started: OnceCell<()>,
}

/// What the watches have seen.
#[derive(Default)]
struct Seen {
    config: Arc<BTreeMap<String, String>>,
    secret: Arc<BTreeMap<String, String>>,
    /// The values of the other Secrets of Argo CD, by `SECRET:KEY`.
    named_secrets: BTreeMap<String, String>,
    tls: Option<(String, String)>,
    sessions: Arc<BTreeMap<String, String>>,
    projects: BTreeMap<String, Arc<Manifest>>,
    /// When this server has last written each of these projects.
    written: BTreeMap<String, Instant>,
    /// What this server has last written of the settings.
    own: BTreeMap<&'static str, OwnWrite>,
    accounts: Arc<BTreeMap<String, Account>>,
    rules: Option<Arc<AccessRules>>,
    rules_version: u64,
}

/// A state of an object that this server has written.
struct OwnWrite {
    uid: String,
    version: u64,
    at: Instant,
}

impl OwnWrite {
    fn of(object: &Manifest) -> Option<Self> {
        let version = object.resource_version()?.parse().ok()?;
        Some(Self { uid: object.uid()?.to_owned(), version, at: Instant::now() })
    }

    /// True for an older state of the object, which the watch brings late: a token that was issued just now must not be
    /// unknown, and a session that has ended must not be alive, until the watch is there.
    fn is_after(&self, seen: &Manifest) -> bool {
        let version: Option<u64> = seen.resource_version().and_then(|version| version.parse().ok());
        self.at.elapsed() < BEHIND
            && seen.uid() == Some(self.uid.as_str())
            && version.is_some_and(|version| version < self.version)
    }
}

impl State {
    pub(crate) fn new(backend: Backend, namespace: String) -> Self {
        let shared = Shared {
            backend,
            namespace,
            known: RwLock::default(),
            listed: watch::channel(BTreeSet::new()).0,
            started: OnceCell::new(),
        };
        Self(Arc::new(shared))
    }

    pub(crate) fn namespace(&self) -> &str {
        &self.0.namespace
    }

    /// Waits until everything was read once. Without that, no request may be judged.
    pub(crate) async fn ready(&self) -> Result<(), Status> {
        self.0.started.get_or_init(|| async { self.start() }).await;
        let mut listed = self.0.listed.subscribe();
        let all = tokio::time::timeout(LISTED_WITHIN, listed.wait_for(has_all));
        match all.await {
            Ok(Ok(_)) => Ok(()),
            _ => Err(Status::unavailable("the settings cannot be read now; try again")),
        }
    }

    fn start(&self) {
        let named = |name: &str| Selection {
            namespace: Some(self.0.namespace.clone()),
            fields: Some(format!("metadata.name={name}")),
            labels: None,
        };
        for name in CONFIG_MAPS {
            self.follow(Known::ConfigMap, named(name), name);
        }
        for name in SECRETS {
            self.follow(Known::Secret, named(name), name);
        }
        let all = Selection { namespace: Some(self.0.namespace.clone()), ..Selection::default() };
        let labelled = Selection { labels: Some(NAMED_SECRETS.to_owned()), ..all.clone() };
        self.follow(Known::Secret, labelled, NAMED_SECRETS);
        self.follow(Known::Project, all, PROJECTS);
    }

    fn follow(&self, kind: Known, selection: Selection, name: &'static str) {
        let state = self.clone();
        let mut stream = match self.0.backend.client.watch_objects(&kind.gvk(), selection) {
            Ok(stream) => stream,
            Err(why) => {
                error!(error = %why, ?kind, "cannot watch; the API answers nothing");
                return;
            }
        };
        tokio::spawn(async move {
            while let Some(event) = stream.next().await {
                match event {
                    ObjectEvent::Seen(object) => {
                        state.note(kind, name, object.name().unwrap_or_default(), Some(&object));
                    }
                    ObjectEvent::Gone { key, .. } => state.note(kind, name, &key.name, None),
                    ObjectEvent::Listed => {
                        state.note_listed(name);
                        state.0.listed.send_if_modified(|listed| listed.insert(name));
                    }
                    ObjectEvent::Trouble(_) => {}
                }
            }
        });
    }

    /// An absent object never makes an event; its defaults count from the first list on.
    fn note_listed(&self, name: &str) {
        if name == RBAC && self.0.known.read().rules.is_none() {
            self.note(Known::ConfigMap, RBAC, RBAC, None);
        }
        if name == SECRET || name == CONFIG {
            let mut known = self.0.known.write();
            known.accounts = Arc::new(accounts::read(&known.config, &known.secret));
        }
    }

    fn note(&self, kind: Known, watched: &str, name: &str, object: Option<&Manifest>) {
        let mut known = self.0.known.write();
        if known.own.get(watched).zip(object).is_some_and(|(own, object)| own.is_after(object)) {
            return;
        }
        match (kind, watched) {
            (Known::Project, _) => known.note_project(name, object),
            (_, CONFIG) => known.config = Arc::new(texts(object)),
            (_, SESSIONS) => known.sessions = Arc::new(texts(object)),
            (_, RBAC) => known.note_rules(&texts(object)),
            (_, NAMED_SECRETS) => known.note_named_secret(name, object),
            (_, SECRET) => known.secret = Arc::new(secret_texts(object)),
            (_, TLS_SECRET) => {
                let mut data = secret_texts(object);
                known.tls = data.remove("tls.crt").zip(data.remove("tls.key"));
            }
            _ => {}
        }
        if watched == CONFIG || watched == SECRET {
            known.accounts = Arc::new(accounts::read(&known.config, &known.secret));
        }
    }

    /// Notes a Secret or settings that this server has just written, so that the next request sees it.
    pub(crate) fn note_written(&self, name: &str, object: &Manifest) {
        let watched = [CONFIG, RBAC, SESSIONS, SECRET, TLS_SECRET].into_iter().find(|known| *known == name);
        match watched {
            Some(watched) => {
                self.note(Known::ConfigMap, watched, name, Some(object));
                self.0.known.write().note_own(watched, object);
            }
            None if object.kind() == "AppProject" => {
                self.note(Known::Project, PROJECTS, name, Some(object));
                self.0.known.write().note_write(name);
            }
            None => {}
        }
    }

    /// Notes a project that this server has just deleted.
    pub(crate) fn note_deleted_project(&self, name: &str) {
        self.note(Known::Project, "", name, None);
    }

    pub(crate) fn config(&self) -> Arc<BTreeMap<String, String>> {
        Arc::clone(&self.0.known.read().config)
    }

    /// What settings may name with a `$`: a key of `argocd-secret`, or `SECRET:KEY`.
    pub(crate) fn named_values(&self) -> BTreeMap<String, String> {
        let known = self.0.known.read();
        let own = known.secret.iter().chain(&known.named_secrets);
        own.map(|(key, value)| (key.clone(), value.clone())).collect()
    }

    /// A setting; empty if it is absent.
    pub(crate) fn setting(&self, key: &str) -> String {
        self.0.known.read().config.get(key).cloned().unwrap_or_default()
    }

    /// The addresses of this server: `url` and `additionalUrls`.
    pub(crate) fn addresses(&self) -> Vec<String> {
        let first = self.setting("url");
        let more = yaml_texts(&self.setting("additionalUrls"));
        std::iter::once(first).chain(more).filter(|url| !url.is_empty()).collect()
    }

    /// The address of this server at a host; the first one if none is there, and empty without any.
    pub(crate) fn address_at(&self, host: &str) -> String {
        let addresses = self.addresses();
        let at_host = addresses.iter().find(|address| host_of(address).eq_ignore_ascii_case(host));
        at_host.or(addresses.first()).cloned().unwrap_or_default()
    }

    pub(crate) fn sessions(&self) -> Arc<BTreeMap<String, String>> {
        Arc::clone(&self.0.known.read().sessions)
    }

    pub(crate) fn accounts(&self) -> Arc<BTreeMap<String, Account>> {
        Arc::clone(&self.0.known.read().accounts)
    }

    /// The key that signs tokens; `None` until it exists.
    pub(crate) fn signing_key(&self) -> Option<Vec<u8>> {
        let known = self.0.known.read();
        known.secret.get("server.secretkey").filter(|key| !key.is_empty()).map(|key| key.as_bytes().to_vec())
    }

    /// Certificate and key of the server, if a Secret has them.
    pub(crate) fn certificate(&self) -> Option<(String, String)> {
        let known = self.0.known.read();
        let own = || known.secret.get("tls.crt").cloned().zip(known.secret.get("tls.key").cloned());
        known.tls.clone().or_else(own)
    }

    /// May the caller do it? Without readable permissions, nobody may do anything.
    pub(crate) fn allows(&self, caller: &Caller, resource: &str, action: &str, object: &str) -> bool {
        let rules = self.0.known.read().rules.clone();
        rules.is_some_and(|rules| rules.allows(caller, &Request { resource, action, object }))
    }

    /// The groups of a caller.
    pub(crate) fn groups(&self, caller: &Caller) -> Vec<String> {
        let rules = self.0.known.read().rules.clone();
        rules.map(|rules| rules.groups(caller)).unwrap_or_default()
    }

    /// Changes whenever permissions may have changed.
    pub(crate) fn rules_version(&self) -> u64 {
        self.0.known.read().rules_version
    }

    pub(crate) fn project(&self, name: &str) -> Option<Arc<Manifest>> {
        self.0.known.read().projects.get(name).cloned()
    }

    pub(crate) fn projects(&self) -> Vec<Arc<Manifest>> {
        self.0.known.read().projects.values().cloned().collect()
    }
}

/// Has everything been read once? Nobody waits for the Secrets that settings may name: a user with few rights, who uses the
/// handlers without a server, may not list them.
fn has_all(listed: &BTreeSet<&'static str>) -> bool {
    CONFIG_MAPS.into_iter().chain(SECRETS).chain([PROJECTS]).all(|name| listed.contains(name))
}

/// Is it an older state of the same object?
fn is_older(object: &Manifest, known: &Manifest) -> bool {
    let version =
        |object: &Manifest| object.resource_version().and_then(|version| version.parse::<u64>().ok());
    object.uid() == known.uid() && version(object).zip(version(known)).is_some_and(|(new, known)| new < known)
}

impl Seen {
    fn note_named_secret(&mut self, name: &str, object: Option<&Manifest>) {
        let prefix = format!("{name}:");
        self.named_secrets.retain(|key, _| !key.starts_with(&prefix));
        let values = secret_texts(object).into_iter();
        self.named_secrets.extend(values.map(|(key, value)| (format!("{prefix}{key}"), value)));
    }

    fn note_own(&mut self, watched: &'static str, object: &Manifest) {
        let is_late = self.own.get(watched).is_some_and(|own| own.is_after(object));
        if let Some(own) = OwnWrite::of(object).filter(|_| !is_late) {
            self.own.insert(watched, own);
        }
    }

    fn note_write(&mut self, project: &str) {
        self.written.retain(|_, at| at.elapsed() < BEHIND);
        self.written.insert(project.to_owned(), Instant::now());
    }

    fn note_project(&mut self, name: &str, object: Option<&Manifest>) {
        // The watch may be behind what this server has written, and a client reads what it wrote. Later, an older state is
        // that of a restored backup.
        let is_behind = self.written.get(name).is_some_and(|at| at.elapsed() < BEHIND);
        if is_behind
            && object.zip(self.projects.get(name)).is_some_and(|(object, known)| is_older(object, known))
        {
            return;
        }
        self.rules_version += 1;
        match object {
            Some(object) => self.projects.insert(name.to_owned(), Arc::new(object.clone())),
            None => self.projects.remove(name),
        };
        if let Some(rules) = &mut self.rules {
            let rules = Arc::make_mut(rules);
            match object {
                Some(object) => rules.set_project(&roles(name, object)),
                None => rules.remove_project(name),
            }
        }
    }

    /// Compiles the permissions. A text that cannot be read leaves the last good one: one typo must not lock everybody out.
    fn note_rules(&mut self, data: &BTreeMap<String, String>) {
        self.rules_version += 1;
        let settings = AccessSettings::from_config(data).map_err(|problem| problem.to_string());
        let rules =
            settings.and_then(|settings| AccessRules::new(&settings).map_err(|problem| problem.to_string()));
        match rules {
            Ok(mut rules) => {
                for (name, project) in &self.projects {
                    rules.set_project(&roles(name, project));
                }
                self.rules = Some(Arc::new(rules));
            }
            Err(reason) if self.rules.is_some() => {
                error!(
                    reason,
                    "cannot read argocd-rbac-cm; the last permissions that could be read still count"
                );
            }
            Err(reason) => {
                error!(reason, "cannot read argocd-rbac-cm; only the built-in roles count");
                self.rules = AccessRules::new(&AccessSettings::default()).ok().map(Arc::new);
            }
        }
    }
}

/// Host and port of an address.
fn host_of(address: &str) -> &str {
    let rest = address.split_once("://").map_or(address, |(_, rest)| rest);
    rest.split('/').next().unwrap_or_default()
}

/// The texts of a YAML list.
pub(crate) fn yaml_texts(text: &str) -> Vec<String> {
    let documents = parse_documents(text, &Limits::default()).unwrap_or_default();
    let value = documents.into_iter().next().map(|document| document.value).unwrap_or_default();
    let items = value.as_array().into_iter().flatten();
    items.filter_map(|item| item.as_str().map(str::to_owned)).collect()
}

fn texts(object: Option<&Manifest>) -> BTreeMap<String, String> {
    let data = object.and_then(|object| object.value().get("data")?.as_object());
    let pairs = data.into_iter().flatten();
    pairs.filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned()))).collect()
}

/// The values of a Secret.
pub(crate) fn secret_texts(object: Option<&Manifest>) -> BTreeMap<String, String> {
    let Some(object) = object else { return BTreeMap::new() };
    let keys =
        object.value().get("data").and_then(Value::as_object).into_iter().flatten().map(|(key, _)| key);
    match SecretData::read(object.value()) {
        Ok((secret, _)) => {
            let value = |key: &String| Some((key.clone(), secret.get(key)?.expose().to_owned()));
            keys.filter_map(value).collect()
        }
        Err(why) => {
            warn!(error = %why, "cannot read a Secret of the server");
            BTreeMap::new()
        }
    }
}

fn roles(name: &str, project: &Manifest) -> ProjectRoles {
    let strings = |value: Option<&Value>| -> Vec<String> {
        let list = value.and_then(Value::as_array).into_iter().flatten();
        list.filter_map(|item| item.as_str().map(str::to_owned)).collect()
    };
    let roles = project.value().pointer("/spec/roles").and_then(Value::as_array).into_iter().flatten();
    let roles = roles.map(|role| ProjectRole {
        name: role.get("name").and_then(Value::as_str).unwrap_or_default().to_owned(),
        policies: strings(role.get("policies")),
        groups: strings(role.get("groups")),
    });
    ProjectRoles { project: name.to_owned(), roles: roles.collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_watch_that_lists_again_does_not_stand_in_for_another_one() {
        let mut listed = BTreeSet::new();
        for _ in 0..6 {
            listed.insert(CONFIG);
        }
        assert!(!has_all(&listed));
        listed.extend([RBAC, SESSIONS, SECRET, TLS_SECRET]);
        assert!(!has_all(&listed), "projects are missing");
        listed.insert(PROJECTS);
        assert!(has_all(&listed));
    }

    #[test]
    fn a_late_event_does_not_bring_an_older_project_back() {
        let mut seen = Seen::default();
        let project = |uid: &str, version: &str| {
            let metadata = serde_json::json!({"name": "team", "uid": uid, "resourceVersion": version});
            let object = serde_json::json!({"apiVersion": "argoproj.io/v1alpha1", "kind": "AppProject", "metadata": metadata});
            Manifest::new(object).unwrap()
        };
        let mut check = |is_own: bool, uid: &str, version: &str, expected: &str| {
            seen.note_project("team", Some(&project(uid, version)));
            if is_own {
                seen.note_write("team");
            }
            assert_eq!(seen.projects["team"].resource_version(), Some(expected), "{uid} {version}");
        };
        check(false, "one", "9", "9");
        check(false, "one", "8", "8");
        check(true, "one", "11", "11");
        check(false, "one", "10", "11");
        check(false, "one", "11", "11");
        check(false, "two", "3", "3");
    }

    #[test]
    fn a_late_event_does_not_bring_older_settings_back() {
        let secret = |version: &str| {
            let metadata = serde_json::json!({"name": SECRET, "uid": "one", "resourceVersion": version});
            let object = serde_json::json!({"apiVersion": "v1", "kind": "Secret", "metadata": metadata});
            Manifest::new(object).unwrap()
        };
        let mut seen = Seen::default();
        seen.note_own(SECRET, &secret("11"));
        seen.note_own(SECRET, &secret("10"));
        let own = &seen.own[SECRET];
        assert!(own.is_after(&secret("10")) && !own.is_after(&secret("11")) && !own.is_after(&secret("12")));
    }

    #[test]
    fn addresses_are_yaml_in_any_form() {
        for text in [
            "- https://a\n- 'https://b'",
            "[https://a, \"https://b\"] # two",
            "- https://a\n# x\n- https://b",
        ] {
            assert_eq!(yaml_texts(text), ["https://a", "https://b"], "{text}");
        }
        assert_eq!(yaml_texts("{"), Vec::<String>::new());
        assert_eq!(host_of("https://a.example.com:8443/base"), "a.example.com:8443");
    }

    #[test]
    fn values_of_other_secrets_are_known_by_both_names() {
        let mut seen = Seen::default();
        let secret = |data: Value| {
            let object = serde_json::json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "sso"}, "data": data});
            Manifest::new(object).unwrap()
        };
        seen.note_named_secret("sso", Some(&secret(serde_json::json!({"a": "b25l", "b": "dHdv"}))));
        assert_eq!(seen.named_secrets.get("sso:b").map(String::as_str), Some("two"));
        seen.note_named_secret("sso", Some(&secret(serde_json::json!({"a": "b25l"}))));
        assert_eq!(seen.named_secrets.keys().collect::<Vec<_>>(), ["sso:a"]);
        seen.note_named_secret("sso", None);
        assert!(seen.named_secrets.is_empty());
    }
}
